"""Succinct shared state: one bit a node, set while long work is assigned to it (Eagle, SoCC'16, section 4.1).

The bits do not travel in messages. Their owner, the central scheduler, appends every change to a log, and a
message carries the length of the log when it was sent: its version. An actor that has a version can read any node's bit
as of that version. Schedulers of other partitions have a copy of the log, to which the owner publishes its changes.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.eligible import eligible_count, is_constrained, list_of, listed, listing_of
from actors.kernel.messages import send_published
from actors.kernel.random import RETRIES, below, random_bits
from actors.kernel.records import Records, records
from actors.kernel.world import NONE, World
from actors.schedulers.jobs.spreading import may_run, must_spread

TRIES = 1024  # random nodes looked at before all are counted: twice a pass over 15,000 nodes costs as much


# The last count of free nodes of a list: many jobs ask for the same count between two placements of long tasks.
COUNTED = np.dtype(
    [
        ("version", "i8"),
        ("low", "i8"),  # which nodes of the list: those of a job that runs in one rack are a part of it
        ("first", "i8"),
        ("end", "i8"),  # how many these are
        ("free", "i8"),  # how many of them are free
    ]
)


class SharedState(NamedTuple):
    """The log of changes. A change is noted as 2 · (its place in the log) + the new bit; negative for none."""

    latest: np.ndarray  # [N] a node's latest change: most questions are answered without a look at the log
    previous: np.ndarray  # [log] by place: the same node's change before
    length: np.ndarray  # [1] the current version
    counted: Records  # [L + 1] COUNTED, by list of nodes; the last row is for jobs without constraints


def make_shared_state(nodes: int, long_tasks: int, lists: int) -> SharedState:
    """Return a state with all bits clear. A long task changes its node's bit at most twice per placement."""
    counted = records(COUNTED, lists + 1)
    counted.version[:] = NONE
    return SharedState(
        np.full(nodes, -2, np.int64), np.zeros(2 * long_tasks + 1, np.int64), np.zeros(1, np.int64), counted
    )


def grow_shared_state(shared: SharedState, changes: int) -> SharedState:
    """Return the state with room in its log for a number of changes: its size is doubled as often as needed."""
    while shared.previous.size - shared.length[0] < changes:
        shared = shared._replace(previous=np.concatenate([shared.previous, np.zeros_like(shared.previous)]))
    return shared


@inlined
def version_of(shared: SharedState) -> int:
    """Return the current version: how many changes the log has."""
    return shared.length[0]


@inlined
def room_in_log(shared: SharedState) -> int:
    """Return how many changes still fit into the log."""
    return shared.previous.size - shared.length[0]


@inlined
def bit_at(shared: SharedState, node: int, version: int) -> int:
    """A node's bit in the given version."""
    change = shared.latest[node]
    while change >= 2 * version:
        change = shared.previous[change >> 1]
    return change & 1


@inlined
def set_bit(shared: SharedState, node: int, bit: int) -> None:
    """Set a node's bit, and log the change if it is one."""
    change = shared.latest[node]
    if change & 1 != bit:
        length = shared.length[0]
        shared.previous[length] = change
        shared.latest[node] = 2 * length + bit
        shared.length[0] = length + 1


@inlined
def change_bit(w: World, shared: SharedState, t: int, node: int, bit: int) -> None:
    """Change a node's bit, as its owner, for all schedulers."""
    if shared.latest[node] & 1 != bit:
        set_bit(shared, node, bit)
        send_published(w, t, node, bit)


@inlined
def is_free(w: World, shared: SharedState, version: int, job: int, spread: bool, node: int) -> bool:
    """Whether a node's bit is clear in the given version, and it may run another task of the job.

    `spread`: the job's tasks must be spread.
    """
    return bit_at(shared, node, version) == 0 and (not spread or may_run(w, job, node))


@inlined
def draw_free(w: World, shared: SharedState, version: int, job: int, counter: int) -> int:
    """Draw a random node that may run a task of the job and whose bit is clear in `version`; NONE if there is none.

    Most draws need a few tries; if nearly all bits are set, the free nodes are counted instead.
    """
    end, spread = eligible_count(w, job), must_spread(w, job)
    low, first = listing_of(w, job)
    for i in range(TRIES):
        bits = random_bits(w.seed, RETRIES, job, counter * (TRIES + 1) + i)
        node = listed(w, low, first, below(bits, end))
        if is_free(w, shared, version, job, spread, node):
            return node
    return draw_counted(w, shared, version, job, counter)


@compiled
def draw_counted(w: World, shared: SharedState, version: int, job: int, counter: int) -> int:
    """Draw a free node as `draw_free` does, by counting: nearly all bits are set."""
    end, spread = eligible_count(w, job), must_spread(w, job)
    low, first = listing_of(w, job)
    free = known_free(w, shared, version, job)
    if free == NONE:
        free = np.int64(0)
        for i in range(end):
            free += np.int64(is_free(w, shared, version, job, spread, listed(w, low, first, i)))
        if not spread:
            rows, row = shared.counted, row_of(w, shared, job)
            rows.version[row], rows.low[row], rows.first[row], rows.end[row] = version, low, first, end
            rows.free[row] = free
    if free == 0:
        return NONE
    skip = below(random_bits(w.seed, RETRIES, job, counter * (TRIES + 1) + TRIES), free)
    for i in range(end):
        node = listed(w, low, first, i)
        if is_free(w, shared, version, job, spread, node):
            if skip == 0:
                return node
            skip -= 1
    return NONE


@inlined
def known_free(w: World, shared: SharedState, version: int, job: int) -> int:
    """Return how many of the job's nodes are free in `version`, if the last count of its list was that; else NONE."""
    rows, row = shared.counted, row_of(w, shared, job)
    low, first = listing_of(w, job)
    if rows.version[row] != version or rows.end[row] != eligible_count(w, job):
        return NONE
    if rows.low[row] != low or rows.first[row] != first or must_spread(w, job):
        return NONE
    return rows.free[row]


@inlined
def row_of(w: World, shared: SharedState, job: int) -> int:
    """The row of `counted` for a job."""
    if is_constrained(w, job):
        return list_of(w, job)
    return shared.counted.size - 1
