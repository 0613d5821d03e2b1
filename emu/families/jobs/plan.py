"""Plans of job schedulers: jobs and nodes, with checks and notes before a run."""

from __future__ import annotations

import math
import re
import time
from typing import TYPE_CHECKING, Any

from emu.configuration.loading import (
    TIMELINE_ROWS,
    Keyed,
    Loaded,
    at_load_of,
    cluster_before,
    cluster_for_load,
)
from emu.configuration.seeds import scheduler_seed
from emu.configuration.workload_cache import WorkloadCache
from emu.families.jobs.cutoffs import classes_of
from emu.families.jobs.loading import feasible, gangs_to_start, load_jobs_of, nodes_for_load
from emu.families.jobs.resources import (
    SLOTS,
    check_resources,
    preemption_of,
    request_notes,
    used_resources,
    work_s,
)
from emu.results.metrics import after_warmup
from workloads.arrow import column
from workloads.dags import DagWorkload
from workloads.jobs import JobWorkload

if TYPE_CHECKING:
    from actors.scheduler import Scheduler
    from actors.setting import Dynamics
    from clusters.cluster import Cluster
    from emu.configuration.config import Config


def load_jobs(config: Config, schedulers: tuple[Scheduler, ...], cache: WorkloadCache) -> Loaded:
    """Load the jobs and the cluster of a configuration, and check them.

    Raises
    ------
    InputError
        What is missing or wrong, and where it was given.
    """
    from actors.setting import Estimates

    before = cluster_before(config, cache, example=15_000)
    started = time.perf_counter()
    loaded, key = load_jobs_of(config, cache, schedulers[0].name)
    load_s = time.perf_counter() - started
    check_resources(config, loaded)
    cluster = cluster_for_load(config, cache, loaded, nodes_for_load) if before is None else before
    resources, gangs = used_resources(config, loaded), gangs_to_start(config, schedulers)
    key = (*key, "feasible", id(cluster), config["infeasible"], resources, gangs)
    source = cache.get(key, lambda: feasible(config, loaded, cluster, resources, gangs))
    resources = used_resources(config, source)  # of the jobs that are left
    workload = source
    if before is not None:
        workload = at_load_of(config, cache, "jobs", Keyed(source, key), cluster)
    classes = classes_of(config, workload, schedulers)
    check_jobs(config, workload)
    submit_s = column(workload.jobs, "submit_s")
    longest_s = float(column(workload.tasks, "duration_s").max())
    span_s = float(submit_s[-1] - submit_s[0])
    busy_s = work_s(workload, cluster, resources)
    period_s = config["timeline.period"]
    if period_s == "auto":
        period_s = max(span_s + longest_s, float(busy_s.max()), 1e-6) / TIMELINE_ROWS
    load = float(busy_s.max()) / span_s if span_s > 0 else None
    dynamics = dynamics_of(config, cluster)
    notes = (
        *dict.fromkeys(workload.notes + cluster.notes),
        *_load_notes(config, cluster, load, resources[int(busy_s.argmax())] if resources else ""),
        *request_notes(config, workload, resources, schedulers),
        *_constraint_notes(workload, schedulers),
        *classes.notes,
        *endless_task_note(dynamics, workload),
    )
    return Loaded(
        source=source,
        workload=workload,
        cluster=cluster,
        load=load,
        load_s=load_s,
        period_s=period_s,
        notes=notes,
        setting={
            "short_cutoff_s": classes.short_cutoff_s,
            "long_partition": classes.long_partition,
            "estimates": Estimates(config["estimates.error"], config["estimates.size"]),
            "dynamics": dynamics,
            "machine_speed": config["machine_speed"],
            "resources": resources,
            "passing": config["resources.passing"],
            "priorities": config["priorities"],
            "preemption": preemption_of(config, workload, schedulers),
        },
        keys={
            "short_cutoff": classes.short_cutoff_s if math.isfinite(classes.short_cutoff_s) else None,
            "long_partition": classes.long_partition,
            **({"resources.use": ", ".join(resources) or SLOTS} if workload.resources else {}),
        },
    )


def _load_notes(config: Config, cluster: Cluster, load: float | None, scarcest: str) -> tuple[str, ...]:
    """Return a note on a load above 1; `scarcest`: the resource of which it is, empty for slots."""
    from workloads.catalogue import generators

    if load is None or load <= 1:
        return ()
    if scarcest:
        return (f"offered load is {load:.2f}: more work arrives than nodes have {scarcest} for; queues grow",)
    slots = cluster.total_slots
    note = f"offered load is {load:.2f}: more work arrives than {slots:,} slots do; queues grow"
    name = config["workload"]
    made_for = re.search(r"nodes=(\d+)", generators().get(name, "")) if isinstance(name, str) else None
    if made_for and "nodes" not in config.workload_options and int(made_for[1]) != slots:
        note += f"; --set workload_options.nodes={slots} makes {name} for this size"
    return (note,)


