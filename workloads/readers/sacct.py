"""What Slurm's ``sacct --parsable2`` prints: a line a job or step, fields separated by ``|``, names in the first line.

``sacct --allusers --parsable2 --starttime 2026-01-01 --format
JobID,Cluster,Submit,Start,End,Elapsed,AllocCPUS,NNodes,ReqTRES,AllocTRES,Timelimit,Priority,State,User`` writes all
fields that are used; JobID, Submit and Elapsed (or ElapsedRaw, or Start and End) are required. Steps (``12.batch``,
``12.extern``, ``12.0``) are parts of their job and are left out, as are jobs that have not ended, or never ran.
Which lines are one job stands before `Run`. Times are the cluster's local time.

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
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.jobs import Int64Array, JobWorkload
from workloads.limits import ROW_OBJECTS_BYTES, add_tasks, check_tasks, most_tasks
from workloads.readers.job_rows import JobRows
from workloads.readers.report import Progress, Report
from workloads.readers.samples import first_lines
from workloads.readers.source import read_lines, shown

# Fields as Slurm's accounting prints them: ids of jobs, times, spans of time, processors, memory, GPUs, nodes.
#
# Slurm prints a word in place of a missing value, which is None here. Text that Slurm does not print is an
# `InputError`.

WITHOUT_VALUE = frozenset(
    ("", "Unknown", "None", "N/A", "(null)", "INVALID", "UNLIMITED", "INFINITE", "NOT_SET", "Partition_Limit")
)
"""Words that Slurm prints in place of a time, a span or a count."""
_NO_VALUE_S = 2**31
"""Slurm's NO_VAL is 2**32 - 2, INFINITE one more, and a negative time is printed as little less."""
_JOB = re.compile(r"(\d{1,19})(?:_(?:\d{1,19}|\[(.*)\])|\+\d{1,19})?(\..+)?", re.ASCII)
_RANGE = re.compile(r"(\d{1,15})(?:-(\d{1,15})(?::(\d{1,15}))?)?", re.ASCII)
_WHOLE = re.compile(r"(\d+)(?:\.0*)?", re.ASCII)
"""With a point after a conversion to doubles."""
_SPAN = re.compile(r"-?(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d{1,2})(\.\d{1,9})?", re.ASCII)
_TRES_CPU = re.compile(r"(?:^|,)cpu=(\d{1,15})(?:,|$)", re.ASCII)
_MEMORY = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([KMGTPE]?)([cn]?)", re.ASCII)
_GPUS_OF_GRES = re.compile(
    r"(PER_NODE:)?(?:gres[:/])?gpu(?:(?::[^:,=(]+)?[:=](\d{1,15})|(?::[^:,=(]+)?)(?:\(.*)?", re.ASCII
)
_THOUSANDS = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)K", re.ASCII)
"""Slurm prints 1,536 nodes as 1.50K."""
_GIB = {"K": 2.0**-20, "M": 2.0**-10, "": 2.0**-10, "G": 1.0, "T": 2.0**10, "P": 2.0**20, "E": 2.0**30}
"""Memory without a unit is in MiB."""
_EPOCH = datetime(1970, 1, 1)
_DAY_S = 86_400.0


class JobId(NamedTuple):
    """The id of a line of accounting.

    Attributes
    ----------
    job : str
        The number shared by all elements of an array, or all components of a heterogeneous job.
    ranges : tuple of range
        The numbers of elements of an array, where Slurm prints a list of them.
    is_cut : bool
        Whether the list of them is cut off.
    is_step : bool
        Whether the line is about a step, which is a part of its job.
    """

    job: str
    ranges: tuple[range, ...]
    is_cut: bool
    is_step: bool

    def parts(self, text: str) -> Iterator[str]:
        """Yield the whole id of each element that the line is about: for most lines one, `text`."""
        if not self.ranges:
            yield text
        for numbers in self.ranges:
            yield from (f"{self.job}_{number}" for number in numbers)


