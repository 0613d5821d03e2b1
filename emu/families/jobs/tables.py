"""What tables and pages say of runs of jobs: groups, facts, waits by group, use of resources, kinds of constraints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from emu.explaining.explanation import counted
from emu.families.jobs.divisions import DIVISIONS, SHARE, Division
from emu.families.jobs.metrics import SPLIT, part_of
from emu.results.comparison_tables import FactTable, group_tables, waits_table
from emu.results.measures import DEFAULT, PAGE, TERMINAL, Fact, Measure, Row, at_path, engine_facts
from emu.results.metrics import STATISTICS, confidence_95, ratios
from emu.results.result import Runs
from emu.results.summary_text import statistics_cells
from emu.results.text_tables import TIMES, Table, number, ratio, times_clause, with_error

GROUPS = ("short", "long", "all", *SPLIT)
"""The groups that are compared: classes, and where jobs have constraints, jobs with and without."""
Figures = Mapping[str, Any]
FACTS = (
    Fact("makespan", "jobs.makespan_s", "duration"),
    Fact("Jain index of slowdown", "jobs.jain_index", ".3f"),
    Fact("Jain index of bounded slowdown", "jobs.bounded_jain_index", ".3f"),
    Fact("mean bounded slowdown", "jobs.all.bounded_slowdown.mean"),
    Fact("mean use of {}", "jobs.used.*", ".1%"),
)
"""Of all jobs, besides their times."""
ALL_FACTS = (
    *FACTS,
    Fact("", "jobs.unfinished", lambda count: f"{count:,.0f} jobs did not finish", TERMINAL),
    Fact("jobs that did not finish", "jobs.unfinished", ",", PAGE),
    *engine_facts("tasks"),
)


def reasons(summaries: Sequence[Figures]) -> list[Fact]:
    """Return the waits of jobs by class, or of all jobs where there is only one class."""
    classes = ("short", "long")
    several = any(all(at_path(s, f"jobs.{name}.count") for name in classes) for s in summaries)
    of = {name: f"{name} jobs" for name in classes} if several else {"all": "jobs"}
    return [
        Fact(f"wait of {what}, {s} (s)", f"jobs.{name}.wait.{s}")
        for name, what in of.items()
        for s in ("p50", "p99")
    ]


def jobs_title(rows: Sequence[Row]) -> str:
    """Return the title of the rows of a group, with its number of jobs."""
    return f"{rows[0].group} jobs ({number(rows[0].count)})"


def further_tables(results: Runs, rows: Sequence[Row], warmup_s: float) -> Iterator[Table]:
    """Yield the tables of a comparison of jobs besides those of completion times, of what the runs have figures for."""
    yield from waits_table(rows, "Queueing delay and slowdown")
    yield from group_tables(
        results,
        {f"{group} jobs": group for group in SPLIT},
        (
            "Queueing delay with constraints and without",
            "queueing delay in seconds, until a job's first task starts",
            "Of the classes that have jobs with constraints and without.",
        ),
        _columns({}),
    )
    yield from division_tables(results)
    yield from _use_table(results)
    yield from kind_tables(results)


def division_tables(results: Runs) -> Iterator[Table]:
    """Yield the tables of queueing delay and evictions by priority and tenant; none where runs have no such groups."""
    first = next(iter(results.values()))
    groups = [
        (division, dict.fromkeys(group for run in first for group in division.groups(run.summary["jobs"])))
        for division in DIVISIONS
    ]
    for division, own in groups:
        counts = {group: part_of(first[0].summary["jobs"], group).get("count", 0) for group in own}
        caption = f"queueing delay in seconds by {division.word}, until a job's first task starts, and "
        yield from group_tables(
            results,
            {f"{group} ({counted(count, 'job')})": group for group, count in counts.items()},
            (f"Queueing delay by {division.word}", caption + division.further, division.note),
            _columns(division.columns),
        )
    for division, own in groups:
        yield from group_tables(
            results,
            {group: group for group in own},
            (
                f"Evictions by {division.word}",
                f"tasks evicted by {division.word}, and the seconds of their work that were lost by that",
                "With checkpoints what is lost is the time to restore them.",
            ),
            [
                ("evictions", lambda part: part["evictions"], "number"),
                ("work lost", lambda part: part["evicted_work_s"], "number"),
            ],
            lambda part: "evictions" in part,
        )


def _columns(more: Mapping[str, Measure]) -> list[tuple[str, Any, str]]:
    """Return the columns of a table of queueing delays, and further ones."""
    shown = {s: Measure("wait", s) for s in STATISTICS} | dict(more)
    return [(head, m.of, _form_of(m)) for head, m in shown.items()]


def _form_of(measure: Measure) -> str:
    return "share" if measure == SHARE else "number"


def _use_table(results: Runs) -> list[Table]:
    """Return the table of the mean use of resources; none where no task held any."""
    names = [name for runs in results.values() for r in runs for name in r.summary["jobs"].get("used", {})]
    return FactTable(
        "Mean use of resources",
        "mean use of resources, as a share of what all nodes have",
        [Fact(name, ("jobs", "used", name), "share") for name in dict.fromkeys(names)],
        "From the first arrival to the last completion.",
        needs="jobs.used",
    ).tables(results)


def kind_tables(results: Runs) -> list[Table]:
    """Return the table of short jobs by kind of constraint, for a terminal and for a page; none without kinds.

    A row for each kind that short jobs have in all runs: their number under the first scheduler, and under each the
    mean completion time, its ratio to the first seed by seed, which is what constraints cost where the first ignores
    them, and on a page ``slowdown_vs_unconstrained`` of the summaries.
    """
    first, *others = results
    parts = {
        name: [r.summary["jobs"].get("by_constraint", {}) for r in runs] for name, runs in results.items()
    }
    kinds = [
        k for k in parts[first][0] if all("short" in p.get(k, {}) for own in parts.values() for p in own)
    ]
    if not kinds:
        return []
    head, short_head = ["constraint", "jobs"], ["", "jobs"]
    for name in results:
        head += [name, *([TIMES] if name != first else []), "slowdown"]
        short_head += [name, *([""] if name != first else [])]
    rows, short_rows = [], []
    for kind in kinds:
        count = number(float(np.mean([p[kind]["short"]["count"] for p in parts[first]])))
        means = {n: [p[kind]["short"].get("mean", math.nan) for p in own] for n, own in parts.items()}
        row, short_row = [kind, count], [kind, count]
        for name, own in parts.items():
            cells = [with_error(*confidence_95(means[name]))]
            cells += [ratio(*ratios(means[first], means[name]))] if name != first else []
            slowed = [p[kind].get("slowdown_vs_unconstrained", math.nan) for p in own]
            row += [*cells, ratio(*confidence_95(slowed))]
            short_row += cells
        rows.append(row)
        short_rows.append(short_row)
    caption = "short jobs by kind of constraint: mean completion time in seconds"
    clause = f", as a multiple of that under {first}" if others else ""
    words = (
        f"mean completion time in seconds{clause}, and the relative slowdown: total completion time over "
        "total ideal time, as a multiple of that of the run's unconstrained short jobs"
    )
    text = caption + (times_clause(first) if others else "")
    return [
        Table("", text, short_head, short_rows, names=1, only=TERMINAL),
        Table("Short jobs by kind of constraint", words, head, rows, only=PAGE),
    ]


def summary_tables(jobs: Figures, intervals: Figures) -> list[list[list[str]]]:
    """Return the tables of queueing delay by group, and of kinds of constraints, of one summary; heads come first."""
    kinds = [["short jobs by constraint (s)", "jobs", *STATISTICS, "relative slowdown"]]
    for kind, of_kind in jobs.get("by_constraint", {}).items():
        if "short" in of_kind:
            half = intervals.get("by_constraint", {}).get(kind, {}).get("short", {})
            slowdown = of_kind.get("slowdown_vs_unconstrained")
            relative = "" if slowdown is None else ratio(slowdown)
            kinds.append([f"  {kind}", *statistics_cells(of_kind["short"], half, DEFAULT), relative])
    found = [_waits(jobs, intervals, "queueing delay (s)", SPLIT, {}), *division_rows(jobs, intervals), kinds]
    return [table for table in found if len(table) > 1]


def division_rows(jobs: Figures, intervals: Figures) -> list[list[list[str]]]:
    """Return the tables of `summary_tables` by priority and by tenant."""

    def table(division: Division) -> list[list[str]]:
        what = f"queueing delay by {division.word} (s)"
        return _waits(jobs, intervals, what, division.groups(jobs), division.columns)

    return [own for own in map(table, DIVISIONS) if len(own) > 1]


def _waits(
    jobs: Figures, intervals: Figures, what: str, groups: Sequence[str], more: Mapping[str, Measure]
) -> list[list[str]]:
    """Return the table of queueing delay of the groups that have jobs, with further columns."""
    rows = [[what, "jobs", *STATISTICS, *more]]
    for group in groups:
        if part := part_of(jobs, group):
            half = part_of(intervals, group)
            cells = statistics_cells(part["wait"], half.get("wait", {}), DEFAULT)
            rows.append([f"  {group}", *cells, *(m.cell(part, half, _form_of(m)) for m in more.values())])
    return rows
