"""The agent of a port under MADD: all waiting flows of an ingress line, its part of a coflow, shrink in one proportion.

The agent receives in how many ns the flows of a line end together, and sends each of them at a constant rate until
then: a message for a line, and not for each of its flows. A flow to which the coordinator has given more ends by
itself, also in a given time; if it loses that, it joins the others again. A flow is in one of three states: it waits
(`end` is NEVER), and has ``left * scale`` of its line; or it has a pace of its own; or it has ended (`left` is 0).
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.agent import (
    await_flow_end,
    note_end,
    note_rate,
    on_flow_end,
    receive_verdict,
    set_line_timer,
    start_flow,
)
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.flow_ends import whole_ns
from actors.fabric.messages import (
    FLOW_END,
    LINE_END,
    PACE,
    SHRINK,
    read_line_end,
    read_pace,
    read_shrink,
    send_line_done,
)
from actors.fabric.ports import Fabric
from actors.kernel.compiled import compiled, inlined
from actors.kernel.world import NEVER

_LEAST = 1e-6  # bytes that a flow has left which has not ended, whatever rounding says


class Shrinking(NamedTuple):
    """What agents know of L ingress lines, besides `Sending`."""

    scale: np.ndarray  # [L] what is left at `since` of what its waiting flows have in `Sending.left`
    need: np.ndarray  # [L] ns from `since` until they end, inf while they are not sent
    since: np.ndarray  # [L] ns
    end: np.ndarray  # [L] when they end, ns; NEVER
    timer: np.ndarray  # [L] the timer for that, ns: at that time or earlier; NEVER
    unsent: np.ndarray  # [L] flows that were never sent


def make_shrinking(fabric: Fabric) -> Shrinking:
    """Return the state of agents that send nothing yet."""
    lines = int(fabric.lines.of_group[0, 1])
    return Shrinking(
        scale=np.ones(lines),
        need=np.full(lines, np.inf),
        since=np.zeros(lines, np.int64),
        end=np.full(lines, NEVER),
        timer=np.full(lines, NEVER),
        unsent=fabric.lines.left[:lines].copy(),
    )


@inlined
def shrinking_event(w: CoflowWorld, s: Shrinking, me: int) -> None:
    """Handle the message of an agent under MADD."""
    t, kind = w.queue.now.time[0], w.queue.now.kind[0]
    if kind == FLOW_END:
        on_flow_end(w, t, me)
    elif kind == LINE_END:
        on_line_end(w, s, t, me, read_line_end(w))
    elif kind == SHRINK:
        line, duration = read_shrink(w)
        on_shrink(w, s, t, me, line, duration)
    elif kind == PACE:
        flow, duration = read_pace(w)
        on_pace(w, s, t, me, flow, duration)
    else:
        receive_verdict(w)


@inlined
def scale_at(s: Shrinking, t: int, line: int) -> float:
    """Return what is left at t of what the waiting flows of a line have."""
    return s.scale[line] * (1.0 - (t - s.since[line]) / s.need[line])


@compiled
def on_shrink(w: CoflowWorld, s: Shrinking, t: int, me: int, line: int, need: float) -> None:
    """Let the waiting flows of a line end together, `need` ns from now; inf: do not send them."""
    s.scale[line] = scale_at(s, t, line)
    s.since[line], s.need[line], s.end[line] = t, need, NEVER
    if need < np.inf:
        lines, flow_ids = w.fabric.lines, w.fabric.lines.flow
        if s.unsent[line] > 0:
            for k in range(lines.first[lines.block[line]], lines.first[lines.block[line + 1]]):
                start_flow(w, s.unsent, t, line, flow_ids[k])
        s.end[line] = t + whole_ns(need)
        set_line_timer(w, s.timer, s.end, s.since, t, me, line)
    if w.queue.trace.rates:
        note_line(w, s, t, line)


@compiled
def note_line(w: CoflowWorld, s: Shrinking, t: int, line: int) -> None:
    """Record the rates of the waiting flows of a line, which end together."""
    f, lines = w.sending, w.fabric.lines
    for k in range(lines.first[lines.block[line]], lines.first[lines.block[line + 1]]):
        flow = lines.flow[k]
        if f.left[flow] > 0.0 and f.end[flow] == NEVER:
            note_rate(w, t, flow, f.left[flow] * s.scale[line] / s.need[line])


@compiled
def on_pace(w: CoflowWorld, s: Shrinking, t: int, me: int, flow: int, pace: float) -> None:
    """Let a flow end by itself, `pace` ns from now; inf: together with the waiting flows of its line."""
    f, line = w.sending, w.fabric.flows.line[flow, 0]
    if f.end[flow] < NEVER:
        f.left[flow] = max(f.left[flow] - f.rate[flow] * (t - f.since[flow]), _LEAST)
    else:
        f.left[flow] *= scale_at(s, t, line)
    start_flow(w, s.unsent, t, line, flow)
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
def has_waiting(w: CoflowWorld, line: int) -> bool:
    """Return whether a line has flows that end together."""
    f, lines = w.sending, w.fabric.lines
    for k in range(lines.first[lines.block[line]], lines.first[lines.block[line + 1]]):
        if f.left[lines.flow[k]] > 0.0 and f.end[lines.flow[k]] == NEVER:
            return True
    return False


@compiled
def on_line_end(w: CoflowWorld, s: Shrinking, t: int, me: int, line: int) -> None:
    """End the waiting flows of a line, unless another end was set since the timer."""
    if s.timer[line] != t:
        return
    s.timer[line] = NEVER
    if s.end[line] != t:
        if s.end[line] < NEVER and has_waiting(w, line):  # all others end on their own, or have ended
            set_line_timer(w, s.timer, s.end, s.since, t, me, line)
        return
    s.end[line] = NEVER
    f, lines, ended = w.sending, w.fabric.lines, 0
    for k in range(lines.first[lines.block[line]], lines.first[lines.block[line + 1]]):
        flow = lines.flow[k]
        if f.left[flow] > 0.0 and f.end[flow] == NEVER:
            f.left[flow] = 0.0
            note_end(w, t, flow)
            ended += 1
    if ended > 0:
        send_line_done(w, t, me, line, t, ended)
