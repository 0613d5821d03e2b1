"""Several schedulers over the same jobs: figures by class, ratios against the first, jobs that became better."""

from __future__ import annotations

from collections.abc import Sequence

from emu.families.jobs.by_constraint import compare_kinds, render_kinds
from emu.families.jobs.further_tables import further_tables
from emu.families.jobs.metrics import CLASSES, SPLIT, in_group, part_of, shown_classes
from emu.results.comparison_row import Row
from emu.results.measures import DEFAULT, Measure, all_measures
from emu.results.metrics import BoolArray, after_warmup
from emu.results.paired_comparison import Tolerance, column_names, compare_parts, render_groups
from emu.results.result import Result, Runs
from emu.results.text_tables import number, ratio, render_tables, times_clause, with_error
from workloads.arrow import optional_column

GROUPS = ("short", "long", "all", *SPLIT)
"""The groups that are compared: classes, and where jobs have constraints, jobs with and without."""


def jobs_title(rows: Sequence[Row]) -> str:
    """Return the title of the rows of a group, with its number of jobs."""
    return f"{rows[0].group} jobs ({number(rows[0].count)})"


TITLES = dict.fromkeys(GROUPS, jobs_title)


def compare_jobs(results: Runs, warmup_s: float) -> list[Row]:
    """Return the rows of all `GROUPS` of jobs, without a class that has all jobs."""
    shown = classes_of_runs(results)
    groups = [name for name in GROUPS if name in shown or name not in CLASSES]
    return [row for name in groups for row in compare_class(results, name, warmup_s)]


def classes_of_runs(results: Runs) -> set[str]:
    """Return the classes that any of these runs shows apart from all jobs, and ``all``."""
    return {name for own in results.values() for run in own for name in shown_classes(run.summary["jobs"])}


def compare_class(results: Runs, job_class: str, warmup_s: float) -> list[Row]:
    """Return one row per scheduler for the jobs of one of `GROUPS`; none where it has no jobs."""
    parts = {name: [part_of(r.summary["jobs"], job_class) for r in own] for name, own in results.items()}
    if not all(part for own in parts.values() for part in own):
        return []

    def counted(run: Result) -> BoolArray:
        return after_warmup(optional_column(run.jobs, "submit_s"), warmup_s) & in_group(run.jobs, job_class)

    return compare_parts(
        results,
        parts,
        job_class,
        all_measures("jobs"),
        lambda run: optional_column(run.jobs, "jct_s"),
        counted,
    )


def render_rows(
    rows: Sequence[Row], head: str, tolerance: Tolerance, columns: Sequence[Measure] = DEFAULT
) -> str:
    """Return rows of a comparison as a table, class by class."""
    first = rows[0].scheduler
    several = len({r.scheduler for r in rows}) > 1
    names = [cell for m in columns for cell in (m.name, "")]

    def cells(row: Row) -> list[str]:
        found = []
        for m in columns:
            times = "" if row.scheduler == first else ratio(*row.ratios[m.name])
            found += [with_error(*row.figures[m.name]), times]
        return found

    what = column_names(columns, "job") + times_clause(first) * several
    return render_groups(rows, f"{head}: {what}", names, cells, TITLES, "jobs", tolerance)


def render_further(results: Runs, warmup_s: float) -> str:
    """Return the tables of queueing delay, of the use of resources and of kinds of constraints; empty without any."""
    return render_tables(further_tables(results)) + render_kinds(compare_kinds(results))
