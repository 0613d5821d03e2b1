"""Arrow columns from and to NumPy arrays without a copy, and without importing pandas.

`pyarrow.array` and `Array.to_numpy` import pandas when it is installed, to recognise its types: 0.2 s of a
run that takes a second. Buffers do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workloads.errors import InputError

_DTYPES: dict[pa.DataType, Any] = {pa.int64(): np.int64, pa.float64(): np.float64, pa.int32(): np.int32}
_TYPES = {np.dtype(dtype): kind for kind, dtype in _DTYPES.items()}


def from_numpy(values: npt.NDArray[Any]) -> pa.Array:
    """Return an int64, int32 or float64 array as an Arrow array on the same memory; leave that unchanged."""
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(_TYPES[values.dtype], len(values), [None, pa.py_buffer(values)])


def described_field(name: str, kind: pa.DataType, unit: str, about: str, nullable: bool = False) -> pa.Field:
    """Return a field of a schema whose metadata say its unit ("1" for numbers, "" for text) and meaning."""
    return pa.field(name, kind, nullable=nullable, metadata={"unit": unit, "description": about})


def from_optional(values: npt.NDArray[np.float64]) -> pa.Array:
    """Return a float64 array as an Arrow array in which NaN is null."""
    values = np.ascontiguousarray(values, np.float64)
    known = ~np.isnan(values)
    if known.all():
        return from_numpy(values)
    valid = pa.py_buffer(np.packbits(known, bitorder="little"))
    data = pa.py_buffer(np.where(known, values, 0.0))
    return pa.Array.from_buffers(pa.float64(), len(values), [valid, data])


def from_strings(values: Sequence[str | None], name: str = "", file: object = None) -> pa.Array:
    """Return strings as an Arrow array; None is null.

    Raises
    ------
    InputError
        A string is not valid Unicode: half of a pair of surrogates, as JSON may state, or not UTF-8.
    """
    try:
        encoded = [b"" if v is None else v.encode() for v in values]
    except UnicodeEncodeError as error:
        wrong = f"{ascii(error.object)[:40]} is not text: it holds half a character, or what is not UTF-8"
        raise InputError(wrong, file=file, field=name or None) from None
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(e) for e in encoded], out=offsets[1:])
    known = np.array([v is not None for v in values], bool)
    valid = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.StringArray.from_buffers(
        len(encoded), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)), valid
    )


def text_column(
    values: pa.Array | Sequence[str | None] | None, count: int, name: str, of: str, file: object = None
) -> pa.Array:
    """Return a string column of `count` rows; all null where no values are given.

    Raises
    ------
    InputError
        There is not one value for each row, or one is not text.
    """
    if values is None:
        return pa.nulls(count, pa.string())
    if len(values) != count:
        raise InputError(f"{len(values)} values for {count} {of}", file=file, field=name)
    return values if isinstance(values, pa.Array) else from_strings(values, name, file)


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


def optional_column(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """Return a numeric column as one read-only array; as float64 with NaN for null, where there are nulls."""
    chunks = table[name]
    if not chunks.null_count:
        return column(table, name)
    values = chunks.combine_chunks()
    found = np.full(len(values), np.nan)
    found[is_known(values)] = to_numpy(values.drop_null())
    found.flags.writeable = False
    return found


def is_known(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which values of an array are not null."""
    return to_numpy(array.is_valid().cast(pa.int32())) == 1


def coded_labels(labels: pa.Array | pa.ChunkedArray) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Return the distinct strings of a column in the order of their first rows, and which of them each row has.

    A null has the code -1. (`fill_null` would import pandas.)
    """
    coded = (labels.combine_chunks() if isinstance(labels, pa.ChunkedArray) else labels).dictionary_encode()
    codes = np.full(len(coded), -1, np.int32)
    codes[is_known(coded.indices)] = to_numpy(coded.indices.drop_null())
    return coded.dictionary.to_pylist(), codes


class WithTables:
    """An object that is pickled with the rows of its Arrow tables: a column of numbers as an array, others as a stream.

    Arrow itself pickles the whole buffers of a sliced table, and Ray imports pandas to cut those of strings.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {name: _rows_of(v) if isinstance(v, pa.Table) else v for name, v in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(
            {name: v.table() if isinstance(v, _Numbers | _Stream) else v for name, v in state.items()}
        )


class _Numbers(NamedTuple):
    schema: pa.Schema
    columns: list[npt.NDArray[Any]]  # which pickle need not copy

    def table(self) -> pa.Table:
        return pa.Table.from_arrays([from_numpy(values) for values in self.columns], schema=self.schema)


class _Stream(NamedTuple):
    buffer: pa.Buffer

    def table(self) -> pa.Table:
        return pa.ipc.open_stream(self.buffer).read_all()


def _rows_of(table: pa.Table) -> _Numbers | _Stream:
    if all(values.type in _DTYPES and not values.null_count for values in table.columns):
        return _Numbers(table.schema, [column(table, name) for name in table.column_names])
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return _Stream(out.getvalue())
