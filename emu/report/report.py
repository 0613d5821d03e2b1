"""A report of runs: one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from emu import disk
from emu.configuration.seeds import alike_note, head_of
from emu.directories.names import CONFIG, REPORT_MARK, is_report
from emu.families.registry import families, find_family
from emu.report.page import CSS, figure_of, pairs, table, text
from emu.report.percentile_plots import Point, percentile_sheets
from emu.report.plots import timeline_figure
from emu.report.report_sections import BEST_EXPLAINED, bottleneck_notes, note, reasons_section, run_reasons
from emu.results.axes import IN_HEADINGS, Group, axes_of, group_runs, value_text
from emu.results.metrics import confidence_95, summarise_seeds
from emu.results.result import Result
from emu.results.tables import counter_text, counter_texts
from workloads.errors import InputError


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
        for family in families()
        for sheet in percentile_sheets(axes, [p for p in points if family.name in p.summary])
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
    nodes = several((f"{r.summary['nodes']:,} {find_family(r.family).node}s" for r in runs), "size")
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
        parts.append(f"<p>{text(BEST_EXPLAINED[len(next(iter(of_runs.values()))) > 1])}</p>")
    family = find_family(first.family)
    parts += family.group_section(results, warmup_s)
    parts += reasons_section(summaries)
    if len(results) > 1:
        parts += _counter_section(results)
    shown = [figure_of(f.drawn, f.caption) for f in family.group_figures(results, warmup_s)]
    return [*parts, f'<div class="figures">{"".join(shown)}</div>']


def _summary(runs: Sequence[Result]) -> dict[str, Any]:
    return runs[0].summary if len(runs) == 1 else summarise_seeds([r.summary for r in runs])


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
    family = find_family(run.family)
    head = f"{s['scheduler']} on {s['workload']}, {s['nodes']:,} {family.node}s, seed {s['seed']}"
    facts = family.run_facts(run)
    parts = [f"<details{' open' if is_open else ''}><summary>{text(head)}</summary>"]
    parts.append(table(["figure", "value"], pairs(facts)))
    parts += run_reasons(s)
    if counted := counter_texts(run.counters):
        parts += [
            "<p>What the scheduler's mechanisms did:</p>",
            table(["counter", "count"], pairs(counted)),
        ]
    figure = timeline_figure(run)
    if figure is not None:
        parts.append(figure_of(figure, family.timeline_caption))
    parts.append(f"<p>Configuration ({text(CONFIG)}):</p><pre>{text(run.config)}</pre>")
    versions = ", ".join(f"{k} {v}" for k, v in run.manifest.get("versions", {}).items())
    return [*parts, f'<p class="sub">{text(versions)}</p></details>']


def _warmup(run: Result) -> float:
    from workloads.units import parse_duration

    return parse_duration(run.manifest.get("config", {}).get("warmup", 0.0), "warmup")
