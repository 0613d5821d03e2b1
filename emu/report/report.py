"""A report of runs: one HTML page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from emu import disk
from emu.configuration.keys import COFLOWS, JOBS
from emu.configuration.seeds import alike_note, head_of
from emu.directories.names import CONFIG, REPORT_MARK, is_report
from emu.families.coflows.report import TIMELINE_CAPTION
from emu.families.coflows.report import group_section as coflow_section
from emu.families.coflows.report import run_facts as coflow_facts
from emu.families.jobs.by_constraint import KindRow, WaitRow, compare_kinds, compare_waits
from emu.families.jobs.comparison import GROUPS, compare_class, shares_told
from emu.report.page import CSS, figure_of, pairs, sentence, table, text
from emu.report.percentile_plots import Point, percentile_sheets
from emu.report.plots import group_figures, timeline_figure
from emu.report.report_sections import (
    BEST_TOLD,
    bottleneck_notes,
    figure_cell,
    note,
    reasons_section,
    run_reasons,
    shares_of,
    waits_section,
)
from emu.results.axes import IN_HEADINGS, Group, axes_of, group_runs, value_text
from emu.results.measures import DEFAULT
from emu.results.metrics import STATISTICS, confidence_95, summarise_seeds
from emu.results.paired import SHARES, Row, tolerance_of
from emu.results.result import Result
from emu.results.tables import (
    TIMES,
    counted_told,
    counter_text,
    job_facts,
    number,
    ratio,
    times_told,
    with_error,
)
from workloads.errors import InputError
from workloads.units import format_duration


def write_report(path: Path, text: str) -> Path:
    """Write a page; a file that is there is replaced only if it is a report."""
    if path.exists() and not is_report(path):
        raise InputError("exists and is not a report; give another file with --out", file=path)
    disk.write_text(path, text)
    return path


def render_report(runs: Sequence[Result], title: str = "Emu report", sections: Sequence[str] = ()) -> str:
    """Return the page of any runs: those of the same jobs, nodes and seeds are compared, each is shown.

    `sections` come first, such as `sections_of` the directories.
    """
    groups = group_runs(runs)
    parts = [f"<h1>{text(title)}</h1>", f'<p class="sub">{text(_what(runs))}</p>']
    parts += [note(words) for words in dict.fromkeys(n for r in runs for n in r.notes)]
    parts += sections
    parts += _axis_section(groups)
    for group in groups:
        parts += _group_section(group)
    parts.append("<h2>Runs</h2>")
    for run in runs:
        parts += _run_section(run, is_open=len(runs) == 1)
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n{REPORT_MARK}\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n"
        f"<style>{CSS}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _axis_section(groups: Sequence[Group]) -> list[str]:
    """Return percentiles against what differs between the groups; nothing where nothing does."""
    axes = axes_of(groups)
    points = [
        Point(runs[0].summary["scheduler"], group.at | group.own[name], _summary(runs))
        for group in groups
        for name, runs in group.results.items()
    ]
    shown = [
        sheet
        for family in (JOBS, COFLOWS)
        for sheet in percentile_sheets(axes, [p for p in points if family in p.summary])
    ]
    if not shown:
        return []
    figures = "".join(figure_of(sheet.drawn, sheet.caption) for sheet in shown)
    return ["<h2>All runs together</h2>", f'<div class="wide">{figures}</div>']


def _what(runs: Sequence[Result]) -> str:
    def several(values: Iterable[Any], one: str) -> str:
        distinct = list(dict.fromkeys(values))
        return str(distinct[0]) if len(distinct) == 1 else f"{len(distinct)} {one}s"

    schedulers = several((r.summary["scheduler"] for r in runs), "scheduler")
    workload = several((r.summary["workload"] for r in runs), "workload")
    nodes = several(
        (f"{r.summary['nodes']:,} {'ports' if r.family == COFLOWS else 'nodes'}" for r in runs), "size"
    )
    seeds = several((f"seed {r.summary['seed']}" for r in runs), "seed")
    return f"{schedulers} on {workload}, {nodes}, {seeds}; clock {runs[0].summary['clock']}"


def _group_section(group: Group) -> list[str]:
    results = group.results
    first = next(iter(results.values()))[0]
    warmup_s = _warmup(first)
    of_runs = {name: [r.summary for r in runs] for name, runs in results.items()}
    axes = [
        f"{label} {value_text(label, value)}" for label, value in group.at.items() if label not in IN_HEADINGS
    ]
    summaries = [{**_summary(runs), "scheduler": name} for name, runs in results.items()]
    heading = head_of(next(iter(of_runs.values())), axes)
    parts = [f"<h2>{text(heading)}</h2>", *bottleneck_notes(summaries)]
    if alike := alike_note(of_runs).strip():
        parts.append(note(alike))
    if len(results) > 1:
        parts.append(f"<p>{text(BEST_TOLD[len(next(iter(of_runs.values()))) > 1])}</p>")
    parts += (coflow_section if first.family == COFLOWS else _job_section)(results, warmup_s)
    parts += reasons_section(summaries)
    if len(results) > 1:
        parts += _counter_section(results)
    shown = [figure_of(f.drawn, f.caption) for f in group_figures(results, warmup_s)]
    return [*parts, f'<div class="figures">{"".join(shown)}</div>']


def _summary(runs: Sequence[Result]) -> dict[str, Any]:
    return runs[0].summary if len(runs) == 1 else summarise_seeds([r.summary for r in runs])


def _job_section(results: dict[str, list[Result]], warmup_s: float) -> list[str]:
    """Return the tables of runs of the same jobs."""
    first, several = next(iter(results)), len(results) > 1
    parts = [
        "<p>Job completion time in seconds"
        + (text(times_told(first)) if several else "")
        + (f"; jobs of the first {text(format_duration(warmup_s))} left out" if warmup_s else "")
        + "."
        + (f" {text(sentence(shares_told(first, 'jobs', tolerance_of(results))))}." if several else "")
        + "</p>"
    ]
    found = []
    for name in GROUPS:
        rows = compare_class(results, name, warmup_s)
        if rows:
            parts += [f"<h3>{name.capitalize()} jobs ({number(rows[0].count)})</h3>", _class_table(rows)]
            found += rows
    return [
        *parts,
        *waits_section(found, "Queueing delay and slowdown"),
        *_wait_section(compare_waits(results)),
        *_kind_section(compare_kinds(results)),
    ]


def _class_table(rows: list[Row]) -> str:
    several = len(rows) > 1
    head = ["scheduler"]
    for measure in DEFAULT:
        head += [measure.name, TIMES] if several else [measure.name]
    cells = []
    for row in rows:
        line = [text(row.scheduler)]
        for measure in DEFAULT:
            line.append(figure_cell(row, measure, several))
            if several:
                shown = "" if row is rows[0] else ratio(*row.ratios[measure.name])
                line.append(f'<span class="ratio">{text(shown)}</span>')
        cells.append([*line, *(shares_of(row) if several else [])])
    return table([*map(text, head), *(SHARES if several else [])], cells)


def _wait_section(rows: list[WaitRow]) -> list[str]:
    """Return how long jobs with and without constraints waited; nothing where none has any."""
    if not rows:
        return []
    cells = [[r.scheduler, f"{r.group} jobs", *(with_error(*r.times[s]) for s in STATISTICS)] for r in rows]
    return [
        "<h3>Queueing delay with constraints and without</h3>",
        "<p>Seconds until a job's first task starts, where a class has jobs with constraints and without.</p>",
        table(["scheduler", "jobs", *STATISTICS], [[text(cell) for cell in line] for line in cells]),
    ]


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
        cells.append([text(cell) for cell in line])
    told = f", as a multiple of that under {first}" if others else ""
    return [
        "<h3>Short jobs by kind of constraint</h3>",
        f"<p>Mean completion time in seconds{text(told)}, and the relative slowdown: total completion time over "
        "total ideal time, as a multiple of that of the run's unconstrained short jobs.</p>",
        table([text(cell) for cell in head], cells),
    ]


def _counter_section(group: Mapping[str, list[Result]]) -> list[str]:
    """Return how often each mechanism fired, scheduler by scheduler."""
    names = list(dict.fromkeys(name for runs in group.values() for r in runs for name in r.counters))
    if not names:
        return []
    cells = []
    for name in names:
        found = [[r.counters[name] for r in runs if name in r.counters] for runs in group.values()]
        shown = [counter_text(name, *confidence_95(values)) if values else "" for values in found]
        cells.append([text(name.removesuffix("_ns").replace("_", " ")), *map(text, shown)])
    return [
        "<h3>What the mechanisms did</h3>",
        "<p>How often each fired in a run.</p>",
        table(["counter", *map(text, group)], cells),
    ]


def _run_section(run: Result, is_open: bool) -> list[str]:
    s = run.summary
    of_coflows = run.family == COFLOWS
    unit = "ports" if of_coflows else "nodes"
    head = f"{s['scheduler']} on {s['workload']}, {s['nodes']:,} {unit}, seed {s['seed']}"
    facts = coflow_facts(run) if of_coflows else _job_facts(s)
    parts = [f"<details{' open' if is_open else ''}><summary>{text(head)}</summary>"]
    parts.append(table(["figure", "value"], pairs(facts)))
    parts += run_reasons(s)
    if counted := counted_told(run.counters):
        parts += [
            "<p>What the scheduler's mechanisms did:</p>",
            table(["counter", "count"], pairs(counted)),
        ]
    figure = timeline_figure(run)
    if figure is not None:
        caption = "Utilisation of all slots, and tasks that wait, by class of their job"
        parts.append(figure_of(figure, TIMELINE_CAPTION if of_coflows else caption))
    parts.append(f"<p>Configuration ({text(CONFIG)}):</p><pre>{text(run.config)}</pre>")
    versions = ", ".join(f"{k} {v}" for k, v in run.manifest.get("versions", {}).items())
    return [*parts, f'<p class="sub">{text(versions)}</p></details>']


def _job_facts(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return what the table of one run of jobs says."""
    engine = summary["engine"]
    unfinished = summary["jobs"].get("unfinished")
    return job_facts(summary["jobs"]) | {
        **({"jobs that did not finish": f"{unfinished:,}"} if unfinished else {}),
        "tasks": f"{engine['tasks']:,}",
        "events": f"{engine['events']:,}",
        "engine time": format_duration(engine["wall_s"]),
        "tasks per second of engine time": f"{engine['tasks_per_s']:,.0f}",
    }


def _warmup(run: Result) -> float:
    from workloads.units import parse_duration

    return parse_duration(run.manifest.get("config", {}).get("warmup", 0.0), "warmup")
