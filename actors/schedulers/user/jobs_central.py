"""A user's own central scheduler: a small class in plain Python that says where each task of a job goes.

    class FewestTasks:
        def place(self, job, nodes):
            order = np.argsort(nodes.tasks, kind="stable")
            return np.resize(order, job.num_tasks)

A task that a node's failure has lost comes to `place` again, as a job of one task with the same `job_id`. A node that
is known to be down has infinite work left; if `place` chooses it for a lost task, it is called again later.

The kernel stops at a job's arrival, binds the tasks to the nodes that the class returns, and continues. What the class
sees of the nodes is the scheduler's own bookkeeping, from what it assigned and what nodes reported.
"""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from actors.conditions import NS, read_only
from actors.failures import is_known_down
from actors.kernel.compiled import compiled, direct, entry, inlined
from actors.kernel.cost import take
from actors.kernel.counters import N_ARRIVED
from actors.kernel.message_kinds import KINDS
from actors.kernel.messages import ARRIVAL, LOST, NODE_DOWN, NODE_UP, read_lost, send_lost_again
from actors.kernel.queue import NONE, PYTHON, RUNNING
from actors.kernel.sums import WHOLE
from actors.nodes.messages import DONE, STARTED, read_done, send_placed
from actors.nodes.worker import node_event
from actors.nodes.world import N_SENT_AGAIN, Rules, World
from actors.nodes.worlds import JOB_WORLDS
from actors.resources import UNIT, node_slots, servers, work_at
from actors.scheduler import Scheduler
from actors.schedulers.jobs import least_work
from actors.schedulers.jobs.build import build_world, most_tasks
from actors.schedulers.jobs.late_binding import next_arrival, note_attempt, on_done
from actors.schedulers.jobs.least_work import DOWN, add_work
from actors.schedulers.jobs.probing import NO_VERSION, ONE
from actors.schedulers.user.own import OwnHost, described, first_outside
from actors.setting import Setting
from clusters.capacity import capacities
from clusters.matching import billionths
from workloads.errors import InputError


@dataclass(frozen=True)
class Job:
    """A job as a scheduler sees it at its arrival.

    Attributes:
        job_id: its place in the workload.
        submit_s: its arrival.
        num_tasks: how many tasks it has.
        estimate_s: estimated duration of a task.
        is_long: whether it is a long job.
        demand: the most that a task of it needs, by resource; empty in runs where tasks take slots.
    """

    job_id: int
    submit_s: float
    num_tasks: int
    estimate_s: float
    is_long: bool
    demand: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Nodes:
    """The nodes as the scheduler knows them; read-only arrays [N].

    Attributes:
        work_left_s: estimated work that is assigned and not done; infinite: the node is known to be down.
        tasks: tasks that are assigned and have not ended.
        slots: tasks that each node can run at once; in runs with resources, as many as mean tasks fit.
        first_long: nodes below this id are for short jobs alone.
        capacity: what nodes have, by resource; empty in runs where tasks take slots.
        free: what of that no task holds that is assigned and has not ended; below 0 where more is assigned.
    """

    work_left_s: np.ndarray
    tasks: np.ndarray
    slots: np.ndarray
    first_long: int
    capacity: dict[str, np.ndarray] = field(default_factory=dict)
    free: dict[str, np.ndarray] = field(default_factory=dict)


class State(NamedTuple):
    """The scheduler's bookkeeping."""

    placer: least_work.Placer
    tasks: np.ndarray  # [N] tasks assigned and not ended
    slots: np.ndarray  # [N] tasks that each node runs at once
    held: np.ndarray  # [N, R] of resources, by tasks assigned and not ended


@inlined
def note_task(w: World, p: State, node: int, job: int, change: int) -> None:
    """Note a task that is assigned to a node (1), or that has ended or is lost (-1)."""
    p.tasks[node] += change
    if w.room.active == 1:
        for r in range(w.room.demand.shape[1]):
            p.held[node, r] += change * w.room.demand[w.room.of_job[job], r]


