"""The resources of a run of jobs: which of those that a workload states are held of nodes, and what they limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from clusters.capacity import capacities
from workloads.arrow import optional_column
from workloads.dags import MEMORY_UNITS, DagWorkload, memory_in_two_units
from workloads.hints import did_you_mean
from workloads.jobs import JobWorkload
from workloads.requests import gang_nodes, priorities

if TYPE_CHECKING:
    from actors.scheduler import Scheduler
    from actors.setting import Preemption
    from clusters.cluster import Cluster
    from emu.configuration.config import Config

AUTO, STATED, SLOTS = "auto", "stated", "slots"
PLAIN_CLUSTER = "homogeneous"
"""The cluster whose nodes are so many slots: their cores and memory are defaults."""

Float64Array = npt.NDArray[np.float64]


def used_resources(config: Config, workload: JobWorkload) -> tuple[str, ...]:
    """Return the resources that tasks hold of nodes; none where each takes a slot.

    A resource that no task states is not held: jobs that fit nowhere may be the only ones to state it, and be dropped.
    """
    use, stated = config["resources.use"].strip(), workload.resources
    if use == SLOTS or (use == AUTO and config["cluster"] == PLAIN_CLUSTER):
        return ()
    names = stated if use in (AUTO, STATED) else _named(use)
    return tuple(name for name in stated if name in names)


def check_resources(config: Config, workload: JobWorkload) -> None:
    """Refuse resources that no task of a workload, before any job is dropped, states, and memory in two units."""
    use, stated = config["resources.use"].strip(), workload.resources
    if use not in (SLOTS, AUTO):
        if not stated:
            raise config.error(
                "resources.use", f"no task of {workload.name} states what it needs; want {SLOTS}"
            )
        for name in stated if use == STATED else _named(use):
            if name not in stated:
                hint = (
                    did_you_mean(name, (*stated, AUTO, STATED, SLOTS)) or f"; it states {', '.join(stated)}"
                )
                raise config.error("resources.use", f"no task of {workload.name} states {name!r}{hint}")
    used = used_resources(config, workload)
    if {*MEMORY_UNITS} <= {*used}:
        one = ", ".join(name for name in used if name != "memory")
        wrong = f"{memory_in_two_units(workload)}: these are of the same memory; want one of them, as in"
        raise config.error("resources.use", f"{wrong} {one!r}, or other demands, by workload demands")


def _named(use: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in use.split(","))


def preemption_of(
    config: Config, workload: JobWorkload | DagWorkload, schedulers: tuple[Scheduler, ...]
) -> Preemption | None:
    """Return how running tasks make room for those of higher priority; None: they do not.

    Raises
    ------
    InputError
        A scheduler does not let nodes evict tasks, or priorities do not count or are not stated.
    """
    from actors.failures import MOST_EVICTIONS
    from actors.setting import Preemption

    mode = config["preemption.mode"]
    if mode == "none":
        return None
    if unable := [scheduler.name for scheduler in schedulers if not scheduler.preempts]:
        raise config.error("preemption.mode", f"nodes evict no tasks under {unable[0]}; want none")
    if not config["priorities"]:
        raise config.error("preemption.mode", "goes by priorities, and priorities=false ignores them")
    if "priority" not in workload.jobs.column_names:
        raise config.error("preemption.mode", f"no job of {workload.name} states a priority; want none")
    if config["preemption.most"] > MOST_EVICTIONS:
        raise config.error("preemption.most", f"is above {MOST_EVICTIONS}, the most that is counted")
    return Preemption(
        keeps=mode == "checkpoint",
        cost_s=config["preemption.cost"],
        most=config["preemption.most"],
        below=config["preemption.below"],
        oldest_first=config["preemption.order"] == "oldest",
    )


def request_notes(
    config: Config, workload: JobWorkload, resources: tuple[str, ...], schedulers: tuple[Scheduler, ...]
) -> list[str]:
    """Return notes on what tasks hold of nodes, and on what the workload states and the schedulers ignore."""
    notes, stated = [], workload.resources
    if resources:
        notes.append(f"tasks hold {' and '.join(resources)} of nodes{_unknown(workload, resources)}")
    if config["resources.passing"] and not resources:
        notes.append("resources.passing has no effect, as tasks take slots")
    if left_out := [name for name in stated if name not in resources]:
        instead = f"a cluster of machines, or resources.use={STATED}, counts them"
        how = "" if resources else f": each takes a slot; {instead}"
        notes.append(f"what tasks need of {' and '.join(left_out)} is left out{how}")
    notes += priority_notes(config, workload, "queues are in that order")
    notes += preemption_notes(config, workload)
    gangs = int((gang_nodes(workload.jobs) >= 0).sum())
    if gangs and (ignoring := [scheduler.name for scheduler in schedulers if not scheduler.gangs]):
        names = " and ".join(ignoring)
        verb = "starts" if len(ignoring) == 1 else "start"
        notes.append(f"{gangs:,} jobs are gangs, whose tasks {names} {verb} one by one")
    return notes


def priority_notes(config: Config, workload: JobWorkload | DagWorkload, order: str) -> list[str]:
    """Return the note on priorities that a workload states, if it does; ``order``: what schedulers make of them."""
    if "priority" not in workload.jobs.column_names:
        return []
    count = workload.num_jobs - workload.jobs["priority"].null_count
    use = order if config["priorities"] else "priorities=false ignores them"
    return [f"{count:,} jobs state a priority: {use}"]


def preemption_notes(config: Config, workload: JobWorkload | DagWorkload) -> list[str]:
    """Return the note on preemption, if it is on."""
    if (mode := config["preemption.mode"]) == "none":
        return []
    of_jobs, below = priorities(workload.jobs), config["preemption.below"]
    if np.ptp(of_jobs) == 0:
        return [f"all jobs have one priority: preemption.mode={mode} has no effect"]
    if below is not None and of_jobs.min() >= below:
        lowest = f"the lowest priority of a job is {of_jobs.min()}"
        return [
            f"preemption.below={below} protects all jobs, as {lowest}: preemption.mode={mode} has no effect"
        ]
    then = "start again" if mode == "restart" else "go on from where they were"
    return [f"running tasks make room for those of higher priority, and {then}"]


def _unknown(workload: JobWorkload, resources: tuple[str, ...]) -> str:
    """Return how many tasks state no demand of a resource, as the end of a note; empty if all do."""
    counts, parts = np.diff(workload.arrays().first_task), []
    for name in resources:
        lacks = np.ones(workload.num_tasks, bool)
        for table, times in ((workload.jobs, counts), (workload.tasks, None)):
            if name in table.column_names:
                unknown = np.isnan(optional_column(table, name).astype(np.float64))
                lacks &= unknown if times is None else np.repeat(unknown, times)
        if lacks.any():
            parts.append(f"{int(lacks.sum()):,} of {workload.num_tasks:,} state no {name}, and hold none")
    return f"; {', '.join(parts)}" if parts else ""


def shares_of_tasks(workload: JobWorkload, cluster: Cluster, resources: tuple[str, ...]) -> Float64Array:
    """Return what each task holds, as shares of the capacity of all nodes, shape (T, R); R is 1 with slots."""
    total = capacities(cluster, resources).sum(axis=0)
    if not resources:
        return np.full((workload.num_tasks, 1), 1.0 / total[0])
    found = workload.demands().only(resources)
    share = np.divide(found.vector, total, out=np.zeros_like(found.vector), where=total > 0)
    of_task = found.of_task
    if not of_task.size:
        of_task = np.repeat(found.of_job, np.diff(workload.arrays().first_task))
    return np.asarray(share[of_task])


def work_s(workload: JobWorkload, cluster: Cluster, resources: tuple[str, ...]) -> Float64Array:
    """Return the time in which all nodes could do all work, by resource (s): no run is shorter; shape (R,)."""
    durations = workload.arrays().duration_ns / 1e9
    if not resources:
        return np.array([durations.sum() / cluster.total_slots])
    return np.asarray(durations @ shares_of_tasks(workload, cluster, resources))
