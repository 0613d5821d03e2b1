"""Max-min fair rates for single flows: water-filling (D. Bertsekas, R. Gallager, Data Networks, 6.5.2).

The level of a port is the rate of the flows whose bottleneck it is. Ports are filled in ascending order of their level;
a port *owns* the pairs of ports whose flows have its rate. Three things keep a decision cheap. All flows of a pair have
one rate, so pairs are counted, not flows. When flows end, ports with lower levels than theirs stay as they are, and
filling begins at their level. Each port has a clock that runs at its level, and a flow of one of its pairs ends when
the clock shows a mark: only pairs that get another owner are updated; for the others a decision reads the port's list,
two numbers a pair. The residual bandwidth of ports is kept from one decision to the next; arrivals recompute it, so
that rounding errors do not add up.

A policy calls `end_due`, then `add_coflow` for each coflow that has arrived, then `fill`.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.port_pairs import (
    Pairs,
    insert,
    pair_between,
    pairs_of,
    remove,
    remove_first,
    set_amount,
)
from actors.fabric.ports import Fabric, flows_of, mark_ended, takes_bandwidth, whole_ns
from actors.initial_arrays import at_start, per
from actors.kernel.compiled import compiled, inlined
from actors.kernel.heap import Heap, drop, make_heap, push, replace_first
from actors.kernel.queue import NEVER


class Fair(NamedTuple):
    """Rates of the flows of Q pairs of ports, and the bytes that the flows have been sent."""

    pairs: Pairs  # amount: unfinished flows
    unfilled: Heap  # ports to be filled, by level
    mark: np.ndarray  # [Q] `until` of the pair's first flow
    offset: np.ndarray  # [Q] what the pair has served each of its flows, less its owner's clock
    # what its pair will have served each of its flows when a flow ends, bytes
    until: np.ndarray = per("flow", 0.0)
    num_fillings: np.ndarray = per("run")  # how many times a port was filled
    # rate of the flows whose bottleneck a port is, inf: it is not a bottleneck
    level: np.ndarray = per("port", np.inf)
    # number of its filling, NEVER: not filled; a pair is owned by the port with the lower number
    filled: np.ndarray = per("port", NEVER)
    previously_filled: np.ndarray = per("port", NEVER)  # the same before the decision that is being made
    clock: np.ndarray = per("port", 0.0)  # bytes, at `since`
    since: np.ndarray = per("port")  # ns
    # what a port's clock shows when the first flow of its own pairs ends
    first: np.ndarray = per("port", np.inf)
    first_is_stale: np.ndarray = per("port")  # 1: `first` must be searched for
    next_end: np.ndarray = per("port", NEVER)  # when that flow ends, ns
    is_unfilled: np.ndarray = per("port", 0.0)  # 1.0: its level is not known yet; else 0.0
    num_flows: np.ndarray = per("port", 0.0)  # unfinished flows
    residual: np.ndarray = per("port", 0.0)  # residual bandwidth, bytes per ns
    unassigned: np.ndarray = per("port", 0.0)  # flows that have no rate yet
    ended: np.ndarray = per("flow")  # the first `num_ended`: flows that ended at the last instant
    num_ended: np.ndarray = per("run")


def make_fair(fabric: Fabric, pairs: Pairs | None = None) -> Fair:
    """Return an allocation without flows; by default there is room for the pairs of all flows of the fabric."""
    pairs = pairs_of(fabric) if pairs is None else pairs
    mark = np.zeros(pairs.head.size)
    unfilled = make_heap(2 * fabric.speed.size, 0.0)
    return at_start(Fair, fabric, pairs=pairs, unfilled=unfilled, mark=mark, offset=mark.copy())


@compiled
def next_due(fair: Fair) -> int:
    """Return when the next flow ends, NEVER if none runs."""
    t = NEVER
    for port in range(fair.next_end.size):
        t = min(t, fair.next_end[port])
    return t


@compiled
def end_due(fabric: Fabric, fair: Fair, t: int) -> float:
    """End the flows that end at t; return the lowest level that must be recomputed, inf: no flow has ended."""
    lowest = np.inf
    fair.num_ended[0] = 0
    for port in range(fair.next_end.size):
        if fair.next_end[port] <= t:
            lowest = min(lowest, fair.level[port])
            end_flows(fabric, fair, t, port)
    return lowest


@compiled
def add_coflow(fabric: Fabric, fair: Fair, t: int, coflow: int) -> None:
    """Add the flows of a coflow; all levels must then be recomputed, from 0.0 on."""
    for flow in flows_of(fabric.coflows, coflow):
        if takes_bandwidth(fabric, flow):
            add_flow(fabric, fair, t, flow)


@inlined
def owns(filled: np.ndarray, port: int, other: int) -> bool:
    """Return whether `port` owns its pair with `other`."""
    return filled[port] < filled[other] or (filled[port] == filled[other] and port < other)


@inlined
def run_clock(fair: Fair, t: int, port: int) -> None:
    """Advance a port's clock to time t."""
    if fair.level[port] < np.inf:
        fair.clock[port] += fair.level[port] * (t - fair.since[port])
    fair.since[port] = t


