"""Figures of runs of jobs: completion times, queueing delay by group, use of resources, shares of tenants, the CRV."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from emu.directories.run_directory import safe_name
from emu.families.jobs.divisions import DIVISIONS, Division
from emu.families.jobs.metrics import SIDES, shown_classes
from emu.families.registry import find_family
from emu.report.distributions import distribution_figure, share_curve
from emu.report.drawing import (
    SIZE,
    Shown,
    add_legend,
    add_own_legend,
    figure_style,
    line_look,
    new_figure,
    place_of,
    plain_label,
    shown,
    time_scale,
)
from emu.report.hover import GOES_ON
from emu.report.scales import mark_log, plain_ticks
from emu.results.metrics import Float64Array, describe_values
from emu.results.result import Result, Runs, counted, values_of
from workloads.arrow import coded_labels, optional_column

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 60
MOST_RESOURCES = 8
_LOOK = {"constrained": "-", "unconstrained": "--"}


def job_figures(results: Runs, warmup_s: float = 0.0) -> Iterator[Shown]:
    """Yield the figures of runs that are compared; those that have nothing to show are left out."""
    classes = classes_of_runs(results)
    for name in ("short", "long") if len(classes) > 1 else ("all",):
        caption = f"Distribution of completion times of {name} jobs"
        yield from shown(f"cdf-{name}", caption, cdf_figure, results, name, warmup_s)
    caption = "Distribution of queueing delay of short jobs with and without constraints"
    yield from shown("wait-short", caption, wait_figure, results, "short", warmup_s)
    caption = "Mean queueing delay of short jobs by their arrival, with and without constraints"
    yield from shown("wait-over-time-short", caption, wait_over_time_figure, results, "short", warmup_s)
    yield from division_figures(results, warmup_s)
    tasks = {"run": ("running_short", "running_long"), "wait": ("queued_short", "queued_long")}
    yield from use_figures(results, tasks)
    yield from tenants_figures(results)
    for name, (run, *_) in results.items():
        clause = f"{name}, seed {run.summary['seed']}: tasks that wait for a resource over nodes that have it"
        yield from shown(
            f"crv-{safe_name(name)}", f"Constraint Resource Vector under {clause}", crv_figure, run
        )


def classes_of_runs(results: Runs) -> set[str]:
    """Return the classes that any of these runs shows apart from all jobs, and ``all``."""
    return {name for own in results.values() for run in own for name in shown_classes(run.summary["jobs"])}


def cdf_figure(results: Runs, job_class: str, warmup_s: float = 0.0) -> Figure | None:
    """Return the distribution of completion times of a class under each scheduler, all seeds together, log x.

    None where no job of the class has a completion time above 0.
    """
    samples = {
        name: [values_of(run, "", job_class, warmup_s) for run in runs] for name, runs in results.items()
    }
    return distribution_figure(samples, f"completion time of {job_class} jobs (s)", "share of jobs")


def wait_figure(results: Runs, job_class: str, warmup_s: float = 0.0) -> Figure | None:
    """Return the distribution of queueing delay of a class with and without constraints, log x.

    All seeds together; jobs with constraints have the full line. None where no job of the class has constraints, or no
    job waited.
    """
    samples = {
        (name, side): _waits(runs, f"{side} {job_class}", warmup_s)[1]
        for name, runs in results.items()
        for side in SIDES
    }
    some = [waits[waits > 0] for waits in samples.values() if (waits > 0).any()]
    if not some or not any(len(samples[name, "constrained"]) for name in results):
        return None
    least = min(waits.min() for waits in some)
    with figure_style():
        figure, axes = new_figure()
        for (name, side), waits in samples.items():
            if len(waits):
                look = line_look(place_of(name, results)) | {"linestyle": _LOOK[side]}
                x, share = share_curve(np.maximum(waits, least))  # a delay of 0 is at the left edge
                axes.plot(x, share, gid=GOES_ON, label=plain_label(f"{name}, {side}"), **look)
        axes.set_xscale("log")
        mark_log(axes.xaxis, *axes.get_xlim())
        axes.set_ylim(0.0, 1.0)
        axes.set_xlabel(f"queueing delay of {job_class} jobs (s)")
        axes.set_ylabel("share of jobs")
        add_legend(figure, axes)
        return figure


def wait_over_time_figure(results: Runs, job_class: str, warmup_s: float = 0.0) -> Figure | None:
    """Return mean queueing delay by time of arrival with and without constraints, below one another by scheduler.

    Means are of jobs that arrive in the same of `BINS` spans of time, all seeds together; a dot is a mean without
    neighbours. None where no job of the class has constraints.
    """
    found = {
        name: {side: _waits(runs, f"{side} {job_class}", warmup_s) for side in SIDES}
        for name, runs in results.items()
    }
    if not any(len(sides["constrained"][0]) for sides in found.values()):
        return None
    last_s = max(submit_s.max(initial=0.0) for sides in found.values() for submit_s, _ in sides.values())
    scale, unit = time_scale(float(last_s))
    edges = np.linspace(0.0, last_s * (1 + 1e-9) or 1.0, BINS + 1)
    middle = (edges[:-1] + edges[1:]) / 2
    means = {n: {s: _means(edges, *waits) for s, waits in sides.items()} for n, sides in found.items()}
    highest = max(np.nanmax(mean, initial=1.0) for sides in means.values() for mean in sides.values())
    with figure_style():
        figure, places = new_figure(6.4, 1.2 + 1.6 * len(found), rows=len(found))
        for axes, (name, sides) in zip(np.atleast_1d(places), means.items(), strict=True):
            for number, (side, mean) in enumerate(sides.items()):
                look = line_look(number) | {"linestyle": _LOOK[side], "marker": ".", "markevery": None}
                axes.plot(middle / scale, mean, markersize=4, label=side, **look)
            axes.set_title(plain_label(name), parse_math=False)
            axes.set_yscale("symlog", linthresh=0.1)
            axes.set_ylim(0.0, 2 * highest)
            axes.set_ylabel("delay (s)")
            axes.yaxis.set_major_formatter(plain_ticks())
        axes.set_xlabel(f"arrival of the job ({unit})")
        add_legend(figure, np.atleast_1d(places)[0])
        return figure


def division_figures(results: Runs, warmup_s: float = 0.0) -> Iterator[Shown]:
    """Yield queueing delays by priority and by tenant."""
    for division in DIVISIONS:
        caption = f"Queueing delay of jobs by {division.word}"
        yield from shown(f"wait-{division.word}", caption, division_figure, results, division, warmup_s)


def division_figure(results: Runs, division: Division, warmup_s: float = 0.0) -> Figure | None:
    """Return the mean queueing delay and its 99th percentile by group under each scheduler, all seeds together.

    None where jobs are of fewer than two groups.
    """
    names = list(dict.fromkeys(name for runs in results.values() for name in division.masks(runs[0].jobs)))
    if len(names) < 2:
        return None
    waits = {
        scheduler: [_waits(runs, f"{division.word} {name}", warmup_s)[1] for name in names]
        for scheduler, runs in results.items()
    }
    with figure_style():
        figure, places = new_figure(6.4, 4.6, rows=2)
        for axes, part in zip(places, ("mean", "p99"), strict=True):
            for scheduler, of_groups in waits.items():
                value = [describe_values(own).get(part, np.nan) for own in of_groups]
                look = line_look(place_of(scheduler, results)) | {
                    "marker": "o",
                    "markersize": 4,
                    "markevery": None,
                }
                axes.plot(range(len(names)), value, label=plain_label(scheduler), **look)
            axes.set_yscale("symlog", linthresh=1.0)
            axes.set_ylim(bottom=0.0)
            axes.set_ylabel(f"delay, {part} (s)")
            axes.yaxis.set_major_formatter(plain_ticks())
        axes.set_xticks(range(len(names)), [plain_label(name) for name in names])
        axes.set_xlabel(f"{division.word}, {division.order}")
        add_legend(figure, places[0])
        return figure


def use_figures(results: Runs, tasks: Mapping[str, Sequence[str]]) -> Iterator[Shown]:
    """Yield the use of resources under each scheduler, of its first seed."""
    for name, (run, *_) in results.items():
        clause = f"seed {run.summary['seed']}: share of the capacity of all {find_family(run.family).node}s"
        caption = f"Use of resources under {name}, {clause}"
        yield from shown(f"resources-{safe_name(name)}", caption, use_figure, run, tasks)


def use_figure(run: Result, tasks: Mapping[str, Sequence[str]]) -> Figure | None:
    """Return the use of each resource over time, and below it numbers of tasks: the sums of columns by label.

    None where no task held any.
    """
    table, timeline = run.tables.get("resources"), run.tables["timeline"]
    if table is None or not table.num_rows:
        return None
    names = list(dict.fromkeys(table["resource"].to_pylist()))
    used = optional_column(table, "used").reshape(-1, len(names))
    scale, unit = time_scale(float(optional_column(timeline, "time_s")[-1]))
    time = optional_column(timeline, "time_s") / scale
    with figure_style():
        figure, (above, below) = new_figure(6.4, 4.6, rows=2)
        for number, name in enumerate(names):
            above.plot(time, used[:, number], label=plain_label(name.replace("_", " ")), **line_look(number))
        above.set_ylim(0.0, max(1.0, 1.05 * float(used.max())))
        above.set_ylabel("share held")
        for number, (label, columns) in enumerate(tasks.items()):
            count = sum(optional_column(timeline, column) for column in columns)
            below.plot(time, count, label=label, **line_look(number))
        below.set_ylim(bottom=0.0)
        below.set_ylabel("tasks")
        for axis in (below.xaxis, below.yaxis):
            axis.set_major_formatter(plain_ticks())
        below.set_xlabel(f"virtual time ({unit})")
        add_own_legend(below)
        add_own_legend(above)
        return figure


def tenants_figures(results: Runs) -> Iterator[Shown]:
    """Yield the share of the cluster that each tenant held over time under each scheduler, of its first seed."""
    for name, (run, *_) in results.items():
        caption = f"Share of the cluster that each tenant held under {name}, seed {run.summary['seed']}"
        yield from shown(f"tenants-{safe_name(name)}", caption, tenants_figure, run)


def tenants_figure(run: Result) -> Figure | None:
    """Return the share that each tenant's tasks held over time; None where jobs have not two tenants."""
    table = run.tables.get("tenants")
    if table is None or not table.num_rows:
        return None
    names = list(dict.fromkeys(table["tenant"].to_pylist()))
    time_s, share = (optional_column(table, name).reshape(-1, len(names)) for name in ("time_s", "share"))
    scale, unit = time_scale(float(time_s[-1, 0]))
    with figure_style():
        figure, axes = new_figure()
        for number, name in enumerate(names):
            axes.plot(time_s[:, 0] / scale, share[:, number], label=plain_label(name), **line_look(number))
        axes.set_ylim(0.0, max(1.0, 1.05 * float(share.max())))
        axes.set_ylabel("share of the cluster held")
        axes.set_xlabel(f"virtual time ({unit})")
        axes.xaxis.set_major_formatter(plain_ticks())
        add_legend(figure, axes)
        return figure


