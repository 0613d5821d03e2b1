"""Malformed text files made from a valid one, each wrong by construction; and the check that each is refused.

A valid file is a list of lines, a line a list of fields. What could by luck leave a valid file (a swapped
digit, a cut in the middle of a number) is not among the mutations.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tests.workloads.mutations import Mutant
from workloads.errors import InputError

Lines = list[list[bytes]]

NOT_A_NUMBER = [
    b"abc", b"1_000", b"nan", b"-inf", b"0x10", b"1e400", b"--3", b"1.2.3", b"1\x002", b"\xff\xfe",
    b"\xef\xbc\x91", b"None", b"1e", b"12s", b"\x1b[31m",
]  # fmt: skip
"""What no format takes for a number, and what none splits into two fields (blank, comma, colon, tab)."""

FOREIGN = [b"\xff\xfe", b"PK\x03\x04", b"\x89PNG", b"PAR1", b"\x00" * 8, b"<html>", b"BZh9"]
"""First bytes of what is not a text file, or not a readable one."""


def text_mutants(
    name: str,
    valid: Callable[[random.Random], Lines],
    *,
    numbers: Callable[[Lines, int], list[int]],
    separator: bytes = b" ",
    counted: Callable[[Lines], list[int]] | None = None,
    seed: int = 0,
    rounds: int = 15,
) -> Iterator[Mutant]:
    """Yield malformed files, the same ones for a seed; every other one is gzip where that changes nothing.

    Parameters
    ----------
    name : str
        The file's name; ``.gz`` is added where it is packed.
    valid : callable
        Makes the lines of a valid file.
    numbers : callable
        ``numbers(lines, row)``: the fields of a row in which a number is needed, none where there is none.
    separator : bytes
        Between fields.
    counted : callable, optional
        Rows that must have exactly as many fields as they have; by default all.
    seed, rounds : int
        `rounds` of each of the mutations.
    """
    rng = random.Random(seed)
    for round_ in range(rounds):
        for mutate in (_wrong_number, _wrong_number, _missing_field, _extra_field):
            lines = valid(rng)
            rows = (counted or _all_rows)(lines) if mutate in (_missing_field, _extra_field) else None
            label, row = mutate(rng, lines, numbers, rows)
            yield _packed(label, name, to_text(lines, separator), row + 1, pack=round_ % 2 == 1)
        for damage in (_foreign, _empty, _gzip_cut, _gzip_checksum):
            label, data, line = damage(rng, to_text(valid(rng), separator))
            yield Mutant(label, {name: data}, name, name, line)


def to_text(lines: Lines, separator: bytes = b" ") -> bytes:
    """Return the lines as a file."""
    return b"".join(separator.join(fields) + b"\n" for fields in lines)


def check_refused(mutants: Iterable[Mutant], read: Callable[[Path], object], folder: Path) -> int:
    """Assert that each is refused by an `InputError` of one line that names the place; return their number."""
    number = 0
    for number, mutant in enumerate(mutants, start=1):
        path = mutant.write(folder / str(number))
        text = _refusal(mutant, read, path)
        about = (mutant.label, text)
        assert text.isprintable(), about  # so it is one line
        assert len(text) < 400 + len(str(path)), about
        culprit = path.parent / mutant.culprit if path.is_file() else path / mutant.culprit
        assert text.startswith(f"{culprit}"), about
        if mutant.line is not None:
            assert text.startswith(f"{culprit}: line {mutant.line}: "), about
    return number


def count_refused_flips(data: bytes, read: Callable[[Path], object], path: Path, rounds: int = 150) -> int:
    """Flip a few bits of a valid file, anywhere: what is not read is refused as above; return how many were."""
    rng = random.Random(1)
    refused = 0
    for _ in range(rounds):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            read(path)
        except InputError as error:
            text = str(error)
        else:
            continue  # another number
        assert text.isprintable(), (bytes(damaged), text)
        assert text.startswith(f"{path}: "), (bytes(damaged), text)
        refused += 1
    return refused


def _refusal(mutant: Mutant, read: Callable[[Path], object], path: Path) -> str:
    try:
        read(path)
    except InputError as error:
        return str(error)
    raise AssertionError(f"was read: {mutant.label}: {mutant.files}")


def _packed(label: str, name: str, data: bytes, line: int | None, *, pack: bool) -> Mutant:
    if pack:
        return Mutant(f"{label}, gzip", {f"{name}.gz": gzip.compress(data)}, f"{name}.gz", f"{name}.gz", line)
    return Mutant(label, {name: data}, name, name, line)


def _all_rows(lines: Lines) -> list[int]:
    return list(range(len(lines)))


Numbers = Callable[[Lines, int], list[int]]


def _wrong_number(
    rng: random.Random, lines: Lines, numbers: Numbers, rows: list[int] | None
) -> tuple[str, int]:
    row = rng.choice([r for r in range(len(lines)) if numbers(lines, r)])
    at = rng.choice(numbers(lines, row))
    lines[row][at] = rng.choice(NOT_A_NUMBER)
    return f"field {at} is {lines[row][at]!r}", row


def _missing_field(
    rng: random.Random, lines: Lines, numbers: Numbers, rows: list[int] | None
) -> tuple[str, int]:
    row = rng.choice([r for r in rows or [] if len(lines[r]) > 1])
    keep = rng.randrange(1, len(lines[row]))
    lines[row] = lines[row][:keep]
    return f"line ends after {keep} fields", row


def _extra_field(
    rng: random.Random, lines: Lines, numbers: Numbers, rows: list[int] | None
) -> tuple[str, int]:
    row = rng.choice(rows or [])
    lines[row] += [b"1"] * rng.randint(1, 3)
    return "more fields than there are", row


def _foreign(rng: random.Random, data: bytes) -> tuple[str, bytes, int | None]:
    head = rng.choice(FOREIGN)
    return f"starts with {head!r}", head + data, None


def _empty(rng: random.Random, data: bytes) -> tuple[str, bytes, int | None]:
    return "nothing", rng.choice([b"", b"\n", b" \t\n\r\n", b"\n" * 50]), None


def _gzip_cut(rng: random.Random, data: bytes) -> tuple[str, bytes, int | None]:
    packed = gzip.compress(data)
    keep = rng.choice([3, 10, rng.randrange(3, len(packed)), len(packed) - 1])
    return f"gzip of {len(packed)} bytes cut to {keep}", packed[:keep], None


def _gzip_checksum(rng: random.Random, data: bytes) -> tuple[str, bytes, int | None]:
    packed = bytearray(gzip.compress(data))
    packed[-rng.randint(1, 8)] ^= 1 << rng.randrange(8)  # the last 8 bytes are checksum and length
    return "gzip with a wrong checksum", bytes(packed), None
