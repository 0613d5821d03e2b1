"""Tasks that wait at their schedulers because no node has room for them, and in which order they go.

A scheduler keeps the jobs with such tasks in a queue, or in one for each tenant (`central_queue`), and each job its
tasks. In a queue jobs go in order of priority, then as they came. In a search for room a job that finds no node is
passed: it goes behind the others of its priority. When MISSES of one priority have found none, the search passes all of
that priority.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.records import Records, records
from actors.kernel.world import N_BACKLOGGED, NONE, World
from actors.schedulers.jobs import central_queue
from actors.schedulers.jobs.probing import ONE
from actors.setting import Setting

MISSES = 64
CAME_BITS = 40

OF_SCHEDULER = np.dtype(
    [
        ("jobs", "i8"),  # how many have tasks that wait
        ("came", "i8"),  # how many have come so far
        ("passed", "i8"),  # the first job that the search at hand has passed
        ("looks", "i8"),  # searches for room that are planned
    ]
)
# The task to go next, NONE: none waits; the next job that was passed.
OF_JOB = np.dtype([("task", "i8"), ("next", "i8")])
# Times it was sent back; the job's next task that waits.
OF_TASK = np.dtype([("returns", "i8"), ("next", "i8")])
# Of a search: jobs of one priority that found no node, that priority, and whether all jobs are passed.
OF_QUEUE = np.dtype([("misses", "i8"), ("band", "i8"), ("done", "i8")])


class Backlog(NamedTuple):
    """Tasks that wait for room."""

    queues: central_queue.Queues  # of each scheduler in turn
    each: int  # queues of a scheduler
    by_share: bool  # queues are of tenants
    band: np.ndarray  # [J] the place of a job's priority, from the highest on; empty where none counts
    searches: Records  # [queues] OF_QUEUE
    schedulers: Records  # [schedulers] OF_SCHEDULER
    jobs: Records  # [J] OF_JOB
    tasks: Records  # [T] OF_TASK


def make_backlog(setting: Setting, priority: np.ndarray) -> Backlog:
    """Return a backlog without tasks.

    Args:
        setting: of the run.
        priority: [J] of jobs, or empty where none counts.
    """
    count, order = setting.parameters["schedulers"], setting.parameters["backlog_order"]
    queues = central_queue.make_queues(setting, priority, order, count)
    schedulers, jobs = records(OF_SCHEDULER, count), records(OF_JOB, setting.num_jobs)
    schedulers.passed[:], jobs.task[:] = NONE, NONE
    return Backlog(
        queues,
        queues.rows.size // count,
        order != "arrival",
        np.unique(-priority, return_inverse=True)[1].astype(np.int64),
        records(OF_QUEUE, queues.rows.size),
        schedulers,
        jobs,
        records(OF_TASK, setting.workload.num_tasks),
    )


@inlined
def keep_waiting(w: World, backlog: Backlog, who: int, job: int, task: int) -> None:
    """Keep a task, in front of the others of its job; a new job goes behind those of its priority."""
    w.counts[N_BACKLOGGED] += 1
    if backlog.jobs.task[job] == NONE:
        backlog.schedulers.jobs[who] += 1
        come(backlog, who, job)
        central_queue.join(backlog.queues, job)
    backlog.tasks.next[task] = backlog.jobs.task[job]
    backlog.jobs.task[job] = task


@inlined
def take_task(backlog: Backlog, who: int, queue: int) -> int:
    """Take the first task of a queue; its job leaves with its last one."""
    job = central_queue.first_job(backlog.queues, queue)
    task = backlog.jobs.task[job]
    backlog.jobs.task[job] = backlog.tasks.next[task]
    if backlog.jobs.task[job] == NONE:
        backlog.schedulers.jobs[who] -= 1
        central_queue.leave(backlog.queues, queue)
    return task


@inlined
def come(backlog: Backlog, who: int, job: int) -> None:
    """Let a job that is in no queue stand behind all of its priority."""
    backlog.queues.rank[job] = band_of(backlog, job) << CAME_BITS | backlog.schedulers.came[who]
    backlog.schedulers.came[who] += 1


@inlined
def band_of(backlog: Backlog, job: int) -> int:
    """Return the place of a job's priority."""
    return backlog.band[job] if backlog.band.size > 0 else np.int64(0)


