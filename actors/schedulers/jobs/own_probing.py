"""A user's own scheduler that probes: a class in plain Python whose methods handle the messages of its actors.

    class Sparrow:
        probe_ratio = 2.0

        def on_arrival(self, job, cluster):
            count = math.ceil(self.probe_ratio * job.num_tasks)
            cluster.probe(job, cluster.draw(job, count))

Each probe scheduler is an object of the class of its own, and so is the central one that a class with `central = True`
has for long jobs: they share nothing, and results do not depend on how actors are divided among partitions. Nodes are
compiled: a probe waits in the node's queue, and when its turn comes the node asks for a task, which it gets as long as
the job has one left. What else a class handles costs a call to Python for each message, and only if it has the method:

- `on_arrival(job, cluster)`: a job has arrived;
- `on_probe(job, node, cluster)`: a probe has come to a node; what is false sends it back. It is called on an object
  that all nodes of a partition share, so it may keep nothing but by node;
- `on_rejected(job, node, times, cluster)`: a probe has come back, for the so many-th time;
- `on_done(job, node, start_s, finish_s, cluster)`: a task has ended;
- `on_wake(number, cluster)`: a time that `cluster.wake` asked for has come, such as for heartbeats;
- `on_message(sender, numbers, cluster)`: another scheduler has sent a message.

Attributes of the class are parameters. Five have a meaning: `schedulers` (10), `central` (False), `refuse_behind_long`
(False: nodes with long work send probes of short jobs back, without a call to Python), and, as in Hawk,
`steal_attempts` (0) and `steal_limit` (10,000).
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.cost import take
from actors.kernel.faults import draw_available_node, low_bits, receive_node_state
from actors.kernel.kinds import (
    ARRIVAL,
    DONE,
    LOST,
    NODE_DOWN,
    NODE_UP,
    OWN_MESSAGE,
    OWN_WAKE,
    PLACED,
    PROBE,
    REJECTED,
    REQUEST,
    STEAL,
)
from actors.kernel.queue import PYTHON, RUNNING, send, wake
from actors.kernel.random import AGAIN, below, random_bits
from actors.kernel.world import N_AGAIN, N_PLACEMENTS, N_PROBES, N_REJECTIONS, NONE, World
from actors.nodes.stealing import Stealing, make_stealing, on_steal, start_stealing
from actors.nodes.worker import node_event, serve
from actors.schedulers.jobs.build import build_world, fifo_rules, long_jobs, most_tasks
from actors.schedulers.jobs.job_info import is_long
from actors.schedulers.jobs.late_binding import (
    next_arrival,
    on_done,
    on_request,
    probe_again,
    send_again,
    tasks_left,
)
from actors.schedulers.jobs.probing import (
    FIRST_ROUND,
    NO_VERSION,
    Probing,
    draw_nodes,
    make_probing,
    send_probe,
)
from actors.setting import Setting

MOST_PER_TASK, MOST_ANYWAY = 8, 64
"""An event may send so many messages for each task of the largest job, and so many more."""


class State(NamedTuple):
    """What the kernel keeps for a user's probing scheduler."""

    probing: Probing
    stealing: Stealing
    placed: np.ndarray  # [J] 1: tasks of the job were bound to nodes, by `Cluster.place`
    refuses: bool  # nodes with long work refuse probes of short jobs
    asks_nodes: bool  # the class has `on_probe`
    asks_ends: bool  # the class has `on_done`


@entry
def draw(w: World, p: State, job: int, count: int) -> None:
    """Draw nodes for a job into `p.probing.nodes`."""
    draw_nodes(w, p.probing, job, count)


@entry
def draw_one(w: World, job: int, first: int) -> int:
    """Draw a node for a job from `first` on that is up; NONE if there is none. Each draw of a job is another one."""
    if w.faults.active == 1:
        return draw_available_node(w, job, first)
    w.jobs.draws[job] += 1
    return first + below(random_bits(w.seed, AGAIN, job, w.jobs.draws[job]), w.nodes.size - first)


@entry
def send_probes_to(w: World, p: State, t: int, me: int, job: int, count: int, this_round: int) -> None:
    """Probe the first `count` nodes of `p.probing.nodes`."""
    w.counts[N_PROBES if this_round == FIRST_ROUND else N_AGAIN] += count
    left = tasks_left(w, job)
    for i in range(count):
        send_probe(w, t, me, p.probing.nodes[i], job, left, this_round)


