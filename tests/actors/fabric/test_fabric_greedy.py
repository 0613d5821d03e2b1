"""Greedy rates and Sincronia's order: hand-checked examples, strict priority, and a plain reading of the algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from switch_runs import ccts, greedily, ports_of, switch, switches

from actors.fabric.greedy import end_flow, fill_ports, make_matching, move_group
from actors.fabric.ports import Fabric, bytes_sent
from actors.fabric.waves import make_waves
from actors.initial_arrays import at_start
from actors.kernel.queue import NEVER, NONE
from actors.schedulers.coflows.sincronia import BssiScratch, bssi


def test_a_port_that_is_released_goes_on_down_the_order() -> None:
    # Coflow 0 has port 0 (in) and 0 (out). When it ends at 1000, coflow 1's 0->1 takes port 1 (out) from coflow 2's
    # 1->1, whose other port goes to coflow 3's 1->2. Coflow 2 goes on when coflow 1 is done, and takes port 1 back.
    fabric = switch(
        [(0, [(0, 0, 1000.0)]), (0, [(0, 1, 1000.0)]), (0, [(1, 1, 3000.0)]), (0, [(1, 2, 500.0)])], 3
    )
    seen = []
    for t, _, _ in greedily(fabric):
        seen.append((int(t), np.flatnonzero(fabric.flows.end < NEVER).tolist()))
    assert seen == [(0, [0, 2]), (1000, [1, 3]), (1500, [1]), (2000, [2]), (4000, [])]


def check_strict_priority(fabric: Fabric, r: Any, m: Any) -> None:
    """No port has two flows, and who waits finds its own or an earlier coflow at one of its ports."""
    flows = fabric.flows
    running = np.flatnonzero(flows.end < NEVER)
    assert len(set(flows.source[running])) == len(set(flows.sink[running])) == running.size
    for flow in running:
        assert m.flow[list(ports_of(fabric, flow))].tolist() == [flow, flow]
    for flow in np.flatnonzero((flows.finish == NEVER) & (flows.end == NEVER)):
        level = r.level[flows.coflow[flow]]
        if level >= 0:
            assert m.level[list(ports_of(fabric, flow))].min() <= level


@given(switches())
@settings(max_examples=25)
def test_order_of_arrival_is_strict_and_conserves_work(fabric: Fabric) -> None:
    for _, r, m in greedily(fabric):
        check_strict_priority(fabric, r, m)
    ccts(fabric)


@given(switches())
@settings(max_examples=25)
def test_an_order_that_changes_is_strict_and_conserves_work(fabric: Fabric) -> None:
    left = fabric.flows.left
    coflows = fabric.coflows

    def bytes_left(coflow: int) -> float:
        return float(left[coflows.first_flow[coflow] : coflows.end_flow[coflow]].sum())

    for _, r, m in greedily(fabric, bytes_left):
        check_strict_priority(fabric, r, m)
        in_lines = np.bincount(fabric.lines.port, fabric.lines.bytes, minlength=fabric.speed.size)
        of_flows = np.bincount(fabric.flows.source, left, minlength=fabric.speed.size)
        assert np.allclose(in_lines[: fabric.side], of_flows[: fabric.side], atol=1e-3)
    last = coflows.finish.max()
    sent = [bytes_sent(coflows, last, c) for c in range(coflows.finish.size)]
    assert np.allclose(sent, np.add.reduceat(fabric.flows.size, coflows.first_flow), atol=left.size)


def may_be_bssi(need: np.ndarray, weight: np.ndarray, order: list[int]) -> bool:
    """Whether Sincronia's Algorithm 1 as it is written may give this order; ties may be broken either way."""
    if len(order) <= 1:
        return True
    last, load = order[-1], need[order].sum(0)
    for port in np.flatnonzero(load >= load.max() * (1 - 1e-9)):
        at = [c for c in order if need[c, port] > 0]
        least = min(weight[c] / need[c, port] for c in at)
        if need[last, port] > 0 and weight[last] / need[last, port] <= least + 1e-12:
            lowered = weight - weight[last] / need[last, port] * need[:, port]
            if may_be_bssi(need, lowered, order[:-1]):
                return True
    return False


