"""Preemption: a task of higher priority takes the place of running ones of lower priority at its node.

1. The entry whose turn it is does not fit, and would if some running tasks of lower priority ended: of those that hold
   what is lacking the lowest priority goes first, and among equals the one that started last, until the entry fits. If
   all of them would not suffice, none goes.
2. A probe evicts nothing: the node asks for a task all the same, and evicts when the task comes. If what it could evict
   has gone by then, the task waits in the queue.
3. An evicted task goes back to its scheduler, which places it again as one that a failure has lost. It starts from its
   beginning, or goes on from where it was, and the time to restore it is added to its run time. No task is evicted more
   than `most` times. What is done of a task is counted in millionths of it, so that it may go on at another speed.

A node decides on what it knows: which tasks run there, and the priorities of jobs, which messages name. (Borg, EuroSys
2015, section 2.5: tasks of lower priority are evicted, from the lowest on, and go back to the scheduler's queue.)
"""

import math
from typing import Protocol

import numpy as np

from actors.conditions import NS, counted_priorities
from actors.constraints import run_time
from actors.failures import (
    PROGRESS_BITS,
    WHOLE_TASK,
    HasFaults,
    evictions_of,
    note_sent,
    record_attempt,
    unlink_running,
)
from actors.kernel.compiled import compiled, inlined
from actors.kernel.counters import N_STARTED
from actors.kernel.messages import send_lost
from actors.kernel.queue import NEVER, NONE, note
from actors.kernel.records import records
from actors.kernel.trace import EVICTS
from actors.nodes.failing import count_lost_run
from actors.nodes.messages import read_cancel, send_serve
from actors.nodes.world import EVICTED, LONG_RUNS, N_EVICTIONS, N_TASKS_LOST, Preemption, World
from actors.resources import demand_of, fits, free_room, work_at
from actors.setting import Setting

US = 1000  # ns
# What counts as free of a resource at the least, where a node has asked for more tasks than there is room for.
HELD = np.int64(-1) << 62  # what they hold counts as held
NOT_HELD = np.int64(0)  # they make room for themselves when they come


class HasPreemption(HasFaults, Protocol):
    """The part of a world of which machines evict tasks, too (`actors.machines.preempting`)."""

    @property
    def preemption(self) -> Preemption:
        """Whether, and how, running tasks make room for others."""


@inlined
def preempts(w: HasPreemption) -> bool:
    """Whether running tasks may be evicted."""
    return w.preemption.most > 0


@inlined
def has_room(w: World, node: int, demand: int) -> bool:
    """Whether a node has a slot idle, or has a demand free."""
    if w.room.active == 0:
        return w.nodes.idle[node] > 0
    return fits(w, node, demand)


@inlined
def may_evict(w: World, task: int, job: int) -> bool:
    """Whether a running task may be evicted for one of a job; one that ends at this instant may not."""
    preemption, tasks = w.preemption, w.faults.tasks
    priority = w.priority[tasks.job[task]]
    return (
        priority < min(w.priority[job], preemption.below)
        and evictions_of(w, task) < preemption.most
        and tasks.end[task] > w.queue.now.time[0]
    )


@inlined
def note_lacking(w: World, node: int, demand: int, least: int) -> None:
    """Note in `lacking` what a node lacks for a demand, if it has `least` of each resource free, or more."""
    lacking = w.preemption.lacking
    if w.room.active == 0:
        lacking[0] = 1 - max(w.nodes.idle[node], least)
        return
    for r in range(lacking.size):
        lacking[r] = w.room.demand[demand, r] - max(w.room.free[node, r], least)


@inlined
def holds(w: World, task: int, r: int) -> int:
    """Return how much of a resource a running task holds; 1 of slots."""
    if w.room.active == 0:
        return np.int64(1)
    return w.room.demand[demand_of(w, w.faults.tasks.job[task], task), r]


