"""What `emu size` is asked for, targets on completion times, and the search for the fewest that meet them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from emu.metrics import CLASSES, STATISTICS
from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.units import format_duration, parse_duration

TOLERANCE = 0.01
MOST_DOUBLINGS = 40
_TARGET = re.compile(r"\s*([A-Za-z0-9_.]+)\s*(<=|<)\s*(\S.*?)\s*$")


class Target(NamedTuple):
    """A bound on a statistic of job completion times.

    Attributes
    ----------
    job_class, statistic : str
        As in ``summary.json``: ``jobs.<job_class>.<statistic>``.
    strict : bool
        Whether the value must be below the bound, not at it.
    bound_s : float
    """

    job_class: str
    statistic: str
    strict: bool
    bound_s: float

    def holds(self, value_s: float) -> bool:
        """Whether a value meets the target; NaN meets none."""
        return value_s < self.bound_s if self.strict else value_s <= self.bound_s

    def __str__(self) -> str:
        sign = "<" if self.strict else "<="
        return f"{self.job_class}.{self.statistic} {sign} {format_duration(self.bound_s)}"


class Search(NamedTuple):
    """How a search for the fewest ended: the least that holds and the most below it that fails, where known."""

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
    """Return the fewest for which a condition holds, as far as bisection can tell.

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
            f"--target: {text!r} is not of the form [class.]statistic < value: 'short.p99 < 60s'"
        )
    name, sign, value = match.groups()
    job_class, _, statistic = name.rpartition(".")
    job_class = job_class or "all"
    if job_class not in CLASSES:
        raise InputError(f"--target: unknown class {job_class!r}{did_you_mean(job_class, CLASSES)}")
    if statistic not in STATISTICS:
        raise InputError(f"--target: unknown statistic {statistic!r}{did_you_mean(statistic, STATISTICS)}")
    return Target(job_class, statistic, sign == "<", parse_duration(value, "--target"))
