"""Outputs that are lost with a machine: the tasks that made them run again, if others still need them.

What a task sends to others is on its machine until it has been fetched (`actors.inputs`). When the manager knows
that a machine has failed:

1. A stage *lacks input* if one of its tasks has neither fetched its input nor ended, as far as messages have said. For
   each such stage, tasks of its parents that have ended, and of which the output is lost, run again: all of a shuffle's
   parent, over a one-to-one edge those whose child lacks input.
2. They need their own input once more: step 1 is repeated for their stages.
3. Those that wait for them wait again. A task that has been launched already loses its fetch, and comes back (`LOST`).

So it is in Spark, which computes what is lost again by its lineage, from the stage whose outputs are still there (M.
Zaharia et al., Resilient Distributed Datasets, NSDI 2012, section 2.3), and in MapReduce (J. Dean, S. Ghemawat, OSDI
2004, section 3.3). What a job writes is safe: tasks of stages without children never run again.
"""

import numpy as np

from actors.failures import is_known_down
from actors.inputs import ENDED, LAUNCHED, READY, WAITING, can_lose_outputs
from actors.kernel.compiled import compiled, inlined
from actors.kernel.counters import N_FINISHED, N_STARTED
from actors.kernel.queue import NONE
from actors.machines import runnable
from actors.machines.dag_world import N_RUN_AGAIN, DagWorld
from actors.machines.matching import Lineage, Manager, Matcher, update_rank


def make_lineage(w: DagWorld) -> Lineage:
    """Return the books before any task has ended."""
    tasks = w.inputs.outputs.ended.size
    stages = w.stages.job.size if tasks else 0
    suspect, stack, is_stacked = (np.zeros(stages, np.int64) for _ in range(3))
    reopened, node, start, has_input = (np.zeros(tasks, np.int64) for _ in range(4))
    return Lineage(suspect, stack, is_stacked, reopened, np.zeros(1, np.int64), node, start, has_input)


@inlined
def is_kept(w: DagWorld, book: Lineage, task: int) -> bool:
    """Return whether the output of a task that has ended is on its machine, as the manager knows."""
    return is_up_since(w, book.node[task], book.start[task])


@inlined
def is_up_since(w: DagWorld, node: int, time: int) -> bool:
    """Return whether a machine has not failed since a time, as the manager knows."""
    return not is_known_down(w, node) and time >= w.faults.actors.since[node]


@inlined
def note_has_input(w: DagWorld, book: Lineage, task: int, node: int, since: int) -> None:
    """Note that a task has fetched its input, unless that was an attempt which is lost, as the manager knows."""
    is_last = w.inputs.phase[task] == LAUNCHED and book.node[task] == node and book.start[task] <= since
    if is_last and is_up_since(w, node, since):
        book.has_input[task] = 1


@inlined
def lacks_input(w: DagWorld, book: Lineage, task: int) -> bool:
    """Return whether a task has to fetch its input yet, as the manager knows."""
    return w.inputs.phase[task] != ENDED and book.has_input[task] == 0


@compiled
def is_lacking(w: DagWorld, book: Lineage, stage: int) -> bool:
    """Return whether a task of a stage has to fetch its input yet, as the manager knows."""
    found: bool = False
    for task in range(w.stages.first_task[stage], w.stages.first_task[stage + 1]):
        found = found or lacks_input(w, book, task)
    return found


@compiled
def suspect_machine(w: DagWorld, book: Lineage, node: int) -> None:
    """Note that outputs on a machine may be lost."""
    for task in range(w.inputs.phase.size):
        if book.node[task] == node and w.inputs.phase[task] == ENDED:
            book.suspect[w.tasks.stage[task]] = 1


@compiled
def run_lost_again(w: DagWorld, p: Manager, me: int) -> None:
    """Let all tasks run again of which the output is lost, and needed."""
    s, book = w.stages, p.lineage
    for stage in range(book.suspect.size):
        if book.suspect[stage] == 1 and w.jobs.unfinished[s.job[stage]] == 0:
            book.suspect[stage] = 0
        if book.suspect[stage] == 1:
            for edge in range(s.first_child[stage], s.first_child[stage + 1]):
                restore_input(w, p, me, s.child[edge])
    add_reopened(w, p)


