"""Failures of nodes and schedulers: when they come, who is down, and what others have heard of it.

A node is up, fails, and is repaired; the k-th outage of a node is given by a schedule, or drawn from exponential
distributions (mean time between failures, mean time to repair). What a failing node does is in actors/nodes/failing.py.
Schedulers share one picture of which nodes are down: the listener hears of a failure when it has been detected.

A scheduler that fails has a standby with its journal: its state is kept, and messages for it wait until the standby has
taken over. Nobody but its messages sees its state, so they are handled as they come, at the time of the take-over.

Failures and repairs go on for ever. They are no work: a run is over when they are all that is left to happen.
"""

import math
from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import LOST, NODE_UP, NONE, wake
from actors.kernel.random import AGAIN, FAILURES, below, random_bits, unit

TRIES = 64  # random nodes looked at before those that are up are counted
LOOK_AGAIN = np.int64(1_000_000_000)  # ns until a scheduler looks again when no node that it may use is up
NO_EPOCH = np.int64(0)
NEVER_AGAIN = np.int64(1) << 61  # a time that does not come: no outage from here on is scheduled
EPOCH_SHIFT = 32  # an epoch shares a message's column with a number below 2**32

# One row per actor. The picture of a node (heard, since) is the schedulers'; all else is the actor's own.
FAULT = np.dtype(
    [
        ("down", "i8"),  # 1: the node is down
        ("detected", "i8"),  # 1: and the failure detector has told so
        ("generation", "i8"),  # failures so far
        ("running", "i8"),  # the first task that runs on the node, or NONE
        ("slots", "i8"),
        ("detect", "i8"),  # when the latest failure is, or was, detected, ns
        ("repair", "i8"),  # when the next, or present, outage ends
        ("next_outage", "i8"),  # place in the schedule
        ("end_outage", "i8"),
        ("heard", "i8"),  # 2 · generation if that is known to be down, 1 more if up again
        ("since", "i8"),  # when the generation known to be up came up
    ]
)
# A task that runs: where, since when, its neighbours among those of its node. Or one that is to be run again.
TASK_STATE = np.dtype(
    [(name, "i8") for name in ("node", "start", "job", "next", "previous", "again", "lost_job")]
)
# A job's lost tasks at its scheduler.
JOB_STATE = np.dtype(
    [
        ("again", "i8"),  # the first task to be handed out again, or NONE
        ("lost", "i8"),  # how many there are
        ("epoch", "i8"),  # tasks lost so far: answers from before the latest loss do not speak of it
        ("draws", "i8"),  # random nodes drawn for work sent again
    ]
)
OUTAGE = np.dtype([("start", "i8"), ("end", "i8")])  # ns; NEVER_AGAIN: for good


class Faults(NamedTuple):
    """What can fail, and what has; arrays are empty where nothing can."""

    active: int  # 0: nothing fails
    failing: int  # 1: nodes fail by draws
    between: float  # mean time from repair to failure, ns
    outage: float  # mean time from failure to repair
    origin: int  # from when on
    detection: int  # ns from a failure until it is told, unless the node is back before
    actors: np.recarray  # [actors] FAULT
    tasks: np.recarray  # [T] TASK_STATE
    jobs: np.recarray  # [J] JOB_STATE
    schedule: np.recarray  # OUTAGE, by actor and time


@inlined
def exponential(bits, mean):
    """A time of at least 1 ns from an exponential distribution."""
    return np.int64(min(max(-math.log(unit(bits)) * mean, 1.0), 2.0**60))


@inlined
def find_outage(faults, seed, node, k, up_since):
    """The outage of a node after `k` others, the last of which ended at `up_since`: start and end."""
    row = faults.actors
    if row.next_outage[node] < row.end_outage[node]:
        place = row.next_outage[node] + k
        if place < row.end_outage[node]:
            return faults.schedule.start[place], faults.schedule.end[place]
    elif faults.failing == 1:
        start = up_since + exponential(random_bits(seed, FAILURES, node, 2 * k), faults.between)
        return start, start + exponential(random_bits(seed, FAILURES, node, 2 * k + 1), faults.outage)
    return NEVER_AGAIN, NEVER_AGAIN