@inlined
def waits_before(backlog: Backlog, who: int, job: int) -> bool:
    """Whether a task waits that may go before one of a job that has come: of higher priority, or with tenants any."""
    if backlog.schedulers.jobs[who] == 0 or backlog.by_share or backlog.band.size == 0:
        return backlog.schedulers.jobs[who] > 0 and backlog.by_share
    first = central_queue.first_job(backlog.queues, who)  # a scheduler has one queue without tenants
    return band_of(backlog, first) < band_of(backlog, job)


@inlined
def may_hold(w: World, backlog: Backlog, job: int) -> bool:
    """Whether the job's tenant may hold one more of its tasks."""
    return not backlog.by_share or central_queue.tasks_below(w, backlog.queues, job, ONE) > 0


@inlined
def hold(w: World, backlog: Backlog, job: int, sign: int) -> None:
    """Where shares count, let the job's tenant hold a task more, or one less if `sign` is -1."""
    if backlog.by_share:
        central_queue.hold(w, backlog.queues, job, sign)


@compiled
def begin_search(backlog: Backlog, who: int) -> None:
    """Begin a search for room."""
    for queue in range(who * backlog.each, (who + 1) * backlog.each):
        backlog.searches.done[queue], backlog.searches.band[queue] = 0, NONE


@inlined
def next_queue(w: World, backlog: Backlog, who: int) -> int:
    """Return the queue whose first task is to look for room next; NONE if there is none."""
    if backlog.by_share:
        return least_queue(w, backlog, who)
    return who if central_queue.waits(backlog.queues, who) and backlog.searches.done[who] == 0 else NONE


@compiled
def least_queue(w: World, backlog: Backlog, who: int) -> int:
    """Return the queue of the tenant with the least share, of those that may hold more; NONE if there is none."""
    best: int = NONE
    least = np.inf
    for queue in range(who * backlog.each, (who + 1) * backlog.each):
        if central_queue.waits(backlog.queues, queue) and backlog.searches.done[queue] == 0:
            share = central_queue.weighted_share(backlog.queues, queue)
            if share < least and may_hold(w, backlog, central_queue.first_job(backlog.queues, queue)):
                best, least = queue, share
    return best


@compiled
def miss(backlog: Backlog, who: int, queue: int) -> None:
    """Pass the first job of a queue, which has found no node."""
    job, row = central_queue.first_job(backlog.queues, queue), backlog.searches
    band = band_of(backlog, job)
    if row.band[queue] != band:
        row.band[queue], row.misses[queue] = band, 0
    row.misses[queue] += 1
    pass_first(backlog, who, queue)
    come(backlog, who, job)
    if row.misses[queue] == MISSES and backlog.band.size == 0:
        row.done[queue] = 1
    elif row.misses[queue] == MISSES:
        while central_queue.waits(backlog.queues, queue) and (
            band_of(backlog, central_queue.first_job(backlog.queues, queue)) == band
        ):
            pass_first(backlog, who, queue)


@inlined
def pass_first(backlog: Backlog, who: int, queue: int) -> None:
    """Take the first job out of a queue until the search ends."""
    job = central_queue.first_job(backlog.queues, queue)
    central_queue.leave(backlog.queues, queue)
    backlog.jobs.next[job] = backlog.schedulers.passed[who]
    backlog.schedulers.passed[who] = job


@compiled
def end_search(backlog: Backlog, who: int) -> None:
    """End a search: the jobs that were passed wait again."""
    job = backlog.schedulers.passed[who]
    while job != NONE:
        central_queue.join(backlog.queues, job)
        job = backlog.jobs.next[job]
    backlog.schedulers.passed[who] = NONE
