"""What jobs ask for beside the time of their tasks: resources, a priority, to start as a gang, a run time.

Each is a column of the jobs that is there only where some job states it; the demands of tasks are columns of the tasks,
where the tasks of a job differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workloads.arrow import column, described_field, from_optional, is_known, optional_column, to_numpy
from workloads.errors import printable
from workloads.groups import refuse_first, same_length
from workloads.resources import check_demand, check_demands, demand_field, in_order, is_resource, resources_of

Float64Array = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]

NO_GANG = -1
_MOST = 2.0**53
"""Whole numbers up to this are exact as float64."""

_FIELDS = (
    described_field(
        "priority", pa.int64(), "1", "of the job: the larger goes first; null is 0", nullable=True
    ),
    described_field(
        "gang_nodes",
        pa.int64(),
        "1",
        "nodes of a gang, whose tasks start at one time: 0 is any number of them; null: the job is no gang",
        nullable=True,
    ),
    described_field(
        "requested_s",
        pa.float64(),
        "s",
        "run time that the user requested for the job, or null",
        nullable=True,
    ),
)
_NAMES = tuple(field.name for field in _FIELDS)
_RANGES = {
    "priority": (-_MOST, "a whole number"),
    "gang_nodes": (0, "a whole number of nodes, 0 or more"),
    "requested_s": (0, "a time in seconds, 0 or more"),
}


class Requests(NamedTuple):
    """What J jobs and T tasks ask for; NaN is not stated, and None is stated by none.

    Attributes
    ----------
    demands : mapping of str to array_like, shape (J,)
        What each task of a job needs, by resource (`workloads.resources`).
    task_demands : mapping of str to array_like, shape (T,)
        What a task needs where this is not as its job states.
    priority : array_like of int, shape (J,)
        The larger goes first.
    gang_nodes : array_like of int, shape (J,)
        Of a job whose tasks start at one time: the number of nodes on which they lie, 0 for any number.
    requested_s : array_like, shape (J,)
        The run time that the user requested (s).
    """

    demands: Mapping[str, npt.ArrayLike] = {}
    task_demands: Mapping[str, npt.ArrayLike] = {}
    priority: npt.ArrayLike | None = None
    gang_nodes: npt.ArrayLike | None = None
    requested_s: npt.ArrayLike | None = None


NOTHING = Requests()


class Demands(NamedTuple):
    """The distinct demands of tasks, and which each job and task has.

    Attributes
    ----------
    resources : tuple of str
        R names.
    vector : ndarray of float64, shape (D, R)
        0 where a demand is not known.
    of_job : ndarray of int64, shape (J,)
        The vector of a job: the most that one of its tasks needs of each resource.
    of_task : ndarray of int64, shape (T,) or (0,)
        The vector of a task; without tasks where all tasks of each job are alike.
    """

    resources: tuple[str, ...]
    vector: Float64Array
    of_job: Int64Array
    of_task: Int64Array

    def only(self, resources: tuple[str, ...]) -> Demands:
        """Return the demands of some of the resources; vectors may be equal."""
        columns = [self.resources.index(name) for name in resources]
        return self._replace(resources=resources, vector=np.ascontiguousarray(self.vector[:, columns]))


def with_requests(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """Return the schema of jobs or tasks with the requests that are among these names of columns."""
    given = set(names)
    more = [demand_field(name) for name in in_order(filter(is_resource, given))]
    more += [field for field in _FIELDS if field.name in given]
    return pa.schema([*schema, *more], metadata=schema.metadata)


def without_requests(table: pa.Table) -> pa.Table:
    """Return jobs or tasks without the columns of requests that state nothing."""
    unused = {*filter(_is_request, table.column_names)} - {*requests_of(table)}
    return table.drop_columns([*unused]) if unused else table


def requests_of(table: pa.Table) -> list[str]:
    """Return the columns of requests of which jobs or tasks state something."""
    names = filter(_is_request, table.column_names)
    return [name for name in names if table[name].null_count < table.num_rows]


def _is_request(name: str) -> bool:
    return is_resource(name) or name in _NAMES


def left_out(columns: Iterable[str], file: object, format: str) -> tuple[str, ...]:
    """Return a note on these columns of a workload, which a file of this format does not hold; none for none."""
    lost = dict.fromkeys(map(printable, columns))
    if not lost:
        return ()
    return (
        f"{file}: the format {format} does not hold {', '.join(lost)}, left out; a Parquet folder holds all",
    )


def without_demands(table: pa.Table) -> pa.Table:
    """Return jobs or tasks without the columns of demands."""
    return table.drop_columns([*filter(is_resource, table.column_names)])


def _ordered(names: Iterable[str]) -> list[str]:
    """Return names of columns of jobs or tasks in the order of tables: requests last, demands first among them."""
    given = list(names)
    plain = [name for name in given if not is_resource(name) and name not in _NAMES]
    return [*plain, *in_order(filter(is_resource, given)), *(name for name in _NAMES if name in given)]


def request_columns(
    asked: Requests, jobs: int, tasks: int, jobs_file: object, tasks_file: object
) -> tuple[dict[str, Float64Array], dict[str, Float64Array]]:
    """Return the columns of jobs and of tasks with what they ask for, checked; NaN where not stated.

    Raises
    ------
    InputError
        A name that is not a resource; a demand, a priority, a number of nodes or a time that is out of its range.
    """
    of_jobs = check_demands(asked.demands, jobs, "jobs", jobs_file)
    for name in _RANGES:
        if (given := getattr(asked, name)) is None:
            continue
        values = np.array(given, np.float64)
        same_length(values, jobs, name, "jobs", file=jobs_file)
        check_request(values, name, file=jobs_file)
        if not np.isnan(values).all():
            of_jobs[name] = values + 0.0
    return of_jobs, check_demands(asked.task_demands, tasks, "tasks", tasks_file)


def check_request(
    values: Float64Array, name: str, *, file: object = None, lines: Int64Array | None = None
) -> None:
    """Refuse demands, priorities, numbers of nodes or times that are out of their range; NaN is not stated.

    `lines` gives the line of each value where that is not its 1-based position.
    """
    if name not in _RANGES:
        check_demand(values, name, file=file, lines=lines)
        return
    least, wanted = _RANGES[name]
    with np.errstate(invalid="ignore"):
        bad = (values < least) | (values > _MOST)
        bad |= (values != np.rint(values)) & ~np.isnan(values) & (name != "requested_s")
    refuse_first(bad, values, f"is not {wanted}", name, file=file, lines=lines)


def shared_demand(values: Float64Array, of_job: Int64Array, jobs: int) -> tuple[Float64Array, Float64Array]:
    """Return the demand of each job whose rows agree, shape (J,), and of each row of the other jobs; else NaN.

    Parameters
    ----------
    values : ndarray of float64, shape (rows,)
        Demands, 0 or more, of tasks or groups of tasks; NaN is not stated.
    of_job : ndarray of int64, shape (rows,)
        The job, below `jobs`, of each row.

    Examples
    --------
    >>> shared_demand(np.array([2.0, 2.0, 4.0, 1.0]), np.array([0, 0, 1, 1]), 2)
    (array([ 2., nan]), array([nan, nan,  4.,  1.]))
    """
    known = np.nan_to_num(values, nan=-1.0)
    least, most = np.full(jobs, np.inf), np.full(jobs, -1.0)
    np.minimum.at(least, of_job, known)
    np.maximum.at(most, of_job, known)
    alike = least == most
    return np.where(alike & (most >= 0), most, np.nan), np.where(alike[of_job], np.nan, values)


def add_requests(table: pa.Table, columns: Mapping[str, Float64Array]) -> pa.Table:
    """Return a table of jobs or tasks with columns of requests."""
    schema = with_requests(table.schema, columns)
    arrays = [
        from_optional(columns[name]).cast(schema.field(name).type)
        for name in schema.names[table.num_columns :]
    ]
    made = pa.Table.from_arrays([*table.columns, *arrays], schema=schema)
    return made.select(_ordered(made.column_names))


def replace_requests(jobs: pa.Table, tasks: pa.Table, asked: Requests) -> tuple[pa.Table, pa.Table]:
    """Return jobs and tasks with these requests in place of theirs.

    Raises
    ------
    InputError
        As `request_columns`.
    """
    of_jobs, of_tasks = request_columns(asked, jobs.num_rows, tasks.num_rows, None, None)
    return tuple(
        add_requests(table.drop_columns([n for n in table.column_names if _is_request(n)]), columns)
        for table, columns in ((jobs, of_jobs), (tasks, of_tasks))
    )


def read_requests(jobs: pa.Table, tasks: pa.Table) -> Requests:
    """Return what the tables of jobs and tasks ask for."""

    def given(table: pa.Table, names: Iterable[str]) -> dict[str, Float64Array]:
        return {name: optional_column(table, name) for name in names if name in table.column_names}

    demands, task_demands = (given(t, filter(is_resource, t.column_names)) for t in (jobs, tasks))
    return Requests(demands, task_demands, **given(jobs, _NAMES))


def request_bytes(jobs: pa.Table, tasks: pa.Table) -> bytes:
    """Return what jobs and tasks ask for, as bytes for a fingerprint; none where nothing is stated."""
    found = []
    for table in (jobs, tasks):
        found += [(name, optional_column(table, name).astype(np.float64)) for name in requests_of(table)]
    return b"".join(name.encode() + values.tobytes() for name, values in found)


def priorities(jobs: pa.Table) -> Int64Array:
    """Return the priority of each job, 0 where it is not stated."""
    return _whole(jobs, "priority", 0)


def gang_nodes(jobs: pa.Table) -> Int64Array:
    """Return the number of nodes of each gang, 0 for any number, and `NO_GANG` for jobs that are not gangs."""
    return _whole(jobs, "gang_nodes", NO_GANG)


def requested_s(jobs: pa.Table) -> Float64Array:
    """Return the run time that was requested for each job (s), NaN where it is not stated."""
    if "requested_s" not in jobs.column_names:
        return np.full(jobs.num_rows, np.nan)
    return np.asarray(optional_column(jobs, "requested_s"), np.float64)


def _whole(table: pa.Table, name: str, missing: int) -> Int64Array:
    if name not in table.column_names:
        return np.full(table.num_rows, missing, np.int64)
    values = table[name].combine_chunks()
    found = np.full(len(values), missing, np.int64)
    found[is_known(values)] = to_numpy(values.drop_null())
    return found


def stated_demand(jobs: pa.Table, tasks: pa.Table, name: str) -> Float64Array:
    """Return what each task needs of a resource, shape (T,): NaN where neither the task nor its job states it."""
    of_jobs, own = (_demands(table, (name,))[:, 0] for table in (jobs, tasks))
    of_tasks = np.repeat(of_jobs, column(jobs, "num_tasks"))
    return np.where(np.isnan(own), of_tasks, own)


def demands_of(jobs: pa.Table, tasks: pa.Table, first_task: Int64Array) -> Demands:
    """Return the demands of jobs and their tasks; `first_task`: where the tasks of each job begin, (J + 1,)."""
    resources = tuple(in_order({*resources_of(jobs), *resources_of(tasks)}))
    of_jobs = _demands(jobs, resources)
    if not resources_of(tasks):
        vector, of_job = distinct_rows(np.nan_to_num(of_jobs))
        return Demands(resources, vector, of_job, np.zeros(0, np.int64))
    own = _demands(tasks, resources)
    of_tasks = np.nan_to_num(np.where(np.isnan(own), np.repeat(of_jobs, np.diff(first_task), axis=0), own))
    most = np.maximum.reduceat(of_tasks, first_task[:-1], axis=0)
    vector, place = distinct_rows(np.concatenate([most, of_tasks]))
    return Demands(resources, vector, place[: len(most)], place[len(most) :])


def distinct_rows(rows: Float64Array) -> tuple[Float64Array, Int64Array]:
    """Return the distinct rows, and which of them each row is."""
    code = np.zeros(len(rows), np.int64)
    for values in rows.T:  # np.unique of whole rows takes ten times as long
        distinct, own = np.unique(values, return_inverse=True)
        _, code = np.unique(code * len(distinct) + own, return_inverse=True)
    _, first, code = np.unique(code, return_index=True, return_inverse=True)
    return np.ascontiguousarray(rows[first]), code


def _demands(table: pa.Table, resources: tuple[str, ...]) -> Float64Array:
    """Return the demands of each row, shape (rows, R), NaN where not stated."""
    unstated = partial(np.full, table.num_rows, np.nan)
    found = [optional_column(table, name) if name in table.column_names else unstated() for name in resources]
    return np.stack(found, axis=1) if found else np.zeros((table.num_rows, 0))
