"""Coflows with deadlines that reserve bandwidth: the loop of varys-deadline and chronos.

A coflow that is admitted has of each port what lets it end at its deadline (`actors.fabric.reservations`). They differ
by who may ask first (`stands`), and by what becomes of coflows that are rejected (`rejected`). What reservations leave
goes to the others, and then to single flows in order, as in `ordered`.

Rates are those of MADD: the coordinator decides for the time at which its decision takes effect, and what a decision
costs is known before it is made (`actors.fabric.madd_coordinator`). So a reservation holds to the nanosecond, whatever
messages and decisions take. The price of a decision has a schedule for every agent at which a coflow that it looks at
has flows to send; verdicts are part of these schedules, and cost nothing else.

Only coflows that have never been sent are dropped.
"""

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
    handle_events,
    make_agenda,
    register,
    remove_ended,
    request_decision,
)
from actors.fabric.fabric_world import NS, CoflowWorld, build_world
from actors.fabric.greedy import Matching, make_matching
from actors.fabric.madd import (
    Madd,
    add_rates,
    backfill,
    bottleneck_ns,
    make_madd,
    reset_residual,
)
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
from actors.fabric.service_order import Order, make_order, set_order
from actors.kernel.compiled import compiled, entry, inlined
from actors.schedulers.coflows.learned_and_admitted import Admitted, admitted_by
from actors.schedulers.coflows.ordered import check_costs
from actors.setting import Setting

# What becomes of a coflow that is rejected: it is dropped; it waits until it is admitted or can no longer be in time;
# it is served behind the others; or it has a share of what is left, by its bytes.
DROP, RETRY, SERVE, SHARE = map(np.int64, range(4))
_NO_DEADLINE, _BEHIND = 1e19, 2e19  # keys beyond all times in ns: of coflows that have not reserved


class State(NamedTuple):
    """The state of the coordinator of C coflows at N ports, and `shrinking`, the agents' state."""

    stands: bool  # what is reserved stays, and others ask in order of arrival; else all ask at each decision, by a key
    by_bottleneck: bool  # this key is what a coflow needs alone; else its deadline
    rejected: int
    padding: float  # a coflow is admitted if it needs so much less than the time that it has left: share of its need
    least: int  # and has as much left, ns
    by_arrival: bool  # what reservations leave goes to their coflows in order of arrival; else by `keys`, or deadlines
    agenda: Agenda
    order: Order
    madd: Madd
    shrinking: Shrinking
    admission: Admission
    ranking: Ranking  # of no group: ports are not matched
    matching: Matching
    groups: np.ndarray  # [C] coflows in the order in which they ask, and are served
    keys: np.ndarray  # [C] float64, what they are sorted by
    load: np.ndarray  # [N] scratch
    stale: np.ndarray  # [1] bool: a coflow has arrived since the last decision
    ended: np.ndarray  # [1] flows whose ends were received, and not predicted, since the last decision
    num_sent: np.ndarray  # [1] how many of the last decision's times have been sent
    counted_at: np.ndarray  # [P] scratch


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
    sort_groups(p, count)


@compiled
def judge(w: CoflowWorld, p: State, coflow: int, left: float) -> int:
    """Return the verdict on a coflow that has `left` ns; if it has a deadline and is admitted, it has reserved."""
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
    """Let coflows reserve bandwidth, and put those that are served in order; return how many have reserved."""
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
    remove_ended(w, p.agenda)  # what was dropped
    sort_groups(p, served)
    set_order(p.order, p.groups, served)
    return reserved


@compiled
def on_decide(w: CoflowWorld, p: State, t: int) -> None:
    """Decide on coflows and rates if a coflow has arrived or will have ended; else refill what ended flows had."""
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
    """Send the agents new times, then new verdicts, as many as one event may send; others at once in further events."""
    before = p.num_sent[0]
    send_times(w, p, t)
    if p.num_sent[0] == p.madd.changes[0]:
        send_verdicts(w, p.admission, t, p.num_sent[0] - before)


@entry
def advance(w: CoflowWorld, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    return handle_events(
        w, p, p.shrinking, until, most, on_agent_event=shrinking_event,
        on_flow_done=receive_backfilled_done, on_line_done=receive_line_done, on_arrival=on_arrival,
        on_tell=send_schedule, on_decide=on_decide,
    )  # fmt: skip


def build_reserving(
    setting: Setting,
    rejected: np.int64,
    *,
    stands: bool = True,
    by_bottleneck: bool = False,
    padding: float = 0.0,
    least_s: float = 0.0,
    by_arrival: bool = False,
) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0; arguments as the fields of `State`.

    Raises:
        InputError: what a decision costs is not known before it is made.
    """
    check_costs(setting)
    world = build_world(setting, interval_s=setting.parameters["interval_s"])
    fabric, coflows = world.fabric, world.work.size
    return world, State(
        stands=stands,
        by_bottleneck=by_bottleneck,
        rejected=int(rejected),
        padding=padding,
        least=round(least_s * NS),
        by_arrival=by_arrival,
        agenda=make_agenda(coflows),
        order=make_order(fabric),
        madd=make_madd(fabric),
        shrinking=make_shrinking(fabric),
        admission=make_admission(setting.workload.arrays().deadline_ns),
        ranking=make_ranking(fabric),
        matching=make_matching(fabric),
        groups=np.zeros(coflows, np.int64),
        keys=np.zeros(coflows),
        load=np.zeros(fabric.speed.size),
        stale=np.zeros(1, np.bool_),
        ended=np.zeros(1, np.int64),
        num_sent=np.zeros(1, np.int64),
        counted_at=np.zeros(world.nodes.size, np.int64),
    )


def series(setting: Setting, world: CoflowWorld, state: State) -> Admitted | None:
    """Return which coflows were admitted, and when."""
    return admitted_by(world, state.admission, np.zeros(3))
