"""Which jobs one machine, a port by itself, rejects so that the others end by their deadlines; and CS-MHA's order.

- Moore-Hodgson (J. M. Moore, Management Science 15, 1968) rejects as few jobs as possible. In the order of deadlines,
  whenever a job would be late, it rejects the longest so far. O(n log n).
- The dynamic program of Lawler and Moore (Management Science 16, 1969) rejects as little weight as possible; weights
  are whole. Job after job it computes, for each total weight, the least time in which jobs of that weight can be done.
  O(n W) for a total of W.

The jobs of a port are the coflows of its lines in `DeadlineOrder.lines`; the time of a job is what its line needs.

CS-MHA (S. Luo, H. Yu and L. Li, ICC 2016) admits a coflow if no port rejects it by Moore-Hodgson.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.deadline_order import (
    DeadlineOrder,
    collect_lines,
    is_in_time,
    list_by_deadline,
    most_needed,
)
from actors.fabric.ports import Fabric
from actors.fabric.priority_queues import sort_groups
from actors.kernel.compiled import compiled, inlined
from actors.kernel.heap import drop, push
from workloads.errors import InputError

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
def reject_fewest(fabric: Fabric, s: DeadlineOrder, count: int) -> int:
    """Mark as `late` the jobs that Moore-Hodgson rejects of the first `count` of `lines`; return how many."""
    s.longest.size[0] = 0
    end, rejected = 0.0, 0
    for i in range(count - 1, -1, -1):  # `lines` has the last deadline first
        line = s.lines[i]
        end += s.need[line]
        push(s.longest, -s.need[line], -i)
        if not is_in_time(end, s.time_left[fabric.lines.group[line]]):
            longest = s.lines[-s.longest.values[0]]  # of equal ones, that with the first deadline
            drop(s.longest)
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
    """Mark as `late` the jobs that are not in the best set, whose total weight is `weight`; return how many."""
    rejected: int = 0
    for i in range(count):
        coflow = fabric.lines.group[s.lines[i]]
        if choices.taken[i, weight >> 6] >> np.uint64(weight & 63) & np.uint64(1) == np.uint64(1):
            weight -= choices.weight[coflow]
        else:
            s.late[coflow] = True
            rejected += 1
    return rejected


@compiled
def cs_mha(fabric: Fabric, s: DeadlineOrder, count: int) -> int:
    """Put the first `count` of `s.groups` into CS-MHA's order; return how many are admitted. O(lines log n).

    Admitted coflows come first, by deadline; then the others, by the largest share of their time left that they need of
    a port.
    """
    list_by_deadline(fabric, s, count)
    for port in range(s.load.size):
        reject_fewest(fabric, s, collect_lines(fabric, s, port))
    admitted: int = 0
    for i in range(count):
        coflow = s.groups[i]
        if s.late[coflow]:
            s.keys[i] = most_needed(fabric, s, coflow) / max(s.time_left[coflow], 1.0)
        else:
            s.keys[i] = np.float64(i - count)  # before all others, by deadline
            admitted += 1
    sort_groups(fabric.coflows, s.groups, s.keys, count)
    return admitted
