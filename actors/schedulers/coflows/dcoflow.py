"""DCoflow (IFIP Networking 2022): an order of coflows with deadlines, and which to admit, port by port. Clairvoyant.

A coflow is rejected where it costs the most: where it takes long, and would be late. The rejected coflow need not be
the late one, so that one wide coflow does not displace many narrow coflows with later deadlines.

1. A coflow registers, with the sizes of its flows and its deadline. At a decision, coflows that have passed their
   deadlines are dropped; the others, also those rejected before, are ordered by what they have left.
2. Places are given from the last to the first (Algorithm 1). The *bottleneck* is the port that the coflows without a
   place need for longest. Of the coflows that use it and are in time there behind all others, the one with the last
   deadline gets the place. If there is none, a coflow is rejected in advance and gets the place. With
   `reject=min-negative` it is the coflow with the least sum, over its ports where it would be late, of its time there
   times (time left - load), equation (16); with `min-congested` the sum is over its ports that have at least
   `congested` of the bottleneck's load, (17); with `min-all` it is the least of these products, (15). `moore-hodgson`
   and `dynamic-programming` apply `min-negative` only to those coflows that the bottleneck, as a single machine, would
   reject so that as few coflows, or as little weight, as possible are late; the latter needs whole weights, and divides
   the sum by the weight.
3. Of the coflows rejected in advance, those that would be late in this order, by the load of their ports up to their
   place, are rejected. They are examined from the front of the order to its back, or with `examine=back` from the back.
4. In the order of the admitted coflows, each flow gets both of its ports if they are free; a running flow is stopped if
   it holds a port that an earlier flow can use. With `serve_rejected` rejected coflows follow. Flows of one coflow are
   in the order of the workload; with `flow_order=ports` running flows come first, and the others by their ports.
5. Agents are sent which coflows are admitted, rejected or dropped. A rejected coflow is considered again at each
   decision until its deadline: at each arrival; with `decide_at=ends` also at each end of a coflow; or every
   `update_period_s`.

A coflow without a deadline is always admitted. O(n N + lines) a decision about n coflows at N ports, and for each
rejection at most the lines of the coflows at one port; in practice few of them, because bounds exclude the others.

**Deviations from the paper.** The paper uses the time left at the decision; here it is the time left when the schedule
takes effect, so that a coflow whose messages take longer than its slack is rejected. The paper does not state the order
in which rejected coflows are examined: the authors' code for coflows without weights begins at the front, their code
with weights at the back (on 52 files of 40 instances 0.002 to 0.019 fewer are in time in the mean, depending on the
rule of rejection, and 0.0475 in one file: `python -m claims.dcoflow --seeds 2 --instances 40`). The
authors' on-line code has `serve_rejected=true`, and times in slots; it examines all coflows, which is the same, as
those that were not rejected in advance are in time by the estimate. The paper has neither `min-all` nor the last two
rules as variants; all are in the authors' code. The paper does not state the order of a coflow's own flows: in the
authors' code it is that of the file. By ports 0.567 in place of 0.561 are in time on CoflowLib's synthetic instances of
10; on the same 52 files the mean difference is below 0.001, and in single files it is from -0.015 to 0.0125. No bound
is known for either order. The order of the workload takes O(flows of the coflows that are served) a decision, and looks
at the next flows of two ports when a flow ends. Of equally long coflows `moore-hodgson` rejects the one with the first
deadline, as the authors' code does.

`wdcoflow` is `dcoflow` with weights: the value by which a coflow is chosen for rejection is divided by its weight.
Deviations from the paper: those of `dcoflow`.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from actors.fabric.deadline_order import (
    Choices,
    DeadlineOrder,
    collect_lines,
    drop_placed,
    is_in_time,
    list_by_deadline,
    make_choices,
    put_rejected_last,
    reject_fewest,
    reject_least_weight,
)
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.greedy import flow_order
from actors.fabric.ports import Fabric, lines_of
from actors.kernel.arrays import fill, largest
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.scheduler import Parameter
from actors.schedulers.coflows.admitting import (
    DECIDE_AT,
    UPDATE_PERIOD,
    Admitting,
    admitting_loop,
    admitting_scheduler,
    begin_decision,
    build_admitting,
    end_decision,
    serve_rejected,
)
from actors.schedulers.coflows.ordered import INTERVAL
from actors.setting import Setting

REJECT_RULES = ("min-negative", "min-congested", "min-all", "moore-hodgson", "dynamic-programming")
MIN_NEGATIVE, MIN_CONGESTED, MIN_ALL, MOORE_HODGSON, DYNAMIC_PROGRAMMING = map(
    np.int64, range(len(REJECT_RULES))
)
_LEAST_WEIGHT = 1e-9

PARAMETERS = (
    Parameter(
        "reject", "min-negative", "choice", "how a coflow is chosen for rejection", choices=REJECT_RULES
    ),
    Parameter(
        "congested",
        0.7,
        "share",
        "least share of the bottleneck's load with which a port counts",
        needs=("reject=min-congested",),
    ),
    Parameter(
        "examine",
        "front",
        "choice",
        "the end of the order at which the examination begins",
        choices=("front", "back"),
    ),
    serve_rejected(False),
    DECIDE_AT,
    UPDATE_PERIOD,
    flow_order("workload"),
    INTERVAL,
)


class Rejection(NamedTuple):
    """How DCoflow rejects."""

    rule: int  # place in REJECT_RULES
    congested: float  # for MIN_CONGESTED ports count that have at least this share of the bottleneck's load
    weighted: bool  # the measure is divided by the coflow's weight
    from_back: bool  # the order is examined from its last place to its first


class State(NamedTuple):
    """The state of the coordinator."""

    admitting: Admitting
    choices: Choices
    how: Rejection


@compiled
def on_decide(w: CoflowWorld, p: State, t: int) -> None:
    """Steps 1 to 5: order and admit coflows, if it is time to."""
    count = begin_decision(w, p.admitting, t)
    if count != NONE:
        admitted = dcoflow(w.fabric, p.admitting.deadline_order, p.choices, p.how, count)
        end_decision(w, p.admitting, t, admitted, count)


@compiled
def dcoflow(fabric: Fabric, deadlines: DeadlineOrder, choices: Choices, how: Rejection, count: int) -> int:
    """Steps 2 and 3: order the first `count` of `s.groups`, admitted ones first; return how many are admitted.

    O(n N + lines + r (m + l)): r rejections among m coflows at a port; l is the lines of the coflows that the bounds do
    not exclude, at most m times the lines of a coflow.
    """
    list_by_deadline(fabric, deadlines, count)
    end = count - 1
    while end >= 0:
        port = largest(deadlines.load)
        line = drop_placed(fabric, deadlines, port)
        if line == NONE:
            if deadlines.load[port] == 0.0:
                break  # the coflows without a place have no bytes
            deadlines.load[port] = 0.0  # only rounding left a load
            continue
        last = fabric.lines.group[line]
        if not is_in_time(deadlines.load[port], deadlines.time_left[last]):
            last = choose_rejected(fabric, deadlines, choices, how, port)
            deadlines.rejected[last] = True
        unload_ports(fabric, deadlines, last)
        deadlines.placed[last] = True
        deadlines.order[end] = last
        end -= 1
    first: int = 0
    for i in range(count):
        if not deadlines.placed[deadlines.groups[i]]:
            deadlines.order[first] = deadlines.groups[i]
            first += 1
    admit_in_time(fabric, deadlines, how.from_back, count)
    return put_rejected_last(deadlines, count)


@inlined
def unload_ports(fabric: Fabric, deadlines: DeadlineOrder, coflow: int) -> None:
    """Subtract what a coflow needs from the loads of its ports."""
    lines = fabric.lines
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            port = lines.port[line]
            deadlines.load[port] = max(deadlines.load[port] - deadlines.need[line], 0.0)


@compiled
def choose_rejected(
    fabric: Fabric, deadlines: DeadlineOrder, choices: Choices, how: Rejection, port: int
) -> int:
    """Return the coflow with the least measure at a port; if several have it, the one that arrived first.

    As others are placed, a coflow gets less late, and its measure (of `min-congested`: a bound of it) only grows. So
    the value that was computed last is a lower bound, and few measures are computed for each place.
    """
    count = collect_lines(fabric, deadlines, port)
    group = fabric.lines.group
    if how.rule == MOORE_HODGSON or how.rule == DYNAMIC_PROGRAMMING:
        count = keep_late(fabric, deadlines, choices, how.rule, count)
    lowest = 0
    for i in range(1, count):
        if deadlines.bound[group[deadlines.lines[i]]] < deadlines.bound[group[deadlines.lines[lowest]]]:
            lowest = i
    chosen = group[deadlines.lines[lowest]]
    least = measure(fabric, deadlines, how, chosen, deadlines.load[port])
    for i in range(count):
        coflow = group[deadlines.lines[i]]
        if i != lowest and deadlines.bound[coflow] <= least:
            own = measure(fabric, deadlines, how, coflow, deadlines.load[port])
            if own < least or (own == least and coflow < chosen):
                chosen, least = coflow, own
    return chosen


@compiled
def keep_late(fabric: Fabric, deadlines: DeadlineOrder, choices: Choices, rule: int, count: int) -> int:
    """Keep those of the first `count` of `s.lines` whose coflows the port alone would reject; return how many."""
    group = fabric.lines.group
    for i in range(count):
        deadlines.late[group[deadlines.lines[i]]] = False
    if rule == MOORE_HODGSON:
        found = reject_fewest(fabric, deadlines, count)
    else:
        found = reject_least_weight(fabric, deadlines, choices, count)
    if found == 0:
        return count  # possible only by rounding
    kept: int = 0
    for i in range(count):
        if deadlines.late[group[deadlines.lines[i]]]:
            deadlines.lines[kept] = deadlines.lines[i]
            kept += 1
    return kept


@compiled
def measure(fabric: Fabric, deadlines: DeadlineOrder, how: Rejection, coflow: int, most: float) -> float:
    """Return the measure of a coflow, and set its bound; `most` is the load of the bottleneck.

    It is how late the coflow is at its ports if it comes last, times its time there (equations 15 to 17).
    """
    lines = fabric.lines
    negative, least, congested = 0.0, np.inf, 0.0
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            if deadlines.need[line] == 0.0:
                continue
            load = deadlines.load[lines.port[line]]
            late = deadlines.need[line] * (deadlines.time_left[coflow] - load)
            negative += min(late, 0.0)
            least = min(least, late)
            if load >= how.congested * most:
                congested += late
    weight = max(fabric.coflows.weight[coflow], _LEAST_WEIGHT) if how.weighted else 1.0
    deadlines.bound[coflow] = (least if how.rule == MIN_ALL else negative) / weight
    return congested / weight if how.rule == MIN_CONGESTED else deadlines.bound[coflow]


@compiled
def admit_in_time(fabric: Fabric, deadlines: DeadlineOrder, from_back: bool, count: int) -> None:
    """Admit coflows rejected in advance that are in time in `s.order`, from its first place on or `from_back`."""
    fill(deadlines.load, 0.0)
    if from_back:
        for i in range(count):
            add_load(fabric, deadlines, deadlines.order[i], 1.0)
    for i in range(count):
        coflow = deadlines.order[count - 1 - i if from_back else i]
        if not from_back:
            add_load(fabric, deadlines, coflow, 1.0)
        if deadlines.rejected[coflow]:
            deadlines.rejected[coflow] = not is_in_time(
                estimate(fabric, deadlines, coflow), deadlines.time_left[coflow]
            )
        if from_back or deadlines.rejected[coflow]:
            add_load(fabric, deadlines, coflow, -1.0)


@compiled
def add_load(fabric: Fabric, deadlines: DeadlineOrder, coflow: int, times: float) -> None:
    """Add `times` what a coflow needs to the loads of its ports."""
    lines = fabric.lines
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            deadlines.load[lines.port[line]] += times * deadlines.need[line]


@compiled
def estimate(fabric: Fabric, deadlines: DeadlineOrder, coflow: int) -> float:
    """Return the largest load of the ports at which a coflow has bytes, ns."""
    lines, longest = fabric.lines, 0.0
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            if deadlines.need[line] > 0.0:
                longest = max(longest, deadlines.load[lines.port[line]])
    return longest


advance = admitting_loop(__name__, State, on_decide)


def build(setting: Setting, weighted: bool) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0.

    Raises:
        InputError: `reject=dynamic-programming` cannot be used with the workload's weights.
    """
    given = setting.parameters
    by_program = given["reject"] == "dynamic-programming"
    how = Rejection(
        rule=REJECT_RULES.index(given["reject"]),
        congested=float(given["congested"]),
        weighted=weighted or by_program,
        from_back=given["examine"] == "back",
    )
    world, admitting = build_admitting(setting)
    return world, State(admitting, make_choices(world.fabric.coflows.weight, by_program), how)


DCOFLOW, WDCOFLOW = (
    admitting_scheduler(
        name=name,
        title=title,
        paper="Luu, Brun, El-Azouzi, De Pellegrini, Prabhu, Richier: DCoflow, IFIP Networking 2022, Algorithm 1, "
        "arXiv 2205.01229",
        parameters=PARAMETERS,
        build=partial(build, weighted=weighted),
        advance=advance,
    )
    for name, title, weighted in (
        ("dcoflow", "coflows with deadlines: rejected where they cost the most", False),
        (
            "wdcoflow",
            "coflows with deadlines and weights: rejected where they cost the most for their weight",
            True,
        ),
    )
)
