"""Runs of DAG jobs as text for a terminal: a summary, and comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from emu.families.dags.comparison import TITLES, compare_efficiency, improvement_factors, slowed_down
from emu.families.dags.coordinator import coordinator_facts
from emu.families.jobs.further_tables import division_tables, rows_of_divisions
from emu.families.jobs.metrics import part_of, shown_classes
from emu.families.jobs.terminal_text import job_facts
from emu.results.comparison_row import Row
from emu.results.measures import DEFAULT, Measure
from emu.results.paired_comparison import Tolerance, render_factors
from emu.results.result import Runs
from emu.results.summary_text import summary_text
from emu.results.text_tables import TIMES, Table, align, number, percent, ratio, render_tables, with_error
from workloads.units import format_quantity

FACTOR_LABELS = {"average": "average", "p50": "P50", "p75": "P75", "p95": "P95"}
EFFICIENCY_EXPLAINED = (
    "efficiency and fairness: makespan, also over the lower bound of any scheduler; share of the capacity of the most "
    "used resource that tasks held; Jain's index over windows, of the jobs that are there, of those that run tasks, "
    "and of what jobs held up to their fair share; tasks launched above their job's share"
)


def render_rows(
    rows: Sequence[Row], head: str, tolerance: Tolerance, columns: Sequence[Measure] = DEFAULT
) -> str:
    """Return completion times and factors of improvement as a table for each group of jobs."""
    clause = "factors of improvement"
    return render_factors(rows, head, tolerance, columns, "job", clause, FACTOR_LABELS, TITLES)


def render_more(results: Runs, warmup_s: float) -> str:
    """Return the tables of a comparison besides that of completion times."""
    return render_tables(more_tables(results, warmup_s))


def more_tables(results: Runs, warmup_s: float) -> list[Table]:
    """Return the tables of efficiency and fairness, of waits by group, and of several schedulers of slower jobs."""
    found, several = compare_efficiency(results), len(results) > 1
    columns = [c for c in next(iter(found.values())) if several or c != TIMES]
    cells = [[name, *(_cell(column, *row[column]) for column in columns)] for name, row in found.items()]
    tables = [Table("Efficiency and fairness", EFFICIENCY_EXPLAINED, ["scheduler", *columns], cells)]
    tables += division_tables(results)
    return [*tables, _slower_table(results, warmup_s)] if several else tables


def _cell(column: str, mean: float, half: float) -> str:
    if column in (TIMES, "over bound"):
        return ratio(mean, half)
    if column in ("held", "leftover tasks"):
        return percent(mean, half)
    return with_error(mean, half, digits=5 if column == "makespan (s)" else 3)


def _slower_table(results: Runs, warmup_s: float) -> Table:
    """Return for each other scheduler the share of the jobs that the first one slows down, and how far."""
    first, *others = results
    rows = []
    for name in others:
        pairs = zip(results[first], results[name], strict=True)
        found = [slowed_down(improvement_factors(a, b, "all", warmup_s)) for a, b in pairs]
        shares = [sum(one[i] for one in found) / len(found) for i in (0, 1)]
        rows.append([name, *map(percent, shares), ratio(min(one[2] for one in found))])
    caption = f"jobs that take longer under {first} than under another, of all seeds"
    note = "The share of them, and the smallest factor of improvement."
    return Table("Slower jobs", caption, ["than", "slower", "above 1.25 times", "worst factor"], rows, note)


def render_summary(summary: Mapping[str, Any], columns: Sequence[Measure] = DEFAULT) -> str:
    """Return the summary of a run, or of the runs of several seeds, as text; `columns` are those of its table."""
    jobs = summary["jobs"]
    groups = {name: name for name in shown_classes(jobs)}
    named = {**job_facts(jobs), **dag_facts(summary["dags"]), **coordinator_facts(summary)}
    facts = [f"{name} {value}" for name, value in named.items()]
    tables = rows_of_divisions(jobs, summary.get("confidence_95", {}).get("jobs", {}))
    lines = [line for table in tables for line in ("", *align(table))]
    return summary_text(summary, "jobs", "job completion time (s)", groups, part_of, columns, facts, lines)


def dag_facts(dags: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of the ``dags`` part of a summary, as name to text."""
    facts = {"lower bound of the makespan": f"{number(dags['bound_s'])} s"}
    facts["held"] = ", ".join(f"{name} {percent(share)}" for name, share in dags["used"].items())
    if "fairness" in dags:
        facts["Jain index over windows"] = f"{dags['fairness']['mean']:.3f}"
    if "moved_bytes" in dags:
        moved, local = dags["moved_bytes"], dags["local_bytes"]
        facts["network"] = f"moved {format_quantity(moved, 'B')} in {dags['flows']:,} flows"
        if "coflows" in dags:
            facts["coflows"] = f"{dags['coflows']:,}, {number(dags['mean_cct_s'])} s each in the mean"
        facts["local input"] = f"{format_quantity(local, 'B')}, {percent(local / max(moved + local, 1.0))}"
        facts["mean time to fetch input"] = f"{number(dags['mean_fetch_s'])} s"
    if "leftover_share" in dags:
        facts["leftover tasks"] = percent(dags["leftover_share"])
    return facts
