"""Conservative backfilling: every job that waits has a reservation, and a job that starts early delays none of them.

As Mu'alem and Feitelson define it. Jobs are gangs, whose tasks all start at one instant.

1. A job arrives: it gets a reservation at one central scheduler, the earliest time from which on as many slots as it
   has tasks are expected to be idle for as long as it is expected to run, besides what runs and what is reserved. So it
   passes jobs that arrived before it where it delays none.
2. A job starts when its reservation begins.
3. A task ends earlier than expected: the schedule is *compressed*. The reservations are taken out one at a time, in the
   order of the queue, and each job gets the earliest one that the others leave. It is never later than the one it had.
4. A node reports a task's end; what the task held is idle for the scheduler when the report has arrived.

Where tasks hold resources, or some gang states on how many nodes it runs, a reservation is of nodes: those of lowest id
on which the job fits for as long as it is expected to run. It starts on these; one that is made again may be of others.

The queue is in order of priority, the largest first, and then of arrival. A job with a larger priority does not delay
the reservations that there are.

A job is expected to run as long as its user has requested, where the workload states that (`plan_by`). One that runs
longer goes on, and is expected to end at once, 1 ns from now; if a reservation cannot be kept for that, all are made
again, in the order of the queue. All that happens at one instant is known before the scheduler decides.

**Deviations from the paper.** The schedule is compressed in the order of the queue, as by the simulator pyss of the
Hebrew University, in one pass. Reservations of nodes and resources are ours; a task counts as the most that one of its
job needs. A job that is no gang (`gangs`) has a reservation for each of its tasks. A job is not ended when it has run
as long as requested. To the scheduler a job takes two network delays longer. Failures are ours, as under
`central-fcfs-gang`. When a node is known to be down or up, or a task is lost, all reservations are made again, on the
nodes that are up. A job that does not fit on these has none until then. Preemption is for the first job of the queue,
as there; then all reservations are made again.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.cost import take
from actors.kernel.messages import ARRIVAL, LOST, NODE_DOWN, NODE_UP, read_job
from actors.kernel.queue import RUNNING, wake
from actors.kernel.records import Records, records
from actors.kernel.world import NEVER, NONE, World
from actors.nodes.messages import DISPATCH, DONE, read_done
from actors.nodes.worker import node_event
from actors.nodes.worlds import JOB_WORLDS
from actors.scheduler import NO_QUEUES_AT_NODES, Scheduler
from actors.schedulers.jobs.gang_bookings import (
    Bookings,
    add_change,
    begin_search,
    drop_change,
    find_begin,
    leave_span,
    make_bookings,
)
from actors.schedulers.jobs.gang_build import GANGS, PLAN_BY, build_gangs
from actors.schedulers.jobs.gang_ends import row_at
from actors.schedulers.jobs.gang_outlook import choose_nodes
from actors.schedulers.jobs.gang_preemption import is_room_coming, make_way
from actors.schedulers.jobs.gang_profile import Profile, change, find_place, make_profile, pass_time, restart
from actors.schedulers.jobs.gang_reports import note_end, on_lost, on_node_state
from actors.schedulers.jobs.gangs import (
    Gangs,
    first_to_start,
    is_gang,
    note_arrival,
    start,
    start_heads,
    tasks_to_start,
)
from actors.setting import Setting

# Of the last decision: whether a task has ended early since, 1 or 0; when the first reservation begins, NEVER if there
# is none, NONE if all must be made again; and when the scheduler wakes itself. Times in ns.
SINCE = np.dtype([("early", "i8"), ("first", "i8"), ("alarm", "i8")])


class State(NamedTuple):
    """The jobs, and their reservations."""

    gangs: Gangs
    profile: Profile
    begin: (
        np.ndarray
    )  # [T] when a task is to start, ns; of a gang its first one's; NONE: it has no reservation
    since: Records  # [1] SINCE
    # 0: no job is a gang, and each task takes a slot: none is idle while a task waits, and there is nothing to reserve
    reserves: int
    bookings: Bookings  # reservations by node, in place of the profile


@inlined
def same_begin(w: World, p: State, job: int, task: int) -> int:
    """Return how many tasks of a job, from this one on, have one reservation: of a gang all."""
    end = w.work.end_task[job]
    if is_gang(p.gangs, job):
        return end - task
    count = np.int64(1)
    if p.gangs.by_node == 1 or task < w.jobs.next_task[job]:
        return count
    while task + count < end and p.begin[task + count] == p.begin[task]:
        count += 1
    return count


@inlined
def following(w: World, job: int, task: int, count: int) -> int:
    """Return the task of a job that waits and comes after `count` of them, from this one on; the end if there is none.

    Tasks that were lost come first, one by one.
    """
    if w.faults.active == 1 and task < w.jobs.next_task[job]:
        again = w.faults.tasks.again[task]
        return again if again != NONE else w.jobs.next_task[job]
    return task + count


@inlined
def skip_rest(w: World, p: State, job: int, task: int) -> None:
    """Note that a job has no reservations, from this task on: there is not enough on the nodes that are up."""
    while task < w.work.end_task[job]:
        p.begin[task] = NONE
        task = following(w, job, task, np.int64(1))


@inlined
def hold(p: State, job: int, begin: int, slots: int) -> None:
    """Hold so many slots for a job from `begin` on for as long as it is expected to run; release them if below 0."""
    change(p.profile, begin, min(begin + p.gangs.jobs.holds[job], NEVER), -slots)


@inlined
def book(p: State, job: int, task: int, count: int, begin: int) -> None:
    """Add the reservation of so many tasks of a job, on the nodes that were chosen for them."""
    add_change(p.bookings, begin, job, task, count, np.int64(1))
    add_change(p.bookings, min(begin + p.gangs.jobs.holds[job], NEVER), job, task, count, np.int64(-1))
    p.begin[task] = begin


@compiled
def place_single(w: World, p: State, job: int, task: int) -> int:
    """Choose nodes for the tasks that fit of a job that is no gang, by id; return the first task that does not."""
    there, rows = p.bookings.at.there, p.gangs.placed
    for node in range(there.size):
        for _ in range(there[node]):
            if task == w.work.end_task[job]:
                return task
            rows.node[task], rows.tasks[task] = node, 1
            task = following(w, job, task, np.int64(1))
    return task


@compiled
def reserve_single(w: World, p: State, t: int, job: int) -> None:
    """Step 1 by node, of a job that is no gang: none of its tasks, which are alike, begins before the one before."""
    gangs, b = p.gangs, p.bookings
    task, begin = first_to_start(w, job), t
    begin_search(b, gangs.now.free, gangs.of_job[job], tasks_to_start(w, job), np.int64(1), np.int64(0))
    while task < w.work.end_task[job]:
        begin = find_begin(b, gangs.ends, gangs.placed, gangs.of_job, t, begin, gangs.jobs.holds[job])
        if begin == NEVER:
            skip_rest(w, p, job, task)
            break
        after = place_single(w, p, job, task)
        leave_span(b, gangs.ends, gangs.placed, gangs.of_job)
        while task != after:
            book(p, job, task, np.int64(1), begin)
            task = following(w, job, task, np.int64(1))


@compiled
def reserve_gang(w: World, p: State, t: int, job: int) -> None:
    """Step 1 by node, of a gang."""
    gangs, b = p.gangs, p.bookings
    task = first_to_start(w, job)
    count = w.work.end_task[job] - task
    begin_search(b, gangs.now.free, gangs.of_job[job], count, count, max(gangs.jobs.nodes[job], np.int64(0)))
    begin = find_begin(b, gangs.ends, gangs.placed, gangs.of_job, t, t, gangs.jobs.holds[job])
    if begin == NEVER:
        skip_rest(w, p, job, task)
        return
    choose_nodes(b.at, gangs.placed, task, count)
    book(p, job, task, count, begin)


@compiled
def reserve(w: World, p: State, t: int, job: int) -> None:
    """Step 1: make the earliest reservation that the others leave, of a job that has none."""
    if p.gangs.by_node == 1 and is_gang(p.gangs, job):
        reserve_gang(w, p, t, job)
        return
    if p.gangs.by_node == 1:
        reserve_single(w, p, t, job)
        return
    task, end, span = first_to_start(w, job), w.work.end_task[job], p.gangs.jobs.holds[job]
    while task < end:
        count = end - task if is_gang(p.gangs, job) else np.int64(1)
        begin, least = find_place(p.profile, count, span)
        if begin == NEVER:
            skip_rest(w, p, job, task)
            break
        if not is_gang(p.gangs, job) and task >= w.jobs.next_task[job]:
            count = min(end - task, least)
        hold(p, job, begin, count)
        for i in range(1 if is_gang(p.gangs, job) else count):
            p.begin[task + i] = begin
        task = following(w, job, task, count)


@compiled
def release(w: World, p: State, job: int) -> None:
    """Take the reservation of a job out of the profile, if it has one."""
    task = first_to_start(w, job)
    while task < w.work.end_task[job]:
        count = same_begin(w, p, job, task)
        if p.begin[task] != NONE and p.gangs.by_node == 1:
            drop(p, job, task)
        elif p.begin[task] != NONE:
            hold(p, job, p.begin[task], -count)
        task = following(w, job, task, count)


@inlined
def drop(p: State, job: int, task: int) -> None:
    """Remove a job's reservation by node, whose first task is `task`."""
    begin = p.begin[task]
    drop_change(p.bookings, begin, task, np.int64(1))
    drop_change(p.bookings, min(begin + p.gangs.jobs.holds[job], NEVER), task, np.int64(-1))


