"""A node's queue: a linked list of entries in the partition's pool, alike ones as one run (see `ENTRY`)."""

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.cost import HasCost
from actors.kernel.faults import history_of
from actors.kernel.records import Records
from actors.kernel.trace import count_queued
from actors.kernel.world import NONE, World, free_entry, new_entry

ASKED_FOR = np.int64(-1)  # the epoch of a task that the node had asked for, and that has to wait all the same


@inlined
def enqueue(w: World, node: int, job: int, task: int, left: int, epoch: int, level: int) -> None:
    """Put a probe (`task` is NONE) or a task bound to the node into the queue; `left`: tasks the job has left.

    It stands behind all entries, or where priorities count behind those of no lower priority. A task that was evicted,
    or that was asked for and has no room, stands before those of its own priority: it came earlier.
    """
    rows, nodes = w.entries, w.nodes
    entry = new_entry(w.entries)
    is_long = w.work.is_long[job]
    rows.more[entry], rows.task[entry] = NONE, task
    nodes.longs[node] += is_long
    count_queued(w.queue.trace, node, 1)
    before = nodes.tail[node]
    if before != NONE and goes_before(w, job, rows.job[before]):
        before = last_not_below(w, node, job)
    if w.preemption.most > 0 and (history_of(w, task) > 0 or epoch == ASKED_FOR):
        before = last_above(w, node, job)
    if joins_run(w, before, job, task, left, epoch, level):
        lengthen(rows, before, entry)
        return
    rows.job[entry] = job
    rows.left[entry], rows.bypassed[entry] = left, 0
    rows.epoch[entry], rows.level[entry] = epoch, level
    insert(w, node, entry, before)


@inlined
def goes_before(w: World, job: int, other: int) -> bool:
    """Whether entries of a job go before those of another, by their priorities."""
    return w.priority.size > 0 and w.priority[job] > w.priority[other]


@compiled
def last_not_below(w: World, node: int, job: int) -> int:
    """Return the last entry of a queue whose priority is not below that of a job; NONE if there is none."""
    entry, before = w.nodes.head[node], NONE
    while entry != NONE and not goes_before(w, job, w.entries.job[entry]):
        entry, before = w.entries.next[entry], entry
    return before


@compiled
def last_above(w: World, node: int, job: int) -> int:
    """Return the last entry of a queue whose priority is above that of a job; NONE if there is none."""
    entry, before = w.nodes.head[node], NONE
    while entry != NONE and goes_before(w, w.entries.job[entry], job):
        entry, before = w.entries.next[entry], entry
    return before


@inlined
def joins_run(w: World, tail: int, job: int, task: int, left: int, epoch: int, level: int) -> bool:
    """Whether an entry that comes is like the one in front of it, `tail` or NONE, except for its task."""
    rows = w.entries
    return (
        tail != NONE
        and rows.job[tail] == job
        and rows.left[tail] == left
        and rows.bypassed[tail] == 0
        and rows.epoch[tail] == epoch
        and rows.level[tail] == level
        and (rows.task[tail] == NONE) == (task == NONE)
        and w.rules.runs == 1
    )


@inlined
def insert(w: World, node: int, entry: int, before: int) -> None:
    """Put an entry behind another one of the queue, or in front of all if that is NONE."""
    after = w.nodes.head[node]
    if before == NONE:
        w.nodes.head[node] = entry
    else:
        after = w.entries.next[before]
        w.entries.next[before] = entry
    w.entries.next[entry] = after
    if after == NONE:
        w.nodes.tail[node] = entry


@inlined
def lengthen(rows: Records, head: int, entry: int) -> None:
    """Put an entry at the end of the run of `head`."""
    first = rows.more[head]
    if first == NONE:
        first = entry
        rows.more[head], rows.left[entry] = entry, 0
    else:
        rows.more[rows.next[first]] = entry
    rows.next[first] = entry
    rows.left[first] += 1


@inlined
def length_of(rows: Records, entry: int) -> int:
    """How many entries the run of `entry` has."""
    return 1 if rows.more[entry] == NONE else 1 + rows.left[rows.more[entry]]


@inlined
def shorten(rows: Records, entry: int) -> int:
    """Take the second entry out of the run of `entry`, and return it."""
    taken = rows.more[entry]
    after = rows.more[taken]
    rows.more[entry] = after
    if after != NONE:
        rows.next[after], rows.left[after] = rows.next[taken], rows.left[taken] - 1
    return taken


@inlined
def remove(w: HasCost, node: int, entry: int, before: int) -> None:
    """Take an entry out and free it; `before` is the one in front of it, or NONE. Of a run the others stay."""
    rows = w.entries
    count_queued(w.queue.trace, node, -1)
    if rows.more[entry] == NONE:
        unlink(w, node, entry, before)
        free_entry(rows, entry)
    else:
        taken = shorten(rows, entry)
        rows.task[entry] = rows.task[taken]
        free_entry(rows, taken)


@compiled
def remove_run(w: World, node: int, entry: int, before: int) -> None:
    """Take an entry out and free it, and all others of its run."""
    rows = w.entries
    while rows.more[entry] != NONE:
        free_entry(rows, shorten(rows, entry))
        count_queued(w.queue.trace, node, -1)
    remove(w, node, entry, before)


@inlined
def copy_entry(rows: Records, to: int, source: int) -> None:
    """Give an entry what those of the run of `source` have in common."""
    rows.job[to], rows.left[to], rows.bypassed[to] = (
        rows.job[source],
        rows.left[source],
        rows.bypassed[source],
    )
    rows.epoch[to], rows.level[to] = rows.epoch[source], rows.level[source]


@inlined
def part(w: World, node: int, entry: int) -> None:
    """Split a run: `entry` stands alone, and the others are a run behind it."""
    rows = w.entries
    behind = rows.more[entry]
    if behind == NONE:
        return
    after = rows.more[behind]
    if after != NONE:
        rows.next[after], rows.left[after] = rows.next[behind], rows.left[behind] - 1
    copy_entry(rows, behind, entry)
    rows.next[behind] = rows.next[entry]
    rows.next[entry], rows.more[entry] = behind, NONE
    if w.nodes.tail[node] == entry:
        w.nodes.tail[node] = behind


@inlined
def unlink(w: HasCost, node: int, entry: int, before: int) -> None:
    """Take an entry out of the queue, with its run, without freeing it."""
    rows, nodes = w.entries, w.nodes
    after = rows.next[entry]
    if before == NONE:
        nodes.head[node] = after
    else:
        rows.next[before] = after
    if after == NONE:
        nodes.tail[node] = before
