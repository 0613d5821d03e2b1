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
changes, in any order; then it calls `fill_ports`.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.flow_ends import predict_end
from actors.fabric.initial_arrays import at_start, per
from actors.fabric.port_sets import exclude, include, lowest, place
from actors.fabric.ports import (
    Fabric,
    Lines,
    change_rate,
    drop_empty_word,
    flow_at,
    flow_speed,
    lines_of,
    mark_ended,
    remove_from_line,
    take_bytes,
)
from actors.fabric.ranking import Ranking, level_of, line_from, rank_group, unlink
from actors.kernel.compiled import compiled, inlined
from actors.kernel.heap import Heap, drop, make_heap, push
from actors.kernel.queue import NEVER, NONE

FREE = NEVER  # the level of a port that no flow holds: after all groups
_EMPTY = np.uint64(0)


class Matching(NamedTuple):
    """Which flow holds each port, and to the lines of which levels, `first` to `last`, ports are offered."""

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
    return at_start(Matching, fabric, free=free, open=make_heap(ports))


@inlined
def free_port(m: Matching, port: int) -> None:
    """Free a port."""
    m.flow[port], m.level[port] = NONE, FREE
    include(m.free, port)


@compiled
def start_flow(fabric: Fabric, m: Matching, t: int, flow: int, level: int) -> None:
    """Start a flow at its two ports, which are free."""
    flows = fabric.flows
    for port in (flows.source[flow], flows.sink[flow]):
        m.flow[port], m.level[port] = flow, level
        exclude(m.free, port)
    change_rate(fabric.coflows, t, flows.coflow[flow], flow_speed(fabric, flow))
    predict_end(fabric, t, flow)
    note_change(m, flow, 1)


@inlined
def note_change(m: Matching, flow: int, by: int) -> None:
    """Note that a flow has started (1) or stopped (-1), which it does at most once between two decisions."""
    m.changed[m.changes[0]] = flow
    m.changes[0] += 1
    m.running[0] += by


@compiled
def settle_flow(fabric: Fabric, t: int, flow: int) -> None:
    """Account for what a running flow has sent."""
    sent = flow_speed(fabric, flow) * (t - fabric.flows.since[flow])
    fabric.flows.since[flow] = t
    take_bytes(fabric, flow, sent)


@compiled
def settle_all(fabric: Fabric, m: Matching, t: int) -> None:
    """Account for what all running flows have sent, so that the bytes of lines are those at t."""
    for port in range(fabric.side):
        if m.flow[port] != NONE:
            settle_flow(fabric, t, m.flow[port])


@compiled
def stop_flow(fabric: Fabric, m: Matching, t: int, flow: int) -> None:
    """Stop a running flow; the caller reassigns the ports."""
    settle_flow(fabric, t, flow)
    change_rate(fabric.coflows, t, fabric.flows.coflow[flow], -flow_speed(fabric, flow))
    fabric.flows.end[flow] = NEVER
    note_change(m, flow, -1)


@compiled
def end_flow(fabric: Fabric, r: Ranking, m: Matching, t: int, flow: int) -> bool:
    """End a flow that ran and offer its ports; return whether its coflow has ended."""
    flows = fabric.flows
    source, sink = flows.source[flow], flows.sink[flow]
    level = m.level[source]
    change_rate(fabric.coflows, t, flows.coflow[flow], -flow_speed(fabric, flow))
    m.running[0] -= 1
    coflow_ended = end_stopped_flow(fabric, r, t, flow)
    release_ports(m, source, sink, level)
    return coflow_ended


@compiled
def end_stopped_flow(fabric: Fabric, r: Ranking, t: int, flow: int) -> bool:
    """End a flow that does not hold its ports; return whether its coflow has ended."""
    flows, lines = fabric.flows, fabric.lines
    for side in range(2):
        line = flows.line[flow, side]
        other = flows.sink[flow] if side == 0 else flows.source[flow]
        b = remove_from_line(lines, line, other, flows.left[flow])
        if lines.left[line] == 0:
            unlink(r, line)
        elif lines.bits[b] == _EMPTY:
            drop_empty_word(lines, line, b)
    return mark_ended(fabric, t, flow)


@inlined
def release_ports(m: Matching, source: int, sink: int, level: int) -> None:
    """Free the ports of a flow of this level, and offer them to that level and all later ones."""
    free_port(m, source)
    free_port(m, sink)
    offer(m, source, level, FREE)
    offer(m, sink, level, FREE)


@inlined
def offer(m: Matching, port: int, first: int, last: int) -> None:
    """Offer a port to the lines of some levels; `fill_ports` serves them."""
    if m.first[port] == FREE:
        m.offered[m.num_offered[0]] = port
        m.num_offered[0] += 1
    m.first[port], m.last[port] = min(m.first[port], first), max(m.last[port], last)


