"""The order in which groups of flows are served, and at each port the lines that wait, in that order."""

from typing import NamedTuple

import numpy as np

from actors.fabric.ports import Fabric
from actors.kernel.arrays import fill
from actors.kernel.compiled import compiled
from actors.kernel.queue import NONE


class Order(NamedTuple):
    """The order of G groups, and of L lines at N ports; the lines of port n are line[first[n]:end[n]]."""

    groups: np.ndarray  # [G] the first `used` are in use
    used: np.ndarray  # [1]
    level: np.ndarray  # [G] place of a group, NONE where it is not served
    first: np.ndarray  # [N]
    end: np.ndarray  # [N]
    line: np.ndarray  # [L]


def make_order(fabric: Fabric) -> Order:
    """Return an order in which no group is served."""
    groups, ports = fabric.lines.of_group.shape[0] - 1, fabric.speed.size
    return Order(
        groups=np.zeros(groups, np.int64),
        used=np.zeros(1, np.int64),
        level=np.full(groups, NONE),
        first=np.zeros(ports, np.int64),
        end=np.zeros(ports, np.int64),
        line=np.zeros(fabric.lines.port.size, np.int64),
    )


@compiled
def set_order(order: Order, groups: np.ndarray, count: int) -> bool:
    """Serve the first `count` of `groups`, in their order; return whether the order has changed.

    Groups of the old order that are not in the new one do not count: they have no flows left.
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
            for line in range(lines.of_group[group, side], lines.of_group[group + 1, side]):
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
            for line in range(lines.of_group[group, side], lines.of_group[group + 1, side]):
                if lines.left[line] > 0:
                    port = lines.port[line]
                    order.line[end[port]] = line
                    end[port] += 1
