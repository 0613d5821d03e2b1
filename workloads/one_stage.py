"""Jobs without stages as DAGs: each is one stage."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from workloads.arrow import from_numpy
from workloads.dags import DagWorkload
from workloads.jobs import JobWorkload
from workloads.stages import DAG_TASKS_SCHEMA, edges_schema, stages_schema


def as_dags(jobs: JobWorkload) -> DagWorkload:
    """Return jobs as DAGs of one stage each, with a note; no demands are known."""
    count, nothing = jobs.num_jobs, pa.nulls(jobs.num_jobs, pa.float64())
    ids, zeros = jobs.jobs["job_id"].combine_chunks(), from_numpy(np.zeros(count, np.int64))
    tasks, mean_s = (jobs.jobs[name].combine_chunks() for name in ("num_tasks", "mean_task_s"))
    columns = [ids, zeros, pa.nulls(count, pa.string()), tasks, mean_s, nothing, nothing]
    stage = from_numpy(np.zeros(jobs.num_tasks, np.int64))
    return DagWorkload(
        name=jobs.name,
        jobs=jobs.jobs,
        tasks=pa.Table.from_arrays([*jobs.tasks.columns, stage], schema=DAG_TASKS_SCHEMA),
        stages=pa.Table.from_arrays(columns, schema=stages_schema(())),
        edges=edges_schema(()).empty_table(),
        short_cutoff_s=jobs.short_cutoff_s,
        long_partition=jobs.long_partition,
        metadata=dict(jobs.metadata),
        notes=(*jobs.notes, "each job is one stage"),
        constraint_sets=jobs.constraint_sets,
        job_constraints=jobs.job_constraints,
    )
