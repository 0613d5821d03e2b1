"""Shortest remaining flow first (pFabric's ideal; M. Alizadeh et al., SIGCOMM 2013): greedy over single flows.

The flow with the least left is served at full speed; then, of the flows whose two ports are free, the flow with the
least left, and so on. Of the flows between two ports only the shortest can be served; it stays the shortest while it
runs. When a flow ends, each of its ports searches for the shortest flow whose other port is free, or serves a longer
flow, which then loses its ports; the effects of that come later in the order, as in `actors.fabric.greedy`. At arrivals
all ports search again.

A policy calls `end_flow` for flows that end, `arrive` for coflows that arrive, then `match`.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.flow_ends import add_end, predict_end
from actors.fabric.initial_arrays import at_start, per
from actors.fabric.port_pairs import Pairs, insert, pair_between, pairs_of, remove_first, set_amount
from actors.fabric.ports import Fabric, flow_speed, flows_of, mark_ended, takes_bandwidth
from actors.kernel.compiled import compiled, inlined
from actors.kernel.heap import Heap, drop, make_heap, push
from actors.kernel.queue import NEVER, NONE


class Shortest(NamedTuple):
    """The flow that each port serves."""

    pairs: Pairs  # amount: bytes left of the shortest
    searched: Heap  # ports that have found a flow, by what that flow has left
    ends: Heap  # of running flows
    flow: np.ndarray = per("port", NONE)  # the flow that a port serves, or NONE
    # what that flow had left when it was last settled, inf: no flow
    served_left: np.ndarray = per("port", np.inf)
    must_search: np.ndarray = per("port")  # 1: the port has to search
    # the place in the port's list of the pair that it has found, or NONE
    found: np.ndarray = per("port", NONE)
    # the first `num_served`: flows to which the last `match` gave their ports
    served: np.ndarray = per("port")
    num_served: np.ndarray = per("run")


def make_shortest(fabric: Fabric) -> Shortest:
    """Return a switch without flows."""
    pairs, ports = pairs_of(fabric), fabric.speed.size
    return at_start(
        Shortest, fabric, pairs=pairs, searched=make_heap(4 * ports, 0.0), ends=make_heap(8 * ports)
    )


@inlined
def show_shortest(fabric: Fabric, p: Pairs, pair: int) -> None:
    """Set the amount of a pair to the bytes left of its shortest flow."""
    set_amount(p, pair, fabric.flows.left[p.head[pair]])


@compiled
def settle(fabric: Fabric, s: Shortest, t: int, flow: int) -> None:
    """Account for what a running flow has sent."""
    flows = fabric.flows
    flows.left[flow] -= flow_speed(fabric, flow) * (t - flows.since[flow])
    flows.since[flow] = t
    show_shortest(fabric, s.pairs, s.pairs.of_flow[flow])


@compiled
def end_flow(fabric: Fabric, s: Shortest, t: int, flow: int) -> bool:
    """End a flow, and let its ports search again; return whether its coflow has ended."""
    flows, p = fabric.flows, s.pairs
    coflow_ended = mark_ended(fabric, t, flow)
    for port in (flows.source[flow], flows.sink[flow]):
        set_served(fabric, s, port, NONE)
        s.must_search[port] = 1
    pair = p.of_flow[flow]
    if not remove_first(p, pair):
        show_shortest(fabric, p, pair)
    return coflow_ended


@compiled
def arrive(fabric: Fabric, s: Shortest, t: int, first: int, last: int) -> None:
    """Add coflows `first` to `last`, and let all ports search again.

    A running flow keeps its `end` until `preempt` stops it.
    """
    flows, p = fabric.flows, s.pairs
    for port in range(fabric.side):
        flow = s.flow[port]
        if flow != NONE:
            settle(fabric, s, t, flow)
            set_served(fabric, s, flows.sink[flow], flow)
            set_served(fabric, s, port, flow)
    for coflow in range(first, last + 1):
        for flow in flows_of(fabric.coflows, coflow):
            if takes_bandwidth(fabric, flow):
                pair = pair_between(p, flows.source[flow], flows.sink[flow])
                insert(p, flows.left, pair, flow)
                show_shortest(fabric, p, pair)
    for port in range(s.flow.size):
        s.must_search[port] = p.size[port] > 0


@inlined
def is_available(fabric: Fabric, s: Shortest, t: int, port: int, left: float) -> bool:
    """Return whether a port serves nothing, or a flow with more than `left` bytes left."""
    if s.served_left[port] <= left:
        return False
    flow = s.flow[port]
    if flow == NONE:
        return True
    return s.served_left[port] - flow_speed(fabric, flow) * (t - fabric.flows.since[flow]) > left


@inlined
def set_served(fabric: Fabric, s: Shortest, port: int, flow: int) -> None:
    """Let a port serve a flow, or NONE."""
    s.flow[port] = flow
    s.served_left[port] = np.inf if flow == NONE else fabric.flows.left[flow]


@compiled
def search_port(fabric: Fabric, s: Shortest, t: int, port: int) -> None:
    """Find the shortest flow that a port could serve, and enter the port into the heap."""
    p, best = s.pairs, np.inf
    s.found[port] = NONE
    for i in range(p.first[port], p.first[port] + p.size[port]):
        left = p.amount[i]
        if left < best and is_available(fabric, s, t, p.other[i], left):
            best, s.found[port] = left, i
    s.must_search[port] = 0
    if s.found[port] != NONE:
        push(s.searched, best, port)


@compiled
def match(fabric: Fabric, s: Shortest, t: int) -> None:
    """Let all ports search that must, and serve the flows that they find, the shortest first."""
    flows, p = fabric.flows, s.pairs
    s.num_served[0] = 0
    for port in range(s.must_search.size):
        if s.must_search[port]:
            search_port(fabric, s, t, port)
    while s.searched.size[0] > 0:
        left, port = s.searched.keys[0], s.searched.values[0]
        drop(s.searched)
        found = s.found[port]
        if found == NONE or p.amount[found] != left:
            continue  # it has searched again since
        if not is_available(fabric, s, t, port, left):
            continue
        other = p.other[found]
        if not is_available(fabric, s, t, other, left):
            search_port(fabric, s, t, port)
            continue
        pair = p.pair[found]
        flow = p.head[pair]
        preempt(fabric, s, t, port, flow)
        preempt(fabric, s, t, other, flow)
        set_served(fabric, s, port, flow)
        set_served(fabric, s, other, flow)
        if flows.end[flow] == NEVER:
            predict_end(fabric, t, flow)
            add_end(flows, s.ends, flow)
            s.served[s.num_served[0]] = flow
            s.num_served[0] += 1


@compiled
def preempt(fabric: Fabric, s: Shortest, t: int, port: int, flow: int) -> None:
    """Stop the flow that a port serves, unless it is `flow`; the other port of that flow searches again."""
    flows, loser = fabric.flows, s.flow[port]
    if loser == NONE or loser == flow:
        return
    third = flows.source[loser] + flows.sink[loser] - port
    settle(fabric, s, t, loser)
    flows.end[loser] = NEVER
    set_served(fabric, s, port, NONE)
    set_served(fabric, s, third, NONE)
    search_port(fabric, s, t, third)
