"""What Slurm's ``sacct --parsable2`` prints: a line a job or step, fields separated by ``|``, names in the first line.

``sacct --allusers --parsable2 --starttime 2026-01-01 --format
JobID,Cluster,Submit,Start,End,Elapsed,AllocCPUS,NNodes,ReqTRES,AllocTRES,Timelimit,Priority,State,User`` writes all
fields that are used; JobID, Submit and Elapsed (or ElapsedRaw, or Start and End) are required. Steps (``12.batch``,
``12.extern``, ``12.0``) are parts of their job and are left out, as are jobs that have not ended, or never ran.
`workloads.readers.slurm_runs` has the rules by which lines are one job. Times are the cluster's local time.

A job asks for its processors, memory (ReqTRES, else ReqMem, else AllocTRES) and GPUs (``gres/gpu`` of ReqTRES or
AllocTRES, else ReqGRES or AllocGRES), of which each of its tasks needs an equal part. Other resources, such as
licences, are left out and counted. A job is a gang: its tasks start at one time, on the nodes that it had (NNodes,
AllocNodes or ReqNodes, else ``node`` of AllocTRES or ReqTRES). Components of a heterogeneous job are one gang, on any
nodes. Elements of an array start each by itself: where they are the tasks of one job, it is not a gang.

References
----------
.. [1] sacct(1), Slurm Workload Manager, sections "Job Accounting Fields" and "Job State Codes"; --duplicates.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.jobs import JobWorkload
from workloads.limits import ROW_OBJECTS_BYTES, check_tasks, most_tasks
from workloads.readers.report import Progress, Report
from workloads.readers.samples import first_lines
from workloads.readers.slurm_fields import (
    WITHOUT_VALUE,
    elapsed_s,
    gpus,
    is_job,
    job_id,
    limit_s,
    memory_gib,
    nodes,
    other_resources,
    processors,
    time_of,
    whole,
)
from workloads.readers.slurm_runs import Run, Runs
from workloads.readers.source import read_lines, shown

NOT_ENDED = (
    "PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "SIGNALING", "STAGE_OUT", "STOPPED",
    "RESV_DEL_HOLD", "SPECIAL_EXIT",
)  # fmt: skip
_FIELDS = (
    "JobID", "JobIDRaw", "Cluster", "Submit", "Start", "End", "Elapsed", "ElapsedRaw", "AllocCPUS", "NCPUS",
    "AllocTRES", "ReqCPUS", "ReqTRES", "Timelimit", "TimelimitRaw", "State", "User", "ReqMem", "NNodes", "AllocNodes",
    "ReqNodes", "ReqGRES", "AllocGRES", "Priority",
)  # fmt: skip
_CALLED = {name.lower(): name for name in _FIELDS}
_ANY_TEXT = re.compile(
    r"JobName|\w*Comment|SubmitLine|WorkDir|Extra|Constraints|Reason|\w*NodeList|FailedNode|Container|Licenses|Std\w+"
    r"|\w*TRES\w*"
)
"""Fields whose text may contain the separator, which sacct does not escape."""
_SEPARATORS = ("|", "\t", ";", ",", "^", "%", "@", "~", "::")
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|Unknown", re.ASCII)


def read_sacct(
    path: str | Path,
    *,
    arrays: Literal["tasks", "jobs"] = "tasks",
    runs: Literal["each", "last"] = "each",
    tasks: Literal["cpus", "one"] = "cpus",
    estimates: Literal["elapsed", "timelimit"] = "elapsed",
    gangs: bool = True,
    gang_nodes: Literal["stated", "any"] = "stated",
    fields: str = "",
    report: Report | None = None,
    progress: Progress | None = None,
) -> JobWorkload:
    """Read the output of ``sacct --parsable2`` (or ``--parsable``), with any ``--delimiter``.

    Parameters
    ----------
    path : str or Path
        A file, plain or gzip; several outputs may follow each other in it.
    arrays : "tasks" or "jobs"
        Whether the elements of a job array are the tasks of one job, or jobs of their own.
    runs : "each" or "last"
        Runs of a job that ran again (requeued, preempted, or after a failure of its node), which ``sacct --duplicates``
        prints: each is a job, or the last one counts.
    tasks : "cpus" or "one"
        A job has a task for each of its processors (AllocCPUS, NCPUS or AllocTRES, else ReqCPUS or ReqTRES), or one.
    estimates : "elapsed" or "timelimit"
        The duration that schedulers assume: the elapsed time, or the Timelimit where there is one.
    gangs : bool
        Whether the tasks of a job start at one time; else they are independent.
    gang_nodes : "stated" or "any"
        Whether they start on as many nodes as the job had, or on any number.
    fields : str
        The fields as given to ``--format``, for output of ``--noheader``.

    Raises
    ------
    InputError
        Names the file, the line and the field that is wrong.
    """
    report = Report() if report is None else report
    found, lines, elements = Runs(path), 0, 0
    most, _ = most_tasks(path, ROW_OBJECTS_BYTES)
    for number, row in _rows(path, fields, report, progress):
        job = job_id(row["JobID"], path, number)
        state = _state(row)
        if job.is_step:
            report.dropped("steps of jobs, which are parts of them", 1)
        elif state in NOT_ENDED or (not state and "End" in row and row["End"] in WITHOUT_VALUE):
            report.dropped("jobs that had not ended", 1)
        elif (run := _run(row, path, number, report, by_limit=estimates == "timelimit")) is not None:
            report.repaired(
                "rows of arrays whose list of elements is cut off: those listed taken", job.is_cut
            )
            run = _of_tasks(
                run, 1 if tasks == "one" else run.tasks, gang_nodes == "any" or "+" in row["JobID"]
            )
            alone = arrays == "jobs" or "_" not in row["JobID"]
            report.repaired(_OF_ARRAYS, gangs and not alone and run.tasks > 1)
            if not (gangs and alone):
                run = run._replace(gang_nodes=math.nan)
            lines, elements = lines + 1, elements + sum(map(len, job.ranges))
            if elements > most:
                check_tasks(elements, "elements", file=path, line=number, each_bytes=ROW_OBJECTS_BYTES)
            for part in job.parts(row["JobID"]):
                found.add(run._replace(job=part if "_" in row["JobID"] and alone else job.job, part=part))
    report.read("lines of jobs that ran", lines)
    name = Path(path).name.removesuffix(".gz").rpartition(".")[0] or Path(path).name
    return found.jobs(runs, report).workload(name, f"sacct, {Path(path).name}", report)


_OF_ARRAYS = "elements of arrays with several processors: not gangs (arrays=jobs: each is one)"


def _of_tasks(run: Run, tasks: int, on_any_nodes: bool) -> Run:
    """Return a run with so many tasks, which need an equal part each of what the job asked for."""
    return run._replace(
        tasks=tasks,
        cpu_cores=run.cpu_cores / tasks,
        memory_gib=run.memory_gib / tasks,
        gpus=run.gpus / tasks,
        gang_nodes=0.0 if on_any_nodes else min(run.gang_nodes, tasks),
    )


def _run(row: dict[str, str], path: object, line: int, report: Report, *, by_limit: bool) -> Run | None:
    """Return the run of a line; None where the line states too little, or the job never ran."""
    took_s = elapsed_s(row, path, line)
    if took_s is None:
        name = "ElapsedRaw" if row.get("ElapsedRaw") or "Elapsed" not in row else "Elapsed"
        report.dropped(f"jobs whose {name} is {_word(row[name])}", 1)
        return None
    count, is_requested = processors(row, path, line)
    if took_s <= 0 or count == 0:
        report.dropped("jobs that never ran", 1)
        return None
    submit_s = time_of(row["Submit"], "Submit", path, line)
    if submit_s is None:
        report.dropped(f"jobs whose Submit is {_word(row['Submit'])}", 1)
        return None
    report.repaired("processors not known (print AllocCPUS): a task each", count is None)
    report.repaired("allocated processors unknown: requested ones taken", is_requested)
    start_s, end_s = (time_of(row.get(name, ""), name, path, line) for name in ("Start", "End"))
    if end_s is None and start_s is not None:
        end_s = start_s + took_s
    requested_s = limit_s(row, path, line)
    report.repaired("time limits not known: elapsed times taken", by_limit and requested_s is None)
    on_nodes = nodes(row, path, line)
    for kind in other_resources(row):
        report.dropped(f"requests of {shown(kind)}", 1)
    return Run(
        cluster=row.get("Cluster", ""),
        job="",
        part="",
        submit_s=submit_s,
        start_s=_or_nan(start_s),
        end_s=_or_nan(end_s),
        elapsed_s=took_s,
        estimate_s=_or_nan(requested_s if by_limit else None),
        cpu_cores=_or_nan(count),
        memory_gib=_or_nan(memory_gib(row, count or 1, on_nodes or 1, path, line)),
        gpus=_or_nan(gpus(row, on_nodes or 1, path, line)),
        priority=_or_nan(whole(row.get("Priority", ""), "Priority", path, line)),
        gang_nodes=float(on_nodes or 0),
        requested_s=_or_nan(requested_s),
        tasks=1 if count is None else count,
        line=line,
        state=_state(row),
        tenant=row.get("User") or None,
    )


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _word(text: str) -> str:
    """Return the word that a field has in place of a value."""
    if text.startswith("-"):
        return "negative"
    return (text if text in WITHOUT_VALUE else "no value") or "empty"


def _rows(
    path: str | Path, given: str, report: Report, progress: Progress | None
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number of each line about a job or step, and its fields by name."""
    names = [_called(name) for name in given.split(",")] if given else []
    if names:
        _check_names(names, "", path, None)
    separator = ""
    for number, line in read_lines(path, None, progress):
        text = line.decode("utf-8", "backslashreplace").rstrip("\r\n").removeprefix("\ufeff").lstrip(" ")
        if not text.strip() or text.startswith("#"):
            continue
        if not separator:
            separator = _separator(text, len(names))
        fields = _split(text, separator)
        if not names or ("Submit" in fields and not {"JobID", "JobIDRaw"}.isdisjoint(fields)):
            if not names and _is_data(fields):
                raise InputError(_NO_NAMES, file=path, line=number)
            separator = _separator(text)
            names = [_called(name) for name in _split(text, separator)]
            _check_names([name for name in names if name], text, path, number)
            continue
        if len(fields) > len(names):
            fields = _around_text(fields, names, separator, path, number)
            within = len(fields) == len(names) and separator in "".join(fields)
            report.repaired("lines with the separator within a text: read around it", within)
        if len(fields) != len(names):
            report.dropped("lines with another number of fields than the first line", 1)
            continue
        yield number, _row(names, fields)
    if not names or not separator:
        raise InputError("is empty; want what sacct --parsable2 prints", file=path)


