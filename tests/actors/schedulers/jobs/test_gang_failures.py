"""Failures of nodes and preemption under schedulers of gangs in partitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from emulations import (
    OBSERVED,
    Network,
    cluster_of,
    digest,
    run_setting,
    run_windows,
    setting_of,
    with_failures,
)

from actors.environment import Preemption
from workloads.jobs import make_workload
from workloads.requests import Requests

GANG_SCHEDULERS = ("central-fcfs-gang", "easy", "conservative")


@pytest.mark.parametrize("scheduler", GANG_SCHEDULERS)
@pytest.mark.parametrize("on_nodes", [False, True])
@pytest.mark.parametrize("preemption", [None, Preemption(keeps=True, cost_s=0.3)])
def test_partitions_do_not_change_what_is_lost(
    scheduler: str, on_nodes: bool, preemption: Preemption | None
) -> None:
    """Messages take times that differ, so that a node may have to end a task before it has come."""
    rng = np.random.default_rng(5)
    nodes = rng.choice([0, 1, 2, 3] if on_nodes else [0], 60).astype(float)
    nodes[rng.random(60) < 0.3] = np.nan
    widths = np.where(nodes > 0, 2 * nodes, rng.integers(1, 7, 60)).astype(int)
    asked = Requests(gang_nodes=nodes, priority=rng.integers(0, 3, 60))
    workload = make_workload(
        "many",
        np.cumsum(rng.exponential(3.0, 60)),
        widths,
        rng.exponential(9.0, widths.sum()),
        requests=asked,
    )
    network = Network(delay_s=0.5, spread_s=1.5, cross_rack_delay_s=1.0)
    nodes_of_racks = cluster_of([2] * 5, [0, 0, 1, 1, 2])
    setting = replace(
        setting_of(scheduler, workload, nodes_of_racks, network=network, seed=3), priorities=True
    )
    setting = replace(with_failures(setting), preemption=preemption)
    whole = run_setting(setting, OBSERVED)
    assert whole.counters["tasks_lost"] > 50
    assert preemption is None or whole.counters["evictions"] > 0
    parts = run_windows(setting, OBSERVED, 3)
    assert digest(parts) == digest(whole)
    assert parts.attempts.tolist() == whole.attempts.tolist()
    assert preemption is None or (parts.evicted == whole.evicted).all()
