"""Max-min fair rates for single flows: water-filling (D. Bertsekas, R. Gallager, Data Networks, 6.5.2).

Ports are filled in ascending order of their level, the rate of the flows whose bottleneck they are; a port *owns* the
pairs whose flows have its rate. Three things keep a decision cheap. The flows of a pair have one rate, so pairs are
counted, not flows. When flows end, all ports with a lower level than theirs stay as they are, and filling begins there.
And what flows have been sent is counted once for each port: each port has a clock that runs at its level, a pair's
flows end when their owner's clock has reached a mark, and only pairs that change their owner are updated; for the
others a decision reads the port's list, two numbers a pair. The residual bandwidth of ports is kept from one decision
to the next; arrivals recompute it, so that rounding errors do not add up.

A policy calls `end_due`, then `add_coflow` for what has arrived, then `fill`.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.flow_ends import whole_ns
from actors.fabric.heap import drop, push, sink_first
from actors.fabric.port_pairs import Pairs, insert, make_pairs, remove_first, set_amount
from actors.fabric.ports import Fabric, mark_ended
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.kernel.world import NEVER


class Fair(NamedTuple):
    """Rates of the flows of Q pairs at N ports, and the bytes they have been sent."""

    pairs: Pairs  # amount: unfinished flows
    until: np.ndarray  # [F] what its pair will have served each of its flows when a flow ends, bytes
    mark: np.ndarray  # [Q] that of the pair's first flow
    offset: np.ndarray  # [Q] what the pair has served each of its flows, less its owner's clock
    num_fillings: np.ndarray  # [1] how many times a port was filled
    level: np.ndarray  # [N] rate of the flows whose bottleneck a port is, inf where it is none's
    # [N] number of its filling, NEVER where none: of two ports the lower one owns their pair
    filled: np.ndarray
    previously_filled: np.ndarray  # [N] the same before the decision that is being made
    clock: np.ndarray  # [N] bytes, at `since`
    since: np.ndarray  # [N] ns
    first: np.ndarray  # [N] what a port's clock shows when the first flow of its own pairs ends
    first_is_stale: np.ndarray  # [N] 1: `first` is to be looked for
    next_end: np.ndarray  # [N] when that is, ns
    is_unfilled: np.ndarray  # [N] 1.0: its level is not known yet; else 0.0
    num_flows: np.ndarray  # [N] unfinished flows
    residual: np.ndarray  # [N] residual bandwidth, bytes per ns
    unassigned: np.ndarray  # [N] flows that have no rate yet
    ended: np.ndarray  # [F] flows that have ended at the last instant, the first `num_ended`
    num_ended: np.ndarray  # [1]
    heap_level: np.ndarray  # heap of ports to be filled, by level
    heap_port: np.ndarray
    heap_size: np.ndarray  # [1]


def make_fair(fabric: Fabric) -> Fair:
    """Return an allocation without flows."""
    ports, pairs = fabric.speed.size, make_pairs(fabric)
    return Fair(
        pairs=pairs,
        until=np.zeros(pairs.of_flow.size),
        mark=np.zeros(pairs.head.size),
        offset=np.zeros(pairs.head.size),
        num_fillings=np.zeros(1, np.int64),
        level=np.full(ports, np.inf),
        filled=np.full(ports, NEVER),
        previously_filled=np.full(ports, NEVER),
        clock=np.zeros(ports),
        since=np.zeros(ports, np.int64),
        first=np.full(ports, np.inf),
        first_is_stale=np.zeros(ports, np.int64),
        next_end=np.full(ports, NEVER),
        is_unfilled=np.zeros(ports),
        num_flows=np.zeros(ports),
        residual=np.zeros(ports),
        unassigned=np.zeros(ports),
        ended=np.zeros(pairs.of_flow.size, np.int64),
        num_ended=np.zeros(1, np.int64),
        heap_level=np.zeros(2 * ports),
        heap_port=np.zeros(2 * ports, np.int64),
        heap_size=np.zeros(1, np.int64),
    )


@compiled
def next_due(f: Fair) -> int:
    """Return when the next flow ends, NEVER if none runs."""
    t = NEVER
    for port in range(f.next_end.size):
        t = min(t, f.next_end[port])
    return t


@compiled
def end_due(fabric: Fabric, f: Fair, t: int) -> float:
    """End the flows whose time has come at t; return the lowest level that must be recomputed, inf if none."""
    lowest = np.inf
    f.num_ended[0] = 0
    for port in range(f.next_end.size):
        if f.next_end[port] <= t:
            lowest = min(lowest, f.level[port])
            end_flows(fabric, f, t, port)
    return lowest


@compiled
def add_coflow(fabric: Fabric, f: Fair, t: int, coflow: int) -> None:
    """Add the flows of a coflow; all levels must then be recomputed, from 0.0 on."""
    for flow in range(fabric.coflows.first_flow[coflow], fabric.coflows.first_flow[coflow + 1]):
        if f.pairs.of_flow[flow] != NONE:
            add_flow(fabric, f, t, flow)


@inlined
def owns(filled: np.ndarray, port: int, other: int) -> bool:
    """Return whether the pair of two ports is the first one's."""
    return filled[port] < filled[other] or (filled[port] == filled[other] and port < other)


@inlined
def run_clock(f: Fair, t: int, port: int) -> None:
    """Advance a port's clock to time t."""
    if f.level[port] < np.inf:
        f.clock[port] += f.level[port] * (t - f.since[port])
    f.since[port] = t


