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
"""

from typing import NamedTuple

import numpy as np

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
from actors.fabric.flow_ends import add_end, purge, whole_ns
from actors.fabric.initial_arrays import at_start, heap_per, list_per, per
from actors.fabric.madd import has_residual, update_open_port
from actors.fabric.port_sets import include, lowest
from actors.fabric.ports import (
    Coflows,
    Fabric,
    Lines,
    change_rate,
    coflow_of,
    finish_flow,
    flow_at,
    lines_of,
    take_bytes,
)
from actors.fabric.service_order import Order
from actors.kernel.arrays import fill
from actors.kernel.compiled import compiled, inlined
from actors.kernel.heap import Heap
from actors.kernel.queue import NEVER, NONE

_EMPTY = np.uint64(0)
_SAME = 1e-11  # of a rate: two rates that differ by less differ only by rounding


class Equal(NamedTuple):
    """Rates of groups, and of their backfilled flows."""

    missed_only: bool  # backfill is for missed groups alone
    groups: EqualGroups = groups_per("group")  # with the rates in force
    ends: Heap = heap_per("flow")  # of backfilled flows
    # the first `changes`: flows with a new extra rate, and ~line of ingress lines with a new rate
    changed: np.ndarray = list_per("flow twice or line")
    changes: np.ndarray = per("run")
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


@inlined
def note_change(e: Equal, which: int) -> None:
    """Note a flow, or a line as ~line, whose rate is new."""
    e.changed[e.changes[0]] = which
    e.changes[0] += 1


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

    It is added to the rate that a group has: a group may be served twice (`actors.fabric.queue_shares`).
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
