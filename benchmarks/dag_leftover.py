"""What Carbyne's jobs would hold and need not: sampled from the resource manager's plans while a run goes on.

At each sample, of a job with tasks to launch: what it would hold if it launched all it may into its share, and what of
that its plan says must run now. The rest could be left to others without a later end (Grandl et al., OSDI 2016,
section 2.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from actors.hosting.outcome import Observe
from actors.hosting.partition import Partition
from benchmarks.measuring import setting_of
from clusters.cluster import load_cluster
from workloads.catalogue import load_workload
from workloads.dags import DagWorkload
from workloads.info.dags import shapes

EVENTS = np.int64(200)
MOST_EVENTS = 1_000_000_000  # a run has far fewer
"""Between two samples."""
PROPERTIES = ("num_stages", "barriers", "depth", "disjoint_paths", "critical_path_s")


class Leftover(NamedTuple):
    """Shares that need not be held, and what they go with."""

    shares: dict[str, tuple[float, float]]  # by resource: median and mean over samples
    correlation: dict[str, float]  # over time, with properties of the jobs that are there


def leftover_shares(seed: int, options: Mapping[str, Any], nodes: int = 100) -> Leftover:
    """Run Carbyne on DAGs of queries, and return what of the resources need not be held."""
    workload = load_workload("query-dags", seed=seed, options=options)
    assert isinstance(workload, DagWorkload)
    setting = setting_of("carbyne", workload, load_cluster("carbyne", nodes), seed=seed)
    partition = Partition(setting, Observe())
    partition.start()
    samples, there = [], []
    with np.errstate(over="ignore"):
        while not partition._step(2**62, EVENTS):
            assert partition.world.queue.now.events[0] < MOST_EVENTS, "no end"
            would, must, jobs = held_now(partition.world, partition.state)
            if jobs.size:
                samples.append((would.sum(axis=0), must.sum(axis=0)))
                there.append(jobs)
    totals, needed = (np.array(column) for column in zip(*samples, strict=True))
    free = np.divide(totals - needed, totals, out=np.full(totals.shape, np.nan), where=totals > 0)
    shares = {
        name: (float(np.nanmedian(free[:, r])), float(np.nanmean(free[:, r])))
        for r, name in enumerate(workload.resources)
    }
    return Leftover(shares, _correlation(workload, (totals - needed).mean(axis=1), there))


def held_now(world: Any, state: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what jobs would hold, what they must, each [K, R] as shares of the cluster, and the jobs [K]."""
    m, plan, total = state.matcher, state.plan, np.maximum(world.machines.total, 1)
    jobs = m.run.jobs[: int(m.run.num_jobs[0])].copy()
    jobs = jobs[m.altruistic[jobs]]
    would, must = np.zeros((2, jobs.size, total.size))
    for i, job in enumerate(jobs.tolist()):
        room = np.maximum(m.share[job], plan.largest[job]).astype(np.float64)
        first, end = world.first_stage[job], world.first_stage[job + 1]
        demand = world.stages.demand[first:end].astype(np.float64)
        running = (demand * plan.packing.running[first:end, None]).sum(axis=0)
        ready = (demand * world.stages.ready[first:end, None]).sum(axis=0)
        would[i] = np.minimum(np.maximum(room, running), running + ready) / total
        must[i] = (
            np.minimum(running + (demand * plan.must[first:end, None]).sum(axis=0), would[i] * total) / total
        )
    return would, must, jobs


def _correlation(workload: DagWorkload, amount: np.ndarray, there: list[np.ndarray]) -> dict[str, float]:
    """Return Pearson's correlation over time of what need not be held with sums and means over the jobs there."""
    found = {}
    for name, values in shapes(workload).items():
        if name in PROPERTIES:
            of_jobs = np.asarray(values, np.float64)
            for how, summary in (("sum", np.sum), ("mean", np.mean), ("std", np.std)):
                over_time = np.array([summary(of_jobs[jobs]) for jobs in there])
                found[f"{name}, {how}"] = float(np.corrcoef(over_time, amount)[0, 1])
    return found
