"""DAGPS' plans of single jobs: bounds, precedence and capacity, and the best that there is, by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.machines.demands import needs_and_capacity
from actors.scheduler import resolve_parameters
from actors.schedulers.dags.dagps import DAGPS
from actors.schedulers.dags.stage_orders import by_dagps_plan, make_job_plans
from actors.setting import Setting
from clusters.cluster import build_cluster
from tests.actors.dag_emulations import ends_of_all_orders, queries, twelve_machines
from tests.actors.machines.plain_dagps import Job, Stage
from workloads.dags import DagWorkload, make_dag_workload

UNITS = 4  # of a core, so that amounts are exact


def setting_of(workload: DagWorkload, plan_share: float = 1.0) -> Setting:
    cluster = build_cluster("one core", [1], cpu_cores=[1])
    return Setting(DAGPS, resolve_parameters(DAGPS, {"plan_share": plan_share}), workload, cluster)


def setting_of_machines(workload: DagWorkload, plan_share: float) -> Setting:
    return Setting(DAGPS, resolve_parameters(DAGPS, {"plan_share": plan_share}), workload, twelve_machines())


def job(durations: list[int], demands: list[int], edges: list[tuple[int, int]]) -> DagWorkload:
    """Return a job of stages of one task."""
    count = len(durations)
    cores = [demand / UNITS for demand in demands]
    return make_dag_workload(
        "job", [0], [count], [1] * count, durations, [(0, *edge) for edge in edges], cpu_cores=cores
    )


def test_the_long_task_behind_a_short_one_is_planned_first() -> None:
    # Each takes half of the core. B and C take 2 s, A 1 s, then L 4 s. Backward from the end, the longest first: L
    # from 1 to 5, beside it B from 3 and C from 1, and A before L: 5 s, the least, as A and L take as long.
    workload = job([2, 2, 1, 4], [2, 2, 2, 2], [(2, 3)])
    start, _, _, end = make_job_plans(setting_of(workload))
    assert (start / 1e9).tolist() == [3, 1, 0, 1]
    assert (end / 1e9).tolist() == [5, 3, 1, 5]
    assert by_dagps_plan(setting_of(workload)).tolist() == [3, 1, 0, 2]


def test_a_wide_stage_goes_where_the_plan_has_its_last_tasks() -> None:
    # Halves of a core: A has two tasks of 1 s, B one of 2 s, C two of 3 s behind A. The plan has the tasks of A one
    # after the other beside B, until 2, and then C: 5 s.
    workload = make_dag_workload(
        "wide", [0], [3], [2, 1, 2], [1, 1, 2, 3, 3], [(0, 0, 2)], cpu_cores=[0.5] * 3
    )
    assert make_job_plans(setting_of(workload)).end.max() == 5e9
    assert by_dagps_plan(setting_of(workload)).tolist() == [1, 0, 2]


@st.composite
def small_jobs(draw: st.DrawFn) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    count = draw(st.integers(1, 6))
    durations = draw(st.lists(st.integers(1, 9), min_size=count, max_size=count))
    demands = draw(st.lists(st.integers(1, UNITS), min_size=count, max_size=count))
    pairs = [(i, j) for j in range(count) for i in range(j)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=8)) if pairs else []
    return durations, demands, edges


@settings(max_examples=40, deadline=None)
@given(small_jobs())
def test_plans_hold_and_are_near_the_best(
    drawn: tuple[list[int], list[int], list[tuple[int, int]]],
) -> None:
    durations, demands, edges = drawn
    start, _, _, end = (np.round(x / 1e9).astype(int) for x in make_job_plans(setting_of(job(*drawn))))
    assert (end - start).tolist() == durations
    assert start.min() == 0
    assert all(end[parent] <= start[child] for parent, child in edges)
    for t in range(end.max()):
        assert sum(d for d, s, e in zip(demands, start, end, strict=True) if s <= t < e) <= UNITS
    best = min(map(max, ends_of_all_orders(*drawn, UNITS)))
    assert best <= end.max() <= 1.5 * best


@pytest.mark.compiled
def test_plans_are_those_of_a_plain_program() -> None:
    workload = queries(jobs=40, seed=5, tasks_per_job=60)
    a, (demand, capacity) = (
        workload.arrays(),
        needs_and_capacity(setting := setting_of_machines(workload, 0.1)),
    )
    room, tasks = tuple((capacity.sum(axis=0) // 10).tolist()), np.diff(a.stage_first_task)
    lengths = np.maximum.reduceat(make_job_plans(setting).end, a.first_stage[:-1])
    for job in np.flatnonzero(np.diff(a.first_stage) <= 12):
        first, end = a.first_stage[job], a.first_stage[job + 1]
        parents = [a.parent[a.first_parent[s] : a.first_parent[s + 1]] - first for s in range(first, end)]
        rows = zip(tasks[first:end], a.stage_mean_ns[first:end], demand[first:end], parents, strict=True)
        plain = Job(
            [Stage(int(n), int(d), tuple(x.tolist()), tuple(p.tolist())) for n, d, x, p in rows], room
        )
        assert plain.length(plain.best()) == lengths[job]


@pytest.mark.compiled
def test_plans_of_stages_with_many_tasks_respect_critical_path_and_work() -> None:
    workload = queries(jobs=20, seed=3)
    a = workload.arrays()
    start, _, _, end = make_job_plans(setting_of_machines(workload, 0.25))
    tasks, room = np.diff(a.stage_first_task), 3 * np.array([20.0, 1, 1, 1, 1, 1])
    parent = np.repeat(np.arange(tasks.size), np.diff(a.first_child))
    assert (end[parent] <= start[a.child]).all()
    assert (end - start >= a.stage_mean_ns).all()
    # Of every stage, and of every job, the work that is done between start and end is at most what there is room for.
    work = a.demand * (a.stage_mean_ns * tasks)[:, None] / room
    assert (work.max(axis=1) <= (end - start) * (1 + 1e-9)).all()
    first = a.first_stage[:-1]
    lengths = np.maximum.reduceat(end, first)
    assert (np.add.reduceat(work, first).max(axis=1) <= lengths * (1 + 1e-9)).all()
    assert (np.minimum.reduceat(start, first) == 0).all()
