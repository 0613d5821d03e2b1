"""Emu's own workload form: a folder with ``jobs.parquet`` and ``tasks.parquet``.

Columns and units are those of `workloads.jobs`. What belongs to the workload as a whole (cut-off, long
partition, metadata) is in the schema metadata of ``jobs.parquet``. Pages carry checksums, so that a damaged
file is noticed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from workloads.arrow import column
from workloads.errors import InputError
from workloads.hints import did_you_mean, names_beside
from workloads.jobs import (
    JOBS_SCHEMA,
    SCHEMA_VERSION,
    TASKS_SCHEMA,
    JobWorkload,
    check_counts,
    check_times,
    make_workload,
)

JOBS_FILE = "jobs.parquet"
TASKS_FILE = "tasks.parquet"
_OPTIONAL = {"constraint", "tenant"}
_ROWS_PER_GROUP = 1 << 20


def read_parquet(folder: str | Path) -> JobWorkload:
    """Read a workload folder; its name becomes the workload's.

    Columns other than the schema's are left out, with a note; ``constraint`` and ``tenant`` may be absent.

    Raises
    ------
    InputError
        Names the file, the row (as line) and the column that is wrong.
    """
    folder = Path(folder)
    jobs_path, tasks_path = folder / JOBS_FILE, folder / TASKS_FILE
    jobs, extra_jobs = _read_table(jobs_path, JOBS_SCHEMA)
    tasks, extra_tasks = _read_table(tasks_path, TASKS_SCHEMA)
    about = _about(jobs.schema.metadata or {}, jobs_path)

    ids, counts, task_ids = column(jobs, "job_id"), column(jobs, "num_tasks"), column(tasks, "job_id")
    if len(counts) == 0:
        raise InputError("has no rows; a workload has at least one job", file=jobs_path)
    if counts.min() < 1 or counts.max() > len(task_ids) or counts.sum() != len(task_ids):
        _explain_counts(counts, len(task_ids), jobs_path)
    due = np.repeat(ids, counts)
    wrong = task_ids != due
    if wrong.any():
        at, owner = int(np.argmax(wrong)), int(due[np.argmax(wrong)])
        raise InputError(
            f"task of job {task_ids[at]} where job {owner} is due; tasks lie in the order of {JOBS_FILE}",
            file=tasks_path,
            line=at + 1,
            field="job_id",
        )
    notes = tuple(
        f"{path} has columns that are not used: {', '.join(extra)}"
        for path, extra in ((jobs_path, extra_jobs), (tasks_path, extra_tasks))
        if extra
    )
    return make_workload(
        folder.resolve().name,
        column(jobs, "submit_s"),
        counts,
        check_times(column(tasks, "duration_s"), "duration_s", file=tasks_path),
        column(jobs, "mean_task_s"),
        job_id=ids,
        constraint=jobs["constraint"].combine_chunks(),
        tenant=jobs["tenant"].combine_chunks(),
        notes=notes,
        origin=jobs_path,
        **about,
    )


def write_parquet(workload: JobWorkload, folder: str | Path) -> None:
    """Write a workload folder, making it where needed; the same workload gives the same bytes.

    Raises
    ------
    InputError
        When the folder cannot be written.
    """
    import pyarrow.parquet as pq

    folder = Path(folder)
    about = {
        "schema_version": str(SCHEMA_VERSION),
        "short_cutoff_s": json.dumps(workload.short_cutoff_s),
        "long_partition": json.dumps(workload.long_partition),
        "metadata": json.dumps(workload.metadata, sort_keys=True),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, table, schema in (
            (JOBS_FILE, workload.jobs, JOBS_SCHEMA.with_metadata(about)),
            (TASKS_FILE, workload.tasks, TASKS_SCHEMA),
        ):
            pq.write_table(
                table.combine_chunks().cast(schema),
                folder / name,
                compression="zstd",
                use_dictionary=["constraint", "tenant", "job_id"],
                write_page_checksum=True,
                row_group_size=_ROWS_PER_GROUP,
            )
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=folder) from None


def _read_table(path: Path, schema: pa.Schema) -> tuple[pa.Table, list[str]]:
    """Return the schema's columns of a Parquet file, and the names of the columns left out."""
    import pyarrow.parquet as pq

    if not path.is_file():
        others = set(names_beside(path)) - {JOBS_FILE, TASKS_FILE}
        hint = did_you_mean(path.name, (n for n in others if n.endswith(".parquet")))
        raise InputError(
            f"no such file; a workload folder holds {JOBS_FILE} and {TASKS_FILE}{hint}", file=path
        )
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            names = file.schema_arrow.names
            missing = [n for n in schema.names if n not in names and n not in _OPTIONAL]
            if missing:
                raise InputError(
                    f"no such column{did_you_mean(missing[0], names)}", file=path, field=missing[0]
                )
            table = file.read([n for n in schema.names if n in names])
            table.validate(full=True)
            arrays = [_read_column(table, f, path) for f in schema]
            extra = [n for n in names if n not in schema.names]
            table = pa.Table.from_arrays(arrays, schema=schema.with_metadata(table.schema.metadata))
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise InputError(
            f"is not a Parquet file that can be read ({_first_line(error)})", file=path
        ) from None
    return table, extra


