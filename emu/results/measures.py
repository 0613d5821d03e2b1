"""Names of figures, such as ``p99`` or ``wait.p99``: how tables, targets and files name the values of summaries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from emu.families.registry import find_family
from emu.results.metrics import EVERY_STATISTIC, STATISTICS
from workloads.errors import InputError
from workloads.hints import did_you_mean

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