def crv_figure(result: Result) -> Figure | None:
    """Return the Constraint Resource Vector over time, a panel for each of the `MOST_RESOURCES` in greatest demand.

    None where the run has no such table, or no demand.
    """
    if result.crv is None:
        return None
    resources, code = coded_labels(result.crv["resource"])
    time_s, crv = optional_column(result.crv, "time_s"), optional_column(result.crv, "crv")
    highest = {name: crv[code == i].max(initial=0.0) for i, name in enumerate(resources)}
    chosen = sorted((name for name in resources if highest[name] > 0), key=lambda name: -highest[name])
    if not chosen:
        return None
    most = f" (the {MOST_RESOURCES} of {len(chosen)} most in demand)" if len(chosen) > MOST_RESOURCES else ""
    chosen = chosen[:MOST_RESOURCES]
    scale, unit = time_scale(float(time_s.max()))
    columns = 1 if len(chosen) == 1 else 2
    rows = -(-len(chosen) // columns)
    with figure_style():
        figure, places = new_figure(SIZE[0], 0.7 + 1.25 * rows, rows=rows, columns=columns)
        for place, name in itertools.zip_longest(np.ravel(places), chosen):
            if name is None:
                place.set_axis_off()
                continue
            own = code == resources.index(name)
            look = line_look(0) | {"linewidth": 1.0, "marker": ""}
            place.plot(time_s[own] / scale, crv[own], drawstyle="steps-post", **look)
            place.set_ylim(0.0, 1.05 * highest[name])  # each panel has its own range
            place.set_title(plain_label(name), parse_math=False)
        for place in np.ravel(places)[len(chosen) - columns : len(chosen)]:
            place.set_xlabel(f"virtual time ({unit})")
            place.tick_params(labelbottom=True)
        figure.supylabel(f"demand / supply{most}")
        return figure


def _waits(runs: Sequence[Result], group: str, warmup_s: float) -> tuple[Float64Array, Float64Array]:
    """Return arrival and queueing delay of the jobs of a group that started."""
    parts = []
    for run in runs:
        submit_s, wait_s = optional_column(run.jobs, "submit_s"), optional_column(run.jobs, "wait_s")
        mask = counted(run, group, warmup_s) & np.isfinite(wait_s)
        parts.append((submit_s[mask], wait_s[mask]))
    submits, waits = zip(*parts, strict=True)
    return np.concatenate(submits), np.concatenate(waits)


def _means(edges: Float64Array, x: Float64Array, y: Float64Array) -> Float64Array:
    """Return the mean of the values in each bin, NaN where it has none."""
    count, _ = np.histogram(x, edges)
    total, _ = np.histogram(x, edges, weights=y)
    with np.errstate(invalid="ignore"):
        return total / count
