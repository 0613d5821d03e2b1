"""Tables of a run of jobs: their columns, and how these are computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu.columns import COSTS, Column, ResultTable, columns_of, make_table, null_unless, seconds
from emu.families.jobs.metrics import describe_jobs
from emu.families.jobs.resource_use import (
    RESOURCES,
    TENANTS,
    mean_held,
    resources_table,
    tenants_held,
    use_over_time,
    with_shares,
)
from emu.families.jobs.resources import shares_of_tasks
from emu.results.metrics import describe_utilisation
from emu.results.result import ENDED_EARLY
from workloads.arrow import column, from_numpy, from_strings
from workloads.dags import DagWorkload
from workloads.jobs import JobWorkload

if TYPE_CHECKING:
    from actors.hosting.outcome import Outcome
    from actors.schedulers.jobs.pressure import Pressure
    from emu.configuration.config import Config
    from emu.configuration.plan import Plan


JOBS = columns_of("""
    job_id      int    - The job's id in the workload.
    submit_s    float  s When the job arrived.
    start_s     float? s When its first task started; null if none did.
    finish_s    float? s When its last task finished; null if the job did not finish.
    jct_s       float? s Job completion time, finish_s - submit_s.
    wait_s      float? s Time until the first task started, start_s - submit_s.
    ideal_s     float  s Duration of the job's longest task: its completion time on an empty cluster of unlimited size
          and without network delay.
    slowdown    float? - jct_s / ideal_s; null if ideal_s is 0 or the job did not finish.
    num_tasks   int    - Tasks of the job.
    mean_task_s float  s Mean task duration as the workload states it.
    job_class   text   - `long` if mean_task_s is above the short cut-off, else `short`.
    constraint  text?  - Kind of the job's placement constraint, or null.
    tenant      text?  - Who submitted the job, or null.
""")

FURTHER_JOBS = columns_of("""
    priority       int?  - Its priority, the larger goes first; null if it states none: 0.
    evictions      int   - How often tasks of it were evicted.
    evicted_work_s float s Work that was lost when its tasks were evicted, and the time that it took to restore them.
""")
"""Further columns of ``jobs.parquet``, of runs whose workload states priorities, and of runs with preemption."""

TIMELINE = columns_of("""
    time_s        float s     Virtual time of the row.
    utilisation   float -     Share of all slots that run a task, 0..1. With resources: the share of the capacity of
          all nodes that tasks held of the resource with the largest share, in the mean over the span before.
    queued_short  int   tasks Tasks of short jobs that have arrived and not started.
    queued_long   int   tasks Tasks of long jobs that have arrived and not started.
    running_short int   tasks Tasks of short jobs that run.
    running_long  int   tasks Tasks of long jobs that run.
""")

FURTHER_TIMELINE = columns_of("""
    up_nodes          int nodes  With failures: nodes that are up.
    backlog           int events With the clock `live`: events that were due and not handled when their partition
          looked for some: the most since the row before, summed over partitions.
    scheduler_backlog int events The same of partitions with schedulers.
""")
"""Further columns of ``timeline.parquet``, of runs in which nodes fail or with the clock `live`."""

TASKS = columns_of("""
    job_id     int    - The task's job.
    task       int    - Position of the task in its job, from 0, in workload order.
    node       int?   - Node that ran the task; null if it did not start.
    start_s    float? s When the task started; null if it did not.
    finish_s   float? s When the task finished; null if it did not.
    duration_s float  s Duration of the task in the workload.
""")

FURTHER_TASKS = columns_of("""
    slot        int?   -     Slot of the node, from 0: the slots of a node are alike, and a task is shown in the first
          that is free. Null if the task did not finish.
    enqueued_s  float? s     When the task, or the probe that fetched it, joined the queue of its node; of a sticky
          probe when the task before it ended. Null if the task did not start.
    ahead       int?   tasks Tasks that ran on the node from then until the start of the task; 0 if it did not wait.
    ahead_s     float? s     How long these ran in that time, summed over the node's slots.
    probes_sent int?   -     Probes that schedulers had sent for its job until the task started.
""")
"""Further columns of ``tasks.parquet``, with `output.events`; null for tasks of jobs that are not recorded."""

ATTEMPTS = columns_of("""
    job_id  int   - The task's job.
    task    int   - Position of the task in its job, from 0, in workload order.
    node    int   - Node that ran the task.
    start_s float s When the attempt started.
    end_s   float s When the task was evicted, was lost with its node, its gang or its input, or ended.
    ended   flag  - Whether it had ended: it ran again as its gang, or with a network its output, was lost.
""")

CRV = columns_of("""
    time_s   float  s When the scheduler's monitor made the row, in virtual time.
    resource text   - The attribute of nodes that constraints are on.
    demand   float  - Demand for the resource as the monitor knew it: queued tasks that ask for it.
    supply   float? - Supply of the resource: nodes that have it as queued tasks ask for it; null while no queued task
          does.
    crv      float  - The resource's entry of the Constraint Resource Vector: demand over supply.
