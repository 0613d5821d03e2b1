"""The Standard Workload Format of the Parallel Workloads Archive (``.swf``, plain, gzip or in a zip archive).

A line is a job, with 18 numbers separated by blanks; -1 is unknown; lines that begin with ``;`` are comments. Used are
job number, submit time, run time, processors (allocated, else requested), requested time, status and user. A parallel
job of P processors becomes a job of P tasks of its run time: nodes here start tasks one by one, and not all at once.

References
----------
.. [1] S. Chapin, W. Cirne, D. Feitelson, J. Jones, S. Leutenegger, U. Schwiegelshohn, W. Smith, D. Talby. Benchmarks
   and Standards for the Evaluation of Parallel Job Schedulers. JSSPP 1999; "The Standard Workload Format", version 2.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from workloads.errors import InputError
from workloads.jobs import JobWorkload
from workloads.readers.job_rows import JobRows
from workloads.readers.report import Progress, Report
from workloads.readers.source import lines_of, open_members, open_text, shown

FIELDS = (
    "job_number", "submit_time", "wait_time", "run_time", "allocated_processors", "average_cpu_time", "used_memory",
    "requested_processors", "requested_time", "requested_memory", "status", "user_id", "group_id", "executable",
    "queue", "partition", "preceding_job", "think_time",
)  # fmt: skip
UNKNOWN = -1
PARTIAL = (2, 3, 4)
"""Status of lines about a part of a job that was checkpointed; one more line is about the whole job."""


def read_swf(
    path: str | Path,
    *,
    estimates: Literal["run-time", "requested-time"] = "run-time",
    processors_per_task: int = 1,
    report: Report | None = None,
    progress: Progress | None = None,
) -> JobWorkload:
    """Read a file of the Standard Workload Format.

    Parameters
    ----------
    path : str or Path
        A file, plain or gzip, or a zip archive with one.
    estimates : "run-time" or "requested-time"
        What schedulers know of a task's duration: how long it ran, or what the user asked for, where that is known.
    processors_per_task : int
        A job has as many tasks as this number divides its processors, rounded up.

    Raises
    ------
    InputError
        Names the file, the line and the field that is wrong.
    """
    if processors_per_task < 1:
        raise InputError(f"{processors_per_task!r} is not a positive number", field="processors_per_task")
    report = Report() if report is None else report
    rows = JobRows(path)
    for number, fields in _rows(path, progress):
        values = dict(zip(FIELDS, fields, strict=True))
        if values["status"] in PARTIAL:
            report.dropped("lines about parts of jobs that were checkpointed", 1)
            continue
        processors = values["allocated_processors"]
        is_known = processors > 0
        if not is_known:
            processors = values["requested_processors"]
        if values["submit_time"] < 0:
            raise InputError(
                f"{values['submit_time']:g} is not a time", file=path, line=number, field="submit_time"
            )
        if values["run_time"] < 0 or processors <= 0:
            report.dropped("jobs that did not run: run time or processors unknown", 1)
            continue
        report.repaired("allocated processors unknown: requested ones taken", 0 if is_known else 1)
        asked = values["requested_time"]
        user = values["user_id"]
        rows.add(
            number,
            values["submit_time"],
            values["run_time"],
            number,
            tasks=-(-int(processors) // processors_per_task),
            estimate_s=asked if estimates == "requested-time" and asked > 0 else None,
            tenant=None if user < 0 else f"user-{user:.0f}",
        )
    report.read("jobs", len(rows))
    name = Path(path).name
    for ending in (".gz", ".zip", ".swf"):
        name = name.removesuffix(ending)
    return rows.workload(name, f"Standard Workload Format, {Path(path).name}", report)


def _rows(path: str | Path, progress: Progress | None) -> Iterator[tuple[int, list[float]]]:
    """Yield the number and the values of each line that is no comment."""
    read = 0
    for name, stream in open_members(path, None, progress):
        if read and not name.endswith(".swf"):
            continue
        for number, line in lines_of(stream, path):
            text = line.partition(b";")[0].split()
            if not text:
                continue
            if len(text) != len(FIELDS):
                wrong = f"the line has {len(text)} fields; want the 18 of the Standard Workload Format"
                raise InputError(wrong, file=path, line=number, field=FIELDS[min(len(text), len(FIELDS) - 1)])
            yield (
                number,
                [_number(field, name, path, number) for field, name in zip(text, FIELDS, strict=True)],
            )
        read += 1


def _number(text: bytes, name: str, path: object, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < 1e15 or b"_" in text:
        raise InputError(f"{shown(text)} is not a number", file=path, line=line, field=name)
    return value


def recognises(path: Path) -> bool:
    """Return whether a file is called like one of this format, or its first line with numbers has 18 of them."""
    if path.is_dir():
        return False
    if path.name.lower().endswith((".swf", ".swf.gz", ".swf.zip")):
        return True
    try:
        with open_text(path) as stream:
            for _ in range(200):
                line = stream.readline(4096)
                if not line or (line.strip() and not line.lstrip().startswith(b";")):
                    break
            else:
                return False
    except InputError:
        return False
    fields = line.split()
    return len(fields) == len(FIELDS) and all(_is_number(field) for field in fields)


def _is_number(text: bytes) -> bool:
    return text.lstrip(b"-").replace(b".", b"", 1).isdigit()
