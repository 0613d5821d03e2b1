"""Distributions of several schedulers in one figure: of all seeds together, or with a band over the seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BANDS = ("none", "range", "interval")
"""What a band shows over the seeds: nothing, from the least to the greatest, the mean's 95 % confidence interval."""
POINTS = 512
SAME = 0.005
"""Curves coincide where all their quantiles differ by no more than this share."""

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
        NaN where there is none: the label of shares says how many those are.
    x_label, y_label : str
        Of values, and of their share.
    tail : bool
        Draw the share of values above x, over a logarithmic axis, in place of the share up to x.
    band : str
        One of `BANDS`. With a band, a curve is the mean of the seeds' quantiles; without, that of all seeds together.
    missing : str
        What became of those without a value.
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
        left = min(np.quantile(np.maximum(own, least), LEFT_QUANTILE) for own in _pooled(samples).values())
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


def coinciding(curves: Mapping[str, Float64Array]) -> list[list[str]]:
    """Return names of curves, those together that coincide with the first of them, in the order of the first.

    Examples
    --------
    >>> coinciding({"a": np.array([1.0, 2.0]), "b": np.array([1.0, 3.0]), "c": np.array([1.001, 2.0])})
    [['a', 'c'], ['b']]
    """
    groups: list[list[str]] = []
    for name, curve in curves.items():
        for group in groups:
            if np.allclose(curve, curves[group[0]], rtol=SAME, atol=0.0):
                group.append(name)
                break
        else:
            groups.append([name])
    return groups


def joined(names: Sequence[str]) -> str:
    """Return the label of a curve that is that of several.

    Examples
    --------
    >>> joined(["hawk"]), joined(["hawk", "eagle"])
    ('hawk', 'hawk, eagle (coincide)')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names)} (coincide)"


def _shares(count: int, tail: bool) -> Float64Array:
    """Return the shares at which `count` values are drawn; of a tail dense where few values are left."""
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


def _pooled(samples: Samples) -> dict[str, Float64Array]:
    return {name: np.concatenate(seeds) for name, seeds in samples.items()}
