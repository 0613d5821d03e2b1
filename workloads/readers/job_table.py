"""A user's own table, CSV or Parquet, whose columns options name: a row a job, or a row a task.

``--from job-table --set workload_options.arrival=submitted --set workload_options.duration=seconds`` reads a row as a
job. ``tasks`` names a column with its number of tasks; with ``job`` a row is a task, and rows with the same value there
are one job. Arrivals are numbers, or times such as ``2026-01-31T12:30:00``; durations are numbers, lengths of time such
as ``00:01:30`` or ``1h``, or differences of two columns, ``start`` and ``end``, exact to the nanosecond.

``cores``, ``memory`` and ``gpus`` name columns of what a task needs, ``priority``, ``nodes`` (of a gang) and
``requested_time`` what is of its job, of whose rows the largest counts. An empty cell there states nothing.

Rows without an arrival, a duration or a number of tasks are dropped and counted; a row without a job is one of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from workloads.errors import InputError
from workloads.jobs import JobWorkload
from workloads.readers.cell_values import Cells, is_missing, seconds_of, shown_cell
from workloads.readers.job_rows import JobRows
from workloads.readers.report import Progress, Report
from workloads.readers.table_rows import Row, Used, file_rows, frame_rows

Unit = Literal["s", "ms", "us", "ns", "min", "h"]
MemoryUnit = Literal["B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "share"]
_DURATION = "duration"


def read_job_table(
    path: str | Path,
    *,
    arrival: str = "arrival",
    duration: str = _DURATION,
    start: str | None = None,
    end: str | None = None,
    tasks: str | None = None,
    job: str | None = None,
    estimate: str | None = None,
    user: str | None = None,
    constraints: str | None = None,
    cores: str | None = None,
    memory: str | None = None,
    gpus: str | None = None,
    priority: str | None = None,
    nodes: str | None = None,
    requested_time: str | None = None,
    unit: Unit = "s",
    memory_unit: MemoryUnit = "GiB",
    demands_of: Literal["task", "row"] = "task",
    gangs: bool = False,
    separator: str | None = None,
    decimal: str = ".",
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
    start, end : str, optional
        The columns of the times at which tasks started and ended, in place of durations; both or neither.
    tasks : str, optional
        The column of the number of tasks; by default a row has one.
    job : str, optional
        The column that rows of one job share; by default every row is a job.
    estimate : str, optional
        The column of the duration of a task that schedulers assume.
    user : str, optional
        The column of the user who submitted a job.
    constraints : str, optional
        The column of constraints, such as ``cpu_cores>=8; arch=arm`` (docs/workloads.md); empty for none.
    cores, memory, gpus : str, optional
        The columns of the cores, the memory and the GPUs (``attr:gpus``) that a task needs.
    priority : str, optional
        The column of the priority of a job; the larger goes first.
    nodes : str, optional
        The column of the number of nodes of a gang, a job whose tasks start at one time, 0 for any number; empty for a
        job that is not a gang.
    requested_time : str, optional
        The column of the run time that the user requested.
    unit : "s", "ms", "us", "ns", "min" or "h"
        Of arrivals, starts, ends, durations, estimates and requested times that are numbers.
    memory_unit : "B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB" or "share"
        Of memory that is a number without a unit; ``share`` of the largest node's memory.
    demands_of : "task" or "row"
        Whether cores, memory and GPUs are of a task, or of all tasks of the row together.
    gangs : bool
        Whether jobs without a number of nodes are gangs, on any number of nodes.
    separator : str, optional
        Between the fields of CSV: a character or its name, such as ``tab``. By default the one of comma, semicolon,
        tab, bar and blank with which the first line names the columns.
    decimal : str
        ``","`` where numbers in text are written ``1,5``, or ``1.234,5``.

    Raises
    ------
    InputError
        Names the file, the line and the column that is wrong.
    """
    used = _used(
        arrival=arrival, duration=duration, start=start, end=end, tasks=tasks, job=job, estimate=estimate, user=user,
        constraints=constraints, cores=cores, memory=memory, gpus=gpus, priority=priority, nodes=nodes,
        requested_time=requested_time,
    )  # fmt: skip
    asking = _Asking(memory_unit, demands_of == "row", gangs)
    name = Path(path).name.removesuffix(".gz")
    name = name.rpartition(".")[0] or name
    report = Report() if report is None else report
    rows = file_rows(Path(path), used, separator, report, progress)
    return _workload_of_rows(rows, used, asking, Cells(path, unit, decimal), name, path, report)


