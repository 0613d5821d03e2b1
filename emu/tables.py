"""Results as text for a terminal: pure functions from numbers to lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from emu.keys import COFLOWS
from emu.metrics import CLASSES, SPLIT, STATISTICS, part_of
from emu.seeds import summary_alike, summary_head
from workloads.units import format_duration

TIMES = "\N{MULTIPLICATION SIGN}"
_ASCII = str.maketrans({TIMES: "x", "±": "~", "→": "->", "≤": "<=", "…": "...", "µ": "u"})


def to_ascii(text: str) -> str:
    """Return text for an output that is not UTF-8: our own signs in ASCII, others as ``?``."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def number(value: float | None) -> str:
    """Return four significant digits, in full from 1,000 on and without exponents; ``-`` for none.

    Examples
    --------
    >>> number(0.00123456), number(12.3456), number(117452.4), number(None)
    ('0.001235', '12.35', '117,452', '-')
    """
    if value is None or not math.isfinite(value):
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if value != 0 and abs(value) < 1e-4:
        return f"{value:.3e}"
    return f"{value:.4g}"


def with_error(value: float, half: float, show: str = "") -> str:
    """Return ``value±half``, or only the value where there is no interval, as where all seeds gave the same."""
    text = show or number(value)
    return f"{text}±{_two_digits(half)}" if math.isfinite(half) and half > 0 else text


def _two_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:.2g}"


def align(rows: Sequence[Sequence[str]], right_from: int = 1) -> list[str]:
    """Return rows of cells as lines; columns from `right_from` on are flush right."""
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(max(map(len, rows)))]
    lines = []
    for row in rows:
        cells = [
            c.ljust(w) if i < right_from else c.rjust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=False))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def render_summary(summary: Mapping[str, Any]) -> str:
    """Return the summary of a run, or of the runs of several seeds, as text."""
    if COFLOWS in summary:
        from emu import coflow_tables

        return coflow_tables.render_summary(summary)
    jobs, engine = summary["jobs"], summary["engine"]
    intervals = summary.get("confidence_95", {}).get("jobs", {})
    lines = [summary_head(summary), ""]
    rows = [["job completion time (s)", "jobs", *STATISTICS]]
    for name in (*CLASSES, *SPLIT):
        if part := part_of(jobs, name):
            rows.append([f"  {name}", *statistics_cells(part, part_of(intervals, name))])
    lines += [*align(rows), *_constraint_tables(jobs, intervals)]
    facts = []
    if "makespan_s" in jobs:
        facts.append(f"makespan {format_duration(jobs['makespan_s'])}")
    if "jain_index" in jobs:
        facts.append(f"Jain index of slowdown {jobs['jain_index']:.3f}")
    if "unfinished" in jobs:
        facts.append(f"{jobs['unfinished']:,.0f} jobs did not finish")
    lines += ["", ", ".join(facts)] if facts else []
    lines.append(
        f"{engine['tasks']:,.0f} tasks, {engine['events']:,.0f} events "
        f"in {format_duration(engine['wall_s'])} ({engine['tasks_per_s']:,.0f} tasks/s)"
    )
    if "decision_latency" in summary:
        spread = summary["decision_latency"]["all"]
        shown = ", ".join(f"{name} {format_duration(spread[name])}" for name in ("p50", "p90", "p99", "max"))
        lines.append(f"decision latency: {shown}")
    if "verdict" in summary.get("live", {}):
        lines.append(summary["live"]["verdict"])
    counted = {k: v for k, v in summary.get("counters", {}).items() if v}
    if counted:
        lines.append(", ".join(f"{name.replace('_', ' ')} {value:,.0f}" for name, value in counted.items()))
    return "\n".join(lines) + "\n" + summary_alike(summary)


def statistics_cells(part: Mapping[str, Any], intervals: Mapping[str, Any]) -> list[str]:
    """Return count and statistics of one group of jobs, or coflows, as cells."""
    halves = {s: (intervals[s][1] - intervals[s][0]) / 2 for s in STATISTICS if s in intervals}
    cells = [with_error(part.get(s, math.nan), halves.get(s, math.nan)) for s in STATISTICS]
    return [f"{part['count']:,}", *cells]


def _constraint_tables(jobs: Mapping[str, Any], intervals: Mapping[str, Any]) -> list[str]:
    """Return the lines of queueing delay and of kinds of constraints, where jobs have any."""
    waits = [["queueing delay (s)", "jobs", *STATISTICS]]
    for name in SPLIT:
        if part := part_of(jobs, name):
            waits.append(
                [f"  {name}", *statistics_cells(part["wait"], part_of(intervals, name).get("wait", {}))]
            )
    kinds = [["short jobs by constraint (s)", "jobs", *STATISTICS, "relative slowdown"]]
    for kind, of_kind in jobs.get("by_constraint", {}).items():
        if "short" in of_kind:
            half = intervals.get("by_constraint", {}).get(kind, {}).get("short", {})
            slowdown = of_kind.get("slowdown_vs_unconstrained")
            told = "" if slowdown is None else f"{slowdown:.2f}{TIMES}"
            kinds.append([f"  {kind}", *statistics_cells(of_kind["short"], half), told])
    return [line for table in (waits, kinds) if len(table) > 1 for line in ("", *align(table))]
