"""Several schedulers over the same jobs: figures by class, ratios against the first, jobs that became better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emu.columns import numbers
from emu.families.jobs.by_constraint import compare_kinds, compare_waits, render_kinds, render_waits
from emu.families.jobs.metrics import SPLIT, in_group, part_of
from emu.results.comparison_row import SHARES, Row
from emu.results.measures import DEFAULT, Measure, all_measures
from emu.results.metrics import BoolArray, after_warmup
from emu.results.paired_comparison import Tolerance, column_names, compare_parts, shares_caption, shares_cells
from emu.results.result import Result, Runs
from emu.results.text_tables import align, number, ratio, times_clause, with_error

GROUPS = ("short", "long", "all", *SPLIT)
"""The groups that are compared: classes, and where jobs have constraints, jobs with and without."""


def compare_jobs(results: Runs, warmup_s: float) -> list[Row]:
    """Return the rows of all `GROUPS` of jobs."""
    return [row for name in GROUPS for row in compare_class(results, name, warmup_s)]


def compare_class(results: Runs, job_class: str, warmup_s: float) -> list[Row]:
    """Return one row per scheduler for the jobs of a class, or another of `GROUPS`; none when it has no jobs."""
    parts = {name: [part_of(r.summary["jobs"], job_class) for r in own] for name, own in results.items()}
    if not all(part for own in parts.values() for part in own):
        return []

    def counted(run: Result) -> BoolArray:
        return after_warmup(numbers(run.jobs, "submit_s"), warmup_s) & in_group(run.jobs, job_class)

    return compare_parts(
        results, parts, job_class, all_measures("jobs"), lambda run: numbers(run.jobs, "jct_s"), counted
    )


def render_rows(
    rows: Sequence[Row], head: str, tolerance: Tolerance, columns: Sequence[Measure] = DEFAULT
) -> str:
    """Return rows of a comparison as a table, class by class."""
    first = rows[0].scheduler
    several = len({r.scheduler for r in rows}) > 1
    lines = [f"{head}: {column_names(columns, 'job')}{times_clause(first) if several else ''}"]
    for name in GROUPS:
        own = [row for row in rows if row.group == name]
        if not own:
            continue
        table = [["", *(cell for m in columns for cell in (m.name, "")), *(SHARES if several else ())]]
        for row in own:
            cells = [row.scheduler]
            for m in columns:
                pair = row.ratios[m.name]
                cells += [with_error(*row.figures[m.name]), "" if row.scheduler == first else ratio(*pair)]
            table.append([*cells, *shares_cells(row)] if several else cells)
        lines += ["", f"{name} jobs ({number(own[0].count)})", *(f"  {line}" for line in align(table))]
    if several:
        lines += ["", shares_caption(first, "jobs", tolerance)]
    return "\n".join(lines) + "\n"


def render_constraints(results: Mapping[str, list[Result]]) -> str:
    """Return the tables of queueing delay and of kinds of constraints; nothing where no job has any."""
    return render_waits(compare_waits(results)) + render_kinds(compare_kinds(results))