@entry
def place_assigned(w: World, p: State, t: int, me: int, job: int) -> None:
    """Send the tasks of a job to the nodes in `p.placer.assigned`, and wait for the next job."""
    count = next_arrival(w, me, job)
    for i in range(count):
        note_task(w, p, p.placer.assigned[i], job, 1)
    least_work.add_assigned(w, p.placer, job, count)
    least_work.send_assigned(w, p.placer, t, me, job, count, NO_VERSION)


@entry
def place_lost(w: World, p: State, t: int, me: int, job: int, task: int) -> None:
    """Send a lost task to the node in `p.placer.assigned`, unless that is known to be down."""
    node = p.placer.assigned[0]
    if is_known_down(w, node):
        send_lost_again(w, t, me, job, task)
        return
    note_task(w, p, node, job, 1)
    add_work(p.placer.ledger, node, work_at(w, node, job))
    w.counts[N_SENT_AGAIN] += 1
    send_placed(w, t, me, node, job, task, NONE, ONE, NO_VERSION)


@compiled
def note_lost(w: World, p: State) -> None:
    """Note the loss of a task that was assigned to a node."""
    job, _, node, _, _ = read_lost(w)
    if node != NONE:
        note_task(w, p, node, job, -1)
        least_work.note_end(w, p.placer, job, node)
    note_attempt(w)


