"""Tables and figures of a run of DAG jobs: their columns, and how they are computed from an outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clusters.capacity import capacities, demands, work_s
from emu.columns import COSTS, ResultTable, columns_of, make_table, null_unless, seconds
from emu.families.coflows.results import coordinator_figures, decision_figures
from emu.families.dags.network import describe_transfers
from emu.families.dags.reruns import awaited_ns
from emu.families.dags.utilisation import count_between, fair_shares, runnable_ns, wide_enough, windows
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
from emu.families.jobs.results import ATTEMPTS as OF_ATTEMPTS
from emu.families.jobs.results import (
    FURTHER_JOBS,
    FURTHER_TIMELINE,
    attempts_table,
    jobs_columns,
    tasks_columns,
)
from emu.families.jobs.results import JOBS as OF_JOBS
from emu.families.jobs.results import TASKS as OF_TASKS
from emu.results.metrics import Float64Array, describe_utilisation, finite
from emu.results.server_figures import server_figures
from workloads.arrow import column, optional_column
from workloads.critical_path import critical_paths_ns
from workloads.dags import DagWorkload, stage_levels
from workloads.sums import exact_sum

if TYPE_CHECKING:
    from actors.hosting.outcome import Outcome
    from clusters.cluster import Cluster
    from emu.configuration.plan import Plan

Tasks = Mapping[str, npt.NDArray[np.int64]]
INDICES = {
    "jain": "fairness",
    "jain_running": "fairness_running",
    "jain_up_to_share": "fairness_up_to_share",
}
"""Columns of ``fairness.parquet``, and what a summary calls them."""


_IDEAL = columns_of("""
    ideal_s float s Length of the job's critical path: its completion time on an empty cluster of unlimited size and
          without network delay.
""")

JOBS = (
    *(_IDEAL[0] if column.name == "ideal_s" else column for column in OF_JOBS),
    *columns_of("""
    num_stages      int   - Stages of the job.
    levels          int   - Stages on its longest chain of stages.
    dominant_work_s float s How long its tasks would occupy the whole cluster, by the resource of which they take most.
"""),
)

TIMELINE = columns_of("""
    time_s         float s     Virtual time of the row.
    utilisation    float -     Share of the capacity of all machines that tasks hold, of the resource with the largest
          share, 0..1.
    running_tasks  int   tasks Tasks that run, or fetch their input.
    runnable_tasks int   tasks Tasks that may be launched (`runnable_s` of tasks) and have not started.
    running_jobs   int   jobs  Jobs that have arrived and not ended.
""")

FAIRNESS = columns_of("""
    time_s           float  s    End of the window.
    jobs             int    jobs Jobs that were present in the window: arrived before its end, and not ended at its
          begin.
    jain             float? -    Jain's index of what these jobs held while they were present: for each the mean over
          that time of its shares of all resources; null where no job held anything.
    jain_running     float? -    The same of those jobs that ran a task in the window.
    jain_up_to_share float? -    Jain's index of what the jobs of `jain` held up to their fair share: for each the mean
          over the time in which it was present of its share of the resource of which it held most then, and no more
          than the mean over that time of the dominant share that DRF in closed form gives each job that is present, of
          all machines, by the demands of jobs' mean tasks; null where no job held anything.
""")

_STAGE = columns_of("""
    stage int - The task's stage in its job, from 0.
""")
TASKS = (
    *OF_TASKS,
    *_STAGE,
    *columns_of("""
    runnable_s float? s When the last task that it waits for ended, or the job arrived; null if that did not happen.
          With `network.registration=pipelined` it waits, over an edge whose bytes are shuffled, until the last task is
          launched. With `network.shuffle=push` a task that has input from others waits until the manager knows that
          all of it is at its machine.
"""),
)
OF_NETWORK = columns_of("""
    fetched_s       float? s With a network: when all its input had come, and with `network.shuffle=pull` it began to
          compute; null if it needed none, or did not get it.
    parents_ended_s float? s With `network.registration=pipelined` or `network.shuffle=push`: when the last task that
          it needs output of, or waits for, ended, or the job arrived; null if that did not happen.
    sent_s          float? s With `network.shuffle=push`: when its input began to be sent to its machine; null if no
          task sends it any, or that did not happen.
""")

ATTEMPTS = (*OF_ATTEMPTS, *_STAGE)
OF_RERUNS = columns_of("""
    runnable_s float s With a network, where tasks ran again that had ended: when the last task that it waits for had
          ended, or the job arrived, or it had ended itself before.
