"""A worker node whose queue is bounded: it sends back tasks that find the queue full or wait behind too much work.

The bound is a number of tasks, or estimated work, for each slot. A task that comes to a full queue goes back to its
scheduler at once. At a heartbeat the node reports its work and its room, and gives back the tasks that have more work
in front of them than the mean over all nodes, as the last placement reported it, and `above` more. A task that has been
sent back before is kept. A node that is up again after a failure has nothing to report: schedulers take it for empty
and ignore its earlier reports.

With priorities a full queue takes a task all the same if running ones can be evicted for it, or if its last entry has a
lower priority, which goes back. The node reports the lowest priority that would make room.
"""

from typing import NamedTuple

import numpy as np

from actors.failures import evictions_of, generation_of, is_down, note_history
from actors.kernel.compiled import compiled, inlined
from actors.kernel.messages import FAIL, read_job
from actors.kernel.queue import NEVER, NONE
from actors.kernel.sums import carry, pack, spread
from actors.nodes.failing import is_void
from actors.nodes.messages import (
    OFFERED,
    TASK_END,
    read_offered,
    send_lowest_report,
    send_queue_report,
    send_returned,
)
from actors.nodes.preemption import HELD, can_make_room, preempts
from actors.nodes.reporting import Loads, add_load, change_load, report_room, take_evicted
from actors.nodes.waiting import enqueue, goes_before, remove
from actors.nodes.worker import node_event, serve
from actors.nodes.world import N_GIVEN_BACK, N_REPORTS, N_TURNED_AWAY, World
from actors.resources import demand_of, idle_slots, work_at


class BoundedQueues(NamedTuple):
    """The nodes' queues: bounds, and what nodes know of themselves and of others."""

    limit: np.ndarray  # [N] the most that waits: tasks, or ns of estimated work
    slots: np.ndarray  # [N]
    by_work: bool  # the bound is on work
    loads: Loads
    mean: np.ndarray  # [N] mean work that waits for a slot over all nodes, as last reported to the node, ns
    above: int  # work beyond that mean from which tasks are given back, ns; NONE: never
    parts: int  # messages by which a node reports what is free; 0: schedulers do not want to know it


@inlined
def on_bounded_node(w: World, queues: BoundedQueues, t: int, kind: int, node: int) -> None:
    """Handle a message to a node, other than its heartbeat."""
    if w.faults.active == 0 or not is_void(w, node):
        if kind == OFFERED:
            take_offered(w, queues, t, node)
            return
        if kind == TASK_END:
            change_load(w, queues.loads, t, node, -work_at(w, node, read_job(w)))
        elif kind == FAIL:
            queues.loads.work[node], queues.loads.wholes[node] = 0, 0
    node_event(w, node)
    take_evicted(w, queues.loads, t, node)


@inlined
def take_offered(w: World, queues: BoundedQueues, t: int, node: int) -> None:
    """Put a task into the queue, or send it back if there is no room."""
    job, task, level, left, history, movable, mean_rest = read_offered(w)
    note_history(w, task, history)
    is_full = idle_slots(w, node) == 0 and room_of(w, queues, node) <= 0
    if is_full and not evicts_for(w, node, job, task) and not makes_room(w, queues, t, node, job):
        w.counts[N_TURNED_AWAY] += 1
        send_returned(w, t, node, w.work.home[job], job, task, node, rest_of(w, queues, node))
        return
    queues.mean[node] = mean_rest
    change_load(w, queues.loads, t, node, work_at(w, node, job))
    enqueue(w, node, job, task, left, movable, level)
    serve(w, t, node)
    take_evicted(w, queues.loads, t, node)


@inlined
def evicts_for(w: World, node: int, job: int, task: int) -> bool:
    """Whether running tasks can be evicted for one that comes, which goes before all that wait."""
    head = w.nodes.head[node]
    is_first = head == NONE or goes_before(w, job, w.entries.job[head])
    return preempts(w) and is_first and can_make_room(w, node, demand_of(w, job, task), job, HELD)


