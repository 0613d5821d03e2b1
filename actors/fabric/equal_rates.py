"""Equal rates inside a coflow, in a given order, all or none; then backfill: Saath, and Philae's rates by max-min.

Each coflow in turn gives all its flows one rate: what the slowest of them would have if its flows shared, at each of
their ports, what earlier coflows left (A. Jajoo et al., Your Coflow has Many Flows: Sampling them for Fun and Speed,
USENIX ATC 2019, section 4.5). A coflow that finds no residual bandwidth at one of its ports is *missed*: it has no rate
(all or none; A. Jajoo et al., Saath, CoNEXT 2017). Backfill then gives the residual bandwidth to the flows of missed
coflows, or to those of all, in order, each as much as its two ports have.

All flows of a group have been served the same number of bytes, `served`, so that the state of a coflow of 20,000 flows
is one number and the order in which they end is fixed (`actors.fabric.equal_groups`): a flow ends when `served`
reaches its ``flows.left``, and has ``flows.left - served`` left. An end costs a step in the group's heap, a decision
costs lines and not flows. Only backfilled flows, about as many as ports, progress by themselves; when a flow loses its
backfilled rate, what it was sent beyond the others is subtracted from its ``flows.left``.

A policy calls `end_flow` for each flow that has ended. To decide, it calls `progress`, puts what has arrived into the
order, sorts it, and calls `reset_residual`, `add_rates`, `backfill`, and, when the decision takes effect,
`enforce_rates`.

Deciding and taking effect are apart: `rate` and `extra` are decided; `in_force` and `extra_in_force` are what is sent
until `enforce_rates` is called. Rates that are new, and must be sent to the agents, are in `changed`.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.equal_groups import (
    EqualGroups,
    extra_sent,
    make_groups,
    predict_end,
    remove_from_heap,
    served_by,
    sift_up,
)
from actors.fabric.flow_ends import Ends, add_end, make_ends, purge, whole_ns
from actors.fabric.madd import has_residual, update_open_port
from actors.fabric.port_sets import include, lowest
from actors.fabric.ports import Coflows, Fabric, Lines, change_rate, coflow_of, finish_flow, flow_at
from actors.fabric.service_order import Order
from actors.kernel.arrays import fill
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.kernel.world import NEVER

_EMPTY = np.uint64(0)
_SAME = 1e-11  # of a rate: two that differ by less differ by rounding


class Equal(NamedTuple):
    """Rates of G groups, and of their backfilled flows, of F flows."""

    missed_only: bool  # backfill is for missed groups alone
    now: np.ndarray  # [1] from when on the last decision holds, ns
    rate: np.ndarray  # [G] bytes per ns of each flow of a group, 0.0 where missed, as decided
    groups: EqualGroups  # what is in force
    longest: np.ndarray  # [G] the largest of its flows that have ended, bytes
    ahead: np.ndarray  # [G] by how much at most a flow of it has been sent more than `served`, bytes
    residual: np.ndarray  # [N] residual bandwidth, bytes per ns
    open_ports: np.ndarray  # [words] uint64, the set of ports with residual bandwidth
    released: np.ndarray  # [words] uint64, the set of ports that ended flows have left
    extra: np.ndarray  # [F] what a backfilled flow has beyond its group's rate, bytes per ns, as decided
    extra_in_force: np.ndarray  # [F] the same, in force; since `flows.since`
    ends: Ends  # of backfilled flows
    # flows whose extra, and as ~line ingress lines whose rate is new: the first `changes` of them
    changed: np.ndarray
    changes: np.ndarray  # [1]


def make_equal(fabric: Fabric, missed_only: bool = True) -> Equal:
    """Return an allocation in which no group has a rate, and pilots are flows of their coflows."""
    flows, lines, ports = fabric.flows, fabric.lines, fabric.speed.size
    coflows, groups = fabric.coflows.arrival.size, lines.of_group.shape[0] - 1
    pilots = np.diff(lines.of_group[:, 0])
    pilots[:coflows] = 0
    members = make_groups(flows.left, np.where(flows.line[:, 0] != NONE, flows.coflow, NONE), pilots)
    room = members.heap.size - pilots.sum()
    return Equal(
        missed_only=bool(missed_only),
        now=np.zeros(1, np.int64),
        rate=np.zeros(groups),
        groups=members,
        longest=np.zeros(groups),
        ahead=np.zeros(groups),
        residual=np.zeros(ports),
        open_ports=np.zeros(ports // 64, np.uint64),
        released=np.zeros(ports // 64, np.uint64),
        extra=np.zeros(flows.size.size),
        extra_in_force=np.zeros(flows.size.size),
        ends=make_ends(room),
        changed=np.zeros(2 * room + lines.of_group[0, 1], np.int64),
        changes=np.zeros(1, np.int64),
    )


@inlined
def group_of(fabric: Fabric, flow: int) -> int:
    """Return the group that a flow is served with."""
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
    """Begin a decision at t: remove backfilled rates, and groups without flows. `add_rates` must follow."""
    e.now[0], e.changes[0] = t, 0
    purge(fabric.flows, e.ends)
    for k in range(e.ends.size[0]):
        flow = e.ends.flow[k]
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


@inlined
def note_change(e: Equal, which: int) -> None:
    """Note that the rate of a flow, or of a line given as ~line, is new."""
    e.changed[e.changes[0]] = which
    e.changes[0] += 1


@compiled
def settle_extra(fabric: Fabric, e: Equal, t: int, flow: int) -> None:
    """Account for what a backfilled flow was sent beyond its group's rate."""
    flows, lines, group = fabric.flows, fabric.lines, group_of(fabric, flow)
    sent = extra_sent(flows.left[flow], flows.since[flow], e.groups, group, t, e.extra_in_force[flow])
    flows.left[flow] -= sent
    lines.bytes[flows.line[flow, 0]] -= sent
    lines.bytes[flows.line[flow, 1]] -= sent
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

    A group keeps the rate that it has: it may be served again out of other bandwidth (`actors.fabric.queue_shares`).
    """
    lines = fabric.lines
    for level in range(first, end):
        group = order.groups[level]
        rate = slowest_rate(fabric, e, group)
        if rate > 0.0:
            e.rate[group] += rate
            for side in range(2):
                for line in range(lines.of_group[group, side], lines.of_group[group + 1, side]):
                    e.residual[lines.port[line]] -= rate * lines.left[line]


@inlined
def slowest_rate(fabric: Fabric, e: Equal, group: int) -> float:
    """Return the rate of a group's slowest flow, with its ports' residual bandwidth shared; 0.0 if a port has none."""
    lines, rate = fabric.lines, np.inf
    if e.groups.size[group] == 0:
        return 0.0
    for side in range(2):
        for line in range(lines.of_group[group, side], lines.of_group[group + 1, side]):
            if lines.left[line] > 0:
                port = lines.port[line]
                if not has_residual(fabric, e, port):
                    return 0.0
                rate = min(rate, e.residual[port] / lines.left[line])
    return rate


@compiled
def backfill(fabric: Fabric, order: Order, e: Equal) -> None:
    """Note which rates are new, and give the residual bandwidth to flows in order, each as much as both ports have."""
    lines, before = fabric.lines, e.changes[0]
    fill(e.released, _EMPTY)
    for port in range(e.residual.size):
        update_open_port(fabric, e, port)
    for i in range(order.used[0]):
        note_rate(lines, e, order.groups[i])
    for i in range(order.used[0]):
        group = order.groups[i]
        if not (e.missed_only and e.rate[group] > 0.0) and can_backfill(e):
            for line in range(lines.of_group[group, 0], lines.of_group[group + 1, 0]):
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
    """Return whether a rate is, but for rounding, the one that is in force."""
    return abs(rate - in_force) <= _SAME * in_force


@inlined
def note_rate(lines: Lines, e: Equal, group: int) -> None:
    """Note the ingress lines of a group as changed if its rate is new."""
    if is_same(e.rate[group], e.groups.in_force[group]):
        e.rate[group] = e.groups.in_force[group]
        return
    for line in range(lines.of_group[group, 0], lines.of_group[group + 1, 0]):
        if lines.left[line] > 0:
            note_change(e, ~line)


@compiled
def note_stopped(e: Equal, count: int) -> None:
    """Of the flows that were backfilled before, the first `count` of `changed`, keep those that no longer are."""
    keep = 0
    for k in range(e.changes[0]):
        which = e.changed[k]
        if k >= count or e.extra[which] == 0.0:  # if it has another rate, that is further on
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
    """Raise the rate of a coflow by so many bytes per ns, and note its start if it is the first."""
    change_rate(coflows, t, coflow, by)
    coflows.start[coflow] = min(coflows.start[coflow], t)


@compiled
def fill_line(fabric: Fabric, e: Equal, line: int) -> None:
    """Give the flows of a line the residual bandwidth of both of their ports."""
    lines = fabric.lines
    if e.missed_only and e.rate[lines.group[line]] > 0.0:
        return
    port, b = lines.port[line], lines.block[line]
    while b < lines.block[line + 1] and has_residual(fabric, e, port):
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
