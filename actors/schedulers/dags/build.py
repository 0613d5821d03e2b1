"""Schedulers of DAG jobs from their parts: the world and the resource managers at time 0."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from actors.causes import Remedy
from actors.conditions import NS, read_only
from actors.initial_arrays import at_start
from actors.kernel.heap import make_heap
from actors.machines.carbyne_plan import Batches, Plan, SharePacking
from actors.machines.dag_world import DagWorld, build_dag_world
from actors.machines.demands import SEES, needs_and_capacity
from actors.machines.evictable import make_evictable
from actors.machines.matching import BLOCK, LEAST_LEFT, QUEUES, Manager, Matcher, Packing, Pending
from actors.machines.pushing import make_pushes
from actors.machines.resource_manager import advance
from actors.machines.runnable import Runnable
from actors.machines.worlds import DAG_WORLDS
from actors.scheduler import NO_NETWORK, Parameter, Scheduler
from actors.schedulers.dags.parts import Inter, Parts, Queues
from actors.setting import Setting
from workloads.dags import DagWorkload
from workloads.requests import priorities
from workloads.sums import group_sums

HEARTBEAT = Parameter(
    "heartbeat_s",
    0.0,
    "duration",
    "time between two heartbeats of a machine, which then reports ended tasks and gets others; 0: whenever a task ends",
    0,
    1e6,
    addresses=(Remedy("network", "the time between two reports of a machine"),),
)
MANAGERS = Parameter(
    "managers", 1, "integer", "resource managers, which share the machines, and take jobs in turn", 1, 10_000
)


IGNORED = (*NO_NETWORK, ("long_partition", "all machines are for all jobs"))
"""The keys that schedulers of DAG jobs ignore where no network moves the input of tasks."""


def dag_scheduler(
    parts: Callable[[Setting], Parts],
    name: str,
    title: str,
    paper: str,
    parameters: tuple[Parameter, ...],
    **facts: Any,
) -> Scheduler:
    """Return a scheduler of DAG jobs, which also has `heartbeat_s`, `managers` and `sees`.

    Args:
        parts: makes its parts.
        facts: further attributes of `Scheduler`.
    """
    page = getattr(parts, "func", parts).__globals__["__doc__"]  # of a partial call
    return Scheduler(
        name,
        title,
        paper,
        (*parameters, HEARTBEAT, MANAGERS, SEES),
        worlds=DAG_WORLDS,
        build=partial(_build, parts),
        advance=advance,
        preempts=True,
        ignores=IGNORED,
        about=page or "",
        **facts,
    )


def _build(parts: Callable[[Setting], Parts], setting: Setting) -> tuple[DagWorld, Manager]:
    return build(setting, parts(setting), setting.parameters["heartbeat_s"], setting.parameters["managers"])


def build(setting: Setting, parts: Parts, heartbeat_s: float, managers: int) -> tuple[DagWorld, Manager]:
    """Build machines, resource managers and the first messages.

    Raises:
        InputError: there are more managers than machines, a task fits on no machine of its manager, or the resources to
            see are not those of the workload (`actors.machines.demands`).
    """
    workload = setting.workload
    assert isinstance(workload, DagWorkload)
    arrays = workload.arrays()
    demand, capacity = needs_and_capacity(setting)
    world = build_dag_world(setting, demand, capacity, heartbeat_s, managers)
    of_job = world.work.home - capacity.shape[0]
    total = np.maximum(world.machines.total, 1)[of_job]  # [J, R] of the machines of a job's manager
    served = order_of_priorities(setting, parts.inter.by == QUEUES)
    part, wait = demand / total[world.stages.job], round(setting.switch.locality_wait_s * NS)
    matcher = make_matcher(world, of_job, served, part, arrays, parts, wait)
    sizes = sizes_of(world, matcher.num_active.size)
    return world, at_start(
        Manager,
        sizes,
        matcher=matcher,
        profile=read_only(demand_profile(world, total)),
        plan=make_plans(world, arrays, matcher, demand, part, parts),
        altruism=parts.altruism.probability,
        evictable=make_evictable(world, setting, matcher.ceiling, parts.inter.by == QUEUES),
        pending=at_start(Pending, {"task": 0, "stage": 0}),
    )


def sizes_of(world: DagWorld, bands: int) -> dict[str, int]:
    """Return how many there are of what the arrays of managers are declared for."""
    machines, resources = world.machines.capacity.shape
    return {
        "job": world.work.size,
        "stage": world.stages.job.size,
        "machine": machines,
        "resource": resources,
        "manager": world.first_node.size - 1,
        "band": bands,
    }


def order_of_priorities(setting: Setting, inside_queues: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of each job's priority among all, [J], the highest first, and its turn in its band, [J].

    Without priorities there is one band, and the turn is the arrival. With queues priorities order the jobs of a queue,
    as guarantees of queues hold whatever the priorities.
    """
    stated, jobs = priorities(setting.workload.jobs), np.arange(setting.num_jobs)
    _, place = np.unique(-stated if setting.priorities else np.zeros_like(stated), return_inverse=True)
    if not inside_queues:
        return place, jobs
    turn = np.zeros_like(jobs)
    turn[np.lexsort((jobs, place))] = jobs
    return np.zeros_like(place), turn


