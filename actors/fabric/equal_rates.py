"""Equal rates inside a coflow, in a given order, all or none; then backfill: Saath, and Philae's rates by max-min.

Each coflow in turn gets one rate for all its flows: the rate of its slowest flow if its flows share, at each port, what
earlier coflows left (A. Jajoo et al., Your Coflow has Many Flows: Sampling them for Fun and Speed, USENIX ATC 2019,
section 4.5). A coflow that finds no residual bandwidth at one of its ports is *missed*: it has no rate (all or none; A.
Jajoo et al., Saath, CoNEXT 2017). Backfill then gives the residual bandwidth to the flows of missed coflows, or of all
coflows, in order; each flow gets as much as its two ports have.

All flows of a group have been served the same number of bytes, `served`. So the state of a coflow of 20,000 flows is
one number, and the order in which they end is fixed (`actors.fabric.equal_groups`): a flow ends when `served` reaches
its ``flows.left``, and has ``flows.left - served`` left. An end costs a step in the group's heap; a decision costs
lines and not flows. Only backfilled flows, about as many as ports, progress by themselves: when a flow loses its
backfilled rate, what it was sent at that rate is subtracted from its ``flows.left``.

A policy calls `end_flow` for each flow that has ended. To decide, it calls `progress`, puts new coflows into the order,
sorts it, and calls `reset_residual`, `add_rates` and `backfill`; when the decision takes effect, it calls
`enforce_rates`.

A decision sets `rate` and `extra`; until `enforce_rates` is called flows are sent at `in_force` and `extra_in_force`.
New rates, which must be sent to the agents, are in `changed`.

Decisions depend on which flows have ended, and not on what the others have left. So the coordinator decides first; the
cost of the decision then determines when the rates take effect, at all agents together. Thus no port ever carries more
than it can, however late the rates are. An agent receives one rate for all flows of a coflow that it sends, and one for
each backfilled flow. The coordinator decides only at those multiples of the interval at which something can change.
"""

from typing import Any, NamedTuple

import numpy as np

from actors.fabric.agent import Serving, begin_serving, make_serving
from actors.fabric.coordinator import (
    Agenda,
    charge,
    charge_reports,
    effective_time,
    enter_interval,
    has_costs,
    next_tick,
    note_report,
    note_schedules,
    note_sent,
    register,
    remove_ended,
    request_decision,
    send_changes,
    wake_coordinator,
)
from actors.fabric.counters import N_DECISIONS
from actors.fabric.equal_groups import (
    EqualGroups,
    extra_sent,
    groups_per,
    make_groups,
    predict_end,
    remove_from_heap,
    served_by,
    sift_up,
)
from actors.fabric.fabric_world import CoflowWorld, build_world
from actors.fabric.madd import has_residual, note_change, update_open_port
from actors.fabric.messages import SET_EXTRA, SET_LINE
from actors.fabric.order import Order, set_order, sort_groups
from actors.fabric.port_sets import include, lowest
from actors.fabric.ports import (
    Coflows,
    Fabric,
    Lines,
    add_end,
    change_rate,
    coflow_of,
    finish_flow,
    flow_at,
    lines_of,
    purge,
    take_bytes,
    whole_ns,
)
from actors.fabric.priority_queues import Queues, dequeue, make_queues
from actors.initial_arrays import at_start, heap_per, list_per, per
from actors.kernel.arrays import fill
from actors.kernel.compiled import compiled, inlined
from actors.kernel.heap import Heap
from actors.kernel.queue import NEVER, NONE
from actors.setting import Setting

_EMPTY = np.uint64(0)
_SAME = 1e-11  # of a rate: two rates that differ by less differ only by rounding
_IDLE = 1e-9  # of a port's speed: less than this is what rounding leaves of rates
_FAR = 1e18  # ns; an event that is further away never happens
_ROUNDING = 1e-3  # ns
_MOST_SENDS = 1 << 13  # of one event; further events at the same time send the rest of a decision
# intervals: a longer wait is divided, so that a deadline far ahead does not prolong a run
_MOST_IDLE_INTERVALS = np.int64(128)