@compiled
def move_group(fabric: Fabric, r: Ranking, m: Matching, t: int, group: int, level: int) -> None:
    """Serve a group at a level that no other group has; NONE: no longer serve it."""
    lines, flows, was = fabric.lines, fabric.flows, r.level[group]
    if level == was:
        return
    rank_group(lines, r, group, level)
    for line in lines_of(lines, group, 0):
        if lines.left[line] == 0:
            continue
        source = lines.port[line]
        flow = m.flow[source]
        if flow == NONE or flows.line[flow, 0] != line:
            # A port that is offered to its old level may be offered because it has just come to that level.
            asks = was == NONE or level < was or m.first[source] <= was <= m.last[source]
            if asks and level < m.level[source]:
                offer(m, source, level, level)
            continue
        sink = flows.sink[flow]
        if level == NONE:
            stop_flow(fabric, m, t, flow)
            release_ports(m, source, sink, was)
            continue
        m.level[source] = m.level[sink] = level
        if level > was:
            offer(m, source, was, level)
            offer(m, sink, was, level)


@compiled
def serve_in_order(fabric: Fabric, r: Ranking, m: Matching, t: int, groups: np.ndarray, count: int) -> None:
    """Serve the first `count` of `groups` in their order.

    Groups before the first one that is out of order keep their levels. Groups that are not among these must have no
    unfinished flows. A policy uses this or `move_group`, not both.
    """
    last, moves = NONE, False
    for i in range(count):
        moves = moves or r.level[groups[i]] <= last
        if moves:
            move_group(fabric, r, m, t, groups[i], r.given[0])
            r.given[0] += 1
        last = r.level[groups[i]]


@compiled
def find_partner(lines: Lines, m: Matching, line: int, level: int) -> int:
    """Return the first flow of a line whose other port is free, else the first whose other port a later group holds."""
    for b in range(lines.block[line], lines.end[line]):
        hit = lines.bits[b] & m.free[lines.word[b]]
        if hit != _EMPTY:
            return flow_at(lines, b, lowest(hit))
    for b in range(lines.block[line], lines.end[line]):
        bits, base = lines.bits[b], lines.word[b] << 6
        while bits != _EMPTY:
            bit = lowest(bits)
            if m.level[base + place(bit)] > level:
                return flow_at(lines, b, bit)
            bits ^= bit
    return NONE


@compiled
def fill_ports(fabric: Fabric, r: Ranking, m: Matching, t: int) -> None:
    """Give ports that are offered to lines that can use them, in order of their levels."""
    flows, lines = fabric.flows, fabric.lines
    for i in range(m.num_offered[0]):
        port = m.offered[i]
        ask_next(lines, r, m, port, line_from(lines, r, port, m.first[port]))
    m.num_offered[0] = 0
    while m.open.size[0] > 0:
        level, port = m.open.keys[0], m.open.values[0]
        drop(m.open)
        line = m.cursor[port]
        flow = find_partner(lines, m, line, level) if level < m.level[port] else NONE
        if flow == NONE:
            ask_next(lines, r, m, port, r.next[line])
            continue
        withdraw_offer(m, port)
        evict(fabric, r, m, t, flows.source[flow])
        evict(fabric, r, m, t, flows.sink[flow])
        start_flow(fabric, m, t, flow, level)


@inlined
def ask_next(lines: Lines, r: Ranking, m: Matching, port: int, line: int) -> None:
    """Let a line be the next to take a port, if it is offered to the line and held by a later group, or free."""
    if line < r.ports[0]:
        level = level_of(lines, r, line)
        if level <= m.last[port] and level < m.level[port]:
            m.cursor[port] = line
            push(m.open, level, port)
            return
    withdraw_offer(m, port)


@inlined
def withdraw_offer(m: Matching, port: int) -> None:
    """Withdraw the offer of a port."""
    m.first[port], m.last[port] = FREE, NONE


@compiled
def evict(fabric: Fabric, r: Ranking, m: Matching, t: int, port: int) -> None:
    """Stop the flow at a port, if one runs, and offer its other port to lines of its level and later ones."""
    flows, flow = fabric.flows, m.flow[port]
    if flow == NONE:
        return
    other, level = flows.source[flow] + flows.sink[flow] - port, m.level[port]
    stop_flow(fabric, m, t, flow)
    free_port(m, port)
    free_port(m, other)
    m.last[other] = FREE
    if m.first[other] == FREE:  # else an earlier line is already next
        m.first[other] = level
        ask_next(fabric.lines, r, m, other, line_from(fabric.lines, r, other, level))
