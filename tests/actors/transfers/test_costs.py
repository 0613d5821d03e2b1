"""What a coordinator of the shuffles of DAG jobs costs: as in a run of the same coflows, and beside the managers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from coflow_emulations import setting_of as coflow_setting

from actors.kernel.world import NEVER
from actors.setting import Costs, Setting
from clusters.cluster import build_cluster
from examples.smallest_coflow import EqualShares, LeastSent
from tests.actors.checkpointing import digest_with_restores, started
from tests.actors.dag_settings import mixed_dags, with_bytes
from tests.actors.transfers.test_by_stage import staged
from tests.actors.transfers.test_coordinated import (
    COORDINATORS,
    GB,
    MACHINES,
    bytes_over,
    last_ends,
    orders,
    under,
    workload_of,
)
from tests.emulations import OBSERVED, digest, run_setting
from workloads.dags import make_dag_workload

WORK = with_bytes(mixed_dags(), 2)
PRICES = {
    "per_message_s": 0.002,
    "per_job_s": 0.05,
    "per_task_s": 0.01,
    "per_update_s": 0.001,
    "per_flow_s": 0.0005,
    "per_coflow_s": 0.003,
    "per_schedule_s": 0.0007,
}


def charged(network: Any, scheduler: str, costs: Costs | None, delay_s: float = 0.0005) -> Setting:
    """`WORK` under a resource manager, or a scheduler of jobs, and a network."""
    if scheduler == "sparrow":
        given = {} if costs is None else {"costs": costs}
        return staged(scheduler, WORK, network=network, delay_s=delay_s, setting=given)
    return under(network, WORK, scheduler=scheduler, delay_s=delay_s, costs=costs)


@pytest.mark.parametrize("coordinator", [*COORDINATORS, LeastSent, EqualShares])
@pytest.mark.parametrize(("seed", "delay_s"), [(0, 0.0), (1, 0.0005)])
def test_a_coordinator_costs_what_it_costs_for_the_same_coflows(
    coordinator: Any, seed: int, delay_s: float
) -> None:
    dags, costs = with_bytes(mixed_dags(jobs=8, seed=seed), seed), Costs("fixed", **PRICES)
    found = run_setting(under(coordinator, dags, delay_s=delay_s, waves="apart", costs=costs))
    arrays, tasks = dags.arrays(), found.tasks
    assert tasks is not None
    sizes = bytes_over(arrays, tasks)
    for order in orders(arrays, sizes):
        work = workload_of(order, sizes, MACHINES.num_nodes)
        served = run_setting(coflow_setting(coordinator, work, speed=GB, delay_s=delay_s, costs=costs))
        if (found.series.fetched_ns == last_ends(arrays, tasks, served, order, work)).all():
            break
    else:
        raise AssertionError("no order of registration gives the same times")
    for name in ("busy", "served", "waited", "longest", "most", "free"):
        assert found.servers[name][-2] == served.servers[name][0] > 0


def test_prices_by_hand() -> None:
    # Job 0 of `two_shuffles` alone. Its arrival costs the manager 0.5, and the match 0.5: the map is launched at 1 and
    # ends at 2. The manager hears of that (0.5), matches (0.5) and launches the reducer at 3. Its flow is registered
    # (0.5); the decision of one coflow, one flow and one agent costs 1 + 2 + 4: it is sent from 10.5 on, for a second.
    # The report of its end costs 0.5 + 0.25. The end of the reducer is the manager's third message, with a match.
    costs = Costs("fixed", 0.5, per_update_s=0.25, per_coflow_s=1, per_flow_s=2, per_schedule_s=4)
    work = make_dag_workload(
        "by hand", [0], [2], [1, 1], [1, 1], [(0, 0, 1)], cpu_cores=[1, 4], edge_bytes=[GB]
    )
    nodes = build_cluster("machines", [2, 4], cpu_cores=[2.0, 4.0])
    found = run_setting(under("fifo@rates=greedy", work, nodes, costs=costs))
    assert found.series.fetched_ns.tolist() == [-1, 11_500_000_000]
    assert found.finish_ns.tolist() == [12_500_000_000]
    manager, coordinator, _ = found.servers
    assert (manager["served"], manager["busy"]) == (3, 3_000_000_000)
    assert (coordinator["served"], coordinator["busy"]) == (2, 8_250_000_000)


@pytest.mark.parametrize("coordinator", ["sebf", "aalo", "philae", LeastSent])
@pytest.mark.parametrize("scheduler", ["drf", "sparrow"])
def test_each_price_moves_the_result_and_none_does_not(coordinator: Any, scheduler: str) -> None:
    def run(costs: Costs | None) -> Any:
        found = run_setting(charged(coordinator, scheduler, costs))
        return found.finish_ns.tolist(), found.series.fetched_ns.tolist()

    free = run(None)
    assert run(Costs("fixed")) == free
    moved = {name: run(Costs("fixed", **{name: 0.02})) for name in PRICES}
    assert [name for name, times in moved.items() if times == free] == []


@pytest.mark.parametrize(
    ("scheduler", "arrivals"), [("drf", WORK.num_jobs), ("sparrow", WORK.num_stages)], ids=["drf", "sparrow"]
)
def test_managers_cost_what_they_cost_without_a_coordinator(scheduler: str, arrivals: int) -> None:
    # Where ports are fast enough every flow takes a nanosecond, under any network.
    costs = Costs("fixed", per_job_s=0.05, per_task_s=0.01)
    one, other = (
        run_setting(replace(made, switch=replace(made.switch, port_bytes_per_s=1e30)))
        for made in (charged(network, scheduler, costs, 0.0) for network in ("fifo", "fair"))
    )
    assert (one.finish_ns == other.finish_ns).all()
    assert (one.servers[:-2] == other.servers[:-2]).all()
    assert one.servers["busy"][:-2].sum() == 50_000_000 * arrivals + 10_000_000 * WORK.num_tasks
    assert one.servers["busy"][-2] == 0
    assert one.servers["served"][-2] > 0
    assert other.servers["served"][-2] == 0


@pytest.mark.parametrize("coordinator", ["sincronia", "aalo", "philae", LeastSent, EqualShares])
@pytest.mark.parametrize("scheduler", ["drf", "sparrow"])
def test_measured_costs_come_again(coordinator: Any, scheduler: str) -> None:
    setting = charged(coordinator, scheduler, Costs("measured"))
    measured = run_setting(setting, OBSERVED)
    again = run_setting(replace(setting, costs=Costs("recorded", recorded=measured.costs)), OBSERVED)
    assert digest(again) == digest(measured)
    coordinators = again.servers.size - 2
    of_it = measured.costs["scheduler"] == coordinators
    assert 0 < of_it.sum() < measured.costs.size
    assert measured.costs["cost"][of_it].sum() == again.servers["busy"][-2] == measured.servers["busy"][-2]
    assert (measured.costs["decides"][~of_it] == 0).all()


def test_a_measured_run_goes_on_where_reading_the_clock_takes_longer() -> None:
    setting = charged("philae", "drf", Costs("measured"))
    one, other = started(setting), started(setting)
    assert not one._step(int(NEVER), np.int64(500))
    saved = one.snapshot()
    for name in ("world.cost.overhead", "state.network.world.cost.overhead"):
        saved[name] = saved[name] + 100
    other.restore(saved)
    while not other._step(int(NEVER)):
        pass
    measured = other.outcome()
    again = run_setting(replace(setting, costs=Costs("recorded", recorded=measured.costs)), OBSERVED)
    assert digest(again) == digest(measured)


BUSY = dict.fromkeys(PRICES, 0.02)
"""So that a coordinator is always late, and many coflows end before what it has sent about them arrives."""


@pytest.mark.parametrize("coordinator", [*COORDINATORS, LeastSent, EqualShares])
def test_a_run_under_a_busy_coordinator_goes_on_from_any_checkpoint(coordinator: Any) -> None:
    # With one row of flows at first rows are given back and taken again all the time.
    costs = Costs("fixed", **BUSY)
    few, many = (under(coordinator, WORK, delay_s=0.0005, rows=rows, costs=costs) for rows in (1, 1 << 12))
    found, moves = digest_with_restores(few, 5)
    assert moves > 3
    one, other = run_setting(few, OBSERVED), run_setting(many, OBSERVED)
    assert found == digest(one)
    assert (one.finish_ns == other.finish_ns).all()
    assert (one.series.fetched_ns == other.series.fetched_ns).all()
    assert one.servers["busy"].tolist() == other.servers["busy"].tolist()
