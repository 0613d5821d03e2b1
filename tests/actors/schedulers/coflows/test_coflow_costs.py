"""What messages cost a coordinator of coflows: one server, which handles one message at a time, in order.

A port sends a byte in a second, so that bytes are seconds. "2 0>1" is the flow of coflow 2 from port 0 to port 1.
"""

from __future__ import annotations

from typing import Any

import pytest
from coflow_emulations import NAMES, SPEED, coflows, log_of, mixed_workload, setting_of
from emulations import OBSERVED, run_setting

from actors.scheduler import needs_global_view
from actors.schedulers.registry import find_scheduler
from actors.setting import Costs
from workloads.errors import InputError

NS = 1_000_000_000
COORDINATED = [name for name in NAMES if not needs_global_view(find_scheduler(name), {})]
"""Schedulers of coflows that have a coordinator."""
MADD = ("sebf-deadline", "varys-deadline", "chronos")
"""Those with MADD's rates and no other: what a decision costs must be known before it is made."""
HALF = Costs("fixed", per_message_s=0.5)
GREEDY: dict[str, Any] = {"rates": "greedy"}


def test_every_message_takes_its_time_before_the_decision() -> None:
    # Messages cost 0.5. Coflows 0 and 1 register at 0, one after the other: the decision is made at 1. Coflow 2
    # registers at 1.25, is handled until 1.75, and waits for port 0 (in). 1>1 ends at 3, handled until 3.5; 0>0 ends at
    # 5, handled until 5.5, and 0>1 has the port from then to 6.5; that is handled until 7.
    work = coflows((0, [(0, 0, 4)]), (0, [(1, 1, 2)]), (1.25, [(0, 1, 1)]), ports=2)
    log = log_of("fifo", work, costs=HALF, **GREEDY)
    assert log.decisions == [1, 1.75, 3.5, 5.5, 7]
    assert log.sending == {"0 0>0": [(1, 5)], "1 1>1": [(1, 3)], "2 0>1": [(5.5, 6.5)]}


def test_messages_of_one_instant_wait_for_one_another() -> None:
    # Three flows start at 0.5 and end at 2.5. Their reports are handled one by one until 4, and the next coflow starts
    # then.
    ends = [(0, 0, 2), (1, 1, 2), (2, 2, 2)]
    log = log_of("fifo", coflows((0, ends), (2, [(0, 0, 1)]), ports=3), costs=HALF, **GREEDY)
    assert log.decisions == [0.5, 2.5, 4, 5.5]
    assert log.sending["1 0>0"] == [(4, 5)]


def test_a_message_costs_on_top_of_what_an_update_and_a_decision_cost() -> None:
    # The registration costs 0.5, the decision of one coflow, one flow and one agent 1 + 2 + 4: sent at 7.5. The end at
    # 9.5 costs 0.5 + 0.25.
    costs = Costs("fixed", 0.5, per_update_s=0.25, per_coflow_s=1, per_flow_s=2, per_schedule_s=4)
    log = log_of("fifo", coflows((0, [(0, 0, 2)]), ports=1), costs=costs, **GREEDY)
    assert log.sending == {"0 0>0": [(7.5, 9.5)]}
    assert log.decisions == [0.5, 10.25]


def test_reports_of_agents_are_messages() -> None:
    # Intervals of 2. Registered at 0 and handled until 0.5, when the decision of 0 is made. The agent sends from then
    # on; its reports of 2 and 4 cost 0.5 each, and so does its end, at 5.5.
    work = coflows((0, [(0, 0, 5)]), ports=1)
    given = {"starvation": "strict", "interval_s": 2.0}
    log, setting = (of("aalo", work, costs=HALF, **given) for of in (log_of, setting_of))
    assert log.decisions == [0.5, 2, 4, 6]
    assert log.sending == {"0 0>0": [(0.5, 5.5)]}
    (server, *_) = run_setting(setting).servers
    assert server["busy"] == 4 * NS // 2
    assert server["served"] == 4


def test_decisions_are_no_messages() -> None:
    setting = setting_of("fifo", coflows((0, [(0, 0, 2)]), (0, [(0, 0, 2)]), ports=1), costs=HALF, **GREEDY)
    (server, *_) = run_setting(setting).servers
    assert server["served"] == 4  # two registrations, two ends
    assert server["busy"] == 2 * NS
    assert server["waited"] == NS // 2  # the second registration, for the first one
    assert server["longest"] == NS // 2


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


@pytest.mark.parametrize("scheduler", MADD)
def test_madd_s_rates_need_costs_that_are_known(scheduler: str) -> None:
    with pytest.raises(InputError, match=rf"{scheduler} with MADD's rates .* cost.model is measured"):
        run_setting(setting_of(scheduler, mixed_workload(4, 4, seed=3), costs=Costs("measured")), OBSERVED)
