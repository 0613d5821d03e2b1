"""Preemption under schedulers of gangs: running jobs of lower priority end, so that the first one that waits starts.

1. The first job of the queue does not fit, and would if running gangs and tasks of other jobs ended that have a lower
   priority: of these the lowest priority goes first, and of equals what started last, until the job would fit. Of those
   chosen, what is not needed after all is spared, what was chosen last first. If all would not suffice, none ends.
2. Gangs end as a whole. The scheduler sends CANCEL to the nodes of all that is to end, and counts with the room that it
   leaves; the job starts when it is known to be free.
   Until then no other is backfilled: by reservations it might take the room, where jobs that run longer than they have
   requested count as about to end, and would be ended for the first job in their turn.
3. What has ended waits again, in its place of the queue, and starts from its beginning, or each task from where it was.

Of a job that is no gang each task is seen by itself, of the one that waits and of those that make room.
"""

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.faults import evictions_of
from actors.kernel.world import NONE, World
from actors.nodes.messages import send_cancel
from actors.nodes.preemption import preempts
from actors.schedulers.jobs.gang_ends import end_sooner, row_at
from actors.schedulers.jobs.gang_outlook import all_fit, copy_free, look_at, take_rows
from actors.schedulers.jobs.gang_reports import stop_gang
from actors.schedulers.jobs.gangs import Gangs, is_gang, tasks_to_start


@inlined
def make_way(w: World, p: Gangs, t: int, me: int, job: int) -> bool:
    """Let others end for the first job of the queue, which does not fit, as steps 1 and 2; return whether some do."""
    found = False
    if preempts(w):
        while make_room(w, p, t, me, job):
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
    if fits(p, job, goal):
        return False
    give_ending(p)
    return fits(p, job, goal)


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
def make_room(w: World, p: Gangs, t: int, me: int, job: int) -> bool:
    """Let others end for a gang, or for one more task of another job; return whether some do."""
    tasks, chosen = tasks_to_start(w, job), np.int64(0)
    look_now(w, p, job)
    give_ending(p)
    goal = tasks if is_gang(p, job) else min(p.trial.look.found[0] + 1, tasks)
    while not fits(p, job, goal):
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
def fits(p: Gangs, job: int, goal: int) -> bool:
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
    if fits(p, job, goal):
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