_NO_NAMES = (
    "the first line has no names of fields; print it again without --noheader, or give what --format was: "
    "--set workload_options.fields=JobID,Submit,…"
)
_FOR_PEOPLE = "this is sacct's table for people, which cuts values off; print it with --parsable2"


def _called(name: str) -> str:
    """Return a field's name as sacct prints it, from the form that --format takes."""
    plain = name.strip().partition("%")[0]
    return _CALLED.get(plain.lower(), plain)


def _split(text: str, separator: str) -> list[str]:
    """Return the fields of a line; other programs convert sacct's output to CSV, with quotes."""
    if separator == "," and '"' in text:
        with suppress(csv.Error):
            return next(csv.reader([text]))
    return text.split(separator)


def _separator(text: str, count: int = 0) -> str:
    """Return the separator of a line of names, or, with `count`, the one that gives a line so many fields."""
    between = re.match(r"(?:JobID|JobIDRaw|[A-Z]\w*?)(?:%\d+)?([^\w%]+)[A-Z]", text.replace('"', ""))
    if not count and between:
        return between[1]
    return next((mark for mark in _SEPARATORS if mark in text and text.count(mark) + 1 >= count), "|")


def _is_data(fields: Sequence[str]) -> bool:
    """Return whether fields are values and not names."""
    return any(map(is_job, fields)) and any(map(_DATE.fullmatch, fields))


