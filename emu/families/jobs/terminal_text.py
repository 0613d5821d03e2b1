"""A run of jobs as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from emu.families.jobs.further_tables import rows_of_waits
from emu.families.jobs.metrics import SPLIT, part_of, shown_classes
from emu.results.measures import DEFAULT, Measure
from emu.results.metrics import STATISTICS
from emu.results.summary_text import summary_text
from emu.results.text_tables import align, number, ratio, statistics_cells
from workloads.units import format_duration


def render_summary(summary: Mapping[str, Any], columns: Sequence[Measure] = DEFAULT) -> str:
    """Return the summary of a run, or of the runs of several seeds, as text; `columns` are those of its table."""
    jobs = summary["jobs"]
    groups = {name: name for name in (*shown_classes(jobs), *SPLIT)}
    facts = [f"{name} {value}" for name, value in job_facts(jobs).items()]
    facts += [f"{jobs['unfinished']:,.0f} jobs did not finish"] if "unfinished" in jobs else []
    tables = _further_tables(jobs, summary.get("confidence_95", {}).get("jobs", {}))
    return summary_text(summary, "jobs", "job completion time (s)", groups, part_of, columns, facts, tables)


def job_facts(jobs: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of a summary about all jobs besides their times, as name to text."""
    facts = {}
    if "makespan_s" in jobs:
        facts["makespan"] = format_duration(jobs["makespan_s"])
    for name, metric in (("jain_index", "slowdown"), ("bounded_jain_index", "bounded slowdown")):
        if name in jobs:
            facts[f"Jain index of {metric}"] = f"{jobs[name]:.3f}"
    bounded = jobs["all"].get("bounded_slowdown", {}).get("mean")
    if bounded is not None:
        facts["mean bounded slowdown"] = number(bounded)
    facts |= {f"mean use of {name}": f"{share:.1%}" for name, share in jobs.get("used", {}).items()}
    return facts


def _further_tables(jobs: Mapping[str, Any], intervals: Mapping[str, Any]) -> list[str]:
    """Return the lines of queueing delay by constraint and priority, and of kinds of constraints."""
    kinds = [["short jobs by constraint (s)", "jobs", *STATISTICS, "relative slowdown"]]
    for kind, of_kind in jobs.get("by_constraint", {}).items():
        if "short" in of_kind:
            half = intervals.get("by_constraint", {}).get(kind, {}).get("short", {})
            slowdown = of_kind.get("slowdown_vs_unconstrained")
            relative = "" if slowdown is None else ratio(slowdown)
            kinds.append([f"  {kind}", *statistics_cells(of_kind["short"], half, DEFAULT), relative])
    tables = [*rows_of_waits(jobs, intervals), *([kinds] if len(kinds) > 1 else [])]
    return [line for table in tables for line in ("", *align(table))]
