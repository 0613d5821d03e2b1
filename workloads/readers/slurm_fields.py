"""Fields as Slurm's accounting prints them: ids of jobs, times, spans of time, processors, memory, GPUs, nodes.

Slurm prints a word in place of a missing value, which is None here. Text that Slurm does not print is an `InputError`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from workloads.errors import InputError
from workloads.readers.source import shown

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
