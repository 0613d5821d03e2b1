"""What all coordinators do: register coflows, receive the agents' messages, and send the schedule.

The coordinator knows what it has received. A schedule takes effect when it has reached the agents, all at the same
instant: one network delay, and what the decision cost, after it was made. Until then the last one is in force, so that
no port ever carries more than it can. The coordinator computes with these times: its estimate of what a flow has left
is exact where its own costs are given, and approximate where they are measured.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.counters import N_DECISIONS, N_RATES, N_REFILLS, N_UPDATES
from actors.fabric.fabric_world import CoflowWorld, expect_coflow
from actors.fabric.floats import bits_of, float_of
from actors.fabric.greedy import Matching, end_flow, end_stopped_flow
from actors.fabric.intervals import (
    charge,
    charge_message,
    charge_updates,
    enter_interval,
    note_heard,
    note_schedules,
)
from actors.fabric.messages import DECIDE, SET_RATE
from actors.fabric.ports import Fabric, flow_speed, mark_ended
from actors.fabric.ranking import Ranking
from actors.fabric.updates import generation_to_send
from actors.kernel.compiled import compiled, inlined
from actors.kernel.cost import known_cost
from actors.kernel.counters import N_ARRIVED, N_FINISHED, N_STARTED
from actors.kernel.queue import NONE, send, wake
from actors.kernel.world import NEVER

NO_AGENT_REPORTS = np.int64(0)


class Agenda(NamedTuple):
    """The active coflows, and when the next decision is due."""

    active: np.ndarray  # [C] coflows that have been registered and have not ended, in order of arrival
    used: np.ndarray  # [1] how many
    due: np.ndarray  # [1] ns, NEVER: no decision is due


def make_agenda(coflows: int) -> Agenda:
    """Return an agenda without active coflows."""
    return Agenda(np.zeros(coflows, np.int64), np.zeros(1, np.int64), np.array([NEVER]))


@inlined
def num_active(agenda: Agenda) -> int:
    """Return how many coflows are active, those that have ended since `remove_ended` included."""
    return agenda.used[0]


@inlined
def request_decision(w: CoflowWorld, agenda: Agenda, time: int) -> None:
    """Request a decision at `time`, after all other events of that instant; an earlier one that is due stands."""
    if time < agenda.due[0]:
        agenda.due[0] = time
        wake(w, time, w.nodes.size, DECIDE, time, NONE, NONE)


@inlined
def is_due(w: CoflowWorld, agenda: Agenda) -> bool:
    """Return whether the DECIDE at hand is the one that is wanted; then none is wanted any more."""
    if w.queue.now.a[0] != agenda.due[0]:
        return False
    agenda.due[0] = NEVER
    return True


@compiled
def register(w: CoflowWorld, agenda: Agenda, t: int, coflow: int) -> bool:
    """Register a coflow; return whether it has flows that take bandwidth."""
    coflows = w.fabric.coflows
    if coflow + 1 < coflows.arrival.size:
        expect_coflow(w, w.nodes.size, coflow + 1)
    enter_interval(w, t, NO_AGENT_REPORTS)
    charge_message(w)
    w.counts[N_ARRIVED] += coflows.left[coflow]
    if w.fabric.local_is_free and end_local_flows(w, coflow):
        return False
    agenda.active[agenda.used[0]] = coflow
    agenda.used[0] += 1
    return True


@compiled
def end_local_flows(w: CoflowWorld, coflow: int) -> bool:
    """End those flows of a coflow that go from a port to itself; return whether it has ended with them."""
    flows, coflows = w.fabric.flows, w.fabric.coflows
    coflow_ended: bool = False
    arrival = coflows.arrival[coflow]
    for flow in range(coflows.first_flow[coflow], coflows.first_flow[coflow + 1]):
        if flows.source[flow] + w.fabric.side == flows.sink[flow] and flows.finish[flow] == NEVER:
            w.counts[N_STARTED] += 1
            w.counts[N_FINISHED] += 1
            coflows.start[coflow] = arrival
            coflow_ended = mark_ended(w.fabric, arrival, flow)
            if w.task_records.size > 0:
                row = w.task_records
                row.node[flow], row.start[flow], row.finish[flow] = flows.source[flow], arrival, arrival
    return coflow_ended


@inlined
def receive_flow_done(w: CoflowWorld, t: int, reporting: int, flow: int) -> None:
    """Receive an agent's message that a flow has ended."""
    enter_interval(w, t, reporting)
    w.counts[N_UPDATES] += 1
    note_heard(w, w.fabric.flows.source[flow])
    charge_updates(w, 1)


@inlined
def has_more_to_send(w: CoflowWorld, flow: int) -> bool:
    """Return whether the FLOW_DONE at hand is of a flow that has more to send than its agent knew, after an update."""
    generations, message = w.updates.flow, w.queue.now
    if generations.size == 0:
        return False
    if message.c[0] != generations.known_generation[flow]:
        return True
    generations.heard[flow] = float_of(message.d[0])
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
    agenda.used[0] = keep
    return keep


@inlined
def note_decision(w: CoflowWorld, coflows: int) -> None:
    """Count a decision about so many coflows, and charge for it."""
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
    send(w, t, w.nodes.size, w.fabric.flows.source[flow], SET_RATE, flow, bits_of(rate), generation, due)


@inlined
def note_sent(w: CoflowWorld, agent: int) -> bool:
    """Note that something is sent to an agent; return whether it is the first time in this decision or refill."""
    now = w.counts[N_DECISIONS] + w.counts[N_REFILLS]
    first = w.intervals.last_sent[agent] != now
    w.intervals.last_sent[agent] = now
    return first


@inlined
def count_agents(w: CoflowWorld, flows: np.ndarray, count: int) -> int:
    """Return how many agents send the first `count` of `flows`."""
    agents: int = 0
    for k in range(count):
        agents += note_sent(w, w.fabric.flows.source[flows[k]])
    return agents


@compiled
def delay_change(fabric: Fabric, flow: int, rate: float, late: int) -> None:
    """Let a flow start, or stop, `late` ns later than the decision assumed."""
    flows, coflows, lines = fabric.flows, fabric.coflows, fabric.lines
    more = flow_speed(fabric, flow) * late
    flows.since[flow] += late
    if rate > 0.0:
        flows.end[flow] += late
        coflows.sent[flows.coflow[flow]] -= more
        return
    more = min(more, flows.left[flow])
    flows.left[flow] -= more
    coflows.sent[flows.coflow[flow]] += more
    lines.bytes[flows.line[flow, 0]] -= more
    lines.bytes[flows.line[flow, 1]] -= more
