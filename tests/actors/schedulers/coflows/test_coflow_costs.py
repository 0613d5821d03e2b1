"""What messages cost a coordinator of coflows, beside examples (`golden/coflows/costs.txt`): of every coordinator."""

from __future__ import annotations

from typing import Any

import pytest
from coflow_emulations import NAMES, SPEED, mixed_workload, setting_of
from emulations import OBSERVED, run_setting

from actors.scheduler import needs_global_view
from actors.schedulers.registry import find_scheduler
from actors.setting import Costs

NS = 1_000_000_000
COORDINATED = [name for name in NAMES if not needs_global_view(find_scheduler(name), {})]
"""Schedulers of coflows that have a coordinator."""
MADD = ("sebf-deadline", "varys-deadline", "chronos")
"""Those with MADD's rates and no other: what a decision costs must be known before it is made."""
GREEDY: dict[str, Any] = {"rates": "greedy"}


@pytest.mark.parametrize("scheduler", COORDINATED)
def test_what_messages_cost_moves_the_results_of_every_coordinator(scheduler: str) -> None:
    work = mixed_workload(8, 4, seed=3)
    free, priced = (
        run_setting(setting_of(scheduler, work, speed=SPEED, costs=Costs("fixed", each)), OBSERVED)
        for each in (0.0, 0.002)
    )
    assert free.finish_ns.tolist() != priced.finish_ns.tolist()
    (server, *_) = priced.servers
    assert server["busy"] == 2_000_000 * server["served"]
    assert server["served"] >= work.num_coflows + priced.counters["updates"]


@pytest.mark.parametrize(
    "scheduler", [name for name in COORDINATED if name not in ("scf", "ncf", "lcf", *MADD)]
)
def test_measured_costs_come_again_with_all_counters(scheduler: str) -> None:
    rates = GREEDY if any(p.name == "rates" for p in find_scheduler(scheduler).parameters) else {}
    given: dict[str, Any] = {"speed": SPEED, "delay_s": 0.001, **rates}
    work = mixed_workload(8, 4, seed=3)
    measured = run_setting(setting_of(scheduler, work, costs=Costs("measured"), **given), OBSERVED)
    recorded = Costs("recorded", recorded=measured.costs)
    again = run_setting(setting_of(scheduler, work, costs=recorded, **given), OBSERVED)
    assert again.counters == measured.counters
    assert again.finish_ns.tolist() == measured.finish_ns.tolist()
