"""What central schedulers of gangs share: the queue of jobs, the room they know of, and what runs until when.

A gang is a job whose tasks all start at once. The scheduler places them on idle slots in one instant; where all
messages take equally long they start in one instant. All that happens at an instant is known before the scheduler
decides: arrivals and ends wake it once, behind all of them.

A job that is no gang is a sequence of tasks, each of which starts on its own, in the order of the queue.

Where tasks hold resources, and where reservations are to be of nodes, what fits is found node by node
(actors/schedulers/jobs/gang_outlook.py); else it is enough to count idle slots (gang_room.py).
"""

from typing import NamedTuple

import numpy as np

from actors.conditions import NS, read_only
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import wake
from actors.kernel.records import Records, records
from actors.kernel.world import N_PLACEMENTS, NEVER, NONE, Rules, World
from actors.nodes.messages import DISPATCH, read_done, send_placed
from actors.scheduler import Parameter
from actors.schedulers.jobs.build import build_world
from actors.schedulers.jobs.gang_ends import (
    Ends,
    add_end,
    end_one,
    first_of,
    first_on,
    make_ends,
    place_of,
    row_at,
)
from actors.schedulers.jobs.gang_outlook import (
    PLACED_ROW,
    Outlook,
    all_fit,
    choose_nodes,
    look_at,
    make_outlook,
    may_fit,
    row_of,
    take_amount,
    take_rows,
)
from actors.schedulers.jobs.gang_room import Room, fits, free_slot, make_room, room_for, take_slots
from actors.schedulers.jobs.late_binding import next_arrival, on_done
from actors.schedulers.jobs.probing import NO_VERSION, ONE
from actors.setting import Setting
from clusters.capacity import needs_of
from clusters.failures import NODE
from clusters.feasibility import check_widths, gangs_of
from clusters.matching import billionths
from workloads.errors import InputError
from workloads.requests import requested_s

# A job at the scheduler of gangs; times in ns.
GANG = np.dtype(
    [
        ("next", "i8"),  # in the queue
        ("previous", "i8"),
        ("nodes", "i8"),  # on how many nodes the gang runs; 0 for any; NONE: it is no gang
        ("holds", "i8"),  # how long its tasks are expected to hold their slots, as the scheduler sees it
        ("end", "i8"),  # when the gang that runs is expected to end
    ]
)
QUEUE = np.dtype([("first", "i8"), ("last", "i8"), ("is_woken", "i8")])


class Gangs(NamedTuple):
    """The jobs that wait, and what runs."""

    jobs: Records  # [J] GANG
    queue: Records  # [1] QUEUE
    room: Room  # by slots
    ends: Ends
    by_node: int  # 1: what fits is found in `now`; 0: in `room`
    of_job: np.ndarray  # [J] the demand of a task of the job, a row of `now.demand`
    now: Outlook  # by node and resource
    # [T] on which nodes tasks run or are to start: rows from the first task on that started with them
    placed: Records


@inlined
def is_gang(p: Gangs, job: int) -> bool:
    """Return whether all tasks of the job start at once."""
    return p.jobs.nodes[job] != NONE


@inlined
def tasks_to_start(w: World, job: int) -> int:
    """Return how many tasks of the job have not started."""
    return w.work.end_task[job] - w.jobs.next_task[job]


@inlined
def tasks_that_fit(w: World, p: Gangs, job: int) -> int:
    """Return how many tasks of the job can start now: of a gang all or none."""
    left = tasks_to_start(w, job)
    if p.by_node == 1:
        if not may_fit(p.now, p.of_job[job], left if is_gang(p, job) else np.int64(1)):
            return np.int64(0)
        look_at(p.now, p.of_job[job], left, max(p.jobs.nodes[job], np.int64(0)))
        if is_gang(p, job):
            return left if all_fit(p.now) else np.int64(0)
        return min(left, p.now.look.found[0])
    if not is_gang(p, job):
        return min(left, p.room.total[0])
    return left if fits(p.room, left, p.jobs.nodes[job]) else np.int64(0)


@compiled
def join_queue(w: World, p: Gangs, job: int) -> None:
    """Add a job to the queue, which is in order of priority, the largest first, and then of arrival."""
    rows, queue = p.jobs, p.queue
    before, after = queue.last[0], NONE
    if w.priority.size > 0:
        while before != NONE and w.priority[before] < w.priority[job]:
            before, after = rows.previous[before], before
    rows.previous[job], rows.next[job] = before, after
    if before == NONE:
        queue.first[0] = job
    else:
        rows.next[before] = job
    if after == NONE:
        queue.last[0] = job
    else:
        rows.previous[after] = job


@inlined
def leave_queue(p: Gangs, job: int) -> None:
    """Remove a job from the queue."""
    rows, queue = p.jobs, p.queue
    before, after = rows.previous[job], rows.next[job]
    if before == NONE:
        queue.first[0] = after
    else:
        rows.next[before] = after
    if after == NONE:
        queue.last[0] = before
    else:
        rows.previous[after] = before


