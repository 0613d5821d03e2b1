"""MADD with backfill: hand-checked examples, capacities, and what is left is given away."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from switch_runs import by_madd, ccts, run, switches

from actors.fabric.ports import Fabric
from actors.kernel.queue import NEVER


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
