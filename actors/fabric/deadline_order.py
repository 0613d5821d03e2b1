"""What orders of coflows with deadlines share: the time that is left, and the coflows at each port by deadline.

An order has the admitted coflows first. What a coflow *needs* of a port is the time that the port takes for the
coflow's bytes there. By estimate a coflow ends when each of its ports has sent the bytes of the coflows before it, and
its own.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.initial_arrays import at_start, per
from actors.fabric.ports import Fabric, lines_of
from actors.fabric.priority_queues import sort_groups
from actors.kernel.arrays import fill
from actors.kernel.compiled import compiled, inlined
from actors.kernel.heap import Heap, make_heap
from actors.kernel.queue import NONE

_ROUNDING, _ROUNDING_NS = 1e-12, 1e-3  # the errors of sums of times, relative and in ns


class DeadlineOrder(NamedTuple):
    """An order that is being made, and scratch arrays."""

    longest: Heap  # of a port's coflows that are not rejected yet: what they need, negated, and their places in `lines`
    groups: np.ndarray = per("coflow")  # the coflows; when the order is made, the admitted ones come first
    keys: np.ndarray = per("coflow", 0.0)  # by which `groups` are sorted
    time_left: np.ndarray = per("coflow", 0.0)  # ns until its deadline, infinite where it has none
    load: np.ndarray = per("port", 0.0)  # ns that coflows need at a port
    need: np.ndarray = per("line", 0.0)  # ns that a line's port takes for its bytes
    head: np.ndarray = per("port")  # the line at a port with the last deadline, or NONE
    next: np.ndarray = per("line")  # the line at the same port with the deadline before it, or NONE
    order: np.ndarray = per("coflow")
    placed: np.ndarray = per("coflow", False)  # it has its place in `order`
    rejected: np.ndarray = per("coflow", False)
    late: np.ndarray = per("coflow", False)  # one of its ports, by itself, rejects it
    lines: np.ndarray = per("coflow")  # the lines at one port whose coflows may be rejected
    bound: np.ndarray = per("coflow", 0.0)  # a lower bound of DCoflow's measure of a coflow


def make_deadline_order(fabric: Fabric) -> DeadlineOrder:
    """Return an empty order of the coflows of a fabric."""
    return at_start(DeadlineOrder, fabric, longest=make_heap(fabric.coflows.arrival.size, 0.0))


@inlined
def is_in_time(needed: float, time_left: float) -> bool:
    """Return whether `needed` ns are at most the time that is left, except for rounding."""
    return needed <= time_left * (1.0 + _ROUNDING) + _ROUNDING_NS


@compiled
def find_needs(fabric: Fabric, s: DeadlineOrder, coflow: int) -> float:
    """Compute what a coflow needs at each of its ports; return the largest, its time on an empty switch, ns."""
    lines, longest = fabric.lines, 0.0
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            s.need[line] = 0.0
            if lines.left[line] > 0 and lines.bytes[line] > 0.0:
                s.need[line] = lines.bytes[line] / fabric.speed[lines.port[line]]
                longest = max(longest, s.need[line])
    return longest


@compiled
def most_needed(fabric: Fabric, s: DeadlineOrder, coflow: int) -> float:
    """Return the most that a coflow needs of one of its ports, ns, as `find_needs` has computed it."""
    lines, longest = fabric.lines, 0.0
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            longest = max(longest, s.need[line])
    return longest


@compiled
def sort_by_deadline(fabric: Fabric, s: DeadlineOrder, count: int) -> None:
    """Sort the first `count` coflows by deadline; of equal ones the first to arrive is first."""
    for i in range(count):
        s.keys[i] = s.time_left[s.groups[i]]
    sort_groups(fabric.coflows, s.groups, s.keys, count)


@compiled
def list_by_deadline(fabric: Fabric, s: DeadlineOrder, count: int) -> None:
    """Sort the first `count` coflows by deadline; list their lines at each port, the last first, and sum up the needs.

    `find_needs` must have been called for each of them.
    """
    lines = fabric.lines
    sort_by_deadline(fabric, s, count)
    fill(s.load, 0.0)
    fill(s.head, NONE)
    for i in range(count):
        coflow = s.groups[i]
        s.placed[coflow] = s.rejected[coflow] = s.late[coflow] = False
        s.bound[coflow] = -np.inf
        for side in range(2):
            for line in lines_of(lines, coflow, side):
                if s.need[line] > 0.0:
                    port = lines.port[line]
                    s.load[port] += s.need[line]
                    s.next[line] = s.head[port]
                    s.head[port] = line


@compiled
def drop_placed(fabric: Fabric, s: DeadlineOrder, port: int) -> int:
    """Remove lines of placed coflows from the head of a port's list; return the line that is then first, or NONE."""
    line = s.head[port]
    while line != NONE and s.placed[fabric.lines.group[line]]:
        line = s.next[line]
    s.head[port] = line
    return line


@compiled
def collect_lines(fabric: Fabric, s: DeadlineOrder, port: int) -> int:
    """Put the lines of a port's coflows that have no place into `lines`, last deadline first; return how many."""
    found: int = 0
    line, before = drop_placed(fabric, s, port), NONE
    while line != NONE:
        if s.placed[fabric.lines.group[line]]:
            s.next[before] = s.next[line]
        else:
            s.lines[found] = before = line
            found += 1
        line = s.next[line]
    return found


@compiled
def put_rejected_last(s: DeadlineOrder, count: int) -> int:
    """Set `groups` to the admitted coflows of `order`, then the rejected ones; return how many are admitted."""
    kept: int = 0
    for i in range(count):
        if not s.rejected[s.order[i]]:
            s.groups[kept] = s.order[i]
            kept += 1
    end = kept
    for i in range(count):
        if s.rejected[s.order[i]]:
            s.groups[end] = s.order[i]
            end += 1
    return kept
