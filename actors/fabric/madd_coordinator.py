"""The coordinator of MADD: it decides for the time at which its decision takes effect.

It knows all sizes and the cost of its own work. So it knows what agents will have sent by then, and which flows will
have ended, before their messages arrive: rates are right when they take effect, and no port ever carries more than it
can. The message of a predicted end changes nothing. The cost of a decision must be known before the decision: prices
depend on what the decision is about, and measured costs cannot be used.
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
from actors.fabric.madd import any_ends_by, progress, refill
from actors.fabric.messages import PACE, SHRINK, read_line_done
from actors.fabric.ports import lines_of
from actors.kernel.compiled import compiled, inlined, template
from actors.kernel.cost import FIXED, known_cost
from actors.kernel.queue import NEVER


@compiled
def receive_backfilled_done(w: CoflowWorld, p: Any, t: int, flow: int, ended: int) -> None:
    """Receive the end of a backfilled flow; request a refill with what it had, unless its end was predicted.

    `p` is a policy's state, with `agenda` and `ended`.
    """
    note_report(w, t, NO_AGENT_REPORTS, w.fabric.flows.source[flow])
    if w.fabric.flows.finish[flow] == NEVER:
        p.ended[0] += 1
        request_decision(w, p.agenda, t)


@compiled
def receive_line_done(w: CoflowWorld, p: Any, t: int) -> None:
    """Receive the end of a line; request a decision if the end of its coflow was not predicted."""
    lines, (line, _, _) = w.fabric.lines, read_line_done(w)
    note_report(w, t, NO_AGENT_REPORTS, lines.port[line])
    if w.fabric.coflows.left[lines.group[line]] > 0:
        request_decision(w, p.agenda, t)


@inlined
def refill_price(w: CoflowWorld, ended: int) -> int:
    """Return what a refill with the bandwidth of `ended` backfilled flows costs, ns."""
    return ended * (w.prices.flow + w.prices.schedule) if w.cost.model == FIXED else 0


@compiled
def charge_decision(w: CoflowWorld, agenda: Agenda, counted_at: np.ndarray) -> None:
    """Charge for a decision: all active coflows, their unfinished flows, and the agents that send these.

    Args:
        counted_at: [P] scratch: the last decision for which an agent was counted.
    """
    coflows, lines, flows, agents = w.fabric.coflows, w.fabric.lines, 0, 0
    for i in range(agenda.used[0]):
        coflow = agenda.active[i]
        flows += coflows.left[coflow]
        for line in lines_of(lines, coflow, 0):
            port = lines.port[line]
            if lines.left[line] > 0 and counted_at[port] != w.counts[N_DECISIONS]:
                counted_at[port] = w.counts[N_DECISIONS]
                agents += 1
    charge(w, w.prices.coflow * agenda.used[0] + w.prices.flow * flows + w.prices.schedule * agents)


@template
def decide_or_refill(w: CoflowWorld, p: Any, t: int, decide: Callable) -> None:
    """Call ``decide(w, p, t)`` if a coflow has arrived or will have ended; else refill with what ended flows had.

    `p` is a policy's state, with `stale`, `ended`, `agenda`, `order`, `madd`, `counted_at` and `num_sent`.
    """
    if p.stale[0] or any_ends_by(p.order, p.madd, effective_time(w, t) + refill_price(w, p.ended[0])):
        p.stale[0] = False
        w.counts[N_DECISIONS] += 1
        charge_decision(w, p.agenda, p.counted_at)
        progress(w.fabric, p.order, p.madd, effective_time(w, t))
        decide(w, p, t)
    else:
        w.counts[N_REFILLS] += 1
        charge(w, refill_price(w, p.ended[0]))
        refill(w.fabric, p.order, p.madd, effective_time(w, t))
    p.ended[0] = p.num_sent[0] = 0


@inlined
def effective_time(w: CoflowWorld, t: int) -> int:
    """Return when rates sent at t take effect: after what has been charged so far, and one network delay."""
    return t + w.network.delay_ns + known_cost(w)


@compiled
def send_times(w: CoflowWorld, p: Any, t: int) -> None:
    """Send the agents the new times; `p` is a policy's state, with `madd` and `num_sent`."""
    a = p.madd
    send_changes(w, a, p.num_sent, t, PACE, a.pace, SHRINK, a.need)
