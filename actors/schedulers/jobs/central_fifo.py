"""Central FIFO: one queue of tasks at one scheduler, one task a slot (late binding to nodes).

The textbook multi-server queue: a slot that falls idle is reported to the scheduler and gets the oldest task that
waits. With single-task jobs and no network delay it is M/G/c.

1. A job arrives: its tasks queue behind those of earlier jobs.
2. While a task waits and a slot is idle, the task goes to the slot that has been idle longest.
3. A node reports a task's end; its slot is idle for the scheduler when the report has arrived.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import ARRIVAL, DONE, PLACED, RUNNING, send, take
from actors.kernel.world import N_PLACEMENTS, NONE
from actors.nodes.worker import node_event
from actors.schedulers.jobs.build import build_world, fifo_rules
from actors.schedulers.jobs.late_binding import next_arrival, on_done
from actors.schedulers.policy import Scheduler


class State(NamedTuple):
    """The scheduler's queue and its idle slots."""

    idle: np.ndarray  # [slots] ring of nodes with an idle slot, idle longest first
    cursor: (
        np.ndarray
    )  # [4] idle slots taken, idle slots added, the job at the head of the queue, jobs arrived


@inlined
def dispatch(w, p, t, me):
    """Step 2: tasks to idle slots, as long as there are both."""
    idle, cursor = p.idle, p.cursor
    taken, added, job, arrived = cursor[0], cursor[1], cursor[2], cursor[3]
    while taken < added and job < arrived:
        task = w.jobs.next_task[job]
        w.jobs.next_task[job] = task + 1
        w.counts[N_PLACEMENTS] += 1
        send(w, t, me, idle[taken % idle.size], PLACED, job, task, 1, NONE)
        taken += 1
        if task + 1 == w.work.end_task[job]:
            job += 1
    cursor[0], cursor[2] = taken, job


@compiled
def advance(w, p, until, most):
    """Handle events before `until`, at most `most` of them; says why it stopped."""
    message = w.queue.now
    for _ in range(most):
        why = take(w.queue, w.entries, until)
        if why != RUNNING:
            return why
        t, kind, me, job = message.time[0], message.kind[0], message.dst[0], message.a[0]
        if me < w.nodes.size:
            node_event(w, me)
        else:
            if kind == DONE:
                on_done(w, job, message.c[0], message.d[0])
                p.idle[p.cursor[1] % p.idle.size] = message.b[0]
                p.cursor[1] += 1
            elif kind == ARRIVAL:
                next_arrival(w, me, job)
                p.cursor[3] = job + 1
            dispatch(w, p, t, me)
    return RUNNING


def build(setting):
    """The world and the scheduler's state at time 0."""
    slots = setting.cluster.slots()
    # Every node's first slot, then every second one, …: tasks spread over the nodes.
    nth = np.concatenate([np.arange(s) for s in slots]) if slots.max() > 1 else np.zeros(slots.size, np.int64)
    idle = np.repeat(np.arange(slots.size, dtype=np.int64), slots)[np.argsort(nth, kind="stable")]
    world = build_world(
        setting,
        fifo_rules(),
        most_sends=lambda tasks: min(int(slots.sum()), setting.workload.num_tasks),
        schedulers=1,
    )
    return world, State(idle, np.array([0, idle.size, 0, 0], np.int64))


CENTRAL_FIFO = Scheduler(
    name="central-fifo",
    title="one queue for all tasks at one scheduler",
    paper="-",
    parameters=(),
    build=build,
    advance=advance,
)
