"""What is done to valid files to make hostile ones; the same for the same random numbers. See `benchmarks.hostile`."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.hostile_values import NUMBERS, TEXTS, mutate_json, mutate_table, mutate_toml

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
    between = rng.choice((b",", b"\t", b" ", b":", b"|"))
    fields = lines[at].split(between)
    fields[rng.randrange(len(fields))] = rng.choice((*NUMBERS, *TEXTS)).encode("utf-8", "surrogatepass")
    lines[at] = between.join(fields)
    return b"\n".join(lines)


def _swap_fields(data: bytes, rng: random.Random) -> bytes:
    between = rng.choice((b",", b"\t", b" ", b"|"))
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


def fit_hashes(place: Path) -> None:
    """Let the manifests of run directories say that the files beside them are as they were written."""
    from emu.directories.manifest import read_manifest, results_of, write_manifest

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
