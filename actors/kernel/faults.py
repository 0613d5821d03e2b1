"""Failures of nodes and schedulers: when they happen, which actors are down, and what the schedulers know of it.

A node is up, fails, and is repaired; the k-th outage of a node is given by a schedule, or drawn from exponential
distributions (mean time between failures, mean time to repair). What a failing node does is in actors/nodes/failing.py.
Schedulers share one view of which nodes are down: the listener receives a message when a failure has been detected.

A scheduler that fails has a standby with its journal: its state is kept, and messages for it wait until the standby has
taken over. Only its messages read its state, so they are handled as they arrive, with the time of the take-over.

Failures and repairs never end. Their messages are background messages: a run is over when only such are left.
"""

import math
from typing import NamedTuple, Protocol

import numpy as np

from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.messages import NODE_UP, read_node_state, send_node_state
from actors.kernel.queue import NONE, HasQueue, is_whole
from actors.kernel.random import AGAIN, FAILURES, below, random_bits, unit
from actors.kernel.records import Records, doubled, records

TRIES = 64  # random draws before the nodes that are up are counted instead
NO_EPOCH = np.int64(0)
NEVER_AGAIN = np.int64(1) << 61  # no outage is scheduled from this time on

# One row per actor. `heard` and `since` are what the schedulers know of a node; all else is the actor's own state.
FAULT = np.dtype(
    [
        ("down", "i8"),  # 1: the node is down
        ("detected", "i8"),  # 1: and the failure detector has reported it
        ("generation", "i8"),  # failures so far
        ("running", "i8"),  # the first task that runs on the node, or NONE
        ("slots", "i8"),
        ("detect", "i8"),  # when the latest failure is, or was, detected, ns
        ("repair", "i8"),  # when the next, or present, outage ends
        ("next_outage", "i8"),  # place in the schedule
        ("end_outage", "i8"),
        (
            "heard",
            "i8",
        ),  # 2 · generation if the node is known to be down, and 1 more if it is known to be up again
        ("since", "i8"),  # when the generation known to be up came up
    ]
)
# A task that runs: where, from when to when, its neighbours among those of its node. Or one that is to be run again.
# `history`: how often it was evicted, above `PROGRESS_BITS` bits of what of it is done (actors/nodes/preemption.py).
# `sent`: the key of the newest message of its scheduler about it, PLACED or CANCEL, that has come.
TASK_STATE = np.dtype(
    [(name, "i8") for name in ("node", "start", "end", "job", "next", "previous", "again", "history", "sent")]
)
PROGRESS_BITS = 20
WHOLE_TASK = 1_000_000  # progress of a task that is done
MOST_EVICTIONS = 2_000  # of a task: what the bits of a message hold
# A job's lost tasks at its scheduler.
JOB_STATE = np.dtype(
    [
        ("again", "i8"),  # the first task to be handed out again, or NONE
        ("lost", "i8"),  # how many there are
        ("epoch", "i8"),  # tasks lost so far: answers that were sent before the latest loss are out of date
        ("draws", "i8"),  # random nodes drawn for work sent again
    ]
)
OUTAGE = np.dtype([("start", "i8"), ("end", "i8")])  # ns; NEVER_AGAIN: for good
# An attempt of a task that came to nothing: what it held, it held on `node` from `start` to `end`, ns. A failure or an
# eviction ended it; or, `ended` is 1, it had ended, and its output, or its gang, was lost.
ATTEMPT = np.dtype([(name, "i8") for name in ("task", "node", "start", "end", "ended")])


class Faults(NamedTuple):
    """The failures of a run, possible and past; arrays are empty where nothing can fail."""

    active: int  # 0: nothing fails
    failing: int  # 1: nodes fail by draws
    between: float  # mean time from repair to failure, ns
    outage: float  # mean time from failure to repair
    origin: int  # from when on
    detection: int  # ns from a failure until it is reported, unless the node is back before
    actors: Records  # [actors] FAULT
    tasks: Records  # [T] TASK_STATE
    jobs: Records  # [J] JOB_STATE
    schedule: Records  # OUTAGE, by actor and time
    attempts: Records  # ATTEMPT, those that came to nothing here; empty where tasks are not recorded
    ended: np.ndarray  # [1] how many there are


class HasFaults(HasQueue, Protocol):
    """The part of a world that the functions of this file need."""

    @property
    def faults(self) -> Faults:
        """The failures of the run, possible and past."""

    @property
    def nodes(self) -> Records:
        """[N] a row for each node."""

    @property
    def task_records(self) -> Records:
        """[T] TASK_RECORD, empty where tasks are not recorded."""

    @property
    def seed(self) -> int:
        """The seed of random numbers."""


