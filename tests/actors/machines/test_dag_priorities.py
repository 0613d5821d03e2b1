"""Priorities of DAG jobs: no task goes before one of a higher priority that fits."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bounded_runs import started, steps
from emulations import run_setting

from actors.hosting.outcome import Outcome
from actors.setting import Network
from clusters.capacity import capacities, demands
from clusters.cluster import build_cluster
from tests.actors.dag_emulations import ALL
from tests.actors.dag_settings import mixed_dags, setting_of, unlike_machines
from workloads.dags import DagWorkload, make_dag_workload
from workloads.requests import Requests

NO_DELAY = Network(0.0)
BILLION = 1e9


def starts_s(outcome: Outcome) -> list[float]:
    assert outcome.tasks is not None
    return (outcome.tasks["start_ns"] / 1e9).tolist()


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
