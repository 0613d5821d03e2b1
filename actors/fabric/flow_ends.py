"""When running flows end, in whole ns: a heap in which the entries of flows that were stopped stay until they come up.

An entry counts if its time is its flow's `end`; any other is stale.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.heap import drop, push
from actors.fabric.ports import Fabric, Flows, flow_speed
from actors.kernel.compiled import compiled, inlined
from actors.kernel.world import NEVER

_FAR = 1e18  # ns, 32 years: what takes longer, at next to no rate, would not fit into a time


class Ends(NamedTuple):
    """A heap of (time in ns, flow), with stale entries."""

    time: np.ndarray
    flow: np.ndarray
    size: np.ndarray  # [1] entries in use


def make_ends(room: int) -> Ends:
    """Return an empty heap with room for so many entries, stale ones included."""
    return Ends(np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(1, np.int64))


@inlined
def whole_ns(duration: float) -> int:
    """Return a duration in ns as a whole number, from 1 to that of 32 years."""
    return max(np.int64(min(duration, _FAR) + 0.5), np.int64(1))


@inlined
def predict_end(fabric: Fabric, t: int, flow: int) -> None:
    """Let a flow run from t on at the full speed of its ports, and compute its end, at least 1 ns later."""
    flows = fabric.flows
    flows.since[flow] = t
    flows.end[flow] = t + whole_ns(flows.left[flow] / flow_speed(fabric, flow))


@compiled
def enter_end(fabric: Fabric, ends: Ends, t: int, flow: int) -> None:
    """Let a flow run from t on, and put its end into the heap."""
    predict_end(fabric, t, flow)
    add_end(fabric.flows, ends, flow)


@inlined
def add_end(flows: Flows, ends: Ends, flow: int) -> None:
    """Put a flow's end into the heap, which loses its stale entries when it is full."""
    if ends.size[0] == ends.time.size:
        purge(flows, ends)
    push(ends.time, ends.flow, ends.size, flows.end[flow], flow)


@compiled
def purge(flows: Flows, ends: Ends) -> None:
    """Remove stale entries from the heap."""
    size = ends.size[0]
    ends.size[0] = 0
    for i in range(size):
        time, flow = ends.time[i], ends.flow[i]
        if flows.end[flow] == time:
            push(ends.time, ends.flow, ends.size, time, flow)


@compiled
def next_end(flows: Flows, ends: Ends) -> int:
    """Return when the next flow ends, NEVER if none runs; that flow is ``ends.flow[0]`` then."""
    while ends.size[0] > 0:
        if flows.end[ends.flow[0]] == ends.time[0]:
            return ends.time[0]
        drop(ends.time, ends.flow, ends.size)
    return NEVER
