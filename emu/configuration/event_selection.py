"""The key `output.events`: which events a run records."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from workloads.errors import InputError
from workloads.units import parse_duration

FORMS = (
    "`none`, `all`, `job=3,17`, `class=short`, `slowest=20`, `random=50`, `time=10s..60s`, "
    "`rates`, or several with `;`"
)
CLASSES = ("short", "long")


class EventSelection(NamedTuple):
    """Which events are recorded."""

    jobs: tuple[int, ...] = ()  # numbers of jobs or coflows; empty: all
    job_class: str = ""  # empty: both
    slowest: int = 0  # the number of jobs that took longest; 0: all
    random: int = 0  # the number of jobs that are drawn with the run's seed; 0: all
    span_s: tuple[float, float] = (0.0, float("inf"))  # virtual time from, and before
    rates: bool = False  # also the rates of flows

    @property
    def is_all(self) -> bool:
        """Whether the jobs are all."""
        return not (self.jobs or self.job_class or self.slowest or self.random)

    @property
    def is_whole(self) -> bool:
        """Whether all that happened to these jobs is recorded."""
        return self.span_s == (0.0, float("inf"))


def parse_events(value: Any, what: str = "output.events") -> EventSelection | None:
    """Return which events a text asks for, None for no events; errors begin with `what`."""
    if value is True or value is False:
        return EventSelection() if value else None
    if not isinstance(value, str):
        raise InputError(f"{what}: {value!r} is not text; want {FORMS}")
    if value.strip() in ("none", "false", ""):
        return None
    chosen = EventSelection()
    for part in filter(None, (part.strip() for part in value.split(";"))):
        name, _, given = (text.strip() for text in part.partition("="))
        chosen = _with_part(chosen, name, given, what)
    if sum(map(bool, (chosen.jobs, chosen.slowest, chosen.random))) > 1:
        raise InputError(f"{what}: {value!r} has several of job, slowest and random; want one")
    return chosen


def _with_part(chosen: EventSelection, name: str, given: str, what: str) -> EventSelection:
    if name in ("all", "true") and not given:
        return chosen
    if name == "rates" and not given:
        return chosen._replace(rates=True)
    if name == "job":
        numbers = given.replace(",", " ").split() or [""]
        return chosen._replace(jobs=tuple(sorted({_whole(text, 0, what) for text in numbers})))
    if name == "slowest":
        return chosen._replace(slowest=_whole(given, 1, what))
    if name == "random":
        return chosen._replace(random=_whole(given, 1, what))
    if name == "class" and given in CLASSES:
        return chosen._replace(job_class=given)
    if name == "time":
        first, dots, last = given.partition("..")
        span = (
            parse_duration(first, what) if first else 0.0,
            parse_duration(last, what) if last else float("inf"),
        )
        if dots and span[0] < span[1]:
            return chosen._replace(span_s=span)
        raise InputError(f"{what}: {given!r} is not a span of time such as 10s..60s")
    raise InputError(f"{what}: {f'{name}={given}' if given else name!r} is not one of {FORMS}")


def _whole(text: str, low: int, what: str) -> int:
    if not text.isdecimal() or len(text) > 15 or int(text) < low:
        raise InputError(f"{what}: {text!r} is not a whole number from {low} on")
    return int(text)


def events_text(chosen: EventSelection | None) -> str:
    """Return the text that asks for the same, in its shortest form."""
    if chosen is None:
        return "none"
    parts = []
    if chosen.jobs:
        parts.append("job=" + ",".join(map(str, chosen.jobs)))
    for name, value in (("class", chosen.job_class), ("slowest", chosen.slowest), ("random", chosen.random)):
        if value:
            parts.append(f"{name}={value}")
    first, last = chosen.span_s
    if not chosen.is_whole:
        parts.append(f"time={first:.12g}s..{'' if last == float('inf') else f'{last:.12g}s'}")
    if chosen.rates:
        parts.append("rates")
    return "; ".join(parts) or "all"


def jobs_before(
    chosen: EventSelection, num_jobs: int, is_long: npt.NDArray[np.bool_], seed: int
) -> npt.NDArray[np.int64] | None:
    """Return the jobs that are chosen before the run, None for all; the slowest are among them.

    `is_long` is by job; `seed` draws the random ones. Raise `InputError` for a job that does not exist, or if no job
    is chosen.
    """
    if chosen.is_all or (chosen.slowest and not chosen.job_class):
        return None
    able = np.arange(num_jobs)
    if chosen.job_class:
        able = np.flatnonzero(is_long == (chosen.job_class == "long"))
    if chosen.jobs:
        if chosen.jobs[-1] >= num_jobs:
            raise InputError(
                f"output.events: no job {chosen.jobs[-1]}; the workload has jobs 0 to {num_jobs - 1:,}"
            )
        able = np.intersect1d(able, chosen.jobs)
    if chosen.random:
        drawn = np.random.default_rng(seed).permutation(able.size)[: chosen.random]
        able = np.sort(able[drawn])
    if able.size == 0:
        raise InputError(f"output.events: no job of the workload is of {events_text(chosen)!r}")
    return able


def jobs_after(
    chosen: EventSelection, recorded: npt.NDArray[np.int64] | None, time_ns: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64] | None:
    """Return the jobs whose events are kept when the run has ended; None: all events, also those without a job.

    `recorded` are the jobs that were recorded; `time_ns` the completion times of all jobs, below 0 if unfinished.
    """
    if not chosen.slowest:
        return recorded
    able = np.arange(time_ns.size) if recorded is None else recorded
    slowest = np.argsort(-time_ns[able], kind="stable")[: chosen.slowest]
    return np.sort(able[slowest])
