"""Greedy rates in the order of the groups' levels: a flow has both of its ports alone and at full speed, or waits.

The allocation is one that results if the groups are served one after another, and each takes what it can of the ports
that earlier groups left; within a group, running flows are preferred. At one of the ports of a waiting flow, a flow of
its own group or of an earlier one runs (*strict priority*, and work is conserved).

The allocation is never computed as a whole. An event only *offers* ports to the lines of some levels:

- a flow ends: its two ports, to its group's level and all later ones; earlier groups had no use for them;
- a group arrives, or moves to an earlier level: each of its ingress ports that it does not hold, to its own level;
- a group moves to a later level: the ports that it holds, to the levels between;
- a group is no longer served: as if its flows ended.

Then `fill_ports` serves the lines to which ports are offered, in order. A line takes an offered port and the port at
the other end of one of its flows if each is free or held by a later group. A flow that loses one port releases its
other port at the level of its own group, which is later. So a heap of (level, port) gives ascending levels, and each
flow starts or stops at most once. A line searches in words of bits: one AND with the free ports tests 64 flows.

A policy calls `end_flow` for flows that have ended, and `serve_in_order`, or `move_group` for each group whose level
changes, in any order; then it calls `fill_ports`, and `send_greedy_rates`.

*With `flow_order=workload` each flow has its own place*, also within its coflow (`FlowOrder`). A flow takes both of its
ports if no flow before it has taken one, as in the pseudocode of greedy allocation: coflows in their order, the flows
of each in the order of the workload. So a running flow may be stopped for another flow of its coflow. A decision
computes the whole allocation, O(flows of the coflows that are served). When a flow ends, its two ports go to the next
flows there that can use them; a flow that takes a port from a later flow frees the other port of that flow, and so on.
A heap gives the flows in ascending order of their places, and each flow starts or stops at most once.

*Updates of coflows* (`actors.fabric.updates`): flows that an update stops end without a message, as their agents have
stopped them already. Bytes to be sent again are put back on their lines as if they had just arrived, and `fill_ports`
serves them in their turn. The effect of a sender's update depends only on whether its flows had ended; the coordinator
receives the ends that came before the stop before it receives the update.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.coordinator import (
    NO_AGENT_REPORTS,
    charge,
    charge_updates,
    count_agents,
    enter_interval,
    has_more_to_send,
    note_report,
    note_schedules,
    record_local_flow,
    send_rate,
)
from actors.fabric.counters import N_COFLOW_UPDATES, N_DEREGISTERED, N_LOST, N_RATES, N_WITHOUT_EFFECT
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.order import Ranking, level_of, line_from, link, place_line, rank_group, unlink
from actors.fabric.port_sets import exclude, include, lowest, place
from actors.fabric.ports import (
    Fabric,
    Lines,
    add_to_line,
    change_rate,
    drop_empty_word,
    flow_at,
    flow_speed,
    flows_of,
    lines_of,
    mark_ended,
    remove_from_line,
    run_at_full_speed,
    take_bytes,
    whole_ns,
)
from actors.fabric.updates import expect_update
from actors.initial_arrays import at_start, per
from actors.kernel.arrays import fill
from actors.kernel.compiled import compiled, inlined
from actors.kernel.cost import known_cost
from actors.kernel.counters import N_ARRIVED
from actors.kernel.heap import Heap, drop, make_heap, push
from actors.kernel.queue import NEVER, NONE
from actors.kernel.records import Records
from actors.scheduler import Parameter
from workloads.coflow_updates import DEREGISTER, RECEIVER

FREE = NEVER  # the level of a port that no flow holds: after all groups
_EMPTY = np.uint64(0)
# What an agent's message of an end, or an update, has done to a coflow.
UNCHANGED, CHANGED, COFLOW_ENDED = (np.int64(i) for i in range(3))


class Matching(NamedTuple):
    """Which flow holds each port, and to the lines of which levels, `first` to `last`, ports are offered."""

    ranking: Ranking  # the levels of the groups that are served
    free: np.ndarray  # [words] uint64, the set of free ports
    open: Heap  # of offered ports, by the level of the line that is next
    flow: np.ndarray = per("port", NONE)  # the flow that runs at a port, or NONE
    level: np.ndarray = per("port", FREE)  # the level of its group, or FREE
    first: np.ndarray = per("port", FREE)  # FREE: the port is not offered
    last: np.ndarray = per("port", NONE)  # NONE: the port is not offered
    offered: np.ndarray = per("port")  # ports offered since `fill_ports`
    num_offered: np.ndarray = per("run")
    cursor: np.ndarray = per("port")  # of a port in the heap: which of its lines is next
    changed: np.ndarray = per("port")  # the first `changes`: flows that have started or stopped
    changes: np.ndarray = per("run")
    running: np.ndarray = per("run")  # how many flows run


def make_matching(fabric: Fabric) -> Matching:
    """Return a matching in which no flow runs."""
    ports = fabric.speed.size
    free = np.zeros(ports // 64, np.uint64)
    for port in np.flatnonzero(fabric.speed > 0):
        include(free, int(port))
    return at_start(Matching, fabric, ranking=at_start(Ranking, fabric), free=free, open=make_heap(ports))


@inlined
def free_port(matching: Matching, port: int) -> None:
    """Free a port."""
    matching.flow[port], matching.level[port] = NONE, FREE
    include(matching.free, port)


@compiled
def start_flow(fabric: Fabric, matching: Matching, t: int, flow: int, level: int) -> None:
    """Start a flow at its two ports, which are free."""
    flows = fabric.flows
    for port in (flows.source[flow], flows.sink[flow]):
        matching.flow[port], matching.level[port] = flow, level
        exclude(matching.free, port)
    change_rate(fabric.coflows, t, flows.coflow[flow], flow_speed(fabric, flow))
    run_at_full_speed(fabric, t, flow)
    note_change(matching, flow, 1)


@inlined
def note_change(matching: Matching, flow: int, by: int) -> None:
    """Note that a flow has started (1) or stopped (-1), which it does at most once between two decisions."""
    matching.changed[matching.changes[0]] = flow
    matching.changes[0] += 1
    matching.running[0] += by


@compiled
def settle_flow(fabric: Fabric, t: int, flow: int) -> None:
    """Account for what a running flow has sent."""
    sent = flow_speed(fabric, flow) * (t - fabric.flows.since[flow])
    fabric.flows.since[flow] = t
    take_bytes(fabric, flow, sent)


@compiled
def settle_all(fabric: Fabric, matching: Matching, t: int) -> None:
    """Account for what all running flows have sent, so that the bytes of lines are those at t."""
    for port in range(fabric.side):
        if matching.flow[port] != NONE:
            settle_flow(fabric, t, matching.flow[port])


@compiled
def stop_flow(fabric: Fabric, matching: Matching, t: int, flow: int) -> None:
    """Stop a running flow; the caller reassigns the ports."""
    settle_flow(fabric, t, flow)
    change_rate(fabric.coflows, t, fabric.flows.coflow[flow], -flow_speed(fabric, flow))
    fabric.flows.end[flow] = NEVER
    note_change(matching, flow, -1)


@compiled
def end_flow(fabric: Fabric, matching: Matching, t: int, flow: int) -> bool:
    """End a flow that ran and offer its ports; return whether its coflow has ended."""
    flows = fabric.flows
    source, sink = flows.source[flow], flows.sink[flow]
    level = matching.level[source]
    change_rate(fabric.coflows, t, flows.coflow[flow], -flow_speed(fabric, flow))
    matching.running[0] -= 1
    coflow_ended = end_stopped_flow(fabric, matching, t, flow)
    release_ports(matching, source, sink, level)
    return coflow_ended


@compiled
def end_stopped_flow(fabric: Fabric, matching: Matching, t: int, flow: int) -> bool:
    """End a flow that does not hold its ports; return whether its coflow has ended."""
    flows, lines = fabric.flows, fabric.lines
    for side in range(2):
        line = flows.line[flow, side]
        other = flows.sink[flow] if side == 0 else flows.source[flow]
        b = remove_from_line(lines, line, other, flows.left[flow])
        if lines.left[line] == 0:
            unlink(matching.ranking, line)
        elif lines.bits[b] == _EMPTY:
            drop_empty_word(lines, line, b)
    return mark_ended(fabric, t, flow)


@compiled
def receive_end(w: CoflowWorld, matching: Matching, t: int, reporting: int, flow: int, ended: int) -> int:
    """Receive an agent's message that a flow has ended; return what that has done to its coflow.

    The flow may have more to send than its agent knew.

    Args:
        reporting: as of `coordinator.enter_interval`.
    """
    note_report(w, t, reporting, w.fabric.flows.source[flow])
    if has_more_to_send(w, flow):
        return UNCHANGED
    return COFLOW_ENDED if end_greedy(w, matching, flow, ended) else CHANGED


@compiled
def end_greedy(w: CoflowWorld, matching: Matching, flow: int, ended: int) -> bool:
    """Apply the end of a flow to a greedy schedule; return whether its coflow has ended.

    The flow may have been stopped, or stopped and started again, before the message arrived.
    """
    fabric, flows = w.fabric, w.fabric.flows
    if matching.flow[flows.source[flow]] == flow:
        return end_flow(fabric, matching, ended, flow)
    fabric.coflows.sent[flows.coflow[flow]] += flows.left[flow]
    return end_stopped_flow(fabric, matching, ended, flow)


@inlined
def release_ports(matching: Matching, source: int, sink: int, level: int) -> None:
    """Free the ports of a flow of this level, and offer them to that level and all later ones."""
    free_port(matching, source)
    free_port(matching, sink)
    offer(matching, source, level, FREE)
    offer(matching, sink, level, FREE)


@inlined
def offer(matching: Matching, port: int, first: int, last: int) -> None:
    """Offer a port to the lines of some levels; `fill_ports` serves them."""
    if matching.first[port] == FREE:
        matching.offered[matching.num_offered[0]] = port
        matching.num_offered[0] += 1
    matching.first[port], matching.last[port] = (
        min(matching.first[port], first),
        max(matching.last[port], last),
    )


@compiled
def move_group(fabric: Fabric, matching: Matching, t: int, group: int, level: int) -> None:
    """Serve a group at a level that no other group has; NONE: no longer serve it."""
    lines, flows, was = fabric.lines, fabric.flows, matching.ranking.level[group]
    if level == was:
        return
    rank_group(lines, matching.ranking, group, level)
    for line in lines_of(lines, group, 0):
        if lines.left[line] == 0:
            continue
        source = lines.port[line]
        flow = matching.flow[source]
        if flow == NONE or flows.line[flow, 0] != line:
            # A port that is offered to its old level may be offered because it has just come to that level.
            asks = was == NONE or level < was or matching.first[source] <= was <= matching.last[source]
            if asks and level < matching.level[source]:
                offer(matching, source, level, level)
            continue
        sink = flows.sink[flow]
        if level == NONE:
            stop_flow(fabric, matching, t, flow)
            release_ports(matching, source, sink, was)
            continue
        matching.level[source] = matching.level[sink] = level
        if level > was:
            offer(matching, source, was, level)
            offer(matching, sink, was, level)


@compiled
def serve_in_order(fabric: Fabric, matching: Matching, t: int, groups: np.ndarray, count: int) -> None:
    """Serve the first `count` of `groups` in their order.

    Groups before the first one that is out of order keep their levels. Groups that are not among these must have no
    unfinished flows. A policy uses this or `move_group`, not both.
    """
    r, last, moves = matching.ranking, NONE, False
    for i in range(count):
        moves = moves or r.level[groups[i]] <= last
        if moves:
            move_group(fabric, matching, t, groups[i], r.given[0])
            r.given[0] += 1
        last = r.level[groups[i]]


@compiled
def find_partner(lines: Lines, matching: Matching, line: int, level: int) -> int:
    """Return the first flow of a line whose other port is free, else the first whose other port a later group holds."""
    for b in range(lines.block[line], lines.end[line]):
        hit = lines.bits[b] & matching.free[lines.word[b]]
        if hit != _EMPTY:
            return flow_at(lines, b, lowest(hit))
    for b in range(lines.block[line], lines.end[line]):
        bits, base = lines.bits[b], lines.word[b] << 6
        while bits != _EMPTY:
            bit = lowest(bits)
            if matching.level[base + place(bit)] > level:
                return flow_at(lines, b, bit)
            bits ^= bit
    return NONE


@compiled
def fill_ports(fabric: Fabric, matching: Matching, t: int) -> None:
    """Give ports that are offered to lines that can use them, in order of their levels."""
    flows, lines = fabric.flows, fabric.lines
    for i in range(matching.num_offered[0]):
        port = matching.offered[i]
        ask_next(lines, matching, port, line_from(lines, matching.ranking, port, matching.first[port]))
    matching.num_offered[0] = 0
    while matching.open.size[0] > 0:
        level, port = matching.open.keys[0], matching.open.values[0]
        drop(matching.open)
        line = matching.cursor[port]
        flow = find_partner(lines, matching, line, level) if level < matching.level[port] else NONE
        if flow == NONE:
            ask_next(lines, matching, port, matching.ranking.next[line])
            continue
        withdraw_offer(matching, port)
        evict(fabric, matching, t, flows.source[flow])
        evict(fabric, matching, t, flows.sink[flow])
        start_flow(fabric, matching, t, flow, level)


@inlined
def ask_next(lines: Lines, matching: Matching, port: int, line: int) -> None:
    """Let a line be the next to take a port, if it is offered to the line and held by a later group, or free."""
    if line < matching.ranking.ports[0]:
        level = level_of(lines, matching.ranking, line)
        if level <= matching.last[port] and level < matching.level[port]:
            matching.cursor[port] = line
            push(matching.open, level, port)
            return
    withdraw_offer(matching, port)


@inlined
def withdraw_offer(matching: Matching, port: int) -> None:
    """Withdraw the offer of a port."""
    matching.first[port], matching.last[port] = FREE, NONE


@compiled
def evict(fabric: Fabric, matching: Matching, t: int, port: int) -> None:
    """Stop the flow at a port, if one runs, and offer its other port to lines of its level and later ones."""
    flows, flow = fabric.flows, matching.flow[port]
    if flow == NONE:
        return
    other, level = flows.source[flow] + flows.sink[flow] - port, matching.level[port]
    stop_flow(fabric, matching, t, flow)
    free_port(matching, port)
    free_port(matching, other)
    matching.last[other] = FREE
    if matching.first[other] == FREE:  # else an earlier line is already next
        matching.first[other] = level
        ask_next(fabric.lines, matching, other, line_from(fabric.lines, matching.ranking, other, level))


@compiled
def send_greedy_rates(w: CoflowWorld, matching: Matching, t: int) -> None:
    """Send the agents which flows have started and stopped, by a decision or a refill."""
    changes = matching.changes[0]
    flows, start = w.fabric.flows, w.fabric.coflows.start
    agents = count_agents(w, matching.changed, changes)
    charge(w, w.prices.flow * changes + w.prices.schedule * agents)
    late = known_cost(w)
    for k in range(changes):
        flow = matching.changed[k]
        agent = flows.source[flow]
        rate = flow_speed(w.fabric, flow) if matching.flow[agent] == flow else 0.0
        if late > 0:
            delay_change(w.fabric, flow, rate, late)
        if rate > 0.0:
            start[flows.coflow[flow]] = min(start[flows.coflow[flow]], flows.since[flow])
        send_rate(w, t, flow, rate)
    w.counts[N_RATES] += changes
    note_schedules(w, agents)
    matching.changes[0] = 0


@compiled
def delay_change(fabric: Fabric, flow: int, rate: float, late: int) -> None:
    """Let a flow start, or stop, `late` ns later than the decision assumed."""
    flows, coflows = fabric.flows, fabric.coflows
    more = flow_speed(fabric, flow) * late
    flows.since[flow] += late
    if rate > 0.0:
        flows.end[flow] += late
        coflows.sent[flows.coflow[flow]] -= more
        return
    more = min(more, flows.left[flow])
    take_bytes(fabric, flow, more)
    coflows.sent[flows.coflow[flow]] += more


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

    as_workload: bool  # else running flows of a coflow come first, then by ports
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
    fabric: Fabric, matching: Matching, f: FlowOrder, t: int, coflows: np.ndarray, count: int
) -> None:
    """Serve the first `count` of `coflows` in their order; note in `m` which flows start and stop."""
    if f.as_workload:
        list_flows(fabric, f, coflows, count)
        serve_flows(fabric, matching, f, t, coflows, count)
    else:
        serve_in_order(fabric, matching, t, coflows, count)
        fill_ports(fabric, matching, t)


@inlined
def refill_ports(fabric: Fabric, matching: Matching, f: FlowOrder, t: int) -> None:
    """Give ports that flows have left to the next flows of the coflows that are served."""
    if f.as_workload:
        refill_in_order(fabric, matching, f, t)
    else:
        fill_ports(fabric, matching, t)


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
def serve_flows(
    fabric: Fabric, matching: Matching, f: FlowOrder, t: int, coflows: np.ndarray, count: int
) -> None:
    """Give ports to flows in their order; stop flows that have lost theirs, and start those that have got theirs."""
    flows = fabric.flows
    find_flows(fabric, f, coflows, count)
    forget_offers(matching)
    for source in range(fabric.side):
        flow = matching.flow[source]
        if flow != NONE and f.next[source] != flow:
            stop_flow(fabric, matching, t, flow)
            free_port(matching, source)
            free_port(matching, flows.sink[flow])
    for source in range(fabric.side):
        flow = f.next[source]
        if flow == NONE:
            continue
        if flow != matching.flow[source]:
            start_flow(fabric, matching, t, flow, f.rank[flow])
        matching.level[source] = matching.level[flows.sink[flow]] = f.rank[flow]


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
def forget_offers(matching: Matching) -> None:
    """Forget which ports flows have left."""
    for i in range(matching.num_offered[0]):
        withdraw_offer(matching, matching.offered[i])
    matching.num_offered[0] = 0


@compiled
def refill_in_order(fabric: Fabric, matching: Matching, f: FlowOrder, t: int) -> None:
    """Give ports that flows have left to the next flows there; ports of flows that lose one go to later flows."""
    flows = fabric.flows
    f.candidates.size[0] = 0
    for i in range(matching.num_offered[0]):
        port = matching.offered[i]
        push_next(fabric, matching, f, port, place_after(f, port, matching.first[port]))
    forget_offers(matching)
    while f.candidates.size[0] > 0:
        place = f.candidates.values[0]
        drop(f.candidates)
        flow = f.at[place]
        source, sink, rank = flows.source[flow], flows.sink[flow], f.rank[flow]
        if rank < matching.level[source] and rank < matching.level[sink]:
            stop_at(fabric, matching, f, t, source)
            stop_at(fabric, matching, f, t, sink)
            start_flow(fabric, matching, t, flow, rank)
        else:
            push_next(fabric, matching, f, source if place < f.first[fabric.side] else sink, place + 1)


@compiled
def push_next(fabric: Fabric, matching: Matching, f: FlowOrder, port: int, place: int) -> None:
    """Put the first flow at a port, from a place on, that can have both of its ports into the heap."""
    flows = fabric.flows
    while place < f.first[port + 1]:
        flow = f.at[place]
        rank = f.rank[flow]
        if rank >= matching.level[port]:
            return
        if flows.finish[flow] == NEVER and rank < matching.level[other_port(fabric, flow, port)]:
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
def stop_at(fabric: Fabric, matching: Matching, f: FlowOrder, t: int, port: int) -> None:
    """Stop the flow at a port, if there is one; offer its other port to the flows after it."""
    flow, rank = matching.flow[port], matching.level[port]
    if flow == NONE:
        return
    other = other_port(fabric, flow, port)
    stop_flow(fabric, matching, t, flow)
    free_port(matching, port)
    free_port(matching, other)
    push_next(fabric, matching, f, other, place_after(f, other, rank))


@inlined
def receive_update(w: CoflowWorld, t: int, update: int) -> bool:
    """Receive a framework's message of an update; return whether its coflow is still active."""
    rows, counts = w.updates.row, w.counts
    if update + 1 < rows.size:
        expect_update(w, update + 1)
    enter_interval(w, t, NO_AGENT_REPORTS)
    charge_updates(w, 1)
    counts[N_COFLOW_UPDATES] += 1
    if w.fabric.coflows.left[rows.coflow[update]] == 0:
        counts[N_WITHOUT_EFFECT] += 1
        return False
    return True


