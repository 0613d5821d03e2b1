"""What all coordinators do: register coflows, receive the agents' messages, and send the schedule.

The coordinator knows what it has received. A schedule reaches all agents, and takes effect, at the same time: one
network delay, and the cost of the decision, after the decision. Until then the schedule before it is in force, so that
no port ever carries more than it can. The coordinator computes with these times: its estimate of what a flow has left
is exact where its own costs are given, and approximate where they are measured.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from actors.fabric.counters import N_DECISIONS, N_RATES, N_REFILLS, N_UPDATES
from actors.fabric.fabric_world import CoflowWorld, expect_coflow
from actors.fabric.greedy import Matching, end_flow, end_stopped_flow
from actors.fabric.initial_arrays import list_per, per
from actors.fabric.intervals import (
    charge,
    charge_updates,
    enter_interval,
    note_heard,
    note_schedules,
)
from actors.fabric.messages import (
    DECIDE,
    FLOW_CUT,
    FLOW_DONE,
    FLOW_END,
    LINE_DONE,
    LINE_END,
    REGISTER,
    TELL,
    UPDATE,
    read_due,
    read_flow_cut,
    read_flow_done,
    read_register,
    read_update,
    send_due,
    send_set_rate,
    send_value,
)
from actors.fabric.ports import Fabric, flow_speed, flows_of, mark_ended, take_bytes
from actors.fabric.ranking import Ranking
from actors.fabric.updates import generation_to_send
from actors.fabric.waves import join_shuffle, leave_shuffle
from actors.kernel.compiled import compiled, inlined, template
from actors.kernel.cost import LIVE, known_cost, take
from actors.kernel.counters import N_ARRIVED, N_FINISHED, N_STARTED
from actors.kernel.queue import NEVER, PYTHON, RUNNING

NO_AGENT_REPORTS = np.int64(0)
SPARE = 8  # messages that the same event may send for other reasons


class Agenda(NamedTuple):
    """The active coflows, and when the next decision is due."""

    active: np.ndarray = list_per(
        "coflow"
    )  # coflows that are registered and have not ended, in order of arrival
    used: np.ndarray = per("run")  # how many of them, with those that have ended since `remove_ended`
    due: np.ndarray = per("run", NEVER)  # ns, NEVER: no decision is due


@inlined
def request_decision(w: CoflowWorld, agenda: Agenda, time: int) -> None:
    """Request a decision at `time`, after all other events of that time, unless an earlier decision is due."""
    if time < agenda.due[0]:
        agenda.due[0] = time
        send_due(w, DECIDE, time)


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
def end_greedy(w: CoflowWorld, r: Ranking, m: Matching, flow: int, ended: int) -> bool:
    """Apply the end of a flow to a greedy schedule; return whether its coflow has ended.

    The flow may have been stopped, or stopped and started again, before the message arrived.
    """
    fabric, flows = w.fabric, w.fabric.flows
    if m.flow[flows.source[flow]] == flow:
        return end_flow(fabric, r, m, ended, flow)
    fabric.coflows.sent[flows.coflow[flow]] += flows.left[flow]
    return end_stopped_flow(fabric, r, ended, flow)


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


@compiled
def send_greedy_rates(w: CoflowWorld, m: Matching, t: int) -> None:
    """Send the agents which flows have started and stopped, by a decision or a refill."""
    changes = m.changes[0]
    flows, start = w.fabric.flows, w.fabric.coflows.start
    agents = count_agents(w, m.changed, changes)
    charge(w, w.prices.flow * changes + w.prices.schedule * agents)
    late = known_cost(w)
    for k in range(changes):
        flow = m.changed[k]
        agent = flows.source[flow]
        rate = flow_speed(w.fabric, flow) if m.flow[agent] == flow else 0.0
        if late > 0:
            delay_change(w.fabric, flow, rate, late)
        if rate > 0.0:
            start[flows.coflow[flow]] = min(start[flows.coflow[flow]], flows.since[flow])
        send_rate(w, t, flow, rate)
    w.counts[N_RATES] += changes
    note_schedules(w, agents)
    m.changes[0] = 0


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


@compiled
def send_changes(
    w: CoflowWorld,
    p: Any,
    num_sent: np.ndarray,
    t: int,
    flow_kind: int,
    of_flow: np.ndarray,
    line_kind: int,
    of_group: np.ndarray,
) -> None:
    """Send what is new in an allocation, as much as one event may send; further events at this time send the rest.

    Args:
        p: the allocation; the first `changes` of `changed` are flows, or ~line for an ingress line, with new values.
        num_sent: [1] how many of them have been sent.
        flow_kind, line_kind: the kinds of the messages about flows and lines.
        of_flow, of_group: [F] the value sent for a flow; [G] the value sent for each line of a group.
    """
    flows, lines, end = w.fabric.flows, w.fabric.lines, min(p.changes[0], num_sent[0] + w.queue.room - SPARE)
    for k in range(num_sent[0], end):
        which = p.changed[k]
        if which >= 0:
            agent = flows.source[which]
            send_value(w, t, agent, flow_kind, which, of_flow[which])
        else:
            agent = lines.port[~which]
            send_value(w, t, agent, line_kind, ~which, of_group[lines.group[~which]])
        note_schedule(w, agent)
    w.counts[N_RATES] += end - num_sent[0]
    num_sent[0] = end
    if end < p.changes[0]:
        send_due(w, TELL, read_due(w))


@inlined
def count_agents(w: CoflowWorld, flows: np.ndarray, count: int) -> int:
    """Note that the agents of the first `count` of `flows` are sent something; return how many agents these are."""
    agents: int = 0
    for k in range(count):
        agents += note_sent(w, w.fabric.flows.source[flows[k]])
    return agents


@compiled
def delay_change(fabric: Fabric, flow: int, rate: float, late: int) -> None:
    """Let a flow start, or stop, `late` ns later than the decision assumed."""
    flows, coflows = fabric.flows, fabric.coflows
    more = flow_speed(fabric, flow) * late
    flows.since[flow] += late
    if rate > 0.0:
        flows.end[flow] += late
        coflows.sent[flows.coflow[flow]] -= more
        return
    more = min(more, flows.left[flow])
    take_bytes(fabric, flow, more)
    coflows.sent[flows.coflow[flow]] += more


@inlined
def ignore(*arguments: Any) -> None:
    """Handle a message that needs no reaction, or that a policy never receives."""


@inlined
def keep_end(w: CoflowWorld, kind: int) -> None:
    """Let a transfer end when it does, however late its agent gets to the timer, as it may in the clock `live`."""
    if w.cost.model == LIVE and (kind == FLOW_END or kind == LINE_END):
        w.queue.now.time[0] = w.cost.handler.due[0]


@template
def handle_events(w: CoflowWorld, p: Any, until: int, most: int, on_event: Callable) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason: the loop of all policies.

    Args:
        p: the policy's state.
        on_event: (w, p), handles the event at hand by `handle_event`.
    """
    for _ in range(most):
        why = take(w, until)
        if why != RUNNING:
            return why
        asks_host = on_event(w, p)
        if asks_host:
            return PYTHON
    return RUNNING


