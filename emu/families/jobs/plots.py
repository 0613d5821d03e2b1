"""Figures of runs of jobs: distributions of completion times, and what constraints do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from emu.directories.run_directory import safe_name
from emu.families.jobs.constraint_plots import crv_figure, wait_figure, wait_over_time_figure
from emu.families.jobs.metrics import job_values
from emu.report.distributions import distribution_figure
from emu.report.drawing import Shown
from emu.report.narrow_screens import shown
from emu.results.result import Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def job_figures(results: Runs, warmup_s: float = 0.0) -> list[Shown]:
    """Return the figures of runs that are compared; those that have nothing to show are left out."""
    figures: list[tuple[str, Callable[[], Figure | None], str]] = [
        (
            f"cdf-{name}",
            partial(cdf_figure, results, name, warmup_s),
            f"Distribution of completion times of {name} jobs",
        )
        for name in ("short", "long")
    ]
    figures += [
        (
            "wait-short",
            partial(wait_figure, results, "short", warmup_s),
            "Distribution of queueing delay of short jobs with and without constraints",
        ),
        (
            "wait-over-time-short",
            partial(wait_over_time_figure, results, "short", warmup_s),
            "Mean queueing delay of short jobs by their arrival, with and without constraints",
        ),
    ]
    figures += [
        (
            f"crv-{safe_name(name)}",
            partial(crv_figure, runs[0]),
            f"Constraint Resource Vector under {name}, seed {runs[0].summary['seed']}: tasks that wait for a "
            "resource over nodes that have it",
        )
        for name, runs in results.items()
    ]
    return [one for stem, make, caption in figures for one in shown(stem, make, caption)]


def cdf_figure(results: Runs, job_class: str, warmup_s: float = 0.0) -> Figure | None:
    """Return the distribution of completion times of a class under each scheduler, all seeds together, log x.

    None when no job of the class finished in more than no time.
    """
    samples = {
        name: [job_values(run, "", job_class, warmup_s) for run in runs] for name, runs in results.items()
    }
    return distribution_figure(samples, f"completion time of {job_class} jobs (s)", "share of jobs")
