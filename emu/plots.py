"""Figures of results, drawn the same way every time: equal results give equal bytes of SVG and PNG."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from emu.columns import numbers
from emu.metrics import after_warmup, class_is_long
from emu.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by colour-blind readers too; line styles tell the same once more.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
STYLES = ("-", "--", "-.", ":")
_CDF_POINTS = 512
_LEFT = 0.002  # a job of a millisecond must not take half of a logarithmic axis
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "emu",
    "svg.fonttype": "none",
    "font.size": 10.0,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
}


def cdf_figure(results: Mapping[str, list[Result]], job_class: str, warmup_s: float = 0.0) -> Figure | None:
    """Return the distribution of completion times of a class under each scheduler, all seeds together, log x.

    None when no job of the class finished in more than no time.
    """
    samples = {name: _times(runs, job_class, warmup_s) for name, runs in results.items()}
    if not any(len(s) for s in samples.values()):
        return None
    with _style():
        figure, axes = _figure(6.4, 3.8)
        for number, (name, jct_s) in enumerate(samples.items()):
            if len(jct_s) == 0:
                continue
            share = np.linspace(0.0, 1.0, min(_CDF_POINTS, len(jct_s) + 1))
            axes.plot(np.quantile(jct_s, share), share, label=_plain(name), **_line(number))
        axes.set_xscale("log")
        axes.set_xlim(left=min(np.quantile(s, _LEFT) for s in samples.values() if len(s)))
        axes.set_ylim(0.0, 1.0)
        axes.set_xlabel(f"completion time of {job_class} jobs (s)")
        axes.set_ylabel("share of jobs")
        _legend(axes)
        return figure


def percentiles_figure(
    lines: Mapping[str, Mapping[float, Mapping[str, Any]]], axis: str, log_x: bool = False
) -> Figure | None:
    """Return p50, p90 and p99 of completion times of short and long jobs against an axis, one line a scheduler.

    Parameters
    ----------
    lines : mapping
        Label to {value on the axis: the ``jobs`` part of a summary}.
    axis : str
        What the axis is.
    log_x : bool
        Whether its values are spread over scales.

    None when no class has jobs.
    """
    summaries = [jobs for points in lines.values() for jobs in points.values()]
    classes = [name for name in ("short", "long") if any(name in jobs for jobs in summaries)]
    if not classes:
        return None
    shown = ("p50", "p90", "p99")
    with _style():
        figure, axes = _figure(9.0, 2.7 * len(classes) + 0.4, rows=len(classes), columns=len(shown))
        for row, job_class in zip(np.atleast_2d(axes), classes, strict=True):
            for place, statistic in zip(row, shown, strict=True):
                for number, (label, points) in enumerate(lines.items()):
                    at = sorted(x for x in points if statistic in points[x].get(job_class, {}))
                    y = [points[x][job_class][statistic] for x in at]
                    place.plot(at, y, label=_plain(label), marker="o", markersize=3.5, **_line(number))
                place.set_yscale("log")
                place.set_title(f"{statistic}, {job_class} jobs", fontsize=10)
                if log_x:
                    place.set_xscale("log")
            row[0].set_ylabel("completion time (s)")
        for place in np.atleast_2d(axes)[-1]:
            place.set_xlabel(axis)
        _legend(np.atleast_2d(axes)[0][0])
        return figure


def lines_figure(lines: Mapping[str, list[tuple[float, float]]], x_label: str, y_label: str) -> Figure:
    """Return (x, y) points of several schedulers as lines over two logarithmic axes."""
    with _style():
        figure, axes = _figure(6.4, 3.8)
        for index, (name, points) in enumerate(lines.items()):
            x, y = zip(*sorted(points), strict=True)
            axes.plot(x, y, marker="o", markersize=4, label=_plain(name), **_line(index))
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        _legend(axes)
        return figure


def timeline_figure(result: Result) -> Figure | None:
    """Return utilisation and, below it, queued tasks by class over virtual time; None if there is nothing."""
    data = {name: numbers(result.timeline, name) for name in result.timeline.column_names}
    if len(data["time_s"]) == 0:
        return None
    scale, unit = _time_scale(float(data["time_s"][-1]))
    time = data["time_s"] / scale
    with _style():
        figure, (upper, lower) = _figure(6.4, 4.4, rows=2)
        upper.fill_between(time, data["utilisation"], color=COLOURS[0], alpha=0.25, linewidth=0)
        upper.plot(time, data["utilisation"], color=COLOURS[0], linewidth=1.2)
        upper.set_ylim(0.0, 1.05)
        upper.set_ylabel("utilisation")
        for number, name in enumerate(("short", "long")):
            lower.plot(time, data[f"queued_{name}"], label=name, drawstyle="steps-post", **_line(number))
        lower.set_ylim(bottom=0.0)
        lower.set_ylabel("queued tasks")
        lower.set_xlabel(f"virtual time ({unit})")
        _legend(lower)
        return figure


def save_figure(figure: Figure, stem: Path) -> list[str]:
    """Write ``stem.svg`` and ``stem.png`` and return the two names."""
    svg, png = stem.with_name(stem.name + ".svg"), stem.with_name(stem.name + ".png")
    svg.write_text(to_svg(figure), encoding="utf-8")
    png.write_bytes(to_png(figure))
    return [svg.name, png.name]


def to_svg(figure: Figure) -> str:
    """Return a figure as an SVG element, without a date."""
    out = io.StringIO()
    with _style():
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def to_png(figure: Figure) -> bytes:
    """Return a figure as PNG."""
    out = io.BytesIO()
    with _style():
        figure.savefig(out, format="png", dpi=150, metadata={"Software": None})
    return out.getvalue()


def _style() -> AbstractContextManager[None]:
    import matplotlib as mpl

    # From matplotlib's own defaults: a matplotlibrc on this machine must not change the figures.
    style: dict[Any, Any] = {k: v for k, v in mpl.rcParamsDefault.items() if k != "backend"}
    return mpl.rc_context(style | _STYLE)


def _figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Figure, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # no window system is asked, whatever the user's backend is
    return figure, figure.subplots(rows, columns, sharex=rows > 1)


def _times(runs: list[Result], job_class: str, warmup_s: float) -> np.ndarray:
    parts = []
    for run in runs:
        jct_s = numbers(run.jobs, "jct_s")
        mask = after_warmup(numbers(run.jobs, "submit_s"), warmup_s) & (jct_s > 0)
        if job_class != "all":
            mask &= class_is_long(run.jobs) == (job_class == "long")
        parts.append(jct_s[mask])
    return np.concatenate(parts)


def _line(number: int) -> dict[str, Any]:
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": STYLES[number % len(STYLES)],
        "linewidth": 1.6,
    }


def _legend(axes: Any) -> None:
    legend = axes.legend(loc="best", handlelength=3.0)
    for text in legend.get_texts():
        text.set_parse_math(False)  # a name is a name, whatever signs are in it


def _plain(name: str) -> str:
    return f" {name}" if name.startswith("_") else name  # matplotlib hides labels that start with _


def _time_scale(seconds: float) -> tuple[float, str]:
    for scale, unit, least in (
        (86400.0, "days", 3 * 86400.0),
        (3600.0, "h", 3 * 3600.0),
        (60.0, "min", 600.0),
    ):
        if seconds >= least:
            return scale, unit
    return 1.0, "s"
