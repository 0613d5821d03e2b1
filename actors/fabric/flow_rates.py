"""Rates of single flows, as a coordinator has sent them: what the flows have sent at these, and how they change."""

from typing import NamedTuple

import numpy as np

from actors.fabric.coordinator import Agenda, charge, count_agents, note_schedules, send_rate
from actors.fabric.counters import N_RATES
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.ports import change_rate, flows_of, take_bytes
from actors.initial_arrays import list_per, per
from actors.kernel.compiled import compiled, inlined
from actors.kernel.cost import known_cost


class FlowRates(NamedTuple):
    """The rates of flows; at first none is sent."""

    rate: np.ndarray = per("flow", 0.0)  # bytes per ns, as sent
    wanted: np.ndarray = per("flow", 0.0)  # bytes per ns, to be sent
    since: np.ndarray = per("flow")  # ns, since when `rate` is in force
    # The first `num_changed`: whose rate is to be sent, or was sent last
    changed: np.ndarray = list_per("flow")
    num_changed: np.ndarray = per("run")


@compiled
def settle(w: CoflowWorld, rates: FlowRates, t: int, flow: int) -> None:
    """Account for what a flow has sent at its last rate."""
    sent = min(rates.rate[flow] * max(t - rates.since[flow], 0), w.fabric.flows.left[flow])
    take_bytes(w.fabric, flow, sent)
    rates.since[flow] = t


@inlined
def end_rate(w: CoflowWorld, rates: FlowRates, ended: int, flow: int) -> None:
    """End the rate of a flow that has one, when the flow has ended."""
    if rates.rate[flow] > 0.0:
        settle(w, rates, ended, flow)
        change_rate(w.fabric.coflows, ended, w.fabric.flows.coflow[flow], -rates.rate[flow])
        rates.rate[flow] = rates.wanted[flow] = 0.0


@compiled
def list_changes(w: CoflowWorld, agenda: Agenda, rates: FlowRates, count: int) -> None:
    """List the flows of the first `count` active coflows whose rate in `wanted` is new; charge for and count them."""
    coflows, changes = w.fabric.coflows, 0
    for i in range(count):
        coflow = agenda.active[i]
        for flow in flows_of(coflows, coflow):
            if rates.wanted[flow] != rates.rate[flow]:
                rates.changed[changes] = flow
                changes += 1
    agents = count_agents(w, rates.changed, changes)
    charge(w, w.prices.flow * changes + w.prices.schedule * agents)
    w.counts[N_RATES] += changes
    note_schedules(w, agents)
    rates.num_changed[0] = changes


@compiled
def send_listed(w: CoflowWorld, rates: FlowRates, t: int, first: int, end: int) -> None:
    """Send the new rates of listed flows, from place `first` to before `end`; all hold from one time on."""
    coflows, effective = w.fabric.coflows, t + w.network.delay_ns + known_cost(w)
    for k in range(first, end):
        flow = rates.changed[k]
        coflow, rate = w.fabric.flows.coflow[flow], rates.wanted[flow]
        settle(w, rates, effective, flow)
        change_rate(coflows, effective, coflow, rate - rates.rate[flow])
        coflows.start[coflow] = min(coflows.start[coflow], effective)
        rates.rate[flow] = rate
        send_rate(w, t, flow, rate)