@compiled
def add_flow(fabric: Fabric, f: Fair, t: int, flow: int) -> None:
    """Add a flow to its pair."""
    p, flows = f.pairs, fabric.flows
    pair, source, sink = p.of_flow[flow], flows.source[flow], flows.sink[flow]
    owner = source if owns(f.filled, source, sink) else sink
    run_clock(f, t, owner)
    if p.flows[pair] == 0:
        f.offset[pair] = -f.clock[owner]
    f.until[flow] = f.clock[owner] + f.offset[pair] + flows.size[flow]
    insert(p, f.until, flow)
    set_amount(p, pair, p.flows[pair])
    f.mark[pair] = f.until[p.queue[p.head[pair]]]
    f.first_is_stale[owner] = 1
    f.num_flows[source] += 1.0
    f.num_flows[sink] += 1.0


@compiled
def end_flows(fabric: Fabric, f: Fair, t: int, port: int) -> None:
    """End those flows of a port's own pairs whose time has come, to the nanosecond."""
    p = f.pairs
    run_clock(f, t, port)
    f.first_is_stale[port] = 1
    shown = f.clock[port] + 0.5 * f.level[port]
    i = p.first[port]
    while i < p.first[port] + p.size[port]:
        pair, other = p.pair[i], np.int64(p.other[i])
        pair_is_empty: bool = False
        if owns(f.filled, port, other):
            while not pair_is_empty and f.mark[pair] - f.offset[pair] <= shown:
                flow = p.queue[p.head[pair]]
                mark_ended(fabric, t, flow)
                f.ended[f.num_ended[0]] = flow
                f.num_ended[0] += 1
                for end in (port, other):
                    f.num_flows[end] -= 1.0
                    f.residual[end] += f.level[port]
                pair_is_empty = remove_first(p, pair)
                if not pair_is_empty:
                    set_amount(p, pair, p.flows[pair])
                    f.mark[pair] = f.until[p.queue[p.head[pair]]]
        if not pair_is_empty:
            i += 1  # else another pair is at this place of the list now


@compiled
def fill(fabric: Fabric, f: Fair, t: int, lowest: float) -> None:
    """Recompute the rates of flows at ports whose level is at least `lowest`; lower levels stay as they are."""
    f.heap_size[0] = 0
    for port in range(f.level.size):
        if lowest == 0.0:
            f.residual[port], f.unassigned[port] = fabric.speed[port], f.num_flows[port]
        elif lowest <= f.level[port] < np.inf:
            take_back(f, port)
    for port in range(f.level.size):
        f.previously_filled[port], f.is_unfilled[port] = f.filled[port], 0.0
        if f.level[port] >= lowest:
            run_clock(f, t, port)
            f.filled[port] = f.next_end[port] = NEVER
            f.level[port] = np.inf
            if f.unassigned[port] > 0.0:
                f.is_unfilled[port] = 1.0
                push(f.heap_level, f.heap_port, f.heap_size, f.residual[port] / f.unassigned[port], port)
    while f.heap_size[0] > 0:
        level, port = f.heap_level[0], f.heap_port[0]
        if f.unassigned[port] == 0.0:
            drop(f.heap_level, f.heap_port, f.heap_size)
            continue
        now = f.residual[port] / f.unassigned[port]
        if now > level:  # flows with other bottlenecks have got their rates meanwhile
            sink_first(f.heap_level, f.heap_port, f.heap_size[0], now, port)
        else:
            drop(f.heap_level, f.heap_port, f.heap_size)
            fill_port(f, t, port, level)


@compiled
def take_back(f: Fair, port: int) -> None:
    """Take their rates from the flows of a port's own pairs."""
    p, level, filled, num_flows = f.pairs, f.level[port], f.filled[port], 0.0
    for i in range(p.first[port], p.first[port] + p.size[port]):  # without a branch: half of them are its own
        other = p.other[i]
        flows = p.amount[i] if filled < f.filled[other] else 0.0
        num_flows += flows
        f.residual[other] += flows * level
        f.unassigned[other] += flows
    f.residual[port] += num_flows * level
    f.unassigned[port] += num_flows


@compiled
def fill_port(f: Fair, t: int, port: int, level: float) -> None:
    """Make a port the owner of its pairs that have none yet."""
    p, previously_filled = f.pairs, f.previously_filled[port]
    first, end = p.first[port], p.first[port] + p.size[port]
    f.level[port], f.is_unfilled[port] = level, 0.0
    f.num_fillings[0] += 1
    f.filled[port] = f.num_fillings[0]
    given = 0.0
    first_end = np.inf if f.first_is_stale[port] else f.first[port]
    for i in range(first, end):
        other = p.other[i]
        flows = p.amount[i] * f.is_unfilled[other]
        f.residual[other] -= flows * level
        f.unassigned[other] -= flows
        given += flows
        if (
            f.previously_filled[other] <= previously_filled
            and flows > 0.0
            and owns(f.previously_filled, other, port)
        ):
            f.offset[p.pair[i]] += f.clock[other] - f.clock[port]
            f.first_is_stale[other] = 1
            first_end = min(first_end, f.mark[p.pair[i]] - f.offset[p.pair[i]])
    if f.first_is_stale[port]:
        for i in range(first, end):
            if owns(f.filled, port, p.other[i]):
                first_end = min(first_end, f.mark[p.pair[i]] - f.offset[p.pair[i]])
    f.first_is_stale[port], f.first[port] = 0, first_end
    f.residual[port], f.unassigned[port] = f.residual[port] - given * level, 0.0
    f.next_end[port] = t + whole_ns((first_end - f.clock[port]) / level)
