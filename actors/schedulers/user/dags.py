"""A user's own scheduler of DAG jobs: a small class in plain Python that says which tasks start on which machines.

    class ShortestFirst:
        def launch(self, stages, machines, now_s):
            first = min(np.flatnonzero(stages.fits), key=lambda stage: stages.job_path_s[stage], default=None)
            if first is None:
                return []
            has_room = (machines.free >= stages.demand[first]).all(axis=1)
            return [(first, machine) for machine in np.flatnonzero(has_room)[: stages.ready[first]]]

Each pair launches the next task of a stage on a machine. The class is asked when all messages of an instant at which
jobs have arrived or tasks have ended are handled, if tasks may be launched. With heartbeats (`heartbeat_s`) it is asked
when that of a machine has come, and sees that machine alone.

The class sees what the resource manager knows: what it has launched, what messages have reported as ended, and
estimates of durations and demands.

The loop of all resource managers (`actors.machines.resource_manager`) stops with `PYTHON` where the class is to be
asked; `Host` calls `collect`, asks the class, and calls `launch_pairs`. The event may launch more tasks than one event
may send messages: the loop goes on with the others before it takes the next event, and returns `GROW` where the queue
lacks room for them.
"""

import dataclasses
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from actors.conditions import NS, read_only
from actors.initial_arrays import at_start
from actors.kernel.compiled import compiled, direct, entry, inlined
from actors.kernel.counters import N_ARRIVED
from actors.kernel.queue import NONE
from actors.machines import matching
from actors.machines.dag_world import N_LAUNCHES, N_MATCHES, DagWorld
from actors.machines.matching import (
    ONLY,
    Manager,
    Matcher,
    Pending,
    end_of_active,
    fits,
    forget_dirty,
    launch_pending,
    next_with_room,
)
from actors.machines.messages import FREE, read_free
from actors.machines.resource_manager import advance
from actors.machines.worlds import DAG_WORLDS
from actors.resources import UNIT
from actors.scheduler import Parameter, Scheduler
from actors.schedulers.dags.build import HEARTBEAT, IGNORED, build
from actors.schedulers.dags.parts import Inter, Parts
from actors.schedulers.dags.stage_orders import by_level, longest_paths
from actors.schedulers.user.own import OwnHost, described
from actors.setting import Setting
from workloads.dags import stage_levels
from workloads.errors import InputError
from workloads.requests import priorities

FIRST = read_only(np.zeros(1, np.int64))
DOWN = -1  # what a machine has free that is known to be down: nothing fits there
MOST_IDLE_BEATS = 1000  # of each machine at which nothing is launched while nothing runs


class Known(NamedTuple):
    """What is known of S stages from the start; read-only arrays."""

    job: np.ndarray  # [S]
    demand: np.ndarray  # [S, R] in billionths
    duration_s: np.ndarray  # [S]
    level: np.ndarray  # [S]
    path_s: np.ndarray  # [S]
    arrival_s: np.ndarray  # [J]
    priority: np.ndarray  # [J]
    job_path_s: np.ndarray  # [J]


def _known(name: str, by: str, about: str) -> "cached_property[np.ndarray]":
    """Return a property of `Stages`: what is known from the start of their stages, or jobs, by number."""

    def find(stages: "Stages") -> np.ndarray:
        return read_only(getattr(stages.known, name)[getattr(stages, by)])

    find.__doc__ = about
    return cached_property(find)


