"""Greedy rates in a given order: a flow has both of its ports alone and at full speed, or does not run.

The allocation is the one that serving the groups one after another gives, each taking what it can of the ports that
those before it left; flows that run already are preferred within their group. What it promises: a flow that waits
finds at one of its ports a flow of its own group or of one before it (*strict priority*, and work is conserved).

When a flow ends, nothing is served anew. Its two ports are released at the level of its group: those before it had the
ports within reach and did not want them. From there on each released port asks the lines that wait at it, in order;
who finds the port at the other end free, or held by a later group, takes it. A flow that loses its port so releases
its other one at the level of its own group, which comes later. Levels only ascend, hence a heap of (level, port) and
each flow starts or stops at most once. A line asks with words of bits: one AND with the free ports, 64 flows at once.

A policy calls `end_flow` for what ends at an instant, then `fill_ports`; where its order changes (`set_order`),
`list_lines` and `match_anew` instead of that. What has started and stopped since then is in `changed`.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.bits import exclude, include, lowest, place
from actors.fabric.ends import foresee_end
from actors.fabric.heap import drop, push
from actors.fabric.ports import Fabric, change_rate, finish_flow, flow_at, flow_speed
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.kernel.world import NEVER

FREE = np.int64(1) << 40  # the level of a port that nobody holds: after all groups
_EMPTY = np.uint64(0)


class Matching(NamedTuple):
    """Who holds which of N ports."""

    flow: np.ndarray  # [N] the flow that runs at a port, or NONE
    level: np.ndarray  # [N] the level of its group, or FREE
    free: np.ndarray  # [words] uint64, the set of ports that nobody holds
    cursor: np.ndarray  # [N] of a released port: which of its lines asks next
    open_level: np.ndarray  # heap of released ports, by the level of the line that asks next
    open_port: np.ndarray
    open_size: np.ndarray  # [1]
    changed: np.ndarray  # [N] flows that have started or stopped, the first `changes` of them
    changes: np.ndarray  # [1]
    chain: np.ndarray  # [G] scratch: the first ingress port at which a group runs a flow, or NONE
    next: np.ndarray  # [N] scratch: the next such port
    kept: np.ndarray  # [N] scratch: the flow there


def make_matching(fabric: Fabric) -> Matching:
    """A matching in which no flow runs."""
    ports, groups = fabric.speed.size, fabric.lines.of_group.shape[0] - 1
    free = np.zeros(ports // 64, np.uint64)
    for port in np.flatnonzero(fabric.speed > 0):
        include(free, port)
    return Matching(
        flow=np.full(ports, NONE),
        level=np.full(ports, FREE),
        free=free,
        cursor=np.zeros(ports, np.int64),
        open_level=np.zeros(2 * ports, np.int64),
        open_port=np.zeros(2 * ports, np.int64),
        open_size=np.zeros(1, np.int64),
        changed=np.zeros(ports, np.int64),
        changes=np.zeros(1, np.int64),
        chain=np.full(groups, NONE),
        next=np.zeros(ports, np.int64),
        kept=np.zeros(ports, np.int64),
    )


@inlined
def hold_ports(m, source, sink, flow, level):
    """Let a flow have its two ports."""
    m.flow[source] = m.flow[sink] = flow
    m.level[source] = m.level[sink] = level
    exclude(m.free, source)
    exclude(m.free, sink)


@inlined
def free_port(m, port):
    """Let nobody have a port."""
    m.flow[port], m.level[port] = NONE, FREE
    include(m.free, port)


@compiled
def start_flow(fabric, m, t, flow, level):
    """Start a flow at its two ports, which are free."""
    flows, coflows = fabric.flows, fabric.coflows
    hold_ports(m, flows.source[flow], flows.sink[flow], flow, level)
    change_rate(coflows, t, flows.coflow[flow], flow_speed(fabric, flow))
    coflows.start[flows.coflow[flow]] = min(coflows.start[flows.coflow[flow]], t)
    foresee_end(fabric, t, flow)
    note_change(m, flow)


@inlined
def note_change(m, flow):
    """Note that a flow has started or stopped; between two decisions it does so once at most."""
    m.changed[m.changes[0]] = flow
    m.changes[0] += 1


@compiled
def settle_flow(fabric, t, flow):
    """Account for what a running flow has sent."""
    flows, lines = fabric.flows, fabric.lines
    sent = flow_speed(fabric, flow) * (t - flows.since[flow])
    flows.since[flow] = t
    flows.left[flow] -= sent
    lines.bytes[flows.line[flow, 0]] -= sent
    lines.bytes[flows.line[flow, 1]] -= sent


@compiled
def settle_all(fabric, m, t):
    """Account for what all running flows have sent, so that the bytes of lines are those at t."""
    for port in range(fabric.side):
        if m.flow[port] != NONE:
            settle_flow(fabric, t, m.flow[port])


@compiled
def stop_flow(fabric, m, t, flow):
    """Stop a running flow, which loses its ports; whoever calls says who has them."""
    settle_flow(fabric, t, flow)
    change_rate(fabric.coflows, t, fabric.flows.coflow[flow], -flow_speed(fabric, flow))
    fabric.flows.end[flow] = NEVER
    note_change(m, flow)


@compiled
def end_flow(fabric, order, m, t, flow):
    """End a flow that ran and release its ports, which `fill_ports` gives away; return whether its coflow has ended."""
    flows = fabric.flows
    source, sink = flows.source[flow], flows.sink[flow]
    level = m.level[source]
    change_rate(fabric.coflows, t, flows.coflow[flow], -flow_speed(fabric, flow))
    over = finish_flow(fabric, t, flow)
    release(fabric, order, m, source, level)
    release(fabric, order, m, sink, level)
    return over


@compiled
def release(fabric, order, m, port, level):
    """Enter a port that has become free to the lines of `level` and after it."""
    free_port(m, port)
    cursor = order.first[port]
    lines = fabric.lines
    while cursor < order.end[port] and order.level[lines.group[order.line[cursor]]] < level:
        cursor += 1
    m.cursor[port] = cursor
    ask_next(fabric, order, m, port)


@inlined
def ask_next(fabric, order, m, port):
    """Put a port into the heap of those whose lines ask, unless no line is left."""
    lines = fabric.lines
    cursor = m.cursor[port]
    while cursor < order.end[port] and lines.left[order.line[cursor]] == 0:
        cursor += 1
    m.cursor[port] = cursor
    if cursor < order.end[port]:
        level = order.level[lines.group[order.line[cursor]]]
        push(m.open_level, m.open_port, m.open_size, level, port)


@compiled
def find_partner(lines, m, line, level):
    """Return the flow of a line whose other port is free, else held by a later group; the first of them, or NONE."""
    for b in range(lines.block[line], lines.block[line + 1]):
        hit = lines.bits[b] & m.free[lines.word[b]]
        if hit != _EMPTY:
            return flow_at(lines, b, lowest(hit))
    for b in range(lines.block[line], lines.block[line + 1]):
        bits, base = lines.bits[b], lines.word[b] << 6
        while bits != _EMPTY:
            bit = lowest(bits)
            if m.level[base + place(bit)] > level:
                return flow_at(lines, b, bit)
            bits ^= bit
    return NONE


@compiled
def fill_ports(fabric, order, m, t):
    """Give released ports to the lines that wait at them."""
    flows = fabric.flows
    while m.open_size[0] > 0:
        level, port = m.open_level[0], m.open_port[0]
        drop(m.open_level, m.open_port, m.open_size)
        if m.flow[port] != NONE:
            continue  # taken from its other side
        flow = find_partner(fabric.lines, m, order.line[m.cursor[port]], level)
        if flow == NONE:
            m.cursor[port] += 1
            ask_next(fabric, order, m, port)
            continue
        other = flows.source[flow] + flows.sink[flow] - port
        loser = m.flow[other]
        if loser != NONE:
            third = flows.source[loser] + flows.sink[loser] - other
            stop_flow(fabric, m, t, loser)
            release(fabric, order, m, third, m.level[third])
        start_flow(fabric, m, t, flow, level)


@compiled
def match_anew(fabric, order, m, t):
    """Serve all groups in a new order; what is running goes on where its ports are not taken before."""
    m.open_size[0] = 0
    release_all(fabric, order, m, t)
    for level in range(order.used[0]):
        group = order.groups[level]
        keep_running(fabric, m, t, group, level)
        start_waiting(fabric, m, t, group, level)


@compiled
def release_all(fabric, order, m, t):
    """Free all ports; chain the flows that ran by their groups, and stop those whose group is no longer served."""
    flows = fabric.flows
    for port in range(fabric.side):
        flow = m.flow[port]
        if flow == NONE:
            continue
        free_port(m, port)
        free_port(m, flows.sink[flow])
        group = fabric.lines.group[flows.line[flow, 0]]
        if order.level[group] == NONE:
            stop_flow(fabric, m, t, flow)
        else:
            m.kept[port] = flow
            m.next[port], m.chain[group] = m.chain[group], port


@compiled
def keep_running(fabric, m, t, group, level):
    """Let those flows of a group go on that ran and whose ports are free; the others stop."""
    port = m.chain[group]
    m.chain[group] = NONE
    while port != NONE:
        flow = m.kept[port]
        sink = fabric.flows.sink[flow]
        if m.level[port] == FREE and m.level[sink] == FREE:
            hold_ports(m, port, sink, flow, level)
        else:
            stop_flow(fabric, m, t, flow)
        port = m.next[port]


@compiled
def start_waiting(fabric, m, t, group, level):
    """Start flows of a group at its ports that are still free."""
    lines = fabric.lines
    for line in range(lines.of_group[group, 0], lines.of_group[group + 1, 0]):
        if lines.left[line] > 0 and m.level[lines.port[line]] == FREE:
            for b in range(lines.block[line], lines.block[line + 1]):
                hit = lines.bits[b] & m.free[lines.word[b]]
                if hit != _EMPTY:
                    start_flow(fabric, m, t, flow_at(lines, b, lowest(hit)), level)
                    break
