"""The agent of a port: it sends the flows that enter the switch there, at the last rates that it received.

It keeps these rates until it receives others, however late they are, and sends the coordinator a message when a flow
has ended (Philae, section 6: "they comply to the last schedule until a new schedule is received").

A coordinator gives an agent the rate of each flow (`BY_FLOW`), or a programme for all flows of an ingress line, its
part of a coflow, with exceptions for single flows: one message for a line, not one for each of its flows.

- *The flows of a line end together* (`TOGETHER`, under MADD). The agent receives in how many ns, and sends each flow at
  a constant rate until then. So all waiting flows of the line shrink in one proportion. A backfilled flow, to which the
  coordinator has given more, ends by itself in a time of its own; when it loses that, it joins the others again. A flow
  waits (`end` is NEVER, and it has ``left * scale`` of its line left), or is backfilled, or has ended (`left` is 0).
- *The flows of a line have one rate* (`AT_ONE_RATE`), and end in order of what they have left
  (`actors.fabric.equal_groups`). A backfilled flow has an additional rate of its own, and ends by itself. In `Sending`,
  `rate` is this additional rate, `since` is when it began, and `end` is when the flow ends by both rates. A flow ends
  when its line's `served` reaches its ``left``, which is then set to 0.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.admission import DROPPED
from actors.fabric.counters import N_LOST, N_STALE
from actors.fabric.equal_groups import (
    LEAST_LEFT,
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
from actors.fabric.fabric_world import CoflowWorld, Sending
from actors.fabric.messages import (
    CHANGE,
    FLOW_END,
    LINE_END,
    PACE,
    SET_EXTRA,
    SET_LINE,
    SET_RATE,
    SHRINK,
    VERDICT,
    SetRate,
    read_change,
    read_flow_end,
    read_line_end,
    read_set_rate,
    read_value,
    read_verdict,
    send_flow_cut,
    send_flow_done,
    send_flow_end,
    send_line_done,
    send_line_end,
)
from actors.fabric.port_sets import count_bits
from actors.fabric.ports import Fabric, lines_of, places_of, whole_ns, words_on
from actors.fabric.updates import expect_stop, generation_of_agent
from actors.initial_arrays import at_start, per
from actors.kernel.compiled import compiled, inlined
from actors.kernel.counters import N_FINISHED, N_STARTED
from actors.kernel.loops import Handlers
from actors.kernel.queue import NEVER, NONE, note
from actors.kernel.trace import RATED
from workloads.coflow_updates import DEREGISTER

# ns: the longest timer for an end, unless the rate has been in force for 8 times as long. A timer that was early is set
# again. Most later ends change, and a timer far ahead must not prolong a run.
PATIENCE = np.int64(10_000_000_000)
_MILLIONTHS, _MOST = 1e15, 9e18  # millionths of a byte per second in a byte per ns; what an int64 holds


class Shrinking(NamedTuple):
    """What agents know of ingress lines whose flows end together, besides `Sending`."""

    begun: np.ndarray = per("line", False)  # all its flows have been sent
    # the share of `Sending.left` that its waiting flows have at `since`
    scale: np.ndarray = per("line", 1.0)
    # ns from `since` until they end, inf while they are not sent
    need: np.ndarray = per("line", np.inf)
    since: np.ndarray = per("line")  # ns
    end: np.ndarray = per("line", NEVER)  # when they end, ns; NEVER: they are not sent
    timer: np.ndarray = per("line", NEVER)  # the timer for that end, at that time or earlier, ns


class Serving(NamedTuple):
    """What agents know of ingress lines whose flows have one rate, besides `Sending`."""

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
def on_set_rate(w: CoflowWorld, t: int, me: int) -> None:
    """Send a flow at another rate from now on; ignore the rate if the flow has ended."""
    given, sending = read_set_rate(w), w.sending
    if w.updates.flow.size > 0 and not accept_generation(w, given):
        return
    flow, rate = given.flow, given.rate
    if sending.left[flow] == 0.0:
        w.counts[N_STALE] += 1
        return
    if sending.since[flow] == NONE:
        note_start(w, t, flow)
    else:
        sending.left[flow] = left_at(sending, t, flow)
    sending.since[flow], sending.rate[flow], sending.end[flow] = t, rate, NEVER
    if rate > 0.0:
        sending.end[flow] = t + whole_ns(sending.left[flow] / rate)
        await_flow_end(w, t, me, flow)
    note_rate(w, t, flow, rate)


@inlined
def left_at(sending: Sending, t: int, flow: int) -> float:
    """Return what a flow has left at t by its own rate, bytes."""
    return max(sending.left[flow] - sending.rate[flow] * (t - sending.since[flow]), LEAST_LEFT)


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
        timer, end, since: [L] of each line; `since` is when its rate came into force.
    """
    at = timer_for(end[line], since[line], t)
    if end[line] < NEVER and at < timer[line]:
        timer[line] = at
        send_line_end(w, at, me, line)


