"""Figures of runs of all families: timelines, bars of statistics, and all figures of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from emu.families.family import Family
from emu.families.registry import family_of_summary, find_family
from emu.report.drawing import (
    COLOURS,
    SIZE,
    Shown,
    add_legend,
    add_own_legend,
    figure_style,
    label_panels,
    line_look,
    new_figure,
    place_of,
    plain_label,
    time_scale,
)
from emu.report.scales import mark_log, plain_ticks
from emu.results.measures import Measure
from emu.results.result import Result, Runs, summary_of
from workloads.arrow import optional_column

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class TimelineLook(NamedTuple):
    """How timelines are drawn.

    Attributes
    ----------
    upper, lower : str
        The labels of the two axes.
    columns : mapping
        Of the lower axis: label to column.
    caption : str
    """

    upper: str
    lower: str
    columns: Mapping[str, str]
    caption: str = "Utilisation over time"


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """What a family shows in figures and on pages.

    Attributes
    ----------
    figures : (results, warmup_s) -> iterable of Shown
        The figures of runs that are compared.
    answers : (results) -> list of str
        Sentences for the beginning of a page of a comparison, besides those on completion times.
    timeline : TimelineLook
    statistics : tuple of str
        Of completion times in figures against an axis.
    shares : mapping
        Shares in figures against an axis: title, to key in the family's part of a summary.
    """

    figures: Callable[[Runs, float], Iterable[Shown]] = lambda results, warmup_s: []
    answers: Callable[[Runs], list[str]] = lambda results: []
    timeline: TimelineLook
    statistics: tuple[str, ...] = ("p50", "p90", "p99")
    shares: Mapping[str, str] = field(default_factory=dict)


LITTLE = 0.15
"""Share of the maximum of each line: where all lines stay below it until the end, the tail is left out."""
LEAST_TAIL = 0.2
"""Share of the time: a shorter tail is drawn."""
SPREAD = 30.0
"""Bars that differ by more than this factor have a logarithmic axis."""
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "----", "oooo", "++++", "**")
"""Hatches of bars; one more than colours, so that no two bars have both in common."""


def figures_of(results: Runs, warmup_s: float = 0.0) -> list[Shown]:
    """Return the figures of runs that are compared: those of the family, and timelines of several schedulers."""
    family = find_family(next(iter(results.values()))[0].family)[Drawing]
    figures = list(family.figures(results, warmup_s))
    if len(results) > 1 and (drawn := timeline_figure(results)) is not None:
        seeds = ", of the first seed" if any(len(runs) > 1 for runs in results.values()) else ""
        figures.append(Shown("timeline", drawn, f"{family.timeline.caption}, by scheduler{seeds}"))
    return figures


def timeline_figure(results: Runs) -> Figure | None:
    """Return utilisation and, below it, what waits or runs over virtual time; None without rows. Of first seeds.

    One scheduler has one lower panel with a line for each column; several schedulers have a panel for each column that
    is ever above 0. A long tail, in which almost nothing runs, is left out; the label of the axis has its end.
    """
    first = {name: runs[0] for name, runs in results.items() if runs[0].timeline.num_rows}
    if not first:
        return None
    from matplotlib.ticker import MaxNLocator

    panels = _panels(first)
    shown_s, last_s = _span(first.values())
    scale, unit = time_scale(shown_s)
    with figure_style():
        figure, axes = new_figure(SIZE[0], 0.8 + 1.6 * len(panels), rows=len(panels))
        places = np.atleast_1d(axes)
        for place, (label, lines) in zip(places, panels, strict=True):
            highest = 0.0
            for name, (run, column) in lines.items():
                y = optional_column(run.timeline, column)
                highest = max(highest, float(y.max()))
                steps = "default" if column == "utilisation" else "steps-post"
                look = line_look(place_of(name, lines)) | {"linewidth": 1.2, "drawstyle": steps}
                place.plot(
                    optional_column(run.timeline, "time_s") / scale, y, label=plain_label(name), **look
                )
            place.set_ylim(0.0, 1.05 * (max(1.0, highest) if place is places[0] else highest or 1.0))
            place.set_ylabel(label)
            place.yaxis.set_major_locator(MaxNLocator(5, integer=place is not places[0]))
            place.yaxis.set_major_formatter(plain_ticks())
        places[-1].set_xlim(0.0, max(shown_s, 1e-9) / scale)
        cut = f"; the last run ends at {last_s / scale:,.3g} {unit}" if shown_s < last_s else ""
        places[-1].set_xlabel(f"virtual time ({unit}){cut}")
        if len(first) == 1:
            add_own_legend(places[1])
        else:
            add_legend(figure, places[0])
        return figure


def _panels(runs: Mapping[str, Result]) -> list[tuple[str, dict[str, tuple[Result, str]]]]:
    """Return the label of each panel of a timeline, and by name of a line its run and column."""
    share, what, columns, _ = find_family(next(iter(runs.values())).family)[Drawing].timeline
    panels = [(share, {name: (run, "utilisation") for name, run in runs.items()})]
    if len(runs) == 1:
        (run,) = runs.values()
        panels.append((what, {label: (run, column) for label, column in columns.items()}))
    else:
        for label, column in columns.items():
            if any(optional_column(run.timeline, column).any() for run in runs.values()):
                panels.append((f"{what}:\n{label}", {name: (run, column) for name, run in runs.items()}))
    failing = {
        name: (run, "up_nodes") for name, run in runs.items() if "up_nodes" in run.timeline.column_names
    }
    return [*panels, ("nodes up", failing)] if failing else panels


def _span(runs: Iterable[Result]) -> tuple[float, float]:
    """Return the time up to which timelines are shown, and the end of the last, seconds."""
    last_s = shown_s = 0.0
    for run in runs:
        time_s = optional_column(run.timeline, "time_s")
        last_s = max(last_s, float(time_s[-1]))
        for column in ("utilisation", *find_family(run.family)[Drawing].timeline.columns.values()):
            y = optional_column(run.timeline, column)
            if y.max() > 0:
                last = int(np.flatnonzero(y >= LITTLE * y.max())[-1])
                shown_s = max(shown_s, float(time_s[min(last + 1, len(time_s) - 1)]))
    return (last_s if shown_s >= (1 - LEAST_TAIL) * last_s else shown_s), last_s


def bars_figure(results: Runs, measures: Sequence[Measure], groups: Sequence[str]) -> Figure | None:
    """Return statistics of each group under each scheduler, side by side; None where no group has any.

    The measures are of one metric; each group has a panel. Lines on bars of several seeds are 95 % confidence intervals
    of the mean.
    """
    summaries = {name: summary_of(runs) for name, runs in results.items()}
    family = family_of_summary(next(iter(summaries.values())))
    shown = [
        g for g in groups if any(family.part_of(s[family.heads], g).get("count") for s in summaries.values())
    ]
    if not shown:
        return None
    with figure_style():
        figure, places = new_figure(max(SIZE[0], 3.2 * len(shown)), SIZE[1], columns=len(shown))
        for place, group in zip(np.ravel(places), shown, strict=True):
            _draw_bars(place, family, summaries, measures, group)
            place.set_title(family.group_titles.get(group, f"{group} {family.heads}"))
        label_panels(places, "", label_of(measures[0].metric))
        add_legend(figure, np.ravel(places)[0])
        return figure


def _draw_bars(
    place: Any, family: Family, summaries: Mapping[str, Any], measures: Sequence[Measure], group: str
) -> None:
    width = 0.8 / len(summaries)
    bounds: list[float] = []
    for at, (name, summary) in enumerate(summaries.items()):
        index = place_of(name, summaries)
        part = family.part_of(summary[family.heads], group)
        intervals = family.part_of(summary.get("confidence_95", {}).get(family.heads, {}), group)
        y = np.array([measure.of(part) for measure in measures])
        edges = np.array([measure.interval(intervals) for measure in measures])
        x = np.arange(len(measures)) - 0.4 + (at + 0.5) * width
        look = {"color": COLOURS[index % len(COLOURS)], "hatch": HATCHES[index % len(HATCHES)]}
        place.bar(x, y, width, label=plain_label(name), edgecolor="white", linewidth=0.5, **look)
        known = np.isfinite(edges).all(axis=1)
        if known.any():
            bars = np.abs(edges[known].T - y[known])
            place.errorbar(x[known], y[known], bars, fmt="none", ecolor="black", elinewidth=0.8, capsize=2)
        bounds += [float(v) for v in (*y, *edges.ravel()) if np.isfinite(v)]
    place.set_xticks(np.arange(len(measures)), [measure.statistic for measure in measures])
    place.grid(visible=False, axis="x")
    positive = [v for v in bounds if v > 0]
    if positive and max(positive) >= SPREAD * min(positive):
        place.set_yscale("log")
        place.set_ylim(min(positive) / 2, max(positive) * 1.3)
        mark_log(place.yaxis, min(positive), max(positive))
    else:
        place.set_ylim(0.0, 1.05 * max(bounds, default=1.0) or 1.0)
        place.yaxis.set_major_formatter(plain_ticks())


def label_of(metric: str, of: str = "") -> str:
    """Return the label of an axis of a metric, with its unit.

    Examples
    --------
    >>> label_of("wait"), label_of("", "short jobs"), label_of("bounded_slowdown")
    ('queueing delay (s)', 'completion time of short jobs (s)', 'bounded slowdown')
    """
    name = {"": "completion time", "wait": "queueing delay"}.get(metric, metric.replace("_", " "))
    return f"{name}{f' of {of}' if of else ''}{' (s)' if Measure(metric, '').is_time else ''}"
