"""Stages of DAG jobs: which wait for which, and what lost output must be made again, as far as the scheduler knows.

A stage is a set of tasks. It waits for its parents; over a one-to-one edge task i waits for task i of the parent alone.
To a scheduler of jobs a stage is a job, all of which waits for all tasks of its parents.

What a task sends to others is on its machine until it has been fetched (`actors.inputs`). When a scheduler knows that a
machine has failed:

1. A stage *lacks input* if one of its tasks has neither fetched its input nor ended, as far as messages have said. For
   each such stage, tasks of its parents that have ended, and of which the output is lost, run again: all of a shuffle's
   parent, over a one-to-one edge those whose child lacks input.
2. They need their own input once more: step 1 is repeated for their stages.
3. Those that wait for them wait again. A task that has been launched already loses its fetch, and comes back (`LOST`).

So it is in Spark, which computes what is lost again by its lineage, from the stage whose outputs are still there (M.
Zaharia et al., Resilient Distributed Datasets, NSDI 2012, section 2.3), and in MapReduce (J. Dean, S. Ghemawat, OSDI
2004, section 3.3). What a job writes is safe: tasks of stages without children never run again.

What changes is listed (`Lineage.reopened`, `Lineage.withdrawn`): the scheduler keeps its own books by that.
"""

from typing import NamedTuple, Protocol

import numpy as np

from actors.conditions import read_only
from actors.failures import is_known_down
from actors.initial_arrays import at_start, per
from actors.inputs import ENDED, LAUNCHED, READY, WAITING, HasInputs, Inputs
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from workloads.dags import DagArrays


class Lineage(NamedTuple):
    """The books of lost outputs; empty where none can be lost."""

    suspect: np.ndarray = per("stage")  # 1: outputs of tasks of the stage that have ended may be lost
    stack: np.ndarray = per("stage")  # scratch: stages of which the parents are to be considered
    is_stacked: np.ndarray = per("stage")
    # The first `num_reopened`: tasks that run again, of which the scheduler has not heard
    reopened: np.ndarray = per("task")
    num_reopened: np.ndarray = per("run")
    # The first `num_withdrawn`: those with tasks that wait again, since then
    withdrawn: np.ndarray = per("stage")
    num_withdrawn: np.ndarray = per("run")
    is_withdrawn: np.ndarray = per("stage")
    node: np.ndarray = per("task")  # where a task was launched last
    start: np.ndarray = per("task")  # and when, ns; of a task that has ended since when it had computed
    has_input: np.ndarray = per("task")  # 1: a task that has been launched has fetched its input
    # Of schedulers of jobs (`actors.schedulers.jobs.late_binding`):
    # 1: its scheduler needs no message when it waits for none again
    has_arrived: np.ndarray = per("stage")
    # Tasks that are to be handed out again, as far as the stage waits for none
    owed: np.ndarray = per("stage")
    due: np.ndarray = per("scheduler")  # 1: it hands out what it owes at this instant


class Stages(NamedTuple):
    """S stages of all jobs, T tasks, E edges; all are empty where jobs have no stages."""

    job: np.ndarray  # [S] read-only
    first_task: np.ndarray  # [S + 1] read-only
    first_child: np.ndarray  # [S + 1] read-only
    child: np.ndarray  # [E] read-only
    # [E] of an edge to a child: 1 if task i waits for task i of the parent alone; read-only
    one_to_one: np.ndarray
    of_task: np.ndarray  # [T] its stage; empty where nothing can fail; read-only
    waiting: np.ndarray  # [S] parents of which all tasks must have ended, and have not
    task_waiting: np.ndarray  # [T] tasks that it waits for by one-to-one edges; empty to schedulers of jobs
    unfinished: np.ndarray  # [S] tasks
    lineage: Lineage


class HasStages(HasInputs, Protocol):
    """The part of a world that the functions of this file need."""

    @property
    def stages(self) -> Stages:
        """Which stages wait for which."""


def make_stages(
    arrays: DagArrays, inputs: Inputs, *, by_task: bool, can_fail: bool, schedulers: int = 0
) -> Stages:
    """Return all stages, of which no task has run.

    Args:
        by_task: over one-to-one edges tasks wait for one alone.
        schedulers: of jobs, how many actors there are besides nodes.
    """
    tasks = np.diff(arrays.stage_first_task)
    one_to_one = arrays.edge_one_to_one.astype(bool) & by_task
    waiting = np.bincount(arrays.child[one_to_one], minlength=tasks.size)
    return Stages(
        job=read_only(np.repeat(np.arange(arrays.submit_ns.size), np.diff(arrays.first_stage))),
        first_task=arrays.stage_first_task,
        first_child=arrays.first_child,
        child=arrays.child,
        one_to_one=read_only(one_to_one.astype(np.int64)),
        of_task=read_only(np.repeat(np.arange(tasks.size), tasks if can_fail else 0)),
        waiting=np.bincount(arrays.child[~one_to_one], minlength=tasks.size),
        task_waiting=np.repeat(waiting, tasks if by_task else 0),
        unfinished=tasks,
        lineage=at_start(
            Lineage,
            {"task": inputs.outputs.ended.size, "stage": inputs.outputs.lost.size, "scheduler": schedulers},
        ),
    )


@inlined
def end_wait(s: Stages, edge: int) -> bool:
    """Note that all tasks of a parent have ended; return whether the child, over this edge, waits for no other."""
    child = s.child[edge]
    s.waiting[child] -= 1
    done: bool = s.waiting[child] == 0
    return done