@compiled
def add_flow(fabric: Fabric, fair: Fair, t: int, flow: int) -> None:
    """Add a flow to its pair."""
    p, flows = fair.pairs, fabric.flows
    source, sink = flows.source[flow], flows.sink[flow]
    owner = source if owns(fair.filled, source, sink) else sink
    run_clock(fair, t, owner)
    pair = pair_between(p, source, sink)
    if p.flows[pair] == 0:
        fair.offset[pair] = -fair.clock[owner]
    fair.until[flow] = fair.clock[owner] + fair.offset[pair] + flows.size[flow]
    insert(p, fair.until, pair, flow)
    set_amount(p, pair, p.flows[pair])
    fair.mark[pair] = fair.until[p.head[pair]]
    fair.first_is_stale[owner] = 1
    fair.num_flows[source] += 1.0
    fair.num_flows[sink] += 1.0


@compiled
def take_out(fabric: Fabric, fair: Fair, t: int, flow: int) -> float:
    """End a flow before its time; return the bytes it had left. All levels must then be recomputed, from 0.0 on."""
    p, pair, flows = fair.pairs, fair.pairs.of_flow[flow], fabric.flows
    source, sink = flows.source[flow], flows.sink[flow]
    owner = source if owns(fair.filled, source, sink) else sink
    run_clock(fair, t, owner)
    left = fair.until[flow] - fair.offset[pair] - fair.clock[owner]
    mark_ended(fabric, t, flow)
    if not remove(p, pair, flow):
        set_amount(p, pair, p.flows[pair])
        fair.mark[pair] = fair.until[p.head[pair]]
    fair.first_is_stale[owner] = 1
    fair.num_flows[source] -= 1.0
    fair.num_flows[sink] -= 1.0
    return min(max(left, 0.0), flows.size[flow])


@compiled
def end_flows(fabric: Fabric, fair: Fair, t: int, port: int) -> None:
    """End the flows of a port's own pairs that end at t, to the nanosecond."""
    p = fair.pairs
    run_clock(fair, t, port)
    fair.first_is_stale[port] = 1
    shown = fair.clock[port] + 0.5 * fair.level[port]
    i = p.first[port]
    while i < p.first[port] + p.size[port]:
        pair, other = p.pair[i], np.int64(p.other[i])
        pair_is_empty: bool = False
        if owns(fair.filled, port, other):
            while not pair_is_empty and fair.mark[pair] - fair.offset[pair] <= shown:
                flow = p.head[pair]
                mark_ended(fabric, t, flow)
                fair.ended[fair.num_ended[0]] = flow
                fair.num_ended[0] += 1
                for end in (port, other):
                    fair.num_flows[end] -= 1.0
                    fair.residual[end] += fair.level[port]
                pair_is_empty = remove_first(p, pair)
                if not pair_is_empty:
                    set_amount(p, pair, p.flows[pair])
                    fair.mark[pair] = fair.until[p.head[pair]]
        if not pair_is_empty:
            i += 1  # else another pair has got this place in the list


