"""The room that a central scheduler of gangs knows of: idle slots of nodes, by what it has placed and what has ended.

A node that is up and has an idle slot is *open*. Open nodes stand in a list from which any one leaves in constant time,
so that to place a gang costs the tasks that it has and the nodes that are looked at, however many nodes there are.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined


class Room(NamedTuple):
    """Idle slots, as the scheduler knows them."""

    free: np.ndarray  # [N] slots that no task holds
    open: np.ndarray  # [N] the open nodes, the first `number[0]`
    place: np.ndarray  # [N] of an open node, its place among them
    number: np.ndarray  # [1] open nodes
    total: np.ndarray  # [1] idle slots of all open nodes
    up: np.ndarray  # [N] 1, or 0: the node is known to be down


def make_room(slots: np.ndarray) -> Room:
    """Return the room of nodes with these slots, [N], all idle; those of low id are used first."""
    order = np.arange(slots.size - 1, -1, -1, dtype=np.int64)
    free = slots.astype(np.int64)
    up = np.ones(slots.size, np.int64)
    return Room(free, order, order.copy(), np.array([slots.size]), np.array([free.sum()]), up)


@inlined
def room_for(room: Room, node: int) -> int:
    """Return how many tasks could start on a node at once."""
    return room.free[node]


@inlined
def fits(room: Room, tasks: int, nodes: int) -> bool:
    """Return whether so many tasks can start at once: on any nodes if `nodes` is 0, else evenly on exactly so many."""
    return tasks <= room.total[0] and (nodes == 0 or fits_nodes(room, tasks, nodes))


@compiled
def fits_nodes(room: Room, tasks: int, nodes: int) -> bool:
    """Return whether so many open nodes have room for an even share of the tasks each.

    Of `nodes` nodes, `tasks % nodes` have one task more than the others.
    """
    share, larger = tasks // nodes, tasks % nodes
    with_share, with_more = np.int64(0), np.int64(0)
    for i in range(room.number[0]):
        there = room_for(room, room.open[i])
        with_share += np.int64(there >= share)
        with_more += np.int64(there > share)
        if with_share >= nodes and with_more >= larger:
            return True
    return False


@inlined
def take_slots(room: Room, node: int, count: int) -> None:
    """Take idle slots of an open node."""
    room.free[node] -= count
    room.total[0] -= count
    if room.free[node] == 0:
        close_node(room, node)


@inlined
def free_slot(room: Room, node: int) -> None:
    """Return a slot of a node, which is idle from now on if the node is up."""
    room.free[node] += 1
    if room.up[node] == 1:
        room.total[0] += 1
        if room.free[node] == 1:
            open_node(room, node)


@inlined
def open_node(room: Room, node: int) -> None:
    """Add a node to the open ones."""
    room.open[room.number[0]], room.place[node] = node, room.number[0]
    room.number[0] += 1


@inlined
def close_node(room: Room, node: int) -> None:
    """Remove a node from the open ones."""
    last = room.number[0] - 1
    other, place = room.open[last], room.place[node]
    room.open[place], room.place[other] = other, place
    room.number[0] = last


@compiled
def note_state(room: Room, node: int, up: int) -> None:
    """Note that a node is up (1) or down (0): what tasks hold of it is free when they are known to have ended."""
    if up == room.up[node]:
        return
    room.up[node] = up
    room.total[0] += (2 * up - 1) * room.free[node]
    if room.free[node] > 0 and up == 1:
        open_node(room, node)
    elif room.free[node] > 0:
        close_node(room, node)
