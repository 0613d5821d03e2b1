"""What holds of preemption under all managers of DAG jobs: capacity, books, priorities, partitions; with failures."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from bounded_runs import started, steps
from emulations import KINDS, digest, run_setting, run_windows

from actors.environment import Preemption
from actors.hosting.outcome import Observe
from actors.hosting.partition import Partition
from actors.machines.manager_state import fits_share
from actors.setting import Costs, Dynamics, Network, Setting
from clusters.capacity import demands
from clusters.failures import NODE, Outages
from tests.actors.dag_emulations import ALL
from tests.actors.dag_settings import mixed_dags, setting_of
from workloads.requests import priorities

NAMES = [scheduler.name for scheduler in ALL]
DOWN = Outages(np.full(3, NODE), np.array([0, 1, 3]), np.array([6.0, 7, 9]), np.array([12.0, 13, 15]))
BILLION = 1e9


def setting_with(scheduler: str, how: Preemption, fails: bool = True, seed: int = 5, **given: Any) -> Setting:
    workload = mixed_dags(24, seed=seed, mean_gap_s=0.4, priorities=4)
    setting = setting_of(scheduler, workload, priorities=True, **given)
    dynamics = Dynamics(outages=DOWN, detection_s=0.5) if fails else Dynamics()
    return dataclasses.replace(setting, preemption=how, dynamics=dynamics)


def held_by(setting: Setting, spans: list[tuple[int, int, int, int]]) -> np.ndarray:
    """The most that each machine held of each resource at one time; spans: task, machine, from and to (ns)."""
    a = setting.workload.arrays()
    stage = np.repeat(np.arange(setting.workload.num_stages), np.diff(a.stage_first_task))
    needs = np.rint(demands(setting.workload) * BILLION).astype(np.int64)[stage]
    nodes = setting.cluster.num_nodes
    most = np.zeros((nodes, needs.shape[1]), np.int64)
    for node in range(nodes):
        changes = [(end, 0, -needs[task]) for task, at, _, end in spans if at == node]
        changes += [(begin, 1, needs[task]) for task, at, begin, _ in spans if at == node]
        now = np.zeros(needs.shape[1], np.int64)
        for _, _, change in sorted(changes, key=lambda row: row[:2]):
            now = now + change
            most[node] = np.maximum(most[node], now)
    return most


def spans_of(partition: Partition) -> tuple[list[tuple[int, int, int, int]], dict[str, int]]:
    """All attempts at tasks as machines ran them, from the messages; and how many messages of a kind there were."""
    running: dict[int, tuple[int, int]] = {}
    found, kinds, last = [], dict.fromkeys(KINDS.values(), 0), -1
    world = partition.world
    for _ in steps(partition):
        now = world.queue.now
        if now.key[0] == last:
            continue
        last, kind, t, at = int(now.key[0]), KINDS[int(now.kind[0])], int(now.time[0]), int(now.dst[0])
        kinds[kind] += 1
        if kind == "FAIL":
            for task in [task for task, (node, _) in running.items() if node == at]:
                found.append((task, at, running.pop(task)[1], t))
        task = int(now.a[0])
        if kind == "LAUNCH" and world.faults.tasks.node[task] == at and world.faults.tasks.start[task] == t:
            running[task] = at, t
        elif kind == "STAGE_TASK_END" and running.get(task) == (at, int(now.c[0])):
            if world.faults.tasks.end[task] == t:
                found.append((task, *running.pop(task), t))
        elif kind == "STOP_TASK" and task in running and world.faults.tasks.node[task] == -1:
            found.append((task, *running.pop(task), t))
    assert not running
    return found, kinds


@pytest.mark.parametrize("scheduler", NAMES)
@pytest.mark.parametrize("heartbeat_s", [0.0, 1.5])
def test_machines_never_hold_more_than_they_have(scheduler: str, heartbeat_s: float) -> None:
    """Machines fail, messages take different times and overtake each other, and a scheduler's decisions take time."""
    how = Preemption(keeps=heartbeat_s > 0, cost_s=0.3, most=3)
    network = Network(0.01, spread_s=0.03)
    costs = Costs("fixed", 0.01, 0.05, 0.02)
    for managers in (1, 2):
        setting = setting_with(
            scheduler, how, network=network, costs=costs, managers=managers, heartbeat_s=heartbeat_s
        )
        partition = started(setting)
        capacity = partition.world.machines.capacity
        spans, kinds = spans_of(partition)
        outcome = partition.outcome()
        assert (held_by(setting, spans) <= capacity).all()
        assert (outcome.finish_ns > 0).all()
        assert outcome.evicted is not None
        assert outcome.evicted[0].sum() == outcome.counters["evictions"] > 0
        assert kinds["STOP_TASK"] >= outcome.counters["evictions"]
        # All that machines ran is the tasks, what failures ended, and what was evicted.
        ended = setting.num_tasks + outcome.counters["evictions"] + outcome.counters.get("tasks_lost", 0)
        assert len(spans) == ended


