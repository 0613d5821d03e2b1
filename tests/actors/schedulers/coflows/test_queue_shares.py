"""Shares of bandwidth between priority queues: hand-checked examples, and a plain reading of the rule."""

from __future__ import annotations

from typing import Any

import numpy as np
from equal_loop import BACKFILLED, COFLOW, SERVED
from hypothesis import given, settings
from hypothesis import strategies as st
from switch_runs import (
    ccts,
    check_ports,
    equal_rates,
    equally,
    run,
    serve_equally,
    switch,
    switches,
)

from actors.fabric import equal_rates as equal
from actors.fabric.ports import Fabric
from actors.initial_arrays import at_start
from actors.schedulers.coflows.aalo_shares import Shares, share_equally

WEIGHTS = [4.0, 1.0, 0.5]
_FIRST = np.int64(0)


def in_shares(fabric: Fabric, queue: list[int], weights: list[float], pilots: int = 0) -> Any:
    """Decide on equal rates in shares; the first `pilots` groups of the order go before all queues."""
    s = at_start(Shares, fabric, weight=np.array(weights))
    queues, begin = np.array(queue), np.int64(pilots)

    def decide(fabric: Fabric, order: Any, e: Any) -> None:
        equal.reset_residual(fabric, e)
        equal.add_rates(fabric, order, e, _FIRST, begin)
        share_equally(fabric, order, e, s, queues, begin, order.used[0])
        equal.backfill(fabric, order, e)
        equal.enforce_rates(fabric, order, e, e.now[0])

    return decide


def test_two_queues_share_a_port_by_weight() -> None:
    # 3/4 and 1/4 until coflow 0 ends at 1333.3; coflow 1 has 333.3 B by then, and the whole port for the rest.
    coflows = [(0, [(0, 0, 1000.0)]), (0, [(0, 0, 1000.0)])]
    fabric = switch(coflows, 1)
    run(equally(fabric, COFLOW, decide=in_shares(fabric, [0, 1], [3.0, 1.0])))
    assert ccts(fabric) == [1333, 2000]


def test_only_queues_with_coflows_have_shares_and_within_one_they_wait_in_order() -> None:
    # Queue 1 is empty: 4/5 and 1/5. Coflow 1 waits for coflow 0, which ends at 1250; coflow 2 has 250 B then. Coflow 1
    # ends at 2500 with 4/5; coflow 2 has the port for its last 500 B.
    fabric = switch([(0, [(0, 0, 1000.0)]), (0, [(0, 0, 1000.0)]), (0, [(0, 0, 1000.0)])], 1)
    run(equally(fabric, COFLOW, decide=in_shares(fabric, [0, 0, 2], [4.0, 9.0, 1.0])))
    assert ccts(fabric) == [1250, 2500, 3000]


def test_what_a_queue_leaves_of_its_share_is_pooled() -> None:
    # Of port 0 (in) queue 0 gives 3/4 to coflow 0, and queue 1 gives 1/8 to each flow that coflow 1 has there; its 1->1
    # is as slow as they are. Coflow 2 has 1/4 of its ports, and 3/4 more out of the pool.
    fabric = switch(
        [(0, [(0, 0, 900.0)]), (0, [(0, 1, 600.0), (0, 2, 600.0), (1, 1, 300.0)]), (0, [(2, 3, 1000.0)])], 4
    )
    _, order, e = next(equally(fabric, COFLOW, decide=in_shares(fabric, [0, 1, 1], [3.0, 1.0])))
    assert equal_rates(fabric, order, e).tolist() == [0.75, 0.125, 0.125, 0.125, 1.0]


def test_pilots_take_from_the_ports_before_the_queues_share_them() -> None:
    # Coflow 0 is in no queue: its two flows have 1/2 of port 0 (out). Coflows 1 and 2 share what that leaves of port 0
    # (in), 3:1.
    fabric = switch(
        [(0, [(0, 0, 900.0), (1, 0, 900.0)]), (0, [(0, 1, 600.0)]), (0, [(0, 2, 600.0)])],
        3,
    )
    _, order, e = next(equally(fabric, COFLOW, decide=in_shares(fabric, [-1, 0, 1], [3.0, 1.0], pilots=1)))
    assert equal_rates(fabric, order, e).tolist() == [0.5, 0.5, 0.375, 0.125]


def plain_shares(fabric: Fabric, order: Any, queue: list[int]) -> np.ndarray:
    """Rates of all flows by a plain reading of the rule, without backfill."""
    rates, pool, coflows = (
        np.zeros(fabric.flows.size.size),
        np.zeros(fabric.speed.size),
        order.groups[: order.used[0]],
    )
    queues = sorted({queue[coflow] for coflow in coflows})
    for own in queues:
        room = fabric.speed * (WEIGHTS[own] / sum(WEIGHTS[other] for other in queues))
        for coflow in coflows:
            if queue[coflow] == own:
                serve_equally(fabric, coflow, room, rates)
        pool += room
    for coflow in coflows:
        serve_equally(fabric, coflow, pool, rates)
    return rates


QUEUES = st.lists(st.integers(0, len(WEIGHTS) - 1), min_size=5, max_size=5)


@given(switches(least=2), QUEUES, st.sampled_from([BACKFILLED, SERVED]))
@settings(max_examples=25)
def test_equal_rates_in_shares_are_those_of_the_plain_rule(
    fabric: Fabric, queue: list[int], trigger: int
) -> None:
    decide = in_shares(fabric, queue, WEIGHTS)
    for t, order, e in equally(fabric, trigger, key=queue.__getitem__, decide=decide):
        if e.now[0] == t:
            expected = plain_shares(fabric, order, queue)
            assert np.allclose(equal_rates(fabric, order, e) - e.extra, expected, atol=1e-8)
        check_ports(fabric, order, e)
    ccts(fabric)