class Equal(NamedTuple):
    """Rates of groups, and of their backfilled flows."""

    missed_only: bool  # backfill is for missed groups alone
    groups: EqualGroups = groups_per("group")  # with the rates in force
    ends: Heap = heap_per("flow")  # of backfilled flows
    # the first `changes`: flows with a new extra rate, and ~line of ingress lines with a new rate
    changed: np.ndarray = list_per("flow twice or line")
    changes: np.ndarray = per("run")
    num_sent: np.ndarray = per("run")  # how many of these have been sent
    num_sending: np.ndarray = per("run")  # agents that send
    idle_until: np.ndarray = per("run")  # ns: before that only a new message can change a decision
    now: np.ndarray = per("run")  # from when on the last decision holds, ns
    rate: np.ndarray = per("group", 0.0)  # bytes per ns of each flow of a group, 0.0 if missed, as decided
    longest: np.ndarray = per("group", 0.0)  # the largest of its flows that have ended, bytes
    ahead: np.ndarray = per("group", 0.0)  # the most that a flow of it has been sent beyond `served`, bytes
    residual: np.ndarray = per("port", 0.0)  # residual bandwidth, bytes per ns
    open_ports: np.ndarray = per("word of ports", _EMPTY)  # the set of ports with residual bandwidth
    released: np.ndarray = per("word of ports", _EMPTY)  # the set of ports at which flows have ended
    extra: np.ndarray = per("flow", 0.0)  # a backfilled flow's additional rate, bytes per ns, as decided
    extra_in_force: np.ndarray = per("flow", 0.0)  # the same, in force since `flows.since`


def make_equal(fabric: Fabric, missed_only: bool = True) -> Equal:
    """Return an allocation in which no group has a rate, and pilots are flows of their coflows."""
    flows, lines = fabric.flows, fabric.lines
    pilots = lines.end_line[:, 0] - lines.first_line[:, 0]
    pilots[: fabric.coflows.arrival.size] = 0
    members = make_groups(flows.left, np.where(flows.line[:, 0] != NONE, flows.coflow, NONE), pilots)
    return at_start(Equal, fabric, missed_only=bool(missed_only), groups=members)


@inlined
def group_of(fabric: Fabric, flow: int) -> int:
    """Return the group of a flow."""
    return fabric.lines.group[fabric.flows.line[flow, 0]]


@compiled
def end_flow(fabric: Fabric, e: Equal, t: int, flow: int) -> bool:
    """End a flow and release what it had; return whether its coflow has ended."""
    flows, group = fabric.flows, group_of(fabric, flow)
    coflow, had = flows.coflow[flow], e.groups.in_force[group] + e.extra_in_force[flow]
    e.extra[flow] = e.extra_in_force[flow] = 0.0
    e.longest[group] = max(e.longest[group], flows.size[flow])
    for port in (flows.source[flow], flows.sink[flow]):
        e.residual[port] += had
        include(e.released, port)
    change_rate(fabric.coflows, t, coflow, -had)
    remove_from_heap(flows.left, e.groups, group, flow)
    predict_end(flows.left, e.groups, group, t)
    coflow_ended = finish_flow(fabric, t, flow)
    if coflow_ended:
        fabric.coflows.rate[coflow] = 0.0
    return coflow_ended


@compiled
def progress(fabric: Fabric, order: Order, e: Equal, t: int) -> None:
    """Begin a decision at t: remove backfilled rates, and groups without flows. `add_rates` must be called next."""
    e.now[0], e.changes[0] = t, 0
    purge(fabric.flows, e.ends)
    for k in range(e.ends.size[0]):
        flow = e.ends.values[k]
        if e.extra[flow] > 0.0:
            e.extra[flow] = 0.0
            note_change(e, flow)
    keep = 0
    for i in range(order.used[0]):
        group = order.groups[i]
        e.rate[group] = 0.0
        if e.groups.size[group] == 0:
            order.level[group], e.groups.in_force[group] = NONE, 0.0
        else:
            order.groups[keep], order.level[group] = group, keep
            keep += 1
    order.used[0] = keep


@compiled
def settle_extra(fabric: Fabric, e: Equal, t: int, flow: int) -> None:
    """Account for what a backfilled flow was sent at its additional rate."""
    flows, group = fabric.flows, group_of(fabric, flow)
    sent = extra_sent(flows.left[flow], flows.since[flow], e.groups, group, t, e.extra_in_force[flow])
    take_bytes(fabric, flow, sent)
    flows.since[flow] = t
    e.ahead[group] = max(e.ahead[group], flows.size[flow] - flows.left[flow])
    sift_up(flows.left, e.groups, group, e.groups.position[flow])


