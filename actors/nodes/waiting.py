"""A node's queue: a linked list of entries in the partition's pool, alike ones as one run (see `ENTRY`)."""

import math

import numpy as np

from actors.constraints import is_spread
from actors.failures import history_of
from actors.kernel.compiled import compiled, inlined
from actors.kernel.cost import HasCost
from actors.kernel.queue import NEVER, NONE, note
from actors.kernel.records import Records
from actors.kernel.trace import BYPASSED, count_queued
from actors.nodes.world import ASKED, ASKED_SHIFT, World, free_entry, new_entry
from actors.resources import demand_of, fits

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


# Shortest remaining job first in a node's queue, with a bound on starvation (Eagle, SoCC'16, SRPT).
#
# An entry is served out of order if its job has the least remaining work, but no short entry is bypassed by more than
# `slack` times its own estimate. The node uses the last reported number of remaining tasks of a job: that of the probe,
# and those of the scheduler's answers to the node's own requests. With `live` it reads the number from the scheduler
# instead, as the authors' simulator does (a global view).
#
# With `bound_all` long entries, too, are bypassed only within their slack, and every entry that is served is charged to
# the entries in front of it: the form that the authors' simulator uses under least work left.


@inlined
def waits(w: World, entry: int) -> bool:
    """Whether an entry waits for a slot. A sticky probe that has asked for all remaining tasks of its job does not.

    A node runs at most one task of a job whose tasks must be spread. With resources a sticky probe asks for one task at
    a time: a node has room for many, and so have all others that were probed.
    """
    rows = w.entries
    asked = rows.left[entry] >> ASKED_SHIFT
    if asked == 0:
        return True
    if w.room.active == 1:
        return False
    return rows.left[entry] & (ASKED - 1) > asked and not is_spread(w, rows.level[entry])


@inlined
def remaining_work(w: World, entry: int) -> float:
    """Return the estimated remaining work of the job, ns, or its remaining tasks; large jobs exceed an int64."""
    rows = w.entries
    job = rows.job[entry]
    left = rows.left[entry] & (ASKED - 1)
    if w.rules.live == 1 and rows.task[entry] == NONE:
        left = w.work.end_task[job] - w.jobs.next_task[job]
    if w.rules.by_tasks == 1:
        return float(left)
    return float(left) * float(w.work.estimate[job])


@inlined
def whole(work: float) -> int:
    """Return work as a whole number, for the trace."""
    return np.int64(min(work, 2.0**62))


@compiled
def pick_shortest(w: World, node: int) -> tuple[int, int]:
    """Find the entry to serve and the one in front of it; (NONE, NONE) if none waits.

    The scan goes from the front, over entries of one priority. A long entry at the front goes first; a long one that
    is chosen from further back ends the scan. A sticky probe that has asked for all tasks of its job does not wait.
    """
    if w.rules.live == 1:
        drop_exhausted(w, node)
    rows = w.entries
    entry, before = w.nodes.head[node], NONE
    chosen, in_front = NONE, NONE
    least, slack = math.inf, math.inf
    while entry != NONE:
        if waits(w, entry):
            job = rows.job[entry]
            if chosen != NONE and goes_before(w, rows.job[chosen], job):
                break
            estimate, is_long = w.work.estimate[job], w.work.is_long[job] == 1
            remaining = remaining_work(w, entry)
            fits = estimate < slack if w.rules.bound_all == 1 else estimate <= slack
            if remaining < least and (fits or chosen == NONE):
                chosen, in_front, least = entry, before, remaining
                if is_long and w.rules.bound_all == 0:
                    break
            if not is_long or w.rules.bound_all == 1:
                slack = min(slack, w.rules.slack * estimate - rows.bypassed[entry])
        entry, before = rows.next[entry], entry
    return chosen, in_front


@compiled
def pick_first(w: World, node: int) -> tuple[int, int]:
    """Find the first entry that waits and the one in front of it; (NONE, NONE) if none does."""
    rows = w.entries
    entry, before = w.nodes.head[node], NONE
    while entry != NONE and not waits(w, entry):
        entry, before = rows.next[entry], entry
    return entry, before if entry != NONE else NONE


@compiled
def note_bypass(w: World, node: int, entry: int) -> None:
    """Note in the trace that an entry is served before its turn, with its key and that of the first that waits."""
    rows, (first, _) = w.entries, pick_first(w, node)
    own, its = whole(remaining_work(w, entry)), whole(remaining_work(w, first))
    note(w, w.queue.now.time[0], node, BYPASSED, rows.job[entry], rows.task[entry], own, its)


