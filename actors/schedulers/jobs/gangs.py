"""What central schedulers of gangs share: the queue of jobs, the room they know of, and what runs until when.

A gang is a job whose tasks all start at once. The scheduler places them on idle slots in one instant; where all
messages take equally long they start in one instant. All that happens at an instant is known before the scheduler
decides: arrivals and ends wake it once, behind all of them.

A job that is no gang is a sequence of tasks, each of which starts on its own, in the order of the queue.

Where tasks hold resources, and where reservations are to be of nodes, what fits is found node by node
(gang_outlook.py); else it is enough to count idle slots.
"""

from typing import NamedTuple

import numpy as np

from actors.conditions import NS, read_only
from actors.failures import (
    PROGRESS_BITS,
    WHOLE_TASK,
    epoch_of,
    evictions_of,
    is_known_down,
    keep_task,
    next_again,
    receive_node_state,
)
from actors.kernel.compiled import compiled, inlined
from actors.kernel.counters import N_FINISHED, N_STARTED
from actors.kernel.loops import Handlers
from actors.kernel.messages import ARRIVAL, LOST, NODE_DOWN, NODE_UP, read_lost, read_node_state
from actors.kernel.queue import NEVER, NONE, wake
from actors.kernel.records import Records, records
from actors.kernel.sums import WHOLE, carry
from actors.nodes.messages import DISPATCH, DONE, PLACE_BITS, read_done, read_place, send_cancel, send_placed
from actors.nodes.preemption import US, preempts
from actors.nodes.world import (
    N_LOST_NS,
    N_LOST_WHOLES,
    N_PLACEMENTS,
    N_SENT_AGAIN,
    N_TASKS_LOST,
    Rules,
    World,
)
from actors.scheduler import Parameter
from actors.schedulers.jobs.build import build_world
from actors.schedulers.jobs.central_queue import Queues, hold, make_queues, tasks_below, weighted_share
from actors.schedulers.jobs.gang_outlook import (
    PLACED_ROW,
    Ends,
    Outlook,
    Room,
    add_end,
    all_fit,
    choose_nodes,
    copy_free,
    end_one,
    end_sooner,
    first_of,
    first_on,
    fits,
    free_slot,
    insert_end,
    look_at,
    make_ends,
    make_outlook,
    make_room,
    may_fit,
    note_state,
    place_of,
    room_for,
    row_at,
    row_of,
    row_of_task,
    take_amount,
    take_rows,
    take_slots,
)
from actors.schedulers.jobs.late_binding import next_arrival, note_attempt, on_done, tasks_left
from actors.schedulers.jobs.probing import NO_VERSION, ONE
from actors.setting import Setting
from clusters.capacity import needs_of
from clusters.failures import NODE
from clusters.feasibility import check_widths, gangs_of, wide_gangs
from clusters.matching import Needs, billionths
from workloads.errors import InputError
from workloads.requests import requested_s

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
    exceed their ceiling; among equals the tenant that is named first in the workload. A job for which others are ending
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


# What nodes report to a scheduler of gangs: ends of tasks, tasks that were lost, and nodes that are down or up.
#
# Each task that is placed leads to one report, that it has ended or that it was lost. What it held is free when that
# has come, and a node that is known to be down has room for nothing. So no report of an earlier attempt can free what
# others hold, however late it comes.
#
# When a task of a gang is lost, the whole gang stops: its scheduler sends CANCEL to the nodes of its other tasks. When
# all of them are known to have ended, it waits again, in the place of the queue that it had. All its tasks start again
# from their beginning, those that had ended too. Other jobs lose single tasks, which go before those that have not
# started.


