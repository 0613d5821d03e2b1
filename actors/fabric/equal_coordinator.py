"""The coordinator of equal rates: it receives ends of flows, estimates what has been sent, and sends new rates.

Its decisions depend on which flows have ended, and not on what the others have left. So it decides first; the cost of
the decision then determines when the rates take effect, at all agents together. Thus no port ever carries more than it
can, however late the rates are. An agent receives one rate for all flows of a coflow that it sends, and one for each
backfilled flow.
"""

from typing import Any

import numpy as np

from actors.fabric.coordinator import note_sent, register, send_changes
from actors.fabric.counters import N_DECISIONS
from actors.fabric.equal_agent import begin_serving
from actors.fabric.equal_groups import served_by
from actors.fabric.equal_rates import Equal, end_flow, enforce_rates, group_of
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.intervals import charge, note_schedules
from actors.fabric.madd_coordinator import effective_time
from actors.fabric.messages import SET_EXTRA, SET_LINE
from actors.fabric.ports import Fabric
from actors.fabric.service_order import Order
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NEVER

_IDLE = 1e-9  # of a port's speed: less than this is what rounding leaves of rates
_FAR = 1e18  # ns; an event that is further away never happens
_ROUNDING = 1e-3  # ns


@inlined
def register_served(w: CoflowWorld, p: Any, coflow: int) -> bool:
    """Register a coflow; return whether it has flows that take bandwidth. `p` has `agenda`, `equal` and `serving`.

    Of one that has come into being during the run, agents and coordinator get to know the flows.
    """
    if w.work.size == 0:
        begin_serving(w, p.serving, p.equal.groups, coflow)
    return register(w, p.agenda, w.queue.now.time[0], coflow)


@compiled
def apply_flow_done(fabric: Fabric, e: Equal, num_sending: np.ndarray, flow: int, ended: int) -> bool:
    """Apply an agent's message that a flow has ended; return whether its coflow has ended.

    New rates may have been sent before the message arrived; the flow was sent nothing at these.

    Args:
        num_sending: [1] how many agents send.
    """
    flows, coflow, agent = fabric.flows, fabric.flows.coflow[flow], fabric.flows.source[flow]
    when = max(ended, e.now[0])
    fabric.coflows.sent[coflow] += flows.size[flow] - estimated_sent(fabric, e, when, flow)
    was = is_sending(fabric, e, agent)
    coflow_ended = end_flow(fabric, e, when, flow)
    if was and not is_sending(fabric, e, agent):
        num_sending[0] -= 1
    flows.finish[flow] = ended
    if coflow_ended:
        fabric.coflows.finish[coflow] = ended
    return coflow_ended


@inlined
def is_sending(fabric: Fabric, e: Equal, agent: int) -> bool:
    """Return whether an agent has flows with a rate that are not known to have ended."""
    return fabric.speed[agent] - e.residual[agent] > _IDLE * fabric.speed[agent]


@inlined
def estimated_sent(fabric: Fabric, e: Equal, t: int, flow: int) -> float:
    """Return what a flow that has not ended has been sent by t, bytes."""
    flows = fabric.flows
    sent = flows.size[flow] - flows.left[flow] + served_by(e.groups, t, group_of(fabric, flow))
    return sent + e.extra_in_force[flow] * (t - flows.since[flow])


@inlined
def reported_sent(fabric: Fabric, e: Equal, t: int, flow: int) -> float:
    """Return what a flow has been sent by t, bytes, as its agent reports it."""
    return min(estimated_sent(fabric, e, t, flow), fabric.flows.size[flow])


@compiled
def update_ahead(fabric: Fabric, e: Equal, t: int) -> None:
    """Update how far backfilled flows are ahead of their groups at t, for calls of `has_sent_more` with this t."""
    for k in range(e.ends.size[0]):
        flow = e.ends.values[k]
        group = group_of(fabric, flow)
        if fabric.flows.end[flow] == e.ends.keys[k]:
            e.ahead[group] = max(
                e.ahead[group], reported_sent(fabric, e, t, flow) - served_by(e.groups, t, group)
            )


@compiled
def has_sent_more(fabric: Fabric, e: Equal, group: int, limit: float, t: int) -> bool:
    """Return whether a flow of a group has been sent more than `limit` bytes by t.

    It searches the group's flows only if one of them may have been sent more.
    """
    first, served = e.groups.first[group], served_by(e.groups, t, group)
    if e.longest[group] > limit:
        return True
    if served + e.ahead[group] > limit:  # the flow that was furthest ahead may have ended
        e.ahead[group] = 0.0
        for i in range(first, first + e.groups.size[group]):
            e.ahead[group] = max(e.ahead[group], reported_sent(fabric, e, t, e.groups.heap[i]) - served)
    return served + e.ahead[group] > limit


@compiled
def next_time_above(fabric: Fabric, order: Order, e: Equal, limit: np.ndarray, t: int) -> int:
    """Return when, after t, a flow has first been sent more than its group's `limit` [G], at these rates."""
    first: int = NEVER
    for i in range(order.used[0]):
        group = order.groups[i]
        if e.groups.size[group] > 0 and e.groups.in_force[group] > 0.0:
            left = limit[group] - served_by(e.groups, t, group) - e.ahead[group]
            first = min(first, after(t, left / e.groups.in_force[group]))
    for k in range(e.ends.size[0]):
        flow = e.ends.values[k]
        group = group_of(fabric, flow)
        if fabric.flows.end[flow] == e.ends.keys[k]:
            left = limit[group] - estimated_sent(fabric, e, t, flow)
            first = min(first, after(t, left / (e.groups.in_force[group] + e.extra_in_force[flow])))
    return first


@inlined
def after(t: int, in_ns: float) -> int:
    """Return the first whole ns after t + `in_ns`, whatever rounding gives; NEVER if that is too far."""
    return t + np.int64(max(in_ns, 0.0) + _ROUNDING) + 1 if in_ns < _FAR else NEVER


@compiled
def enforce_decision(
    w: CoflowWorld, order: Order, e: Equal, num_sending: np.ndarray, coflows: int, t: int
) -> None:
    """Charge for a decision about this number of coflows, and put it into force when its rates reach the agents.

    Args:
        num_sending: [1] how many agents send; it is recomputed.
    """
    agents: int = 0
    w.counts[N_DECISIONS] += 1
    for k in range(e.changes[0]):
        which = e.changed[k]
        agents += note_sent(w, w.fabric.flows.source[which] if which >= 0 else w.fabric.lines.port[~which])
    note_schedules(w, agents)
    charge(w, w.prices.coflow * coflows + w.prices.flow * e.changes[0] + w.prices.schedule * agents)
    e.now[0] = effective_time(w, t)
    enforce_rates(w.fabric, order, e, e.now[0])
    num_sending[0] = 0
    for agent in range(w.nodes.size):
        num_sending[0] += np.int64(is_sending(w.fabric, e, agent))


@compiled
def send_rates(w: CoflowWorld, p: Any, t: int) -> None:
    """Send the agents the new rates; `p` is a policy's state, with `equal` and `num_sent`."""
    e = p.equal
    send_changes(w, e, p.num_sent, t, SET_EXTRA, e.extra_in_force, SET_LINE, e.groups.in_force)
