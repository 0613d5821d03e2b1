"""Figures of runs of DAG jobs: completion times, factors of improvement, use of resources, fairness, running tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from emu.columns import numbers
from emu.directories.run_directory import safe_name
from emu.families.dags.comparison import improvement_factors
from emu.families.jobs.plots import cdf_figure
from emu.report.drawing import (
    Shown,
    add_legend,
    add_own_legend,
    figure_style,
    line_look,
    new_figure,
    place_of,
    plain_label,
    share_curve,
    time_scale,
)
from emu.report.gantt import (
    has_tasks,
    job_figure,
    machines_figure,
    running_figure,
    shown_job,
)
from emu.report.hover import GOES_ON
from emu.report.scales import mark_log, plain_ticks
from emu.results.result import Result, Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def dag_figures(results: Runs, warmup_s: float = 0.0) -> list[Shown]:
    """Return the figures of runs that are compared; those that have nothing to show are left out."""
    groups = ("all",) if not _has_long(results) else ("all", "short", "long")
    found: list[tuple[str, Figure | None, str]] = [
        (f"cdf-{g}", cdf_figure(results, g, warmup_s), f"Distribution of completion times of {g} jobs")
        for g in groups
    ]
    first = next(iter(results))
    found += [
        (
            "improvement",
            improvement_figure(results, warmup_s),
            f"Factors of improvement of {first}, job by job: completion time under another scheduler over that under "
            f"{first}",
        ),
        (
            "fairness",
            fairness_figure(results),
            "Jain's fairness index over windows, of the first seed",
        ),
    ]
    found += [
        (
            f"resources-{safe_name(name)}",
            use_figure(runs[0]),
            f"Use of resources under {name}, seed {runs[0].summary['seed']}: share of the capacity of all machines",
        )
        for name, runs in results.items()
    ]
    if all(has_tasks(runs[0]) for runs in results.values()):
        found += _of_tasks(results)
    return [Shown(stem, figure, caption) for stem, figure, caption in found if figure is not None]


def _of_tasks(results: Runs) -> list[tuple[str, Figure | None, str]]:
    """Return the figures of runs that have recorded their tasks, of their first seeds."""
    job_id = shown_job(results)
    found: list[tuple[str, Figure | None, str]] = [
        ("running", running_figure(results, job_id), f"Tasks of job {job_id} that run, under each scheduler")
    ]
    found += [
        (
            f"gantt-job-{safe_name(name)}",
            job_figure(runs[0], job_id),
            f"Job {job_id} under {name}: its tasks by stage",
        )
        for name, runs in results.items()
    ]
    found += [
        (
            f"gantt-{safe_name(name)}",
            machines_figure(runs[0]),
            f"The machines that ran most under {name}: all their tasks, a colour for each job",
        )
        for name, runs in results.items()
    ]
    return found


def improvement_figure(results: Runs, warmup_s: float = 0.0) -> Figure | None:
    """Return the distribution of factors of improvement over each other scheduler, all seeds together, log x."""
    first, *others = results
    samples = {
        name: np.concatenate(
            [
                improvement_factors(a, b, "all", warmup_s)
                for a, b in zip(results[first], results[name], strict=True)
            ]
        )
        for name in others
    }
    if not any(own.size for own in samples.values()):
        return None
    with figure_style():
        figure, axes = new_figure()
        for name, factors in samples.items():
            if factors.size:
                axes.plot(
                    *share_curve(factors),
                    gid=GOES_ON,
                    label=plain_label(f"over {name}"),
                    **line_look(place_of(name, results)),
                )
        axes.axvline(1.0, color="#888888", linewidth=0.8)
        _factor_axis(axes, np.concatenate(list(samples.values())))
        axes.set_ylim(0.0, 1.0)
        axes.set_xlabel(f"factor of improvement of {plain_label(first)}")
        axes.set_ylabel("share of jobs")
        add_legend(figure, axes)
        return figure


def _factor_axis(axes: Any, factors: np.ndarray) -> None:
    low, high = np.quantile(factors, [0.002, 0.998])
    low, high = min(low, 0.9), max(high, 1.1)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    mark_log(axes.xaxis, low, high)


def fairness_figure(results: Runs) -> Figure | None:
    """Return Jain's index over time, of each scheduler's first seed."""
    last_s = max(float(numbers(runs[0].timeline, "time_s")[-1]) for runs in results.values())
    scale, unit = time_scale(last_s)
    with figure_style():
        figure, axes = new_figure(6.4, 3.2)
        drawn = False
        for name, runs in results.items():
            table = runs[0].tables["fairness"]
            index = numbers(table, "jain")
            if np.isfinite(index).any():
                drawn = True
                axes.plot(
                    numbers(table, "time_s") / scale,
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


def use_figure(run: Result) -> Figure | None:
    """Return the use of each resource over time in one panel, running and waiting tasks below."""
    table, timeline = run.tables["resources"], run.tables["timeline"]
    if not table.num_rows:
        return None
    names = list(dict.fromkeys(table["resource"].to_pylist()))
    used = numbers(table, "used").reshape(-1, len(names))
    scale, unit = time_scale(float(numbers(timeline, "time_s")[-1]))
    time = numbers(timeline, "time_s") / scale
    with figure_style():
        figure, (above, below) = new_figure(6.4, 4.6, rows=2)
        for number, name in enumerate(names):
            above.plot(time, used[:, number], label=plain_label(name.replace("_", " ")), **line_look(number))
        above.set_ylim(0.0, max(1.0, 1.05 * float(used.max())))
        above.set_ylabel("share held")
        for number, (column, label) in enumerate((("running_tasks", "run"), ("runnable_tasks", "wait"))):
            below.plot(time, numbers(timeline, column), label=label, **line_look(number))
        below.set_ylim(bottom=0.0)
        below.set_ylabel("tasks")
        for axis in (below.xaxis, below.yaxis):
            axis.set_major_formatter(plain_ticks())
        below.set_xlabel(f"virtual time ({unit})")
        add_own_legend(below)
        add_own_legend(above)
        return figure


def _has_long(results: Runs) -> bool:
    return any("long" in run.summary["jobs"] for runs in results.values() for run in runs)
