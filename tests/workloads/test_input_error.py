import pickle

from hypothesis import given
from hypothesis import strategies as st

from workloads import hints
from workloads.errors import InputError
from workloads.hints import _edits, did_you_mean


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


@given(st.text("abcd-", max_size=8), st.text("abcd-", max_size=8))
def test_edits_are_a_distance(one, other):
    assert _edits(one, other) == _edits(other, one)
    assert (_edits(one, other) == 0) == (one == other)
    assert abs(len(one) - len(other)) <= _edits(one, other) <= max(len(one), len(other))
    if len(one) > 1:
        swapped = one[1] + one[0] + one[2:]
        assert _edits(one, swapped) <= 1


def test_hints():
    assert did_you_mean("eagel", ["hawk", "eagle"]) == "; did you mean 'eagle'? (known: eagle, hawk)"
    assert did_you_mean("EAGLE", ["hawk", "Eagle"]) == "; did you mean 'Eagle'? (known: Eagle, hawk)"
    assert did_you_mean("zzz", ["hawk"]) == "; known: hawk"
    assert did_you_mean("zzz", []) == ""
    long = did_you_mean("n07", [f"n{i:02}" for i in range(40)])
    assert long.startswith("; did you mean 'n07'?")
    assert "(40 in all)" in long
    assert "n30" not in long


def test_of_very_many_names_those_that_begin_alike_are_compared(monkeypatch):
    many, compared = [*(f"column_{i}" for i in range(100_000)), "arrival_time"], []
    monkeypatch.setattr(hints, "_edits", lambda one, other: compared.append(other) or _edits(one, other))
    assert did_you_mean("arival_time", many).startswith(
        "; did you mean 'arrival_time'? (known: arrival_time, column_0"
    )
    assert compared == ["arrival-time"]
    did_you_mean("column_x", many)
    assert len(compared) < 2500
