"""What tests of batches share: a small archive of instances with deadlines, written by the test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.workloads.family_examples import coflows_of
from workloads.coflows import CoflowWorkload
from workloads.readers.coflowlib import write_instances

INSTANCES = 4
NAMES = tuple(f"set_in{number:03d}" for number in range(1, INSTANCES + 1))
RUN = ("--workload", "set.zip", "--in-process")


def instance(number: int) -> CoflowWorkload:
    """Six coflows over three ports, all at time 0, of 1 to 4 bytes a flow; the ports carry 1 byte/s."""
    rows: list[tuple[float, float | None, Mapping[tuple[int, int], float]]] = []
    for k in range(6):
        sizes = {(p, (p + k) % 3): float(1 + (k * number + p) % 4) for p in range(1 + (k + number) % 3)}
        rows.append((0.0, float(2 + (2 * k + number) % 6), sizes))
    return coflows_of(rows, ports=3, port_bytes_per_s=1.0)


def write_set(folder: Path, instances: int = INSTANCES) -> Path:
    """Write an archive ``set.zip`` of so many instances, all different."""
    path = folder / "set.zip"
    write_instances([instance(number) for number in range(1, instances + 1)], path)
    return path
