"""Time of the resource manager for a heartbeat, against how many tasks could be launched.

How to run: ``python -m benchmarks.dag_matching [--pending 10000,50000]``

100 machines of 20 cores with a heartbeat of 3 s, all jobs at once, as many as have so many tasks without parents. CPU
time of the handler of a heartbeat (``cost.model=measured``): of the first heartbeats, in which machines are filled, and
of those after. Carbyne's paper has 18 ms for Tetris in YARN with 10,000 pending tasks, and 2 and 4 ms more for Carbyne
with 10,000 and 50,000 (section 5.3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from actors.hosting.outcome import Observe
from actors.hosting.partition import Partition
from actors.machines.messages import FREE
from actors.setting import Costs
from benchmarks.measuring import options, setting_of, show
from clusters.cluster import load_cluster
from workloads.catalogue import load_workload
from workloads.dags import DagWorkload

NODES, EVENTS = 100, np.int64(1_000)
ROUNDS = 20
MOST_EVENTS = 1_000_000_000  # a run has far fewer
"""Heartbeats of each machine that are counted."""


class Times(NamedTuple):
    """Of the handler of a heartbeat, ms; and how many tasks could be launched in the mean."""

    first: float
    mean: float
    p99: float
    pending: float


def times_of(scheduler: str, jobs: int) -> Times:
    """Run the first heartbeats of so many jobs."""
    workload = load_workload("query-dags", seed=1, options={"jobs": jobs, "arrivals": "at-once"})
    assert isinstance(workload, DagWorkload)
    cluster = load_cluster("carbyne", NODES)
    setting = setting_of(scheduler, workload, cluster, {"heartbeat_s": 3.0}, costs=Costs("measured"))
    partition = Partition(setting, Observe())
    partition.start()
    pending, beats = [], np.zeros(0)
    with np.errstate(over="ignore"):
        while beats.size < ROUNDS * NODES and not partition._step(2**62, EVENTS):
            assert partition.world.queue.now.events[0] < MOST_EVENTS, "no end"
            pending.append(int(partition.world.stages.ready.sum()))
            log = partition.world.cost.log[: int(partition.world.cost.handler.recorded[0])]
            beats = np.asarray(log.cost[log.kind == FREE]) / 1e6
    later = beats[NODES:]
    return Times(
        float(beats[:NODES].mean()),
        float(later.mean()),
        float(np.percentile(later, 99)),
        float(np.mean(pending)),
    )


def jobs_for(pending: int) -> int:
    """Return how many jobs have about so many tasks without parents."""
    workload = load_workload("query-dags", seed=1, options={"jobs": 250, "arrivals": "at-once"})
    assert isinstance(workload, DagWorkload)
    arrays = workload.arrays()
    roots = np.diff(arrays.stage_first_task)[np.diff(arrays.first_parent) == 0].sum()
    return max(round(250 * pending / roots), 1)


def main() -> None:
    """Print the table."""
    asked = options(__doc__, pending=(10_000, 50_000), schedulers=("drf", "tetris", "carbyne", "dagps"))
    rows = [["scheduler", "jobs", "pending tasks", "first (ms)", "mean (ms)", "p99 (ms)"]]
    for pending in asked.pending:
        jobs = jobs_for(pending)
        for name in asked.schedulers:
            t = times_of(name, jobs)
            rows.append(
                [name, str(jobs), f"{t.pending:,.0f}", f"{t.first:.3f}", f"{t.mean:.3f}", f"{t.p99:.3f}"]
            )
    show("CPU time of a heartbeat", rows)


if __name__ == "__main__":
    main()
