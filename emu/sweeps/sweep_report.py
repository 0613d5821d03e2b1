"""Results of a sweep: paired comparisons point by point, a summary, plots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from emu.configuration.replicas import Replica, left_out_text
from emu.configuration.seeds import alike_note, head_of
from emu.families.family import Family
from emu.families.registry import family_of_summary
from emu.report.drawing import Shown
from emu.results.comparison_tables import render_more, render_rows
from emu.results.measures import Row, read_measures
from emu.results.metrics import summarise_replicas
from emu.results.paired_comparison import Tolerance, compare, tolerance_of
from emu.results.reasons import render_bottlenecks, render_reasons
from emu.results.records import compared, tidy
from emu.results.result import Result, read_result
from emu.results.run_groups import COMPARED, value_text, workload_hash
from emu.results.run_groups import Axis as PlotAxis
from emu.sweeps.grid import SCHEDULER, SEED, Axis, Grid, Point

REASONS = ("decision_latency", "schedulers", "coordinator", "utilisation", "bottlenecks")
"""Parts of a summary that explain completion times."""


@dataclass(frozen=True)
class Group:
    """All runs of one point of the axes that are neither scheduler, nor network, nor parameter, nor seed, nor instance.

    A variant is a scheduler, with its network and parameters where they vary; the first is the baseline.
    """

    at: dict[str, Any]  # label to value of those axes
    variants: dict[str, dict[Replica, Path]]  # to the directories of its runs
    columns: dict[str, dict[str, Any]]  # label to value of scheduler and parameters, by variant


@dataclass(frozen=True)
class Compared:
    """A group's figures."""

    group: Group
    summaries: dict[str, dict[str, Any]]  # by variant, as `summarise_replicas` makes them
    rows: list[Row]  # of the replicas that all variants have; empty without any
    tolerance: Tolerance  # within which completion times are called equal
    head: str  # what was run
    more: str  # the other tables of a comparison
    notes: str  # lines below the table: schedulers with the same results for every seed, replicas left out


def group_points(grid: Grid, done: Sequence[tuple[Point, Path]]) -> list[Group]:
    """Return the finished runs as groups, in the order of the grid.

    A run for which an axis has no effect is in the groups of all values of that axis.
    """
    places = [
        {
            a.label: a.shown[p.at[a.name]]
            for a in grid.axes
            if a.name in p.at and not _is_own(a) and a.name != SEED
        }
        for p, _ in done
    ]
    groups = {
        repr(at): Group(at, {}, {}) for at in places if not any(_is_part(at, other) for other in places)
    }
    for (point, folder), at in zip(done, places, strict=True):
        own = [a for a in grid.axes if a.name in point.at and _is_own(a)]
        columns = {a.label: a.shown[point.at[a.name]] for a in own}
        varied = [f"{a.label}={a.texts[point.at[a.name]]}" for a in own if a.is_own and len(a.values) > 1]
        label = " ".join([columns[SCHEDULER], *varied])
        for group in groups.values():
            if at == group.at or _is_part(at, group.at):
                group.columns[label] = columns
                group.variants.setdefault(label, {})[point.replica] = folder
    return list(groups.values())


