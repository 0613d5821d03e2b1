"""Central FIFO: one queue of tasks at one scheduler, one task a slot (late binding to nodes).

The textbook multi-server queue. With single-task jobs and no network delay it is M/G/c.

1. A job arrives: its tasks queue behind those of earlier jobs.
2. While a task waits and a slot is idle, the task goes to the slot that has been idle longest.
3. A node reports a task's end; its slot is idle for the scheduler when the report has arrived.
4. Slots of a node that is known to be down are not used; those of one that is up again are all idle. A task that a
   failure has lost goes before all others.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.cost import take
from actors.kernel.faults import is_known_down, receive_node_state
from actors.kernel.messages import ARRIVAL, LOST, NODE_DOWN, NODE_UP, read_job, read_lost, read_node_state
from actors.kernel.queue import RUNNING, wake
from actors.kernel.records import Records, records
from actors.kernel.world import N_PLACEMENTS, N_SENT_AGAIN, NONE, Rules, World
from actors.nodes.messages import DISPATCH, DONE, read_done, send_placed
from actors.nodes.worker import node_event
from actors.nodes.worlds import JOB_WORLDS
from actors.scheduler import ALL_ALIKE, Scheduler
from actors.schedulers.jobs.build import build_world
from actors.schedulers.jobs.late_binding import next_arrival, note_attempt, on_done
from actors.schedulers.jobs.probing import NO_VERSION, ONE
from actors.setting import Setting

# The queue of tasks, and the ring of idle slots.
FIFO = np.dtype(
    [
        ("taken", "i8"),  # idle slots taken from the ring
        ("added", "i8"),  # idle slots added to it
        ("job", "i8"),  # at the head of the queue
        ("arrived", "i8"),  # jobs
        ("lost", "i8"),  # the first of the tasks that were lost, or NONE
    ]
)


class State(NamedTuple):
    """The scheduler's queue and its idle slots."""

    idle: np.ndarray  # [slots] ring of nodes with an idle slot, idle longest first
    fifo: Records  # [1] FIFO
    free: np.ndarray  # [N] a node's slots in the ring


@inlined
def dispatch(w: World, p: State, t: int, me: int) -> None:
    """Step 2: tasks to idle slots, as long as there are both."""
    fifo = p.fifo
    while has_idle_slot(p) and fifo.lost[0] != NONE:
        task = fifo.lost[0]
        fifo.lost[0] = w.faults.tasks.again[task]
        w.counts[N_SENT_AGAIN] += 1
        send_placed(w, t, me, take_slot(p), w.faults.tasks.lost_job[task], task, NONE, ONE, NO_VERSION)
    while has_idle_slot(p) and fifo.job[0] < fifo.arrived[0]:
        job = fifo.job[0]
        task = w.jobs.next_task[job]
        w.jobs.next_task[job] = task + 1
        w.counts[N_PLACEMENTS] += 1
        send_placed(w, t, me, take_slot(p), job, task, NONE, ONE, NO_VERSION)
        if task + 1 == w.work.end_task[job]:
            fifo.job[0] = job + 1


@inlined
def has_idle_slot(p: State) -> bool:
    """Whether a slot is idle."""
    return p.fifo.taken[0] < p.fifo.added[0]


@inlined
def take_slot(p: State) -> int:
    """Take the slot that has been idle longest; return its node."""
    node = p.idle[p.fifo.taken[0] % p.idle.size]
    p.fifo.taken[0] += 1
    p.free[node] -= 1
    return node


@inlined
def add_slot(p: State, node: int) -> None:
    """Add an idle slot of the node to the ring."""
    p.idle[p.fifo.added[0] % p.idle.size] = node
    p.fifo.added[0] += 1
    p.free[node] += 1


@inlined
def is_own_slot(w: World, p: State, node: int, start: int) -> bool:
    """Step 4: whether a task that ended leaves an idle slot: not if its node has failed since it started."""
    if w.faults.active == 0:
        return True
    row = w.faults.actors
    return not is_known_down(w, node) and start >= row.since[node] and p.free[node] < row.slots[node]


@compiled
def on_node_state(w: World, p: State) -> None:
    """Step 4: note that a node is down or up."""
    node, _, _ = read_node_state(w)
    if not receive_node_state(w):
        return
    idle, kept = p.idle, p.fifo.taken[0]
    for i in range(p.fifo.taken[0], p.fifo.added[0]):
        if idle[i % idle.size] != node:
            idle[kept % idle.size] = idle[i % idle.size]
            kept += 1
    p.fifo.added[0], p.free[node] = kept, 0
    if not is_known_down(w, node):
        for _ in range(w.faults.actors.slots[node]):
            add_slot(p, node)
    if has_idle_slot(p) and (p.fifo.lost[0] != NONE or p.fifo.job[0] < p.fifo.arrived[0]):
        # The listener has heard this; the scheduler is the first after the nodes, and may be down itself.
        wake(w, w.queue.now.time[0], w.nodes.size, DISPATCH, NONE, NONE, NONE)


@inlined
def on_lost(w: World, p: State) -> None:
    """Step 4: put a lost task in front of all others."""
    job, task, _, _, _ = read_lost(w)
    note_attempt(w)
    w.faults.tasks.again[task], w.faults.tasks.lost_job[task] = p.fifo.lost[0], job
    p.fifo.lost[0] = task


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
        elif kind == NODE_DOWN or kind == NODE_UP:
            on_node_state(w, p)
        else:
            if kind == DONE:
                _, node, start, _ = read_done(w)
                on_done(w)
                if is_own_slot(w, p, node, start):
                    add_slot(p, node)
            elif kind == ARRIVAL:
                job = read_job(w)
                next_arrival(w, me, job)
                p.fifo.arrived[0] = job + 1
            elif kind == LOST:
                on_lost(w, p)
            dispatch(w, p, t, me)
    return RUNNING


def build(setting: Setting) -> tuple[World, State]:
    """Make the world and the scheduler's state at time 0."""
    slots = setting.cluster.slots()
    # Every node's first slot, then every second one, …: tasks spread over the nodes.
    nth = np.concatenate([np.arange(s) for s in slots]) if slots.max() > 1 else np.zeros(slots.size, np.int64)
    idle = np.repeat(np.arange(slots.size, dtype=np.int64), slots)[np.argsort(nth, kind="stable")]
    world = build_world(
        setting,
        Rules(),
        most_sends=lambda tasks: min(int(slots.sum()), setting.workload.num_tasks),
        schedulers=1,
    )
    fifo = records(FIFO, 1)
    fifo.added[0], fifo.lost[0] = idle.size, NONE
    return world, State(idle, fifo, slots.astype(np.int64))


CENTRAL_FIFO = Scheduler(
    name="central-fifo",
    title="one queue for all tasks at one scheduler",
    paper="-",
    parameters=(),
    worlds=JOB_WORLDS,
    build=build,
    advance=advance,
    slots_only=True,
    by_arrival=True,
    ignores=ALL_ALIKE,
)