""")


def jobs_table(workload: JobWorkload, outcome: Outcome) -> pa.Table:
    """Return the table of jobs."""
    arrays = workload.arrays()
    ideal_ns = np.maximum.reduceat(arrays.duration_ns, arrays.first_task[:-1])
    return make_table(JOBS, jobs_columns(workload, outcome, ideal_ns), FURTHER_JOBS)


def jobs_columns(
    workload: JobWorkload | DagWorkload, outcome: Outcome, ideal_ns: npt.NDArray[np.int64]
) -> dict[str, Any]:
    """Return the columns of the table of jobs; times are exact to the nanosecond before they are turned into seconds.

    ``ideal_ns``, shape (J,), is what each job would take on an empty cluster of unlimited size.
    """
    arrays = workload.arrays()
    finished = outcome.finish_ns >= 0
    jct_s = (outcome.finish_ns - arrays.submit_ns) / 1e9
    ideal_s = ideal_ns / 1e9
    sized = finished & (ideal_ns > 0)
    jobs, more = workload.jobs, {}
    if "priority" in jobs.column_names:
        more["priority"] = jobs["priority"].combine_chunks()
    if outcome.evicted is not None:
        evictions, lost_us = outcome.evicted
        more |= {"evictions": evictions, "evicted_work_s": lost_us / 1e6}
    return {
        "job_id": column(jobs, "job_id"),
        "submit_s": column(jobs, "submit_s"),
        "start_s": seconds(outcome.start_ns),
        "finish_s": seconds(outcome.finish_ns),
        "jct_s": seconds(outcome.finish_ns, arrays.submit_ns),
        "wait_s": seconds(outcome.start_ns, arrays.submit_ns),
        "ideal_s": ideal_s,
        "slowdown": null_unless(sized, jct_s / np.where(sized, ideal_s, 1.0)),
        "num_tasks": column(jobs, "num_tasks"),
        "mean_task_s": column(jobs, "mean_task_s"),
        "job_class": from_strings(np.where(outcome.is_long, "long", "short").tolist()),
        "constraint": jobs["constraint"].combine_chunks(),
        "tenant": jobs["tenant"].combine_chunks(),
        **more,
    }


def timeline_table(timeline: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
    """Return the table of a timeline."""
    types = {c.name: c.type.to_pandas_dtype() for c in TIMELINE + FURTHER_TIMELINE}
    rows = {name: np.asarray(of, types[name]) for name, of in timeline.items() if name in types}
    return make_table(TIMELINE, rows, FURTHER_TIMELINE)


def crv_table(pressure: Pressure | None) -> pa.Table | None:
    """Return the table of what a monitor keeps; None without a monitor."""
    if pressure is None:
        return None
    times, names = pressure.time_ns, pressure.names
    resource = from_numpy(np.tile(np.arange(len(names)), len(times)))
    supply = pressure.supply.ravel()
    return make_table(
        CRV,
        {
            "time_s": np.repeat(times / 1e9, len(names)),
            "resource": from_strings(names).take(resource),
            "demand": pressure.demand.ravel().astype(np.float64),
            "supply": null_unless(np.isfinite(supply), supply),
            "crv": pressure.crv.ravel(),
        },
    )


def tasks_table(workload: JobWorkload, tasks: Mapping[str, npt.NDArray[np.int64]]) -> pa.Table:
    """Return the table of tasks."""
    return make_table(TASKS, tasks_columns(workload, tasks))


def tasks_columns(
    workload: JobWorkload | DagWorkload, tasks: Mapping[str, npt.NDArray[np.int64]]
) -> dict[str, Any]:
    """Return the columns of the table of tasks."""
    return {
        "job_id": column(workload.tasks, "job_id"),
        "task": _number_in_job(workload),
        "node": null_unless(tasks["start_ns"] >= 0, tasks["node"]),
        "start_s": seconds(tasks["start_ns"]),
        "finish_s": seconds(tasks["finish_ns"]),
        "duration_s": column(workload.tasks, "duration_s"),
    }


def attempts_table(
    workload: JobWorkload | DagWorkload,
    outcome: Outcome,
    columns: tuple[Column, ...] = ATTEMPTS,
    more: Mapping[str, npt.NDArray[np.float64]] | None = None,
) -> pa.Table | None:
    """Return the table of attempts that came to nothing; None where there were neither evictions nor failures.

    Without a count of any there may be some: tasks that had ended and run again with their gang.
    `more` are values of further columns.
    """
    rows = outcome.attempts
    if not ENDED_EARLY & outcome.counters.keys() and not len(rows["task"]):
        return None
    of_task = {"job_id": column(workload.tasks, "job_id"), "task": _number_in_job(workload)}
    if isinstance(workload, DagWorkload):
        of_task["stage"] = column(workload.tasks, "stage")
    times = {"start_s": rows["start"] / 1e9, "end_s": rows["end"] / 1e9}
    of_attempt = {name: values[rows["task"]] for name, values in of_task.items()}
    return make_table(
        columns,
        {**of_attempt, "node": rows["node"], **times, "ended": pa.array(rows["ended"] == 1), **(more or {})},
    )


def _number_in_job(workload: JobWorkload | DagWorkload) -> npt.NDArray[np.int64]:
    """Return the position of each task in its job, shape (T,)."""
    first_task = workload.arrays().first_task
    return np.arange(workload.num_tasks) - np.repeat(first_task[:-1], np.diff(first_task))


def job_results(plan: Plan, outcome: Outcome) -> tuple[dict[str, pa.Table | None], dict[str, Any]]:
    """Return the tables, and the figures of the summary, of a run of jobs."""
    workload, config = plan.workload, plan.config
    jobs = jobs_table(workload, outcome)
    kept = outcome.tasks if config["output.tasks"] else None
    timeline, resources = dict(outcome.timeline), plan.own["resources"]
    held: dict[str, Any] = {}
    by_tenant: dict[str, float] = {}
    use = tenants = None
    step_s = outcome.timeline_step * plan.period_s
    if outcome.tasks is not None:
        share = shares_of_tasks(workload, plan.cluster, resources)
        job_of_task = np.repeat(np.arange(workload.num_jobs), np.diff(workload.arrays().first_task))
        tenants, by_tenant = tenants_held(jobs, job_of_task, outcome, share, step_s)
    if resources:
        time_s = np.asarray(timeline["time_s"], np.float64)
        used = use_over_time(outcome, share, step_s)
        timeline["utilisation"], use = used.max(axis=1), resources_table(time_s, resources, used)
        mean = mean_held(outcome, int(workload.arrays().submit_ns[0]), share)
        held = {"used": dict(zip(resources, mean.tolist(), strict=True))}
    tables = {
        "jobs": jobs,
        "timeline": timeline_table(timeline),
        "resources": use,
        "tenants": tenants,
        "crv": crv_table(outcome.series),
        "tasks": tasks_table(workload, kept) if kept else None,
        "attempts": attempts_table(workload, outcome) if kept else None,
    }
    last_s = float(column(workload.jobs, "submit_s")[-1])
    described = describe_utilisation(timeline["time_s"], timeline["utilisation"], last_s)
    of_jobs = describe_jobs(jobs, config["warmup"], config["slowdown_threshold"])
    figures = {
        "jobs": with_shares(of_jobs, by_tenant) | held,
        **_latency(plan, workload, outcome, jobs),
        **({"utilisation": described} if described else {}),
    }
    return tables, figures


def times_decisions(config: Config) -> bool:
    """Whether a run states decision latencies: schedulers take time, or its tasks are written."""
    return bool(config["output.tasks"] or config["clock"] == "live" or config["cost.model"] != "none")


def _latency(plan: Plan, workload: JobWorkload, outcome: Outcome, jobs: pa.Table) -> dict[str, Any]:
    """Return the ``decision_latency`` of a run whose tasks were recorded for it, or to be written."""
    if outcome.tasks is None or not times_decisions(plan.config):
        return {}
    from emu.families.jobs.decision_latency import describe_latency, sustained_rate

    sustained = {"sustained_tasks_per_s": sustained_rate(outcome.tasks["start_ns"])}
    if plan.own["resources"]:  # the times of tasks do not show whether a node had room for another one
        return sustained
    slots, warmup_s = plan.cluster.slots(), plan.config["warmup"]
    return sustained | {"decision_latency": describe_latency(workload, outcome.tasks, slots, jobs, warmup_s)}


TABLES = {
    "jobs": ResultTable(JOBS, "One row per job of the workload, in workload order.", FURTHER_JOBS),
    "timeline": ResultTable(TIMELINE, "One row per `timeline.period` of virtual time.", FURTHER_TIMELINE),
    "crv": ResultTable(
        CRV,
        "Of schedulers that watch demand and supply by constraint: one row per time and resource.",
        is_optional=True,
    ),
    "resources": ResultTable(
        RESOURCES,
        "Where tasks hold resources of nodes: one row per `timeline.period` and resource.",
        is_optional=True,
    ),
    "tenants": ResultTable(
        TENANTS,
        "Where jobs have two tenants or more, those without tenant counted as one: one row per `timeline.period` and "
        "tenant, the tenant with the most work first.",
        is_optional=True,
    ),
    "tasks": ResultTable(
        TASKS, "With `output.tasks`: one row per task, in workload order.", FURTHER_TASKS, is_optional=True
    ),
    "attempts": ResultTable(
        ATTEMPTS,
        "With `output.tasks`, where tasks were evicted or lost: one row per attempt that an eviction or a failure "
        "ended, by task and start. What a task did after its last attempt here is in `tasks.parquet`.",
        is_optional=True,
    ),
    "costs": ResultTable(
        COSTS,
        'With `cost.model = "measured"`: one row per message that a scheduler handled, by scheduler in order.',
        is_optional=True,
    ),
}
