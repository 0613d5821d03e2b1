"""What nodes report to a scheduler of gangs: ends of tasks, tasks that were lost, and nodes that are down or up.

Each task that is placed leads to one report, that it has ended or that it was lost. What it held is free when that has
come, and a node that is known to be down has room for nothing. So no report of an earlier attempt can free what others
hold, however late it comes.

When a task of a gang is lost, the whole gang stops: its scheduler sends CANCEL to the nodes of its other tasks. When
all of them are known to have ended, it waits again, in the place of the queue that it had. All its tasks start again
from their beginning, those that had ended too. Other jobs lose single tasks, which go before those that have not
started.
"""

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.counters import N_FINISHED, N_STARTED
from actors.kernel.faults import (
    PROGRESS_BITS,
    WHOLE_TASK,
    is_known_down,
    keep_task,
    receive_node_state,
)
from actors.kernel.messages import read_lost, read_node_state
from actors.kernel.sums import WHOLE, carry
from actors.kernel.world import N_LOST_NS, N_LOST_WHOLES, N_TASKS_LOST, NONE, World
from actors.nodes.messages import PLACE_BITS, read_done, read_place, send_cancel
from actors.nodes.preemption import US
from actors.schedulers.jobs.central_queue import hold
from actors.schedulers.jobs.gang_ends import (
    end_one,
    end_sooner,
    first_of,
    first_on,
    place_of,
    row_at,
    row_of_task,
)
from actors.schedulers.jobs.gang_outlook import row_of, take_amount
from actors.schedulers.jobs.gang_room import free_slot, note_state
from actors.schedulers.jobs.gangs import (
    ENDED,
    EVICTED,
    LOSES,
    Gangs,
    is_gang,
    join_queue,
    tasks_to_start,
    wake_once,
)
from actors.schedulers.jobs.late_binding import note_attempt, on_done


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
