"""MADD in a given order, then backfill: Varys (SEBF) and FIFO (M. Chowdhury et al., SIGCOMM 2014, Algorithm 1).

All flows of a coflow that MADD serves end together: the rate of a flow is what it has left, divided by the time that
the coflow needs at its slowest port with the bandwidth that earlier coflows left. All its flows shrink in one
proportion, so that the state of a coflow of 20,000 flows is one number, its `scale`: a flow has ``flows.left * scale``
left. A decision costs the lines of the active coflows, not their flows. Only flows that get more by backfill progress
by themselves.

Decisions are made at arrivals and ends of coflows, as in Varys: a policy calls `progress`, puts new coflows into the
order, sorts it, and calls `decide`. Between decisions MADD's rates stay; when a backfilled flow ends, its bandwidth is
given to the flows that wait at its two ports, in order (`refill`).

Agents receive times, not rates: for a line of a coflow, in how many ns its waiting flows end together (`need`); for a
backfilled flow, in how many ns it ends (`pace`). So both sides know every end to the nanosecond. `changed` has the
lines and flows for which a decision gives another time of ending than the decision before.

The coordinator decides for the time at which its decision takes effect. It knows all sizes and the cost of its own
work. So it knows what agents will have sent by then, and which flows will have ended, before their messages arrive:
rates are right when they take effect, and no port ever carries more than it can. The message of a predicted end changes
nothing. The cost of a decision must be known before the decision: prices depend on what the decision is about, and
measured costs cannot be used.
"""

from typing import Any, NamedTuple

import numpy as np

from actors.fabric.coordinator import (
    NO_AGENT_REPORTS,
    Agenda,
    charge,
    effective_time,
    note_report,
    request_decision,
    send_changes,
    wake_coordinator,
)
from actors.fabric.counters import N_DECISIONS, N_REFILLS
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.messages import PACE, SHRINK, read_line_done
from actors.fabric.order import Order, list_lines
from actors.fabric.port_sets import bit_of, exclude, include, lowest
from actors.fabric.ports import Fabric, finish_flow, flow_at, flows_of, lines_of, take_bytes, whole_ns
from actors.initial_arrays import heap_per, list_per, per
from actors.kernel.compiled import compiled, inlined
from actors.kernel.cost import FIXED
from actors.kernel.heap import Heap, drop, push
from actors.kernel.queue import NEVER, NONE
from actors.setting import Setting
from workloads.errors import InputError

_EMPTY = np.uint64(0)
_TOP = np.int64(0)  # the first level
_LEAST = 1e-9  # of a port's speed: less residual bandwidth than this is an effect of rounding
_SAME = 1e-11  # of a time that is sent: two times that differ by less differ only by rounding


class Madd(NamedTuple):
    """Rates of coflows, and of their backfilled flows."""

    ends: Heap = heap_per("flow")  # of backfilled flows, by end
    # to be sent: flows that have another pace, and ~line of those with another need
    changed: np.ndarray = list_per("flow or line")
    changes: np.ndarray = per("run")  # how many these are
    num_sent: np.ndarray = per("run")  # how many of them have been sent
    now: np.ndarray = per("run")  # time of the last decision, ns
    # what is left of `flows.left` and `lines.bytes`, at the last decision
    scale: np.ndarray = per("coflow", 1.0)
    # ns from the last decision until MADD's rates end the coflow, inf: it has no such rates
    need: np.ndarray = per("coflow", np.inf)
    previous_need: np.ndarray = per("coflow", np.inf)  # the same, by the rates of the decision before
    # when MADD's rates end the coflow, ns; NEVER: it has no such rates
    joint_end: np.ndarray = per("coflow", NEVER)
    end: np.ndarray = per("coflow", NEVER)  # when the coflow ends if nothing happens, ns
    earliest_end: np.ndarray = per("run", NEVER)  # no coflow ends before that
    num_backfilled: np.ndarray = per("coflow")  # unfinished flows that are backfilled
    last_backfilled_end: np.ndarray = per("coflow")  # the last end of those, ns
    residual: np.ndarray = per("port", 0.0)  # residual bandwidth, bytes per ns
    load: np.ndarray = per("port", 0.0)  # scratch: bytes at a port
    open_ports: np.ndarray = per("word of ports", _EMPTY)  # the set of ports with residual bandwidth
    # a backfilled flow's rate beyond MADD's, bytes per ns; 0.0: it waits
    extra: np.ndarray = per("flow", 0.0)
    # as sent to the agent, ns from `pace_since` until a backfilled flow ends; inf: it waits
    pace: np.ndarray = per("flow", np.inf)
    pace_since: np.ndarray = per("flow")  # ns
    # backfilled flows whose ends were received, and not predicted, since the last decision
    num_ended: np.ndarray = per("run")
    cut: np.ndarray = list_per("flow")  # the first `num_cut`: flows that have ended before their last byte
    num_cut: np.ndarray = per("run")
    counted_at: np.ndarray = per("port")  # scratch: the last decision for which an agent was counted


