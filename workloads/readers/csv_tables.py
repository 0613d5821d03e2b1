"""Tables of a trace as CSV: without a header, as most are published, or with one.

Without a header the columns are in the published order, and quotes are part of a field. With a header columns are found
by name, in any order: other columns are ignored, absent ones are null, fields may be in quotes, and whole numbers may
be written ``1.0``, as programs write a column with nulls.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.readers.samples import Sample, plain_name
from workloads.readers.source import shown

EXACT = "DECIMAL(18, 6)"
"""For numbers that must be whole: DuckDB rounds 1.5 to a BIGINT without an error, and takes nan for a DOUBLE.

The table's own column must be of it too: DuckDB reads CSV in the type that a value is inserted as.
"""
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}
_ERROR = re.compile(
    r"CSV Error on Line: (?P<line>\d+)\nOriginal Line: (?P<text>.*?)\n+(?:Error when converting column "
    r'"(?P<column>[^"]*)"|(?P<other>Expected Number of Columns|Value with unterminated quote|Invalid unicode))',
    re.DOTALL,
)
"""DuckDB's message about the first line that does not fit the columns."""
_OUT_OF_RANGE = re.compile(r"with value (-?\d+) can't be cast because the value is out of range")
"""DuckDB's message about a number that the type of a column cannot hold."""
_MOST_FIELDS = 10_000
"""The number of fields that DuckDB reports."""
_WHOLE, _WIDE = ("BIGINT", "INTEGER", "TINYINT"), "DECIMAL(38, 6)"


class Table(NamedTuple):
    """A table of a source.

    Attributes
    ----------
    columns : mapping of str to str
        Name to SQL type: for CSV without a header all columns in their order; otherwise the wanted ones, null where a
        row has none.
    insert : str
        SQL that inserts the rows of ``{scan}``.
    required : tuple of str
        Columns that a header must name.
    aliases : mapping of str to str
        Other names in headers, as `workloads.readers.samples.plain_name` writes them, and the columns they stand for.
    nested : mapping of str to str
        Columns of lists or structs, and SQL that makes one from a field of CSV, ``{text}``.
    headed : bool
        Whether CSV must have a header: the table is not published as CSV, and its columns have no order.
    """

    columns: Mapping[str, str]
    insert: str
    required: tuple[str, ...] = ()
    aliases: Mapping[str, str] = {}
    nested: Mapping[str, str] = {}
    headed: bool = False

    def column(self, name: str) -> str:
        """Return the column that a header means by a name, or ``""``."""
        plain = plain_name(name)
        meant = {plain_name(own): own for own in self.columns}.get(plain) or self.aliases.get(plain, "")
        return meant if meant in self.columns else ""


Header = tuple[str, ...]
"""The columns that a header names, ``""`` for an ignored one; empty for a file without a header."""


def header_of(table: Table, sample: Sample, place: str) -> Header:
    """Return the columns that the first row of a file names.

    Raises
    ------
    InputError
        A header names a column twice, or lacks a required one; or the file needs a header and has none.
    """
    names = sample.rows[0] if sample.rows else ()
    header = tuple(map(table.column, names))
    there = [column for column in header if column]
    if len(there) < 2:
        if table.headed and names:
            wrong = f"want a header that names {','.join(table.required)}{_separated(sample.text)}"
            raise InputError(wrong, file=place, line=1)
        return ()
    if twice := next((column for column in there if there.count(column) > 1), None):
        raise InputError("is named twice in the header", file=place, line=1, field=twice)
    if missing := [column for column in table.required if column not in there]:
        wrong = f"the header does not name it{did_you_mean(missing[0], names)}"
        raise InputError(wrong, file=place, line=1, field=missing[0])
    return header


def skip_header(stream: io.BufferedReader) -> int:
    """Read the header, and blank lines before it; return how many lines these are."""
    lines = 1
    while not stream.readline().strip():
        lines += 1
    return lines


def csv_scan(table: Table, header: Header) -> str:
    """Return SQL for the rows of the shards ``$path``, with the columns of the table."""
    if not header:
        return _read_csv(table.columns, "")
    kinds = {
        f"c{place}": _kind_as_text(table, column) if column else "VARCHAR"
        for place, column in enumerate(header)
    }
    fields = ", ".join(
        f"CAST({_value(table, column, header)} AS {kind}) AS {_quoted(column)}"
        for column, kind in table.columns.items()
    )
    return f"(SELECT {fields} FROM {_read_csv(kinds, chr(34))})"