@dataclass(frozen=True)
class Stages:
    """The K stages with tasks that may be launched, by arrival of their jobs, then by level; read-only arrays [K].

    Amounts of resources are in billionths: whole numbers, so that sums, differences and quotients of them are exact.

    Attributes:
        stage: their places among the stages of the workload.
        ready: tasks that may be launched.
        running: tasks that are launched and not reported as ended.
        left: tasks that are not reported as ended.
        fits: bool: one of the machines has room for a task.
        job_tasks_left: tasks of the job that are not reported as ended.
        fetching: running tasks that fetch their input over a network.
        job_held: [K, R] amounts that the running tasks of the job hold.
        job_work_left_s: estimated work of the job that is left, of the whole cluster: seconds of tasks times the mean
            share that they hold.
    """

    stage: np.ndarray
    ready: np.ndarray
    running: np.ndarray
    left: np.ndarray
    fits: np.ndarray
    job_tasks_left: np.ndarray
    fetching: np.ndarray
    job_held: np.ndarray
    job_work_left_s: np.ndarray
    known: Known = field(repr=False)

    job = _known("job", "stage", "Places of the jobs in the workload.")
    demand = _known("demand", "stage", "Amounts that a task is estimated to need, [K, R].")
    duration_s = _known("duration_s", "stage", "Estimated durations of a task.")
    level = _known(
        "level", "stage", "Levels: 0 without parents, else one more than the largest of the parents."
    )
    path_s = _known(
        "path_s", "stage", "Estimated longest paths from the start of the stages to the end of their jobs."
    )
    arrival_s = _known("arrival_s", "job", "Arrivals of the jobs.")
    priority = _known(
        "priority",
        "job",
        "Priorities of the jobs, the larger the more important: 0 if not stated, or with `priorities=false`.",
    )
    job_path_s = _known(
        "job_path_s", "job", "Estimated critical paths of the jobs, as if nothing of them had run."
    )


@dataclass(frozen=True)
class Machines:
    """The machines that tasks may be launched on: all N or, with heartbeats, one; read-only arrays.

    Amounts of resources are in billionths of those of `resources`: whole numbers.

    Attributes:
        machine: [N] ids of the nodes.
        free: [N, R] what is free, as the resource manager knows; -1: the machine is known to be down.
        capacity: [N, R] what the machine has.
        changed: places of the machines on which tasks have ended since the class was asked last; with heartbeats of
            the one machine.
        resources: R names.
    """

    machine: np.ndarray
    free: np.ndarray
    capacity: np.ndarray
    changed: np.ndarray
    resources: tuple[str, ...]


NUMBERS = ("stage", "ready", "running", "left", "fits", "job_tasks_left", "fetching")
"""The rows of whole numbers of `collect`."""


@entry
def collect(w: DagWorld, p: Manager, numbers: np.ndarray, amounts: np.ndarray, at: np.ndarray) -> int:
    """Write down what the class sees of stages with tasks that may be launched; return how many there are.

    They are in the order in which their jobs have arrived, then of their levels. If there are more than `numbers` has
    room for, nothing changes; otherwise the class knows from now on where tasks have ended.

    Args:
        numbers: [7, K] the rows `NUMBERS`.
        amounts: [K, R + 1] what the job holds, in billionths, and its work left, ns of the cluster.
        at: [3] time and kind of the event, and the machine whose heartbeat it is, else NONE.
    """
    matcher, stages, now = p.matcher, w.stages, w.queue.now
    at[0], at[1], at[2] = now.time[0], now.kind[0], read_free(w) if now.kind[0] == FREE else NONE
    count, resources = np.int64(0), w.tasks.demand.shape[1]
    for i in range(end_of_active(matcher, ONLY)):
        job = matcher.active[i]
        stage = matcher.run.first[job]
        while stage != NONE:
            if count < numbers.shape[1]:
                numbers[0, count], numbers[1, count] = stage, w.tasks.ready[stage]
                numbers[2, count], numbers[3, count] = p.plan.packing.running[stage], stages.unfinished[stage]
                numbers[4, count] = 1 if fits_somewhere(w, matcher, stage, at) else 0
                numbers[5, count] = w.jobs.unfinished[job]
                numbers[6, count] = w.inputs.fetching[stage] if w.inputs.active == 1 else 0
                for r in range(resources):
                    amounts[count, r] = matcher.used[job, r]
                amounts[count, resources] = matcher.left[job]
            count += 1
            stage = matcher.run.next[stage]
    if count <= numbers.shape[1]:
        w.counts[N_MATCHES] += 1
        forget_dirty(w, matcher, ONLY)
    return count