@compiled
def next_coflow_end(order: Order, madd: Madd) -> int:
    """Return when the next coflow ends if nothing happens, NEVER if none has rates."""
    t = NEVER
    for i in range(order.used[0]):
        t = min(t, madd.end[order.groups[i]])
    return t


@inlined
def any_ends_by(order: Order, madd: Madd, t: int) -> bool:
    """Return whether a coflow ends by time t if nothing happens."""
    if madd.earliest_end[0] <= t:
        madd.earliest_end[0] = next_coflow_end(order, madd)
    return madd.earliest_end[0] <= t


@compiled
def progress(fabric: Fabric, order: Order, madd: Madd, t: int) -> None:
    """Bring all coflows to time t; end and remove those that end by then. `decide` must be called next."""
    passed = t - madd.now[0]
    madd.now[0], madd.changes[0] = t, 0
    for k in range(madd.ends.size[0]):
        if madd.ends.keys[k] <= t:
            finish_flow(fabric, madd.ends.keys[k], madd.ends.values[k])
        else:
            end_backfill(fabric, madd, t, passed, madd.ends.values[k])
    madd.ends.size[0] = 0
    keep = 0
    for i in range(order.used[0]):
        coflow = order.groups[i]
        if madd.end[coflow] <= t:
            end_coflow(fabric, madd, coflow)
            order.level[coflow] = NONE
        else:
            madd.scale[coflow] *= 1.0 - passed / madd.need[coflow]
            madd.previous_need[coflow] = madd.need[coflow] - passed
            order.groups[keep], order.level[coflow] = coflow, keep
            keep += 1
    order.used[0] = keep


@compiled
def end_backfill(fabric: Fabric, madd: Madd, t: int, passed: int, flow: int) -> None:
    """Account for what a backfilled flow was sent beyond MADD's rate; it waits until it is backfilled again."""
    flows, coflow = fabric.flows, fabric.flows.coflow[flow]
    if madd.end[coflow] > t:
        scale = madd.scale[coflow] * (1.0 - passed / madd.need[coflow])
        sent = min(madd.extra[flow] * (t - flows.since[flow]) / scale, flows.left[flow])
        take_bytes(fabric, flow, sent)
        toggle_waiting(fabric, flow)
        madd.extra[flow] = 0.0
        note_change(madd, flow)


@inlined
def note_change(a: Any, which: int) -> None:
    """Note a flow, or a line as ~line, whose time or rate is new; `a` is a `Madd` or an `Equal`."""
    a.changed[a.changes[0]] = which
    a.changes[0] += 1


@compiled
def end_coflow(fabric: Fabric, madd: Madd, coflow: int) -> None:
    """End those flows of a coflow that MADD's rates end together."""
    for flow in flows_of(fabric.coflows, coflow):
        if fabric.flows.finish[flow] == NEVER:
            finish_flow(fabric, madd.end[coflow], flow)


@compiled
def decide(fabric: Fabric, order: Order, madd: Madd, backfills: bool = True) -> None:
    """Give rates to the coflows of an order by MADD, then backfill, at the time of the last `progress`."""
    reset_residual(fabric, order, madd)
    add_rates(fabric, order, madd, _TOP, order.used[0])
    backfill(fabric, order, madd, backfills)


@inlined
def slowest(fabric: Fabric, madd: Madd, coflow: int, residual: np.ndarray) -> float:
    """Return how long a coflow needs with `residual` at each port, ns, at least 1; inf: a port has none."""
    lines, need = fabric.lines, 0.0
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            if lines.left[line] > 0:
                port = lines.port[line]
                if residual[port] <= _LEAST * fabric.speed[port]:
                    return np.inf
                need = max(need, lines.bytes[line] / residual[port])
    return max(need * madd.scale[coflow], 1.0)


@compiled
def bottleneck_ns(fabric: Fabric, madd: Madd, coflow: int) -> int:
    """Return how long a coflow needs if it is alone, ns: its effective bottleneck."""
    return np.int64(slowest(fabric, madd, coflow, fabric.speed))


