"""Tables of queueing delay by constraint, priority and tenant, and of the use of resources: of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from emu.explaining.explanation import counted
from emu.families.jobs.divisions import DIVISIONS, SHARE, Division
from emu.families.jobs.metrics import SPLIT, part_of
from emu.results.measures import DEFAULT, Measure
from emu.results.metrics import STATISTICS, confidence_95
from emu.results.result import Runs
from emu.results.text_tables import Table, percent, statistics_cells, with_error


def further_tables(results: Runs) -> list[Table]:
    """Return the tables of queueing delay and of the use of resources that the runs have figures for."""
    return [
        *_waits_table(
            results,
            {f"{group} jobs": group for group in SPLIT},
            "Queueing delay with constraints and without",
            "queueing delay in seconds, until a job's first task starts",
            "Of the classes that have jobs with constraints and without.",
        ),
        *division_tables(results),
        *_use_table(results),
    ]


def division_tables(results: Runs) -> list[Table]:
    """Return the tables of queueing delay and evictions by priority and tenant; none where runs have no such groups."""
    first = next(iter(results.values()))
    tables = []
    for division in DIVISIONS:
        groups = dict.fromkeys(group for run in first for group in division.groups(run.summary["jobs"]))
        labels = {}
        for group in groups:
            count = part_of(first[0].summary["jobs"], group).get("count", 0)
            labels[f"{group} ({counted(count, 'job')})"] = group
        title = f"Queueing delay by {division.word}"
        caption = f"queueing delay in seconds by {division.word}, until a job's first task starts, and "
        caption += division.further
        tables += _waits_table(results, labels, title, caption, division.note, division.columns)
    return tables + [table for division in DIVISIONS for table in _evictions_table(results, division)]


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
                cells = (_text_of(m)(*confidence_95([m.of(p) for p in parts])) for m in measures)
                rows.append([scheduler, label, *cells])
    head = ["scheduler", "jobs", *STATISTICS, *more]
    return [Table(title, caption, head, rows, note, names=2)] if rows else []


def _text_of(measure: Measure) -> Callable[[float, float], str]:
    """Return what writes a measure and its error."""
    return percent if measure == SHARE else with_error


def _evictions_table(results: Runs, division: Division) -> list[Table]:
    """Return the table of evictions by priority, or by tenant; none where no run has preemption."""
    rows = []
    first = next(iter(results.values()))
    for group in dict.fromkeys(group for run in first for group in division.groups(run.summary["jobs"])):
        for scheduler, runs in results.items():
            parts = [part_of(r.summary["jobs"], group) for r in runs]
            if all("evictions" in part for part in parts):
                names = ("evictions", "evicted_work_s")
                cells = (with_error(*confidence_95([part[name] for part in parts])) for name in names)
                rows.append([scheduler, group, *cells])
    head = ["scheduler", "jobs", "evictions", "work lost"]
    title, caption = (
        f"Evictions by {division.word}",
        f"tasks evicted by {division.word}, and the seconds of their work that were lost by that",
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
    return [
        *_rows_of(jobs, intervals, "queueing delay (s)", SPLIT, {}),
        *rows_of_divisions(jobs, intervals),
    ]


def rows_of_divisions(jobs: Mapping[str, Any], intervals: Mapping[str, Any]) -> list[list[list[str]]]:
    """Return those of `rows_of_waits` by priority and by tenant."""
    tables = []
    for division in DIVISIONS:
        what = f"queueing delay by {division.word} (s)"
        tables += _rows_of(jobs, intervals, what, division.groups(jobs), division.columns)
    return tables


def _rows_of(
    jobs: Mapping[str, Any],
    intervals: Mapping[str, Any],
    what: str,
    groups: Sequence[str],
    more: Mapping[str, Measure],
) -> list[list[list[str]]]:
    """Return the table of queueing delay of groups of jobs, with further columns; none where no group has jobs."""
    rows = [[what, "jobs", *STATISTICS, *more]]
    for group in groups:
        if part := part_of(jobs, group):
            half = part_of(intervals, group)
            cells = statistics_cells(part["wait"], half.get("wait", {}), DEFAULT)
            for measure in more.values():
                low, high = measure.interval(half)
                cells.append(_text_of(measure)(measure.of(part), (high - low) / 2))
            rows.append([f"  {group}", *cells])
    return [rows] if len(rows) > 1 else []