def _is_part(at: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether a place is another one without some of its axes."""
    return len(at) < len(other) and all(label in other and other[label] == at[label] for label in at)


def compare_groups(groups: Sequence[Group], grid: Grid) -> Iterator[Compared]:
    """Yield each group's figures; the tables of one group at a time are in memory."""
    for group, results in chain.from_iterable(map(_of_one_workload, groups)):
        warmup_s = group.at.get("warmup", grid.base["warmup"])
        summaries = {name: _summary(list(runs.values())) for name, runs in results.items()}
        common = set.intersection(*(set(runs) for runs in results.values()))
        paired = {name: [runs[replica] for replica in sorted(common)] for name, runs in results.items()}
        rows = compare(paired, warmup_s) if common else []
        more = render_more(paired, rows, warmup_s) if common else ""
        lost = sorted(set().union(*(set(runs) for runs in results.values())) - common)
        of_runs = {name: [r.summary for r in runs] for name, runs in paired.items()}
        notes = alike_note(of_runs) if common else ""
        if lost:
            notes += f"{left_out_text(lost)}\n"
        first = next(iter(results.values()))
        head = _head(group, grid, next(iter(of_runs.values())) or [r.summary for r in first.values()])
        tolerance = tolerance_of({name: list(runs.values()) for name, runs in results.items()})
        yield Compared(group, summaries, rows, tolerance, head, more, notes)


def _of_one_workload(group: Group) -> list[tuple[Group, dict[str, dict[Replica, Result]]]]:
    """Return a group and its results, or a group for each network, where jobs do not arrive alike under all of them."""
    results = {name: _read(runs) for name, runs in group.variants.items()}
    hashes = {(replica, workload_hash(run)) for of in results.values() for replica, run in of.items()}
    if len(hashes) == len(dict(hashes)):
        return [(group, results)]
    found = []
    (label,) = COMPARED.values()
    for network in dict.fromkeys(columns.get(label) for columns in group.columns.values()):
        names = [name for name in results if group.columns[name].get(label) == network]
        variants = {name: group.variants[name] for name in names}
        part = Group({**group.at, label: network}, variants, {name: group.columns[name] for name in names})
        found.append((part, {name: results[name] for name in names}))
    return found


def render_group(part: Compared, columns: Sequence[str] | None = None, reasons: bool = False) -> str:
    """Return a group's figures as a table; `columns` and `reasons` are as in `Comparison.to_text`."""
    if not part.rows:
        unit = next(iter(next(iter(part.group.variants.values())))).unit
        return f"{part.head}: no {unit} has a finished run of every scheduler\n"
    family = _family(part.summaries)
    shown = read_measures(columns, family.name)
    tables = render_rows(part.rows, family.name, part.head, part.tolerance, shown)
    summaries = [{**summary, "scheduler": name} for name, summary in part.summaries.items()]
    reasons_text = render_reasons(summaries) if reasons else ""
    return tables + part.more + reasons_text + render_bottlenecks(summaries) + part.notes


def summary_rows(part: Compared, out: Path) -> list[dict[str, Any]]:
    """Return one entry per variant of a group for the ``summary.json`` in `out`."""
    entries = []
    for name, summary in part.summaries.items():
        family = family_of_summary(summary)
        own = [row for row in part.rows if row.scheduler == name]
        entries.append(
            {
                **part.group.columns[name],
                **part.group.at,
                "seeds": sorted({replica.seed for replica in part.group.variants[name]}),
                **({"instances": summary["instances"]} if "instances" in summary else {}),
                **{name: summary[name] for name in family.parts},
                "confidence_95": summary.get("confidence_95", {name: {} for name in family.parts}),
                **{key: summary[key] for key in ("varied", "alike", *REASONS) if key in summary},
                **(compared(own, part.rows[0].scheduler) if own else {}),
                "paths": [run.relative_to(out).as_posix() for run in part.group.variants[name].values()],
            }
        )
    return entries


def records_of(part: Compared) -> Iterator[dict[str, Any]]:
    """Yield all figures of a group, a record each: its axes, and the fields of `emu.results.records.tidy`."""
    first = part.rows[0].scheduler if part.rows else ""
    for name, summary in part.summaries.items():
        place = part.group.at | {k: v for k, v in part.group.columns[name].items() if k != SCHEDULER}
        own = [row for row in part.rows if row.scheduler == name]
        for record in tidy(summary, own, first):
            yield {**place, **record, SCHEDULER: part.group.columns[name][SCHEDULER]}


def figures_of(grid: Grid, compared: Sequence[Compared]) -> list[Shown]:
    """Return figures of percentiles against the axes that vary (`emu.report.percentile_plots`)."""
    from emu.report.percentile_plots import Point as Place
    from emu.report.percentile_plots import percentile_sheets

    axes = [PlotAxis(a.label, a.shown, a.is_own) for a in grid.axes if a.name not in (SCHEDULER, SEED)]
    points = [
        Place(part.group.columns[name][SCHEDULER], part.group.at | part.group.columns[name], summary)
        for part in compared
        for name, summary in part.summaries.items()
    ]
    return list(percentile_sheets(axes, points))


def _family(summaries: Mapping[str, Mapping[str, Any]]) -> Family:
    """Return the family of the runs of a group, which all have the same workload."""
    return family_of_summary(next(iter(summaries.values())))


def _is_own(axis: Axis) -> bool:
    return axis.name == SCHEDULER or axis.is_own


def _read(runs: Mapping[Replica, Path]) -> dict[Replica, Result]:
    made = {}
    for replica, folder in runs.items():
        made[replica] = read_result(folder)
        made[replica].drop_large()  # comparisons do not need large tables
    return made


def _summary(results: list[Result]) -> dict[str, Any]:
    return results[0].summary if len(results) == 1 else summarise_replicas([r.summary for r in results])


def _head(group: Group, grid: Grid, runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the head of a group's table, from the runs of one scheduler."""
    varied = [a.label for a in grid.axes if len(a.values) > 1]
    names = {a.label: a.name for a in grid.axes if a.label in varied}
    own = [
        f"{k}={value_text(names[k], v)}"
        for k, v in group.at.items()
        if k in varied and k not in ("nodes", "workload")
    ]
    return head_of(runs, own)
