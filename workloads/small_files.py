"""Files that are read whole, configurations and descriptions; and what a path leads to.

A path may be anything: a device without an end, a pipe without a writer, a file larger than memory, TOML nested a
million deep. All of that is an `InputError` here.
"""

from __future__ import annotations

import csv
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from workloads.errors import InputError
from workloads.hints import did_you_mean, names_beside

TOML_BYTES = 4 << 20
CSV_LINE = 1 << 17
"""Characters of a line, at most: as long as a field may be."""
DEPTH = 100
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_DOTTED = re.compile(rf"(?<![\w-])(?:{_PART}){{5,}}+")
_TOO_DOTTED = re.compile(rf"(?:{_PART}){{{DEPTH}}}")
"""Keys with dots; tomllib takes the square of the number of their parts. More of them nest tables too deep anyway."""
_AT_LINE = re.compile(r"\(at line (\d+), column (\d+)\)")


def check_is_file(path: str | Path) -> int:
    """Return the size of a file in bytes. Devices and pipes are not opened: reading them may never end.

    Raises
    ------
    InputError
        It is not there, cannot be reached, or is a folder, a device or a pipe.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        hint = did_you_mean(Path(path).name, names_beside(Path(path)))
        raise InputError(f"no such file{hint}", file=path) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=path) from None
    if not stat.S_ISREG(found.st_mode):
        what = "is a folder" if stat.S_ISDIR(found.st_mode) else "is a device or a pipe"
        raise InputError(f"cannot be read: {what}, not a file", file=path)
    return found.st_size


def read_small_text(path: str | Path, most_bytes: int = TOML_BYTES) -> str:
    """Return the text of a file, without a byte order mark.

    Raises
    ------
    InputError
        As `check_is_file`; or it is larger than that, or not UTF-8.
    """
    check_is_file(path)
    try:
        with open(path, "rb") as file:
            data = file.read(most_bytes + 1)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from None
    if len(data) > most_bytes:
        raise InputError(f"is larger than {most_bytes >> 20} MiB; is it the right file?", file=path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text (byte {error.start})", file=path) from None


def check_header(names: list[str], columns: Sequence[str], path: str | Path, line: int | None = None) -> None:
    """Refuse a header, in a line of the file if it has lines, that does not name each of the columns once."""
    for name in names:
        if name not in columns:
            wrong = f"no such column{did_you_mean(name, columns)}"
            raise InputError(wrong, file=path, line=line, field=name or "header")
    for name in columns:
        if names.count(name) != 1:
            wrong = f"want one such column; the header is {','.join(columns)}"
            raise InputError(wrong, file=path, line=line, field=name)


def read_csv(path: str | Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line and values by column of a CSV file with a header of these columns; blank lines are left out.

    Raises
    ------
    InputError
        As `check_is_file` and `check_header`; or a line is not CSV, too long, or has another number of values.
    """
    check_is_file(path)
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(_short_lines(file, path), strict=True)
            header = [name.strip() for name in next(reader, [])]
            check_header(header, columns, path, line=1)
            for values in reader:
                if not any(value.strip() for value in values):
                    continue
                if len(values) != len(header):
                    wrong = f"has {len(values)} values, want {len(header)}"
                    raise InputError(wrong, file=path, line=reader.line_num)
                yield reader.line_num, dict(zip(header, (value.strip() for value in values), strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot be read: {error}", file=path) from None


def _short_lines(file: TextIO, path: str | Path) -> Iterator[str]:
    number = 0
    while line := file.readline(CSV_LINE):
        number += 1
        if len(line) == CSV_LINE:
            raise InputError(
                f"has {CSV_LINE:,} characters or more; is it a CSV file?", file=path, line=number
            )
        yield line


def parse_toml(text: str, path: str | Path) -> dict[str, Any]:
    """Return the tables of a TOML text; `path` is where it is from, for errors.

    Raises
    ------
    InputError
        It is not TOML, or tables or arrays are nested more than `DEPTH` deep.
    """
    for found in _DOTTED.finditer(text):
        if _TOO_DOTTED.match(found[0]):
            raise InputError(_TOO_DEEP, file=path, line=text.count("\n", 0, found.start()) + 1)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _AT_LINE.search(str(error))
        line = int(match[1]) if match else (len(text.splitlines()) or 1)
        raise InputError(
            f"is not TOML: {_AT_LINE.sub('', str(error)).strip()}", file=path, line=line
        ) from None
    except ValueError as error:  # a number of thousands of digits
        raise InputError(f"is not TOML that can be read: {error}", file=path) from None
    except RecursionError:
        raise InputError(_TOO_DEEP, file=path) from None
    _check_depth(table, path)
    return table


_TOO_DEEP = f"tables or arrays are nested too deep; want {DEPTH} levels at most"


def _check_depth(table: dict[str, Any], path: str | Path) -> None:
    """Refuse tables too deep for recursion."""
    level: list[Any] = [table]
    for _ in range(DEPTH):
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise InputError(_TOO_DEEP, file=path)
