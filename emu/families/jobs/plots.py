"""Figures of runs of jobs: distributions of completion times, and what constraints do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from emu.columns import numbers
from emu.directories.run_directory import safe_name
from emu.families.jobs.constraint_plots import crv_figure, wait_figure, wait_over_time_figure
from emu.families.jobs.metrics import in_group
from emu.report.drawing import (
    LEFT_QUANTILE,
    Shown,
    add_legend,
    figure_style,
    line_look,
    mark_log,
    new_figure,
    plain_label,
    share_curve,
)
from emu.results.metrics import after_warmup
from emu.results.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def job_figures(results: Mapping[str, list[Result]], warmup_s: float = 0.0) -> list[Shown]:
    """Return the figures of runs that are compared; those that have nothing to show are left out."""
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


def _times(runs: list[Result], job_class: str, warmup_s: float) -> np.ndarray:
    parts = []
    for run in runs:
        jct_s = numbers(run.jobs, "jct_s")
        mask = after_warmup(numbers(run.jobs, "submit_s"), warmup_s) & in_group(run.jobs, job_class)
        parts.append(jct_s[mask & (jct_s > 0)])
    return np.concatenate(parts)
