"""Sincronia's order: bottleneck, select, scale, iterate (S. Agarwal et al., SIGCOMM 2018, Algorithm 1).

At the most loaded port, the coflow with the least weight for its bytes there gets the last place. The weights of the
other coflows at that port are lowered in proportion. The same is then done for the coflows that have no place yet.
Waves of one shuffle (`actors.fabric.waves`) are one coflow here, and lie side by side.
O(n (N + lines of a coflow)) for n coflows and N ports.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.initial_arrays import list_per, per
from actors.fabric.ports import Fabric, Lines, lines_of
from actors.fabric.waves import Waves, end_of_shuffle
from actors.kernel.arrays import fill, largest
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE


class BssiScratch(NamedTuple):
    """Scratch arrays of `bssi`."""

    load: np.ndarray = per("port", 0.0)  # ns that the coflows without a place need at a port
    begin: np.ndarray = per("coflow")  # where the first wave of a coflow is in the order before
    order: np.ndarray = list_per("coflow")  # the order that is being made, from its end
    # what is left of a coflow's weight, by `begin`; infinite once it has its place
    weight: np.ndarray = per("coflow", 0.0)
    head: np.ndarray = per("port")  # first of the lines at a port, or NONE
    next: np.ndarray = per("line")  # the line after it at the same port, or NONE


@compiled
def bssi(fabric: Fabric, waves: Waves, s: BssiScratch, groups: np.ndarray, count: int) -> None:
    """Put the first `count` of `groups`, coflows, into Sincronia's order, by the bytes of their lines."""
    find_first_waves(fabric, waves, s, groups, count)
    load_ports(fabric, s, groups, count)
    left = count
    while left > 1:
        worst = largest(s.load)
        if s.load[worst] == 0.0:
            break  # the coflows without a place have no bytes
        chosen = choose_last(fabric.lines, s, worst)
        if chosen == NONE:
            s.load[worst] = 0.0  # only rounding left a load
            continue
        lower_weights(fabric.lines, s, worst, chosen)
        first = s.begin[fabric.lines.group[chosen]]
        for i in range(end_of_shuffle(waves, groups, first, count) - 1, first - 1, -1):
            unload_ports(fabric, s, groups[i])
            left -= 1
            s.order[left] = groups[i]
    for i in range(count - 1, -1, -1):  # coflows without a place are first, as they were
        if s.weight[s.begin[groups[i]]] < np.inf:
            left -= 1
            s.order[left] = groups[i]
    for i in range(count):
        groups[i] = s.order[i]


@inlined
def find_first_waves(fabric: Fabric, waves: Waves, s: BssiScratch, groups: np.ndarray, count: int) -> None:
    """Find where the first waves of the first `count` of `groups` are, of which each has the weight of a coflow."""
    begin = 0
    while begin < count:
        end = end_of_shuffle(waves, groups, begin, count)
        s.weight[begin] = fabric.coflows.weight[groups[begin]]
        for i in range(begin, end):
            s.begin[groups[i]] = begin
        begin = end


@compiled
def load_ports(fabric: Fabric, s: BssiScratch, groups: np.ndarray, count: int) -> None:
    """Compute the load of each port by the first `count` of `groups`, and list their lines by port."""
    lines = fabric.lines
    fill(s.load, 0.0)
    fill(s.head, NONE)
    for i in range(count):
        group = groups[i]
        for side in range(2):
            for line in lines_of(lines, group, side):
                port = lines.port[line]
                s.load[port] += lines.bytes[line] / fabric.speed[port]
                s.next[line] = s.head[port]
                s.head[port] = line


@inlined
def choose_last(lines: Lines, s: BssiScratch, port: int) -> int:
    """Return the first line at a port of the coflow that has the least weight for its bytes there, or NONE."""
    least, of, chosen = np.inf, 1.0, NONE
    line = s.head[port]
    while line != NONE:
        size, weight = bytes_here(lines, s, line), s.weight[s.begin[lines.group[line]]]
        if size > 0.0 and weight * of < least * size:  # products: equal coflows tie exactly
            least, of, chosen = weight, size, line
        line = next_coflow(lines, s, line)
    return chosen


@inlined
def next_coflow(lines: Lines, s: BssiScratch, line: int) -> int:
    """Return the first line of the next coflow at a port after that of a line, or NONE."""
    first = s.begin[lines.group[line]]
    while line != NONE and s.begin[lines.group[line]] == first:
        line = s.next[line]
    return line


@inlined
def bytes_here(lines: Lines, s: BssiScratch, line: int) -> float:
    """Return the bytes of a coflow at a port, whose first line there is given."""
    first, size = s.begin[lines.group[line]], 0.0
    while line != NONE and s.begin[lines.group[line]] == first:
        size += lines.bytes[line]
        line = s.next[line]
    return size


@inlined
def lower_weights(lines: Lines, s: BssiScratch, port: int, chosen: int) -> None:
    """Lower the weights of the coflows at a port in proportion to their bytes there; mark the chosen one as placed."""
    last = s.begin[lines.group[chosen]]
    price = s.weight[last] / bytes_here(lines, s, chosen)
    line = s.head[port]
    while line != NONE:
        s.weight[s.begin[lines.group[line]]] -= price * lines.bytes[line]
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
