"""Central FIFO: one queue of tasks at one scheduler, one task a slot (late binding to nodes).

The textbook multi-server queue. With single-task jobs and no network delay it is M/G/c.

1. A job arrives: its tasks queue behind those of earlier jobs, and before those of jobs of lower priority.
2. While a task waits and a slot is idle, the task goes to the slot that has been idle longest.
3. A node reports a task's end; its slot is idle for the scheduler when the report has arrived.
4. Slots of a node that is known to be down are not used; those of one that is up again are all idle. A task that a
   failure has lost goes before the others of its job, which keeps its place in the queue.

With resources, or preemption, the first task goes, of the nodes on which it fits, to the one that has gained room
longest ago. Where it fits on none, it waits, and none passes it.

With `order` "fair" or "capacity" each tenant has a queue, as have jobs without tenant. The next task is that of the
tenant with the smallest dominant share of the cluster (the share of slots) over its weight (`weights`, as in weighted
DRF), or over its guarantee (`guarantees`), so that those below their guarantees go before all others. A tenant whose
first task fits nowhere, or would exceed its ceiling (`ceilings`), is passed.

With preemption a task that fits on no node goes to one on which it would fit if tasks of the lowest priority ended,
else of the lowest two, and so on, up to those below its own. The scheduler goes by what it has placed there and does
not know to have ended; the node evicts what is necessary (actors/nodes/preemption.py). Tenants' shares do not evict.

**Deviations from the source.** A queue has no source; for shares see Ghodsi et al., Dominant Resource Fairness, NSDI
2011, and Apache Hadoop YARN, Capacity Scheduler. Their queues have children, and may preempt.
"""

from typing import NamedTuple

import numpy as np

from actors.failures import PROGRESS_BITS, evictions_of, is_known_down, receive_node_state
from actors.kernel.compiled import compiled, inlined
from actors.kernel.messages import ARRIVAL, LOST, read_lost, read_node_state
from actors.kernel.queue import NONE, wake
from actors.kernel.records import Records, records
from actors.nodes.messages import DISPATCH, DONE, read_done, read_evictions, send_placed
from actors.nodes.preemption import preempts
from actors.nodes.world import Rules, World
from actors.nodes.worlds import JOB_WORLDS
from actors.resources import node_slots
from actors.scheduler import ALL_ALIKE, NO_QUEUES_AT_NODES, Scheduler
from actors.schedulers.jobs import central_queue
from actors.schedulers.jobs.build import build_world
from actors.schedulers.jobs.late_binding import make_job_loop, next_arrival, note_attempt, on_done
from actors.schedulers.jobs.probing import NO_VERSION, ONE
from actors.setting import Setting
from workloads.errors import InputError

# What a central scheduler knows to be free on nodes, by what it placed and what ended: resources, or slots.
#
# A task counts as the most that a task of its job needs, since a report of an end names the job alone. Nodes stand in
# the order in which they last gained room. For each demand there is a place in that order before which no node has room
# for it: what nodes lose does not change that, and a node that gains goes to the end. So a search tests only nodes that
# were not found too full, and those that have gained room since.
#
# With preemption there is such an account for each priority: at level p, tasks of the p lowest priorities do not count,
# as they could be evicted. Level 0 is what is free. A job may use the levels up to its own, in that order.

MOST_LEVELS = 64  # each is an array of what is free on all nodes


class KnownRoom(NamedTuple):
    """What is free at L levels, and nodes in order of their last gain; R is 1 where tasks take slots."""

    capacity: np.ndarray  # [N, R]
    demand: np.ndarray  # [D, R] distinct ones
    of_job: np.ndarray  # [J] a row of those
    level: np.ndarray  # [J] the highest that the job may use
    counts_to: np.ndarray  # [J] the highest at which its tasks count
    free: np.ndarray  # [L, N, R]
    order: np.ndarray  # [L, 2 N] nodes; NONE where a node has gone to the end, or is down
    place: np.ndarray  # [L, N] of a node in that order; NONE if it is down
    added: np.ndarray  # [L] entries
    begin: np.ndarray  # [L, D] the first entry whose node may have room for a demand
    moved: np.ndarray  # [2 N + 1] scratch


