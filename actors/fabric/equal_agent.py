"""The agent of a port under equal rates: each flow of an ingress line, its part of a coflow, is sent at one rate.

The agent receives a rate for a line, and not for each of its flows, which end in order of what they have left
(`actors.fabric.equal_groups`). A backfilled flow has a rate of its own beyond that, and ends by itself. The columns
of `Sending` are those of backfilled flows: `rate` is what a flow has beyond its line's, `since` when it got it, `end`
when it ends by it. A flow ends when its line's `served` reaches its ``left``, which is 0 after that.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.agent import await_flow_end, has_ended, note_end, note_rate, note_start, timer_for
from actors.fabric.counters import N_STALE
from actors.fabric.equal_groups import (
    extra_sent,
    ns_for,
    predict_end,
    remove_from_heap,
    served_by,
    sift_up,
)
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.floats import float_of
from actors.fabric.messages import FLOW_DONE, FLOW_END, LINE_END, SET_LINE
from actors.fabric.ports import Fabric
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE, send, wake
from actors.kernel.world import NEVER


class Serving(NamedTuple):
    """What agents know of L ingress lines, besides `Sending`; F flows that cross the switch."""

    in_force: np.ndarray  # [L] bytes per ns of each flow
    since: np.ndarray  # [L] from when on, ns
    served: np.ndarray  # [L] what each of its flows had been served by then, bytes
    end: np.ndarray  # [L] when the next flow ends by that rate, ns; NEVER
    timer: np.ndarray  # [L] the first LINE_END that is under way, ns; NEVER. If it is early, it is set again
    unsent: np.ndarray  # [L] flows that were never sent
    first: np.ndarray  # [L] of its heap
    size: np.ndarray  # [L] of it: unfinished flows, the first to end in front
    heap: np.ndarray  # [F]
    position: np.ndarray  # [flows] where a flow is in `heap`


def make_serving(fabric: Fabric) -> Serving:
    """Return the state of agents that send nothing yet."""
    lines, flows = int(fabric.lines.of_group[0, 1]), fabric.flows
    crossing = np.flatnonzero(flows.line[:, 0] != NONE)
    heap = crossing[np.lexsort((flows.left[crossing], flows.line[crossing, 0]))]  # sorted, hence a heap
    size = np.bincount(flows.line[crossing, 0], minlength=lines)
    position = np.full(flows.size.size, NONE)
    position[heap] = np.arange(heap.size)
    return Serving(
        in_force=np.zeros(lines),
        since=np.zeros(lines, np.int64),
        served=np.zeros(lines),
        end=np.full(lines, NEVER),
        timer=np.full(lines, NEVER),
        unsent=size.copy(),
        first=np.cumsum(size) - size,
        size=size,
        heap=heap,
        position=position,
    )


@inlined
def serving_event(w: CoflowWorld, s: Serving, me: int) -> None:
    """Handle the message of an agent under equal rates."""
    message = w.queue.now
    t, kind, which = message.time[0], message.kind[0], message.a[0]
    if kind == FLOW_END:
        on_flow_end(w, s, t, me, which)
    elif kind == LINE_END:
        on_line_end(w, s, t, me, which)
    elif kind == SET_LINE:
        on_set_line(w, s, t, me, which, float_of(message.b[0]))
    else:
        on_set_extra(w, s, t, me, which, float_of(message.b[0]))


@compiled
def on_set_line(w: CoflowWorld, s: Serving, t: int, me: int, line: int, rate: float) -> None:
    """Send each flow of a line at this rate from now on."""
    if s.size[line] == 0:
        w.counts[N_STALE] += 1
        return
    s.served[line] = served_by(s, t, line)
    s.since[line], s.in_force[line] = t, rate
    if rate > 0.0 and s.unsent[line] > 0:
        for i in range(s.first[line], s.first[line] + s.size[line]):
            start_flow(w, s, t, line, s.heap[i])
    if w.queue.trace.rates:
        for i in range(s.first[line], s.first[line] + s.size[line]):
            note_rate(w, t, s.heap[i], rate + w.sending.rate[s.heap[i]])
    await_line_end(w, s, t + 1, me, line)


@inlined
def start_flow(w: CoflowWorld, s: Serving, t: int, line: int, flow: int) -> None:
    """Note that a flow is sent, if it is the first time."""
    if w.sending.since[flow] == NONE:
        w.sending.since[flow] = t
        s.unsent[line] -= 1
        note_start(w, t, flow)


@inlined
def await_line_end(w: CoflowWorld, s: Serving, least: int, me: int, line: int) -> None:
    """Compute the next end of a line, and set the line's timer."""
    predict_end(w.sending, s, line, least)
    set_line_timer(w, s, least, me, line)


@inlined
def set_line_timer(w: CoflowWorld, s: Serving, t: int, me: int, line: int) -> None:
    """Set a line's timer for its next end, or an earlier one that is then set again."""
    timer = timer_for(s.end[line], s.since[line], t)
    if s.end[line] < NEVER and timer < s.timer[line]:
        s.timer[line] = timer
        wake(w, timer, me, LINE_END, line, NONE, NONE)


@compiled
def on_set_extra(w: CoflowWorld, s: Serving, t: int, me: int, flow: int, extra: float) -> None:
    """Send a flow at this rate beyond its line's from now on; 0: at its line's rate alone."""
    f, line = w.sending, w.fabric.flows.line[flow, 0]
    if f.left[flow] == 0.0:
        w.counts[N_STALE] += 1
        return
    start_flow(w, s, t, line, flow)
    f.left[flow] -= extra_sent(f, s, line, t, flow, f.rate[flow])
    sift_up(f, s, line, s.position[flow])
    f.since[flow], f.rate[flow], f.end[flow] = t, extra, NEVER
    if extra > 0.0:
        f.end[flow] = t + ns_for(f.left[flow] - served_by(s, t, line), s.in_force[line] + extra)
        await_flow_end(w, t, me, flow)
    note_rate(w, t, flow, s.in_force[line] + extra)
    await_line_end(w, s, t + 1, me, line)


@compiled
def on_flow_end(w: CoflowWorld, s: Serving, t: int, me: int, flow: int) -> None:
    """End a backfilled flow, unless its rate has changed since the timer was set."""
    if has_ended(w, t, me, flow):
        end_flow(w, s, t, me, flow)
        await_line_end(w, s, t, me, w.fabric.flows.line[flow, 0])


@compiled
def on_line_end(w: CoflowWorld, s: Serving, t: int, me: int, line: int) -> None:
    """End the next flows of a line, unless its rate has changed since the timer was set."""
    if s.timer[line] != t:
        return
    s.timer[line] = NEVER
    while s.end[line] == t:
        end_flow(w, s, t, me, s.heap[s.first[line]])
        predict_end(w.sending, s, line, t)
    set_line_timer(w, s, t, me, line)


@compiled
def end_flow(w: CoflowWorld, s: Serving, t: int, me: int, flow: int) -> None:
    """End a flow, and send the coordinator that it has ended."""
    f = w.sending
    remove_from_heap(f, s, w.fabric.flows.line[flow, 0], flow)
    f.left[flow], f.rate[flow], f.end[flow] = 0.0, 0.0, NEVER
    note_end(w, t, flow)
    send(w, t, me, w.nodes.size, FLOW_DONE, flow, t, NONE, NONE)