@compiled
def joint_bottleneck_ns(fabric: Fabric, madd: Madd, groups: np.ndarray, first: int, end: int) -> int:
    """Return how long the coflows in places `first` to before `end` of `groups` need if they are alone, ns."""
    if end == first + 1:
        return bottleneck_ns(fabric, madd, groups[first])
    lines, need = fabric.lines, 1.0
    for i in range(first, end):
        for side in range(2):
            for line in lines_of(lines, groups[i], side):
                port = lines.port[line]
                madd.load[port] += lines.bytes[line] * madd.scale[groups[i]]
                need = max(need, madd.load[port] / fabric.speed[port])
    for i in range(first, end):
        for side in range(2):
            for line in lines_of(lines, groups[i], side):
                madd.load[lines.port[line]] = 0.0
    return np.int64(need)


@compiled
def reset_residual(fabric: Fabric, order: Order, madd: Madd) -> None:
    """Remove the rates of all coflows of an order, and set the residual bandwidth of every port to its speed."""
    for port in range(madd.residual.size):
        madd.residual[port] = fabric.speed[port]
    for level in range(order.used[0]):
        madd.need[order.groups[level]] = np.inf


@compiled
def add_rates(fabric: Fabric, order: Order, madd: Madd, first: int, end: int) -> None:
    """Give each coflow from level `first` to before `end`, which has no rate yet, MADD's rates out of `residual`."""
    for level in range(first, end):
        coflow = order.groups[level]
        need = slowest(fabric, madd, coflow, madd.residual)
        if need < np.inf:
            madd.need[coflow] = need
            take_residual(fabric, madd, coflow, need)


@inlined
def take_residual(fabric: Fabric, madd: Madd, coflow: int, need: float) -> None:
    """Subtract from `residual` the rates of a coflow whose flows end together in `need` ns."""
    lines = fabric.lines
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            madd.residual[lines.port[line]] -= lines.bytes[line] * madd.scale[coflow] / need


@compiled
def backfill(fabric: Fabric, order: Order, madd: Madd, backfills: bool = True) -> None:
    """If `backfills`, give each flow, in order, the residual bandwidth that both of its ports have."""
    lines, backfilled = fabric.lines, madd.changes[0]
    list_lines(fabric, order)
    for i in range(order.used[0]):
        update_need(fabric, madd, order.groups[i])
    for port in range(madd.residual.size):
        update_open_port(fabric, madd, port)
    madd.earliest_end[0] = NEVER
    for i in range(order.used[0]):
        coflow = order.groups[i]
        madd.num_backfilled[coflow] = madd.last_backfilled_end[coflow] = 0
        for line in lines_of(lines, coflow, 0):
            if backfills:
                fill_line(fabric, madd, madd.now[0], line)
        predict_end(fabric, madd, coflow)
    note_stopped(madd, backfilled)


@compiled
def update_need(fabric: Fabric, madd: Madd, coflow: int) -> None:
    """Compute when a coflow ends by MADD's rates; if that is new, note its ingress lines as changed."""
    lines, need, previous_need = fabric.lines, madd.need[coflow], madd.previous_need[coflow]
    if need == previous_need or abs(need - previous_need) <= _SAME * previous_need < np.inf:
        madd.need[coflow] = previous_need  # which the agents have
        return
    madd.joint_end[coflow] = NEVER
    if need < np.inf:
        madd.joint_end[coflow] = madd.now[0] + whole_ns(need)
        fabric.coflows.start[coflow] = min(fabric.coflows.start[coflow], madd.now[0])
    for line in lines_of(lines, coflow, 0):
        if lines.left[line] > 0:
            note_change(madd, ~line)


@compiled
def note_stopped(madd: Madd, count: int) -> None:
    """Remove flows that are backfilled again from the first `count` of `changed`, those that were backfilled before."""
    keep = 0
    for k in range(madd.changes[0]):
        flow = madd.changed[k]
        if k < count and madd.extra[flow] > 0.0:
            continue  # a flow with another pace is further on
        if k < count:
            madd.pace[flow] = np.inf
        madd.changed[keep] = flow
        keep += 1
    madd.changes[0] = keep


@compiled
def toggle_waiting(fabric: Fabric, flow: int) -> None:
    """Set a flow's bits in its lines if it waits again; clear them if it is backfilled."""
    flows, lines = fabric.flows, fabric.lines
    for side in range(2):
        other = flows.sink[flow] if side == 0 else flows.source[flow]
        b = lines.block[flows.line[flow, side]]
        while lines.word[b] != other >> 6:
            b += 1
        lines.bits[b] ^= bit_of(other)


