"""Schedulers of DAG jobs: the example of Carbyne's paper, and what holds of every run, checked without the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from actors.scheduler import Scheduler
from actors.schedulers.dags.carbyne import CARBYNE
from actors.schedulers.dags.drf import DRF, FAIR
from actors.schedulers.dags.shortest import SJF
from clusters.cluster import build_cluster
from tests.actors.dag_emulations import ALL, figure_2, queries, run, twelve_machines
from workloads.dags import make_dag_workload


@pytest.mark.parametrize(
    ("scheduler", "given", "ends_s", "starts_s"),
    [
        (FAIR, {"leftover": "none"}, [2.1, 2.0], [0, 0, 0, 0, 1, 2, 0, 1]),
        (DRF, {"leftover": "none"}, [2.1, 2.0], [0, 0, 0, 0, 1, 2, 0, 1]),
        # What is left over starts the third task of S1 at once.
        (FAIR, {}, [1.1, 2.0], [0, 0, 0, 0, 0, 1, 0, 1]),
        # Figure 2c: both tasks of S0 and one of S1 wait, and J2 has all it can use.
        (CARBYNE, {}, [2.1, 1.0], [1, 1, 0, 0, 1, 2, 0, 0]),
        (CARBYNE, {"completion": "kept"}, [2.1, 1.0], [1, 1, 0, 0, 1, 2, 0, 0]),
        (CARBYNE, {"completion": "kept", "leftover": "none"}, [2.1, 2.0], [1, 1, 0, 1, 1, 2, 0, 1]),
        # What is left over of that, 0.21, goes to S0, which comes before S1 in DAGPS' order.
        (CARBYNE, {"packing": "dagps"}, [2.1, 1.0], [0, 0, 0, 1, 1, 2, 0, 0]),
        (CARBYNE, {"leftover_tasks": "in-order"}, [2.1, 1.0], [0, 0, 0, 1, 1, 2, 0, 0]),  # and breadth-first
        (CARBYNE, {"altruism": 0}, [1.1, 2.0], [0, 0, 0, 0, 0, 1, 0, 1]),
        (SJF, {}, [2.1, 1.0], [0, 0, 0, 1, 1, 2, 0, 0]),
    ],
)
def test_the_example_of_the_paper(
    scheduler: Scheduler, given: dict[str, Any], ends_s: list[float], starts_s: list[float]
) -> None:
    outcome = run(scheduler, figure_2(), build_cluster("one machine", [1]), **given)
    assert (outcome.finish_ns / 1e9).tolist() == ends_s
    assert outcome.tasks is not None
    assert (outcome.tasks["start_ns"] / 1e9).tolist() == starts_s


@pytest.mark.compiled
def test_without_altruism_carbyne_is_drf_with_the_same_leftover_part() -> None:
    workload, cluster = queries(jobs=30, mean_gap_s=5.0), twelve_machines()
    one, other = run(CARBYNE, workload, cluster, altruism=0), run(DRF, workload, cluster, leftover="srtf")
    assert one.tasks is not None
    assert other.tasks is not None
    assert all((one.tasks[name] == other.tasks[name]).all() for name in one.tasks)


@pytest.mark.compiled
def test_with_dagps_order_leftovers_follow_it_whatever_else_is_said() -> None:
    workload, cluster = queries(jobs=30, mean_gap_s=5.0), twelve_machines()
    ways = [
        run(CARBYNE, workload, cluster, packing="dagps", leftover_tasks=w) for w in ("largest", "in-order")
    ]
    tasks = [outcome.tasks for outcome in ways if outcome.tasks is not None]
    assert all((tasks[0][name] == tasks[1][name]).all() for name in tasks[0])


@pytest.mark.compiled
def test_no_job_ends_before_its_longest_path_and_no_machine_works_more_than_it_can() -> None:
    workload = queries(jobs=20, arrivals="at-once")
    a = workload.arrays()
    capacity = 12 * np.array([20.0 if name == "cpu_cores" else 1.0 for name in workload.resources])
    work = (a.demand * (a.stage_mean_ns * np.diff(a.stage_first_task))[:, None]).sum(axis=0) / capacity
    for scheduler in ALL:
        outcome = run(scheduler, workload, twelve_machines())
        assert outcome.finish_ns.max() >= work.max()


@pytest.mark.parametrize("scheduler", ALL, ids=lambda scheduler: scheduler.name)
def test_no_room_is_kept_for_a_task_that_does_not_fit_yet(scheduler: Scheduler) -> None:
    """J1 needs both cores, and came first: tasks of J2 have each core that falls free, until none is left."""
    jobs = make_dag_workload(
        "w", [0, 1, 1.25], [1, 1, 1], [1, 1, 6], [3.5, 0.5, *[1.0] * 6], [], cpu_cores=[1, 2, 1]
    )
    outcome = run(scheduler, jobs, build_cluster("one machine", [2], cpu_cores=[2]))
    assert outcome.tasks is not None
    starts_s = (outcome.tasks["start_ns"] / 1e9).tolist()
    assert starts_s == [0, 5.5, 1.25, 2.25, 3.25, 3.5, 4.25, 4.5]


@pytest.mark.parametrize("scheduler", ALL, ids=lambda scheduler: scheduler.name)
def test_a_heartbeat_fills_its_machine(scheduler: Scheduler) -> None:
    """However many tasks that are: more than one event may launch."""
    tasks, cores = 430, [150, 280]
    job = make_dag_workload("wide", [0.0], [1], [tasks], [10.0] * tasks, [], cpu_cores=[1.0])
    cluster = build_cluster("two machines", cores, cpu_cores=[float(c) for c in cores])
    outcome = run(scheduler, job, cluster, heartbeat_s=3.0)
    assert outcome.tasks is not None
    starts_s = (outcome.tasks["start_ns"] / 1e9).round(6)
    for machine, begins_s in ((0, 3.0), (1, 1.5)):  # heartbeats are spread; the first comes before the job
        assert (starts_s[outcome.tasks["node"] == machine] == begins_s).sum() == cores[machine]
