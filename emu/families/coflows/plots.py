"""Figures of coflows: completion times, speed-ups, learning, sizes as they were estimated, load of the switch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from emu.columns import numbers
from emu.directories.run_directory import safe_name
from emu.families.coflows.comparison import Runs, coflow_speedups, counted, job_speedups, learning_shares
from emu.families.coflows.deadlines import gains_of, slack_used
from emu.families.coflows.metrics import BINS, coflow_values
from emu.report.distributions import distribution_figure
from emu.report.drawing import (
    COLOURS,
    Shown,
    add_legend,
    figure_style,
    label_panels,
    line_look,
    new_figure,
    place_of,
    plain_label,
    share_curve,
)
from emu.report.hover import GOES_ON
from emu.report.narrow_screens import shown
from emu.report.scales import mark_log
from emu.results.metrics import Float64Array
from emu.results.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPEEDUP_LIMITS = (0.1, 100.0)
"""The range of the axis of speed-ups: curves enter and leave the figure where values lie beyond it."""


def coflow_figures(results: Runs, warmup_s: float = 0.0) -> list[Shown]:
    """Return the figures of runs that are compared; those that have nothing to show are left out."""
    first, *others = results
    figures: list[tuple[str, Callable[[], Figure | None], str]] = [
        ("cdf-cct", partial(cdf_figure, results, warmup_s), "Distribution of coflow completion times"),
        (
            "learning",
            partial(learning_figure, results, warmup_s),
            "Share of the completion time until the scheduler knew what it needs, of the coflows that were not known "
            "when they arrived",
        ),
    ]
    figures.append(
        (
            "deadlines",
            partial(deadlines_figure, results, warmup_s),
            "Coflows with a deadline that are admitted, and that ended in time, by the share of their time that passed",
        )
    )
    if others:
        figures += [
            (
                "gains",
                partial(gains_figure, results),
                f"Gain over {first} in the share of deadlines met, run by run: (share - its share) / its share",
            ),
            (
                "speedup",
                partial(speedup_figure, results, coflow_speedups_of("all", warmup_s)),
                f"Speed-up of {first}, coflow by coflow: completion time under another scheduler over that under it",
            ),
            (
                "speedup-bins",
                partial(bins_figure, results, warmup_s),
                f"Speed-up of {first} by width and size of the coflow",
            ),
            (
                "speedup-jobs",
                partial(speedup_figure, results, lambda a, b: job_speedups(a, b, warmup_s)),
                "The same of jobs that compute too, and shuffle for a drawn share of their time",
            ),
        ]
    figures += [
        (
            f"estimates-{safe_name(name)}",
            partial(estimates_figure, runs[0], warmup_s),
            f"Size of coflows as {name} estimated it, seed {runs[0].summary['seed']}, against what it is",
        )
        for name, runs in results.items()
    ]
    return [one for stem, make, caption in figures for one in shown(stem, make, caption)]


def coflow_speedups_of(group: str, warmup_s: float) -> Callable[[Result, Result], Float64Array]:
    """Return the function that gives the speed-ups of a group of coflows, from the first's and another's result."""
    return lambda first, other: coflow_speedups(first, other, group, warmup_s)


def cdf_figure(results: Runs, warmup_s: float = 0.0) -> Figure | None:
    """Return the distribution of completion times under each scheduler, all seeds together, log x."""
    samples = {
        name: [coflow_values(run, "", "all", warmup_s) for run in runs] for name, runs in results.items()
    }
    return distribution_figure(samples, "coflow completion time (s)", "share of coflows")


def speedup_figure(results: Runs, measure: Callable[[Result, Result], Float64Array]) -> Figure | None:
    """Return the distribution of speed-ups of the first scheduler over each other, all seeds together, log x.

    Parameters
    ----------
    results : mapping
    measure : callable
        From a result of the first and one of another scheduler to speed-ups.
    """
    samples = _speedups(results, measure)
    if not samples:
        return None
    with figure_style():
        figure, axes = new_figure()
        _draw_speedups(axes, samples, list(results))
        axes.set_xlabel(f"speed-up of {next(iter(results))}", parse_math=False)
        axes.set_ylabel("share")
        add_legend(figure, axes)
        return figure


def bins_figure(results: Runs, warmup_s: float = 0.0) -> Figure | None:
    """Return the distributions of speed-ups by bin, side by side two and two; None where no bin has any."""
    samples = {name: _speedups(results, coflow_speedups_of(name, warmup_s)) for name in BINS}
    if not any(samples.values()):
        return None
    with figure_style():
        figure, places = new_figure(9.0, 6.0, rows=2, columns=2)
        for axes, (name, found) in zip(np.ravel(places), samples.items(), strict=True):
            axes.set_title(f"{name}: {BINS[name]}")
            _draw_speedups(axes, found, list(results))
            if not found:
                axes.text(0.5, 0.5, "no coflows", ha="center", transform=axes.transAxes)
        label_panels(places, f"speed-up of {next(iter(results))}", "share of coflows")
        drawn = [axes for axes, found in zip(np.ravel(places), samples.values(), strict=True) if found]
        add_legend(figure, max(drawn, key=lambda axes: len(axes.lines)))
        return figure


def learning_figure(results: Runs, warmup_s: float = 0.0) -> Figure | None:
    """Return the distribution of the share of completion times that learning took; None where nothing was learned."""
    samples = dict(learning_shares(results, warmup_s))
    if not samples:
        return None
    with figure_style():
        figure, axes = new_figure()
        for name, share in samples.items():
            axes.plot(
                *share_curve(np.minimum(share, 1.0)),
                gid=GOES_ON,
                label=plain_label(name),
                **line_look(place_of(name, results)),
            )
        axes.set_xlim(0.0, 1.0)
        axes.set_ylim(0.0, 1.0)
        axes.set_xlabel("share of the completion time until learned")
        axes.set_ylabel("share of coflows")
        add_legend(figure, axes)
        return figure


def deadlines_figure(results: Runs, warmup_s: float = 0.0) -> Figure | None:
    """Return the share of coflows that are admitted, and that ended in time, against the time; None without deadlines.

    Time is the share that has passed of that from the arrival to the deadline.
    """
    titles = {"admitted_s": "admitted", "finish_s": "ended in time"}
    samples = {
        at: {
            n: np.concatenate([slack_used(r.coflows, at, warmup_s) for r in runs])
            for n, runs in results.items()
        }
        for at in titles
    }
    shown = [at for at in titles if any(np.isfinite(used).any() for used in samples[at].values())]
    if not shown:
        return None
    with figure_style():
        figure, places = new_figure(4.8 * len(shown), 3.8, columns=len(shown))
        for axes, at in zip(np.ravel(places), shown, strict=True):
            for name, used in samples[at].items():
                if not np.isfinite(used).any():
                    continue
                steps = np.sort(used[used <= 1.0])
                x = np.concatenate([[0.0], steps, [1.0]])
                y = np.concatenate([np.arange(len(steps) + 1), [len(steps)]]) / max(len(used), 1)
                axes.step(
                    x,
                    y,
                    where="post",
                    gid=GOES_ON,
                    label=plain_label(name),
                    **line_look(place_of(name, results)),
                )
            axes.set_title(titles[at])
            axes.set_xlim(0.0, 1.0)
            axes.set_ylim(0.0, 1.0)
        label_panels(places, "share of the time to the deadline", "share of coflows with a deadline")
        add_legend(figure, max(np.ravel(places), key=lambda axes: len(axes.lines)))
        return figure


def gains_figure(results: Runs) -> Figure | None:
    """Return the distribution over runs of the gain in deadlines met over the first scheduler; None of one run."""
    found = {name: gains_of(results, name, "acceptance_rate") for name in list(results)[1:]}
    samples = {name: np.array(gains) for name, gains in found.items() if gains}
    if not samples:
        return None
    with figure_style():
        figure, axes = new_figure()
        axes.axvline(0.0, color="#888888", linewidth=1.0)
        for name, gains in samples.items():
            axes.plot(
                *share_curve(gains),
                gid=GOES_ON,
                label=plain_label(name),
                **line_look(place_of(name, results)),
            )
        axes.set_ylim(0.0, 1.0)
        axes.set_xlabel(f"gain over {next(iter(results))}", parse_math=False)
        axes.set_ylabel("share of runs")
        add_legend(figure, axes)
        return figure


def estimates_figure(result: Result, warmup_s: float = 0.0) -> Figure | None:
    """Return estimated against actual sizes, both log; None where none was estimated."""
    mask = counted(result.coflows, "all", warmup_s)
    size = numbers(result.coflows, "size_bytes")[mask] / 1e6
    estimated = numbers(result.coflows, "estimated_bytes")[mask] / 1e6
    known = np.isfinite(estimated) & (estimated > 0)
    if not known.any():
        return None
    least, most = (f(size[known].tolist() + estimated[known].tolist()) for f in (min, max))
    with figure_style():
        figure, axes = new_figure(4.6, 4.4)
        axes.plot([least, most], [least, most], color="#888888", linewidth=1.0)
        axes.plot(
            size[known],
            estimated[known],
            linestyle="none",
            marker="o",
            markersize=3,
            alpha=0.6,
            color=COLOURS[0],
        )
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            mark_log(axis, least, most)
        axes.set_xlabel("size (MB)")
        axes.set_ylabel("estimated size (MB)")
        return figure


def _draw_speedups(axes: Any, samples: Mapping[str, Float64Array], names: list[str]) -> None:
    """Draw distributions of speed-ups, and a line at 1."""
    axes.axvline(1.0, color="#888888", linewidth=1.0)
    for name, ratio in samples.items():
        axes.plot(
            *share_curve(ratio), gid=GOES_ON, label=plain_label(name), **line_look(place_of(name, names))
        )
    axes.set_xscale("log")
    axes.set_xlim(*SPEEDUP_LIMITS)
    mark_log(axes.xaxis, *SPEEDUP_LIMITS)
    axes.set_ylim(0.0, 1.0)


def _speedups(results: Runs, measure: Callable[[Result, Result], Float64Array]) -> dict[str, Float64Array]:
    first, *others = results
    found = {
        name: np.concatenate([measure(a, b) for a, b in zip(results[first], results[name], strict=True)])
        for name in others
    }
    return {name: ratio for name, ratio in found.items() if len(ratio)}
