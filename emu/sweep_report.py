"""What the runs of a sweep come to: paired comparisons point by point, a summary, plots."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emu.coflow_comparison import CoflowRow, compare_coflows
from emu.coflow_tables import render_rows as render_coflow_rows
from emu.grid import SCHEDULER, SEED, Axis, Grid, Point
from emu.job_comparison import compare_jobs, render_rows
from emu.keys import COFLOWS, JOBS
from emu.metrics import summarise_seeds
from emu.results import Result, read_result
from emu.run_directory import safe_name
from emu.seeds import alike_note, head_of

PLOTTED = ("nodes", "load")


@dataclass(frozen=True)
class Group:
    """All runs of one point of the axes that are neither scheduler, nor parameter, nor seed.

    Attributes
    ----------
    at : dict of str to object
        Label to value of those axes.
    variants : dict of str to dict of int to Path
        Scheduler, with its parameters where they vary, to the directories of its runs by seed; the first is the one
        that others are compared with.
    columns : dict of str to dict
        Label to value of scheduler and parameters, by variant.
    """

    at: dict[str, Any]
    variants: dict[str, dict[int, Path]]
    columns: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Compared:
    """A group's figures.

    Attributes
    ----------
    summaries : dict of str to dict
        By variant: the summary of its runs, as `summarise_seeds` has it.
    rows : list of Row, or of CoflowRow
        Of the seeds that all variants have; empty if there are none.
    head : str
        What was run.
    notes : str
        Lines below the table: which schedulers gave the same with every seed, which seeds are in no pair.
    """

    group: Group
    summaries: dict[str, dict[str, Any]]
    rows: list[Any]
    head: str
    notes: str


def group_points(grid: Grid, done: Sequence[tuple[Point, Path]]) -> list[Group]:
    """Return the finished runs as groups, in the order of the grid."""
    groups: dict[tuple[Any, ...], Group] = {}
    for point, folder in done:
        shared = [a for a in grid.axes if a.name in point.at and not _is_own(a) and a.name != SEED]
        own = [a for a in grid.axes if a.name in point.at and _is_own(a)]
        at = {a.label: a.shown[point.at[a.name]] for a in shared}
        group = groups.setdefault(tuple(at.values()), Group(at, {}, {}))
        columns = {a.label: a.shown[point.at[a.name]] for a in own}
        varied = [
            f"{a.label}={a.texts[point.at[a.name]]}" for a in own if a.is_parameter and len(a.values) > 1
        ]
        label = " ".join([columns[SCHEDULER], *varied])
        group.columns[label] = columns
        group.variants.setdefault(label, {})[point.config[SEED]] = folder
    return list(groups.values())


def compare_groups(groups: Sequence[Group], grid: Grid) -> Iterator[Compared]:
    """Yield each group's figures; the tables of one group at a time are in memory."""
    for group in groups:
        warmup_s = group.at.get("warmup", grid.base["warmup"])
        results = {name: _read(runs) for name, runs in group.variants.items()}
        summaries = {name: _summary(list(runs.values())) for name, runs in results.items()}
        common = set.intersection(*(set(runs) for runs in results.values()))
        paired = {name: [runs[seed] for seed in sorted(common)] for name, runs in results.items()}
        compare = compare_coflows if _is_of_coflows(summaries) else compare_jobs
        rows = list(compare(paired, warmup_s)) if common else []
        every = sorted(set().union(*(set(runs) for runs in results.values())))
        lost = [str(seed) for seed in every if seed not in common]
        of_runs = {name: [r.summary for r in runs] for name, runs in paired.items()}
        notes = alike_note(of_runs) if common else ""
        if lost:
            notes += f"seeds without a run of every scheduler are left out: {', '.join(lost)}\n"
        first = next(iter(results.values()))
        head = _head(group, grid, next(iter(of_runs.values())) or [r.summary for r in first.values()])
        yield Compared(group, summaries, rows, head, notes)


def render_group(compared: Compared) -> str:
    """Return a group's figures as a table."""
    if not compared.rows:
        return f"{compared.head}: no seed has a finished run of every scheduler\n"
    render = render_coflow_rows if _is_of_coflows(compared.summaries) else render_rows
    return render(compared.rows, compared.head) + compared.notes


