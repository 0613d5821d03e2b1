"""A user's own scheduler that probes: a class in plain Python whose methods handle the messages of its actors.

    class Sparrow:
        probe_ratio = 2.0

        def on_arrival(self, job, cluster):
            count = math.ceil(self.probe_ratio * job.num_tasks)
            cluster.probe(job, cluster.draw(job, count))

Each probe scheduler is an object of the class of its own, and so is each coordinator, and the central one that a class
with `central = True` has for long jobs: they share nothing, and results do not depend on how actors are divided among
partitions. Nodes are compiled: a probe waits in the node's queue, and when its turn comes the node asks for a task,
which it gets as long as the job has one left. What else a class handles costs a call to Python for each message, and
only if it has the method:

- `on_arrival(job, cluster)`: a job has arrived;
- `on_probe(job, node, cluster)`: a probe has come to a node; an answer that is false sends it back. It is called on an
  object that all nodes of a partition share: what it keeps, it must keep by node;
- `on_rejected(job, node, times, cluster)`: a probe has come back; `times` counts how often it has;
- `on_done(job, node, start_s, finish_s, cluster)`: a task of a job that arrived here has ended;
- `on_load(node, number, cluster)`: a node has answered `cluster.ask`;
- `on_tasks(job, count, cluster)`: another scheduler has handed over tasks of its job, for this one to place;
- `on_freed(job, node, start_s, finish_s, cluster)`: such a task, which this one placed, has ended;
- `on_lost(job, node, cluster)`: such a task was lost with its node; `on_tasks` brings it again;
- `on_wake(number, cluster)`: a time that `cluster.wake` asked for has come, such as for heartbeats;
- `on_message(sender, numbers, cluster)`: another scheduler has sent a message.

Attributes of the class are parameters. Six have a meaning: `schedulers` (10), `coordinators` (0: schedulers to which no
job comes), `central` (False), `refuse_behind_long` (False: nodes with long work send probes of short jobs back, without
a call to Python), and, as in Hawk, `steal_attempts` (0) and `steal_limit` (10,000).
"""

import inspect
import math
import pickle
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from actors import constraints
from actors.conditions import NS, read_only
from actors.failures import draw_available_node, draw_known_up, is_down, is_known_down, receive_node_state
from actors.kernel.compiled import compiled, direct, entry, inlined
from actors.kernel.cost import take
from actors.kernel.message_kinds import KINDS
from actors.kernel.messages import ARRIVAL, FAIL, LOST, NODE_DOWN, NODE_UP, read_job, read_lost
from actors.kernel.queue import MESSAGE, MOST_ACTORS, NEVER, NONE, PYTHON, RUNNING, SOURCE_SHIFT
from actors.kernel.random import AGAIN, OWN_DRAWS, below, random_bits
from actors.kernel.sums import carry, multiple, pack, total_ns
from actors.nodes import messages
from actors.nodes.failing import is_void
from actors.nodes.messages import DONE, REJECTED
from actors.nodes.reporting import Loads, add_load, make_loads
from actors.nodes.stealing import Stealing, on_steal, start_stealing
from actors.nodes.waiting import length_of
from actors.nodes.worker import node_event, serve
from actors.nodes.world import N_AGAIN, N_PLACEMENTS, N_PROBES, N_REJECTIONS, N_SENT_AGAIN, Rules, World
from actors.nodes.worlds import JOB_WORLDS
from actors.resources import idle_slots, node_slots
from actors.scheduler import Parameter, Scheduler
from actors.schedulers.jobs import late_binding, probing
from actors.schedulers.jobs.build import build_world, long_jobs, most_tasks
from actors.schedulers.jobs.job_info import is_long
from actors.schedulers.jobs.sparrow import SCHEDULERS
from actors.schedulers.user.jobs_central import Job, JobsHost
from actors.schedulers.user.messages import (
    OWN_ASK,
    OWN_FREED,
    OWN_LOAD,
    OWN_MESSAGE,
    OWN_TASKS,
    OWN_WAKE,
    read_own_ask,
    send_own_ask,
    send_own_ask_again,
    send_own_freed,
    send_own_load,
    send_own_message,
    send_own_tasks,
    send_own_wake,
)
from actors.schedulers.user.own import OwnHost, described, first_outside, unpickled
from actors.setting import Setting
from workloads.errors import InputError

MOST_PER_TASK, MOST_ANYWAY = 8, 64
"""How many messages an event may send: for each task of the largest job, and besides."""


