"""The cheapest mix of machine types on which a condition holds, as found by exchanges of machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

MOST_SIZES = 100
"""Mixes that a search measures at the most, if no other number is asked for."""
Counts = tuple[int, ...]
"""Nodes of each machine type."""


class Cheapest(NamedTuple):
    """The cheapest mix that was found to hold, None without one, and whether the search ended for its bound."""

    counts: Counts | None
    is_cut: bool


class _Enough(Exception):
    """As many mixes are measured as may be."""


@dataclass(eq=False)
class _Known:
    """What is known of mixes. More machines never make a mix worse, so that many need not be measured."""

    measure: Callable[[Counts], bool]
    most: int  # how many more are measured
    good: list[Counts] = field(default_factory=list)
    bad: list[Counts] = field(default_factory=list)

    def holds(self, counts: Counts) -> bool:
        if not sum(counts) or any(_covers(known, counts) for known in self.bad):
            return False
        if any(_covers(counts, known) for known in self.good):
            return True
        if not self.most:
            raise _Enough
        self.most -= 1
        found = self.measure(counts)
        (self.good if found else self.bad).append(counts)
        return found


def find_cheapest(
    holds: Callable[[Counts], bool],
    prices: Sequence[float],
    start: Counts | None,
    reach: int,
    tolerance: float,
    most: int = MOST_SIZES,
    failed: Sequence[Counts] = (),
) -> Cheapest:
    """Return the cheapest mix of machine types for which a condition holds, among those that are tried.

    First each type alone is tried with as many machines as cost less than the best that is known, and the fewest
    found by bisection. Then machines of one type are exchanged for fewer or cheaper ones of another: all of them, half
    of them, a quarter, …, one, each time with the most of the other that still costs less, and from there the fewest.
    The search ends where no such exchange helps. Nothing is assumed of the condition but that it holds for more
    machines where it holds for fewer.

    Parameters
    ----------
    holds : callable
        Is called with each mix at most once.
    prices : sequence of float
        By machine type, above 0.
    start : tuple of int, optional
        A mix for which the condition holds.
    reach : int
        Nodes of all types together beyond which nothing is tried.
    tolerance : float
        Exchanges that save at most this share of the cost are not tried.
    most : int
        How many mixes are measured at the most, the start among them.
    failed : sequence of tuple of int
        Mixes for which the condition is known not to hold.
    """
    known = _Known(holds, most - bool(start), good=[start] if start else [], bad=list(failed))
    best = start
    try:
        for only in range(len(prices)):
            found = _fewest_alone(known, only, prices, best, reach, tolerance)
            best = found or best
        while best is not None:
            better = next(_exchanges(known, prices, best, reach, tolerance), None)
            if better is None:
                break
            best = better
    except _Enough:
        held = [counts for counts in known.good if best is None or cost(counts, prices) < cost(best, prices)]
        return Cheapest(min(held, key=lambda counts: cost(counts, prices), default=best), True)
    return Cheapest(best, False)


def cost(counts: Counts, prices: Sequence[float]) -> float:
    """Return what a mix costs an hour."""
    return sum(count * price for count, price in zip(counts, prices, strict=True))


def _fewest_alone(
    known: _Known, only: int, prices: Sequence[float], best: Counts | None, reach: int, tolerance: float
) -> Counts | None:
    """Return the fewest machines of one type that hold and cost less than the best; None without such."""

    def mix(count: int) -> Counts:
        return tuple(count * (i == only) for i in range(len(prices)))

    high = reach
    if best is not None:
        high = min(reach, _affordable(cost(best, prices) * (1 - tolerance), prices[only]))
    if high < 1 or not known.holds(mix(high)):
        return None
    return mix(_fewest(known, mix, high, tolerance))


def _exchanges(
    known: _Known, prices: Sequence[float], best: Counts, reach: int, tolerance: float
) -> Iterator[Counts]:
    """Yield mixes that hold and cost less, with some machines of one type exchanged for machines of another."""
    least = tolerance * cost(best, prices)
    types = range(len(prices))
    for less, more in ((less, more) for less in types for more in types if less != more and best[less]):
        step = best[less]
        while step and step * prices[less] > least:
            most = _affordable(step * prices[less] - least, prices[more])
            most = min(most, max(reach - sum(best) + step, 0))

            mix = partial(_with, best, less, step, more)
            if known.holds(mix(most)):
                fewest = _fewest(known, mix, most, tolerance)
                yield mix(fewest)
            step //= 2


def _with(best: Counts, less: int, step: int, more: int, count: int) -> Counts:
    """Return a mix with `step` machines of one type exchanged for `count` of another."""
    change = {less: -step, more: count}
    return tuple(have + change.get(i, 0) for i, have in enumerate(best))


def _affordable(money: float, price: float) -> int:
    """Return how many machines cost less than an amount."""
    count = int(money / price) + 1
    while count and count * price >= money * (1 - 1e-12):
        count -= 1
    return count


def _fewest(known: _Known, mix: Callable[[int], Counts], high: int, tolerance: float) -> int:
    """Return the fewest from 0 on for which the mix holds, by bisection; it holds for `high`."""
    low = -1
    while high - low > max(1, int(tolerance * high)):
        middle = (low + high) // 2
        if known.holds(mix(middle)):
            high = middle
        else:
            low = middle
    return high


def _covers(counts: Counts, others: Counts) -> bool:
    """Whether a mix has as many machines of each type as another, or more."""
    return all(have >= other for have, other in zip(counts, others, strict=True))
