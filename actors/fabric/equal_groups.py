"""Groups of flows that have all been served the same number of bytes, in order of their end.

What each flow has been served is one number, `served`; a flow ends when `served` reaches its ``left``. A heap has the
flow with the least ``left`` in front. The coordinator has such groups (`actors.fabric.equal_rates`), and the agents'
ingress lines are such groups too (`actors.fabric.equal_agent`), and both compute the same figures.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.flow_ends import whole_ns
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.kernel.world import NEVER

_LEAST = 1e-6  # bytes that a flow has left which has not ended, whatever rounding says


class EqualGroups(NamedTuple):
    """G groups of F flows; the heap of each has its unfinished flows by ``left``."""

    in_force: np.ndarray  # [G] bytes per ns of each flow
    since: np.ndarray  # [G] from when on, ns
    served: np.ndarray  # [G] what each flow had been served by then, bytes
    end: np.ndarray  # [G] when the next flow ends by that rate, ns; NEVER
    first: np.ndarray  # [G] where its heap begins
    size: np.ndarray  # [G] flows in its heap
    heap: np.ndarray  # [F, and room for further flows]
    position: np.ndarray  # [flows] where a flow is in `heap`


def make_groups(left: np.ndarray, group: np.ndarray, more: np.ndarray) -> EqualGroups:
    """Return groups that have been served nothing yet.

    Args:
        left: [flows] bytes.
        group: [flows] that of each flow, NONE for one that is in none.
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


@inlined
def served_by(g: EqualGroups, t: int, group: int) -> float:
    """Return what each flow of a group has been served by t; backfilled flows have had more."""
    return g.served[group] + g.in_force[group] * (t - g.since[group])


@inlined
def extra_sent(left: float, since: int, g: EqualGroups, group: int, t: int, extra: float) -> float:
    """Return what a flow with so much ``left`` was sent beyond its group's rate since then; it has not ended by it."""
    most = left - served_by(g, t, group) - _LEAST
    return max(min(extra * (t - since), most), 0.0)


@inlined
def predict_end(left: np.ndarray, g: EqualGroups, group: int, least: int) -> None:
    """Compute when the next flow of a group ends by the group's rate, not before `least`.

    If that one is backfilled it ends before, by itself.
    """
    if g.size[group] == 0 or g.in_force[group] == 0.0:
        g.end[group] = NEVER
    else:
        first_left = left[g.heap[g.first[group]]] - g.served[group]
        g.end[group] = max(g.since[group] + whole_ns(first_left / g.in_force[group]), least)


@compiled
def remove_from_heap(left: np.ndarray, g: EqualGroups, group: int, flow: int) -> None:
    """Take a flow out of the heap of its group."""
    g.size[group] -= 1
    i, last = g.position[flow], g.heap[g.first[group] + g.size[group]]
    if last != flow:
        g.heap[i], g.position[last] = last, i
        sift_up(left, g, group, i)
        sink(left, g, group, g.position[last])


@compiled
def sift_up(left: np.ndarray, g: EqualGroups, group: int, i: int) -> None:
    """Move the flow at place i of a group's heap up to its place."""
    base, flow = g.first[group], g.heap[i]
    while i > base:
        up = base + ((i - base - 1) >> 1)
        if left[g.heap[up]] <= left[flow]:
            break
        g.heap[i] = g.heap[up]
        g.position[g.heap[i]] = i
        i = up
    g.heap[i], g.position[flow] = flow, i


@compiled
def sink(left: np.ndarray, g: EqualGroups, group: int, i: int) -> None:
    """Move the flow at place i of a group's heap down to its place."""
    base, end, flow = g.first[group], g.first[group] + g.size[group], g.heap[i]
    least = 2 * i - base + 1
    while least < end:
        if least + 1 < end and left[g.heap[least + 1]] < left[g.heap[least]]:
            least += 1
        if left[g.heap[least]] >= left[flow]:
            break
        g.heap[i] = g.heap[least]
        g.position[g.heap[i]] = i
        i, least = least, 2 * least - base + 1
    g.heap[i], g.position[flow] = flow, i
