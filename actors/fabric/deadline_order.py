"""What orders of coflows with deadlines share: the time that is left, and the coflows at each port by deadline.

An order has the coflows that are admitted first, each group of them served after those before it. What an
admitted coflow needs of a port is the time that the port takes for its bytes there. By an estimate it ends when, at
each of its ports, all that is before it and its own has been sent.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.ports import Fabric
from actors.fabric.priority_queues import sort_groups
from actors.kernel.arrays import fill
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE

_ROUNDING, _ROUNDING_NS = 1e-12, 1e-3  # what sums of times may be off by, relative and in ns


class DeadlineOrder(NamedTuple):
    """An order that is being made, and scratch arrays; C coflows, N ports, L lines."""

    groups: np.ndarray  # [C] the coflows; when the order is made, those that are admitted come first
    keys: np.ndarray  # [C] float64, what `groups` are sorted by
    time_left: np.ndarray  # [C] float64, ns until a coflow's deadline, infinite where it has none
    load: np.ndarray  # [N] float64, ns that coflows need at a port
    need: np.ndarray  # [L] float64, ns that a line's port takes for its bytes
    head: np.ndarray  # [N] first of the lines at a port, that of the last deadline, or NONE
    next: np.ndarray  # [L] the next one
    order: np.ndarray  # [C]
    placed: np.ndarray  # [C] bool: it has its place in `order`
    rejected: np.ndarray  # [C] bool
    late: np.ndarray  # [C] bool: one port, for itself, rejects it
    lines: np.ndarray  # [C] lines of those coflows at one port that may be rejected
    bound: np.ndarray  # [C] float64, the least that DCoflow's measure of a coflow can be
    heap_key: np.ndarray  # [C] float64
    heap_place: np.ndarray  # [C]
    heap_size: np.ndarray  # [1]


def make_deadline_order(fabric: Fabric) -> DeadlineOrder:
    """Return an empty order of the coflows of a fabric."""
    coflows, ports = fabric.coflows.arrival.size, fabric.speed.size
    return DeadlineOrder(
        groups=np.zeros(coflows, np.int64),
        keys=np.zeros(coflows),
        time_left=np.zeros(coflows),
        load=np.zeros(ports),
        need=np.zeros(fabric.lines.port.size),
        head=np.zeros(ports, np.int64),
        next=np.zeros(fabric.lines.port.size, np.int64),
        order=np.zeros(coflows, np.int64),
        placed=np.zeros(coflows, np.bool_),
        rejected=np.zeros(coflows, np.bool_),
        late=np.zeros(coflows, np.bool_),
        lines=np.zeros(coflows, np.int64),
        bound=np.zeros(coflows),
        heap_key=np.zeros(coflows),
        heap_place=np.zeros(coflows, np.int64),
        heap_size=np.zeros(1, np.int64),
    )


@inlined
def is_in_time(needed: float, time_left: float) -> bool:
    """Return whether what takes `needed` ns ends in the time that is left, but for rounding."""
    return needed <= time_left * (1.0 + _ROUNDING) + _ROUNDING_NS


@compiled
def find_needs(fabric: Fabric, s: DeadlineOrder, coflow: int) -> float:
    """Compute what a coflow needs at each of its ports; return the most, which it needs on an empty switch, ns."""
    lines, longest = fabric.lines, 0.0
    for side in range(2):
        for line in range(lines.of_group[coflow, side], lines.of_group[coflow + 1, side]):
            s.need[line] = 0.0
            if lines.left[line] > 0 and lines.bytes[line] > 0.0:
                s.need[line] = lines.bytes[line] / fabric.speed[lines.port[line]]
                longest = max(longest, s.need[line])
    return longest


@compiled
def most_needed(fabric: Fabric, s: DeadlineOrder, coflow: int) -> float:
    """Return the most that a coflow needs of a port, ns, as `find_needs` has computed it."""
    lines, longest = fabric.lines, 0.0
    for side in range(2):
        for line in range(lines.of_group[coflow, side], lines.of_group[coflow + 1, side]):
            longest = max(longest, s.need[line])
    return longest


@compiled
def sort_by_deadline(s: DeadlineOrder, count: int) -> None:
    """Sort the first `count` coflows by their deadlines; of equal ones the first to arrive is first."""
    for i in range(count):
        s.keys[i] = s.time_left[s.groups[i]]
    sort_groups(s, count)


@compiled
def list_by_deadline(fabric: Fabric, s: DeadlineOrder, count: int) -> None:
    """Sort the first `count` coflows by deadline; list their lines at each port, the last first, and add up the needs.

    `find_needs` is called for each of them before.
    """
    lines = fabric.lines
    sort_by_deadline(s, count)
    fill(s.load, 0.0)
    fill(s.head, NONE)
    for i in range(count):
        coflow = s.groups[i]
        s.placed[coflow] = s.rejected[coflow] = s.late[coflow] = False
        s.bound[coflow] = -np.inf
        for side in range(2):
            for line in range(lines.of_group[coflow, side], lines.of_group[coflow + 1, side]):
                if s.need[line] > 0.0:
                    port = lines.port[line]
                    s.load[port] += s.need[line]
                    s.next[line] = s.head[port]
                    s.head[port] = line


@compiled
def drop_placed(fabric: Fabric, s: DeadlineOrder, port: int) -> int:
    """Take coflows that have their places off the list of a port; return the first line that is left, or NONE."""
    line = s.head[port]
    while line != NONE and s.placed[fabric.lines.group[line]]:
        line = s.next[line]
    s.head[port] = line
    return line


@compiled
def collect_lines(fabric: Fabric, s: DeadlineOrder, port: int) -> int:
    """Put the lines at a port whose coflows have no places into `lines`, the last deadline first; return how many."""
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
    """Set `groups` to those of `order` that are not rejected, then those that are; return the number of the former."""
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