@inlined
def lacks(w: HasPreemption) -> bool:
    """Whether a resource is lacking."""
    found = False
    for r in range(w.preemption.lacking.size):
        found |= w.preemption.lacking[r] > 0
    return found


@compiled
def can_make_room(w: World, node: int, demand: int, job: int, least: int) -> bool:
    """Whether a demand would fit without the tasks that may be evicted for the job."""
    note_lacking(w, node, demand, least)
    lacking, tasks = w.preemption.lacking, w.faults.tasks
    for r in range(lacking.size):
        left, task = lacking[r], w.faults.actors.running[node]
        while task != NONE and left > 0:
            if may_evict(w, task, job):
                left -= holds(w, task, r)
            task = tasks.next[task]
        if left > 0:
            return False
    return True


@compiled
def make_room(w: World, t: int, node: int, demand: int, job: int, least: int, last: int) -> bool:
    """Step 1: evict tasks until a demand fits; return whether it does.

    Args:
        least: `HELD`, or `NOT_HELD` for a task that was asked for.
        last: messages that the node has sent when it stops, and goes on in another event.
    """
    if not can_make_room(w, node, demand, job, least):
        return False
    while lacks(w):
        if w.queue.seq[node] >= last:
            send_serve(w, t, node)
            return False
        victim = next_victim(w, node, job)
        for r in range(w.preemption.lacking.size):
            w.preemption.lacking[r] -= holds(w, victim, r)
        evict(w, t, node, victim, job)
    return True


@compiled
def next_victim(w: World, node: int, job: int) -> int:
    """Return the task to be evicted first for a job, of those that hold what is lacking."""
    tasks, task, found = w.faults.tasks, w.faults.actors.running[node], NONE
    while task != NONE:
        if may_evict(w, task, job) and frees(w, task) and (found == NONE or goes_first(w, task, found)):
            found = task
        task = tasks.next[task]
    return found


@inlined
def frees(w: World, task: int) -> bool:
    """Whether a running task holds some of what is lacking."""
    found = False
    for r in range(w.preemption.lacking.size):
        found |= w.preemption.lacking[r] > 0 and holds(w, task, r) > 0
    return found


@inlined
def goes_first(w: World, task: int, other: int) -> bool:
    """Whether a running task is to be evicted before another one that started after it, or at the same time."""
    tasks = w.faults.tasks
    priority, others = w.priority[tasks.job[task]], w.priority[tasks.job[other]]
    if priority != others:
        return priority < others
    if w.preemption.oldest_first == 1:
        return tasks.start[task] <= tasks.start[other]
    return tasks.start[task] > tasks.start[other]


@compiled
def evict(w: World, t: int, node: int, task: int, for_job: int) -> None:
    """Step 3: free the place of a running task, and send it back to its scheduler."""
    job = w.faults.tasks.job[task]
    free_slot(w, node, job, task, w.faults.tasks.start[task])
    w.counts[N_EVICTIONS] += 1
    w.preemption.work[0] += work_at(w, node, job)
    note_ran(w.preemption.ran, t - w.faults.tasks.start[task])
    end_early(w, t, node, task, for_job)


@inlined
def end_early(w: HasPreemption, t: int, node: int, task: int, for_job: int) -> None:
    """End a running task before its time, and send it back to its scheduler."""
    tasks = w.faults.tasks
    job, start = tasks.job[task], tasks.start[task]
    unlink_running(w, node, task)
    w.counts[N_STARTED + w.work.report_class[job]] -= 1
    record_attempt(w, task, node, start, t)
    w.preemption.jobs.times[job] += 1
    keep_progress(w, job, task, t - start)
    note(w, t, node, EVICTS, job, task, for_job, start)
    send_lost(w, t, node, w.work.home[job], job, task, start, tasks.history[task])


