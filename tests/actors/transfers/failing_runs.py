"""Runs over a network in which machines fail, for tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from actors.hosting.outcome import Outcome
from actors.setting import Dynamics, Setting
from clusters.failures import NODE, Outages
from tests.actors.transfers.network_simulator import Attempt
from tests.actors.transfers.runs import MACHINES

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
