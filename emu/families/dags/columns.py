"""The columns of the tables of runs of DAG jobs."""

from __future__ import annotations

import pyarrow as pa

from emu.columns import COSTS, Column, ResultTable
from emu.families.jobs.columns import ATTEMPTS as OF_ATTEMPTS
from emu.families.jobs.columns import FURTHER_JOBS, FURTHER_TIMELINE, RESOURCES, TENANTS
from emu.families.jobs.columns import JOBS as OF_JOBS
from emu.families.jobs.columns import TASKS as OF_TASKS

_IDEAL = Column(
    "ideal_s",
    pa.float64(),
    "s",
    "Length of the job's critical path: its completion time on an empty cluster of unlimited size and without network "
    "delay.",
)

JOBS = (
    *(_IDEAL if column.name == "ideal_s" else column for column in OF_JOBS),
    Column("num_stages", pa.int64(), "", "Stages of the job."),
    Column("levels", pa.int64(), "", "Stages on its longest chain of stages."),
    Column(
        "dominant_work_s",
        pa.float64(),
        "s",
        "How long its tasks would occupy the whole cluster, by the resource of which they take most.",
    ),
)

TIMELINE = (
    Column("time_s", pa.float64(), "s", "Virtual time of the row."),
    Column(
        "utilisation",
        pa.float64(),
        "",
        "Share of the capacity of all machines that tasks hold, of the resource with the largest share, 0..1.",
    ),
    Column("running_tasks", pa.int64(), "tasks", "Tasks that run, or fetch their input."),
    Column(
        "runnable_tasks",
        pa.int64(),
        "tasks",
        "Tasks that may be launched (`runnable_s` of tasks) and have not started.",
    ),
    Column("running_jobs", pa.int64(), "jobs", "Jobs that have arrived and not ended."),
)

FAIRNESS = (
    Column("time_s", pa.float64(), "s", "End of the window."),
    Column(
        "jobs",
        pa.int64(),
        "jobs",
        "Jobs that were present in the window: arrived before its end, and not ended at its begin.",
    ),
    Column(
        "jain",
        pa.float64(),
        "",
        "Jain's index of what these jobs held while they were present: for each the mean over that time of its shares "
        "of all resources; null where no job held anything.",
        True,
    ),
    Column("jain_running", pa.float64(), "", "The same of those jobs that ran a task in the window.", True),
    Column(
        "jain_up_to_share",
        pa.float64(),
        "",
        "Jain's index of what the jobs of `jain` held up to their fair share: for each the mean over the time in which "
        "it was present of its share of the resource of which it held most then, and no more than the mean over that "
        "time of the dominant share that DRF in closed form gives each job that is present, of all machines, by the "
        "demands of jobs' mean tasks; null where no job held anything.",
        True,
    ),
)

_STAGE = Column("stage", pa.int64(), "", "The task's stage in its job, from 0.")

TASKS = (
    *OF_TASKS,
    _STAGE,
    Column(
        "runnable_s",
        pa.float64(),
        "s",
        "When the last task that it waits for ended, or the job arrived; null if that did not happen. With "
        "`network.registration=pipelined` it waits, over an edge whose bytes are shuffled, until the last task is "
        "launched. With `network.shuffle=push` a task that has input from others waits until the manager knows that "
        "all of it is at its machine.",
        True,
    ),
)
OF_NETWORK = (
    Column(
        "fetched_s",
        pa.float64(),
        "s",
        "With a network: when all its input had come, and with `network.shuffle=pull` it began to compute; null if it "
        "needed none, or did not get it.",
        True,
    ),
    Column(
        "parents_ended_s",
        pa.float64(),
        "s",
        "With `network.registration=pipelined` or `network.shuffle=push`: when the last task that it needs output of, "
        "or waits for, ended, or the job arrived; null if that did not happen.",
        True,
    ),
    Column(
        "sent_s",
        pa.float64(),
        "s",
        "With `network.shuffle=push`: when its input began to be sent to its machine; null if no task sends it any, or "
        "that did not happen.",
        True,
    ),
)

ATTEMPTS = (*OF_ATTEMPTS, _STAGE)
OF_RERUNS = (
    Column(
        "runnable_s",
        pa.float64(),
        "s",
        "With a network, where tasks ran again that had ended: when the last task that it waits for had ended, or the "
        "job arrived, or it had ended itself before.",
    ),
)
"""Further columns of ``attempts.parquet``."""

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