@inlined
def is_expected(w: CoflowWorld, timer: np.ndarray, t: int, me: int, line: int) -> bool:
    """Return whether the LINE_END at hand is the last timer of its line, and not of a line that had the row before."""
    if timer[line] != t or w.fabric.lines.port[line] != me:
        return False
    timer[line] = NEVER
    return True


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
def start_line(w: CoflowWorld, begun: np.ndarray, t: int, line: int) -> None:
    """Note that all flows of a line are sent, if it is for the first time."""
    if not begun[line]:
        begun[line] = True
        for k in places_of(w.fabric.lines, line):
            start_flow(w, t, w.fabric.lines.flow[k])


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
    sending, (flow, _) = w.sending, read_flow_end(w)
    if has_ended(w, t, me):
        sending.left[flow], sending.rate[flow], sending.end[flow] = 0.0, 0.0, NEVER
        note_end(w, t, flow)
        generation, total = generation_of_agent(w, flow)
        send_flow_done(w, t, me, flow, t, generation, total)


@compiled
def cut_flow(w: CoflowWorld, t: int, flow: int) -> float:
    """End a flow before its last byte, as a machine has failed; return what it had left, bytes."""
    sending, me = w.sending, w.fabric.flows.source[flow]
    left = left_at(sending, t, flow) if sending.since[flow] != NONE else sending.left[flow]
    start_flow(w, t, flow)
    sending.left[flow], sending.rate[flow], sending.end[flow] = 0.0, 0.0, NEVER
    note_end(w, t, flow)
    generation, total = generation_of_agent(w, flow)
    send_flow_done(w, t, me, flow, t, generation, total)
    return left


@compiled
def accept_generation(w: CoflowWorld, given: SetRate) -> bool:
    """Return whether a rate is for the present generation of a flow; if so, set the bytes to send in it."""
    sending, generations, flow, total = w.sending, w.updates.flow, given.flow, given.size_bytes
    if given.flow_generation != generations.generation[flow]:
        w.counts[N_STALE] += 1
        return False
    if total > generations.total[flow]:
        if sending.left[flow] == 0.0:
            sending.since[flow] = NONE  # it starts, or starts again
        sending.left[flow] += total - generations.total[flow]
        generations.total[flow] = total
    return True


@compiled
def on_change(w: CoflowWorld, t: int, me: int) -> None:
    """Stop the flows of stopped tasks, until the coordinator sends them again."""
    stop, k = w.updates.stop, read_change(w)
    for i in range(stop.first[k], stop.end[k]):
        end_generation(w, t, w.updates.pair.flow[i], stop.kind[k] != DEREGISTER)
    if k + 1 < stop.size and stop.agent[k + 1] == me:
        expect_stop(w, k + 1)


