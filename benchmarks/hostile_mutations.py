"""What is done to valid files to make hostile ones; the same for the same random numbers. See `benchmarks.hostile`."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import random
import re
import shutil
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w

NUMBERS = (
    "0", "-1", "-0", "1", "2", "1e9", "1e18", "1e19", "1e308", "1e400", "-1e400", "1e-400", "nan", "inf", "-inf", "NaN",
    "2147483647", "2147483648", "-2147483649", "4294967296", "9223372036854775807", "9223372036854775808",
    "-9223372036854775809", "18446744073709551616", "9" * 30, "9" * 400, "9" * 5000, "0x10", "1_000", "1,000", "1.5",
    "0.1", "١٢", "½", "+1", "1e", "--1", " 1", "10000000", "1000000000", "1000000000000", "4e9", "1e-9", "true",
)  # fmt: skip
TEXTS = (
    "", " ", "\0", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b2J", "\u202e", "\ufeff", "\ud7ff", "é", "a\rb",
    "a\nb",
    "'", '"', "\\", "$(id)", "$\\frac{", "%s%n", "../../../etc/passwd", "/dev/zero", "/dev/stdin", "x" * 300,
    "x" * 100_000, "<script>alert(1)</script>", "{", "[", "NULL", "null", "None", "-", ",", "a,b", "a=b", "@", "a@b=c",
    "nodes", "eagle", "yahoo", "1 s", "1e400 s", "-1 s", "1000000 d", "99999999999 Gbps", "101%", "-5%", "1e400%",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 10**4000, 0.5, -0.5, 1e18,
    1e308, float("nan"), float("inf"), -float("inf"), 5e-324, [], {}, [[]], [1, "a", None], {"a": {"b": 1}},
    "DEEP", "WIDE", *TEXTS,
)  # fmt: skip
"""What takes the place of a value in JSON and TOML; DEEP and WIDE are made when they are wanted."""

_CONTENTS = (
    b"", b"\0", b"\n", b" ", b"PAR1", b"PAR1PAR1", b"{}", b"[]", b"null", b"0", b"\x1f\x8b", b"PK\x03\x04", b"%PDF-1.4",
    b"\x89PNG\r\n", b"<!doctype html>", b"\n" * 100_000, b"," * 100_000, b"a" * 1_000_000,
)  # fmt: skip
_MOST_CHANGED_BYTES = 8 << 20
_NUMBER = re.compile(rb"[0-9][0-9.]*")
Mutation = Callable[[bytes, random.Random], bytes]


def mutate(path: Path, rng: random.Random) -> str:
    """Change a file, or what is in its place; return what was done. One that is large by now stays as it is."""
    if path.stat().st_size > _MOST_CHANGED_BYTES:
        return "as it is"
    by_form: list[Callable[[Path, random.Random], str]] = []
    if path.suffix == ".parquet":
        by_form = [mutate_table] * 6
    elif path.suffix == ".toml":
        by_form = [mutate_toml] * 12
    elif path.suffix == ".json":
        by_form = [mutate_json] * 8
    choice = rng.random()
    if by_form and choice < 0.6:
        return rng.choice(by_form)(path, rng)
    if choice > 0.97:
        return mutate_kind(path, rng)
    if choice > 0.85:
        return pack(path, rng)
    data, done = path.read_bytes(), []
    unpacks_to = int.from_bytes(data[-4:], "little")  # as gzip ends
    packed = data[:2] == b"\x1f\x8b" and unpacks_to < _MOST_CHANGED_BYTES and rng.random() < 0.7
    data = gzip.decompress(data) if packed else data
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        change = rng.choice(BYTES)
        data = change(data, rng)
        done.append(change.__name__.strip("_"))
    path.write_bytes(gzip.compress(data, 1) if packed else data)
    return " ".join(done)


def _at(data: bytes, rng: random.Random) -> int:
    """Return a place, more often near an end: that is where heads and footers are."""
    edge = min(len(data), 64)
    return rng.choice((rng.randint(0, len(data)), rng.randint(0, edge), len(data) - rng.randint(0, edge)))


def _flip_bits(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data or b"\0")
    for _ in range(rng.choice((1, 1, 3, 20))):
        changed[min(_at(data, rng), len(changed) - 1)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: _at(data, rng)]


def _delete_span(data: bytes, rng: random.Random) -> bytes:
    at = _at(data, rng)
    return data[:at] + data[at + rng.choice((1, 4, 100, 10_000)) :]


def _repeat_span(data: bytes, rng: random.Random) -> bytes:
    at = _at(data, rng)
    return data[:at] + data[at : at + rng.choice((1, 8, 200))] * rng.choice((2, 100, 5000)) + data[at:]


def _insert_bytes(data: bytes, rng: random.Random) -> bytes:
    at = _at(data, rng)
    return data[:at] + rng.randbytes(rng.choice((1, 8, 4096))) + data[at:]


def _insert_text(data: bytes, rng: random.Random) -> bytes:
    at = _at(data, rng)
    return data[:at] + rng.choice(TEXTS).encode("utf-8", "surrogatepass") + data[at:]


def _insert_nesting(data: bytes, rng: random.Random) -> bytes:
    at = _at(data, rng)
    return (
        data[:at]
        + rng.choice((b"[", b"{", b"(", b'{"a":', b'"', b"a.", b"[[")) * rng.choice((3, 2000, 200_000))
        + data[at:]
    )


def _other_number(data: bytes, rng: random.Random) -> bytes:
    found = [*_NUMBER.finditer(data, 0, 1 << 20)]
    for match in sorted(rng.sample(found, min(len(found), rng.choice((1, 1, 5)))), key=lambda m: -m.start()):
        data = data[: match.start()] + rng.choice(NUMBERS).encode() + data[match.end() :]
    return data


def _other_field(data: bytes, rng: random.Random) -> bytes:
    """Put a number or a text in place of what stands between two separators."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    between = rng.choice((b",", b"\t", b" ", b":"))
    fields = lines[at].split(between)
    fields[rng.randrange(len(fields))] = rng.choice((*NUMBERS, *TEXTS)).encode("utf-8", "surrogatepass")
    lines[at] = between.join(fields)
    return b"\n".join(lines)


