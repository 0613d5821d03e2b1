"""Invariants of every scheduler of DAG jobs, checked on small workloads."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from clusters.capacity import capacities, demands
from clusters.cluster import Cluster, build_cluster
from emu.families.jobs.testing import check_result
from emu.families.result_checks import SLACK_S, hold
from emu.results.result import Result
from workloads.arrow import optional_column
from workloads.critical_path import critical_paths_ns
from workloads.dags import DagWorkload, make_dag_workload
from workloads.requests import NOTHING, Requests

if TYPE_CHECKING:
    from actors.scheduler import Scheduler


def check_dags(scheduler: Scheduler, run_twice: Callable[..., Result]) -> None:
    """Check a scheduler of DAG jobs; `run_twice` emulates a case twice, with the arguments of `emu.run`."""
    with tempfile.TemporaryDirectory(prefix="emu-check-") as folder:
        for i, (case, workload, cluster) in enumerate(_cases()):
            file = Path(folder) / f"cluster-{i}.parquet"
            pq.write_table(cluster.table, file)
            check_dag_result(run_twice(case, workload, cluster=file), workload, cluster, case)


def check_dag_result(result: Result, workload: DagWorkload, cluster: Cluster, case: str = "the run") -> None:
    """Check a result with tasks against its workload and cluster; raises as `check_scheduler`.

    Every task runs once, for its duration, after all that it waits for; no machine holds more than it has; no job ends
    before its critical path allows, and no makespan is below the time that all work takes all machines.
    """
    check_result(result, workload, cluster.num_nodes, workload.num_tasks, case)
    start, end, node = (optional_column(result.tasks, name) for name in ("start_s", "finish_s", "node"))
    _check_precedence(workload, start, end, case)
    _check_capacity(workload, cluster, start, end, node.astype(np.int64), case)
    jct, path = optional_column(result.jobs, "jct_s"), critical_paths_ns(workload) / 1e9
    hold(bool((jct >= path - SLACK_S).all()), case, "a job ended before its critical path allows")


def _check_precedence(
    workload: DagWorkload, start: npt.NDArray[Any], end: npt.NDArray[Any], case: str
) -> None:
    a = workload.arrays()
    for stage in range(workload.num_stages):
        own = start[a.stage_first_task[stage] : a.stage_first_task[stage + 1]]
        for edge in range(a.first_parent[stage], a.first_parent[stage + 1]):
            parent = a.parent[edge]
            ends = end[a.stage_first_task[parent] : a.stage_first_task[parent + 1]]
            waits_for = ends if a.parent_one_to_one[edge] else ends.max()
            waited = bool((own >= waits_for - SLACK_S).all())
            hold(waited, case, f"a task of stage {stage} did not wait for its parents")


def _check_capacity(
    workload: DagWorkload,
    cluster: Cluster,
    start: npt.NDArray[Any],
    end: npt.NDArray[Any],
    node: npt.NDArray[np.int64],
    case: str,
) -> None:
    """Check that no machine holds more than it has: ends count before starts of the same time."""
    demand = np.repeat(demands(workload), np.diff(workload.arrays().stage_first_task), axis=0)
    capacity = capacities(cluster, workload.resources)
    for machine in range(cluster.num_nodes):
        on = np.flatnonzero((node == machine) & (end > start))
        times = np.concatenate([end[on] - SLACK_S / 2, start[on]])
        held = np.concatenate([-demand[on], demand[on]])[np.argsort(times, kind="stable")].cumsum(axis=0)
        over = held > capacity[machine] * (1 + 1e-6) + 1e-6
        hold(not over.any(), case, f"machine {machine} held more than it has")


def _cases() -> Iterator[tuple[str, DagWorkload, Cluster]]:
    """Yield name, workload and cluster of small cases, each of which breaks some plausible mistake."""
    two = build_cluster("two machines", [4] * 2, cpu_cores=[4.0] * 2)
    one = make_dag_workload("one", [0.0], [1], [1], [3.0], np.zeros((0, 3), int), cpu_cores=[1.0])
    yield "one job of one task", one, two
    diamond = [(0, 0, 1), (0, 0, 2), (0, 1, 3), (0, 2, 3)]
    tasks = [2, 3, 5, 1]
    durations = np.linspace(1.0, 3.0, sum(tasks))
    yield (
        "a diamond",
        make_dag_workload("diamond", [0.0], [4], tasks, durations, diamond, cpu_cores=[1, 2, 1, 4]),
        two,
    )
    chain = make_dag_workload(
        "chain",
        [0.0, 0.5],
        [3, 1],
        [4, 4, 4, 2],
        [1.0, 2.0, 3.0, 0.0] * 3 + [5.0, 0.1],
        [(0, 0, 1), (0, 1, 2)],
        cpu_cores=[2, 1, 1, 3],
        memory=[0.1, 0.6, 0.2, 0.0],
        edge_kind=["one-to-one", "all-to-all"],
        tenant=["a", "b"],
    )
    yield "one-to-one dependencies, two resources", chain, two
    unlike = build_cluster("unlike machines", [2, 8, 4], cpu_cores=[2.0, 8.0, 4.0])
    yield "many jobs at once on unlike machines", _many(np.zeros(25)), unlike
    yield "jobs that come and go", _many(np.cumsum(np.full(25, 2.0))), unlike
    yield "priorities", _many(np.cumsum(np.full(25, 0.5)), Requests(priority=np.arange(25) % 3)), unlike


def _many(submit_s: npt.NDArray[np.float64], requests: Requests = NOTHING) -> DagWorkload:
    rng = np.random.default_rng(20)
    jobs = submit_s.size
    stages = rng.integers(1, 6, jobs)
    tasks = rng.integers(1, 7, stages.sum())
    edges = [(job, int(rng.integers(stage)), stage) for job in range(jobs) for stage in range(1, stages[job])]
    return make_dag_workload(
        "many",
        submit_s,
        stages,
        tasks,
        rng.exponential(3.0, tasks.sum()),
        edges,
        cpu_cores=rng.choice([0.5, 1.0, 2.0], stages.sum()),
        memory=rng.choice([0.05, 0.1, 0.2], stages.sum()),
        tenant=[f"t{job % 3}" for job in range(jobs)],
        requests=requests,
    )