@compiled
def makes_room(w: World, queues: BoundedQueues, t: int, node: int, job: int) -> bool:
    """Send the last entry of a full queue back, if its priority is below the job's, and that makes room."""
    rows, entry, before = w.entries, w.nodes.head[node], NONE
    if entry == NONE or not goes_before(w, job, rows.job[w.nodes.tail[node]]):
        return False
    while rows.next[entry] != NONE:
        entry, before = rows.next[entry], entry
    last = rows.job[entry]
    if room_of(w, queues, node) + (work_at(w, node, last) if queues.by_work else 1) <= 0:
        return False
    w.counts[N_TURNED_AWAY] += 1
    send_back(w, queues, t, node, entry, before)
    return True


@inlined
def send_back(w: World, queues: BoundedQueues, t: int, node: int, entry: int, before: int) -> None:
    """Send a task that waits back to its scheduler; `before` is the entry in front of it, or NONE."""
    job, task = w.entries.job[entry], w.entries.task[entry]
    w.nodes.longs[node] -= w.work.is_long[job]
    remove(w, node, entry, before)
    add_load(queues.loads, node, -work_at(w, node, job))
    send_returned(w, t, node, w.work.home[job], job, task, node, rest_of(w, queues, node))


@compiled
def lowest_of(w: World, node: int) -> int:
    """Return the lowest priority of a task that waits, the last one, or that runs and may be evicted; NEVER of none."""
    lowest, preemption, tasks = NEVER, w.preemption, w.faults.tasks
    if w.nodes.head[node] != NONE:
        lowest = w.priority[w.entries.job[w.nodes.tail[node]]]
    if preempts(w):
        task = w.faults.actors.running[node]
        while task != NONE:
            priority = w.priority[tasks.job[task]]
            if priority < min(lowest, preemption.below) and evictions_of(w, task) < preemption.most:
                lowest = priority
            task = tasks.next[task]
    return lowest


@compiled
def room_of(w: World, queues: BoundedQueues, node: int) -> int:
    """Return how much the node has room for, in units of the bound; an idle slot counts as one."""
    room = queues.limit[node] + idle_slots(w, node)
    entry = w.nodes.head[node]
    while entry != NONE:
        room -= work_at(w, node, w.entries.job[entry]) if queues.by_work else 1
        entry = w.entries.next[entry]
    return room


@inlined
def rest_of(w: World, queues: BoundedQueues, node: int) -> int:
    """Return the node's estimated work, less that of the task that started last, as messages state it."""
    job, load = w.nodes.running[node], queues.loads.work[node]
    if job != NONE and w.room.active == 0:
        load -= w.work.estimate[job]
    rest, wholes = carry(load, queues.loads.wholes[node])
    return pack(rest, wholes)


@compiled
def on_bounded_heartbeat(w: World, queues: BoundedQueues, t: int, node: int) -> None:
    """Report a node whose load has changed."""
    queues.loads.to_report[node] = False
    if is_down(w, node):
        return
    if queues.above != NONE:
        give_back(w, queues, t, node)
    w.counts[N_REPORTS] += 1
    busy_until, job = np.int64(0), w.nodes.running[node]
    if job != NONE and w.room.active == 0:
        busy_until = w.nodes.started[node] + w.work.estimate[job]
    rest, room = rest_of(w, queues, node), room_of(w, queues, node)
    send_queue_report(w, t, node, generation_of(w, node), rest, busy_until, room)
    report_room(w, t, node, queues.parts)
    if w.priority.size > 0:
        send_lowest_report(w, t, node, generation_of(w, node), lowest_of(w, node))


@inlined
def give_back(w: World, queues: BoundedQueues, t: int, node: int) -> None:
    """Send back the tasks that wait behind too much work, as many as the event has room for messages."""
    rows, left, slots = w.entries, w.queue.room - 4 - queues.parts, queues.slots[node]
    most = queues.mean[node] + queues.above  # for a slot
    entry, before, ahead, wholes = w.nodes.head[node], NONE, np.int64(0), np.int64(0)
    while entry != NONE and left > 0:
        job, after = rows.job[entry], rows.next[entry]
        if spread(ahead - 1, wholes, slots) >= most and rows.epoch[entry] == 1:
            w.counts[N_GIVEN_BACK] += 1
            send_back(w, queues, t, node, entry, before)
            left -= 1
        else:
            ahead, wholes = carry(ahead + work_at(w, node, job), wholes)
            before = entry
        entry = after
