"""The common structure of jobs, DAGs and coflows: things that arrive, and rows that belong to them.

Each kind of workload has one table with a row per arrival (a job, a coflow) in order of arrival, and tables
whose rows belong to the arrivals and lie in their order (tasks, stages and edges, flows). The transformations
are written with the few primitives below, which keep that form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from workloads.arrow import column, from_numpy, from_optional, optional_column
from workloads.coflows import CoflowWorkload
from workloads.constraints import tidied
from workloads.dags import DagWorkload
from workloads.dags import JobsOrDags as JobsOrDags
from workloads.errors import InputError
from workloads.groups import positions, rows_of_groups
from workloads.jobs import MAX_TIME_S, Float64Array, Int64Array, JobWorkload, jobs_schema, tasks_schema
from workloads.stages import edges_schema, stages_schema

Workload = JobWorkload | DagWorkload | CoflowWorkload
W = TypeVar("W", bound=Workload)


class Family(NamedTuple):
    """The place of the arrivals in a kind of workload.

    Attributes
    ----------
    kind : str
        ``jobs``, ``DAGs`` or ``coflows``.
    name : str
        What arrives, in the plural: also the table with one row each.
    key, arrival : str
        Columns of that table: the id, which the other tables carry too, and the time of arrival (s).
    parts : tuple of str
        Tables whose rows belong to the arrivals.
    """

    kind: str
    name: str
    key: str
    arrival: str
    parts: tuple[str, ...]


_JOBS = Family("jobs", "jobs", "job_id", "submit_s", ("job_constraints", "tasks"))
_DAGS = Family("DAGs", "jobs", "job_id", "submit_s", ("stages", "edges", "job_constraints", "tasks"))
_COFLOWS = Family("coflows", "coflows", "coflow_id", "arrival_s", ("flows",))
_SCHEMAS = {"jobs": jobs_schema, "tasks": tasks_schema, "stages": stages_schema, "edges": edges_schema}
"""Schemas of the tables with optional columns, by the names of their columns."""


def family(workload: Workload) -> Family:
    """Return where a workload keeps its arrivals."""
    if isinstance(workload, CoflowWorkload):
        return _COFLOWS
    return _DAGS if isinstance(workload, DagWorkload) else _JOBS


def as_coflows(workload: Workload, why: str) -> CoflowWorkload:
    """Return a workload that has coflows; refuse others, with what of them is wanted."""
    if not isinstance(workload, CoflowWorkload):
        raise InputError(f"{workload.name} has {family(workload).kind}; {why}")
    return workload


def heads(workload: Workload) -> pa.Table:
    """Return the table with one row per arrival."""
    table: pa.Table = getattr(workload, family(workload).name)
    return table


def arrivals_s(workload: Workload) -> Float64Array:
    """Return the times of arrival (s), in order."""
    return column(heads(workload), family(workload).arrival)


def with_tables(workload: W, **changed: Any) -> W:
    """Return the workload with other tables, metadata or notes."""
    return replace(workload, **changed)


def set_column(table: pa.Table, name: str, values: Float64Array | Int64Array | pa.Array) -> pa.Table:
    """Return a table with a column's values replaced, its place, type and metadata kept."""
    at = table.schema.get_field_index(name)
    array = from_numpy(values) if isinstance(values, np.ndarray) else values
    return table.set_column(at, table.schema.field(at), array)


def row_counts(workload: Workload, part: str) -> Int64Array:
    """Return how many rows of a part each arrival has: shape (arrivals,)."""
    of = family(workload)
    ids, owners = column(heads(workload), of.key), column(getattr(workload, part), of.key)
    counts = np.zeros(len(ids), np.int64)
    if len(owners):
        first = np.concatenate([[0], np.flatnonzero(owners[1:] != owners[:-1]) + 1])  # of each run of an id
        counts[positions(ids, owners[first])] = np.diff(first, append=len(owners))
    return counts


def take(workload: W, places: Int64Array, ids: Int64Array | None = None) -> W:
    """Return a workload of the arrivals at these places, in this order, with all that belongs to them.

    `ids`, one for each place, take the place of theirs; a place can only be there twice with them.
    """
    of = family(workload)
    tables = {of.name: _take_rows(heads(workload), places)}
    for part in of.parts:
        tables[part] = _take_rows(getattr(workload, part), rows_of_groups(row_counts(workload, part), places))
    if ids is not None:
        for part in of.parts:
            owners = np.repeat(ids, row_counts(workload, part)[places])
            tables[part] = set_column(tables[part], of.key, owners)
        tables[of.name] = set_column(tables[of.name], of.key, ids)
    if not isinstance(workload, CoflowWorkload):
        tables |= tidied(workload.constraint_sets, tables["job_constraints"])
    return with_tables(workload, **tables)