@compiled
def start(w: World, p: Gangs, t: int, me: int, job: int, count: int) -> None:
    """Place the next `count` tasks of a job, which fit; the job leaves the queue with the last of them.

    Where what fits is found by node, `placed` says where they go.
    """
    w.counts[N_PLACEMENTS] += count
    nodes, first = p.jobs.nodes[job], w.jobs.next_task[job]
    if p.by_node == 1:
        place_rows(w, p, t, me, job, count)
    elif nodes > 0:
        place_evenly(w, p, t, me, job, count, nodes)
    else:
        i, left = p.room.number[0] - 1, count
        while left > 0:
            node = p.room.open[i]
            here = min(room_for(p.room, node), left)
            place_here(w, p, t, me, job, node, here)
            left -= here
            i -= 1
    end = min(t + p.jobs.holds[job], NEVER)
    p.jobs.end[job] = end
    add_end(p.ends, end, job, count, first)
    if tasks_to_start(w, job) == 0:
        leave_queue(p, job)


@compiled
def place_evenly(w: World, p: Gangs, t: int, me: int, job: int, count: int, nodes: int) -> None:
    """Place tasks on exactly so many nodes, which there are; of these, `count % nodes` get one more than the others."""
    share, larger, left = count // nodes, count % nodes, nodes
    # A node that leaves the open ones is replaced by the last of them, which has been looked at.
    i = p.room.number[0] - 1
    while left > 0:
        node = p.room.open[i]
        i -= 1
        there = room_for(p.room, node)
        if larger > 0 and there > share:
            place_here(w, p, t, me, job, node, share + 1)
            larger -= 1
            left -= 1
        elif left > larger and there >= share:
            place_here(w, p, t, me, job, node, share)
            left -= 1


@inlined
def place_rows(w: World, p: Gangs, t: int, me: int, job: int, count: int) -> None:
    """Place the job's next `count` tasks on the nodes that `placed` says."""
    first = w.jobs.next_task[job]
    take_rows(p.now, p.placed, first, count, p.of_job[job], 1, False)
    i, left = first, count
    while left > 0:
        for _ in range(p.placed.tasks[i]):
            send_placed(w, t, me, p.placed.node[i], job, first + count - left, NONE, ONE, NO_VERSION)
            left -= 1
        i += 1
    w.jobs.next_task[job] = first + count


@inlined
def choose_now(w: World, p: Gangs, job: int, count: int) -> None:
    """Choose nodes for the next `count` tasks of a job, of which `tasks_that_fit` has just found that they fit."""
    if p.by_node == 1:
        choose_nodes(p.now, p.placed, w.jobs.next_task[job], count)


@inlined
def place_here(w: World, p: Gangs, t: int, me: int, job: int, node: int, count: int) -> None:
    """Place the job's next `count` tasks on a node."""
    task = w.jobs.next_task[job]
    take_slots(p.room, node, count)
    for i in range(count):
        send_placed(w, t, me, node, job, task + i, NONE, ONE, NO_VERSION)
    w.jobs.next_task[job] = task + count


@inlined
def wake_once(w: World, p: Gangs, me: int) -> None:
    """Let the scheduler decide when all that happens at this instant is known."""
    if p.queue.is_woken[0] == 0:
        p.queue.is_woken[0] = 1
        wake(w, w.queue.now.time[0], me, DISPATCH, NONE, NONE, NONE)


@inlined
def note_arrival(w: World, p: Gangs, me: int, job: int) -> None:
    """Queue a job that arrives."""
    next_arrival(w, me, job)
    join_queue(w, p, job)
    wake_once(w, p, me)


@inlined
def note_end(w: World, p: Gangs, me: int) -> int:
    """Note that a task has ended; return when it was expected to, ns.

    Of the tasks of a job that is no gang, a report does not say which one has ended: the one that was expected first,
    on its node where what fits is found by node.
    """
    job, node, _, _ = read_done(w)
    on_done(w)
    if p.queue.first[0] != NONE:
        wake_once(w, p, me)
    if p.by_node == 1:
        return end_on(p, job, node)
    free_slot(p.room, node)
    if is_gang(p, job):
        return end_one(p.ends, place_of(p.ends, p.jobs.end[job], job))
    return end_one(p.ends, first_of(p.ends, job))


@compiled
def end_on(p: Gangs, job: int, node: int) -> int:
    """Free what a task of the job held of a node; return when it was expected to end, ns."""
    take_amount(p.now, node, p.of_job[job], -1)
    if is_gang(p, job):
        at = place_of(p.ends, p.jobs.end[job], job)
    else:
        at = first_on(p.ends, p.placed, job, node)
    row = row_at(p.ends, at)
    p.placed.tasks[row_of(p.placed, p.ends.rows.first[row], p.ends.rows.tasks[row], node)] -= 1
    return end_one(p.ends, at)