@entry
def place_next(w: World, p: State, t: int, me: int, job: int, count: int) -> None:
    """Bind the next `count` tasks of a job to the nodes of `p.probing.nodes`."""
    p.placed[job] = 1
    w.counts[N_PLACEMENTS] += count
    for i in range(count):
        task = w.jobs.next_task[job]
        w.jobs.next_task[job] = task + 1
        send(w, t, me, p.probing.nodes[i], PLACED, job, task, tasks_left(w, job), NO_VERSION)


@entry
def send_own(w: World, p: State, t: int, me: int, to: int, a: int, b: int, c: int) -> None:
    """Send a message of the user's to another scheduler."""
    send(w, t, me, to, OWN_MESSAGE, a, b, c, NONE)


@entry
def wake_own(w: World, p: State, time: int, me: int, number: int) -> None:
    """Wake a scheduler of the user's at a time."""
    wake(w, time, me, OWN_WAKE, number, NONE, NONE)


@entry
def accept_probe(w: World, p: State, t: int, node: int) -> None:
    """Put a probe into the queue of its node."""
    handle_at_node(w, p, t, node)


@entry
def reject_probe(w: World, p: State, t: int, node: int, job: int, times: int) -> None:
    """Send a probe back to its scheduler."""
    turn_back(w, t, node, job, times)


@inlined
def turn_back(w: World, t: int, node: int, job: int, times: int) -> None:
    """Send a probe back to its scheduler, for the so many-th time."""
    w.counts[N_REJECTIONS] += 1
    send(w, t, node, w.work.home[job], REJECTED, job, NONE, times, NONE)


@compiled
def handle_at_node(w: World, p: State, t: int, node: int) -> None:
    """Handle a message to a node; a node that falls idle steals."""
    if node_event(w, node) and p.stealing.attempts > 0 and start_stealing(w, p.stealing, t, node):
        serve(w, t, node)


@entry
def advance(w: World, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    message = w.queue.now
    for _ in range(most):
        why = take(w, until)
        if why != RUNNING:
            return why
        t, kind, me, job = message.time[0], message.kind[0], message.dst[0], message.a[0]
        if kind == STEAL:
            on_steal(w, p.stealing, t, me, job, message.b[0], message.c[0])
        elif me < w.nodes.size:
            if kind == PROBE and p.refuses and not is_long(w, job) and w.nodes.longs[me] > 0:
                turn_back(w, t, me, job, low_bits(message.c[0]) + 1)
                continue
            if kind == PROBE and p.asks_nodes:
                return PYTHON
            handle_at_node(w, p, t, me)
        elif kind == REQUEST:
            on_request(w, t, me, job, message.b[0])
        elif kind == DONE:
            on_done(w, job, message.c[0], message.d[0])
            if p.asks_ends:
                return PYTHON
        elif kind == ARRIVAL:
            next_arrival(w, me, job)
            return PYTHON
        elif kind == LOST:
            if p.placed[job] == 1:
                send_again(w, t, me, job, message.b[0], message.d[0], p.stealing.first)
            else:
                probe_again(w, t, me, job, message.b[0], message.d[0], FIRST_ROUND)
        elif kind == NODE_DOWN or kind == NODE_UP:
            receive_node_state(w)
        else:
            return PYTHON
    return RUNNING


def build(setting: Setting) -> tuple[World, State]:
    """Make the world and the scheduler's state at time 0."""
    p, own = setting.parameters, setting.scheduler.own
    nodes, most = setting.cluster.num_nodes, most_tasks(setting)
    first = setting.cluster.partition(setting.long_partition)
    room = MOST_PER_TASK * most + MOST_ANYWAY
    limit = min(int(p.get("steal_limit", 10_000)), room)
    world = build_world(
        setting,
        fifo_rules(),
        most_sends=lambda tasks: room,
        schedulers=int(p.get("schedulers", 10)),
        central_jobs=long_jobs(setting) if p.get("central", False) else None,
    )
    probing = make_probing(1.0, room, False, nodes, 1)
    attempts = int(p.get("steal_attempts", 0))
    return world, State(
        probing,
        make_stealing(nodes, attempts=attempts, limit=limit, at_random=False, instant=False, first=first),
        np.zeros(world.work.size, np.int64),
        bool(p.get("refuse_behind_long", False)),
        callable(getattr(own, "on_probe", None)),
        callable(getattr(own, "on_done", None)),
    )
