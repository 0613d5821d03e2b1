"""What all coordinators do: register coflows, receive the agents' messages, and send the schedule.

The coordinator knows what it has received. A schedule reaches all agents, and takes effect, at the same time: one
network delay, and the cost of the decision, after the decision. Until then the schedule before it is in force, so that
no port ever carries more than it can. The coordinator computes with these times: its estimate of what a flow has left
is exact where its own costs are given, and approximate where they are measured.

Its work is counted by scheduling interval. An interval is missed if the coordinator had not done the work of that
interval when it ended; the rest is added to the work of the next interval (Philae, section 9.3). Nothing of that
changes what is scheduled.
"""

from typing import Any, NamedTuple

import numpy as np

from actors.fabric.counters import (
    N_DECISIONS,
    N_HEARD,
    N_INTERVALS,
    N_MISSED,
    N_RATES,
    N_REFILLS,
    N_SCHEDULES,
    N_UPDATES,
    N_WITHOUT,
)
from actors.fabric.fabric_world import CoflowWorld, expect_coflow
from actors.fabric.messages import (
    DECIDE,
    FLOW_END,
    LINE_END,
    SEND_REST,
    read_due,
    read_flow_done,
    send_due,
    send_set_rate,
    send_value,
)
from actors.fabric.ports import flows_of, mark_ended
from actors.fabric.updates import generation_to_send
from actors.fabric.waves import join_shuffle, leave_shuffle
from actors.initial_arrays import list_per, per
from actors.kernel.compiled import compiled, inlined
from actors.kernel.cost import LIVE, NO_COST, charge_server, known_cost
from actors.kernel.counters import N_ARRIVED, N_FINISHED, N_STARTED
from actors.kernel.queue import NEVER

NO_AGENT_REPORTS = np.int64(0)
AT_EVENTS = np.int64(1)  # an interval of 1 ns: decisions may be made at any time
SPARE = 8  # messages that the same event may send for other reasons


class Agenda(NamedTuple):
    """The active coflows, and when the next decision is due."""

    interval: int = int(AT_EVENTS)  # ns: decisions are made at its multiples
    # coflows that are registered and have not ended, in order of arrival
    active: np.ndarray = list_per("coflow")
    used: np.ndarray = per("run")  # how many of them, with those that have ended since `remove_ended`
    due: np.ndarray = per("run", NEVER)  # ns, NEVER: no decision is due
    # The order is to be made again; else ended flows' rates are given away
    stale: np.ndarray = per("run", False)


@inlined
def next_tick(t: int, interval: int) -> int:
    """Return the first multiple of the interval at t or after it."""
    return (t + interval - 1) // interval * interval


@inlined
def request_decision(w: CoflowWorld, agenda: Agenda, time: int) -> None:
    """Request a decision about the order at `time`, or at the end of the interval."""
    agenda.stale[0] = True
    wake_coordinator(w, agenda, next_tick(time, agenda.interval))


@inlined
def wake_coordinator(w: CoflowWorld, agenda: Agenda, time: int) -> None:
    """Let the coordinator decide at `time`, after all other events of that time, unless it decides earlier."""
    if time < agenda.due[0]:
        agenda.due[0] = time
        send_due(w, DECIDE, time)


@inlined
def is_due(w: CoflowWorld, agenda: Agenda) -> bool:
    """Return whether the decision of the DECIDE at hand is due: no earlier one has replaced it."""
    if read_due(w) != agenda.due[0]:
        return False
    agenda.due[0] = NEVER
    return True


@compiled
def register(w: CoflowWorld, agenda: Agenda, t: int, coflow: int) -> bool:
    """Register a coflow; return whether it has flows that take bandwidth."""
    coflows = w.fabric.coflows
    if coflow + 1 < w.work.size:  # those of DAG jobs are registered when their flows are known
        expect_coflow(w, coflow + 1)
    enter_interval(w, t, NO_AGENT_REPORTS)
    charge(w, w.prices.message)
    w.counts[N_ARRIVED] += coflows.left[coflow]
    if w.fabric.local_is_free and end_local_flows(w, coflow):
        return False
    agenda.active[agenda.used[0]] = coflow
    agenda.used[0] += 1
    join_shuffle(w, coflow)
    return True


