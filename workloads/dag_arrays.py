"""The arrays of a workload of DAGs, made of its tables: what kernels and figures read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workloads.arrow import column, optional_column
from workloads.groups import first_rows, nanoseconds, positions
from workloads.jobs import Float64Array, Int64Array, JobArrays
from workloads.resources import demand_array
from workloads.stages import EDGE_BYTES, INPUT_BYTES, known_bytes, one_to_one_edges


class DagArrays(NamedTuple):
    """A workload of DAGs as the kernel sees it: read-only arrays for J jobs, S stages, T tasks and E edges.

    Stages are numbered through: those of job j are ``first_stage[j]:first_stage[j + 1]``.

    Attributes
    ----------
    submit_ns, mean_ns : ndarray of int64, shape (J,)
    first_task : ndarray of int64, shape (J + 1,)
    duration_ns : ndarray of int64, shape (T,)
        As in `workloads.jobs.JobArrays`.
    first_stage : ndarray of int64, shape (J + 1,)
    stage_first_task : ndarray of int64, shape (S + 1,)
        Tasks of stage s are ``stage_first_task[s]:stage_first_task[s + 1]``.
    stage_mean_ns : ndarray of int64, shape (S,)
    cpu_cores, memory : ndarray of float64, shape (S,)
        Of each task; NaN where not known.
    first_child : ndarray of int64, shape (S + 1,)
    child : ndarray of int64, shape (E,)
        Children of stage s are ``child[first_child[s]:first_child[s + 1]]``.
    first_parent : ndarray of int64, shape (S + 1,)
    parent : ndarray of int64, shape (E,)
        Parents of stage s are ``parent[first_parent[s]:first_parent[s + 1]]``.
    edge_one_to_one, parent_one_to_one : ndarray of int8, shape (E,)
        1 where the edge to ``child[e]``, or that from ``parent[e]``, is one-to-one: task i of the child waits for
        task i of the parent only. The two have the edges in the order of `child` and in that of `parent`.
    demand : ndarray of float64, shape (S, R)
        Of each task of a stage, of each resource of `DagWorkload.resources`; 0 where not known.
    edge_bytes, parent_bytes : ndarray of float64, shape (E,)
        Bytes that all tasks of the parent together send to all tasks of the child; NaN where not known. The two have
        the edges in the order of `child` and in that of `parent`.
    input_bytes : ndarray of float64, shape (S,)
        Bytes of the job's input that all tasks of the stage together read; NaN where not known.
    """

    submit_ns: Int64Array
    mean_ns: Int64Array
    first_task: Int64Array
    duration_ns: Int64Array
    first_stage: Int64Array
    stage_first_task: Int64Array
    stage_mean_ns: Int64Array
    cpu_cores: Float64Array
    memory: Float64Array
    first_child: Int64Array
    child: Int64Array
    first_parent: Int64Array
    parent: Int64Array
    edge_one_to_one: npt.NDArray[np.int8]
    parent_one_to_one: npt.NDArray[np.int8]
    demand: Float64Array
    edge_bytes: Float64Array
    parent_bytes: Float64Array
    input_bytes: Float64Array


def dag_arrays(
    of_jobs: JobArrays, job_id: Int64Array, stages: pa.Table, edges: pa.Table, resources: Sequence[str]
) -> DagArrays:
    """Return the arrays of a workload of DAGs, read-only.

    Parameters
    ----------
    of_jobs : JobArrays
    job_id : ndarray of int64, shape (J,)
    stages, edges : pyarrow.Table
        As in `workloads.dags.DagWorkload`.
    resources : sequence of str
        Those of which demands are wanted.
    """
    count = stages.num_rows
    first_stage = np.append(np.flatnonzero(column(stages, "stage") == 0), count)
    job = positions(job_id, column(edges, "job_id"))
    parent, child = (first_stage[job] + column(edges, name) for name in ("parent", "child"))
    by_child = np.argsort(child, kind="stable")
    one_to_one, sent = one_to_one_edges(edges), known_bytes(edges, EDGE_BYTES)
    arrays = DagArrays(
        submit_ns=of_jobs.submit_ns,
        mean_ns=of_jobs.mean_ns,
        first_task=of_jobs.first_task,
        duration_ns=of_jobs.duration_ns,
        first_stage=first_stage,
        stage_first_task=first_rows(column(stages, "num_tasks")),
        stage_mean_ns=nanoseconds(column(stages, "mean_task_s")),
        cpu_cores=optional_column(stages, "cpu_cores"),
        memory=optional_column(stages, "memory"),
        first_child=first_rows(np.bincount(parent, minlength=count)),
        child=child,
        first_parent=first_rows(np.bincount(child, minlength=count)),
        parent=parent[by_child],
        edge_one_to_one=one_to_one,
        parent_one_to_one=one_to_one[by_child],
        demand=demand_array(stages, resources),
        edge_bytes=sent,
        parent_bytes=sent[by_child],
        input_bytes=known_bytes(stages, INPUT_BYTES),
    )
    for array in arrays:
        array.flags.writeable = False
    return arrays


def no_stages() -> DagArrays:
    """Return the arrays of a workload without DAG jobs."""
    none, none_of, starts = np.zeros(0, np.int64), np.zeros(0), np.zeros(1, np.int64)
    kinds = np.zeros(0, np.int8)
    return DagArrays(
        submit_ns=none,
        mean_ns=none,
        first_task=starts,
        duration_ns=none,
        first_stage=starts,
        stage_first_task=starts,
        stage_mean_ns=none,
        cpu_cores=none_of,
        memory=none_of,
        first_child=starts,
        child=none,
        first_parent=starts,
        parent=none,
        edge_one_to_one=kinds,
        parent_one_to_one=kinds,
        demand=np.zeros((0, 0)),
        edge_bytes=none_of,
        parent_bytes=none_of,
        input_bytes=none_of,
    )