@inlined
def note_end(w: World, p: Gangs, me: int) -> int:
    """Note that a task has ended; return when it was expected to, ns."""
    job, node, start, finish = read_done(w)
    on_done(w)
    task = task_of(w, p, job, node)
    expected = free_task(w, p, job, task, node)
    if task != NONE:
        p.at.node[task] = ENDED
    if w.faults.active == 1 and is_gang(p, job):
        rows = p.jobs
        rows.ended[job] += 1
        rows.ran[job], rows.ran_wholes[job] = carry(rows.ran[job] + finish - start, rows.ran_wholes[job])
        note_report(w, p, job)
    if p.queue.first[0] != NONE:
        wake_once(w, p, me)
    return expected


@inlined
def task_of(w: World, p: Gangs, job: int, node: int) -> int:
    """Return which task of a job has ended on a node; where none can be lost, reports do not say it: NONE."""
    if p.at.size == 0:
        return NONE
    task = w.work.first_task[job] + read_place(w)
    while p.at.node[task] != node:
        task += np.int64(1) << PLACE_BITS
    return task


@inlined
def free_task(w: World, p: Gangs, job: int, task: int, node: int) -> int:
    """Free what a task of the job held of a node; return when it was expected to end, ns.

    NONE: of the tasks of a job that is no gang the one that was expected first, where what fits is found by node on
    this node.
    """
    if p.by_share:
        hold(w, p.tenants, job, np.int64(-1))
    if p.by_node == 1:
        return free_on(p, job, task, node)
    free_slot(p.room, node)
    if is_gang(p, job):
        return end_one(p.ends, place_of(p.ends, p.jobs.end[job], job))
    if task != NONE:
        return end_one(p.ends, place_of(p.ends, p.at.end[task], job))
    return end_one(p.ends, first_of(p.ends, job))


@compiled
def free_on(p: Gangs, job: int, task: int, node: int) -> int:
    """Do what `free_task` does where what fits is found by node."""
    take_amount(p.now, node, p.of_job[job], -1)
    if is_gang(p, job):
        at = place_of(p.ends, p.jobs.end[job], job)
    elif task != NONE:
        at = row_of_task(p.ends, p.at.end[task], job, task)
    else:
        at = first_on(p.ends, p.placed, job, node)
    row = row_at(p.ends, at)
    p.placed.tasks[row_of(p.placed, p.ends.rows.first[row], p.ends.rows.tasks[row], node)] -= 1
    return end_one(p.ends, at)


@compiled
def on_lost(w: World, p: Gangs, t: int, me: int) -> None:
    """Note that a task was lost: its gang stops, or it starts again by itself."""
    job, task, node, _, _ = read_lost(w)
    note_attempt(w)
    free_task(w, p, job, task, node)
    p.at.node[task] = NONE
    if is_gang(p, job):
        if p.jobs.stops[job] == 0:
            stop_gang(w, p, t, me, job, NONE)
        note_report(w, p, job)
    else:
        if tasks_to_start(w, job) == 0:
            join_queue(w, p, job)
        keep_task(w, job, task)
    if p.queue.first[0] != NONE:
        wake_once(w, p, me)


@compiled
def stop_gang(w: World, p: Gangs, t: int, me: int, job: int, for_job: int) -> None:
    """Let all tasks of a gang end at once: that is expected to be known two messages later."""
    ends = p.ends
    p.jobs.stops[job] = LOSES if for_job == NONE else EVICTED
    for task in range(w.work.first_task[job], w.work.end_task[job]):
        if p.at.node[task] >= 0:
            send_cancel(w, t, me, p.at.node[task], job, task, for_job)
    soon = min(p.jobs.end[job], t + 2 * w.network.cross_ns)
    at = place_of(ends, p.jobs.end[job], job)
    row = row_at(ends, at)
    if at < ends.span[1] and ends.rows.job[row] == job and ends.rows.end[row] == p.jobs.end[job]:
        end_sooner(ends, at, soon)
    p.jobs.end[job] = soon


