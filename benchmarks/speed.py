"""Speed: engine time on one core, without loading, set-up and compiling.

How to run: `python -m benchmarks.speed [SECTION...] [--schedulers a,b] [--repeats 3] [--tasks N]`
For debugging: `--tasks 100000 --repeats 1`
Without sections, `jobs`. `--tasks` is the size of generated workloads, about. Runs of schedulers take turns. Sections:

- ``jobs``: tasks a second on 15,000 nodes, beside a bare heapq loop in plain Python, on GOOG_subtrace and on 5,000,000
  generated tasks. The ratio to the bare loop is what counts when machines differ; targets are of a 2-core machine.
- ``nodes``: 10,000,000 tasks at constant load on 15,000, 150,000 and 1,000,000 nodes, each run in a process of its own.
  Targets: a process within 120 s and 6 GiB; time per task 2.2 and 4 times that at 15,000 nodes at most.
- ``own``: probing schedulers in plain Python, CPU time, beside the built-in ones; 1,000,000 tasks.
- ``events``: what recording events costs, CPU time over that without, and the time to write `events.parquet`.
- ``coflows``: the Facebook trace; ``coflows-900``: six copies of it, each on 150 ports of its own; ``coflows-15000``:
  50,000 generated coflows between 15,000 ports, 200 flows each.
- ``dags``: 7,000 MapReduce jobs with 650,000 tasks over six hours, 3,000 machines, of which few are busy; where jobs
  contend: ``dags-contended``, the same on 95 machines, and ``dags-at-once``, the same with all jobs at time 0 on 3,000;
  ``dags-10000``: 30,000 DAGs with 3,000,000 tasks at half load, 10,000 machines, matching on events; ``chain``: one job
  of 10,000 stages, one after the other. CPU time, one run each.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from actors.hosting.partition import Observe
from actors.hosting.recording import Recording
from actors.schedulers.registry import scheduler_names
from actors.setting import Network
from benchmarks.bare_loop import bare_sparrow
from benchmarks.coflow_runs import TRACE, workload_of
from benchmarks.measuring import (
    SHARED,
    engine_times,
    in_turn,
    run_engine,
    run_python,
    run_sections,
    setting_of,
    show,
    verdict,
)
from clusters.cluster import Cluster, load_cluster
from emu import disk
from emu.families.dags.plan import at_load, slots_equal_to
from emu.results.events import SCHEMA, batches
from examples.pigeon import Pigeon
from examples.probing_schedulers import Hawk, RefusesBehindLong, Sparrow
from workloads.catalogue import load_workload
from workloads.dags import DagWorkload, make_dag_workload
from workloads.jobs import JobWorkload

NODES = 15_000
TARGETS = {
    "sparrow": 1_000_000,
    "hawk": 800_000,
    "eagle": 600_000,
    "central-lwl": 300_000,
    "dist-lwl": 300_000,
}
"""Tasks a second."""
BARE_TASKS = 200_000
"""The bare loop runs the first jobs of a workload, up to about so many tasks."""
RATIOS = {15_000: 1.0, 150_000: 2.2, 1_000_000: 4.0}
"""Of the time per task to that of the first, at most, by nodes."""
ON_NODES = """
import json, sys
from actors.hosting.partition import peak_rss_mb
from benchmarks.measuring import engine_times, setting_of
from workloads.catalogue import load_workload
name, nodes, tasks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
options = {"jobs": tasks // 40, "nodes": nodes, "load": 0.8, "max_tasks": 2 * tasks}
workload = load_workload("yahoo", seed=0, options=options)
wall_s = engine_times(setting_of(name, workload, nodes)).wall_s
print(json.dumps([wall_s, 1e6 * wall_s / workload.num_tasks, peak_rss_mb() / 1024]))
"""
COFLOWS_S = {
    "fifo": 3, "scf": 3, "ncf": 3, "lcf": 3, "sebf": 3, "sincronia": 3, "aalo": 3, "aalo-oracle": 3, "philae": 3,
    "saath": 5, "pfp": 5, "fair": 8,
}  # fmt: skip
"""Seconds of wall time that a run on the trace may take."""


def yahoo(tasks: int) -> JobWorkload:
    """A generated workload of about so many tasks, of which a job has about 40."""
    workload = load_workload("yahoo", seed=0, options={"jobs": max(tasks // 40, 8), "nodes": NODES})
    assert isinstance(workload, JobWorkload)
    return workload


def wall_s(scheduler: str, workload: Any) -> float:
    """Seconds of a run on 15,000 nodes."""
    return engine_times(setting_of(scheduler, workload, NODES)).wall_s


def bare_s(workload: JobWorkload) -> float:
    """Seconds that the bare loop would take for a workload, by its first jobs."""
    arrays = workload.arrays()
    jobs = max(int((arrays.first_task <= BARE_TASKS).sum()) - 1, 1)
    first = arrays.first_task[: jobs + 1].tolist()
    duration = (arrays.duration_ns[: first[-1]] / 1e9).tolist()
    tasks = [duration[a:b] for a, b in itertools.pairwise(first)]
    begin = time.perf_counter()
    bare_sparrow((arrays.submit_ns[:jobs] / 1e9).tolist(), tasks, NODES)
    return (time.perf_counter() - begin) * workload.num_tasks / len(duration)


def jobs(asked: argparse.Namespace) -> None:
    """Tasks a second beside the bare loop."""
    trace = SHARED / "traces" / "GOOG_subtrace.tr"
    traces = [load_workload(trace)] if trace.exists() else []
    for workload in (*traces, yahoo(asked.tasks or 5_000_000)):
        measures = {"bare loop": partial(bare_s, workload)}
        measures |= {name: partial(wall_s, name, workload) for name in asked.schedulers or TARGETS}
        rows = [["", "median", "best", "target", "x bare loop", "tasks/s"]]
        bare = 0.0
        for name, found in in_turn(asked.repeats, measures).items():
            speeds = [workload.num_tasks / seconds for seconds in found]
            median, target = statistics.median(speeds), TARGETS.get(name)
            bare = bare or median
            figures = [
                f"{median:,.0f}",
                f"{max(speeds):,.0f}",
                f"{target:,}" if target else "",
                f"{median / bare:.1f}",
            ]
            rows.append([name, *figures, verdict(median, least=target)])
        show(
            f"{workload.name}: {workload.num_jobs:,} jobs, {workload.num_tasks:,} tasks, {NODES:,} nodes",
            rows,
        )


def nodes(asked: argparse.Namespace) -> None:
    """Time per task by the number of nodes."""
    tasks = asked.tasks or 10_000_000
    for name in asked.schedulers or ("sparrow", "eagle"):
        each_us: dict[int, list[float]] = {size: [] for size in RATIOS}
        rows = [["nodes", "engine s", "process s", "", "GiB", "", "µs/task", "ratio", "limit", ""]]
        for _ in range(asked.repeats):
            figures = {}
            for size in RATIOS:
                begin = time.perf_counter()
                engine_s, us, gib = json.loads(run_python(ON_NODES, name, size, tasks))
                whole_s = time.perf_counter() - begin
                limits = [verdict(whole_s, 120.0), verdict(gib, 6.0)]
                figures[size] = [f"{engine_s:.1f}", f"{whole_s:.1f}", limits[0], f"{gib:.2f}", limits[1]]
                each_us[size].append(us)
        for size, limit in RATIOS.items():
            # Ratios within a round: other work on the machine then falls on both alike.
            ratio = statistics.median(a / b for a, b in zip(each_us[size], each_us[NODES], strict=True))
            median_us = statistics.median(each_us[size])
            own = [f"{median_us:.2f}", f"{ratio:.2f}", f"{limit}", verdict(ratio, limit)]
            rows.append([f"{size:,}", *figures[size], *own])
        show(f"{name}, load 0.8, {tasks:,} tasks", rows)


def own(asked: argparse.Namespace) -> None:
    """Schedulers in plain Python: tasks a second, and calls to Python."""
    workload = yahoo(asked.tasks or 1_000_000)
    pairs = {"sparrow": Sparrow, "hawk": Hawk, "eagle": RefusesBehindLong, "": Pigeon}
    both = [one for pair in pairs.items() for one in pair if one]
    settings = {str(one): setting_of(one, workload, NODES) for one in both}
    measures = {name: partial(engine_times, setting) for name, setting in settings.items()}
    rows = [["", "tasks/s", "target", "", "calls of Python"]]
    for name, found in in_turn(asked.repeats, measures).items():
        speed = workload.num_tasks / statistics.median(times.cpu_s for times in found)
        target = None if name in pairs else 50_000
        calls = found[0].progress.asked
        figures = [f"{speed:,.0f}", f"{target or ''}", verdict(speed, least=target)]
        rows.append([settings[name].scheduler.name, *figures, f"{calls.times:,}" if calls else ""])
    show(f"{workload.num_tasks:,} tasks of {workload.num_jobs:,} jobs on {NODES:,} nodes", rows)


def events(asked: argparse.Namespace) -> None:
    """Runs whose events are recorded, all or those of 20 jobs, over runs without."""
    workload = yahoo(asked.tasks or 1_000_000)
    rows = [["", "tasks", "rows", "engine s", "all", "20 jobs", "write s", "MB", ""]]
    for name in asked.schedulers or ("sparrow", "hawk", "eagle", "central-lwl"):
        setting = setting_of(name, workload, NODES)
        with tempfile.TemporaryDirectory() as folder:
            every, few = Recording(Path(folder) / "all"), Recording(Path(folder) / "few", tuple(range(20)))
            for recording in (every, few):
                recording.folder.mkdir()
            recordings = {"plain": None, "all": every, "few": few}
            measures = {
                key: partial(engine_times, setting, Observe(events=r)) for key, r in recordings.items()
            }
            found = in_turn(asked.repeats, measures)
            begin, path = time.process_time(), Path(folder) / "events.parquet"
            disk.write_batches(path, SCHEMA, batches(every, setting, None))
            written = [f"{time.process_time() - begin:.2f}", f"{os.path.getsize(path) / 1e6:.0f}"]
            recorded = disk.num_rows(path)
        plain_s = [times.cpu_s for times in found["plain"]]
        ratios = [
            statistics.median(
                times.cpu_s / first_s for times, first_s in zip(found[key], plain_s, strict=True)
            )
            for key in ("all", "few")
        ]
        medians = [statistics.median(plain_s), *ratios]
        figures = [
            f"{workload.num_tasks:,}",
            f"{recorded:,}",
            *(f"{value:.2f}" for value in medians),
            *written,
        ]
        rows.append([name, *figures, verdict(medians[1], most=2.0)])
    show("engine time with events, over that without", rows)


def measure_coflows(asked: argparse.Namespace, workload: Any, limits_s: dict[str, int]) -> None:
    """Engine time of schedulers of coflows."""
    cluster = load_cluster("homogeneous", workload.num_ports, slots=1)
    names = asked.schedulers or limits_s
    settings = {name: setting_of(name, workload, cluster, network=Network(delay_s=0.0)) for name in names}
    found = in_turn(
        asked.repeats, {name: partial(engine_times, setting) for name, setting in settings.items()}
    )
    rows = [["scheduler", "wall, s", "best", "CPU, s", "limit, s", "", "million flows/s", "events a flow"]]
    for name, each in found.items():
        median_s, limit = statistics.median(times.wall_s for times in each), limits_s.get(name)
        figures = [
            median_s,
            min(times.wall_s for times in each),
            statistics.median(times.cpu_s for times in each),
        ]
        speed = [workload.num_flows / median_s / 1e6, each[0].progress.at.events / workload.num_flows]
        row = [f"{figure:.2f}" for figure in figures] + [f"{limit or ''}", verdict(median_s, limit)]
        rows.append([name, *row, *(f"{figure:.2f}" for figure in speed)])
    show(f"{workload.name}: {workload.num_coflows:,} coflows, {workload.num_flows:,} flows", rows)


def coflows(asked: argparse.Namespace, name: str = "facebook", limits_s: dict[str, int] = COFLOWS_S) -> None:
    """The Facebook trace, or copies of it."""
    if TRACE.exists():
        measure_coflows(asked, workload_of(name), limits_s)
    else:
        print(f"{TRACE} is not there; name its folder with EMU_SHARED")


def coflows_15000(asked: argparse.Namespace) -> None:
    """10 million flows between 15,000 ports."""
    count = (asked.tasks or 10_000_000) // 200
    options = {"ports": NODES, "coflows": count, "mean_width": 200, "max_tasks": 20_000_000}
    large = load_workload("synthetic-coflows", seed=0, options=options)
    measure_coflows(asked, large, {"aalo": 300, "philae": 300})


def generated_dags(
    asked: argparse.Namespace,
    generator: str,
    machines: int,
    options: dict[str, Any],
    load: float | None = None,
) -> None:
    """A line for each scheduler of DAG jobs, on a generated workload that may be brought to a load."""
    workload: Any = load_workload(generator, seed=1, options=options)
    cluster = load_cluster("carbyne", machines)
    if load is not None:
        workload = at_load(workload, slots_equal_to(workload, cluster), load)
    measure_dags(asked, workload, cluster)


def chain(asked: argparse.Namespace) -> None:
    """One job whose stages, of a task of a second each, wait for each other."""
    stages = asked.tasks or 10_000
    edges = [(0, i, i + 1) for i in range(stages - 1)]
    workload = make_dag_workload("chain", [0], [stages], [1] * stages, [1.0] * stages, edges)
    measure_dags(asked, workload, load_cluster("carbyne", 10))


def measure_dags(asked: argparse.Namespace, workload: DagWorkload, cluster: Cluster) -> None:
    """A line for each scheduler of DAG jobs; the time before the run includes plans."""
    rows = [["scheduler", "engine, s", "before, s", "mean JCT, s"]]
    for name in asked.schedulers or scheduler_names("dags"):
        begin = time.process_time()
        with np.errstate(over="ignore"):
            took, partition = run_engine(setting_of(name, workload, cluster))
        before_s = time.process_time() - begin - took.cpu_s
        mean_s = float((partition.outcome().finish_ns - workload.arrays().submit_ns).mean()) / 1e9
        rows.append([name, f"{took.cpu_s:.2f}", f"{before_s:.2f}", f"{mean_s:,.1f}"])
    show(f"{workload.name}: {workload.num_tasks:,} tasks, {cluster.num_nodes:,} machines", rows)


MICROSOFT = {"jobs": 30_000, "mix": "microsoft"}
SECTIONS: dict[str, Callable[[argparse.Namespace], None]] = {
    "jobs": jobs,
    "nodes": nodes,
    "own": own,
    "events": events,
    "coflows": coflows,
    "coflows-900": partial(coflows, name="ports-900", limits_s=dict.fromkeys(COFLOWS_S, 15)),
    "coflows-15000": coflows_15000,
    "dags": partial(generated_dags, generator="facebook-mapreduce", machines=3_000, options={}),
    "dags-contended": partial(generated_dags, generator="facebook-mapreduce", machines=95, options={}),
    "dags-at-once": partial(
        generated_dags, generator="facebook-mapreduce", machines=3_000, options={"arrivals": "at-once"}
    ),
    "dags-10000": partial(
        generated_dags, generator="query-dags", machines=10_000, options=MICROSOFT, load=0.5
    ),
    "chain": chain,
}


def main() -> None:
    """Measure the sections that are asked for."""
    run_sections(__doc__, SECTIONS, ["jobs"], schedulers=tuple, repeats=3, tasks=int)


if __name__ == "__main__":
    main()
