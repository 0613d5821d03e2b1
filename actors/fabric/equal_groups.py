"""Groups of flows that have all been served the same number of bytes, in order of their end.

What each flow has been served is one number, `served`; a flow ends when `served` reaches its ``left``. A heap has the
flow with the least ``left`` in front. The coordinator has such groups (`actors.fabric.equal_rates`), and the agents'
ingress lines are such groups too (`actors.fabric.equal_agent`): `e` is either, `flows` has `left` and `since`, and both
compute the same figures.
"""

from typing import Protocol

import numpy as np

from actors.fabric.floats import whole_ns
from actors.kernel.compiled import compiled, inlined
from actors.kernel.world import NEVER

_LEAST = 1e-6  # bytes that a flow has left which has not ended, whatever rounding says


class Group(Protocol):
    """Groups of flows, or ingress lines, all of whose flows have been served the same bytes."""

    @property
    def in_force(self) -> np.ndarray:
        """Bytes per ns of each flow."""

    @property
    def since(self) -> np.ndarray:
        """From when on, ns."""

    @property
    def served(self) -> np.ndarray:
        """Bytes that each flow had been served by then."""

    @property
    def end(self) -> np.ndarray:
        """When the next flow ends, ns; NEVER."""

    @property
    def first(self) -> np.ndarray:
        """Where its heap begins."""

    @property
    def size(self) -> np.ndarray:
        """Flows in its heap."""

    @property
    def heap(self) -> np.ndarray:
        """Flows by `left`."""

    @property
    def position(self) -> np.ndarray:
        """Where a flow is in `heap`."""


class Served(Protocol):
    """Flows of such groups."""

    @property
    def left(self) -> np.ndarray:
        """How much its group has to be served until it ends, bytes."""

    @property
    def since(self) -> np.ndarray:
        """From when on it has had a rate of its own, ns."""


@inlined
def served_by(e: Group, t: int, group: int) -> float:
    """Return what each flow of a group has been served by t; backfilled flows have had more."""
    return e.served[group] + e.in_force[group] * (t - e.since[group])


@inlined
def extra_sent(flows: Served, e: Group, group: int, t: int, flow: int, extra: float) -> float:
    """Return what a flow was sent beyond its group's rate since `flows.since`; it has not ended by it."""
    left = flows.left[flow] - served_by(e, t, group) - _LEAST
    return max(min(extra * (t - flows.since[flow]), left), 0.0)


@inlined
def ns_for(left: float, rate: float) -> int:
    """Return how long so many bytes take, whole ns."""
    return whole_ns(left / rate)


@inlined
def predict_end(flows: Served, e: Group, group: int, least: int) -> None:
    """Compute when the next flow of a group ends by the group's rate, not before `least`.

    If that one is backfilled it ends before, by itself.
    """
    if e.size[group] == 0 or e.in_force[group] == 0.0:
        e.end[group] = NEVER
    else:
        left = flows.left[e.heap[e.first[group]]] - e.served[group]
        e.end[group] = max(e.since[group] + ns_for(left, e.in_force[group]), least)


@compiled
def remove_from_heap(flows: Served, e: Group, group: int, flow: int) -> None:
    """Take a flow out of the heap of its group."""
    e.size[group] -= 1
    i, last = e.position[flow], e.heap[e.first[group] + e.size[group]]
    if last != flow:
        e.heap[i], e.position[last] = last, i
        sift_up(flows, e, group, i)
        sink(flows, e, group, e.position[last])


@compiled
def sift_up(flows: Served, e: Group, group: int, i: int) -> None:
    """Move the flow at place i of a group's heap up to its place."""
    base, flow = e.first[group], e.heap[i]
    while i > base:
        up = base + ((i - base - 1) >> 1)
        if flows.left[e.heap[up]] <= flows.left[flow]:
            break
        e.heap[i] = e.heap[up]
        e.position[e.heap[i]] = i
        i = up
    e.heap[i], e.position[flow] = flow, i


@compiled
def sink(flows: Served, e: Group, group: int, i: int) -> None:
    """Move the flow at place i of a group's heap down to its place."""
    base, end, flow = e.first[group], e.first[group] + e.size[group], e.heap[i]
    least = 2 * i - base + 1
    while least < end:
        if least + 1 < end and flows.left[e.heap[least + 1]] < flows.left[e.heap[least]]:
            least += 1
        if flows.left[e.heap[least]] >= flows.left[flow]:
            break
        e.heap[i] = e.heap[least]
        e.position[e.heap[i]] = i
        i, least = least, 2 * least - base + 1
    e.heap[i], e.position[flow] = flow, i
