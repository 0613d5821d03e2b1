"""The options of commands that read runs: ``emu explain``, ``timeline``, ``plot``, ``report``."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import NamedTuple

WIDTHS = {"column": 3.33, "page": 7.0}
"""Inches of a column, and of the page, of a paper in two columns."""
BOTH = ("schedulers",)


class Kind(NamedTuple):
    """A kind of figure: its content, and the options that it takes."""

    about: str
    options: tuple[str, ...]


KINDS = {
    "cdf": Kind("distribution of a metric", (*BOTH, "metric", "of", "band")),
    "ccdf": Kind("its tail", (*BOTH, "metric", "of", "band")),
    "bars": Kind("statistics side by side", (*BOTH, "metric", "of", "statistics")),
    "timeline": Kind("utilisation and queues over time", BOTH),
    "sweep": Kind("statistics against what differs", (*BOTH, "metric", "of", "statistics", "along")),
    "ratio": Kind("those over a baseline's", (*BOTH, "metric", "of", "statistics", "along", "baseline")),
    "gantt": Kind("tasks of nodes, or of one job", ("nodes", "job")),
}
"""Of ``emu plot``; besides, each figure of a page by its name."""
PLOT_OPTIONS = tuple(dict.fromkeys(name for kind in KINDS.values() for name in kind.options))


def add_explain(explain: ArgumentParser) -> None:
    """Add the options of ``emu explain``."""
    explain.add_argument("folder", metavar="RUN_DIR")
    explain.add_argument(
        "job", metavar="JOB", nargs="?", help="its job_id, or coflow_id; without it all are summed up"
    )
    explain.add_argument(
        "--beside", metavar="RUN_DIR", help="another run of the same workload, to compare with"
    )
    explain.add_argument(
        "--details", action="store_true", help="print the whole chain, and each task or flow, too"
    )
    explain.add_argument(
        "--json", action="store_true", help="print the explanation, with its details, as JSON"
    )


def add_timeline(timeline: ArgumentParser) -> None:
    """Add the options of ``emu timeline``."""
    timeline.add_argument("folder", metavar="RUN_DIR")
    timeline.add_argument(
        "--out", metavar="FILE", help="by default NAME-trace.json, NAME that of the run directory"
    )
    timeline.add_argument("--nodes", metavar="A-B,C", help="only these nodes, or ports")
    timeline.add_argument("--jobs", metavar="A-B,C", help="only these jobs, or coflows")


def add_report(report: ArgumentParser) -> None:
    """Add the options of ``emu report``."""
    report.add_argument("folders", metavar="RUN_DIR", nargs="+")
    report.add_argument("--out", metavar="FILE", help="by default report.html in the run directory")


def add_plot(plot: ArgumentParser) -> None:
    """Add the options of ``emu plot``."""
    add = plot.add_argument
    kinds = "; ".join(f"{name}: {kind.about}" for name, kind in KINDS.items())
    add("folders", metavar="RUN_DIR", nargs="+")
    add("--kind", default="cdf", help=f"{kinds}; or the name of a figure of their page (cdf)")
    add(
        "--out",
        metavar="FILE",
        help="ends in .pdf, .svg or .png; without an ending both of the last two (the kind)",
    )
    add("--metric", metavar="NAME", help="completion, wait, slowdown or bounded_slowdown (completion)")
    add("--of", metavar="GROUP,…", help="all, short, long, bin-1 and so on; one for cdf and ccdf (all)")
    add("--schedulers", metavar="A,B,…", help="those that are drawn, in this order (all)")
    add("--statistics", metavar="A,B,…", help="mean, p50, p90, p95, p99, p99.9, max")
    add(
        "--band",
        metavar="none|range|interval",
        help="over seeds: least to greatest, or 95 %% confidence (none)",
    )
    add("--along", metavar="KEY", help="the key or parameter of the x axis of a sweep (nodes, or load)")
    add("--baseline", metavar="NAME", help="the scheduler that ratios are to (the first)")
    add("--nodes", metavar="A-B,C", help="of a Gantt chart (those that ran most)")
    add("--job", metavar="ID", help="of a Gantt chart, in place of nodes")
    add("--width", metavar="column|page|INCHES", help="of the figure; column is 3.33, page 7 inches")
    add("--height", metavar="INCHES", help="of the figure (in proportion to the width)")
    add("--font-size", metavar="POINTS", help="of all text (9; below 4.6 inches of width 7.5)")