class State(NamedTuple):
    """What the kernel keeps for a user's probing scheduler."""

    probing: probing.Probing
    stealing: Stealing
    placed: np.ndarray  # [J] 1: tasks of the job were bound to nodes, by `Cluster.place`
    drawn: np.ndarray  # [J] 1: its scheduler has drawn the nodes that `sparrow` draws
    draws: np.ndarray  # [actors] what each has drawn besides
    loads: Loads  # of tasks that wait or run; empty where no node is asked
    # [T] the scheduler that its job's handed a task over to, or NONE; empty without `on_tasks`
    handed: np.ndarray
    # [T] known to the node: the scheduler, if not its job's, that placed the task there, or NONE; else empty, too
    placer: np.ndarray
    refuses: bool  # nodes with long work refuse probes of short jobs
    asks_nodes: bool  # the class has `on_probe`
    asks_ends: bool  # the class has `on_done`
    asks_freed: bool  # the class has `on_freed`


@entry
def draw(w: World, p: State, me: int, job: int, count: int) -> None:
    """Draw nodes on which the job's tasks fit into `p.probing.nodes`: at first those of `sparrow`, then others."""
    if me == w.work.home[job] and p.drawn[job] == 0:
        p.drawn[job] = 1
        probing.draw_nodes(w, p.probing, job, count)
        return
    probing.draw_places(w, p.probing, OWN_DRAWS, me, p.draws[me], count, constraints.eligible_count(w, job))
    p.draws[me] += count
    if constraints.is_constrained(w, job):
        for i in range(count):
            p.probing.nodes[i] = constraints.eligible_node(w, job, p.probing.nodes[i])


@entry
def draw_one(w: World, p: State, me: int, job: int, first: int) -> int:
    """Draw a node for a job from `first` on that is up, another at each call; NONE if there is none.

    Where tasks of the job do not fit on each node, it is one on which they do, from `first` on if there is one there.
    """
    if constraints.is_constrained(w, job):
        return draw_one_that_fits(w, p, me, job, first)
    if me != w.work.home[job]:
        node, p.draws[me] = draw_known_up(w, OWN_DRAWS, me, p.draws[me], first)
        return node
    if w.faults.active == 1:
        return draw_available_node(w, job, first)
    w.jobs.draws[job] += 1
    return first + below(random_bits(w.seed, AGAIN, job, w.jobs.draws[job]), w.nodes.size - first)


@compiled
def draw_one_that_fits(w: World, p: State, me: int, job: int, first: int) -> int:
    """Draw such a node: a random one, or the next one after it that is up; NONE if there is none."""
    begin, end = constraints.first_place(w, job, first), constraints.eligible_count(w, job)
    p.draws[me] += 1
    at = below(random_bits(w.seed, OWN_DRAWS, me, p.draws[me]), end - begin)
    for i in range(end - begin):
        node = constraints.eligible_node(w, job, begin + (at + i) % (end - begin))
        if not is_known_down(w, node):
            return node
    return NONE


@entry
def send_probes_to(w: World, p: State, t: int, me: int, job: int, count: int, this_round: int) -> None:
    """Probe the first `count` nodes of `p.probing.nodes`."""
    w.counts[N_PROBES if this_round == probing.FIRST_ROUND else N_AGAIN] += count
    left = late_binding.tasks_left(w, job)
    for i in range(count):
        probing.probe(w, t, me, p.probing.nodes[i], job, left, this_round, probing.NO_VERSION)


@entry
def place_next(w: World, p: State, t: int, me: int, job: int, count: int) -> None:
    """Bind the next `count` tasks of a job to the nodes of `p.probing.nodes`."""
    p.placed[job] = 1
    w.counts[N_PLACEMENTS] += count
    for i in range(count):
        task = w.jobs.next_task[job]
        w.jobs.next_task[job] = task + 1
        messages.send_placed(
            w, t, me, p.probing.nodes[i], job, task, NONE, late_binding.tasks_left(w, job), probing.NO_VERSION
        )


@entry
def place_handed(w: World, p: State, t: int, me: int, job: int, first: int, begin: int, count: int) -> None:
    """Bind tasks that were handed over, `first` and on, to the nodes of `p.probing.nodes` from `begin` on."""
    w.counts[N_PLACEMENTS] += count
    for i in range(count):
        messages.send_placed(
            w, t, me, p.probing.nodes[begin + i], job, first + i, NONE, probing.ONE, probing.NO_VERSION
        )