@compiled
def stop_task(w: World, t: int, node: int) -> None:
    """End a task that its scheduler of gangs wants to end at once, if it runs here by what that has sent last."""
    job, task, for_job = read_cancel(w)
    tasks = w.faults.tasks
    if not note_sent(w, task) or tasks.node[task] != node:
        return
    if for_job != NONE:
        evict(w, t, node, task, for_job)
        return
    start = tasks.start[task]
    unlink_running(w, node, task)
    free_slot(w, node, job, task, start)
    count_lost_run(w, t, node, task, np.int64(N_TASKS_LOST))
    send_lost(w, t, node, w.work.home[job], job, task, start, tasks.history[task])


@inlined
def note_ran(ran: np.ndarray, time: int) -> None:
    """Note for how long an evicted task ran, ns, for a node that goes by run times."""
    if ran.size > 0:
        ran[0] += 1
        ran[ran[0]] = time


@inlined
def free_slot(w: World, node: int, job: int, task: int, start: int) -> None:
    """Free the slot, or the room, of a task that has run on a node since `start`."""
    w.nodes.idle[node] += 1
    if w.room.active == 1:
        free_room(w, node, demand_of(w, job, task))
    if w.nodes.running[node] == job and w.nodes.started[node] == start:
        w.nodes.running[node] = NONE
    w.nodes.longs[node] -= (LONG_RUNS + 1) * w.work.is_long[job]


@inlined
def keep_progress(w: HasPreemption, job: int, task: int, ran: int) -> None:
    """Note one more eviction of a task that has run for `ran` ns, and what of it is done from now on."""
    tasks, preemption = w.faults.tasks, w.preemption
    history, whole = tasks.history[task], tasks.end[task] - tasks.start[task]
    restoring = min(restore_time(w, task), ran)
    lost = ran
    if preemption.keeps == 1:
        lost = restoring
        left = WHOLE_TASK - (history & ((1 << PROGRESS_BITS) - 1))
        history += np.int64(math.floor(left * float(ran - restoring) / max(whole - restore_time(w, task), 1)))
    preemption.jobs.lost[job] += lost // US
    tasks.history[task] = history + (1 << PROGRESS_BITS)


@inlined
def restore_time(w: HasPreemption, task: int) -> int:
    """Return what is added to the run time of a task, ns, since it was evicted."""
    return w.preemption.cost * np.int64(w.faults.tasks.history[task] > 0)


@inlined
def note_restored(w: HasPreemption, job: int, task: int) -> None:
    """Count the time to restore a task that has ended."""
    if preempts(w):
        w.preemption.jobs.lost[job] += restore_time(w, task) // US


@inlined
def time_to_run(w: World, node: int, task: int, level: int) -> int:
    """Return for how long a task runs on a node that starts now, ns."""
    return time_left(w, task, run_time(w, node, task, level))


@inlined
def time_left(w: HasPreemption, task: int, whole: int) -> int:
    """Return how long a task of `whole` ns runs that starts now: less what is done, and with the time to restore it."""
    if w.preemption.most == 0 or w.faults.tasks.history[task] == 0:
        return whole
    done = w.faults.tasks.history[task] & ((1 << PROGRESS_BITS) - 1)
    return whole - np.int64(np.rint(float(whole) * done / WHOLE_TASK)) + w.preemption.cost


def make_preemption(setting: Setting, resources: int) -> Preemption:
    """Return whether, and how, running tasks make room for others; `resources`: how many nodes have, 0 with slots."""
    asked = setting.preemption
    lacking, work = np.zeros(max(resources, 1), np.int64), np.zeros(1, np.int64)
    ran = np.zeros(0, np.int64)
    if asked is None:
        return Preemption(0, 0, 0, 0, 0, records(EVICTED, 0), lacking, work, ran)
    most = asked.most if counted_priorities(setting).size else 0  # none is above another
    below, cost = NEVER if asked.below is None else asked.below, round(asked.cost_s * NS)
    jobs = records(EVICTED, setting.num_jobs)
    return Preemption(
        most, int(below), int(asked.oldest_first), int(asked.keeps), cost, jobs, lacking, work, ran
    )
