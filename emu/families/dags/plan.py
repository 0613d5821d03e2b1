"""Plans of schedulers of DAG jobs: jobs of stages and machines, with checks and notes before a run."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from clusters.capacity import check_demands, demands, drop_oversized, offered_load, work_s
from emu.configuration.loading import (
    TIMELINE_ROWS,
    CannotRun,
    Keyed,
    Loaded,
    at_load_of,
    cluster_before,
    cluster_for_load,
    load_cluster_of,
    load_of_family,
)
from emu.configuration.workload_cache import WorkloadCache
from emu.families.dags.network import moved_by, network_notes, network_of
from emu.families.jobs.cutoffs import classes_of
from emu.families.jobs.plan import check_jobs, dynamics_of, endless_task_note
from emu.families.jobs.resources import preemption_notes, preemption_of, priority_notes
from workloads.arrow import column
from workloads.critical_path import critical_paths_ns
from workloads.dags import DagWorkload, memory_in_two_units
from workloads.errors import InputError
from workloads.transform.load import busy_slots, stretched_s
from workloads.transform.primitives import arriving_at, with_tables

if TYPE_CHECKING:
    from actors.scheduler import Scheduler
    from clusters.cluster import Cluster
    from emu.configuration.config import Config


def load_dags(config: Config, schedulers: tuple[Scheduler, ...], cache: WorkloadCache) -> Loaded:
    """Load the DAGs and the cluster of a configuration, and check them.

    Raises
    ------
    InputError
        What is missing or wrong, and where it was given; a task that does not fit any machine.
    """
    from actors.setting import Estimates

    before = cluster_before(config, cache, example=100)
    started = time.perf_counter()
    loaded, key = load_of_family(config, cache, "dags", schedulers[0].name)
    loaded, key = moved_by(config, loaded), (*key, config["network.scheduler"])
    load_s = time.perf_counter() - started
    if both := memory_in_two_units(loaded):
        wrong = (
            f"{both}: these are of the same memory; want one of them, or other demands, by workload demands"
        )
        raise config.error("workload", wrong)
    cluster = cluster_for_load(config, cache, loaded, nodes_for_load) if before is None else before
    key = (*key, "fitting", id(cluster), config["infeasible"])
    source = cache.get(key, lambda: _fitting(config, loaded, cluster))
    workload = source
    if before is not None:
        workload = at_load_of(config, cache, "dags", Keyed(source, key), cluster)
    classes = classes_of(config, workload, schedulers)
    check_jobs(config, workload)
    submit_s = column(workload.jobs, "submit_s")
    span_s = float(submit_s[-1] - submit_s[0])
    period_s = config["timeline.period"]
    if period_s == "auto":
        longest_s = float(critical_paths_ns(workload).max()) / 1e9
        period_s = max(span_s + longest_s, float(work_s(workload, cluster).max()), 1e-6) / TIMELINE_ROWS
    load = offered_load(workload, cluster)
    dynamics = dynamics_of(config, cluster)
    return Loaded(
        source=source,
        workload=workload,
        cluster=cluster,
        load=load,
        load_s=load_s,
        period_s=period_s,
        notes=(
            *dict.fromkeys(workload.notes + cluster.notes),
            *_notes(config, workload, load, schedulers),
            *network_notes(config, workload),
            *classes.notes,
            *endless_task_note(dynamics, workload),
        ),
        setting={
            "short_cutoff_s": classes.short_cutoff_s,
            "long_partition": classes.long_partition,
            "estimates": Estimates(
                config["estimates.error"], config["estimates.size"], config["estimates.demands"]
            ),
            "dynamics": dynamics,
            "priorities": config["priorities"],
            "preemption": preemption_of(config, workload, schedulers),
            "switch": network_of(config, workload, cluster),
            "slows": _slows(config),
        },
        keys={
            "short_cutoff": classes.short_cutoff_s if math.isfinite(classes.short_cutoff_s) else None,
            "long_partition": classes.long_partition
            if _uses_partition(schedulers)
            else config["long_partition"],
        },
    )


def _slows(config: Config) -> bool:
    """Return whether tasks that over-use a machine slow each other down.

    Raises
    ------
    InputError
        They do not with preemption.
    """
    if config["overuse"] == "ignored":
        return False
    if config["preemption.mode"] != "none":
        wrong = "what an evicted task has done would be counted by its time, and not by its work"
        raise config.error("overuse", f"slows does not go with preemption.mode: {wrong}; want ignored")
    return True


def _uses_partition(schedulers: tuple[Scheduler, ...]) -> bool:
    return any(one.why_ignored("long_partition") is None for one in schedulers)


def _fitting(config: Config, workload: DagWorkload, cluster: Cluster) -> DagWorkload:
    """Return the workload, without jobs that do not fit any machine if the configuration drops them."""
    try:
        if config["infeasible"] == "drop":
            return drop_oversized(workload, cluster)
        check_demands(workload, cluster)
    except InputError as error:
        raise CannotRun.of(config, error) from None
    return workload


def _notes(
    config: Config, workload: DagWorkload, load: float | None, schedulers: tuple[Scheduler, ...]
) -> list[str]:
    """Return notes on a load above 1, unknown demands, priorities, and on gangs and constraints, which are ignored."""
    notes = []
    if load is not None and load > 1:
        notes.append(
            f"offered load is {load:.2f}: more work arrives than machines do, by the scarcest resource; jobs wait"
        )
    if not workload.resources:
        notes.append(f"no demands of {workload.name} are held: each task takes a slot of a machine")
    elif unknown := int((demands(workload).max(axis=1) == 0).sum()):
        notes.append(
            f"{unknown:,} of {workload.num_stages:,} stages need nothing of machines: their tasks start at once"
        )
    notes += priority_notes(config, workload, _use_of_priorities(schedulers))
    notes += preemption_notes(config, workload)
    if "gang_nodes" in workload.jobs.column_names:
        count = workload.num_jobs - workload.jobs["gang_nodes"].null_count
        notes.append(f"{count:,} jobs ask to start as a gang, which schedulers of DAGs ignore")
    if constrained := workload.job_constraints.num_rows:
        notes.append(
            f"{constrained:,} jobs have constraints, which schedulers of DAGs ignore: tasks run on any node with room"
        )
    return notes


def _use_of_priorities(schedulers: tuple[Scheduler, ...]) -> str:
    own = [scheduler.name for scheduler in schedulers if scheduler.own is not None]
    used = "jobs of a higher one are served first"
    for limited in (scheduler for scheduler in schedulers if scheduler.priorities):
        used += f", by {limited.name} {limited.priorities}"
    given = f"{' and '.join(own)} {'gets' if len(own) == 1 else 'get'} them as stages.priority"
    return given if len(own) == len(schedulers) else f"{used}; {given}" if own else used


def slots_equal_to(workload: DagWorkload, cluster: Cluster) -> float:
    """Return the number of slots with which a workload has the same offered load as on a cluster.

    Raises
    ------
    InputError
        The workload has no offered load: all jobs arrive at once, or no task takes any time or resources.
    """
    busy, load = busy_slots(workload), offered_load(workload, cluster)
    if not load:
        raise InputError(
            f"no task of {workload.name} needs anything of machines, so that its offered load is 0"
        )
    return busy / load


def at_load(workload: DagWorkload, slots: float, load: float) -> DagWorkload:
    """Return the workload with the gaps between arrivals scaled, so that the scarcest resource has an offered load.

    `slots` are those of `slots_equal_to`; the first arrival stays where it is.
    """
    factor = busy_slots(workload) / (load * slots)
    made = arriving_at(workload, stretched_s(workload, factor, f"at a load of {load:g}"))
    done = f"gaps scaled by {factor:.6g}, to an offered load of {load:g} of the scarcest resource"
    return with_tables(made, metadata={**made.metadata, "arrivals": done})


def nodes_for_load(config: Config, source: DagWorkload, load: float, cache: WorkloadCache) -> int:
    """Return the number of nodes, at least one, on which a workload offers about this load."""
    nodes = 1
    for _ in range(8):  # exact at once where all nodes are alike; machine types come in proportion
        offered = offered_load(source, load_cluster_of(config, nodes, cache))
        if not offered:
            busy_slots(source)  # raises the error
        better = max(round(nodes * (offered or load) / load), 1)
        if better == nodes:
            break
        nodes = better
    return nodes
