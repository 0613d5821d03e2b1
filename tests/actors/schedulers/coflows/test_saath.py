"""Saath: examples worked out by hand, and the same in the fluid, where flows end without messages.

A port sends a byte in a second, so that bytes are seconds, and all times are in seconds; intervals are of 1. "2 0>1" is
the flow of coflow 2 from port 0 to port 1, with the times from when to when it is sent, and at which rate unless 1.
"""

from __future__ import annotations

from typing import Any

import equal_loop
import numpy as np
import pytest
from coflow_emulations import COSTS, SPEED, TASKS, coflows, log_of, mixed_workload, setting_of, variants_of
from emulations import run_setting

from actors.fabric import equal_rates, equal_ticks
from actors.fabric.equal_coordinator import reported_sent
from actors.fabric.initial_arrays import at_start
from actors.fabric.ports import Fabric, build_fabric, merge_parallel
from actors.fabric.service_order import Order, set_order
from actors.kernel.world import NEVER
from actors.setting import Costs, Setting
from workloads.coflows import CoflowWorkload

SECOND: dict[str, Any] = {"interval_s": 1.0}
NO_DEADLINES: dict[str, Any] = {**SECOND, "deadline_factor": 1e6}


def test_a_coflow_is_served_at_all_of_its_ports_or_at_none() -> None:
    # The first queue takes 3 B, the second 30 B. Coflow 0 has sent 4 B at 4, and goes down. Coflow 1 has port 0 (in),
    # so that coflow 2 is missed: port 1 (in) is coflow 0's, though its queue comes later. Coflow 1 has sent 3 B at 7,
    # no more than the queue takes, and ends at 8. Then coflow 2 is served: its flows share port 1 (out), and half of
    # port 1 (in) is left for coflow 0. Either flow of coflow 2 may send 1.5 B, and has at 11; at 12 both end.
    work = coflows((0, [(1, 2, 10)]), (4, [(0, 0, 4)]), (4, [(0, 1, 2), (1, 1, 2)]), ports=3)
    log = log_of("saath", work, first_limit_bytes=3, **SECOND)
    assert log.sending == {
        "0 1>2": [(0, 8), (8, 12, 0.5)],
        "1 0>0": [(4, 8)],
        "2 0>1": [(8, 12, 0.5)],
        "2 1>1": [(8, 12, 0.5)],
    }
    assert log.decisions == [0, 4, 8, 12]
    assert log.queues == [(0, 0, 0), (4, 0, 1), (4, 1, 0), (4, 2, 0), (8, 1, -1), (12, 0, -1), (12, 2, -1)]


def test_a_coflow_goes_down_by_what_one_of_its_flows_has_sent() -> None:
    # The first queue takes 4 B, of which each of coflow 0's two flows has 2 B. 0>0 has sent 3 B at 3, while both
    # together have sent 4 B: Aalo would leave the coflow where it is. Coflow 1 is first then, coflow 0 waits until 6.
    work = coflows((0, [(0, 0, 5), (1, 1, 1)]), (2.5, [(0, 2, 3)]), ports=3)
    log = log_of("saath", work, first_limit_bytes=4, **SECOND)
    assert log.sending == {"0 0>0": [(0, 3), (6, 8)], "0 1>1": [(0, 1)], "1 0>2": [(3, 6)]}
    assert log.decisions == [0, 1, 3, 6, 8]
    assert log.queues == [(0, 0, 0), (2.5, 1, 0), (3, 0, 1), (6, 1, -1), (8, 0, -1)]
    # Rates: two lines at 0, to two agents; at 3 one stops and one starts, at one agent; one at 6. Three of 8 intervals
    # have schedules. Agents that send when an interval ends: two at 1, one from 2 to 8.
    assert log.counters == {
        "updates": 3,
        "decisions": 5,
        "schedules": 4,
        "rates": 5,
        "demotions": 1,
        "intervals": 8,
        "intervals_without_rates": 5,
        "agents_heard": 2 + 7,
    }
    assert log.learned["learned_ns"] == [3e9, 2.5e9]
    assert log.learned["learned_bytes"] == [4, 0]


def test_a_flow_that_has_ended_takes_its_coflow_down() -> None:
    # Coflow 0 has port 1 (in), so that only 2>2 of coflow 1 is sent, and it ends at 3 with more than half of 4 B: the
    # coflow goes down when the interval ends at 4. At 8 so does coflow 0, behind it.
    work = coflows((0, [(1, 0, 20)]), (0, [(1, 1, 2), (2, 2, 3)]), ports=3)
    log = log_of("saath", work, first_limit_bytes=4, interval_s=4.0)
    assert log.sending == {"0 1>0": [(0, 8), (12, 24)], "1 1>1": [(8, 10)], "1 2>2": [(0, 3)]}
    assert log.queues == [(0, 0, 0), (0, 1, 0), (4, 1, 1), (8, 0, 1), (10, 1, -1), (24, 0, -1)]


