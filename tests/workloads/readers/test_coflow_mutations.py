"""Coflow files changed at random: each is refused as its text is wrong, or read as just what its text says.

What a text says is found by a second reading of the formats, written for this test and as plain as can be.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from workloads.coflows import CoflowWorkload
from workloads.errors import InputError
from workloads.readers.coflow_benchmark import read_coflow_benchmark
from workloads.readers.coflowlib import read_coflowlib

Lines = list[list[bytes]]

ROUNDS = 400
ODD = [
    *b"0 1 2 3 8 9 00 007 -1 +2 1.0 2.50 .5 5. . 1e3 1E-2 1e400 1e-400 4e12 4000000000.1 1e18 1.1e18 nan inf".split(),
    *b"1_0 1,0 0x1 2:3 0:0 0:0.0 1:1e-9 1: :1 1:2:3 1:-2 # \xc2\xb2 \x00 1\x002".split(),
    b"9" * 20,
    b"9" * 65,
]
"""Fields that are numbers in one place and none in another, or none anywhere."""

NAMES_ITS_PLACE = re.compile(
    r"line \d+: (field [\w ]+: |the file ends |more coflows than |more lines than )|the file is empty"
)

Said = list[tuple[int, float, list[tuple[int, int, float]], float, float | None]]
"""For each coflow in order of arrival: id, arrival, flows (ingress, egress, bytes), weight, deadline."""


class Wrong(Exception):
    """The text is not of the format."""


def whole(text: bytes, least: int, most: int) -> int:
    if not re.fullmatch(rb"[0-9]{1,64}", text) or not least <= int(text) <= most:
        raise Wrong
    return int(text)


def number(text: bytes, most: float) -> Fraction:
    if len(text) > 64 or not re.fullmatch(rb"\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", text):
        if re.fullmatch(rb"-(0+\.?0*|\.0+)([eE][+-]?[0-9]{1,3})?", text):
            return Fraction(0)
        raise Wrong
    if Fraction(text.decode()) > most:
        raise Wrong
    return Fraction(text.decode())


def take(fields: list[bytes]) -> bytes:
    if not fields:
        raise Wrong
    return fields.pop(0)


def benchmark_says(rows: Lines) -> Said:
    head = rows.pop(0) if rows else []
    ports, coflows = whole(take(head), 1, 2**20), whole(take(head), 1, 2**40)
    if head or len(rows) != coflows:
        raise Wrong
    said: Said = []
    for row in rows:
        coflow, arrival = whole(take(row), 0, 2**63 - 1), number(take(row), 4e12)
        mappers = [whole(take(row), 0, ports - 1) for _ in range(whole(take(row), 1, ports))]
        flows, reducers = [], []
        for _ in range(whole(take(row), 1, ports)):
            rack, colon, megabytes = take(row).partition(b":")
            if not colon:
                raise Wrong
            reducers.append(whole(rack, 0, ports - 1))
            size = float(number(megabytes, 1e18 / 2**20) * 2**20 / len(mappers))
            flows += [(mapper, reducers[-1], size) for mapper in mappers if size > 0]
        if row or not flows or len({*mappers}) < len(mappers) or len({*reducers}) < len(reducers):
            raise Wrong
        said.append((coflow, float(arrival / 1000), flows, 1.0, None))
    return said


def coflowlib_says(rows: Lines) -> Said:
    def row_of(length: int) -> list[bytes]:
        row = rows.pop(0) if rows else []
        if len(row) != length:
            raise Wrong
        return row

    def positive(text: bytes) -> float:
        if not (value := float(number(text, 1e18))):
            raise Wrong
        return value

    whole(row_of(1)[0], 0, 2**31)
    said: Said = []
    for _ in range(whole(row_of(1)[0], 1, 2**40)):
        head = row_of(5)
        arrival, deadline = (float(number(text, 4e9)) for text in head[2:4])
        if deadline < arrival:
            raise Wrong
        flows = []
        for _ in range(whole(head[4], 1, 2**40)):
            row = row_of(5)
            whole(row[0], 0, 10**30), whole(row[2], 2, 2)
            flows.append((whole(row[3], 1, 2**20) - 1, whole(row[4], 2, 2**21), positive(row[1])))
        said.append((whole(head[0], 0, 2**63 - 1), arrival, flows, positive(head[1]), deadline))
    ports = whole(row_of(1)[0], 2, 2**21)
    for port in range(1, ports + 1):
        row = row_of(2)
        whole(row[0], port, port), positive(row[1])
    machines = ports // 2
    if rows or ports % 2 or any(len(f) == 0 for *_, f, _, _ in said):
        raise Wrong
    for *_, flows, _, _ in said:
        for at, (ingress, egress, size) in enumerate(flows):
            if ingress >= machines or not machines < egress <= ports:
                raise Wrong
            flows[at] = ingress, egress - machines - 1, size
    return said


def valid_benchmark(rng: random.Random) -> Lines:
    lines = []
    for coflow in range(rng.randint(2, 5)):
        mappers, reducers = rng.sample(range(8), rng.randint(1, 4)), rng.sample(range(8), rng.randint(1, 4))
        shuffled = [f"{r}:{rng.randint(1, 99)}.0" for r in reducers]
        line = [coflow, coflow * 100, len(mappers), *mappers, len(reducers), *shuffled]
        lines.append([str(field).encode() for field in line])
    return [[b"8", str(len(lines)).encode()], *lines]


def valid_coflowlib(rng: random.Random) -> Lines:
    machines = rng.randint(1, 4)
    coflows_ = rng.randint(1, 4)
    lines: list[list[object]] = [[rng.randint(0, 1)], [coflows_]]
    for coflow in range(1, coflows_ + 1):
        width = rng.randint(1, 4)
        arrival = round(rng.random(), 3)
        lines.append([coflow, 1, arrival, round(arrival + 0.5 + rng.random(), 5), width])
        for flow in range(1, width + 1):
            ports = rng.randint(1, machines), rng.randint(machines + 1, 2 * machines)
            lines.append([f"{coflow}{flow}", round(0.1 + rng.random(), 5), 2, *ports])
    lines += [[2 * machines], *([port, 1] for port in range(1, 2 * machines + 1))]
    return [[str(field).encode() for field in line] for line in lines]


def to_text(lines: Lines, separator: bytes = b" ") -> bytes:
    return b"".join(separator.join(fields) + b"\n" for fields in lines)


def in_order(said: Said) -> Said:
    if len({coflow for coflow, *_ in said}) < len(said):
        raise Wrong
    return sorted(said, key=lambda coflow: coflow[1])


def content(workload: CoflowWorkload) -> Said:
    flows = [tuple(flow.values())[1:] for flow in workload.flows.to_pylist()]
    made: Said = []
    for c in workload.coflows.to_pylist():
        own = [flows.pop(0) for _ in range(c["width"])]
        made.append((c["coflow_id"], c["arrival_s"], own, c["weight"], c["deadline_s"]))
    return made


def mutated(rng: random.Random, lines: Lines) -> bytes:
    """Return a text with one to three changes: fields, lines, bits, its end."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        row = rng.randrange(len(lines))
        other = rng.randrange(len(lines))
        at = rng.randrange(len(lines[row])) if lines[row] else None
        change = rng.randrange(10)
        if change <= 3 and at is not None:
            lines[row][at] = rng.choice([*ODD, *lines[other]])
        elif change == 4 and at is not None:
            del lines[row][at]
        elif change == 5:
            lines[row].insert(at or 0, rng.choice([*ODD, *lines[other]]))
        elif change == 6:
            lines[row], lines[other] = lines[other], lines[row]
        elif change == 7:
            lines.insert(other, list(lines[row]))
        elif change == 8 and len(lines) > 1:
            del lines[row]
        elif change == 9:
            lines[row:row] = rng.choice(([[]], [[b"#", b"text"]]))
    text = bytearray(to_text(lines, rng.choice((b" ", b" ", b"\t", b"  "))))
    if rng.random() < 0.2:
        text[rng.randrange(len(text))] ^= 1 << rng.randrange(8)
    return bytes(text[: rng.randrange(1, len(text))] if rng.random() < 0.1 else text)