@inlined
def is_kept(w: HasStages, task: int) -> bool:
    """Return whether the output of a task that has ended is on its machine, as its scheduler knows."""
    book = w.stages.lineage
    return is_up_since(w, book.node[task], book.start[task])


@inlined
def is_up_since(w: HasStages, node: int, time: int) -> bool:
    """Return whether a machine has not failed since a time, as schedulers know."""
    return not is_known_down(w, node) and time >= w.faults.actors.since[node]


@inlined
def note_has_input(w: HasStages, task: int, node: int, since: int) -> None:
    """Note that a task has fetched its input, unless that was an attempt which is lost, as its scheduler knows."""
    book = w.stages.lineage
    is_last = w.inputs.phase[task] == LAUNCHED and book.node[task] == node and book.start[task] <= since
    if is_last and is_up_since(w, node, since):
        book.has_input[task] = 1


@inlined
def lacks_input(w: HasStages, task: int) -> bool:
    """Return whether a task has to fetch its input yet, as its scheduler knows."""
    return w.inputs.phase[task] != ENDED and w.stages.lineage.has_input[task] == 0


@compiled
def is_lacking(w: HasStages, stage: int) -> bool:
    """Return whether a task of a stage has to fetch its input yet, as its scheduler knows."""
    found: bool = False
    for task in range(w.stages.first_task[stage], w.stages.first_task[stage + 1]):
        found = found or lacks_input(w, task)
    return found


@compiled
def suspect_machine(w: HasStages, node: int) -> None:
    """Note that outputs on a machine may be lost."""
    book = w.stages.lineage
    for task in range(w.inputs.phase.size):
        if book.node[task] == node and w.inputs.phase[task] == ENDED:
            book.suspect[w.stages.of_task[task]] = 1


@inlined
def forget_attempt(w: HasStages, task: int) -> None:
    """Note that an attempt at a task, which had been launched, is lost."""
    w.inputs.phase[task], w.stages.lineage.has_input[task] = WAITING, 0


@compiled
def restore_children(w: HasStages, stage: int) -> None:
    """Let tasks of a stage run again, and in turn of its ancestors, of which the output is lost, and needed."""
    for edge in range(w.stages.first_child[stage], w.stages.first_child[stage + 1]):
        restore_input(w, w.stages.child[edge])


@compiled
def restore_input(w: HasStages, stage: int) -> None:
    """Let tasks run again of which a stage, or in turn one of its ancestors, needs the output."""
    inputs, book, size = w.inputs, w.stages.lineage, np.int64(1)
    book.stack[0], book.is_stacked[stage] = stage, 1
    while size > 0:
        size -= 1
        child = book.stack[size]
        book.is_stacked[child] = 0
        if not is_lacking(w, child):
            continue
        for e in range(inputs.first_parent[child], inputs.first_parent[child + 1]):
            parent = inputs.parent[e]
            if parent == NONE or inputs.size[e] == 0.0 or book.suspect[parent] == 0:
                continue
            has_more = reopen_lost(w, parent, child, inputs.one_to_one[e])
            if has_more and book.is_stacked[parent] == 0:
                book.stack[size], book.is_stacked[parent] = parent, 1
                size += 1


@compiled
def reopen_lost(w: HasStages, parent: int, child: int, one_to_one: int) -> bool:
    """Let tasks of a stage run again of which its child needs the output, and it is lost; return if there are any."""
    book, found, left = w.stages.lineage, False, False
    first, offset = w.stages.first_task[parent], w.stages.first_task[child] - w.stages.first_task[parent]
    for task in range(first, w.stages.first_task[parent + 1]):
        if w.inputs.phase[task] != ENDED or is_kept(w, task):
            continue
        if one_to_one == 1 and not lacks_input(w, task + offset):
            left = True
            continue
        reopen(w, task, parent)
        found = True
    if not left:
        book.suspect[parent] = 0
    return found


@compiled
def reopen(w: HasStages, task: int, stage: int) -> None:
    """Note that a task that had ended has not: others wait for it again."""
    stages, book = w.stages, w.stages.lineage
    forget_attempt(w, task)
    book.reopened[book.num_reopened[0]] = task
    book.num_reopened[0] += 1
    w.queue.now.unfinished[0] += 1
    stages.unfinished[stage] += 1
    for edge in range(stages.first_child[stage], stages.first_child[stage + 1]):
        child = stages.child[edge]
        if stages.one_to_one[edge] == 1:
            its = stages.first_task[child] + task - stages.first_task[stage]
            stages.task_waiting[its] += 1
            if w.inputs.phase[its] == READY:
                withdraw(book, child)
        elif stages.unfinished[stage] == 1:
            stages.waiting[child] += 1
            withdraw(book, child)


@inlined
def withdraw(book: Lineage, stage: int) -> None:
    """Note that tasks of a stage wait again, which the scheduler may take for ready."""
    if book.is_withdrawn[stage] == 0:
        book.is_withdrawn[stage] = 1
        book.withdrawn[book.num_withdrawn[0]] = stage
        book.num_withdrawn[0] += 1


@inlined
def forget_changes(book: Lineage) -> None:
    """Note that the scheduler has heard of all that runs again, or waits again."""
    for i in range(book.num_withdrawn[0]):
        book.is_withdrawn[book.withdrawn[i]] = 0
    book.num_withdrawn[0] = book.num_reopened[0] = 0
