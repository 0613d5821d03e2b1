"""Figures against an axis of a sweep, or a key that differs between runs: completion times, and shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from emu.directories.run_directory import safe_name
from emu.families.family import Family
from emu.families.registry import family_of_summary, find_family
from emu.report.drawing import (
    COLOURS,
    SIZE,
    Shown,
    add_legend,
    figure_style,
    label_panels,
    line_look,
    new_figure,
    place_of,
    plain_label,
    shown,
)
from emu.report.plots import Drawing, label_of
from emu.report.scales import fit_places, fit_times
from emu.results.measures import Measure
from emu.results.metrics import ratios
from emu.results.result import Result, summary_of
from emu.results.run_groups import COMPARED, Axis, Group, is_number, value_text
from workloads.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PREFERRED = ("nodes", "load")
"""Axes that figures are drawn against, where they have several values."""
MARKERS = ("o", "s", "^")
"""Markers of points, one for each repetition of the colours."""
MOST_OF_MEAN = 3.0
"""Error bars above this multiple of the mean, or below that fraction of it, leave the figure."""

Lines = Mapping[str, Mapping[Any, Mapping[str, Any]]]
"""Label of a line to {value on the axis: a summary}."""


class Point(NamedTuple):
    """The runs of one scheduler at one place.

    Attributes
    ----------
    scheduler : str
    at : dict of str to object
        Label to value of all axes that it has, its parameters too.
    summary : mapping
        Of the run, or of its seeds.
    """

    scheduler: str
    at: dict[str, Any]
    summary: Mapping[str, Any]


def points_of(groups: Sequence[Group]) -> list[Point]:
    """Return the points of groups of runs."""
    return [
        Point(runs[0].summary["scheduler"], group.at | group.own[name], summary_of(runs))
        for group in groups
        for name, runs in group.results.items()
    ]


def ratio_points(
    groups: Sequence[Group], baseline: str, measures: Sequence[Measure], shown: Sequence[str]
) -> list[Point]:
    """Return the points of groups of runs, with ratios to runs of a baseline in the same group, over the same network.

    ``ratios`` of a summary has the mean over the seeds and its half-width, by group and measure; ratios are taken seed
    by seed.

    Raises
    ------
    InputError
        A group has no runs of the baseline, or no group has another scheduler.
    """
    points = []
    for group in groups:
        for name, runs in group.results.items():
            base = _baseline_of(group, baseline, _network_of(group, name))
            if runs is not base:
                summary = {**summary_of(runs), "ratios": _ratios_of(base, runs, measures, shown)}
                points.append(Point(runs[0].summary["scheduler"], group.at | group.own[name], summary))
    if not points:
        raise InputError(f"all runs are of {baseline!r}; give runs of other schedulers too")
    return points


def _network_of(group: Group, name: str) -> list[Any]:
    """Return the network of some runs of a group, if its runs differ in it."""
    return [group.own[name].get(label) for label in COMPARED.values()]


def _baseline_of(group: Group, baseline: str, network: list[Any]) -> list[Result]:
    """Return the runs of the baseline in a group, over a network."""
    own = {
        n: runs
        for n, runs in group.results.items()
        if runs[0].summary["scheduler"] == baseline and _network_of(group, n) == network
    }
    if len(own) != 1:
        at = ", ".join(f"{label} {value_text(label, value)}" for label, value in group.at.items())
        only = f"there is only {', '.join(group.results)}, or other seeds"
        there = f"there are {', '.join(own)}" if own else only
        raise InputError(f"baseline: want runs of one {baseline!r} at {at or 'each place'}; {there}")
    return next(iter(own.values()))


def _ratios_of(
    base: Sequence[Result], runs: Sequence[Result], measures: Sequence[Measure], shown: Sequence[str]
) -> dict[tuple[str, str], tuple[float, float]]:
    """Return mean ratios over the seeds and their half-widths by group and measure."""
    family = find_family(base[0].family)
    parts = {
        group: [[family.part_of(run.summary[family.heads], group) for run in of] for of in (base, runs)]
        for group in shown
    }
    return {
        (group, m.name): ratios(*([m.of(part) for part in of] for of in both))
        for group, both in parts.items()
        for m in measures
    }


def percentile_sheets(axes: Sequence[Axis], points: Sequence[Point]) -> Iterator[Shown]:
    """Yield figures of completion times, and of the family's shares, against an axis; none without an axis.

    A figure is drawn against nodes or load, whichever has more values; where neither varies, against the number that
    has most values; where no number varies, against what does. There is one for each combination of the other axes that
    are not parameters; parameters distinguish lines.
    """
    axis = _choose(axes)
    if axis is None or not points:
        return
    family = family_of_summary(points[0].summary)
    several = [a for a in axes if len(a.values) > 1 and a is not axis]
    sheets: dict[str, list[Point]] = {}
    titles: dict[str, str] = {}
    for point in points:
        shared = [a.label for a in several if not a.is_own and a.label in point.at]
        stem = "".join(f"-{name}={point.at[name]}" for name in shared)
        titles[stem] = "".join(f", {name} {value_text(name, point.at[name])}" for name in shared)
        sheets.setdefault(stem, []).append(point)
    for stem, own in sheets.items():
        lines = _lines(own, axis, [a for a in several if a.is_own])
        units = [unit for unit in ("instances", "seeds") if any(unit in point.summary for point in own)]
        clause = f"; bars are 95 % confidence intervals over the {units[0]}" if units else ""
        for kind, what, make in (
            ("percentiles", "Completion times", percentiles_figure),
            ("shares", f"Shares of {family.name}", shares_figure),
        ):
            caption = f"{what} against {axis.label}{titles[stem]}{clause}"
            yield from shown(safe_name(kind + stem), caption, make, lines, axis, family)


def _lines(
    points: Iterable[Point], axis: Axis, others: Sequence[Axis]
) -> dict[str, dict[Any, Mapping[str, Any]]]:
    """Return the lines of points against an axis, whose labels have the values of the other axes."""
    lines: dict[str, dict[Any, Mapping[str, Any]]] = {}
    for point in points:
        names = [a.label for a in others if a.label in point.at]
        line = " ".join([point.scheduler, *(f"{name}={value_text(name, point.at[name])}" for name in names)])
        # A scheduler without the parameter is the same at all its values.
        places = [point.at[axis.label]] if axis.label in point.at else axis.values
        lines.setdefault(line, {}).update(dict.fromkeys(places, point.summary))
    return lines


def against_figure(
    axes: Sequence[Axis],
    points: Sequence[Point],
    measures: Sequence[Measure],
    groups: Sequence[str] | None = None,
    along: str = "",
    baseline: str = "",
) -> Figure | None:
    """Return statistics against one axis, `along` by its label; values of all others distinguish lines.

    With a `baseline` the points are those of `ratio_points`. None where no axis has several values, or no group has
    any.
    """
    axis = next((a for a in axes if a.label == along), None) if along else _choose(axes)
    if axis is None or not points:
        return None
    order = list(dict.fromkeys(point.scheduler for point in points))
    by_scheduler = sorted(points, key=lambda point: order.index(point.scheduler))
    lines = _lines(by_scheduler, axis, [a for a in axes if len(a.values) > 1 and a is not axis])
    return percentiles_figure(lines, axis, family_of_summary(points[0].summary), measures, groups, baseline)


def percentiles_figure(
    lines: Lines,
    axis: Axis,
    family: Family,
    measures: Sequence[Measure] | None = None,
    groups: Sequence[str] | None = None,
    baseline: str = "",
) -> Figure | None:
    """Return statistics of one metric against an axis, by group of jobs or coflows, one line a scheduler.

    Parameters
    ----------
    lines : mapping
        Label to {value on the axis: a summary}.
    axis : Axis
    family : Family
    measures : sequence of Measure, optional
        Of one metric, a column each; by default those of completion times that the family shows.
    groups : sequence of str, optional
        A row each; by default all that have any.
    baseline : str
        The scheduler to which summaries have ratios (`ratio_points`); empty for the statistics themselves.

    None when no group has any.
    """
    measures = measures or [Measure("", statistic) for statistic in family[Drawing].statistics]
    summaries = [summary[family.heads] for points in lines.values() for summary in points.values()]
    groups = [
        group
        for group in groups or family.shown_groups(summaries)
        if any(family.part_of(s, group).get("count") for s in summaries)
    ]
    if not groups:
        return None
    value_of = _ratio_of if baseline else _figure_of
    y_label = label_of(measures[0].metric)
    if baseline:
        y_label = f"{y_label.removesuffix(' (s)')} / that of {baseline}"
    with figure_style():
        width = 9.0 if len(measures) > 1 else SIZE[0]
        height = 2.7 * len(groups) + 0.7 if len(groups) > 1 else 3.8
        figure, axes = new_figure(width, height, rows=len(groups), columns=len(measures))
        grid = np.reshape(axes, (len(groups), len(measures)))
        for row, group in zip(grid, groups, strict=True):
            for place, measure in zip(row, measures, strict=True):
                _draw(place, lines, axis, partial(value_of, family, group, measure), is_ratio=bool(baseline))
                place.set_title(
                    f"{measure.statistic}, {family.group_titles.get(group, f'{group} {family.heads}')}"
                )
        label_panels(grid, axis.label, y_label)
        add_legend(figure, grid[0][0])
        return figure


def shares_figure(lines: Lines, axis: Axis, family: Family) -> Figure | None:
    """Return the family's shares against an axis, side by side, one line a scheduler; equal shares are drawn once.

    None when no summary has any.
    """
    figures = [summary[family.heads] for points in lines.values() for summary in points.values()]
    drawn: dict[str, str] = {}
    for title, key in family[Drawing].shares.items():
        values = [of.get(key) for of in figures]
        before = [[of.get(other) for of in figures] for other in drawn]
        if any(v is not None for v in values) and values not in before:
            drawn[key] = title
    if not drawn:
        return None
    with figure_style():
        figure, axes = new_figure(max(6.4, 4.8 * len(drawn)), 4.2, columns=len(drawn))
        for place, (key, title) in zip(np.ravel(axes), drawn.items(), strict=True):
            _draw(place, lines, axis, partial(_figure_of, family, "all", Measure("", key)), is_share=True)
            place.set_title(title)
        label_panels(axes, axis.label, f"share of {family.name}")
        add_legend(figure, np.ravel(axes)[0])
        return figure


def _draw(
    place: Any,
    lines: Lines,
    axis: Axis,
    figure_of: Callable[[Mapping[str, Any]], tuple[float, float]],
    is_share: bool = False,
    is_ratio: bool = False,
) -> None:
    """Draw a line for each scheduler, with its intervals; a share from 0 on, ratios beside a line at 1."""
    bounds: list[float] = [1.0] if is_ratio else []
    if is_ratio:
        place.axhline(1.0, color="#888888", linewidth=1.0)
    numeric = all(map(is_number, axis.values))  # other values are not connected by lines
    scale = fit_places(place, axis.values, numeric)
    for label, points in lines.items():
        number = place_of(label, lines)
        found = [(scale(x), *figure_of(points[x])) for x in axis.values if x in points]
        x, y, half = (np.array(c, float) for c in zip(*found, strict=True)) if found else np.zeros((3, 0))
        known = np.isfinite(y)
        x, y, half = x[known], y[known], np.nan_to_num(half[known])
        # A bar on a logarithmic axis must end above 0.
        bars = np.array([np.minimum(half, y * (1 - 1e-9)), half])
        look = {"marker": MARKERS[number // len(COLOURS) % len(MARKERS)], **line_look(number)}
        look |= {"markersize": 3.5, "markevery": None} | ({} if numeric else {"linestyle": "none"})
        place.errorbar(
            x, y, bars if half.any() else None, label=plain_label(label), capsize=2.5, elinewidth=1.0, **look
        )
        bounds += (
            np.maximum(y - half, y / MOST_OF_MEAN).tolist() + np.minimum(y + half, y * MOST_OF_MEAN).tolist()
        )
    if bounds and is_share:
        place.set_ylim(0.0, min(1.0, 1.05 * max(bounds)))
    elif bounds:
        fit_times(place, min(bounds), max(bounds))


def _figure_of(
    family: Family, group: str, measure: Measure, summary: Mapping[str, Any]
) -> tuple[float, float]:
    """Return a mean over the seeds and its half-width; NaN where there is none."""
    intervals = summary.get("confidence_95", {}).get(family.heads, {})
    low, high = measure.interval(family.part_of(intervals, group))
    return measure.of(family.part_of(summary[family.heads], group)), (high - low) / 2


def _ratio_of(
    family: Family, group: str, measure: Measure, summary: Mapping[str, Any]
) -> tuple[float, float]:
    """Return a mean ratio to the baseline over the seeds and its half-width; NaN where there is none."""
    mean, half = summary["ratios"][group, measure.name]
    return float(mean), float(half)


def _choose(axes: Sequence[Axis]) -> Axis | None:
    several = [a for a in axes if len(a.values) > 1]
    numeric = [a for a in several if all(map(is_number, a.values))]
    for candidates in ([a for a in numeric if a.label in PREFERRED], numeric, several):
        if candidates:
            return max(candidates, key=lambda a: len(a.values))
    return None
