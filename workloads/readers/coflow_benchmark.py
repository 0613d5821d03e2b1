"""The format of the coflow benchmark (``FB2010-1Hr-150-0.txt``): one coflow a line, a shuffle of racks.

The first line is ``ports coflows``; a line then is ``id arrival_ms mappers rack... reducers rack:MB...`` [1]_.
Every mapper sends to every reducer, and a reducer's megabytes come in equal parts from all mappers: a flow has
``MB / mappers``. Racks are numbered from 0; mapper 3 and reducer 3 are the same rack, and its flow to itself is a
flow like any other, as in the simulators of the field.

A megabyte is 2**20 bytes, as in CoflowSim of the same authors [2]_. CoflowSim also rounds each flow up to whole
megabytes, which changes nothing in the published trace; this reader does not round.

References
----------
.. [1] github.com/coflow/coflow-benchmark, README. M. Chowdhury, Y. Zhong, I. Stoica. Efficient Coflow Scheduling
   with Varys. SIGCOMM 2014.
.. [2] github.com/coflow/coflowsim, CoflowBenchmarkTraceProducer.java: ``shuffleBytes = MB * 1048576.0``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

from workloads.arrow import column
from workloads.coflows import MAX_BYTES, MAX_PORTS, CoflowWorkload, make_coflow_workload
from workloads.errors import InputError
from workloads.groups import Int64Array
from workloads.jobs import MAX_TIME_S, Float64Array
from workloads.limits import check_tasks, most_tasks
from workloads.readers.report import Progress, Report
from workloads.readers.samples import first_lines
from workloads.readers.source import read_lines
from workloads.readers.text import Fields, number_text, write_text

LINE_FORMAT = "id arrival_ms mappers rack... reducers rack:MB..."
MEGABYTE = 1 << 20

_HEAD_FORMAT = "ports coflows"
_MS = Fraction(1, 1000)


def read_coflow_benchmark(
    path: str | Path,
    *,
    megabyte_bytes: int = MEGABYTE,
    report: Report | None = None,
    progress: Progress | None = None,
) -> CoflowWorkload:
    """Read a coflow-benchmark file, plain or gzip.

    Flows of a coflow lie reducer after reducer. Bandwidths are null: the format has none. Reducers that get 0 MB have
    no flows, and are reported.

    Parameters
    ----------
    megabyte_bytes : int
        Bytes of a megabyte, 2**20 as in its authors' code, or 10**6.

    Raises
    ------
    InputError
        Names the file, the line and the field that is wrong.
    """
    if not 1 <= megabyte_bytes <= 1 << 30:
        raise InputError(f"{megabyte_bytes!r} is not a number of bytes", field="megabyte_bytes")
    report = Report() if report is None else report
    lines = (
        (number, fields) for number, text in read_lines(path, None, progress) if (fields := text.split())
    )
    num_ports, num_coflows, number = _read_head(path, lines)
    seen: dict[int, int] = {}
    arrival: list[float] = []
    flows: list[tuple[Int64Array, Int64Array, Float64Array]] = []
    num_flows = empty = 0
    most, _ = most_tasks(path)
    for number, texts in lines:
        line = Fields(path, number, texts, LINE_FORMAT)
        if len(seen) == num_coflows:
            line.refuse(None, f"more coflows than the {num_coflows} that the first line states")
        coflow = line.whole("id", 0, 2**63 - 1)
        if coflow in seen:
            line.refuse("id", f"coflow {coflow} occurs already in line {seen[coflow]}")
        seen[coflow] = number
        arrival.append(float(line.exact("arrival_ms", MAX_TIME_S * 1000) * _MS))
        mappers, reducers, sizes = _read_shuffle(line, num_ports, megabyte_bytes)
        line.end()
        some = sizes > 0
        if not some.any():
            line.refuse("reducers", "no reducer gets any bytes, so that the coflow has no flow")
        empty += int(np.count_nonzero(~some))
        num_flows += len(mappers) * int(np.count_nonzero(some))
        if num_flows > most:
            check_tasks(num_flows, "flows", file=path, line=number, field="reducers")
        flows.append((mappers, reducers[some], sizes[some]))
    if len(seen) < num_coflows:
        wrong = f"the file ends after {len(seen)} of the {num_coflows} coflows that the first line states"
        raise InputError(wrong, file=path, line=number + 1)
    report.read("coflows", num_coflows)
    report.read("flows", num_flows)
    report.dropped("reducers that get 0 MB", empty)
    return make_coflow_workload(
        Path(path).name.removesuffix(".gz").removesuffix(".txt"),
        arrival,
        [len(m) * len(r) for m, r, _ in flows],
        np.concatenate([np.tile(m, len(r)) for m, r, _ in flows]),
        np.concatenate([np.repeat(r, len(m)) for m, r, _ in flows]),
        np.concatenate([np.repeat(s, len(m)) for m, _, s in flows]),
        num_ports,
        coflow_id=[*seen],
        metadata={
            "origin": f"coflow benchmark {Path(path).name}",
            "megabyte_bytes": str(megabyte_bytes),
            "recipe": "a flow from each mapper to each reducer: reducer's MB / mappers",
            **report.as_metadata(),
        },
        notes=report.notes(),
        origin=path,
    )


def write_coflow_benchmark(
    workload: CoflowWorkload, path: str | Path, *, megabyte_bytes: int | None = None
) -> None:
    """Write a coflow-benchmark file, gzip when the name ends in ``.gz``; it reads back as the same coflows.

    `megabyte_bytes` is by default that of the file that was read, or 2**20. Numbers have the shortest form that reads
    back to the same float.

    Raises
    ------
    InputError
        The format does not hold weights, deadlines, bandwidths, and coflows that are not a shuffle (from each sender to
        each receiver, a receiver's flows equal, receiver after receiver). Or the file cannot be written.
    """
    arrays = workload.arrays()
    for field, lost in (
        ("weight", bool((arrays.weight != 1).any())),
        ("deadline_s", workload.coflows["deadline_s"].null_count < workload.num_coflows),
        ("ingress_bytes_per_s", not np.isnan(arrays.ingress_bytes_per_s).all()),
        ("egress_bytes_per_s", not np.isnan(arrays.egress_bytes_per_s).all()),
    ):
        if lost:
            wrong = f"the coflow benchmark's format has no {field}; write a Parquet folder instead"
            raise InputError(wrong, file=path, field=field)
    if megabyte_bytes is None:
        stated = workload.metadata.get("megabyte_bytes", "")
        megabyte_bytes = int(stated) if stated.isdigit() and 0 < len(stated) < 10 else MEGABYTE
    write_text(path, [*_lines(workload, path, megabyte_bytes)])  # all first: a refusal leaves no file


def recognises(path: Path) -> bool:
    """Return whether a file's first two lines are those of the coflow benchmark."""
    head, line = [*map(str.split, first_lines(path)[:2]), [], []][:2]
    whole = len(head) == 2 and all(f.isdigit() for f in (*head, *line[:1], *line[2:4]))
    return whole and len(line) > 5 and any(":" in field for field in line)


def _read_head(path: str | Path, lines: Iterator[tuple[int, list[bytes]]]) -> tuple[int, int, int]:
    """Return the numbers of ports and coflows, and the line they are on."""
    first = next(lines, None)
    if first is None:
        raise InputError(f"the file is empty; want a line {_HEAD_FORMAT!r}, and {LINE_FORMAT!r}", file=path)
    head = Fields(path, *first, _HEAD_FORMAT)
    num_ports, num_coflows = head.whole("ports", 1, MAX_PORTS), head.whole("coflows", 1, 2**40)
    head.end()
    return num_ports, num_coflows, head.line


def _read_shuffle(
    line: Fields, num_ports: int, megabyte_bytes: int
) -> tuple[Int64Array, Int64Array, Float64Array]:
    """Return the racks of mappers and of reducers, and the bytes of one flow to each reducer."""
    mappers = [
        line.whole(f"mapper {i}", 0, num_ports - 1) for i in range(1, line.whole("mappers", 1, num_ports) + 1)
    ]
    reducers, sizes = [], []
    for i in range(1, line.whole("reducers", 1, num_ports) + 1):
        field = f"reducer {i}"
        text = line.text(field)
        rack, colon, megabytes = text.partition(b":")
        if not colon:
            line.refuse(field, f"want rack:MB, have {text.decode('utf-8', 'replace')[:20]!a}")
        reducers.append(line.as_whole(field, rack, 0, num_ports - 1))
        exact = line.as_exact(field, megabytes, MAX_BYTES / megabyte_bytes)
        sizes.append(float(exact * megabyte_bytes / len(mappers)))
    for what, racks in (("mapper", mappers), ("reducer", reducers)):
        if len(set(racks)) < len(racks):
            twice = next(rack for rack, count in Counter(racks).items() if count > 1)
            line.refuse(f"{what}s", f"rack {twice} occurs twice; want one {what} for a rack")
    return np.array(mappers, np.int64), np.array(reducers, np.int64), np.array(sizes)


def _lines(workload: CoflowWorkload, path: str | Path, megabyte_bytes: int) -> Iterator[str]:
    arrays = workload.arrays()
    yield f"{workload.num_ports} {workload.num_coflows}\n"
    heads = zip(
        column(workload.coflows, "coflow_id").tolist(),
        column(workload.coflows, "arrival_s").tolist(),
        column(workload.coflows, "senders").tolist(),
        arrays.first_flow[:-1].tolist(),
        arrays.first_flow[1:].tolist(),
        strict=True,
    )
    for coflow, arrival_s, senders, first, end in heads:
        receivers = (end - first) // senders
        mappers, reducers = arrays.ingress[first : first + senders], arrays.egress[first:end:senders]
        sizes = arrays.size_bytes[first:end:senders]
        if coflow < 0 or not (
            senders * receivers == end - first
            and np.array_equal(np.tile(mappers, receivers), arrays.ingress[first:end])
            and np.array_equal(np.repeat(reducers, senders), arrays.egress[first:end])
            and np.array_equal(np.repeat(sizes, senders), arrays.size_bytes[first:end])
            and len(np.unique(reducers)) == receivers
        ):
            wrong = (
                f"coflow {coflow} is not a shuffle, equal flows from each sender to a receiver, receiver after "
                "receiver; the coflow benchmark's format holds no other; write a Parquet folder instead"
            )
            raise InputError(wrong, file=path, field="flows")
        scale = Fraction(megabyte_bytes, senders)
        shuffled = " ".join(
            f"{rack}:{number_text(size, scale)}"
            for rack, size in zip(reducers.tolist(), sizes.tolist(), strict=True)
        )
        racks = " ".join(map(str, mappers.tolist()))
        arrival_ms = number_text(arrival_s, _MS).removesuffix(".0")
        yield f"{coflow} {arrival_ms} {senders} {racks} {receivers} {shuffled}\n"
