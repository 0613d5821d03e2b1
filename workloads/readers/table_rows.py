"""The wanted columns of a table, row by row: from CSV, Parquet, and frames of Python.

Arrow's times and lengths of time become `Instant` and `Span` of `workloads.readers.cell_values`, other values Python's.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from workloads.errors import InputError
from workloads.frames import arrow_table, is_of_pandas
from workloads.hints import did_you_mean
from workloads.limits import ROW_OBJECTS_BYTES
from workloads.readers.cell_values import Instant, Span
from workloads.readers.report import Progress, Report
from workloads.readers.source import lines_of, open_text

Row = tuple[int, tuple[Any, ...]]
"""The line, or the number of the row, and the values of the wanted columns, in their order."""
Used = Mapping[str, str]
"""The wanted columns, by the options that name them."""

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "pipe": "|", "space": " "}
"""Words for characters between fields."""
_TRIED = (",", ";", "\t", "|")
_OF_EXCEL = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
"""Excel writes and reads such a line before the names."""
_NOTED = (
    "tasks", "job", "estimate", "user", "constraints", "cores", "memory", "gpus", "priority", "nodes", "requested_time",
)  # fmt: skip
"""Options of which a column with the same name is reported where the option does not name it."""
_BATCH = 1 << 16
_PER_DAY_NS = 86400 * 10**9
_PER_UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def file_rows(
    path: Path, used: Used, separator: str | None, report: Report, progress: Progress | None
) -> Iterator[Row]:
    """Yield the rows of a file: Parquet by its first bytes, with the number of the row from 1; else CSV.

    Raises
    ------
    InputError
        Names the file, the line and the column that is wrong.
    """
    if path.is_dir():
        raise InputError("is a folder; a table is one file: give that", file=path)
    with open_text(path, None, progress) as stream:
        if stream.peek(4)[:4] != b"PAR1":
            yield from _csv_rows(lines_of(stream, path), path, used, separator, report)
            return
    from workloads.readers.parquet_tables import parquet_file, read_columns

    with parquet_file(path) as file:
        check_columns(file.schema_arrow.names, used, path, report)
        table = read_columns(file, [*dict.fromkeys(used.values())], path, ROW_OBJECTS_BYTES)
        yield from _arrow_rows(table, used, path, 1)


def frame_rows(frame: Any, used: Used, name: str, report: Report) -> Iterator[Row]:
    """Yield the rows of a frame, with the number of the row from 0.

    Raises
    ------
    InputError
        It is not a frame, or lacks a wanted column; errors call it `name`.
    """
    if not is_of_pandas(frame):
        table = arrow_table(frame)
        check_columns(table.column_names, used, name, report, "{}=NAME names one")
        yield from _arrow_rows(table, used, name, 0)
        return
    names, index = [*map(str, frame.columns)], [*map(str, frame.index.names)]
    if wrong := next((column for column in used.values() if column in index and column not in names), None):
        raise InputError(f"{wrong!r} is the index, not a column; reset_index() makes it one", file=name)
    check_columns(names, used, name, report, "{}=NAME names one")
    columns = {
        column: _of_series(frame.iloc[:, names.index(column)], column, name) for column in used.values()
    }
    yield from zip(count(), zip(*(columns[column] for column in used.values()), strict=True), strict=False)


def check_columns(
    names: Sequence[str],
    used: Used,
    path: object,
    report: Report,
    how: str = "--set workload_options.{}=NAME names one",
) -> None:
    """Refuse a table that lacks a wanted column, or has it twice; errors name the option and state `how` to give it.

    Report columns that have the name of one of `_NOTED`, where the option does not name a column.
    """
    for option in _NOTED:
        if option in names and option not in used and option not in used.values():
            hint = how.format(option).replace("NAME names one", f"{option} reads it")
            report.dropped(f"the column {option}: {hint}", 1)
    for option, name in used.items():
        there = names.count(name)
        if there == 0:
            raise InputError(
                f"has no column {name!r}{did_you_mean(name, names)}: {how.format(option)}",
                file=path,
                field=option,
            )
        if there > 1:
            raise InputError(f"the column {name!r} occurs {there} times", file=path, field=option)


def _csv_rows(
    numbered: Iterator[tuple[int, bytes]], path: Path, used: Used, separator: str | None, report: Report
) -> Iterator[Row]:
    """Yield the rows of CSV; bytes that are not UTF-8 become surrogates, which `Cells.text` refuses."""
    parts = (part for _, line in numbered for part in line.splitlines(keepends=True))
    lines = (part.decode("utf-8", "surrogateescape").removeprefix("\ufeff") for part in parts)
    blank = 0
    for head in lines:
        if head.strip():
            break
        blank += 1
    else:
        raise InputError("is empty; want a first line that names the columns", file=path)
    if of_excel := _OF_EXCEL.fullmatch(head.rstrip("\r\n")):
        separator, head, blank = separator or of_excel[1], next(lines, ""), blank + 1
    own = _separator(separator, head, used)
    reader = csv.reader(chain([head], lines), delimiter=own, strict=True, skipinitialspace=True)
    try:
        names = [name.strip() for name in next(reader)]
        check_columns(names, used, path, report)
        places, width = [names.index(name) for name in used.values()], len(names)
        for fields in reader:
            if len(fields) == width:
                yield reader.line_num + blank, tuple([fields[place] for place in places])
            elif any(field.strip() for field in fields):
                wrong = f"the line has {len(fields)} fields, and the first line names {width}"
                raise InputError(wrong, file=path, line=reader.line_num + blank)
    except csv.Error as error:
        raise InputError(f"is not CSV: {error}", file=path, line=reader.line_num + blank) from None


def _separator(given: str | None, head: str, used: Used) -> str:
    """Return the separator of fields: the given one, else the one with which the first line names the columns."""
    if given is not None:
        own = SEPARATORS.get(given.strip().lower(), given)
        if len(own) != 1 or own in '\r\n"':
            wrong = f"{given!r} is not one character; for a tab write tab"
            raise InputError(wrong, field="separator")
        return own
    for tried in (*_TRIED, " "):
        try:
            names = {name.strip() for name in next(csv.reader([head], delimiter=tried))}
        except csv.Error:
            continue
        if names.issuperset(used.values()):
            return tried
    return max(_TRIED, key=head.count)


def _arrow_rows(table: pa.Table, used: Used, path: object, first: int) -> Iterator[Row]:
    """Yield the rows of Arrow's columns."""
    makes = [_maker(table.schema.field(name), path) for name in used.values()]
    table = table.select([*used.values()])
    number = count(first)
    for batch in table.to_batches(max_chunksize=_BATCH):
        columns = (make(column) for make, column in zip(makes, batch.columns, strict=True))
        yield from zip(number, zip(*columns, strict=True), strict=False)


