"""Runs over a network in which machines fail, for tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from actors.hosting.outcome import Outcome
from actors.setting import Dynamics, Setting
from clusters.cluster import build_cluster
from clusters.failures import NODE, Outages
from tests.actors.checkpointing import digest_with_restores
from tests.actors.transfers.failing_network_simulator import Attempt, Failure
from tests.emulations import OBSERVED, digest, run_setting
from workloads.dags import DagWorkload

CORES = [4, 8, 4, 2, 6]
MACHINES = build_cluster("machines", CORES, cpu_cores=[float(cores) for cores in CORES])
Rows = list[tuple[int, float, float]]  # a machine, from when until when it is down, s


def failing(setting: Setting, rows: Rows, detection_s: float) -> Setting:
    number, fail, repair = (np.array(column) for column in zip(*rows, strict=True))
    down = Outages(
        np.full(number.size, NODE), number.astype(np.int64), fail.astype(float), repair.astype(float)
    )
    return replace(setting, dynamics=Dynamics(outages=down, detection_s=detection_s))


def attempts_of(found: Outcome) -> list[Attempt]:
    """Those of which the tasks ended for the last time, in order of the tasks, and then the others."""
    assert found.tasks is not None
    last = zip(*(found.tasks[name].tolist() for name in ("node", "start_ns", "finish_ns")), strict=True)
    rows = [(task, *one) for task, one in enumerate(last)]
    rows += [tuple(row[name] for name in ("task", "node", "start", "end")) for row in found.attempts]
    return [Attempt(int(task), int(node), start / 1e9, end / 1e9) for task, node, start, end in rows]


def outages(draws: np.random.Generator, horizon_s: float) -> Rows:
    rows = []
    for node in range(MACHINES.num_nodes):
        t = draws.exponential(6)
        while t < horizon_s and draws.random() < 0.8:
            rows.append((node, round(t, 9), round(t + draws.exponential(3) + 0.01, 9)))
            t = rows[-1][2] + draws.exponential(10) + 0.01
    return rows or [(0, 3.0, 5.0)]


def holds_no_more_than_there_is(work: DagWorkload, attempts: list[Attempt], failures: list[Failure]) -> None:
    """Check that tasks hold no more than a machine has, and nothing while it is down."""
    stage = np.repeat(np.arange(work.num_stages), np.diff(work.arrays().stage_first_task))
    needs = np.array(work.stages["cpu_cores"].to_pylist())[stage]
    changes = [(one.end_s, -needs[one.task], one.node) for one in attempts]
    changes += [(one.start_s, needs[one.task], one.node) for one in attempts]
    held = np.zeros(MACHINES.num_nodes)
    for _, cores, node in sorted(changes):
        held[node] += cores
        assert held[node] <= CORES[node] + 1e-9
    for f in failures:
        assert not any(
            one.node == f.node and one.start_s < f.repair_s and one.end_s > f.fail_s for one in attempts
        )


def goes_on_from_checkpoints(setting: Setting) -> None:
    """Check that a run in which outputs are lost goes on from checkpoints as it would have."""
    whole = run_setting(setting, OBSERVED)
    assert whole.counters["run_again"] > 0
    assert whole.counters["fetches_failed"] > 0
    again, moves = digest_with_restores(setting, seed=6)
    assert moves > 5
    assert again == digest(whole)
