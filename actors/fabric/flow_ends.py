"""When running flows end: a heap of (time in ns, flow), in which stale entries stay until they come first.

An entry is valid if its time is its flow's `end`. It is stale if its flow was stopped, or has another end since.
"""

import numpy as np

from actors.fabric.ports import Fabric, Flows, flow_speed
from actors.kernel.compiled import compiled, inlined
from actors.kernel.heap import Heap, drop, push
from actors.kernel.queue import NEVER

_FAR = 1e18  # ns, 32 years: a longer duration, at a rate close to 0, would not fit into a time


@inlined
def whole_ns(duration: float) -> int:
    """Return a duration as whole ns, at least 1 and at most 32 years."""
    return max(np.int64(min(duration, _FAR) + 0.5), np.int64(1))


@inlined
def predict_end(fabric: Fabric, t: int, flow: int) -> None:
    """Let a flow run from t on at the full speed of its ports, and compute its end, at least 1 ns later."""
    flows = fabric.flows
    flows.since[flow] = t
    flows.end[flow] = t + whole_ns(flows.left[flow] / flow_speed(fabric, flow))


@inlined
def add_end(flows: Flows, ends: Heap, flow: int) -> None:
    """Put a flow's end into the heap; if the heap is full, remove its stale entries first."""
    if ends.size[0] == ends.keys.size:
        purge(flows, ends)
    push(ends, flows.end[flow], flow)


@compiled
def purge(flows: Flows, ends: Heap) -> None:
    """Remove stale entries from the heap."""
    size = ends.size[0]
    ends.size[0] = 0
    for i in range(size):
        time, flow = ends.keys[i], ends.values[i]
        if flows.end[flow] == time:
            push(ends, time, flow)


@compiled
def next_end(flows: Flows, ends: Heap) -> int:
    """Return when the next flow ends, which is then ``ends.values[0]``; NEVER if no flow runs."""
    while ends.size[0] > 0:
        if flows.end[ends.values[0]] == ends.keys[0]:
            return ends.keys[0]
        drop(ends)
    return NEVER
