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

from actors.kernel.arrays import first_from
from actors.kernel.compiled import compiled, inlined
from actors.kernel.messages import LOST, NODE_DOWN, NODE_UP
from actors.kernel.queue import NEVER, NONE, wake
from actors.kernel.records import Records, records
from actors.nodes.messages import DISPATCH, DONE, read_done
from actors.nodes.world import World
from actors.nodes.worlds import JOB_WORLDS
from actors.scheduler import NO_QUEUES_AT_NODES, Scheduler
from actors.schedulers.jobs.gang_outlook import (
    Ends,
    Outlook,
    all_fit,
    choose_nodes,
    copy_free,
    look_at,
    make_outlook,
    row_at,
    take_rows,
)
from actors.schedulers.jobs.gangs import (
    GANGS,
    HANDLERS,
    PLAN_BY,
    Gangs,
    build_gangs,
    first_to_start,
    is_gang,
    is_room_coming,
    make_way,
    note_end,
    on_lost,
    on_node_state,
    start,
    start_heads,
    tasks_to_start,
)
from actors.schedulers.jobs.late_binding import make_job_loop
from actors.setting import Setting

# Where the steps stand:
# 1. `note_arrival` of actors/schedulers/jobs/gangs.py; `reserve`, `find_place`; by node `reserve_gang`,
#    `reserve_single`, `find_begin`
# 2. `start_due`
# 3. `plan`, `release`
# 4. `on_done`; `note_end` of actors/schedulers/jobs/gangs.py

# How many slots are expected to be idle from now on: a step function of time, which reservations lower.
#
# All costs are those of the steps: two for each reservation, one for each expected end of what runs.

STEP = np.dtype(
    [("time", "i8"), ("idle", "i8")]
)  # from `time`, ns, so many slots are idle, until the next step


class Profile(NamedTuple):
    """The steps, in order of time; the last one has no end."""

    steps: Records  # STEP
    number: np.ndarray  # [1] steps


def make_profile(idle: int, most: int) -> Profile:
    """Return the profile of so many idle slots, with room for `most` steps."""
    steps = records(STEP, most + 3)  # a change adds two steps before it takes any away
    steps.idle[0] = idle
    return Profile(steps, np.ones(1, np.int64))


@compiled
def restart(profile: Profile, ends: Ends, t: int, idle: int) -> None:
    """Make the profile of what runs alone; what should have ended ends 1 ns from `t`."""
    steps, last = profile.steps, np.int64(0)
    steps.time[0], steps.idle[0] = t, idle
    for i in range(ends.span[1]):
        row = row_at(ends, i)
        end = max(ends.rows.end[row], t + 1)
        if end > steps.time[last]:
            last += 1
            steps.time[last], steps.idle[last] = end, steps.idle[last - 1]
        steps.idle[last] += ends.rows.tasks[row]
    profile.number[0] = last + 1


@compiled
def pass_time(profile: Profile, t: int) -> None:
    """Drop what lies before `t`."""
    steps, past = profile.steps, np.int64(0)
    while past + 1 < profile.number[0] and steps.time[past + 1] <= t:
        past += 1
    if past > 0:
        for i in range(past, profile.number[0]):
            steps.time[i - past], steps.idle[i - past] = steps.time[i], steps.idle[i]
        profile.number[0] -= past
    steps.time[0] = max(steps.time[0], t)


@compiled
def split(profile: Profile, time: int) -> int:
    """Return the step that begins at `time`, which is not before the first; it is inserted where there is none."""
    steps = profile.steps
    low = first_from(steps.time, np.int64(0), profile.number[0], time)
    if low < profile.number[0] and steps.time[low] == time:
        return low
    for i in range(profile.number[0], low, -1):
        steps.time[i], steps.idle[i] = steps.time[i - 1], steps.idle[i - 1]
    steps.time[low], steps.idle[low] = time, steps.idle[low - 1]
    profile.number[0] += 1
    return low


@inlined
def join(profile: Profile, at: int) -> None:
    """Remove a step that is no step: as many slots are idle as before."""
    steps = profile.steps
    if 0 < at < profile.number[0] and steps.idle[at] == steps.idle[at - 1]:
        for i in range(at + 1, profile.number[0]):
            steps.time[i - 1], steps.idle[i - 1] = steps.time[i], steps.idle[i]
        profile.number[0] -= 1


