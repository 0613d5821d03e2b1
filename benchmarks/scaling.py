"""How the time of `windows` grows with partitions, cores and machines: the model of `--partitions auto`, and its parts.

    python -m benchmarks.scaling [--partitions 2,3,4,5,6] [--repeats 5] [--nodes 10000000]

Printed is what a barrier takes at which nothing happens, in so many Ray actors on this machine, beside what
`actors.hosting.choosing` expects; how long a partition reads the headers of so many frames; and what is expected of an
emulation of many nodes on up to eight machines of 32 cores, which is not measured. `benchmarks.windows` prints what is
expected of each of its rows beside what it takes, and `benchmarks.machines` runs on two machines.
"""

from __future__ import annotations

import os
import statistics
import time

import numpy as np

from actors.hosting.choosing import barrier_us, expect
from actors.hosting.outcome import Observe
from actors.hosting.partition import Partition
from actors.hosting.ray_session import close, connect
from actors.hosting.ray_windows import WindowSession
from actors.hosting.windows import window_ns
from actors.kernel.compiled import compiled
from actors.kernel.queue import Queue
from actors.kernel.window import find_barrier, make_frame
from benchmarks.measuring import options, show
from benchmarks.windows import equal_tasks
from workloads.units import format_duration

FRAMES = (2, 8, 32, 64, 256)
LAYOUTS = ((1, 1), (2, 1), (8, 1), (32, 1), (64, 2), (256, 8))
"""Partitions, each with a core, and the machines they are on."""
MEAN_TASK_S = 1.0


def measured_barrier_us(partitions: int, repeats: int) -> float:
    """Return what a barrier takes in so many Ray actors, the median of some runs."""
    session = WindowSession(equal_tasks(MEAN_TASK_S, 1_000, 100), Observe(), partitions, None, "memory")
    try:
        session.start()
        session.share_memory()
        return 1e6 * statistics.median(session.windows.barrier_s() for _ in range(repeats))
    finally:
        session.close()


@compiled
def read_often(queue: Queue, frames: np.ndarray, partitions: int, times: int) -> None:
    """Find the next barrier from the headers of all frames, so many times."""
    for _ in range(times):
        find_barrier(queue, frames, partitions, 0, 0, 0)


def reading_us(partitions: int) -> float:
    """Return how long a partition reads the headers of so many frames."""
    queue = Partition(equal_tasks(MEAN_TASK_S, 10, 10), Observe()).world.queue
    frames = np.concatenate([make_frame(partitions, 0)] * partitions)
    times = 1_000_000 // partitions
    read_often(queue, frames, partitions, 1)
    begin_s = time.perf_counter()
    read_often(queue, frames, partitions, times)
    return 1e6 * (time.perf_counter() - begin_s) / times


def outlook(nodes: int) -> list[list[str]]:
    """Return what is expected of tasks of 1 s on so many nodes, at a load of 0.8."""
    setting = equal_tasks(MEAN_TASK_S, nodes, nodes // 10)
    cast, window = Partition(setting, Observe(), whole=False).cast(), window_ns(setting, None)
    lines = [["machines", "partitions", "expected", "faster than one", "events each window", "a barrier, µs"]]
    for partitions, machines in LAYOUTS:
        found = expect(setting, cast, window, partitions, partitions, machines)
        alone = expect(setting, cast, window, 1, 1)
        events = found.events / found.windows / partitions
        barrier = barrier_us(partitions, partitions, machines, found.events / found.windows)
        figures = [f"{events:,.0f}", f"{barrier:.1f}"] if partitions > 1 else ["", ""]
        times = f"{alone.engine_s / found.engine_s:.1f}"
        lines.append([f"{machines}", f"{partitions}", format_duration(found.engine_s), times, *figures])
    return lines


def main() -> None:
    """Run the benchmark."""
    asked = options(__doc__, partitions=(2, 3, 4, 5, 6), repeats=5, nodes=10_000_000)
    cores = len(os.sched_getaffinity(0))
    connect()
    lines = [["partitions", "a barrier, µs", "expected, µs"]]
    for k in asked.partitions:
        taken = measured_barrier_us(k, asked.repeats)
        lines.append([str(k), f"{taken:.2f}", f"{barrier_us(k, cores, 1, 0.0):.2f}"])
    close()
    show(f"barriers on {cores} cores", lines)
    show(
        "headers of frames", [["frames", "read in, µs"], *([f"{k}", f"{reading_us(k):.2f}"] for k in FRAMES)]
    )
    show(f"tasks of 1 s on {asked.nodes:,} nodes, expected", outlook(asked.nodes))


if __name__ == "__main__":
    main()
