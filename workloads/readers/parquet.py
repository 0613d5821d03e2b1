"""Emu's own workload form: a folder of Parquet files, whose names determine the family of the workload.

=========  ===================================================================
jobs       ``jobs.parquet``, ``tasks.parquet``
dags       these two (tasks with their stage), ``stages.parquet``, ``edges.parquet``
coflows    ``coflows.parquet``, ``flows.parquet``, ``ports.parquet``
=========  ===================================================================

Where jobs have constraints there are also ``constraint_sets.parquet`` and ``job_constraints.parquet``. Columns and
units are those of `workloads.jobs`, `workloads.stages`, `workloads.coflows` and `workloads.constraints`. Other columns
are left out, with a note.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from workloads.arrow import column, optional_column
from workloads.coflows import COFLOWS_SCHEMA, FLOWS_SCHEMA, PORTS_SCHEMA, CoflowWorkload, make_coflow_workload
from workloads.constraints import CONSTRAINT_SETS_SCHEMA, JOB_CONSTRAINTS_SCHEMA, attach_constraints
from workloads.conversion import as_jobs
from workloads.dags import DagWorkload, JobsOrDags, make_dag_workload
from workloads.errors import InputError
from workloads.groups import distinct_ids, first_rows, positions, refuse_first, whole_numbers
from workloads.jobs import (
    Float64Array,
    Int64Array,
    JobWorkload,
    check_counts,
    check_times,
    jobs_schema,
    make_workload,
    tasks_schema,
)
from workloads.readers.parquet_tables import Schema, read_about, read_table, schema_for, write_tables
from workloads.requests import read_requests, without_requests
from workloads.resources import is_resource
from workloads.stages import (
    DAG_TASKS_SCHEMA,
    EDGE_BYTES,
    INPUT_BYTES,
    edges_schema,
    known_bytes,
    stages_schema,
    without_unused,
)

JOBS_FILE = "jobs.parquet"
TASKS_FILE = "tasks.parquet"
STAGES_FILE = "stages.parquet"
EDGES_FILE = "edges.parquet"
COFLOWS_FILE = "coflows.parquet"
FLOWS_FILE = "flows.parquet"
PORTS_FILE = "ports.parquet"
CONSTRAINT_SETS_FILE = "constraint_sets.parquet"
JOB_CONSTRAINTS_FILE = "job_constraints.parquet"

_CLASSES = ("short_cutoff_s", "long_partition")
_Schemas = Mapping[str, tuple[Schema, Collection[str]]]
_JOBS: _Schemas = {
    JOBS_FILE: (jobs_schema, {"constraint", "tenant"}),
    TASKS_FILE: (tasks_schema, ()),
}
_DAGS: _Schemas = {
    JOBS_FILE: _JOBS[JOBS_FILE],
    TASKS_FILE: (DAG_TASKS_SCHEMA, ()),
    STAGES_FILE: (stages_schema, {"name", "cpu_cores", "memory"}),
    EDGES_FILE: (edges_schema, ()),
}
_COFLOWS: _Schemas = {
    COFLOWS_FILE: (COFLOWS_SCHEMA, {"senders", "receivers", "size_bytes", "weight", "deadline_s"}),
    FLOWS_FILE: (FLOWS_SCHEMA, ()),
    PORTS_FILE: (PORTS_SCHEMA, {"ingress_bytes_per_s", "egress_bytes_per_s"}),
}
_CONSTRAINTS: _Schemas = {
    CONSTRAINT_SETS_FILE: (CONSTRAINT_SETS_SCHEMA, {"price"}),
    JOB_CONSTRAINTS_FILE: (JOB_CONSTRAINTS_SCHEMA, ()),
}
FAMILIES: Mapping[str, tuple[str, ...]] = {"jobs": (*_JOBS,), "dags": (*_DAGS,), "coflows": (*_COFLOWS,)}
"""The files of each family's folder."""
COLUMNS: Mapping[str, tuple[str, ...]] = {
    name: (*schema_for(schema, ()).names,) for name, (schema, _) in {**_DAGS, **_COFLOWS}.items()
}
"""The columns of each file, without those of resources."""
ALL_FILES = frozenset((*_DAGS, *_COFLOWS, *_CONSTRAINTS))
"""Every file that a workload folder can have."""