""")
"""Further columns of ``attempts.parquet``."""


def dag_results(plan: Plan, outcome: Outcome) -> tuple[dict[str, pa.Table | None], dict[str, Any]]:
    """Return the tables, and the figures of the summary, of a run of DAG jobs."""
    workload, cluster, config = plan.workload, plan.cluster, plan.config
    assert outcome.tasks is not None  # always recorded: the tables are made from them
    share = shares_of_tasks(workload, cluster)
    runnable, share_of_task = _runnable(workload, outcome), share[stage_of_task(workload)]
    since = runnable.copy()  # a task may have been launched before what it waits for ended, for the last time
    np.minimum.at(since, outcome.attempts["task"], outcome.attempts["start"])
    timeline, use = timeline_tables(workload, outcome, share_of_task, since, plan.period_s)
    jobs = jobs_table(workload, cluster, outcome)
    job_of_task = np.repeat(np.arange(workload.num_jobs), np.diff(workload.arrays().first_task))
    step_s = outcome.timeline_step * plan.period_s
    tenants, by_tenant = tenants_held(jobs, job_of_task, outcome, share_of_task, step_s)
    fairness = fairness_table(workload, outcome, share_of_task, config["fairness.window"])
    tables = {
        "jobs": jobs,
        "timeline": timeline,
        "resources": use,
        "tenants": tenants,
        "fairness": fairness,
        "tasks": tasks_table(workload, outcome, runnable) if config["output.tasks"] else None,
        "attempts": _attempts_table(workload, outcome) if config["output.tasks"] else None,
    }
    described = describe_utilisation(
        optional_column(timeline, "time_s"),
        optional_column(timeline, "utilisation"),
        float(column(workload.jobs, "submit_s")[-1]),
    )
    figures = {
        "jobs": with_shares(describe_jobs(jobs, config["warmup"], config["slowdown_threshold"]), by_tenant),
        "dags": describe_dags(plan, outcome, fairness, share_of_task),
        **describe_coordinator(workload, outcome),
        **({"utilisation": described} if described else {}),
    }
    return tables, figures


def shares_of_tasks(workload: DagWorkload, cluster: Cluster) -> Float64Array:
    """Return what a task of each stage holds, as shares of the capacity of all machines, shape (S, R)."""
    total = capacities(cluster, workload.resources).sum(axis=0)
    demand = demands(workload)
    return np.divide(demand, total, out=np.zeros_like(demand), where=total > 0)


def jobs_table(workload: DagWorkload, cluster: Cluster, outcome: Outcome) -> pa.Table:
    """Return the table of jobs; times are exact to the nanosecond before they are turned into seconds."""
    arrays = workload.arrays()
    first = arrays.first_stage[:-1]
    of_stage = np.add.reduceat(arrays.duration_ns / 1e9, arrays.stage_first_task[:-1])
    work = np.add.reduceat(shares_of_tasks(workload, cluster) * of_stage[:, None], first)
    return make_table(
        JOBS,
        {
            **jobs_columns(workload, outcome, critical_paths_ns(workload)),
            "num_stages": np.diff(arrays.first_stage),
            "levels": np.maximum.reduceat(stage_levels(workload), first) + 1,
            "dominant_work_s": work.max(axis=1),
        },
        FURTHER_JOBS,
    )


def timeline_tables(
    workload: DagWorkload,
    outcome: Outcome,
    share: Float64Array,
    runnable: npt.NDArray[np.int64],
    period_s: float,
) -> tuple[pa.Table, pa.Table]:
    """Return the tables of the timeline and of the use of resources, from the times of tasks.

    ``share``, shape (T, R), is what each task holds. A task waits while it can run, has not ended, and does not run.
    """
    assert outcome.tasks is not None
    time_s, tasks = np.asarray(outcome.timeline["time_s"], np.float64), outcome.tasks
    time_ns = np.rint(time_s * 1e9).astype(np.int64)
    used = use_over_time(outcome, share, outcome.timeline_step * period_s)
    running = count_between(time_ns, *outcome.spans()[1:])
    names = list(workload.resources) or ["slots"]
    live = {c.name: outcome.timeline[c.name] for c in FURTHER_TIMELINE if c.name in outcome.timeline}
    timeline = make_table(
        TIMELINE,
        {
            "time_s": time_s,
            "utilisation": used.max(axis=1) if used.size else np.zeros(0),
            "running_tasks": running,
            "runnable_tasks": count_between(time_ns, runnable, tasks["finish_ns"]) - running,
            "running_jobs": count_between(time_ns, workload.arrays().submit_ns, outcome.finish_ns),
            **{name: np.asarray(values, np.int64) for name, values in live.items()},
        },
        FURTHER_TIMELINE,
    )
    return timeline, resources_table(time_s, names, used)


def fairness_table(workload: DagWorkload, outcome: Outcome, share: Float64Array, window_s: float) -> pa.Table:
    """Return the table of Jain's index over windows (Grandl et al., OSDI 2016, section 5.1); ``share`` is of tasks."""
    arrays, (task, start_ns, finish_ns) = workload.arrays(), outcome.spans()
    submit_s = arrays.submit_ns / 1e9
    end_s = np.where(outcome.finish_ns >= 0, outcome.finish_ns / 1e9, np.nan)
    end_s = np.where(np.isnan(end_s), np.nanmax(end_s), end_s)
    job = np.repeat(np.arange(workload.num_jobs), np.diff(arrays.first_task))
    ran_s = exact_sum(finish_ns - start_ns) / 1e9
    window_s = wide_enough(window_s, float(end_s.max() - submit_s[0]), ran_s)
    demand = np.add.reduceat(share, arrays.first_task[:-1]) / np.diff(arrays.first_task)[:, None]
    fair = fair_shares(submit_s, end_s, demand)
    spans = (start_ns / 1e9, finish_ns / 1e9)
    jobs, found = windows(submit_s, end_s, job[task], *spans, share[task], fair, window_s)
    index = {name: null_unless(np.isfinite(of), of) for name, of in zip(INDICES, found, strict=True)}
    return make_table(
        FAIRNESS,
        {
            "time_s": submit_s[0] + window_s * np.arange(1, jobs.size + 1),
            "jobs": jobs,
            **index,
        },
    )


