"""Examples worked out by hand: Aalo, its oracle, and Philae.

A port sends a byte in a second, so that bytes are seconds, and all times are in seconds. "2 0>1" is the flow of
coflow 2 from port 0 to port 1; a log has when each flow is sent, when the coordinator decides, and which queue
coflows enter: -2 is active in no queue, -1 is not active.
"""

from __future__ import annotations

from typing import Any

import pytest
from coflow_emulations import coflows, log_of
from splitmix import draw

from actors.kernel.random import PROBES
from actors.setting import Costs
from workloads.coflows import CoflowWorkload
from workloads.errors import InputError

STRICT = {"starvation": "strict", "interval_s": 1.0}
DEMOTION = coflows((0, [(0, 0, 10)]), (2, [(0, 0, 1), (1, 1, 6)]), ports=2)


def test_aalo_moves_down_a_coflow_that_has_sent_more_than_its_queue_takes() -> None:
    # The first queue takes 3 B, the second 30 B; intervals of 2. Coflow 1 comes at 2; its 0>0 waits, for coflow 0
    # was first. At 4 coflow 0 has sent 4 B: it goes down, and stops. Coflow 1 has sent 2 B by then, and at 6 also 1
    # B more by either of its flows: it goes down too, to the tail. Its 0>0 had ended at 5, and the port had waited;
    # coflow 0 has it again. No coflow sends 30 B; what is left are decisions at the ends, 8 and 12.
    log = log_of("aalo", DEMOTION, first_limit_bytes=3, starvation="strict", interval_s=2.0)
    assert log.decisions == [0, 2, 4, 6, 8, 12]
    assert log.sending == {"0 0>0": [(0, 4), (6, 12)], "1 0>0": [(4, 5)], "1 1>1": [(2, 8)]}
    assert log.queues == [(0, 0, 0), (2, 1, 0), (4, 0, 1), (6, 1, 1), (8, 1, -1), (12, 0, -1)]
    # Rates: 1 at 0, 1 at 2, 2 at 4 (both to agent 0), 1 at 6; these four of 6 intervals have schedules. Agents report
    # whose flow runs when an interval ends: one at 2, two at 4, one at 6, two at 8, one at 10 and 12.
    assert log.counters == {
        "updates": 3,
        "decisions": 6,
        "schedules": 4,
        "rates": 5,
        "demotions": 2,
        "intervals": 6,
        "intervals_without_rates": 2,
        "agents_heard": 1 + 2 + 1 + 2 + 1 + 1,
    }
    assert log.learned["learned_ns"] == [4e9, 6e9]
    assert log.learned["learned_bytes"] == [4, 5]


def test_aalo_knows_what_had_been_sent_a_network_delay_ago() -> None:
    # A message takes 0.25. Coflow 0 registers at 0.25, is seen at 2, and sends from 2.25. At 4 its 1.5 B of 3.75 are
    # known, at 6 its 3.5 B of 5.75: it goes down, but sends until the schedule is there at 6.25. Coflow 1 is seen at
    # 4: 1>1 from 4.25 to 10.25. At 6 its 1.5 B are known, at 8 the 3.5 B and 1 B that it had sent by 7.75. The end of
    # its 0>0, at 7.25, is reported at 7.5, that of 1>1 at 10.5. Coflow 0 goes on from 8.25 to 14.25, reported at 14.5.
    log = log_of("aalo", DEMOTION, first_limit_bytes=3, starvation="strict", interval_s=2.0, delay_s=0.25)
    assert log.decisions == [2, 4, 6, 8, 12, 16]
    assert log.sending == {
        "0 0>0": [(2.25, 6.25), (8.25, 14.25)],
        "1 0>0": [(6.25, 7.25)],
        "1 1>1": [(4.25, 10.25)],
    }
    assert log.queues == [(0.25, 0, 0), (2.25, 1, 0), (6, 0, 1), (8, 1, 1), (10.5, 1, -1), (14.5, 0, -1)]
    assert log.learned["learned_bytes"] == [3.5, 4.5]


