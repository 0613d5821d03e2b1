"""What theory says of schedulers of DAG jobs: Theorem 3.1 of Carbyne, the properties of DRF, bounds and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.scheduler import Scheduler
from actors.schedulers.dags.carbyne import CARBYNE
from actors.schedulers.dags.drf import CPM, DRF, FAIR
from clusters.cluster import build_cluster
from tests.actors.dag_emulations import ALL, ends_of_all_orders, run
from workloads.dags import DagWorkload, make_dag_workload

Job = tuple[list[int], list[int], list[tuple[int, int]]]


@st.composite
def jobs_of_one_core(draw: st.DrawFn) -> Job:
    """Stages of one core a task: numbers of tasks, durations in seconds, edges."""
    tasks = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    pairs = [(i, j) for j in range(len(tasks)) for i in range(j)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=6)) if pairs else []
    return tasks, [draw(st.integers(1, 4)) for _ in tasks], edges


def alone_s(job: Job, cores: int) -> int:
    """Return how long a job takes if it has so many cores for itself, second by second; stages go in their order."""
    tasks, durations, edges = job
    left, running, t = list(tasks), [], 0
    while any(left) or running:
        running = [(stage, end) for stage, end in running if end > t]
        busy = {stage for stage, _ in running} | {stage for stage, count in enumerate(left) if count > 0}
        for stage in range(len(tasks)):
            if all(parent not in busy for parent, child in edges if child == stage):
                count = min(cores - len(running), left[stage])
                running += [(stage, t + durations[stage])] * count
                left[stage] -= count
        t += 1
    return t - 1


def workload_of(jobs: list[Job]) -> DagWorkload:
    stages = [stage for job in jobs for stage in zip(*job[:2], strict=True)]
    return make_dag_workload(
        "w",
        [0] * len(jobs),
        [len(job[0]) for job in jobs],
        [tasks for tasks, _ in stages],
        np.repeat([duration for _, duration in stages], [tasks for tasks, _ in stages]),
        [(i, *edge) for i, job in enumerate(jobs) for edge in job[2]],
        cpu_cores=[1] * len(stages),
    )


@pytest.mark.slow("many drawn cases")
@settings(max_examples=80, deadline=None)
@given(
    st.lists(jobs_of_one_core(), min_size=1, max_size=4),
    st.integers(1, 4),
    st.sampled_from(["none", "srtf"]),
)
def test_altruism_ends_no_job_later_than_its_share_would(jobs: list[Job], cores: int, leftover: str) -> None:
    """Theorem 3.1: offline a job ends no later than if it used all of its share from the start.

    Every job's share is so many cores, of which its tasks take one each: the share is divisible without loss. Shares
    rise as jobs end, so that jobs may end sooner. Tasks of stages take 1 to 4 s, so that plans leave gaps. With
    leftovers all tasks take 1 s: else a task of another job, begun with what was left over, may still run when a
    planned task must start.
    """
    if leftover == "srtf":
        jobs = [(tasks, [1] * len(tasks), edges) for tasks, _, edges in jobs]
    machine = build_cluster("machine", [cores * len(jobs)], cpu_cores=[cores * len(jobs)])
    ends_s = run(CARBYNE, workload_of(jobs), machine, completion="kept", leftover=leftover).finish_ns / 1e9
    assert (ends_s <= [alone_s(job, cores) for job in jobs]).all()


def shares_at_once(demands: list[dict[str, float]], scheduler: Scheduler = DRF) -> list[int]:
    """Return how many tasks of each job run at first on a machine of 9 cores and 18 units of memory."""
    workload = make_dag_workload(
        "w",
        [0] * len(demands),
        [1] * len(demands),
        [18] * len(demands),
        [1] * 18 * len(demands),
        [],
        demands={name: [demand[name] for demand in demands] for name in demands[0]},
    )
    outcome = run(scheduler, workload, build_cluster("machine", [18], cpu_cores=[9]))
    assert outcome.tasks is not None
    return [int((outcome.tasks["start_ns"][18 * i : 18 * (i + 1)] == 0).sum()) for i in range(len(demands))]


A, B = {"cpu_cores": 1.0, "memory": 4 / 18}, {"cpu_cores": 3.0, "memory": 1 / 18}


def test_drf_equalises_dominant_shares() -> None:
    """Ghodsi et al., NSDI 2011, section 4.1: three tasks of A, two of B; both have two thirds of their resource."""
    assert shares_at_once([A, B]) == [3, 2]


def test_drf_gives_each_at_least_an_equal_part_of_the_cluster() -> None:
    """Sharing incentive: of half of all A could run 2 tasks (of 4.5 cores and 9 units), B 1."""
    assert all(tasks >= least for tasks, least in zip(shares_at_once([A, B]), (2, 1), strict=True))
    # Equal parts of every resource are what fair sharing gives at first; here it comes to the same for B.
    assert shares_at_once([A, B], FAIR)[1] >= 1


@pytest.mark.parametrize("factor", [1.5, 2.0, 3.0])
def test_drf_does_not_pay_for_saying_that_one_needs_more(factor: float) -> None:
    """Strategy-proofness, on examples: with larger demands than it has, of either resource, A runs no more tasks."""
    truth = shares_at_once([A, B])[0]
    for name in A:
        assert shares_at_once([{**A, name: A[name] * factor}, B])[0] <= truth


def test_drf_leaves_nothing_that_a_task_could_use() -> None:
    """Pareto efficiency: what is free is less than a task of either needs."""
    a, b = shares_at_once([A, B])
    free = {"cpu_cores": 9 - a - 3 * b, "memory": 1 - (4 * a + b) / 18}
    assert all(any(free[name] < job[name] for name in job) for job in (A, B))


def best_average(durations: list[int], job: list[int], edges: list[tuple[int, int]], cores: int) -> float:
    """Return the least average completion of jobs of tasks that need a core each, by trying all orders."""
    all_ends = ends_of_all_orders(durations, [1] * len(durations), edges, cores)
    return min(
        float(np.mean([max(end for end, of in zip(ends, job, strict=True) if of == j) for j in set(job)]))
        for ends in all_ends
    )


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_no_schedule_beats_the_best_of_all(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 6))
    durations = data.draw(st.lists(st.integers(1, 5), min_size=count, max_size=count))
    split = data.draw(st.integers(1, count - 1))
    job = [0] * split + [1] * (count - split)
    pairs = [(i, j) for j in range(count) for i in range(j) if job[i] == job[j]]
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True, max_size=5)) if pairs else []
    cores = data.draw(st.integers(1, 3))
    workload = make_dag_workload(
        "w",
        [0, 0],
        [split, count - split],
        [1] * count,
        durations,
        [(job[i], i - split * job[i], j - split * job[j]) for i, j in edges],
        cpu_cores=[1] * count,
    )
    best = best_average(durations, job, edges, cores)
    results = [run(s, workload, build_cluster("m", [cores], cpu_cores=[cores])) for s in (*ALL, CPM)]
    averages = [float(outcome.finish_ns.mean()) / 1e9 for outcome in results]
    assert min(averages) >= best - 1e-9
    assert min(averages) <= 2 * best
    longest = [0] * count
    for j in range(count):
        longest[j] = durations[j] + max((longest[i] for i, child in edges if child == j), default=0)
    bound = max(max(longest), sum(durations) / cores)
    assert all(outcome.finish_ns.max() / 1e9 >= bound - 1e-9 for outcome in results)
