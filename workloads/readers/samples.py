"""The beginning of a file of unknown content: its form, the names of its columns, its first rows.

A name often does not tell the content of a file: traces are passed on as ``part-00000-of-00001.csv.gz`` or under
another name. `workloads.readers.known_tables` determines from a sample which table of which trace a file holds.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from pathlib import Path
from typing import NamedTuple

from workloads.errors import InputError
from workloads.readers.source import open_members, open_text

ROWS = 20
_BYTES = 1 << 16
_JSON = re.compile(r'\s*(?:\{|\[\s*(?:[\[{"\]\d-]|true|false|null|$))')


class Sample(NamedTuple):
    """The beginning of a file.

    Attributes
    ----------
    form : str
        ``csv`` (commas between fields), ``words`` (blanks between them), ``json`` (an object a line), ``parquet``,
        ``bytes`` (another form, not text) or ``empty``.
    names : tuple of str
        The names of the columns, as `plain_name` writes them: of CSV and words the first row, which may be data; of
        JSON the keys of all rows.
    rows : tuple of tuple of str
        Of CSV and words the first whole rows, at most `ROWS`.
    text : str
        The beginning of the file, some kB; of ``bytes`` why it cannot be read, or empty.
    """

    form: str
    names: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    text: str = ""


def plain_name(name: str) -> str:
    """Return a column's name in lower case, with ``_`` for other signs than letters, digits and dots."""
    return re.sub(r"[^a-z0-9.]+", "_", name.strip("\ufeff \t\"'").lower()).strip("_")


def take_sample(stream: io.BufferedReader) -> Sample:
    """Return a sample of a stream, whose position stays as it is.

    Raises
    ------
    InputError
        The stream cannot be read.
    """
    data = stream.peek(_BYTES)[:_BYTES]
    if data.startswith(b"PAR1"):
        return Sample("parquet")
    whole, newline, _ = data.rpartition(b"\n")
    try:
        text = (whole if newline else data).decode("utf-8-sig")
    except UnicodeDecodeError:
        return Sample("bytes")
    if "\0" in text:
        return Sample("bytes")
    lines = [line for line in text.splitlines() if line.strip()][:ROWS]
    if not lines:
        return Sample("empty")
    text = data.decode("utf-8-sig", "replace")
    if _JSON.match(text):
        return _json(lines, text)
    if "," in lines[0]:
        rows = tuple(tuple(row) for row in csv.reader(lines))
        return Sample("csv", tuple(map(plain_name, rows[0])), rows, text)
    rows = tuple(tuple(line.split()) for line in lines)
    return Sample("words", tuple(map(plain_name, rows[0])), rows, text)


def first_lines(path: Path) -> list[str]:
    """Return the lines of a file's first 64 KiB, the last of which may be cut; [] for a folder, or an archive."""
    try:
        with open_text(path) as stream:
            return stream.peek(_BYTES)[:_BYTES].decode("utf-8-sig", "replace").splitlines()
    except InputError:
        return []


def sample_of(path: Path) -> Sample:
    """Return a sample of a file, or of the first file in an archive; ``bytes`` and the reason if it cannot be read."""
    try:
        if os.path.isdir(path):
            return Sample("empty")
        for _, stream in open_members(path):
            found = take_sample(stream)
            return _parquet(path) if found.form == "parquet" else found
    except InputError as error:
        return Sample("bytes", text=error.message)
    return Sample("bytes")


def _json(lines: list[str], text: str) -> Sample:
    names: dict[str, None] = {}
    for line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            break
        if not isinstance(row, dict):
            break
        names |= dict.fromkeys(map(plain_name, row))
    return Sample("json", tuple(names), (), text)


def _parquet(path: Path) -> Sample:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open(path, "rb") as file:
            names = pq.read_schema(file).names
    except (OSError, ValueError, OverflowError, MemoryError, pa.ArrowException):
        names = []
    return Sample("parquet", tuple(map(plain_name, names)))
