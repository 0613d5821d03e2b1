"""MADD with backfill: hand-checked examples, capacities, and what is left is given away."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from switch_runs import by_madd, ccts, run, switch, switches

from actors.fabric.ports import Fabric
from actors.kernel.world import NEVER


@pytest.mark.parametrize(("smallest_first", "expected"), [(False, [3000, 3000]), (True, [4000, 1000])])
def test_one_pair_of_ports_is_a_queue(smallest_first: bool, expected: list[int]) -> None:
    fabric = switch([(0, [(0, 0, 3000.0)]), (1000, [(0, 0, 1000.0)])], 1)
    run(by_madd(fabric, smallest_first))
    assert ccts(fabric) == expected


def test_varys_example_is_backfilled() -> None:
    # Both need 4000 ns; the first has port 0 (in), so the second has no MADD rate, but 1->1 is backfilled: 2000.
    fabric = switch([(0, [(0, 0, 4000.0)]), (0, [(0, 1, 2000.0), (1, 1, 2000.0)])], 2)
    run(by_madd(fabric, True))
    assert ccts(fabric) == [4000, 6000]
    assert fabric.flows.finish.tolist() == [4000, 6000, 2000]


def test_flows_of_a_coflow_end_together_unless_they_are_backfilled() -> None:
    # Coflow 1 is shorter and has port 1 (out) alone until 1000. Then coflow 0 has 2000 and 1000 left; 1->1 gets the
    # whole port by backfill.
    fabric = switch([(0, [(0, 0, 3000.0), (1, 1, 1000.0)]), (0, [(2, 1, 1000.0)])], 3)
    run(by_madd(fabric, True))
    assert ccts(fabric) == [3000, 1000]
    assert fabric.flows.finish.tolist() == [3000, 2000, 1000]


def test_bandwidth_of_an_ended_backfilled_flow_goes_to_waiting_flows() -> None:
    # Coflow 0 has port 0 (in) for 4000. Of coflow 1, 1->1 is backfilled and ends at 1000; then 1->2 has port 1.
    fabric = switch([(0, [(0, 0, 4000.0)]), (0, [(0, 3, 500.0), (1, 1, 1000.0), (1, 2, 1000.0)])], 4)
    run(by_madd(fabric, False))
    assert fabric.flows.finish.tolist() == [4000, 4500, 1000, 2000]


@given(switches(most=1), st.booleans())
@settings(max_examples=20)
def test_alone_a_coflow_takes_as_long_as_its_slowest_port(fabric: Fabric, smallest_first: bool) -> None:
    flows = fabric.flows
    slowest = max(np.bincount(ports, flows.size).max() for ports in (flows.source, flows.sink))
    run(by_madd(fabric, smallest_first))
    assert ccts(fabric)[0] == pytest.approx(slowest, abs=1)


def rates(fabric: Fabric, order: Any, a: Any) -> np.ndarray:
    """Bytes per ns of all flows that are there: MADD's rate, and what backfill adds."""
    flows, given = fabric.flows, np.zeros(fabric.flows.size.size)
    there = (flows.finish == NEVER) & np.isin(flows.coflow, order.groups[: order.used[0]])
    given[there] = (flows.left * a.scale[flows.coflow] / a.need[flows.coflow])[there]
    more = a.ends.values[: a.ends.size[0]]
    given[more] += a.extra[more]
    return given


@given(switches(), st.booleans())
@settings(max_examples=30)
def test_no_port_sends_more_than_it_can_and_none_idles_while_a_flow_could_use_it(
    fabric: Fabric, smallest_first: bool
) -> None:
    flows = fabric.flows
    for _, order, a in by_madd(fabric, smallest_first):
        given, load = rates(fabric, order, a), np.zeros(fabric.speed.size)
        np.add.at(load, flows.source, given)
        np.add.at(load, flows.sink, given)
        assert (load <= fabric.speed * (1 + 1e-9)).all()
        assert np.allclose(a.residual, fabric.speed - load, atol=1e-7)
        waiting = (flows.finish == NEVER) & np.isin(flows.coflow, order.groups[: order.used[0]])
        waiting[a.ends.values[: a.ends.size[0]]] = False
        room = a.residual > 1e-6
        assert not (waiting & room[flows.source] & room[flows.sink]).any()
    ccts(fabric)