@inlined
def note_report(w: World, p: Gangs, job: int) -> None:
    """Note that a task of a gang has ended or was lost; if it was the last one of a gang that stops, it waits again."""
    p.jobs.left[job] -= 1
    if p.jobs.left[job] == 0 and p.jobs.stops[job] > 0:
        wait_again(w, p, job)


@compiled
def wait_again(w: World, p: Gangs, job: int) -> None:
    """Let a gang wait that has stopped: tasks of it that had ended are lost, too, and all start again.

    If it was evicted and goes on from where it was, those have nothing left to do but to be restored.
    """
    rows, counts, ended = p.jobs, w.counts, p.jobs.ended[job]
    if rows.stops[job] == EVICTED and w.preemption.keeps == 1:
        keep_ended(w, p, job)
    elif rows.stops[job] == EVICTED:
        w.preemption.jobs.lost[job] += rows.ran[job] // US + rows.ran_wholes[job] * (WHOLE // US)
    else:
        counts[N_TASKS_LOST] += ended
        lost_ns, wholes = counts[N_LOST_NS] + rows.ran[job], counts[N_LOST_WHOLES] + rows.ran_wholes[job]
        counts[N_LOST_NS], counts[N_LOST_WHOLES] = carry(lost_ns, wholes)
    rows.stops[job] = 0
    w.faults.jobs.epoch[job] += 1
    w.jobs.next_task[job] = w.work.first_task[job]
    w.jobs.unfinished[job] += ended
    w.queue.now.unfinished[0] += ended
    counts[N_STARTED + w.work.report_class[job]] -= ended
    counts[N_FINISHED + w.work.report_class[job]] -= ended
    join_queue(w, p, job)


@compiled
def keep_ended(w: World, p: Gangs, job: int) -> None:
    """Note that the tasks of a gang are done that have ended."""
    for task in range(w.work.first_task[job], w.work.end_task[job]):
        if p.at.node[task] == ENDED:
            history = w.faults.tasks.history[task]
            w.faults.tasks.history[task] = (history >> PROGRESS_BITS << PROGRESS_BITS) + WHOLE_TASK


@compiled
def on_node_state(w: World, p: Gangs) -> bool:
    """Note that a node is down or up; return False if what is known of it is newer."""
    node, _, _ = read_node_state(w)
    if not receive_node_state(w):
        return False
    note_state(p.room, node, np.int64(not is_known_down(w, node)))
    if p.queue.first[0] != NONE:
        # The listener has heard this; the scheduler is the first after the nodes, and may be down itself.
        wake_once(w, p, w.nodes.size)
    return True


HANDLERS: Handlers = {
    DONE: note_end,
    ARRIVAL: note_arrival,
    LOST: on_lost,
    NODE_DOWN: on_node_state,
    NODE_UP: on_node_state,
}


# Preemption under schedulers of gangs: running jobs of lower priority end, so that the first one that waits starts.
#
# 1. The first job of the queue does not fit, and would if running gangs and tasks of other jobs ended that have a lower
#    priority: of these the lowest priority goes first, and among equals what started last, until the job would fit. Of
#    those chosen, what is not needed after all is spared, what was chosen last first. If all would not suffice, none
#    ends.
# 2. Gangs end as a whole. The scheduler sends CANCEL to the nodes of all that is to end, and counts with the room that
#    it leaves; the job starts when it is known to be free. Until then no other is backfilled: by reservations it might
#    take the room, where jobs that run longer than they have requested count as about to end, and would be ended for
#    the first job in their turn.
# 3. What has ended waits again, in its place of the queue, and starts from its beginning, or each task from where it
#    was.
#
# Of a job that is no gang each task is seen by itself, of the one that waits and of those that make room.


@inlined
def make_way(w: World, p: Gangs, t: int, me: int, job: int) -> bool:
    """Let others end for the first job of the queue, which does not fit, as steps 1 and 2; return whether some do."""
    found = False
    if preempts(w):
        while evict_for(w, p, t, me, job):
            found = True
    if found:
        p.queue.promised[0] = job
    return found


