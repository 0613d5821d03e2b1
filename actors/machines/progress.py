"""How far jobs are, as the resource manager knows it: which tasks may be launched, and which jobs have ended.

A task may start when all tasks of all parents of its stage have ended; over a one-to-one edge task i waits for task i
of the parent alone. Stages of which tasks may be launched stand in a list of their job, in the order of the intra-job
part.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.machines.dag_world import DagWorld


class Runnable(NamedTuple):
    """The stages of which tasks may be launched, by job."""

    first: np.ndarray  # [J] NONE: none
    next: np.ndarray  # [S]
    key: np.ndarray  # [S] they stand in this order, then by number; float64
    fresh: np.ndarray  # [S] those that have got tasks since the last match
    is_fresh: np.ndarray  # [S] bool
    num_fresh: np.ndarray  # [1]
    jobs: np.ndarray  # [J] the jobs that have such stages, in no order
    place: np.ndarray  # [J] of a job among them
    num_jobs: np.ndarray  # [1]


def make_runnable(key: np.ndarray, jobs: int) -> Runnable:
    """Return empty lists."""
    stages = key.size
    return Runnable(
        np.full(jobs, NONE),
        np.full(stages, NONE),
        key,
        np.zeros(stages, np.int64),
        np.zeros(stages, np.bool_),
        np.zeros(1, np.int64),
        np.zeros(jobs, np.int64),
        np.zeros(jobs, np.int64),
        np.zeros(1, np.int64),
    )


@inlined
def comes_before(run: Runnable, one: int, other: int) -> bool:
    """Whether a stage comes before another one of its job."""
    return run.key[one] < run.key[other] or (run.key[one] == run.key[other] and one < other)


@compiled
def add_ready(w: DagWorld, run: Runnable, stage: int, task: int) -> None:
    """A task may be launched."""
    s, job = w.stages, w.stages.job[stage]
    w.tasks.next[task] = NONE
    if s.ready[stage] > 0:
        w.tasks.next[s.tail[stage]] = task
    else:
        s.head[stage] = task
        if run.first[job] == NONE:
            run.jobs[run.num_jobs[0]], run.place[job] = job, run.num_jobs[0]
            run.num_jobs[0] += 1
        before, here = NONE, run.first[job]
        while here != NONE and comes_before(run, here, stage):
            before, here = here, run.next[here]
        run.next[stage] = here
        if before == NONE:
            run.first[job] = stage
        else:
            run.next[before] = stage
    s.tail[stage] = task
    s.ready[stage] += 1
    make_fresh(run, stage)


@inlined
def make_fresh(run: Runnable, stage: int) -> None:
    """A stage is to be considered for all machines at the next match."""
    if not run.is_fresh[stage]:
        run.is_fresh[stage] = True
        run.fresh[run.num_fresh[0]] = stage
        run.num_fresh[0] += 1


@compiled
def take_ready(w: DagWorld, run: Runnable, stage: int) -> int:
    """Return the next task of a stage, which is launched now."""
    s, job = w.stages, w.stages.job[stage]
    task = s.head[stage]
    s.head[stage] = w.tasks.next[task]
    s.ready[stage] -= 1
    if s.ready[stage] == 0:
        before, here = NONE, run.first[job]
        while here != stage:
            before, here = here, run.next[here]
        if before == NONE:
            run.first[job] = run.next[stage]
        else:
            run.next[before] = run.next[stage]
        if run.first[job] == NONE:
            run.num_jobs[0] -= 1
            last, place = run.jobs[run.num_jobs[0]], run.place[job]
            run.jobs[place], run.place[last] = last, place
    return task


@compiled
def add_ready_tasks(w: DagWorld, run: Runnable, stage: int) -> None:
    """All stages that a stage waits for as a whole have ended: those tasks may run that wait for no other task."""
    if w.stages.waiting[stage] == 0:
        for task in range(w.stages.first_task[stage], w.stages.first_task[stage + 1]):
            if w.tasks.waiting[task] == 0:
                add_ready(w, run, stage, task)


@compiled
def note_end(w: DagWorld, run: Runnable, task: int, stage: int, started: int) -> bool:
    """Note that a task has ended; return whether its job has."""
    s, job = w.stages, w.stages.job[stage]
    w.jobs.start[job] = min(w.jobs.start[job], started)
    w.jobs.finish[job] = max(w.jobs.finish[job], started + w.tasks.duration[task])
    s.unfinished[stage] -= 1
    w.jobs.unfinished[job] -= 1
    for edge in range(s.first_child[stage], s.first_child[stage + 1]):
        child = s.child[edge]
        if s.one_to_one[edge] == 1:
            its = s.first_task[child] + task - s.first_task[stage]
            w.tasks.waiting[its] -= 1
            if w.tasks.waiting[its] == 0 and s.waiting[child] == 0:
                add_ready(w, run, child, its)
        elif s.unfinished[stage] == 0:
            s.waiting[child] -= 1
            add_ready_tasks(w, run, child)
    return w.jobs.unfinished[job] == 0