@inlined
def is_late(p: State, t: int) -> bool:
    """Return whether something that should have ended runs."""
    ends = p.gangs.ends
    return ends.span[1] > 0 and ends.rows.end[row_at(ends, 0)] <= t


@compiled
def plan(w: World, p: State, t: int) -> None:
    """Bring the reservations up to date: steps 1 and 3; make all again if some cannot be kept, or there were none."""
    gangs, since = p.gangs, p.since
    again = is_late(p, t) or since.first[0] < t or since.first[0] == NEVER
    if again and gangs.by_node == 1:
        p.bookings.number[0] = 0
    elif again:
        restart(p.profile, gangs.ends, t, gangs.room.total[0])
    elif gangs.by_node == 0:
        pass_time(p.profile, t)
    each = again or since.early[0] == 1
    job = gangs.queue.first[0]
    while job != NONE:
        if each and not again:
            release(w, p, job)
        if each or p.begin[first_to_start(w, job)] == NONE:
            reserve(w, p, t, job)
        job = gangs.jobs.next[job]
    since.early[0] = 0


@compiled
def start_due(w: World, p: State, t: int, me: int) -> None:
    """Step 2: start what is due, and note when the next reservation begins."""
    gangs, first = p.gangs, NEVER
    job = gangs.queue.first[0]
    while job != NONE:
        after = gangs.jobs.next[job]
        while tasks_to_start(w, job) > 0 and NONE < p.begin[first_to_start(w, job)] <= t:
            task = first_to_start(w, job)
            if gangs.by_node == 1:
                drop(p, job, task)
            count = same_begin(w, p, job, task)
            start(w, gangs, t, me, job, count, task)
            for i in range(1 if is_gang(gangs, job) else count):
                p.begin[task + i] = NONE
        if tasks_to_start(w, job) > 0 and p.begin[first_to_start(w, job)] != NONE:
            first = min(first, p.begin[first_to_start(w, job)])
        job = after
    p.since.first[0] = first