def test_aalo_oracle_lets_queues_share_time() -> None:
    # Queues up to 10 B, up to 20 B, and above: coflow 1 (6 B) in the first, 0 (12 B) in the second, 2 (21 B) in the
    # third, all at one port. Slots of 4, 2 and 1 intervals, the last no longer than an interval, make a round: 0-4
    # coflow 1, 4-6 coflow 0, 6-7 coflow 2. In 7-11 coflow 1 ends at 9, and what is left of its slot goes to coflow
    # 0, the next in order; 11-13 coflow 0, 13-14 coflow 2. The first queue is empty now: a round is 4 for the
    # second and 2 for the third. 14-18 coflow 0, 18-20 coflow 2, 20-24 coflow 0, which ends at 22, 24-26 coflow 2.
    # Then rounds of 4 are coflow 2's alone: it has 17 B left at 22, and ends at 39.
    work = coflows((0, [(0, 0, 12)]), (0, [(0, 0, 6)]), (0, [(0, 0, 21)]), ports=1)
    settings = {"first_limit_bytes": 10, "factor": 2, "queues": 3, "slot_intervals": 4, "share": 2}
    log = log_of("aalo-oracle", work, interval_s=1.0, **settings)
    assert log.sending == {
        "0 0>0": [(4, 6), (9, 13), (14, 18), (20, 22)],
        "1 0>0": [(0, 4), (7, 9)],
        "2 0>0": [(6, 7), (13, 14), (18, 20), (22, 39)],
    }
    assert log.decisions == [0, 4, 6, 7, 9, 11, 13, 14, 18, 20, 22, 24, 26, 30, 34, 38, 39]
    assert log.queues == [(0, 0, 1), (0, 1, 0), (0, 2, 2), (9, 1, -1), (22, 0, -1), (39, 2, -1)]
    # At 0, 9 and 22 a flow starts; at 4, 6, 7, 13, 14, 18 and 20 one starts and one stops. One agent, in all
    # intervals.
    assert log.counters == {
        "updates": 3,
        "decisions": 17,
        "schedules": 10,
        "rates": 3 + 7 * 2,
        "intervals": 39,
        "intervals_without_rates": 29,
        "agents_heard": 39,
    }


def test_a_late_schedule_lets_agents_go_on_and_misses_intervals() -> None:
    # Network delay 0.5, and 0.6 for each coflow in each decision, in each interval of 1. Coflow 0 registers at 0.5;
    # decided at 1, in force at 1 + 0.6 + 0.5. Coflow 1 registers at 2.5, while the coordinator is busy until 2.6. It
    # goes first from the decision at 3 on, of two coflows: in force at 3 + 1.2 + 0.5, and coflow 0 sends until then.
    # 0>1 ends at 5.7, which arrives at 6.2. But the coordinator is late: the decision of 4 begins at 4.2, that of 5
    # at 5.4, that of 6, which was due before the news came, at 6.6, that of 7 at 7.8, with the news. It is of one
    # coflow: in force at 7.8 + 0.6 + 0.5. Coflow 0 has 10 - 2.6 B left, and ends at 16.3. The decision of 8 begins at
    # 8.4, that of 9 in time, as all that come after it. Work that is not done when its interval ends: 0.2 of
    # interval 3, 0.4 of 4, 0.6 of 5, 0.8 of 6, 0.4 of 7.
    work = coflows((0, [(0, 0, 10)]), (2, [(0, 1, 1)]), ports=2)
    costs = Costs("fixed", per_coflow_s=0.6)
    log = log_of("aalo-oracle", work, first_limit_bytes=5, delay_s=0.5, costs=costs, **STRICT)
    assert log.sending == {"0 0>0": [(2.1, 4.7), (8.9, 16.3)], "1 0>1": [(4.7, 5.7)]}
    assert log.decisions == [1, 2, 3, 4.2, 5.4, 6.6, 7.8, 8.4, 9, 10, 11, 12, 13, 14, 15, 16, 17]
    # A flow runs, as far as is known, in all intervals but the first, and an end is reported in the last.
    assert log.counters == {
        "updates": 2,
        "decisions": 17,
        "schedules": 3,
        "rates": 4,
        "intervals": 17,
        "intervals_missed": 5,
        "intervals_without_rates": 14,
        "agents_heard": 16,
    }


