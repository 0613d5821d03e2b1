"""The agent of a port: it sends the flows that enter the switch there, at the last rates that it received.

It keeps these rates until it receives others, however late they are, and sends the coordinator a message when a flow
has ended (Philae, section 6: "they comply to the last schedule until a new schedule is received").
"""

import numpy as np

from actors.fabric.counters import N_LOST, N_STALE
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.floats import float_of, whole_ns
from actors.fabric.messages import CHANGE, FLOW_DONE, FLOW_END
from actors.fabric.updates import expect_stop, generation_of_agent
from actors.kernel.compiled import compiled, inlined
from actors.kernel.counters import N_FINISHED, N_STARTED
from actors.kernel.queue import NONE, note, send, wake
from actors.kernel.trace import RATED
from actors.kernel.world import NEVER
from workloads.coflow_updates import DEREGISTER

# ns: the longest timer for an end, unless the rate has been in force for 8 times as long; then it is set again. Most
# later ends change, and a far one must not prolong a run
PATIENCE = np.int64(10_000_000_000)
_MILLIONTHS, _MOST = 1e15, 9e18  # of a byte per second in a byte per ns; what an int64 holds
_LEAST = 1e-6  # bytes that a flow has left which has not ended, whatever rounding says


@inlined
def agent_event(w: CoflowWorld, me: int) -> None:
    """Handle the message of an agent."""
    message = w.queue.now
    t, flow = message.time[0], message.a[0]
    if message.kind[0] == FLOW_END:
        on_flow_end(w, t, me, flow)
    elif message.kind[0] == CHANGE:
        stop_flows(w, t, me, flow)
    elif w.updates.flow.size == 0 or accept_generation(w, flow, message.c[0], message.d[0]):
        on_set_rate(w, t, me, flow, float_of(message.b[0]))


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
        s.left[flow] = max(s.left[flow] - s.rate[flow] * (t - s.since[flow]), _LEAST)
    s.since[flow], s.rate[flow], s.end[flow] = t, rate, NEVER
    if rate > 0.0:
        s.end[flow] = t + whole_ns(s.left[flow] / rate)
        await_flow_end(w, t, me, flow)
    note_rate(w, t, flow, rate)


@inlined
def timer_for(end: int, since: int, t: int) -> int:
    """Return for when to set a timer at t for an end by a rate that is in force since then: for that, or earlier."""
    return min(end, t + max(PATIENCE, (t - since) >> 3))


@inlined
def await_flow_end(w: CoflowWorld, t: int, me: int, flow: int) -> None:
    """Set a timer for a flow's end, or an earlier one that is then set again."""
    end = w.sending.end[flow]
    wake(w, timer_for(end, w.sending.since[flow], t), me, FLOW_END, flow, end, NONE)


@inlined
def has_ended(w: CoflowWorld, t: int, me: int, flow: int) -> bool:
    """Return whether a flow ends now; if its timer was only early, set it again."""
    end = w.sending.end[flow]
    if end > t and end < NEVER and end == w.queue.now.b[0]:
        await_flow_end(w, t, me, flow)
    return end == t


@inlined
def note_start(w: CoflowWorld, t: int, flow: int) -> None:
    """Record that a flow is sent for the first time."""
    w.counts[N_STARTED] += 1
    if w.task_records.size > 0:
        w.task_records.node[flow], w.task_records.start[flow] = w.fabric.flows.source[flow], t


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
    if w.task_records.size > 0:
        w.task_records.finish[flow] = t


@inlined
def on_flow_end(w: CoflowWorld, t: int, me: int, flow: int) -> None:
    """End a flow, unless its rate has changed since the timer was set."""
    s = w.sending
    if has_ended(w, t, me, flow):
        s.left[flow], s.rate[flow], s.end[flow] = 0.0, 0.0, NEVER
        note_end(w, t, flow)
        generation, total = generation_of_agent(w, flow)
        send(w, t, me, w.nodes.size, FLOW_DONE, flow, t, generation, total)


@compiled
def accept_generation(w: CoflowWorld, flow: int, generation: int, bits: int) -> bool:
    """Return whether a rate is for the present generation of a flow; if so, set the bytes to send in it."""
    s, generations, total = w.sending, w.updates.flow, float_of(bits)
    if generation != generations.generation[flow]:
        w.counts[N_STALE] += 1
        return False
    if total > generations.total[flow]:
        if s.left[flow] == 0.0:
            s.since[flow] = NONE  # it begins, or begins again
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
        left = max(s.left[flow] - s.rate[flow] * (t - s.since[flow]), _LEAST)
        if again:
            w.counts[N_LOST] += np.int64(generations.total[flow] - left + 0.5)
        w.counts[N_STARTED] -= 1  # it waits again
        if w.task_records.size > 0:
            w.task_records.node[flow] = NONE
    note_rate(w, t, flow, 0.0)
    s.left[flow], s.rate[flow], s.since[flow], s.end[flow] = 0.0, 0.0, NONE, NEVER
    generations.generation[flow] += 1
    generations.total[flow] = 0.0
