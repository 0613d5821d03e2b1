"""Arrays of records, the state of all actors: `rows.field[i]` in compiled code and in plain Python."""

from functools import cache
from typing import Any

import numpy as np

CACHE_LINE = 64  # bytes


class Records(np.ndarray):
    """Records with fields as attributes, which are the same array each time.

    `np.recarray` has such attributes too. It takes 3 µs to find one and 6 to be sliced, which was a fifth of the time
    of a small emulation, and nine tenths of that of a run in plain Python.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # numba and NumPy ask for some that are not there, at every call
            raise AttributeError(name)
        plain = self.view(np.ndarray)
        try:
            field = plain[name]
        except (ValueError, IndexError):  # not of these records; no records
            raise AttributeError(f"no field {name!r} in {self.dtype}") from None
        # Kept unless it keeps these records: Python's collector does not look into arrays, and would free neither.
        if plain.base is not self:
            vars(self)[name] = field
        return field

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"set the elements of {name!r}: rows.{name}[:] = …")


def records(dtype: np.dtype, size: int) -> Records:
    """Return a zeroed array of records.

    It begins at a cache line: a record of 64 bytes, as most are here, is in one line and not in two.
    """
    num_bytes = size * dtype.itemsize
    whole = np.zeros(num_bytes + CACHE_LINE, np.uint8)
    begin = -whole.ctypes.data % CACHE_LINE
    return as_records(whole[begin : begin + num_bytes].view(dtype))


def as_records(array: np.ndarray) -> Records:
    """Return the same memory as records."""
    return np.asarray(array).view(_with_attributes(array.dtype)).view(Records)


def first(rows: Records, count: int) -> Records:
    """Return the first records: the same memory."""
    return as_records(np.asarray(rows)[:count])


def doubled(rows: Records) -> Records:
    """Return twice as many records, of which the first are a copy of these and the others zero."""
    wider = records(rows.dtype, 2 * rows.size)
    wider[: rows.size] = rows
    return wider


def frozen(rows: Records) -> Records:
    """Return the same memory for reading only; of `rows` the fields that were used could still be written."""
    rows.flags.writeable = False
    return as_records(rows)


@cache
def _with_attributes(dtype: np.dtype) -> np.dtype:
    """Return a type whose single records have their fields as attributes."""
    return np.dtype((np.record, dtype))
