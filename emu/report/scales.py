"""Axes of figures: their scales, ranges and ticks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from emu.results.text_tables import number
from workloads.errors import printable

LEAST_SPAN = 0.1
"""Least span of a linear axis, as a share of the times on it."""
LEAST_GAP = 0.12
"""Between two ticks with texts, as a share of the axis."""
MOST_OF_LABEL = 24
"""Characters of a text at a tick."""


def fit_times(axes: Any, low: float, high: float) -> None:
    """Fit the y axis to times from `low` to `high`: logarithmic from a decade on, else linear.

    A linear axis spans at least `LEAST_SPAN` of the times, so that rounding does not look like a difference.
    """
    from matplotlib.ticker import MaxNLocator

    if low > 0 and high >= 10 * low:
        pad = (high / low) ** 0.06
        axes.set_yscale("log")
        axes.set_ylim(low / pad, high * pad)
        mark_log(axes.yaxis, low, high)
    else:
        middle = (low + high) / 2
        half = max(0.55 * (high - low), LEAST_SPAN / 2 * abs(middle), 1e-9)
        axes.set_ylim(middle - half, middle + half)
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.yaxis.set_major_formatter(plain_ticks())


def mark_log(axis: Any, low: float, high: float) -> None:
    """Give a logarithmic axis from `low` to `high` enough ticks, with plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 300 * low else (1.0,), numticks=9))
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(plain_ticks())


def plain_ticks() -> Any:
    """Return the format of ticks that are plain numbers."""
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: number(value))


def fit_places(axes: Any, values: Sequence[Any], numeric: bool) -> Callable[[Any], float]:
    """Fit the x axis to the values of an axis, and return the function from a value to its place.

    Numbers are on a scale, logarithmic where they are spread, each with a tick where there is room; other values are
    side by side.
    """
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

    if not numeric:
        places = {value: float(i) for i, value in enumerate(values)}
        axes.set_xticks(list(places.values()), short_labels([printable(str(v)) for v in values]))
        axes.set_xlim(-0.5, len(values) - 0.5)
        return lambda value: places[value]
    low, high = float(min(values)), float(max(values))
    if 0 < 8 * low <= high:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        on_scale = np.log([float(v) for v in values])
    else:
        on_scale = np.array(values, float)
    gaps = np.diff(np.sort(on_scale))
    if len(values) == 1 or gaps.min() >= LEAST_GAP * (on_scale.max() - on_scale.min()):
        axes.xaxis.set_major_locator(FixedLocator([float(v) for v in values]))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(plain_ticks())
    if low == high:  # one place stands in the middle
        axes.set_xlim(low - max(abs(low), 1.0) / 2, high + max(abs(high), 1.0) / 2)
    elif axes.get_xscale() == "log":
        axes.set_xlim(low / (high / low) ** 0.06, high * (high / low) ** 0.06)
    else:
        axes.set_xlim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    return float


def short_labels(texts: Sequence[str]) -> list[str]:
    """Return texts for ticks side by side: long ones without the words that all have in common, and cut.

    Examples
    --------
    >>> short_labels(["draw count=10 ports=10; deadlines most=4", "draw count=20 ports=10; deadlines most=4"])
    ['count=10', 'count=20']
    >>> short_labels(["homogeneous", "phoenix"])
    ['homogeneous', 'phoenix']
    """
    if max(map(len, texts), default=0) <= MOST_OF_LABEL:
        return list(texts)
    words = [text.split() for text in texts]
    common = set.intersection(*map(set, words)) if len(words) > 1 else set()
    own = [" ".join(word for word in of_one if word not in common) for of_one in words]
    if len({*own}) < len(texts) or "" in own:
        own = list(texts)
    return [text if len(text) <= MOST_OF_LABEL else f"{text[: MOST_OF_LABEL - 1]}…" for text in own]