def summary_rows(compared: Compared) -> list[dict[str, Any]]:
    """Return one entry per variant of a group for ``summary.json``."""
    entries = []
    for name, summary in compared.summaries.items():
        family = COFLOWS if COFLOWS in summary else JOBS
        told: dict[str, Any] = {key: summary[key] for key in ("varied", "alike") if key in summary}
        entries.append(
            {
                **compared.group.columns[name],
                **compared.group.at,
                "seeds": sorted(compared.group.variants[name]),
                **told,
                family: summary[family],
                "confidence_95": summary.get("confidence_95", {family: {}}),
                **_compared([row for row in compared.rows if row.scheduler == name]),
            }
        )
    return entries


def _compared(rows: Sequence[Any]) -> dict[str, Any]:
    """Return what rows of one scheduler say of it against the first."""
    if any(isinstance(row, CoflowRow) for row in rows):
        return {"speedup": {r.group: {s: _pair(*pair) for s, pair in r.speedup.items()} for r in rows}}
    return {
        "ratios": {r.job_class: {s: _pair(*pair) for s, pair in r.ratios.items()} for r in rows},
        "improved": {r.job_class: _number(r.improved) for r in rows},
    }


def figures_of(grid: Grid, compared: Sequence[Compared]) -> Iterator[tuple[str, Any]]:
    """Yield (stem, figure): percentiles against nodes or load, whichever has more values; none if neither varies.

    Of coflows, where neither varies, against the number that does: a parameter, a speed, a delay.
    """
    from emu.coflow_plots import percentiles_figure as percentiles_of_coflows
    from emu.plots import percentiles_figure

    of_coflows = bool(compared) and _is_of_coflows(compared[0].summaries)
    several = [a for a in grid.axes if len(a.values) > 1]
    candidates = [a for a in several if a.name in PLOTTED]
    if not candidates and of_coflows:
        candidates = [a for a in several if a.name != SEED and all(map(_is_number, a.shown))]
    if not candidates:
        return
    axis = max(candidates, key=lambda a: len(a.values))
    sheets: dict[str, dict[str, dict[float, dict[str, Any]]]] = {}
    varied = [a.label for a in several if a is not axis]
    for part in compared:
        rest = [f"{k}={v}" for k, v in part.group.at.items() if k in varied]
        sheet = sheets.setdefault(safe_name("-".join(["percentiles", *rest])), {})
        for name, summary in part.summaries.items():
            at = part.group.at | part.group.columns[name]
            # A scheduler without the parameter is the same wherever it stands.
            places = [at[axis.label]] if axis.label in at else axis.shown
            line = " ".join(word for word in name.split(" ") if not word.startswith(f"{axis.label}="))
            figures = summary[COFLOWS if COFLOWS in summary else JOBS]
            sheet.setdefault(line, {}).update(dict.fromkeys(places, figures))
    values = [float(v) for v in axis.shown]
    for stem, lines in sheets.items():
        draw = percentiles_of_coflows if of_coflows else percentiles_figure
        figure = draw(lines, axis.label, log_x=max(values) >= 8 * min(values))
        if figure is not None:
            yield stem, figure


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_of_coflows(summaries: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether runs are of coflows; all of a group have the same workload."""
    return all(COFLOWS in summary for summary in summaries.values())


def _is_own(axis: Axis) -> bool:
    return axis.name == SCHEDULER or axis.is_parameter


def _read(runs: Mapping[int, Path]) -> dict[int, Result]:
    made = {}
    for seed, folder in runs.items():
        made[seed] = read_result(folder)
        made[seed].tasks = made[seed].flows = None  # large, and no comparison looks at them
    return made


def _summary(results: list[Result]) -> dict[str, Any]:
    return results[0].summary if len(results) == 1 else summarise_seeds([r.summary for r in results])


def _head(group: Group, grid: Grid, runs: Sequence[Mapping[str, Any]]) -> str:
    """Return what the runs of one scheduler of a group are of: those that are compared."""
    varied = [a.label for a in grid.axes if len(a.values) > 1]
    own = [f"{k}={v}" for k, v in group.at.items() if k in varied and k not in ("nodes", "workload")]
    return head_of(runs, own)


def _pair(mean: float, half: float) -> dict[str, float | None]:
    return {"mean": _number(mean), "half_95": _number(half)}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
