"""Coflows in one order, made at their arrivals and ends: what fifo, scf, ncf, lcf, sebf and sincronia have in common.

A policy's file has the order; its decision is

    count = begin_decision(w, p, t)
    if count != NONE:
        ...  # put the first `count` of `p.groups`, the active coflows, in order
        end_decision(w, p, t, count)

They may differ by the rates in that order (`by_madd`):

- *madd*: all flows of a coflow end together, at the rates that its slowest port allows; what is left goes to single
  flows in order (`actors.fabric.madd`), except with sebf-deadline. When such a flow ends, what it had goes to flows
  that wait at its ports.
- *greedy*: a flow has both of its ports alone, or waits (`actors.fabric.greedy`). When a flow ends, its ports go to the
  next flows in order.
"""

from typing import Any, NamedTuple

import numpy as np

from actors.fabric.agent import BY_FLOW, TOGETHER, Shrinking, cut_flow, cut_shrinking_flow
from actors.fabric.coordinator import (
    NO_AGENT_REPORTS,
    Agenda,
    note_decision,
    register,
    remove_ended,
    request_decision,
    wake_coordinator,
)
from actors.fabric.counters import N_REFILLS
from actors.fabric.fabric_world import CoflowWorld, build_world
from actors.fabric.greedy import (
    COFLOW_ENDED,
    UNCHANGED,
    FlowOrder,
    Matching,
    apply_update,
    make_flow_order,
    make_matching,
    receive_end,
    refill_ports,
    send_greedy_rates,
    serve_coflows,
    settle_all,
)
from actors.fabric.madd import (
    Madd,
    begins_decision,
    check_costs,
    decide,
    receive_backfilled_done,
    receive_cut,
    receive_line_done,
    send_times,
)
from actors.fabric.messages import DECIDE, FLOW_CUT, FLOW_DONE, LINE_DONE, REGISTER, SEND_REST, UPDATE
from actors.fabric.order import Order, set_order, sort_groups
from actors.fabric.waves import are_together
from actors.initial_arrays import at_start, list_per, per
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.scheduler import Parameter
from actors.schedulers.coflows.build import coordinator_loops
from actors.setting import Setting

INTERVAL = Parameter(
    "interval_s", 0.008, "duration", "interval by which work is counted", low=1e-6, high=3600
)
RATES = Parameter(
    "rates",
    "madd",
    "choice",
    "a coflow's flows end together and what is left is backfilled, or each flow has its ports alone",
    choices=("madd", "greedy"),
)


class Ordered(NamedTuple):
    """The state of the coordinator of C coflows, and `shrinking`, the agents' state."""

    by_madd: bool
    backfills: bool  # of MADD: what is left goes to single flows
    reorders_at_ends: bool  # of greedy rates: the order is also recomputed when a coflow has ended
    agenda: Agenda
    order: Order
    matching: Matching  # of greedy rates
    flow_order: FlowOrder  # of greedy rates
    madd: Madd  # of MADD
    shrinking: Shrinking
    groups: np.ndarray = list_per("coflow")  # the order that is being made
    keys: np.ndarray = per("coflow", 0.0)  # by which `groups` are sorted


@compiled
def on_arrival(w: CoflowWorld, p: Ordered, t: int, coflow: int) -> None:
    """Register a coflow, with the sizes of its flows."""
    if register(w, p.agenda, t, coflow):
        request_decision(w, p.agenda, t)


@compiled
def on_flow_done(w: CoflowWorld, p: Ordered, t: int, flow: int, ended: int) -> None:
    """Apply the end of a single flow, which may end its coflow."""
    if p.by_madd:
        receive_backfilled_done(w, p.agenda, p.madd, t, flow)
        return
    change = receive_end(w, p.matching, t, NO_AGENT_REPORTS, flow, ended)
    if change == COFLOW_ENDED and p.reorders_at_ends:
        request_decision(w, p.agenda, t)
    elif change != UNCHANGED:
        wake_coordinator(w, p.agenda, t)


@compiled
def on_update(w: CoflowWorld, p: Ordered, t: int, update: int) -> None:
    """Apply an update of a coflow."""
    if apply_update(w, p.matching, t, update) != UNCHANGED:
        request_decision(w, p.agenda, t)


