"""Sincronia's order: bottleneck, select, scale, iterate (S. Agarwal et al., SIGCOMM 2018, Algorithm 1).

The last place goes to the coflow that, at the most loaded port, has the least weight for its bytes at this port. The
weights of the others at that port are lowered in proportion, and the same is done for the coflows without a place.
O(n (N + lines of a coflow)) for n coflows and N ports.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.ports import Fabric, Lines
from actors.kernel.arrays import fill, largest
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE


class BssiScratch(NamedTuple):
    """Scratch arrays of `bssi`; N ports, C coflows, L lines."""

    load: np.ndarray  # [N] ns that the coflows without a place need at a port
    weight: np.ndarray  # [C] what is left of a coflow's weight; infinite once it has its place
    head: np.ndarray  # [N] first of the lines at a port, or NONE
    next: np.ndarray  # [L] the next one


def make_scratch(fabric: Fabric) -> BssiScratch:
    """Return scratch arrays for the coflows of a fabric."""
    return BssiScratch(
        load=np.zeros(fabric.speed.size),
        weight=np.zeros(fabric.coflows.arrival.size),
        head=np.zeros(fabric.speed.size, np.int64),
        next=np.zeros(fabric.lines.port.size, np.int64),
    )


@compiled
def bssi(fabric: Fabric, s: BssiScratch, groups: np.ndarray, count: int) -> None:
    """Put the first `count` of `groups`, coflows, into Sincronia's order, by the bytes of their lines."""
    load_ports(fabric, s, groups, count)
    end = count - 1
    while end > 0:
        worst = largest(s.load)
        if s.load[worst] == 0.0:
            break  # what is left has no bytes
        chosen = choose_last(fabric.lines, s, worst)
        if chosen == NONE:
            s.load[worst] = 0.0  # what rounding left
            continue
        last = fabric.lines.group[chosen]
        lower_weights(fabric.lines, s, worst, chosen)
        unload_ports(fabric, s, last)
        move_to(groups, last, end)
        end -= 1


@compiled
def load_ports(fabric: Fabric, s: BssiScratch, groups: np.ndarray, count: int) -> None:
    """Compute the load of each port by the first `count` of `groups`, and list their lines by port."""
    lines = fabric.lines
    fill(s.load, 0.0)
    fill(s.head, NONE)
    for i in range(count):
        group = groups[i]
        s.weight[group] = fabric.coflows.weight[group]
        for side in range(2):
            for line in range(lines.of_group[group, side], lines.of_group[group + 1, side]):
                port = lines.port[line]
                s.load[port] += lines.bytes[line] / fabric.speed[port]
                s.next[line] = s.head[port]
                s.head[port] = line


@inlined
def choose_last(lines: Lines, s: BssiScratch, port: int) -> int:
    """Return the line at a port whose coflow has the least weight for its bytes there, or NONE."""
    least, of, chosen = np.inf, 1.0, NONE
    line = s.head[port]
    while line != NONE:
        size, weight = lines.bytes[line], s.weight[lines.group[line]]
        if size > 0.0 and weight * of < least * size:  # products: equal coflows tie exactly
            least, of, chosen = weight, size, line
        line = s.next[line]
    return chosen


@inlined
def lower_weights(lines: Lines, s: BssiScratch, port: int, chosen: int) -> None:
    """Lower the weights of the coflows at a port in proportion to their bytes there; the chosen one gets its place."""
    last = lines.group[chosen]
    price = s.weight[last] / lines.bytes[chosen]
    line = s.head[port]
    while line != NONE:
        s.weight[lines.group[line]] -= price * lines.bytes[line]
        line = s.next[line]
    s.weight[last] = np.inf


@inlined
def unload_ports(fabric: Fabric, s: BssiScratch, group: int) -> None:
    """Take the load of a coflow off its ports."""
    lines = fabric.lines
    for side in range(2):
        for line in range(lines.of_group[group, side], lines.of_group[group + 1, side]):
            port = lines.port[line]
            s.load[port] = max(s.load[port] - lines.bytes[line] / fabric.speed[port], 0.0)


@inlined
def move_to(groups: np.ndarray, group: int, end: int) -> None:
    """Move a group back to place `end`; the groups in between move forward by one."""
    i = end
    while groups[i] != group:
        i -= 1
    while i < end:
        groups[i] = groups[i + 1]
        i += 1
    groups[end] = group
