"""Targets of `emu size` on figures of summaries, and the search for the fewest nodes that meet them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from emu.results.measures import Measure, all_measures
from emu.results.metrics import BoolArray
from emu.results.text_tables import number, with_error
from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.units import format_duration, parse_duration

if TYPE_CHECKING:
    import pyarrow as pa

    from emu.configuration.config import Config
    from emu.configuration.plan import Plan
    from emu.configuration.workload_cache import WorkloadCache
    from emu.results.result import Result

SIZED = "jobs"
"""The family whose number of nodes can be searched."""
CLASSES = ("all", "short", "long")
TOLERANCE = 0.01
MOST_DOUBLINGS = 40
MET, SPANS, NOT_MET = "met", "spans the bound", "not met"
"""Verdicts: if the 95 % interval of a figure spans the bound, the seeds leave open whether the target is met."""
OF_PRIORITY, OF_TENANT = "priority:", "tenant:"
"""How the name of a group of jobs begins that is not a class; behind it the priority, or the tenant."""
_PRIORITY = re.compile(r"-?[0-9]{1,18}")
_TARGET = re.compile(r"\s*(\S.*?)\s*(<=|<)\s*([^<\s][^<]*?)\s*$")


class Target(NamedTuple):
    """A bound on a figure of a group of jobs."""

    job_class: str  # or a priority, ``priority:9``, or a tenant, ``tenant:ads``
    measure: (
        Measure  # a figure in ``jobs.<job_class>`` of ``summary.json``, or of the jobs of ``jobs.parquet``
    )
    strict: bool  # whether the value must be below the bound, not at it
    bound: float  # in seconds; of slowdowns a number

    def holds(self, value: float) -> bool:
        """Whether a value meets the target; NaN meets none."""
        return value < self.bound if self.strict else value <= self.bound

    def verdict(self, value: float, half: float) -> str:
        """Return the verdict on a mean and its 95 % half-width, NaN for none: all of the interval counts."""
        half = half if half > 0 else 0.0
        if self.holds(value + half):
            return MET
        return SPANS if self.holds(value - half) else NOT_MET

    def shown(self, value: float, half: float) -> str:
        """Return a value of the measure, and its interval, with its unit; ``-`` for none."""
        if math.isnan(value):
            return "-"
        return f"{with_error(value, half)}{' s' if self.measure.is_time else ''}"

    @property
    def figure(self) -> str:
        """The name of the figure, such as ``short.p50``."""
        return f"{self.job_class}.{self.measure.name}"

    @property
    def jobs(self) -> str:
        """The jobs that it is on, in words."""
        kind, colon, name = self.job_class.partition(":")
        if colon:
            return f"jobs of {kind} {name}"
        return "jobs" if kind == "all" else f"{kind} jobs"

    @property
    def is_on_class(self) -> bool:
        """Whether it is on a class of jobs, whose figures a summary has."""
        return self.job_class in CLASSES

    def __str__(self) -> str:
        sign = "<" if self.strict else "<="
        bound = format_duration(self.bound) if self.measure.is_time else number(self.bound)
        return f"{self.figure} {sign} {bound}"


class Waits(NamedTuple):
    """What jobs of a group waited for.

    Attributes
    ----------
    jobs, of : int
        How many were looked at, and how many there are.
    total_s : float
        Their completion times in all.
    reasons : mapping of str to float
        The parts of these that are delay, by reason, s; the longest first.
    """

    jobs: int
    of: int
    total_s: float
    reasons: Mapping[str, float]


WithEvents = Callable[["Result", Sequence[int]], "Result"]


@dataclass(frozen=True)
class Sizing:
    """What a family gives for `emu size`.

    Attributes
    ----------
    nodes_for_load : (config, workload, load, cache) -> int
        The number of nodes on which a workload offers a load. None: no number of nodes is searched for the family.
    check_targets : (plan, targets)
        Refuse targets on groups of which the workload has none.
    jobs_of : (table of jobs, group) -> ndarray of bool
        Which jobs of a run are of a priority or a tenant.
    waits : (run, group, function that returns the run with the events of some jobs) -> Waits
        What the jobs of a group waited for; None where that is not known.
    """

    nodes_for_load: Callable[[Config, Any, float, WorkloadCache], int] | None = None
    check_targets: Callable[[Plan, Sequence[Target]], None] = lambda plan, targets: None
    jobs_of: Callable[[pa.Table, str], BoolArray] = lambda jobs, group: np.zeros(jobs.num_rows, bool)
    waits: Callable[[Result, str, WithEvents], Waits | None] = lambda run, group, with_events: None


def verdict_of(targets: Sequence[Target], values: Sequence[tuple[float, float]]) -> str:
    """Return the verdict on several targets, a mean and a half-width each: the worst of theirs."""
    verdicts = [target.verdict(*pair) for target, pair in zip(targets, values, strict=True)]
    return max(verdicts, key=(MET, SPANS, NOT_MET).index)


class Search(NamedTuple):
    """The result of a search for the fewest: the least that holds and the most below it that fails, where known."""

    holds: int | None
    fails: int | None


def find_fewest(
    holds: Callable[[int], bool],
    start: int,
    *,
    low: int | None = None,
    high: int | None = None,
    tolerance: float = TOLERANCE,
    most: int | None = None,
) -> Search:
    """Return the fewest for which a condition holds, as found by bisection.

    The condition need not be monotone. Whatever it is, it holds for the answer and fails for `Search.fails`, and
    these are neighbours, or within the tolerance.

    Parameters
    ----------
    holds : callable
    start : int
        Where doubling and halving begin for a bound that is not given.
    low, high : int, optional
        Bounds; the answer is `low` if it holds there.
    tolerance : float
        Bisection ends when the two are at most this share of the greater apart.
    most : int, optional
        Where doubling ends; by default it goes on for `MOST_DOUBLINGS`.
    """
    least = low if low is not None else 1
    upper = high if high is not None else max(start, least)
    if not holds(upper):
        if high is not None:
            return Search(None, upper)
        lower = upper
        for _ in range(MOST_DOUBLINGS):
            if most is not None and upper >= most:
                return Search(None, upper)
            lower, upper = upper, 2 * upper if most is None else min(2 * upper, most)
            if holds(upper):
                break
        else:
            return Search(None, upper)
    elif low is not None:
        if upper == low or holds(low):
            return Search(low, None)
        lower = low
    else:
        lower = upper
        while lower > 1:
            upper, lower = lower, lower // 2
            if not holds(lower):
                break
        else:
            return Search(1, None)
    while upper - lower > max(1, math.floor(tolerance * upper)):
        middle = (lower + upper) // 2
        if holds(middle):
            upper = middle
        else:
            lower = middle
    return Search(upper, lower)


def read_targets(texts: Sequence[str]) -> tuple[Target, ...]:
    """Return targets from their texts; ``--target`` is named in errors."""
    if not texts:
        raise InputError("--target: required, such as --target 'short.p99 < 60s'")
    return tuple(_read_target(text) for text in texts)


def _read_target(text: str) -> Target:
    match = _TARGET.match(text)
    if match is None:
        raise InputError(
            f"--target: {text!r} is not of the form [class.]statistic < bound: 'short.p99 < 60s', "
            "'all.slowdown.p99 < 3', 'priority:9.wait.p99 < 60s', 'tenant:ads.mean < 1h'"
        )
    name, sign, value = match.groups()
    job_class, measure = _read_name(name)
    bound = parse_duration(value, "--target") if measure.is_time else _read_number(value, measure)
    return Target(job_class, measure, sign == "<", bound)


def _read_name(name: str) -> tuple[str, Measure]:
    """Return class and measure of ``p99``, ``short.p99`` or ``short.wait.p99``."""
    known = {measure.name: measure for measure in all_measures(SIZED)}
    if name in known:
        return "all", known[name]
    if name.startswith((OF_PRIORITY, OF_TENANT)):
        return _read_group(name, known)
    job_class, _, figure = name.partition(".")
    if job_class in CLASSES:
        if figure in known:
            return job_class, known[figure]
        raise InputError(f"--target: unknown statistic {figure!r}{did_you_mean(figure, known)}")
    if figure := _figure_of(name, known):
        group = name.removesuffix(f".{figure}")
        kind = OF_PRIORITY if _PRIORITY.fullmatch(group) else OF_TENANT
        near = [m for m in known if m.endswith(figure)] + [f"{one}.{figure}" for one in CLASSES]
        hint = did_you_mean(name, near)
        hint += f"; jobs of a {kind.removesuffix(':')} are '{kind}{name}'"
    else:
        hint = did_you_mean(name, [*known, *(f"{one}.{m}" for one in CLASSES for m in known)])
    raise InputError(f"--target: unknown statistic {name!r}{hint}")


def _figure_of(name: str, known: Mapping[str, Measure]) -> str:
    """Return the figure with which a name ends, behind a dot; empty without one."""
    return max((m for m in known if name.endswith(f".{m}")), key=len, default="")


def _read_group(name: str, known: Mapping[str, Measure]) -> tuple[str, Measure]:
    """Return group and measure of ``priority:9.wait.p99`` or ``tenant:ads.p99``; a tenant's name may have dots."""
    figure = _figure_of(name, known)
    kind, _, which = name.removesuffix(f".{figure}").partition(":")
    if figure and not which:
        raise InputError(f"--target: {name!r}: the {kind} has no name; want '{kind}:NAME.{figure}'")
    if not figure:
        last = name.rpartition(".")[2] if "." in name else ""
        raise InputError(f"--target: unknown statistic {last!r} of {name!r}{did_you_mean(last, known)}")
    if f"{kind}:" == OF_PRIORITY:
        if not _PRIORITY.fullmatch(which):
            raise InputError(f"--target: {name!r}: {which!r} is not a priority, a whole number")
        which = str(int(which))
    return f"{kind}:{which}", known[figure]


def _read_number(text: str, measure: Measure) -> float:
    try:
        bound = float(text)
        if not 0 <= bound < math.inf:
            raise ValueError
    except ValueError:
        raise InputError(
            f"--target: {text!r} is not a number, 0 or more; {measure.metric} is a ratio, without a unit"
        ) from None
    return bound