@inlined
def fits_somewhere(w: DagWorld, matcher: Matcher, stage: int, at: np.ndarray) -> bool:
    """Whether a machine that the class sees has room for a task of a stage."""
    if at[1] == FREE:
        return fits(w, stage, at[2])
    return next_with_room(w, matcher, ONLY, stage, np.int64(0)) < w.nodes.size


@entry
def launch_pairs(
    w: DagWorld, p: Manager, t: int, pairs: np.ndarray, numbers: np.ndarray, count: int, first: int, end: int
) -> int:
    """Launch what the class has returned; return the first pair that is wrong, of which none is launched, else NONE.

    Args:
        pairs: [M, 2] places among the `count` stages of `numbers`, and among the machines `first` to `end` - 1.
    """
    wrong = check_pairs(w, p.pending, pairs, numbers, count, first, end)
    if wrong == NONE:
        p.pending.first[0], p.pending.end[0] = 0, pairs.shape[0]
        launch_pending(w, p, t)
    return wrong


@compiled
def check_pairs(
    w: DagWorld, pending: Pending, pairs: np.ndarray, numbers: np.ndarray, count: int, first: int, end: int
) -> int:
    """Note the pairs; return the first one that does not stand for a task, or that does not fit; else NONE."""
    demand, free = w.tasks.demand, w.machines.free
    wrong, noted = NONE, np.int64(0)
    while noted < pairs.shape[0] and wrong == NONE:
        place, node = pairs[noted, 0], first + pairs[noted, 1]
        if place < 0 or place >= count or node < first or node >= end:
            wrong = noted
            break
        stage = numbers[0, place]
        if pending.taken[stage] == w.tasks.ready[stage]:
            wrong = noted
        for r in range(demand.shape[1]):
            if demand[stage, r] > free[node, r]:
                wrong = noted
        if wrong == NONE:
            pending.stage[noted], pending.node[noted] = stage, node
            pending.taken[stage] += 1
            for r in range(demand.shape[1]):
                free[node, r] -= demand[stage, r]
            noted += 1
    for i in range(noted):
        pending.taken[pending.stage[i]] = 0
        for r in range(demand.shape[1]):
            free[pending.node[i], r] += demand[pending.stage[i], r]
    return wrong


def wrap(own: Any, name: str | None = None) -> Scheduler:
    """Return a scheduler of a user's object or class with `launch(stages, machines, now_s) -> pairs`.

    It has `heartbeat_s` whether the class states it or not.

    Raises:
        InputError: its `heartbeat_s` is not a duration, or an argument has no default.
    """
    face = described(own, name, "a user's scheduler of DAG jobs")
    mine = tuple(p.name for p in face["parameters"])
    face["parameters"] = _with_heartbeat(face["parameters"], face["name"])
    return Scheduler(
        **face,
        build=build_own,
        advance=advance,
        worlds=DAG_WORLDS,
        ignores=IGNORED,
        host=lambda setting: Host(own, setting, mine),
        remade=(wrap, (own, name)),
    )


def _with_heartbeat(parameters: tuple[Parameter, ...], scheduler: str) -> tuple[Parameter, ...]:
    """Return the parameters of a user's class or object and `heartbeat_s`, by default its own, else 0."""
    own = next((p.default for p in parameters if p.name == HEARTBEAT.name), None)
    heartbeat = HEARTBEAT if own is None else replace(HEARTBEAT, default=HEARTBEAT.parse(own, scheduler))
    return (*(p for p in parameters if p.name != HEARTBEAT.name), heartbeat)