@compiled
def reset_residual(fabric: Fabric, e: Equal) -> None:
    """Set the residual bandwidth of every port to its speed."""
    for port in range(e.residual.size):
        e.residual[port] = fabric.speed[port]


@compiled
def add_rates(fabric: Fabric, order: Order, e: Equal, first: int, end: int) -> None:
    """Give each group from level `first` to before `end` one rate for all its flows, out of `residual`, or nothing.

    It is added to the rate that a group has: a group may be served twice (`actors.schedulers.coflows.aalo_shares`).
    """
    lines = fabric.lines
    for level in range(first, end):
        group = order.groups[level]
        rate = slowest_rate(fabric, e, group)
        if rate > 0.0:
            e.rate[group] += rate
            for side in range(2):
                for line in lines_of(lines, group, side):
                    e.residual[lines.port[line]] -= rate * lines.left[line]


@inlined
def slowest_rate(fabric: Fabric, e: Equal, group: int) -> float:
    """Return the rate of a group's slowest flow if its flows share their ports; 0.0: one of its ports is full."""
    lines, rate = fabric.lines, np.inf
    if e.groups.size[group] == 0:
        return 0.0
    for side in range(2):
        for line in lines_of(lines, group, side):
            if lines.left[line] > 0:
                port = lines.port[line]
                if not has_residual(fabric, e, port):
                    return 0.0
                rate = min(rate, e.residual[port] / lines.left[line])
    return rate


@compiled
def backfill(fabric: Fabric, order: Order, e: Equal) -> None:
    """Note which rates are new; give each flow, in order, the residual bandwidth that both of its ports have."""
    lines, before = fabric.lines, e.changes[0]
    fill(e.released, _EMPTY)
    for port in range(e.residual.size):
        update_open_port(fabric, e, port)
    for i in range(order.used[0]):
        note_rate(lines, e, order.groups[i])
    for i in range(order.used[0]):
        group = order.groups[i]
        if not (e.missed_only and e.rate[group] > 0.0) and can_backfill(e):
            for line in lines_of(lines, group, 0):
                fill_line(fabric, e, line)
    note_stopped(e, before)


@inlined
def can_backfill(e: Equal) -> bool:
    """Return whether an ingress and an egress port have residual bandwidth."""
    half, into, out = e.open_ports.size // 2, _EMPTY, _EMPTY
    for k in range(half):
        into |= e.open_ports[k]
        out |= e.open_ports[half + k]
    return into != _EMPTY and out != _EMPTY


@inlined
def is_same(rate: float, in_force: float) -> bool:
    """Return whether a rate equals the one in force, except for rounding."""
    return abs(rate - in_force) <= _SAME * in_force


@inlined
def note_rate(lines: Lines, e: Equal, group: int) -> None:
    """Note the ingress lines of a group as changed if its rate is new."""
    if is_same(e.rate[group], e.groups.in_force[group]):
        e.rate[group] = e.groups.in_force[group]
        return
    for line in lines_of(lines, group, 0):
        if lines.left[line] > 0:
            note_change(e, ~line)


@compiled
def note_stopped(e: Equal, count: int) -> None:
    """Remove flows that are backfilled again from the first `count` of `changed`, those that were backfilled before."""
    keep = 0
    for k in range(e.changes[0]):
        which = e.changed[k]
        if k >= count or e.extra[which] == 0.0:  # a flow with another rate is further on
            e.changed[keep] = which
            keep += 1
    e.changes[0] = keep


@compiled
def enforce_rates(fabric: Fabric, order: Order, e: Equal, t: int) -> None:
    """Put the rates that were decided into force from t on."""
    coflows = fabric.coflows
    for i in range(order.used[0]):
        group = order.groups[i]
        if e.rate[group] != e.groups.in_force[group]:
            add_rate(
                coflows,
                t,
                coflow_of(fabric, group),
                (e.rate[group] - e.groups.in_force[group]) * e.groups.size[group],
            )
            e.groups.served[group] = served_by(e.groups, t, group)
            e.groups.since[group], e.groups.in_force[group] = t, e.rate[group]
            predict_end(fabric.flows.left, e.groups, group, t + 1)
    for k in range(e.changes[0]):
        if e.changed[k] >= 0:
            enforce_extra(fabric, e, t, e.changed[k])


