"""What Slurm's ``sacct --parsable2`` prints: a line a job or step, fields separated by ``|``, names in the first line.

``sacct --allusers --parsable2 --starttime 2026-01-01 --format
JobID,Submit,Start,End,Elapsed,AllocCPUS,Timelimit,State,User`` writes what is used; only JobID, Submit and Elapsed (or
ElapsedRaw, or Start and End) must be there. Steps (``12.batch``, ``12.extern``, ``12.0``) are parts of their job and
are left out, as are jobs that wait or run still, or never ran. Elements of a job array (``12_3``) are the tasks of one
job, as are components of a heterogeneous job (``12+1``). Times are the cluster's local time.

References
----------
.. [1] sacct(1), Slurm Workload Manager, sections "Job Accounting Fields" and "Job State Codes".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal

from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.jobs import JobWorkload
from workloads.readers.job_rows import JobRows
from workloads.readers.report import Progress, Report
from workloads.readers.source import open_text, read_lines, shown

NOT_ENDED = ("PENDING", "RUNNING", "REQUEUED", "RESIZING", "SUSPENDED", "REQUEUE_HOLD", "CONFIGURING")
NO_TIME = ("", "Unknown", "None", "N/A")
_JOB = re.compile(r"(\d+)(?:_(\d+|\[.*\])|\+(\d+))?(\..+)?")
_SPAN = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.(\d+))?")
_EPOCH = datetime(1970, 1, 1)


def read_sacct(
    path: str | Path,
    *,
    arrays: Literal["tasks", "jobs"] = "tasks",
    tasks: Literal["cpus", "one"] = "cpus",
    estimates: Literal["elapsed", "timelimit"] = "elapsed",
    report: Report | None = None,
    progress: Progress | None = None,
) -> JobWorkload:
    """Read what ``sacct --parsable2`` (or ``--parsable``) printed.

    Parameters
    ----------
    path : str or Path
        A file, plain or gzip.
    arrays : "tasks" or "jobs"
        Whether the elements of a job array are the tasks of one job, or jobs of their own.
    tasks : "cpus" or "one"
        A job has a task for each of its AllocCPUS, or one.
    estimates : "elapsed" or "timelimit"
        What schedulers know of a task's duration: how long it took, or its Timelimit, where there is one.

    Raises
    ------
    InputError
        Names the file, the line and the field that is wrong.
    """
    report = Report() if report is None else report
    rows = JobRows(path)
    for number, row in _rows(path, progress):
        found = _JOB.fullmatch(row["JobID"])
        if found is None:
            raise InputError(
                f"{shown(row['JobID'])} is not a job of Slurm", file=path, line=number, field="JobID"
            )
        if found[4]:
            report.dropped("steps of jobs, which are parts of them", 1)
            continue
        state = row.get("State", "COMPLETED").split(" ")[0]
        if state in NOT_ENDED:
            report.dropped("jobs that had not ended", 1)
            continue
        elapsed_s = _elapsed_s(row, path, number)
        cpus = _whole(row.get("AllocCPUS") or row.get("NCPUS") or "1", path, number)
        if elapsed_s <= 0 or cpus == 0:
            report.dropped("jobs that never ran", 1)
            continue
        own = arrays == "jobs" and found[2] is not None
        limit = row.get("Timelimit", "")
        known = estimates == "timelimit" and _SPAN.fullmatch(limit) is not None
        rows.add(
            row["JobID"] if own else found[1],
            _time_s(row["Submit"], "Submit", path, number),
            elapsed_s,
            number,
            tasks=cpus if tasks == "cpus" else 1,
            estimate_s=_span_s(limit, "Timelimit", path, number) if known else None,
            tenant=row.get("User") or None,
        )
    report.read("lines of jobs that ran", len(rows))
    name = Path(path).name.removesuffix(".gz").rpartition(".")[0] or Path(path).name
    return rows.workload(name, f"sacct, {Path(path).name}", report)


def _rows(path: str | Path, progress: Progress | None) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number of each line, and its fields by name."""
    names: list[str] = []
    for number, line in read_lines(path, None, progress):
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if not text.strip():
            continue
        fields = text.split("|")
        if not names:
            names = fields
            _check_names([name for name in names if name], path, number)
            continue
        if len(fields) != len(names):
            wrong = f"the line has {len(fields)} fields, and the first line names {len(names)}"
            raise InputError(
                wrong, file=path, line=number, field=names[min(len(fields), len(names)) - 1] or "JobID"
            )
        yield number, dict(zip(names, fields, strict=True))
    if not names:
        raise InputError("is empty; want what sacct --parsable2 prints", file=path)


def _check_names(names: list[str], path: object, line: int) -> None:
    for name in ("JobID", "Submit"):
        if name not in names:
            wrong = f"is no field of the first line{did_you_mean(name, names)}; print it with sacct --format"
            raise InputError(wrong, file=path, line=line, field=name)
    if not {"Elapsed", "ElapsedRaw"} & {*names} and not {"Start", "End"} <= {*names}:
        wrong = (
            "is no field of the first line, nor ElapsedRaw, nor Start and End; print it with sacct --format"
        )
        raise InputError(wrong, file=path, line=line, field="Elapsed")


def _elapsed_s(row: dict[str, str], path: object, line: int) -> float:
    """Return how long a job ran, 0 if it never started."""
    if row.get("ElapsedRaw"):
        return float(_whole(row["ElapsedRaw"], path, line, "ElapsedRaw"))
    if row.get("Elapsed"):
        return _span_s(row["Elapsed"], "Elapsed", path, line)
    if row.get("Start", "") in NO_TIME or row.get("End", "") in NO_TIME:
        return 0.0
    return _time_s(row["End"], "End", path, line) - _time_s(row["Start"], "Start", path, line)


def _span_s(text: str, field: str, path: object, line: int) -> float:
    """Return seconds of a text such as ``1-02:03:04`` or ``02:03.456``."""
    found = _SPAN.fullmatch(text)
    if found is None:
        raise InputError(f"{shown(text)} is not a time such as 1-02:03:04", file=path, line=line, field=field)
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[:4])
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds + float(f"0.{found[5] or 0}")


def _time_s(text: str, field: str, path: object, line: int) -> float:
    try:
        return (datetime.fromisoformat(text).replace(tzinfo=None) - _EPOCH).total_seconds()
    except ValueError:
        wrong = f"{shown(text)} is not a time such as 2026-01-31T12:30:00"
        raise InputError(wrong, file=path, line=line, field=field) from None


def _whole(text: str, path: object, line: int, field: str = "AllocCPUS") -> int:
    if not text.isdecimal() or len(text) > 15:
        raise InputError(f"{shown(text)} is not a whole number", file=path, line=line, field=field)
    return int(text)


def recognises(path: Path) -> bool:
    """Return whether a file's first line names fields of sacct."""
    if path.is_dir():
        return False
    try:
        with open_text(path) as stream:
            names = stream.readline(8192).strip().split(b"|")
    except InputError:
        return False
    return {b"JobID", b"Submit"} <= set(names)
