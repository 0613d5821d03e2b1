"""What central schedulers of gangs share: the queue of jobs, the room they know of, and what runs until when.

A gang is a job whose tasks all start at once. The scheduler places them on idle slots in one instant; where all
messages take equally long they start in one instant. All that happens at an instant is known before the scheduler
decides: arrivals and ends wake it once, behind all of them.

A job that is no gang is a sequence of tasks, each of which starts on its own, in the order of the queue.

Where tasks hold resources, and where reservations are to be of nodes, what fits is found node by node
(actors/schedulers/jobs/gang_outlook.py); else it is enough to count idle slots (gang_room.py).
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.faults import epoch_of, next_again
from actors.kernel.queue import wake
from actors.kernel.records import Records
from actors.kernel.world import N_PLACEMENTS, N_SENT_AGAIN, NEVER, NONE, World
from actors.nodes.messages import DISPATCH, send_placed
from actors.schedulers.jobs.central_queue import Queues, hold, tasks_below, weighted_share
from actors.schedulers.jobs.gang_ends import Ends, add_end, insert_end, place_of
from actors.schedulers.jobs.gang_outlook import Outlook, all_fit, choose_nodes, look_at, may_fit, take_rows
from actors.schedulers.jobs.gang_room import Room, fits, room_for, take_slots
from actors.schedulers.jobs.late_binding import next_arrival, tasks_left
from actors.schedulers.jobs.probing import NO_VERSION, ONE

# A job at the scheduler of gangs; times in ns.
GANG = np.dtype(
    [
        ("next", "i8"),  # in the queue
        ("previous", "i8"),
        ("nodes", "i8"),  # on how many nodes the gang runs; 0 for any; NONE: it is no gang
        ("holds", "i8"),  # how long its tasks are expected to hold their slots, as the scheduler sees it
        ("end", "i8"),  # when the gang that runs is expected to end
        # Of a gang that runs, where tasks can be lost: tasks that are not known to have ended; those that are; and how
        # long these ran, an exact sum (actors/kernel/sums.py).
        ("left", "i8"),
        ("ended", "i8"),
        ("ran", "i8"),
        ("ran_wholes", "i8"),
        # `LOSES`: all of it is to end at once, as a task of it was lost; `EVICTED`: for a job of higher priority
        ("stops", "i8"),
        ("evictions", "i8"),  # how often it was stopped for one of higher priority
    ]
)
LOSES, EVICTED = np.int64(1), np.int64(2)
# To which node a task was sent that is not known to have ended, else NONE, or `ENDED`; when it is expected to end, ns;
# and, of a job that is no gang, whether it is to end at once, 1 or 0.
SENT = np.dtype([("node", "i8"), ("end", "i8"), ("stops", "i8")])
ENDED = np.int64(-2)
# `promised`: the job for which others are ending, or NONE.
QUEUE = np.dtype([("first", "i8"), ("last", "i8"), ("is_woken", "i8"), ("promised", "i8")])


class Gangs(NamedTuple):
    """The jobs that wait, and what runs."""

    jobs: Records  # [J] GANG
    queue: Records  # [1] QUEUE
    room: Room  # by slots
    ends: Ends
    by_node: int  # 1: what fits is found in `now`; 0: in `room`
    of_job: np.ndarray  # [J] the demand of a task of the job, a row of `now.demand`
    now: Outlook  # by node and resource
    # [T] on which nodes tasks run or are to start: rows from the first task on that started with them. Where tasks can
    # be lost, one of a job that is no gang has a row of its own, and rows behind these are scratch space.
    placed: Records
    at: Records  # [T] SENT; empty where no task can be lost
    trial: Outlook  # scratch space: if others ended; empty where none makes room
    tenants: Queues  # what they hold and may hold; their jobs that wait are in `queue`
    by_share: bool  # the tenant with the smallest share has its turn
    seen: np.ndarray  # [Q] scratch space: whether a job of a queue has been seen


@inlined
def is_gang(p: Gangs, job: int) -> bool:
    """Return whether all tasks of the job start at once."""
    return p.jobs.nodes[job] != NONE


@inlined
def tasks_to_start(w: World, job: int) -> int:
    """Return how many tasks of the job wait: they have not started, or are to start again."""
    return tasks_left(w, job)


@inlined
def first_to_start(w: World, job: int) -> int:
    """Return the first task of the job that waits, which there is: those that were lost come first."""
    if w.faults.active == 1 and w.faults.jobs.again[job] != NONE:
        return w.faults.jobs.again[job]
    return w.jobs.next_task[job]


@inlined
def are_single(w: World, p: Gangs, job: int) -> bool:
    """Return whether each task of the job has a row of `placed` of its own."""
    return w.faults.active == 1 and not is_gang(p, job)


@inlined
def rows_for(w: World, p: Gangs, job: int) -> int:
    """Return the first of the rows of `placed` that say where the tasks of the job go that start next."""
    return p.at.size if are_single(w, p, job) else w.jobs.next_task[job]


@inlined
def tasks_that_fit(w: World, p: Gangs, job: int) -> int:
    """Return how many tasks of the job can start now: of a gang all or none."""
    left = tasks_to_start(w, job)
    if p.by_node == 1:
        if not may_fit(p.now, p.of_job[job], left if is_gang(p, job) else np.int64(1)):
            return np.int64(0)
        look_at(p.now, p.of_job[job], left, max(p.jobs.nodes[job], np.int64(0)))
        if is_gang(p, job):
            return left if all_fit(p.now) else np.int64(0)
        return min(left, p.now.look.found[0])
    if not is_gang(p, job):
        return min(left, p.room.total[0])
    return left if fits(p.room, left, p.jobs.nodes[job]) else np.int64(0)


@inlined
def goes_before(w: World, job: int, other: int) -> bool:
    """Return whether a job stands before another: by priority, the largest first, and then by arrival."""
    if w.priority.size > 0 and w.priority[job] != w.priority[other]:
        return w.priority[job] > w.priority[other]
    return job < other


@compiled
def join_queue(w: World, p: Gangs, job: int) -> None:
    """Add a job to the queue; one that waits again has the place that it had."""
    rows, queue = p.jobs, p.queue
    before, after = queue.last[0], NONE
    while before != NONE and goes_before(w, job, before):
        before, after = rows.previous[before], before
    rows.previous[job], rows.next[job] = before, after
    if before == NONE:
        queue.first[0] = job
    else:
        rows.next[before] = job
    if after == NONE:
        queue.last[0] = job
    else:
        rows.previous[after] = job


@inlined
def leave_queue(p: Gangs, job: int) -> None:
    """Remove a job from the queue."""
    rows, queue = p.jobs, p.queue
    before, after = rows.previous[job], rows.next[job]
    if before == NONE:
        queue.first[0] = after
    else:
        rows.next[before] = after
    if after == NONE:
        queue.last[0] = before
    else:
        rows.previous[after] = before


@inlined
def tasks_allowed(w: World, p: Gangs, job: int, count: int) -> int:
    """Return how many of `count` tasks of the job its tenant may hold besides what it holds: of a gang all or none."""
    if not p.by_share:
        return count
    found = tasks_below(w, p.tenants, job, count)
    return np.int64(0) if is_gang(p, job) and found < count else found


@inlined
def tasks_in_sight(w: World, p: Gangs, job: int) -> int:
    """Return how many tasks of a job would start next if they fitted: 0 where its tenant may not hold them."""
    return tasks_allowed(w, p, job, tasks_to_start(w, job) if is_gang(p, job) else np.int64(1))


@compiled
def first_in_turn(w: World, p: Gangs) -> int:
    """Return the job whose turn it is; NONE if there is none.

    By shares: the first one of the tenant with the smallest share over its weight, of those whose first one would not
    exceed their ceiling; of equals the tenant that is named first in the workload. A job for which others are ending
    has its turn before: else what is evicted could take the room again, as its tenant holds less then.
    """
    job = p.queue.first[0]
    if not p.by_share or job == NONE:
        return job
    if p.queue.promised[0] != NONE and tasks_in_sight(w, p, p.queue.promised[0]) > 0:
        return p.queue.promised[0]
    for queue in range(p.seen.size):
        p.seen[queue] = False
    found: int = NONE
    least, its_queue, left = np.inf, NONE, p.seen.size
    while job != NONE and left > 0:
        queue = p.tenants.of_job[job]
        if not p.seen[queue]:
            p.seen[queue] = True
            left -= 1
            share = weighted_share(p.tenants, queue)
            is_next = share < least or (share == least and queue < its_queue)
            if is_next and tasks_in_sight(w, p, job) > 0:
                found, least, its_queue = job, share, queue
        job = p.jobs.next[job]
    return found


@compiled
def start(w: World, p: Gangs, t: int, me: int, job: int, count: int, row: int) -> None:
    """Place the next `count` tasks of a job, which fit; the job leaves the queue with the last of them.

    Where what fits is found by node, `placed` says from `row` on where they go.
    """
    count_sent(w, p, job, count)
    if p.by_share:
        hold(w, p.tenants, job, count)
        if p.queue.promised[0] == job:
            p.queue.promised[0] = NONE
    nodes, first = p.jobs.nodes[job], w.jobs.next_task[job]
    end = min(t + p.jobs.holds[job], NEVER)
    if p.by_node == 1:
        place_rows(w, p, t, me, job, count, row, end)
    elif nodes > 0:
        place_evenly(w, p, t, me, job, count, nodes)
    else:
        i, left = p.room.number[0] - 1, count
        while left > 0:
            node = p.room.open[i]
            here = min(room_for(p.room, node), left)
            place_here(w, p, t, me, job, node, here)
            left -= here
            i -= 1
    p.jobs.end[job] = end
    if p.by_node == 0 or not are_single(w, p, job):
        add_end(p.ends, end, job, count, first, t)
    if tasks_to_start(w, job) == 0:
        leave_queue(p, job)


@inlined
def count_sent(w: World, p: Gangs, job: int, count: int) -> None:
    """Count tasks that are placed, for the first time or again."""
    again = np.int64(0)
    if w.faults.active == 1:
        again = min(w.faults.jobs.lost[job], count)
        if is_gang(p, job):
            again = count * np.int64(epoch_of(w, job) > 0)
            p.jobs.left[job], p.jobs.ended[job] = count, 0
            p.jobs.ran[job], p.jobs.ran_wholes[job] = 0, 0
    w.counts[N_PLACEMENTS] += count - again
    w.counts[N_SENT_AGAIN] += again


@inlined
def send_next(w: World, p: Gangs, t: int, me: int, job: int, node: int) -> int:
    """Send the first task of the job that waits to a node; return the task."""
    if w.faults.active == 1 and w.faults.jobs.again[job] != NONE:
        task = next_again(w, job)
    else:
        task = w.jobs.next_task[job]
        w.jobs.next_task[job] = task + 1
    if p.at.size > 0:
        p.at.node[task], p.at.end[task], p.at.stops[task] = node, min(t + p.jobs.holds[job], NEVER), 0
    send_placed(w, t, me, node, job, task, NONE, ONE, NO_VERSION)
    return task


@compiled
def place_evenly(w: World, p: Gangs, t: int, me: int, job: int, count: int, nodes: int) -> None:
    """Place tasks on exactly so many nodes, which there are; of these, `count % nodes` get one more than the others."""
    share, larger, left = count // nodes, count % nodes, nodes
    # A node that leaves the open ones is replaced by the last of them, which has been looked at.
    i = p.room.number[0] - 1
    while left > 0:
        node = p.room.open[i]
        i -= 1
        there = room_for(p.room, node)
        if larger > 0 and there > share:
            place_here(w, p, t, me, job, node, share + 1)
            larger -= 1
            left -= 1
        elif left > larger and there >= share:
            place_here(w, p, t, me, job, node, share)
            left -= 1


@compiled
def place_rows(w: World, p: Gangs, t: int, me: int, job: int, count: int, row: int, end: int) -> None:
    """Place the job's next `count` tasks, which are expected to end at `end`, on the nodes that `placed` says."""
    take_rows(p.now, p.placed, row, count, p.of_job[job], 1, False)
    i, left, singles = row, count, are_single(w, p, job)
    while left > 0:
        node = p.placed.node[i]
        for _ in range(p.placed.tasks[i]):
            task = send_next(w, p, t, me, job, node)
            if singles:
                p.placed.node[task], p.placed.tasks[task] = node, 1
                insert_end(p.ends, place_of(p.ends, end, job), end, job, np.int64(1), task, t)
            left -= 1
        i += 1


