"""When Carbyne plans a job again: where its share gives it another plan, or with every event; counts of plans."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.hosting.partition import Observe, Partition
from actors.machines.carbyne_plan import is_other_room, plan
from actors.scheduler import resolve_parameters
from actors.schedulers.dags.carbyne import CARBYNE
from actors.setting import Network, Setting
from clusters.cluster import Cluster, build_cluster
from workloads.dags import DagWorkload, make_dag_workload

PARTS = 1000  # of a core and of the memory, in which shares and demands are drawn
UNIT = 10**9 // PARTS


def setting_of(workload: DagWorkload, cluster: Cluster, **given: Any) -> Setting:
    return Setting(CARBYNE, resolve_parameters(CARBYNE, given), workload, cluster, network=Network(0.0))


@st.composite
def one_job(draw: st.DrawFn) -> DagWorkload:
    """Stages that need parts of a core and of the memory."""
    count = draw(st.integers(1, 5))

    def numbers(least: int, most: int) -> list[int]:
        return draw(st.lists(st.integers(least, most), min_size=count, max_size=count))

    pairs = [(i, j) for j in range(count) for i in range(j)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=6)) if pairs else []
    tasks, durations = numbers(1, 6), numbers(1, 4)
    return make_dag_workload(
        "w",
        [0],
        [count],
        tasks,
        np.repeat(durations, tasks),
        [(0, *edge) for edge in edges],
        cpu_cores=[need / PARTS for need in numbers(1, 300)],
        demands={"memory": [need / PARTS for need in numbers(0, 300)]},
    )


@pytest.mark.slow("many drawn cases")
@settings(max_examples=200, deadline=None)
@given(
    one_job(),
    st.tuples(st.integers(1, PARTS), st.integers(1, PARTS)),
    st.floats(0, 1),
    st.booleans(),
    st.sampled_from(["renewed", "kept"]),
    st.sampled_from(["tetris", "dagps"]),
)
def test_a_plan_is_the_same_in_all_rooms_for_which_it_is_not_made_again(
    workload: DagWorkload, parts: tuple[int, int], at: float, rises: bool, completion: str, packing: str
) -> None:
    """Wherever in the range that a plan notes: a plan that is made there is the same one."""
    machine = build_cluster("machine", [1], cpu_cores=[1])
    setting = setting_of(workload, machine, completion=completion, packing=packing)
    world, manager = CARBYNE.build(setting)
    p, share = manager.plan, manager.matcher.share

    def planned() -> list[int]:
        p.promise[0] = 2**62
        plan(world, p, 0, share, 0, 0)
        return [*p.must, *p.due]

    share[0] = np.array(parts) * UNIT
    first = planned()
    low, high = p.low[0].copy(), np.minimum(p.high[0], 10**9)
    room = np.maximum(share[0], p.largest[0])
    assert (low <= room).all()
    assert not is_other_room(p, share, 0)
    edge = high if rises else np.maximum(low, 0)
    share[0] = np.rint(room + at * (edge - room)).astype(np.int64)
    if not is_other_room(p, share, 0):  # but for what is below the largest task of the job, it is none
        assert planned() == first


@pytest.mark.parametrize(("cores", "is_other"), [(3.0, False), (3.99, False), (4.0, True), (2.99, True)])
def test_another_number_of_tasks_is_another_plan(cores: float, is_other: bool) -> None:
    """Seven tasks of a core: three at a time have room in a share of 3 cores, as in one of 3.99."""
    workload = make_dag_workload("w", [0], [1], [7], [1.0] * 7, [], cpu_cores=[1])
    world, manager = CARBYNE.build(setting_of(workload, build_cluster("machine", [9], cpu_cores=[9])))
    manager.matcher.share[0] = 3 * 10**9
    plan(world, manager.plan, 0, manager.matcher.share, 0, 0)
    assert manager.plan.must.tolist() == [1]  # of 3, 3 and 1 the plan backward starts with the one
    manager.matcher.share[0] = round(cores * 1e9)
    assert bool(is_other_room(manager.plan, manager.matcher.share, 0)) == is_other


def plans_of(workload: DagWorkload, cluster: Cluster, **given: Any) -> tuple[int, Partition]:
    """Return how many plans a run makes, and the partition at its end."""
    partition = Partition(setting_of(workload, cluster, **given), Observe(tasks=True))
    partition.start()
    assert partition.run(60.0).done
    return int(partition.state.turns.sum()), partition


@pytest.mark.parametrize("jobs", [40, 80, 160])
def test_jobs_at_once_need_few_plans(jobs: int) -> None:
    """Each end of a job changes all shares: planned each time, n jobs would need about n²/2 plans."""
    workload = make_dag_workload(
        "w",
        [0] * jobs,
        [1] * jobs,
        [4] * jobs,
        np.repeat(1 + np.arange(jobs) / jobs, 4),
        [],
        cpu_cores=[1] * jobs,
    )
    plans, _ = plans_of(workload, build_cluster("machine", [jobs], cpu_cores=[jobs]))
    assert jobs <= plans <= jobs * math.log2(jobs)


def test_all_jobs_are_planned_with_each_event_on_request() -> None:
    """Tasks of a second: at each second the jobs that can launch tasks are planned once."""
    tasks, cores = [5, 9, 3, 7, 2, 6], 4
    work = make_dag_workload(
        "w",
        [0, 0, 2],
        [2, 2, 2],
        tasks,
        [1.0] * sum(tasks),
        [(0, 0, 1), (1, 0, 1), (2, 0, 1)],
        cpu_cores=[1] * 6,
    )
    plans, partition = plans_of(work, build_cluster("machine", [cores], cpu_cores=[cores]), replan="events")
    found = partition.outcome().tasks
    assert found is not None
    start, end = (np.split(found[name] // 10**9, np.cumsum(tasks)[:-1]) for name in ("start_ns", "finish_ns"))
    can_start = [0, end[0].max(), 0, end[2].max(), 2, end[4].max()]
    expected = 0
    for second in range(int(end[-1].max()) + 100):
        waits = [can_start[i] <= second and (start[i] >= second).any() for i in range(6)]
        expected += sum(any(waits[i : i + 2]) for i in (0, 2, 4))
    assert plans == expected


def test_a_job_that_waits_is_planned_again_with_events_of_others_on_request() -> None:
    """Each has two cores. Of the first a task of 4 s runs, and one of 1 s is due at 3 s; the other ends two each s."""
    work = make_dag_workload("w", [0, 0], [2, 1], [1, 1, 8], [4.0, *[1.0] * 9], [], cpu_cores=[1] * 3)
    machine = build_cluster("machine", [4], cpu_cores=[4])
    given = {"leftover": "none", "completion": "kept"}
    plans = {replan: plans_of(work, machine, replan=replan, **given)[0] for replan in ("changes", "events")}
    assert plans == {
        "changes": 2 + 4,
        "events": 4 + 4,
    }  # the first at 0 and 3, or each second; the other each second
