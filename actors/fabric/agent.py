"""The agent of a port: it sends the flows that enter the switch there, at the last rates that it received.

It keeps these rates until it receives others, however late they are, and sends the coordinator a message when a flow
has ended (Philae, section 6: "they comply to the last schedule until a new schedule is received").
"""

from typing import Any

import numpy as np

from actors.fabric.admission import DROPPED
from actors.fabric.counters import N_LOST, N_STALE
from actors.fabric.equal_groups import LEAST_LEFT
from actors.fabric.fabric_world import CoflowWorld, Sending
from actors.fabric.flow_ends import whole_ns
from actors.fabric.messages import (
    CHANGE,
    FLOW_END,
    SET_RATE,
    SetRate,
    read_change,
    read_flow_end,
    read_set_rate,
    read_verdict,
    send_flow_done,
    send_flow_end,
    send_line_end,
)
from actors.fabric.port_sets import count_bits
from actors.fabric.ports import words_on
from actors.fabric.updates import expect_stop, generation_of_agent
from actors.kernel.compiled import compiled, inlined
from actors.kernel.counters import N_FINISHED, N_STARTED
from actors.kernel.queue import NEVER, NONE, note
from actors.kernel.trace import RATED
from workloads.coflow_updates import DEREGISTER

# ns: the longest timer for an end, unless the rate has been in force for 8 times as long. A timer that was early is set
# again. Most later ends change, and a timer far ahead must not prolong a run.
PATIENCE = np.int64(10_000_000_000)
_MILLIONTHS, _MOST = 1e15, 9e18  # millionths of a byte per second in a byte per ns; what an int64 holds


@inlined
def agent_event(w: CoflowWorld, s: Sending, me: int) -> None:
    """Handle a message to an agent; `s` is `w.sending`, the state of such agents."""
    t, kind = w.queue.now.time[0], w.queue.now.kind[0]
    if kind == FLOW_END:
        on_flow_end(w, t, me)
    elif kind == SET_RATE:
        given = read_set_rate(w)
        if w.updates.flow.size == 0 or accept_generation(w, given):
            on_set_rate(w, t, me, given.flow, given.rate)
    elif kind == CHANGE:
        stop_flows(w, t, me, read_change(w))
    else:
        receive_verdict(w)


@compiled
def on_set_rate(w: CoflowWorld, t: int, me: int, flow: int, rate: float) -> None:
    """Send a flow at this rate from now on; ignore the rate if the flow has ended."""
    s = w.sending
    if s.left[flow] == 0.0:
        w.counts[N_STALE] += 1
        return
    if s.since[flow] == NONE:
        note_start(w, t, flow)
    else:
        s.left[flow] = left_at(s, t, flow)
    s.since[flow], s.rate[flow], s.end[flow] = t, rate, NEVER
    if rate > 0.0:
        s.end[flow] = t + whole_ns(s.left[flow] / rate)
        await_flow_end(w, t, me, flow)
    note_rate(w, t, flow, rate)


@inlined
def left_at(s: Sending, t: int, flow: int) -> float:
    """Return what a flow has left at t by its own rate, bytes."""
    return max(s.left[flow] - s.rate[flow] * (t - s.since[flow]), LEAST_LEFT)


@inlined
def timer_for(end: int, since: int, t: int) -> int:
    """Return the time of a timer that is set at t for an end, or an earlier time; the rate is in force from `since`."""
    return min(end, t + max(PATIENCE, (t - since) >> 3))


@inlined
def set_line_timer(
    w: CoflowWorld, timer: np.ndarray, end: np.ndarray, since: np.ndarray, t: int, me: int, line: int
) -> None:
    """Set a line's timer for its next end, or for an earlier time, as ends are often postponed; then it is set again.

    Args:
        timer, end, since: [L] those of `actors.fabric.madd_agent.Shrinking`.
    """
    at = timer_for(end[line], since[line], t)
    if end[line] < NEVER and at < timer[line]:
        timer[line] = at
        send_line_end(w, at, me, line)


@inlined
def await_flow_end(w: CoflowWorld, t: int, me: int, flow: int) -> None:
    """Set a timer for a flow's end, or for an earlier time, at which it is set again."""
    end = w.sending.end[flow]
    send_flow_end(w, timer_for(end, w.sending.since[flow], t), me, flow, end)


@inlined
def has_ended(w: CoflowWorld, t: int, me: int) -> bool:
    """Return whether the flow of the FLOW_END at hand ends at t; if the timer was early, set it again.

    The row may be another flow's by now, which enters elsewhere.
    """
    flow, expected_end = read_flow_end(w)
    end = w.sending.end[flow]
    if end > t and end < NEVER and end == expected_end:
        await_flow_end(w, t, me, flow)
    return end == t and w.fabric.flows.source[flow] == me


@inlined
def note_start(w: CoflowWorld, t: int, flow: int) -> None:
    """Record that a flow is sent for the first time."""
    w.counts[N_STARTED] += 1
    if w.task_records.size > 0:
        w.task_records.node[flow], w.task_records.start[flow] = w.fabric.flows.source[flow], t


