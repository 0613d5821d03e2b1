"""A report of runs: one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from emu import disk
from emu.configuration.seeds import alike_note, head_of, instances_of
from emu.directories.names import CONFIG, REPORT_MARK, is_report
from emu.families.registry import families, family_of_summary, find_family
from emu.report.answer import ONE_SEED, answer_of, answer_over
from emu.report.causes_sections import (
    causes_section,
    causes_tables,
    explained_section,
    slowest_section,
    time_by_cause,
)
from emu.report.conditions import Conditions, as_text, conditions_of
from emu.report.drawing import Shown
from emu.report.page import figure_of, fill, section
from emu.report.percentile_plots import percentile_sheets, points_of
from emu.report.plots import Drawing, figures_of, timeline_figure
from emu.report.remedies import changes_of
from emu.report.report_sections import BEST_EXPLAINED, comparison_sections, run_reasons, table_section
from emu.results.measures import PAGE, Row, facts_of
from emu.results.metrics import confidence_95
from emu.results.paired_comparison import compare
from emu.results.reasons import bottlenecks, reasons_tables
from emu.results.result import Result, Summarising, summary_of
from emu.results.run_groups import IN_HEADINGS, Group, axes_of, group_runs, value_text
from emu.results.text_tables import Cell, counter_name, counter_text
from emu.terminal import few_alike
from workloads.errors import InputError

MANY_GROUPS = 4
"""Number of sections of a page, such as points of a sweep, from which they can be folded."""
MOST_INSTANCES = 3
"""Instances of a batch whose runs a page shows, for each scheduler."""


def write_report(path: Path, text: str) -> Path:
    """Write a page; an existing file is replaced only if it is a report."""
    if path.exists() and not is_report(path):
        raise InputError("exists and is not a report; give another file with --out", file=path)
    disk.write_text(path, text)
    return path


def render_report(
    runs: Sequence[Result],
    title: str = "Emu report",
    sections: Sequence[str] = (),
    figures: Sequence[Shown] | None = None,
) -> str:
    """Return the page of any runs: runs of the same jobs, nodes and seeds are compared, and each run is shown.

    `sections` come first. `figures` are those of `figures_of` where all runs are compared with each other, if they are
    drawn already: drawing takes most of the time of a page. Without runs, as of a search on whose last size some job
    cannot run, the page is its sections.
    """
    groups = group_runs(runs) if runs else []
    rows = [_rows_of(group) for group in groups]
    shown, of_page, names = _with_sections(groups), conditions_of(runs) if runs else {}, _names_of(groups)
    notes = few_alike(n for r in runs for n in r.notes)
    if len(shown) < len(runs):
        few = f"emu report of a run's own directory shows it; here are those of the first {MOST_INSTANCES} instances"
        notes = [*notes, f"{len(runs):,} runs are compared: {few} of each scheduler"]
    return fill(
        "page.html",
        mark=REPORT_MARK,
        title=title,
        what=_what(runs) if runs else "no runs",
        conditions=of_page,
        notes=notes,
        sections=sections,
        answer=_answer_over(groups, rows),
        axis_figures=_axis_figures(groups),
        groups=[
            _group_section(
                group, own, _folding(number, len(groups)), figures if len(groups) == 1 else None, of_page
            )
            for number, (group, own) in enumerate(zip(groups, rows, strict=True))
        ],
        runs=[_run_section(run, names[id(run)], is_open=len(runs) == 1) for run in runs if id(run) in shown],
    )


def _rows_of(group: Group) -> list[Row]:
    """Return the comparison of a group; nothing for a single scheduler."""
    first = next(iter(group.results.values()))[0]
    return compare(group.results, first.warmup_s) if len(group.results) > 1 else []


def _answer_over(groups: Sequence[Group], rows: Sequence[list[Row]]) -> list[str]:
    """Return which scheduler is best at which points, for each family and workload; nothing for one comparison."""
    points: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for group, own in zip(groups, rows, strict=True):
        first = next(iter(group.results.values()))[0]
        at = " ".join(f"{label} {value_text(label, value)}" for label, value in group.at.items())
        points.setdefault((first.family, first.summary["workload"]), {})[at] = own
    several = len(points) > 1
    return [
        f"{workload}. {text}" if several else text
        for (family, workload), of_one in points.items()
        for text in answer_over(of_one, find_family(family))
    ]


def _folding(number: int, count: int) -> str | None:
    """Return whether the section of a group is ``open`` or ``closed``; None where there are too few to fold."""
    return None if count < MANY_GROUPS else "open" if number == 0 else "closed"


def _with_sections(groups: Sequence[Group]) -> set[int]:
    """Return the ids of the runs that have a section: of a batch those of its first instances."""
    return {
        id(run)
        for group in groups
        for runs in group.results.values()
        for run in (runs[:MOST_INSTANCES] if len(instances_of([r.summary for r in runs])) > 1 else runs)
    }


def _axis_figures(groups: Sequence[Group]) -> list[str]:
    """Return the figures of percentiles against the axes of the groups."""
    axes = axes_of(groups)
    points = points_of(groups)
    return [
        figure_of(sheet.drawn, sheet.caption, sheet.narrow)
        for family in families()
        for sheet in percentile_sheets(axes, [p for p in points if family_of_summary(p.summary) is family])
    ]


def _what(runs: Sequence[Result]) -> str:
    def several(values: Iterable[Any], one: str) -> str:
        distinct = list(dict.fromkeys(values))
        return str(distinct[0]) if len(distinct) == 1 else f"{len(distinct)} {one}s"

    schedulers = several((r.summary["scheduler"] for r in runs), "scheduler")
    workload = several((r.summary.get("batch", r.summary["workload"]) for r in runs), "workload")
    nodes = several((f"{r.summary['nodes']:,} {find_family(r.family).node}s" for r in runs), "size")
    seeds = several((f"seed {r.summary['seed']}" for r in runs), "seed")
    if instances := instances_of([r.summary for r in runs]):
        seeds = f"{several((f'instance {name}' for name in instances), 'instance')}, {seeds}"
    return f"{schedulers} on {workload}, {nodes}, {seeds}; clock {runs[0].summary['clock']}"


def _group_section(
    group: Group, rows: Sequence[Row], folded: str | None, shown: Sequence[Shown] | None, of_page: Conditions
) -> str:
    """Return the section of runs that are compared; `folded` as of `_folding`, without the conditions `of_page`."""
    results = group.results
    first = next(iter(results.values()))[0]
    family, warmup_s, several = find_family(first.family), first.warmup_s, len(results) > 1
    of_runs = {name: [r.summary for r in runs] for name, runs in results.items()}
    axes = [
        f"{label} {value_text(label, value)}" for label, value in group.at.items() if label not in IN_HEADINGS
    ]
    summaries = [{**summary_of(runs), "scheduler": name} for name, runs in results.items()]
    own = conditions_of([run for runs in results.values() for run in runs])
    of_seeds, causes = next(iter(of_runs.values())), causes_tables(results)
    by_cause = time_by_cause(results, causes)
    sections = [
        *comparison_sections(results, warmup_s),
        *slowest_section(results, causes),
        *causes_section(by_cause, family, len(of_seeds) > 1),
        *map(table_section, reasons_tables(summaries)),
    ]
    answer = [*family[Drawing].answers(results), *answer_of(rows, family)] if several else []
    shown = figures_of(results, warmup_s) if shown is None else shown
    lead = _lead([figure.stem for figure in shown])
    drawn = {figure.stem: figure_of(figure.drawn, figure.caption, figure.narrow) for figure in shown}
    return fill(
        "group.html",
        folded=folded,
        heading=head_of(of_seeds, axes),
        facts=as_text({k: v for k, v in own.items() if of_page.get(k) != v}),
        answer=[*answer, ONE_SEED] if answer and len(of_seeds) == 1 else answer,
        changes=changes_of(results, by_cause, family),
        summaries=summaries,
        bottlenecks=bottlenecks(summaries),
        alike=alike_note(of_runs).strip(),
        best_explained=BEST_EXPLAINED[len(of_seeds) > 1] if several else "",
        sections=[*sections, *(_counter_section(results) if several else [])],
        first_figures=[drawn[stem] for stem in lead],
        figures=[html for stem, html in drawn.items() if stem not in lead],
    )


def _lead(stems: Sequence[str]) -> list[str]:
    """Return the figures that explain the first table: the first distribution, and the timeline."""
    distributions = [stem for stem in stems if stem.startswith("cdf-")]
    return [*distributions[:1], *(stem for stem in stems if stem == "timeline")]


def _counter_section(group: Mapping[str, list[Result]]) -> list[str]:
    """Return how often each mechanism fired, scheduler by scheduler."""
    names = list(dict.fromkeys(name for runs in group.values() for r in runs for name in r.counters))
    if not names:
        return []
    meanings = find_family(next(iter(group.values()))[0].family).counters()
    cells: list[list[str | Cell]] = []
    for name in names:
        found = [[r.counters[name] for r in runs if name in r.counters] for runs in group.values()]
        shown = [counter_text(name, *confidence_95(values)) if values else "" for values in found]
        cells.append([counter_name(name), *shown, Cell(_plain(meanings.get(name, "")), "text")])
    words = "How often each fired in a run."
    return [section("What the mechanisms did", words, ["counter", *group, "what it counts"], cells)]


def _plain(markdown: str) -> str:
    return markdown.replace("`", "")


def _names_of(groups: Sequence[Group]) -> dict[int, str]:
    """Return the name of each run by its id, with the axes and parameters that distinguish it."""
    found = {}
    for group in groups:
        own = [f"{label} {value_text(label, v)}" for label, v in group.at.items() if label not in IN_HEADINGS]
        for name, runs in group.results.items():
            for run in runs:
                s = run.summary
                size = f"{s['nodes']:,} {find_family(run.family).node}s"
                found[id(run)] = ", ".join([f"{name} on {s['workload']}", size, *own, f"seed {s['seed']}"])
    return found


def _run_section(run: Result, head: str, is_open: bool) -> str:
    s = run.summary
    family = find_family(run.family)
    facts = facts_of(family[Summarising].facts, s, PAGE)
    sections = [section("", "", ["figure", "value"], facts.items()), *run_reasons(s)]
    meanings = family.counters()
    rows: list[list[str | Cell]] = [
        [counter_name(name), counter_text(name, value), Cell(_plain(meanings.get(name, "")), "text")]
        for name, value in run.counters.items()
        if value
    ]
    if rows:
        words = "What the scheduler's mechanisms did:"
        sections.append(section("", words, ["counter", "count", "what it counts"], rows))
    sections += explained_section(run)
    figure = timeline_figure({s["scheduler"]: [run]})
    return fill(
        "run.html",
        head=head,
        is_open=is_open,
        sections=sections,
        figure="" if figure is None else figure_of(figure, family[Drawing].timeline.caption),
        config_name=CONFIG,
        config=run.config,
        versions=", ".join(f"{k} {v}" for k, v in run.manifest.get("versions", {}).items()),
    )