def _maker(field: pa.Field, path: object) -> Callable[[pa.Array], list[Any]]:
    """Return the function that makes Python's values of a column."""
    kind, types = field.type, pa.types
    if (
        types.is_nested(kind)
        or types.is_boolean(kind)
        or types.is_fixed_size_binary(kind)
        or isinstance(kind, pa.BaseExtensionType)
    ):
        wrong = f"has the type {kind}; want text, numbers or times, one in a row"
        raise InputError(wrong, file=path, field=field.name)
    if types.is_temporal(kind) and not types.is_interval(kind):
        per_ns = (
            _PER_DAY_NS if types.is_date32(kind) else _PER_UNIT_NS[getattr(kind, "unit", "ms")]
        )  # date64: ms
        whole = pa.int32() if kind.bit_width == 32 else pa.int64()
        made = Span if types.is_duration(kind) or types.is_time(kind) else Instant
        return lambda column: _scaled(column, whole, made, per_ns)
    if types.is_binary(kind) or types.is_large_binary(kind):  # some programs write text as bytes
        return lambda column: [
            value and value.decode("utf-8", "surrogateescape") for value in column.to_pylist()
        ]
    if types.is_interval(kind):
        return lambda column: [*map(_of_interval, column.to_pylist())]
    return lambda column: column.to_pylist()


def _of_interval(value: Any) -> Any:
    """Return an interval of SQL as a length of time; an interval with months stays as it is."""
    return value if value is None or value.months else Span(value.days * _PER_DAY_NS + value.nanoseconds)


def _scaled(column: pa.Array, whole: pa.DataType, kind: type[int], per_ns: int) -> list[Any]:
    return [None if value is None else kind(value * per_ns) for value in column.cast(whole).to_pylist()]


def _of_series(series: Any, name: str, path: object) -> list[Any]:
    """Return the values of a column of pandas; where it mixes types, values as they are and numbers as Python's."""
    try:
        column = pa.Array.from_pandas(series)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return [*map(_of_numpy, series.to_list())]
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    make = _maker(pa.field(name, column.type), path)
    return [value for chunk in chunks for value in make(chunk)]


def _of_numpy(value: Any) -> Any:
    """Return a number of NumPy as Python's, and any other value as it is."""
    is_number = isinstance(value, np.number) and not isinstance(value, np.timedelta64)
    return value.item() if is_number else value