@pytest.mark.parametrize(
    ("valid", "read", "says"),
    [
        (valid_benchmark, read_coflow_benchmark, benchmark_says),
        (valid_coflowlib, read_coflowlib, coflowlib_says),
    ],
    ids=["coflow-benchmark", "coflowlib"],
)
def test_a_mutant_is_refused_or_read_as_what_it_says(
    tmp_path: Path,
    valid: Callable[[random.Random], Lines],
    read: Callable[[Path], CoflowWorkload],
    says: Callable[[Lines], Said],
) -> None:
    rng = random.Random(2)
    path = tmp_path / "w.txt"
    refused = 0
    for _ in range(ROUNDS):
        text = mutated(rng, valid(rng))
        path.write_bytes(text)
        try:
            want = in_order(says([row for line in text.split(b"\n") if (row := line.split())]))
        except Wrong:
            with pytest.raises(InputError) as caught:
                read(path)
            found = str(caught.value)
            assert found.isprintable(), (text, found)  # so it is one line
            assert found.startswith(f"{path}: "), (text, found)
            assert NAMES_ITS_PLACE.match(found.removeprefix(f"{path}: ")), (text, found)
            refused += 1
        else:
            assert content(read(path)) == want, text
    assert ROUNDS / 2 < refused < ROUNDS - 20
