"""The Standard Workload Format of the Parallel Workloads Archive (``.swf``, plain, gzip or in a zip archive).

A line is a job, with 18 numbers separated by blanks; -1 is unknown; lines that begin with ``;`` are comments. The
reader uses job number, submit time, run time, processors (allocated, else requested), requested time and memory,
status, user and, with ``family=dags``, the preceding job. Files of other programs have more fields after these, and a
line of names.

A job of P processors becomes P tasks of its run time. Each needs a core and the requested memory, which is stated for
each processor in kB; the used memory is not a request. The tasks are a gang, on any number of nodes: the format does
not state nodes. The requested time is the job's ``requested_s``; 0 and -1 are not stated. The format has no priorities;
queues and partitions have numbers whose order is not defined, and are left out.

References
----------
.. [1] S. Chapin, W. Cirne, D. Feitelson, J. Jones, S. Leutenegger, U. Schwiegelshohn, W. Smith, D. Talby. Benchmarks
   and Standards for the Evaluation of Parallel Job Schedulers. JSSPP 1999; "The Standard Workload Format", version 2.2.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from workloads.conversion import as_chains
from workloads.dags import DagWorkload
from workloads.errors import InputError
from workloads.jobs import JobWorkload
from workloads.readers.job_rows import JobRows
from workloads.readers.report import Progress, Report
from workloads.readers.samples import first_lines
from workloads.readers.source import lines_of, member_names, open_members, shown
from workloads.readers.text import is_number

FIELDS = (
    "job_number", "submit_time", "wait_time", "run_time", "allocated_processors", "average_cpu_time", "used_memory",
    "requested_processors", "requested_time", "requested_memory", "status", "user_id", "group_id", "executable",
    "queue", "partition", "preceding_job", "think_time",
)  # fmt: skip
USED = frozenset(FIELDS) - {
    "wait_time", "average_cpu_time", "used_memory", "user_id", "group_id", "executable", "queue", "partition",
}  # fmt: skip
"""Fields that must be numbers; in the others programs may write names."""
PARTIAL = (2, 3, 4)
"""Status of lines about a part of a job that was checkpointed; another line is about the whole job."""


def read_swf(
    path: str | Path,
    *,
    family: Literal["jobs", "dags"] = "jobs",
    estimates: Literal["run-time", "requested-time"] = "run-time",
    processors_per_task: int = 1,
    gangs: bool = True,
    requested_memory: Literal["per-processor", "per-job", "ignored"] = "per-processor",
    report: Report | None = None,
    progress: Progress | None = None,
) -> JobWorkload | DagWorkload:
    """Read a file of the Standard Workload Format.

    Parameters
    ----------
    path : str or Path
        A file, plain or gzip, or a zip archive with one.
    family : "jobs" or "dags"
        Independent jobs, or chains of jobs as the stages of one job: a stage may start when the preceding job has
        ended, without the think time.
    estimates : "run-time" or "requested-time"
        The duration that schedulers assume: the run time, or the requested time where it is known.
    processors_per_task : int
        The processors of a job that become one task; a remainder is a task too.
    gangs : bool
        Whether the tasks of a job start at one time; else they are independent. Stages of ``family="dags"`` are not
        gangs, and their requested times are left out.
    requested_memory : "per-processor", "per-job" or "ignored"
        What the requested memory (kB) is of. By the standard it is of a processor; some logs state that of the job.

    Raises
    ------
    InputError
        Names the file, the line and the field that is wrong.
    """
    if processors_per_task < 1:
        raise InputError(f"{processors_per_task!r} is not a positive number", field="processors_per_task")
    report = Report() if report is None else report
    rows, place_of = JobRows(path), dict[float, int]()
    submit_s, preceding = array("d"), array("q")
    uses_memory = requested_memory != "ignored"
    for number, values, user in _rows(path, report, progress):
        if values["status"] in PARTIAL:
            report.dropped("lines about parts of jobs that were checkpointed", 1)
            continue
        processors = values["allocated_processors"]
        is_known = processors >= 1
        if not is_known:
            processors = values["requested_processors"]
        if values["submit_time"] == -1:
            report.dropped("jobs whose submit time is not known (-1)", 1)
            continue
        if values["submit_time"] < 0:
            raise InputError(
                f"{values['submit_time']:g} is not a time", file=path, line=number, field="submit_time"
            )
        if values["run_time"] < 0 or processors < 1:
            report.dropped("jobs that did not run: run time or processors unknown", 1)
            continue
        report.repaired("allocated processors unknown: requested ones taken", 0 if is_known else 1)
        asked, by_request = values["requested_time"], estimates == "requested-time"
        report.repaired("requested times not known: run times taken", by_request and asked <= 0)
        memory = values["requested_memory"]
        if memory > 0 and requested_memory == "per-job":
            memory /= processors
        if memory > _MOST_KB and uses_memory:
            report.dropped(_TOO_MUCH, 1)
            memory = -1
        submit_s.append(values["submit_time"])
        preceding.append(place_of.get(values["preceding_job"], -1))
        place_of[values["job_number"]] = len(submit_s) - 1
        if preceding[-1] < 0:
            report.repaired(_NOT_THERE, values["preceding_job"] > 0)
        elif family == "jobs":
            report.repaired(_INDEPENDENT, 1)
        else:
            report.repaired("think times after a preceding job: left out", values["think_time"] > 0)
        whole, rest = divmod(int(processors), processors_per_task)
        for tasks, of_task in ((whole, processors_per_task), (1, rest)):
            if not (tasks and of_task):
                continue
            rows.add(
                len(submit_s),
                values["submit_time"],
                values["run_time"],
                number,
                tasks=tasks,
                estimate_s=asked if by_request and asked > 0 else None,
                tenant=_user(user),
                asked={
                    "cpu_cores": of_task,
                    "memory_gib": memory * of_task / _KB_PER_GIB if memory > 0 and uses_memory else None,
                    "gang_nodes": 0 if gangs and family == "jobs" else None,
                    "requested_s": asked if asked > 0 and family == "jobs" else None,
                },
            )
    report.read("jobs", len(submit_s))
    name = Path(path).name
    for ending in (".gz", ".zip", ".swf"):
        name = name.removesuffix(ending)
    made = rows.workload(name, f"Standard Workload Format, {Path(path).name}", report)
    if family == "jobs":
        return made
    order = np.argsort(np.frombuffer(submit_s), kind="stable")  # the order of a workload's jobs
    place = np.append(np.argsort(order), -1)  # -1, no preceding job, stays -1
    return as_chains(made, place[np.frombuffer(preceding, np.int64)[order]])


_KB_PER_GIB = float(1 << 20)
_MOST_KB = float(1 << 30)
_TOO_MUCH = (
    "requested memories of more than 1 TiB a processor: are they kB of a processor (see requested_memory)?"
)
_INDEPENDENT = "jobs that wait for a preceding job: taken as independent (family=dags: as stages of one job)"
_NOT_THERE = "jobs whose preceding job is not on a line before, or did not run: they wait for none"


def _rows(
    path: str | Path, report: Report, progress: Progress | None
) -> Iterator[tuple[int, dict[str, float], str]]:
    """Yield number, values and user of each line of a job."""
    log = _log_of(path)
    names: list[str] = []
    for _, stream in open_members(path, None, progress, lambda name: name == log):
        for number, line in lines_of(stream, path):
            fields = line.removeprefix(b"\xef\xbb\xbf").partition(b";")[0].split()
            text = [field.decode("utf-8", "backslashreplace") for field in fields]
            if not text or text[0].startswith("#"):
                continue
            if not names and _is_header(text):
                names = text
            if text == names:
                report.repaired("lines with names of fields: passed over", 1)
                continue
            names = names or [""]  # only the first lines can be names
            if len(text) < len(FIELDS):
                wrong = f"the line has {len(text)} fields; want the 18 of the Standard Workload Format"
                raise InputError(wrong, file=path, line=number, field=FIELDS[len(text)])
            report.repaired("lines with more than 18 fields: the first 18 taken", len(text) > len(FIELDS))
            values = {
                name: _number(field, name, path, number)
                for name, field in zip(FIELDS, text, strict=False)
                if name in USED
            }
            yield number, values, text[_USER]


def _log_of(path: str | Path) -> str:
    """Return the name of the only log of a path; an archive may hold other files beside it."""
    names = member_names(path)
    logs = [name for name in names if name.lower().endswith((".swf", ".swf.gz"))] or names
    if len(logs) != 1:
        some = f": {', '.join(map(shown, logs[:3]))}{', …' if len(logs) > 3 else ''}" if logs else ""
        raise InputError(f"holds {len(logs)} files{some}; want one log, called .swf", file=path)
    return logs[0]


def _is_header(text: list[str]) -> bool:
    """Return whether the fields of a line are names."""
    return len(text) >= len(FIELDS) and not any(map(is_number, text))


_USER = FIELDS.index("user_id")


def _user(text: str) -> str | None:
    """Return the name of a user, None where it is not known."""
    if not re.fullmatch(r"-?[0-9]+(\.[0-9]*)?", text):  # a user may be called nan, or 1e5
        return text
    return None if text.startswith("-") else f"user-{float(text):.0f}"


def _number(text: str, name: str, path: object, line: int) -> float:
    value = float(text) if is_number(text) else math.nan
    if not abs(value) < 1e15:
        wrong = "out of range: want less than 1e15" if math.isfinite(value) else "not a number"
        raise InputError(f"{shown(text)} is {wrong}", file=path, line=line, field=name)
    return value


def recognises(path: Path) -> bool:
    """Return whether a file is called like one of this format, or its first line with numbers has 18 of them.

    More than 18 may be of another format, unless one of them is unknown, -1.
    """
    if path.name.lower().endswith((".swf", ".swf.gz", ".swf.zip")) and not path.is_dir():
        return True
    rows = (line.split() for line in first_lines(path))
    jobs = (row for row in rows if row and not row[0].startswith((";", "#")) and not _is_header(row))
    fields = next(jobs, [])
    known = fields[: len(FIELDS)]
    is_whole = len(fields) == len(FIELDS) or "-1" in known
    return len(known) == len(FIELDS) and is_whole and all(map(is_number, known))
