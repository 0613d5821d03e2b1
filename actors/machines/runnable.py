"""Which tasks may be launched, and which jobs have ended, as the resource manager knows it.

A task may start when all tasks of all parents of its stage have ended; over a one-to-one edge task i waits for task i
of the parent alone. Over a pipelined edge (`actors.inputs`) it may when all tasks of the parent have been
launched: what it waits for has its machine then, so that tasks never wait for each other's machines. A task with a home
may when its input is there, too (`actors.machines.pushing`).

Stages of which tasks may be launched stand in a list of their job, in the order of the intra-job part.
"""

from typing import NamedTuple

import numpy as np

from actors.initial_arrays import per
from actors.inputs import ENDED, LAUNCHED, READY, WAITING, is_pushed
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.machines.dag_world import DagWorld
from actors.machines.pushing import Pushes, note_awaiting
from actors.stages import end_wait


class Runnable(NamedTuple):
    """The stages of which tasks may be launched, by job; lists are by band: the jobs of one priority of a manager."""

    key: np.ndarray  # [S] they stand in this order, then by number; float64
    first_job: np.ndarray  # [B + 1] where the jobs of a band begin in `jobs`
    first_stage: np.ndarray  # [B + 1] where its stages begin in `fresh`
    pushes: Pushes
    first: np.ndarray = per("job", NONE)  # NONE: none
    next: np.ndarray = per("stage", NONE)
    fresh: np.ndarray = per("stage")  # those that have got tasks since the last match, by band
    is_fresh: np.ndarray = per("stage", False)
    num_fresh: np.ndarray = per("band")
    jobs: np.ndarray = per("job")  # the jobs that have such stages, by band, in no order
    place: np.ndarray = per("job")  # of a job among all
    num_jobs: np.ndarray = per("band")
    # The first `num_whole`: stages of which the last task has been launched by the event under way
    whole: np.ndarray = per("stage")
    num_whole: np.ndarray = per("run")


@inlined
def end_of_jobs(run: Runnable, band: int) -> int:
    """Return the place behind the last job of a band that has tasks to launch; they begin at its first."""
    return run.first_job[band] + run.num_jobs[band]


@inlined
def end_of_fresh(run: Runnable, band: int) -> int:
    """Return the place behind the last fresh stage of a band."""
    return run.first_stage[band] + run.num_fresh[band]


@inlined
def comes_before(run: Runnable, one: int, other: int) -> bool:
    """Whether a stage comes before another one of its job."""
    return run.key[one] < run.key[other] or (run.key[one] == run.key[other] and one < other)


@compiled
def add_ready(w: DagWorld, run: Runnable, band: int, stage: int, task: int) -> None:
    """Note that a task may be launched, on any machine."""
    list_ready(w, run, band, stage, task)
    make_fresh(run, band, stage)


@compiled
def list_ready(w: DagWorld, run: Runnable, band: int, stage: int, task: int) -> None:
    """Note that a task may be launched."""
    tasks, job = w.tasks, w.stages.job[stage]
    tasks.next[task] = NONE
    if w.inputs.phase.size > 0:
        w.inputs.phase[task] = READY
    if tasks.ready[stage] > 0:
        tasks.next[tasks.tail[stage]] = task
    else:
        tasks.head[stage] = task
        if run.first[job] == NONE:
            run.jobs[end_of_jobs(run, band)], run.place[job] = job, end_of_jobs(run, band)
            run.num_jobs[band] += 1
        before, here = NONE, run.first[job]
        while here != NONE and comes_before(run, here, stage):
            before, here = here, run.next[here]
        run.next[stage] = here
        if before == NONE:
            run.first[job] = stage
        else:
            run.next[before] = stage
    tasks.tail[stage] = task
    tasks.ready[stage] += 1


@inlined
def add_complete(w: DagWorld, run: Runnable, band: int, stage: int, task: int) -> None:
    """Note that a task waits for no other: it may be launched, or its input is to be sent to its home."""
    if is_pushed(w.inputs, stage):
        note_awaiting(w, run.pushes, stage, task)
    else:
        add_ready(w, run, band, stage, task)


@inlined
def make_fresh(run: Runnable, band: int, stage: int) -> None:
    """Have a stage considered for all machines at the next match."""
    if not run.is_fresh[stage]:
        run.is_fresh[stage] = True
        run.fresh[end_of_fresh(run, band)] = stage
        run.num_fresh[band] += 1


@inlined
def make_job_fresh(run: Runnable, band: int, job: int) -> None:
    """Have all stages of a job considered for all machines: its share may have room again."""
    stage = run.first[job]
    while stage != NONE:
        make_fresh(run, band, stage)
        stage = run.next[stage]


@inlined
def forget_fresh(run: Runnable, band: int) -> None:
    """Note that all stages have been considered for all machines."""
    for i in range(run.first_stage[band], end_of_fresh(run, band)):
        run.is_fresh[run.fresh[i]] = False
    run.num_fresh[band] = 0