@compiled
def is_room_coming(w: World, p: Gangs, job: int) -> bool:
    """Return whether a job, of a job that is no gang a task, fits when those have ended that are to, and not before."""
    if not preempts(w):
        return False
    goal = tasks_to_start(w, job) if is_gang(p, job) else np.int64(1)
    look_now(w, p, job)
    if has_room_without(p, job, goal):
        return False
    give_ending(p)
    return has_room_without(p, job, goal)


@inlined
def look_now(w: World, p: Gangs, job: int) -> None:
    """Let the trial be what is free now, and look there for room for the job's tasks."""
    copy_free(p.trial, p.now.free)
    look_at(p.trial, p.of_job[job], tasks_to_start(w, job), max(p.jobs.nodes[job], np.int64(0)))


@inlined
def give_ending(p: Gangs) -> None:
    """Let what is to end at once be free in the trial; no other row is chosen."""
    for i in range(p.ends.span[1]):
        row = row_at(p.ends, i)
        p.ends.rows.choice[row] = 0
        if is_to_end(p, row):
            give(p, row, 1)


@compiled
def evict_for(w: World, p: Gangs, t: int, me: int, job: int) -> bool:
    """Let others end for a gang, or for one more task of another job; return whether some do."""
    tasks, chosen = tasks_to_start(w, job), np.int64(0)
    look_now(w, p, job)
    give_ending(p)
    goal = tasks if is_gang(p, job) else min(p.trial.look.found[0] + 1, tasks)
    while not has_room_without(p, job, goal):
        row = next_to_end(w, p, job)
        if row == NONE:
            return False
        chosen += 1
        p.ends.rows.choice[row] = chosen
        give(p, row, 1)
    for choice in range(chosen - 1, 0, -1):
        spare(p, job, goal, row_at(p.ends, chosen_as(p, choice)))
    for choice in range(1, chosen + 1):
        at = chosen_as(p, choice)
        if at != NONE:
            end_row(w, p, t, me, at, job)
    return chosen > 0


@inlined
def has_room_without(p: Gangs, job: int, goal: int) -> bool:
    """Return whether so many tasks of the job that is looked at would fit: of a gang all."""
    return all_fit(p.trial) if is_gang(p, job) else p.trial.look.found[0] >= goal


@inlined
def give(p: Gangs, row: int, sign: int) -> None:
    """Let what a row of the ends holds be free in the trial; be held again with sign -1."""
    rows = p.ends.rows
    take_rows(p.trial, p.placed, rows.first[row], rows.tasks[row], p.of_job[rows.job[row]], -sign, False)


@inlined
def is_to_end(p: Gangs, row: int) -> bool:
    """Return whether what a row of the ends stands for is to end at once."""
    job = p.ends.rows.job[row]
    return p.jobs.stops[job] > 0 if is_gang(p, job) else p.at.stops[p.ends.rows.first[row]] == 1


@inlined
def times_evicted(w: World, p: Gangs, row: int) -> int:
    """Return how often what a row of the ends stands for was evicted."""
    job = p.ends.rows.job[row]
    if is_gang(p, job):
        return p.jobs.evictions[job]
    return evictions_of(w, p.ends.rows.first[row])


@compiled
def next_to_end(w: World, p: Gangs, job: int) -> int:
    """Return the row of the ends that is to make room first for a job, of those not chosen; NONE if there is none."""
    rows, found = p.ends.rows, NONE
    below = min(w.priority[job], w.preemption.below)
    for i in range(p.ends.span[1]):
        row = row_at(p.ends, i)
        may_end = w.priority[rows.job[row]] < below and rows.choice[row] == 0 and not is_to_end(p, row)
        may_end = may_end and times_evicted(w, p, row) < w.preemption.most
        if may_end and (found == NONE or goes_first(w, p, row, found)):
            found = row
    return found


