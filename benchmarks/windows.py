"""The clock `windows`: several partitions that meet in shared memory, and what its barriers, model and memory take.

How to run: `python -m benchmarks.windows [SECTION...] [--rows ROW,...] [--partitions 2,3,4] [--repeats 3] [--busy]`
Traces are beside the repository (EMU_SHARED); rows that need one are left out where it is not. Sections:

- ``runs`` (the default): a workload and a scheduler in each row; printed are the engine's seconds in one process, and
  for each number of partitions, in as many Ray actors on this machine: seconds, their ratio, what
  `actors.hosting.choosing` expects, windows, events and µs a window, and the share of time that the first partition
  waited for others. What is expected says nothing of a network. Runs are in turn, figures are medians, and job times
  must equal those of one process. `--busy` keeps one core occupied meanwhile.
- ``barriers``: how many barriers `windows` takes, beside how many any conservative clock with barriers for all needs at
  least. A run in one process records its messages. From these follows what could be reached if all partitions knew at
  each barrier when the next message will come from each of the others: all go on to the arrival of the first that has
  not been sent yet. No lookahead by kind of message, of tasks that run for long or of reports that are known in
  advance, can need fewer. The delay of messages must not vary.
- ``model``: how the time grows with partitions, cores and machines, by the model of `--partitions auto`, and its parts:
  what a barrier takes at which nothing happens, in so many Ray actors on this machine, beside what is expected; how
  long a partition reads the headers of so many frames; and what is expected of an emulation of `--nodes` nodes on up to
  eight machines of 32 cores, which is not measured. `benchmarks.machines` runs on two machines.
- ``memory``: the memory of a partition's world, resident, of the first partition and of all: each has nodes of its own
  alone. Each is built in a process of its own, and joins the others; beside it stands what a process with workload and
  cluster took before. Linux only (/proc).
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from actors.hosting.choosing import barrier_us, expect
from actors.hosting.grouping import Grouping
from actors.hosting.groups import OnRay
from actors.hosting.outcome import Observe
from actors.hosting.partition import Partition
from actors.hosting.ray_session import close, connect
from actors.hosting.recorded import read_events
from actors.hosting.recording import Recording
from actors.hosting.runs import emulate
from actors.hosting.windows import (
    Meetings,
    WindowSession,
    divide,
    emulate_windows,
    lookahead_ns,
    window_ns,
)
from actors.kernel.compiled import compiled
from actors.kernel.queue import NEVER, NONE, Queue
from actors.kernel.window import find_barrier, make_frame
from actors.setting import Network, Setting
from benchmarks.dag_network import make_setting
from benchmarks.measuring import MOST_S, SHARED, run_sections, setting_of, show
from clusters.cluster import load_cluster
from emu.families.dags.plan import at_load, slots_equal_to
from workloads.catalogue import load_workload
from workloads.jobs import make_workload
from workloads.units import format_duration

MOST_BARRIERS = 100_000_000
FRAMES = (2, 8, 32, 64, 256)
LAYOUTS = ((1, 1), (2, 1), (8, 1), (32, 1), (64, 2), (256, 8))
"""Partitions, each with a core, and the machines they are on."""
MEAN_TASK_S = 1.0
MIB = 2**20
YH1_SUB = SHARED / "traces" / "YH1_sub.tr"
GOOG_SUB = SHARED / "traces" / "GOOG_subtrace.tr"
FACEBOOK = SHARED / "traces" / "FB2010-1Hr-150-0.txt"


class Run(NamedTuple):
    """What a run took."""

    engine_s: float
    windows: int
    events: int
    waited: float  # of the first partition, a share of the time


def equal_tasks(task_s: float, nodes: int, jobs: int, tasks: int = 10, load: float = 0.8) -> Setting:
    """Return jobs of exponential tasks that arrive at random, under sparrow."""
    rng = np.random.default_rng(0)
    gap_s = task_s * tasks / (load * nodes)
    durations = rng.exponential(task_s, jobs * tasks)
    workload = make_workload("tasks", np.cumsum(rng.exponential(gap_s, jobs)), [tasks] * jobs, durations)
    return setting_of("sparrow", workload, nodes)


def yahoo(nodes: int, jobs: int) -> Setting:
    """Return jobs of the Yahoo workload, which load so many nodes."""
    options = {"jobs": jobs, "nodes": nodes}
    return setting_of("sparrow", load_workload("yahoo", options=options), nodes)


def coflows() -> Setting:
    """Return the coflows of the Facebook trace."""
    ports = load_cluster("homogeneous", 150)
    return setting_of("aalo", load_workload(FACEBOOK), ports, network=Network(0.0005))


def dags() -> Setting:
    """Return 30,000 DAG jobs on 10,000 machines, at a load of 0.5."""
    made: Any = load_workload("query-dags", options={"jobs": 30_000, "mix": "microsoft"})
    machines = load_cluster("carbyne", 10_000)
    return setting_of("drf", at_load(made, slots_equal_to(made, machines), 0.5), machines)


def mapreduce(network: str) -> Setting:
    """Return 650,000 tasks of MapReduce on 3,000 machines, whose shuffles share ports of 10 Gbps."""
    return make_setting("drf", 7000, 650_000, 3000, network, gbps=10.0, scale=1.0)


ROWS: dict[str, Callable[[], Setting]] = {
    "YH1_sub": lambda: setting_of("sparrow", load_workload(YH1_SUB), 15_000),
    "GOOG_subtrace": lambda: setting_of("sparrow", load_workload(GOOG_SUB), 15_000),
    "yahoo-15000": lambda: yahoo(15_000, 2_000),
    "yahoo-100000": lambda: yahoo(100_000, 5_000),
    "yahoo-1000000": lambda: yahoo(1_000_000, 20_000),
    "0.1s-15000": lambda: equal_tasks(0.1, 15_000, 20_000),
    "1s-15000": lambda: equal_tasks(1.0, 15_000, 20_000),
    "10s-15000": lambda: equal_tasks(10.0, 15_000, 20_000),
    "100s-15000": lambda: equal_tasks(100.0, 15_000, 20_000),
    "1s-1000000": lambda: equal_tasks(1.0, 1_000_000, 100_000),
    "facebook-coflows": coflows,
    "dags": dags,
    "mapreduce-fair": lambda: mapreduce("fair"),
    "mapreduce-sebf": lambda: mapreduce("sebf"),
}
NEEDS = {"YH1_sub": YH1_SUB, "GOOG_subtrace": GOOG_SUB, "facebook-coflows": FACEBOOK}


def in_partitions(setting: Setting, partitions: int, whole: np.ndarray) -> Run:
    """Run a setting in Ray actors on this machine, which meet in shared memory."""
    session = WindowSession(OnRay, setting, Observe(), partitions, window_ns(setting, None))
    try:
        session.start()
        session.share_memory(must=True)
        meetings = session.windows
        assert isinstance(meetings, Meetings)
        assert session.run(MOST_S).done, "no end within an hour"
        outcome = session.outcome()
        waited_s = meetings.waited_s
    finally:
        session.close()
    assert (outcome.finish_ns == whole).all(), "job times differ from those of one process"
    return Run(outcome.wall_s, outcome.windows, outcome.events, waited_s / outcome.wall_s)


def measured(name: str, partitions: list[int], repeats: int) -> list[list[str]]:
    """Return the lines of a row."""
    setting = ROWS[name]()
    alone: list[float] = []
    together: dict[int, list[Run]] = {k: [] for k in partitions}
    emulate(setting, Observe(), in_process=True)  # compiles
    for _ in range(repeats):
        whole = emulate(setting, Observe(), in_process=True)
        alone.append(whole.wall_s)
        for k in partitions:
            together[k].append(in_partitions(setting, k, whole.finish_ns))
    one_s = statistics.median(alone)
    cast, cores = Partition(setting, Observe(), whole=False).cast(), len(os.sched_getaffinity(0))

    def expected(k: int) -> str:
        return f"{expect(setting, cast, window_ns(setting, None), k, cores).engine_s:.3f}"

    lines = [["", "1", f"{one_s:.3f}", "1", expected(1), "", "", "", ""]]
    for k, runs in together.items():
        took_s = statistics.median(run.engine_s for run in runs)
        windows, events = runs[0].windows, runs[0].events
        waited = statistics.median(run.waited for run in runs)
        figures = [f"{took_s / one_s:.2f}", expected(k), f"{windows:,}", f"{events / windows:.1f}"]
        lines.append(
            ["", str(k), f"{took_s:.3f}", *figures, f"{1e6 * took_s / windows:.2f}", f"{waited:.0%}"]
        )
    return lines


def keep_busy() -> None:
    """Occupy a core."""
    while True:
        time.monotonic()


def chosen(asked: argparse.Namespace, rows: Sequence[str], partitions: Sequence[int]) -> Any:
    """Return the rows whose traces are there, and the numbers of partitions: those that are asked for, or these."""
    names = [name for name in asked.rows or rows if name not in NEEDS or NEEDS[name].exists()]
    return names, [int(k) for k in asked.partitions or partitions]


def runs(asked: argparse.Namespace) -> None:
    """Run each row, in one process and in partitions."""
    names, partitions = chosen(asked, tuple(ROWS), (2, 3, 4))
    other = multiprocessing.get_context("spawn").Process(target=keep_busy, daemon=True)
    if asked.busy:
        other.start()
    connect()
    head = ["", "partitions", "s", "over one", "expected", "windows", "events each", "µs each", "waited"]
    for name in names:
        show(name, [head, *measured(name, partitions, asked.repeats)])
    close()
    if asked.busy:
        other.kill()


def messages_of(setting: Setting) -> np.ndarray:
    """Return all messages between two actors, [n, 4]: sender, receiver, when each left and arrived, ns."""
    with tempfile.TemporaryDirectory() as folder:
        recording = Recording(Path(folder))
        emulate(setting, Observe(events=recording), in_process=True)
        parts = [
            np.column_stack([e.sender, e.receiver, e.left, e.time])[e.left != NONE]
            for e in read_events(recording, setting)
        ]
    return np.concatenate(parts)


def partitions_of(grouping: Grouping, actors: np.ndarray) -> np.ndarray:
    """Return the partition of each actor; -1 of the listener, which is in all."""
    found = np.full(actors.size, -1)
    for k in range(grouping.size):
        for ids in grouping.hosted(k):
            found[(actors >= ids.start) & (actors < ids.stop)] = k
    return found


def needed(messages: np.ndarray, grouping: Grouping) -> int:
    """Return how many barriers are needed at least."""
    sender, receiver = (partitions_of(grouping, messages[:, i]) for i in (0, 1))
    pairs = []
    for src in range(grouping.size):
        for dst in range(grouping.size):
            crossing = (
                messages[(sender == src) & ((receiver == dst) | (receiver == -1))] if src != dst else []
            )
            if len(crossing):
                order = np.argsort(crossing[:, 2], kind="stable")
                left, arrives = crossing[order, 2], crossing[order, 3]
                assert (np.diff(arrives) >= 0).all(), "delays vary"
                pairs.append((src, dst, left, arrives))
    at = [0] * grouping.size
    for count in range(MOST_BARRIERS):
        to = [int(NEVER)] * grouping.size
        for src, dst, left, arrives in pairs:
            first = np.searchsorted(left, at[src])  # messages that left before have been exchanged
            if first < left.size:
                to[dst] = min(to[dst], int(arrives[first]))
        if min(to) >= NEVER:
            return count + 1
        at = to
    raise AssertionError("no end")


def barriers(asked: argparse.Namespace) -> None:
    """Count barriers, and those that are needed."""
    rows = ("YH1_sub", "GOOG_subtrace", "yahoo-15000", "0.1s-15000", "100s-15000")
    names, numbers = chosen(asked, rows, (2, 4))
    lines = [["", "partitions", "messages", "barriers", "needed at least", "of them"]]
    for name in names:
        setting = ROWS[name]()
        messages = messages_of(setting)
        cast = Partition(setting, Observe(), whole=False).cast()
        for partitions in numbers:
            least = needed(messages, divide(setting, cast, partitions))
            taken = emulate_windows(setting, Observe(), partitions=partitions, in_process=True).windows
            figures = [f"{len(messages):,}", f"{taken:,}", f"{least:,}", f"{least / taken:.0%}"]
            lines.append([name, str(partitions), *figures])
    show("barriers", lines)


def measured_barrier_us(partitions: int, repeats: int) -> float:
    """Return what a barrier takes in so many Ray actors, the median of some runs."""
    setting = equal_tasks(MEAN_TASK_S, 1_000, 100)
    session = WindowSession(OnRay, setting, Observe(), partitions, window_ns(setting, None))
    try:
        session.start()
        session.share_memory(must=True)
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


def model(asked: argparse.Namespace) -> None:
    """Measure the parts of the model, and print what is expected of many nodes."""
    cores, nodes = len(os.sched_getaffinity(0)), int((asked.nodes or ["10000000"])[0])
    connect()
    lines = [["partitions", "a barrier, µs", "expected, µs"]]
    for k in chosen(asked, (), (2, 3, 4, 5, 6))[1]:
        taken = measured_barrier_us(k, asked.repeats)
        lines.append([str(k), f"{taken:.2f}", f"{barrier_us(k, cores, 1, 0.0):.2f}"])
    close()
    show(f"barriers on {cores} cores", lines)
    frames = [[f"{k}", f"{reading_us(k):.2f}"] for k in FRAMES]
    show("headers of frames", [["frames", "read in, µs"], *frames])
    show(f"tasks of 1 s on {nodes:,} nodes, expected", outlook(nodes))


def resident_mib() -> float:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MIB


def idle_setting(scheduler: str, nodes: int) -> Setting:
    """Return an emulation of 2,000 jobs, with the columns of its cluster that a partition reads."""
    workload = make_workload("tasks", np.arange(2_000.0), [10] * 2_000, np.ones(20_000))
    setting = setting_of(scheduler, workload, nodes)
    setting.cluster.slots()
    return setting


def make_partition(setting: Setting, partitions: int, k: int) -> Partition:
    """Return a partition that has joined the others, if there are any."""
    partition = Partition(setting, Observe(), whole=partitions == 1)
    if partitions > 1:
        partition.join(divide(setting, partition.cast(), partitions), k, lookahead_ns(setting))
    return partition


def grown_mib(scheduler: str, nodes: int, partitions: int, k: int) -> tuple[float, float]:
    """Return the resident memory with a setting, and what one of its partitions adds to that."""
    make_partition(idle_setting(scheduler, 1_000), partitions, k)  # loads compiled code
    setting = idle_setting(scheduler, nodes)
    before = resident_mib()
    partition = make_partition(setting, partitions, k)
    grown = resident_mib() - before
    assert partition.world.nodes.size == nodes  # it is there until now
    return before, grown


def memory(asked: argparse.Namespace) -> None:
    """Build partitions, each in a process of its own."""
    lines = [["scheduler", "nodes", "partitions", "setting, MiB", "one partition, MiB", "all, MiB"]]
    numbers = [int(nodes) for nodes in asked.nodes or (1_000_000, 10_000_000)]
    cells = product(asked.schedulers, numbers, chosen(asked, (), (1, 2, 4))[1])
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for scheduler, nodes, partitions in cells:
            rows = [(scheduler, nodes, partitions, k) for k in range(partitions)]
            found = pool.starmap(grown_mib, rows, chunksize=1)
            (setting, first), worlds = found[0], [grown for _, grown in found]
            sizes = [f"{size:,.0f}" for size in (setting, first, sum(worlds))]
            lines.append([scheduler, f"{nodes:,}", str(partitions), *sizes])
    show("memory", lines)


def main() -> None:
    """Measure the sections that are asked for."""
    sections = {"runs": runs, "barriers": barriers, "model": model, "memory": memory}
    given: dict[str, Any] = {"rows": tuple, "partitions": tuple, "nodes": tuple, "schedulers": ("sparrow",)}
    run_sections(__doc__, sections, ["runs"], repeats=3, busy=False, **given)


if __name__ == "__main__":
    main()
