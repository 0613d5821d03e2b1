"""Runs of coflows as text for a terminal: a summary, and comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from emu.families.coflows.comparison import (
    LearningRow,
    compare_coordinators,
    compare_job_times,
    compare_learning,
)
from emu.families.coflows.deadlines import compare_deadlines, compare_gains, deadline_tables, gain_tables
from emu.families.coflows.metrics import BINS, GROUPS, LATE_SHARE, part_of
from emu.results.comparison_row import NOTHING, Pair, Row
from emu.results.measures import DEFAULT, Measure
from emu.results.paired_comparison import Tolerance, behind_note, column_names, render_factors
from emu.results.result import Runs
from emu.results.summary_text import summary_text
from emu.results.text_tables import TIMES, Table, number, percent, ratio, render_tables, with_error
from workloads.units import format_duration

SPEEDUP_LABELS = {"average": "average", "p50": "P50", "p90": "P90"}
SHUFFLE_NOTE = (
    "Each coflow is the shuffle of a job of its own. The share of the job's time that it shuffles is drawn: below 25 % "
    "for 61 % of the jobs, 25 to 50 % for 13 %, 50 to 75 % for 14 %, and more for the rest. It is of the job's time "
    "under the first scheduler, and what the job computes beside is the same under all."
)


def more_tables(results: Runs, warmup_s: float) -> list[Table]:
    """Return the tables of a comparison besides that of completion times."""
    return [
        *deadline_tables(compare_deadlines(results)),
        *gain_tables(compare_gains(results), results),
        *learning_tables(compare_learning(results, warmup_s)),
        *coordinator_tables(compare_coordinators(results)),
        *job_tables(compare_job_times(results, warmup_s), next(iter(results))),
    ]


def render_more(results: Runs, warmup_s: float) -> str:
    """Return these tables as text."""
    return render_tables(more_tables(results, warmup_s))


def render_rows(
    rows: Sequence[Row], head: str, tolerance: Tolerance, columns: Sequence[Measure] = DEFAULT
) -> str:
    """Return completion times and speed-ups as a table for each group of coflows."""
    titles = dict.fromkeys(GROUPS, rows_title)
    return render_factors(rows, head, tolerance, columns, "coflow", "speed-up", SPEEDUP_LABELS, titles)


def learning_tables(rows: Sequence[LearningRow]) -> list[Table]:
    """Return the table of learning; none where no scheduler learns."""
    if not rows:
        return []
    head = ["scheduler", "coflows", "time p50", "time p90", f"above {LATE_SHARE:.0%}", "bytes p50"]
    head += [f"time {TIMES} P50", f"bytes {TIMES} P50"] if len(rows) > 1 else []
    has_errors = any(row.error for row in rows)
    head += ["size error mean", "std"] if has_errors else []
    table = []
    for row in rows:
        cells = [row.scheduler, number(row.count), *(percent(*row.cct_share[s]) for s in ("p50", "p90"))]
        cells += [percent(*row.late), percent(*row.bytes_share["p50"])]
        cells += [ratio(*row.latency_times), ratio(*row.bytes_times)] if len(rows) > 1 else []
        if has_errors:
            cells += [percent(*row.error[s]) if row.error else "" for s in ("mean", "std")]
        table.append(cells)
    what = "learning, of the coflows that were not known when they arrived"
    return [Table("Learning", f"{what}, as share of completion time and bytes", head, table)]


def coordinator_tables(figures: Mapping[str, Mapping[str, Pair]]) -> list[Table]:
    """Return the table of coordinators' work, from `compare_coordinators`; none where none works in intervals."""
    if not figures:
        return []
    head = ["scheduler", "missed", "without rates", "agents heard", "updates", "decisions", "schedules sent"]
    any_work = any("work_s" in own for own in figures.values())
    rows = []
    for name, own in figures.items():
        cells = [name, *(percent(*own[figure]) for figure in ("missed", "without_rates"))]
        cells += [
            with_error(*own[figure]) for figure in ("agents_heard", "updates", "decisions", "schedules")
        ]
        mean, half = own.get("work_s", NOTHING)
        rows.append([*cells, *([with_error(1e3 * mean, 1e3 * half)] if any_work else [])])
    head += ["work (ms)"] if any_work else []
    return [Table("Coordinator", "the coordinator, in a scheduling interval", head, rows)]


def job_tables(speedups: Mapping[str, Mapping[str, Pair]], first: str) -> list[Table]:
    """Return the table of the speed-ups of jobs, from `compare_job_times`; none where nothing is compared."""
    if not speedups:
        return []
    rows = [[name, *(ratio(*pair) for pair in own.values())] for name, own in speedups.items()]
    faster = {label: {name: own[label.lower()] for name, own in speedups.items()} for label in ("P50", "P90")}
    caption = f"jobs that compute too, and shuffle for a drawn share of their time: speed-up of {first}"
    note = f"{SHUFFLE_NOTE} {behind_note(first, faster)}".rstrip()
    return [Table("Jobs", caption, ["scheduler", "P50", "P90"], rows, note)]


def render_summary(summary: Mapping[str, Any], columns: Sequence[Measure] = DEFAULT) -> str:
    """Return the summary of a run, or of the runs of several seeds, as text."""
    title, groups = column_names(columns, "coflow"), {group: group_title(group) for group in GROUPS}
    facts = [f"{name} {value}" for name, value in facts_of(summary).items()]
    return summary_text(summary, "coflows", title, groups, part_of, columns, facts)


def facts_of(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of a summary besides completion times, as name to text."""
    facts = {}
    for name, (path, form) in FACTS.items():
        found: Any = summary["coflows"] if path.startswith("coflows.") else summary
        keys = path.removeprefix("coflows.").split(".")
        if keys[0] in found:  # a part may be absent, but not a figure of a part
            for key in keys:
                found = found[key]
            facts[name] = format_duration(found) if form == "duration" else f"{found:{form}}"
    return facts


FACTS = {
    "makespan": ("coflows.makespan_s", "duration"),
    "deadlines met": ("coflows.acceptance_rate", ".1%"),
    "deadlines met by weight": ("coflows.weighted_acceptance_rate", ".1%"),
    "admitted and late": ("coflows.prediction_error", ".1%"),
    "bytes of late and dropped coflows": ("coflows.wasted.share", ".1%"),
    "CPU time of a decision, median": ("decisions.p50", "duration"),
    "99th percentile": ("decisions.p99", "duration"),
    "time to learn, median share": ("coflows.learning.cct_share.p50", ".1%"),
    "error of sizes, mean": ("coflows.estimates.mean", ".1%"),
    "intervals missed": ("coordinator.missed", ".1%"),
    "without rates": ("coordinator.without_rates", ".1%"),
    "coflows that did not finish": ("coflows.unfinished", ",.0f"),
}
"""The facts of a summary: name, to where it stands and its format."""


def rows_title(rows: Sequence[Row]) -> str:
    """Return the title of the rows of a group, with the number of coflows and of replicas left out."""
    counts, few = [row.count for row in rows], rows[0].left_out
    low, high = number(min(counts)), number(max(counts))
    count = low if low == high else f"{low} to {high}, by scheduler"
    clause = f"; without {few:,} replica{'s'[: few != 1]} in which a scheduler finished none" if few else ""
    return f"{group_title(rows[0].group)} ({count}{clause})"


def group_title(group: str) -> str:
    """Return the name of a group of coflows in tables."""
    return f"{group}, {BINS[group]}" if group in BINS else "all coflows"
