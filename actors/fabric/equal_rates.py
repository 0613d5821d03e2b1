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
def end_flow(fabric: Fabric, equal: Equal, t: int, flow: int) -> bool:
    """End a flow and release what it had; return whether its coflow has ended."""
    flows, group = fabric.flows, group_of(fabric, flow)
    coflow, had = flows.coflow[flow], equal.groups.in_force[group] + equal.extra_in_force[flow]
    equal.extra[flow] = equal.extra_in_force[flow] = 0.0
    equal.longest[group] = max(equal.longest[group], flows.size[flow])
    for port in (flows.source[flow], flows.sink[flow]):
        equal.residual[port] += had
        include(equal.released, port)
    change_rate(fabric.coflows, t, coflow, -had)
    remove_from_heap(flows.left, equal.groups, group, flow)
    predict_end(flows.left, equal.groups, group, t)
    coflow_ended = finish_flow(fabric, t, flow)
    if coflow_ended:
        fabric.coflows.rate[coflow] = 0.0
    return coflow_ended


@compiled
def progress(fabric: Fabric, order: Order, equal: Equal, t: int) -> None:
    """Begin a decision at t: remove backfilled rates, and groups without flows. `add_rates` must be called next."""
    equal.now[0], equal.changes[0] = t, 0
    purge(fabric.flows, equal.ends)
    for k in range(equal.ends.size[0]):
        flow = equal.ends.values[k]
        if equal.extra[flow] > 0.0:
            equal.extra[flow] = 0.0
            note_change(equal, flow)
    keep = 0
    for i in range(order.used[0]):
        group = order.groups[i]
        equal.rate[group] = 0.0
        if equal.groups.size[group] == 0:
            order.level[group], equal.groups.in_force[group] = NONE, 0.0
        else:
            order.groups[keep], order.level[group] = group, keep
            keep += 1
    order.used[0] = keep


@compiled
def settle_extra(fabric: Fabric, equal: Equal, t: int, flow: int) -> None:
    """Account for what a backfilled flow was sent at its additional rate."""
    flows, group = fabric.flows, group_of(fabric, flow)
    sent = extra_sent(flows.left[flow], flows.since[flow], equal.groups, group, t, equal.extra_in_force[flow])
    take_bytes(fabric, flow, sent)
    flows.since[flow] = t
    equal.ahead[group] = max(equal.ahead[group], flows.size[flow] - flows.left[flow])
    sift_up(flows.left, equal.groups, group, equal.groups.position[flow])


@compiled
def reset_residual(fabric: Fabric, equal: Equal) -> None:
    """Set the residual bandwidth of every port to its speed."""
    for port in range(equal.residual.size):
        equal.residual[port] = fabric.speed[port]


@compiled
def add_rates(fabric: Fabric, order: Order, equal: Equal, first: int, end: int) -> None:
    """Give each group from level `first` to before `end` one rate for all its flows, out of `residual`, or nothing.

    It is added to the rate that a group has: a group may be served twice (`actors.schedulers.coflows.aalo_shares`).
    """
    lines = fabric.lines
    for level in range(first, end):
        group = order.groups[level]
        rate = slowest_rate(fabric, equal, group)
        if rate > 0.0:
            equal.rate[group] += rate
            for side in range(2):
                for line in lines_of(lines, group, side):
                    equal.residual[lines.port[line]] -= rate * lines.left[line]


@inlined
def slowest_rate(fabric: Fabric, equal: Equal, group: int) -> float:
    """Return the rate of a group's slowest flow if its flows share their ports; 0.0: one of its ports is full."""
    lines, rate = fabric.lines, np.inf
    if equal.groups.size[group] == 0:
        return 0.0
    for side in range(2):
        for line in lines_of(lines, group, side):
            if lines.left[line] > 0:
                port = lines.port[line]
                if not has_residual(fabric, equal, port):
                    return 0.0
                rate = min(rate, equal.residual[port] / lines.left[line])
    return rate


@compiled
def backfill(fabric: Fabric, order: Order, equal: Equal) -> None:
    """Note which rates are new; give each flow, in order, the residual bandwidth that both of its ports have."""
    lines, before = fabric.lines, equal.changes[0]
    fill(equal.released, _EMPTY)
    for port in range(equal.residual.size):
        update_open_port(fabric, equal, port)
    for i in range(order.used[0]):
        note_rate(lines, equal, order.groups[i])
    for i in range(order.used[0]):
        group = order.groups[i]
        if not (equal.missed_only and equal.rate[group] > 0.0) and can_backfill(equal):
            for line in lines_of(lines, group, 0):
                fill_line(fabric, equal, line)
    note_stopped(equal, before)


