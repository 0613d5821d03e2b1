"""Runs of DAG jobs as text for a terminal: a summary, and comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from emu.configuration.seeds import summary_alike, summary_head
from emu.families.dags.comparison import (
    GROUPS,
    EfficiencyRow,
    compare_efficiency,
    improvement_factors,
    slowed_down,
)
from emu.families.jobs.metrics import CLASSES, part_of
from emu.families.jobs.terminal_text import job_facts, run_lines
from emu.results.comparison_row import Row
from emu.results.measures import DEFAULT, Measure
from emu.results.paired_comparison import Tolerance, render_factors
from emu.results.result import Runs
from emu.results.text_tables import TIMES, align, number, percent, ratio, statistics_cells, with_error

FACTOR_LABELS = {"average": "average", "p50": "P50", "p75": "P75", "p95": "P95"}
EFFICIENCY_EXPLAINED = (
    "efficiency and fairness: makespan, also over the lower bound of any scheduler; share of the capacity of the most "
    "used resource that tasks held; Jain's index over windows, of the jobs that are there and of those that run tasks; "
    "tasks launched above their job's share"
)


def render_rows(
    rows: Sequence[Row], head: str, tolerance: Tolerance, columns: Sequence[Measure] = DEFAULT
) -> str:
    """Return completion times and factors of improvement as a table for each group of jobs."""
    titles = dict.fromkeys(GROUPS, lambda own: f"{own[0].group} jobs ({number(own[0].count)})")
    clause = "factors of improvement"
    return render_factors(rows, head, tolerance, columns, "job", clause, FACTOR_LABELS, titles)


def render_more(results: Runs, warmup_s: float) -> str:
    """Return the tables of a comparison besides that of completion times."""
    rows = compare_efficiency(results)
    table = [["", *efficiency_head(rows)], *([row.scheduler, *efficiency_cells(row, rows)] for row in rows)]
    lines = ["", EFFICIENCY_EXPLAINED, *(f"  {line}" for line in align(table))]
    if slower := slower_rows(results, warmup_s):
        table = [["", *SLOWER_HEAD], *slower]
        lines += ["", slower_caption(next(iter(results))), *(f"  {line}" for line in align(table))]
    return "\n".join(lines) + "\n"


def efficiency_head(rows: Sequence[EfficiencyRow]) -> list[str]:
    """Return the heads of the columns of the table of efficiency and fairness."""
    several = [TIMES] if len(rows) > 1 else []
    return [
        *("makespan (s)", *several, "over bound", "held"),
        *("Jain mean", "min", "max", "of running", "leftover tasks"),
    ]


def efficiency_cells(row: EfficiencyRow, rows: Sequence[EfficiencyRow]) -> list[str]:
    """Return the cells of a row of that table."""
    several = [ratio(*row.makespan_times)] if len(rows) > 1 else []
    jain = [with_error(*row.fairness[s], digits=3) for s in ("mean", "min", "max")]
    return [
        *(with_error(*row.makespan_s), *several, ratio(*row.over_bound), percent(*row.used)),
        *(*jain, with_error(*row.fairness_running, digits=3), percent(*row.leftover)),
    ]


SLOWER_HEAD = ["slower", "above 1.25 times", "worst factor"]


def slower_caption(first: str) -> str:
    """Return what the table of slower jobs shows."""
    return f"jobs that take longer under {first} than under another, of all seeds"


def slower_rows(results: Runs, warmup_s: float) -> list[list[str]]:
    """Return a row for each other scheduler: the share of the jobs that the first one slows down, and how far."""
    first, *others = results
    rows = []
    for name in others:
        pairs = zip(results[first], results[name], strict=True)
        found = [slowed_down(improvement_factors(a, b, "all", warmup_s)) for a, b in pairs]
        shares = [sum(one[i] for one in found) / len(found) for i in (0, 1)]
        rows.append([name, *map(percent, shares), ratio(min(one[2] for one in found))])
    return rows


def render_summary(summary: Mapping[str, Any], columns: Sequence[Measure] = DEFAULT) -> str:
    """Return the summary of a run, or of the runs of several seeds, as text; `columns` are those of its table."""
    jobs = summary["jobs"]
    intervals = summary.get("confidence_95", {}).get("jobs", {})
    rows = [["job completion time (s)", "jobs", *(m.name for m in columns)]]
    for name in CLASSES if "long" in jobs else ("all",):
        if part := part_of(jobs, name):
            rows.append([f"  {name}", *statistics_cells(part, part_of(intervals, name), columns)])
    facts = [f"{name} {value}" for name, value in {**job_facts(jobs), **dag_facts(summary["dags"])}.items()]
    lines = [summary_head(summary), "", *align(rows), "", ", ".join(facts), *run_lines(summary)]
    return "\n".join(lines) + "\n" + summary_alike(summary)


def dag_facts(dags: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of the ``dags`` part of a summary, as name to text."""
    facts = {"lower bound of the makespan": f"{number(dags['bound_s'])} s"}
    facts["held"] = ", ".join(f"{name} {percent(share)}" for name, share in dags["used"].items())
    if "fairness" in dags:
        facts["Jain index over windows"] = f"{dags['fairness']['mean']:.3f}"
    if "leftover_share" in dags:
        facts["leftover tasks"] = percent(dags["leftover_share"])
    return facts
