"""Coflows with deadlines in an order that admits some: what dcoflow, wdcoflow, cs-mha, edf and order-ilp share.

They differ by the order, and by which coflows it admits; the decision of a policy is

    count = begin_decision(w, p, t)
    if count != NONE:
        ...  # put the first `count` of `p.deadline_order.groups` in order, those that are admitted first
        end_decision(w, p, t, admitted, count)

Flows are served in the order with greedy rates: a flow has both of its ports alone, or waits; when a flow ends, its
ports go to the next flows in the order at once.

A decision is about all coflows that are registered, have not ended and are not dropped, also those rejected before. It
uses the bytes that they will have left when the schedule takes effect, and the time from then until their deadlines. Of
the cost of a decision, the price of its coflows is known before; that of rates and verdicts is not. A coflow that has
not ended by its deadline is dropped. A rejected coflow is dropped if no later decision can admit it: if no further
coflow will arrive, and either nothing is served, or decisions are made neither when coflows end nor periodically.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from actors.fabric.admission import (
    ADMITTED,
    DROPPED,
    LATE,
    REJECTED,
    Admission,
    count_verdicts,
    decide_verdict,
    drop_greedy,
    ends_dropped,
    make_admission,
    send_verdicts,
    time_left,
)
from actors.fabric.agent import BY_FLOW
from actors.fabric.coordinator import (
    NO_AGENT_REPORTS,
    Agenda,
    charge,
    effective_time,
    next_tick,
    note_decision,
    note_report,
    register,
    remove_ended,
    wake_coordinator,
)
from actors.fabric.counters import N_REFILLS
from actors.fabric.deadline_order import DeadlineOrder, find_needs, make_deadline_order, most_needed
from actors.fabric.fabric_world import NS, CoflowWorld, build_world
from actors.fabric.greedy import (
    FlowOrder,
    Matching,
    end_greedy,
    make_flow_order,
    make_matching,
    move_group,
    refill_ports,
    send_greedy_rates,
    serve_coflows,
    settle_all,
)
from actors.fabric.messages import DECIDE, FLOW_DONE, REGISTER, SEND_REST
from actors.initial_arrays import at_start, per
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NEVER, NONE
from actors.scheduler import Parameter
from actors.schedulers.coflows.build import coflow_scheduler, coordinator_loops
from actors.schedulers.coflows.learned_and_admitted import admitted_by
from actors.setting import Setting

_DONE_NS = 1.0  # a coflow that needs no more than this when a schedule takes effect ends by then

UPDATE_PERIOD = Parameter(
    "update_period_s", 0.0, "duration", "time between two decisions; 0: at events", low=0, high=86400
)
DECIDE_AT = Parameter(
    "decide_at",
    "arrivals",
    "choice",
    "without a period: decide when coflows arrive, or also when they end",
    choices=("arrivals", "ends"),
)


def serve_rejected(default: bool) -> Parameter:
    """Return the parameter that decides whether rejected coflows are served."""
    return Parameter("serve_rejected", default, "flag", "rejected coflows are served behind those admitted")


class Admitting(NamedTuple):
    """The state of the coordinator of C coflows."""

    serves_rejected: bool  # behind admitted coflows
    admits_all: bool  # there is no admission; the only verdict is that a coflow is late
    drops_expired: bool
    at_ends: bool  # decide when a coflow has ended
    period: int  # ns between decisions, 0: at events
    agenda: Agenda
    matching: Matching
    flow_order: FlowOrder
    deadline_order: DeadlineOrder
    admission: Admission
    # ns, when to make the next decision; until then the last order holds
    decide_at: np.ndarray = per("run", NEVER)
    last_coflow: np.ndarray = per("run", NONE)  # the last registered coflow


@inlined
def request_admission(w: CoflowWorld, p: Admitting, t: int) -> None:
    """Request a decision at t, or at the next multiple of the period."""
    at = next_tick(t, p.period) if p.period > 0 else t
    p.decide_at[0] = min(p.decide_at[0], at)
    wake_coordinator(w, p.agenda, at)


@compiled
def register_coflow(w: CoflowWorld, p: Admitting, t: int, coflow: int) -> None:
    """Register a coflow, with the sizes of its flows."""
    p.last_coflow[0] = coflow
    if register(w, p.agenda, t, coflow):
        request_admission(w, p, t)
        return
    p.admission.verdict[coflow], p.admission.admitted[coflow] = ADMITTED, t  # it takes no bandwidth
    if not more_come(w, p) and p.agenda.used[0] > 0:
        request_admission(w, p, t)  # rejected coflows may have waited for it


@inlined
def more_come(w: CoflowWorld, p: Admitting) -> bool:
    """Return whether coflows are still to be registered."""
    return p.last_coflow[0] + 1 < w.work.size


@compiled
def on_flow_done(w: CoflowWorld, p: Admitting, t: int, flow: int, ended: int) -> None:
    """Apply the end of a flow, which may end its coflow."""
    note_report(w, t, NO_AGENT_REPORTS, w.fabric.flows.source[flow])
    if ends_dropped(w, p.admission, flow, ended):
        return
    if end_greedy(w, p.matching, flow, ended) and p.at_ends:
        request_admission(w, p, t)
    wake_coordinator(w, p.agenda, t)


@compiled
def begin_decision(w: CoflowWorld, p: Admitting, t: int) -> int:
    """Begin a decision: list the coflows that it is about, with what they need and their time left; return how many.

    Return NONE if it is not time for one: then the ports of flows that have ended have gone to the next flows.
    """
    matching, effective = p.matching, t + w.network.delay_ns
    if t >= p.decide_at[0]:
        p.decide_at[0] = NEVER
        note_decision(w, remove_ended(w, p.agenda))
        settle_all(w.fabric, matching, effective)
        return consider(w, p, t)
    w.counts[N_REFILLS] += 1
    refill_ports(w.fabric, matching, p.flow_order, effective)
    send_greedy_rates(w, matching, t)
    if p.decide_at[0] < NEVER:
        wake_coordinator(w, p.agenda, p.decide_at[0])
    return NONE


@compiled
def consider(w: CoflowWorld, p: Admitting, t: int) -> int:
    """Put the coflows to decide about into the order; drop those whose deadlines have passed; return how many."""
    fabric, deadline_order, admission = w.fabric, p.deadline_order, p.admission
    effective = effective_time(w, t)
    count: int = 0
    for i in range(p.agenda.used[0]):
        coflow = p.agenda.active[i]
        need = find_needs(fabric, deadline_order, coflow)
        deadline_order.time_left[coflow] = time_left(admission, coflow, effective)
        if p.drops_expired and deadline_order.time_left[coflow] <= 0.0 and need > _DONE_NS:
            verdict = DROPPED if admission.verdict[coflow] == REJECTED else LATE
            drop_greedy(w, admission, p.matching, t, coflow, verdict)
        else:
            deadline_order.groups[count] = coflow
            count += 1
    return count


@compiled
def end_decision(w: CoflowWorld, p: Admitting, t: int, admitted: int, count: int) -> None:
    """Apply the order in `deadline_order.groups`, whose first `admitted` are admitted; send rates and verdicts."""
    matching, effective = p.matching, t + w.network.delay_ns
    admitted = keep_ended(w, p, admitted, count)
    served = count if p.serves_rejected else admitted
    judge(w, p, t, admitted, served, count)
    serve_coflows(w.fabric, matching, p.flow_order, effective, p.deadline_order.groups, served)
    charge(w, w.prices.schedule * count_verdicts(w, p.admission))
    rates = matching.changes[0]
    send_greedy_rates(w, matching, t)
    send_verdicts(w, p.admission, t, rates)
    if p.period > 0 and served > 0:
        request_admission(w, p, t + 1)


@compiled
def keep_ended(w: CoflowWorld, p: Admitting, admitted: int, count: int) -> int:
    """Admit coflows that were admitted before and end when the schedule takes effect; return how many are admitted.

    Such a coflow needs nothing more, except by rounding; but its deadline may be that time, and then no rule admits it.
    """
    deadline_order = p.deadline_order
    for i in range(admitted, count):
        coflow = deadline_order.groups[i]
        if (
            p.admission.verdict[coflow] == ADMITTED
            and most_needed(w.fabric, deadline_order, coflow) <= _DONE_NS
        ):
            for k in range(i, 0, -1):
                deadline_order.groups[k] = deadline_order.groups[k - 1]
            deadline_order.groups[0] = coflow
            admitted += 1
    return admitted


@compiled
def judge(w: CoflowWorld, p: Admitting, t: int, admitted: int, served: int, count: int) -> None:
    """Set the verdicts on coflows in order; stop those that are not served, or drop those that have no chance."""
    has_chance = more_come(w, p) or (served > 0 and (p.at_ends or p.period > 0))
    for i in range(count):
        coflow = p.deadline_order.groups[i]
        if i < admitted:
            if not p.admits_all:
                decide_verdict(w, p.admission, t, coflow, ADMITTED)
        elif i < served:
            decide_verdict(w, p.admission, t, coflow, REJECTED)
        elif has_chance:
            move_group(w.fabric, p.matching, t + w.network.delay_ns, coflow, NONE)
            decide_verdict(w, p.admission, t, coflow, REJECTED)
        else:
            drop_greedy(w, p.admission, p.matching, t, coflow, DROPPED)


@inlined
def send_other_verdicts(w: CoflowWorld, p: Admitting, t: int) -> None:
    """Send the verdicts for which the events before had no room."""
    send_verdicts(w, p.admission, t, np.int64(0))


def admitting_loop(module: str, state: Any, on_decide: Any) -> Any:
    """Return the loop of a policy; arguments as of `build.coordinator_loops`."""
    table = {
        REGISTER: register_coflow,
        FLOW_DONE: on_flow_done,
        SEND_REST: send_other_verdicts,
        DECIDE: on_decide,
    }
    return coordinator_loops(module, state, table, BY_FLOW)[0]


def build_admitting(
    setting: Setting, *, most_sends: int | None = None, admits_all: bool = False
) -> tuple[CoflowWorld, Admitting]:
    """Return the world and the coordinator's state at time 0.

    Args:
        most_sends: as of `fabric_world.build_world`.
        admits_all: there is no admission.
    """
    given = setting.parameters
    world = build_world(setting, interval_s=given["interval_s"], most_sends=most_sends)
    fabric = world.fabric
    return world, at_start(
        Admitting,
        fabric,
        serves_rejected=given.get("serve_rejected", False),
        admits_all=admits_all,
        drops_expired=given.get("drop_expired", True),
        at_ends=given["decide_at"] == "ends",
        period=round(given["update_period_s"] * NS),
        agenda=at_start(Agenda, fabric),
        matching=make_matching(fabric),
        flow_order=make_flow_order(world, given.get("flow_order", "ports")),
        deadline_order=make_deadline_order(fabric),
        admission=make_admission(fabric, setting.workload.arrays().deadline_ns),
    )


admitting_scheduler = partial(coflow_scheduler, series=admitted_by, uses_deadlines=True)
"""Make a scheduler with admission: what is left to say is its names, its parameters, `build` and its loop."""
