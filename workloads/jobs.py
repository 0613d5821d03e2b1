"""Workloads of jobs: independent tasks that arrive together, as in the traces of Sparrow, Hawk and Eagle.

A job arrives at a time, has one or more tasks, and is done when its last task is. A workload is two Arrow
tables, one row per job and one row per task; tasks lie in job order. Times are float64 seconds in the tables
and int64 nanoseconds in the arrays the kernel gets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workloads.arrow import WithTables, coded_labels, column, described_field, from_numpy, text_column
from workloads.constraints import constraint_bytes, no_job_constraints, no_sets
from workloads.errors import InputError
from workloads.groups import check_sum, checked_ids, first_rows, nanoseconds, rows_of_groups, same_length
from workloads.requests import (
    NOTHING,
    Demands,
    Requests,
    add_requests,
    demands_of,
    request_bytes,
    request_columns,
    with_requests,
)
from workloads.resources import in_order, is_resource, resources_of

SCHEMA_VERSION = 1
MAX_TIME_S = 4.0e9
"""Above this (127 years), an arrival and a duration together need not fit int64 nanoseconds."""

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]


JOBS_SCHEMA = pa.schema(
    [
        described_field("job_id", pa.int64(), "1", "identifies the job in tasks and results"),
        described_field("submit_s", pa.float64(), "s", "when the job arrives; rows are in this order"),
        described_field("num_tasks", pa.int64(), "1", "tasks of the job, at least one"),
        described_field(
            "mean_task_s",
            pa.float64(),
            "s",
            "mean task duration as the trace states it; estimates start here",
        ),
        described_field(
            "constraint", pa.string(), "", "kind of placement constraint, or null", nullable=True
        ),
        described_field("tenant", pa.string(), "", "who submitted the job, or null", nullable=True),
    ],
    metadata={"schema_version": str(SCHEMA_VERSION)},
)
"""One row per job, in order of arrival; `jobs_schema` has what some jobs ask for."""

TASKS_SCHEMA = pa.schema(
    [
        described_field(
            "job_id", pa.int64(), "1", "job of the task; all tasks of a job lie together, in job order"
        ),
        described_field("duration_s", pa.float64(), "s", "how long the task keeps its slot"),
    ],
    metadata={"schema_version": str(SCHEMA_VERSION)},
)
"""One row per task, in job order and within a job in trace order; `tasks_schema` has their own demands."""


def jobs_schema(names: Iterable[str]) -> pa.Schema:
    """Return the schema of jobs with the requests (`workloads.requests`) that are among these names of columns."""
    return with_requests(JOBS_SCHEMA, names)


def tasks_schema(names: Iterable[str]) -> pa.Schema:
    """Return the schema of tasks with the demands that are among these names of columns."""
    return with_requests(TASKS_SCHEMA, filter(is_resource, names))


class JobArrays(NamedTuple):
    """A workload as the kernel sees it: read-only, C-contiguous int64 arrays for J jobs and T tasks.

    Attributes
    ----------
    submit_ns : ndarray of int64, shape (J,)
    first_task : ndarray of int64, shape (J + 1,)
        Tasks of job j are ``first_task[j]:first_task[j + 1]``.
    duration_ns : ndarray of int64, shape (T,)
    mean_ns : ndarray of int64, shape (J,)
        The trace's mean task duration.
    """

    submit_ns: Int64Array
    first_task: Int64Array
    duration_ns: Int64Array
    mean_ns: Int64Array


@dataclass(frozen=True, eq=False)
class JobWorkload(WithTables):
    """Jobs with their arrival times and task durations; make one with `make_workload` or a reader.

    Attributes
    ----------
    name : str
        What the workload is called in results: the generator's name or the file's.
    jobs, tasks : pyarrow.Table
        As `jobs_schema` and `tasks_schema`.
    short_cutoff_s : float | None
        Mean task duration up to which a job is short, where the workload has one.
    long_partition : float | None
        Share (0..1) of the nodes that long jobs may use.
    metadata : dict of str to str
        Origin, recipe, what was done to the data; travels with the Parquet form.
    notes : tuple of str
        Notes for the user, such as that arrivals were sorted.
    constraint_sets, job_constraints : pyarrow.Table
        The distinct sets of constraints, and which job has which: see `workloads.constraints`. Without rows
        where no job has any.
    """

    name: str
    jobs: pa.Table
    tasks: pa.Table
    short_cutoff_s: float | None = None
    long_partition: float | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    constraint_sets: pa.Table = field(default_factory=no_sets)
    job_constraints: pa.Table = field(default_factory=no_job_constraints)

    @property
    def num_jobs(self) -> int:
        """Number of jobs."""
        return self.jobs.num_rows

    @property
    def num_tasks(self) -> int:
        """Number of tasks of all jobs."""
        return self.tasks.num_rows

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources of which some task has a known demand, in order."""
        return tuple(in_order({*resources_of(self.jobs), *resources_of(self.tasks)}))

    def demands(self) -> Demands:
        """Return the demands of jobs and tasks."""
        return self._demands

    @cached_property
    def _demands(self) -> Demands:
        return demands_of(self.jobs, self.tasks, self.arrays().first_task)

    def arrays(self) -> JobArrays:
        """Return the workload as `JobArrays`: times rounded to the nanosecond, arrivals as given."""
        return self._arrays

    @cached_property  # it travels with the workload, so that partitions need not make it once more
    def _arrays(self) -> JobArrays:
        arrays = JobArrays(
            submit_ns=nanoseconds(column(self.jobs, "submit_s")),
            first_task=first_rows(column(self.jobs, "num_tasks")),
            duration_ns=nanoseconds(column(self.tasks, "duration_s")),
            mean_ns=nanoseconds(column(self.jobs, "mean_task_s")),
        )
        for array in arrays:
            array.flags.writeable = False
        return arrays

    def fingerprint(self) -> str:
        """Return the sha256 (hex) of all jobs, tasks, requests and constraints; name, metadata, notes do not count."""
        return self._fingerprint

    @cached_property  # many runs of a sweep have one workload
    def _fingerprint(self) -> str:
        digest = hashlib.sha256(f"emu jobs {SCHEMA_VERSION} {self.num_jobs} {self.num_tasks}".encode())
        for name in ("job_id", "submit_s", "num_tasks", "mean_task_s"):
            digest.update(column(self.jobs, name).data)
        digest.update(column(self.tasks, "duration_s").data)
        for name in ("constraint", "tenant"):
            labels, codes = coded_labels(self.jobs[name])
            if labels:
                digest.update(repr((name, labels)).encode())
                digest.update(codes.data)
        digest.update(request_bytes(self.jobs, self.tasks))
        digest.update(constraint_bytes(self))
        return digest.hexdigest()


