"""Workloads of DAGs: jobs whose tasks belong to stages, with precedence between the stages.

A job is a directed acyclic graph of stages, a stage a set of tasks that may run at the same time. A stage may
start when all tasks of all its parents have ended; over a one-to-one edge each of its tasks waits for one task of the
parent only. Jobs and tasks are those of `workloads.jobs`, so that what
knows nothing of stages can read them; stages and edges are two tables more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workloads.arrow import (
    WithTables,
    coded_labels,
    column,
    from_numpy,
    from_optional,
    optional_column,
    text_column,
)
from workloads.constraints import no_job_constraints, no_sets
from workloads.errors import InputError, printable
from workloads.groups import (
    check_sum,
    file_of,
    first_rows,
    nanoseconds,
    positions,
    rows_of_groups,
    same_length,
    whole_numbers,
)
from workloads.jobs import (
    SCHEMA_VERSION,
    Float64Array,
    Int64Array,
    JobArrays,
    JobWorkload,
    check_times,
    make_workload,
)
from workloads.requests import NOTHING, Requests, stated_demand
from workloads.resources import check_demands, demand_array, resources_of
from workloads.stages import (
    ALWAYS,
    DAG_TASKS_SCHEMA,
    EDGE_BYTES,
    EDGES_SCHEMA,
    INPUT_BYTES,
    check_bytes,
    check_edge_kinds,
    check_edges,
    edges_schema,
    kind_column,
    known_bytes,
    levels,
    one_to_one_edges,
    stages_schema,
)

# The arrays of a workload of DAGs, made of its tables: what kernels and figures read.


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
        As in `DagWorkload`.
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


@dataclass(frozen=True, eq=False)
class DagWorkload(WithTables):
    """Jobs of stages with precedence; make one with `make_dag_workload` or a reader.

    Attributes
    ----------
    name : str
        What the workload is called in results.
    jobs, tasks, stages, edges : pyarrow.Table
        As `workloads.jobs.JOBS_SCHEMA`; and of `workloads.stages` `DAG_TASKS_SCHEMA`, `stages_schema` and
        `edges_schema`.
    short_cutoff_s, long_partition, metadata, notes, constraint_sets, job_constraints
        As in `workloads.jobs.JobWorkload`.
    not_held : tuple of str
        Resources that tasks do not hold though stages state demands of them, as a network moves what tasks send.
    """

    name: str
    jobs: pa.Table
    tasks: pa.Table
    stages: pa.Table
    edges: pa.Table
    short_cutoff_s: float | None = None
    long_partition: float | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    constraint_sets: pa.Table = field(default_factory=no_sets)
    job_constraints: pa.Table = field(default_factory=no_job_constraints)
    not_held: tuple[str, ...] = ()

    @property
    def num_jobs(self) -> int:
        """Number of jobs."""
        return self.jobs.num_rows

    @property
    def num_stages(self) -> int:
        """Number of stages of all jobs."""
        return self.stages.num_rows

    @property
    def num_tasks(self) -> int:
        """Number of tasks of all jobs."""
        return self.tasks.num_rows

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """The resources that tasks of some stage hold: those of all nodes first, then own by name."""
        return tuple(name for name in resources_of(self.stages) if name not in self.not_held)

    @cached_property
    def bytes_known(self) -> tuple[str, ...]:
        """The columns of bytes, of edges and of stages, in which some are known."""
        tables = ((EDGE_BYTES, self.edges), (INPUT_BYTES, self.stages))
        return tuple(name for name, table in tables if not np.isnan(known_bytes(table, name)).all())

    def _without_stages(self) -> JobWorkload:
        sets, of_jobs = self.constraint_sets, self.job_constraints
        return JobWorkload(self.name, self.jobs, self.tasks, constraint_sets=sets, job_constraints=of_jobs)

    def arrays(self) -> DagArrays:
        """Return the workload as `DagArrays`: times rounded to the nanosecond, arrivals as given."""
        return self._arrays

    @cached_property
    def _arrays(self) -> DagArrays:
        of_jobs = self._without_stages().arrays()
        return dag_arrays(of_jobs, column(self.jobs, "job_id"), self.stages, self.edges, self.resources)

    def fingerprint(self) -> str:
        """Return the sha256 (hex) of jobs, stages, edges, tasks and constraints; nothing else counts."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256(f"emu dags {SCHEMA_VERSION} {self.num_stages} {self.edges.num_rows}".encode())
        digest.update(self._without_stages().fingerprint().encode())
        for name in ("num_tasks", "stage", "mean_task_s"):
            digest.update(column(self.stages, name).data)
        for name in ("cpu_cores", "memory"):
            digest.update(optional_column(self.stages, name).data)
        labels, codes = coded_labels(self.stages["name"])
        digest.update(repr(labels).encode() + codes.tobytes())
        for name in EDGES_SCHEMA.names:
            digest.update(column(self.edges, name).data)
        for name in resources_of(self.stages):
            if name not in ("cpu_cores", "memory"):  # which are there already
                digest.update(name.encode() + b"\0")
                digest.update(optional_column(self.stages, name).data)
        if (one_to_one := one_to_one_edges(self.edges)).any():
            digest.update(b"one-to-one")
            digest.update(one_to_one.data)
        for name in self.bytes_known:
            digest.update(name.encode() + b"\0")
            digest.update(known_bytes(self.edges if name == EDGE_BYTES else self.stages, name).data)
        return digest.hexdigest()


