"""What orders of coflows with deadlines share: the time that is left, and the coflows at each port by deadline.

An order has the admitted coflows first. What a coflow *needs* of a port is the time that the port takes for the
coflow's bytes there. By estimate a coflow ends when each of its ports has sent the bytes of the coflows before it, and
its own.


A port by itself is one machine, whose jobs are the coflows of its lines in `DeadlineOrder.lines`; the time of a job is
what its line needs. Which of them it rejects so that the others end by their deadlines:

- Moore-Hodgson (J. M. Moore, Management Science 15, 1968) rejects as few jobs as possible. In the order of deadlines,
  whenever a job would be late, it rejects the longest so far. O(n log n).
- The dynamic program of Lawler and Moore (Management Science 16, 1969) rejects as little weight as possible; weights
  are whole. Job after job it computes, for each total weight, the least time in which jobs of that weight can be done.
  O(n W) for a total of W.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.order import sort_groups
from actors.fabric.ports import Fabric, lines_of
from actors.initial_arrays import at_start, per
from actors.kernel.arrays import fill
from actors.kernel.compiled import compiled, inlined
from actors.kernel.heap import Heap, drop, make_heap, push
from actors.kernel.queue import NONE
from workloads.errors import InputError

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
def find_needs(fabric: Fabric, deadlines: DeadlineOrder, coflow: int) -> float:
    """Compute what a coflow needs at each of its ports; return the largest, its time on an empty switch, ns."""
    lines, longest = fabric.lines, 0.0
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            deadlines.need[line] = 0.0
            if lines.left[line] > 0 and lines.bytes[line] > 0.0:
                deadlines.need[line] = lines.bytes[line] / fabric.speed[lines.port[line]]
                longest = max(longest, deadlines.need[line])
    return longest


@compiled
def most_needed(fabric: Fabric, deadlines: DeadlineOrder, coflow: int) -> float:
    """Return the most that a coflow needs of one of its ports, ns, as `find_needs` has computed it."""
    lines, longest = fabric.lines, 0.0
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            longest = max(longest, deadlines.need[line])
    return longest


@compiled
def sort_by_deadline(fabric: Fabric, deadlines: DeadlineOrder, count: int) -> None:
    """Sort the first `count` coflows by deadline; those with equal deadlines are in the order of their arrival."""
    for i in range(count):
        deadlines.keys[i] = deadlines.time_left[deadlines.groups[i]]
    sort_groups(fabric.coflows, deadlines.groups, deadlines.keys, count)


@compiled
def list_by_deadline(fabric: Fabric, deadlines: DeadlineOrder, count: int) -> None:
    """Sort the first `count` coflows by deadline; list their lines at each port, the last first, and sum up the needs.

    `find_needs` must have been called for each of them.
    """
    lines = fabric.lines
    sort_by_deadline(fabric, deadlines, count)
    fill(deadlines.load, 0.0)
    fill(deadlines.head, NONE)
    for i in range(count):
        coflow = deadlines.groups[i]
        deadlines.placed[coflow] = deadlines.rejected[coflow] = deadlines.late[coflow] = False
        deadlines.bound[coflow] = -np.inf
        for side in range(2):
            for line in lines_of(lines, coflow, side):
                if deadlines.need[line] > 0.0:
                    port = lines.port[line]
                    deadlines.load[port] += deadlines.need[line]
                    deadlines.next[line] = deadlines.head[port]
                    deadlines.head[port] = line


@compiled
def drop_placed(fabric: Fabric, deadlines: DeadlineOrder, port: int) -> int:
    """Remove lines of placed coflows from the head of a port's list; return the line that is then first, or NONE."""
    line = deadlines.head[port]
    while line != NONE and deadlines.placed[fabric.lines.group[line]]:
        line = deadlines.next[line]
    deadlines.head[port] = line
    return line


@compiled
def collect_lines(fabric: Fabric, deadlines: DeadlineOrder, port: int) -> int:
    """Put the lines of a port's coflows that have no place into `lines`, last deadline first; return how many."""
    found: int = 0
    line, before = drop_placed(fabric, deadlines, port), NONE
    while line != NONE:
        if deadlines.placed[fabric.lines.group[line]]:
            deadlines.next[before] = deadlines.next[line]
        else:
            deadlines.lines[found] = before = line
            found += 1
        line = deadlines.next[line]
    return found