@compiled
def enforce_extra(fabric: Fabric, e: Equal, t: int, flow: int) -> None:
    """Put a flow's backfilled rate into force."""
    flows, group = fabric.flows, group_of(fabric, flow)
    settle_extra(fabric, e, t, flow)
    add_rate(fabric.coflows, t, flows.coflow[flow], e.extra[flow] - e.extra_in_force[flow])
    e.extra_in_force[flow] = e.extra[flow]
    if e.extra[flow] == 0.0:
        flows.end[flow] = NEVER
        predict_end(flows.left, e.groups, group, t + 1)
        return
    flows.end[flow] = t + whole_ns(
        (flows.left[flow] - served_by(e.groups, t, group)) / (e.groups.in_force[group] + e.extra[flow])
    )
    add_end(flows, e.ends, flow)


@inlined
def add_rate(coflows: Coflows, t: int, coflow: int, by: float) -> None:
    """Raise the rate of a coflow by `by` bytes per ns; note its start if this is its first rate."""
    change_rate(coflows, t, coflow, by)
    coflows.start[coflow] = min(coflows.start[coflow], t)


@compiled
def fill_line(fabric: Fabric, e: Equal, line: int) -> None:
    """Give the flows of a line the residual bandwidth of both of their ports."""
    lines = fabric.lines
    if e.missed_only and e.rate[lines.group[line]] > 0.0:
        return
    port, b = lines.port[line], lines.block[line]
    while b < lines.block_end[line] and has_residual(fabric, e, port):
        hit = lines.bits[b] & e.open_ports[lines.word[b]]
        if hit == _EMPTY:
            b += 1
        else:
            give_more(fabric, e, flow_at(lines, b, lowest(hit)))


@compiled
def give_more(fabric: Fabric, e: Equal, flow: int) -> None:
    """Give a flow the residual bandwidth that both of its ports have."""
    flows, group, residual = fabric.flows, group_of(fabric, flow), e.residual
    source, sink = flows.source[flow], flows.sink[flow]
    more = min(residual[source], residual[sink])
    for port in (source, sink):
        residual[port] -= more
        update_open_port(fabric, e, port)
    e.extra[flow] += more
    if is_same(e.extra[flow], e.extra_in_force[flow]) and e.rate[group] == e.groups.in_force[group]:
        e.extra[flow] = e.extra_in_force[flow]
    else:
        note_change(e, flow)


@inlined
def register_served(w: CoflowWorld, agenda: Agenda, e: Equal, serving: Serving, t: int, coflow: int) -> bool:
    """Register a coflow; return whether it has flows that take bandwidth.

    Of one that has come into being during the run, agents and coordinator get to know the flows.
    """
    enter_interval(w, t, e.num_sending[0])
    if w.work.size == 0:
        begin_serving(w, serving, e.groups, coflow)
    return register(w, agenda, t, coflow)


@compiled
def receive_served_end(
    w: CoflowWorld, agenda: Agenda, e: Equal, q: Queues, t: int, flow: int, ended: int
) -> None:
    """Receive an agent's message that a flow has ended; a coflow that has ended leaves its queue.

    What the flow had is assigned again when the interval ends.
    """
    note_report(w, t, e.num_sending[0], w.fabric.flows.source[flow])
    if apply_flow_done(w.fabric, e, flow, ended):
        dequeue(q, w.fabric.flows.coflow[flow])
    request_decision(w, agenda, t)


