"""Yacc-D: distributed schedulers place tasks in bounded queues at the nodes, by the load that nodes report.

After Yaq-d (EuroSys 2016), the distributed scheduler that the paper on Phoenix compares with as Yacc-D.

1. A job of m tasks arrives at one of the schedulers. It draws `choices` · m nodes and binds the tasks, one by one, to
   the node of these with the least estimated wait: by the node's last report, and by what this scheduler has sent there
   since. Long jobs keep to the nodes that long jobs may use.
2. A node's queue holds at most `queue_limit` tasks for each slot, or takes tasks while less than `queue_wait_s` of
   estimated work waits for each (`bound`). A task that comes to a full queue is sent back, and goes to another node: of
   64 that are considered, the one that has room by the last reports and waits least. A task that has come back more
   than `tries` times, and one for which no node has room, waits at its scheduler, which tries again when the reports of
   a heartbeat have arrived.
3. A node serves its queue in the order `order`, and no task is passed by tasks with more estimated work than `slack`
   times its own.
4. Every `heartbeat_s` the nodes whose load has changed report it. They give back the tasks that have, for each slot of
   the node, more work waiting in front of them than the mean over all nodes plus `rebalance_s`; the mean comes with
   each task that arrives. These tasks are placed again as in step 2; a task that was sent back before stays.
5. Only nodes that satisfy a job's constraints are considered, at every step.

With `fit` "best" or "worst", of the nodes that are considered and have room in their queues, those come first on which
the task fits now, by the node's last report and by what this scheduler has sent there since. The task goes to the one
of these that then has the least, or the most, room left; if it fits on none, to the one that waits least. Room left is
the largest share of a resource of the node, or of its slots, that neither tasks hold nor entries of its queue need. A
node reports it with its work, by a message for each three resources. What others have sent since, and what has ended
since, are not known.

A full queue takes a task of higher priority than its last one, and sends that back. With preemption it takes one for
which running tasks of lower priority can be evicted, if it goes before all that wait. Nodes report the lowest priority
that waits, or that runs and may be evicted. Where no node has room in its queue, a task goes to the node, of 64, with
the lowest such priority below its own; a scheduler sends one such task to a node until that reports again. Whether what
ends there makes enough room is not known: the node may send the task back.

Tasks wait at a scheduler in order of priority, then as they came; a task that comes waits behind those of higher
priority. A search for room passes jobs that find none on their nodes, and after 64 of one priority all others of it.
With `backlog_order` "fair" or "capacity" each scheduler has a queue for each tenant, as `central-fifo`. It goes by what
it has placed itself, also in queues of nodes, until the end is reported, and each may place an equal part of what the
ceilings allow. While tasks wait, all that come wait with them.

**Deviations from the paper.** This follows the paper's published description; its code is not public, and the
parameters are ours. In the paper nodes learn the remaining tasks of a job from its manager; here they use the number
that came with the task. Its rebalancing moves tasks between queues; here they go by way of their schedulers. A task
that is in transit to a node when that node reports is in neither the report nor the scheduler's own account. A job
whose tasks may not share racks, and one for which the long partition has too few nodes, may use the short partition
too.
"""

from typing import NamedTuple

import numpy as np

from actors import constraints
from actors.constraints import (
    eligible_before,
    eligible_count,
    eligible_node,
    is_constrained,
    is_eligible,
    level_of,
)
from actors.failures import history_of, receive_node_state
from actors.kernel.compiled import compiled, inlined
from actors.kernel.messages import ARRIVAL, LOST, NODE_UP, read_lost, read_node_state
from actors.kernel.queue import NEVER, NONE, note, wake
from actors.kernel.random import PLACEMENT, PROBES, below, random_bits
from actors.kernel.records import Records, records
from actors.kernel.sums import carry, spread, unpack
from actors.kernel.trace import CHOSEN, is_recorded
from actors.nodes import messages
from actors.nodes.bounded import BoundedQueues, on_bounded_heartbeat, on_bounded_node
from actors.nodes.messages import DISPATCH, DONE, read_lowest_report
from actors.nodes.reporting import is_current, is_newest, make_loads
from actors.nodes.world import N_BACKLOGGED, N_PLACEMENTS, N_SENT_AGAIN, Rules, World
from actors.nodes.worlds import JOB_WORLDS
from actors.resources import node_slots, servers, work_at
from actors.scheduler import Parameter, Scheduler
from actors.schedulers.jobs import central_queue
from actors.schedulers.jobs.build import NS, build_world, most_tasks
from actors.schedulers.jobs.job_info import tasks_of
from actors.schedulers.jobs.late_binding import make_job_loop, next_arrival, note_attempt, on_done
from actors.schedulers.jobs.least_work import (
    CHOICE,
    FIT,
    LEAST_WORK,
    Fit,
    among_fitting,
    make_reported_fit,
    note_empty,
    note_room,
    parts_of,
    row_of,
    sink,
    swap,
    take_room,
)
from actors.schedulers.jobs.probing import ONE, Probing, draw_places, make_probing, most_probes, probes_of
from actors.schedulers.jobs.sparrow import SCHEDULERS
from actors.schedulers.jobs.spreading import hold, may_run, release, settle_rack
from actors.setting import Setting
from workloads.errors import InputError