def _constraint_notes(workload: JobWorkload, schedulers: tuple[Scheduler, ...]) -> tuple[str, ...]:
    """Return notes on constraints that schedulers ignore."""
    ignoring = [s for s in schedulers if not s.constrained]
    constrained = workload.job_constraints.num_rows
    if not ignoring or not constrained:
        return ()
    names, verb = " and ".join(s.name for s in ignoring), "ignores" if len(ignoring) == 1 else "ignore"
    note = f"{constrained:,} jobs have constraints, which {names} {verb}: tasks run on any node"
    aware = [t for t in map(_constraint_aware, ignoring) if t]
    if aware:
        note += f"; {' and '.join(aware)} respect{'s' if len(aware) == 1 else ''} them"
    return (note,)


def check_jobs(config: Config, workload: JobWorkload | DagWorkload) -> None:
    """Refuse a size of errors that random errors cannot have, and a warm-up that leaves no job."""
    size, error = config["estimates.size"], config["estimates.error"]
    if error == "random" and not 0 <= size < 1:
        raise config.error("estimates.size", f"{size:g} is not in 0 <= size < 1, as random errors need")
    submit_s = column(workload.jobs, "submit_s")
    if not after_warmup(submit_s, config["warmup"]).any():
        last_s = float(submit_s[-1] - submit_s[0])
        raise config.error("warmup", f"leaves no job: the last arrives {last_s:g} s after the first")


def _constraint_aware(scheduler: Scheduler) -> str:
    """Return the name of the constraint-aware form of a scheduler; empty if it has none."""
    from actors.schedulers.registry import built_in_schedulers

    twins = (s.name for s in built_in_schedulers() if s.constrained and s.advance is scheduler.advance)
    return "" if scheduler.global_view == ("always",) else next(twins, "")


def dynamics_of(config: Config, cluster: Cluster) -> Dynamics:
    """Return the dynamics that a configuration asks for.

    Raises
    ------
    InputError
        A key needs another one that is not given, or the schedule of failures is wrong.
    """
    from actors.setting import Dynamics
    from clusters.failures import load_outages

    mtbf_s, mttr_s = config["dynamics.mtbf"], config["dynamics.mttr"]
    if (mtbf_s is None) != (mttr_s is None):
        there, missing = ("mtbf", "mttr") if mttr_s is None else ("mttr", "mtbf")
        raise config.error(
            f"dynamics.{there}",
            f"goes with dynamics.{missing}: how long nodes are up and how long they are down, both",
        )
    for name, value in (("mtbf", mtbf_s), ("mttr", mttr_s)):
        if value == 0:
            raise config.error(f"dynamics.{name}", "is 0; want a time such as '30 d' or '1 h'")
    outages = None
    if config["dynamics.failures"] is not None:
        with config.errors_name("dynamics.failures"):
            outages = load_outages(config["dynamics.failures"], cluster, scheduler_seed(config))
    distribution, slowdown = config["dynamics.straggler_distribution"], config["dynamics.straggler_slowdown"]
    if slowdown < 1:
        raise config.error(
            "dynamics.straggler_slowdown", f"{slowdown:g} would make stragglers faster; want 1 or more"
        )
    if config["dynamics.straggler_shape"] <= 1:
        raise config.error("dynamics.straggler_shape", "a Pareto distribution has a mean only above 1")
    return Dynamics(
        outages=outages,
        mtbf_s=mtbf_s,
        mttr_s=mttr_s,
        detection_s=config["dynamics.detection"],
        failover_s=config["dynamics.failover"],
        straggler_share=config["dynamics.straggler_share"],
        straggler_slowdown=slowdown,
        straggler_distribution=distribution,
        straggler_shape=config["dynamics.straggler_shape"],
        straggler_sigma=config["dynamics.straggler_sigma"],
    )


def endless_task_note(dynamics: Dynamics, workload: Any) -> tuple[str, ...]:
    """Return a note if the longest task has little chance to end between two failures."""
    from actors.environment import frequent_failures

    found = frequent_failures(dynamics, float(workload.arrays().duration_ns.max()) / 1e9)
    return () if found is None else (found,)