@compiled
def begin_decision(w: CoflowWorld, p: Ordered, t: int) -> int:
    """Begin a decision: list the active coflows, as they will be when it takes effect; return how many there are.

    Return NONE if the order stands: then what ended flows leave has gone to the next flows in it.
    """
    effective = t + w.network.delay_ns
    if p.by_madd:
        if not begins_decision(w, p.agenda, p.order, p.madd, t):
            send_times(w, p.madd, t)
            return NONE
        count = remove_ended(w, p.agenda)
    elif p.agenda.stale[0]:
        p.agenda.stale[0] = False
        count = remove_ended(w, p.agenda)
        note_decision(w, count)
        settle_all(w.fabric, p.matching, effective)
    else:
        w.counts[N_REFILLS] += 1
        refill_ports(w.fabric, p.matching, p.flow_order, effective)
        send_greedy_rates(w, p.matching, t)
        return NONE
    for i in range(count):
        p.groups[i] = p.agenda.active[i]
    return count


@inlined
def put_waves_side_by_side(w: CoflowWorld, p: Ordered, count: int) -> None:
    """Order coflows by their shuffles, if they are waves of shuffles."""
    if are_together(w.waves):
        for i in range(count):
            p.keys[i] = w.waves.shuffle[p.groups[i]]
        sort_groups(w.fabric.coflows, p.groups, p.keys, count)


@compiled
def end_decision(w: CoflowWorld, p: Ordered, t: int, count: int) -> None:
    """Serve coflows in the order of `p.groups`, and send what has changed."""
    if p.by_madd:
        set_order(p.order, p.groups, count)
        decide(w.fabric, p.order, p.madd, p.backfills)
        send_times(w, p.madd, t)
    else:
        serve_coflows(w.fabric, p.matching, p.flow_order, t + w.network.delay_ns, p.groups, count)
        send_greedy_rates(w, p.matching, t)


@compiled
def cut_any(w: CoflowWorld, p: Ordered, t: int, flow: int) -> float:
    """End a flow before its last byte under either kind of rates; return what it had left, bytes."""
    return cut_shrinking_flow(w, p.shrinking, t, flow) if p.by_madd else cut_flow(w, t, flow)


def ordered_loops(module: str, state: Any, on_decide: Any, **handlers: Any) -> tuple[Any, Any]:
    """Return the loops of a policy, as `build.coordinator_loops`; `handlers` go in place of those of this file."""
    table = {
        FLOW_DONE: on_flow_done,
        FLOW_CUT: receive_cut,
        LINE_DONE: receive_line_done,
        REGISTER: handlers.get("on_arrival", on_arrival),
        UPDATE: handlers.get("on_update", on_update),
        SEND_REST: send_times,
        DECIDE: on_decide,
    }
    return coordinator_loops(module, state, table, BY_FLOW | TOGETHER, cut_any)


def build_ordered(
    setting: Setting, rates: str = "madd", backfills: bool = True
) -> tuple[CoflowWorld, Ordered]:
    """Return the world and the coordinator's state at time 0.

    Args:
        rates: "madd" or "greedy", of a scheduler without the parameter.
        backfills: with MADD's rates, what is left goes to single flows; otherwise it stays unused.

    Raises:
        InputError: the cost of a decision is not known before the decision, as MADD needs.
    """
    given = setting.parameters
    by_madd = given.get("rates", rates) == "madd"
    if by_madd:
        check_costs(setting)
    world = build_world(setting, interval_s=given["interval_s"])
    fabric = world.fabric
    return world, at_start(
        Ordered,
        fabric,
        by_madd=by_madd,
        backfills=backfills,
        reorders_at_ends=given.get("reorder", "ends") == "ends",
        agenda=at_start(Agenda, fabric),
        order=at_start(Order, fabric),
        matching=make_matching(fabric),
        flow_order=make_flow_order(world, given.get("flow_order", "ports")),
        madd=at_start(Madd, fabric),
        shrinking=at_start(Shrinking, fabric),
    )
