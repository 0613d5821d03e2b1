import pickle

from workloads.errors import InputError
from workloads.hints import did_you_mean


def test_the_line_names_what_is_known():
    assert str(InputError("bad")) == "bad"
    assert str(InputError("bad", file="a.tr")) == "a.tr: bad"
    assert str(InputError("bad", file="a.tr", line=3, field="mean")) == "a.tr: line 3: field mean: bad"
    assert str(InputError("bad", field="seed")) == "field seed: bad"


def test_it_is_one_line_whatever_it_is_made_of():
    error = InputError("two\nlines\r\nof  text", file="odd\nname.tr")
    assert error.message == "two lines of text"
    assert len(str(error).splitlines()) == 1


def test_it_pickles_with_its_parts():
    error = InputError("bad", file="a.tr", line=3, field="mean")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert (copy.message, copy.file, copy.line, copy.field) == ("bad", "a.tr", 3, "mean")


def test_hints():
    assert did_you_mean("eagel", ["hawk", "eagle"]) == "; did you mean 'eagle'? (known: eagle, hawk)"
    assert did_you_mean("EAGLE", ["hawk", "Eagle"]) == "; did you mean 'Eagle'? (known: Eagle, hawk)"
    assert did_you_mean("zzz", ["hawk"]) == "; known: hawk"
    assert did_you_mean("zzz", []) == ""
    long = did_you_mean("n07", [f"n{i:02}" for i in range(40)])
    assert long.startswith("; did you mean 'n07'?")
    assert "(40 in all)" in long
    assert "n30" not in long
