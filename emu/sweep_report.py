"""What the runs of a sweep come to: paired comparisons point by point, a summary, plots."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emu.comparison import GROUPS, Row, compare_class, render_rows
from emu.grid import SCHEDULER, SEED, Axis, Grid, Point
from emu.metrics import summarise_seeds
from emu.results import Result, read_result
from emu.run_directory import safe_name

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
    rows : list of Row
        Of the seeds that all variants have; empty if there are none.
    head : str
        What was run.
    left_out : str
        Which seeds are in no pair, if any.
    """

    group: Group
    summaries: dict[str, dict[str, Any]]
    rows: list[Row]
    head: str
    left_out: str


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
        rows = [row for c in GROUPS for row in compare_class(paired, c, warmup_s)] if common else []
        every = sorted(set().union(*(set(runs) for runs in results.values())))
        lost = [str(seed) for seed in every if seed not in common]
        left_out = f"seeds without a run of every scheduler are left out: {', '.join(lost)}" if lost else ""
        yield Compared(group, summaries, rows, _head(group, grid, summaries, sorted(common)), left_out)


def render_group(compared: Compared) -> str:
    """Return a group's figures as a table."""
    notes = f"{compared.left_out}\n" if compared.left_out else ""
    if not compared.rows:
        return f"{compared.head}: no seed has a finished run of every scheduler\n"
    return render_rows(compared.rows, compared.head) + notes


def summary_rows(compared: Compared) -> list[dict[str, Any]]:
    """Return one entry per variant of a group for ``summary.json``."""
    entries = []
    for name, summary in compared.summaries.items():
        rows = {row.job_class: row for row in compared.rows if row.scheduler == name}
        entries.append(
            {
                **compared.group.columns[name],
                **compared.group.at,
                "seeds": sorted(compared.group.variants[name]),
                "jobs": summary["jobs"],
                "confidence_95": summary.get("confidence_95", {"jobs": {}}),
                "ratios": {c: {s: _pair(*pair) for s, pair in row.ratios.items()} for c, row in rows.items()},
                "improved": {c: _number(row.improved) for c, row in rows.items()},
            }
        )
    return entries


def figures_of(grid: Grid, compared: Sequence[Compared]) -> Iterator[tuple[str, Any]]:
    """Yield (stem, figure): percentiles against nodes or load, whichever has more values; none if neither varies."""
    from emu.plots import percentiles_figure

    candidates = [a for a in grid.axes if a.name in PLOTTED and len(a.values) > 1]
    if not candidates:
        return
    axis = max(candidates, key=lambda a: len(a.values))
    sheets: dict[str, dict[str, dict[float, dict[str, Any]]]] = {}
    varied = [a.label for a in grid.axes if len(a.values) > 1 and a is not axis]
    for part in compared:
        rest = [f"{k}={v}" for k, v in part.group.at.items() if k in varied]
        sheet = sheets.setdefault(safe_name("-".join(["percentiles", *rest])), {})
        for name, summary in part.summaries.items():
            sheet.setdefault(name, {})[part.group.at[axis.label]] = summary["jobs"]
    values = [float(v) for v in axis.shown]
    for stem, lines in sheets.items():
        figure = percentiles_figure(lines, axis.label, log_x=max(values) >= 8 * min(values))
        if figure is not None:
            yield stem, figure


def _is_own(axis: Axis) -> bool:
    return axis.name == SCHEDULER or axis.is_parameter


def _read(runs: Mapping[int, Path]) -> dict[int, Result]:
    made = {}
    for seed, folder in runs.items():
        made[seed] = read_result(folder)
        made[seed].tasks = None  # large, and no comparison looks at them
    return made


def _summary(results: list[Result]) -> dict[str, Any]:
    return results[0].summary if len(results) == 1 else summarise_seeds([r.summary for r in results])


def _head(group: Group, grid: Grid, summaries: Mapping[str, Mapping[str, Any]], seeds: list[int]) -> str:
    first = next(iter(summaries.values()))
    varied = [a.label for a in grid.axes if len(a.values) > 1]
    own = [f"{k}={v}" for k, v in group.at.items() if k in varied and k not in ("nodes", "workload")]
    text = "seed " if len(seeds) == 1 else "seeds "
    text += ", ".join(map(str, seeds)) + (", means ± 95 %" if len(seeds) > 1 else "")
    return ", ".join([f"{first['workload']} on {first['nodes']:,} nodes", *own, *([text] if seeds else [])])


def _pair(mean: float, half: float) -> dict[str, float | None]:
    return {"mean": _number(mean), "half_95": _number(half)}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
