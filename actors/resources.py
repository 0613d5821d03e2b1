"""What tasks need of nodes, and what is free there: resources.

A task holds its demand of each resource of its node from its start to its end. Demands are vectors, of which a workload
has few distinct ones. A message that names a job stands for the most that one of its tasks needs: a probe holds that
until its task arrives, which may need less.

Without resources a task takes a slot, and the arrays are empty. With them a node's `idle` never comes to 0, and what is
free decides. Amounts are whole numbers of billionths, so that what is taken and given back is exact.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from actors.conditions import read_only
from actors.kernel.compiled import inlined
from actors.kernel.queue import NONE
from actors.kernel.records import Records
from actors.setting import Setting
from clusters.capacity import capacities
from workloads.requests import Demands

UNLIMITED = np.int64(1) << 40  # idle slots of a node that has resources


class Room(NamedTuple):
    """Demands of J jobs and T tasks, D distinct ones of R resources, and what N nodes have free."""

    active: int  # 1: tasks need resources; 0: each takes a slot
    demand: np.ndarray  # [D, R] read-only
    of_job: np.ndarray  # [J] the most that a task of the job needs, read-only
    of_task: np.ndarray  # [T] read-only; empty where the tasks of each job are alike
    mean: np.ndarray  # [R] mean demand of all tasks, read-only
    capacity: np.ndarray  # [N, R] read-only
    free: np.ndarray  # [N, R]
    passing: float  # an entry of a queue that does not fit is passed by at most this many times its estimate


class HasRoom(Protocol):
    """The part of a world that the functions of this file need."""

    @property
    def room(self) -> Room:
        """Demands and what is free."""

    @property
    def nodes(self) -> Records:
        """[N] a row for each node."""

    @property
    def work(self) -> Records:
        """[J] JOB_INFO."""


@inlined
def demand_of(w: HasRoom, job: int, task: int) -> int:
    """Return the demand of a task, or of a probe of the job if `task` is NONE: a row of `Room.demand`, or NONE."""
    if w.room.active == 0:
        return NONE
    if task == NONE or w.room.of_task.size == 0:
        return w.room.of_job[job]
    return w.room.of_task[task]


@inlined
def needed(room: Room, job: int, r: int) -> int:
    """Return what a task of the job needs of a resource, at most; 1 where tasks take slots."""
    return room.demand[room.of_job[job], r] if room.active == 1 else np.int64(1)


@inlined
def fits(w: HasRoom, node: int, demand: int) -> bool:
    """Return whether a node has a demand free."""
    found = True
    for r in range(w.room.demand.shape[1]):
        found &= w.room.free[node, r] >= w.room.demand[demand, r]
    return found


@inlined
def hold_room(w: HasRoom, node: int, demand: int) -> None:
    """Take a demand of what a node has free."""
    for r in range(w.room.demand.shape[1]):
        w.room.free[node, r] -= w.room.demand[demand, r]


@inlined
def free_room(w: HasRoom, node: int, demand: int) -> None:
    """Give a demand back to a node."""
    for r in range(w.room.demand.shape[1]):
        w.room.free[node, r] += w.room.demand[demand, r]


@inlined
def empty_node(w: HasRoom, node: int) -> None:
    """Let all of a node be free."""
    for r in range(w.room.demand.shape[1]):
        w.room.free[node, r] = w.room.capacity[node, r]


@inlined
def idle_slots(w: HasRoom, node: int) -> int:
    """Return a node's idle slots: with resources, as many as mean tasks would fit, and at least 1 on an empty node."""
    if w.room.active == 0 or w.nodes.idle[node] == 0:  # of a node that is down
        return max(w.nodes.idle[node], 0)  # a node may have asked for tasks that others are to make room for
    return max(mean_tasks(w.room.mean, w.room.free, node), np.int64(w.nodes.idle[node] == UNLIMITED))