def _swap_fields(data: bytes, rng: random.Random) -> bytes:
    between = rng.choice((b",", b"\t", b" "))
    first, second = rng.randrange(8), rng.randrange(8)

    def swapped(line: bytes) -> bytes:
        fields = line.split(between)
        if max(first, second) < len(fields):
            fields[first], fields[second] = fields[second], fields[first]
        return between.join(fields)

    return b"\n".join(map(swapped, data.split(b"\n")))


def _lines(data: bytes, rng: random.Random) -> bytes:
    """Drop, repeat, swap or blank lines."""
    lines = data.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(5)
    if kind == 0:
        del lines[one]
    elif kind == 1:
        lines[one:one] = [lines[one]] * rng.choice((1, 10, 3000))
    elif kind == 2:
        lines[one], lines[other] = lines[other], lines[one]
    elif kind == 3:
        lines[one:one] = [b""] * rng.choice((1, 1000))
    else:
        lines[one] += rng.choice((b",", b",,,", b" ", b"\t", b";", b"\r", b"\0", b'"'))
    return b"\n".join(lines)


def _line_ends(data: bytes, rng: random.Random) -> bytes:
    ends = rng.choice(
        (b"\r\n", b"\r", b"\r\r\n", b"\n\r", b"\0", b"", b" \n", b",\n", b"\x85", b"\xe2\x80\xa8")
    )
    if rng.random() < 0.3:
        lines = data.split(b"\n")
        return b"".join(line + rng.choice((ends, b"\n")) for line in lines)
    return data.replace(b"\n", ends)


def _encoding(data: bytes, rng: random.Random) -> bytes:
    text = data.decode("latin-1")
    codec = rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-7", "cp037"))
    return text.encode(codec, "replace")


def _other_text(data: bytes, rng: random.Random) -> bytes:
    return rng.choice(_CONTENTS)


BYTES: tuple[Mutation, ...] = (
    _flip_bits, _truncate, _delete_span, _repeat_span, _insert_bytes, _insert_text, _insert_nesting, _other_number,
    _other_number, _other_field, _other_field, _other_field, _swap_fields, _lines, _lines, _line_ends, _encoding,
    _other_text,
)  # fmt: skip


