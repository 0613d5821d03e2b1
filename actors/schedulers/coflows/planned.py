"""Coflows with deadlines at rates that are planned ahead: the loop of cds-lp and cds-lpa.

At a decision the loop returns `PYTHON`; the host admits coflows, plans the rate of each of their flows in each slot of
time, and calls `end_decision`. At the end of a slot the loop returns `PYTHON` again, and the host calls `change_slot`.
Between these calls rates stay: the bandwidth of a flow that ends is unused until the next call.

Decisions, verdicts and dropped coflows are those of `admitting`.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.admission import (
    Admission,
    count_verdicts,
    ends_dropped,
    is_dropped,
    send_verdicts,
)
from actors.fabric.agent import agent_event
from actors.fabric.coordinator import (
    NO_AGENT_REPORTS,
    Agenda,
    end_greedy,
    handle_event,
    handle_events,
    note_decision,
    note_report,
    remove_ended,
    request_decision,
)
from actors.fabric.counters import N_REFILLS
from actors.fabric.deadline_order import DeadlineOrder
from actors.fabric.fabric_world import CoflowWorld, build_world
from actors.fabric.flow_rates import FlowRates, end_rate, send_wanted, settle
from actors.fabric.greedy import Matching
from actors.fabric.initial_arrays import at_start, per
from actors.fabric.intervals import charge
from actors.fabric.madd_coordinator import effective_time
from actors.fabric.ports import flows_of, take_bytes
from actors.fabric.ranking import Ranking
from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.cost import previous_cost
from actors.kernel.queue import NEVER, NONE
from actors.schedulers.coflows.admitting import (
    consider,
    deciding_state,
    judge,
    keep_ended,
    register_coflow,
    request_admission,
    send_other_verdicts,
)
from actors.setting import Setting


class State(NamedTuple):
    """The state of the coordinator of C coflows with F flows; the first fields are those of `admitting.State`."""

    admits_all: bool
    drops_expired: bool
    at_ends: bool  # decide when a coflow has ended
    period: int  # ns between decisions, 0: at events
    agenda: Agenda
    ranking: Ranking  # without groups: ports are not matched
    matching: Matching
    deadline_order: DeadlineOrder
    admission: Admission
    rates: FlowRates
    decide_at: np.ndarray = per("run", NEVER)  # ns, when to make the next decision; before that slots end
    last_coflow: np.ndarray = per("run", NONE)  # the last registered coflow
    solved: np.ndarray = per("run", 0.0, 3)  # as `admitting.State` has it
    before: np.ndarray = per("flow", 0.0)  # the rates before those that were sent last
    num_changed: np.ndarray = per("run")  # how many rates were sent last; 0 after the next event
    # ns, when the host is asked for the rates of the next slot; NEVER: there is no next slot
    slot_end: np.ndarray = per("run", NEVER)


@compiled
def on_flow_done(w: CoflowWorld, p: State, t: int, flow: int, ended: int) -> None:
    """Apply the end of a flow, which may end its coflow."""
    account_for_cost(w, p)
    note_report(w, t, NO_AGENT_REPORTS, w.fabric.flows.source[flow])
    if ends_dropped(w, p.admission, flow, ended):
        return
    end_rate(w, p.rates, ended, flow)
    if end_greedy(w, p.ranking, p.matching, flow, ended) and p.at_ends:
        request_admission(w, p, t)


@compiled
def send_rates(w: CoflowWorld, p: State, t: int) -> int:
    """Send the rates in `wanted`; return how many are new."""
    for i in range(p.rates.rate.size):
        p.before[i] = p.rates.rate[i]
    p.num_changed[0] = send_wanted(w, p.agenda, p.rates, t, p.agenda.used[0])
    return p.num_changed[0]


@compiled
def account_for_cost(w: CoflowWorld, p: State) -> None:
    """Account for a cost that was not known when rates were sent: the rates have begun later by this cost.

    It is called when the coordinator handles its next message, of any kind.
    """
    spent = previous_cost(w, np.int64(0))
    for k in range(p.num_changed[0]):
        flow = p.rates.changed[k]
        take_bytes(w.fabric, flow, (p.before[flow] - p.rates.rate[flow]) * spent)
    p.num_changed[0] = 0


@entry
def begin_decision(w: CoflowWorld, p: State, t: int) -> int:
    """Account for what has been sent, and put the coflows to decide about into the order; return how many."""
    note_decision(w, remove_ended(w, p.agenda))
    effective = effective_time(w, t)
    for i in range(p.agenda.used[0]):
        coflow = p.agenda.active[i]
        for flow in flows_of(w.fabric.coflows, coflow):
            settle(w, p.rates, effective, flow)
    p.slot_end[0] = NEVER
    count = consider(w, p, t)
    for i in range(p.agenda.used[0]):
        if is_dropped(p.admission, p.agenda.active[i]):
            stop_flows(w, p, p.agenda.active[i])
    return count


@inlined
def stop_flows(w: CoflowWorld, p: State, coflow: int) -> None:
    """Set the wanted rates of a coflow's flows to 0."""
    for flow in flows_of(w.fabric.coflows, coflow):
        p.rates.wanted[flow] = 0.0


@entry
def end_decision(w: CoflowWorld, p: State, t: int, admitted: int, count: int) -> None:
    """Admit the first `admitted` coflows of the order; send the rates in `wanted`, and verdicts."""
    admitted = keep_ended(w, p, admitted, count)
    for i in range(admitted, count):
        stop_flows(w, p, p.deadline_order.groups[i])
    rates = send_rates(w, p, t)
    judge(w, p, t, admitted, admitted, count)
    charge(w, w.prices.schedule * count_verdicts(w, p.admission))
    send_verdicts(w, p.admission, t, rates)
    if p.period > 0 and admitted > 0:
        request_admission(w, p, t + 1)
    await_slot_end(w, p)


@entry
def change_slot(w: CoflowWorld, p: State, t: int) -> None:
    """Send the rates in `wanted`, which are those of the slot that begins."""
    w.counts[N_REFILLS] += 1
    send_rates(w, p, t)
    await_slot_end(w, p)


@inlined
def await_slot_end(w: CoflowWorld, p: State) -> None:
    """Request the rates of the next slot, or a decision, whichever comes first."""
    at = min(p.slot_end[0], p.decide_at[0])
    if at < NEVER:
        request_decision(w, p.agenda, at)


@inlined
def on_arrival(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Register a coflow."""
    account_for_cost(w, p)
    register_coflow(w, p, t, coflow)


@inlined
def on_tell(w: CoflowWorld, p: State, t: int) -> None:
    """Send further verdicts."""
    account_for_cost(w, p)
    send_other_verdicts(w, p, t)


@inlined
def on_decide(w: CoflowWorld, p: State, t: int) -> bool:
    """Let the host decide."""
    account_for_cost(w, p)
    return True


@inlined
def on_event(w: CoflowWorld, p: State) -> bool:
    """Handle the event at hand; return whether the host must decide."""
    return handle_event(
        w, p, w.sending, on_agent_event=agent_event,
        on_flow_done=on_flow_done, on_arrival=on_arrival, on_tell=on_tell, on_decide=on_decide,
    )  # fmt: skip


@entry
def advance(w: CoflowWorld, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    return handle_events(w, p, until, most, on_event)


def build_planned(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    given = setting.parameters
    world = build_world(setting, interval_s=given["interval_s"], most_sends=2 * setting.num_tasks)
    return world, at_start(
        State,
        world.fabric,
        admits_all=False,
        drops_expired=True,
        **deciding_state(setting, world.fabric),
        rates=at_start(FlowRates, world.fabric),
    )
