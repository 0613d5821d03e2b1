"""Report sections on runs of jobs: tables by class and by constraint, facts of a run."""

from __future__ import annotations

from emu.families.jobs.by_constraint import KindRow, WaitRow, compare_kinds, compare_waits
from emu.families.jobs.comparison import GROUPS, compare_class
from emu.families.jobs.terminal_text import job_facts
from emu.report.page import Cell, paragraph, section, sentence
from emu.report.report_sections import figure_cell, shares_of, waits_section
from emu.results.comparison_row import SHARES, Row
from emu.results.measures import DEFAULT
from emu.results.metrics import STATISTICS
from emu.results.paired_comparison import shares_caption, tolerance_of
from emu.results.result import Result, Runs
from emu.results.text_tables import TIMES, number, ratio, times_clause, with_error
from workloads.units import format_duration


def group_section(results: Runs, warmup_s: float) -> list[str]:
    """Return the tables of runs of the same jobs."""
    first, several = next(iter(results)), len(results) > 1
    words = "Job completion time in seconds" + times_clause(first) * several
    if warmup_s:
        words += f"; jobs of the first {format_duration(warmup_s)} left out"
    shares = f" {sentence(shares_caption(first, 'jobs', tolerance_of(results)))}." * several
    parts: list[str] = [paragraph(f"{words}.{shares}")]
    found = []
    for name in GROUPS:
        rows = compare_class(results, name, warmup_s)
        if rows:
            parts.append(_class_section(f"{name.capitalize()} jobs ({number(rows[0].count)})", rows))
            found += rows
    return [
        *parts,
        *waits_section(found, "Queueing delay and slowdown"),
        *_wait_section(compare_waits(results)),
        *_kind_section(compare_kinds(results)),
    ]


def run_facts(run: Result) -> dict[str, str]:
    """Return the facts of one run of jobs for its table."""
    summary = run.summary
    engine = summary["engine"]
    unfinished = summary["jobs"].get("unfinished")
    return job_facts(summary["jobs"]) | {
        **({"jobs that did not finish": f"{unfinished:,}"} if unfinished else {}),
        "tasks": f"{engine['tasks']:,}",
        "events": f"{engine['events']:,}",
        "engine time": format_duration(engine["wall_s"]),
        "tasks per second of engine time": f"{engine['tasks_per_s']:,.0f}",
    }


def _class_section(title: str, rows: list[Row]) -> str:
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


def _wait_section(rows: list[WaitRow]) -> list[str]:
    """Return how long jobs with and without constraints waited; nothing where none has any."""
    if not rows:
        return []
    cells = [[r.scheduler, f"{r.group} jobs", *(with_error(*r.times[s]) for s in STATISTICS)] for r in rows]
    words = "Seconds until a job's first task starts, where a class has jobs with constraints and without."
    head = ["scheduler", "jobs", *STATISTICS]
    return [section("Queueing delay with constraints and without", words, head, cells)]


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