@compiled
def take_ready(w: DagWorld, run: Runnable, band: int, stage: int, wanted: int) -> int:
    """Return the task of a stage that is launched now: `wanted`, or the next one if that is NONE.

    One that is not the next stays in the list until it would be. No task comes into it twice: where some are `wanted`,
    none is lost or evicted.
    """
    tasks, job, phase = w.tasks, w.stages.job[stage], w.inputs.phase
    task = tasks.head[stage] if wanted == NONE else wanted
    tasks.ready[stage] -= 1
    if phase.size == 0:
        tasks.head[stage] = tasks.next[task]
    else:
        phase[task] = LAUNCHED
        while tasks.ready[stage] > 0 and phase[tasks.head[stage]] != READY:
            tasks.head[stage] = tasks.next[tasks.head[stage]]
    if tasks.ready[stage] == 0:
        unlist_stage(run, band, job, stage)
    return task


@compiled
def unlist_stage(run: Runnable, band: int, job: int, stage: int) -> None:
    """Take a stage out of the list of its job, as it has no task that may be launched."""
    before, here = NONE, run.first[job]
    while here != stage:
        before, here = here, run.next[here]
    if before == NONE:
        run.first[job] = run.next[stage]
    else:
        run.next[before] = run.next[stage]
    if run.first[job] == NONE:
        run.num_jobs[band] -= 1
        last, place = run.jobs[end_of_jobs(run, band)], run.place[job]
        run.jobs[place], run.place[last] = last, place


@compiled
def list_again(w: DagWorld, run: Runnable, band: int, stage: int) -> None:
    """Take those tasks of a stage out of the list of tasks that may be launched that wait again."""
    stages, phase = w.stages, w.inputs.phase
    unlist_stage(run, band, stages.job[stage], stage)
    w.tasks.ready[stage] = 0
    for task in range(stages.first_task[stage], stages.first_task[stage + 1]):
        if phase[task] == READY:
            phase[task] = WAITING
            add_if_complete(w, run, band, stage, task)


@compiled
def add_ready_tasks(w: DagWorld, run: Runnable, band: int, stage: int) -> None:
    """Note the tasks of a stage that may be launched if it waits for no other stage: those that wait for no task."""
    if w.stages.waiting[stage] == 0:
        for task in range(w.stages.first_task[stage], w.stages.first_task[stage + 1]):
            add_if_complete(w, run, band, stage, task)


@inlined
def add_if_complete(w: DagWorld, run: Runnable, band: int, stage: int, task: int) -> None:
    """Note that a task waits for no other, unless it does, or has been launched or has ended."""
    phase = w.inputs.phase
    is_waiting = phase.size == 0 or phase[task] == WAITING
    if is_waiting and w.stages.waiting[stage] == 0 and w.stages.task_waiting[task] == 0:
        add_complete(w, run, band, stage, task)


@inlined
def is_at_launch(w: DagWorld, edge: int) -> bool:
    """Whether an edge to a child is pipelined: the child waits until all tasks of the stage are launched."""
    return w.inputs.at_launch.size > 0 and w.inputs.at_launch[edge] == 1


@inlined
def note_launched(w: DagWorld, run: Runnable, t: int, stage: int) -> None:
    """Note that a task of a stage has been launched."""
    unlaunched = w.tasks.unlaunched
    if w.inputs.at_launch.size > 0:
        unlaunched[stage] -= 1
        if unlaunched[stage] == 0:
            w.inputs.all_launched[stage] = t
            run.whole[run.num_whole[0]] = stage
            run.num_whole[0] += 1


@compiled
def add_children(w: DagWorld, run: Runnable, bands: np.ndarray) -> bool:
    """Note the tasks that may be launched as their parents have been, by the event that ends; return if there are any.

    Args:
        bands: [J] of jobs.
    """
    stages, has_more = w.stages, False
    for i in range(run.num_whole[0]):
        stage = run.whole[i]
        for edge in range(stages.first_child[stage], stages.first_child[stage + 1]):
            child = stages.child[edge]
            if w.inputs.at_launch[edge] == 1:
                end_wait(stages, edge)
                add_ready_tasks(w, run, bands[stages.job[stage]], child)
                has_more = has_more or w.tasks.ready[child] > 0
    run.num_whole[0] = 0
    return has_more


@compiled
def note_end(w: DagWorld, run: Runnable, band: int, task: int, stage: int, start: int, finish: int) -> bool:
    """Note that a task has ended; return whether its job has."""
    stages, job = w.stages, w.stages.job[stage]
    w.jobs.start[job] = min(w.jobs.start[job], start)
    w.jobs.finish[job] = max(w.jobs.finish[job], finish)
    stages.unfinished[stage] -= 1
    w.jobs.unfinished[job] -= 1
    if w.inputs.phase.size > 0:
        w.inputs.phase[task] = ENDED
    for edge in range(stages.first_child[stage], stages.first_child[stage + 1]):
        child = stages.child[edge]
        if stages.one_to_one[edge] == 1:
            its = stages.first_task[child] + task - stages.first_task[stage]
            w.stages.task_waiting[its] -= 1
            add_if_complete(w, run, band, child, its)
        elif stages.unfinished[stage] == 0 and not is_at_launch(w, edge):
            end_wait(stages, edge)
            add_ready_tasks(w, run, band, child)
    return w.jobs.unfinished[job] == 0
