"""Arrays of records: their fields are the same memory, and nothing of it outlives them."""

from __future__ import annotations

import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from actors.kernel.records import CACHE_LINE, Records, as_records, first, frozen, records

ROW = np.dtype([("at", np.int64), ("share", np.float64), ("size_mb", np.int8)])


def _numbered(count: int) -> Records:
    rows = records(ROW, count)
    rows.at[:], rows.share[:] = np.arange(count), np.arange(count) / 4
    return rows


WAYS: dict[str, Callable[[Records], Any]] = {
    "whole": lambda rows: rows,
    "slice": lambda rows: rows[1:4],
    "slice of a slice": lambda rows: rows[1:][::2],
    "chosen": lambda rows: rows[[3, 0]],
    "copy": lambda rows: rows.copy(),
    "first": lambda rows: first(rows, 3),
    "frozen": frozen,
    "of an array": lambda rows: as_records(np.array([(1, 2.5, 3)], ROW)),
    "pickled": lambda rows: pickle.loads(pickle.dumps(rows)),
}


@pytest.mark.parametrize("way", WAYS)
def test_fields_are_those_of_the_array(way: str) -> None:
    rows = WAYS[way](_numbered(5))
    assert type(rows) is Records
    plain = np.asarray(rows)
    for _ in range(2):  # the second time those that rows have kept
        for name in ("at", "share", "size_mb"):
            field = getattr(rows, name)
            assert type(field) is np.ndarray
            assert field.ctypes.data == plain[name].ctypes.data
            np.testing.assert_array_equal(field, plain[name])
    assert rows[0].at == plain["at"][0]
    if way != "frozen":
        rows.at[0], rows[0].share = 99, 0.5
        assert plain[0].tolist()[:2] == (99, 0.5)


def test_what_is_written_in_a_part_is_written_in_the_whole() -> None:
    rows = _numbered(4)
    first(rows, 2).at[:] = 7
    rows[2:].at[:] = 8
    assert rows.at.tolist() == [7, 7, 8, 8]


@pytest.mark.parametrize("way", WAYS)
def test_memory_is_freed_without_a_search(way: str) -> None:
    """A field that rows keep must not keep the rows: of arrays Python's collector knows nothing."""
    gc.disable()
    try:
        rows = WAYS[way](_numbered(5))
        assert rows.at.size
        gone = weakref.ref(rows)
        del rows
        assert gone() is None
    finally:
        gc.enable()


def test_rows_are_aligned_and_zero() -> None:
    for size in (0, 1, 5, 1000):
        rows = records(ROW, size)
        assert rows.size == size
        assert size == 0 or rows.ctypes.data % CACHE_LINE == 0
        assert not np.asarray(rows).view(np.uint8).any()


def test_fields_are_not_replaced_and_those_that_are_not_there_are_named() -> None:
    rows = _numbered(2)
    with pytest.raises(AttributeError, match=r"rows\.at\[:\] = "):
        rows.at = np.zeros(2)
    with pytest.raises(AttributeError, match=r"no field 'end' in .*'at'"):
        _ = rows.end
    with pytest.raises(AttributeError, match="no field 'at' in bool"):
        _ = (rows == rows).at


def test_what_is_frozen_cannot_be_written() -> None:
    rows = _numbered(2)
    assert rows.at[1] == 1
    with pytest.raises(ValueError, match="read-only"):
        frozen(rows).at[1] = 2
    with pytest.raises(ValueError, match="read-only"):
        frozen(_numbered(2))[1].at = 2