def family_of(folder: str | Path) -> str:
    """Return the family of a workload folder by the names of its files; ``jobs`` for an empty one.

    Raises
    ------
    InputError
        The folder holds files of jobs and of coflows.
    """
    there = {name for files in FAMILIES.values() for name in files if os.path.exists(Path(folder) / name)}
    if flows := sorted(there & {*_COFLOWS}):
        if jobs := sorted(there & {*_DAGS}):
            wrong = f"holds {jobs[0]} and {flows[0]}; a workload is of jobs or of coflows"
            raise InputError(wrong, file=folder)
        return "coflows"
    return "dags" if there & {STAGES_FILE, EDGES_FILE} else "jobs"


def read_folder(folder: str | Path) -> JobWorkload | DagWorkload | CoflowWorkload:
    """Read a workload folder of any family.

    Raises
    ------
    InputError
        As `family_of` and the reader of the family.
    """
    family = family_of(folder)
    if family == "coflows":
        return read_coflows(folder)
    return read_dags(folder) if family == "dags" else read_parquet(folder)


def read_parquet(folder: str | Path) -> JobWorkload:
    """Read a folder of jobs, whose name becomes the workload's; or that of DAGs, as `workloads.conversion.as_jobs`.

    ``constraint``, ``tenant`` and what jobs and tasks ask for (`workloads.requests`) may be absent.

    Raises
    ------
    InputError
        Names the file, the row (as line) and the column that is wrong.
    """
    folder = Path(folder)
    if os.path.exists(folder / STAGES_FILE):
        return as_jobs(read_dags(folder))
    (jobs, tasks), notes = _read_tables(folder, _JOBS)
    workload = make_workload(
        folder.resolve().name,
        column(jobs, "submit_s"),
        _job_counts(jobs, tasks, folder),
        check_times(column(tasks, "duration_s"), "duration_s", file=folder / TASKS_FILE),
        column(jobs, "mean_task_s"),
        requests=read_requests(jobs, tasks),
        notes=notes,
        origin=folder / JOBS_FILE,
        tasks_origin=folder / TASKS_FILE,
        **_about_jobs(jobs, folder),
    )
    return _with_constraints(workload, folder)


def read_dags(folder: str | Path) -> DagWorkload:
    """Read a folder of DAGs, whose name becomes the workload's.

    Edges may be in any order. Of jobs ``constraint`` and ``tenant`` may be absent, of stages ``name``,
    ``cpu_cores``, ``memory``, all other demands and ``input_bytes``, of edges ``kind`` and ``size_bytes``.

    Raises
    ------
    InputError
        Names the file, the row (as line) and the column that is wrong.
    """
    folder = Path(folder)
    (jobs, tasks, stages, edges), notes = _read_tables(folder, _DAGS)
    ids, counts = column(jobs, "job_id"), _job_counts(jobs, tasks, folder)
    distinct_ids(ids, "job_id", file=folder / JOBS_FILE)
    num_stages = _stage_counts(ids, stages, folder)
    stage_tasks = whole_numbers(
        column(stages, "num_tasks"), "num_tasks", 1, len(tasks), file=folder / STAGES_FILE
    )
    made_up = np.add.reduceat(stage_tasks, first_rows(num_stages)[:-1])
    refuse_first(
        made_up != counts,
        counts,
        f"tasks, but the job's stages have another number in {STAGES_FILE}",
        "num_tasks",
        file=folder / JOBS_FILE,
    )
    due = np.repeat(column(stages, "stage"), stage_tasks)
    refuse_first(
        column(tasks, "stage") != due,
        column(tasks, "stage"),
        f"is not the expected stage; tasks lie in the order of {STAGES_FILE}",
        "stage",
        file=folder / TASKS_FILE,
    )
    of_job = positions(ids, column(edges, "job_id"))
    refuse_first(
        of_job < 0, column(edges, "job_id"), f"is not in {JOBS_FILE}", "job_id", file=folder / EDGES_FILE
    )
    workload = make_dag_workload(
        folder.resolve().name,
        column(jobs, "submit_s"),
        num_stages,
        stage_tasks,
        column(tasks, "duration_s"),
        np.stack([of_job, column(edges, "parent"), column(edges, "child")], axis=1),
        column(jobs, "mean_task_s"),
        stage_mean_s=column(stages, "mean_task_s"),
        stage_name=stages["name"].combine_chunks(),
        demands={name: optional_column(stages, name) for name in filter(is_resource, stages.column_names)},
        edge_kind=edges["kind"].combine_chunks() if "kind" in edges.column_names else None,
        edge_bytes=known_bytes(edges, EDGE_BYTES),
        input_bytes=known_bytes(stages, INPUT_BYTES),
        requests=read_requests(jobs, tasks),
        notes=notes,
        origin={Path(name).stem: folder / name for name in _DAGS},
        **_about_jobs(jobs, folder),
    )
    return _with_constraints(workload, folder)