def test_all_that_a_coordinator_does_has_its_price() -> None:
    # An update costs 0.1, a rate 0.2, a coflow 0.3, a schedule 0.4. At 1 the decision is about one coflow, has two
    # rates, for two agents: 0.3 + 0.4 + 0.8, and is sent at 2.5. Both flows end at 5.5, and two more updates cost
    # 0.1 each; but at 2 (begun at 2.5), 3, 4 and 5 both agents report (0.2) and the coflow is looked at (0.3), and
    # so at 6, with no agent and no coflow.
    work = coflows((0.5, [(0, 0, 3), (1, 1, 3)]), ports=2)
    costs = Costs("fixed", per_update_s=0.1, per_flow_s=0.2, per_coflow_s=0.3, per_schedule_s=0.4)
    log = log_of("aalo-oracle", work, first_limit_bytes=5, costs=costs, **STRICT)
    assert log.sending == {"0 0>0": [(2.5, 5.5)], "0 1>1": [(2.5, 5.5)]}
    assert log.decisions == [1, 2.5, 3, 4, 5, 6]


def test_a_flow_that_has_ended_needs_no_rate() -> None:
    # With its rate from 1.5 on, coflow 0 ends at 3.3. At 3 it is to stop for coflow 1, which the agent learns at 3.5;
    # the coordinator learns of the end at 3.8, and its decision at 4 changes nothing. Coflow 1's end at 4.5 is
    # reported at 5.
    work = coflows((0, [(0, 0, 1.8)]), (2.2, [(0, 1, 1)]), ports=2)
    log = log_of("aalo-oracle", work, first_limit_bytes=1, delay_s=0.5, **STRICT)
    assert log.sending == {"0 0>0": [(1.5, 3.3)], "1 0>1": [(3.5, 4.5)]}
    assert log.decisions == [1, 3, 4, 5]
    assert log.counters["stale_rates"] == 1


AT_ONCE: dict[str, Any] = {"starvation": "strict"}
SAMPLED = coflows((0, [(0, 0, 4), (0, 1, 4), (1, 0, 4), (1, 1, 4)]), (1, [(0, 1, 2)]), ports=2)


def test_philae_sends_pilots_ahead_and_lets_thin_coflows_pass() -> None:
    # One pilot, 0>0; 1>1 of the same coflow gets what no other coflow uses.
    #  t=1  thin coflow 1 takes ports 0 (in) and 1 (out): pilot and 1>1 stop with 3 B left, and 1>0 has its ports.
    #  t=3  coflow 1 ends: the pilot takes port 0 (out) from 1>0, which has 2 B left, and 1>1 goes on.
    #  t=6  both end. The pilot had 4 B, so the coflow has 16 B, of which it has sent 10. It is alone: first queue.
    #  t=8  1>0 ends, and no other coflow is at its ports: no decision.
    # One rate each for what starts or stops: 2, 4 (two stop, two start), 3, 2.
    log = log_of("philae", SAMPLED, thin_limit=1, **AT_ONCE)
    assert log.sending == {
        "0 0>0": [(0, 1), (3, 6)],
        "0 0>1": [(6, 10)],
        "0 1>0": [(1, 3), (6, 8)],
        "0 1>1": [(0, 1), (3, 6)],
        "1 0>1": [(1, 3)],
    }
    assert log.decisions == [0, 1, 3, 6, 10]
    assert log.refills == [8]
    assert log.queues == [(0, 0, -2), (1, 1, -2), (3, 1, -1), (6, 0, 0), (10, 0, -1)]
    rates = {"updates": 5, "decisions": 5, "refills": 1, "schedules": 8, "rates": 11, "pilots": 1}
    assert {name: log.counters[name] for name in rates} == rates
    assert log.learned["learned_ns"] == [6e9, -1]
    assert log.learned["learned_bytes"][0] == 10
    assert log.learned["estimated_bytes"][0] == 16


