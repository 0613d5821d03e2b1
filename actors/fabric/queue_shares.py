"""Weighted shares of every port's bandwidth for priority queues (Aalo; M. Chowdhury, I. Stoica, SIGCOMM 2015).

Each queue that has a group in the order gets the share of its weight of all ports, and serves its groups within it, in
order. What queues leave of their shares is pooled, and all groups are served once more, in order, out of the pool:
work is conserved. (`actors.fabric.priority_queues` shares time, by slots.)

A policy whose order is sorted by queue calls this between `reset_residual` and `backfill` of the allocation that it
uses, where others call `add_rates`. Groups that are served before all queues, such as pilots, take from the ports
before that.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.equal_rates import Equal, add_rates
from actors.fabric.ports import Fabric
from actors.fabric.service_order import Order
from actors.kernel.compiled import compiled, inlined


class Shares(NamedTuple):
    """Weights of K queues, and the bandwidth of N ports that they share."""

    weight: np.ndarray  # [K] float64
    whole: np.ndarray  # [N] residual bandwidth when sharing begins, bytes per ns
    pool: np.ndarray  # [N] what queues have left of their shares


def make_shares(fabric: Fabric, weight: np.ndarray) -> Shares:
    """Return shares for queues of these weights, which are above 0."""
    ports = fabric.speed.size
    return Shares(np.array(weight, np.float64), np.zeros(ports), np.zeros(ports))


@compiled
def share_equally(
    fabric: Fabric, order: Order, e: Equal, s: Shares, queue: np.ndarray, first: int, end: int
) -> None:
    """Give groups from level `first` to before `end` equal rates: shares by `queue` [G], then out of the pool."""
    total = start_sharing(order, e.residual, s, queue, first, end)
    level = first
    while level < end:
        after = open_share(order, e.residual, s, queue, level, end, total)
        add_rates(fabric, order, e, level, after)
        close_share(e.residual, s)
        level = after
    open_pool(e.residual, s)
    add_rates(fabric, order, e, first, end)


@inlined
def start_sharing(
    order: Order, residual: np.ndarray, s: Shares, queue: np.ndarray, first: int, end: int
) -> float:
    """Begin to share the residual bandwidth; return the weight of all queues that have groups."""
    for port in range(residual.size):
        s.whole[port], s.pool[port] = residual[port], 0.0 if first < end else residual[port]
    total, level = 0.0, first
    while level < end:
        total += s.weight[queue[order.groups[level]]]
        level = end_of_queue(order, queue, level, end)
    return total


@inlined
def end_of_queue(order: Order, queue: np.ndarray, level: int, end: int) -> int:
    """Return the level after those of the queue that `level` is in."""
    own = queue[order.groups[level]]
    while level < end and queue[order.groups[level]] == own:
        level += 1
    return level


@inlined
def open_share(
    order: Order, residual: np.ndarray, s: Shares, queue: np.ndarray, level: int, end: int, total: float
) -> int:
    """Set the residual bandwidth to the share of the queue of `level`; return the level after those of the queue."""
    share = s.weight[queue[order.groups[level]]] / total
    for port in range(residual.size):
        residual[port] = share * s.whole[port]
    return end_of_queue(order, queue, level, end)


@inlined
def close_share(residual: np.ndarray, s: Shares) -> None:
    """Add what is left of a share to the pool."""
    for port in range(residual.size):
        s.pool[port] += residual[port]


@inlined
def open_pool(residual: np.ndarray, s: Shares) -> None:
    """Set the residual bandwidth to what all queues have left."""
    for port in range(residual.size):
        residual[port] = s.pool[port]
