"""Shortest remaining job first in a node's queue, with a bound on starvation (Eagle, SoCC'16, SRPT).

An entry is served out of turn if its job has the least work left, but no short entry is passed by more than
`slack` times its own estimate. What is left of a job is what the node was told: by the probe, and by the
scheduler's answers to its own requests. With `live` it is read from the scheduler instead, as the authors'
simulator does (a global view).

With `bound_all` long entries, too, are passed only within their slack, and whatever is served is charged to those in
front of it: the form that the authors' simulator uses under least work left.
"""

import math

from actors.kernel.compiled import compiled, inlined
from actors.kernel.world import NONE
from actors.nodes.waiting import remove


@inlined
def remaining_work(w, entry):
    """Estimated work left in the job, ns, or its tasks; a float, for months of a large job do not fit an int64."""
    rows = w.entries
    job = rows.job[entry]
    left = rows.left[entry]
    if w.rules.live == 1 and rows.task[entry] == NONE:
        left = w.work.end_task[job] - w.jobs.next_task[job]
    if w.rules.by_tasks == 1:
        return float(left)
    return float(left) * float(w.work.estimate[job])


@compiled
def pick_shortest(w, node):
    """The entry to serve and the one in front of it, (NONE, NONE) if the queue is empty.

    The scan goes from the front. A long entry at the front goes first; a long one that is chosen from
    further back ends the scan.
    """
    if w.rules.live == 1:
        drop_exhausted(w, node)
    rows = w.entries
    entry, before = w.nodes.head[node], NONE
    chosen, in_front = NONE, NONE
    least, slack = math.inf, math.inf
    while entry != NONE:
        estimate = w.work.estimate[rows.job[entry]]
        remaining = remaining_work(w, entry)
        fits = estimate < slack if w.rules.bound_all == 1 else estimate <= slack
        if remaining < least and (fits or entry == w.nodes.head[node]):
            chosen, in_front, least = entry, before, remaining
            if rows.is_long[entry] == 1 and w.rules.bound_all == 0:
                break
        if rows.is_long[entry] == 0 or w.rules.bound_all == 1:
            slack = min(slack, w.rules.slack * estimate - rows.bypassed[entry])
        entry, before = rows.next[entry], entry
    return chosen, in_front


@inlined
def drop_exhausted(w, node):
    """With a global view, probes of jobs that have no task left go without asking."""
    rows = w.entries
    entry, before = w.nodes.head[node], NONE
    while entry != NONE:
        after, job = rows.next[entry], rows.job[entry]
        exhausted = w.jobs.next_task[job] == w.work.end_task[job]
        if w.faults.active == 1:
            exhausted = exhausted and w.faults.jobs.lost[job] == 0
        if rows.task[entry] == NONE and exhausted:
            w.nodes.longs[node] -= rows.is_long[entry]
            remove(w, node, entry, before)
        else:
            before = entry
        entry = after


@inlined
def bypass(w, node, chosen):
    """Charge the entries in front of `chosen` for the work that goes before them; a long one is not charged."""
    rows = w.entries
    if rows.is_long[chosen] == 1 and w.rules.bound_all == 0:
        return
    estimate = w.work.estimate[rows.job[chosen]]
    entry = w.nodes.head[node]
    while entry != chosen and entry != NONE:
        rows.bypassed[entry] += estimate
        entry = rows.next[entry]


@compiled
def tell_left(w, node, job, left, epoch):
    """A task of `job` has come: charge those its sticky probe passed, and note what is left of the job.

    What is left is as of `epoch`; probes sent since know better.
    """
    rows = w.entries
    entry, before = w.nodes.head[node], NONE
    charged = w.rules.sticky == 0
    while entry != NONE:
        after = rows.next[entry]
        if rows.job[entry] == job and rows.task[entry] == NONE and rows.epoch[entry] <= epoch:
            if not charged:
                charged = True
                bypass(w, node, entry)
            rows.left[entry] = left
            if left == 0:
                w.nodes.longs[node] -= rows.is_long[entry]
                remove(w, node, entry, before)
                entry = before
        entry, before = after, entry


@compiled
def drop_probe(w, node, job, epoch):
    """Remove the first probe of a job that had no task left as of `epoch`."""
    rows = w.entries
    entry, before = w.nodes.head[node], NONE
    while entry != NONE:
        if rows.job[entry] == job and rows.task[entry] == NONE and rows.epoch[entry] <= epoch:
            remove(w, node, entry, before)
            return
        entry, before = rows.next[entry], entry