def workload_from(
    frame: Any,
    *,
    arrival: str = "arrival",
    duration: str = _DURATION,
    start: str | None = None,
    end: str | None = None,
    tasks: str | None = None,
    job: str | None = None,
    estimate: str | None = None,
    user: str | None = None,
    constraints: str | None = None,
    cores: str | None = None,
    memory: str | None = None,
    gpus: str | None = None,
    priority: str | None = None,
    nodes: str | None = None,
    requested_time: str | None = None,
    unit: Unit = "s",
    memory_unit: MemoryUnit = "GiB",
    demands_of: Literal["task", "row"] = "task",
    gangs: bool = False,
    decimal: str = ".",
    name: str = "frame",
) -> JobWorkload:
    """Return the jobs of a frame whose columns are named here, a row a job or a row a task.

    Parameters
    ----------
    frame : pandas.DataFrame, polars.DataFrame, pyarrow.Table, or another with ``__arrow_c_stream__``
    arrival, duration, start, end, tasks, job, estimate, user, constraints, unit, decimal : str
        As in `read_job_table`; None for a column that the frame does not have.
    cores, memory, gpus, priority, nodes, requested_time, memory_unit, demands_of, gangs
        As in `read_job_table`.
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
    used = _used(
        arrival=arrival, duration=duration, start=start, end=end, tasks=tasks, job=job, estimate=estimate, user=user,
        constraints=constraints, cores=cores, memory=memory, gpus=gpus, priority=priority, nodes=nodes,
        requested_time=requested_time,
    )  # fmt: skip
    asking = _Asking(memory_unit, demands_of == "row", gangs)
    used = {option: str(column) for option, column in used.items()}  # columns of pandas may be numbers
    report = Report()
    rows = frame_rows(frame, used, name, report)
    return _workload_of_rows(rows, used, asking, Cells(name, unit, decimal), name, name, report)


def _used(**columns: str | None) -> Used:
    """Return the wanted columns by the options that name them.

    Raises
    ------
    InputError
        Only one of `start` and `end` is given, or a duration beside them; or a needed column is None.
    """
    start, end = columns["start"], columns["end"]
    if (start is None) != (end is None):
        one, other = ("start", "end") if end is None else ("end", "start")
        raise InputError(f"{one} needs {other}: durations are from start to end", field=one)
    if start is not None and columns.pop("duration") not in (_DURATION, None):
        raise InputError("durations are given, or start and end; not both", field="duration")
    for option in ("arrival", "duration"):
        if columns.get(option, "") is None:
            raise InputError("names no column", field=option)
    return {option: name for option, name in columns.items() if name is not None}


class _Asking(NamedTuple):
    """How the columns of what jobs ask for are read."""

    memory_unit: MemoryUnit
    of_row: bool
    gangs: bool


def _asked(
    row: Mapping[str, Any], used: Used, tasks: int, asking: _Asking, cells: Cells, line: int
) -> dict[str, float | None]:
    """Return what a row asks for, as `JobRows.add` takes it; None where it is not stated."""

    def read(option: str, reads: Callable[[Any, str, int], float]) -> float | None:
        return None if row.get(option) is None else reads(row[option], used[option], line)

    memory = partial(cells.memory, unit=asking.memory_unit)
    amounts = {
        "cpu_cores": read("cores", cells.amount),
        "memory" if asking.memory_unit == "share" else "memory_gib": read("memory", memory),
        "attr:gpus": read("gpus", cells.amount),
    }
    of_task = {
        name: amount / tasks if amount is not None and asking.of_row else amount
        for name, amount in amounts.items()
    }
    nodes = read("nodes", cells.whole)
    return of_task | {
        "priority": read("priority", cells.integer),
        "gang_nodes": 0 if nodes is None and asking.gangs else nodes,
        "requested_s": read("requested_time", cells.duration_s),
    }


def _workload_of_rows(
    table: Iterable[Row],
    used: Used,
    asking: _Asking,
    cells: Cells,
    name: str,
    path: object,
    report: Report,
) -> JobWorkload:
    """Return the jobs of rows; errors name `path`, the line and the column."""
    rows = JobRows(path, 10**9)
    needed = [option for option in ("arrival", "duration", "start", "end", "tasks") if option in used]
    optional: dict[str, Callable[[Any, str, int], Any]] = {
        "job": cells.label, "estimate": cells.duration_s, "user": cells.text, "constraints": cells.text
    }  # fmt: skip
    for line, values in table:
        row = {o: None if is_missing(value) else value for o, value in zip(used, values, strict=True)}
        if missing := next((option for option in needed if row[option] is None), None):
            report.dropped(f"rows without {used[missing]}", 1)
            continue
        tasks = cells.whole(row["tasks"], used["tasks"], line) if "tasks" in used else 1
        if tasks == 0:
            report.dropped("rows with 0 tasks", 1)
            continue
        job, estimate_s, tenant, constraints = (
            None if row.get(option) is None else read(row[option], used[option], line)
            for option, read in optional.items()
        )
        if job is None and "job" in used:
            report.repaired(f"rows without {used['job']}: each taken as a job of its own", 1)
        rows.add(
            job,
            cells.time_ns(row["arrival"], used["arrival"], line),
            _duration_s(cells, row, used, line),
            line,
            tasks=tasks,
            estimate_s=estimate_s,
            tenant=tenant,
            constraints=constraints or "",
            asked=_asked(row, used, tasks, asking, cells, line),
        )
    report.read("rows", len(rows))
    return rows.workload(name, f"table {name}", report)


def _duration_s(cells: Cells, row: Mapping[str, Any], used: Used, line: int) -> float:
    if "start" not in used:
        return cells.duration_s(row["duration"], used["duration"], line)
    start, end = (cells.time_ns(row[own], used[own], line, like=used["start"]) for own in ("start", "end"))
    if end < start:
        wrong = f"is before {shown_cell(row['start'])}, which is the {used['start']}"
        cells.refuse(row["end"], wrong, used["end"], line)
    return seconds_of(int(end) - int(start))


def recognises(path: Path) -> bool:
    """Return False: options state the columns, and ``--from job-table`` the format."""
    return False
