"""Pairs of ports between which flows wait, listed at each of their ports.

Policies of single flows work on pairs: the flows of a pair have one rate (fair), or only the shortest can be served
(pfp). In the list of a port the pairs that have flows come first. Their other ports and one amount lie beside them, so
that a search through a port reads memory in a row.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.ports import Fabric
from actors.kernel.compiled import compiled
from actors.kernel.queue import NONE


class Pairs(NamedTuple):
    """Q pairs of ports that have flows in the workload."""

    of_flow: np.ndarray  # [F] the pair of a flow; NONE for a free local flow
    queue: np.ndarray  # [F] room for the flows of each pair
    head: np.ndarray  # [Q] its unfinished flows are queue[head:head + flows]
    flows: np.ndarray  # [Q]
    place: np.ndarray  # [Q, 2] its places in the lists of its ingress and its egress port
    first: np.ndarray  # [N + 1] where the list of a port begins
    size: np.ndarray  # [N] pairs in the list that have flows; they come first
    pair: np.ndarray  # [2 Q] the lists
    other: np.ndarray  # [2 Q] the other port of a pair
    amount: np.ndarray  # [2 Q] float64, what a policy compares: flows, or bytes left of the shortest


def make_pairs(fabric: Fabric) -> Pairs:
    """Return the pairs of a fabric's flows, with no flow inserted."""
    flows, ports = fabric.flows, fabric.speed.size
    crossing = flows.line[:, 0] != NONE
    keys, pair = np.unique((flows.source * ports + flows.sink)[crossing], return_inverse=True)
    of_flow = np.full(crossing.size, NONE)
    of_flow[crossing] = pair
    source, sink = keys // ports, keys % ports
    near = np.concatenate([source, sink])
    order = np.argsort(near, kind="stable")
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    return Pairs(
        of_flow=of_flow,
        queue=np.zeros(of_flow.size, np.int64),
        head=np.concatenate([[0], np.cumsum(np.bincount(pair))])[:-1],
        flows=np.zeros(keys.size, np.int64),
        place=np.ascontiguousarray(place.reshape(2, -1).T),
        first=np.searchsorted(near[order], np.arange(ports + 1)),
        size=np.zeros(ports, np.int64),
        pair=order % keys.size,
        other=np.concatenate([sink, source])[order].astype(np.uint32),
        amount=np.zeros(order.size),
    )


@compiled
def insert(p: Pairs, key: np.ndarray, flow: int) -> None:
    """Put a flow into the queue of its pair, in order of `key` [F]."""
    pair, queue = p.of_flow[flow], p.queue
    if p.flows[pair] == 0:
        move_edges(p, pair, True)
    first = p.head[pair]
    i = first + p.flows[pair]
    while i > first and key[queue[i - 1]] > key[flow]:
        queue[i] = queue[i - 1]
        i -= 1
    queue[i] = flow
    p.flows[pair] += 1


@compiled
def remove_first(p: Pairs, pair: int) -> bool:
    """Take the first flow out of a pair's queue; return whether the queue is then empty."""
    p.head[pair] += 1
    p.flows[pair] -= 1
    if p.flows[pair] == 0:
        move_edges(p, pair, False)
    return p.flows[pair] == 0


@compiled
def set_amount(p: Pairs, pair: int, amount: float) -> None:
    """Set the amount of a pair at both of its ports."""
    p.amount[p.place[pair, 0]] = p.amount[p.place[pair, 1]] = amount


@compiled
def move_edges(p: Pairs, pair: int, into: bool) -> None:
    """Move a pair into the first part of its ports' lists, that of pairs with flows, or out of it."""
    ports = np.int64(p.other[p.place[pair, 1]]), np.int64(p.other[p.place[pair, 0]])
    for side in range(2):
        port, was = ports[side], p.place[pair, side]
        edge = p.first[port] + (p.size[port] if into else p.size[port] - 1)
        p.size[port] += 1 if into else -1
        p.place[p.pair[edge], side] = was
        p.place[pair, side] = edge
        p.pair[edge], p.pair[was] = p.pair[was], p.pair[edge]
        p.other[edge], p.other[was] = p.other[was], p.other[edge]
        p.amount[edge], p.amount[was] = p.amount[was], p.amount[edge]
