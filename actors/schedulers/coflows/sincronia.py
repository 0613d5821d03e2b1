"""Sincronia (SIGCOMM 2018): an order of coflows under which the rates hardly matter. Clairvoyant.

The order of coflows is enough: if all coflows arrive at the beginning, the mean completion time is within 4 times the
optimum with any rates that follow the order and conserve work.

1. A coflow registers, with the sizes of its flows; or, unless `reorder=arrivals`, a coflow has ended.
2. Bottleneck, select, scale, iterate: at the most loaded port, the coflow with the least weight
   for its bytes left there gets the last place. The weights of the other coflows at that port are lowered in
   proportion. The same is then done for the coflows that have no place yet. Weights are those of the workload; they are
   1 if it has none, or with `weights=false`.
3. In this order each flow gets both of its ports if they are free; a running flow is stopped if it holds a port that an
   earlier coflow can use. With `flow_order=workload` the flows of one coflow also have an order.
4. When a flow ends, its ports go to the next flows in order at once. Agents report only ends of flows.

O(n (N + lines of a coflow)) a decision about n coflows at N ports, O(words of a line) for a flow that starts or stops.

**Deviations from the paper.** The order is recomputed at each arrival and each end of a coflow, from what coflows have
left then (with `reorder=arrivals` only at arrivals: once, if all arrive at the beginning, as in the paper's off-line
algorithm); the bound of the paper's on-line algorithm depends on epochs, which are not modelled. A heavy coflow may
wait as long as lighter ones arrive. The coordinator sets the rates; in the paper they result from priorities in the
transport.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.greedy import flow_order
from actors.fabric.ports import Fabric, Lines, lines_of
from actors.fabric.waves import Waves, end_of_shuffle
from actors.initial_arrays import at_start, list_per, per
from actors.kernel.arrays import fill, largest
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.scheduler import Parameter
from actors.schedulers.coflows.build import coflow_scheduler
from actors.schedulers.coflows.ordered import (
    INTERVAL,
    Ordered,
    begin_decision,
    build_ordered,
    end_decision,
    ordered_loops,
    put_waves_side_by_side,
)
from actors.setting import Setting

PARAMETERS = (
    Parameter(
        "reorder",
        "ends",
        "choice",
        "the order is made again when a coflow has arrived, or also when one has ended",
        choices=("arrivals", "ends"),
    ),
    Parameter("weights", True, "flag", "the weights of coflows count; otherwise all are 1"),
    flow_order("ports"),
    INTERVAL,
)


class BssiScratch(NamedTuple):
    """Scratch arrays of `bssi`."""

    load: np.ndarray = per("port", 0.0)  # ns that the coflows without a place need at a port
    begin: np.ndarray = per("coflow")  # where the first wave of a coflow is in the order before
    order: np.ndarray = list_per("coflow")  # the order that is being made, from its end
    # what is left of a coflow's weight, by `begin`; infinite once it has its place
    weight: np.ndarray = per("coflow", 0.0)
    head: np.ndarray = per("port")  # first of the lines at a port, or NONE
    next: np.ndarray = per("line")  # the line after it at the same port, or NONE


class State(NamedTuple):
    """The state of the coordinator."""

    ordered: Ordered
    scratch: BssiScratch


@compiled
def on_decide(w: CoflowWorld, p: State, t: int) -> None:
    """Steps 2 and 3: put the active coflows in order, and serve their flows in it."""
    ordered = p.ordered
    count = begin_decision(w, ordered, t)
    if count != NONE:
        put_waves_side_by_side(w, ordered, count)
        bssi(w.fabric, w.waves, p.scratch, ordered.groups, count)
        end_decision(w, ordered, t, count)


@compiled
def bssi(fabric: Fabric, waves: Waves, scratch: BssiScratch, groups: np.ndarray, count: int) -> None:
    """Step 2: put the first `count` of `groups`, coflows, in order, by the bytes of their lines.

    Waves of one shuffle (`actors.fabric.waves`) are one coflow here, and lie side by side.
    """
    find_first_waves(fabric, waves, scratch, groups, count)
    load_ports(fabric, scratch, groups, count)
    left = count
    while left > 1:
        worst = largest(scratch.load)
        if scratch.load[worst] == 0.0:
            break  # the coflows without a place have no bytes
        chosen = choose_last(fabric.lines, scratch, worst)
        if chosen == NONE:
            scratch.load[worst] = 0.0  # only rounding left a load
            continue
        lower_weights(fabric.lines, scratch, worst, chosen)
        first = scratch.begin[fabric.lines.group[chosen]]
        for i in range(end_of_shuffle(waves, groups, first, count) - 1, first - 1, -1):
            unload_ports(fabric, scratch, groups[i])
            left -= 1
            scratch.order[left] = groups[i]
    for i in range(count - 1, -1, -1):  # coflows without a place are first, as they were
        if scratch.weight[scratch.begin[groups[i]]] < np.inf:
            left -= 1
            scratch.order[left] = groups[i]
    for i in range(count):
        groups[i] = scratch.order[i]


@inlined
def find_first_waves(
    fabric: Fabric, waves: Waves, scratch: BssiScratch, groups: np.ndarray, count: int
) -> None:
    """Find where the first waves of the first `count` of `groups` are, of which each has the weight of a coflow."""
    begin = 0
    while begin < count:
        end = end_of_shuffle(waves, groups, begin, count)
        scratch.weight[begin] = fabric.coflows.weight[groups[begin]]
        for i in range(begin, end):
            scratch.begin[groups[i]] = begin
        begin = end


@compiled
def load_ports(fabric: Fabric, scratch: BssiScratch, groups: np.ndarray, count: int) -> None:
    """Compute the load of each port by the first `count` of `groups`, and list their lines by port."""
    lines = fabric.lines
    fill(scratch.load, 0.0)
    fill(scratch.head, NONE)
    for i in range(count):
        group = groups[i]
        for side in range(2):
            for line in lines_of(lines, group, side):
                port = lines.port[line]
                scratch.load[port] += lines.bytes[line] / fabric.speed[port]
                scratch.next[line] = scratch.head[port]
                scratch.head[port] = line


@inlined
def choose_last(lines: Lines, scratch: BssiScratch, port: int) -> int:
    """Return the first line at a port of the coflow that has the least weight for its bytes there, or NONE."""
    least, of, chosen = np.inf, 1.0, NONE
    line = scratch.head[port]
    while line != NONE:
        size, weight = bytes_here(lines, scratch, line), scratch.weight[scratch.begin[lines.group[line]]]
        if size > 0.0 and weight * of < least * size:  # products: equal coflows tie exactly
            least, of, chosen = weight, size, line
        line = next_coflow(lines, scratch, line)
    return chosen


@inlined
def next_coflow(lines: Lines, scratch: BssiScratch, line: int) -> int:
    """Return the first line of the next coflow at a port after that of a line, or NONE."""
    first = scratch.begin[lines.group[line]]
    while line != NONE and scratch.begin[lines.group[line]] == first:
        line = scratch.next[line]
    return line


@inlined
def bytes_here(lines: Lines, scratch: BssiScratch, line: int) -> float:
    """Return the bytes of a coflow at a port, whose first line there is given."""
    first, size = scratch.begin[lines.group[line]], 0.0
    while line != NONE and scratch.begin[lines.group[line]] == first:
        size += lines.bytes[line]
        line = scratch.next[line]
    return size


@inlined
def lower_weights(lines: Lines, scratch: BssiScratch, port: int, chosen: int) -> None:
    """Lower the weights of the coflows at a port in proportion to their bytes there; mark the chosen one as placed."""
    last = scratch.begin[lines.group[chosen]]
    price = scratch.weight[last] / bytes_here(lines, scratch, chosen)
    line = scratch.head[port]
    while line != NONE:
        scratch.weight[scratch.begin[lines.group[line]]] -= price * lines.bytes[line]
        line = scratch.next[line]
    scratch.weight[last] = np.inf


@inlined
def unload_ports(fabric: Fabric, scratch: BssiScratch, group: int) -> None:
    """Subtract a coflow's load from that of its ports."""
    lines = fabric.lines
    for side in range(2):
        for line in lines_of(lines, group, side):
            port = lines.port[line]
            scratch.load[port] = max(scratch.load[port] - lines.bytes[line] / fabric.speed[port], 0.0)


advance, advance_transfers = ordered_loops(__name__, State, on_decide)


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    world, ordered = build_ordered(setting, rates="greedy")
    if not setting.parameters["weights"]:
        world.fabric.coflows.weight[:] = 1.0
    return world, State(ordered, at_start(BssiScratch, world.fabric))


SINCRONIA = coflow_scheduler(
    name="sincronia",
    title="coflows in the order of bottleneck, select, scale, iterate",
    paper="Agarwal et al.: Sincronia, SIGCOMM 2018, Algorithm 1, doi 10.1145/3230543.3230569",
    parameters=PARAMETERS,
    build=build,
    advance=advance,
    transfers=advance_transfers,
    updatable="always",
)
