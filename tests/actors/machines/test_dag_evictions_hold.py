"""Whom preemption serves, under all managers of DAG jobs: nothing waits that could evict others."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from bounded_runs import started, steps
from emulations import KINDS, run_setting

from actors.environment import Preemption
from actors.machines.matching import fits_share
from actors.setting import Dynamics, Network, Setting
from tests.actors.dag_emulations import ALL
from tests.actors.dag_settings import mixed_dags, setting_of
from workloads.requests import priorities

NAMES = [scheduler.name for scheduler in ALL]


def setting_with(scheduler: str, how: Preemption, seed: int = 5, **given: Any) -> Setting:
    workload = mixed_dags(24, seed=seed, mean_gap_s=0.4, priorities=4)
    setting = setting_of(scheduler, workload, priorities=True, **given)
    return dataclasses.replace(setting, preemption=how)


@pytest.mark.parametrize("scheduler", [name for name in NAMES if name != "tetris-fair"])
@pytest.mark.parametrize(("most", "below"), [(1000, None), (2, 3)])
def test_no_task_waits_that_could_evict_others(scheduler: str, most: int, below: int | None) -> None:
    """Whenever all is settled: on no machine is there room, with what lower priorities hold, for a task that may run.

    Under `tetris-fair` jobs that hold more than others may not launch, so that they evict none.
    """
    how = Preemption(most=most, below=below)
    setting = setting_with(scheduler, how, network=Network(0.0))
    of_jobs, waited = priorities(setting.workload.jobs), 0
    partition = started(setting)
    w, m = partition.world, partition.state.matcher
    stage_of = w.stages.of_task
    job_of = w.stages.job[stage_of]
    for _ in steps(partition):
        now = w.queue.now
        if KINDS[int(now.kind[0])] != "MATCH" or partition.state.due.any():
            continue
        if now.heap_size[0] and w.queue.heap.time[0] == now.time[0]:
            continue  # the instant goes on
        running, row = np.flatnonzero(w.faults.tasks.node >= 0), w.faults.tasks
        may_go = (row.history[running] >> 20 < most) & (of_jobs[job_of[running]] < (below or 9))
        for stage in np.flatnonzero(w.tasks.ready > 0):
            job = w.stages.job[stage]
            for node in range(w.nodes.size):
                here = running[row.node[running] == node]
                stays = ~may_go[row.node[running] == node] | (of_jobs[job_of[here]] >= of_jobs[job])
                if scheduler == "capacity":
                    stays |= m.queue[job_of[here]] != m.queue[job]
                held = w.tasks.demand[stage_of[here[stays]]].sum(axis=0)
                room = w.machines.capacity[node] - held
                assert (w.tasks.demand[stage] > room).any(), (stage, node)
                waited += len(here) > stays.sum()
    assert waited > 10
    assert partition.outcome().counters["evictions"] > 10


@pytest.mark.parametrize("seed", [7, 24, 38])
def test_what_fits_its_guarantee_and_a_machine_does_not_wait_after_an_eviction(seed: int) -> None:
    setting = setting_with("capacity", Preemption(), seed=seed, network=Network(0.0), leftover="none")
    partition = started(setting)
    w, m, now = partition.world, partition.state.matcher, partition.world.queue.now
    for _ in steps(partition):
        if KINDS[int(now.kind[0])] != "MATCH" or partition.state.due.any():
            continue
        if now.heap_size[0] and w.queue.heap.time[0] == now.time[0]:
            continue  # the instant goes on
        for stage in np.flatnonzero(w.tasks.ready > 0):
            if fits_share(w, m, w.stages.job[stage], stage):
                assert not any((w.tasks.demand[stage] <= free).all() for free in w.machines.free)
    assert partition.outcome().counters["evictions"] > 5


@pytest.mark.parametrize("scheduler", ["drf", "carbyne"])
def test_what_stragglers_have_done_is_kept_in_parts_of_their_own_length(scheduler: str) -> None:
    how = Preemption(keeps=True, most=1)
    setting = setting_with(scheduler, how, network=Network(0.0))
    slow = Dynamics(straggler_share=0.3, straggler_slowdown=3.0)
    found = run_setting(dataclasses.replace(setting, dynamics=slow))
    assert found.counters["evictions"] > 5
    assert found.counters["stragglers"] > 5
    assert found.evicted is not None
    assert found.evicted[1].sum() == 0  # nothing is lost with a checkpoint that costs nothing