def make_known_room(w: World, slots: np.ndarray) -> KnownRoom:
    """Return the room of empty nodes.

    Raises:
        InputError: with preemption, jobs have more than `MOST_LEVELS` priorities.
    """
    jobs, nodes = w.work.size, slots.size
    capacity, demand, of_job = w.room.capacity, w.room.demand, w.room.of_job
    if w.room.active == 0:
        capacity, demand = slots.astype(np.int64)[:, None], np.ones((1, 1), np.int64)
        of_job = np.zeros(jobs, np.int64)
    level = counts_to = np.zeros(jobs, np.int64)
    if w.preemption.most > 0:
        _, level = np.unique(w.priority, return_inverse=True)
        counts_to = np.where(w.priority < w.preemption.below, level, level.max())
    levels = int(level.max()) + 1
    if levels > MOST_LEVELS:
        raise InputError(
            f"jobs have {levels} priorities; one queue with preemption takes at most {MOST_LEVELS}"
        )
    return KnownRoom(
        capacity,
        demand,
        of_job,
        level,
        counts_to,
        free=np.repeat(capacity[None], levels, axis=0),
        order=np.tile(np.arange(2 * nodes, dtype=np.int64), (levels, 1)),
        place=np.tile(np.arange(nodes, dtype=np.int64), (levels, 1)),
        added=np.full(levels, nodes, np.int64),
        begin=np.zeros((levels, len(demand)), np.int64),
        moved=np.zeros(2 * nodes + 1, np.int64),
    )


@compiled
def node_for(known: KnownRoom, job: int) -> int:
    """Return the node that gained room longest ago, of those on which a task of the job fits; NONE if there is none.

    It is of the lowest level at which there is one.
    """
    demand = known.of_job[job]
    for level in range(known.level[job] + 1):
        i = known.begin[level, demand]
        while i < known.added[level] and not has_room(known, level, known.order[level, i], demand):
            i += 1
        known.begin[level, demand] = i
        if i < known.added[level]:
            return known.order[level, i]
    return NONE


@inlined
def has_room(known: KnownRoom, level: int, node: int, demand: int) -> bool:
    """Return whether a node has a demand free at a level; False of NONE."""
    resources, r = known.demand.shape[1], 0
    if node != NONE:
        while r < resources and known.free[level, node, r] >= known.demand[demand, r]:
            r += 1
    return node != NONE and r == resources


@inlined
def last_level(w: World, known: KnownRoom, job: int, evictions: int) -> int:
    """Return the highest level at which a task of the job counts that was evicted so often."""
    if w.preemption.most > 0 and evictions >= w.preemption.most:
        return np.int64(known.added.size - 1)
    return known.counts_to[job]


@inlined
def take_known(known: KnownRoom, node: int, job: int, last: int) -> None:
    """Take what a task of the job needs of what a node has free, at the levels up to `last`."""
    for level in range(last + 1):
        for r in range(known.demand.shape[1]):
            known.free[level, node, r] -= known.demand[known.of_job[job], r]


@compiled
def give_back(known: KnownRoom, node: int, job: int, last: int) -> None:
    """Give what a task of the job needs back to a node that is up, at the levels up to `last`."""
    for level in range(last + 1):
        for r in range(known.demand.shape[1]):
            # A task that was on its way when its node failed, and started when it was up again, was given back before.
            free = known.free[level, node, r] + known.demand[known.of_job[job], r]
            known.free[level, node, r] = min(free, known.capacity[node, r])
        to_end(known, level, node)


@compiled
def note_state(known: KnownRoom, node: int, is_down: bool) -> None:
    """Note that a node is down, or is up and empty."""
    for level in range(known.added.size):
        leave(known, level, node)
        if not is_down:
            for r in range(known.demand.shape[1]):
                known.free[level, node, r] = known.capacity[node, r]
            to_end(known, level, node)


@inlined
def to_end(known: KnownRoom, level: int, node: int) -> None:
    """Put a node at the end of the order of a level."""
    leave(known, level, node)
    if known.added[level] == known.order.shape[1]:
        drop_old(known, level)
    end = known.added[level]
    known.order[level, end], known.place[level, node], known.added[level] = node, end, end + 1