@inlined
def decide(w: World, p: State, t: int, me: int) -> None:
    """Start what may start, and wake again when the next reservation begins; if something is late, when it ends."""
    queue, since = p.gangs.queue, p.since
    if queue.is_woken[0] == 0 and since.alarm[0] > t:
        return  # woken for a reservation that was changed
    queue.is_woken[0] = 0
    head = p.gangs.queue.first[0]
    waits = head != NONE and is_room_coming(w, p.gangs, head)
    # Without a reservation none is delayed: the jobs start in turn, and the profile is not needed before one waits.
    if not waits and (since.first[0] < NEVER or (start_heads(w, p.gangs, t, me) != NONE and p.reserves == 1)):
        plan(w, p, t)
        start_due(w, p, t, me)
        head = p.gangs.queue.first[0]
        waits = head != NONE and make_way(w, p.gangs, t, me, head)
    elif waits:
        make_way(w, p.gangs, t, me, head)
    if waits:
        since.first[0] = NONE
    alarm = since.first[0]
    if alarm <= t or is_late(p, t):
        alarm = NEVER
    if alarm < NEVER and alarm != since.alarm[0]:
        wake(w, alarm, me, DISPATCH, NONE, NONE, NONE)
    since.alarm[0] = alarm


@inlined
def on_done(w: World, p: State, t: int, me: int) -> None:
    """Step 4, and note for step 3 what is idle earlier than expected."""
    _, node, _, _ = read_done(w)
    expected = note_end(w, p.gangs, me)
    if p.gangs.room.up[node] == 0:
        make_again(p)
    elif expected > t and p.since.first[0] < NEVER:
        p.since.early[0] = 1
        if p.gangs.by_node == 0:
            change(p.profile, max(t, p.profile.steps.time[0]), expected, np.int64(1))


