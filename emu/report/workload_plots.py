"""The figure of a workload: arrivals, sizes and load of its jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from emu.report.drawing import (
    COLOURS,
    LEFT_QUANTILE,
    add_own_legend,
    figure_style,
    line_look,
    new_figure,
    plain_label,
    time_scale,
)
from workloads.info import Distribution, distributions
from workloads.transform.primitives import Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 9.6, 6.6  # inches
_CDF_POINTS = 512
_LOG_FROM = 20  # values that differ by more than this factor are spread over a logarithmic axis
_AMOUNTS = {"task_seconds": "task-seconds", "bytes": "bytes"}


def workload_figure(workload: Workload, description: dict[str, Any]) -> Figure:
    """Return a figure of a workload: arrivals, the load, and distributions by class.

    Parameters
    ----------
    workload
        Jobs, DAGs or coflows.
    description : dict
        Of `workloads.info.describe`; the load is drawn for its numbers of nodes (its speeds of ports).
    """
    with figure_style():
        figure, grid = new_figure(_WIDTH, _HEIGHT, rows=2, columns=3, share_x=False)
        panels = grid.ravel()
        figure.suptitle(_title(description)).set_parse_math(False)
        _draw_arrivals(panels[0], panels[1], description)
        _draw_load(panels[2], description)
        for panel, distribution in zip(panels[3:], distributions(workload), strict=True):
            _draw_cdf(panel, distribution)
        return figure


def _title(d: dict[str, Any]) -> str:
    if d["family"] == "coflows":
        return f"{d['name']}: {d['coflows']:,} coflows, {d['flows']:,} flows, {d['ports']:,} ports"
    return f"{d['name']}: {d['jobs']:,} jobs, {d['tasks']:,} tasks"


def _draw_arrivals(counts: Any, amounts: Any, d: dict[str, Any]) -> None:
    """Draw the arrivals in each span of time, and beside it their work or bytes."""
    of = d["arrivals"]
    names = [name for name in of if name not in ("start_s", "bin_s")]
    edges_s = of["start_s"] + of["bin_s"] * np.arange(len(of[names[0]]) + 1)
    scale, unit = time_scale(float(edges_s[-1]))
    width = f"{of['bin_s'] / scale:.3g} {unit}"
    for place, name, colour in zip((counts, amounts), names, COLOURS, strict=False):
        place.stairs(of[name], edges_s / scale, fill=True, color=colour, alpha=0.7)
        place.set_ylim(bottom=0.0)
        place.set_xlabel(f"arrival ({unit})")
        place.set_ylabel(f"{_AMOUNTS.get(name, name)} per {width}")


def _draw_load(place: Any, d: dict[str, Any]) -> None:
    """Draw the offered load against the number of nodes, or the speed of a port."""
    coflows = d["family"] == "coflows"
    place.set_xlabel("speed of a port (Gbps)" if coflows else "one-slot nodes")
    place.set_ylabel("offered load")
    loads = {float(k): v for k, v in (d["offered_load"] or {}).items() if k != "stated"}
    if not loads:
        place.text(0.5, 0.5, "all arrive at once", ha="center", va="center", transform=place.transAxes)
        return
    product = float(np.prod(next(iter(loads.items()))))  # load times capacity is the same everywhere
    x = np.geomspace(min(loads) / 1.5, max(loads) * 1.5, 64)
    place.plot(x / (1e9 if coflows else 1), product / x, **line_look(0))
    at = np.array(sorted(loads))
    place.plot(at / (1e9 if coflows else 1), product / at, "o", color=COLOURS[0], markersize=4)
    place.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
    if max(loads) > _LOG_FROM * min(loads):
        place.set_xscale("log")
    place.set_ylim(bottom=0.0)


def _draw_cdf(place: Any, of: Distribution) -> None:
    """Draw the share of jobs (tasks, coflows) with a value up to x, a line per class."""
    for number, (name, values) in enumerate(of.values.items()):
        if len(values):
            share = np.linspace(0.0, 1.0, min(_CDF_POINTS, len(values) + 1))
            x = np.quantile(values, share, method="inverted_cdf")
            place.plot(x, share, drawstyle="steps-pre", label=plain_label(name), **line_look(number))
    every = of.values["all"]
    positive = every[every > 0]
    if len(positive) and positive.max() > _LOG_FROM * (least := float(np.quantile(positive, LEFT_QUANTILE))):
        place.set_xscale("log")  # smaller values are left of the axis
        place.set_xlim(left=least / 1.2)
    place.set_ylim(0.0, 1.02)
    place.set_xlabel(of.label)
    place.set_ylabel(f"share of {of.of}")
    if len(of.values) > 1:
        add_own_legend(place)