def tasks_table(workload: DagWorkload, outcome: Outcome, runnable: npt.NDArray[np.int64]) -> pa.Table:
    """Return the table of tasks."""
    assert outcome.tasks is not None
    network = {}
    if outcome.series is not None:
        network["fetched_s"] = seconds(outcome.series.fetched_ns)
        if _is_pipelined(outcome) or _is_pushed(outcome):
            network["parents_ended_s"] = seconds(_all_ended(workload, outcome.tasks))
        if _is_pushed(outcome):
            network["sent_s"] = seconds(outcome.series.sent_ns)
    return make_table(
        TASKS,
        {
            **tasks_columns(workload, outcome.tasks),
            **network,
            "stage": column(workload.tasks, "stage"),
            "runnable_s": seconds(runnable),
        },
        OF_NETWORK,
    )


def describe_dags(plan: Plan, outcome: Outcome, fairness: pa.Table, share: Float64Array) -> dict[str, Any]:
    """Return the ``dags`` part of a summary; ``share``, shape (T, R), is what each task holds.

    Returns
    -------
    dict
        ``stages``; ``bound_s``, the lower bound of the makespan: the longer of the time that all machines need for all
        work, and of the time until the last job ends if each has all machines to itself; ``used``, by resource the mean
        share of its capacity that was held from the first arrival to the last end; by `INDICES` mean, min and max of
        Jain's indices over windows; ``leftover_share``, the share of the tasks that were launched above the share of
        their job.
    """
    workload = plan.workload
    arrays = workload.arrays()
    bound_s = max(
        float(work_s(workload, plan.cluster).max()),
        float((arrays.submit_ns + critical_paths_ns(workload) - arrays.submit_ns[0]).max()) / 1e9,
    )
    used = mean_held(outcome, int(arrays.submit_ns[0]), share)
    launches = outcome.counters.get("launches", 0)
    figures: dict[str, Any] = {
        "stages": workload.num_stages,
        "bound_s": bound_s,
        "used": dict(zip(workload.resources or ("slots",), used.tolist(), strict=True)),
    }
    for of, name in INDICES.items():
        if (index := finite(optional_column(fairness, of))).size:
            figures[name] = {
                "mean": float(index.mean()),
                "min": float(index.min()),
                "max": float(index.max()),
            }
    if outcome.series is not None and outcome.tasks is not None:
        fetched, begin = outcome.series.fetched_ns, outcome.tasks["start_ns"]
        if _is_pushed(outcome):
            begin = np.where(outcome.series.sent_ns >= 0, outcome.series.sent_ns, begin)
        figures |= describe_transfers(outcome, (fetched - begin)[fetched >= 0])
    if launches:
        figures["leftover_share"] = outcome.counters.get("leftover_launches", 0) / launches
    return figures


