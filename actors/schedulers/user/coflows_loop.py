"""The compiled loop of a user's own coordinator (`coflows.py`): its events, and the order or rates that it gives.

The loop returns `PYTHON` where the user's class is to be asked; `Host` then calls `begin_decision`, asks the class, and
calls `apply_order` or `apply_rates`. Rates may be more messages than one event may send: the loop goes on with the
others before it takes the next event.
"""

from typing import NamedTuple

import numpy as np

from actors.conditions import NS
from actors.fabric.agent import BY_FLOW, cut_flow
from actors.fabric.coordinator import (
    AT_EVENTS,
    NO_AGENT_REPORTS,
    SPARE,
    Agenda,
    note_decision,
    note_report,
    register,
    remove_ended,
    request_decision,
    wake_coordinator,
)
from actors.fabric.counters import N_REFILLS
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.flow_rates import FlowRates, end_rate, list_changes, send_listed
from actors.fabric.greedy import Matching, end_greedy, fill_ports, send_greedy_rates, serve_in_order
from actors.fabric.messages import DECIDE, FLOW_DONE, REGISTER
from actors.fabric.ports import flows_of
from actors.fabric.waves import sent_together, sum_waves
from actors.initial_arrays import list_per, per
from actors.kernel.compiled import compiled, entry
from actors.kernel.queue import NONE, lacks_room
from actors.schedulers.coflows.build import coordinator_loops


class State(NamedTuple):
    """The state of the coordinator of C coflows."""

    agenda: Agenda
    matching: Matching
    rates: FlowRates  # of flows that the class gives rates
    gives_rates: bool  # and not an order
    groups: np.ndarray = list_per("coflow")  # the order that is made
    whole: np.ndarray = list_per("coflow")  # [C, 3] of the active coflows: number, width, flows that are left
    real: np.ndarray = list_per("coflow")  # [C, 3] of these: arrival (s), weight, bytes sent as estimated
    place: np.ndarray = list_per("coflow")  # scratch: the last place in an order at which a coflow stands
    num_sent: np.ndarray = per("run")  # how many of the new rates of the last decision have been sent


@compiled
def on_flow_done(w: CoflowWorld, p: State, t: int, flow: int, ended: int) -> None:
    """Apply the end of a flow."""
    note_report(w, t, NO_AGENT_REPORTS, w.fabric.flows.source[flow])
    end_rate(w, p.rates, ended, flow)
    coflow_ended = end_greedy(w, p.matching, flow, ended)
    if coflow_ended or p.gives_rates:
        request_decision(w, p.agenda, t)
    elif p.agenda.interval == AT_EVENTS:
        wake_coordinator(w, p.agenda, t)


@compiled
def on_arrival(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Register a coflow."""
    if register(w, p.agenda, t, coflow):
        request_decision(w, p.agenda, t)


@compiled
def on_decide(w: CoflowWorld, p: State, t: int) -> bool:
    """Give what ended flows have left to the next flows in order, or return that the class is to be asked."""
    if p.agenda.stale[0]:
        return True
    fill_ports(w.fabric, p.matching, t + w.network.delay_ns)
    w.counts[N_REFILLS] += 1
    send_greedy_rates(w, p.matching, t)
    return False


@entry
def begin_decision(w: CoflowWorld, p: State, t: int) -> int:
    """Begin a decision: describe the active coflows in `p.whole` and `p.real`; return how many there are."""
    p.agenda.stale[0] = False
    count = remove_ended(w, p.agenda)
    coflows = w.fabric.coflows
    reported = t - w.network.delay_ns
    sum_waves(w, p.agenda.active, count, reported)
    for i in range(count):
        coflow = p.agenda.active[i]
        p.whole[i, 0] = coflows.place[coflow]
        p.whole[i, 1] = len(flows_of(coflows, coflow))
        p.whole[i, 2] = coflows.left[coflow]
        p.real[i, 0] = coflows.arrival[coflow] / NS
        p.real[i, 1] = coflows.weight[coflow]
        p.real[i, 2] = max(sent_together(w, reported, coflow), 0.0)
    return count


@entry
def apply_order(w: CoflowWorld, p: State, t: int, order: np.ndarray, count: int) -> bool:
    """Serve the active coflows in an order of their places, [count]; do nothing and return False if it is not one."""
    for i in range(count):
        p.place[i] = NONE
    for i in range(count):
        if order[i] < 0 or order[i] >= count or p.place[order[i]] != NONE:
            return False
        p.place[order[i]] = i
        p.groups[i] = p.agenda.active[order[i]]
    effective = t + w.network.delay_ns
    serve_in_order(w.fabric, p.matching, effective, p.groups, count)
    fill_ports(w.fabric, p.matching, effective)
    note_decision(w, count)
    send_greedy_rates(w, p.matching, t)
    if p.agenda.interval != AT_EVENTS and count > 0:
        request_decision(w, p.agenda, t + 1)
    return True


@entry
def apply_rates(w: CoflowWorld, p: State, t: int, count: int) -> None:
    """Send the flows of the active coflows at the rates in `p.rates.wanted`."""
    note_decision(w, count)
    list_changes(w, p.agenda, p.rates, count)
    p.num_sent[0] = 0
    send_some(w, p, t)
    if p.agenda.interval != AT_EVENTS and count > 0:
        request_decision(w, p.agenda, t + 1)


@compiled
def send_some(w: CoflowWorld, p: State, t: int) -> None:
    """Send new rates that have not been sent, as many as one event may send messages."""
    first = p.num_sent[0]
    p.num_sent[0] = min(p.rates.num_changed[0], first + w.queue.room - SPARE)
    send_listed(w, p.rates, t, first, p.num_sent[0])


@compiled
def lacks_room_for_rates(w: CoflowWorld, p: State) -> bool:
    """Send the rates of the last decision, before the next event; return whether the queue must grow for the rest."""
    while p.num_sent[0] < p.rates.num_changed[0]:
        if lacks_room(w.queue):
            return True
        send_some(w, p, w.queue.now.time[0])
    return False


advance, advance_transfers = coordinator_loops(
    __name__,
    State,
    {REGISTER: on_arrival, FLOW_DONE: on_flow_done, DECIDE: on_decide},
    BY_FLOW,
    cut_flow,
    grows_if=(lacks_room_for_rates,),
)
