"""The jobs of a configuration, with their constraints, and clusters that they can run on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from emu.configuration.config import Config
from emu.configuration.loading import CannotRun, Keyed, load_cluster_of, load_of_family
from emu.configuration.seeds import constraints_seed
from emu.configuration.workload_cache import WorkloadCache
from emu.families.jobs.resources import used_resources, work_s
from workloads.errors import InputError
from workloads.jobs import JobWorkload
from workloads.transform import busy_slots

if TYPE_CHECKING:
    from actors.scheduler import Scheduler
    from clusters.cluster import Cluster


_CONSTRAINTS = ("model", "combined", "jobs", "soft", "price", "seed")


def load_jobs_of(config: Config, cache: WorkloadCache, scheduler: str) -> Keyed:
    """Return the jobs of a configuration, with the constraints that it asks for.

    Raises
    ------
    InputError
        The workload does not exist, is wrong or of another family; an option is named where it was given.
    """
    workload, key = load_of_family(config, cache, "jobs", scheduler)
    if config["constraints.model"] is None:
        return Keyed(workload, key)
    asked = {name: config[f"constraints.{name}"] for name in _CONSTRAINTS} | {
        "seed": constraints_seed(config)
    }
    key = (*key, "constraints", *asked.items())
    return Keyed(cache.get(key, lambda: _constrained(config, workload, asked)), key)


def _constrained(config: Config, workload: JobWorkload, asked: dict[str, Any]) -> JobWorkload:
    """Return the workload with constraints drawn for its jobs, or without any."""
    from workloads.constraints import with_constraints
    from workloads.transform import constrain

    if asked["model"] == "none":
        return with_constraints(workload, [], np.full(workload.num_jobs, -1))
    if asked["soft"] is None:  # a price has no effect
        del asked["price"]
    try:
        return constrain(workload, **asked)
    except InputError as error:
        name = error.field if error.field in _CONSTRAINTS else "model"
        raise config.error(f"constraints.{name}", error.message) from None


def feasible(
    config: Config,
    workload: JobWorkload,
    cluster: Cluster,
    resources: tuple[str, ...],
    gangs: str | None = None,
) -> JobWorkload:
    """Return the workload, without jobs that the cluster cannot run if the configuration drops them.

    `resources`: what tasks hold of nodes; none: slots. `gangs`: which jobs must start all their tasks at once
    (`clusters.feasibility.gangs_of`); None: no jobs.

    Raises
    ------
    InputError
        A job cannot run: it and its constraints, or what its tasks need, are named.
    """
    from clusters import feasibility
    from clusters.capacity import needs_of
    from clusters.matching import match

    drops = config["infeasible"] == "drop"
    needs = None
    try:
        if resources:
            needs = needs_of(workload, cluster, resources)
        if workload.job_constraints.num_rows or resources:
            if drops:
                workload = feasibility.drop_infeasible(workload, cluster, needs)[0]
                resources = tuple(name for name in resources if name in workload.resources)
            else:
                feasibility.check_feasible(workload, cluster, match(workload, cluster, needs), needs)
        if gangs is not None:
            nodes = feasibility.gangs_of(workload, gangs)
            # of the jobs that are left
            needs = needs_of(workload, cluster, resources) if resources else None
            if drops:
                workload = feasibility.drop_wide(workload, nodes, cluster, needs)
            else:
                feasibility.check_widths(workload, nodes, cluster, needs)
    except InputError as error:
        raise CannotRun.of(config, error) from None
    return workload


def gangs_to_start(config: Config, schedulers: tuple[Scheduler, ...]) -> str | None:
    """Return which jobs some scheduler starts as gangs, "stated" or "all"; None if none does."""
    from emu.configuration.schedulers import scheduler_parameters

    if not any(scheduler.gangs for scheduler in schedulers):
        return None
    found = scheduler_parameters(config, schedulers)
    which = [own["gangs"] for one, own in zip(schedulers, found, strict=True) if one.gangs]
    return "all" if "all" in which else "stated"


def nodes_for_load(config: Config, source: JobWorkload, load: float, cache: WorkloadCache) -> int:
    """Return the number of nodes, at least one, on which a workload offers about this load."""
    busy = busy_slots(source)
    nodes = max(round(busy / load), 1)
    for _ in range(8):  # exact at once where all nodes are alike; machine types come in proportion
        slots = slots_equal_to(config, source, load_cluster_of(config, nodes, cache))
        better = max(round(nodes * busy / load / slots), 1)
        if better == nodes:
            break
        nodes = better
    return nodes


def slots_equal_to(config: Config, workload: JobWorkload, cluster: Cluster) -> float:
    """Return the number of slots with which a workload has the same offered load as on a cluster.

    Raises
    ------
    InputError
        No task needs anything of nodes for any time.
    """
    resources = used_resources(config, workload)
    if not resources:
        return cluster.total_slots
    total_s, busy_s = (
        float(workload.arrays().duration_ns.sum()) / 1e9,
        work_s(workload, cluster, resources).max(),
    )
    if not busy_s:
        raise InputError(f"no task of {workload.name} needs {' or '.join(resources)} for any time")
    return total_s / float(busy_s)
