"""Sincronia's order: bottleneck, select, scale, iterate (S. Agarwal et al., SIGCOMM 2018, Algorithm 1).

At the most loaded port, the coflow with the least weight for its bytes there gets the last place. The weights of the
other coflows at that port are lowered in proportion. The same is then done for the coflows that have no place yet.
O(n (N + lines of a coflow)) for n coflows and N ports.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.initial_arrays import per
from actors.fabric.ports import Fabric, Lines, lines_of
from actors.kernel.arrays import fill, largest
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE


class BssiScratch(NamedTuple):
    """Scratch arrays of `bssi`."""

    load: np.ndarray = per("port", 0.0)  # ns that the coflows without a place need at a port
    # what is left of a coflow's weight; infinite once it has its place
    weight: np.ndarray = per("coflow", 0.0)
    head: np.ndarray = per("port")  # first of the lines at a port, or NONE
    next: np.ndarray = per("line")  # the line after it at the same port, or NONE


@compiled
def bssi(fabric: Fabric, s: BssiScratch, groups: np.ndarray, count: int) -> None:
    """Put the first `count` of `groups`, coflows, into Sincronia's order, by the bytes of their lines."""
    load_ports(fabric, s, groups, count)
    end = count - 1
    while end > 0:
        worst = largest(s.load)
        if s.load[worst] == 0.0:
            break  # the coflows without a place have no bytes
        chosen = choose_last(fabric.lines, s, worst)
        if chosen == NONE:
            s.load[worst] = 0.0  # only rounding left a load
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
            for line in lines_of(lines, group, side):
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
    """Lower the weights of the coflows at a port in proportion to their bytes there; mark the chosen one as placed."""
    last = lines.group[chosen]
    price = s.weight[last] / lines.bytes[chosen]
    line = s.head[port]
    while line != NONE:
        s.weight[lines.group[line]] -= price * lines.bytes[line]
        line = s.next[line]
    s.weight[last] = np.inf


@inlined
def unload_ports(fabric: Fabric, s: BssiScratch, group: int) -> None:
    """Subtract a coflow's load from that of its ports."""
    lines = fabric.lines
    for side in range(2):
        for line in lines_of(lines, group, side):
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
