"""The contention of a coflow, how many other coflows share a port with it, kept up to date.

Two coflows are counted if there is a port at which both have unfinished flows, and if they are of one *kind*: their
queue, or the same for all. A coflow that arrives, changes its kind, or is done at a port changes the counts of the
coflows at its ports. So a run costs, for each line, a step for each coflow at its port, and the test whether the two
share another port.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.initial_arrays import at_start, count_of, per, rings_of_lines
from actors.fabric.ports import Fabric, Lines, lines_of
from actors.fabric.ranking import link, unlink
from actors.kernel.compiled import compiled, inlined


class Contention(NamedTuple):
    """Contention of coflows, and the rings of L lines at N ports; port n is element `ports` + n."""

    ports: np.ndarray = count_of("line")  # [1] L
    next: np.ndarray = rings_of_lines()  # [L + N]
    prev: np.ndarray = rings_of_lines()  # [L + N]
    is_here: np.ndarray = per("line", False)  # a line is in the ring of its port
    num_met: np.ndarray = per("coflow")  # other coflows of its kind that share a port with a coflow
    kind: np.ndarray = per("coflow")
    met_in: np.ndarray = per("coflow")  # the last of `num_counts` counts in which a coflow was found
    num_counts: np.ndarray = per("run")


def make_contention(fabric: Fabric) -> Contention:
    """Return the contention at a fabric without active coflows."""
    return at_start(Contention, fabric)


@compiled
def add_coflow(fabric: Fabric, n: Contention, coflow: int, kind: int) -> None:
    """Add a coflow at all ports of its unfinished flows."""
    lines = fabric.lines
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            if lines.left[line] > 0:
                link(n, line, n.ports[0] + lines.port[line])
                n.is_here[line] = True
    n.kind[coflow] = kind
    count_neighbours_of(fabric, n, coflow, 1)


@compiled
def change_kind(fabric: Fabric, n: Contention, coflow: int, kind: int) -> None:
    """Change the kind of a coflow."""
    if kind != n.kind[coflow]:
        count_neighbours_of(fabric, n, coflow, -1)
        n.kind[coflow] = kind
        count_neighbours_of(fabric, n, coflow, 1)


@compiled
def count_neighbours_of(fabric: Fabric, n: Contention, coflow: int, by: int) -> None:
    """Add `by`, 1 or -1, to the counts of a coflow and of each that shares a port with it."""
    lines = fabric.lines
    n.num_counts[0] += 1
    n.met_in[coflow] = n.num_counts[0]
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            if n.is_here[line]:
                here = n.next[n.ports[0] + lines.port[line]]
                while here < n.ports[0]:
                    other, here = lines.group[here], n.next[here]
                    if n.met_in[other] != n.num_counts[0] and n.kind[other] == n.kind[coflow]:
                        n.met_in[other] = n.num_counts[0]
                        count_pair(n, coflow, other, by)


@inlined
def count_pair(n: Contention, coflow: int, other: int, by: int) -> None:
    """Add `by` to the counts of two coflows that share a port."""
    n.num_met[coflow] += by
    n.num_met[other] += by


@compiled
def leave_port(fabric: Fabric, n: Contention, line: int) -> None:
    """Remove a coflow from the port of one of its lines."""
    lines = fabric.lines
    coflow = lines.group[line]
    unlink(n, line)
    n.is_here[line] = False
    here = n.next[n.ports[0] + lines.port[line]]
    while here < n.ports[0]:
        other, here = lines.group[here], n.next[here]
        if n.kind[other] == n.kind[coflow] and not share_port(lines, n, coflow, other):
            count_pair(n, coflow, other, -1)


@compiled
def share_port(lines: Lines, n: Contention, a: int, b: int) -> bool:
    """Return whether two coflows both have unfinished flows at a port."""
    for side in range(2):
        i, j = lines.first_line[a, side], lines.first_line[b, side]
        while i < lines.end_line[a, side] and j < lines.end_line[b, side]:
            if lines.port[i] == lines.port[j]:
                if n.is_here[i] and n.is_here[j]:
                    return True
                i, j = i + 1, j + 1
            elif lines.port[i] < lines.port[j]:
                i += 1
            else:
                j += 1
    return False