def is_job(text: str) -> bool:
    """Return whether a text looks like the id of a job, an element, a component or a step."""
    return _JOB.fullmatch(text) is not None


def job_id(text: str, path: object, line: int) -> JobId:
    """Return the parts of an id: ``12``, ``12_3``, ``12_[1-3,7%2]``, ``12+1``, each perhaps with ``.batch``."""
    found = _JOB.fullmatch(text)
    listed, is_cut = list[range](), False
    if found is not None and found[2] is not None:
        within = found[2].partition("%")[0]  # after % stands how many may run at once
        is_cut = within.endswith("...")
        ranges = [_RANGE.fullmatch(part) for part in within.removesuffix("...").strip(",").split(",")]
        listed = [_numbers(*map(int, one.groups("0"))) for one in ranges if one]
        found = found if all(ranges) else None
    if found is None:
        raise InputError(f"{shown(text)} is not a job of Slurm", file=path, line=line, field="JobID")
    return JobId(found[1], tuple(listed), is_cut, found[3] is not None)


def _numbers(first: int, last: int, step: int) -> range:
    return range(first, max(last, first) + 1, max(step, 1))


def seconds_of(text: str, field: str, path: object, line: int) -> float | None:
    """Return the seconds of a span such as ``1-02:03:04`` or ``02:03.456``; None where it has no value.

    A negative span, from a clock that was set back, is None.
    """
    found = _SPAN.fullmatch(text)
    if text in WITHOUT_VALUE or (found and text.startswith("-")):
        return None
    if found is None:
        raise InputError(f"{shown(text)} is not a time such as 1-02:03:04", file=path, line=line, field=field)
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[:4])
    if found[1] and not found[2]:  # of days, hours and minutes
        hours, minutes, seconds = minutes, seconds, 0
    return _known_s(((days * 24 + hours) * 60 + minutes) * 60 + seconds + float(f"0{found[5] or ''}"))


def time_of(text: str, field: str, path: object, line: int) -> float | None:
    """Return a time in seconds, from ``2026-01-31T12:30:00`` or seconds since 1970; None where it has no value."""
    if text in WITHOUT_VALUE:
        return None
    if text.isascii() and text.isdecimal() and len(text) <= 12:
        seconds = float(text)
    else:
        try:
            time = datetime.fromisoformat(text)
            seconds = (time - _EPOCH).total_seconds() if time.tzinfo is None else time.timestamp()
        except (ValueError, OverflowError):
            wrong = f"{shown(text)} is not a time such as 2026-01-31T12:30:00"
            raise InputError(wrong, file=path, line=line, field=field) from None
    return seconds if seconds > _DAY_S else None  # 0, in any time zone, stands for an unknown time


def whole(text: str, field: str, path: object, line: int) -> int | None:
    """Return a whole number; None where it has no value."""
    if text in WITHOUT_VALUE:
        return None
    if (found := _WHOLE.fullmatch(text)) is None:
        raise InputError(f"{shown(text)} is not a whole number", file=path, line=line, field=field)
    if len(found[1]) > 15:
        wrong = f"{shown(text)} is out of range: want 15 digits at most"
        raise InputError(wrong, file=path, line=line, field=field)
    return int(found[1])


def elapsed_s(row: Mapping[str, str], path: object, line: int) -> float | None:
    """Return how long a job ran, 0 if it never started, None if not known."""
    if row.get("ElapsedRaw"):
        seconds = whole(row["ElapsedRaw"], "ElapsedRaw", path, line)
        return None if seconds is None else _known_s(seconds)
    if row.get("Elapsed"):
        return seconds_of(row["Elapsed"], "Elapsed", path, line)
    if not {"Start", "End"} <= row.keys():
        return None
    start_s, end_s = (time_of(row.get(name, ""), name, path, line) for name in ("Start", "End"))
    return 0.0 if start_s is None or end_s is None else max(end_s - start_s, 0.0)


