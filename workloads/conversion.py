"""Jobs as DAGs of one stage each, DAGs as jobs, and their stages as jobs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from workloads.arrow import column, from_numpy, optional_column
from workloads.dags import DagWorkload
from workloads.jobs import JOBS_SCHEMA, TASKS_SCHEMA, JobWorkload
from workloads.requests import add_requests, shared_demand, without_demands, without_requests
from workloads.resources import in_order
from workloads.stages import ALWAYS, DAG_TASKS_SCHEMA, edges_schema, stages_schema


def as_jobs(dag: DagWorkload) -> JobWorkload:
    """Return the jobs with all their tasks, which have the demands of their stages, without stages, with notes."""
    counts, of_jobs, of_tasks = column(dag.stages, "num_tasks"), {}, {}
    job = np.repeat(np.arange(dag.num_jobs), np.diff(dag.arrays().first_stage))
    for name in dag.resources:
        of_jobs[name], of_stages = shared_demand(optional_column(dag.stages, name), job, dag.num_jobs)
        of_tasks[name] = np.repeat(of_stages, counts)
    lost = ["precedence between stages is left out"]
    if dag.bytes_known:
        lost.append("bytes on edges and of input are left out")
    tasks = dag.tasks.drop_columns(["stage"]).replace_schema_metadata(TASKS_SCHEMA.metadata)
    return JobWorkload(
        name=dag.name,
        jobs=without_requests(add_requests(dag.jobs, of_jobs)),
        tasks=without_requests(add_requests(tasks, of_tasks)),
        short_cutoff_s=dag.short_cutoff_s,
        long_partition=dag.long_partition,
        metadata=dict(dag.metadata),
        notes=(*dag.notes, *lost),
        constraint_sets=dag.constraint_sets,
        job_constraints=dag.job_constraints,
    )


def stages_as_jobs(dag: DagWorkload) -> JobWorkload:
    """Return each stage as a job that is submitted with its own, and has its priority; job ids number the stages.

    Precedence is left out, and so are constraints, gangs and bytes: who runs these jobs has them in `dag`.
    """
    job = np.repeat(np.arange(dag.num_jobs), np.diff(dag.arrays().first_stage))
    number, counts = np.arange(dag.num_stages), column(dag.stages, "num_tasks")
    own = {name: optional_column(dag.stages, name) for name in dag.resources}
    if "priority" in dag.jobs.column_names:
        own["priority"] = optional_column(dag.jobs, "priority")[job]
    jobs = {
        "job_id": from_numpy(number),
        "submit_s": from_numpy(column(dag.jobs, "submit_s")[job]),
        "num_tasks": from_numpy(counts),
        "mean_task_s": from_numpy(column(dag.stages, "mean_task_s")),
        "constraint": pa.nulls(number.size, pa.string()),
        "tenant": dag.jobs["tenant"].combine_chunks().take(from_numpy(job)),
    }
    tasks = [from_numpy(np.repeat(number, counts)), dag.tasks["duration_s"].combine_chunks()]
    return JobWorkload(
        name=dag.name,
        jobs=add_requests(pa.Table.from_arrays(list(jobs.values()), schema=JOBS_SCHEMA), own),
        tasks=pa.Table.from_arrays(tasks, schema=TASKS_SCHEMA),
        short_cutoff_s=dag.short_cutoff_s,
        long_partition=dag.long_partition,
    )


def as_dags(jobs: JobWorkload) -> DagWorkload:
    """Return jobs as DAGs of one stage each, with a note; its demands are the most that a task of the job needs."""
    count, demands = jobs.num_jobs, jobs.demands()
    needs = dict.fromkeys(ALWAYS, pa.nulls(count, pa.float64()))
    needs |= {name: from_numpy(demands.vector[demands.of_job, r]) for r, name in enumerate(demands.resources)}
    ids, zeros = jobs.jobs["job_id"].combine_chunks(), from_numpy(np.zeros(count, np.int64))
    tasks, mean_s = (jobs.jobs[name].combine_chunks() for name in ("num_tasks", "mean_task_s"))
    columns = [ids, zeros, pa.nulls(count, pa.string()), tasks, mean_s]
    stage = from_numpy(np.zeros(jobs.num_tasks, np.int64))
    of_jobs, of_tasks = map(without_demands, (jobs.jobs, jobs.tasks))
    return DagWorkload(
        name=jobs.name,
        jobs=of_jobs,
        tasks=pa.Table.from_arrays([*of_tasks.columns, stage], schema=DAG_TASKS_SCHEMA),
        stages=pa.Table.from_arrays(
            [*columns, *(needs[n] for n in in_order(needs))], schema=stages_schema(needs)
        ),
        edges=edges_schema(()).empty_table(),
        short_cutoff_s=jobs.short_cutoff_s,
        long_partition=jobs.long_partition,
        metadata=dict(jobs.metadata),
        notes=(*jobs.notes, "each job is one stage"),
        constraint_sets=jobs.constraint_sets,
        job_constraints=jobs.job_constraints,
    )
