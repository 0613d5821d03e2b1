"""The coordinator of MADD: it decides for the time at which its decision takes effect.

It knows all sizes and the cost of its own work. So it knows what agents will have sent by then, and which flows will
have ended before it is informed: rates are right when they take effect, and no port ever carries more than it can. An
end that was predicted changes nothing when its message arrives. The cost of a decision must be known before it is made:
prices depend on what the decision is about, and measured costs cannot be used.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from actors.fabric.coordinator import (
    NO_AGENT_REPORTS,
    Agenda,
    note_report,
    request_decision,
    send_changes,
)
from actors.fabric.counters import N_DECISIONS, N_REFILLS
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.intervals import charge
from actors.fabric.madd import Madd, any_ends_by, progress, refill
from actors.fabric.messages import read_line_done, send_pace, send_shrink
from actors.fabric.service_order import Order
from actors.kernel.compiled import compiled, inlined, template
from actors.kernel.cost import FIXED, known_cost
from actors.kernel.world import NEVER


@compiled
def receive_backfilled_done(w: CoflowWorld, p: Any, t: int, flow: int, ended: int) -> None:
    """Receive the end of a backfilled flow; request that what it had is given away, unless its end was predicted.

    Args:
        p: a policy's state, with `agenda` and `ended`.
    """
    note_report(w, t, NO_AGENT_REPORTS, w.fabric.flows.source[flow])
    if w.fabric.flows.finish[flow] == NEVER:
        p.ended[0] += 1
        request_decision(w, p.agenda, t)


@compiled
def receive_line_done(w: CoflowWorld, p: Any, t: int) -> None:
    """Receive the end of a line; request a decision if its coflow was not known to end."""
    lines, (line, _, _) = w.fabric.lines, read_line_done(w)
    note_report(w, t, NO_AGENT_REPORTS, lines.port[line])
    if w.fabric.coflows.left[lines.group[line]] > 0:
        request_decision(w, p.agenda, t)


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


@template
def decide_or_refill(w: CoflowWorld, p: Any, t: int, decide: Callable) -> None:
    """Call ``decide(w, p, t)`` if a coflow has arrived or will have ended; else refill what ended flows had.

    `p`: a policy's state, with `stale`, `ended`, `agenda`, `order`, `madd`, `counted_at` and `num_sent`.
    """
    if p.stale[0] or any_ends_by(p.order, p.madd, effective_time(w, t) + refill_price(w, p.ended[0])):
        p.stale[0] = False
        w.counts[N_DECISIONS] += 1
        charge_decision(w, p.agenda, p.counted_at)
        progress(w.fabric, p.order, p.madd, effective_time(w, t))
        decide(w, p, t)
    else:
        refill_ended(w, p.order, p.madd, t, p.ended[0])
    p.ended[0] = p.num_sent[0] = 0


@inlined
def effective_time(w: CoflowWorld, t: int) -> int:
    """Return when rates sent at t take effect: one network delay after the decision is made, as far as charged."""
    return t + w.network.delay_ns + known_cost(w)


@compiled
def send_times(w: CoflowWorld, p: Any, t: int) -> None:
    """Send the agents the times that are new; `p` is a policy's state, with `madd` and `num_sent`."""
    a = p.madd
    send_changes(w, a, p.num_sent, t, send_pace, a.pace, send_shrink, a.need)
