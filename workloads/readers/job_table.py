"""A table of one's own, CSV or Parquet, whose columns are named by options: a row a job, or a row a task.

``--from job-table --set workload_options.arrival=submitted --set workload_options.duration=seconds`` reads a row as a
job. With ``tasks`` a column gives its number of tasks; with ``job`` a row is a task, and rows with the same value there
are one job. Arrivals are numbers, or times such as ``2026-01-31T12:30:00``.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.jobs import JobWorkload
from workloads.readers.job_rows import JobRows
from workloads.readers.report import Progress, Report
from workloads.readers.source import open_text, shown

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}
Unit = Literal["s", "ms", "us", "ns", "min", "h"]


def read_job_table(
    path: str | Path,
    *,
    arrival: str = "arrival",
    duration: str = "duration",
    tasks: str | None = None,
    job: str | None = None,
    estimate: str | None = None,
    user: str | None = None,
    constraints: str | None = None,
    unit: Unit = "s",
    separator: str = ",",
    report: Report | None = None,
    progress: Progress | None = None,
) -> JobWorkload:
    """Read a table of jobs or tasks.

    Parameters
    ----------
    path : str or Path
        CSV with a first line of names (plain or gzip), or Parquet.
    arrival, duration : str
        The columns of arrivals, and of the durations of tasks.
    tasks : str, optional
        The column of the number of tasks; by default a row has one.
    job : str, optional
        The column that rows of one job share; by default every row is a job.
    estimate : str, optional
        The column of what schedulers know of a task's duration.
    user : str, optional
        The column of who submitted a job.
    constraints : str, optional
        The column of constraints, such as ``cpu_cores>=8; arch=arm`` (docs/workloads.md); empty for none.
    unit : "s", "ms", "us", "ns", "min" or "h"
        Of arrivals, where they are numbers, of durations and of estimates.
    separator : str
        Between the fields of CSV.

    Raises
    ------
    InputError
        Names the file, the line and the column that is wrong.
    """
    used = {
        "arrival": arrival, "duration": duration, "tasks": tasks, "job": job, "estimate": estimate, "user": user,
        "constraints": constraints,
    }  # fmt: skip
    name = Path(path).name.removesuffix(".gz")
    name = name.rpartition(".")[0] or name
    return workload_of_rows(_rows(Path(path), separator, progress), used, unit, name, path, report)


def workload_from(
    frame: Any,
    *,
    arrival: str = "arrival",
    duration: str = "duration",
    tasks: str | None = None,
    job: str | None = None,
    estimate: str | None = None,
    user: str | None = None,
    constraints: str | None = None,
    unit: Unit = "s",
    name: str = "frame",
) -> JobWorkload:
    """Return the jobs of a frame whose columns are named here, a row a job or a row a task.

    Parameters
    ----------
    frame : pandas.DataFrame or pyarrow.Table
    arrival, duration, tasks, job, estimate, user, constraints : str
        The columns of arrivals, durations, numbers of tasks, of what rows of one job share, of what schedulers know of
        durations, of users, and of constraints; None for what there is none of.
    unit : "s", "ms", "us", "ns", "min" or "h"
        Of arrivals, durations and estimates; arrivals may be times instead.
    name : str
        Of the workload.

    Raises
    ------
    InputError
        Names the row, from 0, and the column that is wrong.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"t": [0, 5, 5], "took": [3.0, 1.0, 2.0], "id": ["a", "b", "b"]})
    >>> workload_from(rows, arrival="t", duration="took", job="id").jobs["num_tasks"].to_pylist()
    [1, 2]
    """
    used = {
        "arrival": arrival, "duration": duration, "tasks": tasks, "job": job, "estimate": estimate, "user": user,
        "constraints": constraints,
    }  # fmt: skip
    rows = frame.to_pylist() if isinstance(frame, pa.Table) else frame.to_dict("records")
    return workload_of_rows(enumerate(rows), used, unit, name, name)


def workload_of_rows(
    table: Iterable[tuple[int, Mapping[str, Any]]],
    used: Mapping[str, str | None],
    unit: str,
    name: str,
    path: object,
    report: Report | None = None,
) -> JobWorkload:
    """Return the jobs of rows, each with the number of its line.

    Parameters
    ----------
    used : mapping
        The columns that are meant, by the names of the options of `read_job_table`; None for none.
    path : object
        What errors name.

    Raises
    ------
    InputError
        Names the line and the column that is wrong.
    """
    if unit not in SECONDS:
        raise InputError(f"{unit!r} is not a unit of time; want one of {', '.join(SECONDS)}", field="unit")
    report = Report() if report is None else report
    rows, scale = JobRows(path), SECONDS[unit]
    arrival, duration = used["arrival"] or "", used["duration"] or ""
    tasks, job, estimate, user, constraints = (
        used[name] for name in ("tasks", "job", "estimate", "user", "constraints")
    )
    checked = False
    for line, row in table:
        if not checked:
            _check_columns(row, used, path)
            checked = True
        if _is_empty(row[duration]):
            report.dropped(f"rows without {duration}", 1)
            continue
        count = 1 if tasks is None else _whole(row[tasks], tasks, path, line)
        if count == 0:
            report.dropped("rows with 0 tasks", 1)
            continue
        estimate_s = None
        if estimate is not None and not _is_empty(row[estimate]):
            estimate_s = _number(row[estimate], estimate, path, line) * scale
        rows.add(
            line if job is None else row[job],
            _arrival_s(row[arrival], arrival, path, line, scale),
            _number(row[duration], duration, path, line) * scale,
            line,
            tasks=count,
            estimate_s=estimate_s,
            tenant=None if user is None or _is_empty(row[user]) else str(row[user]),
            constraints="" if constraints is None or _is_empty(row[constraints]) else str(row[constraints]),
        )
    report.read("rows", len(rows))
    return rows.workload(name, f"table {name}", report)


def _rows(path: Path, separator: str, progress: Progress | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a table by name of the column, with the line of the file, or the row from 2 on."""
    if path.suffix == ".parquet":
        from workloads.readers.parquet_tables import parquet_file

        with parquet_file(path) as file:
            line = 2
            for batch in file.iter_batches(1 << 16):
                for row in batch.to_pylist():
                    yield line, row
                    line += 1
        return
    if len(separator) != 1:
        raise InputError(f"{separator!r} is not one character", field="separator")
    with open_text(path, None, progress) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
        reader = csv.reader(text, delimiter=separator, strict=True)
        names: list[str] = []
        try:
            for fields in reader:
                if not fields:
                    continue
                if not names:
                    names = [name.strip() for name in fields]
                    continue
                if len(fields) != len(names):
                    wrong = f"the line has {len(fields)} fields, and the first line names {len(names)}"
                    raise InputError(wrong, file=path, line=reader.line_num)
                yield reader.line_num, dict(zip(names, fields, strict=True))
        except csv.Error as error:
            raise InputError(f"is not CSV: {error}", file=path, line=reader.line_num) from None


