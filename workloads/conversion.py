"""Jobs as DAGs of one stage each, DAGs as jobs, and their stages as jobs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from workloads.arrow import column, from_numpy, optional_column
from workloads.dags import DagWorkload, make_dag_workload
from workloads.groups import first_rows, rows_of_groups
from workloads.jobs import JOBS_SCHEMA, TASKS_SCHEMA, Int64Array, JobWorkload
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


# Jobs that wait for one another, as stages of DAGs.


def as_chains(jobs: JobWorkload, preceding: Int64Array) -> DagWorkload:
    """Return DAGs whose stages are the jobs, with their demands; a DAG arrives with the job that waits for none.

    Other requests of the jobs are left out.

    Parameters
    ----------
    jobs : JobWorkload
        J jobs without constraints.
    preceding : ndarray of int64, shape (J,)
        The place in `jobs` of the job that each waits for, -1 for none; no job waits for itself, by others either.

    Examples
    --------
    >>> from workloads.jobs import make_workload
    >>> three = make_workload("w", [0, 5, 9], [1, 1, 1], [10, 20, 30])
    >>> dags = as_chains(three, np.array([-1, -1, 0]))
    >>> dags.jobs["submit_s"].to_pylist(), dags.stages["mean_task_s"].to_pylist(), dags.edges.num_rows
    ([0.0, 5.0], [10.0, 30.0, 20.0], 1)
    """
    waits = preceding >= 0
    first = np.where(waits, preceding, np.arange(jobs.num_jobs))
    while np.any(first != (further := first[first])):  # each time over twice as many
        first = further
    order = np.argsort(first, kind="stable")
    num_stages = np.bincount(first, minlength=jobs.num_jobs)[~waits]
    stage, dag = np.empty((2, jobs.num_jobs), np.int64)
    stage[order] = np.arange(jobs.num_jobs) - np.repeat(first_rows(num_stages)[:-1], num_stages)
    dag[order] = np.repeat(np.arange(len(num_stages)), num_stages)
    tasks, mean_s = column(jobs.jobs, "num_tasks"), column(jobs.jobs, "mean_task_s")
    begin = first_rows(num_stages)[:-1]
    stage_tasks, stage_mean_s = tasks[order], mean_s[order]
    demands = jobs.demands()
    return make_dag_workload(
        jobs.name,
        column(jobs.jobs, "submit_s")[~waits],
        num_stages,
        stage_tasks,
        column(jobs.tasks, "duration_s")[rows_of_groups(tasks, order)],
        np.stack([dag[waits], stage[preceding[waits]], stage[waits]], axis=1),
        np.add.reduceat(stage_mean_s * stage_tasks, begin) / np.add.reduceat(stage_tasks, begin),
        stage_mean_s=stage_mean_s,
        demands={name: demands.vector[demands.of_job[order], r] for r, name in enumerate(demands.resources)},
        tenant=jobs.jobs["tenant"].combine_chunks().take(from_numpy(np.flatnonzero(~waits))),
        metadata=jobs.metadata,
        notes=jobs.notes,
    )
