"""What nodes report of their load: where network delays vary, one report may overtake another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bounded_runs import started, steps
from emulations import SETS, constrained, mixed_cluster, mixed_workload, run_partition, setting_of

from actors.setting import Network, Setting
from workloads.jobs import make_workload


def overtaken(scheduler: str, seed: int, **parameters: Any) -> Setting:
    """A setting in which many a report takes longer than the time between two of them."""
    workload = constrained(mixed_workload(60, seed=3), *SETS)
    network = Network(0.01, spread_s=2.0)
    return setting_of(
        scheduler, workload, mixed_cluster(), long_partition=0.7, network=network, seed=seed, **parameters
    )


@pytest.mark.parametrize("seed", range(2))
def test_the_view_of_yacc_d_is_that_of_idle_nodes_in_the_end(seed: int) -> None:
    setting = overtaken("yacc-d", seed, heartbeat_s=0.5, queue_limit=1)
    known = run_partition(setting).state.known
    assert known.nodes.report.min() > 2
    assert not known.nodes.rest.any()
    assert np.array_equal(known.nodes.room, 2 * setting.cluster.slots())


def test_no_task_of_yacc_d_waits_for_ever_for_a_node_that_is_idle() -> None:
    for seed in range(3):
        run_partition(overtaken("yacc-d", seed, heartbeat_s=0.5, queue_limit=0))  # fails if there is no end


def test_a_node_reports_until_when_its_task_is_estimated_to_run() -> None:
    workload = make_workload("one", [0.0], [1], [10.0])
    partition = started(setting_of("yacc-d", workload, 1, network=0.1, heartbeat_s=1.0))
    seen = [int(partition.state.known.nodes.busy_until[0]) for _ in steps(partition)]
    assert list(dict.fromkeys(seen)) == [0, 10_100_000_000]
    assert partition.state.known.nodes.busy_until[0] == 0


@pytest.mark.parametrize("seed", range(2))
def test_the_view_of_dist_lwl_is_that_of_idle_nodes_in_the_end(seed: int) -> None:
    state = run_partition(overtaken("dist-lwl", seed, heartbeat_s=0.5)).state
    assert not state.loads.work.any()
    assert not state.short.ledger.work.any()


@pytest.mark.parametrize("seed", range(2))
def test_the_monitor_of_phoenix_has_no_demand_at_the_end(seed: int) -> None:
    monitor = run_partition(overtaken("phoenix", seed, heartbeat_s=0.5, crv_threshold=0)).state.monitor
    assert monitor.newest.min() > 0
    assert not monitor.wait.any()
    assert not monitor.demand.any()
    assert not monitor.pressure.any()
    assert not monitor.reported.any()
