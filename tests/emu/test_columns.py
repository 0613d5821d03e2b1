"""Arrow arrays from and to NumPy, as pyarrow itself has them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from emu.columns import equals_text, null_unless
from workloads.arrow import coded_labels, optional_column


@given(st.lists(st.tuples(st.booleans(), st.floats(allow_nan=False))), st.integers(0, 5))
def test_nulls_are_those_of_pyarrow(rows: list[tuple[bool, float]], skip: int) -> None:
    valid, values = np.array([v for v, _ in rows], bool), np.array([x for _, x in rows], np.float64)
    array = null_unless(valid, values)
    array.validate(full=True)
    assert array.equals(pa.array(values, mask=~valid))
    table = pa.table({"x": array}).slice(skip)
    found = optional_column(table, "x")
    expected = [np.nan if x is None else x for x in table["x"].to_pylist()]
    assert np.array_equal(found, np.array(expected, np.float64), equal_nan=True)


def test_whole_numbers_stay_whole_without_nulls() -> None:
    assert (
        optional_column(pa.table({"x": null_unless(np.ones(2, bool), np.array([1, 2]))}), "x").dtype
        == np.int64
    )
    assert null_unless(np.array([True, False]), np.array([1, 2])).to_pylist() == [1, None]


@given(st.lists(st.sampled_from(["long", "short", "lonh", "", "longer"])), st.integers(0, 5))
def test_text_is_compared_whole(words: list[str], skip: int) -> None:
    table = pa.table({"x": pa.array(words, pa.string())}).slice(skip)
    assert equals_text(table, "x", "long").tolist() == [w == "long" for w in words[skip:]]


@given(st.lists(st.sampled_from(["cores", "isa", "isa+cores", "", None])), st.integers(0, 5))
def test_codes_stand_for_texts(words: list[str | None], skip: int) -> None:
    table = pa.table({"x": pa.array(words, pa.string())}).slice(skip)
    texts, codes = coded_labels(table["x"])
    assert [None if code < 0 else texts[code] for code in codes.tolist()] == words[skip:]
    assert len(set(texts)) == len(texts)
