"""Groups of flows that have all been served the same number of bytes, in the order in which they end.

`served` is what each flow of a group has been served; a flow ends when `served` reaches its ``left``. The flow with the
least ``left`` is the first of the group's heap. Both the coordinator (`actors.fabric.equal_rates`) and the agents,
whose ingress lines are such groups (`actors.fabric.agent`), compute with them, and get the same figures.
"""

from typing import Any, NamedTuple

import numpy as np

from actors.fabric.ports import whole_ns
from actors.initial_arrays import Declared
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NEVER, NONE

LEAST_LEFT = 1e-6  # bytes: a flow that has not ended has no less left, whatever rounding gives


class EqualGroups(NamedTuple):
    """G groups of F flows; the heap of each has its unfinished flows by ``left``."""

    in_force: np.ndarray  # [G] bytes per ns of each flow
    since: np.ndarray  # [G] ns, from when on
    served: np.ndarray  # [G] what each flow had been served by then, bytes
    end: np.ndarray  # [G] when the next flow ends at that rate, ns; NEVER: none does
    first: np.ndarray  # [G] where its heap begins
    size: np.ndarray  # [G] flows in its heap
    heap: np.ndarray  # [F, and room for further flows]
    position: np.ndarray  # [flows] where a flow is in `heap`


class GroupsPer(NamedTuple):
    """A declaration for `at_start`: groups without flows, one for each of `what`."""

    what: str

    def make(self, sizes: dict[str, int]) -> EqualGroups:
        """Return the groups at time 0."""
        nothing = dict.fromkeys(sizes, 0)
        empty = make_groups(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))
        return self.longer(empty, nothing, sizes)

    def longer(self, groups: EqualGroups, was: dict[str, int], now: dict[str, int]) -> EqualGroups:
        """Return as many groups as there are of `what` now, with room for as many flows as there are."""
        group, flow = Declared(self.what, 0, 1, True), Declared("flow", 0, 1, True)
        by_flow = ("heap", "position")
        return EqualGroups(
            *(
                (flow if name in by_flow else group).longer(array, was, now)
                for name, array in zip(groups._fields, groups, strict=True)
            )
        )

    def clear(self, groups: EqualGroups, rows: dict[str, np.ndarray]) -> None:
        """Leave the groups: `begin_group` sets each again."""


def groups_per(what: str) -> Any:
    """Declare groups of flows, one for each of `what`."""
    return GroupsPer(what)


def make_groups(left: np.ndarray, group: np.ndarray, more: np.ndarray) -> EqualGroups:
    """Return groups that have been served nothing yet.

    Args:
        left: [flows] bytes.
        group: [flows] the group of each flow, or NONE.
        more: [G] room for further flows, in groups after all that have flows.
    """
    count, flows = more.size, np.flatnonzero(group != NONE)
    heap = flows[np.lexsort((left[flows], group[flows]))]  # sorted, hence a heap
    size = np.bincount(group[flows], minlength=count)
    position = np.full(group.size, NONE)
    position[heap] = np.arange(heap.size)
    return EqualGroups(
        in_force=np.zeros(count),
        since=np.zeros(count, np.int64),
        served=np.zeros(count),
        end=np.full(count, NEVER),
        first=np.cumsum(size + more) - size - more,
        size=size,
        heap=np.concatenate([heap, np.zeros(more.sum(), np.int64)]),
        position=position,
    )


@compiled
def begin_group(left: np.ndarray, groups: EqualGroups, group: int, first: int, end: int) -> None:
    """Let a group consist of the flows in rows `first` to before `end`, which have been served nothing yet."""
    groups.in_force[group], groups.since[group], groups.served[group], groups.end[group] = 0.0, 0, 0.0, NEVER
    groups.first[group], groups.size[group] = first, end - first
    for flow in range(first, end):
        groups.heap[flow] = flow
        sift_up(left, groups, group, flow)


@inlined
def served_by(groups: EqualGroups, t: int, group: int) -> float:
    """Return what each flow of a group has been served by t; backfilled flows have been served more."""
    return groups.served[group] + groups.in_force[group] * (t - groups.since[group])


@inlined
def extra_sent(left: float, since: int, groups: EqualGroups, group: int, t: int, extra: float) -> float:
    """Return what a flow that has not ended was sent at its additional rate `extra` from `since` to t, bytes."""
    most = left - served_by(groups, t, group) - LEAST_LEFT
    return max(min(extra * (t - since), most), 0.0)


@inlined
def predict_end(left: np.ndarray, groups: EqualGroups, group: int, least: int) -> None:
    """Compute when the next flow of a group ends at the group's rate, but not before `least`.

    A backfilled flow ends before that, by itself.
    """
    if groups.size[group] == 0 or groups.in_force[group] == 0.0:
        groups.end[group] = NEVER
    else:
        first_left = left[groups.heap[groups.first[group]]] - groups.served[group]
        groups.end[group] = max(groups.since[group] + whole_ns(first_left / groups.in_force[group]), least)


@compiled
def remove_from_heap(left: np.ndarray, groups: EqualGroups, group: int, flow: int) -> None:
    """Take a flow out of the heap of its group."""
    groups.size[group] -= 1
    i, last = groups.position[flow], groups.heap[groups.first[group] + groups.size[group]]
    if last != flow:
        groups.heap[i], groups.position[last] = last, i
        sift_up(left, groups, group, i)
        sink(left, groups, group, groups.position[last])


@compiled
def sift_up(left: np.ndarray, groups: EqualGroups, group: int, i: int) -> None:
    """Move the flow at place i of a group's heap up to its place."""
    base, flow = groups.first[group], groups.heap[i]
    while i > base:
        up = base + ((i - base - 1) >> 1)
        if left[groups.heap[up]] <= left[flow]:
            break
        groups.heap[i] = groups.heap[up]
        groups.position[groups.heap[i]] = i
        i = up
    groups.heap[i], groups.position[flow] = flow, i


@compiled
def sink(left: np.ndarray, groups: EqualGroups, group: int, i: int) -> None:
    """Move the flow at place i of a group's heap down to its place."""
    base, end, flow = groups.first[group], groups.first[group] + groups.size[group], groups.heap[i]
    least = 2 * i - base + 1
    while least < end:
        if least + 1 < end and left[groups.heap[least + 1]] < left[groups.heap[least]]:
            least += 1
        if left[groups.heap[least]] >= left[flow]:
            break
        groups.heap[i] = groups.heap[least]
        groups.position[groups.heap[i]] = i
        i, least = least, 2 * least - base + 1
    groups.heap[i], groups.position[flow] = flow, i
