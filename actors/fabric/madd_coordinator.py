"""The coordinator of MADD: it decides for the time at which its decision takes effect.

It knows all sizes and the cost of its own work. So it knows what agents will have sent by then, and which flows will
have ended before it is informed: rates are right when they take effect, and no port ever carries more than it can. An
end that was predicted changes nothing when its message arrives. The cost of a decision must be known before it is made:
prices depend on what the decision is about, and measured costs cannot be used.
"""

import numpy as np

from actors.fabric.coordinator import (
    NO_AGENT_REPORTS,
    Agenda,
    note_sent,
    receive_flow_done,
    request_decision,
)
from actors.fabric.counters import N_DECISIONS, N_RATES, N_REFILLS
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.floats import bits_of
from actors.fabric.intervals import charge, note_schedules
from actors.fabric.madd import Madd, refill
from actors.fabric.messages import PACE, SHRINK, TELL
from actors.fabric.service_order import Order
from actors.kernel.compiled import compiled, inlined
from actors.kernel.cost import FIXED, known_cost
from actors.kernel.queue import NONE, send, wake
from actors.kernel.world import NEVER

_SPARE = 8  # messages that the same event may send for other reasons


@compiled
def receive_backfilled_done(w: CoflowWorld, agenda: Agenda, ended: np.ndarray, t: int, flow: int) -> None:
    """Receive the end of a backfilled flow; request that what it had is given away, unless its end was predicted.

    Args:
        ended: [1] flows whose ends were received, and not predicted, since the last decision.
    """
    receive_flow_done(w, t, NO_AGENT_REPORTS, flow)
    if w.fabric.flows.finish[flow] == NEVER:
        ended[0] += 1
        request_decision(w, agenda, t)


@compiled
def receive_line_done(w: CoflowWorld, agenda: Agenda, t: int, line: int) -> None:
    """Receive the end of a line; request a decision if its coflow was not known to end."""
    lines = w.fabric.lines
    receive_flow_done(w, t, NO_AGENT_REPORTS, lines.flow[lines.first[lines.block[line]]])
    if w.fabric.coflows.left[lines.group[line]] > 0:
        request_decision(w, agenda, t)


@inlined
def refill_price(w: CoflowWorld, ended: int) -> int:
    """Return what it costs to give away what so many backfilled flows had, ns."""
    return ended * (w.prices.flow + w.prices.schedule) if w.cost.model == FIXED else 0


@compiled
def refill_ended(w: CoflowWorld, order: Order, a: Madd, t: int, ended: int) -> None:
    """Give what so many backfilled flows had to those that wait at their ports, without another decision."""
    w.counts[N_REFILLS] += 1
    charge(w, refill_price(w, ended))
    refill(w.fabric, order, a, effective_time(w, t))


@compiled
def charge_decision(w: CoflowWorld, agenda: Agenda, counted_at: np.ndarray) -> None:
    """Charge a decision with the cost of all active coflows, their unfinished flows, and the agents of those.

    Args:
        counted_at: [P] scratch: the last decision for which an agent was counted.
    """
    coflows, lines, flows, agents = w.fabric.coflows, w.fabric.lines, 0, 0
    for i in range(agenda.used[0]):
        coflow = agenda.active[i]
        flows += coflows.left[coflow]
        for line in range(lines.of_group[coflow, 0], lines.of_group[coflow + 1, 0]):
            port = lines.port[line]
            if lines.left[line] > 0 and counted_at[port] != w.counts[N_DECISIONS]:
                counted_at[port] = w.counts[N_DECISIONS]
                agents += 1
    charge(w, w.prices.coflow * agenda.used[0] + w.prices.flow * flows + w.prices.schedule * agents)


@inlined
def effective_time(w: CoflowWorld, t: int) -> int:
    """Return when rates sent at t take effect: one network delay after the decision is made, as far as charged."""
    return t + w.network.delay_ns + known_cost(w)


@compiled
def send_times(w: CoflowWorld, a: Madd, num_sent: np.ndarray, t: int, due: int) -> None:
    """Send the agents the times that are new, as many as one event may send; a further event at once sends the others.

    Args:
        num_sent: [1] how many of them have been sent.
        due: when this was to be done: nothing else is before that.
    """
    lines, end = w.fabric.lines, min(a.changes[0], num_sent[0] + w.queue.room - _SPARE)
    for k in range(num_sent[0], end):
        which = a.changed[k]
        if which >= 0:
            agent = w.fabric.flows.source[which]
            send_value(w, t, agent, PACE, which, a.pace[which])
        else:
            agent = lines.port[~which]
            send_value(w, t, agent, SHRINK, ~which, a.need[lines.group[~which]])
    w.counts[N_RATES] += end - num_sent[0]
    num_sent[0] = end
    if end < a.changes[0]:
        wake(w, due, w.nodes.size, TELL, due, NONE, NONE)


@inlined
def send_value(w: CoflowWorld, t: int, agent: int, kind: int, which: int, ns: float) -> None:
    """Send an agent a time or a rate."""
    send(w, t, w.nodes.size, agent, kind, which, bits_of(ns), NONE, NONE)
    if note_sent(w, agent):
        note_schedules(w, 1)
