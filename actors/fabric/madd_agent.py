"""The agent of a port under MADD: all waiting flows of an ingress line, its part of a coflow, shrink in one proportion.

The agent receives in how many ns the flows of a line end together, and sends each of them at a constant rate until
then: one message for a line, not one for each of its flows. A backfilled flow, to which the coordinator has given more,
ends by itself in a time of its own; when it loses that, it joins the others again. A flow waits (`end` is NEVER, and it
has ``left * scale`` of its line left), or it is backfilled, or it has ended (`left` is 0).
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.agent import (
    await_flow_end,
    left_at,
    note_end,
    note_rate,
    on_flow_end,
    receive_verdict,
    set_line_timer,
    start_flow,
)
from actors.fabric.counters import N_STALE
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.flow_ends import whole_ns
from actors.fabric.initial_arrays import at_start, per
from actors.fabric.messages import (
    FLOW_END,
    LINE_END,
    PACE,
    SHRINK,
    read_line_end,
    read_value,
    send_flow_cut,
    send_line_done,
)
from actors.fabric.ports import Fabric, places_of
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NEVER


class Shrinking(NamedTuple):
    """What agents know of their ingress lines, besides `Sending`."""

    begun: np.ndarray = per("line", False)  # all its flows have been sent
    # the share of `Sending.left` that its waiting flows have at `since`
    scale: np.ndarray = per("line", 1.0)
    # ns from `since` until they end, inf while they are not sent
    need: np.ndarray = per("line", np.inf)
    since: np.ndarray = per("line")  # ns
    end: np.ndarray = per("line", NEVER)  # when they end, ns; NEVER: they are not sent
    timer: np.ndarray = per("line", NEVER)  # the timer for that end, at that time or earlier, ns


def make_shrinking(fabric: Fabric) -> Shrinking:
    """Return the state of agents that send nothing yet."""
    return at_start(Shrinking, fabric)


@inlined
def shrinking_event(w: CoflowWorld, s: Shrinking, me: int) -> None:
    """Handle a message to an agent under MADD."""
    t, kind = w.queue.now.time[0], w.queue.now.kind[0]
    if kind == FLOW_END:
        on_flow_end(w, t, me)
    elif kind == LINE_END:
        on_line_end(w, s, t, me, read_line_end(w))
    elif kind == SHRINK:
        line, duration = read_value(w)
        on_shrink(w, s, t, me, line, duration)
    elif kind == PACE:
        flow, duration = read_value(w)
        on_pace(w, s, t, me, flow, duration)
    else:
        receive_verdict(w)


@inlined
def scale_at(s: Shrinking, t: int, line: int) -> float:
    """Return the share of `Sending.left` that the waiting flows of a line have at t, which may be late in `live`."""
    return s.scale[line] * (1.0 - (min(t, s.end[line] - 1) - s.since[line]) / s.need[line])


@compiled
def on_shrink(w: CoflowWorld, s: Shrinking, t: int, me: int, line: int, need: float) -> None:
    """Let the waiting flows of a line end together, `need` ns from now; inf: do not send them."""
    s.scale[line] = scale_at(s, t, line)
    s.since[line], s.need[line], s.end[line] = t, need, NEVER
    if need < np.inf:
        lines, flow_ids = w.fabric.lines, w.fabric.lines.flow
        if not s.begun[line]:
            s.begun[line] = True
            for k in places_of(lines, line):
                start_flow(w, t, flow_ids[k])
        s.end[line] = t + whole_ns(need)
        set_line_timer(w, s.timer, s.end, s.since, t, me, line)
    if w.queue.trace.rates:
        note_line(w, s, t, line)


@compiled
def note_line(w: CoflowWorld, s: Shrinking, t: int, line: int) -> None:
    """Record the rates of the waiting flows of a line, which end together."""
    f, lines = w.sending, w.fabric.lines
    for k in places_of(lines, line):
        flow = lines.flow[k]
        if f.left[flow] > 0.0 and f.end[flow] == NEVER:
            note_rate(w, t, flow, f.left[flow] * s.scale[line] / s.need[line])


@compiled
def on_pace(w: CoflowWorld, s: Shrinking, t: int, me: int, flow: int, pace: float) -> None:
    """Let a flow end by itself, `pace` ns from now; inf: together with the waiting flows of its line."""
    f, line = w.sending, w.fabric.flows.line[flow, 0]
    if f.left[flow] == 0.0:
        w.counts[N_STALE] += 1
        return
    if f.end[flow] < NEVER:
        f.left[flow] = left_at(f, t, flow)
    else:
        f.left[flow] *= scale_at(s, t, line)
    start_flow(w, t, flow)
    f.since[flow] = t
    if pace < np.inf:
        f.rate[flow] = f.left[flow] / pace
        f.end[flow] = t + np.int64(pace + 0.5)
        await_flow_end(w, t, me, flow)
    else:
        f.left[flow] /= scale_at(s, t, line)
        f.rate[flow], f.end[flow] = 0.0, NEVER
        if s.end[line] > t:
            set_line_timer(w, s.timer, s.end, s.since, t, me, line)
    note_rate(w, t, flow, f.rate[flow] if pace < np.inf else f.left[flow] * s.scale[line] / s.need[line])


@compiled
def cut_shrinking_flow(w: CoflowWorld, s: Shrinking, t: int, flow: int) -> float:
    """End a flow before its last byte, as a machine has failed; return what it had left, bytes."""
    f, line = w.sending, w.fabric.flows.line[flow, 0]
    left = left_at(f, t, flow) if f.end[flow] < NEVER else f.left[flow] * scale_at(s, t, line)
    start_flow(w, t, flow)
    f.left[flow], f.rate[flow], f.end[flow] = 0.0, 0.0, NEVER
    note_end(w, t, flow)
    send_flow_cut(w, t, w.fabric.flows.source[flow], w.nodes.size, flow)
    return left


@compiled
def has_waiting(w: CoflowWorld, line: int) -> bool:
    """Return whether a line has flows that end together."""
    f, lines = w.sending, w.fabric.lines
    for k in places_of(lines, line):
        flow = lines.flow[k]
        if f.left[flow] > 0.0 and f.end[flow] == NEVER:
            return True
    return False


@compiled
def on_line_end(w: CoflowWorld, s: Shrinking, t: int, me: int, line: int) -> None:
    """End the waiting flows of a line, unless their end has changed since the timer was set."""
    if (
        s.timer[line] != t or w.fabric.lines.port[line] != me
    ):  # replaced, or of a line that had the row before
        return
    s.timer[line] = NEVER
    if s.end[line] != t:
        if s.end[line] < NEVER and has_waiting(w, line):  # other flows end by themselves, or have ended
            set_line_timer(w, s.timer, s.end, s.since, t, me, line)
        return
    s.end[line] = NEVER
    f, lines, ended = w.sending, w.fabric.lines, 0
    for k in places_of(lines, line):
        flow = lines.flow[k]
        if f.left[flow] > 0.0 and f.end[flow] == NEVER:
            f.left[flow] = 0.0
            note_end(w, t, flow)
            ended += 1
    if ended > 0:
        send_line_done(w, t, me, w.nodes.size, line, t, ended)
