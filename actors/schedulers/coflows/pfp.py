"""Per-flow prioritisation: the flow with the least left goes first, pFabric's ideal (SIGCOMM 2013). Clairvoyant.

There is no coordinator: packets carry priorities, and the network serves them. For single flows this is nearly optimal;
its weakness is that a coflow is as slow as its last flow.

1. A coflow arrives: the two ports of each of its flows know the flow and its size at once.
2. When flows arrive or end, the flow with the least left gets both of its ports, at full speed; then, of the flows
   whose ports are both free, the one with the least left, and so on.

Which flows are served depends on all flows of the switch, which no actor sees: the scheduler has a global view, the
switch is one actor, and only the clock `virtual` runs it. Network delay and costs of a coordinator do not apply.
O(pairs of ports that are searched) a decision.

**Deviations from the paper.** None from the ideal algorithm of section 3; pFabric's switches and transport, which
approximate it, are not modelled.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.agent import note_end, note_start
from actors.fabric.coordinator import Agenda, wake_coordinator
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.messages import DECIDE, REGISTER
from actors.fabric.port_pairs import Pairs, insert, pair_between, pairs_of, remove_first, set_amount
from actors.fabric.ports import (
    Fabric,
    add_end,
    flow_speed,
    flows_of,
    mark_ended,
    next_end,
    run_at_full_speed,
    takes_bandwidth,
)
from actors.initial_arrays import at_start, per
from actors.kernel.compiled import compiled, inlined
from actors.kernel.heap import Heap, drop, make_heap, push
from actors.kernel.queue import NEVER, NONE
from actors.schedulers.coflows.build import coflow_scheduler, coordinator_loops
from actors.schedulers.coflows.fair import NO_COORDINATOR, build_switch, on_arrival
from actors.setting import Setting


class Shortest(NamedTuple):
    """The flow that each port serves.

    Of the flows between two ports only the shortest can be served; it stays the shortest while it runs. When a flow
    ends, each of its ports searches for the shortest flow whose other port is free, or serves a longer flow, which then
    loses its ports; the effects of that come later in the order, as in `actors.fabric.greedy`. At arrivals all ports
    search again.
    """

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


class State(NamedTuple):
    """The state of the switch."""

    agenda: Agenda  # active: coflows that have arrived at this instant
    shortest: Shortest


@compiled
def on_change(w: CoflowWorld, p: State, t: int) -> None:
    """Step 2: end flows, add others, and serve the shortest."""
    fabric, shortest, new = w.fabric, p.shortest, p.agenda.used
    while next_end(fabric.flows, shortest.ends) == t:
        flow = shortest.ends.values[0]
        end_flow(fabric, shortest, t, flow)
        note_end(w, t, flow)
    if new[0] > 0:
        arrive(fabric, shortest, t, p.agenda.active[0], p.agenda.active[new[0] - 1])
        new[0] = 0
    match(fabric, shortest, t)
    for i in range(shortest.num_served[0]):
        start_or_continue(w, t, shortest.served[i])
    following = next_end(fabric.flows, shortest.ends)
    if following < NEVER:
        wake_coordinator(w, p.agenda, following)


@compiled
def start_or_continue(w: CoflowWorld, t: int, flow: int) -> None:
    """Start a flow, or continue it."""
    coflows, coflow = w.fabric.coflows, w.fabric.flows.coflow[flow]
    if w.sending.since[flow] == NONE:
        note_start(w, t, flow)
    w.sending.since[flow] = t
    coflows.start[coflow] = min(coflows.start[coflow], t)


@inlined
def show_shortest(fabric: Fabric, p: Pairs, pair: int) -> None:
    """Set the amount of a pair to the bytes left of its shortest flow."""
    set_amount(p, pair, fabric.flows.left[p.head[pair]])


@compiled
def settle(fabric: Fabric, shortest: Shortest, t: int, flow: int) -> None:
    """Account for what a running flow has sent."""
    flows = fabric.flows
    flows.left[flow] -= flow_speed(fabric, flow) * (t - flows.since[flow])
    flows.since[flow] = t
    show_shortest(fabric, shortest.pairs, shortest.pairs.of_flow[flow])


@compiled
def end_flow(fabric: Fabric, shortest: Shortest, t: int, flow: int) -> bool:
    """End a flow, and let its ports search again; return whether its coflow has ended."""
    flows, p = fabric.flows, shortest.pairs
    coflow_ended = mark_ended(fabric, t, flow)
    for port in (flows.source[flow], flows.sink[flow]):
        set_served(fabric, shortest, port, NONE)
        shortest.must_search[port] = 1
    pair = p.of_flow[flow]
    if not remove_first(p, pair):
        show_shortest(fabric, p, pair)
    return coflow_ended


@compiled
def arrive(fabric: Fabric, shortest: Shortest, t: int, first: int, last: int) -> None:
    """Add coflows `first` to `last`, and let all ports search again.

    A running flow keeps its `end` until `preempt` stops it.
    """
    flows, p = fabric.flows, shortest.pairs
    for port in range(fabric.side):
        flow = shortest.flow[port]
        if flow != NONE:
            settle(fabric, shortest, t, flow)
            set_served(fabric, shortest, flows.sink[flow], flow)
            set_served(fabric, shortest, port, flow)
    for coflow in range(first, last + 1):
        for flow in flows_of(fabric.coflows, coflow):
            if takes_bandwidth(fabric, flow):
                pair = pair_between(p, flows.source[flow], flows.sink[flow])
                insert(p, flows.left, pair, flow)
                show_shortest(fabric, p, pair)
    for port in range(shortest.flow.size):
        shortest.must_search[port] = p.size[port] > 0


@inlined
def is_available(fabric: Fabric, shortest: Shortest, t: int, port: int, left: float) -> bool:
    """Return whether a port serves nothing, or a flow with more than `left` bytes left."""
    if shortest.served_left[port] <= left:
        return False
    flow = shortest.flow[port]
    if flow == NONE:
        return True
    return shortest.served_left[port] - flow_speed(fabric, flow) * (t - fabric.flows.since[flow]) > left


@inlined
def set_served(fabric: Fabric, shortest: Shortest, port: int, flow: int) -> None:
    """Let a port serve a flow, or NONE."""
    shortest.flow[port] = flow
    shortest.served_left[port] = np.inf if flow == NONE else fabric.flows.left[flow]


@compiled
def search_port(fabric: Fabric, shortest: Shortest, t: int, port: int) -> None:
    """Find the shortest flow that a port could serve, and enter the port into the heap."""
    p, best = shortest.pairs, np.inf
    shortest.found[port] = NONE
    for i in range(p.first[port], p.first[port] + p.size[port]):
        left = p.amount[i]
        if left < best and is_available(fabric, shortest, t, p.other[i], left):
            best, shortest.found[port] = left, i
    shortest.must_search[port] = 0
    if shortest.found[port] != NONE:
        push(shortest.searched, best, port)


@compiled
def match(fabric: Fabric, shortest: Shortest, t: int) -> None:
    """Let all ports search that must, and serve the flows that they find, the shortest first."""
    flows, p = fabric.flows, shortest.pairs
    shortest.num_served[0] = 0
    for port in range(shortest.must_search.size):
        if shortest.must_search[port]:
            search_port(fabric, shortest, t, port)
    while shortest.searched.size[0] > 0:
        left, port = shortest.searched.keys[0], shortest.searched.values[0]
        drop(shortest.searched)
        found = shortest.found[port]
        if found == NONE or p.amount[found] != left:
            continue  # it has searched again since
        if not is_available(fabric, shortest, t, port, left):
            continue
        other = p.other[found]
        if not is_available(fabric, shortest, t, other, left):
            search_port(fabric, shortest, t, port)
            continue
        pair = p.pair[found]
        flow = p.head[pair]
        preempt(fabric, shortest, t, port, flow)
        preempt(fabric, shortest, t, other, flow)
        set_served(fabric, shortest, port, flow)
        set_served(fabric, shortest, other, flow)
        if flows.end[flow] == NEVER:
            run_at_full_speed(fabric, t, flow)
            add_end(flows, shortest.ends, flow)
            shortest.served[shortest.num_served[0]] = flow
            shortest.num_served[0] += 1


@compiled
def preempt(fabric: Fabric, shortest: Shortest, t: int, port: int, flow: int) -> None:
    """Stop the flow that a port serves, unless it is `flow`; the other port of that flow searches again."""
    flows, loser = fabric.flows, shortest.flow[port]
    if loser == NONE or loser == flow:
        return
    third = flows.source[loser] + flows.sink[loser] - port
    settle(fabric, shortest, t, loser)
    flows.end[loser] = NEVER
    set_served(fabric, shortest, port, NONE)
    set_served(fabric, shortest, third, NONE)
    search_port(fabric, shortest, t, third)


advance, _ = coordinator_loops(__name__, State, {REGISTER: on_arrival, DECIDE: on_change}, {})


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the switch's state at time 0."""
    world = build_switch(setting)
    return world, State(at_start(Agenda, world.fabric), make_shortest(world.fabric))


PFP = coflow_scheduler(
    name="pfp",
    title="shortest remaining flow first, pFabric's ideal",
    paper="Alizadeh et al.: pFabric, SIGCOMM 2013, section 3, doi 10.1145/2486001.2486031",
    parameters=(),
    build=build,
    advance=advance,
    global_view=("always",),
    ignores=NO_COORDINATOR,
)
