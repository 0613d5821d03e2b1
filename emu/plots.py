"""Figures of runs for papers: distributions, bars, timelines, curves over a sweep, Gantt charts.

    from emu import plots
    figure = plots.cdf(emu.compare(["sparrow", "hawk"], "yahoo", 15_000), group="short")
    plots.save(figure, "short.pdf")

Each function takes what `emu.run`, `emu.compare` and `emu.sweep` return, a list of results, or paths of run
directories, and returns a matplotlib figure in Emu's one style; ``look=Look(font_size=8, width=3.33)`` changes its text
and size. ``emu plot`` does the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from emu.families.family import Family
from emu.families.registry import find_family
from emu.report.distributions import BANDS, distribution_figure
from emu.report.drawing import Look, figure_paths, looking, write_figure
from emu.report.gantt import job_figure, machines_figure
from emu.report.percentile_plots import against_figure, points_of, ratio_points
from emu.report.plots import Drawing, bars_figure, figures_of, label_of, timeline_figure
from emu.results.comparison import Comparison
from emu.results.measures import Measure
from emu.results.metrics import EVERY_STATISTIC, STATISTICS
from emu.results.result import Result, Runs, values_of
from emu.results.run_groups import axes_of, group_runs
from emu.sweeps.report_input import read_runs
from emu.sweeps.sweep import SweepResult
from workloads.errors import InputError
from workloads.hints import did_you_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Given = Result | Comparison | SweepResult | str | Path | Sequence[Result | str | Path]
"""What is drawn: results, or directories of runs."""
_KINDS = ("cdf", "ccdf", "bars", "timeline", "sweep", "ratio", "gantt")
"""Functions that draw runs of any family."""
__all__ = ["Look", "named", "save", *_KINDS]


def cdf(
    runs: Given,
    metric: str = "",
    group: str = "all",
    *,
    schedulers: Sequence[str] | None = None,
    band: str = "none",
    tail: bool = False,
    look: Look = Look(),  # noqa: B008 a tuple does not change
) -> Figure:
    """Return the distribution of a metric under each scheduler.

    Parameters
    ----------
    runs
        Of one workload on one cluster.
    metric : str
        Empty for completion times; ``wait``, ``slowdown``, ``bounded_slowdown``.
    group : str
        ``all``, or another of the family's: ``short``, ``long``, ``bin-1``.
    schedulers : sequence of str, optional
        Those that are drawn, in this order; by default all.
    band : str
        Over seeds: ``none``, ``range`` (least to greatest) or ``interval`` (95 % confidence of the mean).
    tail : bool
        The share above x over a logarithmic axis, in place of the share up to x.
    look : Look

    Raises
    ------
    InputError
        A name is unknown, the runs cannot be compared, or there is nothing to draw.
    """
    results, family, warmup_s, order = _compared(runs, schedulers)
    _known("metric", metric, family.metrics)
    _known("of", group, {"all", *family.group_titles})
    if band not in BANDS:
        raise InputError(f"band: {band!r} is not one of {', '.join(BANDS)}")
    samples = {n: [values_of(run, metric, group, warmup_s) for run in own] for n, own in results.items()}
    of = family.group_titles.get(group, f"{group} {family.name}")
    share = f"share of {family.heads}{' above' if tail else ''}"
    missing = "have none" if metric else "did not end"
    with _looking(look, order):
        return _something(
            distribution_figure(samples, label_of(metric, of), share, tail=tail, band=band, missing=missing),
            f"{label_of(metric, of)} is above 0 nowhere",
        )


def ccdf(
    runs: Given,
    metric: str = "",
    group: str = "all",
    *,
    schedulers: Sequence[str] | None = None,
    band: str = "none",
    look: Look = Look(),  # noqa: B008
) -> Figure:
    """Return the tail of a distribution under each scheduler: `cdf` with ``tail``."""
    return cdf(runs, metric, group, schedulers=schedulers, band=band, tail=True, look=look)


def bars(
    runs: Given,
    metric: str = "",
    groups: Sequence[str] | None = None,
    statistics: Sequence[str] = STATISTICS,
    *,
    schedulers: Sequence[str] | None = None,
    look: Look = Look(),  # noqa: B008
) -> Figure:
    """Return statistics of each scheduler side by side, a panel for each group; lines are intervals over seeds.

    Parameters
    ----------
    runs, metric, schedulers, look
        As of `cdf`.
    groups : sequence of str, optional
        By default all that the family shows.
    statistics : sequence of str
        Of ``mean``, ``p50``, ``p90``, ``p95``, ``p99``, ``p99.9``, ``max``.

    Raises
    ------
    InputError
        As of `cdf`.
    """
    results, family, _, order = _compared(runs, schedulers)
    measures = _measures(family, metric, statistics)
    with _looking(look, order):
        return _something(
            bars_figure(results, measures, _groups(family, groups, itertools.chain(*results.values()))),
            "no group has any that ended",
        )


def timeline(
    runs: Given,
    *,
    schedulers: Sequence[str] | None = None,
    look: Look = Look(),  # noqa: B008
) -> Figure:
    """Return utilisation and queues over virtual time under each scheduler, of its first seed."""
    results, _, _, order = _compared(runs, schedulers)
    with _looking(look, order):
        return _something(timeline_figure(results), "the runs have no timeline")


def sweep(
    runs: Given,
    metric: str = "",
    groups: Sequence[str] | None = None,
    statistics: Sequence[str] | None = None,
    *,
    along: str = "",
    schedulers: Sequence[str] | None = None,
    look: Look = Look(),  # noqa: B008
) -> Figure:
    """Return statistics against what differs between runs, a line for each scheduler; bars are intervals over seeds.

    Parameters
    ----------
    runs, metric, groups, schedulers, look
        As of `bars`.
    statistics : sequence of str, optional
        By default those that the family shows.
    along : str
        The key, or parameter, of the x axis; by default nodes or load, else that with most values. What else differs
        distinguishes lines.

    Raises
    ------
    InputError
        As of `cdf`; or nothing differs, or not `along`.
    """
    return _against(runs, metric, groups, statistics, along, schedulers, look)


def ratio(
    runs: Given,
    metric: str = "",
    groups: Sequence[str] | None = None,
    statistics: Sequence[str] = ("p50", "p90"),
    *,
    baseline: str = "",
    along: str = "",
    schedulers: Sequence[str] | None = None,
    look: Look = Look(),  # noqa: B008
) -> Figure:
    """Return statistics over those of a baseline, seed by seed, against what differs between runs.

    It is the figure of Hawk (Delgado and others, ATC 2015) and Eagle (SoCC 2016): below 1 a scheduler is faster than
    the baseline. Points are means of the ratios of the seeds, bars their 95 % intervals.

    Parameters
    ----------
    runs, metric, groups, statistics, along, look
        As of `sweep`.
    baseline : str
        The scheduler whose statistics others are divided by; by default the first.
    schedulers : sequence of str, optional
        Those that are drawn, in this order; by default all others.

    Raises
    ------
    InputError
        As of `sweep`; or no other scheduler has run where the baseline has.
    """
    read = _read(runs)
    baseline = baseline or read[0].summary["scheduler"]
    _of_schedulers(read, [baseline])
    if schedulers is not None:
        schedulers = [baseline, *(name for name in schedulers if name != baseline)]
    return _against(read, metric, groups, statistics, along, schedulers, look, baseline)


def _against(
    runs: Given,
    metric: str,
    groups: Sequence[str] | None,
    statistics: Sequence[str] | None,
    along: str,
    schedulers: Sequence[str] | None,
    look: Look,
    baseline: str = "",
) -> Figure:
    """Return statistics, or their ratios to those of a baseline, against what differs between runs."""
    read = _read(runs)
    families = list(dict.fromkeys(run.family for run in read))
    if len(families) > 1:
        raise InputError(f"the runs are of {' and of '.join(families)}; give those of one family")
    family = find_family(families[0])
    grouped = group_runs(_of_schedulers(read, schedulers))
    axes = [axis for axis in axes_of(grouped) if len(axis.values) > 1]
    labels = [axis.label for axis in axes]
    if not labels:
        raise InputError("the runs do not differ in a key that could be an axis; give runs of a sweep")
    if along and along not in labels:
        raise InputError(f"along: the runs do not differ in {along!r}, but in {', '.join(labels)}")
    statistics = statistics or family[Drawing].statistics
    measures, shown = _measures(family, metric, statistics), _groups(family, groups, read)
    points = ratio_points(grouped, baseline, measures, shown) if baseline else points_of(grouped)
    with _looking(look, _order_of(read)):
        return _something(
            against_figure(axes, points, measures, shown, along, baseline), "no group has any that ended"
        )


def gantt(
    run: Result | str | Path,
    *,
    nodes: Sequence[int] | None = None,
    job: int | None = None,
    look: Look = Look(),  # noqa: B008
) -> Figure:
    """Return a Gantt chart of nodes, or of one job, of a run that recorded its tasks (``output.tasks``).

    Parameters
    ----------
    run : Result or path
    nodes : sequence of int, optional
        Nodes, or ports; by default those that ran most.
    job : int, optional
        Its job_id, or coflow_id, in place of nodes.
    look : Look

    Raises
    ------
    InputError
        The run recorded no tasks, or lacks these nodes or this job; or nodes and a job are given.
    """
    if nodes is not None and job is not None:
        raise InputError("nodes and job: give one of them; a chart shows nodes or one job")
    read = _read(run)
    if len(read) > 1:
        raise InputError(f"a Gantt chart shows one run, and {len(read)} are given")
    with _looking(look):
        return machines_figure(read[0], nodes) if job is None else job_figure(read[0], job)


def named(
    runs: Given,
    name: str,
    *,
    schedulers: Sequence[str] | None = None,
    look: Look = Look(),  # noqa: B008
) -> Figure:
    """Return a figure of the page of a comparison by its name, such as ``improvement``, ``speedup`` or ``crv-phoenix``.

    Raises
    ------
    InputError
        The page of these runs has no such figure; the error names those that it has.
    """
    results, _, warmup_s, order = _compared(runs, schedulers)
    with _looking(look, order):
        found = {shown.stem: shown.drawn for shown in figures_of(results, warmup_s)}
    if name not in found:
        raise InputError(f"these runs have no figure {name!r}{did_you_mean(name, [*found, *_KINDS])}")
    return found[name]


def save(figure: Figure, path: str | Path) -> list[Path]:
    """Write a figure by the path's ending, .svg, .png or .pdf; without one an SVG and a PNG.

    Equal figures give equal bytes.

    Raises
    ------
    InputError
        The path has another ending, or its folder does not exist.
    """
    paths = figure_paths(Path(path))
    for one in paths:
        write_figure(figure, one)
    return paths


def _read(given: Given) -> list[Result]:
    """Return the results; those that are given as paths are read."""
    if isinstance(given, Result):
        return [given]
    if isinstance(given, Comparison):
        return [run for runs in given.runs for run in runs]
    if isinstance(given, SweepResult | str | Path):
        return read_runs([given.path if isinstance(given, SweepResult) else given])
    found: list[Result] = []
    for one in given:
        found += [one] if isinstance(one, Result) else read_runs([one])
    if not found:
        raise InputError("no runs are given")
    return found


def _looking(look: Look, order: Sequence[str] = ()) -> AbstractContextManager[None]:
    """Within, figures are drawn for papers: lines have markers, and the look of a scheduler depends on all runs."""
    return looking(look._replace(marks=True), order)


def _order_of(read: Sequence[Result]) -> list[str]:
    """Return the schedulers of all runs, also of those that are not drawn."""
    return list(dict.fromkeys(name for group in group_runs(read) for name in group.results))


def _compared(given: Given, schedulers: Sequence[str] | None) -> tuple[Runs, Family, float, list[str]]:
    """Return results by scheduler, family, warm-up, and all schedulers; the runs may not differ in anything else."""
    read = _read(given)
    groups = group_runs(_of_schedulers(read, schedulers))
    if len(groups) > 1:
        differ = [axis.label for axis in axes_of(groups) if len(axis.values) > 1]
        what = f"differ in {', '.join(differ)}" if differ else "are of different workloads, families or seeds"
        raise InputError(f"the runs {what}: give those that can be compared, or draw a sweep")
    results = groups[0].results
    first = next(iter(results.values()))[0]
    return results, find_family(first.family), first.warmup_s, _order_of(read)


def _of_schedulers(runs: Sequence[Result], schedulers: Sequence[str] | None) -> list[Result]:
    """Return the runs of these schedulers, in this order; all runs without names."""
    if schedulers is None:
        return list(runs)
    known = list(dict.fromkeys(run.summary["scheduler"] for run in runs))
    for name in schedulers:
        if name not in known:
            raise InputError(f"schedulers: no run is of {name!r}{did_you_mean(name, known)}")
    return [run for name in schedulers for run in runs if run.summary["scheduler"] == name]


def _groups(family: Family, groups: Sequence[str] | None, runs: Iterable[Result]) -> list[str]:
    if groups is None:
        return family.shown_groups(run.summary[family.heads] for run in runs)
    for group in groups:
        _known("of", group, {"all", *family.group_titles})
    return list(groups)


def _measures(family: Family, metric: str, statistics: Sequence[str]) -> list[Measure]:
    _known("metric", metric, family.metrics)
    for statistic in statistics:
        _known("statistics", statistic, EVERY_STATISTIC)
    return [Measure(metric, statistic) for statistic in statistics]


def _known(what: str, name: str, names: Iterable[str]) -> None:
    """Refuse an unknown name."""
    if name not in names:
        raise InputError(f"{what}: unknown name {name!r}{did_you_mean(name, [one for one in names if one])}")


def _something(figure: Figure | None, why: str) -> Figure:
    if figure is None:
        raise InputError(f"there is nothing to draw: {why}")
    return figure
