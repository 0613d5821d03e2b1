"""What a coordinator of the shuffles of DAG jobs costs, beside the managers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from actors.kernel.queue import NEVER
from actors.setting import Costs, Setting
from examples.smallest_coflow import EqualShares, LeastSent
from tests.actors.checkpointing import digest_with_restores, started
from tests.actors.dag_settings import mixed_dags, with_bytes
from tests.actors.transfers.runs import COORDINATORS, over
from tests.actors.transfers.test_what_tasks_fetch import PRICES
from tests.emulations import OBSERVED, digest, run_setting

WORK = with_bytes(mixed_dags(), 2)


def charged(network: Any, scheduler: str, costs: Costs | None, delay_s: float = 0.0005) -> Setting:
    """`WORK` under a resource manager, or a scheduler of jobs, and a network."""
    by_stages: dict[str, Any] = (
        {"short_cutoff_s": 3.0, "long_partition": 0.8} if scheduler == "sparrow" else {}
    )
    return over(network, WORK, scheduler=scheduler, delay_s=delay_s, costs=costs or Costs(), **by_stages)


@pytest.mark.slow("several whole runs")
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


@pytest.mark.slow("many drawn cases")
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


@pytest.mark.slow("the conformance suite tries it in small cases")
@pytest.mark.parametrize("coordinator", [*COORDINATORS, LeastSent, EqualShares])
def test_a_run_under_a_busy_coordinator_goes_on_from_any_checkpoint(coordinator: Any) -> None:
    # With one row of flows at first rows are given back and taken again all the time.
    costs = Costs("fixed", **BUSY)
    few, many = (over(coordinator, WORK, delay_s=0.0005, rows=rows, costs=costs) for rows in (1, 1 << 12))
    found, moves = digest_with_restores(few, 5)
    assert moves > 3
    one, other = run_setting(few, OBSERVED), run_setting(many, OBSERVED)
    assert found == digest(one)
    assert (one.finish_ns == other.finish_ns).all()
    assert (one.series.fetched_ns == other.series.fetched_ns).all()
    assert one.servers["busy"].tolist() == other.servers["busy"].tolist()