def test_philae_without_work_conservation_sends_nothing_but_pilots() -> None:
    # As above for the pilot and the thin coflow. At 6 ports serve their first flows that find both ports free, 0>1
    # and 1>0.
    log = log_of("philae", SAMPLED, thin_limit=1, work_conservation=False, **AT_ONCE)
    assert log.sending == {
        "0 0>0": [(0, 1), (3, 6)],
        "0 0>1": [(6, 10)],
        "0 1>0": [(6, 10)],
        "0 1>1": [(10, 14)],
        "1 0>1": [(1, 3)],
    }
    assert (log.decisions, log.refills) == ([0, 1, 3, 6, 14], [10])
    assert log.learned["learned_bytes"][0] == 4


def test_philae_may_decide_at_the_end_of_intervals() -> None:
    # With intervals of 2, coflow 1 is seen at 2; it ends at 3, and its ports wait until 4.
    work = coflows((0, [(0, 0, 4), (0, 1, 4), (1, 0, 4), (1, 1, 4)]), (1, [(0, 1, 1)]), ports=2)
    log = log_of("philae", work, thin_limit=1, decide="interval", interval_s=2.0, **AT_ONCE)
    assert log.sending == {
        "0 0>0": [(0, 2), (4, 6)],
        "0 0>1": [(6, 10)],
        "0 1>0": [(2, 4), (6, 8)],
        "0 1>1": [(0, 2), (4, 6)],
        "1 0>1": [(2, 3)],
    }
    assert log.decisions == [0, 2, 4, 6, 8, 10]


# Two coflows at ingress 0, with a pilot each; queues up to 5 B, up to 10 B, and above.
MEASURED = coflows((0, [(0, 0, 4), (0, 1, 4), (0, 2, 4)]), (5, [(0, 3, 2), (0, 4, 2)]), ports=5)
LIMITS = {**AT_ONCE, "thin_limit": 0, "first_limit_bytes": 5, "factor": 2, "queues": 3}
# Coflow 0's pilot is 0>0; then 0>1 runs until coflow 1's pilot comes.
PILOTS_FIRST = {"0 0>0": [(0, 4)], "1 0>3": [(5, 7)]}
SECOND_FIRST = PILOTS_FIRST | {"0 0>1": [(4, 5), (9, 12)], "0 0>2": [(12, 16)], "1 0>4": [(7, 9)]}
IN_ORDER = PILOTS_FIRST | {"0 0>1": [(4, 5), (7, 10)], "0 0>2": [(10, 14)], "1 0>4": [(14, 16)]}


def test_philae_a_by_size() -> None:
    # 3 flows of 4 B, 2 flows of 2 B.
    log = log_of("philae", MEASURED, policy="A", **LIMITS)
    assert log.sending == SECOND_FIRST
    assert log.queues == [(0, 0, -2), (4, 0, 2), (5, 1, -2), (7, 1, 0), (9, 1, -1), (16, 0, -1)]


@pytest.mark.parametrize("by", [{"policy": "B"}, {"policy": "A", "size_correction": True}])
def test_philae_b_by_what_is_left(by: dict[str, Any]) -> None:
    # 12 - 4 B at 4, and 4 - 2 B at 7. What A has left after its correction is the same. At 12 coflow 0 has 4 B left: it
    # goes up if every end of a flow is a decision. Otherwise none is made from 9, when coflow 1 has ended, to the end.
    log = log_of("philae", MEASURED, **by, **LIMITS)
    assert log.sending == SECOND_FIRST
    assert log.queues == [(0, 0, -2), (4, 0, 1), (5, 1, -2), (7, 1, 0), (9, 1, -1), (16, 0, -1)]
    assert (log.decisions, log.refills) == ([0, 4, 5, 7, 9, 16], [12])
    log = log_of("philae", MEASURED, **by, **LIMITS, decide="flow-ends")
    assert log.sending == SECOND_FIRST
    assert log.queues == [(0, 0, -2), (4, 0, 1), (5, 1, -2), (7, 1, 0), (9, 1, -1), (12, 0, 0), (16, 0, -1)]
    assert (log.decisions, log.refills) == ([0, 4, 5, 7, 9, 12, 16], [])
    assert log.counters["demotions"] == 1


