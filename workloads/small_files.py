"""Files that are read whole, configurations and descriptions; and what a path leads to.

A path may be anything: a device without an end, a pipe that nobody writes to, a file larger than memory, TOML nested a
million deep. All of that is an `InputError` here.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from workloads.errors import InputError
from workloads.hints import did_you_mean, names_beside

TOML_BYTES = 4 << 20
DEPTH = 100
_AT_LINE = re.compile(r"\(at line (\d+), column (\d+)\)")


def check_is_file(path: str | Path) -> int:
    """Return the size in bytes of a file; what is no file is not opened, for that could wait for ever.

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


def parse_toml(text: str, path: str | Path) -> dict[str, Any]:
    """Return the tables of a TOML text; `path` is where it is from, for errors.

    Raises
    ------
    InputError
        It is not TOML, or tables or arrays are nested more than `DEPTH` deep.
    """
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
    """Refuse what those who walk over it by recursion could not."""
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
