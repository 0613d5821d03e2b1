"""Coflows with deadlines that reserve bandwidth: the loop of varys-deadline and chronos.

An admitted coflow has of each port what lets it end at its deadline (`actors.fabric.reservations`). The two schedulers
differ by which coflows ask first (`stands`), and by how rejected coflows are handled (`rejected`). What reservations
leave goes to the other coflows, and then to single flows in order, as in `ordered`.

Rates are those of MADD: the coordinator decides for the time at which its decision takes effect, and the cost of a
decision is known before the decision (`actors.fabric.madd_coordinator`). So a reservation holds to the nanosecond,
however long messages and decisions take. The price of a decision includes a schedule for every agent that has flows of
an active coflow to send; verdicts are part of these schedules, and cost nothing more.

Only coflows that have never been sent are dropped.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from actors.fabric.admission import (
    ADMITTED,
    DROPPED,
    REJECTED,
    Admission,
    count_verdicts,
    decide_verdict,
    drop_greedy,
    make_admission,
    send_verdicts,
    time_left,
)
from actors.fabric.coordinator import (
    Agenda,
    handle_event,
    handle_events,
    register,
    remove_ended,
    request_decision,
)
from actors.fabric.fabric_world import NS, CoflowWorld, build_world
from actors.fabric.greedy import Matching, make_matching
from actors.fabric.initial_arrays import at_start, per
from actors.fabric.madd import Madd, add_rates, backfill, bottleneck_ns, make_madd, reset_residual
from actors.fabric.madd_agent import Shrinking, make_shrinking, shrinking_event
from actors.fabric.madd_coordinator import (
    decide_or_refill,
    effective_time,
    receive_backfilled_done,
    receive_line_done,
    send_times,
)
from actors.fabric.priority_queues import sort_groups
from actors.fabric.ranking import Ranking, make_ranking
from actors.fabric.reservations import fits, reserve, share_by_demand
from actors.fabric.service_order import Order, set_order
from actors.fabric.worlds import COFLOW_WORLDS
from actors.kernel.compiled import compiled, entry, inlined
from actors.scheduler import Scheduler
from actors.schedulers.coflows.learned_and_admitted import Admitted, admitted_by
from actors.schedulers.coflows.ordered import check_costs
from actors.setting import Setting

# A rejected coflow is dropped; or waits until it is admitted or can no longer be in time; or is served behind the
# others; or gets a share of what is left, by its bytes.
REJECTED_ARE = ("drop", "retry", "serve", "share")
DROP, RETRY, SERVE, SHARE = map(np.int64, range(len(REJECTED_ARE)))
_NO_DEADLINE, _BEHIND = 1e19, 2e19  # keys above all times in ns, of coflows that have not reserved


class State(NamedTuple):
    """The state of the coordinator of C coflows at N ports, and `shrinking`, the agents' state."""

    stands: (
        bool  # reservations stay, and others ask in order of arrival; else all ask at each decision, by a key
    )
    by_bottleneck: bool  # this key is the time that a coflow needs alone; else its deadline
    rejected: int  # DROP, RETRY, SERVE or SHARE
    padding: float  # to be admitted, a coflow must have more time left than it needs, by this share of what it needs
    least: int  # and at least this time, ns
    by_arrival: bool  # what reservations leave goes to their coflows in order of arrival; else by `keys`, or deadlines
    agenda: Agenda
    order: Order
    madd: Madd
    shrinking: Shrinking
    admission: Admission
    ranking: Ranking  # without groups: ports are not matched
    matching: Matching
    groups: np.ndarray = per("coflow")  # coflows in the order in which they ask, and are served
    keys: np.ndarray = per("coflow", 0.0)  # by which `groups` are sorted
    load: np.ndarray = per("port", 0.0)  # scratch
    stale: np.ndarray = per("run", False)  # a coflow has arrived since the last decision
    # flows whose ends were received, and not predicted, since the last decision
    ended: np.ndarray = per("run")
    num_sent: np.ndarray = per("run")  # how many of the last decision's times have been sent
    counted_at: np.ndarray = per("port")  # scratch


