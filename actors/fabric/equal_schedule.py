"""The coordinator of equal rates: it hears of ends, knows what has been sent, and tells the agents what is new.

Which rates it decides on depends on who is there, and not on what they have left: it decides first, and what that costs
says from when on the rates hold, for all agents together. So no port ever carries more than it can, however late they
come. An agent is told one rate for all flows of a coflow that it sends, and one for each flow that is backfilled.
"""

import numpy as np

from actors.fabric.equal import end_flow, group_of, hold
from actors.fabric.intervals import charge
from actors.fabric.madd_schedule import takes_hold, tell
from actors.fabric.served import served_by
from actors.fabric.world import N_DECISIONS, N_RATES
from actors.kernel.compiled import compiled, inlined
from actors.kernel.kinds import (
    SET_LINE,
    SET_RATE,
    TELL,
)
from actors.kernel.queue import NONE, wake
from actors.kernel.world import NEVER

_SPARE = 8  # messages that an event may send besides
_IDLE = 1e-9  # of a port's speed: less than this is what rounding leaves of rates
_FAR = 1e18  # ns; what takes longer does not happen
_ROUNDING = 1e-3  # ns


@compiled
def end_told(fabric, e, sending, flow, ended):
    """Reckon with the end of a flow, of which an agent tells; return whether its coflow has ended.

    It may have been told other rates while the news was on its way; by these it was sent nothing.

    Args:
        sending: [1] agents that send.
    """
    flows, coflow, agent = fabric.flows, fabric.flows.coflow[flow], fabric.flows.source[flow]
    when = max(ended, e.now[0])
    fabric.coflows.sent[coflow] += flows.size[flow] - reckoned(fabric, e, when, flow)
    was = is_sending(fabric, e, agent)
    over = end_flow(fabric, e, when, flow)
    if was and not is_sending(fabric, e, agent):
        sending[0] -= 1
    flows.finish[flow] = ended
    if over:
        fabric.coflows.finish[coflow] = ended
    return over


@inlined
def is_sending(fabric, e, agent):
    """Return whether an agent has flows with a rate that have not ended, as far as is known."""
    return fabric.speed[agent] - e.room[agent] > _IDLE * fabric.speed[agent]


@inlined
def reckoned(fabric, e, t, flow):
    """Return what a flow has been sent by t if it has not ended, bytes."""
    flows = fabric.flows
    sent = flows.size[flow] - flows.left[flow] + served_by(e, t, group_of(fabric, flow))
    return sent + e.told_extra[flow] * (t - flows.since[flow])


@inlined
def reported(fabric, e, t, flow):
    """Return what an agent reports a flow to have been sent by t, bytes."""
    return min(reckoned(fabric, e, t, flow), fabric.flows.size[flow])


@compiled
def note_ahead(fabric, e, t):
    """Note how far ahead of their groups backfilled flows are at t; before `has_sent_more` is asked about t."""
    for k in range(e.end_size[0]):
        flow = e.end_flow[k]
        group = group_of(fabric, flow)
        if fabric.flows.end[flow] == e.end_time[k]:
            e.ahead[group] = max(e.ahead[group], reported(fabric, e, t, flow) - served_by(e, t, group))


@compiled
def has_sent_more(fabric, e, group, limit, t):
    """Return whether a flow of a group has been sent more than `limit` bytes by t.

    It looks through the group's flows only where one of them may have been.
    """
    first, served = e.first[group], served_by(e, t, group)
    if e.longest[group] > limit:
        return True
    if served + e.ahead[group] > limit:  # the flow that was furthest ahead may have ended
        e.ahead[group] = 0.0
        for i in range(first, first + e.size[group]):
            e.ahead[group] = max(e.ahead[group], reported(fabric, e, t, e.heap[i]) - served)
    return served + e.ahead[group] > limit


@compiled
def next_beyond(fabric, order, e, limit, t):
    """Return when after t, at the earliest, a flow has been sent more than `limit` [G] of its group at these rates."""
    first = NEVER
    for i in range(order.used[0]):
        group = order.groups[i]
        if e.size[group] > 0 and e.told[group] > 0.0:
            left = limit[group] - served_by(e, t, group) - e.ahead[group]
            first = min(first, after(t, left / e.told[group]))
    for k in range(e.end_size[0]):
        flow = e.end_flow[k]
        group = group_of(fabric, flow)
        if fabric.flows.end[flow] == e.end_time[k]:
            left = limit[group] - reckoned(fabric, e, t, flow)
            first = min(first, after(t, left / (e.told[group] + e.told_extra[flow])))
    return first


@inlined
def after(t, in_ns):
    """Return the first whole ns after so many from t on, whatever rounding says; NEVER if that is too far."""
    return t + np.int64(max(in_ns, 0.0) + _ROUNDING) + 1 if in_ns < _FAR else NEVER


@compiled
def put_in_force(w, order, e, sending, mark, coflows, t):
    """Charge for a decision about so many coflows, and let it hold from when the agents will have been told.

    Args:
        sending: [1] agents that send, to be counted anew.
        mark: [P] scratch: the last decision that told an agent anything.
    """
    lines, flows, agents = w.fabric.lines, w.fabric.flows, 0
    w.counts[N_DECISIONS] += 1
    for k in range(e.changes[0]):
        which = e.changed[k]
        agent = flows.source[which] if which >= 0 else lines.port[~which]
        if mark[agent] != w.counts[N_DECISIONS]:
            mark[agent] = w.counts[N_DECISIONS]
            agents += 1
    charge(w, w.prices.coflow * coflows + w.prices.flow * e.changes[0] + w.prices.schedule * agents)
    e.now[0] = takes_hold(w, t)
    hold(w.fabric, order, e, e.now[0])
    sending[0] = 0
    for agent in range(w.nodes.size):
        sending[0] += np.int64(is_sending(w.fabric, e, agent))


@compiled
def tell_rates(w, e, told, t, due):
    """Tell the agents what is new, as much as one event may send; what is left, in others at the same instant.

    Args:
        told: [1] how much of it they have been told.
        due: when this was to be done: nothing else is before that.
    """
    lines, end = w.fabric.lines, min(e.changes[0], told[0] + w.queue.room - _SPARE)
    for k in range(told[0], end):
        which = e.changed[k]
        if which >= 0:
            tell(w, t, w.fabric.flows.source[which], SET_RATE, which, e.told_extra[which])
        else:
            tell(w, t, lines.port[~which], SET_LINE, ~which, e.told[lines.group[~which]])
    w.counts[N_RATES] += end - told[0]
    told[0] = end
    if end < e.changes[0]:
        wake(w, due, w.nodes.size, TELL, due, NONE, NONE)
