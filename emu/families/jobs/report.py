"""Report sections on runs of jobs: tables by class, constraint, priority and resource, facts of a run."""

from __future__ import annotations

from collections.abc import Sequence

from emu.families.jobs.by_constraint import KindRow, compare_kinds
from emu.families.jobs.comparison import TITLES, compare_jobs
from emu.families.jobs.further_tables import further_tables
from emu.families.jobs.terminal_text import job_facts
from emu.report.page import Cell, section
from emu.report.report_sections import figure_cell, sections_by_group, shares_of, table_section, waits_section
from emu.results.comparison_row import SHARES, Row
from emu.results.measures import DEFAULT
from emu.results.result import Result, Runs
from emu.results.summary_text import engine_facts
from emu.results.text_tables import TIMES, number, ratio, times_clause, with_error
from workloads.units import format_duration


def group_section(results: Runs, warmup_s: float) -> list[str]:
    """Return the tables of runs of the same jobs."""
    words = "Job completion time in seconds" + times_clause(next(iter(results))) * (len(results) > 1)
    if warmup_s:
        words += f"; jobs of the first {format_duration(warmup_s)} left out"
    rows = compare_jobs(results, warmup_s)
    return [
        *sections_by_group(results, rows, words, "jobs", TITLES, _class_section),
        *waits_section(rows, "Queueing delay and slowdown"),
        *map(table_section, further_tables(results)),
        *_kind_section(compare_kinds(results)),
    ]


def run_facts(run: Result) -> dict[str, str]:
    """Return the facts of one run of jobs for its table."""
    jobs = run.summary["jobs"]
    unfinished = {"jobs that did not finish": f"{jobs['unfinished']:,}"} if "unfinished" in jobs else {}
    return job_facts(jobs) | unfinished | engine_facts(run.summary)


def _class_section(title: str, rows: Sequence[Row]) -> str:
    several = len(rows) > 1
    head = ["scheduler"]
    for measure in DEFAULT:
        head += [measure.name, TIMES] if several else [measure.name]
    cells = []
    for row in rows:
        line: list[str | Cell] = [row.scheduler]
        for measure in DEFAULT:
            line.append(figure_cell(row, measure, several))
            if several:
                line.append(Cell("" if row is rows[0] else ratio(*row.ratios[measure.name]), "ratio"))
        cells.append([*line, *(shares_of(row) if several else [])])
    return section(title, "", [*head, *(SHARES if several else [])], cells)


def _kind_section(rows: list[KindRow]) -> list[str]:
    """Return what each kind of constraint does to short jobs; nothing where none has any."""
    if not rows:
        return []
    first, *others = rows[0].mean
    head = ["constraint", "jobs"]
    for name in (first, *others):
        head += [name, *([TIMES] if name != first else []), "slowdown"]
    cells = []
    for row in rows:
        line = [row.kind, number(row.count)]
        for name in row.mean:
            against = [ratio(*row.ratio[name])] if name != first else []
            line += [with_error(*row.mean[name]), *against, ratio(*row.slowdown[name])]
        cells.append(line)
    clause = f", as a multiple of that under {first}" if others else ""
    words = (
        f"Mean completion time in seconds{clause}, and the relative slowdown: total completion time over "
        "total ideal time, as a multiple of that of the run's unconstrained short jobs."
    )
    return [section("Short jobs by kind of constraint", words, head, cells)]