@compiled
def on_arrival(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Register a coflow, with the sizes of its flows and its deadline."""
    if register(w, p.agenda, t, coflow):
        p.stale[0] = True
        request_decision(w, p.agenda, t)
    else:
        p.admission.verdict[coflow], p.admission.admitted[coflow] = ADMITTED, t  # it takes no bandwidth


@compiled
def put_in_turn(w: CoflowWorld, p: State, count: int) -> None:
    """Put the active coflows into the order in which they ask for bandwidth."""
    a = p.admission
    for i in range(count):
        coflow = p.agenda.active[i]
        p.groups[i] = coflow
        if p.stands:
            p.keys[i] = 0.0 if a.verdict[coflow] == ADMITTED else 1.0
        elif p.by_bottleneck:
            p.keys[i] = bottleneck_ns(w.fabric, p.madd, coflow)
        else:
            p.keys[i] = a.deadline[coflow]
    sort_groups(w.fabric.coflows, p.groups, p.keys, count)


@compiled
def judge(w: CoflowWorld, p: State, coflow: int, left: float) -> int:
    """Return the verdict on a coflow that has `left` ns; a coflow with a deadline reserves if it is admitted."""
    if left == np.inf:
        return ADMITTED
    stays = p.stands and p.admission.verdict[coflow] == ADMITTED
    may = left > 0.0 and left >= p.least
    if stays or (may and fits(w.fabric, p.madd, coflow, left / (1.0 + p.padding), p.madd.residual)):
        reserve(w.fabric, p.madd, coflow, max(left, 1.0))
        return ADMITTED
    if p.rejected == DROP:
        return DROPPED
    can_be = may and fits(w.fabric, p.madd, coflow, left / (1.0 + p.padding), w.fabric.speed)
    if p.rejected == RETRY and not can_be:
        return DROPPED
    return REJECTED


@compiled
def admit(w: CoflowWorld, p: State, t: int, effective: int) -> int:
    """Let coflows reserve bandwidth, and put the served ones in order; return how many have reserved."""
    a = p.admission
    count = remove_ended(w, p.agenda)
    put_in_turn(w, p, count)
    reset_residual(w.fabric, p.order, p.madd)
    served, reserved = 0, 0
    for i in range(count):
        coflow = p.groups[i]
        left = time_left(a, coflow, effective)
        verdict = judge(w, p, coflow, left)
        if verdict == DROPPED:
            drop_greedy(w, a, p.ranking, p.matching, t, coflow, DROPPED)
            continue
        decide_verdict(w, a, t, coflow, verdict)
        if verdict == REJECTED and p.rejected == RETRY:
            continue
        key = np.float64(a.deadline[coflow]) if p.stands else p.keys[i]
        if p.by_arrival:
            key = 0.0
        if left == np.inf:
            key = _NO_DEADLINE
        elif verdict == REJECTED:
            key = _BEHIND
        else:
            reserved += 1
        p.groups[served], p.keys[served] = coflow, key
        served += 1
    remove_ended(w, p.agenda)  # those that were dropped
    sort_groups(w.fabric.coflows, p.groups, p.keys, served)
    set_order(p.order, p.groups, served)
    return reserved


@compiled
def on_decide(w: CoflowWorld, p: State, t: int) -> None:
    """Decide on coflows and rates if a coflow has arrived or will have ended; else refill with what ended flows had."""
    decide_or_refill(w, p, t, decide)
    send_schedule(w, p, t)


@inlined
def decide(w: CoflowWorld, p: State, t: int) -> None:
    """Decide on coflows and rates."""
    fabric, order, a = w.fabric, p.order, p.madd
    reserved = admit(w, p, t, effective_time(w, t))
    if p.rejected == SHARE:
        share_by_demand(fabric, order, a, p.load, reserved)
    else:
        add_rates(fabric, order, a, reserved, order.used[0])
    backfill(fabric, order, a)
    count_verdicts(w, p.admission)


@compiled
def send_schedule(w: CoflowWorld, p: State, t: int) -> None:
    """Send the agents new times, then new verdicts, as many as one event may send; further events send the rest."""
    before = p.num_sent[0]
    send_times(w, p, t)
    if p.num_sent[0] == p.madd.changes[0]:
        send_verdicts(w, p.admission, t, p.num_sent[0] - before)


@inlined
def on_event(w: CoflowWorld, p: State) -> bool:
    """Handle the event at hand; return whether the host must decide."""
    return handle_event(
        w, p, p.shrinking, on_agent_event=shrinking_event,
        on_flow_done=receive_backfilled_done, on_line_done=receive_line_done, on_arrival=on_arrival,
        on_tell=send_schedule, on_decide=on_decide,
    )  # fmt: skip


@entry
def advance(w: CoflowWorld, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    return handle_events(w, p, until, most, on_event)


def build_reserving(setting: Setting, stands: bool) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0.

    Raises:
        InputError: the cost of a decision is not known before the decision.
    """
    check_costs(setting)
    given = setting.parameters
    world = build_world(setting, interval_s=given["interval_s"])
    fabric = world.fabric
    return world, at_start(
        State,
        fabric,
        stands=stands,
        by_bottleneck=given.get("order") == "bottleneck",
        rejected=REJECTED_ARE.index(given.get("rejected", "share")),
        padding=given.get("padding", 0.0),
        least=round(given.get("least_s", 0.0) * NS),
        by_arrival=given.get("backfill") == "arrival",
        agenda=at_start(Agenda, fabric),
        order=at_start(Order, fabric),
        madd=make_madd(fabric),
        shrinking=make_shrinking(fabric),
        admission=make_admission(fabric, setting.workload.arrays().deadline_ns),
        ranking=make_ranking(fabric),
        matching=make_matching(fabric),
    )


def series(setting: Setting, world: CoflowWorld, state: State) -> Admitted | None:
    """Return which coflows were admitted, and when."""
    return admitted_by(world, state.admission, np.zeros(3))


reserving_scheduler = partial(
    Scheduler, advance=advance, worlds=COFLOW_WORLDS, series=series, uses_deadlines=True
)
"""Make a scheduler of this loop: what is left to say is its names, its parameters, and `build`."""
