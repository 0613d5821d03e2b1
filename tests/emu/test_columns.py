"""Declared columns, and Arrow arrays from and to NumPy, as pyarrow itself has them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.columns import Column, columns_of, equals_text, make_table, null_unless
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


def test_columns_are_declared_a_line_each() -> None:
    columns = columns_of("""
        id      int    -   Its id, from 0.
        sent_s  float? s   When it was sent; null if
          it was not.
        speed   float  B/s Of its port.
    """)
    assert columns == (
        Column("id", pa.int64(), "", "Its id, from 0."),
        Column("sent_s", pa.float64(), "s", "When it was sent; null if it was not.", True),
        Column("speed", pa.float64(), "B/s", "Of its port."),
    )
    with pytest.raises(KeyError, match="integer"):
        columns_of("id integer - Its id.")


def test_a_table_has_the_further_columns_that_there_are() -> None:
    own, more = columns_of("id int - Its id."), columns_of("a int - A.\nb int - B.")
    table = make_table(own, {"id": np.arange(2), "b": np.ones(2, np.int64)}, more)
    assert table.column_names == ["id", "b"]
    assert table.schema.field("b").metadata[b"description"] == b"B."