@inlined
def end_generation(w: CoflowWorld, t: int, flow: int, again: bool) -> None:
    """End the generation of a flow; if the flow is to be sent `again`, what it has sent is lost."""
    sending, generations = w.sending, w.updates.flow
    if sending.left[flow] > 0.0 and sending.since[flow] != NONE:
        if again:
            w.counts[N_LOST] += np.int64(generations.total[flow] - left_at(sending, t, flow) + 0.5)
        note_stop(w, flow)
    note_rate(w, t, flow, 0.0)
    clear_flow(sending, flow)
    generations.generation[flow] += 1
    generations.total[flow] = 0.0


@inlined
def note_stop(w: CoflowWorld, flow: int) -> None:
    """Take a flow that was sent, and has not ended, out of the records of flows that have started."""
    w.counts[N_STARTED] -= 1
    if w.task_records.size > 0:
        w.task_records.node[flow] = NONE


@inlined
def clear_flow(sending: Sending, flow: int) -> None:
    """Set the state of a flow to that of one that is not sent, and has nothing left."""
    sending.left[flow], sending.rate[flow], sending.since[flow], sending.end[flow] = 0.0, 0.0, NONE, NEVER


@compiled
def on_verdict(w: CoflowWorld) -> None:
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
    sending = w.sending
    if sending.left[flow] == 0.0:
        return
    if sending.since[flow] != NONE:
        note_rate(w, w.queue.now.time[0], flow, 0.0)
        note_stop(w, flow)
    clear_flow(sending, flow)


@inlined
def scale_at(shrinking: Shrinking, t: int, line: int) -> float:
    """Return the share of `Sending.left` that the waiting flows of a line have at t, which may be late in `live`."""
    return shrinking.scale[line] * (
        1.0 - (min(t, shrinking.end[line] - 1) - shrinking.since[line]) / shrinking.need[line]
    )


@compiled
def on_shrink(w: CoflowWorld, shrinking: Shrinking, t: int, me: int) -> None:
    """Let the waiting flows of a line end together, in so many ns from now; inf: do not send them."""
    line, need = read_value(w)
    shrinking.scale[line] = scale_at(shrinking, t, line)
    shrinking.since[line], shrinking.need[line], shrinking.end[line] = t, need, NEVER
    if need < np.inf:
        start_line(w, shrinking.begun, t, line)
        shrinking.end[line] = t + whole_ns(need)
        set_line_timer(w, shrinking.timer, shrinking.end, shrinking.since, t, me, line)
    if w.queue.trace.rates:
        note_line(w, shrinking, t, line)


@compiled
def note_line(w: CoflowWorld, shrinking: Shrinking, t: int, line: int) -> None:
    """Record the rates of the waiting flows of a line, which end together."""
    sending, lines = w.sending, w.fabric.lines
    for k in places_of(lines, line):
        flow = lines.flow[k]
        if sending.left[flow] > 0.0 and sending.end[flow] == NEVER:
            note_rate(w, t, flow, sending.left[flow] * shrinking.scale[line] / shrinking.need[line])


@compiled
def on_pace(w: CoflowWorld, shrinking: Shrinking, t: int, me: int) -> None:
    """Let a flow end by itself, in so many ns from now; inf: together with the waiting flows of its line."""
    flow, pace = read_value(w)
    sending, line = w.sending, w.fabric.flows.line[flow, 0]
    if sending.left[flow] == 0.0:
        w.counts[N_STALE] += 1
        return
    if sending.end[flow] < NEVER:
        sending.left[flow] = left_at(sending, t, flow)
    else:
        sending.left[flow] *= scale_at(shrinking, t, line)
    start_flow(w, t, flow)
    sending.since[flow] = t
    if pace < np.inf:
        sending.rate[flow] = sending.left[flow] / pace
        sending.end[flow] = t + np.int64(pace + 0.5)
        await_flow_end(w, t, me, flow)
    else:
        sending.left[flow] /= scale_at(shrinking, t, line)
        sending.rate[flow], sending.end[flow] = 0.0, NEVER
        if shrinking.end[line] > t:
            set_line_timer(w, shrinking.timer, shrinking.end, shrinking.since, t, me, line)
    note_rate(
        w,
        t,
        flow,
        sending.rate[flow]
        if pace < np.inf
        else sending.left[flow] * shrinking.scale[line] / shrinking.need[line],
    )


