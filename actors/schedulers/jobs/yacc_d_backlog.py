"""Tasks that wait at their schedulers because no node has room for them.

A scheduler keeps the jobs with such tasks in a list, in the order in which they came, and each job its tasks.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import inlined
from actors.kernel.records import Records, records
from actors.kernel.world import N_BACKLOGGED, NONE, World

OF_SCHEDULER = np.dtype(
    [
        ("head", "i8"),  # the first job, or NONE
        ("tail", "i8"),
        ("jobs", "i8"),  # how many there are
        ("awake", "i8"),  # 1: it is to look for room at the next heartbeat
    ]
)
OF_JOB = np.dtype([("task", "i8"), ("next", "i8")])  # the task to go next, NONE: none waits; the next job
OF_TASK = np.dtype(
    [("returns", "i8"), ("next", "i8")]
)  # times it was sent back; the job's next task that waits


class Backlog(NamedTuple):
    """Tasks that wait for room."""

    schedulers: Records  # [schedulers] OF_SCHEDULER
    jobs: Records  # [J] OF_JOB
    tasks: Records  # [T] OF_TASK


def make_backlog(schedulers: int, jobs: int, tasks: int) -> Backlog:
    """Return a backlog without tasks."""
    made = Backlog(records(OF_SCHEDULER, schedulers), records(OF_JOB, jobs), records(OF_TASK, tasks))
    made.schedulers.head[:], made.schedulers.tail[:], made.jobs.task[:] = NONE, NONE, NONE
    return made


@inlined
def keep_waiting(w: World, backlog: Backlog, who: int, job: int, task: int) -> None:
    """Keep a task, in front of the others of its job; a new job goes behind the other jobs of scheduler `who`."""
    w.counts[N_BACKLOGGED] += 1
    if backlog.jobs.task[job] == NONE:
        add_last(backlog, who, job)
    backlog.tasks.next[task] = backlog.jobs.task[job]
    backlog.jobs.task[job] = task


@inlined
def take_task(backlog: Backlog, job: int) -> int:
    """Take the job's next task that waits."""
    task = backlog.jobs.task[job]
    backlog.jobs.task[job] = backlog.tasks.next[task]
    return task


@inlined
def add_last(backlog: Backlog, who: int, job: int) -> None:
    """Put a job behind the others."""
    rows = backlog.schedulers
    backlog.jobs.next[job] = NONE
    if rows.head[who] == NONE:
        rows.head[who] = job
    else:
        backlog.jobs.next[rows.tail[who]] = job
    rows.tail[who] = job
    rows.jobs[who] += 1


@inlined
def take_job(backlog: Backlog, who: int) -> int:
    """Take the first job out of the list."""
    rows = backlog.schedulers
    job = rows.head[who]
    rows.head[who] = backlog.jobs.next[job]
    rows.jobs[who] -= 1
    return job


@inlined
def put_first(backlog: Backlog, who: int, job: int) -> None:
    """Put the job that was taken in front again."""
    rows = backlog.schedulers
    backlog.jobs.next[job] = rows.head[who]
    if rows.head[who] == NONE:
        rows.tail[who] = job
    rows.head[who] = job
    rows.jobs[who] += 1