JobsOrDags = TypeVar("JobsOrDags", bound=JobWorkload | DagWorkload)


def make_dag_workload(
    name: str,
    submit_s: npt.ArrayLike,
    num_stages: npt.ArrayLike,
    stage_tasks: npt.ArrayLike,
    duration_s: npt.ArrayLike,
    edges: npt.ArrayLike,
    mean_task_s: npt.ArrayLike | None = None,
    *,
    stage_mean_s: npt.ArrayLike | None = None,
    stage_name: pa.Array | Sequence[str | None] | None = None,
    cpu_cores: npt.ArrayLike | None = None,
    memory: npt.ArrayLike | None = None,
    demands: Mapping[str, npt.ArrayLike | None] | None = None,
    edge_kind: pa.Array | Sequence[str | None] | None = None,
    edge_bytes: npt.ArrayLike | None = None,
    input_bytes: npt.ArrayLike | None = None,
    job_id: npt.ArrayLike | None = None,
    constraint: pa.Array | Sequence[str | None] | None = None,
    tenant: pa.Array | Sequence[str | None] | None = None,
    requests: Requests = NOTHING,
    short_cutoff_s: float | None = None,
    long_partition: float | None = None,
    metadata: Mapping[str, str] | None = None,
    notes: tuple[str, ...] = (),
    origin: object = None,
) -> DagWorkload:
    """Build a workload of J jobs, S stages, T tasks and E edges from arrays, check it, and sort it by arrival.

    Parameters
    ----------
    name : str
    submit_s : array_like, shape (J,)
        Arrival times in seconds. When they are not in order jobs are sorted (stable), and there is a note.
    num_stages : array_like of int, shape (J,)
    stage_tasks : array_like of int, shape (S,)
        Tasks of each stage, job after job.
    duration_s : array_like, shape (T,)
        Task durations in seconds, stage after stage.
    edges : array_like of int, shape (E, 3)
        Job (its place in `submit_s`), parent and child (stage numbers within the job), in any order.
    mean_task_s : array_like, shape (J,), optional
    stage_mean_s : array_like, shape (S,), optional
        Mean task durations as the source states them; by default those of the durations.
    stage_name : string array or sequence of str or None, length S, optional
    cpu_cores, memory : array_like, shape (S,), optional
        What each task needs, in cores and as a share (0..1) of a node's memory; NaN where not known.
    demands : mapping of str to array_like, shape (S,), optional
        What each task needs of other resources (`workloads.resources`) by name, of these two as well where they are
        not given above; NaN where not known.
    edge_kind : string array or sequence of str or None, length E, optional
        ``all-to-all`` (as is None) or ``one-to-one``, for each of `edges`.
    edge_bytes : array_like, shape (E,), optional
        Bytes that all tasks of the parent together send to all tasks of the child, for each of `edges`; NaN where not
        known.
    input_bytes : array_like, shape (S,), optional
        Bytes of the job's input that all tasks of a stage together read; NaN where not known.
    job_id, constraint, tenant, requests, short_cutoff_s, long_partition, metadata, notes
        As in `workloads.jobs.make_workload`; demands are those of stages.
    origin : optional
        File named in errors and notes; or a mapping of table (jobs, stages, edges, tasks) to file.

    Raises
    ------
    InputError
        What `make_workload` refuses; a job without stages, a stage without tasks, counts that do not add up;
        an edge from or to a stage that is not there, to itself, or given twice; stages that wait for each other
        in a circle; a one-to-one edge between stages with different numbers of tasks; a demand that is out of its
        range, or of what is not a resource; bytes below 0 or above `workloads.coflows.MAX_BYTES`.
    """
    jobs_file, stages_file, tasks_file = (file_of(origin, t) for t in ("jobs", "stages", "tasks"))
    submit = check_times(submit_s, "submit_s", file=jobs_file)
    tasks = whole_numbers(stage_tasks, "num_tasks", 1, 2**40, file=stages_file)
    durations = check_times(duration_s, "duration_s", file=tasks_file)
    if len(submit) == 0:
        raise InputError("the workload has no jobs", file=jobs_file)
    stages = whole_numbers(num_stages, "num_stages", 1, 2**40, file=jobs_file)
    same_length(stages, len(submit), "num_stages", "jobs", file=jobs_file)
    check_sum(stages, len(tasks), "num_stages", "stages", file=jobs_file)
    check_sum(tasks, len(durations), "num_tasks", "durations", file=stages_file)
    first_task = first_rows(tasks)
    if stage_mean_s is None:
        means = np.add.reduceat(durations, first_task[:-1]) / tasks
    else:
        means = check_times(stage_mean_s, "mean_task_s", file=stages_file)
        same_length(means, len(tasks), "mean_task_s", "stages", file=stages_file)
    own = {name: given for name, given in (("cpu_cores", cpu_cores), ("memory", memory)) if given is not None}
    needs = check_demands({**(demands or {}), **own}, len(tasks), "stages", stages_file, ALWAYS)
    needs |= check_bytes(input_bytes, INPUT_BYTES, len(tasks), "stages", stages_file)
    names = text_column(stage_name, len(tasks), "name", "stages", stages_file)
    between = check_edges(edges, stages, job_id, file_of(origin, "edges"))
    sent = check_bytes(edge_bytes, EDGE_BYTES, between.shape[1], "edges", file_of(origin, "edges"))
    first_stage = first_rows(stages)
    ends = (tasks[first_stage[between[0]] + between[1]], tasks[first_stage[between[0]] + between[2]])
    one_to_one = check_edge_kinds(edge_kind, *ends, file_of(origin, "edges"))

    jobs = make_workload(
        name,
        submit,
        np.add.reduceat(tasks, first_stage[:-1]),
        durations,
        mean_task_s,
        job_id=job_id,
        constraint=constraint,
        tenant=tenant,
        requests=requests,
        short_cutoff_s=short_cutoff_s,
        long_partition=long_partition,
        metadata=metadata,
        notes=notes,
        origin=jobs_file,
    )
    stage = np.arange(len(tasks)) - np.repeat(first_stage[:-1], stages)
    order = np.argsort(submit, kind="stable")  # as make_workload sorts
    if np.any(order[1:] < order[:-1]):
        by_job = rows_of_groups(stages, order)
        stages, tasks, means, stage = stages[order], tasks[by_job], means[by_job], stage[by_job]
        needs, names = {name: of[by_job] for name, of in needs.items()}, names.take(from_numpy(by_job))
        between[0] = np.argsort(order)[between[0]]
    by_ends = np.lexsort(between[::-1])
    sent = {name: of[by_ends] for name, of in sent.items()}
    return _with_tables(
        jobs, (stages, stage, tasks, means), names, needs, between[:, by_ends], one_to_one[by_ends], sent
    )


