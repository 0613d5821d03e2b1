"""The coordinator of MADD: it decides for the time at which what it tells will hold.

It knows all sizes, and what its own work costs, so it knows what agents will have sent by then, and who will have
ended without its having heard of it: rates are right when they begin to hold, and no port ever carries more than it
can. News that it has reckoned with changes nothing any more. What a decision costs must be known before it is made:
the prices are of what it is about, and measured costs will not do.
"""

import numpy as np

from actors.fabric.coordinator import Agenda, note_sent
from actors.fabric.counters import N_DECISIONS, N_RATES
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.floats import bits_of
from actors.fabric.intervals import charge, note_schedules
from actors.fabric.madd import Madd
from actors.kernel.compiled import compiled, inlined
from actors.kernel.cost import known_cost
from actors.kernel.kinds import (
    PACE,
    SHRINK,
    TELL,
)
from actors.kernel.queue import NONE, send, wake

_SPARE = 8  # messages that an event may send besides


@compiled
def charge_decision(w: CoflowWorld, agenda: Agenda, counted_at: np.ndarray) -> None:
    """Let a decision about all coflows cost what these, their unfinished flows, and the agents of those cost.

    Args:
        mark: [P] scratch: the last decision for which an agent was counted.
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
    """Return when what is told at t holds: when the decision is made, as charged for, and one network delay after."""
    return t + w.network.delay_ns + known_cost(w)


@compiled
def send_times(w: CoflowWorld, a: Madd, num_sent: np.ndarray, t: int, due: int) -> None:
    """Tell the agents what has changed, as much as one event may send; what is left, in others at the same instant.

    Args:
        told: [1] how much of it they have been told.
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
    """Tell an agent in how many ns something ends."""
    send(w, t, w.nodes.size, agent, kind, which, bits_of(ns), NONE, NONE)
    if note_sent(w, agent):
        note_schedules(w, 1)
