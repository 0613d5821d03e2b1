"""The clock `windows`: several partitions that meet in shared memory, beside one process in the same run.

    python -m benchmarks.windows [ROW,...] [--partitions 2,3,4] [--repeats 3] [--busy]

Each row is a workload and a scheduler; printed are the engine's seconds in one process, and for each number of
partitions, in as many Ray actors on this machine: seconds, their ratio, what `actors.hosting.choosing` expects,
windows, events and µs a window, and the share of time that the first partition waited for others. What is expected says
nothing of a network. Runs are in turn, figures are medians, and job times must equal those of one process. `--busy`
keeps one core occupied meanwhile. Traces are beside the repository (EMU_SHARED); rows that need one are left out where
it is not.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from actors.hosting.choosing import expect
from actors.hosting.outcome import Observe
from actors.hosting.partition import Partition
from actors.hosting.ray_session import close, connect
from actors.hosting.ray_windows import Meetings, WindowSession
from actors.hosting.virtual import emulate
from actors.hosting.windows import window_ns
from actors.setting import Network, Setting
from benchmarks.dag_network import make_setting
from benchmarks.measuring import MOST_S, SHARED, options, setting_of, show
from clusters.cluster import load_cluster
from emu.families.dags.plan import at_load, slots_equal_to
from workloads.catalogue import load_workload
from workloads.jobs import make_workload

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
    session = WindowSession(setting, Observe(), partitions, None, "memory")
    try:
        session.start()
        session.share_memory()
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


def main() -> None:
    """Run the benchmark."""
    asked = options(__doc__, "rows", rows=tuple(ROWS), partitions=(2, 3, 4), repeats=3, busy=False)
    names = [name for name in asked.rows if name not in NEEDS or NEEDS[name].exists()]
    other = multiprocessing.get_context("spawn").Process(target=keep_busy, daemon=True)
    if asked.busy:
        other.start()
    connect()
    head = ["", "partitions", "s", "over one", "expected", "windows", "events each", "µs each", "waited"]
    for name in names:
        show(name, [head, *measured(name, asked.partitions, asked.repeats)])
    close()
    if asked.busy:
        other.kill()


if __name__ == "__main__":
    main()
