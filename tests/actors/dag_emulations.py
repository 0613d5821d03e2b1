"""Emulations of DAG jobs in this process, and what holds of each, checked without the engine."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np
from emulations import run_setting

from actors.hosting.outcome import Outcome
from actors.scheduler import Scheduler, resolve_parameters
from actors.schedulers.dags.capacity import CAPACITY
from actors.schedulers.dags.carbyne import CARBYNE
from actors.schedulers.dags.dagps import DAGPS
from actors.schedulers.dags.drf import CPM, DRF, FAIR
from actors.schedulers.dags.heft import HEFT
from actors.schedulers.dags.shortest import SJF, SRTF
from actors.schedulers.dags.tetris import TETRIS, TETRIS_FAIR
from actors.setting import Network, Setting
from clusters.cluster import Cluster, build_cluster
from workloads.catalogue import load_workload
from workloads.dags import DagWorkload, make_dag_workload

ALL = (DRF, FAIR, CPM, CAPACITY, SJF, SRTF, HEFT, TETRIS, TETRIS_FAIR, DAGPS, CARBYNE)


def run(scheduler: Scheduler, workload: DagWorkload, cluster: Cluster, **given: Any) -> Outcome:
    setting = Setting(
        scheduler, resolve_parameters(scheduler, given), workload, cluster, network=Network(0.0)
    )
    return run_setting(setting)


def figure_2() -> DagWorkload:
    """J1: two tasks of 0.04 and three of 0.21 for 1, then one for 0.1. J2: two tasks of 0.29 for 1."""
    return make_dag_workload(
        "figure 2",
        [0, 0],
        [3, 1],
        [2, 3, 1, 2],
        [1, 1, 1, 1, 1, 0.1, 1, 1],
        [(0, 0, 2), (0, 1, 2)],
        cpu_cores=[0.04, 0.21, 0.04, 0.29],
    )


def checked(workload: DagWorkload, nodes: int, outcome: Outcome) -> None:
    """No machine holds more than it has, no task starts before what it waits for has ended, all run as long as said."""
    a, tasks = workload.arrays(), outcome.tasks
    assert tasks is not None
    node, start, end = (tasks[name] for name in ("node", "start_ns", "finish_ns"))
    assert (end - start == a.duration_ns).all()
    assert (np.maximum.reduceat(end, a.first_task[:-1]) == outcome.finish_ns).all()
    assert (np.minimum.reduceat(start, a.first_task[:-1]) >= a.submit_ns).all()
    capacity = np.array([20.0 if name == "cpu_cores" else 1.0 for name in workload.resources])
    demand = a.demand[np.repeat(np.arange(workload.num_stages), np.diff(a.stage_first_task))]
    for machine in range(nodes):
        on = np.flatnonzero(node == machine)
        times, changes = np.append(end[on], start[on]), np.append(-demand[on], demand[on], axis=0)
        held = changes[np.argsort(times, kind="stable")].cumsum(axis=0)  # ends before starts
        assert (held <= capacity * (1 + 1e-6)).all()
    for parent in range(workload.num_stages):
        ends = end[a.stage_first_task[parent] : a.stage_first_task[parent + 1]]
        for edge in range(a.first_child[parent], a.first_child[parent + 1]):
            child = a.child[edge]
            starts = start[a.stage_first_task[child] : a.stage_first_task[child + 1]]
            assert (starts >= (ends if a.edge_one_to_one[edge] else ends.max())).all()


def queries(**options: Any) -> DagWorkload:
    """Return DAG jobs of the generator."""
    workload = load_workload("query-dags", options=options)
    assert isinstance(workload, DagWorkload)
    return workload


def twelve_machines() -> Cluster:
    return build_cluster("machines", [20] * 12, cpu_cores=[20] * 12)


def ends_of_all_orders(
    durations: list[int], needs: list[int], edges: list[tuple[int, int]], room: int
) -> Iterator[list[int]]:
    """Yield when tasks end if each begins as early as it can, in every order that their edges allow."""
    parents = [[i for i, child in edges if child == j] for j in range(len(durations))]
    for order in permutations(range(len(durations))):
        used, ends = [0] * (sum(durations) + 1), [-1] * len(durations)
        for task in order:
            if any(ends[parent] < 0 for parent in parents[task]):
                break
            t = max((ends[parent] for parent in parents[task]), default=0)
            while any(u + needs[task] > room for u in used[t : t + durations[task]]):
                t += 1
            ends[task] = t + durations[task]
            used[t : ends[task]] = [u + needs[task] for u in used[t : ends[task]]]
        else:
            yield ends