@template
def handle_event(
    w: CoflowWorld,
    p: Any,
    agents: Any,
    on_agent_event: Callable = ignore,
    on_flow_done: Callable = ignore,
    on_flow_cut: Callable = ignore,
    on_line_done: Callable = ignore,
    on_arrival: Callable = ignore,
    on_update: Callable = ignore,
    on_tell: Callable = ignore,
    on_decide: Callable = ignore,
) -> bool:
    """Handle the event at hand; return whether the host must decide.

    Args:
        p: the policy's state.
        agents: the state of its agents.
        on_agent_event: (w, agents, me), handles a message to the agent `me`.
        on_flow_done: (w, p, t, flow, ended).
        on_flow_cut: (w, p, t, flow), where ends are predicted.
        on_line_done: (w, p, t).
        on_arrival: (w, p, t, coflow).
        on_update: (w, p, t, update).
        on_tell: (w, p, t), sends the rest of a schedule.
        on_decide: (w, p, t), makes a decision; may return true: the host must decide.
    """
    message = w.queue.now
    t, kind, me = message.time[0], message.kind[0], message.dst[0]
    if me < w.nodes.size:
        keep_end(w, kind)
        on_agent_event(w, agents, me)
    elif kind == FLOW_DONE:
        done = read_flow_done(w)
        on_flow_done(w, p, t, done.flow, done.end)
    elif kind == FLOW_CUT:
        on_flow_cut(w, p, t, read_flow_cut(w))
    elif kind == LINE_DONE:
        on_line_done(w, p, t)
    elif kind == REGISTER:
        on_arrival(w, p, t, read_register(w))
    elif kind == UPDATE:
        on_update(w, p, t, read_update(w))
    elif kind != DECIDE:
        on_tell(w, p, t)
    elif read_due(w) == p.agenda.due[0]:  # else an earlier decision has replaced it
        p.agenda.due[0] = NEVER
        asks_host = on_decide(w, p, t)
        if asks_host:
            return True
    return False