def read_coflows(folder: str | Path) -> CoflowWorkload:
    """Read a folder of coflows, whose name becomes the workload's.

    Of coflows all columns except ``coflow_id``, ``arrival_s`` and ``width`` may be absent, of ports the bandwidths.
    Stated senders, receivers and sizes must be those of the flows.

    Raises
    ------
    InputError
        Names the file, the row (as line) and the column that is wrong.
    """
    folder = Path(folder)
    (coflows, flows, ports), notes = _read_tables(folder, _COFLOWS)
    ids, width = column(coflows, "coflow_id"), column(coflows, "width")
    whole_numbers(width, "width", 1, 2**40, file=folder / COFLOWS_FILE)
    distinct_ids(ids, "coflow_id", file=folder / COFLOWS_FILE)
    _check_members(ids, width, column(flows, "coflow_id"), folder, COFLOWS_FILE, FLOWS_FILE)
    port = column(ports, "port")
    wrong = "is not the expected port; ports are numbered 0, 1, ..."
    refuse_first(port != np.arange(len(port)), port, wrong, "port", file=folder / PORTS_FILE)
    workload = make_coflow_workload(
        folder.resolve().name,
        column(coflows, "arrival_s"),
        width,
        column(flows, "ingress"),
        column(flows, "egress"),
        column(flows, "size_bytes"),
        len(port),
        coflow_id=ids,
        weight=_given(coflows, "weight"),
        deadline_s=optional_column(coflows, "deadline_s"),
        ingress_bytes_per_s=optional_column(ports, "ingress_bytes_per_s"),
        egress_bytes_per_s=optional_column(ports, "egress_bytes_per_s"),
        notes=notes,
        origin={Path(name).stem: folder / name for name in _COFLOWS},
        **read_about(coflows, folder / COFLOWS_FILE),
    )
    _check_stated(coflows, workload, folder)
    return workload


def write_parquet(workload: JobWorkload | DagWorkload | CoflowWorkload, folder: str | Path) -> None:
    """Write a workload folder; the same workload gives the same bytes.

    Raises
    ------
    InputError
        The folder cannot be written, or holds files of another family.
    """
    folder = Path(folder)
    about: dict[str, Any] = {"metadata": workload.metadata}
    if isinstance(workload, CoflowWorkload):
        files = _COFLOWS
    else:
        files = _JOBS if isinstance(workload, JobWorkload) else _DAGS
        about = {name: getattr(workload, name) for name in _CLASSES} | about
        if workload.job_constraints.num_rows:
            files = {**files, **_CONSTRAINTS}
    for name in ALL_FILES - {*files}:
        if os.path.exists(folder / name):
            wrong = f"holds {name} of another workload; choose another folder, or remove that file"
            raise InputError(wrong, file=folder)
    tables = {name: getattr(workload, Path(name).stem) for name in files}
    tables = {
        name: without_unused(t) if name in (STAGES_FILE, EDGES_FILE) else without_requests(t)
        for name, t in tables.items()
    }
    tables = {name: t.cast(schema_for(files[name][0], t.column_names)) for name, t in tables.items()}
    write_tables(folder, tables, about)


def _with_constraints(workload: JobsOrDags, folder: Path) -> JobsOrDags:
    """Return the workload with the constraints of its folder, if any."""
    if not any(os.path.exists(folder / name) for name in _CONSTRAINTS):
        return workload
    (sets, owners), notes = _read_tables(folder, _CONSTRAINTS)
    made = attach_constraints(
        workload,
        sets,
        owners,
        sets_file=folder / CONSTRAINT_SETS_FILE,
        owners_file=folder / JOB_CONSTRAINTS_FILE,
    )
    return replace(made, notes=(*made.notes, *notes))