@entry
def advance(w: World, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    message = w.queue.now
    for _ in range(most):
        why = take(w, until)
        if why != RUNNING:
            return why
        kind, me = message.kind[0], message.dst[0]
        if me < w.nodes.size:
            node_event(w, me)
        elif kind == STARTED:
            least_work.on_started(w, p.placer)
        elif kind == DONE:
            job, node, _, _ = read_done(w)
            note_task(w, p, node, job, -1)
            least_work.note_end(w, p.placer, job, node)
            on_done(w)
        elif kind == ARRIVAL:
            return PYTHON
        elif kind == LOST:
            note_lost(w, p)
            return PYTHON
        elif kind == NODE_DOWN or kind == NODE_UP:
            least_work.note_node_state(w, p.placer.ledger)
    return RUNNING


def build(setting: Setting) -> tuple[World, State]:
    """Make the world and the scheduler's bookkeeping at time 0."""
    world = build_world(setting, Rules(report_start=True), most_sends=lambda tasks: tasks, schedulers=1)
    slots = node_slots(setting)
    first = setting.cluster.partition(setting.long_partition)
    return world, State(
        least_work.make_placer(servers(setting), most_tasks(setting), first, late=False),
        np.zeros(slots.size, np.int64),
        slots,
        np.zeros((slots.size, len(setting.resources)), np.int64),
    )


def wrap(own: Any, name: str | None = None) -> Scheduler:
    """Return a scheduler of a user's object or class that has `place(job, nodes) -> node ids`.

    Raises:
        InputError: there is no such method, or an argument without a default.
    """
    if not callable(getattr(own, "place", None)):
        kind = own if isinstance(own, type) else type(own)
        wrong = f"scheduler {name or kind.__name__}: it has no method place(self, job, nodes) that returns node ids"
        raise InputError(wrong)
    face = described(own, name, "a user's central scheduler")
    return Scheduler(
        **face,
        worlds=JOB_WORLDS,
        preempts=True,
        build=build,
        advance=advance,
        host=lambda setting: Host(own, setting),
        remade=(wrap, (own, name)),
    )


class JobsHost(OwnHost):
    """The Python side of an emulation of jobs: what users' schedulers get to know of jobs and nodes."""

    def __init__(self, own: Any, setting: Setting):
        self.resources, has = setting.resources, capacities(setting.cluster, setting.resources)
        self.capacity = {name: read_only(has[:, r].copy()) for r, name in enumerate(setting.resources)}
        super().__init__(own, setting)

    def share_done(self, world: Any, state: Any) -> float:
        """Return the share of the tasks that have arrived: the scheduler is asked at arrivals."""
        return float(world.counts[N_ARRIVED : N_ARRIVED + 2].sum()) / float(world.work.end_task[-1])

    def describe(self, world: Any, index: int) -> Job:
        """Return what is known of a job."""
        info, demand = world.work[index], dict[str, float]()
        if world.room.active == 1:
            needed = world.room.demand[world.room.of_job[index]] / UNIT
            demand = dict(zip(self.resources, needed.tolist(), strict=True))
        times_s = int(info.submit) / NS, int(info.estimate) / NS
        num_tasks = int(info.end_task - info.first_task)
        return Job(int(index), times_s[0], num_tasks, times_s[1], bool(info.is_long), demand)

    def check_fits(self, chosen: np.ndarray, job: Job, did: str, known_as: str) -> None:
        """Refuse a node on which not every task of a job ever fits.

        Args:
            chosen: node ids.
            did: what the scheduler did, as in "place() returned".
            known_as: where it finds what nodes have.
        """
        for resource, needed in job.demand.items():
            has = self.capacity[resource]
            lacks = billionths(has[chosen]) < billionths(needed)
            if lacks.any():
                node = int(chosen[np.argmax(lacks)])
                raise InputError(
                    f"scheduler {self.name}: {did} node {node} for job {job.job_id}, whose tasks need {needed:g} of"
                    f" {resource}; the node has {has[node]:g} ({known_as})"
                )


class Host(JobsHost):
    """Answers arrivals with the user's scheduler."""

    def compile(self, world: Any, state: State) -> None:
        """Compile the functions that the host calls."""
        number = np.int64(0)
        self._place_assigned = direct(place_assigned, world, state, number, number, number)
        self._place_lost = direct(place_lost, world, state, number, number, number, number)

    def __call__(self, world: Any, state: State) -> None:
        """Place the tasks of the job that has arrived, or the task that was lost."""
        now = world.queue.now[0]
        t, me, again = np.int64(now.time), np.int64(now.dst), now.kind == LOST
        index, *lost = KINDS[int(now.kind)].read((now.a, now.b, now.c, now.d)).values()
        job = self.describe(world, index)
        if again:
            job = replace(job, num_tasks=1)
        ids = self.ask("place", job, self._nodes(state, t), about=f" (job {job.job_id})")
        chosen = _checked(self.array_of(ids), job, world.nodes.size, self.name)
        self.check_fits(chosen, job, "place() returned", "nodes.capacity")
        state.placer.assigned[: job.num_tasks] = chosen
        if again:
            self._place_lost(world, state, t, me, index, lost[0])
        else:
            self._place_assigned(world, state, t, me, index)

    def _nodes(self, state: State, t: int) -> Nodes:
        """The bookkeeping as the user's class gets it."""
        ledger = state.placer.ledger
        done = np.where(ledger.started <= t, np.minimum(t - ledger.started, ledger.running), 0)
        wholes_s = ledger.wholes * (float(WHOLE) / NS)
        work_left_s = np.where(ledger.work >= DOWN, np.inf, np.maximum(ledger.work - done, 0) / NS + wholes_s)
        tasks, slots = read_only(state.tasks.copy()), read_only(state.slots.copy())
        free = {
            name: read_only(self.capacity[name] - state.held[:, r] / UNIT)
            for r, name in enumerate(self.resources)
        }
        return Nodes(read_only(work_left_s), tasks, slots, state.placer.first, self.capacity, free)


def _checked(found: np.ndarray, job: Job, num_nodes: int, name: str) -> np.ndarray:
    """The node ids as int64.

    Raises:
        InputError: there are not as many as tasks, or one is not a node.
    """
    if found.shape != (job.num_tasks,) or found.dtype.kind not in "iu":
        raise InputError(
            f"scheduler {name}: place() returned {found.dtype} of shape {found.shape} for job {job.job_id};"
            f" it must return {job.num_tasks} whole numbers, a node id for each task"
        )
    if (wrong := first_outside(found, num_nodes)) is not None:
        raise InputError(
            f"scheduler {name}: place() returned node {wrong} for job {job.job_id};"
            f" node ids are 0 to {num_nodes - 1}"
        )
    return found.astype(np.int64)