@compiled
def put_rejected_last(deadlines: DeadlineOrder, count: int) -> int:
    """Set `groups` to the admitted coflows of `order`, then the rejected ones; return how many are admitted."""
    kept: int = 0
    for i in range(count):
        if not deadlines.rejected[deadlines.order[i]]:
            deadlines.groups[kept] = deadlines.order[i]
            kept += 1
    end = kept
    for i in range(count):
        if deadlines.rejected[deadlines.order[i]]:
            deadlines.groups[end] = deadlines.order[i]
            end += 1
    return kept


MOST_WORDS = 1 << 27  # of choices: 1 GiB


class Choices(NamedTuple):
    """The state of the dynamic program for C coflows of total weight W; empty where it is not used."""

    weight: np.ndarray  # [C] whole weights
    least: np.ndarray  # [W + 1] float64, the least time for jobs of this total weight, ns
    # [C, words] uint64, a bit for each total weight: the job is in the best set of that weight
    taken: np.ndarray


def make_choices(weight: np.ndarray, used: bool) -> Choices:
    """Return the state of the dynamic program for these weights, or an empty one if it is not used.

    Raises:
        InputError: a weight is not whole, or the table would take more than 1 GiB.
    """
    if not used:
        return Choices(np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 0), np.uint64))
    whole = weight.astype(np.int64)
    if (whole != weight).any():
        row = int((whole != weight).argmax())
        raise InputError(
            f"coflow {row} has the weight {weight[row]:g}: reject=dynamic-programming needs whole weights",
            field="weight",
        )
    words = int(whole.sum()) // 64 + 1
    if words * whole.size > MOST_WORDS:
        raise InputError(
            f"reject=dynamic-programming needs a bit for each of {whole.size:,} coflows and each of {whole.sum():,}"
            f" units of their weight, and {MOST_WORDS * 64:,} bits are the most; use reject=moore-hodgson"
        )
    return Choices(whole, np.zeros(int(whole.sum()) + 1), np.zeros((whole.size, words), np.uint64))


@compiled
def reject_fewest(fabric: Fabric, deadlines: DeadlineOrder, count: int) -> int:
    """Mark as `late` the jobs that Moore-Hodgson rejects of the first `count` of `lines`; return how many."""
    deadlines.longest.size[0] = 0
    end, rejected = 0.0, 0
    for i in range(count - 1, -1, -1):  # `lines` has the last deadline first
        line = deadlines.lines[i]
        end += deadlines.need[line]
        push(deadlines.longest, -deadlines.need[line], -i)
        if not is_in_time(end, deadlines.time_left[fabric.lines.group[line]]):
            longest = deadlines.lines[
                -deadlines.longest.values[0]
            ]  # if several are as long, the one with the first deadline
            drop(deadlines.longest)
            end -= deadlines.need[longest]
            deadlines.late[fabric.lines.group[longest]] = True
            rejected += 1
    return rejected


@compiled
def reject_least_weight(fabric: Fabric, deadlines: DeadlineOrder, choices: Choices, count: int) -> int:
    """Mark as `late` the jobs that the dynamic program rejects of the first `count` of `lines`; return how many."""
    group, least = fabric.lines.group, choices.least
    total = 0
    least[0] = 0.0
    for i in range(count - 1, -1, -1):
        line = deadlines.lines[i]
        coflow = group[line]
        time, weight, left = deadlines.need[line], choices.weight[coflow], deadlines.time_left[coflow]
        for w in range(choices.taken.shape[1]):
            choices.taken[i, w] = np.uint64(0)
        for w in range(total + 1, total + weight + 1):
            least[w] = np.inf
        total += weight
        for w in range(total, weight - 1, -1):
            end = least[w - weight] + time
            if end < least[w] and is_in_time(end, left):
                least[w] = end
                choices.taken[i, w >> 6] |= np.uint64(1) << np.uint64(w & 63)
    while least[total] == np.inf:
        total -= 1
    return mark_not_taken(fabric, deadlines, choices, count, total)


@inlined
def mark_not_taken(
    fabric: Fabric, deadlines: DeadlineOrder, choices: Choices, count: int, weight: int
) -> int:
    """Mark as `late` the jobs that are not in the best set, whose total weight is `weight`; return how many."""
    rejected: int = 0
    for i in range(count):
        coflow = fabric.lines.group[deadlines.lines[i]]
        if choices.taken[i, weight >> 6] >> np.uint64(weight & 63) & np.uint64(1) == np.uint64(1):
            weight -= choices.weight[coflow]
        else:
            deadlines.late[coflow] = True
            rejected += 1
    return rejected