@pytest.mark.parametrize("scheduler", [name for name in NAMES if name != "tetris-fair"])
@pytest.mark.parametrize(("most", "below"), [(1000, None), (2, 3)])
def test_no_task_waits_that_could_evict_others(scheduler: str, most: int, below: int | None) -> None:
    """Whenever all is settled: on no machine is there room, with what lower priorities hold, for a task that may run.

    Under `tetris-fair` jobs that hold more than others may not launch, so that they evict none.
    """
    how = Preemption(most=most, below=below)
    setting = setting_with(scheduler, how, fails=False, network=Network(0.0))
    of_jobs, waited = priorities(setting.workload.jobs), 0
    partition = started(setting)
    w, m = partition.world, partition.state.matcher
    stage_of = w.tasks.stage
    job_of = w.stages.job[stage_of]
    for _ in steps(partition):
        now = w.queue.now
        if KINDS[int(now.kind[0])] != "MATCH" or partition.state.due.any():
            continue
        if now.heap_size[0] and w.queue.heap.time[0] == now.time[0]:
            continue  # the instant goes on
        running, row = np.flatnonzero(w.faults.tasks.node >= 0), w.faults.tasks
        may_go = (row.history[running] >> 20 < most) & (of_jobs[job_of[running]] < (below or 9))
        for stage in np.flatnonzero(w.stages.ready > 0):
            job = w.stages.job[stage]
            for node in range(w.nodes.size):
                here = running[row.node[running] == node]
                stays = ~may_go[row.node[running] == node] | (of_jobs[job_of[here]] >= of_jobs[job])
                if scheduler == "capacity":
                    stays |= m.queue[job_of[here]] != m.queue[job]
                held = w.stages.demand[stage_of[here[stays]]].sum(axis=0)
                room = w.machines.capacity[node] - held
                assert (w.stages.demand[stage] > room).any(), (stage, node)
                waited += len(here) > stays.sum()
    assert waited > 10
    assert partition.outcome().counters["evictions"] > 10


@pytest.mark.parametrize("seed", [7, 24, 38])
def test_what_fits_its_guarantee_and_a_machine_does_not_wait_after_an_eviction(seed: int) -> None:
    setting = setting_with(
        "capacity", Preemption(), fails=False, seed=seed, network=Network(0.0), leftover="none"
    )
    partition = started(setting)
    w, m, now = partition.world, partition.state.matcher, partition.world.queue.now
    for _ in steps(partition):
        if KINDS[int(now.kind[0])] != "MATCH" or partition.state.due.any():
            continue
        if now.heap_size[0] and w.queue.heap.time[0] == now.time[0]:
            continue  # the instant goes on
        for stage in np.flatnonzero(w.stages.ready > 0):
            if fits_share(w, m, w.stages.job[stage], stage):
                assert not any((w.stages.demand[stage] <= free).all() for free in w.machines.free)
    assert partition.outcome().counters["evictions"] > 5


@pytest.mark.parametrize("scheduler", NAMES)
@pytest.mark.parametrize("heartbeat_s", [0.0, 1.5])
def test_partitions_do_not_change_who_is_evicted(scheduler: str, heartbeat_s: float) -> None:
    how = Preemption(keeps=True, cost_s=0.3, most=3, below=3, oldest_first=heartbeat_s > 0)
    setting = setting_with(
        scheduler,
        how,
        network=Network(0.01, spread_s=0.02),
        costs=Costs("fixed", 0.01, 0.05, 0.02),
        managers=3 if heartbeat_s == 0 else 1,
        heartbeat_s=heartbeat_s,
    )
    one, several = (run_windows(setting, Observe(tasks=True), partitions) for partitions in (1, 3))
    assert one.counters["evictions"] > 5
    assert one.counters["tasks_lost"] > 0
    assert one.attempts.size > 10
    assert digest(one) == digest(several)  # tasks, counters, evictions and attempts


@pytest.mark.parametrize("scheduler", ["drf", "carbyne"])
def test_what_stragglers_have_done_is_kept_in_parts_of_their_own_length(scheduler: str) -> None:
    how = Preemption(keeps=True, most=1)
    setting = setting_with(scheduler, how, fails=False, network=Network(0.0))
    slow = Dynamics(straggler_share=0.3, straggler_slowdown=3.0)
    found = run_setting(dataclasses.replace(setting, dynamics=slow))
    assert found.counters["evictions"] > 5
    assert found.counters["stragglers"] > 5
    assert found.evicted is not None
    assert found.evicted[1].sum() == 0  # nothing is lost with a checkpoint that costs nothing