@inlined
def has_residual(fabric: Fabric, a: Any, port: int) -> bool:
    """Return whether a port has residual bandwidth, and not only by rounding; `a` is a `Madd` or an `Equal`."""
    return a.residual[port] > _LEAST * fabric.speed[port]


@inlined
def update_open_port(fabric: Fabric, a: Any, port: int) -> None:
    """Update the set of ports with residual bandwidth; `a` is a `Madd` or an `Equal`."""
    if has_residual(fabric, a, port):
        include(a.open_ports, port)
    else:
        exclude(a.open_ports, port)


@compiled
def fill_line(fabric: Fabric, madd: Madd, t: int, line: int) -> bool:
    """Give the waiting flows of a line the residual bandwidth of both ports; return whether a flow got any."""
    lines, given = fabric.lines, False
    port, b = lines.port[line], lines.block[line]
    while b < lines.block_end[line] and has_residual(fabric, madd, port):
        hit = lines.bits[b] & madd.open_ports[lines.word[b]]
        if hit == _EMPTY:
            b += 1
        else:
            give_more(fabric, madd, t, flow_at(lines, b, lowest(hit)))
            given = True
    return given


@compiled
def give_more(fabric: Fabric, madd: Madd, t: int, flow: int) -> None:
    """Give a waiting flow the residual bandwidth that both of its ports have."""
    flows, coflow, residual = fabric.flows, fabric.flows.coflow[flow], madd.residual
    source, sink = flows.source[flow], flows.sink[flow]
    more = min(residual[source], residual[sink])
    for port in (source, sink):
        residual[port] -= more
        update_open_port(fabric, madd, port)
    rate = flows.left[flow] * madd.scale[coflow] / madd.need[coflow]
    left = flows.left[flow] * madd.scale[coflow] - rate * (t - madd.now[0])
    madd.extra[flow], flows.since[flow] = more, t
    end = set_pace(madd, t, flow, max(left / (rate + more), 1.0))
    push(madd.ends, end, flow)
    toggle_waiting(fabric, flow)
    fabric.coflows.start[coflow] = min(fabric.coflows.start[coflow], t)
    madd.num_backfilled[coflow] += 1
    madd.last_backfilled_end[coflow] = max(madd.last_backfilled_end[coflow], end)


@inlined
def set_pace(madd: Madd, t: int, flow: int, pace: float) -> int:
    """Let a backfilled flow end `pace` ns after t; note it as changed if that is new; return when it ends."""
    sent = madd.pace[flow] - (t - madd.pace_since[flow])
    if not abs(pace - sent) <= _SAME * pace:
        madd.pace[flow], madd.pace_since[flow] = pace, t
        note_change(madd, flow)
    return madd.pace_since[flow] + np.int64(madd.pace[flow] + 0.5)


@inlined
def predict_end(fabric: Fabric, madd: Madd, coflow: int) -> None:
    """Compute when a coflow ends: at MADD's rates, or with its last flow if all are backfilled."""
    if madd.num_backfilled[coflow] == fabric.coflows.left[coflow]:
        madd.end[coflow] = madd.last_backfilled_end[coflow]
    else:
        madd.end[coflow] = madd.joint_end[coflow]
    madd.earliest_end[0] = min(madd.earliest_end[0], madd.end[coflow])


@compiled
def refill(fabric: Fabric, order: Order, madd: Madd, t: int) -> None:
    """Give the bandwidth of backfilled flows that have ended by t to flows that wait at their ports."""
    flows = fabric.flows
    madd.changes[0] = 0
    while madd.ends.size[0] > 0 and madd.ends.keys[0] <= t:
        end, flow = madd.ends.keys[0], madd.ends.values[0]
        coflow = flows.coflow[flow]
        drop(madd.ends)
        freed = madd.extra[flow] + flows.left[flow] * madd.scale[coflow] / madd.need[coflow]
        finish_flow(fabric, end, flow)
        madd.num_backfilled[coflow] -= 1
        predict_end(fabric, madd, coflow)
        offer_residual(fabric, order, madd, t, flows.source[flow], freed)
        offer_residual(fabric, order, madd, t, flows.sink[flow], freed)


@compiled
def offer_residual(fabric: Fabric, order: Order, madd: Madd, t: int, port: int, freed: float) -> None:
    """Give freed bandwidth of a port to the lines that wait at it, in order."""
    madd.residual[port] += freed
    update_open_port(fabric, madd, port)
    for i in range(order.first[port], order.end[port]):
        if not has_residual(fabric, madd, port):
            break
        if fill_line(fabric, madd, t, order.line[i]):
            predict_end(fabric, madd, fabric.lines.group[order.line[i]])


