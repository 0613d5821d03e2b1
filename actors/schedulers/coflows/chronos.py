"""Chronos (ICC 2016): in order of priority, coflows reserve what they need to end in time; the others share the rest.

No coflow starves: a coflow that cannot be in time is served with what is left, also after its deadline.

1. A coflow registers, with the sizes of its flows and its deadline. When a coflow has arrived or ended, all are put in
   order: by their deadlines, or with `order=bottleneck` by how long they need at their slowest port if alone.
2. In this order a coflow reserves, if its ports have it, the least bandwidth that lets each of its flows end at its
   deadline: what the flow has left divided by the time left. Then it is admitted; otherwise it is rejected, until the
   next decision. An admitted coflow may lose its reservation to coflows that come later and are before it in the order.
3. What is left of each port is shared by the coflows that have not reserved, in proportion to the bytes that they have
   left there. All flows of a coflow end together, at the rates that its smallest share allows.
4. What is left then goes to single flows, in order and first to those of coflows that have reserved, each as much as
   both of its ports have. When such a flow ends, what it had goes to flows that wait at its ports.

A coflow without a deadline reserves nothing, shares in step 3, and counts as admitted. O(n log n + lines) a decision
about n coflows. Times, agents and refills are those of `sebf` with MADD's rates: reservations begin when the schedule
takes effect, and a coflow whose messages, or decisions, take longer than its slack is not admitted.

**Deviations from the paper.** The paper's text was not at hand: steps 2 and 3 follow section V of DCoflow's paper. That
section does not state the order of priority, so that `order` offers two; nor whether a coflow's flows end together in
step 3; nor who gets bandwidth that no share can use (step 4). Verdicts show which coflows have reserved; the paper has
no admission.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.admission import ADMITTED, REJECTED, decide_verdict, time_left
from actors.fabric.coordinator import effective_time
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.madd import Madd, bottleneck_ns, has_residual, take_residual
from actors.fabric.order import Order, sort_groups
from actors.fabric.ports import Fabric, lines_of
from actors.initial_arrays import at_start, per
from actors.kernel.arrays import fill
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.scheduler import Parameter
from actors.schedulers.coflows.ordered import INTERVAL
from actors.schedulers.coflows.reserving import (
    BEHIND,
    NO_DEADLINE,
    Reserving,
    begin_decision,
    build_reserving,
    end_decision,
    reserve_if_fits,
    reserving_loop,
    reserving_scheduler,
    serve_by_keys,
)
from actors.setting import Setting

ORDER = Parameter(
    "order",
    "deadline",
    "choice",
    "who reserves first: the earliest deadline, or the smallest effective bottleneck",
    choices=("deadline", "bottleneck"),
)


class State(NamedTuple):
    """The state of the coordinator at N ports."""

    reserving: Reserving
    by_bottleneck: bool  # the smallest effective bottleneck goes first, and not the earliest deadline
    load: np.ndarray = per("port", 0.0)  # scratch


@compiled
def on_decide(w: CoflowWorld, p: State, t: int) -> None:
    """Steps 1 to 4, if a coflow has arrived or will have ended."""
    reserving = p.reserving
    count = begin_decision(w, reserving, t)
    if count == NONE:
        return
    for i in range(count):
        coflow = reserving.groups[i]
        reserving.keys[i] = (
            bottleneck_ns(w.fabric, reserving.madd, coflow)
            if p.by_bottleneck
            else reserving.admission.deadline[coflow]
        )
    sort_groups(w.fabric.coflows, reserving.groups, reserving.keys, count)
    reserved = reserve_in_turn(w, reserving, t, count)
    serve_by_keys(w, reserving, count)
    share_by_demand(w.fabric, reserving.order, reserving.madd, p.load, reserved)
    end_decision(w, reserving, t)


@compiled
def reserve_in_turn(w: CoflowWorld, reserving: Reserving, t: int, count: int) -> int:
    """Step 2: let the first `count` of `groups` reserve what they need, if they can; return how many have reserved."""
    effective, reserved = effective_time(w, t), 0
    for i in range(count):
        coflow = reserving.groups[i]
        left, verdict = time_left(reserving.admission, coflow, effective), ADMITTED
        if left == np.inf:
            reserving.keys[i] = NO_DEADLINE
        elif left > 0.0 and reserve_if_fits(w.fabric, reserving.madd, coflow, left, left):
            reserved += 1
        else:
            verdict, reserving.keys[i] = REJECTED, BEHIND
        decide_verdict(w, reserving.admission, t, coflow, verdict)
    return reserved


@compiled
def share_by_demand(fabric: Fabric, order: Order, madd: Madd, load: np.ndarray, first: int) -> None:
    """Step 3: share what is left of each port by bytes left between the coflows of an order from level `first` on.

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
                load[lines.port[line]] += lines.bytes[line] * madd.scale[coflow]
    for level in range(first, order.used[0]):
        madd.need[order.groups[level]] = needed_share(fabric, madd, load, order.groups[level])
    for level in range(first, order.used[0]):
        if madd.need[order.groups[level]] < np.inf:
            take_residual(fabric, madd, order.groups[level], madd.need[order.groups[level]])


@inlined
def needed_share(fabric: Fabric, madd: Madd, load: np.ndarray, coflow: int) -> float:
    """Return in how many ns a coflow ends with its share of the residual bandwidth, at least 1; inf: a port is full."""
    lines, need = fabric.lines, 1.0
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            if lines.left[line] > 0:
                port = lines.port[line]
                if not has_residual(fabric, madd, port):
                    return np.inf
                need = max(need, load[port] / madd.residual[port])
    return need


advance = reserving_loop(__name__, State, on_decide)


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0.

    Raises:
        InputError: the cost of a decision is not known before the decision.
    """
    world, reserving = build_reserving(setting)
    by_bottleneck = setting.parameters["order"] == "bottleneck"
    return world, at_start(State, world.fabric, reserving=reserving, by_bottleneck=by_bottleneck)


CHRONOS = reserving_scheduler(
    name="chronos",
    title="coflows in order reserve what lets them end in time; the others share the rest by demand",
    paper="Ma, Jiang, Li, Li: Chronos: Meeting coflow deadlines in data center networks, ICC 2016",
    parameters=(ORDER, INTERVAL),
    build=build,
    advance=advance,
)