@entry
def hand_next(w: World, p: State, t: int, me: int, job: int, to: int, count: int) -> None:
    """Hand the next `count` tasks of a job over to another scheduler."""
    first = w.jobs.next_task[job]
    w.jobs.next_task[job] = first + count
    for task in range(first, first + count):
        p.handed[task] = to
    send_own_tasks(w, t, me, to, job, first, count, NONE)


@entry
def ask_nodes(w: World, p: State, t: int, me: int, count: int, number: int) -> None:
    """Ask the first `count` nodes of `p.probing.nodes` for their load."""
    for i in range(count):
        send_own_ask(w, t, me, p.probing.nodes[i], number, me)


@entry
def load_of(w: World, p: State, t: int, node: int) -> tuple[int, int, int]:
    """Return what a node knows of its load: entries that wait, its work left, and whether some of it is long.

    The work of tasks that wait or run and of probes that wait, by estimates, less the time for which the task has run
    that started last, as messages state it.
    """
    length, work, wholes = np.int64(0), p.loads.work[node], p.loads.wholes[node]
    entry = w.nodes.head[node]
    while entry != NONE:
        entries = length_of(w.entries, entry)
        length += entries
        if w.entries.task[entry] == NONE:
            more, more_wholes = multiple(w.work.estimate[w.entries.job[entry]], entries)
            work, wholes = carry(work + more, wholes + more_wholes)
        entry = w.entries.next[entry]
    running = w.nodes.running[node]
    if running != NONE:
        work, wholes = carry(work - min(t - w.nodes.started[node], w.work.estimate[running]), wholes)
    return length, pack(max(work, np.int64(0)), wholes), np.int64(w.nodes.longs[node] > 0)


@inlined
def turn_back(w: World, t: int, node: int) -> None:
    """Send the probe that is handled back to its scheduler."""
    job, _, _, this_round, _, _ = messages.read_probe(w)
    w.counts[N_REJECTIONS] += 1
    messages.send_rejected(w, t, node, w.work.home[job], job, probing.NO_VERSION, this_round + 1)


@inlined
def sender(w: World) -> int:
    """Return the actor that sent the message that is handled."""
    return (w.queue.now.key[0] >> SOURCE_SHIFT) & np.int64(MOST_ACTORS - 1)


@compiled
def answer(w: World, p: State, t: int, node: int) -> None:
    """Answer a scheduler that asks a node for its load; a node that is down has no end of it, once that is detected."""
    question, asker = read_own_ask(w)
    length, work, has_long = np.int64(0), NEVER, np.int64(0)
    if not is_down(w, node):
        length, work, has_long = load_of(w, p, t, node)
    elif w.faults.actors.detected[node] == 0:
        # Messages of an instant come before the detection: one nanosecond later it is done.
        send_own_ask_again(w, w.faults.actors.detect[node] + 1, node, question, asker)
        return
    send_own_load(w, t, node, asker, node, question, work, has_long, idle_slots(w, node), length)


@compiled
def follow(w: World, p: State, t: int, node: int) -> None:
    """Note what a message to a node changes of its load and of who placed its tasks, and report a task that ends."""
    kind = w.queue.now.kind[0]
    if kind == FAIL:
        if p.loads.work.size > 0:
            p.loads.work[node], p.loads.wholes[node] = 0, 0
        return
    if w.faults.active == 1 and is_void(w, node):
        return
    if kind == messages.PLACED or kind == messages.TASK:
        job, task, _ = messages.read_task_sent(w)
        start = NONE
    elif kind == messages.TASK_END:
        job, task, start = messages.read_task_end(w)
    else:
        return
    if p.loads.work.size > 0:
        estimate = w.work.estimate[job]
        add_load(p.loads, node, -estimate if kind == messages.TASK_END else estimate)
    if p.placer.size == 0:
        return
    if kind == messages.TASK_END:
        if p.placer[task] != NONE and p.asks_freed:
            send_own_freed(w, t, node, p.placer[task], job, node, start, t)
    else:
        who = sender(w)
        p.placer[task] = NONE if who == w.work.home[job] else who


@compiled
def handle_at_node(w: World, p: State, t: int, node: int) -> None:
    """Handle a message to a node; a node that falls idle steals."""
    if p.loads.work.size > 0 or p.placer.size > 0:
        follow(w, p, t, node)
    if node_event(w, node) and p.stealing.attempts > 0 and start_stealing(w, p.stealing, t, node):
        serve(w, t, node)


