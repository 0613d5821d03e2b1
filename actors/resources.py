"""The resources of a setting, as the kernel uses them: what tasks need, and what nodes have."""

from __future__ import annotations

import numpy as np

from actors.conditions import read_only
from actors.kernel.room import Room
from actors.setting import Setting
from clusters.capacity import capacities
from workloads.requests import Demands

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
    one server (`actors.kernel.room.work_at`).
    """
    return np.ones(setting.cluster.num_nodes, np.int64) if setting.resources else node_slots(setting)