def test_the_coflow_with_the_least_contention_goes_first() -> None:
    # Coflow 0 meets both of the others, which meet no other coflow.
    work = coflows((0, [(0, 0, 2), (1, 1, 2)]), (0, [(0, 2, 2)]), (0, [(1, 3, 2)]), ports=4)
    log = log_of("saath", work, **SECOND)
    assert log.sending == {"0 0>0": [(2, 4)], "0 1>1": [(2, 4)], "1 0>2": [(0, 2)], "2 1>3": [(0, 2)]}
    assert log.decisions == [0, 2, 4]


@pytest.mark.parametrize(
    ("contention", "expected"),
    [
        ("queue", {"0": [(0, 4), (6, 22)], "1": [(4, 6)], "2": [(6, 9)]}),
        ("all", {"0": [(0, 7), (9, 22)], "1": [(7, 9)], "2": [(4, 7)]}),
    ],
)
def test_coflows_of_other_queues_are_contention_or_not(contention: str, expected: dict[str, Any]) -> None:
    # Coflow 0 is in the second queue when the others come. They meet each other, and coflow 1 meets coflow 0 too.
    work = coflows((0, [(3, 3, 20)]), (4, [(0, 0, 2), (3, 1, 2)]), (4, [(0, 2, 3)]), ports=4)
    log = log_of("saath", work, first_limit_bytes=3, contention=contention, **NO_DEADLINES)
    assert log.sending == {
        "0 3>3": expected["0"],
        "1 0>0": expected["1"],
        "1 3>1": expected["1"],
        "2 0>2": expected["2"],
    }


ALWAYS_LAST = coflows(
    (0, [(0, 0, 4), (1, 1, 4)]),
    *((at, [(port, 2 * i + port + 2, 3)]) for i, at in enumerate((0, 3)) for port in range(2)),
    ports=6,
)


@pytest.mark.parametrize(
    ("factor", "expected"),
    [(1.25, {"0": [(5, 8), (9, 10)], "3": [(3, 5), (8, 9)]}), (1e6, {"0": [(6, 10)], "3": [(3, 6)]})],
)
def test_a_coflow_whose_deadline_has_passed_goes_first(factor: float, expected: dict[str, Any]) -> None:
    # Coflow 0 meets two others all the time, and each of these meets it alone. It was registered first: its
    # deadline is 1.25 times the 4 s that the queue's 4 B take. It is first from 5 on, until either of its flows has
    # sent more than 2 B: at 8 it is in the second queue, with another deadline.
    log = log_of("saath", ALWAYS_LAST, first_limit_bytes=4, deadline_factor=factor, **SECOND)
    assert log.sending == {
        "0 0>0": expected["0"],
        "0 1>1": expected["0"],
        "1 0>2": [(0, 3)],
        "2 1>3": [(0, 3)],
        "3 0>4": expected["3"],
        "4 1>5": expected["3"],
    }


MISSED = coflows((0, [(0, 0, 4)]), (0, [(0, 1, 2), (1, 1, 2)]), ports=2)


def test_what_is_left_goes_to_flows_of_missed_coflows() -> None:
    # Coflow 1 cannot have port 0 (in). Its 1>1 has its ports to itself, from 0 to 2.
    log = log_of("saath", MISSED, **SECOND)
    assert log.sending == {"0 0>0": [(0, 4)], "1 0>1": [(4, 6)], "1 1>1": [(0, 2)]}
    assert log.decisions == [0, 2, 4, 6]


def test_agents_receive_rates_one_network_delay_after_the_decision() -> None:
    # Registered at 0.25, decided at 1, rates at agents at 1.25. 1>1 ends at 3.25, reported at 3.5: the decision at 4
    # changes nothing.
    # 0>0 ends at 5.25, reported at 5.5, decided at 6, rates at agents at 6.25; the last end is reported at 8.5.
    log = log_of("saath", MISSED, delay_s=0.25, **SECOND)
    assert log.sending == {"0 0>0": [(1.25, 5.25)], "1 0>1": [(6.25, 8.25)], "1 1>1": [(1.25, 3.25)]}
    assert log.decisions == [1, 4, 6, 9]


def test_a_decision_costs_by_what_is_new() -> None:
    # At 1 two coflows, two rates and two agents: 0.5 s, rates at agents at 1.75. The end of 1>1 is reported at 4, that
    # of 0>0 at 6; then one coflow, one rate, one agent: 0.25 s, rates at agents at 6.5. Where decisions cost, there is
    # one in every interval.
    costs = Costs("fixed", per_flow_s=0.05, per_coflow_s=0.1, per_schedule_s=0.1)
    log = log_of("saath", MISSED, delay_s=0.25, costs=costs, **SECOND)
    assert log.sending == {"0 0>0": [(1.75, 5.75)], "1 0>1": [(6.5, 8.5)], "1 1>1": [(1.75, 3.75)]}
    assert log.decisions == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert log.counters["rates"] == 3
    assert log.counters["schedules"] == 3


