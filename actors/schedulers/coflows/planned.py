"""Coflows with deadlines at rates that are planned ahead: the loop of cds-lp and cds-lpa.

At a decision the loop returns `PYTHON`; the host admits coflows and plans the rate of each of their flows, slot after
slot of time, and calls `end_decision`. At the end of a slot the loop returns `PYTHON` again, and the host calls
`change_slot`. Between them rates stay: a flow that ends leaves its bandwidth unused until then.

Decisions, verdicts and dropped coflows are those of `admitting`.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.admission import (
    Admission,
    charge_verdicts,
    ends_dropped,
    is_dropped,
    make_admission,
    receive_verdict,
    send_verdicts,
)
from actors.fabric.agent import agent_event
from actors.fabric.coordinator import (
    NO_AGENT_REPORTS,
    Agenda,
    end_greedy,
    is_due,
    make_agenda,
    note_decision,
    receive_flow_done,
    remove_ended,
    request_decision,
)
from actors.fabric.counters import N_REFILLS
from actors.fabric.deadline_order import DeadlineOrder, make_deadline_order
from actors.fabric.fabric_world import NS, CoflowWorld, build_world
from actors.fabric.flow_rates import end_rate, send_wanted, settle
from actors.fabric.greedy import Matching, make_matching
from actors.fabric.madd_coordinator import effective_time
from actors.fabric.messages import DECIDE, FLOW_DONE, REGISTER, VERDICT
from actors.fabric.ranking import Ranking, make_ranking
from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.cost import previous_cost, take
from actors.kernel.queue import NONE, PYTHON, RUNNING
from actors.kernel.world import NEVER
from actors.schedulers.coflows.admitting import consider, judge, keep_ended, on_arrival, request_admission
from actors.schedulers.coflows.learned_and_admitted import Admitted, admitted_by
from actors.setting import Setting


class State(NamedTuple):
    """The state of the coordinator of C coflows with F flows; the first fields are those of `admitting.State`."""

    admits_all: bool
    drops_expired: bool
    at_ends: bool  # decide when a coflow has ended
    period: int  # ns between decisions, 0: at events
    agenda: Agenda
    ranking: Ranking  # of no group: ports are not matched
    matching: Matching
    deadline_order: DeadlineOrder
    admission: Admission
    decide_at: np.ndarray  # [1] ns, when the next decision is wanted; before it slots end
    last_coflow: np.ndarray  # [1] the last one that was registered, NONE before
    solved: np.ndarray  # [3] as that of `admitting.State`
    rate: np.ndarray  # [F] bytes per ns, as sent
    wanted: np.ndarray  # [F] the same, to be sent
    since: np.ndarray  # [F] from when on
    changed: np.ndarray  # [F] scratch
    before: np.ndarray  # [F] the rates before those that were sent last
    num_changed: np.ndarray  # [1] how many of these are in `changed`, until the next event
    slot_end: (
        np.ndarray
    )  # [1] ns, when the host is asked for the rates of the next slot; NEVER: there is none


@compiled
def on_flow_done(w: CoflowWorld, p: State, t: int, flow: int, ended: int) -> None:
    """Apply the end of a flow, which may end its coflow."""
    receive_flow_done(w, t, NO_AGENT_REPORTS, flow)
    if ends_dropped(w, p.admission, flow, ended):
        return
    end_rate(w, p, ended, flow)
    if end_greedy(w, p.ranking, p.matching, flow, ended) and p.at_ends:
        request_admission(w, p, t)


@compiled
def send_rates(w: CoflowWorld, p: State, t: int) -> int:
    """Send the rates in `wanted`; return how many are new."""
    for i in range(p.rate.size):
        p.before[i] = p.rate[i]
    p.num_changed[0] = send_wanted(w, p, t, p.agenda.used[0])
    return p.num_changed[0]


@compiled
def account_for_cost(w: CoflowWorld, p: State) -> None:
    """Account for a cost that was not known when rates were sent: they have begun so much later."""
    flows, lines, spent = w.fabric.flows, w.fabric.lines, previous_cost(w, np.int64(0))
    for k in range(p.num_changed[0]):
        flow = p.changed[k]
        unsent = (p.rate[flow] - p.before[flow]) * spent
        flows.left[flow] += unsent
        lines.bytes[flows.line[flow, 0]] += unsent
        lines.bytes[flows.line[flow, 1]] += unsent
    p.num_changed[0] = 0


@entry
def begin_decision(w: CoflowWorld, p: State, t: int) -> int:
    """Account for what has been sent, and put the coflows to decide about into the order; return how many."""
    note_decision(w, remove_ended(w, p.agenda))
    effective = effective_time(w, t)
    for i in range(p.agenda.used[0]):
        coflow = p.agenda.active[i]
        for flow in range(w.fabric.coflows.first_flow[coflow], w.fabric.coflows.first_flow[coflow + 1]):
            settle(w, p, effective, flow)
    p.slot_end[0] = NEVER
    count = consider(w, p, t)
    for i in range(p.agenda.used[0]):
        if is_dropped(p.admission, p.agenda.active[i]):
            stop_flows(w, p, p.agenda.active[i])
    return count


@inlined
def stop_flows(w: CoflowWorld, p: State, coflow: int) -> None:
    """Want no rates for the flows of a coflow."""
    for flow in range(w.fabric.coflows.first_flow[coflow], w.fabric.coflows.first_flow[coflow + 1]):
        p.wanted[flow] = 0.0


@entry
def end_decision(w: CoflowWorld, p: State, t: int, due: int, admitted: int, count: int) -> None:
    """Admit the first `admitted` coflows of the order; send the rates in `wanted`, and verdicts."""
    admitted = keep_ended(w, p, admitted, count)
    for i in range(admitted, count):
        stop_flows(w, p, p.deadline_order.groups[i])
    rates = send_rates(w, p, t)
    judge(w, p, t, admitted, admitted, count)
    charge_verdicts(w, p.admission)
    send_verdicts(w, p.admission, t, due, rates)
    if p.period > 0 and admitted > 0:
        request_admission(w, p, t + 1)
    await_slot_end(w, p)


@entry
def change_slot(w: CoflowWorld, p: State, t: int) -> None:
    """Send the rates in `wanted`, those of the slot that begins."""
    w.counts[N_REFILLS] += 1
    send_rates(w, p, t)
    await_slot_end(w, p)


@inlined
def await_slot_end(w: CoflowWorld, p: State) -> None:
    """Request what is next: the rates of the next slot, or a decision."""
    at = min(p.slot_end[0], p.decide_at[0])
    if at < NEVER:
        request_decision(w, p.agenda, at)


@entry
def advance(w: CoflowWorld, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    message = w.queue.now
    for _ in range(most):
        why = take(w, until)
        if why != RUNNING:
            return why
        t, kind, a = message.time[0], message.kind[0], message.a[0]
        if message.dst[0] < w.nodes.size:
            if kind == VERDICT:
                receive_verdict(w, a, message.b[0])
            else:
                agent_event(w, message.dst[0])
            continue
        if p.num_changed[0] > 0:
            account_for_cost(w, p)
        if kind == FLOW_DONE:
            on_flow_done(w, p, t, a, message.b[0])
        elif kind == REGISTER:
            on_arrival(w, p, t, a)
        elif kind != DECIDE:
            send_verdicts(w, p.admission, t, a, np.int64(0))
        elif is_due(w, p.agenda):
            return PYTHON
    return RUNNING


def build_planned(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    given = setting.parameters
    world = build_world(setting, interval_s=given["interval_s"], most_sends=2 * setting.num_tasks)
    fabric, coflows = world.fabric, world.work.size
    flows = fabric.flows.size.size
    return world, State(
        admits_all=False,
        drops_expired=True,
        at_ends=given["decide_at"] == "ends",
        period=round(given["update_period_s"] * NS),
        agenda=make_agenda(coflows),
        ranking=make_ranking(fabric),
        matching=make_matching(fabric),
        deadline_order=make_deadline_order(fabric),
        admission=make_admission(setting.workload.arrays().deadline_ns),
        decide_at=np.array([NEVER]),
        last_coflow=np.array([NONE]),
        solved=np.zeros(3),
        rate=np.zeros(flows),
        wanted=np.zeros(flows),
        since=np.zeros(flows, np.int64),
        changed=np.zeros(flows, np.int64),
        before=np.zeros(flows),
        num_changed=np.zeros(1, np.int64),
        slot_end=np.array([NEVER]),
    )


def series(setting: Setting, world: CoflowWorld, state: State) -> Admitted | None:
    """Return which coflows were admitted, and when."""
    return admitted_by(world, state.admission, state.solved)