@compiled
def change(profile: Profile, begin: int, end: int, slots: int) -> None:
    """Let so many more slots be idle from `begin` to `end`; a reservation is a change by less than none."""
    if begin >= end:
        return
    first = split(profile, begin)
    behind = split(profile, end)
    for i in range(first, behind):
        profile.steps.idle[i] += slots
    join(profile, behind)
    join(profile, first)


@compiled
def find_place(profile: Profile, slots: int, span: int) -> tuple[int, int]:
    """Step 1: return from when on so many slots are idle for `span`, ns, as early as possible, and the least idle then.

    The paper calls that time the anchor point. (NEVER, 0): they never are, as nodes are down.
    """
    steps = profile.steps
    begin, least, i = steps.time[0], steps.idle[0], np.int64(0)
    while True:
        if steps.idle[i] < slots:
            i += 1
            if i == profile.number[0]:
                return NEVER, np.int64(0)
            begin, least = steps.time[i], steps.idle[i]
            continue
        least = min(least, steps.idle[i])
        i += 1
        if i == profile.number[0] or steps.time[i] - begin >= span:
            return begin, least


# Reservations of nodes: when which tasks of a job that waits are to run where, so that no node has too little free.
#
# A reservation is two changes of what its nodes have free, when it begins and when it ends, in one list by time, of all
# nodes. On which nodes it lies, its tasks' rows say (`gang_outlook.PLACED_ROW`). The expected ends of what runs are
# changes too. To find the earliest time at which a job fits costs what the changes until then hold, once; and once more
# those within the job's span, for each time at which it would fit at first and a later reservation is in its way. The
# single tasks of a job are alike, so that none fits earlier than the one before: the search goes on from there, and
# those that fit at one time are found at once.

# A reservation begins (sign 1) or ends (-1): so many tasks of a job, which lie as the rows from `first` on say.
CHANGE = np.dtype([(name, "i8") for name in ("time", "job", "first", "tasks", "sign")])


# How many ends and changes are applied to what nodes have free: up to the time that is looked at, and, where the job
# fits then, up to the end of its span.
APPLIED = np.dtype([(name, "i8") for name in ("ends", "changes", "span_ends", "span_changes")])


class Bookings(NamedTuple):
    """Reservations, and what nodes have free at the time that is looked at."""

    changes: Records  # [2 a reservation] CHANGE, by time
    number: np.ndarray  # [1] changes
    at: Outlook
    applied: Records  # [1] APPLIED


def make_bookings(now: Outlook, reservations: int) -> Bookings:
    """Return no reservations, with room for so many."""
    return Bookings(
        records(CHANGE, 2 * reservations + 2),
        np.zeros(1, np.int64),
        make_outlook(now.demand, now.free.copy(), now.up),
        records(APPLIED, 1),
    )


@inlined
def place_of_time(bookings: Bookings, time: int) -> int:
    """Return how many changes come before a time."""
    return first_from(bookings.changes.time, np.int64(0), bookings.number[0], time)


@inlined
def copy_change(bookings: Bookings, i: int, j: int) -> None:
    """Copy the i-th change over the j-th."""
    rows = bookings.changes
    rows.time[j], rows.job[j], rows.first[j] = rows.time[i], rows.job[i], rows.first[i]
    rows.tasks[j], rows.sign[j] = rows.tasks[i], rows.sign[i]


@compiled
def add_change(bookings: Bookings, time: int, job: int, first: int, tasks: int, sign: int) -> None:
    """Add a change: at one time, what ends comes before what begins."""
    rows, place = bookings.changes, place_of_time(bookings, time + np.int64(sign == 1))
    for i in range(bookings.number[0], place, -1):
        copy_change(bookings, i - 1, i)
    rows.time[place], rows.job[place], rows.first[place] = time, job, first
    rows.tasks[place], rows.sign[place] = tasks, sign
    bookings.number[0] += 1


