"""Max-min fair rates: hand-checked examples, the definition, and a plain water-filling."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from switch_runs import ccts, fairly, ports_of, run, simulate, switch, switches

from actors.fabric.ports import Fabric
from actors.kernel.queue import NEVER
from tests.actors.water_filling import max_min


def test_a_port_that_loses_its_first_pair_does_not_wake_for_it() -> None:
    # Port 0 (in) gives 0->0 and 0->1 1/2 each until 500. Then port 0 (out) has four flows at 1/4, and 0->1 has 3/4.
    # 0->0 ends at 3500; 0->1 has 500 B left, the other three 2250 B at 1/3.
    fabric = switch(
        [
            (0, [(0, 0, 1000.0), (0, 1, 3000.0)]),
            (500, [(1, 0, 3000.0), (2, 0, 3000.0), (3, 0, 3000.0)]),
        ],
        4,
    )
    assert [int(t) for t, _ in fairly(fabric)] == [0, 500, 3500, 4000, 10250]
    assert fabric.flows.finish.tolist() == [3500, 4000, 10250, 10250, 10250]


@given(switches())
@settings(max_examples=25)
def test_every_flow_has_a_full_port_at_which_none_has_more(fabric: Fabric) -> None:
    flows = fabric.flows
    for t, f in fairly(fabric):
        there = np.flatnonzero((fabric.coflows.arrival[flows.coflow] <= t) & (flows.finish == NEVER))
        rates, load = np.minimum(f.level[flows.source], f.level[flows.sink]), np.zeros(fabric.speed.size)
        most = np.zeros(fabric.speed.size)
        for ports in (flows.source, flows.sink):
            np.add.at(load, ports[there], rates[there])
            np.maximum.at(most, ports[there], rates[there])
        assert (load <= fabric.speed * (1 + 1e-9)).all()
        full = load >= fabric.speed * (1 - 1e-9)
        for flow in there:
            assert any(
                full[port] and rates[flow] >= most[port] * (1 - 1e-9) for port in ports_of(fabric, flow)
            )
        expected = max_min([ports_of(fabric, flow) for flow in there], fabric.speed)
        assert np.allclose(rates[there], expected, rtol=1e-9)


@given(switches())
@settings(max_examples=15)
def test_completion_times_are_those_of_a_plain_simulation(fabric: Fabric) -> None:
    def rates(there: np.ndarray, _left: np.ndarray) -> np.ndarray:
        return max_min([ports_of(fabric, flow) for flow in there], fabric.speed)

    expected = simulate(fabric, rates)
    run(fairly(fabric))
    # Times are whole ns: each end may be half a ns off, and moves those after it.
    assert np.abs(np.array(ccts(fabric)) - expected).max() <= fabric.flows.size.size
