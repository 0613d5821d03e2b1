"""Figures of results: distributions, percentiles along an axis, timelines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from emu.columns import numbers
from emu.configuration.keys import COFLOWS, JOBS
from emu.directories.run_directory import safe_name
from emu.families.coflows.plots import coflow_figures
from emu.families.jobs.constraint_plots import crv_figure, wait_figure, wait_over_time_figure
from emu.report.drawing import (
    COLOURS,
    LEFT_QUANTILE,
    Shown,
    add_legend,
    figure_style,
    line_look,
    mark_log,
    new_figure,
    plain_label,
    share_curve,
    time_scale,
)
from emu.results.metrics import after_warmup, in_group
from emu.results.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TIMELINE = {
    JOBS: ("utilisation", "queued tasks", {"short": "queued_short", "long": "queued_long"}),
    COFLOWS: ("flows under way\nper port", "flows", {"waiting": "waiting_flows", "running": "running_flows"}),
}
"""By family: labels of the two axes of a timeline, and the columns that the lower one shows."""


def group_figures(results: Mapping[str, list[Result]], warmup_s: float = 0.0) -> list[Shown]:
    """Return the figures of runs that are compared; those that have nothing to show are left out."""
    if next(iter(results.values()))[0].family == COFLOWS:
        return coflow_figures(results, warmup_s)
    figures = [
        (
            f"cdf-{name}",
            cdf_figure(results, name, warmup_s),
            f"Distribution of completion times of {name} jobs",
        )
        for name in ("short", "long")
    ]
    figures += [
        (
            "wait-short",
            wait_figure(results, "short", warmup_s),
            "Distribution of queueing delay of short jobs with and without constraints",
        ),
        (
            "wait-over-time-short",
            wait_over_time_figure(results, "short", warmup_s),
            "Mean queueing delay of short jobs by their arrival, with and without constraints",
        ),
    ]
    figures += [
        (
            f"crv-{safe_name(name)}",
            crv_figure(runs[0]),
            f"Constraint Resource Vector under {name}, seed {runs[0].summary['seed']}: tasks that wait for a "
            "resource over nodes that have it",
        )
        for name, runs in results.items()
    ]
    return [Shown(stem, figure, caption) for stem, figure, caption in figures if figure is not None]


def cdf_figure(results: Mapping[str, list[Result]], job_class: str, warmup_s: float = 0.0) -> Figure | None:
    """Return the distribution of completion times of a class under each scheduler, all seeds together, log x.

    None when no job of the class finished in more than no time.
    """
    samples = {name: _times(runs, job_class, warmup_s) for name, runs in results.items()}
    if not any(len(s) for s in samples.values()):
        return None
    with figure_style():
        figure, axes = new_figure(6.4, 3.8)
        for number, (name, jct_s) in enumerate(samples.items()):
            if len(jct_s) == 0:
                continue
            axes.plot(*share_curve(jct_s), label=plain_label(name), **line_look(number))
        axes.set_xscale("log")
        axes.set_xlim(left=min(np.quantile(s, LEFT_QUANTILE) for s in samples.values() if len(s)))
        mark_log(axes.xaxis, *axes.get_xlim())
        axes.set_ylim(0.0, 1.0)
        axes.set_xlabel(f"completion time of {job_class} jobs (s)")
        axes.set_ylabel("share of jobs")
        add_legend(axes)
        return figure


def lines_figure(lines: Mapping[str, list[tuple[float, float]]], x_label: str, y_label: str) -> Figure:
    """Return (x, y) points of several schedulers as lines over two logarithmic axes."""
    with figure_style():
        figure, axes = new_figure(6.4, 3.8)
        for index, (name, points) in enumerate(lines.items()):
            x, y = zip(*sorted(points), strict=True)
            axes.plot(x, y, marker="o", markersize=4, label=plain_label(name), **line_look(index))
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        add_legend(axes)
        return figure


def timeline_figure(result: Result) -> Figure | None:
    """Return utilisation and, below it, what waits or runs over virtual time; None if there is nothing."""
    data = {name: numbers(result.timeline, name) for name in result.timeline.column_names}
    if len(data["time_s"]) == 0:
        return None
    share, what, columns = _TIMELINE[result.family]
    scale, unit = time_scale(float(data["time_s"][-1]))
    time = data["time_s"] / scale
    with figure_style():
        figure, (upper, lower) = new_figure(6.4, 4.4, rows=2)
        upper.fill_between(time, data["utilisation"], color=COLOURS[0], alpha=0.25, linewidth=0)
        upper.plot(time, data["utilisation"], color=COLOURS[0], linewidth=1.2)
        upper.set_ylim(0.0, 1.05 * max(1.0, float(data["utilisation"].max())))
        upper.set_ylabel(share)
        for number, (label, column) in enumerate(columns.items()):
            lower.plot(time, data[column], label=label, drawstyle="steps-post", **line_look(number))
        lower.set_ylim(bottom=0.0)
        lower.set_ylabel(what)
        lower.set_xlabel(f"virtual time ({unit})")
        add_legend(lower)
        return figure


def _times(runs: list[Result], job_class: str, warmup_s: float) -> np.ndarray:
    parts = []
    for run in runs:
        jct_s = numbers(run.jobs, "jct_s")
        mask = after_warmup(numbers(run.jobs, "submit_s"), warmup_s) & in_group(run.jobs, job_class)
        parts.append(jct_s[mask & (jct_s > 0)])
    return np.concatenate(parts)