@inlined
def leave(known: KnownRoom, level: int, node: int) -> None:
    """Take a node out of the order of a level."""
    if known.place[level, node] != NONE:
        known.order[level, known.place[level, node]] = NONE
    known.place[level, node] = NONE


@compiled
def drop_old(known: KnownRoom, level: int) -> None:
    """Remove the entries without a node from the order of a level."""
    kept: int = 0
    for i in range(known.added[level]):
        known.moved[i] = kept
        node = known.order[level, i]
        if node != NONE:
            known.order[level, kept], known.place[level, node] = node, kept
            kept += 1
    known.moved[known.added[level]] = kept
    for demand in range(known.begin.shape[1]):
        known.begin[level, demand] = known.moved[known.begin[level, demand]]
    known.added[level] = kept


RING = np.dtype([("taken", "i8"), ("added", "i8")])  # idle slots taken from the ring, and added to it


class State(NamedTuple):
    """The scheduler's queues, and what it knows to be idle: slots, or room with resources."""

    queues: central_queue.Queues
    known: KnownRoom
    idle: np.ndarray  # [slots] ring of nodes with an idle slot, idle longest first
    ring: Records  # [1] RING
    free: np.ndarray  # [N] a node's slots in the ring
    most: int  # tasks placed at an event


@compiled
def dispatch(w: World, p: State, t: int, me: int) -> None:
    """Step 2: tasks to idle slots, or to nodes with room, as long as there are both."""
    queue = next_queue(w, p)
    for _ in range(p.most):
        if queue == NONE:
            break
        job, task = central_queue.take_next(w, p.queues, queue)
        central_queue.hold(w, p.queues, job, 1)
        send_placed(w, t, me, take_room(w, p, job, task), job, task, NONE, ONE, NO_VERSION)
        queue = next_queue(w, p)
    if queue != NONE:
        wake(w, t, me, DISPATCH, NONE, NONE, NONE)


@inlined
def next_queue(w: World, p: State) -> int:
    """Return the queue whose first task goes next, for which there is room; NONE if there is none."""
    best: int = NONE
    least = np.inf
    if uses_ring(w) and not has_idle_slot(p):
        return best
    for queue in range(p.queues.rows.size):
        if central_queue.waits(p.queues, queue):
            share = central_queue.weighted_share(p.queues, queue)
            if share < least and may_go(w, p, queue):
                best, least = queue, share
    return best


@inlined
def may_go(w: World, p: State, queue: int) -> bool:
    """Return whether the first task of a queue has room, and does not exceed a ceiling."""
    job = central_queue.first_job(p.queues, queue)
    return central_queue.tasks_below(w, p.queues, job, ONE) > 0 and (
        uses_ring(w) or node_for(p.known, job) != NONE
    )


@inlined
def uses_ring(w: World) -> bool:
    """Whether idle slots are in the ring; else there is `known`."""
    return w.room.active == 0 and not preempts(w)


@inlined
def take_room(w: World, p: State, job: int, task: int) -> int:
    """Take the slot, or the room, for a task of the job, which there is; return its node."""
    if uses_ring(w):
        return take_slot(p)
    node = node_for(p.known, job)
    take_known(p.known, node, job, last_level(w, p.known, job, evictions_of(w, task)))
    return node


@inlined
def has_idle_slot(p: State) -> bool:
    """Whether a slot is idle."""
    return p.ring.taken[0] < p.ring.added[0]


@inlined
def take_slot(p: State) -> int:
    """Take the slot that has been idle longest; return its node."""
    node = p.idle[p.ring.taken[0] % p.idle.size]
    p.ring.taken[0] += 1
    p.free[node] -= 1
    return node


@inlined
def add_slot(p: State, node: int) -> None:
    """Add an idle slot of the node to the ring."""
    p.idle[p.ring.added[0] % p.idle.size] = node
    p.ring.added[0] += 1
    p.free[node] += 1


