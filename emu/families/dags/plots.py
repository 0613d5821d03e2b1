"""Figures of runs of DAG jobs: completion times, factors of improvement, use of resources, fairness, running tasks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from emu.directories.run_directory import safe_name
from emu.families.jobs.metrics import CLASSES
from emu.families.jobs.plots import (
    cdf_figure,
    classes_of_runs,
    division_figures,
    tenants_figures,
    use_figures,
)
from emu.report.distributions import paired_samples, shares_figure
from emu.report.drawing import (
    Shown,
    add_legend,
    figure_style,
    line_look,
    new_figure,
    place_of,
    plain_label,
    shown,
    time_scale,
)
from emu.report.gantt import early_clause, has_tasks, job_figure, machines_figure, running_figure, shown_job
from emu.report.scales import plain_ticks
from emu.results.paired_comparison import single_factors
from emu.results.result import Runs
from workloads.arrow import optional_column

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def dag_figures(results: Runs, warmup_s: float = 0.0) -> Iterator[Shown]:
    """Yield the figures of runs that are compared; those that have nothing to show are left out."""
    first, classes = next(iter(results)), classes_of_runs(results)
    for group in (name for name in CLASSES if name in classes):
        caption = f"Distribution of completion times of {group} jobs"
        yield from shown(f"cdf-{group}", caption, cdf_figure, results, group, warmup_s)
    caption = f"Factors of improvement of {first}, job by job: completion time under another scheduler over that under "
    yield from shown("improvement", f"{caption}{first}", improvement_figure, results, warmup_s)
    yield from shown(
        "fairness", "Jain's fairness index over windows, of the first seed", fairness_figure, results
    )
    yield from division_figures(results, warmup_s)
    yield from use_figures(results, {"run": ("running_tasks",), "wait": ("runnable_tasks",)})
    yield from tenants_figures(results)
    if all(has_tasks(runs[0]) for runs in results.values()):
        yield from _figures_of_tasks(results)


def _figures_of_tasks(results: Runs) -> Iterator[Shown]:
    """Yield the figures of runs that have recorded their tasks, of their first seeds."""
    job_id = shown_job(results)
    caption = f"Tasks of job {job_id} that run, under each scheduler"
    yield from shown("running", caption, running_figure, results, job_id)
    for name, (run, *_) in results.items():
        caption = f"Job {job_id} under {name}: its tasks by stage{early_clause(run, job_id)}"
        yield from shown(f"gantt-job-{safe_name(name)}", caption, job_figure, run, job_id)
    for name, (run, *_) in results.items():
        caption = f"The machines that ran most under {name}: all their tasks, a colour for each job{early_clause(run)}"
        yield from shown(f"gantt-{safe_name(name)}", caption, machines_figure, run)


def improvement_figure(results: Runs, warmup_s: float = 0.0) -> Figure | None:
    """Return the distribution of factors of improvement over each other scheduler, all seeds together, log x."""
    samples = paired_samples(results, partial(single_factors, group="all", warmup_s=warmup_s))
    if not samples:
        return None
    low, high = np.quantile(np.concatenate(list(samples.values())), [0.002, 0.998])
    x_label = f"factor of improvement of {next(iter(results))}"
    limits = (min(low, 0.9), max(high, 1.1))
    return shares_figure(samples, results, x_label, "share of jobs", mark=1.0, limits=limits, log=True)


def fairness_figure(results: Runs) -> Figure | None:
    """Return Jain's index over time, of each scheduler's first seed."""
    last_s = max(float(optional_column(runs[0].timeline, "time_s")[-1]) for runs in results.values())
    scale, unit = time_scale(last_s)
    with figure_style():
        figure, axes = new_figure(6.4, 3.2)
        drawn = False
        for name, runs in results.items():
            table = runs[0].tables["fairness"]
            index = optional_column(table, "jain")
            if np.isfinite(index).any():
                drawn = True
                axes.plot(
                    optional_column(table, "time_s") / scale,
                    index,
                    label=plain_label(name),
                    **line_look(place_of(name, results)),
                )
        if not drawn:
            return None
        axes.set_ylim(0.0, 1.0)
        axes.xaxis.set_major_formatter(plain_ticks())
        axes.set_xlabel(f"virtual time ({unit})")
        axes.set_ylabel("Jain's index")
        add_legend(figure, axes)
        return figure