def arriving_at(workload: W, times_s: Float64Array) -> W:
    """Return the workload with other times of arrival (s), sorted by them where they are not in order.

    A coflow's deadline moves with its arrival: what moves is when it comes, not how much time it has.

    Raises
    ------
    InputError
        An arrival or a deadline would be later than all times.
    """
    table, latest_s = heads(workload), float(times_s.max())
    if isinstance(workload, CoflowWorkload):
        deadline_s = times_s + (optional_column(table, "deadline_s") - arrivals_s(workload))
        table = set_column(table, "deadline_s", from_optional(deadline_s))
        latest_s = float(np.fmax.reduce(deadline_s, initial=latest_s))  # NaN where there is none
    if not latest_s <= MAX_TIME_S:
        raise InputError(
            f"the last of the {family(workload).name} of {workload.name} would arrive, or have its deadline, "
            f"after {latest_s:.2g} s; the most is {MAX_TIME_S:.0e} s"
        )
    table = set_column(table, family(workload).arrival, times_s)
    return _in_order(with_tables(workload, **{family(workload).name: table}))


def numbered(workload: W, first_id: int = 0) -> W:
    """Return the workload with ids ``first_id, first_id + 1, ...`` in order of arrival."""
    of = family(workload)
    ids = np.arange(first_id, first_id + heads(workload).num_rows, dtype=np.int64)
    parts = {
        part: set_column(getattr(workload, part), of.key, np.repeat(ids, row_counts(workload, part)))
        for part in of.parts
    }
    return with_tables(workload, **{of.name: set_column(heads(workload), of.key, ids)}, **parts)


def joined(workloads: Sequence[W]) -> W:
    """Return all arrivals of workloads of one kind as one workload, in order of arrival, numbered from 0.

    Name, metadata, notes and the ports of a network are those of the first; arrivals at the same time stay in
    the order of the workloads.
    """
    of = family(workloads[0])
    apart, first_id = [], 0
    for workload in workloads:
        apart.append(_sets_apart(numbered(workload, first_id), first_id))
        first_id += heads(workload).num_rows
    tables = {
        name: pa.concat_tables(_alike([getattr(w, name) for w in apart], name)).combine_chunks()
        for name in (of.name, *of.parts)
    }
    if sets := [w.constraint_sets for w in apart if not isinstance(w, CoflowWorkload)]:
        tables |= tidied(pa.concat_tables(sets).combine_chunks(), tables["job_constraints"])
    return numbered(_in_order(with_tables(workloads[0], **tables)))


def _alike(tables: Sequence[pa.Table], name: str) -> list[pa.Table]:
    """Return tables of one name with the same columns: optional ones that some lack are null there."""
    names = {field: None for table in tables for field in table.column_names}
    if all(table.num_columns == len(names) for table in tables):
        return [*tables]
    schema = _SCHEMAS[name](names).with_metadata(tables[0].schema.metadata)
    return [
        pa.Table.from_arrays(
            [t[f.name] if f.name in t.column_names else pa.nulls(t.num_rows, f.type) for f in schema],
            schema=schema,
        )
        for t in tables
    ]


def _sets_apart(workload: W, first_id: int) -> W:
    """Return jobs or DAGs whose sets of constraints are numbered from `first_id` on: fewer than their jobs."""
    if isinstance(workload, CoflowWorkload):
        return workload
    moved = {
        name: set_column(table, "set_id", column(table, "set_id") + first_id)
        for name in ("constraint_sets", "job_constraints")
        if (table := getattr(workload, name)).num_rows
    }
    return with_tables(workload, **moved)


def _in_order(workload: W) -> W:
    """Return the workload sorted by arrival (stable) where it is not."""
    times_s = arrivals_s(workload)
    if np.any(times_s[1:] < times_s[:-1]):
        return take(workload, np.argsort(times_s, kind="stable"))
    return workload


def _take_rows(table: pa.Table, rows: Int64Array) -> pa.Table:
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows) and np.all(rows[1:] > rows[:-1]):
        return table.slice(int(rows[0]), len(rows))  # a run of rows needs no copy
    return table.take(from_numpy(rows)).combine_chunks()