@inlined
def note_end(w: World, p: State, t: int, me: int) -> None:
    """Step 3: a task has ended."""
    job, node, start, _ = read_done(w)
    on_done(w)
    leave_node(w, p, job, node, start, read_evictions(w))
    dispatch(w, p, t, me)


@inlined
def leave_node(w: World, p: State, job: int, node: int, start: int, evictions: int) -> None:
    """Let a task leave a node; it leaves no room there if the node has failed since it started (step 4)."""
    central_queue.hold(w, p.queues, job, -1)
    if w.faults.active == 1 and (is_known_down(w, node) or start < w.faults.actors.since[node]):
        return
    if not uses_ring(w):
        give_back(p.known, node, job, last_level(w, p.known, job, evictions))
    elif w.faults.active == 0 or p.free[node] < w.faults.actors.slots[node]:
        add_slot(p, node)


@compiled
def on_node_state(w: World, p: State) -> None:
    """Step 4: note that a node is down or up."""
    node, _, _ = read_node_state(w)
    if not receive_node_state(w):
        return
    if uses_ring(w):
        note_slots(w, p, node)
    else:
        note_state(p.known, node, is_known_down(w, node))
    if next_queue(w, p) != NONE:
        # The listener has heard this; the scheduler is the first after the nodes, and may be down itself.
        wake(w, w.queue.now.time[0], w.nodes.size, DISPATCH, NONE, NONE, NONE)


@inlined
def note_slots(w: World, p: State, node: int) -> None:
    """Let the slots of a node that is down leave the ring; those of one that is up are all idle."""
    idle, kept = p.idle, p.ring.taken[0]
    for i in range(p.ring.taken[0], p.ring.added[0]):
        if idle[i % idle.size] != node:
            idle[kept % idle.size] = idle[i % idle.size]
            kept += 1
    p.ring.added[0], p.free[node] = kept, 0
    if not is_known_down(w, node):
        for _ in range(w.faults.actors.slots[node]):
            add_slot(p, node)


@inlined
def on_lost(w: World, p: State, t: int, me: int) -> None:
    """Step 4: put a task that was lost, or evicted, in front of the others of its job."""
    job, task, node, history, start = read_lost(w)
    # What a failure has lost has not started, or before the node was up.
    leave_node(w, p, job, node, start, max(history >> PROGRESS_BITS, 1) - 1)
    note_attempt(w)
    central_queue.put_lost(w, p.queues, job, task)
    dispatch(w, p, t, me)


@inlined
def on_arrival(w: World, p: State, t: int, me: int, job: int) -> None:
    """Step 1: queue the tasks of a job."""
    next_arrival(w, me, job)
    central_queue.join(p.queues, job)
    dispatch(w, p, t, me)


advance = make_job_loop(
    __name__,
    State,
    {DONE: note_end, ARRIVAL: on_arrival, LOST: on_lost, DISPATCH: dispatch},
    on_node_state=on_node_state,
)


def build(setting: Setting) -> tuple[World, State]:
    """Make the world and the scheduler's state at time 0."""
    slots = setting.cluster.slots()
    # Every node's first slot, then every second one, …: tasks spread over the nodes.
    nth = np.concatenate([np.arange(s) for s in slots]) if slots.max() > 1 else np.zeros(slots.size, np.int64)
    idle = np.repeat(np.arange(slots.size, dtype=np.int64), slots)[np.argsort(nth, kind="stable")]
    most = min(int(node_slots(setting).sum()), setting.workload.num_tasks)
    world = build_world(setting, Rules(), most_sends=lambda _: most, schedulers=1)
    ring = records(RING, 1)
    ring.added[0] = idle.size
    queues = central_queue.make_queues(setting, world.priority, setting.parameters["order"])
    known = make_known_room(world, slots)
    return world, State(queues, known, idle, ring, slots.astype(np.int64), most)


CENTRAL_FIFO = Scheduler(
    name="central-fifo",
    title="one queue for all tasks at one scheduler",
    paper="-",
    parameters=central_queue.parameters_of(central_queue.ORDER),
    worlds=JOB_WORLDS,
    build=build,
    advance=advance,
    preempts=True,
    ignores=(*ALL_ALIKE, NO_QUEUES_AT_NODES),
    waits="queue",
)
