"""How many other coflows meet a coflow at its ports: its contention, kept up to date.

Two coflows meet if there is a port at which both have unfinished flows, and if they are of one *kind*: their queue, or
the same for all. A coflow that comes, goes to another kind, or is done at a port changes the figures of those that it
meets there alone, so that a run costs each line as often as there are coflows at its port, and what it takes to see
whether two of them meet elsewhere.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.ports import Fabric, Lines
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE


class Contention(NamedTuple):
    """C coflows with L lines at N ports; the lines at port n are line[first[n] : first[n] + used[n]]."""

    num_met: np.ndarray  # [C] other coflows of its kind that a coflow meets
    kind: np.ndarray  # [C]
    first: np.ndarray  # [N]
    used: np.ndarray  # [N]
    line: np.ndarray  # [L]
    position: np.ndarray  # [L] where a line is in `line`, NONE where it is not
    met_in: np.ndarray  # [C] in which count of `num_counts` a coflow was met last
    num_counts: np.ndarray  # [1]


def make_contention(fabric: Fabric) -> Contention:
    """Nobody is there."""
    coflows, lines = fabric.coflows.arrival.size, fabric.lines.port.size
    most = np.bincount(fabric.lines.port[fabric.lines.port != NONE], minlength=fabric.speed.size)
    return Contention(
        num_met=np.zeros(coflows, np.int64),
        kind=np.zeros(coflows, np.int64),
        first=np.cumsum(most) - most,
        used=np.zeros(most.size, np.int64),
        line=np.zeros(lines, np.int64),
        position=np.full(lines, NONE),
        met_in=np.zeros(coflows, np.int64),
        num_counts=np.zeros(1, np.int64),
    )


@compiled
def add_coflow(fabric: Fabric, n: Contention, coflow: int, kind: int) -> None:
    """A coflow is there, at all ports of its unfinished flows."""
    lines = fabric.lines
    for side in range(2):
        for line in range(lines.of_group[coflow, side], lines.of_group[coflow + 1, side]):
            if lines.left[line] > 0:
                port = lines.port[line]
                n.position[line] = n.first[port] + n.used[port]
                n.line[n.position[line]] = line
                n.used[port] += 1
    n.kind[coflow] = kind
    count_neighbours_of(fabric, n, coflow, 1)


@compiled
def change_kind(fabric: Fabric, n: Contention, coflow: int, kind: int) -> None:
    """A coflow is of another kind."""
    if kind != n.kind[coflow]:
        count_neighbours_of(fabric, n, coflow, -1)
        n.kind[coflow] = kind
        count_neighbours_of(fabric, n, coflow, 1)


@compiled
def count_neighbours_of(fabric: Fabric, n: Contention, coflow: int, by: int) -> None:
    """Count a coflow, or no more, with each that it meets."""
    lines = fabric.lines
    n.num_counts[0] += 1
    n.met_in[coflow] = n.num_counts[0]
    for side in range(2):
        for line in range(lines.of_group[coflow, side], lines.of_group[coflow + 1, side]):
            if n.position[line] != NONE:
                port = lines.port[line]
                for i in range(n.first[port], n.first[port] + n.used[port]):
                    other = lines.group[n.line[i]]
                    if n.met_in[other] != n.num_counts[0] and n.kind[other] == n.kind[coflow]:
                        n.met_in[other] = n.num_counts[0]
                        count_pair(n, coflow, other, by)


@inlined
def count_pair(n: Contention, coflow: int, other: int, by: int) -> None:
    """Two coflows meet, or no more."""
    n.num_met[coflow] += by
    n.num_met[other] += by


@compiled
def leave_port(fabric: Fabric, n: Contention, line: int) -> None:
    """A coflow is done at the port of one of its lines."""
    lines = fabric.lines
    coflow, port, i = lines.group[line], lines.port[line], n.position[line]
    n.used[port] -= 1
    last = n.line[n.first[port] + n.used[port]]
    n.line[i], n.position[last] = last, i
    n.position[line] = NONE
    for i in range(n.first[port], n.first[port] + n.used[port]):
        other = lines.group[n.line[i]]
        if n.kind[other] == n.kind[coflow] and not share_port(lines, n, coflow, other):
            count_pair(n, coflow, other, -1)


@compiled
def share_port(lines: Lines, n: Contention, a: int, b: int) -> bool:
    """Return whether two coflows are at a port together."""
    for side in range(2):
        i, j = lines.of_group[a, side], lines.of_group[b, side]
        while i < lines.of_group[a + 1, side] and j < lines.of_group[b + 1, side]:
            if lines.port[i] == lines.port[j]:
                if n.position[i] != NONE and n.position[j] != NONE:
                    return True
                i, j = i + 1, j + 1
            elif lines.port[i] < lines.port[j]:
                i += 1
            else:
                j += 1
    return False