@inlined
def goes_first(w: World, p: Gangs, row: int, other: int) -> bool:
    """Return whether a row makes room before another: by priority, start, and then by job and task."""
    rows = p.ends.rows
    priority, others = w.priority[rows.job[row]], w.priority[rows.job[other]]
    if priority != others:
        return priority < others
    came_first = rows.start[row] < rows.start[other] or (
        rows.start[row] == rows.start[other] and rows.first[row] < rows.first[other]
    )
    return came_first == (w.preemption.oldest_first == 1)


@inlined
def chosen_as(p: Gangs, choice: int) -> int:
    """Return the place of the row of the ends that was chosen as the n-th; NONE if it was spared."""
    for i in range(p.ends.span[1]):
        if p.ends.rows.choice[row_at(p.ends, i)] == choice:
            return np.int64(i)
    return NONE


@inlined
def spare(p: Gangs, job: int, goal: int, row: int) -> None:
    """Take a row out of those that are chosen, if the job fits all the same."""
    give(p, row, -1)
    if has_room_without(p, job, goal):
        p.ends.rows.choice[row] = 0
    else:
        give(p, row, 1)


@compiled
def end_row(w: World, p: Gangs, t: int, me: int, at: int, for_job: int) -> None:
    """Let what the row at a place stands for end at once."""
    row = row_at(p.ends, at)
    job, task = p.ends.rows.job[row], p.ends.rows.first[row]
    p.ends.rows.choice[row] = 0
    if is_gang(p, job):
        p.jobs.evictions[job] += 1
        stop_gang(w, p, t, me, job, for_job)
    else:
        send_cancel(w, t, me, p.at.node[task], job, task, for_job)
        p.at.stops[task] = 1
        p.at.end[task] = min(p.ends.rows.end[row], t + 2 * w.network.cross_ns)
        end_sooner(p.ends, at, p.at.end[task])


# The state of schedulers of gangs at time 0, and the parameters that they share.

GANGS = Parameter(
    "gangs",
    "stated",
    "choice",
    "which jobs are gangs: those of which the workload states it, or each; tasks of other jobs start one by one",
    choices=("stated", "all"),
)
PLAN_BY = Parameter(
    "plan_by",
    "requested",
    "choice",
    "how long the scheduler expects a job to run: as its user has requested where that is stated, or as estimated",
    choices=("requested", "estimate"),
)


def build_gangs(setting: Setting, reserves: bool = False) -> tuple[World, Gangs]:
    """Make the world and the state that all schedulers of gangs have, at time 0.

    `reserves`: the scheduler makes reservations, which are of nodes where some gang states on how many it runs.

    Raises:
        InputError: a gang is wider than the cluster.
    """
    nodes, slots = gang_nodes(setting), setting.cluster.slots().astype(np.int64)
    tasks, by_node = np.diff(setting.workload.arrays().first_task), bool(setting.resources)
    most = min(most_at_once(setting), setting.workload.num_tasks)
    sends = most if setting.preemption is None else 2 * most  # what starts, and what makes room
    world = build_world(setting, Rules(names_tasks=1), most_sends=lambda _: sends, schedulers=1)
    demand, of_job, free = world.room.demand, world.room.of_job, world.room.capacity.copy()
    if not setting.resources:
        by_node = world.preemption.most > 0 or (reserves and bool((nodes > 0).any()))
        demand, of_job = np.ones((1, 1), np.int64), np.zeros(len(tasks) if by_node else 0, np.int64)
        free = slots[:, None].copy() if by_node else np.zeros((0, 1), np.int64)
    demand = read_only(demand)
    jobs = records(GANG, world.work.size)
    jobs.nodes[:] = nodes
    # To the scheduler a task holds its slot from its placement until its end is reported: two messages longer.
    jobs.holds[:] = np.maximum(expected_ns(setting, world.work.estimate) + 2 * world.network.cross_ns, 1)
    queue, room = records(QUEUE, 1), make_room(slots)
    queue.first[0], queue.last[0], queue.promised[0] = NONE, NONE, NONE
    sent = records(SENT, world.duration.size if world.faults.active else 0)
    sent.node[:] = NONE
    rows = setting.workload.num_tasks
    if world.faults.active:  # scratch space: see `Gangs.placed`
        rows += int(tasks[nodes == NONE].max(initial=0)) + 1
    order = setting.parameters.get("order", "arrival")
    at_once = np.where(nodes != NONE, tasks, 1)
    tenants = make_queues(setting, world.priority, order, at_once=at_once)
    starts = int(np.where(nodes != NONE, 1, tasks).sum())
    return world, Gangs(
        jobs,
        queue,
        room,
        make_ends(min(most, starts)),
        int(by_node),
        read_only(of_job),
        make_outlook(demand, free, room.up),
        records(PLACED_ROW, rows if by_node else 0),
        sent,
        make_outlook(demand, free.copy() if world.preemption.most else free[:0], room.up),
        tenants,
        order != "arrival",
        np.zeros(tenants.rows.size, np.bool_),
    )