@inlined
def apply_update(w: CoflowWorld, matching: Matching, t: int, update: int) -> int:
    """Receive an update, stop its flows, and resend what is needed; return what that has done to its coflow."""
    if not receive_update(w, t, update):
        return UNCHANGED
    rows, pairs = w.updates.row, w.updates.pair
    for i in range(rows.first[update], rows.end[update]):
        size = stop_updated_flow(w, matching, update, pairs.flow[i], pairs.onto[i], False)
        resend_flow(w, matching, t, update, pairs.onto[i], size)
    return COFLOW_ENDED if settle_coflow(w, update) else CHANGED


@inlined
def stop_updated_flow(
    w: CoflowWorld, matching: Matching, update: int, flow: int, onto: int, forgets: bool
) -> float:
    """Stop a flow of an update and move its bytes to `onto`; return how many of them are to be sent again.

    `forgets`: lost bytes are subtracted from what the coflow has sent.
    """
    flows, generations, kind = w.fabric.flows, w.updates.flow, w.updates.row.kind[update]
    size, ends = flows.size[flow], flows.finish[flow] == NEVER
    left = 0.0
    if ends:
        left = drop_flow(w.fabric, matching, w.updates.row.time[update], flow)
        w.counts[N_ARRIVED] -= 1
    again = ends or w.updates.row.side[update] == RECEIVER
    if kind == DEREGISTER or (flow == onto and flows.line[flow, 0] == NONE):
        again = False
    if again:
        w.counts[N_LOST] += np.int64(
            lost_before(generations, flow, size, w.updates.row.time[update]) if ends else size
        )
        if forgets:
            w.fabric.coflows.sent[flows.coflow[flow]] -= size - left
    generations.known_generation[flow] += 1
    generations.due[flow] = generations.heard[flow] = 0.0
    if flow != onto:
        flows.size[flow] = 0.0
        flows.size[onto] += size
    return size if again else 0.0


