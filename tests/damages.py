"""Strategies of hypothesis that damage valid files: bytes, lines and values of text, cells and columns of Parquet."""

from __future__ import annotations

import gzip
import io
import re
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

UNITS = (rb"(?s:.)", rb"[^\n]*\n?", rb"[\w.+-]+", rb"[^,\t |]+")
"""What is replaced: a byte, a line, a value."""
VALUES = (
    b"0", b"-1", b"1.5", b"1e18", b"1e400", b"5e-324", b"nan", b"inf", b"9223372036854775808", b"9" * 5000, b"10000000",
    b"1h", b"true", b"NaT", b"9999-12-31", b"0001-01-01T00:00:00Z", b"49710-06:28:15", b"null", b"{}", b"[]", b'"',
    b",", b"\0", b"\r", b"\n" * 1000, b"\xff\xfe", b"\xed\xa0\x80", b"\x1b[31m", "\u202e".encode(), "\ufeff½".encode(),
    b"[" * 3000, b"/dev/zero", b"../..", b"x" * 100_000,
)  # fmt: skip
CELLS: tuple[Any, ...] = (
    None, True, 0, -1, 2**31, 2**62, 2**63 - 1, -(2**63), 0.5, -0.0, 5e-324, 1e18, 1e308, float("nan"),
    float("inf"), -float("inf"), "", "\x1b[31m", "\u202e", "x" * 100_000, b"\xff", [], [1], {"a": 1},
)  # fmt: skip


def _zipped(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("../\x1b[2J", data)
    return file.getvalue()


FORMS = (
    gzip.compress,
    _zipped,
    lambda data: gzip.compress(data)[:-9],
    lambda data: gzip.compress(data * 3000),
    lambda data: data.replace(b"\n", b"\r\n"),
    lambda data: data.decode("latin-1").encode("utf-16"),
    lambda data: b"",
)
"""Other forms of a whole file."""


@st.composite
def damaged_bytes(draw: st.DrawFn, data: bytes) -> bytes:
    """Put something else in place of a unit, or the file in another form."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(FORMS))(data)
    units = [match.span() for match in re.finditer(draw(st.sampled_from(UNITS)), data)] or [(0, 0)]
    (begin, end), (other, to) = draw(st.sampled_from(units)), draw(st.sampled_from(units))
    unit = data[begin:end]
    instead = (b"", unit * 2, unit * 3000, data[other:to])
    new = draw(st.sampled_from(VALUES) | st.sampled_from(instead) | st.binary(max_size=8))
    rest = b"" if draw(st.integers(0, 9)) == 0 else data[end:]
    return data[:begin] + new + rest


@st.composite
def damaged_table(draw: st.DrawFn, data: bytes) -> bytes:
    """Change a cell or a column of a Parquet file, or its rows."""
    table = pq.read_table(io.BytesIO(data))
    at = draw(st.integers(0, table.num_columns - 1))
    name, cells, value = table.column_names[at], table.column(at).to_pylist(), draw(st.sampled_from(CELLS))
    how = draw(st.sampled_from(("cell", "cell", "cell", "column", "drop", "twice", "rename", "rows")))
    if how in ("cell", "column") and cells:
        cells[draw(st.integers(0, len(cells) - 1))] = value
        try:
            made = pa.array([value] * len(cells) if how == "column" else cells, table.schema.field(at).type)
        except (pa.ArrowException, OverflowError, TypeError):  # not of the column's type
            made = pa.array([value] * len(cells))
        table = table.set_column(at, name, made)
    elif how == "drop":
        table = table.drop_columns([name])
    elif how == "twice":
        table = table.append_column(name, table[name])
    elif how == "rename":
        table = table.rename_columns(["\x1b[31m" if n == name else n for n in table.column_names])
    elif how == "rows":
        table = table.slice(draw(st.integers(0, len(table))), draw(st.integers(0, 2)))
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def damage(draw: st.DrawFn, file: Path) -> None:
    """Damage a file."""
    data = file.read_bytes()
    strategies = [damaged_bytes(data)]
    if file.suffix == ".parquet":
        strategies.append(damaged_table(data))
    file.write_bytes(draw(st.one_of(strategies)))
