"""What nodes have free at some time, by resource, and whether one job fits there: all of its tasks, or some.

A node holds as many tasks of a job as fit into each resource. A gang on any nodes fits when the sum over the nodes is
as many tasks as it has; one on `n` nodes when so many have room for an even share, of which `tasks % n` for one more.
Nodes are filled in the order of their ids. A task counts as the most that one of its job needs.

An outlook is of the present, or a copy that is moved to a later time by what ends and starts until then. It keeps, for
the job that is looked at, how many tasks each node holds, so that a change of one node costs that of one node.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.kernel.records import Records, records

# The job that is looked at: its demand, a row of `Outlook.demand`; how many tasks, of which `least` are to fit, on how
# many nodes, 0 for any; of these nodes all have `share` tasks, and `larger` one more. What was found: tasks that fit,
# and nodes with such room.
LOOK = np.dtype(
    [
        (name, "i8")
        for name in (
            "demand",
            "tasks",
            "least",
            "nodes",
            "share",
            "larger",
            "found",
            "with_share",
            "with_more",
        )
    ]
)
# Tasks of one job that were placed on one node together, or are to be.
PLACED_ROW = np.dtype([("node", "i8"), ("tasks", "i8")])


class Outlook(NamedTuple):
    """What N nodes have free of R resources, in the unit of demands, and what of a job fits there."""

    demand: np.ndarray  # [D, R] read-only
    free: np.ndarray  # [N, R]
    total: np.ndarray  # [R] free on all nodes, also on those that are down; kept for the present alone
    up: np.ndarray  # [N] 1, or 0: the node is known to be down, and nothing fits there
    there: np.ndarray  # [N] tasks of the job that fit on each node, at most all of them
    look: Records  # [1] LOOK


def make_outlook(demand: np.ndarray, free: np.ndarray, up: np.ndarray) -> Outlook:
    """Return an outlook on nodes with so much free, [N, R]; demands are [D, R]; `up` is shared by all outlooks."""
    return Outlook(demand, free, free.sum(axis=0), up, np.zeros(len(free), np.int64), records(LOOK, 1))


@inlined
def room_at(o: Outlook, node: int) -> int:
    """Return how many tasks of the job fit on a node, at most all of them."""
    most, demand = o.look.tasks[0] * o.up[node], o.look.demand[0]
    for r in range(o.demand.shape[1]):
        needed = o.demand[demand, r]
        if needed > 0:
            most = min(most, o.free[node, r] // needed)
    return most


@inlined
def count_in(o: Outlook, there: int, sign: int) -> None:
    """Count a node on which so many tasks fit, or take it out of the counts."""
    look = o.look
    look.found[0] += sign * there
    look.with_share[0] += sign * np.int64(there >= look.share[0])
    look.with_more[0] += sign * np.int64(there > look.share[0])


@compiled
def look_at(o: Outlook, demand: int, tasks: int, nodes: int) -> None:
    """Find how many tasks of a job fit on each node: of `tasks` tasks of a demand, on `nodes` nodes or, if 0, any."""
    look = o.look
    look.demand[0], look.tasks[0], look.least[0], look.nodes[0] = demand, tasks, tasks, nodes
    look.share[0], look.larger[0] = tasks // max(nodes, 1), tasks % max(nodes, 1)
    look.found[0], look.with_share[0], look.with_more[0] = 0, 0, 0
    for node in range(o.there.size):
        o.there[node] = room_at(o, node)
        count_in(o, o.there[node], np.int64(1))


@compiled
def copy_free(o: Outlook, free: np.ndarray) -> None:
    """Let as much be free as in another outlook, [N, R]."""
    for node in range(o.there.size):
        for r in range(o.demand.shape[1]):
            o.free[node, r] = free[node, r]


@compiled
def keep_less(o: Outlook, free: np.ndarray) -> None:
    """Let no more be free than in another outlook, [N, R]."""
    for node in range(o.there.size):
        for r in range(o.demand.shape[1]):
            o.free[node, r] = min(o.free[node, r], free[node, r])


@inlined
def all_fit(o: Outlook) -> bool:
    """Return whether as many tasks of the job as must fit at once, on as many nodes as it states."""
    look = o.look
    if look.nodes[0] == 0:
        return look.found[0] >= look.least[0]
    return look.with_share[0] >= look.nodes[0] and look.with_more[0] >= look.larger[0]


@inlined
def take_amount(o: Outlook, node: int, demand: int, count: int) -> None:
    """Take so many times a demand of what a node has free; give it back if below 0."""
    for r in range(o.demand.shape[1]):
        amount = count * o.demand[demand, r]
        o.free[node, r] -= amount
        o.total[r] -= amount


@inlined
def may_fit(o: Outlook, demand: int, tasks: int) -> bool:
    """Return whether all nodes together have enough free for so many tasks; if not, they fit nowhere."""
    found = True
    for r in range(o.demand.shape[1]):
        needed = o.demand[demand, r]
        if needed > 0:
            found &= o.total[r] // needed >= tasks
    return found


@compiled
def take_rows(
    o: Outlook, rows: Records, first: int, tasks: int, demand: int, sign: int, keeps_least: bool
) -> None:
    """Take (sign 1) or give back (-1) what so many tasks hold, which lie as the rows from `first` on say.

    `keeps_least`: of what fits on a node, the least so far is kept.
    """
    i, left = first, tasks
    while left > 0:
        here, node = rows.tasks[i], rows.node[i]
        if here > 0:
            take_amount(o, node, demand, sign * here)
            before, there = o.there[node], room_at(o, node)
            if keeps_least:
                there = min(there, before)
            if there != before:
                count_in(o, before, np.int64(-1))
                count_in(o, there, np.int64(1))
                o.there[node] = there
        left -= here
        i += 1


@compiled
def choose_nodes(o: Outlook, rows: Records, first: int, count: int) -> None:
    """Write into the rows from `first` on where `count` tasks of the job go, which fit: nodes in order of id.

    There are `count` rows; those that are not needed have no tasks.
    """
    look, i, left = o.look, first, count
    nodes, larger = look.nodes[0], look.larger[0]
    for node in range(o.there.size):
        if left == 0:
            break
        here = min(o.there[node], left)
        if nodes > 0:
            here = np.int64(0)
            if larger > 0 and o.there[node] > look.share[0]:
                here = look.share[0] + 1
                larger -= 1
                nodes -= 1
            elif nodes > larger and o.there[node] >= look.share[0]:
                here = look.share[0]
                nodes -= 1
        if here > 0:
            rows.node[i], rows.tasks[i] = node, here
            i += 1
            left -= here
    while i < first + count:
        rows.tasks[i] = 0
        i += 1


@inlined
def row_of(rows: Records, first: int, tasks: int, node: int) -> int:
    """Return which of the rows from `first` on, which have so many tasks, is of a node; NONE if none is."""
    i, left = first, tasks
    while left > 0:
        if rows.tasks[i] > 0 and rows.node[i] == node:
            return np.int64(i)
        left -= rows.tasks[i]
        i += 1
    return NONE