@compiled
def receive_backfilled_done(w: CoflowWorld, agenda: Agenda, madd: Madd, t: int, flow: int) -> None:
    """Receive the end of a backfilled flow; request a refill with what it had, unless its end was predicted."""
    note_report(w, t, NO_AGENT_REPORTS, w.fabric.flows.source[flow])
    if w.fabric.flows.finish[flow] == NEVER:
        madd.num_ended[0] += 1
        wake_coordinator(w, agenda, t)


@compiled
def receive_line_done(w: CoflowWorld, agenda: Agenda, t: int) -> None:
    """Receive the end of a line; request a decision if the end of its coflow was not predicted."""
    lines, (line, _, _) = w.fabric.lines, read_line_done(w)
    note_report(w, t, NO_AGENT_REPORTS, lines.port[line])
    if w.fabric.coflows.left[lines.group[line]] > 0:
        wake_coordinator(w, agenda, t)


@compiled
def receive_cut(w: CoflowWorld, agenda: Agenda, madd: Madd, t: int, flow: int) -> None:
    """Note that a flow has ended before its last byte: what others need is to be computed again."""
    note_report(w, t, NO_AGENT_REPORTS, w.fabric.flows.source[flow])
    madd.cut[madd.num_cut[0]] = flow
    madd.num_cut[0] += 1
    request_decision(w, agenda, t)


@inlined
def end_cut_flows(fabric: Fabric, madd: Madd) -> None:
    """End flows that have ended before their last byte, unless they were predicted to end by now."""
    for k in range(madd.num_cut[0]):
        if fabric.flows.finish[madd.cut[k]] == NEVER:
            finish_flow(fabric, madd.now[0], madd.cut[k])
    madd.num_cut[0] = 0


@inlined
def refill_price(w: CoflowWorld, ended: int) -> int:
    """Return what a refill with the bandwidth of `ended` backfilled flows costs, ns."""
    return ended * (w.prices.flow + w.prices.schedule) if w.cost.model == FIXED else 0


@compiled
def charge_decision(w: CoflowWorld, agenda: Agenda, madd: Madd) -> None:
    """Charge for a decision: all active coflows, their unfinished flows, and the agents that send these."""
    coflows, lines, flows, agents = w.fabric.coflows, w.fabric.lines, 0, 0
    for i in range(agenda.used[0]):
        coflow = agenda.active[i]
        flows += coflows.left[coflow]
        for line in lines_of(lines, coflow, 0):
            port = lines.port[line]
            if lines.left[line] > 0 and madd.counted_at[port] != w.counts[N_DECISIONS]:
                madd.counted_at[port] = w.counts[N_DECISIONS]
                agents += 1
    charge(w, w.prices.coflow * agenda.used[0] + w.prices.flow * flows + w.prices.schedule * agents)


@compiled
def begins_decision(w: CoflowWorld, agenda: Agenda, order: Order, madd: Madd, t: int) -> bool:
    """Begin a decision if a coflow has arrived or will have ended; else refill with what ended flows had.

    Return whether it is a decision; then coflows are as they will be when it takes effect.
    """
    price = refill_price(w, madd.num_ended[0])
    decides = agenda.stale[0] or any_ends_by(order, madd, effective_time(w, t) + price)
    madd.num_ended[0] = madd.num_sent[0] = 0
    if decides:
        agenda.stale[0] = False
        w.counts[N_DECISIONS] += 1
        charge_decision(w, agenda, madd)
        progress(w.fabric, order, madd, effective_time(w, t))
        end_cut_flows(w.fabric, madd)
    else:
        w.counts[N_REFILLS] += 1
        charge(w, price)
        refill(w.fabric, order, madd, effective_time(w, t))
    return decides


@compiled
def send_times(w: CoflowWorld, madd: Madd, t: int) -> None:
    """Send the agents the new times."""
    send_changes(w, madd, t, PACE, madd.pace, SHRINK, madd.need)


def check_costs(setting: Setting) -> None:
    """Check that MADD's rates can be computed for the time at which they take effect.

    Raises:
        InputError: the cost of a decision is not known before the decision.
    """
    model = setting.costs.model
    if model not in ("none", "fixed"):
        raise InputError(
            f"{setting.scheduler.name} with MADD's rates must know what a decision costs before it is made, and"
            f" cost.model is {model}; use cost.model fixed"
        )