@compiled
def end_local_flows(w: CoflowWorld, coflow: int) -> bool:
    """End those flows of a coflow that go from a port to itself; return whether the coflow has ended with them."""
    flows, coflows = w.fabric.flows, w.fabric.coflows
    coflow_ended: bool = False
    arrival = coflows.arrival[coflow]
    for flow in flows_of(coflows, coflow):
        if flows.source[flow] + w.fabric.side == flows.sink[flow] and flows.finish[flow] == NEVER:
            w.counts[N_STARTED] += 1
            w.counts[N_FINISHED] += 1
            coflows.start[coflow] = arrival
            coflow_ended = mark_ended(w.fabric, arrival, flow)
            record_local_flow(w, arrival, flow)
    return coflow_ended


@inlined
def record_local_flow(w: CoflowWorld, time: int, flow: int) -> None:
    """Record a flow from a port to itself, which takes no time if such flows are free."""
    if w.task_records.size > 0:
        row = w.task_records
        row.node[flow], row.start[flow], row.finish[flow] = w.fabric.flows.source[flow], time, time


@inlined
def note_report(w: CoflowWorld, t: int, reporting: int, agent: int) -> None:
    """Count an agent's message that flows have ended, and charge for it."""
    enter_interval(w, t, reporting)
    w.counts[N_UPDATES] += 1
    note_heard(w, agent)
    charge_updates(w, 1)


@inlined
def has_more_to_send(w: CoflowWorld, flow: int) -> bool:
    """Return whether the flow of the FLOW_DONE at hand has, after an update, more to send than its agent knew."""
    generations, done = w.updates.flow, read_flow_done(w)
    if generations.size == 0:
        return False
    if done.flow_generation != generations.known_generation[flow]:
        return True
    generations.heard[flow] = done.size_bytes
    if generations.heard[flow] < generations.due[flow]:
        w.counts[N_ARRIVED] += 1  # as its agent has counted an end
        return True
    return False


@compiled
def remove_ended(w: CoflowWorld, agenda: Agenda) -> int:
    """Remove coflows that have ended from the active ones; return how many remain."""
    keep = 0
    for i in range(agenda.used[0]):
        if w.fabric.coflows.left[agenda.active[i]] > 0:
            agenda.active[keep] = agenda.active[i]
            keep += 1
        else:
            leave_shuffle(w, agenda.active[i])
    agenda.used[0] = keep
    return keep


@inlined
def note_decision(w: CoflowWorld, coflows: int) -> None:
    """Count a decision about this number of coflows, and charge for it."""
    w.counts[N_DECISIONS] += 1
    w.cost.handler.decides[0] = 1
    charge(w, w.prices.coflow * coflows)


@inlined
def effective_time(w: CoflowWorld, t: int) -> int:
    """Return when rates sent at t take effect: after what has been charged so far, and one network delay."""
    return t + w.network.delay_ns + known_cost(w)


@inlined
def send_rate(w: CoflowWorld, t: int, flow: int, rate: float) -> None:
    """Send the agent of a flow its rate."""
    generation, due = generation_to_send(w, t, flow)
    send_set_rate(w, t, w.fabric.flows.source[flow], flow, rate, generation, due)


@inlined
def note_sent(w: CoflowWorld, agent: int) -> bool:
    """Note that an agent is sent something; return whether it is the first time in this decision or refill."""
    now = w.counts[N_DECISIONS] + w.counts[N_REFILLS]
    first = w.intervals.last_sent[agent] != now
    w.intervals.last_sent[agent] = now
    return first


@inlined
def note_schedule(w: CoflowWorld, agent: int) -> None:
    """Count the schedule of an agent when its first part is sent."""
    if note_sent(w, agent):
        note_schedules(w, 1)


@inlined
def count_agents(w: CoflowWorld, flows: np.ndarray, count: int) -> int:
    """Note that the agents of the first `count` of `flows` are sent something; return how many agents these are."""
    agents: int = 0
    for k in range(count):
        agents += note_sent(w, w.fabric.flows.source[flows[k]])
    return agents