@inlined
def can_backfill(equal: Equal) -> bool:
    """Return whether an ingress and an egress port have residual bandwidth."""
    half, into, out = equal.open_ports.size // 2, _EMPTY, _EMPTY
    for k in range(half):
        into |= equal.open_ports[k]
        out |= equal.open_ports[half + k]
    return into != _EMPTY and out != _EMPTY


@inlined
def is_same(rate: float, in_force: float) -> bool:
    """Return whether a rate equals the one in force, except for rounding."""
    return abs(rate - in_force) <= _SAME * in_force


@inlined
def note_rate(lines: Lines, equal: Equal, group: int) -> None:
    """Note the ingress lines of a group as changed if its rate is new."""
    if is_same(equal.rate[group], equal.groups.in_force[group]):
        equal.rate[group] = equal.groups.in_force[group]
        return
    for line in lines_of(lines, group, 0):
        if lines.left[line] > 0:
            note_change(equal, ~line)


@compiled
def note_stopped(equal: Equal, count: int) -> None:
    """Remove flows that are backfilled again from the first `count` of `changed`, those that were backfilled before."""
    keep = 0
    for k in range(equal.changes[0]):
        which = equal.changed[k]
        if k >= count or equal.extra[which] == 0.0:  # a flow with another rate is further on
            equal.changed[keep] = which
            keep += 1
    equal.changes[0] = keep


@compiled
def enforce_rates(fabric: Fabric, order: Order, equal: Equal, t: int) -> None:
    """Put the rates that were decided into force from t on."""
    coflows = fabric.coflows
    for i in range(order.used[0]):
        group = order.groups[i]
        if equal.rate[group] != equal.groups.in_force[group]:
            add_rate(
                coflows,
                t,
                coflow_of(fabric, group),
                (equal.rate[group] - equal.groups.in_force[group]) * equal.groups.size[group],
            )
            equal.groups.served[group] = served_by(equal.groups, t, group)
            equal.groups.since[group], equal.groups.in_force[group] = t, equal.rate[group]
            predict_end(fabric.flows.left, equal.groups, group, t + 1)
    for k in range(equal.changes[0]):
        if equal.changed[k] >= 0:
            enforce_extra(fabric, equal, t, equal.changed[k])


@compiled
def enforce_extra(fabric: Fabric, equal: Equal, t: int, flow: int) -> None:
    """Put a flow's backfilled rate into force."""
    flows, group = fabric.flows, group_of(fabric, flow)
    settle_extra(fabric, equal, t, flow)
    add_rate(fabric.coflows, t, flows.coflow[flow], equal.extra[flow] - equal.extra_in_force[flow])
    equal.extra_in_force[flow] = equal.extra[flow]
    if equal.extra[flow] == 0.0:
        flows.end[flow] = NEVER
        predict_end(flows.left, equal.groups, group, t + 1)
        return
    flows.end[flow] = t + whole_ns(
        (flows.left[flow] - served_by(equal.groups, t, group))
        / (equal.groups.in_force[group] + equal.extra[flow])
    )
    add_end(flows, equal.ends, flow)


@inlined
def add_rate(coflows: Coflows, t: int, coflow: int, by: float) -> None:
    """Raise the rate of a coflow by `by` bytes per ns; note its start if this is its first rate."""
    change_rate(coflows, t, coflow, by)
    coflows.start[coflow] = min(coflows.start[coflow], t)


@compiled
def fill_line(fabric: Fabric, equal: Equal, line: int) -> None:
    """Give the flows of a line the residual bandwidth of both of their ports."""
    lines = fabric.lines
    if equal.missed_only and equal.rate[lines.group[line]] > 0.0:
        return
    port, b = lines.port[line], lines.block[line]
    while b < lines.block_end[line] and has_residual(fabric, equal, port):
        hit = lines.bits[b] & equal.open_ports[lines.word[b]]
        if hit == _EMPTY:
            b += 1
        else:
            give_more(fabric, equal, flow_at(lines, b, lowest(hit)))


@compiled
def give_more(fabric: Fabric, equal: Equal, flow: int) -> None:
    """Give a flow the residual bandwidth that both of its ports have."""
    flows, group, residual = fabric.flows, group_of(fabric, flow), equal.residual
    source, sink = flows.source[flow], flows.sink[flow]
    more = min(residual[source], residual[sink])
    for port in (source, sink):
        residual[port] -= more
        update_open_port(fabric, equal, port)
    equal.extra[flow] += more
    if (
        is_same(equal.extra[flow], equal.extra_in_force[flow])
        and equal.rate[group] == equal.groups.in_force[group]
    ):
        equal.extra[flow] = equal.extra_in_force[flow]
    else:
        note_change(equal, flow)


