"""The columns of the tables of runs of jobs."""

from __future__ import annotations

import pyarrow as pa

from emu.columns import COSTS, Column, ResultTable

JOBS = (
    Column("job_id", pa.int64(), "", "The job's id in the workload."),
    Column("submit_s", pa.float64(), "s", "When the job arrived."),
    Column("start_s", pa.float64(), "s", "When its first task started; null if none did.", True),
    Column(
        "finish_s", pa.float64(), "s", "When its last task finished; null if the job did not finish.", True
    ),
    Column("jct_s", pa.float64(), "s", "Job completion time, finish_s - submit_s.", True),
    Column("wait_s", pa.float64(), "s", "Time until the first task started, start_s - submit_s.", True),
    Column(
        "ideal_s",
        pa.float64(),
        "s",
        "Duration of the job's longest task: its completion time on an empty cluster of unlimited size and without "
        "network delay.",
    ),
    Column(
        "slowdown", pa.float64(), "", "jct_s / ideal_s; null if ideal_s is 0 or the job did not finish.", True
    ),
    Column("num_tasks", pa.int64(), "", "Tasks of the job."),
    Column("mean_task_s", pa.float64(), "s", "Mean task duration as the workload states it."),
    Column("job_class", pa.string(), "", "`long` if mean_task_s is above the short cut-off, else `short`."),
    Column("constraint", pa.string(), "", "Kind of the job's placement constraint, or null.", True),
    Column("tenant", pa.string(), "", "Who submitted the job, or null.", True),
)

FURTHER_JOBS = (
    Column(
        "priority", pa.int64(), "", "Its priority, the larger goes first; null if it states none: 0.", True
    ),
    Column("evictions", pa.int64(), "", "How often tasks of it were evicted."),
    Column(
        "evicted_work_s",
        pa.float64(),
        "s",
        "Work that was lost when its tasks were evicted, and the time that it took to restore them.",
    ),
)
"""Further columns of ``jobs.parquet``, of runs whose workload states priorities, and of runs with preemption."""

TIMELINE = (
    Column("time_s", pa.float64(), "s", "Virtual time of the row."),
    Column(
        "utilisation",
        pa.float64(),
        "",
        "Share of all slots that run a task, 0..1. With resources: the share of the capacity of all nodes that tasks "
        "held of the resource with the largest share, in the mean over the span before.",
    ),
    Column("queued_short", pa.int64(), "tasks", "Tasks of short jobs that have arrived and not started."),
    Column("queued_long", pa.int64(), "tasks", "Tasks of long jobs that have arrived and not started."),
    Column("running_short", pa.int64(), "tasks", "Tasks of short jobs that run."),
    Column("running_long", pa.int64(), "tasks", "Tasks of long jobs that run."),
)

RESOURCES = (
    Column("time_s", pa.float64(), "s", "End of the span of time that the row is of, one `timeline.period`."),
    Column(
        "resource", pa.string(), "", "A resource of machines; `slots` where the workload states no demands."
    ),
    Column(
        "used",
        pa.float64(),
        "",
        "Share of the capacity of all machines that tasks held, in the mean over the span. Above 1 where demands were "
        "underestimated.",
    ),
)

TENANTS = (
    Column("time_s", pa.float64(), "s", "End of the span of time that the row is of, one `timeline.period`."),
    Column(
        "tenant",
        pa.string(),
        "",
        "A tenant; `(none)`: jobs without one; `(others)`: all beyond the first 12.",
    ),
    Column(
        "share",
        pa.float64(),
        "",
        "Share of the capacity of all machines that the tenant's tasks held, of the resource of which they held most, "
        "or of slots, in the mean over the span.",
    ),
)

FURTHER_TIMELINE = (
    Column("up_nodes", pa.int64(), "nodes", "With failures: nodes that are up."),
    Column(
        "backlog",
        pa.int64(),
        "events",
        "With the clock `live`: events that were due and not handled when their partition looked for some: the most "
        "since the row before, summed over partitions.",
    ),
    Column("scheduler_backlog", pa.int64(), "events", "The same of partitions with schedulers."),
)
"""Further columns of ``timeline.parquet``, of runs in which nodes fail or with the clock `live`."""

TASKS = (
    Column("job_id", pa.int64(), "", "The task's job."),
    Column("task", pa.int64(), "", "Position of the task in its job, from 0, in workload order."),
    Column("node", pa.int64(), "", "Node that ran the task; null if it did not start.", True),
    Column("start_s", pa.float64(), "s", "When the task started; null if it did not.", True),
    Column("finish_s", pa.float64(), "s", "When the task finished; null if it did not.", True),
    Column("duration_s", pa.float64(), "s", "Duration of the task in the workload."),
)

FURTHER_TASKS = (
    Column(
        "slot",
        pa.int64(),
        "",
        "Slot of the node, from 0: the slots of a node are alike, and a task is shown in the first that is free. Null "
        "if the task did not finish.",
        True,
    ),
    Column(
        "enqueued_s",
        pa.float64(),
        "s",
        "When the task, or the probe that fetched it, joined the queue of its node; of a sticky probe when the task "
        "before it ended. Null if the task did not start.",
        True,
    ),
    Column(
        "ahead",
        pa.int64(),
        "tasks",
        "Tasks that ran on the node from then until the start of the task; 0 if it did not wait.",
        True,
    ),
    Column(
        "ahead_s", pa.float64(), "s", "How long these ran in that time, summed over the node's slots.", True
    ),
    Column(
        "probes_sent",
        pa.int64(),
        "",
        "Probes that schedulers had sent for its job until the task started.",
        True,
    ),
)
"""Further columns of ``tasks.parquet``, with `output.events`; null for tasks of jobs that are not recorded."""

ATTEMPTS = (
    Column("job_id", pa.int64(), "", "The task's job."),
    Column("task", pa.int64(), "", "Position of the task in its job, from 0, in workload order."),
    Column("node", pa.int64(), "", "Node that ran the task."),
    Column("start_s", pa.float64(), "s", "When the attempt started."),
    Column(
        "end_s",
        pa.float64(),
        "s",
        "When the task was evicted, was lost with its node, its gang or its input, or ended.",
    ),
    Column(
        "ended",
        pa.bool_(),
        "",
        "Whether it had ended: it ran again as its gang, or with a network its output, was lost.",
    ),
)

CRV = (
    Column("time_s", pa.float64(), "s", "When the scheduler's monitor made the row, in virtual time."),
    Column("resource", pa.string(), "", "The attribute of nodes that constraints are on."),
    Column(
        "demand",
        pa.float64(),
        "",
        "Demand for the resource as the monitor knew it: queued tasks that ask for it.",
    ),
    Column(
        "supply",
        pa.float64(),
        "",
        "Supply of the resource: nodes that have it as queued tasks ask for it; null while no queued task does.",
        True,
    ),
    Column(
        "crv", pa.float64(), "", "The resource's entry of the Constraint Resource Vector: demand over supply."
    ),
)

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