def make_workload(
    name: str,
    submit_s: npt.ArrayLike,
    num_tasks: npt.ArrayLike,
    duration_s: npt.ArrayLike,
    mean_task_s: npt.ArrayLike | None = None,
    *,
    job_id: npt.ArrayLike | None = None,
    constraint: pa.Array | Sequence[str | None] | None = None,
    tenant: pa.Array | Sequence[str | None] | None = None,
    requests: Requests = NOTHING,
    short_cutoff_s: float | None = None,
    long_partition: float | None = None,
    metadata: Mapping[str, str] | None = None,
    notes: tuple[str, ...] = (),
    origin: object = None,
    tasks_origin: object = None,
) -> JobWorkload:
    """Build a workload of J jobs and T tasks from arrays, check it, and sort it by arrival.

    Parameters
    ----------
    name : str
    submit_s : array_like, shape (J,)
        Arrival times in seconds. When they are not in order jobs are sorted (stable), and there is a note.
    num_tasks : array_like of int, shape (J,)
    duration_s : array_like, shape (T,)
        Task durations in seconds, job after job in the order of `submit_s`.
    mean_task_s : array_like, shape (J,), optional
        Mean task duration as the trace states it; by default the mean of the durations.
    job_id : array_like of int, shape (J,), optional
        Distinct ids; by default the position after sorting.
    constraint, tenant : string array or sequence of str or None, length J, optional
    requests : Requests, optional
        What jobs and tasks ask for beside time, in the order of `submit_s` and `duration_s`.
    short_cutoff_s, long_partition, metadata, notes
        As in `JobWorkload`.
    origin : optional
        File named in errors and notes.
    tasks_origin : optional
        File named in errors of `requests.task_demands`; by default `origin`.

    Raises
    ------
    InputError
        No jobs; lengths that do not match; a time that is negative, not finite or above `MAX_TIME_S`; a job
        without tasks; a task count that does not add up; a job id given twice; a request that is out of its range.
    """
    submit = check_times(submit_s, "submit_s", file=origin)
    counts = check_counts(num_tasks, "num_tasks", file=origin)
    durations = check_times(duration_s, "duration_s", file=origin)
    if len(submit) == 0:
        raise InputError("the workload has no jobs", file=origin)
    same_length(counts, len(submit), "num_tasks", "jobs", file=origin)
    check_sum(counts, len(durations), "num_tasks", "durations", file=origin)
    if mean_task_s is None:
        means = np.add.reduceat(durations, np.cumsum(counts) - counts) / counts
    else:
        means = check_times(mean_task_s, "mean_task_s", file=origin)
        same_length(means, len(submit), "mean_task_s", "jobs", file=origin)
    _check_classes(short_cutoff_s, long_partition, origin)
    ids = None if job_id is None else checked_ids(job_id, len(submit), "job_id", "jobs", file=origin)
    kinds, tenants = (
        text_column(labels, len(submit), label, "jobs", origin)
        for labels, label in ((constraint, "constraint"), (tenant, "tenant"))
    )
    of_jobs, of_tasks = request_columns(requests, len(submit), len(durations), origin, tasks_origin or origin)

    if np.any(submit[1:] < submit[:-1]):
        order = np.argsort(submit, kind="stable")
        notes = (*notes, _sorted_note(order, origin or name))
        by_job = rows_of_groups(counts, order)
        durations = durations[by_job]
        of_jobs = {asked: values[order] for asked, values in of_jobs.items()}
        of_tasks = {asked: values[by_job] for asked, values in of_tasks.items()}
        submit, counts, means = submit[order], counts[order], means[order]
        ids = None if ids is None else ids[order]
        kinds, tenants = kinds.take(from_numpy(order)), tenants.take(from_numpy(order))
    if ids is None:
        ids = np.arange(len(submit), dtype=np.int64)
    jobs = [*(from_numpy(a) for a in (ids, submit, counts, means)), kinds, tenants]
    tasks = [from_numpy(np.repeat(ids, counts)), from_numpy(durations)]
    return JobWorkload(
        name=name,
        jobs=add_requests(pa.Table.from_arrays(jobs, schema=JOBS_SCHEMA), of_jobs),
        tasks=add_requests(pa.Table.from_arrays(tasks, schema=TASKS_SCHEMA), of_tasks),
        short_cutoff_s=short_cutoff_s,
        long_partition=long_partition,
        metadata=dict(metadata or {}),
        notes=tuple(notes),
    )