@inlined
def drop_exhausted(w: World, node: int) -> None:
    """Drop the probes of jobs that have no task left, which a global view shows."""
    rows = w.entries
    entry, before = w.nodes.head[node], NONE
    while entry != NONE:
        after, job = rows.next[entry], rows.job[entry]
        exhausted = w.jobs.next_task[job] == w.work.end_task[job]
        if w.faults.active == 1:
            exhausted = exhausted and w.faults.jobs.lost[job] == 0
        if rows.task[entry] == NONE and exhausted:
            w.nodes.longs[node] -= w.work.is_long[job] * length_of(rows, entry)
            remove_run(w, node, entry, before)
        else:
            before = entry
        entry = after


@inlined
def bypass(w: World, node: int, chosen: int) -> None:
    """Charge the entries in front of `chosen` for the work that goes before them.

    The work of a long entry is charged where all entries are bounded, or where it has passed what did not fit.

    What goes before one entry is counted up to NEVER.
    """
    rows = w.entries
    job = rows.job[chosen]
    if w.work.is_long[job] == 1 and w.rules.bound_all == 0 and w.room.active == 0:
        return
    estimate = w.work.estimate[job]
    entry = w.nodes.head[node]
    while entry != chosen and entry != NONE:
        if waits(w, entry):
            rows.bypassed[entry] = min(rows.bypassed[entry] + estimate, NEVER)
        entry = rows.next[entry]


@compiled
def passes_any(w: World, node: int, chosen: int) -> bool:
    """Whether an entry that waits is in front of `chosen`."""
    entry = w.nodes.head[node]
    while entry != chosen:
        if waits(w, entry):
            return True
        entry = w.entries.next[entry]
    return False


@compiled
def note_answer(w: World, node: int, job: int, left: int, epoch: int) -> None:
    """Note what an answer with a task says: how many tasks of the job remain, and that a sticky probe has its answer.

    The count is as of `epoch`; newer probes carry fresher counts and keep them. Where the shortest job goes first, the
    entries that the sticky probe bypassed are charged, and probes of a job without remaining tasks are dropped;
    elsewhere such probes stay until their own request is answered.
    """
    rows = w.entries
    entry, before = w.nodes.head[node], NONE
    answered = w.rules.sticky == 0
    charged = answered or (w.rules.shortest_first == 0 and w.room.active == 0)
    while entry != NONE:
        after = rows.next[entry]
        if rows.job[entry] == job and rows.task[entry] == NONE:
            if not answered and rows.left[entry] >= ASKED:
                answered = True
                rows.left[entry] -= ASKED
            if rows.epoch[entry] <= epoch:
                if not charged:
                    charged = True
                    bypass(w, node, entry)
                rows.left[entry] += left - (rows.left[entry] & (ASKED - 1))
                if left == 0 and w.rules.shortest_first == 1:
                    w.nodes.longs[node] -= w.work.is_long[job] * length_of(rows, entry)
                    remove_run(w, node, entry, before)
                    entry = before
        entry, before = after, entry


@compiled
def drop_probe(w: World, node: int, job: int, epoch: int) -> None:
    """Drop a sticky probe that has asked: an answer says that `job` had no task left as of `epoch`.

    The answer does not name the probe that asked. If all probes that have asked are newer than `epoch`, the first of
    them waits for one answer less: its own answer may have been counted for an older probe.
    """
    rows = w.entries
    entry, before, later = w.nodes.head[node], NONE, NONE
    while entry != NONE:
        if rows.job[entry] == job and rows.task[entry] == NONE and rows.left[entry] >= ASKED:
            if rows.epoch[entry] <= epoch:
                remove(w, node, entry, before)
                return
            if later == NONE:
                later = entry
        entry, before = rows.next[entry], entry
    if later != NONE:
        rows.left[later] -= ASKED


# Backfilling in a node's queue: what fits may pass what does not, within a bound on starvation.
#
# Where the entry whose turn it is needs more than the node has free, the first entry that fits goes before it. No entry
# is passed by more estimated work than `passing` times its own estimate; at 0 none is, and the node waits for room.
# None is passed by one of lower priority.


@inlined
def entry_fits(w: World, node: int, entry: int) -> bool:
    """Whether the node has free what an entry of its queue needs."""
    return fits(w, node, demand_of(w, w.entries.job[entry], w.entries.task[entry]))


@compiled
def pick_fitting(w: World, node: int) -> tuple[int, int]:
    """Find the first entry that fits and may go now, and the one in front of it; (NONE, NONE) if there is none."""
    rows, slack = w.entries, math.inf
    entry, before, first = w.nodes.head[node], NONE, NONE
    while entry != NONE and w.room.passing > 0.0:
        if waits(w, entry):
            estimate = w.work.estimate[rows.job[entry]]
            if first != NONE and goes_before(w, rows.job[first], rows.job[entry]):
                break
            if estimate <= slack and entry_fits(w, node, entry):
                return entry, before
            first = entry
            slack = min(slack, w.room.passing * estimate - rows.bypassed[entry])
        entry, before = rows.next[entry], entry
    return NONE, NONE
