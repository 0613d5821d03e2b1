"""Coflows with deadlines in an order that admits some of them: the loop of dcoflow, wdcoflow, cs-mha, edf, order-ilp.

They differ by the order, and by which coflows it admits (`rule`). Flows are served in the order with greedy rates: a
flow has both of its ports alone, or waits; when a flow ends, its ports go to the next flows in the order at once.

A decision is about all coflows that are registered, have not ended and are not dropped, also those rejected before. It
uses the bytes that they will have left when the schedule takes effect, and the time from then until their deadlines. Of
the cost of a decision, the price of its coflows is known before; that of rates and verdicts is not. A coflow that has
not ended by its deadline is dropped. A rejected coflow is dropped if no later decision can admit it: if no further
coflow will arrive, and either nothing is served, or decisions are made neither when coflows end nor periodically.

`p`, where its type is `Any`, is a state with the fields that `State` has in common with that of `planned`.
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
from actors.fabric.agent import agent_event
from actors.fabric.coordinator import (
    NO_AGENT_REPORTS,
    Agenda,
    end_greedy,
    handle_event,
    handle_events,
    note_decision,
    note_report,
    register,
    remove_ended,
    request_decision,
    send_greedy_rates,
)
from actors.fabric.counters import N_REFILLS
from actors.fabric.dcoflow import DYNAMIC_PROGRAMMING, MIN_NEGATIVE, Rejection, dcoflow
from actors.fabric.deadline_order import (
    DeadlineOrder,
    find_needs,
    make_deadline_order,
    most_needed,
    sort_by_deadline,
)
from actors.fabric.fabric_world import NS, CoflowWorld, build_world
from actors.fabric.flow_order import FlowOrder, make_flow_order, refill_ports, serve_coflows
from actors.fabric.greedy import Matching, make_matching, move_group, settle_all
from actors.fabric.initial_arrays import at_start, per
from actors.fabric.intervals import charge
from actors.fabric.late_jobs import Choices, cs_mha, make_choices
from actors.fabric.madd_coordinator import effective_time
from actors.fabric.ports import Fabric
from actors.fabric.priority_queues import next_tick
from actors.fabric.ranking import Ranking, make_ranking
from actors.fabric.worlds import COFLOW_WORLDS
from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.queue import NEVER, NONE
from actors.scheduler import Parameter, Scheduler
from actors.schedulers.coflows.learned_and_admitted import Admitted, admitted_by
from actors.setting import Setting

BY_DCOFLOW, BY_CS_MHA, BY_DEADLINE, BY_PROGRAM = map(np.int64, range(4))
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


class State(NamedTuple):
    """The state of the coordinator of C coflows."""

    rule: int
    how: Rejection  # of BY_DCOFLOW
    serves_rejected: bool  # behind admitted coflows
    admits_all: bool  # there is no admission; the only verdict is that a coflow is late
    drops_expired: bool
    at_ends: bool  # decide when a coflow has ended
    period: int  # ns between decisions, 0: at events
    agenda: Agenda
    ranking: Ranking
    matching: Matching
    flow_order: FlowOrder
    deadline_order: DeadlineOrder
    choices: Choices
    admission: Admission
    # ns, when to make the next decision; until then the last order holds
    decide_at: np.ndarray = per("run", NEVER)
    last_coflow: np.ndarray = per("run", NONE)  # the last registered coflow
    # of programs: how many, how many of them the time limit ended, and the largest gap
    solved: np.ndarray = per("run", 0.0, 3)


@inlined
def request_admission(w: CoflowWorld, p: Any, t: int) -> None:
    """Request a decision at t, or at the next multiple of the period."""
    at = next_tick(t, p.period) if p.period > 0 else t
    p.decide_at[0] = min(p.decide_at[0], at)
    request_decision(w, p.agenda, at)


@compiled
def register_coflow(w: CoflowWorld, p: Any, t: int, coflow: int) -> None:
    """Register a coflow, with the sizes of its flows."""
    p.last_coflow[0] = coflow
    if register(w, p.agenda, t, coflow):
        request_admission(w, p, t)
        return
    p.admission.verdict[coflow], p.admission.admitted[coflow] = ADMITTED, t  # it takes no bandwidth
    if not more_come(w, p) and p.agenda.used[0] > 0:
        request_admission(w, p, t)  # rejected coflows may have waited for it


@inlined
def more_come(w: CoflowWorld, p: Any) -> bool:
    """Return whether coflows are still to be registered."""
    return p.last_coflow[0] + 1 < w.work.size


@compiled
def on_flow_done(w: CoflowWorld, p: State, t: int, flow: int, ended: int) -> None:
    """Apply the end of a flow, which may end its coflow."""
    note_report(w, t, NO_AGENT_REPORTS, w.fabric.flows.source[flow])
    if ends_dropped(w, p.admission, flow, ended):
        return
    if end_greedy(w, p.ranking, p.matching, flow, ended) and p.at_ends:
        request_admission(w, p, t)
    request_decision(w, p.agenda, t)


@compiled
def on_decide(w: CoflowWorld, p: State, t: int) -> bool:
    """Decide, if it is time to; else refill the ports of flows that have ended.

    Return whether the host must decide, by a program.
    """
    if t >= p.decide_at[0]:
        p.decide_at[0] = NEVER
        if p.rule == BY_PROGRAM:
            return True
        count = begin_decision(w, p, t)
        end_decision(w, p, t, put_in_order(w, p, count), count)
        return False
    w.counts[N_REFILLS] += 1
    refill_ports(w.fabric, p.ranking, p.matching, p.flow_order, t + w.network.delay_ns)
    send_greedy_rates(w, p.matching, t)
    if p.decide_at[0] < NEVER:
        request_decision(w, p.agenda, p.decide_at[0])
    return False


@compiled
def begin_decision(w: CoflowWorld, p: State, t: int) -> int:
    """Put the coflows to decide about into the order, with what they need and their time left; return how many."""
    note_decision(w, remove_ended(w, p.agenda))
    settle_all(w.fabric, p.matching, t + w.network.delay_ns)
    return consider(w, p, t)


@compiled
def end_decision(w: CoflowWorld, p: State, t: int, admitted: int, count: int) -> None:
    """Apply the order in `deadline_order.groups`, whose first `admitted` are admitted; send rates and verdicts."""
    m, effective = p.matching, t + w.network.delay_ns
    admitted = keep_ended(w, p, admitted, count)
    served = count if p.serves_rejected else admitted
    judge(w, p, t, admitted, served, count)
    serve_coflows(w.fabric, p.ranking, m, p.flow_order, effective, p.deadline_order.groups, served)
    charge(w, w.prices.schedule * count_verdicts(w, p.admission))
    rates = m.changes[0]
    send_greedy_rates(w, m, t)
    send_verdicts(w, p.admission, t, rates)
    if p.period > 0 and served > 0:
        request_admission(w, p, t + 1)


@compiled
def consider(w: CoflowWorld, p: Any, t: int) -> int:
    """Put the coflows to decide about into the order; drop those whose deadlines have passed; return how many."""
    fabric, s, a = w.fabric, p.deadline_order, p.admission
    effective = effective_time(w, t)
    count: int = 0
    for i in range(p.agenda.used[0]):
        coflow = p.agenda.active[i]
        need = find_needs(fabric, s, coflow)
        s.time_left[coflow] = time_left(a, coflow, effective)
        if p.drops_expired and s.time_left[coflow] <= 0.0 and need > _DONE_NS:
            verdict = DROPPED if a.verdict[coflow] == REJECTED else LATE
            drop_greedy(w, a, p.ranking, p.matching, t, coflow, verdict)
        else:
            s.groups[count] = coflow
            count += 1
    return count


@compiled
def put_in_order(w: CoflowWorld, p: State, count: int) -> int:
    """Order the first `count` of `deadline_order.groups`, admitted ones first; return how many are admitted."""
    if p.rule == BY_DCOFLOW:
        return dcoflow(w.fabric, p.deadline_order, p.choices, p.how, count)
    if p.rule == BY_CS_MHA:
        return cs_mha(w.fabric, p.deadline_order, count)
    sort_by_deadline(w.fabric, p.deadline_order, count)
    return count


@compiled
def keep_ended(w: CoflowWorld, p: Any, admitted: int, count: int) -> int:
    """Admit coflows that were admitted before and end when the schedule takes effect; return how many are admitted.

    Such a coflow needs nothing more, except by rounding; but its deadline may be that time, and then no rule admits it.
    """
    s = p.deadline_order
    for i in range(admitted, count):
        coflow = s.groups[i]
        if p.admission.verdict[coflow] == ADMITTED and most_needed(w.fabric, s, coflow) <= _DONE_NS:
            for k in range(i, 0, -1):
                s.groups[k] = s.groups[k - 1]
            s.groups[0] = coflow
            admitted += 1
    return admitted


@compiled
def judge(w: CoflowWorld, p: Any, t: int, admitted: int, served: int, count: int) -> None:
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
            move_group(w.fabric, p.ranking, p.matching, t + w.network.delay_ns, coflow, NONE)
            decide_verdict(w, p.admission, t, coflow, REJECTED)
        else:
            drop_greedy(w, p.admission, p.ranking, p.matching, t, coflow, DROPPED)


@inlined
def send_other_verdicts(w: CoflowWorld, p: Any, t: int) -> None:
    """Send the verdicts for which the events before had no room."""
    send_verdicts(w, p.admission, t, np.int64(0))


@inlined
def on_event(w: CoflowWorld, p: State) -> bool:
    """Handle the event at hand; return whether the host must decide."""
    return handle_event(
        w, p, w.sending, on_agent_event=agent_event,
        on_flow_done=on_flow_done, on_arrival=register_coflow, on_tell=send_other_verdicts, on_decide=on_decide,
    )  # fmt: skip


@entry
def advance(w: CoflowWorld, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    return handle_events(w, p, until, most, on_event)


NO_REJECTION = Rejection(int(MIN_NEGATIVE), congested=1.0, weighted=False, from_back=False)


def build_admitting(
    setting: Setting, rule: np.int64, how: Rejection = NO_REJECTION
) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0; arguments as the fields of `State`.

    Raises:
        InputError: the dynamic program cannot be used with the workload's weights.
    """
    given = setting.parameters
    world = build_world(setting, interval_s=given["interval_s"])
    return world, at_start(
        State,
        world.fabric,
        rule=int(rule),
        how=how,
        serves_rejected=given.get("serve_rejected", False),
        admits_all=rule == BY_DEADLINE,
        drops_expired=given.get("drop_expired", True),
        flow_order=make_flow_order(world, given["flow_order"]),
        choices=make_choices(world.fabric.coflows.weight, how.rule == DYNAMIC_PROGRAMMING),
        **deciding_state(setting, world.fabric),
    )


def deciding_state(setting: Setting, fabric: Fabric) -> dict[str, Any]:
    """Return fields of a state at time 0 that follow from the setting alone, for `State` and that of `planned`."""
    return {
        "at_ends": setting.parameters["decide_at"] == "ends",
        "period": round(setting.parameters["update_period_s"] * NS),
        "agenda": at_start(Agenda, fabric),
        "ranking": make_ranking(fabric),
        "matching": make_matching(fabric),
        "deadline_order": make_deadline_order(fabric),
        "admission": make_admission(fabric, setting.workload.arrays().deadline_ns),
    }


def series(setting: Setting, world: CoflowWorld, state: Any) -> Admitted | None:
    """Return which coflows were admitted, and when."""
    return admitted_by(world, state.admission, state.solved)


admitting_scheduler = partial(
    Scheduler, advance=advance, worlds=COFLOW_WORLDS, series=series, uses_deadlines=True
)
"""Make a scheduler of this loop: what is left to say is its names, its parameters, and `build`."""