@compiled
def drop_change(bookings: Bookings, time: int, first: int, sign: int) -> None:
    """Remove the change of the reservation whose rows begin at `first`."""
    rows, place = bookings.changes, place_of_time(bookings, time)
    while rows.first[place] != first or rows.sign[place] != sign:
        place += 1
    for i in range(place + 1, bookings.number[0]):
        copy_change(bookings, i, i - 1)
    bookings.number[0] -= 1


@inlined
def end_at(ends: Ends, i: int, t: int) -> int:
    """Return when the i-th row of the ends is expected to end: what is late, 1 ns from `t`; NEVER: there is none."""
    return max(ends.rows.end[row_at(ends, i)], t + 1) if i < ends.span[1] else NEVER


@inlined
def change_at(bookings: Bookings, j: int) -> int:
    """Return when the j-th change is; NEVER: there is none."""
    return bookings.changes.time[j] if j < bookings.number[0] else NEVER


@inlined
def apply_end(
    bookings: Bookings, ends: Ends, placed: Records, of_job: np.ndarray, i: int, sign: int, least: bool
) -> None:
    """Let what the i-th row of the ends holds be free; be held again with sign -1."""
    row = row_at(ends, i)
    take_rows(
        bookings.at,
        placed,
        ends.rows.first[row],
        ends.rows.tasks[row],
        of_job[ends.rows.job[row]],
        -sign,
        least,
    )


@inlined
def apply_change(
    bookings: Bookings, placed: Records, of_job: np.ndarray, j: int, sign: int, least: bool
) -> None:
    """Apply the j-th change, or with sign -1 its opposite."""
    rows = bookings.changes
    take_rows(
        bookings.at, placed, rows.first[j], rows.tasks[j], of_job[rows.job[j]], sign * rows.sign[j], least
    )


@compiled
def pass_changes(
    bookings: Bookings,
    ends: Ends,
    placed: Records,
    of_job: np.ndarray,
    t: int,
    i: int,
    j: int,
    until: int,
    least: bool,
) -> tuple[int, int]:
    """Apply ends and changes up to `until`, from the i-th and the j-th on; return the next ones.

    `least`: keep the least that fits on each node, and stop when the job that is looked at does not fit any more.
    """
    while not least or all_fit(bookings.at):
        end, change = end_at(ends, i, t), change_at(bookings, j)
        if min(end, change) > until or (i == ends.span[1] and j == bookings.number[0]):
            break
        if end <= change and i < ends.span[1]:
            apply_end(bookings, ends, placed, of_job, i, 1, least)
            i += 1
        else:
            apply_change(bookings, placed, of_job, j, 1, least)
            j += 1
    return i, j


@compiled
def begin_search(
    bookings: Bookings, free: np.ndarray, demand: int, tasks: int, least: int, nodes: int
) -> None:
    """Begin to look for when `least` of so many tasks of a demand fit; `free`: of now, [N, R]."""
    copy_free(bookings.at, free)
    look_at(bookings.at, demand, tasks, nodes)
    bookings.at.look.least[0] = least
    bookings.applied.ends[0], bookings.applied.changes[0] = 0, 0


@compiled
def leave_span(bookings: Bookings, ends: Ends, placed: Records, of_job: np.ndarray) -> None:
    """Go back from the end of the job's span to its begin."""
    applied = bookings.applied
    for k in range(applied.ends[0], applied.span_ends[0]):
        apply_end(bookings, ends, placed, of_job, k, -1, False)
    for k in range(applied.changes[0], applied.span_changes[0]):
        apply_change(bookings, placed, of_job, k, -1, False)


