"""The compiled loop of a user's own coordinator (`own_coflows`): its events, and the order or rates that it gives.

The loop returns `PYTHON` where the user's class is to be asked; `Host` then calls `begin_decision`, asks the class, and
calls `apply_order` or `apply_rates`.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.agent import agent_event
from actors.fabric.coordinator import (
    NO_AGENT_REPORTS,
    Agenda,
    count_agents,
    end_greedy,
    is_due,
    note_decision,
    receive_flow_done,
    register,
    remove_ended,
    request_decision,
    send_greedy_rates,
    send_rate,
)
from actors.fabric.counters import N_RATES, N_REFILLS
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.greedy import Matching, fill_ports, serve_in_order
from actors.fabric.intervals import charge, note_schedules
from actors.fabric.ports import change_rate
from actors.fabric.priority_queues import next_tick
from actors.fabric.ranking import Ranking
from actors.kernel.compiled import compiled, entry
from actors.kernel.cost import known_cost, take
from actors.kernel.kinds import FLOW_DONE, REGISTER
from actors.kernel.queue import PYTHON, RUNNING


class State(NamedTuple):
    """The state of the coordinator of C coflows with F flows."""

    agenda: Agenda
    ranking: Ranking
    matching: Matching
    groups: np.ndarray  # [C] the order that is made
    rate: np.ndarray  # [F] bytes per ns, as sent; empty where coflows are ordered
    wanted: np.ndarray  # [F] the same, to be sent
    since: np.ndarray  # [F] from when on
    changed: np.ndarray  # [F] scratch
    interval: int  # ns, 0: at events
    # [1] 1: the class is asked at the next decision; 0: its order stands, and ports are given away
    must_ask: np.ndarray


@compiled
def request_schedule(w: CoflowWorld, p: State, t: int) -> None:
    """Request a call of the class, at once or when the interval ends."""
    p.must_ask[0] = 1
    request_decision(w, p.agenda, next_tick(t, p.interval) if p.interval > 0 else t)


@compiled
def on_flow_done(w: CoflowWorld, p: State, t: int, flow: int, ended: int) -> None:
    """Apply the end of a flow."""
    coflows, flows = w.fabric.coflows, w.fabric.flows
    receive_flow_done(w, t, NO_AGENT_REPORTS, flow)
    if p.rate.size > 0 and p.rate[flow] > 0.0:
        settle(w, p, ended, flow)
        change_rate(coflows, ended, flows.coflow[flow], -p.rate[flow])
        p.rate[flow] = p.wanted[flow] = 0.0
    coflow_ended = end_greedy(w, p.ranking, p.matching, flow, ended)
    if coflow_ended or p.rate.size > 0:
        request_schedule(w, p, t)
    elif p.interval == 0:
        request_decision(w, p.agenda, t)


@compiled
def refill(w: CoflowWorld, p: State, t: int) -> None:
    """Give what ended flows have left to the next flows in order."""
    fill_ports(w.fabric, p.ranking, p.matching, t + w.network.delay_ns)
    w.counts[N_REFILLS] += 1
    send_greedy_rates(w, p.matching, t)


@compiled
def settle(w: CoflowWorld, p: State, t: int, flow: int) -> None:
    """Account for what a flow has sent at its last rate."""
    flows, lines = w.fabric.flows, w.fabric.lines
    sent = min(p.rate[flow] * max(t - p.since[flow], 0), flows.left[flow])
    flows.left[flow] -= sent
    lines.bytes[flows.line[flow, 0]] -= sent
    lines.bytes[flows.line[flow, 1]] -= sent
    p.since[flow] = t


@entry
def begin_decision(w: CoflowWorld, p: State) -> int:
    """Begin a decision; return how many coflows are active."""
    p.must_ask[0] = 0
    return remove_ended(w, p.agenda)


@entry
def apply_order(w: CoflowWorld, p: State, t: int, count: int) -> None:
    """Serve the first `count` of `p.groups` in their order."""
    effective = t + w.network.delay_ns
    serve_in_order(w.fabric, p.ranking, p.matching, effective, p.groups, count)
    fill_ports(w.fabric, p.ranking, p.matching, effective)
    note_decision(w, count)
    send_greedy_rates(w, p.matching, t)
    if p.interval > 0 and count > 0:
        request_schedule(w, p, t + 1)


@entry
def apply_rates(w: CoflowWorld, p: State, t: int, count: int) -> None:
    """Send the flows of the active coflows at the rates in `p.wanted`."""
    coflows, effective, changes = w.fabric.coflows, t + w.network.delay_ns, 0
    for i in range(count):
        coflow = p.agenda.active[i]
        for flow in range(coflows.first_flow[coflow], coflows.first_flow[coflow + 1]):
            if p.wanted[flow] != p.rate[flow]:
                p.changed[changes] = flow
                changes += 1
    note_decision(w, count)
    agents = count_agents(w, p.changed, changes)
    charge(w, w.prices.flow * changes + w.prices.schedule * agents)
    effective += known_cost(w)
    for k in range(changes):
        flow = p.changed[k]
        coflow, rate = w.fabric.flows.coflow[flow], p.wanted[flow]
        settle(w, p, effective, flow)
        change_rate(coflows, effective, coflow, rate - p.rate[flow])
        coflows.start[coflow] = min(coflows.start[coflow], effective)
        p.rate[flow] = rate
        send_rate(w, t, flow, rate)
    w.counts[N_RATES] += changes
    note_schedules(w, agents)
    if p.interval > 0 and count > 0:
        request_schedule(w, p, t + 1)


@entry
def advance(w: CoflowWorld, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    message = w.queue.now
    for _ in range(most):
        why = take(w, until)
        if why != RUNNING:
            return why
        t, kind, me = message.time[0], message.kind[0], message.dst[0]
        if me < w.nodes.size:
            agent_event(w, me)
        elif kind == FLOW_DONE:
            on_flow_done(w, p, t, message.a[0], message.b[0])
        elif kind == REGISTER:
            if register(w, p.agenda, t, message.a[0]):
                request_schedule(w, p, t)
        elif is_due(w, p.agenda):
            if p.must_ask[0] == 1:
                return PYTHON
            refill(w, p, t)
    return RUNNING
