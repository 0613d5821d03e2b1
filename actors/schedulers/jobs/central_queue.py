"""The queues of tasks at a central scheduler: one for all jobs, or one for each tenant, with shares of the cluster.

Inside a queue jobs go in order of priority, the largest first, then of arrival; a task that was lost goes before the
others of its job. The next task is of the queue with the smallest share of the cluster over its weight: of the resource
of which its tasks hold most, or of slots, as far as the scheduler knows; a task holds that from its placement until its
end is reported. A queue whose first task would exceed its ceiling, or has no room, is passed.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from actors.failures import keep_task, next_again
from actors.kernel.compiled import compiled, inlined
from actors.kernel.records import Records, records
from actors.nodes.world import N_PLACEMENTS, N_SENT_AGAIN, World
from actors.resources import UNIT, amounts, demands_of, needed
from actors.scheduler import Parameter
from actors.schedulers.jobs.build import name_of, turns
from actors.schedulers.jobs.late_binding import tasks_left
from actors.setting import Setting
from actors.tenants import A_WEIGHT, GUARANTEES, given_to, guaranteed, queues_by_tenant, shown
from clusters.capacity import capacities
from workloads.errors import InputError

# Jobs that wait are a heap by rank, in a part of one array: from `first` on.
QUEUE = np.dtype([("first", "i8"), ("waiting", "i8")])


class Queues(NamedTuple):
    """Q queues of J jobs, and what each holds of R resources; R is 1 where tasks take slots."""

    of_job: np.ndarray  # [J] read-only
    rank: np.ndarray  # [J] the place of a job in the order of priority, then of arrival
    heap: np.ndarray  # [J] jobs
    rows: Records  # [Q] QUEUE
    weight: np.ndarray  # [Q] float64
    held: np.ndarray  # [Q, R] by tasks that are placed and not known to have ended
    most: np.ndarray  # [Q, R] what it may hold
    total: np.ndarray  # [R] of the cluster


@inlined
def waits(p: Queues, queue: int) -> bool:
    """Return whether a task of the queue waits."""
    return p.rows.waiting[queue] > 0


@inlined
def first_job(p: Queues, queue: int) -> int:
    """Return the job of the first task of a queue with some."""
    return p.heap[p.rows.first[queue]]


@inlined
def tasks_below(w: World, p: Queues, job: int, tasks: int) -> int:
    """Return how many of some tasks of a job its queue may hold besides what it holds."""
    queue, found = p.of_job[job], tasks
    for r in range(p.total.size):
        need = needed(w.room, job, r)
        if need > 0:
            found = min(found, max(p.most[queue, r] - p.held[queue, r], 0) // need)
    return found


@inlined
def weighted_share(p: Queues, queue: int) -> float:
    """Return the dominant share of a queue over its weight."""
    share = 0.0
    for r in range(p.total.size):
        share = max(share, p.held[queue, r] / p.total[r])
    return share / p.weight[queue]


@inlined
def hold(w: World, p: Queues, job: int, tasks: int) -> None:
    """Let the job's queue hold so many tasks of the job more, or less."""
    queue = p.of_job[job]
    for r in range(p.total.size):
        p.held[queue, r] += tasks * needed(w.room, job, r)