@compiled
def fill(fabric: Fabric, fair: Fair, t: int, lowest: float) -> None:
    """Recompute the rates of flows at ports whose level is at least `lowest`; lower levels stay as they are."""
    fair.unfilled.size[0] = 0
    for port in range(fair.level.size):
        if lowest == 0.0:
            fair.residual[port], fair.unassigned[port] = fabric.speed[port], fair.num_flows[port]
        elif lowest <= fair.level[port] < np.inf:
            take_back(fair, port)
    for port in range(fair.level.size):
        fair.previously_filled[port], fair.is_unfilled[port] = fair.filled[port], 0.0
        if fair.level[port] >= lowest:
            run_clock(fair, t, port)
            fair.filled[port] = fair.next_end[port] = NEVER
            fair.level[port] = np.inf
            if fair.unassigned[port] > 0.0:
                fair.is_unfilled[port] = 1.0
                push(fair.unfilled, fair.residual[port] / fair.unassigned[port], port)
    while fair.unfilled.size[0] > 0:
        level, port = fair.unfilled.keys[0], fair.unfilled.values[0]
        if fair.unassigned[port] == 0.0:
            drop(fair.unfilled)
            continue
        now = fair.residual[port] / fair.unassigned[port]
        if now > level:  # flows with other bottlenecks have got their rates meanwhile
            replace_first(fair.unfilled, now, port)
        else:
            drop(fair.unfilled)
            fill_port(fair, t, port, level)


@compiled
def take_back(fair: Fair, port: int) -> None:
    """Remove the rates of the flows of a port's own pairs."""
    p, level, filled, num_flows = fair.pairs, fair.level[port], fair.filled[port], 0.0
    for i in range(
        p.first[port], p.first[port] + p.size[port]
    ):  # without a branch: half of the pairs are its own
        other = p.other[i]
        flows = p.amount[i] if filled < fair.filled[other] else 0.0
        num_flows += flows
        fair.residual[other] += flows * level
        fair.unassigned[other] += flows
    fair.residual[port] += num_flows * level
    fair.unassigned[port] += num_flows


@compiled
def fill_port(fair: Fair, t: int, port: int, level: float) -> None:
    """Make a port the owner of its pairs that have no owner yet."""
    p, previously_filled = fair.pairs, fair.previously_filled[port]
    first, end = p.first[port], p.first[port] + p.size[port]
    fair.level[port], fair.is_unfilled[port] = level, 0.0
    fair.num_fillings[0] += 1
    fair.filled[port] = fair.num_fillings[0]
    given = 0.0
    first_end = np.inf if fair.first_is_stale[port] else fair.first[port]
    for i in range(first, end):
        other = p.other[i]
        flows = p.amount[i] * fair.is_unfilled[other]
        fair.residual[other] -= flows * level
        fair.unassigned[other] -= flows
        given += flows
        if (
            fair.previously_filled[other] <= previously_filled
            and flows > 0.0
            and owns(fair.previously_filled, other, port)
        ):
            fair.offset[p.pair[i]] += fair.clock[other] - fair.clock[port]
            fair.first_is_stale[other] = 1
            first_end = min(first_end, fair.mark[p.pair[i]] - fair.offset[p.pair[i]])
    if fair.first_is_stale[port]:
        for i in range(first, end):
            if owns(fair.filled, port, p.other[i]):
                first_end = min(first_end, fair.mark[p.pair[i]] - fair.offset[p.pair[i]])
    fair.first_is_stale[port], fair.first[port] = 0, first_end
    fair.residual[port], fair.unassigned[port] = fair.residual[port] - given * level, 0.0
    fair.next_end[port] = t + whole_ns((first_end - fair.clock[port]) / level)