@inlined
def lost_before(generations: Records, flow: int, size: float, time: int) -> float:
    """Return the bytes of an unfinished flow that were lost at `time`, without those that its agent counts.

    The agent counts what it has sent in a generation that had not ended as far as it knew.
    """
    lost = size - generations.due[flow]
    return lost + generations.heard[flow] if generations.known_from[flow] > time else lost


@compiled
def drop_flow(fabric: Fabric, matching: Matching, time: int, flow: int) -> float:
    """End a flow whose agent stopped it at `time`; return what it has left by the coordinator's estimate."""
    flows = fabric.flows
    stopped = max(time, flows.since[flow])  # at a rate that had not arrived nothing was sent
    left = flows.left[flow]
    if matching.flow[flows.source[flow]] == flow:
        left -= flow_speed(fabric, flow) * (stopped - flows.since[flow])
        end_flow(fabric, matching, stopped, flow)
    else:
        end_stopped_flow(fabric, matching, stopped, flow)
    return max(left, 0.0)


@inlined
def resend_flow(w: CoflowWorld, matching: Matching, t: int, update: int, flow: int, size: float) -> None:
    """Add bytes to what a flow has to send, whether it has ended or not."""
    fabric, flows = w.fabric, w.fabric.flows
    if size == 0.0:
        return
    if flows.line[flow, 0] == NONE:
        record_local_flow(w, w.updates.row.time[update], flow)
        return
    w.updates.flow.due[flow] += size
    w.updates.flow.known_from[flow] = NEVER
    if flows.finish[flow] == NEVER:
        add_bytes(w, matching, t, flow, size)
    else:
        w.counts[N_ARRIVED] += 1
        restart_flow(fabric, matching, flow, size)


