"""A user's own central scheduler: a small class in plain Python that says where each task of a job goes.

    class FewestTasks:
        def place(self, job, nodes):
            order = np.argsort(nodes.tasks, kind="stable")
            return np.resize(order, job.num_tasks)

The kernel hands a job's arrival out to Python, binds the tasks to the nodes that come back, and goes on. What the class
sees of the nodes is the scheduler's own bookkeeping, made of what it assigned and what nodes reported.
"""

import copy
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from actors.kernel.compiled import compiled
from actors.kernel.queue import ARRIVAL, DONE, PYTHON, RUNNING, STARTED, take
from actors.kernel.world import NONE
from actors.nodes.worker import node_event
from actors.schedulers.jobs.build import NS, build_world, fifo_rules, most_tasks
from actors.schedulers.jobs.late_binding import next_arrival, on_done
from actors.schedulers.jobs.least_work import (
    Placer,
    add_assigned,
    make_placer,
    note_end,
    note_start,
    send_assigned,
)
from actors.schedulers.policy import Scheduler
from workloads.errors import InputError


@dataclass(frozen=True)
class Job:
    """A job as a scheduler sees it at its arrival."""

    job_id: int  # its place in the workload
    submit_s: float
    num_tasks: int
    estimate_s: float  # estimated duration of a task
    is_long: bool


@dataclass(frozen=True)
class Nodes:
    """The nodes as the scheduler believes them to be; arrays [N] without leave to write."""

    work_left_s: np.ndarray  # estimated work assigned and not done
    tasks: np.ndarray  # tasks assigned and not ended
    slots: np.ndarray
    first_long: int  # nodes below this id are meant for short jobs alone


class State(NamedTuple):
    """The scheduler's bookkeeping."""

    placer: Placer
    tasks: np.ndarray  # [N] tasks assigned and not ended


@compiled
def place_assigned(w, p, t, me, job):
    """Send the tasks of a job to the nodes in `p.placer.assigned`, and wait for the next job."""
    count = next_arrival(w, me, job)
    for i in range(count):
        p.tasks[p.placer.assigned[i]] += 1
    add_assigned(w, p.placer, job, count)
    send_assigned(w, p.placer, t, me, job, count, NONE)


@compiled
def advance(w, p, until, most):
    """Handle events before `until`, at most `most` of them; says why it stopped."""
    message = w.queue.now
    for _ in range(most):
        why = take(w.queue, w.entries, until)
        if why != RUNNING:
            return why
        kind, me, job = message.kind[0], message.dst[0], message.a[0]
        if me < w.nodes.size:
            node_event(w, me)
        elif kind == STARTED:
            note_start(w, p.placer, job, message.b[0], message.c[0])
        elif kind == DONE:
            p.tasks[message.b[0]] -= 1
            note_end(w, p.placer, job, message.b[0])
            on_done(w, job, message.c[0], message.d[0])
        elif kind == ARRIVAL:
            return PYTHON
    return RUNNING


def build(setting):
    """The world and the scheduler's bookkeeping at time 0."""
    world = build_world(setting, fifo_rules(report_start=True), most_sends=lambda tasks: tasks, schedulers=1)
    slots = setting.cluster.slots()
    first = setting.cluster.partition(setting.long_partition)
    return world, State(
        make_placer(slots, most_tasks(setting), first, late=False), np.zeros(slots.size, np.int64)
    )


def wrap_own(own: Any, name: str | None = None) -> Scheduler:
    """A scheduler of a user's object or class that has `place(job, nodes) -> node ids`.

    A class is made anew for each emulation, without arguments; an object is copied. A method `start(num_nodes,
    seed)`, if there is one, is called first.

    Raises:
        InputError: there is no such method.
    """
    kind = own if isinstance(own, type) else type(own)
    name = name or getattr(own, "name", None) or kind.__name__
    if not callable(getattr(own, "place", None)):
        raise InputError(f"scheduler {name}: it has no method place(self, job, nodes) that returns node ids")
    return Scheduler(
        name=name,
        title=(kind.__doc__ or "a user's central scheduler").strip().splitlines()[0],
        paper="-",
        parameters=(),
        build=build,
        advance=advance,
        host=lambda setting: _host(own, name, setting),
        remade=(wrap_own, (own, name)),
    )


def _host(own: Any, name: str, setting: Any) -> Callable[[Any, State], None]:
    """The Python side of an emulation: answers arrivals."""
    scheduler = own() if isinstance(own, type) else copy.deepcopy(own)
    num_nodes = setting.cluster.num_nodes
    if hasattr(scheduler, "start"):
        scheduler.start(num_nodes, setting.seed)

    def answer(world: Any, state: State) -> None:
        now = world.queue.now[0]
        t, me, index = np.int64(now.time), np.int64(now.dst), np.int64(now.a)
        info = world.work[index]
        num_tasks = int(info.end_task - info.first_task)
        job = Job(int(index), int(t) / NS, num_tasks, int(info.estimate) / NS, bool(info.is_long))
        try:
            ids = scheduler.place(job, _nodes(world, state, t))
        except Exception as error:  # whatever a user's code raises is theirs to see, with its place
            where = traceback.extract_tb(error.__traceback__)[-1]
            raise InputError(
                f"scheduler {name}: place() raised {type(error).__name__}: {error} for job {job.job_id}",
                file=where.filename,
                line=where.lineno,
            ) from error
        state.placer.assigned[:num_tasks] = _checked(ids, job, num_nodes, name)
        place_assigned(world, state, t, me, index)

    return answer


def _nodes(world: Any, state: State, t: np.int64) -> Nodes:
    """The bookkeeping as the user's class gets it."""
    ledger = state.placer.ledger
    done = np.where(ledger.started <= t, np.minimum(t - ledger.started, ledger.running), 0)
    work_left_s = np.maximum(ledger.work - done, 0) / NS
    tasks, slots = state.tasks.copy(), ledger.slots.copy()
    for column in (work_left_s, tasks, slots):
        column.flags.writeable = False
    return Nodes(work_left_s, tasks, slots, state.placer.first)


def _checked(ids: Any, job: Job, num_nodes: int, name: str) -> np.ndarray:
    """The node ids as int64.

    Raises:
        InputError: there are not as many as tasks, or one is no node.
    """
    found = np.asarray(ids)
    if found.shape != (job.num_tasks,) or found.dtype.kind not in "iu":
        raise InputError(
            f"scheduler {name}: place() returned {found.dtype} of shape {found.shape} for job {job.job_id};"
            f" it must return {job.num_tasks} whole numbers, a node id for each task"
        )
    if found.min() < 0 or found.max() >= num_nodes:
        wrong = found[(found < 0) | (found >= num_nodes)][0]
        raise InputError(
            f"scheduler {name}: place() returned node {wrong} for job {job.job_id};"
            f" node ids are 0 to {num_nodes - 1}"
        )
    return found.astype(np.int64)
