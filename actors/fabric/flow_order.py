"""Greedy rates for flows one after another: each has its own place, also among those of its coflow.

`actors.fabric.greedy` prefers, of one coflow's flows, those that run, and then goes by ports. Here a flow takes both of
its ports if no flow before it has taken one, as in the pseudocode of greedy allocation: coflows in their order, the
flows of each in the order of the workload. So a flow that runs may be stopped for another one of its coflow.

The allocation is computed from the beginning at each event: O(flows of the coflows that are served).
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.greedy import Matching, fill_ports, free_port, serve_in_order, start_flow, stop_flow
from actors.fabric.ports import Fabric
from actors.fabric.ranking import Ranking
from actors.kernel.arrays import fill
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.kernel.world import NEVER
from actors.scheduler import Parameter

_LEVEL = np.int64(0)  # of all flows: levels are not used


def flow_order(default: str) -> Parameter:
    """Return the parameter by which flows of one coflow are ordered."""
    return Parameter(
        "flow_order",
        default,
        "choice",
        "the order of a coflow's own flows: that of the workload, or running ones first and then by ports",
        choices=("workload", "ports"),
    )


class FlowOrder(NamedTuple):
    """The order of F flows of C coflows between N ports."""

    as_workload: bool  # else that of `actors.fabric.greedy`
    flow: np.ndarray  # [F] coflow by coflow, those of each in the order of the workload
    at_port: np.ndarray  # [N] scratch: the flow that is to have the port, or NONE
    coflows: np.ndarray  # [C] the first `served` of them are served, in their order
    served: np.ndarray  # [1]


def make_flow_order(world: CoflowWorld, order: str) -> FlowOrder:
    """Return the order of flows by a value of the parameter, no coflow served."""
    flows, row = world.fabric.flows, world.row_of_flow
    place = np.full(flows.coflow.size, row.size)  # that of flows which only updates make is the last
    np.minimum.at(place, row, np.arange(row.size))
    return FlowOrder(
        as_workload=order == "workload",
        flow=np.lexsort((place, flows.coflow)),
        at_port=np.full(world.fabric.speed.size, NONE),
        coflows=np.zeros(world.work.size, np.int64),
        served=np.zeros(1, np.int64),
    )


@compiled
def serve_coflows(
    fabric: Fabric, r: Ranking, m: Matching, f: FlowOrder, t: int, coflows: np.ndarray, count: int
) -> None:
    """Serve the first `count` of `coflows` in their order; `m` notes which flows start and stop."""
    if f.as_workload:
        f.served[0] = count
        for i in range(count):
            f.coflows[i] = coflows[i]
    else:
        serve_in_order(fabric, r, m, t, coflows, count)
    refill_ports(fabric, r, m, f, t)


@inlined
def refill_ports(fabric: Fabric, r: Ranking, m: Matching, f: FlowOrder, t: int) -> None:
    """Give ports that flows have left to the next ones of the coflows that are served."""
    if f.as_workload:
        fill_in_order(fabric, m, f, t)
    else:
        fill_ports(fabric, r, m, t)


@compiled
def fill_in_order(fabric: Fabric, m: Matching, f: FlowOrder, t: int) -> None:
    """Give ports to flows in their order; stop those that no longer have theirs, and start those that do now."""
    flows = fabric.flows
    find_flows(fabric, f)
    for source in range(fabric.side):
        flow = m.flow[source]
        if flow != NONE and f.at_port[source] != flow:
            stop_flow(fabric, m, t, flow)
            free_port(m, source)
            free_port(m, flows.sink[flow])
    for source in range(fabric.side):
        flow = f.at_port[source]
        if flow != m.flow[source]:
            start_flow(fabric, m, t, flow, _LEVEL)


@compiled
def find_flows(fabric: Fabric, f: FlowOrder) -> None:
    """Find the flow that is to have each port: in order, each takes both of its ports if both are left."""
    flows, first_flow = fabric.flows, fabric.coflows.first_flow
    fill(f.at_port, NONE)
    for i in range(f.served[0]):
        coflow = f.coflows[i]
        if fabric.coflows.left[coflow] == 0:
            continue
        for k in range(first_flow[coflow], first_flow[coflow + 1]):
            flow = f.flow[k]
            source, sink = flows.source[flow], flows.sink[flow]
            if flows.finish[flow] == NEVER and f.at_port[source] == NONE and f.at_port[sink] == NONE:
                f.at_port[source] = f.at_port[sink] = flow
