"""Rates of single flows, as a coordinator has sent them: what the flows have sent by them, and how they change."""

from typing import Protocol

import numpy as np

from actors.fabric.coordinator import Agenda, count_agents, send_rate
from actors.fabric.counters import N_RATES
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.intervals import charge, note_schedules
from actors.fabric.ports import change_rate
from actors.kernel.compiled import compiled, inlined
from actors.kernel.cost import known_cost


class HasRates(Protocol):
    """The part of a coordinator's state that functions about rates need, for F flows."""

    @property
    def agenda(self) -> Agenda:
        """The active coflows."""

    @property
    def rate(self) -> np.ndarray:
        """[F] bytes per ns, as sent."""

    @property
    def wanted(self) -> np.ndarray:
        """[F] the same, to be sent."""

    @property
    def since(self) -> np.ndarray:
        """[F] ns, from when on."""

    @property
    def changed(self) -> np.ndarray:
        """[F] scratch."""


@compiled
def settle(w: CoflowWorld, p: HasRates, t: int, flow: int) -> None:
    """Account for what a flow has sent at its last rate."""
    flows, lines = w.fabric.flows, w.fabric.lines
    sent = min(p.rate[flow] * max(t - p.since[flow], 0), flows.left[flow])
    flows.left[flow] -= sent
    lines.bytes[flows.line[flow, 0]] -= sent
    lines.bytes[flows.line[flow, 1]] -= sent
    p.since[flow] = t


@inlined
def end_rate(w: CoflowWorld, p: HasRates, ended: int, flow: int) -> None:
    """End the rate of a flow that has one, when the flow has ended."""
    if p.rate.size > 0 and p.rate[flow] > 0.0:
        settle(w, p, ended, flow)
        change_rate(w.fabric.coflows, ended, w.fabric.flows.coflow[flow], -p.rate[flow])
        p.rate[flow] = p.wanted[flow] = 0.0


@compiled
def send_wanted(w: CoflowWorld, p: HasRates, t: int, count: int) -> int:
    """Send the flows of the first `count` active coflows at the rates in `wanted`; return how many rates are new."""
    coflows, changes = w.fabric.coflows, 0
    for i in range(count):
        coflow = p.agenda.active[i]
        for flow in range(coflows.first_flow[coflow], coflows.first_flow[coflow + 1]):
            if p.wanted[flow] != p.rate[flow]:
                p.changed[changes] = flow
                changes += 1
    agents = count_agents(w, p.changed, changes)
    charge(w, w.prices.flow * changes + w.prices.schedule * agents)
    effective = t + w.network.delay_ns + known_cost(w)
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
    return changes
