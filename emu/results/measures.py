"""Values of summaries: what each is called, where it stands, and how it is shown.

A `Measure` is a statistic of a metric, which every group of a summary has: ``p99``, ``wait.p99``. A `Fact` is any other
value. Families declare their facts; tables, lines of a terminal and pages are made from these declarations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from emu.families.registry import find_family
from emu.results.metrics import EVERY_STATISTIC, STATISTICS
from emu.results.text_tables import number, percent, ratio, with_error
from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.units import format_duration

TIMES = ("", "wait")
"""The metrics that are times; the others are ratios."""


class Measure(NamedTuple):
    """A statistic of one of the metrics of a family."""

    metric: str
    statistic: str

    @property
    def name(self) -> str:
        """``p99`` of completion times, ``wait.p99`` of another."""
        return f"{self.metric}.{self.statistic}" if self.metric else self.statistic

    @property
    def is_time(self) -> bool:
        """Whether it is in seconds."""
        return self.metric in TIMES

    def of(self, part: Mapping[str, Any]) -> float:
        """Return its value in a group of a summary, such as ``jobs.short``; NaN if it has none."""
        value = (part.get(self.metric, {}) if self.metric else part).get(self.statistic)
        return math.nan if value is None else float(value)

    def interval(self, part: Mapping[str, Any]) -> tuple[float, float]:
        """Return its 95 % interval in a group of ``confidence_95`` of a summary; NaN if it has none."""
        low, high = (part.get(self.metric, {}) if self.metric else part).get(
            self.statistic, (math.nan, math.nan)
        )
        return float(low), float(high)

    def cell(self, part: Mapping[str, Any], intervals: Mapping[str, Any], form: str = "number") -> str:
        """Return its value in a group, with the error by its interval, as text."""
        low, high = self.interval(intervals)
        return text_of(form, self.of(part), (high - low) / 2)


def measure_of(name: str) -> Measure:
    """Return the measure of a name such as ``p99`` or ``wait.p99``."""
    if name in EVERY_STATISTIC:  # some of which have a dot
        return Measure("", name)
    metric, _, statistic = name.partition(".")
    return Measure(metric, statistic)


def all_measures(family: str) -> tuple[Measure, ...]:
    """Return all measures of a family."""
    return tuple(Measure(metric, s) for metric in find_family(family).metrics for s in EVERY_STATISTIC)


DEFAULT = tuple(Measure("", s) for s in STATISTICS)
"""The columns of tables by default."""


def read_measures(names: Sequence[str] | None, family: str, option: str = "columns") -> tuple[Measure, ...]:
    """Return measures by their names, or the `DEFAULT` ones.

    Raises
    ------
    InputError
        A name is unknown, or given twice; the message gives the option, and the nearest name.
    """
    if names is None:
        return DEFAULT
    known = {measure.name: measure for measure in all_measures(family)}
    for i, name in enumerate(names):
        if name not in known:
            raise InputError(f"{option}: unknown column {name!r}{did_you_mean(name, known)}")
        if name in names[:i]:
            raise InputError(f"{option}: {name!r} is given twice")
    return tuple(known[name] for name in names)


FORMS: Mapping[str, Callable[..., str]] = {
    "number": with_error,
    "count": lambda mean, half=math.nan: number(mean),
    "3 digits": partial(with_error, digits=3),
    "5 digits": partial(with_error, digits=5),
    "share": percent,
    "share or -": lambda mean, half=math.nan: percent(mean, half) or "-",
    "ratio": ratio,
    "duration": lambda mean, half=math.nan: format_duration(mean),
}
"""How a value and its error are written, by name."""


def text_of(form: str, mean: float, half: float = math.nan) -> str:
    """Return a value and its error in one of `FORMS`; any other form is one of Python's formats."""
    write = FORMS.get(form)
    return format(mean, form) if write is None else write(mean, half)