@compiled
def find_begin(
    bookings: Bookings, ends: Ends, placed: Records, of_job: np.ndarray, t: int, begin: int, span: int
) -> int:
    """Step 1 by node: return from when on the tasks fit for `span`, ns, at `begin` or later; NEVER if they never do.

    `Bookings.at` has how many fit on each node for that long. The search may go on from there, after `leave_span`.
    """
    applied = bookings.applied
    i, j = pass_changes(bookings, ends, placed, of_job, t, applied.ends[0], applied.changes[0], begin, False)
    while True:
        if all_fit(bookings.at):
            last = min(begin + span, NEVER) - 1
            applied.ends[0], applied.changes[0] = i, j
            applied.span_ends[0], applied.span_changes[0] = pass_changes(
                bookings, ends, placed, of_job, t, i, j, last, True
            )
            if all_fit(bookings.at):
                return begin
            leave_span(bookings, ends, placed, of_job)
        begin = min(end_at(ends, i, t), change_at(bookings, j))
        if i == ends.span[1] and j == bookings.number[0]:
            return NEVER
        i, j = pass_changes(bookings, ends, placed, of_job, t, i, j, begin, False)


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
def reserve_gang(w: World, p: State, t: int, job: int) -> None:
    """Step 1 by node, of a gang."""
    gangs, bookings = p.gangs, p.bookings
    task = first_to_start(w, job)
    count = w.work.end_task[job] - task
    begin_search(
        bookings, gangs.now.free, gangs.of_job[job], count, count, max(gangs.jobs.nodes[job], np.int64(0))
    )
    begin = find_begin(bookings, gangs.ends, gangs.placed, gangs.of_job, t, t, gangs.jobs.holds[job])
    if begin == NEVER:
        skip_rest(w, p, job, task)
        return
    choose_nodes(bookings.at, gangs.placed, task, count)
    book(p, job, task, count, begin)


@compiled
def reserve_single(w: World, p: State, t: int, job: int) -> None:
    """Step 1 by node, of a job that is no gang: none of its tasks, which are alike, begins before the one before."""
    gangs, bookings = p.gangs, p.bookings
    task, begin = first_to_start(w, job), t
    begin_search(
        bookings, gangs.now.free, gangs.of_job[job], tasks_to_start(w, job), np.int64(1), np.int64(0)
    )
    while task < w.work.end_task[job]:
        begin = find_begin(bookings, gangs.ends, gangs.placed, gangs.of_job, t, begin, gangs.jobs.holds[job])
        if begin == NEVER:
            skip_rest(w, p, job, task)
            break
        after = place_single(w, p, job, task)
        leave_span(bookings, gangs.ends, gangs.placed, gangs.of_job)
        while task != after:
            book(p, job, task, np.int64(1), begin)
            task = following(w, job, task, np.int64(1))


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


@compiled
def plan(w: World, p: State, t: int) -> None:
    """Steps 1 and 3: bring the reservations up to date; make all again if some cannot be kept, or there were none."""
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
def release(w: World, p: State, job: int) -> None:
    """Step 3: take out the reservation of a job, if it has one."""
    task = first_to_start(w, job)
    while task < w.work.end_task[job]:
        count = same_begin(w, p, job, task)
        if p.begin[task] != NONE and p.gangs.by_node == 1:
            drop(p, job, task)
        elif p.begin[task] != NONE:
            hold(p, job, p.begin[task], -count)
        task = following(w, job, task, count)


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
def decide(w: World, p: State, t: int, me: int) -> None:
    """Do steps 1 to 3, and wake again when the next reservation begins; if something is late, when it ends."""
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
def is_late(p: State, t: int) -> bool:
    """Return whether something that should have ended runs."""
    ends = p.gangs.ends
    return ends.span[1] > 0 and ends.rows.end[row_at(ends, 0)] <= t


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


@inlined
def drop(p: State, job: int, task: int) -> None:
    """Remove a job's reservation by node, whose first task is `task`."""
    begin = p.begin[task]
    drop_change(p.bookings, begin, task, np.int64(1))
    drop_change(p.bookings, min(begin + p.gangs.jobs.holds[job], NEVER), task, np.int64(-1))


@inlined
def make_again(p: State) -> None:
    """Let all reservations be made again at the next decision."""
    if p.since.first[0] < NEVER:
        p.since.first[0] = NONE


@inlined
def on_gang_lost(w: World, p: State, t: int, me: int) -> None:
    """Let what a failure has lost wait again, and make the plan again."""
    on_lost(w, p.gangs, t, me)
    make_again(p)


@inlined
def on_state(w: World, p: State) -> None:
    """Note that a node is down or up, and make the plan again."""
    if on_node_state(w, p.gangs):
        make_again(p)


advance = make_job_loop(
    __name__,
    State,
    HANDLERS | {DONE: on_done, DISPATCH: decide, LOST: on_gang_lost, NODE_DOWN: on_state, NODE_UP: on_state},
)


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