def most_at_once(setting: Setting) -> int:
    """Return the most tasks that can run at once: slots, or by the resource of which the smallest tasks fit fewest."""
    if not setting.resources:
        return setting.cluster.total_slots
    needs = needs_of(setting.workload, setting.cluster, setting.resources)
    least = billionths(needs.demand[np.unique(needs.of_job)]).min(axis=0)
    held = least > 0
    if not held.any():
        return setting.workload.num_tasks
    return int((billionths(needs.capacity)[:, held] // least[held]).sum(axis=0).min())


def gang_nodes(setting: Setting) -> np.ndarray:
    """Return [J] the nodes of each gang, 0 for any, and `NO_GANG` for a job that is no gang.

    Raises:
        InputError: a gang does not fit on the whole cluster, or does not without the nodes that fail for good.
    """
    workload, cluster = setting.workload, setting.cluster
    nodes = gangs_of(workload, setting.parameters["gangs"])
    needs = needs_of(workload, cluster, setting.resources) if setting.resources else None
    check_widths(workload, nodes, cluster, needs)
    _fit_on_lasting(setting, nodes, needs)
    return np.minimum(nodes, np.diff(workload.arrays().first_task))


def _fit_on_lasting(setting: Setting, nodes: np.ndarray, needs: Needs | None) -> None:
    """Refuse outages after which a gang may wait for ever; `nodes` as of `gangs_of`."""
    outages, workload = setting.dynamics.outages, setting.workload
    if outages is None:
        return
    gone = outages.number[(outages.kind == NODE) & np.isinf(outages.repair_s)]
    if needs is None:
        slots = setting.cluster.slots()[:, None].astype(float)
        needs = Needs(("slots",), np.ones((1, 1)), np.zeros(workload.num_jobs, np.int64), slots, True)
    lasting = needs._replace(capacity=np.delete(needs.capacity, gone, axis=0))
    wide = wide_gangs(workload, nodes, setting.cluster, lasting)
    if gone.size and wide.size:
        job_id, tasks = (workload.jobs[name][int(wide[0])].as_py() for name in ("job_id", "num_tasks"))
        raise InputError(
            f"dynamics.failures: {np.unique(gone).size} nodes fail for good, and the {tasks:,} tasks of job {job_id},"
            " which start at once, do not fit on the others; give some of them a repair_s"
        )


def expected_ns(setting: Setting, estimate_ns: np.ndarray) -> np.ndarray:
    """Return [J] how long the tasks of each job are expected to run, ns."""
    if setting.parameters.get("plan_by") != "requested":
        return estimate_ns
    asked = requested_s(setting.workload.jobs)
    return np.where(np.isnan(asked), estimate_ns, np.nan_to_num(np.minimum(asked * NS, NEVER))).astype(
        np.int64
    )
