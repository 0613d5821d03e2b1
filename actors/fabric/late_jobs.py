"""Which jobs one machine rejects, so that the others are done by their deadlines: a port by itself.

- Moore-Hodgson (J. M. Moore, Management Science 15, 1968): as few as possible. In the order of deadlines, whenever a
  job would be late, the longest so far is rejected. O(n log n).
- The dynamic program of Lawler and Moore (Management Science 16, 1969): as little weight as possible, of whole weights.
  The least time in which jobs of a total weight can be done, by that weight, job after job. O(n W) for a total of W.

The jobs of a port are the coflows of its lines in `DeadlineOrder.lines`, and their times what their lines need.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.deadline_order import DeadlineOrder, is_in_time
from actors.fabric.heap import drop, push
from actors.fabric.ports import Fabric
from actors.kernel.compiled import compiled, inlined
from workloads.errors import InputError

MOST_WORDS = 1 << 27  # of choices: 1 GiB


class Choices(NamedTuple):
    """The state of the dynamic program for C coflows of total weight W; empty where it is not used."""

    weight: np.ndarray  # [C] whole weights
    least: np.ndarray  # [W + 1] float64, the least time for jobs of so much weight, ns
    taken: np.ndarray  # [C, words] uint64, a bit for each weight: the job is in that set


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
def reject_fewest(fabric: Fabric, s: DeadlineOrder, count: int) -> int:
    """Mark as `late` the jobs that Moore-Hodgson rejects of the first `count` of `lines`; return how many."""
    s.heap_size[0] = 0
    end, rejected = 0.0, 0
    for i in range(count - 1, -1, -1):  # `lines` has the last deadline first
        line = s.lines[i]
        end += s.need[line]
        push(s.heap_key, s.heap_place, s.heap_size, -s.need[line], -i)
        if not is_in_time(end, s.time_left[fabric.lines.group[line]]):
            longest = s.lines[-s.heap_place[0]]  # of several, that with the first deadline
            drop(s.heap_key, s.heap_place, s.heap_size)
            end -= s.need[longest]
            s.late[fabric.lines.group[longest]] = True
            rejected += 1
    return rejected


@compiled
def reject_least_weight(fabric: Fabric, s: DeadlineOrder, choices: Choices, count: int) -> int:
    """Mark as `late` the jobs that the dynamic program rejects of the first `count` of `lines`; return how many."""
    group, least = fabric.lines.group, choices.least
    total = 0
    least[0] = 0.0
    for i in range(count - 1, -1, -1):
        line = s.lines[i]
        coflow = group[line]
        time, weight, left = s.need[line], choices.weight[coflow], s.time_left[coflow]
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
    return mark_not_taken(fabric, s, choices, count, total)


@inlined
def mark_not_taken(fabric: Fabric, s: DeadlineOrder, choices: Choices, count: int, weight: int) -> int:
    """Mark as `late` the jobs that are not in the best set, which has this weight; return how many."""
    rejected: int = 0
    for i in range(count):
        coflow = fabric.lines.group[s.lines[i]]
        if choices.taken[i, weight >> 6] >> np.uint64(weight & 63) & np.uint64(1) == np.uint64(1):
            weight -= choices.weight[coflow]
        else:
            s.late[coflow] = True
            rejected += 1
    return rejected