def _with_tables(
    jobs: JobWorkload,
    stages: tuple[np.ndarray, ...],
    names: pa.Array,
    needs: Mapping[str, np.ndarray],
    edges: np.ndarray,
    one_to_one: np.ndarray,
    sent: Mapping[str, np.ndarray],
) -> DagWorkload:
    """Return the workload of checked jobs and arrays in their order.

    `stages`: the stages of each job; number in its job, tasks and mean task duration of each stage. `edges`: [3, E].
    `needs` and `sent`: optional columns of stages and of edges.
    """
    of_job, stage, tasks, means = stages
    ids = column(jobs.jobs, "job_id")
    numbers = [from_numpy(np.repeat(ids, of_job)), from_numpy(stage)]
    columns = [*numbers, names, from_numpy(tasks), from_numpy(means), *map(from_optional, needs.values())]
    more = {"kind": kind_column(one_to_one)} if one_to_one.any() else {}
    more |= {name: from_optional(of) for name, of in sent.items()}
    return DagWorkload(
        name=jobs.name,
        jobs=jobs.jobs,
        tasks=pa.Table.from_arrays(
            [*jobs.tasks.columns, from_numpy(np.repeat(stage, tasks))], schema=DAG_TASKS_SCHEMA
        ),
        stages=pa.Table.from_arrays(columns, schema=stages_schema(needs)),
        edges=pa.Table.from_arrays(
            [from_numpy(ids[edges[0]]), *map(from_numpy, edges[1:]), *more.values()],
            schema=edges_schema(more),
        ),
        short_cutoff_s=jobs.short_cutoff_s,
        long_partition=jobs.long_partition,
        metadata=jobs.metadata,
        notes=jobs.notes,
    )