@compiled
def apply_flow_done(fabric: Fabric, e: Equal, flow: int, ended: int) -> bool:
    """Apply an agent's message that a flow has ended; return whether its coflow has ended.

    New rates may have been sent before the message arrived; the flow was sent nothing at these.
    """
    flows, coflow, agent = fabric.flows, fabric.flows.coflow[flow], fabric.flows.source[flow]
    when = max(ended, e.now[0])
    fabric.coflows.sent[coflow] += flows.size[flow] - estimated_sent(fabric, e, when, flow)
    was = is_sending(fabric, e, agent)
    coflow_ended = end_flow(fabric, e, when, flow)
    if was and not is_sending(fabric, e, agent):
        e.num_sending[0] -= 1
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
def enforce_decision(w: CoflowWorld, order: Order, e: Equal, coflows: int, t: int) -> None:
    """Charge for a decision about this number of coflows, and put it into force when its rates reach the agents."""
    agents: int = 0
    w.counts[N_DECISIONS] += 1
    for k in range(e.changes[0]):
        which = e.changed[k]
        agents += note_sent(w, w.fabric.flows.source[which] if which >= 0 else w.fabric.lines.port[~which])
    note_schedules(w, agents)
    charge(w, w.prices.coflow * coflows + w.prices.flow * e.changes[0] + w.prices.schedule * agents)
    e.now[0] = effective_time(w, t)
    enforce_rates(w.fabric, order, e, e.now[0])
    e.num_sending[0] = 0
    for agent in range(w.nodes.size):
        e.num_sending[0] += np.int64(is_sending(w.fabric, e, agent))


@compiled
def send_rates(w: CoflowWorld, e: Equal, t: int) -> None:
    """Send the agents the new rates."""
    send_changes(w, e, t, SET_EXTRA, e.extra_in_force, SET_LINE, e.groups.in_force)


@compiled
def begin_tick(w: CoflowWorld, agenda: Agenda, e: Equal, t: int) -> bool:
    """Receive the agents' reports at the end of an interval if anything can have changed; return whether it can."""
    if t < e.idle_until[0] and not agenda.stale[0]:
        await_change(w, agenda, e, t)
        return False
    agenda.stale[0] = False
    enter_interval(w, t, e.num_sending[0])
    charge_reports(w, e.num_sending[0])
    remove_ended(w, agenda)
    return True


@compiled
def serve_by_keys(w: CoflowWorld, agenda: Agenda, order: Order, e: Equal, q: Queues, t: int) -> None:
    """Put the active coflows in order of `q.keys`, and make all bandwidth of the ports residual."""
    count = agenda.used[0]
    for i in range(count):
        q.groups[i] = agenda.active[i]
    sort_groups(w.fabric.coflows, q.groups, q.keys, count)
    progress(w.fabric, order, e, t)
    set_order(order, q.groups, count)
    reset_residual(w.fabric, e)


@compiled
def end_tick(w: CoflowWorld, agenda: Agenda, order: Order, e: Equal, t: int) -> None:
    """Backfill, and send the new rates."""
    backfill(w.fabric, order, e)
    enforce_decision(w, order, e, agenda.used[0], t)
    e.num_sent[0] = 0
    send_rates(w, e, t)


@inlined
def request_next(w: CoflowWorld, agenda: Agenda, e: Equal, t: int, next_change: int) -> None:
    """Request the next decision after one at t: at `next_change`, before which nothing changes but by messages."""
    if agenda.used[0] > 0:
        following = next_tick(t + 1, agenda.interval)
        e.idle_until[0] = max(following, next_change) if not has_costs(w) else following
        await_change(w, agenda, e, t)


@inlined
def await_change(w: CoflowWorld, agenda: Agenda, e: Equal, t: int) -> None:
    """Request a decision at `idle_until`; if that is far ahead, an earlier one, which requests the next."""
    last = next_tick(t + _MOST_IDLE_INTERVALS * agenda.interval, agenda.interval)
    wake_coordinator(w, agenda, min(e.idle_until[0], last))


def build_serving(setting: Setting, state: Any, missed_only: bool, **given: Any) -> tuple[CoflowWorld, Any]:
    """Return the world and the state at time 0 of a coordinator with queues without slots.

    Args:
        state: its type; `given` are those of its fields that are of its policy alone, by functions of the fabric.
        missed_only: backfill is for missed coflows alone.
    """
    world = build_world(
        setting,
        interval_s=setting.parameters["interval_s"],
        most_sends=max(min(2 * setting.num_tasks, _MOST_SENDS), 2 * setting.cluster.num_nodes),
    )
    fabric = world.fabric
    queues = make_queues(fabric, {**setting.parameters, "starvation": "strict"})
    return world, at_start(
        state,
        fabric,
        agenda=at_start(Agenda, fabric, interval=queues.interval),
        order=at_start(Order, fabric),
        equal=make_equal(fabric, missed_only),
        serving=make_serving(fabric),
        queues=queues,
        **{name: make(fabric) for name, make in given.items()},
    )
