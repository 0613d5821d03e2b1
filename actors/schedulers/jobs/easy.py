"""EASY backfilling: first come first served with a reservation for the queue's first job, which no other may delay.

The scheduler of the Argonne SP1 (Lifka), as Mu'alem and Feitelson define it. Jobs are gangs, whose tasks all start at
one instant.

1. A job arrives: it joins the queue of one central scheduler, in order of priority, the largest first, and of arrival.
2. While all tasks of the queue's first job fit on idle slots, they are placed there, and the next job is the first.
3. If the first job does not fit, it gets a reservation. The *shadow time* is when enough slots are expected to be idle,
   by the expected ends of what runs; the *extra* slots are those that will be idle then beyond what the job needs.
4. The jobs behind it are looked at in the order of the queue. One starts now if it fits on idle slots and either is
   expected to end by the shadow time or needs no more than the extra slots, which are then fewer.
5. A node reports a task's end; what the task held is idle for the scheduler when the report has arrived.

Where tasks hold resources, or some gang states on how many nodes it runs, steps 3 and 4 look at each node. The shadow
time is when the first job fits on the nodes by what is expected to have ended. A job behind it that runs longer starts
if the first one would still fit then, on any nodes, beside it. If not, the first one is taken to start on the nodes of
lowest id on which it fits, and the job behind it starts where it has room now and beside that one; else it waits. Nodes
are filled in the order of their ids.

A job is expected to run as long as its user has requested, where the workload states that (`plan_by`). One that runs
longer goes on, and is expected to end at once: 1 ns from now. The reservation is made again at each decision. All that
happens at one instant is known before the scheduler decides.

**Deviations from the paper.** All slots that are expected to fall idle at the shadow time count for the extra ones,
also those of jobs that end with the last one needed. Reservations of nodes and resources are ours; a task counts as the
most that one of its job needs. A job that is no gang (`gangs`) starts its tasks one by one, and some of them may be
backfilled. A job is not ended when it has run as long as requested. To the scheduler a job takes two network delays
longer. Failures are ours, as under `central-fcfs-gang`; while the first job does not fit on the nodes that are up,
whatever ends, it has no shadow time, and others that fit start. Preemption is for the first job, as there. With `order`
"fair" or "capacity" the first job is that whose turn it is there, and all others may be backfilled, within ceilings.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NEVER, NONE
from actors.nodes.messages import DISPATCH
from actors.nodes.world import World
from actors.nodes.worlds import JOB_WORLDS
from actors.scheduler import NO_QUEUES_AT_NODES, Scheduler
from actors.schedulers.jobs.central_queue import ORDER, parameters_of
from actors.schedulers.jobs.gang_outlook import (
    Outlook,
    all_fit,
    choose_nodes,
    copy_free,
    keep_less,
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
    are_single,
    build_gangs,
    choose_now,
    is_gang,
    is_room_coming,
    make_way,
    rows_for,
    start,
    start_heads,
    tasks_allowed,
    tasks_that_fit,
    tasks_to_start,
)
from actors.schedulers.jobs.late_binding import make_job_loop
from actors.setting import Setting

# Where the steps stand:
# 1. `note_arrival` and `join_queue` of actors/schedulers/jobs/gangs.py
# 2. `start_heads` of actors/schedulers/jobs/gangs.py, called by `decide`
# 3. `reserve`; by node `reserve_nodes`
# 4. `backfill`; by node `backfill_nodes`, `beside`
# 5. `note_end` of actors/schedulers/jobs/gangs.py


class State(NamedTuple):
    """The jobs, and what nodes have free; only by node."""

    gangs: Gangs
    at_shadow: Outlook  # at the shadow time
    spare: Outlook  # from now until then and beyond, beside the first job


@compiled
def reserve(p: Gangs, t: int, slots: int) -> tuple[int, int]:
    """Step 3: return when so many slots are expected to be idle, and how many more than these are idle then.

    NEVER: they are not, as nodes are down.
    """
    ends, idle = p.ends, p.room.total[0]
    shadow, i = t, 0
    while i < ends.span[1]:
        row = row_at(ends, i)
        end = max(ends.rows.end[row], t + 1)
        if idle >= slots and end > shadow:
            break
        shadow = end
        idle += ends.rows.tasks[row]
        i += 1
    return shadow if idle >= slots else NEVER, idle - slots


@compiled
def backfill(w: World, p: Gangs, t: int, me: int, head: int) -> None:
    """Steps 3 and 4: start jobs behind the first one that do not delay it."""
    needs = tasks_to_start(w, head) if is_gang(p, head) else 1
    shadow, extra = reserve(p, t, needs)
    job = p.queue.first[0]
    while job != NONE and p.room.total[0] > 0:
        after = p.jobs.next[job]
        count = tasks_allowed(w, p, job, tasks_that_fit(w, p, job)) if job != head else np.int64(0)
        ends_before = min(t + p.jobs.holds[job], NEVER) <= shadow
        if not ends_before and count > extra:
            count = 0 if is_gang(p, job) else extra
        if count > 0:
            start(w, p, t, me, job, count, NONE)
            if not ends_before:
                extra -= count
        job = after


@compiled
def reserve_nodes(p: State, t: int, job: int, tasks: int) -> int:
    """Step 3 by node: move `at_shadow` to the shadow time of so many tasks of a job, and return that time, or NEVER."""
    gangs, at_shadow = p.gangs, p.at_shadow
    ends, shadow, i = gangs.ends, t, 0
    copy_free(at_shadow, gangs.now.free)
    look_at(at_shadow, gangs.of_job[job], tasks, max(gangs.jobs.nodes[job], np.int64(0)))
    while i < ends.span[1]:
        row = row_at(ends, i)
        end = max(ends.rows.end[row], t + 1)
        if all_fit(at_shadow) and end > shadow:
            break
        shadow = end
        demand = gangs.of_job[ends.rows.job[row]]
        take_rows(at_shadow, gangs.placed, ends.rows.first[row], ends.rows.tasks[row], demand, -1, False)
        i += 1
    return shadow if all_fit(at_shadow) else NEVER


@compiled
def backfill_nodes(w: World, p: State, t: int, me: int, head: int) -> None:
    """Steps 3 and 4 by node."""
    gangs = p.gangs
    needs = tasks_to_start(w, head) if is_gang(gangs, head) else np.int64(1)
    shadow = reserve_nodes(p, t, head, needs)
    job = gangs.queue.first[0]
    while job != NONE:
        after = gangs.jobs.next[job]
        count = tasks_allowed(w, gangs, job, tasks_that_fit(w, gangs, job)) if job != head else np.int64(0)
        if count > 0:
            choose_now(w, gangs, job, count)
            if min(t + gangs.jobs.holds[job], NEVER) > shadow:
                count = beside(w, p, head, needs, job, count)
        if count > 0:
            start(w, gangs, t, me, job, count, rows_for(w, gangs, job))
        job = after


@compiled
def beside(w: World, p: State, head: int, needs: int, job: int, count: int) -> int:
    """Step 4 by node: return how many tasks of a job can run beside the first job at the shadow time.

    The first job has `needs` tasks, which fit then. Of the job all `count` tasks run on the nodes that have been chosen
    for them; if not, those run that fit on what the first job leaves when it takes the nodes of lowest id, and these
    become the chosen nodes.
    """
    gangs, at_shadow, spare = p.gangs, p.at_shadow, p.spare
    first, demand = rows_for(w, gangs, job), gangs.of_job[job]
    take_rows(at_shadow, gangs.placed, first, count, demand, 1, False)
    if all_fit(at_shadow):
        return count
    take_rows(at_shadow, gangs.placed, first, count, demand, -1, False)
    at_head = gangs.placed.size - 1 if are_single(w, gangs, head) else w.jobs.next_task[head]
    choose_nodes(at_shadow, gangs.placed, at_head, needs)
    copy_free(spare, at_shadow.free)
    take_rows(spare, gangs.placed, at_head, needs, gangs.of_job[head], 1, False)
    keep_less(spare, gangs.now.free)
    look_at(spare, demand, tasks_to_start(w, job), max(gangs.jobs.nodes[job], np.int64(0)))
    count = min(count, spare.look.found[0])
    if is_gang(gangs, job) and not all_fit(spare):
        return np.int64(0)
    choose_nodes(spare, gangs.placed, first, count)
    take_rows(at_shadow, gangs.placed, first, count, demand, 1, False)
    return count


@inlined
def decide(w: World, p: State, t: int, me: int) -> None:
    """Steps 2 to 4: start the first jobs of the queue that fit, then those that may pass the first that does not."""
    gangs = p.gangs
    gangs.queue.is_woken[0] = 0
    head = start_heads(w, gangs, t, me)
    if head == NONE:
        return
    make_way(w, gangs, t, me, head)
    if is_room_coming(w, gangs, head):
        return
    if gangs.by_node == 1:
        backfill_nodes(w, p, t, me, head)
    elif gangs.room.total[0] > 0:
        backfill(w, gangs, t, me, head)


advance = make_job_loop(__name__, State, HANDLERS | {DISPATCH: decide})


def build(setting: Setting) -> tuple[World, State]:
    """Make the world and the scheduler's state at time 0."""
    world, gangs = build_gangs(setting, reserves=True)
    at_shadow, spare = (make_outlook(gangs.now.demand, gangs.now.free.copy(), gangs.now.up) for _ in range(2))
    return world, State(gangs, at_shadow, spare)


EASY = Scheduler(
    name="easy",
    title="gangs, EASY backfilling",
    paper="Lifka: The ANL/IBM SP scheduling system, JSSPP 1995; Mu'alem, Feitelson: Utilization, predictability,"
    " workloads, and user runtime estimates in scheduling the IBM SP2 with backfilling, IEEE TPDS 12(6), 2001",
    parameters=(GANGS, PLAN_BY, *parameters_of(ORDER)),
    worlds=JOB_WORLDS,
    build=build,
    advance=advance,
    preempts=True,
    gangs=True,
    waits="gangs",
    ignores=(("long_partition", "it treats all jobs alike"), NO_QUEUES_AT_NODES),
)