# Where the steps stand:
# 1. `on_arrival`, `draw_candidates`, `best_on_top`, `bind`
# 2. `take_offered` and `room_of` of actors/nodes/bounded.py; `on_returned`, `bind_elsewhere`, `find_node`;
#    `on_dispatch` and the backlog
# 3. `pick_shortest` and `bypass` of actors/nodes/waiting.py
# 4. `on_bounded_heartbeat` and `give_back` of actors/nodes/bounded.py; `on_report`, `note_node`
# 5. `draw_candidates`, `find_node`; `eligible_node` of actors/constraints.py

# What the schedulers of Yacc-D know of the nodes: their last reports, and what each scheduler has sent there since.
#
# All schedulers receive the same reports. A report says how much estimated work a node has, until when its task is
# estimated to run, and what there is room for in its queue. What a scheduler sends to a node counts for itself alone,
# and until the node's next report; what is on its way at that time is in neither. With priorities a node also reports
# which priority would make room for a higher one.

CONSIDERED = 64  # nodes considered for one task that is sent again

REPORTED = np.dtype(
    [
        ("rest", "i8"),  # estimated work, less that of the task that started last, ns,
        ("wholes", "i8"),  # and this many WHOLE (`actors.kernel.sums`)
        ("busy_until", "i8"),  # when that task is estimated to end, ns
        ("room", "i8"),  # in units of the queues' bound; none on a node that is down
        ("report", "i8"),  # reports so far
        ("place", "i8"),  # in the list of nodes with room; NONE: it has none
        ("lowest", "i8"),  # priority that would make room; NEVER: none
    ]
)
# What a scheduler takes a node to have: the work of that report and what was sent there since; the room of the latter;
# whether it has sent a task that is to take the place of one of lower priority.
SENT = np.dtype([("report", "i8"), ("work", "i8"), ("wholes", "i8"), ("room", "i8"), ("replaces", "i8")])
# Nodes with room; work of all nodes.
TOTALS = np.dtype([("open", "i8"), ("rest", "i8"), ("rest_wholes", "i8")])


class View(NamedTuple):
    """Nodes as the schedulers see them."""

    nodes: Records  # [N] REPORTED
    newest: np.ndarray  # [2 N] numbers of the newest report of load, and of the newest of priorities
    open: np.ndarray  # [N] the nodes with room: the first `totals.open`
    totals: Records  # [1] TOTALS
    sent: Records  # [schedulers · N] SENT
    slots: np.ndarray  # [N]
    all_slots: int
    empty_room: np.ndarray  # [N] room of a node without work
    by_work: bool  # room is estimated work; else it is tasks
    fit: Fit


def make_view(slots: np.ndarray, empty_room: np.ndarray, by_work: bool, schedulers: int, fit: Fit) -> View:
    """The view of idle nodes."""
    nodes = records(REPORTED, slots.size)
    nodes.room[:], nodes.lowest[:] = empty_room, NEVER
    nodes.place[:] = np.where(empty_room > 0, np.cumsum(empty_room > 0) - 1, NONE)
    with_room = np.flatnonzero(empty_room > 0)
    totals, listed = records(TOTALS, 1), np.zeros(slots.size, np.int64)
    totals.open[0], listed[: with_room.size] = with_room.size, with_room
    sent = records(SENT, schedulers * slots.size)
    newest = np.full(2 * slots.size, NONE)
    return View(nodes, newest, listed, totals, sent, slots, int(slots.sum()), empty_room, by_work, fit)


@compiled
def note_node(view: View, node: int, rest: int, busy_until: int, room: int) -> None:
    """Note a report of a node, its work as messages state it, or a change of its state, for all schedulers."""
    rows, totals = view.nodes, view.totals
    before, wholes = rows.rest[node], totals.rest_wholes[0] - rows.wholes[node]
    rows.rest[node], rows.wholes[node] = unpack(rest)
    more, wholes = rows.rest[node] - before, wholes + rows.wholes[node]
    totals.rest[0], totals.rest_wholes[0] = carry(totals.rest[0] + more, wholes)
    rows.busy_until[node], rows.room[node] = busy_until, room
    rows.report[node] += 1
    place = rows.place[node]
    if room > 0 and place == NONE:
        rows.place[node] = totals.open[0]
        view.open[totals.open[0]] = node
        totals.open[0] += 1
    elif room <= 0 and place != NONE:
        totals.open[0] -= 1
        last = view.open[totals.open[0]]
        view.open[place], rows.place[last], rows.place[node] = last, place, NONE


