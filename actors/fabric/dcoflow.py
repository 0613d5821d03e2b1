"""DCoflow's order of coflows with deadlines, and which of them it admits (Q.-T. Luu et al., IFIP Networking 2022).

Places are given from the last to the first. At the port that the coflows without a place need for longest, the coflow
with the last deadline gets the place if it is in time there behind all others. Otherwise the coflow with the least
*measure* gets the place and is rejected in advance. Then the order is examined: coflows that were rejected in advance
are admitted if they are in time in it by the same estimate.

The measure of a coflow is how late the coflow is at its ports if it comes last, times its time there (equations 15 to
17). As others are placed, a coflow gets less late, and its measure (of `min-congested`: a bound of it) only grows. So
the value that was computed last is a lower bound, and few measures are computed for each place.

O(n N + lines + r (m + l)): r rejections among m coflows at a port; l is the lines of the coflows that the bounds do not
exclude, at most m times the lines of a coflow.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.deadline_order import (
    DeadlineOrder,
    collect_lines,
    drop_placed,
    is_in_time,
    list_by_deadline,
    put_rejected_last,
)
from actors.fabric.late_jobs import Choices, reject_fewest, reject_least_weight
from actors.fabric.ports import Fabric, lines_of
from actors.kernel.arrays import fill, largest
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE

REJECT_RULES = ("min-negative", "min-congested", "min-all", "moore-hodgson", "dynamic-programming")
MIN_NEGATIVE, MIN_CONGESTED, MIN_ALL, MOORE_HODGSON, DYNAMIC_PROGRAMMING = map(
    np.int64, range(len(REJECT_RULES))
)
_LEAST_WEIGHT = 1e-9


class Rejection(NamedTuple):
    """How DCoflow rejects."""

    rule: int  # place in REJECT_RULES
    congested: float  # for MIN_CONGESTED ports count that have at least this share of the bottleneck's load
    weighted: bool  # the measure is divided by the coflow's weight
    from_back: bool  # the order is examined from its last place to its first


@compiled
def dcoflow(fabric: Fabric, s: DeadlineOrder, choices: Choices, how: Rejection, count: int) -> int:
    """Put the first `count` of `s.groups` into DCoflow's order, admitted ones first; return how many are admitted."""
    list_by_deadline(fabric, s, count)
    end = count - 1
    while end >= 0:
        port = largest(s.load)
        line = drop_placed(fabric, s, port)
        if line == NONE:
            if s.load[port] == 0.0:
                break  # the coflows without a place have no bytes
            s.load[port] = 0.0  # only rounding left a load
            continue
        last = fabric.lines.group[line]
        if not is_in_time(s.load[port], s.time_left[last]):
            last = choose_rejected(fabric, s, choices, how, port)
            s.rejected[last] = True
        unload_ports(fabric, s, last)
        s.placed[last] = True
        s.order[end] = last
        end -= 1
    first: int = 0
    for i in range(count):
        if not s.placed[s.groups[i]]:
            s.order[first] = s.groups[i]
            first += 1
    admit_in_time(fabric, s, how.from_back, count)
    return put_rejected_last(s, count)


@inlined
def unload_ports(fabric: Fabric, s: DeadlineOrder, coflow: int) -> None:
    """Subtract what a coflow needs from the loads of its ports."""
    lines = fabric.lines
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            port = lines.port[line]
            s.load[port] = max(s.load[port] - s.need[line], 0.0)


@compiled
def choose_rejected(fabric: Fabric, s: DeadlineOrder, choices: Choices, how: Rejection, port: int) -> int:
    """Return the coflow with the least measure at a port; of equal ones the first to arrive."""
    count = collect_lines(fabric, s, port)
    group = fabric.lines.group
    if how.rule == MOORE_HODGSON or how.rule == DYNAMIC_PROGRAMMING:
        count = keep_late(fabric, s, choices, how.rule, count)
    lowest = 0
    for i in range(1, count):
        if s.bound[group[s.lines[i]]] < s.bound[group[s.lines[lowest]]]:
            lowest = i
    chosen = group[s.lines[lowest]]
    least = measure(fabric, s, how, chosen, s.load[port])
    for i in range(count):
        coflow = group[s.lines[i]]
        if i != lowest and s.bound[coflow] <= least:
            own = measure(fabric, s, how, coflow, s.load[port])
            if own < least or (own == least and coflow < chosen):
                chosen, least = coflow, own
    return chosen


@compiled
def keep_late(fabric: Fabric, s: DeadlineOrder, choices: Choices, rule: int, count: int) -> int:
    """Keep those of the first `count` of `s.lines` whose coflows the port alone would reject; return how many."""
    group = fabric.lines.group
    for i in range(count):
        s.late[group[s.lines[i]]] = False
    if rule == MOORE_HODGSON:
        found = reject_fewest(fabric, s, count)
    else:
        found = reject_least_weight(fabric, s, choices, count)
    if found == 0:
        return count  # possible only by rounding
    kept: int = 0
    for i in range(count):
        if s.late[group[s.lines[i]]]:
            s.lines[kept] = s.lines[i]
            kept += 1
    return kept


@compiled
def measure(fabric: Fabric, s: DeadlineOrder, how: Rejection, coflow: int, most: float) -> float:
    """Return the measure of a coflow, and set its bound; `most` is the load of the bottleneck."""
    lines = fabric.lines
    negative, least, congested = 0.0, np.inf, 0.0
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            if s.need[line] == 0.0:
                continue
            load = s.load[lines.port[line]]
            late = s.need[line] * (s.time_left[coflow] - load)
            negative += min(late, 0.0)
            least = min(least, late)
            if load >= how.congested * most:
                congested += late
    weight = max(fabric.coflows.weight[coflow], _LEAST_WEIGHT) if how.weighted else 1.0
    s.bound[coflow] = (least if how.rule == MIN_ALL else negative) / weight
    return congested / weight if how.rule == MIN_CONGESTED else s.bound[coflow]


@compiled
def admit_in_time(fabric: Fabric, s: DeadlineOrder, from_back: bool, count: int) -> None:
    """Admit coflows rejected in advance that are in time in `s.order`, from its first place on or `from_back`."""
    fill(s.load, 0.0)
    if from_back:
        for i in range(count):
            add_load(fabric, s, s.order[i], 1.0)
    for i in range(count):
        coflow = s.order[count - 1 - i if from_back else i]
        if not from_back:
            add_load(fabric, s, coflow, 1.0)
        if s.rejected[coflow]:
            s.rejected[coflow] = not is_in_time(estimate(fabric, s, coflow), s.time_left[coflow])
        if from_back or s.rejected[coflow]:
            add_load(fabric, s, coflow, -1.0)


@compiled
def add_load(fabric: Fabric, s: DeadlineOrder, coflow: int, times: float) -> None:
    """Add `times` what a coflow needs to the loads of its ports."""
    lines = fabric.lines
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            s.load[lines.port[line]] += times * s.need[line]


@compiled
def estimate(fabric: Fabric, s: DeadlineOrder, coflow: int) -> float:
    """Return the largest load of the ports at which a coflow has bytes, ns."""
    lines, longest = fabric.lines, 0.0
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            if s.need[line] > 0.0:
                longest = max(longest, s.load[lines.port[line]])
    return longest
