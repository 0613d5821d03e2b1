"""Distributions of several schedulers in one figure: of all seeds together, or with a band over the seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from emu.report.drawing import (
    LEFT_QUANTILE,
    add_legend,
    figure_style,
    line_look,
    new_figure,
    place_of,
    plain_label,
)
from emu.report.hover import GOES_ON
from emu.report.scales import mark_log
from emu.results.metrics import Float64Array, confidence_95, finite
from emu.results.result import Result, Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BANDS = ("none", "range", "interval")
"""What a band shows over the seeds: nothing, the range, or the 95 % confidence interval of the mean."""
POINTS = 512
SAME = 0.005
"""Share up to which all quantiles of curves that coincide may differ."""

Samples = Mapping[str, Sequence[Float64Array]]
"""Values by scheduler, an array for each seed."""


def distribution_figure(
    samples: Samples,
    x_label: str,
    y_label: str,
    *,
    tail: bool = False,
    band: str = "none",
    missing: str = "did not end",
) -> Figure | None:
    """Return the distributions of values under each scheduler over a logarithmic axis; None where none is above 0.

    Values of 0 lie at the left edge. Curves that coincide are drawn once, with the names of all.

    Parameters
    ----------
    samples : mapping
        NaN for no value: the label of shares has their number.
    x_label, y_label : str
        Of values, and of their share.
    tail : bool
        Draw the share of values above x, over a logarithmic axis, in place of the share up to x.
    band : str
        One of `BANDS`. With a band, a curve is the mean of the seeds' quantiles; without, that of all seeds together.
    missing : str
        What happened to those without a value.
    """
    total = sum(len(own) for seeds in samples.values() for own in seeds)
    samples = {name: [finite(own) for own in seeds] for name, seeds in samples.items()}
    lost = total - sum(len(own) for seeds in samples.values() for own in seeds)
    samples = {name: [own for own in seeds if len(own)] for name, seeds in samples.items()}
    samples = {name: seeds for name, seeds in samples.items() if seeds}
    above = [own[own > 0] for seeds in samples.values() for own in seeds if (own > 0).any()]
    if not above:
        return None
    least = min(float(own.min()) for own in above)
    shares = _shares(max(sum(map(len, seeds)) for seeds in samples.values()), tail)
    curves = {name: _curve(seeds, shares, least, band) for name, seeds in samples.items()}
    heights = 1.0 - shares if tail else shares
    names = list(samples)
    with figure_style():
        figure, axes = new_figure()
        for together in coinciding({name: middle for name, (middle, _, _) in curves.items()}):
            middle, low, high = curves[together[0]]
            look = line_look(place_of(together[0], names))
            axes.plot(middle, heights, label=plain_label(joined(together)), gid=GOES_ON, **look)
            if band != "none":
                axes.fill_betweenx(heights, low, high, color=look["color"], alpha=0.2, linewidth=0)
        left = min(
            np.quantile(np.maximum(own, least), LEFT_QUANTILE)
            for own in map(np.concatenate, samples.values())
        )
        axes.set_xscale("log")
        axes.set_xlim(left=left)
        mark_log(axes.xaxis, *axes.get_xlim())
        if tail:
            axes.set_yscale("log")
            axes.set_ylim(heights[heights > 0].min(), 1.0)
            mark_log(axes.yaxis, *axes.get_ylim())
        else:
            axes.set_ylim(0.0, 1.0)
        axes.set_xlabel(x_label)
        axes.set_ylabel(f"{y_label} ({lost:,} of {total:,} {missing})" if lost else y_label)
        add_legend(figure, axes)
        return figure


def shares_figure(
    samples: Mapping[str, Float64Array],
    names: Iterable[str],
    x_label: str,
    y_label: str,
    *,
    mark: float | None = None,
    limits: tuple[float, float] | None = None,
    log: bool = False,
) -> Figure | None:
    """Return the distributions of values, such as ratios; None where there are none.

    Parameters
    ----------
    samples : mapping
        Values by scheduler.
    names : iterable of str
        All schedulers, by whose order each has its look.
    x_label, y_label : str
    mark, limits, log
        As of `draw_shares`.
    """
    if not samples:
        return None
    with figure_style():
        figure, axes = new_figure()
        draw_shares(axes, samples, names, mark=mark, limits=limits, log=log)
        axes.set_xlabel(x_label, parse_math=False)
        axes.set_ylabel(y_label)
        add_legend(figure, axes)
        return figure


def draw_shares(
    axes: Any,
    samples: Mapping[str, Float64Array],
    names: Iterable[str],
    *,
    mark: float | None = None,
    limits: tuple[float, float] | None = None,
    log: bool = False,
) -> None:
    """Draw the share of values up to x of each scheduler, within `limits` of x, and a vertical line at a `mark`."""
    names = list(names)
    if mark is not None:
        axes.axvline(mark, color="#888888", linewidth=1.0)
    for name, values in samples.items():
        axes.plot(
            *share_curve(values), gid=GOES_ON, label=plain_label(name), **line_look(place_of(name, names))
        )
    if log:
        axes.set_xscale("log")
    if limits is not None:
        axes.set_xlim(*limits)
    if log:
        mark_log(axes.xaxis, *axes.get_xlim())
    axes.set_ylim(0.0, 1.0)


def paired_samples(
    results: Runs, measure: Callable[[Result, Result], Float64Array]
) -> dict[str, Float64Array]:
    """Return the values that `measure` gives for the first scheduler and each other, all seeds together."""
    first, *others = results
    found = {
        name: np.concatenate([measure(a, b) for a, b in zip(results[first], results[name], strict=True)])
        for name in others
    }
    return {name: values for name, values in found.items() if len(values)}


def share_curve(values: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the points of the distribution of some values: x, and the share of the values up to it."""
    share = _shares(len(values), tail=False)
    return np.quantile(values, share), share


