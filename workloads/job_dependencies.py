"""Jobs that wait for one another, as stages of DAGs."""

from __future__ import annotations

import numpy as np

from workloads.arrow import column, from_numpy
from workloads.dags import DagWorkload, make_dag_workload
from workloads.groups import first_rows, rows_of_groups
from workloads.jobs import Int64Array, JobWorkload


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