@inlined
def start_flow(w: CoflowWorld, t: int, flow: int) -> None:
    """Note that a flow is sent, if it is for the first time."""
    if w.sending.since[flow] == NONE:
        w.sending.since[flow] = t
        note_start(w, t, flow)


@inlined
def note_rate(w: CoflowWorld, t: int, flow: int, rate: float) -> None:
    """Record that a flow is sent at another rate from now on, bytes per ns, if rates are recorded."""
    if w.queue.trace.rates:
        of_second = np.int64(min(rate * _MILLIONTHS, _MOST) + 0.5)
        note(w, t, w.fabric.flows.source[flow], RATED, flow, of_second, NONE, NONE)


@inlined
def note_end(w: CoflowWorld, t: int, flow: int) -> None:
    """Record that a flow has ended."""
    note_rate(w, t, flow, 0.0)
    w.counts[N_FINISHED] += 1
    if w.ended.flow.size > 0:
        w.ended.flow[w.ended.num[0]] = flow
        w.ended.num[0] += 1
    if w.task_records.size > 0:
        w.task_records.finish[flow] = t


@inlined
def on_flow_end(w: CoflowWorld, t: int, me: int) -> None:
    """End a flow, unless its rate has changed since the timer was set."""
    s, (flow, _) = w.sending, read_flow_end(w)
    if has_ended(w, t, me):
        s.left[flow], s.rate[flow], s.end[flow] = 0.0, 0.0, NEVER
        note_end(w, t, flow)
        generation, total = generation_of_agent(w, flow)
        send_flow_done(w, t, me, flow, t, generation, total)


@compiled
def cut_flow(w: CoflowWorld, p: Any, t: int, flow: int) -> float:
    """End a flow before its last byte, as a machine has failed; return what it had left, bytes.

    `p`: the state of its policy, which does not matter here.
    """
    s, me = w.sending, w.fabric.flows.source[flow]
    left = left_at(s, t, flow) if s.since[flow] != NONE else s.left[flow]
    start_flow(w, t, flow)
    s.left[flow], s.rate[flow], s.end[flow] = 0.0, 0.0, NEVER
    note_end(w, t, flow)
    generation, total = generation_of_agent(w, flow)
    send_flow_done(w, t, me, flow, t, generation, total)
    return left


@compiled
def accept_generation(w: CoflowWorld, given: SetRate) -> bool:
    """Return whether a rate is for the present generation of a flow; if so, set the bytes to send in it."""
    s, generations, flow, total = w.sending, w.updates.flow, given.flow, given.size_bytes
    if given.flow_generation != generations.generation[flow]:
        w.counts[N_STALE] += 1
        return False
    if total > generations.total[flow]:
        if s.left[flow] == 0.0:
            s.since[flow] = NONE  # it starts, or starts again
        s.left[flow] += total - generations.total[flow]
        generations.total[flow] = total
    return True


@compiled
def stop_flows(w: CoflowWorld, t: int, me: int, k: int) -> None:
    """Stop the flows of stopped tasks, until the coordinator sends them again."""
    stop = w.updates.stop
    for i in range(stop.first[k], stop.end[k]):
        end_generation(w, t, w.updates.pair.flow[i], stop.kind[k] != DEREGISTER)
    if k + 1 < stop.size and stop.agent[k + 1] == me:
        expect_stop(w, k + 1)


@inlined
def end_generation(w: CoflowWorld, t: int, flow: int, again: bool) -> None:
    """End the generation of a flow; if the flow is to be sent `again`, what it has sent is lost."""
    s, generations = w.sending, w.updates.flow
    if s.left[flow] > 0.0 and s.since[flow] != NONE:
        if again:
            w.counts[N_LOST] += np.int64(generations.total[flow] - left_at(s, t, flow) + 0.5)
        note_stop(w, flow)
    note_rate(w, t, flow, 0.0)
    clear_flow(s, flow)
    generations.generation[flow] += 1
    generations.total[flow] = 0.0


@inlined
def note_stop(w: CoflowWorld, flow: int) -> None:
    """Take a flow that was sent, and has not ended, out of the records of flows that have started."""
    w.counts[N_STARTED] -= 1
    if w.task_records.size > 0:
        w.task_records.node[flow] = NONE


@inlined
def clear_flow(s: Sending, flow: int) -> None:
    """Set the state of a flow to that of one that is not sent, and has nothing left."""
    s.left[flow], s.rate[flow], s.since[flow], s.end[flow] = 0.0, 0.0, NONE, NEVER


@compiled
def receive_verdict(w: CoflowWorld) -> None:
    """Receive a verdict: forget the flows of a coflow that is dropped; other flows keep their rates."""
    line, verdict = read_verdict(w)
    if verdict < DROPPED:
        return
    lines = w.fabric.lines
    for b in words_on(lines, line):
        for i in range(lines.first[b], lines.first[b] + count_bits(lines.mask[b])):
            forget_flow(w, lines.flow[i])


@inlined
def forget_flow(w: CoflowWorld, flow: int) -> None:
    """Forget a flow that has not ended."""
    s = w.sending
    if s.left[flow] == 0.0:
        return
    if s.since[flow] != NONE:
        note_rate(w, w.queue.now.time[0], flow, 0.0)
        note_stop(w, flow)
    clear_flow(s, flow)
