"""The columns of result files: type, unit, meaning, formula; the source of schemas and reference page."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu.directories.names import SCHEMA_VERSION
from workloads.arrow import coded_labels, from_numpy, is_known, to_numpy


class Column(NamedTuple):
    """One column of a result file."""

    name: str
    type: pa.DataType
    unit: str
    meaning: str
    nullable: bool = False


TYPES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "flag": pa.bool_(),
    "word": pa.dictionary(pa.int32(), pa.string()),
}


def columns_of(text: str) -> tuple[Column, ...]:
    """Return the columns that a text declares, a line each: name, one of `TYPES`, unit, or ``-`` for none, and meaning.

    A ``?`` behind a type is for a column that may be null; a meaning goes on in lines that are indented more.
    """
    lines: list[str] = []
    for line in dedent(text).strip().splitlines():
        if line.startswith(" "):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    found = []
    for line in lines:
        name, kind, unit, meaning = line.split(maxsplit=3)
        found.append(Column(name, TYPES[kind.rstrip("?")], unit.strip("-"), meaning, kind.endswith("?")))
    return tuple(found)


class ResultTable(NamedTuple):
    """One result file."""

    columns: tuple[Column, ...]
    about: str = ""  # the meaning of a row; empty where it is that of the first family
    further: tuple[Column, ...] = ()  # that only some runs have: a timeline with failures, tasks with events
    is_optional: bool = False  # whether it may be removed from a run directory


COSTS = columns_of("""
    scheduler int  -  The scheduler: probe schedulers from 0, then the central one, then the listener.
    cost_ns   int  ns CPU time of its handler for one message.
    message   text -  The kind of the message, such as `REGISTER` or `DECIDE`.
    decides   flag -  Whether a coordinator of coflows made a decision when it handled the message.
""")
"""``costs.parquet``, of runs with measured costs: one row per message, by scheduler in the order of handling."""


def schema_of(columns: tuple[Column, ...]) -> pa.Schema:
    """Return the Arrow schema of columns, with units and meanings in the fields' metadata."""
    return pa.schema(
        [
            pa.field(c.name, c.type, nullable=c.nullable, metadata={"unit": c.unit, "description": c.meaning})
            for c in columns
        ],
        metadata={"schema_version": str(SCHEMA_VERSION)},
    )


def make_table(
    columns: tuple[Column, ...], data: Mapping[str, Any], further: tuple[Column, ...] = ()
) -> pa.Table:
    """Return a table of these columns, and of the further ones that there are, from Arrow or NumPy arrays by name."""
    columns += tuple(column for column in further if column.name in data)
    arrays = [a if isinstance(a := data[c.name], pa.Array) else from_numpy(a) for c in columns]
    return pa.Table.from_arrays(arrays, schema=schema_of(columns))


# pyarrow's own ways from and to NumPy import pandas: half a second of a run that takes two.


def null_unless(valid: npt.NDArray[np.bool_], values: npt.NDArray[Any]) -> pa.Array:
    """Return an array that is null where `valid` is false."""
    if valid.all():
        return from_numpy(values)
    plain = from_numpy(np.where(valid, values, 0).astype(values.dtype))
    bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(plain.type, len(values), [bits, plain.buffers()[1]])


def seconds(time_ns: npt.NDArray[np.int64], since_ns: npt.NDArray[np.int64] | int = 0) -> pa.Array:
    """Return times, from others on, in seconds; null where they are negative, which is never."""
    return null_unless(time_ns >= 0, (time_ns - since_ns) / 1e9)


def from_flags(values: npt.NDArray[np.bool_], valid: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return booleans as an Arrow array, null where `valid` is false."""
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    known = None if valid is None or valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [known, bits])


def flags(table: pa.Table, name: str) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return a column of booleans, false for null, and which rows are not null."""
    array = table[name].combine_chunks()
    known = is_known(array)
    values = np.zeros(len(array), np.bool_)
    values[known] = to_numpy(array.drop_null().cast(pa.int32())) == 1
    return values, known


def equals_text(table: pa.Table, name: str, text: str) -> npt.NDArray[np.bool_]:
    """Return which rows of a text column without nulls hold `text`."""
    # Not by pyarrow.compute: to make an Arrow value of `text` imports pandas, which takes as long as a small run.
    texts, codes = coded_labels(table[name])
    return codes == (texts.index(text) if text in texts else len(texts))
