"""Equal rates inside a coflow, all or none, and backfill: hand-checked examples, and a plain reading of the rule."""

from __future__ import annotations

import numpy as np
from equal_loop import BACKFILLED, COFLOW, SERVED, decide, end_due, move_flow
from hypothesis import given, settings
from hypothesis import strategies as st
from switch_runs import (
    SPEED,
    arrays_of,
    ccts,
    check_ports,
    equal_rates,
    equally,
    ports_of,
    serve_equally,
    switch,
    switches,
    unfinished,
)

from actors.fabric.equal_rates import has_sent_more, make_equal, progress, update_ahead
from actors.fabric.order import Order, set_order
from actors.fabric.ports import Fabric, build_fabric, bytes_sent, merge_parallel
from actors.initial_arrays import at_start
from actors.schedulers.coflows.philae import separate_pilot

TRIGGERS = [BACKFILLED, SERVED, COFLOW]


def test_flows_of_a_coflow_have_the_rate_of_the_slowest() -> None:
    # Port 0 (in) has three flows at 1/3, so 1->0 has 1/3 as well, though port 1 is its own. 0->0 ends at 3000, and the
    # others have 1/2 until 1->0 ends at 5000; 0->1 has port 0 for its last 1000 B.
    fabric = switch([(0, [(0, 0, 1000.0), (0, 1, 3000.0), (1, 0, 2000.0), (0, 2, 3000.0)])], 3)
    steps = [
        (int(t), equal_rates(fabric, order, e).round(9).tolist()) for t, order, e in equally(fabric, SERVED)
    ]
    third = round(1 / 3, 9)
    assert steps == [
        (0, [third] * 4),
        (3000, [0, 0.5, 0.5, 0.5]),
        (5000, [0, 0.5, 0.5, 0]),
        (7000, [0, 0, 0, 0]),
    ]


def plain_rates(fabric: Fabric, coflows: list[int], missed_only: bool) -> np.ndarray:
    """Rates of all flows by a plain reading of the rule."""
    rates, room = np.zeros(fabric.flows.size.size), fabric.speed.copy()
    served = [coflow for coflow in coflows if serve_equally(fabric, coflow, room, rates)]
    for coflow in coflows:
        if not missed_only or coflow not in served:
            for flow in unfinished(fabric, coflow):
                ports = list(ports_of(fabric, flow))
                if (room[ports] > 1e-9).all():
                    rates[flow] += room[ports].min()
                    room[ports] -= room[ports].min()
    return rates


@given(switches(), st.booleans())
@settings(max_examples=25)
def test_deciding_at_all_ends_the_rates_are_those_of_the_plain_rule_at_all_times(
    fabric: Fabric, missed_only: bool
) -> None:
    for _, order, e in equally(fabric, BACKFILLED, missed_only):
        expected = plain_rates(fabric, order.groups[: order.used[0]].tolist(), missed_only)
        assert np.allclose(equal_rates(fabric, order, e), expected, atol=1e-8)


@given(switches(), st.sampled_from(TRIGGERS), st.booleans())
@settings(max_examples=40)
def test_ports_are_never_overloaded_and_flows_that_may_be_backfilled_find_no_room(
    fabric: Fabric, trigger: int, missed_only: bool
) -> None:
    for _, order, e in equally(fabric, trigger, missed_only):
        check_ports(fabric, order, e)
    ccts(fabric)


@given(switches(), st.sampled_from(TRIGGERS), st.booleans())
@settings(max_examples=40)
def test_the_rates_bring_each_flow_its_bytes_by_its_end(
    fabric: Fabric, trigger: int, missed_only: bool
) -> None:
    sent, rates, last = np.zeros(fabric.flows.size.size), np.zeros(fabric.flows.size.size), 0
    for t, order, e in equally(fabric, trigger, missed_only):
        sent += rates * (t - last)
        rates, last = equal_rates(fabric, order, e), t
        known = [bytes_sent(fabric.coflows, t, coflow) for coflow in range(fabric.coflows.arrival.size)]
        assert np.allclose(known, np.bincount(fabric.flows.coflow, sent), atol=1e-3)
    assert np.abs(sent - fabric.flows.size).max() <= 1.0  # an end is a whole ns


@given(switches(), st.sampled_from(TRIGGERS), st.integers(1, 5000))
@settings(max_examples=25)
def test_whether_a_flow_of_a_coflow_has_been_sent_more_than_a_limit(
    fabric: Fabric, trigger: int, limit: int
) -> None:
    sent, rates, last = np.zeros(fabric.flows.size.size), np.zeros(fabric.flows.size.size), 0
    for t, order, e in equally(fabric, trigger):
        sent += rates * (t - last)
        rates, last = equal_rates(fabric, order, e), t
        update_ahead(fabric, e, t)
        for coflow in order.groups[: order.used[0]]:
            most = sent[fabric.flows.coflow == coflow].max()
            if abs(most - limit) > 1.0:  # nothing is known to a byte: an end is a whole ns
                assert has_sent_more(fabric, e, coflow, float(limit), t) == (most > limit)


def test_a_pilot_is_served_before_the_others_of_its_coflow() -> None:
    # All three flows have 1/2 until 1000. Then 0->0 is set apart, and has its ports alone for its last 1500 B; the
    # others are missed, of which 1->1 is backfilled until 2500. Then 0->1 has 1500 B left.
    work = arrays_of([(0, [(0, 0, 2000.0), (0, 1, 2000.0), (1, 1, 2000.0)])], 2)
    fabric = build_fabric(merge_parallel(work)[0], SPEED, np.array([1]))
    order, e, lines = at_start(Order, fabric), make_equal(fabric), fabric.lines.first_line
    for t, groups in ((0, [0]), (1000, [1, 0]), (2500, [0]), (4000, [])):
        end_due(fabric, order, e, t)
        progress(fabric, order, e, t)
        if t == 1000:
            separate_pilot(fabric, lines[0, 0], lines[0, 1], lines[1, 0], lines[1, 1])
            move_flow(fabric, e, np.int64(0), np.int64(0))
        set_order(order, np.array(groups, np.int64), len(groups))
        decide(fabric, order, e)
    assert fabric.flows.finish.tolist() == [2500, 4000, 2500]
