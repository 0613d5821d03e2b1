"""Who meets whom at the ports: kept up to date, the figures are those of a count."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from switch_runs import switch, switches

from actors.fabric.ports import Fabric, finish_flow
from actors.initial_arrays import at_start
from actors.kernel.queue import NEVER
from actors.schedulers.coflows.saath import Contention, add_coflow, change_kind, leave_port


def end_flow(fabric: Fabric, n: Contention, flow: int) -> None:
    finish_flow(fabric, np.int64(0), flow)
    for line in fabric.flows.line[flow]:
        if fabric.lines.left[line] == 0:
            leave_port(fabric, n, line)


def test_two_coflows_meet_as_long_as_they_share_a_port() -> None:
    # Coflow 0 shares port 0 (in) with coflow 1 and port 1 (out) with both.
    fabric = switch([(0, [(0, 0, 1.0), (1, 1, 1.0)]), (0, [(0, 2, 1.0), (2, 1, 1.0)]), (0, [(3, 1, 1.0)])], 4)
    n = at_start(Contention, fabric)
    for coflow in range(3):
        add_coflow(fabric, n, np.int64(coflow), np.int64(0))
    assert n.num_met.tolist() == [2, 2, 2]
    end_flow(fabric, n, np.int64(1))  # 1>1 of coflow 0: port 0 (in) is left
    assert n.num_met.tolist() == [1, 2, 1]
    change_kind(fabric, n, np.int64(1), np.int64(1))
    assert n.num_met.tolist() == [0, 0, 0]


def counted(fabric: Fabric, kinds: dict[int, int]) -> list[int]:
    """How many others of its kind each coflow meets, by a plain reading."""
    flows, ports = fabric.flows, {}
    for c in kinds:
        own = (flows.coflow == c) & (flows.finish == NEVER)
        ports[c] = {*flows.source[own], *flows.sink[own]}
    return [
        sum(c != o and kinds[c] == kinds[o] and not ports[c].isdisjoint(ports[o]) for o in kinds)
        if c in kinds
        else 0
        for c in range(fabric.coflows.arrival.size)
    ]


@given(switches(most=8), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_the_figures_are_those_of_a_count(fabric: Fabric, random: st.Random) -> None:
    n, kinds, coming = at_start(Contention, fabric), {}, list(range(fabric.coflows.arrival.size))
    while coming or (fabric.flows.finish == NEVER).any():
        there = [f for f in np.flatnonzero(fabric.flows.finish == NEVER) if fabric.flows.coflow[f] in kinds]
        what = random.choice(["come"] * bool(coming) + ["end", "end", "move"] * bool(there))
        if what == "come":
            coflow = coming.pop(0)
            kinds[coflow] = random.randrange(2)
            add_coflow(fabric, n, np.int64(coflow), np.int64(kinds[coflow]))
        elif what == "end":
            end_flow(fabric, n, random.choice(there))
        else:
            coflow = random.choice(list(kinds))
            kinds[coflow] = random.randrange(2)
            change_kind(fabric, n, np.int64(coflow), np.int64(kinds[coflow]))
        assert n.num_met.tolist() == counted(fabric, kinds)
