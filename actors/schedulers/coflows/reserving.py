"""Coflows with deadlines that reserve bandwidth: what varys-deadline and chronos have in common.

An admitted coflow has of each port what lets it end at its deadline. The two schedulers
differ by which coflows ask first (`stands`), and by how rejected coflows are handled (`rejected`). What reservations
leave goes to the other coflows, and then to single flows in order, as in `ordered`.

Rates are those of MADD: the coordinator decides for the time at which its decision takes effect, and the cost of a
decision is known before the decision (`actors.fabric.madd`). So a reservation holds to the nanosecond,
however long messages and decisions take. The price of a decision includes a schedule for every agent that has flows of
an active coflow to send; verdicts are part of these schedules, and cost nothing more.

With T left until its deadline, each flow of an admitted coflow gets what it has left divided by T, so that all end at
the deadline: MADD with the desired duration T (Varys, SIGCOMM 2014, section 5). That is possible if the coflow needs no
longer than T with the residual bandwidth of its ports. As time goes on, what the coflow has left and its time left
shrink in one proportion (the former faster if the coflow is backfilled), so that all reservations still fit at any
later time.

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
from actors.fabric.agent import TOGETHER, Shrinking
from actors.fabric.coordinator import Agenda, effective_time, register, remove_ended, request_decision
from actors.fabric.fabric_world import NS, CoflowWorld, build_world
from actors.fabric.greedy import Matching, make_matching
from actors.fabric.madd import (
    Madd,
    add_rates,
    backfill,
    begins_decision,
    bottleneck_ns,
    check_costs,
    has_residual,
    receive_backfilled_done,
    receive_line_done,
    reset_residual,
    send_times,
    slowest,
    take_residual,
)
from actors.fabric.messages import DECIDE, FLOW_DONE, LINE_DONE, REGISTER, SEND_REST
from actors.fabric.order import Order, set_order, sort_groups
from actors.fabric.ports import Fabric, lines_of
from actors.initial_arrays import at_start, per
from actors.kernel.arrays import fill
from actors.kernel.compiled import compiled, inlined
from actors.schedulers.coflows.build import coflow_scheduler, coordinator_loops
from actors.schedulers.coflows.learned_and_admitted import admitted_by
from actors.setting import Setting

# The error of the time that a coflow needs, relative and in ns; at most that much of a port may be reserved twice.
_ROUNDING, _ROUNDING_NS = 1e-10, 1e-3
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
    matching: Matching  # without groups: ports are not matched
    groups: np.ndarray = per("coflow")  # coflows in the order in which they ask, and are served
    keys: np.ndarray = per("coflow", 0.0)  # by which `groups` are sorted
    load: np.ndarray = per("port", 0.0)  # scratch


@compiled
def on_arrival(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Register a coflow, with the sizes of its flows and its deadline."""
    if register(w, p.agenda, t, coflow):
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
            drop_greedy(w, a, p.matching, t, coflow, DROPPED)
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
    fabric, order, a = w.fabric, p.order, p.madd
    if begins_decision(w, p.agenda, order, a, t):
        reserved = admit(w, p, t, effective_time(w, t))
        if p.rejected == SHARE:
            share_by_demand(fabric, order, a, p.load, reserved)
        else:
            add_rates(fabric, order, a, reserved, order.used[0])
        backfill(fabric, order, a)
        count_verdicts(w, p.admission)
    send_schedule(w, p, t)


@inlined
def fits(fabric: Fabric, a: Madd, coflow: int, time_left: float, bandwidth: np.ndarray) -> bool:
    """Return whether a coflow can end within `time_left` ns with this bandwidth of each port, [N] bytes per ns."""
    return slowest(fabric, a, coflow, bandwidth) <= time_left * (1.0 + _ROUNDING) + _ROUNDING_NS


@inlined
def reserve(fabric: Fabric, a: Madd, coflow: int, time_left: float) -> None:
    """Let a coflow that has no rate yet end in `time_left` ns, at least 1, out of `residual`."""
    a.need[coflow] = time_left
    take_residual(fabric, a, coflow, time_left)


@compiled
def share_by_demand(fabric: Fabric, order: Order, a: Madd, load: np.ndarray, first: int) -> None:
    """Share the residual bandwidth of each port by bytes left between the coflows of an order from level `first` on.

    A coflow gets of its slowest port the share that its bytes are of the bytes of all these coflows there, and of its
    other ports what lets all its flows end together. A coflow that finds a port full gets nothing.

    Args:
        load: [N] scratch: bytes of these coflows at each port.
    """
    lines = fabric.lines
    fill(load, 0.0)
    for level in range(first, order.used[0]):
        coflow = order.groups[level]
        for side in range(2):
            for line in lines_of(lines, coflow, side):
                load[lines.port[line]] += lines.bytes[line] * a.scale[coflow]
    for level in range(first, order.used[0]):
        a.need[order.groups[level]] = needed_share(fabric, a, load, order.groups[level])
    for level in range(first, order.used[0]):
        if a.need[order.groups[level]] < np.inf:
            take_residual(fabric, a, order.groups[level], a.need[order.groups[level]])


@inlined
def needed_share(fabric: Fabric, a: Madd, load: np.ndarray, coflow: int) -> float:
    """Return in how many ns a coflow ends with its share of the residual bandwidth, at least 1; inf: a port is full."""
    lines, need = fabric.lines, 1.0
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            if lines.left[line] > 0:
                port = lines.port[line]
                if not has_residual(fabric, a, port):
                    return np.inf
                need = max(need, load[port] / a.residual[port])
    return need


@compiled
def send_schedule(w: CoflowWorld, p: State, t: int) -> None:
    """Send the agents new times, then new verdicts, as many as one event may send; further events send the rest."""
    before = p.madd.num_sent[0]
    send_times(w, p.madd, t)
    if p.madd.num_sent[0] == p.madd.changes[0]:
        send_verdicts(w, p.admission, t, p.madd.num_sent[0] - before)


advance, _ = coordinator_loops(
    __name__,
    State,
    {
        REGISTER: on_arrival,
        FLOW_DONE: receive_backfilled_done,
        LINE_DONE: receive_line_done,
        SEND_REST: send_schedule,
        DECIDE: on_decide,
    },
    TOGETHER,
)


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
        madd=at_start(Madd, fabric),
        shrinking=at_start(Shrinking, fabric),
        admission=make_admission(fabric, setting.workload.arrays().deadline_ns),
        matching=make_matching(fabric),
    )


reserving_scheduler = partial(coflow_scheduler, advance=advance, series=admitted_by, uses_deadlines=True)
"""Make a scheduler that reserves: what is left to say is its names, its parameters, and `build`."""