def make_matcher(
    world: DagWorld,
    manager: np.ndarray,
    served: tuple[np.ndarray, np.ndarray],
    part: np.ndarray,
    arrays: Any,
    parts: Parts,
    locality_wait: int,
) -> Matcher:
    """Return the state of matching at time 0: nothing can run, and no machine has reported.

    Args:
        manager: [J] of jobs.
        served: as of `order_of_priorities`.
        part: [S, R] of the resources of its manager, that a task needs.
        locality_wait: ns.
    """
    managers, inter = world.first_node.size - 1, parts.inter
    per_manager = int(served[0].max()) + 1
    bands = managers * per_manager
    band = manager * per_manager + served[0]
    (queue, guarantee), share = queues_of_managers(world, manager, inter)
    rank = np.zeros(guarantee.size) if inter.order is None else inter.order
    work = on_grid(world.tasks.estimate * part.mean(axis=1), world.stages.unfinished)
    left = np.add.reduceat(work * world.stages.unfinished, world.first_stage[:-1])
    first_job, first_stage = beginnings(band, world.first_stage, bands)
    sizes = sizes_of(world, bands) | {"queue": guarantee.size}
    return at_start(
        Matcher,
        sizes,
        run=at_start(
            Runnable,
            sizes,
            key=read_only(parts.intra),
            first_job=first_job,
            first_stage=first_stage,
            pushes=make_pushes(world),
        ),
        band=read_only(band),
        bands=per_manager,
        turn=read_only(served[1]),
        room=np.repeat(world.machines.total, per_manager, axis=0),
        queue=read_only(queue),
        guarantee=read_only(guarantee),
        rank=left.copy() if inter.by == LEAST_LEFT else rank,
        share=share,
        left=left,
        work=read_only(work),
        size=read_only(-parts.intra if parts.leftovers_in_order else part.sum(axis=1)),
        ceiling=ceilings(world.machines.capacity, world.manager),
        pack=make_packing(world, arrays, part.max(axis=1), bands, parts),
        inter=inter.by,
        leftover=parts.leftover,
        packing=parts.packing,
        prefers_local=locality_wait > 0 or parts.values.remote_penalty > 0.0,
        locality_wait=np.int64(locality_wait),
    )


def on_grid(work: np.ndarray, tasks: np.ndarray) -> np.ndarray:
    """Return [S] the work of a task, rounded so that sums over any of all tasks are exact.

    Else jobs with as much work left would differ by what they have done before, and ties would not go by arrival.
    """
    step = 2.0 ** (np.ceil(np.log2(max(float(work @ tasks), 1.0))) - 52)
    return np.rint(work / step) * step


