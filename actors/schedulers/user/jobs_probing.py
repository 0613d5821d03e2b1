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

from typing import NamedTuple

import numpy as np

from actors import constraints
from actors.failures import draw_available_node, draw_known_up, is_down, is_known_down, receive_node_state
from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.cost import take
from actors.kernel.messages import ARRIVAL, FAIL, LOST, NODE_DOWN, NODE_UP, read_job, read_lost
from actors.kernel.queue import MOST_ACTORS, NEVER, NONE, PYTHON, RUNNING, SOURCE_SHIFT
from actors.kernel.random import AGAIN, OWN_DRAWS, below, random_bits
from actors.kernel.sums import carry, multiple, pack
from actors.nodes import messages
from actors.nodes.failing import is_void
from actors.nodes.reporting import Loads, add_load, make_loads
from actors.nodes.stealing import Stealing, on_steal, start_stealing
from actors.nodes.waiting import length_of
from actors.nodes.worker import node_event, serve
from actors.nodes.world import N_AGAIN, N_PLACEMENTS, N_PROBES, N_REJECTIONS, N_SENT_AGAIN, Rules, World
from actors.resources import idle_slots
from actors.schedulers.jobs import late_binding, probing
from actors.schedulers.jobs.build import build_world, long_jobs, most_tasks
from actors.schedulers.jobs.job_info import is_long
from actors.schedulers.user.jobs_messages import (
    OWN_ASK,
    read_own_ask,
    send_own_ask,
    send_own_ask_again,
    send_own_freed,
    send_own_load,
    send_own_tasks,
)
from actors.setting import Setting

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
    # [T] known to the node: the scheduler, if not its job's, that placed the task there, or NONE; likewise empty
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
        here = length_of(w.entries, entry)
        length += here
        if w.entries.task[entry] == NONE:
            more, more_wholes = multiple(w.work.estimate[w.entries.job[entry]], here)
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
