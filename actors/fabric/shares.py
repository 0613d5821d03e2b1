"""Weighted shares of every port's bandwidth for priority queues (Aalo; M. Chowdhury, I. Stoica, SIGCOMM 2015).

Each queue that has a group in the order gets its weight's part of what the ports have, and serves its groups within it,
in order. What queues leave of their shares is pooled, and all groups are served once more, in order, out of the pool:
work is conserved. (Shares as time, slots in turn: queues.py.)

A policy whose order is sorted by queue calls this between `reset_residual` and `backfill` of the allocation that it
uses, where others call `add_rates`. Groups before all queues, such as pilots, are served first.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.equal import Equal, add_rates
from actors.fabric.order import Order
from actors.fabric.ports import Fabric
from actors.kernel.compiled import compiled, inlined


class Shares(NamedTuple):
    """What K queues and N ports have."""

    weight: np.ndarray  # [K] float64
    whole: np.ndarray  # [N] what there is to share, bytes per ns
    pool: np.ndarray  # [N] what queues have left of their shares


def make_shares(fabric: Fabric, weight: np.ndarray) -> Shares:
    """Shares for queues of these weights, which are above 0."""
    ports = fabric.speed.size
    return Shares(np.array(weight, np.float64), np.zeros(ports), np.zeros(ports))


@compiled
def share_equally(
    fabric: Fabric, order: Order, e: Equal, s: Shares, queue: np.ndarray, first: int, end: int
) -> None:
    """Equal rates for the groups from level `first` to before `end`: `queue` [G] shares of the room, then the pool."""
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
    """Set out to share the room; return the weight of all queues that have groups, without which all is pooled."""
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
    """Let the room be the share of the queue that `level` is in; return the level after those of the queue."""
    share = s.weight[queue[order.groups[level]]] / total
    for port in range(residual.size):
        residual[port] = share * s.whole[port]
    return end_of_queue(order, queue, level, end)


@inlined
def close_share(residual: np.ndarray, s: Shares) -> None:
    """Put what is left of a share into the pool."""
    for port in range(residual.size):
        s.pool[port] += residual[port]


@inlined
def open_pool(residual: np.ndarray, s: Shares) -> None:
    """Let the room be what all queues have left."""
    for port in range(residual.size):
        residual[port] = s.pool[port]