@compiled
def handle_lost(w: World, p: State, t: int, me: int) -> None:
    """Have a lost task or probe run again; a task that was handed over goes to the same scheduler again."""
    job, task, lost_at, _, _ = read_lost(w)
    if p.placed[job] == 0 and (task == NONE or p.handed.size == 0 or p.handed[task] == NONE):
        late_binding.probe_again(w, t, me, probing.FIRST_ROUND)
    elif p.handed.size == 0 or p.handed[task] == NONE:
        late_binding.send_again(w, t, me, p.stealing.first)
    else:
        late_binding.note_attempt(w)
        w.counts[N_SENT_AGAIN] += 1
        send_own_tasks(w, t, me, p.handed[task], job, task, probing.ONE, lost_at)


@entry
def advance(w: World, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    message = w.queue.now
    for _ in range(most):
        why = take(w, until)
        if why != RUNNING:
            return why
        t, kind, me = message.time[0], message.kind[0], message.dst[0]
        if kind == messages.STEAL:
            on_steal(w, p.stealing, t, me)
        elif kind == OWN_ASK:
            answer(w, p, t, me)
        elif me < w.nodes.size:
            if kind == messages.PROBE and p.refuses and not is_long(w, read_job(w)) and w.nodes.longs[me] > 0:
                turn_back(w, t, me)
                continue
            if kind == messages.PROBE and p.asks_nodes:
                return PYTHON
            handle_at_node(w, p, t, me)
        elif kind == messages.REQUEST:
            late_binding.on_request(w, t, me)
        elif kind == messages.DONE:
            late_binding.on_done(w)
            if p.asks_ends:
                return PYTHON
        elif kind == ARRIVAL:
            late_binding.next_arrival(w, me, read_job(w))
            return PYTHON
        elif kind == LOST:
            handle_lost(w, p, t, me)
        elif kind == NODE_DOWN or kind == NODE_UP:
            receive_node_state(w)
        else:
            return PYTHON
    return RUNNING


def build(setting: Setting) -> tuple[World, State]:
    """Make the world and the scheduler's state at time 0."""
    p, own = setting.parameters, setting.scheduler.own

    def handles(name: str) -> bool:
        return callable(getattr(own, name, None))

    nodes, most = setting.cluster.num_nodes, most_tasks(setting)
    first = setting.cluster.partition(setting.long_partition)
    room = MOST_PER_TASK * most + MOST_ANYWAY
    limit = min(int(p.get("steal_limit", 10_000)), room)
    world = build_world(
        setting,
        Rules(),
        most_sends=lambda tasks: room,
        schedulers=int(p.get("schedulers", 10)),
        coordinators=int(p.get("coordinators", 0)),
        central_jobs=long_jobs(setting) if p.get("central", False) else None,
    )
    attempts = int(p.get("steal_attempts", 0))
    asked = handles("on_load") or handles("on_probe")
    handed = np.full(world.duration.size if handles("on_tasks") else 0, NONE)
    return world, State(
        probing.make_probing(1.0, room, False, nodes, 1),
        Stealing(attempts, limit, False, False, first, np.zeros(nodes, np.int64)),
        placed=np.zeros(world.work.size, np.int64),
        drawn=np.zeros(world.work.size, np.int64),
        draws=np.zeros(world.queue.seq.size, np.int64),
        loads=make_loads(nodes if asked else 0, 0),
        handed=handed,
        placer=handed.copy(),
        refuses=bool(p.get("refuse_behind_long", False)),
        asks_nodes=handles("on_probe"),
        asks_ends=handles("on_done"),
        asks_freed=handles("on_freed"),
    )


MEANT = {
    p.name: p
    for p in (
        SCHEDULERS,
        Parameter("coordinators", 0, "integer", "schedulers to which no job comes", low=0, high=10_000),
        Parameter("central", False, "flag", "a central scheduler for long jobs"),
        Parameter("refuse_behind_long", False, "flag", "nodes with long work send probes of short jobs back"),
        Parameter("steal_attempts", 0, "integer", "victims asked before a thief gives up", low=0, high=1000),
        Parameter(
            "steal_limit", 10_000, "integer", "the most probes taken from one victim", low=1, high=1_000_000
        ),
    )
}
"""Attributes of a class that have a meaning, by name."""


def with_meanings(parameters: Iterable[Parameter], scheduler: str) -> tuple[Parameter, ...]:
    """Return the parameters of a user's class or object, those that have a meaning with their kinds and bounds.

    Raises:
        InputError: the class's own value of one of these is invalid.
    """
    return tuple(
        replace(known, default=known.parse(p.default, scheduler)) if (known := MEANT.get(p.name)) else p
        for p in parameters
    )


@dataclass(frozen=True, slots=True)
class NodeView:
    """What a node tells of itself, in `on_probe` there and then, in `on_load` as it was when it answered.

    Attributes:
        node_id: its number.
        idle_slots: slots without a task, and not held for an answer.
        has_long: a long task, or a probe of a long job, runs or waits there.
        queued: tasks and probes that wait.
        work_left_s: estimated work of tasks and probes that wait, and of tasks that run, less the time for which the
            one has run that started last; infinite: the node is down.
    """

    node_id: int
    idle_slots: int
    has_long: bool
    queued: int
    work_left_s: float


class Cluster:
    """What a handler of a user's scheduler can do, and what it knows. It is valid until the handler ends.

    Attributes:
        now_s: virtual time.
        num_nodes: nodes are 0 to `num_nodes` - 1.
        slots: [N] tasks that each node can run at once; read-only.
        first_long: nodes below it are for short jobs alone.
        capacity: [N] what nodes have, by resource; empty in runs where tasks take slots; read-only.
        scheduler: which scheduler this is, from 0: probe schedulers, then coordinators, then the central one.
        num_schedulers: probe schedulers.
        coordinators: numbers of the coordinators.
    """

    def __init__(self, host: Any, slots: np.ndarray, first_long: int, schedulers: int, coordinators: int):
        self._host, self.num_nodes, self.first_long = host, slots.size, first_long
        self.capacity: dict[str, np.ndarray] = host.capacity
        self.slots = read_only(slots.view())
        self.num_schedulers = schedulers
        self.coordinators = range(schedulers, schedulers + coordinators)
        self.now_s, self.scheduler = 0.0, int(NONE)
        self._held: dict[tuple[int, int], deque[tuple[int, int]]] = {}  # tasks handed over, by actor and job

    def draw(self, job: Job, count: int) -> np.ndarray:
        """Return `count` different random nodes, others at each call; at first those that `sparrow` draws for the job.

        Tasks of the job fit on them. Where there are fewer such nodes, all come in turn before any comes again.
        """
        world, state, _, me = self._at
        count = self._counted("draw", count)
        self._draw(world, state, me, job.job_id, count)
        return state.probing.nodes[:count].copy()

    def draw_again(self, job: Job, first: int = 0) -> int:
        """Return another random node that is up and on which the job's tasks fit, from `first` on; -1 for none.

        Where no node from `first` on is large enough, it is one before it.
        """
        world, state, _, me = self._at
        if not 0 <= first < self.num_nodes:
            raise self._error("draw_again", f"first node {first}, which is not there")
        return int(self._draw_one(world, state, me, job.job_id, int(first)))

    def probe(self, job: Job, nodes: Any, times: int = 0) -> None:
        """Send a probe to each of some nodes; `times` is how often it has been sent back, 0 for a first one."""
        self._arrived_here("probe", job)
        count = self._to("probe", nodes, job)
        self._probe(*self._at, job.job_id, count, int(times))

    def place(self, job: Job, nodes: Any) -> None:
        """Bind the job's next tasks to nodes, one to each: of a job that arrived here, or was handed over."""
        index, me = job.job_id, self._at[3]
        held = self._held.get((me, index))
        if held is not None:
            left, here = sum(size for _, size in held), " here"
        elif self._homes.item(index) == me:
            left, here = self._left(index), ""
        else:
            left, here = 0, " here"
        count = self._to("place", nodes, job)
        if count > left:
            raise self._error("place", f"{count} nodes, and job {index} has {left} tasks left{here}")
        if held is None:
            self._place(*self._at, index, count)
            return
        begin = 0
        while begin < count:
            first, size = held.popleft()
            now = min(size, count - begin)
            self._place_handed(*self._at, index, first, begin, now)
            begin += now
            if now < size:
                held.appendleft((first + now, size - now))
        if count == left:
            del self._held[me, index]

    def hand_over(self, job: Job, scheduler: int, count: int) -> None:
        """Have another scheduler place the job's next `count` tasks; its `on_tasks` gets them a network delay later."""
        self._host.require("on_tasks", "tasks are handed over")
        self._arrived_here("hand_over", job)
        to, left = self._other("hand_over", scheduler), self._left(job.job_id)
        if not 1 <= count <= left:
            raise self._error("hand_over", f"{count} tasks, and job {job.job_id} has {left} left")
        if to == self._at[3]:
            raise self._error("hand_over", f"scheduler {scheduler}, which it is")
        self._counted("hand_over", 1)
        self._hand(*self._at, job.job_id, to, int(count))

    def ask(self, nodes: Any, number: int = 0) -> None:
        """Ask nodes how much work they have; `on_load` gets each answer, with the number, after two network delays."""
        self._host.require("on_load", "it asks nodes for their load")
        self._ask_nodes(*self._at, self._to("ask", nodes), int(number))

    def is_down(self, node: int) -> bool:
        """Return whether a node is down, as far as schedulers know."""
        if not 0 <= node < self.num_nodes:
            raise self._error("is_down", f"node {node}; node ids are 0 to {self.num_nodes - 1}")
        faults = self._at[0].faults
        return bool(faults.active and not int(faults.actors.heard[node]) & 1)

    def send(self, scheduler: int, a: int = 0, b: int = 0, c: int = 0) -> None:
        """Send three whole numbers to another scheduler; `on_message` gets them after the network delay."""
        world, _, t, me = self._at
        to = self._other("send", scheduler)
        self._counted("send", 1)
        self._send(world, t, me, to, int(a), int(b), int(c))

    def wake(self, after_s: float, number: int = 0) -> None:
        """Have `on_wake(number)` called after a time."""
        world, _, t, me = self._at
        if not (math.isfinite(after_s) and after_s >= 0):
            raise self._error("wake", f"{after_s!r} s; want a time from 0 on")
        self._counted("wake", 1)
        self._wake(world, t + round(after_s * NS), me, int(number))

    def _compile(self, world: Any, state: State) -> None:
        """Compile what the methods call."""
        n = np.int64(0)
        self._draw = direct(draw, world, state, n, n, n)
        self._draw_one = direct(draw_one, world, state, n, n, n)
        self._probe = direct(send_probes_to, world, state, n, n, n, n, n)
        self._place = direct(place_next, world, state, n, n, n, n)
        self._send = direct(send_own_message, world, n, n, n, n, n, n)
        self._wake = direct(send_own_wake, world, n, n, n)
        if state.loads.work.size:
            self._ask_nodes = direct(ask_nodes, world, state, n, n, n, n)
        if state.handed.size:
            self._hand = direct(hand_next, world, state, n, n, n, n, n)
            self._place_handed = direct(place_handed, world, state, n, n, n, n, n, n)
        self._last_scheduler = world.queue.seq.size - 2 - self.num_nodes
        self._homes = np.asarray(world.work.home)
        self._ends, self._next = np.asarray(world.work.end_task), np.asarray(world.jobs.next_task)

    def _begin(self, world: Any, state: State, time: int, actor: int) -> None:
        """Note for which actor, and when, a handler is called."""
        self._at, self._sends = (world, state, time, actor), 0
        self.now_s = time / NS
        self.scheduler = actor - self.num_nodes if actor >= self.num_nodes else int(NONE)

    def _error(self, what: str, got: str) -> InputError:
        return InputError(f"scheduler {self._host.name}: {what}() got {got}")

    def _left(self, index: int) -> int:
        """Return how many tasks of a job its scheduler has not handed out."""
        return int(self._ends.item(index) - self._next.item(index))

    def _other(self, what: str, scheduler: int) -> int:
        """Return the actor of a scheduler's number."""
        if not 0 <= scheduler <= self._last_scheduler:
            raise self._error(what, f"scheduler {scheduler}; they are 0 to {self._last_scheduler}")
        return self.num_nodes + int(scheduler)

    def _arrived_here(self, what: str, job: Job) -> None:
        """Refuse a job of another scheduler: that one alone knows how many of its tasks are left."""
        home = self._homes.item(job.job_id)
        if home != self._at[3]:
            there = f"job {job.job_id}, which arrived at scheduler {home - self.num_nodes}"
            raise self._error(what, f"{there}; only that one can do this")

    def _to(self, what: str, nodes: Any, job: Job | None = None) -> int:
        """Put node ids where the kernel reads them; return how many. Tasks of a job that is given must fit there."""
        if job is not None and self.capacity:
            self._check_fits(what, nodes, job)
        drawn = self._at[1].probing.nodes
        only = nodes[0] if type(nodes) is list and len(nodes) == 1 else None
        if type(only) is int and 0 <= only < self.num_nodes:
            drawn[0] = only
            return self._counted(what, 1)
        found = np.asarray(nodes)
        if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
            raise self._error(what, f"{found.dtype} of shape {found.shape}; want node ids")
        if (wrong := first_outside(found, self.num_nodes)) is not None:
            raise self._error(what, f"node {wrong}; node ids are 0 to {self.num_nodes - 1}")
        count = self._counted(what, found.size)
        drawn[:count] = found
        return count

    def _check_fits(self, what: str, nodes: Any, job: Job) -> None:
        """Refuse a node that is too small: an entry of the job would wait there for ever."""
        found = np.asarray(nodes)
        if found.ndim == 1 and found.dtype.kind in "iu" and first_outside(found, self.num_nodes) is None:
            known = self._host.known(job)  # whatever the class has changed of its own
            self._host.check_fits(found, known, f"{what}() got", "cluster.capacity")

    def _counted(self, what: str, count: int) -> int:
        """Count messages that one handler sends.

        Raises:
            InputError: they are more than there is room for.
        """
        self._sends += 0 if what == "draw" else count
        most = self._at[1].probing.nodes.size
        if count < 0 or max(count, self._sends) > most:
            raise InputError(
                f"scheduler {self._host.name}: {what}() of {count} nodes or messages; a handler sends at most {most:,}"
                f" ({MOST_PER_TASK} for each task of the largest job, and {MOST_ANYWAY} more)"
            )
        return int(count)


KEPT_JOBS = 1 << 16
MESSAGE_WORDS = MESSAGE.itemsize // 8


def wrap(own: Any, name: str | None = None) -> Scheduler:
    """Return a scheduler of a user's object or class that has `on_arrival(job, cluster)`.

    Raises:
        InputError: an argument of the class has no default, or an attribute with a meaning has an invalid value.
    """
    face = described(own, name, "a user's probing scheduler")
    face["parameters"] = with_meanings(face["parameters"], face["name"])
    kind = own if isinstance(own, type) else type(own)
    return Scheduler(
        **face,
        worlds=JOB_WORLDS,
        build=build,
        advance=advance,
        host=lambda setting: Host(own, setting),
        remade=(wrap, (own, name)),
        hybrid=bool(getattr(kind, "central", False)),
    )


def _sender(key: int) -> int:
    """Return the actor that sent a message, by the message's key."""
    return (key >> SOURCE_SHIFT) & (MOST_ACTORS - 1)


class Host(JobsHost):
    """The Python side of an emulation: calls the handlers."""

    def __init__(self, own: Any, setting: Setting):
        self._own, self._setting = own, setting
        self.schedulers: dict[int, Any] = {}  # by actor; that of the nodes by NONE
        super().__init__(own, setting)
        self.schedulers[int(NONE)] = self.scheduler

    @cached_property
    def _cluster(self) -> Cluster:
        """What handlers get; made before `start` is called."""
        parameters, cluster = self._setting.parameters, self._setting.cluster
        counts = (int(parameters.get("schedulers", 10)), int(parameters.get("coordinators", 0)))
        first_long = cluster.partition(self._setting.long_partition or 1.0)
        return Cluster(self, node_slots(self._setting), first_long, *counts)

    def start_arguments(self, setting: Setting) -> tuple[Any, ...]:
        """Return what `start` gets: the number of nodes, a seed of the object's own, and `cluster` if it takes that."""
        index = self._cluster.scheduler
        seed = setting.seed
        if index >= 0:
            seed = int(np.random.SeedSequence(seed, spawn_key=(index,)).generate_state(1, np.uint64)[0] >> 1)
        given = (setting.cluster.num_nodes, seed, self._cluster)
        try:
            inspect.signature(self.scheduler.start).bind(*given)
        except (TypeError, ValueError):  # it takes two, or is written in C
            return given[:2]
        return given

    def compile(self, world: Any, state: State) -> None:
        """Compile the functions that the host calls."""
        self._cluster._compile(world, state)
        if state.asks_nodes:
            n = np.int64(0)
            self._accept = direct(handle_at_node, world, state, n, n)
            self._reject = direct(turn_back, world, n, n)
            self._load = direct(load_of, world, state, n, n)
        self._seen: Any = None
        self._job = lru_cache(KEPT_JOBS)(partial(self.describe, world))

    def __call__(self, world: Any, state: State) -> None:
        """Call the handler of the message at which the loop has stopped."""
        if world is not self._seen:
            self._seen, self._message = world, np.asarray(world.queue.now).view(np.int64)[:MESSAGE_WORDS]
        time, key, kind, actor, *columns = self._message.tolist()
        carried = KINDS[kind].read(columns)
        cluster = self._cluster
        cluster._begin(world, state, time, actor)
        if actor < cluster.num_nodes:
            self._probed(world, state, time, actor, carried["job"])
            return
        scheduler = self.schedulers.get(actor)
        self.scheduler = self._made(actor) if scheduler is None else scheduler
        if kind == ARRIVAL:
            job = carried["job"]
            self.ask("on_arrival", self._job(job), cluster, about=f" (job {job})")
        elif kind == DONE or kind == OWN_FREED:
            name = "on_done" if kind == DONE else "on_freed"
            start_s, finish_s = carried["start"] / NS, carried["finish"] / NS
            self.ask(name, self._job(carried["job"]), carried["node"], start_s, finish_s, cluster)
        elif kind == OWN_TASKS:
            self._handed_over(actor, *carried.values())
        elif kind == OWN_LOAD:
            node, question, work_left, has_long, idle, waiting = carried.values()
            work_left_s = math.inf if work_left >= NEVER else total_ns(work_left) / NS
            view = NodeView(node, idle, bool(has_long), waiting, work_left_s)
            self.ask("on_load", view, question, cluster)
        elif kind == REJECTED:
            self.require("on_rejected", "a probe came back")
            self.ask("on_rejected", self._job(carried["job"]), _sender(key), carried["round"], cluster)
        elif kind == OWN_WAKE:
            self.require("on_wake", "it asked to be woken")
            self.ask("on_wake", *carried.values(), cluster)
        elif kind == OWN_MESSAGE:
            self.require("on_message", "a message came")
            self.ask("on_message", _sender(key) - cluster.num_nodes, tuple(carried.values()), cluster)

    def _probed(self, world: Any, state: State, t: int, node: int, job: int) -> None:
        """Ask whether a node accepts a probe."""
        self.scheduler = self.schedulers[int(NONE)]
        queued, work, has_long = self._load(world, state, t, node)
        idle = int(idle_slots(world, node))
        view = NodeView(node, idle, bool(has_long), int(queued), total_ns(int(work)) / NS)
        answer = self.ask("on_probe", self._job(job), view, self._cluster)
        try:
            accepts = bool(answer)
        except BaseException as error:  # such as of an array
            raise self._raised("on_probe", error) from error
        if accepts:
            self._accept(world, state, t, node)
        else:
            self._reject(world, t, node)

    def _handed_over(self, actor: int, job: int, first: int, count: int, lost_at: int) -> None:
        """Note tasks that another scheduler has handed over, or that were lost with their node, and tell of them."""
        self._cluster._held.setdefault((actor, job), deque()).append((first, count))
        if lost_at != NONE and callable(getattr(self.scheduler, "on_lost", None)):
            self.ask("on_lost", self._job(job), lost_at, self._cluster)
        self.ask("on_tasks", self._job(job), count, self._cluster)

    def require(self, name: str, why: str) -> None:
        """Refuse a scheduler that lacks a method."""
        if not callable(getattr(self.scheduler, name, None)):
            raise InputError(f"scheduler {self.name}: {why}, and it has no method {name}")

    def _made(self, actor: int) -> Any:
        """Return the object of an actor, made when its first message comes."""
        OwnHost.__init__(self, self._own, self._setting)
        self.schedulers[actor] = self.scheduler
        return self.scheduler

    def known(self, job: Job) -> Job:
        """Return what is known of a job, by its id."""
        found: Job = self._job(job.job_id)
        return found

    def save(self) -> bytes:
        """Return the objects of all actors, pickled, and what was handed over to each."""
        saved = {}
        for actor, own in self.schedulers.items():
            self.scheduler = own
            saved[actor] = super().save()
        return pickle.dumps((saved, self._cluster._held))

    def load(self, saved: bytes) -> None:
        """Restore what `save` saved."""
        kind = type(self.schedulers[int(NONE)])
        objects, self._cluster._held = pickle.loads(saved)
        self.schedulers = {actor: unpickled(own, kind) for actor, own in objects.items()}
        self.scheduler = self.schedulers[int(NONE)]