def test_a_coflow_that_has_ended_meanwhile_needs_no_rate() -> None:
    # With its rate from 1.4 on, coflow 0 ends at 3.2. At 3 it goes down, since it is known to have been sent 1.2 B by
    # 2.6, and is to stop for coflow 1, which the agent learns at 3.4.
    work = coflows((0, [(0, 0, 1.8)]), (2.2, [(0, 1, 1)]), ports=2)
    log = log_of("saath", work, first_limit_bytes=1, delay_s=0.4, **SECOND)
    assert log.sending == {"0 0>0": [(1.4, 3.2)], "1 0>1": [(3.4, 4.4)]}
    assert log.counters["stale_rates"] == 1


def fluid(setting: Setting) -> Fabric:
    """Serve coflows by a plain reading of the steps, with the rates of `actors.fabric.equal_rates`."""
    given, now, tick = setting.parameters, np.int64(0), np.int64(0)
    assert isinstance(setting.workload, CoflowWorkload)
    fabric = build_fabric(merge_parallel(setting.workload.arrays())[0], setting.switch.port_bytes_per_s)
    flows, finish, arrival = fabric.flows, fabric.coflows.finish, fabric.coflows.arrival
    interval, width = round(given["interval_s"] * 1e9), fabric.coflows.end_flow - fabric.coflows.first_flow
    limits = given["first_limit_bytes"] * given["factor"] ** np.arange(given["queues"], dtype=float)
    order, e, arrived, entries = at_start(Order, fabric), equal_rates.make_equal(fabric), 0, 0
    queue, entered, deadline = ({} for _ in range(3))

    def go_to(coflow: int, which: int) -> None:
        nonlocal entries
        queue[coflow], entered[coflow], entries = which, entries, entries + 1
        size = sum(queue[c] == which for c in there())
        deadline[coflow] = now + given["deadline_factor"] * size * limits[which] / fabric.speed.max()

    def next_arrival() -> np.int64:
        return arrival[arrived] if arrived < arrival.size else NEVER

    def there() -> list[int]:
        return [c for c in range(arrived) if finish[c] == NEVER]

    def most_sent(coflow: int) -> float:
        own = np.flatnonzero(flows.coflow == coflow)
        return max(
            flows.size[f] if flows.finish[f] < NEVER else reported_sent(fabric, e, now, f) for f in own
        )

    def key(coflow: int) -> tuple[float, ...]:
        if deadline[coflow] <= now:
            return (0, deadline[coflow], coflow)
        own = ports[coflow]
        same = [c for c in ports if given["contention"] == "all" or queue[c] == queue[coflow]]
        return (
            1,
            queue[coflow],
            sum(c != coflow and not own.isdisjoint(ports[c]) for c in same),
            entered[coflow],
        )

    while (finish == NEVER).any():
        while min(end := equal_loop.next_end(fabric, order, e), next_arrival()) <= tick:
            if next_arrival() < end:
                now, arrived = next_arrival(), arrived + 1
                go_to(arrived - 1, 0)
            else:
                now = end
                equal_loop.end_due(fabric, order, e, now)
        now, tick = tick, tick + interval
        for coflow in there():
            down = queue[coflow]
            while most_sent(coflow) > (limits[down] / width[coflow] if down + 1 < limits.size else np.inf):
                down += 1
            if down > queue[coflow]:
                go_to(coflow, down)
        unfinished = flows.finish == NEVER
        ports = {
            c: {
                *flows.source[unfinished & (flows.coflow == c)],
                *flows.sink[unfinished & (flows.coflow == c)],
            }
            for c in there()
        }
        equal_rates.progress(fabric, order, e, now)
        groups = np.array(sorted(ports, key=key), np.int64)
        set_order(order, groups, groups.size)
        equal_loop.decide(fabric, order, e)
    return fabric


@pytest.mark.parametrize("variant", range(2))
def test_without_delays_coflows_end_when_they_do_in_the_fluid(variant: int) -> None:
    for seed in range(2):
        setting = setting_of(
            "saath", mixed_workload(10, 5, seed), speed=SPEED, **variants_of("saath")[variant]
        )
        outcome = run_setting(setting, TASKS)
        assert outcome.counters["demotions"] > 0
        assert np.array_equal(outcome.finish_ns, fluid(setting).coflows.finish)


def test_results_do_not_depend_on_how_many_events_send_the_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = setting_of("saath", mixed_workload(15, 5, 3), speed=SPEED, delay_s=0.001, costs=COSTS)
    whole = run_setting(setting, TASKS)
    monkeypatch.setattr(equal_ticks, "_MOST_SENDS", 0)
    parts = run_setting(setting, TASKS)
    assert parts.events > whole.events
    assert np.array_equal(parts.finish_ns, whole.finish_ns)
    assert parts.counters == whole.counters