@inlined
def mean_rest(view: View) -> int:
    """The estimated work for a slot over all nodes, ns."""
    return spread(view.totals.rest[0], view.totals.rest_wholes[0], view.all_slots)


@inlined
def sent_to(w: World, view: View, me: int, node: int) -> int:
    """Return the row of what a scheduler takes a node to have, by its last report and what it has sent there since."""
    row = (me - w.nodes.size) * w.nodes.size + node
    if view.sent.report[row] != view.nodes.report[node]:
        view.sent.report[row] = view.nodes.report[node]
        view.sent.work[row], view.sent.wholes[row] = view.nodes.rest[node], view.nodes.wholes[node]
        view.sent.room[row], view.sent.replaces[row] = 0, 0
    return row


@inlined
def note_sent(w: World, view: View, me: int, node: int, job: int) -> None:
    """Note that a scheduler sends a task to a node."""
    row, estimate = sent_to(w, view, me, node), work_at(w, node, job)
    view.sent.work[row], view.sent.wholes[row] = carry(view.sent.work[row] + estimate, view.sent.wholes[row])
    view.sent.replaces[row] |= np.int64(view.nodes.room[node] <= view.sent.room[row])
    view.sent.room[row] += max(estimate, 1) if view.by_work else 1
    take_room(w, view.fit, node, job, ONE)


@inlined
def note_returned(w: World, view: View, me: int, node: int, rest: int) -> None:
    """Note that a node has sent a task back, with its work: it gets no task until its next report."""
    row = sent_to(w, view, me, node)
    view.sent.work[row], view.sent.wholes[row] = unpack(rest)
    view.sent.room[row] = max(view.nodes.room[node], 0)


@inlined
def wait_at(w: World, view: View, t: int, me: int, node: int) -> int:
    """Return the estimated time until a slot of the node is free for one more task, ns; NONE if it has no room."""
    row = sent_to(w, view, me, node)
    if view.nodes.room[node] <= view.sent.room[row]:
        return NONE
    running = max(view.nodes.busy_until[node] - t, 0)
    return spread(max(view.sent.work[row] + running, 0), view.sent.wholes[row], view.slots[node])


@inlined
def place_of(w: World, view: View, t: int, me: int, job: int, node: int) -> int:
    """Return the place of a node among others, the least first: its wait, or that of a fit; NONE if it has no room."""
    wait = wait_at(w, view, t, me, node)
    if wait == NONE or view.fit.kind == LEAST_WORK:
        return wait
    return among_fitting(w, view.fit, view.slots[node], row_of(w, view.fit, node, job), node, job, wait)


@inlined
def note_lowest(w: World, view: View) -> None:
    """Note which priority would make room at a node, as it reports."""
    node, generation, lowest = read_lowest_report(w)
    if is_current(w, node, generation) and is_newest(w, view.newest, w.nodes.size + node):
        view.nodes.lowest[node] = lowest


# The nodes that a scheduler considers for a job that arrives: random ones, in a heap by expected wait.


class Candidates(NamedTuple):
    """How many nodes are drawn for a job, and scratch space for them."""

    drawing: Probing
    heap: Records  # [most nodes drawn for a job] CHOICE


def make_candidates(choices: int, nodes: int, most_tasks: int) -> Candidates:
    """Candidates of which `choices` are drawn for each task."""
    return Candidates(
        make_probing(choices, 1, False, nodes, most_tasks),
        records(CHOICE, min(most_probes(choices, 1, most_tasks), nodes)),
    )


@inlined
def first_of(w: World, first_long: int, job: int) -> int:
    """Return the first node that the job may use: for a long job that of the long partition, if it has enough nodes."""
    first = first_long * w.work.is_long[job]
    if first > 0 and constraints.is_constrained(w, job):
        placement = constraints.placement_of(w, job)
        wanted: int = 1
        if placement & constraints.OVER_NODES != 0:
            wanted = tasks_of(w, job)
        few = constraints.eligible_count(w, job) - constraints.eligible_before(w, job, first) < wanted
        if few or placement & constraints.OVER_RACKS != 0:
            return np.int64(0)
    return first


