"""What a central scheduler knows to be free on nodes of which tasks hold resources, by what it placed and what ended.

A task counts as the most that a task of its job needs, since a report of an end names the job alone. Nodes stand in the
order in which they last gained room. For each demand there is a place in that order before which no node has room for
it: what nodes lose does not change that, and a node that gains goes to the end. So a search tests only nodes that were
not found too full, and those that have gained room since.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.room import Room
from actors.kernel.world import NONE


class KnownRoom(NamedTuple):
    """What is free, and nodes in the order in which they last gained room."""

    free: np.ndarray  # [N, R]
    order: np.ndarray  # [2 N] nodes; NONE where a node has gone to the end, or is down
    place: np.ndarray  # [N] of a node in that order; NONE if it is down
    added: np.ndarray  # [1] entries
    begin: np.ndarray  # [D] the first entry whose node may have room for a demand
    moved: np.ndarray  # [2 N + 1] scratch


def make_known_room(room: Room) -> KnownRoom:
    """Return the room of empty nodes."""
    nodes, nothing = room.capacity.shape[0], np.zeros(len(room.demand), np.int64)
    order = np.arange(2 * nodes, dtype=np.int64)
    place, moved = np.arange(nodes, dtype=np.int64), np.zeros(2 * nodes + 1, np.int64)
    return KnownRoom(room.capacity.copy(), order, place, np.array([nodes]), nothing, moved)


@inlined
def needed(room: Room, job: int, r: int) -> int:
    """Return what a task of the job needs of a resource, at most; 1 where tasks take slots."""
    return room.demand[room.of_job[job], r] if room.active == 1 else np.int64(1)


@inlined
def node_for(room: Room, known: KnownRoom, demand: int) -> int:
    """Return the node that gained room longest ago, of those on which a demand fits; NONE if there is none."""
    i = known.begin[demand]
    while i < known.added[0] and not has_room(room, known, known.order[i], demand):
        i += 1
    known.begin[demand] = i
    return known.order[i] if i < known.added[0] else NONE


@inlined
def has_room(room: Room, known: KnownRoom, node: int, demand: int) -> bool:
    """Return whether a node has a demand free; False of NONE."""
    resources, r = room.demand.shape[1], 0
    if node != NONE:
        while r < resources and known.free[node, r] >= room.demand[demand, r]:
            r += 1
    return node != NONE and r == resources


@inlined
def take(room: Room, known: KnownRoom, node: int, demand: int) -> None:
    """Take a demand of what a node has free."""
    for r in range(room.demand.shape[1]):
        known.free[node, r] -= room.demand[demand, r]


@compiled
def give_back(room: Room, known: KnownRoom, node: int, demand: int) -> None:
    """Give a demand back to a node that is up."""
    for r in range(room.demand.shape[1]):
        # A task that was on its way when its node failed, and started when it was up again, was given back before.
        known.free[node, r] = min(known.free[node, r] + room.demand[demand, r], room.capacity[node, r])
    to_end(known, node)


@compiled
def note_state(room: Room, known: KnownRoom, node: int, is_down: bool) -> None:
    """Note that a node is down, or is up and empty."""
    leave(known, node)
    if not is_down:
        for r in range(room.demand.shape[1]):
            known.free[node, r] = room.capacity[node, r]
        to_end(known, node)


@inlined
def to_end(known: KnownRoom, node: int) -> None:
    """Put a node at the end of the order."""
    leave(known, node)
    if known.added[0] == known.order.size:
        drop_old(known)
    end = known.added[0]
    known.order[end], known.place[node], known.added[0] = node, end, end + 1


@inlined
def leave(known: KnownRoom, node: int) -> None:
    """Take a node out of the order."""
    if known.place[node] != NONE:
        known.order[known.place[node]] = NONE
    known.place[node] = NONE


@compiled
def drop_old(known: KnownRoom) -> None:
    """Remove the entries without a node."""
    kept: int = 0
    for i in range(known.added[0]):
        known.moved[i] = kept
        node = known.order[i]
        if node != NONE:
            known.order[kept], known.place[node] = node, kept
            kept += 1
    known.moved[known.added[0]] = kept
    for demand in range(known.begin.size):
        known.begin[demand] = known.moved[known.begin[demand]]
    known.added[0] = kept