@compiled
def count_outages(faults, seed, nodes, until, found):
    """Failures of each node up to `until`, and the time its outages take up to then, into `found` [2, nodes].

    By node: of all nodes that time can be more than an int64 holds.
    """
    for node in range(nodes):
        k, up_since = np.int64(0), np.int64(faults.origin)
        start, end = find_outage(faults, seed, node, k, up_since)
        while start <= until and start < NEVER_AGAIN:
            found[0, node] += 1
            found[1, node] += min(end, until) - start
            k += 1
            start, end = find_outage(faults, seed, node, k, end)
            if end >= NEVER_AGAIN:
                end = NEVER_AGAIN


@inlined
def is_down(w, node):
    """Whether a node is down, as it knows itself."""
    return w.faults.active == 1 and w.faults.actors.down[node] == 1


@inlined
def is_known_down(w, node):
    """Whether schedulers take a node for down."""
    return w.faults.active == 1 and w.faults.actors.heard[node] & 1 == 0


@inlined
def hear(w):
    """The schedulers are told that a node is down or up; False if they have newer news of it."""
    message, row = w.queue.now, w.faults.actors
    node = message.a[0]
    news = 2 * message.b[0] + np.int64(message.kind[0] == NODE_UP)
    if news <= row.heard[node]:
        return False
    row.heard[node] = news
    row.since[node] = message.c[0]
    return True


@compiled
def draw_up(w, job, first):
    """A random node from `first` on that is not known to be down; NONE if there is none."""
    rows, count = w.faults.jobs, w.nodes.size - first
    for _ in range(TRIES):
        rows.draws[job] += 1
        node = first + below(random_bits(w.seed, AGAIN, job, rows.draws[job]), count)
        if not is_known_down(w, node):
            return node
    up = np.int64(0)
    for node in range(first, w.nodes.size):
        up += np.int64(not is_known_down(w, node))
    if up == 0:
        return NONE
    rows.draws[job] += 1
    skip = below(random_bits(w.seed, AGAIN, job, rows.draws[job]), up)
    for node in range(first, w.nodes.size):
        if not is_known_down(w, node):
            if skip == 0:
                return np.int64(node)
            skip -= 1
    return NONE


@inlined
def look_again(w, t, me, job, task):
    """No node is up that the scheduler may use: it comes back to the lost work later."""
    wake(w, t + LOOK_AGAIN, me, LOST, job, task, NONE)


@inlined
def keep_task(w, job, task):
    """A lost task is to be handed out again, before new ones."""
    rows = w.faults.jobs
    w.faults.tasks.again[task] = rows.again[job]
    rows.again[job] = task
    rows.lost[job] += 1
    rows.epoch[job] += 1


@inlined
def next_again(w, job):
    """A task to be handed out again."""
    rows = w.faults.jobs
    task = rows.again[job]
    rows.again[job] = w.faults.tasks.again[task]
    rows.lost[job] -= 1
    return task


@inlined
def epoch_bits(w, job):
    """The job's epoch, where a message's column has it."""
    if w.faults.active == 0:
        return np.int64(0)
    return w.faults.jobs.epoch[job] << EPOCH_SHIFT


@inlined
def low_bits(column):
    """What shares a column with an epoch."""
    return column & ((np.int64(1) << EPOCH_SHIFT) - 1)


@inlined
def is_over(w):
    """Whether a partition that has all actors has only failures and repairs to come."""
    now = w.queue.now
    return (
        now.unfinished[0] == 0
        and now.heap_size[0] + now.lane_tail[0] - now.lane_head[0] == now.background[0]
        and now.end[0] - now.first[0] == w.queue.seq.size
    )


@compiled
def take_over(w, actor, t):
    """When a scheduler can handle what it would handle at `t`: then, or when its standby has taken over."""
    row, schedule = w.faults.actors, w.faults.schedule
    place = row.next_outage[actor]
    while place < row.end_outage[actor] and schedule.end[place] <= t:
        place += 1
    row.next_outage[actor] = place
    if place < row.end_outage[actor] and schedule.start[place] <= t:
        return schedule.end[place]
    return t
