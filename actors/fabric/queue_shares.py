"""Weighted shares of every port's bandwidth for priority queues (Aalo; M. Chowdhury, I. Stoica, SIGCOMM 2015).

Each queue that has a group in the order gets a share of all ports in proportion to its weight, and serves its groups
within it, in order. What queues leave of their shares is pooled, and all groups are served once more, in order, out of
the pool: work is conserved. (`actors.fabric.priority_queues` shares time, by slots.)

A policy whose order is sorted by queue calls `share_equally` between `reset_residual` and `backfill`, where others call
`add_rates`. Groups that are served before all queues, such as pilots, take from the ports before that.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.equal_rates import Equal, add_rates
from actors.fabric.initial_arrays import at_start, per
from actors.fabric.ports import Fabric
from actors.fabric.service_order import Order
from actors.kernel.compiled import compiled, inlined


class Shares(NamedTuple):
    """Weights of K queues, and the bandwidth of the ports that they share."""

    weight: np.ndarray  # [K] float64
    whole: np.ndarray = per("port", 0.0)  # residual bandwidth when sharing begins, bytes per ns
    pool: np.ndarray = per("port", 0.0)  # what queues have left of their shares


def make_shares(fabric: Fabric, weight: np.ndarray) -> Shares:
    """Return shares for queues of these weights, which are above 0."""
    return at_start(Shares, fabric, weight=np.array(weight, np.float64))


@compiled
def share_equally(
    fabric: Fabric, order: Order, e: Equal, s: Shares, queue: np.ndarray, first: int, end: int
) -> None:
    """Give groups from level `first` to before `end` equal rates: shares by `queue` [G], then out of the pool."""
    residual, total, level = e.residual, 0.0, first
    for port in range(residual.size):
        s.whole[port], s.pool[port] = residual[port], 0.0 if first < end else residual[port]
    while level < end:
        total += s.weight[queue[order.groups[level]]]
        level = end_of_queue(order, queue, level, end)
    level = first
    while level < end:
        share, following = (
            s.weight[queue[order.groups[level]]] / total,
            end_of_queue(order, queue, level, end),
        )
        for port in range(residual.size):
            residual[port] = share * s.whole[port]
        add_rates(fabric, order, e, level, following)
        for port in range(residual.size):
            s.pool[port] += residual[port]
        level = following
    for port in range(residual.size):
        residual[port] = s.pool[port]
    add_rates(fabric, order, e, first, end)


@inlined
def end_of_queue(order: Order, queue: np.ndarray, level: int, end: int) -> int:
    """Return the level after those of the queue that `level` belongs to."""
    own = queue[order.groups[level]]
    while level < end and queue[order.groups[level]] == own:
        level += 1
    return level