def coinciding(curves: Mapping[str, Float64Array]) -> list[list[str]]:
    """Return groups of names of curves that coincide with the first of the group.

    Examples
    --------
    >>> coinciding({"a": np.array([1.0, 2.0]), "b": np.array([1.0, 3.0]), "c": np.array([1.001, 2.0])})
    [['a', 'c'], ['b']]
    """
    groups: list[list[str]] = []
    for name, curve in curves.items():
        same = (group for group in groups if np.allclose(curve, curves[group[0]], rtol=SAME, atol=0.0))
        if (group := next(same, None)) is not None:
            group.append(name)
        else:
            groups.append([name])
    return groups


def joined(names: Sequence[str]) -> str:
    """Return the label of a curve of one or several names.

    Examples
    --------
    >>> joined(["hawk"]), joined(["hawk", "eagle"])
    ('hawk', 'hawk, eagle (coincide)')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names)} (coincide)"


def _shares(count: int, tail: bool) -> Float64Array:
    """Return the shares at which the quantiles of `count` values are drawn; dense at the end of a tail."""
    points = min(POINTS, count + 1)
    if not tail:
        return np.linspace(0.0, 1.0, points)
    return 1.0 - np.geomspace(1.0, 1.0 / max(count, 2), points)


def _curve(
    seeds: Sequence[Float64Array], shares: Float64Array, least: float, band: str
) -> tuple[Any, Any, Any]:
    """Return the quantiles of a scheduler, and the lower and upper edge of the band."""
    if band == "none":
        middle = np.quantile(np.maximum(np.concatenate(seeds), least), shares)
        return middle, middle, middle
    each = np.array([np.quantile(np.maximum(own, least), shares) for own in seeds])
    if band == "range":
        return each.mean(axis=0), each.min(axis=0), each.max(axis=0)
    pairs = [confidence_95(column) for column in each.T]
    middle, half = (np.array(of) for of in zip(*pairs, strict=True))
    half = np.nan_to_num(half)  # one seed has no interval
    return middle, np.maximum(middle - half, least), middle + half