@inlined
def register_served(
    w: CoflowWorld, agenda: Agenda, equal: Equal, serving: Serving, t: int, coflow: int
) -> bool:
    """Register a coflow; return whether it has flows that take bandwidth.

    Of one that has come into being during the run, agents and coordinator get to know the flows.
    """
    enter_interval(w, t, equal.num_sending[0])
    if w.work.size == 0:
        begin_serving(w, serving, equal.groups, coflow)
    return register(w, agenda, t, coflow)


@compiled
def receive_served_end(
    w: CoflowWorld, agenda: Agenda, equal: Equal, queues: Queues, t: int, flow: int, ended: int
) -> None:
    """Receive an agent's message that a flow has ended; a coflow that has ended leaves its queue.

    What the flow had is assigned again when the interval ends.
    """
    note_report(w, t, equal.num_sending[0], w.fabric.flows.source[flow])
    if apply_flow_done(w.fabric, equal, flow, ended):
        dequeue(queues, w.fabric.flows.coflow[flow])
    request_decision(w, agenda, t)


@compiled
def apply_flow_done(fabric: Fabric, equal: Equal, flow: int, ended: int) -> bool:
    """Apply an agent's message that a flow has ended; return whether its coflow has ended.

    New rates may have been sent before the message arrived; the flow was sent nothing at these.
    """
    flows, coflow, agent = fabric.flows, fabric.flows.coflow[flow], fabric.flows.source[flow]
    when = max(ended, equal.now[0])
    fabric.coflows.sent[coflow] += flows.size[flow] - estimated_sent(fabric, equal, when, flow)
    was = is_sending(fabric, equal, agent)
    coflow_ended = end_flow(fabric, equal, when, flow)
    if was and not is_sending(fabric, equal, agent):
        equal.num_sending[0] -= 1
    flows.finish[flow] = ended
    if coflow_ended:
        fabric.coflows.finish[coflow] = ended
    return coflow_ended


@inlined
def is_sending(fabric: Fabric, equal: Equal, agent: int) -> bool:
    """Return whether an agent has flows with a rate that are not known to have ended."""
    return fabric.speed[agent] - equal.residual[agent] > _IDLE * fabric.speed[agent]


@inlined
def estimated_sent(fabric: Fabric, equal: Equal, t: int, flow: int) -> float:
    """Return what a flow that has not ended has been sent by t, bytes."""
    flows = fabric.flows
    sent = flows.size[flow] - flows.left[flow] + served_by(equal.groups, t, group_of(fabric, flow))
    return sent + equal.extra_in_force[flow] * (t - flows.since[flow])


@inlined
def reported_sent(fabric: Fabric, equal: Equal, t: int, flow: int) -> float:
    """Return what a flow has been sent by t, bytes, as its agent reports it."""
    return min(estimated_sent(fabric, equal, t, flow), fabric.flows.size[flow])


@compiled
def update_ahead(fabric: Fabric, equal: Equal, t: int) -> None:
    """Update how far backfilled flows are ahead of their groups at t, for calls of `has_sent_more` with this t."""
    for k in range(equal.ends.size[0]):
        flow = equal.ends.values[k]
        group = group_of(fabric, flow)
        if fabric.flows.end[flow] == equal.ends.keys[k]:
            equal.ahead[group] = max(
                equal.ahead[group], reported_sent(fabric, equal, t, flow) - served_by(equal.groups, t, group)
            )


@compiled
def has_sent_more(fabric: Fabric, equal: Equal, group: int, limit: float, t: int) -> bool:
    """Return whether a flow of a group has been sent more than `limit` bytes by t.

    It searches the group's flows only if one of them may have been sent more.
    """
    first, served = equal.groups.first[group], served_by(equal.groups, t, group)
    if equal.longest[group] > limit:
        return True
    if served + equal.ahead[group] > limit:  # the flow that was furthest ahead may have ended
        equal.ahead[group] = 0.0
        for i in range(first, first + equal.groups.size[group]):
            equal.ahead[group] = max(
                equal.ahead[group], reported_sent(fabric, equal, t, equal.groups.heap[i]) - served
            )
    return served + equal.ahead[group] > limit