@compiled
def join(p: Queues, job: int) -> None:
    """Add a job to its queue."""
    queue, rank, heap = p.of_job[job], p.rank, p.heap
    first, i = p.rows.first[queue], p.rows.waiting[queue]
    p.rows.waiting[queue] = i + 1
    while i > 0 and rank[heap[first + (i - 1) // 2]] > rank[job]:
        heap[first + i] = heap[first + (i - 1) // 2]
        i = (i - 1) // 2
    heap[first + i] = job


@compiled
def leave(p: Queues, queue: int) -> None:
    """Remove the first job from a queue."""
    first, size, heap, rank, i = p.rows.first[queue], p.rows.waiting[queue] - 1, p.heap, p.rank, 0
    p.rows.waiting[queue] = size
    job = heap[first + size]
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and rank[heap[first + child + 1]] < rank[heap[first + child]]:
            child += 1
        if rank[heap[first + child]] >= rank[job]:
            break
        heap[first + i] = heap[first + child]
        i = child
    heap[first + i] = job


@inlined
def put_lost(w: World, p: Queues, job: int, task: int) -> None:
    """Put a lost task in front of its job, which is where it was in its queue."""
    if tasks_left(w, job) == 0:
        join(p, job)
    keep_task(w, job, task)


@inlined
def take_next(w: World, p: Queues, queue: int) -> tuple[int, int]:
    """Take the first task of a queue; return its job and the task. The job leaves with its last one."""
    job = first_job(p, queue)
    task = w.jobs.next_task[job]
    if w.faults.active == 1 and w.faults.jobs.lost[job] > 0:
        w.counts[N_SENT_AGAIN] += 1
        task = next_again(w, job)
    else:
        w.counts[N_PLACEMENTS] += 1
        w.jobs.next_task[job] = task + 1
    if tasks_left(w, job) == 0:
        leave(p, queue)
    return job, task


ORDER = Parameter(
    "order",
    "arrival",
    "choice",
    "whose task goes next: that of the first job to arrive, or of the tenant with the smallest share of the cluster "
    "over its weight, or over its guarantee; priorities count among the jobs of one tenant, with arrival among all",
    choices=("arrival", "fair", "capacity"),
)


def parameters_of(order: Parameter) -> tuple[Parameter, ...]:
    """Return the parameters of queues; `order` has the choices of `ORDER`."""
    weights = "weights of tenants, as in ads=2,search=0.5; others have 1"
    ceilings = "parts of the cluster that tenants never exceed, as in ads=50%; others have no bound"
    fair, capacity, both = (f"{order.name}={which}" for which in ("fair", "capacity", "fair|capacity"))
    return (
        order,
        Parameter("weights", "", "text", weights, needs=(fair,)),
        replace(GUARANTEES, needs=(capacity,)),
        Parameter("ceilings", "", "text", ceilings, needs=(both,)),
    )


def make_queues(
    setting: Setting,
    priority: np.ndarray,
    order: str,
    schedulers: int = 1,
    at_once: np.ndarray | None = None,
) -> Queues:
    """Return the queues of a setting whose scheduler has the parameters of `parameters_of`, without tasks.

    Args:
        setting: of the run.
        priority: [J] of jobs, or empty where none counts.
        order: the value of the parameter that chooses.
        schedulers: they take jobs in turn. Each has queues of its own, and an equal part of what a tenant may hold.
        at_once: [J] how many tasks of a job start together; None: each by itself.

    Raises:
        InputError: the parameters are wrong, or a task is larger than the ceiling of its tenant.
    """
    jobs = setting.workload.num_jobs
    queue, weight = np.zeros(jobs, np.int64), np.ones(1)
    tenants: list[str | None] = [None]
    shared = order != "arrival"
    if shared:
        queue, tenants = queues_by_tenant(setting.workload)
    given = given_to(setting.parameters["ceilings"], tenants, _what(setting, "ceilings")) if shared else {}
    if shared:
        weight = _weights(setting, tenants, order, given)
    total = _total(setting)
    most = _ceilings(given, tenants, total / schedulers)
    _refuse_larger(setting, queue, tenants, most, np.ones(jobs, np.int64) if at_once is None else at_once)
    queue = turns(setting) % schedulers * len(tenants) + queue
    job = np.lexsort((np.arange(jobs), -priority)) if priority.size else np.arange(jobs)
    rank = np.empty(jobs, np.int64)
    rank[job] = np.arange(jobs)
    rows = records(QUEUE, schedulers * len(tenants))
    rows.first[1:] = np.cumsum(np.bincount(queue, minlength=rows.size))[:-1]
    held, heap = np.zeros((rows.size, total.size), np.int64), np.zeros(jobs, np.int64)
    weight, most = np.tile(weight, schedulers), np.tile(most, (schedulers, 1))
    return Queues(queue, rank, heap, rows, weight, held, most, np.maximum(total, 1))


def _what(setting: Setting, parameter: str) -> str:
    return f"parameter {parameter} of {setting.scheduler.name}"


def _weights(
    setting: Setting, tenants: list[str | None], order: str, ceilings: Mapping[str, float]
) -> np.ndarray:
    """Return [Q] by what shares are divided."""
    if order == "capacity":
        what = _what(setting, "guarantees")
        return guaranteed(setting.parameters["guarantees"], tenants, what, ceilings)
    given = given_to(setting.parameters["weights"], tenants, _what(setting, "weights"), A_WEIGHT)
    return np.array([1.0 if tenant is None else given.get(tenant, 1.0) for tenant in tenants])


def _total(setting: Setting) -> np.ndarray:
    """Return [R] what all nodes have, in the unit of what tasks hold."""
    if not setting.resources:
        return np.array([setting.cluster.slots().sum()], np.int64)
    return amounts(capacities(setting.cluster, setting.resources)).sum(axis=0)


def _ceilings(given: Mapping[str, float], tenants: list[str | None], total: np.ndarray) -> np.ndarray:
    """Return [Q, R] what each queue of a scheduler may hold, by the parts of the total that are given."""
    most = np.full((len(tenants), total.size), np.iinfo(np.int64).max // 2)
    for tenant, part in given.items():
        most[tenants.index(tenant)] = np.floor(part * total * (1 + 1e-12)).astype(np.int64)
    return most


def _refuse_larger(
    setting: Setting, queue: np.ndarray, tenants: list[str | None], most: np.ndarray, at_once: np.ndarray
) -> None:
    """Refuse tasks, or tasks that start together, that are larger than what their queue may hold."""
    needs = np.ones((queue.size, 1), np.int64)
    if setting.resources:
        demands = demands_of(setting)
        needs = amounts(demands.vector)[demands.of_job]
    over = needs > most[queue] // at_once[:, None]
    if over.any():
        job, r = np.argwhere(over)[0].tolist()
        of, unit = (setting.resources[r], UNIT) if setting.resources else ("slots", 1)
        which, count = name_of(setting, job), setting.parameters.get("schedulers", 1)
        together = f"{at_once[job]:,} tasks of {which}, which start together, need"
        raise InputError(
            f"{_what(setting, 'ceilings')}: {f'a task of {which} needs' if at_once[job] == 1 else together} "
            f"{at_once[job] * needs[job, r] / unit:g} of {of}; "
            f"{shown(tenants[queue[job]])} may hold {most[queue[job], r] / unit:g}"
            f"{f' at each of {count} schedulers' if count > 1 else ''}"
        )
