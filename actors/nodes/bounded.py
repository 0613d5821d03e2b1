"""A worker node whose queue is bounded: it sends back tasks that find the queue full or wait behind too much work.

The bound is a number of tasks, or estimated work, for each slot. A task that comes to a full queue goes back to its
scheduler at once. At a heartbeat the node reports its work and its room, and gives back the tasks that have more work
in front of them than the mean over all nodes, as the last placement reported it, and `above` more. A task that has been
sent back before is kept. A node that is up again after a failure has nothing to report: schedulers take it for empty
and ignore its earlier reports.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.eligible import task_of
from actors.kernel.faults import is_down
from actors.kernel.messages import FAIL
from actors.kernel.queue import send
from actors.kernel.sums import carry, pack, spread
from actors.kernel.world import N_GIVEN_BACK, N_REPORTS, N_TURNED_AWAY, NONE, World
from actors.nodes.failing import is_void
from actors.nodes.messages import LOAD_REPORT, PLACED, REJECTED, TASK_END
from actors.nodes.reporting import change_load, reporter
from actors.nodes.waiting import remove
from actors.nodes.worker import node_event

MOVABLE = np.int64(1)  # in an entry's `epoch` and in the last column of PLACED: the task may be given back


class BoundedQueues(NamedTuple):
    """The nodes' queues: bounds, and what nodes know of themselves and of others."""

    limit: np.ndarray  # [N] the most that waits: tasks, or ns of estimated work
    slots: np.ndarray  # [N]
    by_work: bool  # the bound is on work
    load: np.ndarray  # [N] a node's own estimated work, waiting or running, ns,
    load_wholes: np.ndarray  # [N] and so many WHOLE besides
    to_report: np.ndarray  # [N] bool: the load has changed since the node's last heartbeat
    mean: np.ndarray  # [N] mean work that waits for a slot over all nodes, as last reported to the node, ns
    above: int  # work beyond that mean from which tasks are given back, ns; NONE: never
    heartbeat: int  # ns


@inlined
def on_bounded_node(w: World, queues: BoundedQueues, t: int, kind: int, node: int, job: int) -> None:
    """Handle a message to a node, other than its heartbeat."""
    void = w.faults.active == 1 and is_void(w, node)
    waits = False
    if not void and kind == PLACED:
        waits = w.nodes.idle[node] == 0
        if waits and room_of(w, queues, node) <= 0:
            turn_away(w, queues, t, node, job)
            return
        queues.mean[node] = w.queue.now.d[0] >> 1
        change_load(w, queues, t, node, w.work.estimate[job])
    elif not void and kind == TASK_END:
        change_load(w, queues, t, node, -w.work.estimate[job])
    elif not void and kind == FAIL:
        queues.load[node], queues.load_wholes[node] = 0, 0
    movable = w.queue.now.d[0] & MOVABLE
    node_event(w, node)
    if waits:
        w.entries.epoch[w.nodes.tail[node]] = movable


@compiled
def room_of(w: World, queues: BoundedQueues, node: int) -> int:
    """Return how much the node has room for, in units of the bound; an idle slot counts as one."""
    room = queues.limit[node] + w.nodes.idle[node]
    entry = w.nodes.head[node]
    while entry != NONE:
        room -= w.work.estimate[w.entries.job[entry]] if queues.by_work else 1
        entry = w.entries.next[entry]
    return room


@inlined
def rest_of(w: World, queues: BoundedQueues, node: int) -> int:
    """Return the node's estimated work, less that of the task that started last, as messages state it."""
    job, load = w.nodes.running[node], queues.load[node]
    if job != NONE:
        load -= w.work.estimate[job]
    rest, wholes = carry(load, queues.load_wholes[node])
    return pack(rest, wholes)


@inlined
def turn_away(w: World, queues: BoundedQueues, t: int, node: int, job: int) -> None:
    """Send back a task that finds the queue full."""
    w.counts[N_TURNED_AWAY] += 1
    task = task_of(w, w.queue.now.b[0])
    send(w, t, node, w.work.home[job], REJECTED, job, task, node, rest_of(w, queues, node))


@compiled
def on_bounded_heartbeat(w: World, queues: BoundedQueues, t: int, node: int) -> None:
    """Report a node whose load has changed. All schedulers receive the report at one time, as one message."""
    queues.to_report[node] = False
    if is_down(w, node):
        return
    if queues.above != NONE:
        give_back(w, queues, t, node)
    w.counts[N_REPORTS] += 1
    busy_until, job = np.int64(0), w.nodes.running[node]
    if job != NONE:
        busy_until = w.nodes.started[node] + w.work.estimate[job]
    listener = np.int64(w.queue.seq.size - 1)
    rest, room = rest_of(w, queues, node), room_of(w, queues, node)
    send(w, t, node, listener, LOAD_REPORT, reporter(w, node), rest, busy_until, room)


@inlined
def give_back(w: World, queues: BoundedQueues, t: int, node: int) -> None:
    """Send back the tasks that wait behind too much work, as many as the event has room for messages."""
    rows, left, slots = w.entries, w.queue.room - 4, queues.slots[node]
    most = queues.mean[node] + queues.above  # for a slot
    entry, before, ahead, wholes = w.nodes.head[node], NONE, np.int64(0), np.int64(0)
    while entry != NONE and left > 0:
        job, after = rows.job[entry], rows.next[entry]
        if spread(ahead - 1, wholes, slots) >= most and rows.epoch[entry] == MOVABLE:
            w.counts[N_GIVEN_BACK] += 1
            task = task_of(w, rows.task[entry])
            w.nodes.longs[node] -= w.work.is_long[job]
            remove(w, node, entry, before)
            less = queues.load[node] - w.work.estimate[job]
            queues.load[node], queues.load_wholes[node] = carry(less, queues.load_wholes[node])
            send(w, t, node, w.work.home[job], REJECTED, job, task, node, rest_of(w, queues, node))
            left -= 1
        else:
            ahead, wholes = carry(ahead + w.work.estimate[job], wholes)
            before = entry
        entry = after
