"""Arrow columns from and to NumPy arrays without a copy, and without importing pandas.

`pyarrow.array` and `Array.to_numpy` import pandas when it is installed, to recognise its types: 0.2 s of a
run that takes a second. Buffers do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_DTYPES: dict[pa.DataType, Any] = {pa.int64(): np.int64, pa.float64(): np.float64, pa.int32(): np.int32}
_TYPES = {np.dtype(dtype): kind for kind, dtype in _DTYPES.items()}


def from_numpy(values: npt.NDArray[Any]) -> pa.Array:
    """Return an int64, int32 or float64 array as an Arrow array on the same memory; leave that unchanged."""
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(_TYPES[values.dtype], len(values), [None, pa.py_buffer(values)])


def from_strings(values: Sequence[str]) -> pa.Array:
    """Return strings as an Arrow array."""
    encoded = [v.encode() for v in values]
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(e) for e in encoded], out=offsets[1:])
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


def to_numpy(array: pa.Array) -> npt.NDArray[Any]:
    """Return a numeric Arrow array without nulls as a read-only NumPy array on the same memory."""
    if array.null_count:
        raise ValueError("an array with nulls has no NumPy form")
    dtype = np.dtype(_DTYPES[array.type])
    buffer = array.buffers()[1]
    if len(array) == 0 or buffer is None:
        return np.empty(0, dtype)
    values = np.frombuffer(buffer, dtype, len(array), array.offset * dtype.itemsize)
    values.flags.writeable = False
    return values


def column(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """Return a numeric column without nulls as one read-only array, copied only if in several chunks."""
    chunks = table[name]
    if chunks.num_chunks == 1:
        return to_numpy(chunks.chunk(0))
    return to_numpy(chunks.combine_chunks() if chunks.num_chunks else pa.nulls(0, chunks.type))