def limit_s(row: Mapping[str, str], path: object, line: int) -> float | None:
    """Return the time limit of a job, None for a job without its own limit."""
    if row.get("Timelimit"):
        return seconds_of(row["Timelimit"], "Timelimit", path, line)
    minutes = whole(row.get("TimelimitRaw", ""), "TimelimitRaw", path, line)
    return None if minutes is None else _known_s(60 * minutes)


def processors(row: Mapping[str, str], path: object, line: int) -> tuple[int | None, bool]:
    """Return the processors of a job, allocated or else requested, and whether they were only requested.

    0 for a job that got none; None where no field has them.
    """
    least: int | None = None
    for counts, resources in ((("AllocCPUS", "NCPUS"), "AllocTRES"), (("ReqCPUS",), "ReqTRES")):
        found = [whole(row.get(name, ""), name, path, line) for name in counts]
        if tres := _TRES_CPU.search(row.get(resources, "")):
            found.append(int(tres[1]))
        for count in found:
            if count:
                return count, resources == "ReqTRES"
            least = least if count is None else count
    return least, False


def nodes(row: Mapping[str, str], path: object, line: int) -> int | None:
    """Return the nodes of a job, allocated or else requested; None where no field has them."""
    for name in ("NNodes", "AllocNodes", "ReqNodes"):
        text = row.get(name, "")
        if thousands := _THOUSANDS.fullmatch(text):
            return round(float(thousands[1]) * 1024)
        if count := whole(text, name, path, line):
            return count
    for name in ("AllocTRES", "ReqTRES"):
        if count := whole(_tres(row, name).get("node", ""), name, path, line):
            return count
    return None


def memory_gib(row: Mapping[str, str], cpus: int, on_nodes: int, path: object, line: int) -> float | None:
    """Return the memory of a job (GiB), requested or else allocated; None where no field has it.

    ReqMem of Slurm before 21.08 is of a processor (``4000Mc``) or of a node (``4Gn``); 0 asks for all that a node has.
    """
    for name in ("ReqTRES", "ReqMem", "AllocTRES"):
        text = row.get("ReqMem", "") if name == "ReqMem" else _tres(row, name).get("mem", "")
        if text in WITHOUT_VALUE:
            continue
        if (found := _MEMORY.fullmatch(text)) is None:
            wrong = f"{shown(text)} is not a memory such as 4G or 4000Mc"
            raise InputError(wrong, file=path, line=line, field=name)
        if amount := float(found[1]) * _GIB[found[2]] * {"": 1, "c": cpus, "n": on_nodes}[found[3]]:
            return amount
    return None


def gpus(row: Mapping[str, str], on_nodes: int, path: object, line: int) -> int | None:
    """Return the GPUs of a job, requested or else allocated; None where no field has them.

    ``gres/gpu=4,gres/gpu:a100=4`` are four: those of a type are among those without.
    """
    for name in ("ReqTRES", "AllocTRES"):
        counts = {
            resource: whole(text, name, path, line) or 0
            for resource, text in _tres(row, name).items()
            if resource == "gres/gpu" or resource.startswith("gres/gpu:")
        }
        if count := counts.get("gres/gpu", 0) or sum(counts.values()):
            return count
    for name in ("ReqGRES", "AllocGRES"):
        found = map(_GPUS_OF_GRES.fullmatch, row.get(name, "").split(","))
        if count := sum(int(one[2] or 1) * (on_nodes if one[1] else 1) for one in found if one):
            return count
    return None


def other_resources(row: Mapping[str, str]) -> list[str]:
    """Return what else a job asked for: kinds of resources, without those that are computed."""
    kinds = dict.fromkeys(name.partition(":")[0] for name in _tres(row, "ReqTRES"))
    return [kind for kind in kinds if kind not in _READ_TRES]