@inlined
def make_again(p: State) -> None:
    """Let all reservations be made again at the next decision."""
    if p.since.first[0] < NEVER:
        p.since.first[0] = NONE


@entry
def advance(w: World, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    message = w.queue.now
    for _ in range(most):
        why = take(w, until)
        if why != RUNNING:
            return why
        t, kind, me = message.time[0], message.kind[0], message.dst[0]
        if me < w.nodes.size:
            node_event(w, me)
        elif kind == DONE:
            on_done(w, p, t, me)
        elif kind == ARRIVAL:
            note_arrival(w, p.gangs, me, read_job(w))
        elif kind == DISPATCH:
            decide(w, p, t, me)
        elif kind == LOST:
            on_lost(w, p.gangs, t, me)
            make_again(p)
        elif (kind == NODE_DOWN or kind == NODE_UP) and on_node_state(w, p.gangs):
            make_again(p)
    return RUNNING


def build(setting: Setting) -> tuple[World, State]:
    """Make the world and the scheduler's state at time 0."""
    world, gangs = build_gangs(setting, reserves=True)
    is_job_gang, by_node = gangs.jobs.nodes != NONE, gangs.by_node == 1
    count = int(np.where(is_job_gang, 1, world.work.end_task - world.work.first_task).sum())
    profile = make_profile(int(gangs.room.total[0]), 0 if by_node else 2 * count + gangs.ends.rows.size)
    bookings = make_bookings(gangs.now, count if by_node else 0)
    since = records(SINCE, 1)
    since.first[0], since.alarm[0] = NEVER, NEVER
    begin = np.full(setting.workload.num_tasks, NONE)
    return world, State(gangs, profile, begin, since, int(by_node or is_job_gang.any()), bookings)


CONSERVATIVE = Scheduler(
    name="conservative",
    title="gangs, conservative backfilling",
    paper="Mu'alem, Feitelson: Utilization, predictability, workloads, and user runtime estimates in scheduling the IBM"
    " SP2 with backfilling, IEEE TPDS 12(6), 2001",
    parameters=(GANGS, PLAN_BY),
    worlds=JOB_WORLDS,
    build=build,
    advance=advance,
    preempts=True,
    gangs=True,
    waits="gangs",
    ignores=(("long_partition", "it treats all jobs alike"), NO_QUEUES_AT_NODES),
)