@inlined
def add_bytes(w: CoflowWorld, matching: Matching, t: int, flow: int, size: float) -> None:
    """Add bytes to a flow that has not ended; if it runs, send its agent the new number at once."""
    flows = w.fabric.flows
    take_bytes(w.fabric, flow, -size)
    if matching.flow[flows.source[flow]] == flow:
        speed = flow_speed(w.fabric, flow)
        flows.end[flow] = flows.since[flow] + whole_ns(flows.left[flow] / speed)
        charge(w, w.prices.flow + w.prices.schedule)
        w.counts[N_RATES] += 1
        send_rate(w, t, flow, speed)


@compiled
def restart_flow(fabric: Fabric, matching: Matching, flow: int, size: float) -> None:
    """Put a flow that has ended, or is new, on its lines, and offer its ingress port to it."""
    flows, coflows, lines, r = fabric.flows, fabric.coflows, fabric.lines, matching.ranking
    flows.left[flow], flows.finish[flow] = size, NEVER
    coflows.left[flows.coflow[flow]] += 1
    for side in range(2):
        line = flows.line[flow, side]
        add_to_line(lines, line, flows.sink[flow] if side == 0 else flows.source[flow], size)
        if lines.left[line] == 1 and r.level[lines.group[line]] != NONE:
            link(r, line, r.prev[r.ports[0] + lines.port[line]])
            place_line(lines, r, line, r.level[lines.group[line]])
    level, source = r.level[lines.group[flows.line[flow, 0]]], flows.source[flow]
    if level != NONE and level < matching.level[source]:
        offer(matching, source, level, level)


@inlined
def settle_coflow(w: CoflowWorld, update: int) -> bool:
    """Return whether a coflow has ended after an update; a deregistered coflow never finishes."""
    coflows, rows = w.fabric.coflows, w.updates.row
    coflow = rows.coflow[update]
    if coflows.left[coflow] > 0:
        coflows.finish[coflow] = NEVER
        return False
    coflows.finish[coflow] = rows.time[update]
    if rows.kind[update] == DEREGISTER:
        coflows.finish[coflow] = NONE
        w.counts[N_DEREGISTERED] += 1
    return True