class Fact(NamedTuple):
    """A value of a summary, or of a part of it.

    Attributes
    ----------
    label : str
        Its name; where the path has a ``*``, with ``{}`` for the key. Empty where its text is a sentence.
    path : str, tuple of str or callable
        Its keys from the outside in, with dots between them; ``*`` is each key. Or a function from the summary to it.
    form : str or callable
        One of `FORMS`, or one of Python's formats; or a function from what is at the path to a text, empty for nothing.
    only : str
        `PAGE` or `TERMINAL` where it is shown there alone.
    """

    label: str
    path: str | tuple[str, ...] | Callable[[Any], float | None]
    form: str | Callable[[Any], str] = "number"
    only: str = ""

    def of(self, summary: Any) -> Any:
        """Return what is at its path; None for nothing."""
        return self.path(summary) if callable(self.path) else at_path(summary, self.path)

    def text(self, value: Any) -> str:
        """Return a value as text."""
        return self.form(value) if callable(self.form) else text_of(self.form, value)


PAGE, TERMINAL = "page", "terminal"


def at_path(summary: Any, path: str | Sequence[str]) -> Any:
    """Return what is at a path of a summary; None for nothing."""
    for name in path.split(".") if isinstance(path, str) else path:
        if not isinstance(summary, Mapping) or summary.get(name) is None:
            return None
        summary = summary[name]
    return summary


def facts_of(facts: Sequence[Fact], summary: Mapping[str, Any], place: str) -> dict[str, str]:
    """Return the facts that a summary has and a place shows, as label to text."""
    found: dict[str, str] = {}
    for fact in facts:
        if fact.only not in ("", place):
            continue
        values: dict[str, Any] = {fact.label: fact.of(summary)}
        if isinstance(fact.path, str) and fact.path.endswith(".*"):
            own = at_path(summary, fact.path.removesuffix(".*")) or {}
            values = {fact.label.format(name): value for name, value in own.items()}
        found |= {name: text for name, v in values.items() if v is not None and (text := fact.text(v))}
    return found


def engine_facts(parts: str) -> tuple[Fact, ...]:
    """Return the size and speed of a run, in tasks or flows."""
    return (
        Fact(parts, f"engine.{parts}", ",", PAGE),
        Fact("events", "engine.events", ",", PAGE),
        Fact("engine time", "engine.wall_s", "duration", PAGE),
        Fact(f"{parts} per second of engine time", "engine.tasks_per_s", ",.0f", PAGE),
    )


Pair = tuple[float, float]
"""A mean over the seeds and its 95 % half-width."""
NOTHING: Pair = (math.nan, math.nan)
SHARES = ("better", "equal", "worse")


@dataclass(frozen=True)
class Row:
    """One scheduler and group of jobs, or coflows, of a comparison.

    Attributes
    ----------
    scheduler, group : str
        The group is a class of jobs, or another of its family.
    count : float
        Jobs, or coflows, that finished.
    figures : dict of str to Pair
        By the name of a `Measure`: ``mean``, ``p99``, ``wait.p99``; times are in seconds.
    ratios : dict of str to Pair
        The same over that of the first scheduler.
    best : frozenset of str
        Names of the measures in which no other scheduler is better (`emu.results.paired_comparison.best_of`).
    shares : dict of str to Pair
        By `SHARES`: the share of the jobs, or coflows, that are so against the first. NaN for the first itself.
    improved : float
        The share that finished earlier than under the first, by however little; NaN for the first itself.
    speedup : dict of str to Pair
        Of DAG jobs and coflows: factors of the first over this one (`emu.results.paired_comparison.Factors`).
    gains : mapping
        Of coflows with deadlines: `emu.families.coflows.deadlines.Gains`.
    left_out : int
        Replicas that are left out, as none of the group finished under some scheduler.
    """

    scheduler: str
    group: str
    count: float
    figures: dict[str, Pair]
    ratios: dict[str, Pair]
    best: frozenset[str]
    shares: dict[str, Pair]
    improved: float
    speedup: dict[str, Pair] = field(default_factory=dict)
    gains: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    left_out: int = 0