@compiled
def send_changes(
    w: CoflowWorld,
    rates: Any,
    t: int,
    flow_kind: int,
    of_flow: np.ndarray,
    line_kind: int,
    of_group: np.ndarray,
) -> None:
    """Send what is new in an allocation, as much as one event may send; further events at this time send the rest.

    Args:
        rates: the allocation; the first `changes` of `changed` are flows, or ~line for an ingress line, with new
            values; `num_sent` of them have been sent.
        flow_kind, line_kind: the kinds of the messages about flows and lines.
        of_flow, of_group: [F] the value sent for a flow; [G] the value sent for each line of a group.
    """
    flows, lines, num_sent = w.fabric.flows, w.fabric.lines, rates.num_sent
    end = min(rates.changes[0], num_sent[0] + w.queue.room - SPARE)
    for k in range(num_sent[0], end):
        which = rates.changed[k]
        if which >= 0:
            agent = flows.source[which]
            send_value(w, t, agent, flow_kind, which, of_flow[which])
        else:
            agent = lines.port[~which]
            send_value(w, t, agent, line_kind, ~which, of_group[lines.group[~which]])
        note_schedule(w, agent)
    w.counts[N_RATES] += end - num_sent[0]
    num_sent[0] = end
    if end < rates.changes[0]:
        send_due(w, SEND_REST, read_due(w))


@inlined
def keep_end(w: CoflowWorld) -> None:
    """Let a transfer end when it does, however late its agent gets to the timer, as it may in the clock `live`."""
    now = w.queue.now
    if w.cost.model == LIVE and (now.kind[0] == FLOW_END or now.kind[0] == LINE_END):
        now.time[0] = w.cost.handler.due[0]


@inlined
def charge(w: CoflowWorld, price: int) -> None:
    """Charge the coordinator `price` ns, if costs are fixed."""
    charge_server(w.cost, np.int64(0), price)


@inlined
def has_costs(w: CoflowWorld) -> bool:
    """Return whether the work of the coordinator costs time: then it handles the reports of every interval."""
    return w.cost.model != NO_COST


@inlined
def charge_updates(w: CoflowWorld, count: int) -> None:
    """Charge for `count` messages about ends or updates."""
    charge(w, (w.prices.message + w.prices.update) * count)


@inlined
def charge_reports(w: CoflowWorld, count: int) -> None:
    """Charge for `count` reports of agents without news; these are counted, but no messages are sent."""
    charge_updates(w, count)
    if has_costs(w):
        w.cost.servers.served[0] += count


@inlined
def note_heard(w: CoflowWorld, agent: int) -> None:
    """Note that the coordinator has received a message of an agent in this interval."""
    intervals = w.intervals
    if intervals.heard[agent] != intervals.now.number[0]:
        intervals.heard[agent] = intervals.now.number[0]
        intervals.now.heard[0] += 1


@inlined
def note_schedules(w: CoflowWorld, agents: int) -> None:
    """Count the schedules that this number of agents is sent."""
    w.intervals.now.sent[0] += agents
    w.counts[N_SCHEDULES] += agents


@inlined
def enter_interval(w: CoflowWorld, t: int, reporting: int) -> None:
    """Close all intervals before the one that contains t.

    Args:
        reporting: how many agents report in every interval, with or without a decision; 0: `note_heard` counts them.
    """
    if (t - w.intervals.origin) // w.intervals.length > w.intervals.now.number[0]:
        close_intervals(w, (t - w.intervals.origin) // w.intervals.length, reporting)


@compiled
def close_intervals(w: CoflowWorld, number: int, reporting: int) -> None:
    """Count the intervals from the present one up to before this number, and begin the one that has it."""
    length, now, counts = w.intervals.length, w.intervals.now, w.counts
    busy = 0  # before the message at hand, which belongs to the interval that begins
    if has_costs(w):
        busy = w.cost.servers.busy[0] - w.cost.handler.spent[0]
    passed = number - now.number[0]
    left = busy - now.busy[0]  # work of the interval that ends
    missed = min(max(left - 1, 0) // length, passed)
    counts[N_INTERVALS] += passed
    counts[N_MISSED] += missed
    counts[N_WITHOUT] += passed - min(now.sent[0], 1)
    counts[N_HEARD] += passed * reporting if reporting > 0 else now.heard[0]
    now.number[0], now.heard[0], now.sent[0] = number, 0, 0
    now.busy[0] = busy - max(left - passed * length, 0)
