"""Machines and the resource manager of DAG jobs fail: what is lost runs again, and never on a machine that is down."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from emulations import run_setting

from actors.hosting.outcome import Outcome
from actors.setting import Dynamics, Setting
from clusters.failures import CENTRAL, NODE, Outages
from tests.actors.dag_settings import mixed_dags, setting_of

SCHEDULERS = ("drf", "carbyne", "tetris-fair", "dagps")


def outages(*rows: tuple[int, float, float], kind: int = NODE) -> Outages:
    """Each row: a machine, from when until when it is down."""
    number, fail, repair = (np.array(column) for column in zip(*rows, strict=True))
    return Outages(
        np.full(number.size, kind), number.astype(np.int64), fail.astype(float), repair.astype(float)
    )


def run(setting: Setting) -> Outcome:
    return run_setting(setting)


def times(outcome: Outcome) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    assert outcome.tasks is not None
    return outcome.tasks["node"], outcome.tasks["start_ns"] / 1e9, outcome.tasks["finish_ns"] / 1e9


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("heartbeat_s", [0.0, 1.5])
def test_what_is_lost_runs_again_and_not_on_a_machine_that_is_down(
    scheduler: str, heartbeat_s: float
) -> None:
    down = outages((0, 4.0, 11.0), (1, 6.0, 7.0), (1, 12.0, 30.0), (4, 2.0, 9.0))
    setting = setting_of(scheduler, mixed_dags(20), seed=3, heartbeat_s=heartbeat_s)
    failing = dataclasses.replace(setting, dynamics=Dynamics(outages=down, detection_s=1.0))
    outcome = run(failing)
    node, start, finish = times(outcome)
    assert np.allclose(finish - start, failing.workload.arrays().duration_ns / 1e9)
    for number, fail, repair in zip(down.number, down.fail_s, down.repair_s, strict=True):
        assert not ((node == number) & (start < repair) & (finish > fail)).any()
    counts = outcome.counters
    assert counts["tasks_lost"] > 0
    assert counts["sent_again"] == counts["tasks_lost"] + counts.get("placements_lost", 0)
    assert counts["launches"] == failing.num_tasks + counts["sent_again"]
    assert counts["node_failures"] == 4
    a = failing.workload.arrays()
    for stage in range(failing.workload.num_stages):
        for edge in range(a.first_parent[stage], a.first_parent[stage + 1]):
            if not a.parent_one_to_one[edge]:
                parent = a.parent[edge]
                ends = finish[a.stage_first_task[parent] : a.stage_first_task[parent + 1]]
                own = start[a.stage_first_task[stage] : a.stage_first_task[stage + 1]]
                assert own.min() >= ends.max()


def test_a_resource_manager_that_fails_continues_where_it_was() -> None:
    setting = setting_of("carbyne", mixed_dags(20), seed=3)
    whole = run(setting)
    failing = dataclasses.replace(setting, dynamics=Dynamics(outages=outages((0, 5.0, 15.0), kind=CENTRAL)))
    outcome = run(failing)
    _, start, _ = times(outcome)
    assert not ((start > 5.1) & (start < 15.0)).any()
    assert (outcome.finish_ns >= 0).all()
    assert outcome.finish_ns.mean() > whole.finish_ns.mean()
    assert outcome.counters["scheduler_failures"] == 1
