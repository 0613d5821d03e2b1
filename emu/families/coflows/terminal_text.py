"""Runs of coflows as text for a terminal: a summary, and comparisons."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from emu.configuration.seeds import summary_alike, summary_head
from emu.families.coflows.comparison import (
    CoordinatorRow,
    JobRow,
    LearningRow,
    compare_coordinators,
    compare_job_times,
    compare_learning,
)
from emu.families.coflows.deadlines import (
    compare_deadlines,
    compare_gains,
    render_deadlines,
    render_gains,
)
from emu.families.coflows.metrics import BINS, GROUPS, LATE_SHARE, part_of
from emu.results.bottlenecks import BOTTLENECKS
from emu.results.comparison_row import Row
from emu.results.measures import DEFAULT, Measure
from emu.results.paired_comparison import Tolerance, column_names, render_factors
from emu.results.result import Runs
from emu.results.text_tables import (
    TIMES,
    align,
    counter_texts,
    number,
    percent,
    ratio,
    statistics_cells,
    with_error,
)
from workloads.units import format_duration

SPEEDUP_LABELS = {"average": "average", "p50": "P50", "p90": "P90"}


def render_more(results: Runs, warmup_s: float) -> str:
    """Return the tables of a comparison besides that of completion times."""
    return (
        render_deadlines(compare_deadlines(results))
        + render_gains(compare_gains(results), results)
        + render_learning(compare_learning(results, warmup_s))
        + render_coordinators(compare_coordinators(results))
        + render_jobs(compare_job_times(results, warmup_s), next(iter(results)))
    )


def render_rows(
    rows: Sequence[Row], head: str, tolerance: Tolerance, columns: Sequence[Measure] = DEFAULT
) -> str:
    """Return completion times and speed-ups as a table for each group of coflows."""
    titles = dict.fromkeys(GROUPS, rows_title)
    return render_factors(rows, head, tolerance, columns, "coflow", "speed-up", SPEEDUP_LABELS, titles)


def render_learning(rows: Sequence[LearningRow]) -> str:
    """Return what learning took as a table behind a blank line; nothing of none."""
    if not rows:
        return ""
    table = [["", *learning_head(rows)], *([row.scheduler, *learning_cells(row, rows)] for row in rows)]
    return "\n".join(["", LEARNING_EXPLAINED, *_indented(align(table)), ""])


LEARNING_EXPLAINED = (
    "learning, of the coflows that were not known when they arrived, as share of completion time and bytes"
)


def learning_head(rows: Sequence[LearningRow]) -> list[str]:
    """Return the heads of the columns of a table of learning."""
    head = ["coflows", "time p50", "time p90", f"above {LATE_SHARE:.0%}", "bytes p50"]
    if len(rows) > 1:
        head += [f"time {TIMES} P50", f"bytes {TIMES} P50"]
    return [*head, *(["size error mean", "std"] if any(row.error for row in rows) else [])]


def learning_cells(row: LearningRow, rows: Sequence[LearningRow]) -> list[str]:
    """Return the cells of a row of that table."""
    cells = [number(row.count), *(percent(*row.cct_share[s]) for s in ("p50", "p90"))]
    cells += [percent(*row.late), percent(*row.bytes_share["p50"])]
    if len(rows) > 1:
        cells += [ratio(*row.latency_times), ratio(*row.bytes_times)]
    if any(other.error for other in rows):
        cells += [percent(*row.error[s]) if row.error else "" for s in ("mean", "std")]
    return cells


COORDINATOR_EXPLAINED = "the coordinator, in a scheduling interval"


def render_coordinators(rows: Sequence[CoordinatorRow]) -> str:
    """Return what coordinators did as a table behind a blank line; nothing of none."""
    if not rows:
        return ""
    table = [["", *coordinator_head(rows)], *([row.scheduler, *coordinator_cells(row, rows)] for row in rows)]
    return "\n".join(["", COORDINATOR_EXPLAINED, *_indented(align(table)), ""])


def coordinator_head(rows: Sequence[CoordinatorRow]) -> list[str]:
    """Return the heads of the columns of a table of coordinators."""
    head = ["missed", "without rates", "agents heard", "updates", "decisions", "schedules sent"]
    return [*head, *(["work (ms)"] if _any_work(rows) else [])]


def coordinator_cells(row: CoordinatorRow, rows: Sequence[CoordinatorRow]) -> list[str]:
    """Return the cells of a row of that table."""
    counted = ("agents_heard", "updates", "decisions", "schedules")
    cells = [percent(*row.figures[name]) for name in ("missed", "without_rates")]
    cells += [with_error(*row.figures[name]) for name in counted]
    if _any_work(rows):
        mean, half = row.figures.get("work_s", (math.nan, math.nan))
        cells.append(with_error(1e3 * mean, 1e3 * half))
    return cells


def _any_work(rows: Sequence[CoordinatorRow]) -> bool:
    return any("work_s" in row.figures for row in rows)


def render_jobs(rows: Sequence[JobRow], first: str) -> str:
    """Return what jobs gain as a table behind a blank line; nothing of none."""
    if not rows:
        return ""
    table = [
        ["", "P50", "P90"],
        *([row.scheduler, *(ratio(*pair) for pair in row.speedup.values())] for row in rows),
    ]
    return "\n".join(["", jobs_caption(first), *_indented(align(table)), ""])


def jobs_caption(first: str) -> str:
    """Return what the table of jobs shows."""
    return f"jobs that compute too, and shuffle for a drawn share of their time: speed-up of {first}"


def render_summary(summary: Mapping[str, Any], columns: Sequence[Measure] = DEFAULT) -> str:
    """Return the summary of a run, or of the runs of several seeds, as text."""
    coflows, engine = summary["coflows"], summary["engine"]
    intervals = summary.get("confidence_95", {}).get("coflows", {})
    rows = [[f"{column_names(columns, 'coflow')}", "coflows", *(m.name for m in columns)]]
    for group in GROUPS:
        if part := part_of(coflows, group):
            cells = statistics_cells(part, part_of(intervals, group), columns)
            rows.append([f"  {group_title(group)}", *cells])
    lines = [summary_head(summary), ""]
    lines += [*align(rows), "", ", ".join(f"{name} {value}" for name, value in facts_of(summary).items())]
    lines.append(
        f"{engine['flows']:,.0f} flows, {engine['events']:,.0f} events "
        f"in {format_duration(engine['wall_s'])} ({engine['tasks_per_s']:,.0f} flows/s)"
    )
    lines += summary.get(BOTTLENECKS, [])
    if counters := counter_texts(summary.get("counters", {})):
        lines.append(", ".join(f"{name} {value}" for name, value in counters.items()))
    return "\n".join(lines) + "\n" + summary_alike(summary)


def facts_of(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of a summary besides completion times, as name to text."""
    coflows = summary["coflows"]
    facts = {}
    if "makespan_s" in coflows:
        facts["makespan"] = format_duration(coflows["makespan_s"])
    if "acceptance_rate" in coflows:
        facts["deadlines met"] = f"{coflows['acceptance_rate']:.1%}"
        facts["deadlines met by weight"] = f"{coflows['weighted_acceptance_rate']:.1%}"
    if "prediction_error" in coflows:
        facts["admitted and late"] = f"{coflows['prediction_error']:.1%}"
    if "wasted" in coflows:
        facts["bytes of late and dropped coflows"] = f"{coflows['wasted']['share']:.1%}"
    if "decisions" in summary:
        spread = summary["decisions"]
        facts["CPU time of a decision, median"] = format_duration(spread["p50"])
        facts["99th percentile"] = format_duration(spread["p99"])
    if "learning" in coflows:
        facts["time to learn, median share"] = f"{coflows['learning']['cct_share']['p50']:.1%}"
    if "estimates" in coflows:
        facts["error of sizes, mean"] = f"{coflows['estimates']['mean']:.1%}"
    if "coordinator" in summary:
        facts["intervals missed"] = f"{summary['coordinator']['missed']:.1%}"
        facts["without rates"] = f"{summary['coordinator']['without_rates']:.1%}"
    if "unfinished" in coflows:
        facts["coflows that did not finish"] = f"{coflows['unfinished']:,.0f}"
    return facts


def rows_title(rows: Sequence[Row]) -> str:
    """Return the title of the rows of a group, with its coflows and the replicas that are left out."""
    counts, few = [row.count for row in rows], rows[0].left_out
    low, high = number(min(counts)), number(max(counts))
    count = low if low == high else f"{low} to {high}, by scheduler"
    clause = f"; without {few:,} replica{'s'[: few != 1]} in which a scheduler finished none" if few else ""
    return f"{group_title(rows[0].group)} ({count}{clause})"


def group_title(group: str) -> str:
    """Return what a group of coflows is called."""
    return f"{group}, {BINS[group]}" if group in BINS else "all coflows"


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]