def _read_column(table: pa.Table, field: pa.Field, path: Path) -> pa.Array:
    """Return a column in the schema's type; other widths of the same kind are taken where they fit."""
    if field.name not in table.column_names:
        return pa.nulls(table.num_rows, field.type)
    if table.column_names.count(field.name) > 1:
        raise InputError("the column is there twice", file=path, field=field.name)
    values = table[field.name]
    if values.null_count and not field.nullable:
        row = int(np.argmax(np.asarray(values.is_null())))
        raise InputError("is null; every row needs a value", file=path, line=row + 1, field=field.name)
    if not _same_kind(values.type, field.type):
        raise InputError(f"has type {values.type}, want {field.type}", file=path, field=field.name)
    try:
        return values.cast(field.type).combine_chunks()
    except pa.ArrowInvalid as error:
        raise InputError(
            f"does not fit {field.type} ({_first_line(error)})", file=path, field=field.name
        ) from None


def _same_kind(have: pa.DataType, want: pa.DataType) -> bool:
    types = pa.types
    if types.is_string(want):
        return (
            types.is_string(have)
            or types.is_large_string(have)
            or types.is_null(have)
            or (types.is_dictionary(have) and types.is_string(have.value_type))
        )
    if types.is_integer(want):
        return types.is_integer(have)
    return types.is_integer(have) or types.is_floating(have)


def _about(metadata: dict[bytes, bytes], path: Path) -> dict[str, Any]:
    """Return cut-off, long partition and metadata from the schema metadata; a foreign file has none."""
    about: dict[str, Any] = {"short_cutoff_s": None, "long_partition": None, "metadata": {}}
    version = metadata.get(b"schema_version", str(SCHEMA_VERSION).encode())
    if version != str(SCHEMA_VERSION).encode():
        wrong = f"has version {version.decode(errors='replace')!a}, this Emu reads {SCHEMA_VERSION}"
        raise InputError(wrong, file=path, field="schema_version")
    for key in about:
        if (text := metadata.get(key.encode())) is None:
            continue
        try:
            value = json.loads(text)
        except ValueError:
            raise InputError("is not JSON", file=path, field=key) from None
        if key == "metadata":
            right = isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
        else:
            right = value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        if not right:
            want = "an object of strings" if key == "metadata" else "a number or null"
            raise InputError(f"want {want} in the schema metadata", file=path, field=key)
        about[key] = value
    return about


def _explain_counts(counts: np.ndarray, num_rows: int, path: Path) -> None:
    """Raise the error for task counts that do not add up to the rows of the tasks file."""
    check_counts(counts, "num_tasks", file=path)
    total = sum(counts.tolist())
    raise InputError(
        f"adds up to {total} tasks, but {TASKS_FILE} has {num_rows} rows", file=path, field="num_tasks"
    )


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return ascii(text[0][:160])[1:-1] if text else type(error).__name__