@compiled
def next_time_above(fabric: Fabric, order: Order, equal: Equal, limit: np.ndarray, t: int) -> int:
    """Return when, after t, a flow has first been sent more than its group's `limit` [G], at these rates."""
    first: int = NEVER
    for i in range(order.used[0]):
        group = order.groups[i]
        if equal.groups.size[group] > 0 and equal.groups.in_force[group] > 0.0:
            left = limit[group] - served_by(equal.groups, t, group) - equal.ahead[group]
            first = min(first, after(t, left / equal.groups.in_force[group]))
    for k in range(equal.ends.size[0]):
        flow = equal.ends.values[k]
        group = group_of(fabric, flow)
        if fabric.flows.end[flow] == equal.ends.keys[k]:
            left = limit[group] - estimated_sent(fabric, equal, t, flow)
            first = min(first, after(t, left / (equal.groups.in_force[group] + equal.extra_in_force[flow])))
    return first


@inlined
def after(t: int, in_ns: float) -> int:
    """Return the first whole ns after t + `in_ns`, whatever rounding gives; NEVER if that is too far."""
    return t + np.int64(max(in_ns, 0.0) + _ROUNDING) + 1 if in_ns < _FAR else NEVER


@compiled
def enforce_decision(w: CoflowWorld, order: Order, equal: Equal, coflows: int, t: int) -> None:
    """Charge for a decision about this number of coflows, and put it into force when its rates reach the agents."""
    agents: int = 0
    w.counts[N_DECISIONS] += 1
    for k in range(equal.changes[0]):
        which = equal.changed[k]
        agents += note_sent(w, w.fabric.flows.source[which] if which >= 0 else w.fabric.lines.port[~which])
    note_schedules(w, agents)
    charge(w, w.prices.coflow * coflows + w.prices.flow * equal.changes[0] + w.prices.schedule * agents)
    equal.now[0] = effective_time(w, t)
    enforce_rates(w.fabric, order, equal, equal.now[0])
    equal.num_sending[0] = 0
    for agent in range(w.nodes.size):
        equal.num_sending[0] += np.int64(is_sending(w.fabric, equal, agent))


@compiled
def send_rates(w: CoflowWorld, equal: Equal, t: int) -> None:
    """Send the agents the new rates."""
    send_changes(w, equal, t, SET_EXTRA, equal.extra_in_force, SET_LINE, equal.groups.in_force)


@compiled
def begin_tick(w: CoflowWorld, agenda: Agenda, equal: Equal, t: int) -> bool:
    """Receive the agents' reports at the end of an interval if anything can have changed; return whether it can."""
    if t < equal.idle_until[0] and not agenda.stale[0]:
        await_change(w, agenda, equal, t)
        return False
    agenda.stale[0] = False
    enter_interval(w, t, equal.num_sending[0])
    charge_reports(w, equal.num_sending[0])
    remove_ended(w, agenda)
    return True


@compiled
def serve_by_keys(w: CoflowWorld, agenda: Agenda, order: Order, equal: Equal, queues: Queues, t: int) -> None:
    """Put the active coflows in order of `q.keys`, and make all bandwidth of the ports residual."""
    count = agenda.used[0]
    for i in range(count):
        queues.groups[i] = agenda.active[i]
    sort_groups(w.fabric.coflows, queues.groups, queues.keys, count)
    progress(w.fabric, order, equal, t)
    set_order(order, queues.groups, count)
    reset_residual(w.fabric, equal)


@compiled
def end_tick(w: CoflowWorld, agenda: Agenda, order: Order, equal: Equal, t: int) -> None:
    """Backfill, and send the new rates."""
    backfill(w.fabric, order, equal)
    enforce_decision(w, order, equal, agenda.used[0], t)
    equal.num_sent[0] = 0
    send_rates(w, equal, t)


@inlined
def request_next(w: CoflowWorld, agenda: Agenda, equal: Equal, t: int, next_change: int) -> None:
    """Request the next decision after one at t: at `next_change`, before which nothing changes but by messages."""
    if agenda.used[0] > 0:
        following = next_tick(t + 1, agenda.interval)
        equal.idle_until[0] = max(following, next_change) if not has_costs(w) else following
        await_change(w, agenda, equal, t)


@inlined
def await_change(w: CoflowWorld, agenda: Agenda, equal: Equal, t: int) -> None:
    """Request a decision at `idle_until`; if that is far ahead, an earlier one, which requests the next."""
    last = next_tick(t + _MOST_IDLE_INTERVALS * agenda.interval, agenda.interval)
    wake_coordinator(w, agenda, min(equal.idle_until[0], last))


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
