"""Tables of queueing delay by constraint and by priority, and of the use of resources: of comparisons and of a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from emu.explaining.explanation import counted
from emu.families.jobs.metrics import PRIORITY, SPLIT, part_of
from emu.results.measures import DEFAULT, Measure
from emu.results.metrics import STATISTICS, confidence_95
from emu.results.result import Runs
from emu.results.text_tables import Table, percent, statistics_cells, with_error

JCT = Measure("", "mean")
"""The column of completion times in tables of queueing delay by priority."""


def further_tables(results: Runs) -> list[Table]:
    """Return the tables of queueing delay and of the use of resources that the runs have figures for."""
    first = next(iter(results.values()))
    bands = _bands(run.summary["jobs"] for run in first)
    counts = {band: part_of(first[0].summary["jobs"], band).get("count", 0) for band in bands}
    return [
        *_waits_table(
            results,
            {f"{group} jobs": group for group in SPLIT},
            "Queueing delay with constraints and without",
            "queueing delay in seconds, until a job's first task starts",
            "Of the classes that have jobs with constraints and without.",
        ),
        *_waits_table(
            results,
            {f"{band} ({counted(count, 'job')})": band for band, count in counts.items()},
            "Queueing delay by priority",
            "queueing delay in seconds by priority, until a job's first task starts, and mean completion time",
            "The larger priority goes first. A job that states none has 0.",
            {"mean jct": JCT},
        ),
        *_evictions_table(results, bands),
        *_use_table(results),
    ]


def _waits_table(
    results: Runs,
    groups: Mapping[str, str],
    title: str,
    caption: str,
    note: str,
    more: Mapping[str, Measure] | None = None,
) -> list[Table]:
    """Return the table of queueing delays of groups by their labels; none where no group has jobs in all runs.

    `more`: further columns.
    """
    more = more or {}
    measures = [*(Measure("wait", s) for s in STATISTICS), *more.values()]
    rows = []
    for label, group in groups.items():
        for scheduler, runs in results.items():
            parts = [part_of(r.summary["jobs"], group) for r in runs]
            if all(parts):
                cells = (with_error(*confidence_95([m.of(p) for p in parts])) for m in measures)
                rows.append([scheduler, label, *cells])
    head = ["scheduler", "jobs", *STATISTICS, *more]
    return [Table(title, caption, head, rows, note, names=2)] if rows else []


def _bands(figures: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the groups of jobs by priority that figures describe, in their order."""
    return list(dict.fromkeys(PRIORITY + band for own in figures for band in own.get("by_priority", {})))


def _evictions_table(results: Runs, bands: Iterable[str]) -> list[Table]:
    """Return the table of evictions by priority; none where no run has preemption."""
    rows = []
    for band in bands:
        for scheduler, runs in results.items():
            parts = [part_of(r.summary["jobs"], band) for r in runs]
            if all("evictions" in part for part in parts):
                names = ("evictions", "evicted_work_s")
                cells = (with_error(*confidence_95([part[name] for part in parts])) for name in names)
                rows.append([scheduler, band, *cells])
    head = ["scheduler", "jobs", "evictions", "work lost"]
    title, caption = (
        "Evictions by priority",
        "tasks evicted by priority, and the seconds of their work that were lost by that",
    )
    note = "With checkpoints what is lost is the time to restore them."
    return [Table(title, caption, head, rows, note, names=2)] if rows else []


def _use_table(results: Runs) -> list[Table]:
    """Return the table of the mean use of resources; none where no task held any."""
    used = {name: [r.summary["jobs"].get("used", {}) for r in runs] for name, runs in results.items()}
    resources = list(dict.fromkeys(name for own in used.values() for of_run in own for name in of_run))
    rows = []
    for scheduler, own in used.items():
        if any(own):
            pairs = (confidence_95([of_run.get(name, math.nan) for of_run in own]) for name in resources)
            rows.append([scheduler, *(percent(*pair) for pair in pairs)])
    title, caption = "Mean use of resources", "mean use of resources, as a share of what all nodes have"
    note = "From the first arrival to the last completion."
    return [Table(title, caption, ["scheduler", *resources], rows, note)] if rows else []


def rows_of_waits(jobs: Mapping[str, Any], intervals: Mapping[str, Any]) -> list[list[list[str]]]:
    """Return the tables of queueing delay of one summary, rows of cells below their heads; none without rows."""
    found = []
    for what, groups, more in (
        ("queueing delay (s)", SPLIT, []),
        ("queueing delay by priority (s)", _bands([jobs]), [JCT]),
    ):
        rows = [[what, "jobs", *STATISTICS, *("mean jct" for _ in more)]]
        for group in groups:
            if part := part_of(jobs, group):
                half = part_of(intervals, group)
                cells = statistics_cells(part["wait"], half.get("wait", {}), DEFAULT)
                rows.append([f"  {group}", *cells, *statistics_cells(part, half, more)[1:]])
        found += [rows] if len(rows) > 1 else []
    return found
