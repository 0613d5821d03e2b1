"""Shortest remaining job first in a node's queue, with a bound on starvation (Eagle, SoCC'16, SRPT).

An entry is served out of order if its job has the least remaining work, but no short entry is bypassed by more than
`slack` times its own estimate. The node uses the last reported number of remaining tasks of a job: that of the probe,
and those of the scheduler's answers to the node's own requests. With `live` it reads the number from the scheduler
instead, as the authors' simulator does (a global view).

With `bound_all` long entries, too, are bypassed only within their slack, and every entry that is served is charged to
the entries in front of it: the form that the authors' simulator uses under least work left.
"""

import math

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.eligible import is_spread
from actors.kernel.queue import NEVER, note
from actors.kernel.trace import BYPASSED
from actors.kernel.world import ASKED, ASKED_SHIFT, NONE, World
from actors.nodes.waiting import goes_before, length_of, remove, remove_run


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
