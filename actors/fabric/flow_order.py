"""Greedy rates for single flows in an order in which each flow has its own place, also within its coflow.

Of the flows of one coflow, `actors.fabric.greedy` prefers those that run, and then goes by ports. Here a flow takes
both of its ports if no flow before it has taken one, as in the pseudocode of greedy allocation: coflows in their order,
the flows of each in the order of the workload. So a running flow may be stopped for another flow of its coflow.

A decision computes the whole allocation, O(flows of the coflows that are served). When a flow ends, its two ports go to
the next flows there that can use them; a flow that takes a port from a later flow frees the other port of that flow,
and so on. A heap gives the flows in ascending order of their places, and each flow starts or stops at most once.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.greedy import (
    Matching,
    fill_ports,
    free_port,
    serve_in_order,
    start_flow,
    stop_flow,
    withdraw_offer,
)
from actors.fabric.initial_arrays import at_start, per
from actors.fabric.ports import Fabric, flows_of
from actors.fabric.ranking import Ranking
from actors.kernel.arrays import fill
from actors.kernel.compiled import compiled, inlined
from actors.kernel.heap import Heap, drop, make_heap, push
from actors.kernel.queue import NEVER, NONE
from actors.scheduler import Parameter


def flow_order(default: str) -> Parameter:
    """Return the parameter for the order of the flows of one coflow."""
    return Parameter(
        "flow_order",
        default,
        "choice",
        "the order of a coflow's own flows: that of the workload, or running ones first and then by ports",
        choices=("workload", "ports"),
    )


class FlowOrder(NamedTuple):
    """The order of F flows between N ports; with `flow_order=ports` its arrays are not used."""

    as_workload: bool  # else the order is that of `actors.fabric.greedy`
    flow: np.ndarray  # [F] coflow by coflow, the flows of each in the order of the workload
    # [F] the place of a flow among those that are served; for a running flow its level in `Matching`
    rank: np.ndarray
    first: np.ndarray  # [N + 1] the flows at port p are at[first[p]:first[p + 1]], by rank
    at: np.ndarray  # [2 F]
    candidates: Heap  # scratch: flows that may take ports: their ranks, and their places in `at`
    # scratch: the flow that is to have the port, or NONE; or the place in `at` for the port's next flow
    next: np.ndarray = per("port", NONE)


def make_flow_order(world: CoflowWorld, order: str) -> FlowOrder:
    """Return the order of flows for a value of the parameter, with no coflow served."""
    flows, row, ports = world.fabric.flows, world.row_of_flow, world.fabric.speed.size
    used = order == "workload"
    count = flows.coflow.size if used else 0
    place = np.full(flows.coflow.size, row.size)  # flows that only updates make come last
    np.minimum.at(place, row, np.arange(row.size))
    return at_start(
        FlowOrder,
        world.fabric,
        as_workload=used,
        flow=np.lexsort((place, flows.coflow))[:count],
        rank=np.zeros(count, np.int64),
        first=np.zeros(ports + 1, np.int64),
        at=np.zeros(2 * count, np.int64),
        candidates=make_heap(2 * ports),
    )


@compiled
def serve_coflows(
    fabric: Fabric, r: Ranking, m: Matching, f: FlowOrder, t: int, coflows: np.ndarray, count: int
) -> None:
    """Serve the first `count` of `coflows` in their order; note in `m` which flows start and stop."""
    if f.as_workload:
        list_flows(fabric, f, coflows, count)
        serve_flows(fabric, m, f, t, coflows, count)
    else:
        serve_in_order(fabric, r, m, t, coflows, count)
        fill_ports(fabric, r, m, t)


@inlined
def refill_ports(fabric: Fabric, r: Ranking, m: Matching, f: FlowOrder, t: int) -> None:
    """Give ports that flows have left to the next flows of the coflows that are served."""
    if f.as_workload:
        refill_in_order(fabric, m, f, t)
    else:
        fill_ports(fabric, r, m, t)


@compiled
def list_flows(fabric: Fabric, f: FlowOrder, coflows: np.ndarray, count: int) -> None:
    """Rank the unfinished flows of coflows, and list them at their ports."""
    flows = fabric.flows
    fill(f.first, 0)
    rank: int = 0
    for i in range(count):
        for k in flows_of(fabric.coflows, coflows[i]):
            flow = f.flow[k]
            if flows.finish[flow] == NEVER:
                f.rank[flow] = rank
                rank += 1
                f.first[flows.source[flow] + 1] += 1
                f.first[flows.sink[flow] + 1] += 1
    for port in range(f.next.size):
        f.next[port] = f.first[port]
        f.first[port + 1] += f.first[port]
    for i in range(count):
        for k in flows_of(fabric.coflows, coflows[i]):
            flow = f.flow[k]
            if flows.finish[flow] == NEVER:
                for port in (flows.source[flow], flows.sink[flow]):
                    f.at[f.next[port]] = flow
                    f.next[port] += 1


@compiled
def serve_flows(fabric: Fabric, m: Matching, f: FlowOrder, t: int, coflows: np.ndarray, count: int) -> None:
    """Give ports to flows in their order; stop flows that have lost theirs, and start those that have got theirs."""
    flows = fabric.flows
    find_flows(fabric, f, coflows, count)
    forget_offers(m)
    for source in range(fabric.side):
        flow = m.flow[source]
        if flow != NONE and f.next[source] != flow:
            stop_flow(fabric, m, t, flow)
            free_port(m, source)
            free_port(m, flows.sink[flow])
    for source in range(fabric.side):
        flow = f.next[source]
        if flow == NONE:
            continue
        if flow != m.flow[source]:
            start_flow(fabric, m, t, flow, f.rank[flow])
        m.level[source] = m.level[flows.sink[flow]] = f.rank[flow]


@compiled
def find_flows(fabric: Fabric, f: FlowOrder, coflows: np.ndarray, count: int) -> None:
    """Find the flow that is to have each port: in order, each flow takes both of its ports if both are free."""
    flows = fabric.flows
    fill(f.next, NONE)
    for i in range(count):
        for k in flows_of(fabric.coflows, coflows[i]):
            flow = f.flow[k]
            source, sink = flows.source[flow], flows.sink[flow]
            if flows.finish[flow] == NEVER and f.next[source] == NONE and f.next[sink] == NONE:
                f.next[source] = f.next[sink] = flow


@inlined
def forget_offers(m: Matching) -> None:
    """Forget which ports flows have left."""
    for i in range(m.num_offered[0]):
        withdraw_offer(m, m.offered[i])
    m.num_offered[0] = 0


@compiled
def refill_in_order(fabric: Fabric, m: Matching, f: FlowOrder, t: int) -> None:
    """Give ports that flows have left to the next flows there; ports of flows that lose one go to later flows."""
    flows = fabric.flows
    f.candidates.size[0] = 0
    for i in range(m.num_offered[0]):
        port = m.offered[i]
        push_next(fabric, m, f, port, place_after(f, port, m.first[port]))
    forget_offers(m)
    while f.candidates.size[0] > 0:
        place = f.candidates.values[0]
        drop(f.candidates)
        flow = f.at[place]
        source, sink, rank = flows.source[flow], flows.sink[flow], f.rank[flow]
        if rank < m.level[source] and rank < m.level[sink]:
            stop_at(fabric, m, f, t, source)
            stop_at(fabric, m, f, t, sink)
            start_flow(fabric, m, t, flow, rank)
        else:
            push_next(fabric, m, f, source if place < f.first[fabric.side] else sink, place + 1)


@compiled
def push_next(fabric: Fabric, m: Matching, f: FlowOrder, port: int, place: int) -> None:
    """Put the first flow at a port, from a place on, that can have both of its ports into the heap."""
    flows = fabric.flows
    while place < f.first[port + 1]:
        flow = f.at[place]
        rank = f.rank[flow]
        if rank >= m.level[port]:
            return
        if flows.finish[flow] == NEVER and rank < m.level[other_port(fabric, flow, port)]:
            push(f.candidates, rank, place)
            return
        place += 1


@inlined
def other_port(fabric: Fabric, flow: int, port: int) -> int:
    """Return the port at the other end of a flow."""
    return fabric.flows.sink[flow] if fabric.flows.source[flow] == port else fabric.flows.source[flow]


@inlined
def place_after(f: FlowOrder, port: int, rank: int) -> int:
    """Return the place of the first flow at a port that comes after a rank."""
    low, high = f.first[port], f.first[port + 1]
    while low < high:
        middle = (low + high) >> 1
        if f.rank[f.at[middle]] <= rank:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def stop_at(fabric: Fabric, m: Matching, f: FlowOrder, t: int, port: int) -> None:
    """Stop the flow at a port, if there is one; offer its other port to the flows after it."""
    flow, rank = m.flow[port], m.level[port]
    if flow == NONE:
        return
    other = other_port(fabric, flow, port)
    stop_flow(fabric, m, t, flow)
    free_port(m, port)
    free_port(m, other)
    push_next(fabric, m, f, other, place_after(f, other, rank))