@compiled
def cut_shrinking_flow(w: CoflowWorld, shrinking: Shrinking, t: int, flow: int) -> float:
    """End a flow before its last byte, as a machine has failed; return what it had left, bytes."""
    sending, line = w.sending, w.fabric.flows.line[flow, 0]
    left = (
        left_at(sending, t, flow)
        if sending.end[flow] < NEVER
        else sending.left[flow] * scale_at(shrinking, t, line)
    )
    start_flow(w, t, flow)
    sending.left[flow], sending.rate[flow], sending.end[flow] = 0.0, 0.0, NEVER
    note_end(w, t, flow)
    send_flow_cut(w, t, w.fabric.flows.source[flow], w.nodes.size, flow)
    return left


@compiled
def has_waiting(w: CoflowWorld, line: int) -> bool:
    """Return whether a line has flows that end together."""
    sending, lines = w.sending, w.fabric.lines
    for k in places_of(lines, line):
        flow = lines.flow[k]
        if sending.left[flow] > 0.0 and sending.end[flow] == NEVER:
            return True
    return False


@compiled
def on_joint_end(w: CoflowWorld, shrinking: Shrinking, t: int, me: int) -> None:
    """End the waiting flows of a line, unless their end has changed since the timer was set."""
    line = read_line_end(w)
    if not is_expected(w, shrinking.timer, t, me, line):
        return
    if shrinking.end[line] != t:
        if shrinking.end[line] < NEVER and has_waiting(
            w, line
        ):  # other flows end by themselves, or have ended
            set_line_timer(w, shrinking.timer, shrinking.end, shrinking.since, t, me, line)
        return
    shrinking.end[line] = NEVER
    sending, lines, ended = w.sending, w.fabric.lines, 0
    for k in places_of(lines, line):
        flow = lines.flow[k]
        if sending.left[flow] > 0.0 and sending.end[flow] == NEVER:
            sending.left[flow] = 0.0
            note_end(w, t, flow)
            ended += 1
    if ended > 0:
        send_line_done(w, t, me, w.nodes.size, line, t, ended)


@compiled
def begin_serving(w: CoflowWorld, serving: Serving, groups: EqualGroups, coflow: int) -> None:
    """Let agents and coordinator, whose groups are given, know the flows of a coflow that has just come into being."""
    coflows, lines = w.fabric.coflows, w.fabric.lines
    begin_group(w.fabric.flows.left, groups, coflow, coflows.first_flow[coflow], coflows.end_flow[coflow])
    for line in lines_of(lines, coflow, 0):
        first = lines.flow[places_of(lines, line).start]
        begin_group(w.sending.left, serving.groups, line, first, first + lines.left[line])


@compiled
def on_set_line(w: CoflowWorld, serving: Serving, t: int, me: int) -> None:
    """Send each flow of a line at another rate from now on."""
    groups, (line, rate) = serving.groups, read_value(w)
    if groups.size[line] == 0:
        w.counts[N_STALE] += 1
        return
    groups.served[line] = served_by(groups, t, line)
    groups.since[line], groups.in_force[line] = t, rate
    if rate > 0.0:
        start_line(w, serving.begun, t, line)
    if w.queue.trace.rates:
        for i in range(groups.first[line], groups.first[line] + groups.size[line]):
            note_rate(w, t, groups.heap[i], rate + w.sending.rate[groups.heap[i]])
    await_line_end(w, serving, t + 1, me, line)


@inlined
def await_line_end(w: CoflowWorld, serving: Serving, least: int, me: int, line: int) -> None:
    """Compute the next end of a line, and set the line's timer."""
    predict_end(w.sending.left, serving.groups, line, least)
    set_line_timer(w, serving.timer, serving.groups.end, serving.groups.since, least, me, line)