_READ_TRES = frozenset(("cpu", "mem", "node", "gres/gpu", "billing", "energy"))


def _tres(row: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the resources of a field such as ``cpu=4,mem=16G,node=1,gres/gpu:a100=2``."""
    parts = (part.partition("=") for part in row.get(name, "").split(","))
    return {resource: count for resource, equals, count in parts if equals}


def _known_s(seconds: float) -> float | None:
    return None if seconds >= _NO_VALUE_S or math.isnan(seconds) else float(seconds)


# The runs of jobs in Slurm's accounting, and the jobs that they belong to.
#
# A job is its cluster, its id and its submission: ids begin again at 1, and each cluster has its own. Elements of an
# array and components of a heterogeneous job share the id, and are parallel tasks of one job. An element or component
# may have run several times, after it was requeued or preempted, or its node failed. Slurm mostly gives such a run a
# submission of its own, the end of the run before. Lines that repeat a run, as in two dumps that overlap, count once.

_ENDED, _INTERRUPTED, _RESIZED = 0, 1, 2
_STATES = {
    **dict.fromkeys(
        ("REQUEUED", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REQUEUE_HOLD", "REQUEUE_FED"), _INTERRUPTED
    ),
    "RESIZING": _RESIZED,
}
"""After an interruption Slurm runs a job again; a resized job continues with other processors, in another line."""
_SOON_S = 60.0
"""A job is submitted again when its run ends; clocks of machines differ by less than this."""

Which = Literal["each", "last"]


class Run(NamedTuple):
    """A line about a job, an element or a component that ran.

    Attributes
    ----------
    cluster, job, part : str
        The job's cluster and id, and the whole id with element or component.
    submit_s, start_s, end_s, elapsed_s, estimate_s : float
        NaN where not known.
    cpu_cores, memory_gib, gpus : float
        What a task needs; NaN where not stated.
    priority, gang_nodes, requested_s : float
        As in `workloads.requests.Requests`.
    """

    cluster: str
    job: str
    part: str
    submit_s: float
    start_s: float
    end_s: float
    elapsed_s: float
    estimate_s: float
    cpu_cores: float
    memory_gib: float
    gpus: float
    priority: float
    gang_nodes: float
    requested_s: float
    tasks: int
    line: int
    state: str
    tenant: str | None


_ASKED = {
    "cpu_cores": "cpu_cores", "memory_gib": "memory_gib", "gpus": "attr:gpus", "priority": "priority",
    "gang_nodes": "gang_nodes", "requested_s": "requested_s",
}  # fmt: skip
"""What a run asks for, by its field: names of requests."""
_NUMBERS = ("submit_s", "start_s", "end_s", "elapsed_s", "estimate_s", *_ASKED)
_COUNTS = ("tasks", "line")


class Runs:
    """Runs in the order of the file."""

    def __init__(self, path: object) -> None:
        self._path = path
        self._total_tasks = 0
        self._columns: dict[str, array[Any]] = {
            **{name: array("d") for name in _NUMBERS},
            **{name: array("q") for name in _COUNTS},
        }
        self._ids: tuple[dict[tuple[str, str], int], ...] = ({}, {})
        self._id_of = array("q"), array("q")
        self._states = array("b")
        self._tenants: list[str | None] = []

    def add(self, run: Run) -> None:
        """Add a run.

        Raises
        ------
        InputError
            Runs so far have more tasks than any machine holds.
        """
        self._total_tasks = add_tasks(self._total_tasks, run.tasks, file=self._path, line=run.line)
        for name, column in self._columns.items():
            column.append(getattr(run, name))
        for ids, id_of, name in zip(self._ids, self._id_of, (run.job, run.part), strict=True):
            id_of.append(ids.setdefault((run.cluster, name), len(ids)))
        self._states.append(_STATES.get(run.state, _ENDED))
        self._tenants.append(run.tenant)

    def jobs(self, which: Which, report: Report) -> JobRows:
        """Return the jobs of the runs, and report runs of jobs that had run before.

        With "each" such a run is a job, which arrives when it was submitted or the run before had ended. With "last"
        the last run counts, and the job arrives when it was first submitted.
        """
        got = {name: np.frombuffer(column, column.typecode) for name, column in self._columns.items()}
        job, part = (np.frombuffer(ids, np.int64) for ids in self._id_of)
        states = np.frombuffer(self._states, np.int8)
        order = _without_repeats(part, states, got)
        report.dropped("lines about a run that another line is about: it counts once", len(job) - len(order))
        again = _again(order, part, states, got)
        first_s, arrival_s = got["submit_s"].copy(), got["submit_s"].copy()
        turn, left_out = np.zeros(len(job), np.int64), np.zeros(len(job), bool)
        for before, run in zip(order[again], order[again + 1], strict=True):
            if which == "last" and states[before] != _RESIZED:
                left_out[before] = True
                turn[run], first_s[run], arrival_s[run] = turn[before], first_s[before], arrival_s[before]
            elif got["submit_s"][run] == got["submit_s"][before]:
                turn[run], first_s[run] = turn[before] + 1, first_s[before]
                arrival_s[run] = np.fmax(arrival_s[before], got["end_s"][before])
        _count(report, which, int(left_out.sum()), len(again))
        rows = JobRows(self._path)
        for run in np.sort(order[~left_out[order]]).tolist():
            estimate_s = got["estimate_s"][run]
            rows.add(
                (int(job[run]), float(first_s[run]), int(turn[run]), float(arrival_s[run])),
                arrival_s[run],
                got["elapsed_s"][run],
                int(got["line"][run]),
                tasks=int(got["tasks"][run]),
                estimate_s=None if np.isnan(estimate_s) else estimate_s,
                tenant=self._tenants[run],
                asked={name: got[field][run] for field, name in _ASKED.items()},
            )
        return rows


def _without_repeats(part: Int64Array, states: np.ndarray, got: dict[str, np.ndarray]) -> Int64Array:
    """Return the runs by element and time; of lines with the same start, or equal ones without, the last."""
    keys = [part, *(got[name] for name in ("submit_s", "start_s", "end_s", "elapsed_s", "tasks")), states]
    order = np.lexsort((got["line"], *reversed(keys)))
    one, other = order[:-1], order[1:]
    same = [_same(key[one], key[other]) for key in keys]
    repeated = np.all(same[:3], axis=0) & (~np.isnan(got["start_s"][one]) | np.all(same[3:], axis=0))
    kept = order[np.append(~repeated, True)[: len(order)]]
    return kept[np.lexsort((got["line"][kept], *(key[kept] for key in reversed(keys[:4]))))]


def _same(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return (one == other) | ((one != one) & (other != other))  # NaN: not known


def _again(order: Int64Array, part: Int64Array, states: np.ndarray, got: dict[str, np.ndarray]) -> Int64Array:
    """Return the places in `order` that are followed by another run of the same job, element or component."""
    one, other = order[:-1], order[1:]
    submit_s, end_s = got["submit_s"], got["end_s"]
    soon = ~(submit_s[other] > end_s[one] + _SOON_S)  # also if the end is not known
    follows = (submit_s[one] == submit_s[other]) | ((states[one] == _INTERRUPTED) & soon)
    return np.flatnonzero(follows & (part[one] == part[other]))


def _count(report: Report, which: Which, left_out: int, again: int) -> None:
    why = "requeued, preempted, resized, or after a failure of the node"
    report.dropped(f"runs that another run of the job followed ({why})", left_out)
    if which == "each":
        report.repaired(f"runs of jobs that had run before ({why}): each a job (runs=last: the last)", again)
    elif again > left_out:
        report.repaired("parts of jobs that were resized: each a job", again - left_out)


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