@inlined
def choose_now(w: World, p: Gangs, job: int, count: int) -> None:
    """Choose nodes for the next `count` tasks of a job, of which `tasks_that_fit` has just found that they fit."""
    if p.by_node == 1:
        choose_nodes(p.now, p.placed, rows_for(w, p, job), count)


@inlined
def place_here(w: World, p: Gangs, t: int, me: int, job: int, node: int, count: int) -> None:
    """Place the job's next `count` tasks on a node."""
    take_slots(p.room, node, count)
    for _ in range(count):
        send_next(w, p, t, me, job, node)


@inlined
def wake_once(w: World, p: Gangs, me: int) -> None:
    """Let the scheduler decide when all that happens at this instant is known."""
    if p.queue.is_woken[0] == 0:
        p.queue.is_woken[0] = 1
        wake(w, w.queue.now.time[0], me, DISPATCH, NONE, NONE, NONE)


@inlined
def note_arrival(w: World, p: Gangs, me: int, job: int) -> None:
    """Queue a job that arrives."""
    next_arrival(w, me, job)
    join_queue(w, p, job)
    wake_once(w, p, me)


@inlined
def start_heads(w: World, p: Gangs, t: int, me: int) -> int:
    """Start jobs in turn until one does not fit; return that one, or NONE. By shares others start task by task."""
    job = first_in_turn(w, p)
    count = tasks_in_turn(w, p, job)
    while count > 0:
        choose_now(w, p, job, count)
        start(w, p, t, me, job, count, rows_for(w, p, job))
        job = first_in_turn(w, p)
        count = tasks_in_turn(w, p, job)
    return job


@compiled
def tasks_in_turn(w: World, p: Gangs, job: int) -> int:
    """Return how many tasks of the job whose turn it is can start now; 0 of NONE."""
    if job == NONE:
        return np.int64(0)
    count = tasks_that_fit(w, p, job)
    return min(count, np.int64(1)) if p.by_share and not is_gang(p, job) else count