@compiled
def on_set_extra(w: CoflowWorld, serving: Serving, t: int, me: int) -> None:
    """Send a flow at another additional rate from now on; 0: at its line's rate alone."""
    flow, extra = read_value(w)
    sending, groups, line = w.sending, serving.groups, w.fabric.flows.line[flow, 0]
    if sending.left[flow] == 0.0:
        w.counts[N_STALE] += 1
        return
    start_flow(w, t, flow)
    sending.left[flow] -= extra_sent(
        sending.left[flow], sending.since[flow], groups, line, t, sending.rate[flow]
    )
    sift_up(sending.left, groups, line, groups.position[flow])
    sending.since[flow], sending.rate[flow], sending.end[flow] = t, extra, NEVER
    if extra > 0.0:
        left = sending.left[flow] - served_by(groups, t, line)
        sending.end[flow] = t + whole_ns(left / (groups.in_force[line] + extra))
        await_flow_end(w, t, me, flow)
    note_rate(w, t, flow, groups.in_force[line] + extra)
    await_line_end(w, serving, t + 1, me, line)


@compiled
def on_served_end(w: CoflowWorld, serving: Serving, t: int, me: int) -> None:
    """End a backfilled flow, unless its rate has changed since the timer was set."""
    if has_ended(w, t, me):
        flow, _ = read_flow_end(w)
        end_served_flow(w, serving, t, me, flow)
        await_line_end(w, serving, t, me, w.fabric.flows.line[flow, 0])


@compiled
def on_served_line_end(w: CoflowWorld, serving: Serving, t: int, me: int) -> None:
    """End the next flows of a line, unless its rate has changed since the timer was set."""
    groups, line = serving.groups, read_line_end(w)
    if not is_expected(w, serving.timer, t, me, line):
        return
    while groups.end[line] == t:
        end_served_flow(w, serving, t, me, groups.heap[groups.first[line]])
        predict_end(w.sending.left, groups, line, t)
    set_line_timer(w, serving.timer, groups.end, groups.since, t, me, line)


@compiled
def cut_served_flow(w: CoflowWorld, serving: Serving, t: int, flow: int) -> float:
    """End a flow before its last byte, as a machine has failed; return what it had left, bytes."""
    sending, line, me = w.sending, w.fabric.flows.line[flow, 0], w.fabric.flows.source[flow]
    left = sending.left[flow] - served_by(serving.groups, t, line)
    if sending.rate[flow] > 0.0:
        left -= extra_sent(
            sending.left[flow], sending.since[flow], serving.groups, line, t, sending.rate[flow]
        )
    start_flow(w, t, flow)
    end_served_flow(w, serving, t, me, flow)
    await_line_end(w, serving, t + 1, me, line)
    return max(left, 0.0)


@compiled
def end_served_flow(w: CoflowWorld, serving: Serving, t: int, me: int, flow: int) -> None:
    """End a flow, and send the coordinator that it has ended."""
    sending = w.sending
    remove_from_heap(sending.left, serving.groups, w.fabric.flows.line[flow, 0], flow)
    sending.left[flow], sending.rate[flow], sending.end[flow] = 0.0, 0.0, NEVER
    note_end(w, t, flow)
    send_flow_done(w, t, me, flow, t, NONE, 0.0)


# The handlers of an agent's messages, by what a coordinator gives it.
BY_FLOW: Handlers = {FLOW_END: on_flow_end, SET_RATE: on_set_rate, CHANGE: on_change, VERDICT: on_verdict}
TOGETHER: Handlers = {
    FLOW_END: on_flow_end,
    LINE_END: on_joint_end,
    SHRINK: on_shrink,
    PACE: on_pace,
    VERDICT: on_verdict,
}
AT_ONE_RATE = {
    FLOW_END: on_served_end,
    LINE_END: on_served_line_end,
    SET_LINE: on_set_line,
    SET_EXTRA: on_set_extra,
}