def _check_columns(row: Mapping[str, Any], used: Mapping[str, str | None], path: object) -> None:
    for option, name in used.items():
        if name is not None and name not in row:
            known = ", ".join(list(row)[:12])
            raise InputError(
                f"has no column {name!r}{did_you_mean(name, row)}; its columns are {known}: "
                f"--set workload_options.{option}=NAME names one",
                file=path,
                field=option,
            )


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip()) or value != value


def _number(value: Any, name: str, path: object, line: int) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise InputError(f"{shown(str(value))} is not a number from 0 on", file=path, line=line, field=name)
    return number


def _whole(value: Any, name: str, path: object, line: int) -> int:
    number = _number(value, name, path, line)
    if number != int(number):
        raise InputError(f"{shown(str(value))} is not a whole number", file=path, line=line, field=name)
    return int(number)


def _arrival_s(value: Any, name: str, path: object, line: int, scale: float) -> float:
    if isinstance(value, str) and ("-" in value[1:] or ":" in value):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            wrong = f"{shown(value)} is neither a number nor a time such as 2026-01-31T12:30:00"
            raise InputError(wrong, file=path, line=line, field=name) from None
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    return _number(value, name, path, line) * scale


def recognises(path: Path) -> bool:
    """Return False: which columns are meant is said by options, and so is the format (``--from job-table``)."""
    return False
