"""Figures of coflows: completion times, speed-ups, learning, deadlines, estimated sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from emu.directories.run_directory import safe_name
from emu.families.coflows.deadlines import gains_of, slack_used
from emu.families.coflows.metrics import BINS, learning_share, was_learned
from emu.families.coflows.tables import job_speedups
from emu.report.distributions import distribution_figure, draw_shares, paired_samples, shares_figure
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
    shown,
)
from emu.report.hover import GOES_ON
from emu.report.scales import mark_log
from emu.results.metrics import Float64Array
from emu.results.paired_comparison import single_factors
from emu.results.result import Result, Runs, counted, values_of
from workloads.arrow import optional_column

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPEEDUP_AXIS: dict[str, Any] = {"mark": 1.0, "limits": (0.1, 100.0), "log": True}
"""The axis of speed-ups: curves enter and leave the figure where values lie beyond its limits."""


def coflow_figures(results: Runs, warmup_s: float = 0.0) -> Iterator[Shown]:
    """Yield the figures of runs that are compared; those that have nothing to show are left out."""
    first, *others = results
    caption = "Distribution of coflow completion times"
    yield from shown("cdf-cct", caption, cdf_figure, results, warmup_s)
    caption = "Share of the completion time until the scheduler knew what it needs, of the coflows that were not known "
    yield from shown("learning", f"{caption}when they arrived", learning_figure, results, warmup_s)
    caption = "Coflows with a deadline that are admitted, and that ended in time"
    clause = ", by the share of their time that passed"
    yield from shown("deadlines", caption + clause, deadlines_figure, results, warmup_s)
    if others:
        caption = (
            f"Gain over {first} in the share of deadlines met, run by run: (share - its share) / its share"
        )
        yield from shown("gains", caption, gains_figure, results)
        caption = f"Speed-up of {first}, coflow by coflow: completion time under another scheduler over that under it"
        yield from shown("speedup", caption, speedup_figure, results, factors_of_group("all", warmup_s))
        caption = f"Speed-up of {first} by width and size of the coflow"
        yield from shown("speedup-bins", caption, bins_figure, results, warmup_s)
        caption = "The same of jobs that compute too, and shuffle for a drawn share of their time"
        measure = partial(job_speedups, warmup_s=warmup_s)
        yield from shown("speedup-jobs", caption, speedup_figure, results, measure)
    for name, (run, *_) in results.items():
        caption = f"Size of coflows as {name} estimated it, seed {run.summary['seed']}, against what it is"
        yield from shown(f"estimates-{safe_name(name)}", caption, estimates_figure, run, warmup_s)


def factors_of_group(group: str, warmup_s: float) -> Callable[[Result, Result], Float64Array]:
    """Return the function from the first's and another's result to the speed-ups of a group of coflows."""
    return partial(single_factors, group=group, warmup_s=warmup_s)


def cdf_figure(results: Runs, warmup_s: float = 0.0) -> Figure | None:
    """Return the distribution of completion times under each scheduler, all seeds together, log x."""
    samples = {name: [values_of(run, "", "all", warmup_s) for run in runs] for name, runs in results.items()}
    return distribution_figure(samples, "coflow completion time (s)", "share of coflows")


def speedup_figure(results: Runs, measure: Callable[[Result, Result], Float64Array]) -> Figure | None:
    """Return the distribution of speed-ups of the first scheduler over each other, all seeds together, log x."""
    x_label = f"speed-up of {next(iter(results))}"
    return shares_figure(paired_samples(results, measure), results, x_label, "share", **SPEEDUP_AXIS)


def bins_figure(results: Runs, warmup_s: float = 0.0) -> Figure | None:
    """Return the distributions of speed-ups by bin, in two rows; None where no bin has any."""
    samples = {name: paired_samples(results, factors_of_group(name, warmup_s)) for name in BINS}
    if not any(samples.values()):
        return None
    with figure_style():
        figure, places = new_figure(9.0, 6.0, rows=2, columns=2)
        for axes, (name, found) in zip(np.ravel(places), samples.items(), strict=True):
            axes.set_title(f"{name}: {BINS[name]}")
            draw_shares(axes, found, results, **SPEEDUP_AXIS)
            if not found:
                axes.text(0.5, 0.5, "no coflows", ha="center", transform=axes.transAxes)
        label_panels(places, f"speed-up of {next(iter(results))}", "share of coflows")
        drawn = [axes for axes, found in zip(np.ravel(places), samples.values(), strict=True) if found]
        add_legend(figure, max(drawn, key=lambda axes: len(axes.lines)))
        return figure


def learning_figure(results: Runs, warmup_s: float = 0.0) -> Figure | None:
    """Return the distribution of the share of completion times that learning took; None where nothing was learned."""
    found = {
        name: [learning_share(r.coflows)[was_learned(r.coflows) & counted(r, "all", warmup_s)] for r in runs]
        for name, runs in results.items()
    }
    samples = {n: np.minimum(np.concatenate(own), 1.0) for n, own in found.items() if any(map(len, own))}
    x_label = "share of the completion time until learned"
    return shares_figure(samples, results, x_label, "share of coflows", limits=(0.0, 1.0))


def deadlines_figure(results: Runs, warmup_s: float = 0.0) -> Figure | None:
    """Return the share of coflows that are admitted, and that ended in time; None without deadlines.

    Against the share of the time from arrival to deadline that has passed.
    """
    titles = {"admitted_s": "admitted", "finish_s": "ended in time"}
    samples = {
        at: {
            n: np.concatenate([slack_used(r.coflows, at, warmup_s) for r in runs])
            for n, runs in results.items()
        }
        for at in titles
    }
    found = [at for at in titles if any(np.isfinite(used).any() for used in samples[at].values())]
    if not found:
        return None
    with figure_style():
        figure, places = new_figure(4.8 * len(found), 3.8, columns=len(found))
        for axes, at in zip(np.ravel(places), found, strict=True):
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
    return shares_figure(samples, results, f"gain over {next(iter(results))}", "share of runs", mark=0.0)


def estimates_figure(result: Result, warmup_s: float = 0.0) -> Figure | None:
    """Return estimated against actual sizes, both log; None where none was estimated."""
    mask = counted(result, "all", warmup_s)
    size = optional_column(result.coflows, "size_bytes")[mask] / 1e6
    estimated = optional_column(result.coflows, "estimated_bytes")[mask] / 1e6
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