@inlined
def mean_tasks(mean: np.ndarray, amounts: np.ndarray, node: int) -> int:
    """Return how many tasks of mean demand fit into an amount of each resource, a row of `amounts`; 1 if it is 0."""
    most = UNLIMITED
    for r in range(mean.size):
        if mean[r] > 0:
            most = min(most, amounts[node, r] // mean[r])
    return most if most < UNLIMITED else np.int64(1)


@inlined
def work_at(w: HasRoom, node: int, job: int) -> int:
    """Return the estimated work of a task at a node, ns: with resources, of the part of the node that it takes.

    That part is of the resource of which it takes the most (its dominant share).
    """
    estimate = w.work.estimate[job]
    if w.room.active == 0:
        return estimate
    part, demand = 0.0, w.room.of_job[job]
    for r in range(w.room.demand.shape[1]):
        needed = w.room.demand[demand, r]
        if needed > 0:
            part = max(part, needed / max(w.room.capacity[node, r], needed))
    return np.int64(estimate * part)


# At time 0: what tasks need, and what nodes have.

UNIT = 1_000_000_000
"""Billionths of a core, of a node's memory, of a node's bandwidth."""


def amounts(values: np.ndarray) -> np.ndarray:
    """Return amounts of resources in whole billionths."""
    return np.round(np.asarray(values, np.float64) * UNIT).astype(np.int64)


def make_room(setting: Setting) -> Room:
    """Return demands of tasks and what is free on nodes without tasks; empty where tasks take slots."""
    if not setting.resources:
        nothing, none = np.zeros((0, 0), np.int64), read_only(np.zeros(0, np.int64))
        empty = read_only(nothing.copy())
        return Room(0, empty, none, none, none, empty, nothing, 0.0)
    demands = demands_of(setting)
    capacity = amounts(capacities(setting.cluster, setting.resources))
    return Room(
        active=1,
        demand=read_only(amounts(demands.vector)),
        of_job=read_only(demands.of_job),
        of_task=read_only(demands.of_task),
        mean=read_only(mean_demand(setting)),
        capacity=read_only(capacity),
        free=capacity.copy(),
        passing=float(setting.passing),
    )


def demands_of(setting: Setting) -> Demands:
    """Return what tasks need of the resources of a setting."""
    demands: Demands = setting.workload.demands().only(setting.resources)
    return demands


def mean_demand(setting: Setting) -> np.ndarray:
    """Return [R] the mean demand of all tasks, in billionths."""
    demands, first_task = demands_of(setting), setting.workload.arrays().first_task
    of = demands.of_task if demands.of_task.size else demands.of_job
    weight = None if demands.of_task.size else np.diff(first_task).astype(np.float64)
    tasks = np.bincount(of, weight, minlength=len(demands.vector))
    return amounts(tasks @ demands.vector / tasks.sum())


def node_slots(setting: Setting) -> np.ndarray:
    """Return [N] how many tasks each node runs at once: its slots, or as many mean tasks as it holds, at least one."""
    if not setting.resources:
        return setting.cluster.slots().astype(np.int64)
    mean, capacity = mean_demand(setting), amounts(capacities(setting.cluster, setting.resources))
    needed = mean > 0
    if not needed.any():
        return np.ones(setting.cluster.num_nodes, np.int64)
    return np.maximum((capacity[:, needed] // mean[needed]).min(axis=1), 1)


def servers(setting: Setting) -> np.ndarray:
    """Return [N] over how many servers the estimated work of a node is spread.

    They are its slots; with resources the work of a task is that of the part of the node that it takes, and a node is
    one server (`actors.resources.work_at`).
    """
    return np.ones(setting.cluster.num_nodes, np.int64) if setting.resources else node_slots(setting)


def idle_at_start(setting: Setting) -> np.ndarray:
    """Return the idle slots of nodes without tasks: [N], `UNLIMITED` where resources decide."""
    slots = setting.cluster.slots()
    return np.full_like(slots, UNLIMITED) if setting.resources else slots