@inlined
def start_heads(w: World, p: Gangs, t: int, me: int) -> int:
    """Start jobs in the order of the queue until one does not fit; return that one, or NONE."""
    job = p.queue.first[0]
    while job != NONE:
        count = tasks_that_fit(w, p, job)
        if count > 0:
            choose_now(w, p, job, count)
            start(w, p, t, me, job, count)
        if p.queue.first[0] == job:
            break
        job = p.queue.first[0]
    return job


GANGS = Parameter(
    "gangs",
    "stated",
    "choice",
    "which jobs are gangs: those of which the workload states it, or each; tasks of other jobs start one by one",
    choices=("stated", "all"),
)
PLAN_BY = Parameter(
    "plan_by",
    "requested",
    "choice",
    "how long the scheduler expects a job to run: as its user has requested where that is stated, or as estimated",
    choices=("requested", "estimate"),
)


def build_gangs(setting: Setting, reserves: bool = False) -> tuple[World, Gangs]:
    """Make the world and the state that all schedulers of gangs have, at time 0.

    `reserves`: the scheduler makes reservations, which are of nodes where some gang states on how many it runs.

    Raises:
        InputError: a gang is wider than the cluster, or nodes fail.
    """
    refuse_failures(setting)
    nodes, slots = gang_nodes(setting), setting.cluster.slots().astype(np.int64)
    tasks, by_node = np.diff(setting.workload.arrays().first_task), bool(setting.resources)
    most = min(most_at_once(setting), setting.workload.num_tasks)
    world = build_world(setting, Rules(), most_sends=lambda _: most, schedulers=1)
    demand, of_job, free = world.room.demand, world.room.of_job, world.room.capacity.copy()
    if not setting.resources:
        by_node = reserves and bool((nodes > 0).any())
        demand, of_job = np.ones((1, 1), np.int64), np.zeros(len(tasks) if by_node else 0, np.int64)
        free = slots[:, None].copy() if by_node else np.zeros((0, 1), np.int64)
    jobs = records(GANG, world.work.size)
    jobs.nodes[:] = nodes
    # To the scheduler a task holds its slot from its placement until its end is reported: two messages longer.
    jobs.holds[:] = np.maximum(expected_ns(setting, world.work.estimate) + 2 * world.network.cross_ns, 1)
    queue = records(QUEUE, 1)
    queue.first[0], queue.last[0] = NONE, NONE
    starts = int(np.where(nodes != NONE, 1, tasks).sum())
    return world, Gangs(
        jobs,
        queue,
        make_room(slots),
        make_ends(min(most, starts)),
        int(by_node),
        read_only(of_job),
        make_outlook(read_only(demand), free),
        records(PLACED_ROW, int(tasks.sum()) if by_node else 0),
    )


def most_at_once(setting: Setting) -> int:
    """Return the most tasks that can run at once: slots, or by the resource of which the smallest tasks fit fewest."""
    if not setting.resources:
        return setting.cluster.total_slots
    needs = needs_of(setting.workload, setting.cluster, setting.resources)
    least = billionths(needs.demand[np.unique(needs.of_job)]).min(axis=0)
    held = least > 0
    if not held.any():
        return setting.workload.num_tasks
    return int((billionths(needs.capacity)[:, held] // least[held]).sum(axis=0).min())


def refuse_failures(setting: Setting) -> None:
    """Refuse failures of nodes: a gang that loses a task would have to be started again as a whole."""
    dynamics = setting.dynamics
    listed = dynamics.outages is not None and bool((dynamics.outages.kind == NODE).any())
    if dynamics.mtbf_s is not None or listed:
        raise InputError(
            f"{setting.scheduler.name} does not emulate failures of nodes: a gang that loses a task would have to start"
            f" again as a whole; leave out dynamics.{'failures' if listed else 'mtbf'}, or take central-fifo"
        )


def gang_nodes(setting: Setting) -> np.ndarray:
    """Return [J] the nodes of each gang, 0 for any, and `NO_GANG` for a job that is no gang.

    Raises:
        InputError: a gang does not fit on the whole cluster.
    """
    workload, cluster = setting.workload, setting.cluster
    nodes = gangs_of(workload, setting.parameters["gangs"])
    needs = needs_of(workload, cluster, setting.resources) if setting.resources else None
    check_widths(workload, nodes, cluster, needs)
    return np.minimum(nodes, np.diff(workload.arrays().first_task))


def expected_ns(setting: Setting, estimate_ns: np.ndarray) -> np.ndarray:
    """Return [J] how long the tasks of each job are expected to run, ns."""
    if setting.parameters.get("plan_by") != "requested":
        return estimate_ns
    asked = requested_s(setting.workload.jobs)
    return np.where(np.isnan(asked), estimate_ns, np.nan_to_num(np.minimum(asked * NS, NEVER))).astype(
        np.int64
    )
