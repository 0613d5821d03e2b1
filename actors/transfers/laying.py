"""Rows for a coflow that comes into being: its flows, its lines, and their words, in order as `build_fabric` lays them.

The flows of a coflow lie side by side, in order of ingress and egress. Those of flow f have the places 2 f and 2 f + 1
of `Lines.flow`, in which first the ingress lines and then the egress lines of the coflow list their flows.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.port_sets import bit_of
from actors.fabric.ports import pilot_group
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NEVER, NONE

_NO_BITS = np.uint64(0)


class Space(NamedTuple):
    """The first rows that a coflow gets."""

    line: int
    word: int


@inlined
def lay_flow(w: CoflowWorld, flow: int, coflow: int, source: int, sink: int, size: float) -> None:
    """Write the row of a flow that has not begun."""
    flows, s = w.fabric.flows, w.sending
    flows.coflow[flow], flows.source[flow], flows.sink[flow] = coflow, source, w.fabric.side + sink
    flows.size[flow] = flows.left[flow] = s.left[flow] = size
    flows.since[flow], flows.end[flow], flows.finish[flow] = 0, NEVER, NEVER
    s.rate[flow], s.since[flow], s.end[flow] = 0.0, NONE, NEVER


@compiled
def sort_flows(w: CoflowWorld, first: int, end: int, leader: np.ndarray) -> None:
    """Sort rows of flows by ingress and egress (Shell's sort); `leader` goes with them."""
    flows = w.fabric.flows
    gap: int = 1
    while gap < (end - first) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, end):
            source, sink, size, of, j = flows.source[i], flows.sink[i], flows.size[i], leader[i], i
            while j >= first + gap and (
                flows.source[j - gap] > source
                or (flows.source[j - gap] == source and flows.sink[j - gap] > sink)
            ):
                k = j - gap
                flows.source[j], flows.sink[j], leader[j] = flows.source[k], flows.sink[k], leader[k]
                lay_flow(w, j, flows.coflow[k], flows.source[k], flows.sink[k] - w.fabric.side, flows.size[k])
                j = k
            lay_flow(w, j, flows.coflow[i], source, sink - w.fabric.side, size)
            leader[j] = of
        gap //= 3


@compiled
def lay_coflow(
    w: CoflowWorld, t: int, coflow: int, place: int, first: int, end: int, line: int, word: int, pilots: int,
    sinks: np.ndarray, num_sinks: int, at: np.ndarray,
) -> Space:  # fmt: skip
    """Write the rows of a coflow whose flows, from `first` to before `end`, have theirs; return the rows that follow.

    Args:
        place: in the order of registration.
        line, word: the first rows of lines and words that it may take.
        pilots: how many of its flows may be served before its others.
        sinks: the first `num_sinks`: machines to which flows may go, in order.
        at: [ports] scratch, zeros; and so it is left.
    """
    coflows = w.fabric.coflows
    coflows.arrival[coflow], coflows.place[coflow], coflows.weight[coflow] = t, place, 1.0
    coflows.first_flow[coflow], coflows.end_flow[coflow], coflows.left[coflow] = first, end, end - first
    coflows.start[coflow], coflows.finish[coflow] = NEVER, NEVER
    coflows.sent[coflow], coflows.rate[coflow], coflows.since[coflow] = 0.0, 0.0, 0
    list_flows(w, first, end, sinks, num_sinks, at)
    for side in range(2):
        line, word = lay_lines(w, coflow, side, 2 * first + side * (end - first), end - first, line, word)
    for side in range(2):
        line, word = lay_pilot_lines(w, pilot_group(w.fabric, coflow), side, pilots, line, word)
    return Space(line, word)


@compiled
def list_flows(w: CoflowWorld, first: int, end: int, sinks: np.ndarray, count: int, at: np.ndarray) -> None:
    """List the flows of a coflow by ingress and egress, and then by egress and ingress (a sort by counting)."""
    flows, listed, side = w.fabric.flows, w.fabric.lines.flow, w.fabric.side
    for flow in range(first, end):
        listed[first + flow] = flow
        at[flows.sink[flow]] += 1
    place = first + end
    for k in range(count):
        here = at[side + sinks[k]]
        at[side + sinks[k]] = place
        place += here
    for flow in range(first, end):
        listed[at[flows.sink[flow]]] = flow
        at[flows.sink[flow]] += 1
    for k in range(count):
        at[side + sinks[k]] = 0


@compiled
def lay_lines(
    w: CoflowWorld, coflow: int, side: int, begin: int, count: int, line: int, word: int
) -> tuple[int, int]:
    """Write the lines of a coflow at one side, whose flows are listed from place `begin` on, and their words."""
    lines, flows = w.fabric.lines, w.fabric.flows
    lines.first_line[coflow, side] = line
    last, last_word = NONE, NONE
    for place in range(begin, begin + count):
        flow = lines.flow[place]
        near = flows.source[flow] if side == 0 else flows.sink[flow]
        far = flows.sink[flow] if side == 0 else flows.source[flow]
        if near != last:
            last, last_word = near, NONE
            lines.port[line], lines.group[line] = near, coflow
            lines.left[line], lines.bytes[line], lines.block[line] = 0, 0.0, word
            line += 1
        own = line - 1
        if far >> 6 != last_word:
            last_word = far >> 6
            lines.word[word], lines.bits[word], lines.mask[word] = last_word, _NO_BITS, _NO_BITS
            lines.first[word] = place
            word += 1
            lines.block_end[own] = lines.end[own] = word
        lines.bits[word - 1] |= bit_of(far)
        lines.mask[word - 1] |= bit_of(far)
        lines.left[own] += 1
        lines.bytes[own] += flows.size[flow]
        flows.line[flow, side] = own
    lines.end_line[coflow, side] = line
    return line, word


@compiled
def lay_pilot_lines(
    w: CoflowWorld, group: int, side: int, pilots: int, line: int, word: int
) -> tuple[int, int]:
    """Write lines of one word each that wait for pilots."""
    lines = w.fabric.lines
    lines.first_line[group, side], lines.end_line[group, side] = line, line + pilots
    for _ in range(pilots):
        lines.port[line], lines.group[line], lines.left[line], lines.bytes[line] = NONE, group, 0, 0.0
        lines.block[line], lines.end[line], lines.block_end[line] = word, word + 1, word + 1
        lines.word[word], lines.bits[word], lines.mask[word], lines.first[word] = 0, _NO_BITS, _NO_BITS, 0
        line += 1
        word += 1
    return line, word
