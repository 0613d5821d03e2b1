"""Priorities of DAG jobs: examples by hand, and that no task goes before one of a higher priority that fits."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bounded_runs import started, steps
from emulations import run_setting, run_windows

from actors.hosting.outcome import Observe, Outcome
from actors.setting import Costs, Dynamics, Network
from clusters.capacity import capacities, demands
from clusters.cluster import build_cluster
from clusters.failures import NODE, Outages
from tests.actors.dag_emulations import ALL
from tests.actors.dag_settings import mixed_dags, setting_of, three_priorities, unlike_machines
from workloads.dags import DagWorkload, make_dag_workload
from workloads.requests import Requests

NO_DELAY = Network(0.0)
BILLION = 1e9


def starts_s(outcome: Outcome) -> list[float]:
    assert outcome.tasks is not None
    return (outcome.tasks["start_ns"] / 1e9).tolist()


@pytest.mark.parametrize("scheduler", [scheduler.name for scheduler in ALL])
def test_the_higher_priority_goes_first_and_the_lower_gets_what_is_left(scheduler: str) -> None:
    """Two cores, for the jobs of `three_priorities`.

    At 4 s J1 has both cores, until 7 s; then it has both for a second. At 8 s J2 has a core, and J0 what is left.
    All of this follows from the priorities alone, whatever the scheduler's own order is.
    """
    jobs = three_priorities()
    machine = build_cluster("machine", [2], cpu_cores=[2])
    setting = setting_of(scheduler, jobs, machine, network=NO_DELAY, priorities=True)
    assert starts_s(run_setting(setting)) == [0, 0, 8, 10, 4, 4, 7, 8]


def test_a_lower_priority_takes_the_room_in_which_no_higher_one_fits() -> None:
    """Three cores: J0 has one until 4 s. J1, of the higher priority, needs three, and J2 takes the two meanwhile."""
    jobs = make_dag_workload(
        "by hand", [0, 1, 1], [1, 1, 1], [1, 1, 3], [4, 1, 2, 2, 2], [], cpu_cores=[1, 3, 1],
        requests=Requests(priority=[0, 9, 1]),
    )  # fmt: skip
    machine = build_cluster("machine", [3], cpu_cores=[3])
    for scheduler in ("drf", "sjf", "tetris", "carbyne"):
        setting = setting_of(scheduler, jobs, machine, network=NO_DELAY, priorities=True)
        assert starts_s(run_setting(setting)) == [0, 5, 1, 1, 3]


def test_jobs_share_what_the_jobs_of_higher_priorities_leave() -> None:
    """Four cores. J0 has two for 10 s; J1 and J2, below it, have a share of one each, and run their tasks in turn.

    At 10 s each may have two.
    """
    jobs = make_dag_workload(
        "by hand", [0, 0, 0], [1, 1, 1], [2, 12, 4], [10.0] * 2 + [4.0] * 12 + [4.0] * 4, [],
        cpu_cores=[1, 1, 1], requests=Requests(priority=[1, 0, 0]),
    )  # fmt: skip
    machine = build_cluster("machine", [4], cpu_cores=[4])
    for scheduler in ("drf", "fair-dags"):
        setting = setting_of(scheduler, jobs, machine, network=NO_DELAY, priorities=True, leftover="none")
        starts = starts_s(run_setting(setting))
        assert starts[2:6] == [0, 4, 8, 10]
        assert starts[14:] == [0, 4, 8, 10]


def test_guarantees_of_queues_hold_whatever_the_priorities() -> None:
    """Two cores, half for each tenant. The jobs of b have the larger priorities; a has its half all the same.

    Inside the queue of a J1 goes before J0, although it came later.
    """
    jobs = make_dag_workload(
        "by hand", [0, 0, 0], [1, 1, 1], [2, 2, 4], [1.0] * 8, [], cpu_cores=[1, 1, 1],
        tenant=["a", "a", "b"], requests=Requests(priority=[1, 2, 9]),
    )  # fmt: skip
    machine = build_cluster("machine", [2], cpu_cores=[2])
    setting = setting_of("capacity", jobs, machine, network=NO_DELAY, priorities=True)
    assert starts_s(run_setting(setting)) == [2, 3, 0, 1, 0, 1, 2, 3]


def inversions(workload: DagWorkload, outcome: Outcome, managers: int = 1) -> tuple[int, int]:
    """Return how often a task waited while one of a lower priority started, and how often it could have run instead.

    Instead: beside all that its machine holds at that time, but for the task that started. It is read off the times of
    tasks, by a program that shares nothing with the scheduler.
    """
    a, tasks = workload.arrays(), outcome.tasks
    assert tasks is not None
    start, finish, node = (tasks[name] for name in ("start_ns", "finish_ns", "node"))
    job = np.repeat(np.arange(workload.num_jobs), np.diff(a.first_task))
    stage = np.repeat(np.arange(workload.num_stages), np.diff(a.stage_first_task))
    priority = np.array(workload.jobs["priority"].to_pylist())[job]
    needs = np.rint(demands(workload) * BILLION).astype(np.int64)[stage]
    has = np.rint(capacities(unlike_machines(), workload.resources) * BILLION).astype(np.int64)
    runnable = a.submit_ns[job].copy()
    for child in range(workload.num_stages):
        own = slice(a.stage_first_task[child], a.stage_first_task[child + 1])
        for edge in range(a.first_parent[child], a.first_parent[child + 1]):
            parent = a.parent[edge]
            ends = finish[a.stage_first_task[parent] : a.stage_first_task[parent + 1]]
            runnable[own] = np.maximum(runnable[own], ends if a.parent_one_to_one[edge] else ends.max())
    waited = instead = 0
    for task in range(start.size):
        at = start[task]
        above = (priority > priority[task]) & (runnable <= at) & (start > at)
        above &= job % managers == job[task] % managers
        held = (node == node[task]) & (start <= at) & (finish > at)
        held[task] = False
        room = has[node[task]] - needs[held].sum(axis=0)
        waited += int(above.sum())
        instead += int((needs[above] <= room).all(axis=1).sum())
    return waited, instead


@pytest.mark.parametrize(
    ("scheduler", "given"),
    [
        *((scheduler.name, {}) for scheduler in ALL if scheduler.name not in ("capacity", "tetris-fair")),
        ("drf", {"leftover": "packing"}),
        ("drf", {"managers": 2}),
        ("carbyne", {"altruism": 0.5, "packing": "dagps"}),
        ("carbyne", {"completion": "kept", "leftover": "packing"}),
    ],
)
def test_no_task_goes_before_one_of_a_higher_priority_that_fits(
    scheduler: str, given: dict[str, Any]
) -> None:
    """What is left over goes to some job under all of these: else shares, plans or `fairness` may leave room."""
    ignored = 0
    for seed in range(3):
        workload = mixed_dags(18, seed=seed, mean_gap_s=0.5, priorities=3)
        setting = setting_of(scheduler, workload, network=NO_DELAY, priorities=True, **given)
        managers = given.get("managers", 1)
        waited, instead = inversions(workload, run_setting(setting), managers)
        assert waited > 200
        assert instead == 0
        plain = run_setting(dataclasses.replace(setting, priorities=False))
        ignored += inversions(workload, plain, managers)[1]
    assert ignored > 200  # the judge finds them where priorities do not count


@pytest.mark.parametrize("scheduler", ["drf", "tetris-fair", "capacity", "carbyne"])
@pytest.mark.parametrize("heartbeat_s", [0.0, 1.5])
def test_priorities_in_any_number_of_partitions_with_failures(scheduler: str, heartbeat_s: float) -> None:
    number = np.array([0, 1, 3])
    down = Outages(np.full(3, NODE), number, 6.0 + number, 12.0 + number)
    setting = setting_of(
        scheduler,
        mixed_dags(24, seed=5, mean_gap_s=0.5, priorities=4),
        network=Network(0.01, spread_s=0.02),
        costs=Costs("fixed", 0.01, 0.05, 0.02),
        priorities=True,
        managers=2,
        heartbeat_s=heartbeat_s,
    )
    setting = dataclasses.replace(setting, dynamics=Dynamics(outages=down, detection_s=0.5))
    one, several = (run_windows(setting, Observe(tasks=True), partitions) for partitions in (1, 3))
    assert one.counters["tasks_lost"] > 0
    assert (one.finish_ns > 0).all()
    assert one.tasks is not None
    assert several.tasks is not None
    assert all((one.tasks[name] == several.tasks[name]).all() for name in one.tasks)
    assert one.counters == several.counters


@pytest.mark.parametrize("scheduler", ["fair-dags", "capacity", "dagps", "carbyne"])
def test_equal_priorities_change_nothing(scheduler: str) -> None:
    workload = mixed_dags(16, mean_gap_s=0.5, priorities=2)
    at = workload.jobs.column_names.index("priority")
    sevens = pa.array(np.full(workload.num_jobs, 7))
    alike = workload.jobs.set_column(at, workload.jobs.schema.field(at), sevens)
    equal = setting_of(scheduler, dataclasses.replace(workload, jobs=alike), priorities=True)
    one, other = (run_setting(dataclasses.replace(equal, priorities=on)) for on in (True, False))
    assert starts_s(one) == starts_s(other)


def test_an_event_sends_no_more_messages_than_there_is_room_for() -> None:
    """80 priorities on one machine, and each job's plan says that its short task starts later: one alarm for all."""
    jobs = make_dag_workload(
        "alarms", [0.0] * 80, [2] * 80, [1] * 160, [10.0, 2.0] * 80, [], cpu_cores=[1] * 160,
        requests=Requests(priority=np.arange(80)),
    )  # fmt: skip
    machine = build_cluster("machine", [4], cpu_cores=[4])
    partition = started(setting_of("carbyne", jobs, machine, network=NO_DELAY, priorities=True))
    before = most = 0
    for _ in steps(partition):
        queue = partition.world.queue
        most, before = max(most, queue.now.heap_size[0] - before), queue.now.heap_size[0]
    assert 0 < most < queue.room
