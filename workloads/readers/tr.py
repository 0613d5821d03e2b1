"""The ``.tr`` format of the Hawk and Eagle traces: one job a line, plain or gzip.

A line is ``submit_time num_tasks mean_task_duration duration_1 … duration_n``, separated by blanks, times in
seconds. Blank lines are ignored. The mean is the schedulers' estimate; it is not checked against the durations.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np

from workloads.arrow import column
from workloads.errors import InputError
from workloads.jobs import MAX_TIME_S, JobWorkload, check_times, make_workload
from workloads.limits import check_tasks, most_tasks
from workloads.published_cutoffs import known_trace
from workloads.readers.report import Progress, Report
from workloads.readers.samples import Sample
from workloads.readers.source import read_lines, shown
from workloads.readers.text import is_number, write_text

LINE_FORMAT = "submit_time num_tasks mean_task_duration duration..."
_HEAD = ("submit_time", "num_tasks", "mean_task_duration")


def read_tr(
    path: str | Path, *, report: Report | None = None, progress: Progress | None = None
) -> JobWorkload:
    """Read a ``.tr`` file; gzip is known by its first bytes.

    Published traces, known by the start of the file's name, get their cut-off and long partition.

    Raises
    ------
    InputError
        Names the file, the line and the field that is wrong.
    """
    submit, means, durations = array("d"), array("d"), array("d")
    counts, lines = array("q"), array("q")
    most, _ = most_tasks(path)
    for number, line in read_lines(path, progress=progress):
        fields = line.split()
        if not fields:
            continue
        try:
            values = array("d", map(float, fields))
        except ValueError:
            _refuse(path, number, fields)
        # float() takes 1_000 for a number; the format does not.
        if len(values) < 4 or values[1] != len(values) - 3 or b"_" in line:
            _refuse(path, number, fields)
        submit.append(values[0])
        means.append(values[2])
        counts.append(len(values) - 3)
        lines.append(number)
        durations.extend(values[3:])
        if len(durations) > most:
            check_tasks(len(durations), file=path, line=number)
    if not submit:
        raise InputError(f"the file holds no job; want lines of {LINE_FORMAT!r}", file=path)

    line_of = np.frombuffer(lines, np.int64)
    num_tasks = np.frombuffer(counts, np.int64)
    submit_s = check_times(np.frombuffer(submit), "submit_time", file=path, lines=line_of)
    mean_s = check_times(np.frombuffer(means), "mean_task_duration", file=path, lines=line_of)
    duration_s = np.frombuffer(durations)
    if not (duration_s.min() >= 0 and duration_s.max() <= MAX_TIME_S):  # false for NaN too
        _refuse_duration(path, duration_s, np.cumsum(num_tasks) - num_tasks, line_of)

    if report is not None:
        report.read("jobs", len(submit))
        report.read("tasks", len(durations))
    name = Path(path).name.removesuffix(".gz").removesuffix(".tr")
    short_cutoff_s, long_partition = known_trace(name) or (None, None)
    return make_workload(
        name,
        submit_s,
        num_tasks,
        duration_s,
        mean_s,
        short_cutoff_s=short_cutoff_s,
        long_partition=long_partition,
        metadata={"origin": Path(path).name},
        origin=path,
    )


def write_tr(workload: JobWorkload, path: str | Path) -> None:
    """Write a ``.tr`` file, gzip when the name ends in ``.gz``; reading it gives the same jobs and tasks.

    Numbers have the shortest form that reads back to the same float. The format does not hold job ids (when read, a job
    has the number of its line), cut-off, partition and metadata.

    Raises
    ------
    InputError
        Jobs have constraints or tenants, which the format does not hold, or the file cannot be written.
    """
    for name in ("constraint", "tenant"):
        if workload.jobs[name].null_count < workload.num_jobs:
            raise InputError(
                f"the .tr format has no {name}; write a Parquet folder instead", file=path, field=name
            )
    write_text(path, _lines(workload))


def begins_like_tr(sample: Sample) -> bool:
    """Return whether a file's first line is a job."""
    first = sample.rows[0] if sample.form == "words" else ()
    return len(first) > 3 and all(map(is_number, first)) and float(first[1]) == len(first) - 3


def _lines(workload: JobWorkload) -> Iterator[str]:
    jobs = workload.jobs
    durations = column(workload.tasks, "duration_s")
    heads = zip(
        column(jobs, "submit_s").tolist(),
        column(jobs, "num_tasks").tolist(),
        column(jobs, "mean_task_s").tolist(),
        strict=True,
    )
    first = 0
    for submit, count, mean in heads:
        numbers = " ".join(map(repr, durations[first : first + count].tolist()))
        yield f"{submit!r} {count} {mean!r} {numbers}\n"
        first += count


def _refuse(path: str | Path, number: int, fields: list[bytes]) -> NoReturn:
    """Raise the error for the first wrong field of a line."""
    for at, text in enumerate(fields):
        name = _HEAD[at] if at < 3 else f"duration {at - 2}"
        wrong = None
        if not is_number(text.decode("utf-8", "replace")):
            wrong = "is not a number"
        elif at == 1 and not (1 <= float(text) < math.inf and float(text).is_integer()):
            wrong = "is not a task count; a job has a whole number of tasks, 1 or more"
        if wrong is not None:
            raise InputError(f"{shown(text)} {wrong}", file=path, line=number, field=name)
    if len(fields) < 3:
        wrong = f"the line ends after {len(fields)} of at least 4 fields; want {LINE_FORMAT!r}"
        raise InputError(wrong, file=path, line=number, field=_HEAD[len(fields)])
    have, want = len(fields) - 3, int(float(fields[1]))
    which = "few" if have < want else "many"
    wrong = f"too {which} durations: the line says {shown(fields[1])} tasks and has {have}"
    raise InputError(wrong, file=path, line=number, field=f"duration {min(have, want) + 1}")


def _refuse_duration(path: str | Path, duration_s: np.ndarray, first: np.ndarray, lines: np.ndarray) -> None:
    """Raise the error for the first duration that is negative, not finite or too large; `first` of each job's."""
    at = int(np.argmax(~((duration_s >= 0) & (duration_s <= MAX_TIME_S))))
    job = int(np.searchsorted(first, at, side="right")) - 1
    name = f"duration {at - first[job] + 1}"
    check_times(duration_s[at : at + 1], name, file=path, lines=lines[job : job + 1])