def mutate_kind(path: Path, rng: random.Random) -> str:
    """Put something that is no file in its place."""
    kind = rng.choice(("pipe", "folder", "gone", "device", "circle", "unreadable", "sparse"))
    if kind == "unreadable":
        path.write_bytes(b"")
        return kind
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to(rng.choice(("/dev/zero", "/dev/null", "/dev/random", "/dev/full")))
    elif kind == "circle":
        path.symlink_to(path.name)
    elif kind == "sparse":
        with open(path, "wb") as file:
            file.truncate(rng.choice((1 << 20, 1 << 33)))
    return kind


def pack(path: Path, rng: random.Random) -> str:
    """Pack a file, damaged or not, or put a bomb in its place."""
    data = path.read_bytes()
    kind = rng.choice(
        ("gzip", "gzip", "bz2", "xz", "zst", "zip", "zip", "tar", "tgz", "nested", "bomb", "bomb")
    )
    if kind == "bomb":
        unit = rng.choice(
            (b"\n", b"\0", b"0", b",", data[: 1 << 14] or b"a", data[-200:] or b"a", b"0 1 1 1\n")
        )
        data, kind = (
            unit * ((rng.choice((4, 32, 100)) << 20) // len(unit)),
            rng.choice(("gzip", "zip", "tgz")),
        )
        done = f"bomb {kind}"
    else:
        done = kind
    packed = _packed(kind, data, path.name, rng)
    if rng.random() < 0.4:
        packed = rng.choice((_flip_bits, _truncate, _delete_span))(packed, rng)
        done += " damaged"
    path.write_bytes(packed)
    return done


def _packed(kind: str, data: bytes, name: str, rng: random.Random) -> bytes:
    out = io.BytesIO()
    if kind == "bz2":
        return bz2.compress(data)
    if kind == "xz":
        return lzma.compress(data[: 1 << 20])
    if kind == "zst":
        return b"\x28\xb5\x2f\xfd" + data
    if kind == "nested":
        for _ in range(3):
            data = gzip.compress(data, 1)
        return data
    if kind == "zip":
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for inner in rng.choice(
                ([name], [name, name], ["a/" + name, "../" + name], ["\x1b[2J.txt", name], [])
            ):
                archive.writestr(inner, data)
    elif kind in ("tar", "tgz"):
        with tarfile.open(
            fileobj=out,
            mode="w:gz" if kind == "tgz" else "w",
            **({"compresslevel": 1} if kind == "tgz" else {}),
        ) as tar:
            header = tarfile.TarInfo(rng.choice((name, "/" + name, "../" + name, "\x1b[2J")))
            header.size = len(data)
            tar.addfile(header, io.BytesIO(data))
            if rng.random() < 0.3:
                link = tarfile.TarInfo("link")
                link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
                tar.addfile(link)
    else:
        return gzip.compress(data, 1)
    return out.getvalue()


def mutate_toml(path: Path, rng: random.Random) -> str:
    """Put a hostile value in place of one of a TOML file, or under another name."""
    table = tomllib.loads(path.read_text())
    done = _change(table, rng)
    try:
        text = tomli_w.dumps(table)
    except (TypeError, ValueError, RecursionError):  # what TOML has no word for
        key = f"a{rng.randrange(10)}"
        text = path.read_text() + f"\n{key} = {rng.choice(NUMBERS)}\n"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    return f"toml {done}"


def mutate_json(path: Path, rng: random.Random) -> str:
    """Put a hostile value in place of one of a JSON file."""
    content = json.loads(path.read_text())
    if isinstance(content, dict | list) and content:
        done = _change(content, rng)
    else:
        content, done = rng.choice(VALUES), "all"
    try:
        path.write_text(json.dumps(content))
    except (ValueError, RecursionError):
        path.write_text("9" * 5000)
    return f"json {done}"


def _change(container: Any, rng: random.Random) -> str:
    """Change, remove or rename something deep in a container; return what."""
    at: Any = container
    name: list[str] = []
    while True:
        keys = [*at] if isinstance(at, dict) else [*range(len(at))]
        key = rng.choice(keys)
        name.append(str(key))
        inner = at[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.15:
            break
        at = inner
    value = rng.choice(VALUES)
    value = [[]] if value == "DEEP" else [1] * 100_000 if value == "WIDE" else value
    how = rng.random()
    if how < 0.08:
        del at[key]
    elif how < 0.15 and isinstance(at, dict):
        at[rng.choice([*TEXTS, str(key) + "s"])] = at.pop(key)
    elif how < 0.5 and not isinstance(inner, dict | list):
        at[key] = (
            type(inner)(rng.choice((2**40, -1, 0, 10**12, 3)))
            if isinstance(inner, int | float)
            else rng.choice((*TEXTS, *NUMBERS))
        )
    else:
        at[key] = value
    return ".".join(name)[:60]


def mutate_table(path: Path, rng: random.Random) -> str:
    """Change cells, columns, types or rows of a Parquet file."""
    table = pq.read_table(path)
    about = table.schema.metadata
    names = table.column_names
    name = rng.choice(names)
    at = names.index(name)
    how = rng.choice(
        ("cell", "cell", "cell", "cast", "drop", "rename", "twice", "rows", "null", "wide", "many", "about")
    )
    if how == "cell":
        table = _other_cell(table, name, rng)
    elif how == "cast":
        kind = rng.choice(
            (pa.string(), pa.float32(), pa.int8(), pa.uint64(), pa.bool_(), pa.list_(pa.int64()))
        )
        made = [[1]] * len(table) if pa.types.is_list(kind) else [None] * len(table)
        table = table.set_column(at, name, pa.array(made, kind))
    elif how == "drop":
        table = table.drop_columns([name])
    elif how == "rename":
        table = table.rename_columns([rng.choice(TEXTS) if n == name else n for n in names])
    elif how == "twice":
        table = table.append_column(name, table[name])
    elif how == "rows":
        table = table.slice(rng.randrange(len(table) + 1), rng.choice((0, 1, 10))) if len(table) else table
    elif how == "null":
        table = table.set_column(at, name, pa.nulls(len(table), table[name].type))
    elif how == "wide":
        text = pa.DictionaryArray.from_arrays(pa.array([0] * len(table), pa.int32()), ["x" * 200_000])
        table = table.set_column(at, name, text)
    elif how == "many" and len(table):
        table = table.take(pa.array([0] * rng.choice((100_000, 6_000_000)), pa.int32()))
    if how == "about":
        about = {
            b"metadata": rng.choice((b"{", b"[" * 100_000, b"9" * 5000, b'{"a": 1}', b"null")),
            b"schema_version": b"1",
        }
    table = table.replace_schema_metadata(about)
    pq.write_table(
        table, path, compression=rng.choice(("zstd", "snappy", "none", "gzip")), store_schema=how != "wide"
    )
    return f"table {how} {name}"


def _other_cell(table: pa.Table, name: str, rng: random.Random) -> pa.Table:
    values = table[name].to_pylist()
    if not values:
        return table
    kind = table[name].type
    row = rng.randrange(len(values))
    choices: tuple[Any, ...] = TEXTS
    if pa.types.is_integer(kind):
        choices = (0, -1, 1, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63), 10_000_000)
    elif pa.types.is_floating(kind):
        choices = (0.0, -1.0, -0.0, 1e18, 1e308, float("nan"), float("inf"), -float("inf"), 5e-324, 4e9)
    values[row] = rng.choice((None, *choices))
    try:
        made = pa.array(values, kind)
    except (pa.ArrowException, OverflowError, TypeError):
        return table
    return table.set_column(table.column_names.index(name), name, made)


def fit_hashes(place: Path) -> None:
    """Let the manifests of run directories say that the files beside them are as they were written."""
    from emu.manifest import read_manifest, results_of, write_manifest

    for path in sorted(place.rglob("manifest.json"), key=lambda path: -len(path.parts)):
        manifest = read_manifest(path.parent)
        names = [name for name in manifest.get("results", ()) if (path.parent / name).is_file()]
        kept = {name: value for name, value in manifest.items() if name != "sha256"}
        write_manifest(path.parent, kept | results_of(path.parent, names))


def copy_sample(sample: Path, to: Path) -> Path:
    """Return a copy of a file or folder below a folder."""
    place = to / sample.name
    if sample.is_dir():
        shutil.copytree(sample, place)
    else:
        shutil.copy(sample, place)
    return place


def files_of(place: Path) -> list[Path]:
    """Return the files of a copy, in order."""
    return [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file())