def describe_coordinator(workload: DagWorkload, outcome: Outcome) -> dict[str, dict[str, float]]:
    """Return the ``coordinator`` and ``decisions`` parts of a summary; nothing without a coordinator.

    They are those of a run of coflows. Where messages cost something, ``coordinator`` has besides what the
    ``schedulers`` part has of those, for one server.
    """
    if outcome.series is None or not outcome.series.counts.size:
        return {}
    from actors.fabric.counters import COUNTERS

    server = outcome.servers[-2:-1]  # before the listener
    server = server[server["served"] > 0] if server.size else server
    counters = dict(zip(COUNTERS.names, outcome.series.counts.tolist(), strict=True))
    figures = coordinator_figures(counters, int(server["busy"][0]) if server.size else 0)
    if server.size:
        submit_ns = workload.arrays().submit_ns
        span = int(submit_ns[0]), int(submit_ns[-1]), int(outcome.finish_ns.max())
        found = server_figures(server, outcome.series.waits, *span)
        del found["busiest"]  # it is alone
        if "busiest_while_arriving" in found:
            found["busy_while_arriving"] = found.pop("busiest_while_arriving")
        figures["coordinator"] = figures.get("coordinator", {}) | found
    return figures | decision_figures(outcome)


def stage_of_task(workload: DagWorkload) -> npt.NDArray[np.int64]:
    """Return the stage of each task, shape (T,), numbered through all jobs."""
    return np.repeat(np.arange(workload.num_stages), np.diff(workload.arrays().stage_first_task))


def _is_pipelined(outcome: Outcome) -> bool:
    """Return whether tasks could be launched before their parents had ended."""
    return outcome.series is not None and outcome.series.launched_ns.size > 0


def _is_pushed(outcome: Outcome) -> bool:
    """Return whether the input of tasks could be sent to machines before they were launched."""
    return outcome.series is not None and outcome.series.sent_ns.size > 0


def _runnable(workload: DagWorkload, outcome: Outcome) -> npt.NDArray[np.int64]:
    """Return when each task could be launched, ns; -1 is never."""
    a = workload.arrays()
    assert outcome.tasks is not None
    if outcome.counters.get("run_again", 0):
        return _before_launch(workload, outcome)
    if _is_pushed(outcome):
        ended, found = _all_ended(workload, outcome.tasks), outcome.series
        return np.where(found.home >= 0, found.ready_ns, ended)
    if not _is_pipelined(outcome):
        return _all_ended(workload, outcome.tasks)
    at_launch = (a.parent_one_to_one == 0) & (a.parent_bytes > 0)
    return _all_ended(workload, outcome.tasks, outcome.series.launched_ns, at_launch)


def _before_launch(workload: DagWorkload, outcome: Outcome) -> npt.NDArray[np.int64]:
    """Return when each task could be launched, ns, where others that it waited for ran again later; -1 is never."""
    assert outcome.tasks is not None
    found = _all_ended(workload, outcome.tasks)
    start, had_ended = outcome.tasks["start_ns"], outcome.attempts[outcome.attempts["ended"] == 1]
    again = np.union1d(np.flatnonzero((found > start) & (start >= 0)), had_ended["task"])
    again = again[start[again] >= 0]
    found[again] = awaited_ns(workload, outcome.tasks["finish_ns"], outcome.attempts, again, start[again])
    return found


def _attempts_table(workload: DagWorkload, outcome: Outcome) -> pa.Table | None:
    """Return the table of attempts; where tasks ran again, with when those that had ended could be launched."""
    if not outcome.counters.get("run_again", 0):
        return attempts_table(workload, outcome, ATTEMPTS)
    assert outcome.tasks is not None
    rows = outcome.attempts
    runnable = awaited_ns(workload, outcome.tasks["finish_ns"], rows, rows["task"], rows["start"])
    return attempts_table(workload, outcome, (*ATTEMPTS, *OF_RERUNS), {"runnable_s": runnable / 1e9})


def _all_ended(workload: DagWorkload, tasks: Tasks, *launched: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return when all that each task waits for had ended, or over some edges had been launched, ns."""
    a = workload.arrays()
    parents = (a.first_parent, a.parent, a.parent_one_to_one)
    return runnable_ns(
        a.submit_ns, a.first_stage, a.stage_first_task, *parents, tasks["finish_ns"], *launched
    )


TABLES = {
    "jobs": ResultTable(JOBS, "One row per job of the workload, in workload order.", FURTHER_JOBS),
    "timeline": ResultTable(TIMELINE, "One row per `timeline.period` of virtual time.", FURTHER_TIMELINE),
    "resources": ResultTable(RESOURCES, "One row per `timeline.period` and resource."),
    "tenants": ResultTable(TENANTS, is_optional=True),
    "fairness": ResultTable(
        FAIRNESS,
        "One row per window of `fairness.window`, from the first arrival on. Windows are twice, four times … as long "
        "where there would be more than a million.",
    ),
    "tasks": ResultTable(
        TASKS, "With `output.tasks`: one row per task, in workload order.", OF_NETWORK, is_optional=True
    ),
    "attempts": ResultTable(ATTEMPTS, "", OF_RERUNS, is_optional=True),
    "costs": ResultTable(COSTS, is_optional=True),
}