@compiled
def restore_input(w: DagWorld, p: Manager, me: int, stage: int) -> None:
    """Let tasks run again of which a stage, or in turn one of its ancestors, needs the output."""
    inputs, book, size = w.inputs, p.lineage, np.int64(1)
    book.stack[0], book.is_stacked[stage] = stage, 1
    while size > 0:
        size -= 1
        child = book.stack[size]
        book.is_stacked[child] = 0
        if not is_lacking(w, book, child):
            continue
        for e in range(inputs.first_parent[child], inputs.first_parent[child + 1]):
            parent = inputs.parent[e]
            if parent == NONE or inputs.size[e] == 0.0 or book.suspect[parent] == 0:
                continue
            has_more = reopen_lost(w, p, me, parent, child, inputs.one_to_one[e])
            if has_more and book.is_stacked[parent] == 0:
                book.stack[size], book.is_stacked[parent] = parent, 1
                size += 1


@compiled
def reopen_lost(w: DagWorld, p: Manager, me: int, parent: int, child: int, one_to_one: int) -> bool:
    """Let tasks of a stage run again of which its child needs the output, and it is lost; return if there are any."""
    book, found, left = p.lineage, False, False
    first, offset = w.stages.first_task[parent], w.stages.first_task[child] - w.stages.first_task[parent]
    for task in range(first, w.stages.first_task[parent + 1]):
        if w.inputs.phase[task] != ENDED or is_kept(w, book, task):
            continue
        if one_to_one == 1 and not lacks_input(w, book, task + offset):
            left = True
            continue
        reopen(w, p, me, task, parent)
        book.reopened[book.num_reopened[0]] = task
        book.num_reopened[0] += 1
        found = True
    if not left:
        book.suspect[parent] = 0
    return found


@compiled
def reopen(w: DagWorld, p: Manager, me: int, task: int, stage: int) -> None:
    """Note that a task that had ended has not: others wait for it again."""
    s, m, inputs, job = w.stages, p.matcher, w.inputs, w.stages.job[stage]
    inputs.phase[task], p.lineage.has_input[task] = WAITING, 0
    w.queue.now.unfinished[0] += 1
    w.counts[N_RUN_AGAIN] += 1
    w.counts[N_FINISHED] -= 1
    w.counts[N_STARTED + w.work.report_class[job]] -= 1
    s.unfinished[stage] += 1
    w.jobs.unfinished[job] += 1
    m.left[job] += m.work[stage]
    m.total_left[m.band[job]] += m.work[stage]
    update_rank(w, m, me, job)
    p.plan.planned[job] = False
    for edge in range(s.first_child[stage], s.first_child[stage + 1]):
        child = s.child[edge]
        if s.one_to_one[edge] == 1:
            its = s.first_task[child] + task - s.first_task[stage]
            w.tasks.waiting[its] += 1
            if inputs.phase[its] == READY:
                withdraw(w, m, child)
        elif s.unfinished[stage] == 1:
            s.waiting[child] += 1
            if s.ready[child] > 0:
                withdraw(w, m, child)


@compiled
def withdraw(w: DagWorld, m: Matcher, stage: int) -> None:
    """Take those tasks of a stage out of the list of tasks that may be launched that wait again."""
    s, phase, job = w.stages, w.inputs.phase, w.stages.job[stage]
    runnable.unlist_stage(m.run, m.band[job], job, stage)
    s.ready[stage] = 0
    for task in range(s.first_task[stage], s.first_task[stage + 1]):
        if phase[task] == READY:
            phase[task] = WAITING
            runnable.add_if_complete(w, m.run, m.band[job], stage, task)


@inlined
def add_reopened(w: DagWorld, p: Manager) -> None:
    """Note which of the tasks that run again may be launched: those that do not wait for others that do."""
    book, m = p.lineage, p.matcher
    for i in range(book.num_reopened[0]):
        task = book.reopened[i]
        stage = w.tasks.stage[task]
        runnable.add_if_complete(w, m.run, m.band[w.stages.job[stage]], stage, task)
    book.num_reopened[0] = 0


@inlined
def note_task_back(w: DagWorld, p: Manager, me: int, task: int, stage: int) -> None:
    """Note that a task that was lost is to be launched again, when its input is there."""
    run, band = p.matcher.run, p.matcher.band[w.stages.job[stage]]
    if can_lose_outputs(w.inputs):
        w.inputs.phase[task], p.lineage.has_input[task] = WAITING, 0
        restore_input(w, p, me, stage)
        add_reopened(w, p)
        runnable.add_if_complete(w, run, band, stage, task)
    else:
        runnable.add_ready(w, run, band, stage, task)


@inlined
def note_ended(w: DagWorld, p: Manager, me: int, task: int, stage: int, start: int) -> None:
    """Note that a task has ended; it runs again if the manager knows that its machine has failed since."""
    if can_lose_outputs(w.inputs):
        p.lineage.start[task] = start
        if not is_kept(w, p.lineage, task):
            p.lineage.suspect[stage] = 1
            run_lost_again(w, p, me)
