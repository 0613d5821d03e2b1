"""The order in which groups of flows are served, and at each port the lines that wait, in that order."""

from typing import NamedTuple

import numpy as np

from actors.fabric.initial_arrays import list_per, per
from actors.fabric.ports import Fabric, lines_of
from actors.kernel.arrays import fill
from actors.kernel.compiled import compiled
from actors.kernel.queue import NONE


class Order(NamedTuple):
    """The order of groups, and of the lines at each port; the lines of port n are line[first[n]:end[n]]."""

    groups: np.ndarray = list_per("group")  # the first `used` are in use
    used: np.ndarray = per("run")
    level: np.ndarray = per("group", NONE)  # the place of a group, NONE: it is not served
    first: np.ndarray = per("port")
    end: np.ndarray = per("port")
    line: np.ndarray = list_per("line")


@compiled
def set_order(order: Order, groups: np.ndarray, count: int) -> bool:
    """Serve the first `count` of `groups`, in their order; return whether the order has changed.

    Groups that leave the order have no flows left, and do not count as a change.
    """
    last, changed = NONE, False
    for i in range(count):
        was = order.level[groups[i]]
        changed = changed or was <= last
        last = was
    if changed:
        for i in range(order.used[0]):
            order.level[order.groups[i]] = NONE
        for i in range(count):
            order.groups[i] = groups[i]
            order.level[groups[i]] = i
        order.used[0] = count
    return changed


@compiled
def list_lines(fabric: Fabric, order: Order) -> None:
    """List each port's lines in the order of their groups, without lines that have no unfinished flows."""
    lines, first, end = fabric.lines, order.first, order.end
    fill(end, 0)
    for i in range(order.used[0]):
        group = order.groups[i]
        for side in range(2):
            for line in lines_of(lines, group, side):
                if lines.left[line] > 0:
                    end[lines.port[line]] += 1
    total = 0
    for port in range(end.size):
        first[port] = total
        total += end[port]
        end[port] = first[port]
    for i in range(order.used[0]):
        group = order.groups[i]
        for side in range(2):
            for line in lines_of(lines, group, side):
                if lines.left[line] > 0:
                    port = lines.port[line]
                    order.line[end[port]] = line
                    end[port] += 1