def test_philae_c_by_contention() -> None:
    # 6 B for each other coflow at a port of its own. Coflow 0 is alone at 4, when its pilot has ended: first queue. At
    # 5 coflow 1 comes to port 0: coflow 0 goes to the second queue, and at 7, after its pilot, coflow 1 behind it. At
    # 14 coflow 1 is alone.
    log = log_of("philae", MEASURED, policy="C", contention_unit_bytes=6, **LIMITS)
    assert log.sending == IN_ORDER
    assert log.queues == [
        (0, 0, -2),
        (4, 0, 0),
        (5, 0, 1),
        (5, 1, -2),
        (7, 1, 1),
        (14, 0, -1),
        (14, 1, 0),
        (16, 1, -1),
    ]
    assert log.counters["pilots"] == 2


def test_philae_c_without_pilots_as_its_authors_simulate_it() -> None:
    # No size is wanted: coflows enter the queues when they come. At 5 both meet, coflow 0 goes down to the tail, behind
    # coflow 1, and up again when coflow 1 has ended, at 9.
    log = log_of("philae", MEASURED, policy="C", pilots="none", contention_unit_bytes=6, **LIMITS)
    assert log.sending == {
        "0 0>0": [(0, 4)],
        "0 0>1": [(4, 5), (9, 12)],
        "0 0>2": [(12, 16)],
        "1 0>3": [(5, 7)],
        "1 0>4": [(7, 9)],
    }
    assert log.queues == [(0, 0, 0), (5, 0, 1), (5, 1, 1), (9, 0, 0), (9, 1, -1), (16, 0, -1)]
    assert "pilots" not in log.counters
    with pytest.raises(InputError, match="policy D needs sizes of coflows"):
        log_of("philae", MEASURED, pilots="none")


def test_philae_c_lets_thin_coflows_pass() -> None:
    # Coflow 1 has two flows, and is thin: it goes before coflow 0, and enters no queue.
    log = log_of("philae", MEASURED, policy="C", contention_unit_bytes=6, **LIMITS | {"thin_limit": 2})
    assert log.sending == {
        "0 0>0": [(0, 4)],
        "0 0>1": [(4, 5), (9, 12)],
        "0 0>2": [(12, 16)],
        "1 0>3": [(5, 7)],
        "1 0>4": [(7, 9)],
    }
    assert [queue for _, coflow, queue in log.queues if coflow == 1] == [-2, -1]


def test_philae_d_by_size_and_contention() -> None:
    # Coflow 0 is alone at 4: 0 B; from 5 on it meets one other at one port: 4 B. Coflow 1 meets it at one port: 2 B.
    # Both in the first queue, first come, first served.
    log = log_of("philae", MEASURED, policy="D", **LIMITS)
    assert log.sending == IN_ORDER
    assert log.queues == [(0, 0, -2), (4, 0, 0), (5, 1, -2), (7, 1, 0), (14, 0, -1), (16, 1, -1)]


def test_philae_d_may_count_a_coflow_itself() -> None:
    # Coflow 0 is at three ports at 4: 12 B, third queue; from 5 on 16 B. Coflow 1 at 7: two coflows at port 0 (in),
    # itself at 4 (out): 6 B, second queue. At 12 coflow 0 is at two ports: 8 B, second queue.
    log = log_of("philae", MEASURED, policy="D", count_itself=True, **LIMITS)
    assert log.sending == SECOND_FIRST
    assert log.queues == [(0, 0, -2), (4, 0, 2), (5, 1, -2), (7, 1, 1), (9, 1, -1), (12, 0, 1), (16, 0, -1)]