def test_sincronia_puts_the_coflow_with_most_at_the_most_loaded_port_last() -> None:
    # Port 1 (out) has 1000 B of coflow 0 and 2000 B of coflow 2; coflow 1 is alone with 2500 B.
    fabric = switch([(0, [(0, 1, 1000.0)]), (0, [(2, 2, 2500.0)]), (0, [(1, 1, 2000.0)])], 3)
    groups = np.array([2, 1, 0])
    bssi(fabric, make_waves(3, 0), at_start(BssiScratch, fabric), groups, 3)
    # Coflow 2 is last at port 1; then port 2 is the most loaded, with coflow 1.
    assert groups.tolist() == [0, 1, 2]


@given(switches(least=2, most=6))
@settings(max_examples=25)
def test_sincronia_s_order_is_that_of_the_algorithm(fabric: Fabric) -> None:
    flows, coflows = fabric.flows, fabric.coflows.arrival.size
    groups = np.arange(coflows)
    bssi(fabric, make_waves(coflows, 0), at_start(BssiScratch, fabric), groups, coflows)
    need = np.zeros((coflows, fabric.speed.size))
    np.add.at(need, (flows.coflow, flows.source), flows.size)
    np.add.at(need, (flows.coflow, flows.sink), flows.size)
    assert sorted(groups) == list(range(coflows))
    assert may_be_bssi(need, fabric.coflows.weight, groups.tolist())


def check_rings(fabric: Fabric, r: Any) -> None:
    """At each port are the lines of served groups that have unfinished flows, in order of levels."""
    lines = fabric.lines
    level = r.level[lines.group]
    for port in range(fabric.speed.size):
        ring, line = [], r.next[r.ports[0] + port]
        while line < r.ports[0]:
            assert r.prev[r.next[line]] == line
            ring.append(line)
            line = r.next[line]
        there = np.flatnonzero((lines.port == port) & (lines.left > 0) & (level != NONE))
        assert ring == sorted(there, key=lambda line: level[line])


@given(switches(most=6), st.integers(0, 1 << 32))
@settings(max_examples=25)
def test_groups_that_come_go_and_move_leave_priority_strict(fabric: Fabric, seed: int) -> None:
    flows, left = fabric.flows, fabric.coflows.left
    m, t = make_matching(fabric), np.int64(0)
    r = m.ranking
    rng = np.random.default_rng(seed)
    fresh = rng.permutation(10_000).tolist()
    while left.any():
        for flow in np.flatnonzero(flows.end == t):
            end_flow(fabric, m, t, flow)
        ran = set(np.flatnonzero(flows.end < NEVER))
        for group in rng.integers(left.size, size=rng.integers(4)):
            move_group(fabric, m, t, group, NONE if rng.random() < 0.2 else fresh.pop())
        waiting = np.flatnonzero((r.level[: left.size] == NONE) & (left > 0))
        if waiting.size > 0 and not ((r.level[: left.size] != NONE) & (left > 0)).any():
            move_group(fabric, m, t, waiting[0], fresh.pop())
        fill_ports(fabric, m, t)
        runs = set(np.flatnonzero(flows.end < NEVER))
        assert ran ^ runs <= set(m.changed[: m.changes[0]])
        assert m.running[0] == len(runs)
        assert (m.flow == NONE).sum() == fabric.speed.size - 2 * len(runs)
        m.changes[0] = 0
        check_strict_priority(fabric, r, m)
        check_rings(fabric, r)
        t = flows.end.min()
    sent = np.bincount(flows.coflow, flows.size)
    assert np.allclose(fabric.coflows.sent, sent, atol=flows.size.size)