@inlined
def draw_candidates(
    w: World, candidates: Candidates, view: View, t: int, me: int, job: int, first: int, tasks: int
) -> int:
    """Step 1: put the nodes with room, of those drawn for the job, into the heap; return its size."""
    begin = constraints.eligible_before(w, job, first)
    places = constraints.eligible_count(w, job) - begin
    count = min(probes_of(candidates.drawing, tasks), places)
    draw_places(w, candidates.drawing, PROBES, job, np.int64(0), count, places)
    size = 0
    for i in range(count):
        node = constraints.eligible_node(w, job, begin + candidates.drawing.nodes[i])
        wait = place_of(w, view, t, me, job, node)
        if wait != NONE:
            candidates.heap.wait[size], candidates.heap.node[size] = wait, node
            size += 1
    for i in range(size // 2 - 1, -1, -1):
        sink(candidates.heap, i, size, True)
    return size


@inlined
def best_on_top(w: World, candidates: Candidates, view: View, t: int, me: int, job: int, size: int) -> int:
    """Step 1: bring the node that waits least on top of the heap, and drop those without room; return its size."""
    choice = candidates.heap
    while size > 0:
        node = choice.node[0]
        wait = place_of(w, view, t, me, job, node)
        if wait == NONE or not may_run(w, job, node):
            size -= 1
            swap(choice, 0, size)
        elif wait > choice.wait[0]:
            choice.wait[0] = wait
        else:
            break
        sink(choice, 0, size, True)
    return size


# To which other node a task goes that was sent back, was lost, or waits at its scheduler.


@compiled
def find_node(w: World, view: View, t: int, me: int, job: int, first: int) -> int:
    """Step 2: find the node that waits least, or fits, of some with room for a task of the job; NONE if there is none.

    CONSIDERED nodes in a row are considered at most, from a random one on: of the job's eligible nodes, or of those
    with room, whichever are fewer.
    """
    begin = eligible_before(w, job, first)
    count = eligible_count(w, job) - begin
    by_room = view.totals.open[0] < count
    if by_room:
        count = view.totals.open[0]
    if count == 0:
        return NONE
    w.jobs.draws[job] += 1
    place = below(random_bits(w.seed, PLACEMENT, job, w.jobs.draws[job]), count)
    chosen: int = NONE
    least: int = NONE
    for _ in range(min(count, CONSIDERED)):
        node = view.open[place] if by_room else eligible_node(w, job, begin + place)
        place = place + 1 if place + 1 < count else 0
        if by_room and (node < first or not is_eligible(w, job, node)):
            continue
        wait = place_of(w, view, t, me, job, node)
        if wait == NONE or not may_run(w, job, node):
            continue
        if chosen == NONE or wait < least:
            chosen, least = node, wait
    return chosen


@inlined
def find_place(w: World, view: View, t: int, me: int, job: int, first: int) -> int:
    """Find a node with room for a task of the job, or one where it may replace another; NONE if there is none."""
    node = find_node(w, view, t, me, job, first)
    if node == NONE and w.priority.size > 0:
        node = find_lower(w, view, me, job, first)
    return node


@compiled
def find_lower(w: World, view: View, me: int, job: int, first: int) -> int:
    """Find the node with the lowest priority below that of the job, of CONSIDERED eligible ones; NONE if there is none.

    A scheduler sends one such task to a node, until that reports again.
    """
    begin = eligible_before(w, job, first)
    count = eligible_count(w, job) - begin
    if count == 0:
        return NONE
    w.jobs.draws[job] += 1
    place = below(random_bits(w.seed, PLACEMENT, job, w.jobs.draws[job]), count)
    chosen: int = NONE
    least: int = w.priority[job]
    for _ in range(min(count, CONSIDERED)):
        node = eligible_node(w, job, begin + place)
        place = place + 1 if place + 1 < count else 0
        lowest = view.nodes.lowest[node]
        if lowest < least and view.sent.replaces[sent_to(w, view, me, node)] == 0 and may_run(w, job, node):
            chosen, least = node, lowest
    return chosen


# Tasks that wait at their schedulers because no node has room for them, and in which order they go.
#
# A scheduler keeps the jobs with such tasks in a queue, or in one for each tenant (`central_queue`), and each job its
# tasks. In a queue jobs go in order of priority, then as they came. In a search for room a job that finds no node is
# passed: it goes behind the others of its priority. When MISSES of one priority have found none, the search passes all
# of that priority.

MISSES = 64
CAME_BITS = 40

OF_SCHEDULER = np.dtype(
    [
        ("jobs", "i8"),  # how many have tasks that wait
        ("came", "i8"),  # how many have come so far
        ("passed", "i8"),  # the first job that the search at hand has passed
        ("looks", "i8"),  # searches for room that are planned
    ]
)
# The task to go next, NONE: none waits; the next job that was passed.
OF_JOB = np.dtype([("task", "i8"), ("next", "i8")])
# Times it was sent back; the job's next task that waits.
OF_TASK = np.dtype([("returns", "i8"), ("next", "i8")])
# Of a search: jobs of one priority that found no node, that priority, and whether all jobs are passed.
OF_QUEUE = np.dtype([("misses", "i8"), ("band", "i8"), ("done", "i8")])


class Backlog(NamedTuple):
    """Tasks that wait for room."""

    queues: central_queue.Queues  # of each scheduler in turn
    each: int  # queues of a scheduler
    by_share: bool  # queues are of tenants
    band: np.ndarray  # [J] the place of a job's priority, from the highest on; empty where none counts
    searches: Records  # [queues] OF_QUEUE
    schedulers: Records  # [schedulers] OF_SCHEDULER
    jobs: Records  # [J] OF_JOB
    tasks: Records  # [T] OF_TASK


def make_backlog(setting: Setting, priority: np.ndarray) -> Backlog:
    """Return a backlog without tasks.

    Args:
        setting: of the run.
        priority: [J] of jobs, or empty where none counts.
    """
    count, order = setting.parameters["schedulers"], setting.parameters["backlog_order"]
    queues = central_queue.make_queues(setting, priority, order, count)
    schedulers, jobs = records(OF_SCHEDULER, count), records(OF_JOB, setting.num_jobs)
    schedulers.passed[:], jobs.task[:] = NONE, NONE
    return Backlog(
        queues,
        queues.rows.size // count,
        order != "arrival",
        np.unique(-priority, return_inverse=True)[1].astype(np.int64),
        records(OF_QUEUE, queues.rows.size),
        schedulers,
        jobs,
        records(OF_TASK, setting.workload.num_tasks),
    )


@inlined
def keep_waiting(w: World, backlog: Backlog, scheduler: int, job: int, task: int) -> None:
    """Keep a task, in front of the others of its job; a new job goes behind those of its priority."""
    w.counts[N_BACKLOGGED] += 1
    if backlog.jobs.task[job] == NONE:
        backlog.schedulers.jobs[scheduler] += 1
        put_last(backlog, scheduler, job)
        central_queue.join(backlog.queues, job)
    backlog.tasks.next[task] = backlog.jobs.task[job]
    backlog.jobs.task[job] = task


@inlined
def take_task(backlog: Backlog, scheduler: int, queue: int) -> int:
    """Take the first task of a queue; its job leaves with its last one."""
    job = central_queue.first_job(backlog.queues, queue)
    task = backlog.jobs.task[job]
    backlog.jobs.task[job] = backlog.tasks.next[task]
    if backlog.jobs.task[job] == NONE:
        backlog.schedulers.jobs[scheduler] -= 1
        central_queue.leave(backlog.queues, queue)
    return task


@inlined
def put_last(backlog: Backlog, scheduler: int, job: int) -> None:
    """Let a job that is in no queue stand behind all of its priority."""
    backlog.queues.rank[job] = band_of(backlog, job) << CAME_BITS | backlog.schedulers.came[scheduler]
    backlog.schedulers.came[scheduler] += 1


@inlined
def band_of(backlog: Backlog, job: int) -> int:
    """Return the place of a job's priority."""
    return backlog.band[job] if backlog.band.size > 0 else np.int64(0)


@inlined
def waits_before(backlog: Backlog, scheduler: int, job: int) -> bool:
    """Whether a task waits that may go before one of a job that has come: of higher priority, or with tenants any."""
    if backlog.schedulers.jobs[scheduler] == 0 or backlog.by_share or backlog.band.size == 0:
        return backlog.schedulers.jobs[scheduler] > 0 and backlog.by_share
    first = central_queue.first_job(backlog.queues, scheduler)  # a scheduler has one queue without tenants
    return band_of(backlog, first) < band_of(backlog, job)


@inlined
def may_hold(w: World, backlog: Backlog, job: int) -> bool:
    """Whether the job's tenant may hold one more of its tasks."""
    return not backlog.by_share or central_queue.tasks_below(w, backlog.queues, job, ONE) > 0


@inlined
def hold_share(w: World, backlog: Backlog, job: int, sign: int) -> None:
    """Where shares count, let the job's tenant hold a task more, or one less if `sign` is -1."""
    if backlog.by_share:
        central_queue.hold(w, backlog.queues, job, sign)


@compiled
def begin_search(backlog: Backlog, scheduler: int) -> None:
    """Begin a search for room."""
    for queue in range(scheduler * backlog.each, (scheduler + 1) * backlog.each):
        backlog.searches.done[queue], backlog.searches.band[queue] = 0, NONE


@inlined
def next_queue(w: World, backlog: Backlog, scheduler: int) -> int:
    """Return the queue whose first task is to look for room next; NONE if there is none."""
    if backlog.by_share:
        return least_queue(w, backlog, scheduler)
    is_next = central_queue.waits(backlog.queues, scheduler) and backlog.searches.done[scheduler] == 0
    return scheduler if is_next else NONE


@compiled
def least_queue(w: World, backlog: Backlog, scheduler: int) -> int:
    """Return the queue of the tenant with the least share, of those that may hold more; NONE if there is none."""
    best: int = NONE
    least = np.inf
    for queue in range(scheduler * backlog.each, (scheduler + 1) * backlog.each):
        if central_queue.waits(backlog.queues, queue) and backlog.searches.done[queue] == 0:
            share = central_queue.weighted_share(backlog.queues, queue)
            if share < least and may_hold(w, backlog, central_queue.first_job(backlog.queues, queue)):
                best, least = queue, share
    return best


@compiled
def note_miss(backlog: Backlog, scheduler: int, queue: int) -> None:
    """Pass the first job of a queue, which has found no node; at MISSES of them, all of its priority."""
    job, row = central_queue.first_job(backlog.queues, queue), backlog.searches
    band = band_of(backlog, job)
    if row.band[queue] != band:
        row.band[queue], row.misses[queue] = band, 0
    row.misses[queue] += 1
    pass_first(backlog, scheduler, queue)
    put_last(backlog, scheduler, job)
    if row.misses[queue] == MISSES and backlog.band.size == 0:
        row.done[queue] = 1
    elif row.misses[queue] == MISSES:
        while central_queue.waits(backlog.queues, queue) and (
            band_of(backlog, central_queue.first_job(backlog.queues, queue)) == band
        ):
            pass_first(backlog, scheduler, queue)


@inlined
def pass_first(backlog: Backlog, scheduler: int, queue: int) -> None:
    """Take the first job out of a queue until the search ends."""
    job = central_queue.first_job(backlog.queues, queue)
    central_queue.leave(backlog.queues, queue)
    backlog.jobs.next[job] = backlog.schedulers.passed[scheduler]
    backlog.schedulers.passed[scheduler] = job


@compiled
def end_search(backlog: Backlog, scheduler: int) -> None:
    """End a search: the jobs that were passed wait again."""
    job = backlog.schedulers.passed[scheduler]
    while job != NONE:
        central_queue.join(backlog.queues, job)
        job = backlog.jobs.next[job]
    backlog.schedulers.passed[scheduler] = NONE


FIFO, SJF, SRJF, LRTF = ORDERS = ("fifo", "sjf", "srjf", "lrtf")
LENGTH, WAIT = BOUNDS = ("length", "wait")


class State(NamedTuple):
    """Yacc-D's parameters and bookkeeping."""

    queues: BoundedQueues
    known: View  # a field named `view` would be NumPy's to the compiler
    backlog: Backlog
    candidates: Candidates
    first_long: int  # the first node that long jobs may use
    tries: int
    single: bool  # nodes receive 1 as the number of tasks left, so that their order goes by the task alone


@compiled
def on_arrival(w: World, p: State, t: int, me: int, job: int) -> None:
    """Step 1: bind each task to the best of the nodes drawn, or to another one with room; the others wait."""
    tasks, first_task = next_arrival(w, me, job), w.work.first_task[job]
    w.counts[N_PLACEMENTS] += tasks
    settle_rack(w, job, p.first_long * w.work.is_long[job])
    if waits_before(p.backlog, me - w.nodes.size, job):
        keep_from(w, p, t, me, job, first_task)
        plan_search(w, p, me, t)
        return
    first = first_of(w, p.first_long, job)
    size = draw_candidates(w, p.candidates, p.known, t, me, job, first, tasks)
    for i in range(tasks):
        size = best_on_top(w, p.candidates, p.known, t, me, job, size)
        node = p.candidates.heap.node[0]
        if size == 0:
            node = find_place(w, p.known, t, me, job, first)
        if node == NONE or not may_hold(w, p.backlog, job):
            keep_from(w, p, t, me, job, first_task + i)
            break
        bind(w, p, t, me, job, first_task + i, node)


@inlined
def bind(w: World, p: State, t: int, me: int, job: int, task: int, node: int) -> None:
    """Send a task to a node, with the nodes' mean work, and whether the node may give it back at a heartbeat."""
    if is_recorded(w.queue.trace):
        note(w, t, me, CHOSEN, job, task, node, wait_at(w, p.known, t, me, node))
    hold(w, job, node)
    note_sent(w, p.known, me, node, job)
    hold_share(w, p.backlog, job, ONE)
    left = np.int64(1) if p.single else w.jobs.unfinished[job]
    movable, history = np.int64(p.backlog.tasks.returns[task] == 0), history_of(w, task)
    messages.send_offered(
        w, t, me, node, job, task, level_of(w, job), left, history, movable, mean_rest(p.known)
    )


@inlined
def keep(w: World, p: State, t: int, me: int, job: int, task: int) -> None:
    """Keep a task at its scheduler until a heartbeat shows room."""
    keep_waiting(w, p.backlog, me - w.nodes.size, job, task)
    if p.backlog.schedulers.looks[me - w.nodes.size] == 0:
        plan_search(w, p, me, next_reports(w, p, t))


@inlined
def keep_from(w: World, p: State, t: int, me: int, job: int, first: int) -> None:
    """Keep the tasks of a job from one on."""
    for task in range(w.work.end_task[job] - 1, first - 1, -1):
        keep(w, p, t, me, job, np.int64(task))


@inlined
def plan_search(w: World, p: State, me: int, time: int) -> None:
    """Plan a search for room."""
    p.backlog.schedulers.looks[me - w.nodes.size] += 1
    wake(w, time, me, DISPATCH, NONE, NONE, NONE)


@inlined
def next_reports(w: World, p: State, t: int) -> int:
    """Return when the reports of the next heartbeat arrive."""
    delay, beat = w.network.cross_ns, p.queues.loads.heartbeat
    return ((t - delay) // beat + 1) * beat + delay


@compiled
def on_returned(w: World, p: State, t: int, me: int) -> None:
    """Step 2: send a task that came back to another node, or keep it."""
    job, task, node, rest = messages.read_returned(w)
    note_returned(w, p.known, me, node, rest)
    release(w, job, node)
    hold_share(w, p.backlog, job, -ONE)
    p.backlog.tasks.returns[task] += 1
    if p.backlog.tasks.returns[task] > p.tries:
        keep(w, p, t, me, job, task)
    else:
        bind_elsewhere(w, p, t, me, job, task)


@compiled
def bind_elsewhere(w: World, p: State, t: int, me: int, job: int, task: int) -> None:
    """Step 2: bind a task to another node that has room by the last reports, or keep it."""
    if waits_before(p.backlog, me - w.nodes.size, job):
        keep(w, p, t, me, job, task)
        plan_search(w, p, me, t)
        return
    node = find_place(w, p.known, t, me, job, first_of(w, p.first_long, job))
    if node == NONE or not may_hold(w, p.backlog, job):
        keep(w, p, t, me, job, task)
    else:
        bind(w, p, t, me, job, task, node)


@compiled
def on_lost(w: World, p: State, t: int, me: int) -> None:
    """Send a task that a node's failure has lost to another node, or keep it."""
    job, task, node, _, _ = read_lost(w)
    note_attempt(w)
    release(w, job, node)
    hold_share(w, p.backlog, job, -ONE)
    w.counts[N_SENT_AGAIN] += 1
    bind_elsewhere(w, p, t, me, job, task)


@compiled
def on_dispatch(w: World, p: State, t: int, me: int) -> None:
    """Step 2: bind tasks that wait here to nodes that have room by the reports of the last heartbeat.

    The search ends with a job that may use all nodes and finds no room; one that may use some is passed.
    """
    scheduler, rows, backlog, room = me - w.nodes.size, p.backlog.schedulers, p.backlog, w.queue.room - 4
    rows.looks[scheduler] -= 1
    begin_search(backlog, scheduler)
    queue = next_queue(w, backlog, scheduler)
    while queue != NONE and room > 0:
        job = central_queue.first_job(backlog.queues, queue)
        first = first_of(w, p.first_long, job)
        node = find_place(w, p.known, t, me, job, first)
        if node != NONE:
            room -= 1
            bind(w, p, t, me, job, take_task(backlog, scheduler, queue), node)
        elif first == 0 and not is_constrained(w, job):
            if not backlog.by_share or w.priority.size == 0:
                break
            backlog.searches.done[queue] = (
                1  # the job of another tenant may replace tasks that this one may not
            )
        else:
            note_miss(backlog, scheduler, queue)
        queue = next_queue(w, backlog, scheduler)
    end_search(backlog, scheduler)
    if rows.jobs[scheduler] > 0 and (room == 0 or rows.looks[scheduler] == 0):
        plan_search(w, p, me, t if room == 0 else next_reports(w, p, t))


@inlined
def on_node_state(w: World, p: State) -> None:
    """Note that a node is down and has no room, or up again and without work."""
    node, _, _ = read_node_state(w)
    if receive_node_state(w):
        room = p.known.empty_room[node] if w.queue.now.kind[0] == NODE_UP else np.int64(0)
        note_node(p.known, node, np.int64(0), np.int64(0), room)
        p.known.nodes.lowest[node] = NEVER
        note_empty(w, p.known.fit, node)


@inlined
def on_end(w: World, backlog: Backlog, job: int) -> None:
    """Note the end of a task; its tenant holds less."""
    on_done(w)
    hold_share(w, backlog, job, -ONE)


@inlined
def on_report(w: World, known: View) -> None:
    """Step 4: note what a node has reported, unless something newer is known."""
    node, generation, rest, busy_until, room = messages.read_queue_report(w)
    if is_current(w, node, generation) and is_newest(w, known.newest, node):
        note_node(known, node, rest, busy_until, room)


advance = make_job_loop(
    __name__,
    State,
    {
        DONE: on_end,
        messages.QUEUE_REPORT: on_report,
        messages.ROOM_REPORT: note_room,
        messages.LOWEST_REPORT: note_lowest,
        ARRIVAL: on_arrival,
        messages.RETURNED: on_returned,
        DISPATCH: on_dispatch,
        LOST: on_lost,
    },
    at_nodes={messages.HEARTBEAT: on_bounded_heartbeat},
    others_at_nodes=on_bounded_node,
    on_node_state=on_node_state,
)


def build(setting: Setting) -> tuple[World, State]:
    """Make the world and the schedulers' state at time 0."""
    p, slots, nodes = setting.parameters, node_slots(setting), setting.cluster.num_nodes
    rules = Rules(
        shortest_first=p["order"] != FIFO,
        slack=p["slack"],
        bound_all=1,
        by_tasks=p["order"] == LRTF,
        runs=0,  # an entry's epoch says whether its task may be given back
    )
    parts = 0 if p["fit"] == "least-work" else parts_of(max(len(setting.resources), 1))
    world = build_world(setting, rules, most_sends=lambda tasks: tasks + parts, schedulers=p["schedulers"])
    by_work, of_work = p["bound"] == WAIT, servers(setting)
    most_s = float(NEVER) / NS / of_work.max()
    if by_work and p["queue_wait_s"] > most_s:
        raise InputError(
            f"parameter queue_wait_s of yacc-d: {p['queue_wait_s']:g} s for each of {of_work.max():,} slots of a node"
            f" are more work than a queue holds; want at most {most_s:.3g} s"
        )
    limit = of_work * round(p["queue_wait_s"] * NS) if by_work else slots * p["queue_limit"]
    queues = BoundedQueues(
        limit=limit,
        slots=of_work,
        by_work=by_work,
        loads=make_loads(nodes, round(p["heartbeat_s"] * NS)),
        mean=np.zeros(nodes, np.int64),
        above=round(p["rebalance_s"] * NS) if p["rebalance"] else int(NONE),
        parts=parts,
    )
    fit = make_reported_fit(p["fit"], world, of_work, p["schedulers"])
    return world, State(
        queues,
        make_view(of_work, limit + slots, by_work, p["schedulers"], fit),
        make_backlog(setting, world.priority),
        candidates=make_candidates(p["choices"], nodes, most_tasks(setting)),
        first_long=setting.cluster.partition(setting.long_partition),
        tries=p["tries"],
        single=p["order"] == SJF,
    )


YACC_D = Scheduler(
    name="yacc-d",
    title="distributed schedulers, bounded queues at the nodes, reordered and rebalanced",
    paper="Rasley et al.: Efficient Queue Management, EuroSys 2016, doi 10.1145/2901318.2901354",
    parameters=(
        SCHEDULERS,
        Parameter("choices", 2, "integer", "nodes looked at for each task", 1, 100),
        Parameter("heartbeat_s", 1.0, "duration", "time between two reports of the nodes", 1e-3, 1e6),
        Parameter(
            "bound", LENGTH, "choice", "queues are bounded by tasks or by estimated work", choices=BOUNDS
        ),
        Parameter(
            "queue_limit",
            5,
            "integer",
            "most tasks that wait for a slot",
            0,
            1_000_000,
            needs=("bound=length",),
        ),
        Parameter(
            "queue_wait_s",
            60.0,
            "duration",
            "work for a slot beyond which none is taken",
            0,
            1e6,
            needs=("bound=wait",),
        ),
        Parameter(
            "tries",
            3,
            "integer",
            "times that a task that came back goes to another node; then it waits at its scheduler",
            0,
            1000,
        ),
        Parameter(
            "order",
            SRJF,
            "choice",
            "nodes serve by arrival, or first the task with the shortest estimate, the job with the least work left, or"
            " that with the fewest tasks left",
            choices=ORDERS,
        ),
        Parameter(
            "slack",
            5.0,
            "number",
            "a task is passed by at most this many times its estimate",
            0,
            1e6,
            needs=(f"order={'|'.join(order for order in ORDERS if order != FIFO)}",),
        ),
        Parameter("rebalance", True, "flag", "nodes give back at heartbeats what waits too far behind"),
        Parameter(
            "rebalance_s",
            30.0,
            "duration",
            "a task waits too far behind if the work in front of it exceeds the mean of the nodes by this",
            0,
            1e6,
            needs=("rebalance",),
        ),
        FIT,
        *central_queue.parameters_of(
            Parameter(
                "backlog_order",
                "arrival",
                "choice",
                "which task that waits at a scheduler goes next: that of the first job to come, or of the tenant with "
                "the smallest share of the cluster over its weight, or over its guarantee, of what this scheduler has "
                "placed; priorities count among the jobs of one tenant, with arrival among all",
                choices=central_queue.ORDER.choices,
            )
        ),
    ),
    worlds=JOB_WORLDS,
    build=build,
    advance=advance,
    preempts=True,
    hybrid=True,
    constrained=True,
    considers="{choices} for each task of the job, drawn at random",
    waits="reports",
)