@inlined
def exponential(bits: np.uint64, mean: float) -> int:
    """Return a time of at least 1 ns from an exponential distribution."""
    return np.int64(min(max(-math.log(unit(bits)) * mean, 1.0), 2.0**60))


@inlined
def find_outage(faults: Faults, seed: int, node: int, k: int, up_since: int) -> tuple[int, int]:
    """Return start and end of a node's outage after `k` others, the last of which ended at `up_since`."""
    row = faults.actors
    if row.next_outage[node] < row.end_outage[node]:
        place = row.next_outage[node] + k
        if place < row.end_outage[node]:
            return faults.schedule.start[place], faults.schedule.end[place]
    elif faults.failing == 1:
        start = up_since + exponential(random_bits(seed, FAILURES, node, 2 * k), faults.between)
        return start, start + exponential(random_bits(seed, FAILURES, node, 2 * k + 1), faults.outage)
    return NEVER_AGAIN, NEVER_AGAIN


@entry
def note_outages(
    faults: Faults, seed: int, nodes: int, times: np.ndarray, change: np.ndarray, found: np.ndarray
) -> None:
    """Note the outages of nodes that begin up to the last of some times.

    Args:
        times: [R] rising, ns.
        change: [R + 1] to which 1 is added where a node has failed, and -1 where it is back, by place in `times`.
        found: [2, nodes] to which failures are added, and the time of outages up to the last of `times`. By node: of
            all nodes that time can be more than an int64 holds.
    """
    last = times[times.size - 1]
    for node in range(nodes):
        k, up_since = np.int64(0), np.int64(faults.origin)
        start, end = find_outage(faults, seed, node, k, up_since)
        while start <= last and start < NEVER_AGAIN:
            change[_place(times, start)] += 1
            change[_place(times, end)] -= 1
            found[0, node] += 1
            found[1, node] += min(end, last) - start
            k += 1
            start, end = find_outage(faults, seed, node, k, end)
            end = min(end, NEVER_AGAIN)