def build_own(setting: Setting) -> tuple[Any, Manager]:
    """Build machines, resource manager and the first messages; the class takes the place of the parts."""
    parts = Parts(Inter(matching.FIXED), intra=by_level(setting))
    of_one_band = replace(setting, priorities=False)  # what priorities mean is the class's to say
    world, manager = build(of_one_band, parts, setting.parameters[HEARTBEAT.name], managers=1)
    sizes = {"stage": world.stages.job.size, "task": world.tasks.duration.size}
    pending = at_start(Pending, sizes)
    return world, manager._replace(pending=pending)


class Host(OwnHost):
    """The Python side of an emulation: asks the user's class what to launch."""

    def __init__(self, own: Any, setting: Setting, mine: tuple[str, ...]):
        """Make the user's scheduler; `mine` are the parameters that it has itself."""
        given = {name: setting.parameters[name] for name in mine}
        super().__init__(own, dataclasses.replace(setting, parameters=given))
        self.setting = setting
        self.resources = setting.workload.resources or ("slots",)
        self._idle_beats = 0
        self._at = np.zeros(3, np.int64)
        self._room = 64  # stages that `collect` has room for

    def compile(self, world: Any, state: Manager) -> None:
        """Compile the functions that the host calls, and keep what never changes."""
        number, rows = np.int64(0), np.zeros((len(NUMBERS), 1), np.int64)
        amounts = np.zeros((1, len(self.resources) + 1))
        self._collect = direct(collect, world, state, rows, amounts, self._at)
        pairs = np.zeros((1, 2), np.int64)
        self._launch = direct(launch_pairs, world, state, number, pairs, rows, number, number, number)
        path = longest_paths(self.setting) / NS
        stated = priorities(self.setting.workload.jobs)
        self.known = Known(
            job=world.stages.job,
            demand=read_only(world.tasks.demand.astype(np.float64)),
            duration_s=read_only(world.tasks.estimate / NS),
            level=read_only(stage_levels(self.setting.workload)),
            path_s=read_only(path),
            arrival_s=read_only(world.work.submit / NS),
            priority=read_only(stated if self.setting.priorities else np.zeros_like(stated)),
            job_path_s=read_only(np.maximum.reduceat(path, world.first_stage[:-1])),
        )
        self.capacity = read_only(world.machines.capacity.astype(np.float64))
        self.ids = read_only(np.arange(world.nodes.size))

    def share_done(self, world: Any, state: Manager) -> float:
        """Return the share of the tasks that have been launched."""
        return float(world.counts[N_LAUNCHES]) / world.tasks.duration.size

    def __call__(self, world: Any, state: Manager) -> None:
        """Launch what the user's scheduler says."""
        matcher = state.matcher
        changed = matcher.dirty[: matcher.dirty_count[0]].copy()
        stages, numbers = self._stages(world, state)
        t, kind, node = self._at.tolist()
        first, end = (node, node + 1) if kind == FREE else (0, world.nodes.size)
        machines = Machines(
            machine=self.ids[first:end],
            free=read_only(np.maximum(world.machines.free[first:end], DOWN).astype(np.float64)),
            capacity=self.capacity[first:end],
            changed=read_only(changed) if kind != FREE else FIRST,
            resources=self.resources,
        )
        pairs = self._pairs(self.ask("launch", stages, machines, t / NS, about=f" at {t / NS:g} s"))
        if pairs.size == 0:
            if kind == FREE:
                self._note_idle_beat(world, node)
            return
        self._idle_beats = 0
        count = stages.stage.size
        bounds = (np.int64(count), np.int64(first), np.int64(end))
        wrong = self._launch(world, state, np.int64(t), pairs, numbers, *bounds)
        if wrong != NONE:
            raise self._error(pairs, int(wrong), stages, machines)

    def _stages(self, world: Any, state: Manager) -> tuple[Stages, np.ndarray]:
        """Return the stages with tasks that may be launched, and the whole numbers of them."""
        resources = len(self.resources)
        while True:
            numbers = np.empty((len(NUMBERS), self._room), np.int64)
            amounts = np.empty((self._room, resources + 1))
            count = self._collect(world, state, numbers, amounts, self._at)
            if count <= self._room:
                break
            self._room = count + count // 4
        shown, held = numbers[:, :count], amounts[:count]
        work_left_s = held[:, resources] / NS
        fits = shown[4] != 0
        for array in (shown, held, work_left_s, fits):
            array.flags.writeable = False  # and so are rows and columns of it
        stage, ready, running, left, _, tasks_left, fetching = shown
        return Stages(
            stage=stage,
            ready=ready,
            running=running,
            left=left,
            fits=fits,
            job_tasks_left=tasks_left,
            fetching=fetching,
            job_held=held[:, :resources],
            job_work_left_s=work_left_s,
            known=self.known,
        ), numbers

    def _pairs(self, found: Any) -> np.ndarray:
        """Return the pairs as int64, [M, 2].

        Raises:
            InputError: it is something else.
        """
        pairs = self.array_of(found)
        if pairs.size == 0 and pairs.ndim > 0:
            return np.zeros((0, 2), np.int64)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            what = type(found).__name__ if pairs.ndim == 0 else f"{pairs.dtype} of shape {pairs.shape}"
            raise InputError(
                f"scheduler {self.name}: launch() returned {what}; it must return pairs (stage, machine) of whole"
                " numbers, their places in stages and in machines"
            )
        return np.array(pairs, np.int64, order="C")

    def _error(self, pairs: np.ndarray, wrong: int, stages: Stages, machines: Machines) -> InputError:
        """Return the error that names what is wrong with a pair."""
        says = f"scheduler {self.name}: launch() "
        place, at = pairs[wrong].tolist()
        for value, what, size in (
            (place, "stage", stages.stage.size),
            (at, "machine", machines.machine.size),
        ):
            if not 0 <= value < size:
                return InputError(f"{says}returned {what} {value} in pair {wrong}; there are 0 to {size - 1}")
        of = self.setting.workload.stages
        row = int(stages.stage[place])
        stage = f"stage {of['stage'][row].as_py()} of job {of['job_id'][row].as_py()}"
        before = pairs[:wrong]
        launched = int((before[:, 0] == place).sum())
        if launched == stages.ready[place]:
            return InputError(
                f"{says}returned {launched + 1} or more tasks of {stage}, of which {launched} may be launched"
            )
        where = f"{says}returned a task of {stage} for machine {machines.machine[at]}, which"
        if machines.free[at, 0] == DOWN:
            return InputError(f"{where} is known to be down; its `free` is {DOWN}")
        there = before[before[:, 1] == at, 0]
        free = machines.free[at] - stages.demand[there].sum(axis=0)
        lacking = np.flatnonzero(stages.demand[place] > free)[0]
        after = f" after the {there.size} before it" if there.size else ""
        return InputError(
            f"{where} has"
            f" {free[lacking] / UNIT:.10g} {self.resources[lacking]} free{after}; the task needs"
            f" {stages.demand[place, lacking] / UNIT:.10g}"
        )

    def _note_idle_beat(self, world: Any, node: int) -> None:
        """Count heartbeats at which nothing is launched and nothing runs, once all jobs have arrived: they never end.

        Raises:
            InputError: there were more than `MOST_IDLE_BEATS` of each machine.
        """
        free, capacity = world.machines.free, world.machines.capacity
        arrived = int(world.counts[N_ARRIVED : N_ARRIVED + 2].sum())
        is_idle = arrived == world.tasks.duration.size and (free[node] == capacity[node]).all()
        self._idle_beats = self._idle_beats + 1 if is_idle and (free == capacity).all() else 0
        if self._idle_beats > MOST_IDLE_BEATS * world.nodes.size:
            raise InputError(
                f"scheduler {self.name}: launch() launched nothing at {MOST_IDLE_BEATS:,} heartbeats of each machine,"
                " although no task runs and some may be launched"
            )