def queues_of_managers(world: DagWorld, manager: np.ndarray, inter: Inter) -> tuple[Queues, np.ndarray]:
    """Return the queues of each manager, and [Q, R] what they may hold; without queues each job is its own, of 0."""
    assert (inter.by == QUEUES) == (inter.queues is not None)
    managers, total = world.first_node.size - 1, world.machines.total
    if inter.queues is None:
        share = np.zeros((manager.size, total.shape[1]), np.int64)
        return Queues(np.arange(manager.size), np.ones(manager.size)), share
    of_queue, queue = np.unique(inter.queues.queue * managers + manager, return_inverse=True)
    guarantee = inter.queues.guarantee[of_queue // managers]
    return Queues(queue, guarantee), np.rint(guarantee[:, None] * total[of_queue % managers]).astype(np.int64)


def demand_profile(world: DagWorld, total: np.ndarray) -> np.ndarray:
    """Return [J, R] the mean demand of a job's tasks as parts of `total`, over that of its dominant resource."""
    first, tasks = world.first_stage[:-1], world.stages.unfinished
    mean = group_sums(world.tasks.demand, tasks, first) / np.add.reduceat(tasks, first)[:, None] / total
    largest = mean.max(axis=1, keepdims=True)
    return np.divide(mean, largest, out=np.zeros_like(mean), where=largest > 0)


def beginnings(band: np.ndarray, first_stage: np.ndarray, bands: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where the jobs of each band begin, if they lie together, and where their stages do, [B + 1] each."""
    jobs = np.bincount(band, minlength=bands)
    stages = np.bincount(band, np.diff(first_stage), minlength=bands)
    first_job, first = (np.append(0, np.cumsum(of)).astype(np.int64) for of in (jobs, stages))
    return read_only(first_job), read_only(first)


def ceilings(capacity: np.ndarray, manager: np.ndarray) -> np.ndarray:
    """Return the most that a machine of a block has, by resource: a block is of machines of one manager."""
    block = np.arange(manager.size) // BLOCK + manager
    found = np.zeros((int(block[-1]) + 1, capacity.shape[1]), np.int64)
    np.maximum.at(found, block, capacity)
    return found


def make_packing(world: DagWorld, arrays: Any, part: np.ndarray, bands: int, parts: Parts) -> Packing:
    """Return what values of tasks are made of; `part` [S]: of the machines, that a task takes."""
    machines = world.nodes.size if parts.values.remote_penalty > 0 else 0
    return at_start(
        Packing,
        sizes_of(world, bands),
        priority=read_only(np.ones(part.size) if parts.priority is None else parts.priority),
        score=np.zeros((bands, 2)),
        part=read_only(part),
        ran=np.zeros((part.size, machines), np.bool_),
        first_parent=arrays.first_parent,
        parent=arrays.parent,
        values=parts.values,
    )


def make_plans(
    world: DagWorld, arrays: Any, matcher: Matcher, demand: np.ndarray, part: np.ndarray, parts: Parts
) -> Plan:
    """Return plans of nothing, and their scratch space."""
    most = int(np.diff(arrays.first_stage).max())
    # Each batch ends a stage or fills a resource: there are at most as many as tasks and stages of a job.
    batches = int(np.diff(arrays.first_task).max()) + most + 1
    sizes = sizes_of(world, matcher.num_active.size) | {"stage of a job": most}
    return at_start(
        Plan,
        sizes,
        of_job=at_start(Batches, {"batch": arrays.first_task[-1] if parts.altruism.probability > 0.0 else 0}),
        first=arrays.first_task,
        must=matcher.must,
        largest=read_only(np.maximum.reduceat(demand, arrays.first_stage[:-1])),
        keeps=parts.altruism.keeps_promises,
        with_events=parts.altruism.plans_with_events,
        packing=at_start(
            SharePacking,
            sizes,
            first_parent=arrays.first_parent,
            parent=arrays.parent,
            key=matcher.run.key,
            backward_key=matcher.run.key if parts.backward is None else read_only(parts.backward),
            in_order=parts.backward is not None,
            part=read_only(part),
            made=at_start(Batches, {"batch": batches}),
            ends=make_heap(batches),
        ),
    )