@compiled
def _place(times: np.ndarray, time: int) -> int:
    """Return the first place in `times`, which rise, that is not before a time."""
    low, high = np.int64(0), np.int64(times.size)
    while low < high:
        middle = (low + high) // 2
        if times[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


def with_attempts(faults: Faults) -> Faults:
    """Return the same state with room for the attempts that come to nothing."""
    return faults._replace(attempts=records(ATTEMPT, 2 * faults.tasks.size))


@inlined
def lacks_attempts(faults: Faults) -> bool:
    """Return whether there is less room for attempts than one event may need: one of each task."""
    return faults.attempts.size > 0 and faults.attempts.size - faults.ended[0] < faults.tasks.size


def grow_attempts(faults: Faults) -> Faults:
    """Return the same state, with twice the room for attempts if there is too little."""
    return faults._replace(attempts=doubled(faults.attempts)) if lacks_attempts(faults) else faults


@inlined
def record_attempt(w: HasFaults, task: int, node: int, start: int, end: int) -> None:
    """Note an attempt of a task that has come to nothing, where tasks are recorded."""
    rows, done = w.faults.attempts, w.task_records
    if rows.size > 0:
        i = w.faults.ended[0]
        rows.task[i], rows.node[i], rows.start[i], rows.end[i] = task, node, start, end
        if done.start[task] == start and done.finish[task] > start:  # it had ended, and was not yet reported
            rows.end[i], rows.ended[i] = done.finish[task], 1
        w.faults.ended[0] = i + 1


@inlined
def record_lost_output(w: HasFaults, task: int, node: int, start: int, end: int) -> None:
    """Note an attempt that had ended, of a task that is to run again, where tasks are recorded."""
    rows = w.faults.attempts
    if rows.size > 0:
        i = w.faults.ended[0]
        rows.task[i], rows.node[i], rows.start[i], rows.end[i], rows.ended[i] = task, node, start, end, 1
        w.faults.ended[0] = i + 1


@inlined
def is_down(w: HasFaults, node: int) -> bool:
    """Return whether a node is down, from its own state."""
    return w.faults.active == 1 and w.faults.actors.down[node] == 1


@inlined
def is_known_down(w: HasFaults, node: int) -> bool:
    """Return whether the schedulers know that a node is down."""
    return w.faults.active == 1 and w.faults.actors.heard[node] & 1 == 0


@inlined
def announce_state(w: HasFaults, t: int, node: int, kind: int) -> None:
    """Notify all schedulers that the node is down or up; `kind` is NODE_DOWN or NODE_UP."""
    send_node_state(w, t, kind, node, w.faults.actors.generation[node])


@inlined
def receive_node_state(w: HasFaults) -> bool:
    """Record for the schedulers that a node is down or up; return False if what they know of it is newer."""
    node, generation, since = read_node_state(w)
    news = 2 * generation + np.int64(w.queue.now.kind[0] == NODE_UP)
    if news <= w.faults.actors.heard[node]:
        return False
    w.faults.actors.heard[node], w.faults.actors.since[node] = news, since
    return True


@inlined
def draw_available_node(w: HasFaults, job: int, first: int) -> int:
    """Return a random node from `first` on that is not known to be down; NONE if there is none."""
    node, w.faults.jobs.draws[job] = draw_known_up(w, AGAIN, job, w.faults.jobs.draws[job], first)
    return node


@compiled
def draw_known_up(w: HasFaults, stream: int, owner: int, drawn: int, first: int) -> tuple[int, int]:
    """Return such a node, after `drawn` draws of an owner in a stream, and the number of draws after it."""
    count = w.nodes.size - first
    for _ in range(TRIES):
        drawn += 1
        node = first + below(random_bits(w.seed, stream, owner, drawn), count)
        if not is_known_down(w, node):
            return node, drawn
    up = np.int64(0)
    for node in range(first, w.nodes.size):
        up += np.int64(not is_known_down(w, node))
    if up == 0:
        return NONE, drawn
    drawn += 1
    skip = below(random_bits(w.seed, stream, owner, drawn), up)
    for node in range(first, w.nodes.size):
        if not is_known_down(w, node):
            if skip == 0:
                return np.int64(node), drawn
            skip -= 1
    return NONE, drawn


@inlined
def keep_task(w: HasFaults, job: int, task: int) -> None:
    """Keep a lost task, which is handed out again before new ones."""
    rows = w.faults.jobs
    w.faults.tasks.again[task] = rows.again[job]
    rows.again[job] = task
    rows.lost[job] += 1
    rows.epoch[job] += 1


@inlined
def next_again(w: HasFaults, job: int) -> int:
    """Take the next lost task that is to be handed out again."""
    rows = w.faults.jobs
    task = rows.again[job]
    rows.again[job] = w.faults.tasks.again[task]
    rows.lost[job] -= 1
    return task


@inlined
def history_of(w: HasFaults, task: int) -> int:
    """Return how often a task was evicted and what of it is done, as one number; 0 of a probe, whose task is NONE."""
    if w.faults.active == 0 or task == NONE:
        return np.int64(0)
    return w.faults.tasks.history[task]


@inlined
def evictions_of(w: HasFaults, task: int) -> int:
    """Return how often a task was evicted."""
    return history_of(w, task) >> PROGRESS_BITS


@inlined
def note_history(w: HasFaults, task: int, history: int) -> None:
    """Note in this partition what a message says of a task; later evictions make the number larger."""
    if w.faults.active == 1 and task != NONE:
        w.faults.tasks.history[task] = max(w.faults.tasks.history[task], history)


@inlined
def epoch_of(w: HasFaults, job: int) -> int:
    """Return how many tasks the job has lost so far."""
    if w.faults.active == 0:
        return NO_EPOCH
    return w.faults.jobs.epoch[job]


@inlined
def generation_of(w: HasFaults, node: int) -> int:
    """Return how often the node has failed so far."""
    if w.faults.active == 0:
        return np.int64(0)
    return w.faults.actors.generation[node]


@inlined
def is_over(w: HasFaults) -> bool:
    """Return whether only background messages are left, in a partition that has all actors."""
    now = w.queue.now
    return (
        now.unfinished[0] == 0
        and now.heap_size[0] + now.lane_tail[0] - now.lane_head[0] == now.background[0]
        and is_whole(w.queue)
    )


@compiled
def take_over(w: HasFaults, actor: int, t: int) -> int:
    """Return when a scheduler can handle a message that is due at `t`: then, or when its standby has taken over."""
    row, schedule = w.faults.actors, w.faults.schedule
    place = row.next_outage[actor]
    while place < row.end_outage[actor] and schedule.end[place] <= t:
        place += 1
    row.next_outage[actor] = place
    if place < row.end_outage[actor] and schedule.start[place] <= t:
        return schedule.end[place]
    return t
