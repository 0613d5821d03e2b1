"""The agent of a port under equal rates: it sends all flows of an ingress line, its part of a coflow, at one rate.

The agent receives one rate for a line; the line's flows end in order of what they have left
(`actors.fabric.equal_groups`). A backfilled flow has an additional rate of its own, and ends by itself. The columns of
`Sending` are about this rate: `rate` is the additional rate, `since` when it began, `end` when the flow ends by both
rates. A flow ends when its line's `served` reaches its ``left``, which is then set to 0.
"""

from typing import Any, NamedTuple

import numpy as np

from actors.fabric.agent import await_flow_end, has_ended, note_end, note_rate, set_line_timer, start_flow
from actors.fabric.counters import N_STALE
from actors.fabric.equal_groups import (
    EqualGroups,
    begin_group,
    extra_sent,
    groups_per,
    make_groups,
    predict_end,
    remove_from_heap,
    served_by,
    sift_up,
)
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.flow_ends import whole_ns
from actors.fabric.initial_arrays import at_start, per
from actors.fabric.messages import (
    FLOW_END,
    LINE_END,
    SET_LINE,
    read_flow_end,
    read_line_end,
    read_value,
    send_flow_done,
)
from actors.fabric.ports import Fabric, lines_of, places_of
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NEVER, NONE


class Serving(NamedTuple):
    """What agents know of their ingress lines, besides `Sending`."""

    groups: EqualGroups = groups_per("line")  # of the flows of each line
    begun: np.ndarray = per("line", False)  # all its flows have been sent
    # the first LINE_END that is set, ns; if it is early, it is set again
    timer: np.ndarray = per("line", NEVER)


def make_serving(fabric: Fabric) -> Serving:
    """Return the state of agents that send nothing yet."""
    no_more = np.zeros(fabric.lines.port.size, np.int64)
    groups = make_groups(fabric.flows.left, fabric.flows.line[:, 0], no_more)
    return at_start(Serving, fabric, groups=groups)


@compiled
def begin_serving(w: CoflowWorld, s: Serving, e: EqualGroups, coflow: int) -> None:
    """Let agents and coordinator, whose groups are `e`, know the flows of a coflow that has just come into being."""
    coflows, lines = w.fabric.coflows, w.fabric.lines
    begin_group(w.fabric.flows.left, e, coflow, coflows.first_flow[coflow], coflows.end_flow[coflow])
    for line in lines_of(lines, coflow, 0):
        first = lines.flow[places_of(lines, line).start]
        begin_group(w.sending.left, s.groups, line, first, first + lines.left[line])


@inlined
def serving_event(w: CoflowWorld, s: Serving, me: int) -> None:
    """Handle a message to an agent under equal rates."""
    t, kind = w.queue.now.time[0], w.queue.now.kind[0]
    if kind == FLOW_END:
        on_flow_end(w, s, t, me)
    elif kind == LINE_END:
        on_line_end(w, s, t, me, read_line_end(w))
    elif kind == SET_LINE:
        line, rate = read_value(w)
        on_set_line(w, s, t, me, line, rate)
    else:
        flow, extra_rate = read_value(w)
        on_set_extra(w, s, t, me, flow, extra_rate)


@compiled
def on_set_line(w: CoflowWorld, s: Serving, t: int, me: int, line: int, rate: float) -> None:
    """Send each flow of a line at this rate from now on."""
    if s.groups.size[line] == 0:
        w.counts[N_STALE] += 1
        return
    s.groups.served[line] = served_by(s.groups, t, line)
    s.groups.since[line], s.groups.in_force[line] = t, rate
    if rate > 0.0 and not s.begun[line]:
        s.begun[line] = True
        for i in range(s.groups.first[line], s.groups.first[line] + s.groups.size[line]):
            start_flow(w, t, s.groups.heap[i])
    if w.queue.trace.rates:
        for i in range(s.groups.first[line], s.groups.first[line] + s.groups.size[line]):
            note_rate(w, t, s.groups.heap[i], rate + w.sending.rate[s.groups.heap[i]])
    await_line_end(w, s, t + 1, me, line)


@inlined
def await_line_end(w: CoflowWorld, s: Serving, least: int, me: int, line: int) -> None:
    """Compute the next end of a line, and set the line's timer."""
    predict_end(w.sending.left, s.groups, line, least)
    set_line_timer(w, s.timer, s.groups.end, s.groups.since, least, me, line)


@compiled
def on_set_extra(w: CoflowWorld, s: Serving, t: int, me: int, flow: int, extra: float) -> None:
    """Send a flow at this additional rate from now on; 0: at its line's rate alone."""
    f, line = w.sending, w.fabric.flows.line[flow, 0]
    if f.left[flow] == 0.0:
        w.counts[N_STALE] += 1
        return
    start_flow(w, t, flow)
    f.left[flow] -= extra_sent(f.left[flow], f.since[flow], s.groups, line, t, f.rate[flow])
    sift_up(f.left, s.groups, line, s.groups.position[flow])
    f.since[flow], f.rate[flow], f.end[flow] = t, extra, NEVER
    if extra > 0.0:
        f.end[flow] = t + whole_ns(
            (f.left[flow] - served_by(s.groups, t, line)) / (s.groups.in_force[line] + extra)
        )
        await_flow_end(w, t, me, flow)
    note_rate(w, t, flow, s.groups.in_force[line] + extra)
    await_line_end(w, s, t + 1, me, line)


@compiled
def on_flow_end(w: CoflowWorld, s: Serving, t: int, me: int) -> None:
    """End a backfilled flow, unless its rate has changed since the timer was set."""
    if has_ended(w, t, me):
        flow, _ = read_flow_end(w)
        end_flow(w, s, t, me, flow)
        await_line_end(w, s, t, me, w.fabric.flows.line[flow, 0])


@compiled
def on_line_end(w: CoflowWorld, s: Serving, t: int, me: int, line: int) -> None:
    """End the next flows of a line, unless its rate has changed since the timer was set."""
    if (
        s.timer[line] != t or w.fabric.lines.port[line] != me
    ):  # replaced, or of a line that had the row before
        return
    s.timer[line] = NEVER
    while s.groups.end[line] == t:
        end_flow(w, s, t, me, s.groups.heap[s.groups.first[line]])
        predict_end(w.sending.left, s.groups, line, t)
    set_line_timer(w, s.timer, s.groups.end, s.groups.since, t, me, line)


@compiled
def cut_served_flow(w: CoflowWorld, p: Any, t: int, flow: int) -> float:
    """End a flow before its last byte, as a machine has failed; return what it had left, bytes.

    `p`: the state of its policy, with `serving`.
    """
    s, f, line, me = p.serving, w.sending, w.fabric.flows.line[flow, 0], w.fabric.flows.source[flow]
    left = f.left[flow] - served_by(s.groups, t, line)
    if f.rate[flow] > 0.0:
        left -= extra_sent(f.left[flow], f.since[flow], s.groups, line, t, f.rate[flow])
    start_flow(w, t, flow)
    end_flow(w, s, t, me, flow)
    await_line_end(w, s, t + 1, me, line)
    return max(left, 0.0)


@compiled
def end_flow(w: CoflowWorld, s: Serving, t: int, me: int, flow: int) -> None:
    """End a flow, and send the coordinator that it has ended."""
    f = w.sending
    remove_from_heap(f.left, s.groups, w.fabric.flows.line[flow, 0], flow)
    f.left[flow], f.rate[flow], f.end[flow] = 0.0, 0.0, NEVER
    note_end(w, t, flow)
    send_flow_done(w, t, me, flow, t, NONE, 0.0)