def explain(said: str, table: Table, header: Header, place: str, stream: io.BufferedReader) -> InputError:
    """Return the error for a shard, from DuckDB's message about its first wrong line; `stream` is the whole shard.

    DuckDB could list all wrong lines, but would read to the end of a file that may not be a table, and its time for
    a line grows with the square of the number of fields.
    """
    if (report := _ERROR.search(said)) is not None:
        line = int(report["line"]) + (skip_header(stream) if header else 0)
        name, wrong = _wrong_line(report, table, header, stream)
        return InputError(wrong, file=place, line=line, field=name or None)
    out_of_range = _OUT_OF_RANGE.search(said)
    for line, fields in csv_rows(table, header, stream):
        for column, text in fields.items():
            if out_of_range and text == out_of_range[1]:
                return InputError(f"{shown(text)} is out of range", file=place, line=line, field=column)
            if header and table.columns[column] in _WHOLE and text and not _is_whole(text):
                return InputError(f"{shown(text)} is not a whole number", file=place, line=line, field=column)
    return InputError(f"cannot be read as CSV; do all lines end alike? ({shown(said)})", file=place)


def _wrong_line(
    report: re.Match[str], table: Table, header: Header, rows: io.BufferedReader
) -> tuple[str, str]:
    """Return the wrong field of a line and what is wrong with it; `rows` begin after the header.

    The message contains the line itself, which may hold any text, so its parts are checked.
    """
    names = header or tuple(table.columns)
    fields = _fields(report["text"].lstrip("\r\n"), header)
    want = ",".join(table.columns)
    if report["other"] == "Value with unterminated quote":
        return "", "a quote is not closed"
    if report["other"] == "Invalid unicode":
        raw = next(itertools.islice(rows, int(report["line"]) - 1, None), b"").split(b",")
        wrong = (at for at, field in enumerate(raw[: len(names)]) if not _is_utf8(field))
        return names[next(wrong, 0)], "cannot be read (invalid encoding)"
    if len(fields) < len(names):
        name = names[len(fields)] or str(len(fields) + 1)
        commas = _separated(report["text"]) if len(fields) == 1 else ""
        return name, f"the line ends after {len(fields)} of {len(names)} fields; want {want}{commas}"
    if len(fields) > len(names):
        count = f"over {_MOST_FIELDS}" if len(fields) > _MOST_FIELDS else str(len(fields))
        return str(len(names) + 1), f"the line has {count} fields; want the {len(names)} of {want}"
    read = tuple(f"c{place}" for place in range(len(header))) or names
    for name, column, field in zip(names, read, fields, strict=True):
        if name and column == report["column"]:
            kind = _kind_as_text(table, name) if header else table.columns[name]
            return name, f"{shown(field)} is not a number{' below 1e12' if kind == EXACT else ''}"
    return "", "cannot be read"


def csv_rows(table: Table, header: Header, stream: io.BufferedReader) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line and fields by column of a file; a row with too few fields gives those that it has."""
    names = header or tuple(table.columns)
    first = skip_header(stream) if header else 0
    for number, line in enumerate(stream, start=first + 1):
        if text := line.decode("utf-8", "replace").rstrip("\r\n"):
            fields = zip(names, _fields(text, header), strict=False)
            yield number, {name: field for name, field in fields if name}


def _separated(line: str) -> str:
    """Return the hint about a line whose fields have another sign than commas between them, or ``""``."""
    line = line.lstrip().partition("\n")[0]
    most = max(_SEPARATORS, key=line.count)
    other = "," not in line and line.count(most) > 1
    return f", with commas between them, not {_SEPARATORS[most]}" if other else ""


def _fields(line: str, header: Header) -> list[str]:
    if not header:
        return line.split(",")
    try:
        return next(csv.reader([line.strip("\r\n")]), [])
    except csv.Error:  # a field of more than 128 KiB, or a carriage return in the middle
        return line.split(",")


def _value(table: Table, column: str, header: Header) -> str:
    """Return SQL for a column of the table, from the columns ``c0``, ``c1``, ... of a file with a header."""
    if column not in header:
        return "NULL"
    text = f"c{header.index(column)}"
    if column in table.nested:
        return table.nested[column].replace("{text}", text)
    if table.columns[column] in _WHOLE:
        return f"CASE WHEN {text} <> floor({text}) THEN error('no whole number') ELSE {text} END"
    return text


def _kind_as_text(table: Table, column: str) -> str:
    """Return the type that a column has in a CSV file with a header."""
    kind = table.columns[column]
    return "VARCHAR" if column in table.nested else _WIDE if kind in _WHOLE else kind


def _read_csv(kinds: Mapping[str, str], quote: str) -> str:
    types = ", ".join(f"'{name}': '{kind}'" for name, kind in kinds.items())
    return (
        f"read_csv($path, columns = {{{types}}}, auto_detect = false, header = false, delim = ',', "
        f"quote = '{quote}', escape = '{quote}', compression = 'none')"
    )


def _quoted(name: str) -> str:
    return f'"{name}"'


def _is_utf8(field: bytes) -> bool:
    try:
        field.decode()
        return True
    except UnicodeDecodeError:
        return False


def _is_whole(text: str) -> bool:
    try:
        number = Decimal(text)
        return number == int(number) and -(2**63) <= number < 2**63
    except (InvalidOperation, ValueError, OverflowError):
        return False