def _read_tables(folder: Path, files: _Schemas) -> tuple[list[pa.Table], tuple[str, ...]]:
    """Return the tables of a folder, and notes on columns that are not used."""
    tables, notes = [], []
    for name, (schema, optional) in files.items():
        table, extra = read_table(folder / name, schema, optional, [*files])
        tables.append(table)
        if extra:
            notes.append(f"{folder / name} has columns that are not used: {', '.join(extra)}")
    return tables, tuple(notes)


def _about_jobs(jobs: pa.Table, folder: Path) -> dict[str, Any]:
    """Return ids, labels, cut-off, long partition and metadata of jobs or DAGs."""
    return {
        "job_id": column(jobs, "job_id"),
        "constraint": jobs["constraint"].combine_chunks(),
        "tenant": jobs["tenant"].combine_chunks(),
        **read_about(jobs, folder / JOBS_FILE, _CLASSES),
    }


def _job_counts(jobs: pa.Table, tasks: pa.Table, folder: Path) -> Int64Array:
    """Return the number of tasks of each job; refuse one that differs from the table of tasks."""
    counts = column(jobs, "num_tasks")
    if len(counts) and counts.min() < 1:
        check_counts(counts, "num_tasks", file=folder / JOBS_FILE)
    _check_members(column(jobs, "job_id"), counts, column(tasks, "job_id"), folder, JOBS_FILE, TASKS_FILE)
    return counts


def _check_members(
    ids: Int64Array, counts: Int64Array, owners: Int64Array, folder: Path, of: str, members: str
) -> None:
    """Refuse members (tasks, flows) that differ in number or order from those that their owners state."""
    one, owner = Path(members).stem[:-1], Path(of).stem[:-1]
    field = "num_tasks" if owner == "job" else "width"
    if len(counts) == 0:
        raise InputError(f"has no rows; a workload has at least one {owner}", file=folder / of)
    if counts.max() > len(owners) or counts.sum() != len(owners):
        total = sum(counts.tolist())
        wrong = f"adds up to {total} {one}s, but {members} has {len(owners)} rows"
        raise InputError(wrong, file=folder / of, field=field)
    due = np.repeat(ids, counts)
    wrong_rows = owners != due
    if wrong_rows.any():
        at = int(np.argmax(wrong_rows))
        raise InputError(
            f"{one} of {owner} {owners[at]} in place of {owner} {due[at]}; {one}s lie in the order of {of}",
            file=folder / members,
            line=at + 1,
            field=f"{owner}_id",
        )


def _stage_counts(ids: Int64Array, stages: pa.Table, folder: Path) -> Int64Array:
    """Return the number of stages of each job, whose stages must lie together and be numbered from 0."""
    owners, path = column(stages, "job_id"), folder / STAGES_FILE
    of_job = positions(ids, owners)
    refuse_first(of_job < 0, owners, f"is not in {JOBS_FILE}", "job_id", file=path)
    back = np.append(False, of_job[1:] < of_job[:-1])
    refuse_first(
        back, owners, f"comes after a later job; stages lie in the order of {JOBS_FILE}", "job_id", file=path
    )
    counts = np.bincount(of_job, minlength=len(ids))
    refuse_first(counts == 0, ids, f"has no stage in {STAGES_FILE}", "job_id", file=folder / JOBS_FILE)
    stage = column(stages, "stage")
    due = np.arange(len(stage)) - np.repeat(first_rows(counts)[:-1], counts)
    wrong = "is not the expected stage; stages of a job are numbered 0, 1, ..."
    refuse_first(stage != due, stage, wrong, "stage", file=path)
    return counts


def _given(table: pa.Table, name: str) -> Float64Array | Int64Array | None:
    """Return an optional column of numbers, None if it is absent."""
    return None if table[name].null_count == table.num_rows else column(table, name)


def _check_stated(coflows: pa.Table, workload: CoflowWorkload, folder: Path) -> None:
    """Refuse a coflow whose stated senders, receivers or size are not those of its flows."""
    order = np.argsort(column(coflows, "arrival_s"), kind="stable")
    for name in ("senders", "receivers", "size_bytes"):
        if (stated := _given(coflows, name)) is None:
            continue
        of_flows = np.empty_like(stated)
        of_flows[order] = column(workload.coflows, name)
        off = ~(np.abs(stated - of_flows) <= 1e-9 * of_flows)  # sums may have been rounded otherwise
        refuse_first(
            off, stated, f"is not what the flows in {FLOWS_FILE} have", name, file=folder / COFLOWS_FILE
        )
