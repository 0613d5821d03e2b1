"""How valid files are changed, by kind of file, and the promise that Emu keeps of what comes of it.

The promise: what is changed is refused with one clear line that names the file, and its line or field; or it gives what
it gave before; never a traceback, a hang, or another result without a word. Some changes are wrong whatever the file
holds (`WRONG`): these are refused at their place. Others may by chance leave a valid file, or another one (`ANY`).
`tests/test_mutations.py` tries both on each format of `tests/valid_files.py`, and
`tests/emu/directories/directory_mutations.py` tries the others on run directories, whose results it compares.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import random
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tests.valid_files import Form

_ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e]")
"""Characters that act on a terminal."""


def broken_promise(code: int, out: str, err: str) -> str | None:
    """Return in what a command that ended breaks the promise; None if it keeps it."""
    errors = [line for line in err.splitlines() if line.startswith("emu: ") and ": note: " not in line[:11]]
    if code not in (0, 1, 2) or "Traceback" in err or "(unexpected;" in err:
        return f"ended with {code}: {err.strip()[-500:]}"
    if code and len(errors) != 1:
        return f"ended with {code} and {len(errors)} lines: {err.strip()[-500:]}"
    if _ACTS.search(out + err):
        return f"prints what acts on a terminal: {out + err!r}"
    return None


# Changes after which a file is wrong whatever it holds: text in lines of fields, packed text, JSON, tables.


class Wrong(NamedTuple):
    """A file that is wrong."""

    label: str
    data: bytes
    line: int | None = None
    """The line that an error must name."""


NOT_A_NUMBER = ("abc", "1.2.3", "--3", "1e400", "nan", "0x", "½", "1\x002", "\x1b[31m", "1e", "12s", "1_000")
"""What no format takes for a number, and what none splits into two fields."""
_FOREIGN = (b"\xff\xfe", b"PK\x03\x04", b"\x89PNG", b"PAR1", b"\x00" * 8, b"<html>", b"BZh9")
"""First bytes of what is not a text file, or not a readable one."""

Lines = list[list[str]]


def _lines(data: bytes, form: Form) -> Lines:
    return [line.split(form.separator) if line else [] for line in data.decode().splitlines()]


def _as_file(lines: Lines, form: Form) -> bytes:
    return "".join(form.separator.join(fields) + "\n" for fields in lines).encode()


def _no_number(data: bytes, form: Form, rng: random.Random) -> Wrong:
    lines = _lines(data, form)
    at = rng.choice([n for n, fields in enumerate(lines) if fields and form.numbers(n, fields)])
    column = rng.choice(form.numbers(at, lines[at]))
    lines[at][column] = rng.choice(NOT_A_NUMBER[:6] if form.slow else NOT_A_NUMBER)
    return Wrong(f"field {column + 1} is {lines[at][column]!r}", _as_file(lines, form), at + 1)


def _counted(lines: Lines, form: Form, least: int) -> list[int]:
    return [n for n, fields in enumerate(lines) if len(fields) >= least and form.counted(n, fields)]


def _field_missing(data: bytes, form: Form, rng: random.Random) -> Wrong:
    lines = _lines(data, form)
    if not (rows := _counted(lines, form, 2)):
        return _no_number(data, form, rng)
    at = rng.choice(rows)
    lines[at] = lines[at][: rng.randrange(1, len(lines[at]))]
    return Wrong(f"the line ends after {len(lines[at])} fields", _as_file(lines, form), at + 1)


def _field_more(data: bytes, form: Form, rng: random.Random) -> Wrong:
    lines = _lines(data, form)
    if not (rows := _counted(lines, form, 1)):
        return _no_number(data, form, rng)
    at = rng.choice(rows)
    lines[at] += ["1"] * form.one_more
    return Wrong("more fields than there are", _as_file(lines, form), at + 1)


def _foreign(data: bytes, form: Form, rng: random.Random) -> Wrong:
    head = rng.choice(_FOREIGN)
    return Wrong(f"begins with {head!r}", head + b"\n" + data)


def _nothing(data: bytes, form: Form, rng: random.Random) -> Wrong:
    return Wrong("nothing", rng.choice([b"", b"\n", b" \t\n\r\n", b"\n" * 50]))


def _packed_and_cut(data: bytes, form: Form, rng: random.Random) -> Wrong:
    packed = gzip.compress(data)
    keep = rng.choice([10, rng.randrange(10, len(packed)), len(packed) - 1])
    return Wrong(f"gzip of {len(packed)} bytes cut to {keep}", packed[:keep])


def _packed_wrong(data: bytes, form: Form, rng: random.Random) -> Wrong:
    packed = bytearray(gzip.compress(data))
    packed[-rng.randint(1, 8)] ^= 1 << rng.randrange(8)  # the last 8 bytes are checksum and length
    return Wrong("gzip with a wrong checksum", bytes(packed))


def _packed_and_more(data: bytes, form: Form, rng: random.Random) -> Wrong:
    return Wrong("gzip with more behind it", gzip.compress(data) + rng.choice([b"garbage", b"\x1f\x8c"]))


def _json_cut(data: bytes, form: Form, rng: random.Random) -> Wrong:
    return Wrong("JSON cut", data[: rng.randrange(1, len(data.rstrip()) - 1)])


def _json_number(data: bytes, form: Form, rng: random.Random) -> Wrong:
    found = rng.choice([*re.finditer(rb"[\[:] ?", data)]).end()
    return Wrong(
        "no value of JSON", data[:found] + rng.choice([b"NaN1", b"'", b"01", b"]", b"\xff"]) + data[found:]
    )


def _table_cut(data: bytes, form: Form, rng: random.Random) -> Wrong:
    keep = rng.choice([0, 4, 12, rng.randrange(len(data)), len(data) - 1])
    return Wrong(f"cut from {len(data)} bytes to {keep}", data[:keep])


def _table_ends_otherwise(data: bytes, form: Form, rng: random.Random) -> Wrong:
    return Wrong("another end", data[:-4] + rng.choice([b"PAR2", b"\x00" * 4, b"1RAP"]))


def _no_table(data: bytes, form: Form, rng: random.Random) -> Wrong:
    return Wrong(
        "no Parquet", rng.choice([b"a,b\n1,2\n", b"{}", b"ARROW1\x00\x00" * 10, gzip.compress(data)])
    )


def _footer(data: bytes, form: Form, rng: random.Random) -> Wrong:
    length = rng.choice([0, 1, len(data), 2**31 - 1, 2**32 - 1])
    return Wrong(f"a footer of {length} bytes", data[:-8] + length.to_bytes(4, "little") + data[-4:])


def _page(data: bytes, form: Form, rng: random.Random) -> Wrong:
    """A flipped bit in the last byte of a column: page content, which the checksum covers."""
    chunk = pq.read_metadata(io.BytesIO(data)).row_group(0).column(rng.randrange(2))
    start = chunk.data_page_offset if chunk.dictionary_page_offset is None else chunk.dictionary_page_offset
    at = start + chunk.total_compressed_size - 1
    return Wrong("a flipped bit", data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :])


def _written(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", write_page_checksum=True)
    return file.getvalue()


def _column(data: bytes, form: Form, rng: random.Random) -> Wrong:
    """The first column, by which rows are known, is not there, of a type that it cannot have, or has a null."""
    table = pq.read_table(io.BytesIO(data))
    name, cells = table.column_names[0], table.column(0).to_pylist()
    wrong = [
        pa.array([None, *cells[1:]], pa.int64()),
        pa.array([[1]] * len(cells)),
        pa.array(["x"] * len(cells)),
    ]
    if (how := rng.randrange(4)) == 3:
        return Wrong(f"no {name}", _written(table.drop_columns([name])))
    return Wrong(f"{name} is wrong ({how})", _written(table.set_column(0, name, wrong[how])))


Change = Callable[[bytes, Form, random.Random], Wrong]
_TEXT: tuple[Change, ...] = (_foreign, _nothing, _packed_and_cut, _packed_wrong, _packed_and_more)
WRONG: dict[str, tuple[Change, ...]] = {
    "text": _TEXT,
    "lines": (_no_number, _no_number, _no_number, _field_missing, _field_more, *_TEXT),
    "JSON": (_json_cut, _json_number, *_TEXT),
    "table": (_table_cut, _table_ends_otherwise, _no_table, _footer, _page, _column),
}
"""By kind of file."""


def wrong_files(file: Path, form: Form, rounds: int, seed: int = 0) -> Iterator[Wrong]:
    """Yield what is made of a file by `rounds` of each change of its kind, the same for a seed."""
    rng = random.Random(seed)
    kind = "table" if file.suffix == ".parquet" else "JSON" if file.suffix == ".json" else "text"
    data = file.read_bytes()
    for _ in range(rounds):
        for change in WRONG["lines" if form.separator else kind]:
            yield change(data, form, rng)


# Changes of any file, after which it may be valid.

_UNITS = (rb"(?s:.)", rb"[^\n]*\n?", rb"[\w.+-]+", rb"[^,\t |]+")
"""What is replaced: a byte, a line, a value."""
_VALUES = (
    b"0", b"-1", b"1.5", b"1e18", b"1e400", b"5e-324", b"nan", b"inf", b"9223372036854775808", b"9" * 5000, b"10000000",
    b"1h", b"true", b"NaT", b"9999-12-31", b"0001-01-01T00:00:00Z", b"49710-06:28:15", b"null", b"{}", b"[]", b'"',
    b",", b"\0", b"\r", b"\n" * 1000, b"\xff\xfe", b"\xed\xa0\x80", b"\x1b[31m", "\u202e".encode(), "\ufeff½".encode(),
    b"[" * 3000, b"/dev/zero", b"../..", b"x" * 100_000,
)  # fmt: skip
_CELLS: tuple[Any, ...] = (
    None, True, 0, -1, 2**31, 2**62, 2**63 - 1, -(2**63), 0.5, -0.0, 5e-324, 1e18, 1e308, float("nan"),
    float("inf"), -float("inf"), "", "\x1b[31m", "\u202e", "x" * 100_000, b"\xff", [], [1], {"a": 1},
)  # fmt: skip
_JSON_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1e308, 2**70, 10**400, "", "x", "../..", [], {}, [[]], [1], {"a": 1}, "finished", "\u001b[31m",
)  # fmt: skip


def _flip(file: Path, rng: random.Random) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(rng.choice((1, 1, 1, 8))):
        if content:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    file.write_bytes(content)


def _truncate(file: Path, rng: random.Random) -> None:
    os.truncate(file, rng.randrange(file.stat().st_size + 1))


def _remove(file: Path, rng: random.Random) -> None:
    file.unlink()


def _piece(file: Path, rng: random.Random) -> None:
    """Repeat a piece, or take it out."""
    content = file.read_bytes()
    at, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    file.write_bytes(rng.choice((content[:end] + content[at:], content[:at] + content[end:])))


def _noise(file: Path, rng: random.Random) -> None:
    """In place of the content, or behind it."""
    before = b"" if rng.random() < 0.5 else file.read_bytes()
    file.write_bytes(before + rng.randbytes(rng.randrange(1, 5000)))


def _replace(file: Path, rng: random.Random) -> None:
    """Put something else in the place of a byte, a line or a value."""
    data = file.read_bytes()
    units = [match.span() for match in re.finditer(rng.choice(_UNITS), data)] or [(0, 0)]
    (begin, end), (other, to) = rng.choice(units), rng.choice(units)
    unit = data[begin:end]
    instead = (b"", unit * 2, unit * 3000, data[other:to], rng.randbytes(rng.randrange(8)))
    file.write_bytes(data[:begin] + rng.choice((*_VALUES, *instead * 3)) + data[end:])


def _zipped(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("../\x1b[2J", data)
    return file.getvalue()


def _other_form(file: Path, rng: random.Random) -> None:
    data = file.read_bytes()
    forms: tuple[Callable[[bytes], bytes], ...] = (
        gzip.compress, _zipped, lambda d: gzip.compress(d * 3000), lambda d: d.replace(b"\n", b"\r\n"),
        lambda d: d.decode("latin-1").encode("utf-16"), lambda d: b"",
    )  # fmt: skip
    file.write_bytes(rng.choice(forms)(data))


def _swap(file: Path, rng: random.Random) -> None:
    """With another file of its folder."""
    other = rng.choice(sorted(p for p in file.parent.iterdir() if p.is_file()))
    contents = file.read_bytes(), other.read_bytes()
    other.write_bytes(contents[0])
    file.write_bytes(contents[1])


def _pipe(file: Path, rng: random.Random) -> None:
    file.unlink()
    os.mkfifo(file)


def _folder(file: Path, rng: random.Random) -> None:
    file.unlink()
    file.mkdir()
    if rng.random() < 0.5:
        (file / "x").touch()


def _link(file: Path, rng: random.Random) -> None:
    file.unlink()
    file.symlink_to(rng.choice(("/dev/zero", "/dev/null", file.name, "/no/such/file", "..", "/etc/passwd")))


def _huge(file: Path, rng: random.Random) -> None:
    os.truncate(file, 1 << rng.randrange(26, 36))  # with holes: it takes no room


def _deep(file: Path, rng: random.Random) -> None:
    """Nested deep, or a number of thousands of digits."""
    deep = rng.choice(("[", '{"a":', "a = [", "[a.")) * rng.choice((2000, 100_000))
    file.write_text(rng.choice((deep, rng.choice(("9", "a = 9", '{"a": 9')) + "9" * 5000)))


def _json_value(file: Path, rng: random.Random) -> None:
    """Put something else in the place of a value."""
    with _json_of(file, rng) as content:
        if holders := [holder for holder in _holders(content) if holder]:
            holder = rng.choice(holders)
            key = rng.choice(sorted(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
            holder[key] = rng.choice(_JSON_VALUES)


def _json_key(file: Path, rng: random.Random) -> None:
    """Take a key away, or give it another name."""
    with _json_of(file, rng) as content:
        if holders := [holder for holder in _holders(content) if isinstance(holder, dict) and holder]:
            holder = rng.choice(holders)
            value = holder.pop(rng.choice(sorted(holder)))
            if rng.random() < 0.5:
                holder["other"] = value


@contextlib.contextmanager
def _json_of(file: Path, rng: random.Random) -> Iterator[Any]:
    """Give the value of a file, or of one of its lines, to be changed in place."""
    text = file.read_text()
    lines = text.splitlines() if text.startswith("{") and text.count("\n{") else [text]
    at = rng.randrange(len(lines))
    content = json.loads(lines[at])
    yield content
    lines[at] = json.dumps(content)
    file.write_text("\n".join(lines))


def _holders(content: Any) -> Iterator[Any]:
    if isinstance(content, dict | list):
        yield content
        for inner in content.values() if isinstance(content, dict) else content:
            yield from _holders(inner)


def _cell(file: Path, rng: random.Random) -> None:
    """Change a cell or all cells of a column."""
    table = pq.read_table(file)
    at = rng.randrange(table.num_columns)
    cells, value = table.column(at).to_pylist(), rng.choice(_CELLS)
    if cells:
        cells[rng.randrange(len(cells))] = value
    try:
        made = pa.array(cells if rng.random() < 0.7 else [value] * len(cells), table.schema.field(at).type)
    except (pa.ArrowException, OverflowError, TypeError):  # not of the column's type
        made = pa.array([value] * len(cells))
    file.write_bytes(_written(table.set_column(at, table.column_names[at], made)))


def _columns(file: Path, rng: random.Random) -> None:
    """Take a column or rows away, give a column another name, or have it twice."""
    table = pq.read_table(file)
    name = rng.choice(table.column_names)
    changed = (
        table.drop_columns([name]),
        table.append_column(name, table[name]),
        table.rename_columns(["\x1b[31m" if n == name else n for n in table.column_names]),
        table.slice(rng.randrange(len(table) + 1), rng.randrange(3)),
    )
    file.write_bytes(_written(rng.choice(changed)))


_ANY = (_flip, _flip, _flip, _truncate, _truncate, _remove, _piece, _piece, _noise, _noise, _deep, _deep)
_CONTENT = (*_ANY, *(_replace,) * 10, *(_other_form,) * 2)
_PLACE = (*_ANY, _other_form, _swap, _pipe, _folder, _link, _huge)
_BY_KIND = {".json": (_json_value, _json_key), ".parquet": (_cell, _columns)}


def change_file(file: Path, rng: random.Random, *, place: bool = False) -> str:
    """Change a file in any way and return how; with `place` also what is at its place: a pipe, a folder, a link."""
    changes = (_PLACE if place else _CONTENT) + _BY_KIND.get(file.suffix, ()) * (2 if place else 6)
    change = rng.choice(changes)
    change(file, rng)
    return f"{change.__name__.strip('_')} {file.name}"


def change_folder(folder: Path, rng: random.Random, *, place: bool = False) -> str:
    """Change a file below a folder in any way and return how."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
    file = rng.choice(files)
    return f"{change_file(file, rng, place=place)} in {file.parent.relative_to(folder)}"
