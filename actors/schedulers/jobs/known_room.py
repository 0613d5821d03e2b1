"""What a central scheduler knows to be free on nodes, by what it placed and what ended: resources, or slots.

A task counts as the most that a task of its job needs, since a report of an end names the job alone. Nodes stand in the
order in which they last gained room. For each demand there is a place in that order before which no node has room for
it: what nodes lose does not change that, and a node that gains goes to the end. So a search tests only nodes that were
not found too full, and those that have gained room since.

With preemption there is such an account for each priority: at level p, tasks of the p lowest priorities do not count,
as they could be evicted. Level 0 is what is free. A job may use the levels up to its own, in that order.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.world import NONE, World
from workloads.errors import InputError

MOST_LEVELS = 64  # each is an array of what is free on all nodes


class KnownRoom(NamedTuple):
    """What is free at L levels, and nodes in order of their last gain; R is 1 where tasks take slots."""

    capacity: np.ndarray  # [N, R]
    demand: np.ndarray  # [D, R] distinct ones
    of_job: np.ndarray  # [J] a row of those
    level: np.ndarray  # [J] the highest that the job may use
    counts_to: np.ndarray  # [J] the highest at which its tasks count
    free: np.ndarray  # [L, N, R]
    order: np.ndarray  # [L, 2 N] nodes; NONE where a node has gone to the end, or is down
    place: np.ndarray  # [L, N] of a node in that order; NONE if it is down
    added: np.ndarray  # [L] entries
    begin: np.ndarray  # [L, D] the first entry whose node may have room for a demand
    moved: np.ndarray  # [2 N + 1] scratch


def make_known_room(w: World, slots: np.ndarray) -> KnownRoom:
    """Return the room of empty nodes.

    Raises:
        InputError: with preemption, jobs have more than `MOST_LEVELS` priorities.
    """
    jobs, nodes = w.work.size, slots.size
    capacity, demand, of_job = w.room.capacity, w.room.demand, w.room.of_job
    if w.room.active == 0:
        capacity, demand = slots.astype(np.int64)[:, None], np.ones((1, 1), np.int64)
        of_job = np.zeros(jobs, np.int64)
    level = counts_to = np.zeros(jobs, np.int64)
    if w.preemption.most > 0:
        _, level = np.unique(w.priority, return_inverse=True)
        counts_to = np.where(w.priority < w.preemption.below, level, level.max())
    levels = int(level.max()) + 1
    if levels > MOST_LEVELS:
        raise InputError(
            f"jobs have {levels} priorities; one queue with preemption takes at most {MOST_LEVELS}"
        )
    return KnownRoom(
        capacity,
        demand,
        of_job,
        level,
        counts_to,
        free=np.repeat(capacity[None], levels, axis=0),
        order=np.tile(np.arange(2 * nodes, dtype=np.int64), (levels, 1)),
        place=np.tile(np.arange(nodes, dtype=np.int64), (levels, 1)),
        added=np.full(levels, nodes, np.int64),
        begin=np.zeros((levels, len(demand)), np.int64),
        moved=np.zeros(2 * nodes + 1, np.int64),
    )


@compiled
def node_for(known: KnownRoom, job: int) -> int:
    """Return the node that gained room longest ago, of those on which a task of the job fits; NONE if there is none.

    It is of the lowest level at which there is one.
    """
    demand = known.of_job[job]
    for level in range(known.level[job] + 1):
        i = known.begin[level, demand]
        while i < known.added[level] and not has_room(known, level, known.order[level, i], demand):
            i += 1
        known.begin[level, demand] = i
        if i < known.added[level]:
            return known.order[level, i]
    return NONE


@inlined
def has_room(known: KnownRoom, level: int, node: int, demand: int) -> bool:
    """Return whether a node has a demand free at a level; False of NONE."""
    resources, r = known.demand.shape[1], 0
    if node != NONE:
        while r < resources and known.free[level, node, r] >= known.demand[demand, r]:
            r += 1
    return node != NONE and r == resources


@inlined
def last_level(w: World, known: KnownRoom, job: int, evictions: int) -> int:
    """Return the highest level at which a task of the job counts that was evicted so often."""
    if w.preemption.most > 0 and evictions >= w.preemption.most:
        return np.int64(known.added.size - 1)
    return known.counts_to[job]


@inlined
def take(known: KnownRoom, node: int, job: int, last: int) -> None:
    """Take what a task of the job needs of what a node has free, at the levels up to `last`."""
    for level in range(last + 1):
        for r in range(known.demand.shape[1]):
            known.free[level, node, r] -= known.demand[known.of_job[job], r]


@compiled
def give_back(known: KnownRoom, node: int, job: int, last: int) -> None:
    """Give what a task of the job needs back to a node that is up, at the levels up to `last`."""
    for level in range(last + 1):
        for r in range(known.demand.shape[1]):
            # A task that was on its way when its node failed, and started when it was up again, was given back before.
            free = known.free[level, node, r] + known.demand[known.of_job[job], r]
            known.free[level, node, r] = min(free, known.capacity[node, r])
        to_end(known, level, node)


@compiled
def note_state(known: KnownRoom, node: int, is_down: bool) -> None:
    """Note that a node is down, or is up and empty."""
    for level in range(known.added.size):
        leave(known, level, node)
        if not is_down:
            for r in range(known.demand.shape[1]):
                known.free[level, node, r] = known.capacity[node, r]
            to_end(known, level, node)


@inlined
def to_end(known: KnownRoom, level: int, node: int) -> None:
    """Put a node at the end of the order of a level."""
    leave(known, level, node)
    if known.added[level] == known.order.shape[1]:
        drop_old(known, level)
    end = known.added[level]
    known.order[level, end], known.place[level, node], known.added[level] = node, end, end + 1


@inlined
def leave(known: KnownRoom, level: int, node: int) -> None:
    """Take a node out of the order of a level."""
    if known.place[level, node] != NONE:
        known.order[level, known.place[level, node]] = NONE
    known.place[level, node] = NONE


@compiled
def drop_old(known: KnownRoom, level: int) -> None:
    """Remove the entries without a node from the order of a level."""
    kept: int = 0
    for i in range(known.added[level]):
        known.moved[i] = kept
        node = known.order[level, i]
        if node != NONE:
            known.order[level, kept], known.place[level, node] = node, kept
            kept += 1
    known.moved[known.added[level]] = kept
    for demand in range(known.begin.shape[1]):
        known.begin[level, demand] = known.moved[known.begin[level, demand]]
    known.added[level] = kept