def test_philae_d_decides_when_a_coflow_is_done_at_a_port_where_another_is() -> None:
    # Pilots: 0>0 of coflow 0, from 0 to 6, and 1>3 of coflow 1, from 2 to 6. Then each meets the other at ports 0 and 1
    # (in): 12 B and 8 B, second queue; coflow 0 came first, and has both ports.
    #  t=9   0>4 ends, and coflow 0 is done at port 0, where coflow 1 is. That has 4 B now: first queue, and port 1 at
    #        once. Coflow 0 has 6 B.
    #  t=13  coflow 1 is done at port 1, and coflow 0 meets no other: first queue.
    of_0 = [(0, 0, 6), (0, 4, 3), (1, 1, 10)]
    of_1 = [(0, 2, 8), (1, 3, 4), (1, 5, 4)]
    limits: dict[str, Any] = {
        "queues": 2,
        "first_limit_bytes": 5,
        "thin_limit": 1,
        "work_conservation": False,
    }
    work = coflows((0, of_0), (2, of_1), ports=6)
    log = log_of("philae", work, **limits, **AT_ONCE)
    assert log.sending == {
        "0 0>0": [(0, 6)],
        "0 0>4": [(6, 9)],
        "0 1>1": [(6, 9), (13, 20)],
        "1 0>2": [(9, 17)],
        "1 1>3": [(2, 6)],
        "1 1>5": [(9, 13)],
    }
    assert (log.decisions, log.refills) == ([0, 2, 6, 9, 13, 17, 20], [])
    # By size alone no coflow changes its queue: coflow 1 has port 0 at 9 by a refill, and port 1 at 16, when coflow 0
    # ends.
    log = log_of("philae", work, policy="A", **limits, **AT_ONCE)
    assert log.sending["0 1>1"] == [(6, 16)]
    assert log.sending["1 1>5"] == [(16, 20)]
    assert (log.decisions, log.refills) == ([0, 2, 6, 16, 20], [9, 17])


SQUARE = coflows((0, [(i, j, 2) for i in range(3) for j in range(3)]), ports=3)


def first_sent(work: CoflowWorkload, **parameters: Any) -> dict[str, tuple[float, ...]]:
    """Flows that are sent before all pilots of the coflow have ended."""
    log = log_of("philae", work, work_conservation=False, **AT_ONCE, **parameters)
    learned = log.learned["learned_ns"][0] / 1e9
    return {flow: spans[0] for flow, spans in log.sending.items() if spans[0][0] < learned}


def test_philae_has_one_pilot_for_20_senders() -> None:
    assert first_sent(SQUARE) == {"0 0>0": (0, 2)}


def test_philae_has_pilots_for_a_share_of_the_flows() -> None:
    # A quarter of 9 is 2; the second goes between ports that have none yet.
    assert first_sent(SQUARE, pilots="flows", pilot_share=0.25) == {"0 0>0": (0, 2), "0 1>1": (0, 2)}


def test_philae_has_a_number_of_pilots() -> None:
    # Three fill all ports; the fourth is from the first of those that are all as busy, and waits for it.
    found = first_sent(SQUARE, pilots="number", pilot_number=4)
    assert found == {"0 0>0": (0, 2), "0 1>1": (0, 2), "0 2>2": (0, 2), "0 0>1": (2, 4)}


def test_philae_has_no_more_pilots_than_flows() -> None:
    # All flows are: it ends before it would enter a queue. Pilots are served in the order in which they were
    # chosen: three from 0 on, then 0>1 and 1>0, which leave 2>2, then 2>0 and 0>2, then 1>2 and 2>1.
    log = log_of("philae", SQUARE, pilots="number", pilot_number=50, **AT_ONCE)
    assert log.counters["pilots"] == 9
    assert log.queues == [(0, 0, -2), (8, 0, -1)]
    assert (log.decisions, log.refills) == ([0, 8], [2, 4, 6])


def test_philae_keeps_pilots_off_ports_that_have_some() -> None:
    work = coflows(
        (0, [(i, j, 9) for i in range(3) for j in range(3)]),
        (1, [(i, j, 2) for i in range(3) for j in range(3)]),
        ports=3,
    )
    log = log_of("philae", work, work_conservation=False, **AT_ONCE)
    assert log.sending["0 0>0"] == [(0, 9)]
    assert log.sending["1 1>1"] == [(1, 3)]


@pytest.mark.parametrize("seed", range(3))
def test_philae_may_draw_the_ports_of_pilots(seed: int) -> None:
    # Two draws: which of three ingress ports, which of three egress ports.
    ingress, egress = (draw(seed, PROBES, 0, counter, 3) for counter in range(2))
    assert first_sent(SQUARE, pilot_ports="random", seed=seed) == {f"0 {ingress}>{egress}": (0, 2)}