def stage_levels(dag: DagWorkload) -> Int64Array:
    """Return the level of each stage, shape (S,): edges on the longest path to it, 0 without parents."""
    arrays = dag.arrays()
    return levels(arrays.first_child, arrays.child)


# What tasks of a workload state to need, and memory that is stated in two units: as a share of a node, and in GiB.

MEMORY_UNITS = {"memory": "memory, a share of a node", "memory_gib": "memory_gib"}
"""Both are of the same memory of a node; which share of it a size is, depends on the node."""
_SHOWN = 3


def task_demand(workload: JobWorkload | DagWorkload, name: str) -> Float64Array:
    """Return what each task needs of a resource, shape (T,), NaN where it is not stated."""
    if isinstance(workload, DagWorkload):
        return np.repeat(optional_column(workload.stages, name), column(workload.stages, "num_tasks"))
    return stated_demand(workload.jobs, workload.tasks, name)


def memory_in_two_units(workload: JobWorkload | DagWorkload) -> str:
    """Return which jobs state memory in which unit, as one clause; empty where all state it in one."""
    if not {*MEMORY_UNITS} <= {*workload.resources}:
        return ""
    first_task = workload.arrays().first_task[:-1]
    parts = []
    for name, shown in MEMORY_UNITS.items():
        stating = np.flatnonzero(np.logical_or.reduceat(~np.isnan(task_demand(workload, name)), first_task))
        verb = "job states" if stating.size == 1 else "jobs state"
        parts.append(f"{stating.size:,} {verb} {shown} ({_whose(workload, stating)})")
    return ", and ".join(parts)


def _whose(workload: JobWorkload | DagWorkload, jobs: np.ndarray) -> str:
    """Return the first of some jobs, and the tenants of all of them."""
    first = f"job {column(workload.jobs, 'job_id')[jobs[0]]}"
    first = first if jobs.size == 1 else f"the first: {first}"
    found = dict.fromkeys(workload.jobs["tenant"].take(jobs).to_pylist())
    tenants = [printable(tenant) for tenant in found if tenant is not None]
    if not tenants:
        return first
    more = ", …" if len(tenants) > _SHOWN else ""
    return f"{first}; tenant{'s' if len(tenants) > 1 else ''} {', '.join(tenants[:_SHOWN])}{more}"
