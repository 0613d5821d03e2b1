"""Tables of a run of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu.columns import Column, make_table, null_unless
from emu.families.jobs.columns import ATTEMPTS, CRV, FURTHER_JOBS, FURTHER_TIMELINE, TASKS, TIMELINE
from emu.families.jobs.columns import JOBS as JOB_COLUMNS
from emu.families.jobs.metrics import describe_jobs
from emu.families.jobs.resource_use import (
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


def jobs_table(workload: JobWorkload, outcome: Outcome) -> pa.Table:
    """Return the table of jobs."""
    arrays = workload.arrays()
    ideal_ns = np.maximum.reduceat(arrays.duration_ns, arrays.first_task[:-1])
    columns = further_columns(workload, outcome)
    kept = tuple(c for c in FURTHER_JOBS if c.name in columns)
    return make_table(JOB_COLUMNS + kept, jobs_columns(workload, outcome, ideal_ns) | columns)


def further_columns(workload: JobWorkload | DagWorkload, outcome: Outcome) -> dict[str, Any]:
    """Return the further columns of the table of jobs by name: what the workload states, and evictions."""
    jobs = workload.jobs
    found = {c.name: jobs[c.name].combine_chunks() for c in FURTHER_JOBS if c.name in jobs.column_names}
    if outcome.evicted is not None:
        evictions, lost_us = outcome.evicted
        found |= {"evictions": evictions, "evicted_work_s": lost_us / 1e6}
    return found


def jobs_columns(
    workload: JobWorkload | DagWorkload, outcome: Outcome, ideal_ns: npt.NDArray[np.int64]
) -> dict[str, Any]:
    """Return the columns of the table of jobs; times are exact to the nanosecond before they are turned into seconds.

    ``ideal_ns``, shape (J,), is what each job would take on an empty cluster of unlimited size.
    """
    arrays = workload.arrays()
    started, finished = outcome.start_ns >= 0, outcome.finish_ns >= 0
    jct_s = (outcome.finish_ns - arrays.submit_ns) / 1e9
    ideal_s = ideal_ns / 1e9
    sized = finished & (ideal_ns > 0)
    jobs = workload.jobs
    return {
        "job_id": column(jobs, "job_id"),
        "submit_s": column(jobs, "submit_s"),
        "start_s": null_unless(started, outcome.start_ns / 1e9),
        "finish_s": null_unless(finished, outcome.finish_ns / 1e9),
        "jct_s": null_unless(finished, jct_s),
        "wait_s": null_unless(started, (outcome.start_ns - arrays.submit_ns) / 1e9),
        "ideal_s": ideal_s,
        "slowdown": null_unless(sized, jct_s / np.where(sized, ideal_s, 1.0)),
        "num_tasks": column(jobs, "num_tasks"),
        "mean_task_s": column(jobs, "mean_task_s"),
        "job_class": from_strings(np.where(outcome.is_long, "long", "short").tolist()),
        "constraint": jobs["constraint"].combine_chunks(),
        "tenant": jobs["tenant"].combine_chunks(),
    }


def timeline_table(timeline: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
    """Return the table of a timeline."""
    columns = TIMELINE + tuple(c for c in FURTHER_TIMELINE if c.name in timeline)
    return make_table(
        columns, {c.name: np.asarray(timeline[c.name], c.type.to_pandas_dtype()) for c in columns}
    )


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
    started, finished = tasks["start_ns"] >= 0, tasks["finish_ns"] >= 0
    return {
        "job_id": column(workload.tasks, "job_id"),
        "task": _number_in_job(workload),
        "node": null_unless(started, tasks["node"]),
        "start_s": null_unless(started, tasks["start_ns"] / 1e9),
        "finish_s": null_unless(finished, tasks["finish_ns"] / 1e9),
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