def check_times(
    values: npt.ArrayLike, name: str, *, file: object = None, lines: Int64Array | None = None
) -> Float64Array:
    """Return times (s) as a float64 array, or name the first that is negative, not finite or too large.

    `lines` gives the line of each value where that is not its 1-based position.
    """
    times = np.ascontiguousarray(values, np.float64)
    bad = ~((times >= 0) & (times <= MAX_TIME_S))
    if bad.any():
        at = int(np.argmax(bad))
        value = float(times[at])
        if not np.isfinite(value):
            want = "is not a finite number"
        elif value < 0:
            want = "is negative; times are in seconds, 0 or more"
        else:
            want = f"is more than {MAX_TIME_S:.0e} seconds; are the times in seconds?"
        raise InputError(
            f"{value!r} {want}", file=file, line=at + 1 if lines is None else int(lines[at]), field=name
        )
    return times + 0.0  # a copy the caller cannot change, with -0.0 made 0.0


def check_counts(values: npt.ArrayLike, name: str, *, file: object = None) -> Int64Array:
    """Return task counts as an int64 array, or name the first that is below one or not whole."""
    given = np.asarray(values)
    if given.dtype.kind not in "iuf":
        raise InputError(f"want whole numbers, have {given.dtype}", file=file, field=name)
    with np.errstate(invalid="ignore"):
        counts = given.astype(np.int64)
    bad = (given < 1) | (counts != given)
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(
            f"{given[at]} tasks; a job has a whole number of tasks, 1 or more",
            file=file,
            line=at + 1,
            field=name,
        )
    return counts


def _check_classes(short_cutoff_s: float | None, long_partition: float | None, file: object) -> None:
    if short_cutoff_s is not None and not (0 <= short_cutoff_s <= MAX_TIME_S):
        raise InputError(
            f"{short_cutoff_s!r} is not a duration in seconds", file=file, field="short_cutoff_s"
        )
    if long_partition is not None and not (0 <= long_partition <= 1):
        raise InputError(f"{long_partition!r} is not a share in 0..1", file=file, field="long_partition")


def _sorted_note(order: Int64Array, origin: object) -> str:
    moved = int(np.count_nonzero(order != np.arange(len(order))))
    return f"arrivals of {origin} were not in order: {moved} jobs moved; sorted by submit time"