def _around_text(fields: list[str], names: list[str], separator: str, path: object, line: int) -> list[str]:
    """Return one field a name of a line in which one text contains the separator; else `fields`."""
    more = len(fields) - len(names)
    if more == 1 and not fields[-1]:
        return fields[:-1]  # some end lines with the separator, but not the first
    for at in (at for at, name in enumerate(names) if _ANY_TEXT.fullmatch(name)):
        whole = [*fields[:at], separator.join(fields[at : at + more + 1]), *fields[at + more + 1 :]]
        row = _row(names, whole)
        try:
            if ("State" not in row or _state(row).isupper()) and is_job(row["JobID"]):
                _run(row, path, line, Report(), by_limit=False)
                return whole
        except InputError:
            continue
    return fields


def _state(row: dict[str, str]) -> str:
    """Return the state of a job, only the first word of ``CANCELLED by 1000``, without the + of ``OUT_OF_ME+``."""
    return row.get("State", "").split(" ")[0].rstrip("+")


def _row(names: list[str], fields: list[str]) -> dict[str, str]:
    """Return the fields of a line by name, with its JobID."""
    row = dict(zip(names, fields, strict=True))
    row.setdefault("JobID", row.get("JobIDRaw", ""))
    return row


def _check_names(names: list[str], text: str, path: object, line: int | None) -> None:
    """Refuse names of fields, of a line or an option, without a required one."""
    if "  " in text and "JobID" in text.split():
        raise InputError(_FOR_PEOPLE, file=path, line=line)
    for name in ("JobID", "Submit"):
        if name not in names and not (name == "JobID" and "JobIDRaw" in names):
            wrong = f"is not among the fields{did_you_mean(name, names)}; print it with sacct --format"
            raise InputError(wrong, file=path, line=line, field=name)
    if not {"Elapsed", "ElapsedRaw"} & {*names} and not {"Start", "End"} <= {*names}:
        wrong = "is not among the fields, nor are ElapsedRaw, or Start and End; print it with sacct --format"
        raise InputError(wrong, file=path, line=line, field="Elapsed")


def recognises(path: Path) -> bool:
    """Return whether a file's first line has names of sacct's fields, or values as sacct prints them."""
    lines = (line.strip() for line in first_lines(path))
    text = next((line for line in lines if line and not line.startswith("#")), "")
    if _is_data(text.split("|")):
        return True
    names = {*_split(text, _separator(text)), *text.split()}
    return not {"JobID", "JobIDRaw"}.isdisjoint(names) and (
        "Submit" in names or "|" in text or "State" in names
    )
