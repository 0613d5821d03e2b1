"""Coflows with deadlines that reserve bandwidth: what varys-deadline and chronos have in common.

An admitted coflow has of each port what lets it end at its deadline. What reservations leave goes to the other coflows,
and then to single flows in order, as in `ordered`. The decision of a policy is

    count = begin_decision(w, p, t)
    if count != NONE:
        ...  # let the first `count` of `p.groups`, the active coflows, reserve in turn (`reserve_if_fits`)
        serve_by_keys(w, p, served)
        ...  # give the coflows that have not reserved rates out of what is left
        end_decision(w, p, t)

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
from typing import Any, NamedTuple

import numpy as np

from actors.fabric.admission import ADMITTED, Admission, count_verdicts, make_admission, send_verdicts
from actors.fabric.agent import TOGETHER, Shrinking
from actors.fabric.coordinator import Agenda, register, remove_ended, request_decision
from actors.fabric.fabric_world import CoflowWorld, build_world
from actors.fabric.greedy import Matching, make_matching
from actors.fabric.madd import (
    Madd,
    backfill,
    begins_decision,
    check_costs,
    receive_backfilled_done,
    receive_line_done,
    reset_residual,
    send_times,
    slowest,
    take_residual,
)
from actors.fabric.messages import DECIDE, FLOW_DONE, LINE_DONE, REGISTER, SEND_REST
from actors.fabric.order import Order, set_order, sort_groups
from actors.fabric.ports import Fabric
from actors.initial_arrays import at_start, per
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.schedulers.coflows.build import coflow_scheduler, coordinator_loops
from actors.schedulers.coflows.learned_and_admitted import admitted_by
from actors.setting import Setting

# The error of the time that a coflow needs, relative and in ns; at most that much of a port may be reserved twice.
_ROUNDING, _ROUNDING_NS = 1e-10, 1e-3
NO_DEADLINE, BEHIND = 1e19, 2e19  # keys above all times in ns, of coflows that have not reserved


class Reserving(NamedTuple):
    """The state of the coordinator of C coflows at N ports, and `shrinking`, the agents' state."""

    agenda: Agenda
    order: Order
    madd: Madd
    shrinking: Shrinking
    admission: Admission
    matching: Matching  # without groups: ports are not matched
    groups: np.ndarray = per("coflow")  # coflows in the order in which they ask, and are served
    keys: np.ndarray = per("coflow", 0.0)  # by which `groups` are sorted


@compiled
def on_arrival(w: CoflowWorld, p: Reserving, t: int, coflow: int) -> None:
    """Register a coflow, with the sizes of its flows and its deadline."""
    if register(w, p.agenda, t, coflow):
        request_decision(w, p.agenda, t)
    else:
        p.admission.verdict[coflow], p.admission.admitted[coflow] = ADMITTED, t  # it takes no bandwidth


@compiled
def begin_decision(w: CoflowWorld, p: Reserving, t: int) -> int:
    """Begin a decision if a coflow has arrived or will have ended: list the active coflows, and return how many.

    Return NONE if it is not time for one: then what ended flows had has gone to other flows.
    """
    if not begins_decision(w, p.agenda, p.order, p.madd, t):
        send_schedule(w, p, t)
        return NONE
    count = remove_ended(w, p.agenda)
    for i in range(count):
        p.groups[i] = p.agenda.active[i]
    reset_residual(w.fabric, p.order, p.madd)
    return count


@inlined
def fits(fabric: Fabric, madd: Madd, coflow: int, time_left: float, bandwidth: np.ndarray) -> bool:
    """Return whether a coflow can end within `time_left` ns with this bandwidth of each port, [N] bytes per ns."""
    return slowest(fabric, madd, coflow, bandwidth) <= time_left * (1.0 + _ROUNDING) + _ROUNDING_NS


@inlined
def reserve(fabric: Fabric, madd: Madd, coflow: int, time_left: float) -> None:
    """Let a coflow that has no rate yet end in `time_left` ns, at least 1, out of `residual`."""
    madd.need[coflow] = time_left
    take_residual(fabric, madd, coflow, time_left)


@inlined
def reserve_if_fits(fabric: Fabric, madd: Madd, coflow: int, time_left: float, least: float) -> bool:
    """Let a coflow end in `time_left` ns if it can end within `least` ns; return whether it has reserved."""
    if not fits(fabric, madd, coflow, least, madd.residual):
        return False
    reserve(fabric, madd, coflow, max(time_left, 1.0))
    return True


@compiled
def serve_by_keys(w: CoflowWorld, p: Reserving, served: int) -> None:
    """Serve the first `served` of `groups` in order of their keys."""
    remove_ended(w, p.agenda)  # those that were dropped
    sort_groups(w.fabric.coflows, p.groups, p.keys, served)
    set_order(p.order, p.groups, served)


@compiled
def end_decision(w: CoflowWorld, p: Reserving, t: int) -> None:
    """Give what is left to single flows, and send times and verdicts."""
    backfill(w.fabric, p.order, p.madd)
    count_verdicts(w, p.admission)
    send_schedule(w, p, t)


@compiled
def send_schedule(w: CoflowWorld, p: Reserving, t: int) -> None:
    """Send the agents new times, then new verdicts, as many as one event may send; further events send the rest."""
    before = p.madd.num_sent[0]
    send_times(w, p.madd, t)
    if p.madd.num_sent[0] == p.madd.changes[0]:
        send_verdicts(w, p.admission, t, p.madd.num_sent[0] - before)


def reserving_loop(module: str, state: Any, on_decide: Any) -> Any:
    """Return the loop of a policy; arguments as of `build.coordinator_loops`."""
    table = {
        REGISTER: on_arrival,
        FLOW_DONE: receive_backfilled_done,
        LINE_DONE: receive_line_done,
        SEND_REST: send_schedule,
        DECIDE: on_decide,
    }
    return coordinator_loops(module, state, table, TOGETHER)[0]


def build_reserving(setting: Setting) -> tuple[CoflowWorld, Reserving]:
    """Return the world and the coordinator's state at time 0.

    Raises:
        InputError: the cost of a decision is not known before the decision.
    """
    check_costs(setting)
    world = build_world(setting, interval_s=setting.parameters["interval_s"])
    fabric = world.fabric
    return world, at_start(
        Reserving,
        fabric,
        agenda=at_start(Agenda, fabric),
        order=at_start(Order, fabric),
        madd=at_start(Madd, fabric),
        shrinking=at_start(Shrinking, fabric),
        admission=make_admission(fabric, setting.workload.arrays().deadline_ns),
        matching=make_matching(fabric),
    )


reserving_scheduler = partial(coflow_scheduler, series=admitted_by, uses_deadlines=True)
"""Make a scheduler that reserves: what is left to say is its names, its parameters, `build` and its loop."""
