"""Shortest remaining flow first: hand-checked examples and a plain simulation."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from switch_runs import ccts, ports_of, run, shortest_first, simulate, switch, switches

from actors.fabric.ports import Fabric
from actors.kernel.queue import NEVER


def test_a_flow_that_has_become_shorter_meanwhile_goes_on() -> None:
    # When 0->0 ends at 1000, 0->1 with 1200 B finds 1->1 at its port, which had 1500 B and has 500 B left.
    fabric = switch([(0, [(0, 0, 1000.0), (0, 1, 1200.0), (1, 1, 1500.0)])], 2)
    started = [(int(t), int(fabric.flows.since[2])) for t, _ in shortest_first(fabric)]
    assert started[:2] == [(0, 0), (1000, 0)]  # it is not even stopped and started again
    assert fabric.flows.finish.tolist() == [1000, 2700, 1500]


def greedy_rates(active: list[tuple[int, int]], speed: np.ndarray) -> np.ndarray:
    """Rates of flows (source, sink) served one after another."""
    taken: set[int] = set()
    rates = np.zeros(len(active))
    for k, ports in enumerate(active):
        if taken.isdisjoint(ports):
            taken.update(ports)
            rates[k] = speed[list(ports)].min()
    return rates


@given(switches())
@settings(max_examples=25)
def test_no_port_has_two_flows_and_a_flow_waits_only_for_a_shorter_one(fabric: Fabric) -> None:
    flows = fabric.flows
    for t, _ in shortest_first(fabric):
        running = np.flatnonzero(flows.end < NEVER)
        assert len(set(flows.source[running])) == len(set(flows.sink[running])) == running.size
        left = flows.left.copy()
        left[running] -= t - flows.since[running]
        there = np.flatnonzero((fabric.coflows.arrival[flows.coflow] <= t) & (flows.finish == NEVER))
        for flow in np.setdiff1d(there, running):
            at = running[
                (flows.source[running] == flows.source[flow]) | (flows.sink[running] == flows.sink[flow])
            ]
            assert at.size > 0
            assert left[at].min() <= left[flow]
    ccts(fabric)


@given(switches())
@settings(max_examples=25)
def test_completion_times_are_those_of_a_plain_simulation(fabric: Fabric) -> None:
    tied, flows = False, fabric.flows
    flows.size[:] = flows.left[:] = 64 * flows.size + np.arange(flows.size.size)  # all sizes differ

    def rates(there: np.ndarray, left: np.ndarray) -> np.ndarray:
        nonlocal tied
        tied = tied or np.unique(left).size < left.size
        order, served = np.argsort(left, kind="stable"), np.zeros(there.size)
        served[order] = greedy_rates([ports_of(fabric, flow) for flow in there[order]], fabric.speed)
        return served

    expected = simulate(fabric, rates)
    assume(not tied)  # who comes first of two that are equal is open
    run(shortest_first(fabric))
    assert ccts(fabric) == expected.tolist()
