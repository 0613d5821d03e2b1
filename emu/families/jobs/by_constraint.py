"""Effects of constraints on jobs, by scheduler: queueing delay with and without, and each kind's slowdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from emu.families.jobs.metrics import SPLIT, part_of
from emu.results.comparison_row import Pair
from emu.results.metrics import STATISTICS, confidence_95, ratios
from emu.results.result import Result
from emu.results.text_tables import align, number, ratio, times_clause, with_error


@dataclass(frozen=True)
class WaitRow:
    """Queueing delay of one group of jobs, of `emu.families.jobs.metrics.SPLIT`, under one scheduler."""

    scheduler: str
    group: str
    times: dict[str, Pair]


@dataclass(frozen=True)
class KindRow:
    """Short jobs with one kind of constraint, by scheduler.

    Attributes
    ----------
    kind : str
    count : float
        Jobs, under the first scheduler.
    mean : dict of str to Pair
        Mean completion time in seconds.
    ratio : dict of str to Pair
        The same over that of the first scheduler, seed by seed. Where the first ignores constraints, it is
        what they cost these very jobs.
    slowdown : dict of str to Pair
        Relative slowdown: ``slowdown_vs_unconstrained`` of the summaries.
    """

    kind: str
    count: float
    mean: dict[str, Pair]
    ratio: dict[str, Pair]
    slowdown: dict[str, Pair]


def compare_waits(results: Mapping[str, list[Result]]) -> list[WaitRow]:
    """Return the queueing delays, group by group; none where no class has jobs with constraints and without."""
    rows = []
    for group in SPLIT:
        for scheduler, runs in results.items():
            parts = [part_of(r.summary["jobs"], group) for r in runs]
            if all(parts):
                waits = {s: [p["wait"].get(s, math.nan) for p in parts] for s in STATISTICS}
                rows.append(WaitRow(scheduler, group, {s: confidence_95(v) for s, v in waits.items()}))
    return rows


def compare_kinds(results: Mapping[str, list[Result]]) -> list[KindRow]:
    """Return the kinds of constraints that short jobs have in all runs, that with most jobs first."""
    parts = {
        name: [r.summary["jobs"].get("by_constraint", {}) for r in runs] for name, runs in results.items()
    }
    first = next(iter(parts))
    rows = []
    for kind in parts[first][0]:
        if not all("short" in of_kind.get(kind, {}) for own in parts.values() for of_kind in own):
            continue
        means = {n: [k[kind]["short"].get("mean", math.nan) for k in own] for n, own in parts.items()}
        slowed = {
            n: [k[kind].get("slowdown_vs_unconstrained", math.nan) for k in own] for n, own in parts.items()
        }
        rows.append(
            KindRow(
                kind=kind,
                count=float(np.mean([k[kind]["short"]["count"] for k in parts[first]])),
                mean={name: confidence_95(values) for name, values in means.items()},
                ratio={name: ratios(means[first], values) for name, values in means.items()},
                slowdown={name: confidence_95(values) for name, values in slowed.items()},
            )
        )
    return rows


def render_waits(rows: Sequence[WaitRow]) -> str:
    """Return queueing delays as a table behind a blank line; nothing of none."""
    if not rows:
        return ""
    cells = [[r.scheduler, f"{r.group} jobs", *(with_error(*r.times[s]) for s in STATISTICS)] for r in rows]
    table = align([["", "", *STATISTICS], *cells], 2)
    return "\n".join(
        ["", "queueing delay in seconds, until a job's first task starts", *_indented(table), ""]
    )


def render_kinds(rows: Sequence[KindRow]) -> str:
    """Return kinds of constraints as a table behind a blank line; nothing of none."""
    if not rows:
        return ""
    first, *others = rows[0].mean
    head = ["", "jobs", first]
    for name in others:
        head += [name, ""]
    cells = [head]
    for row in rows:
        line = [row.kind, number(row.count), with_error(*row.mean[first])]
        for name in others:
            line += [with_error(*row.mean[name]), ratio(*row.ratio[name])]
        cells.append(line)
    what = "short jobs by kind of constraint: mean completion time in seconds"
    what += times_clause(first) if others else ""
    return "\n".join(["", what, *_indented(align(cells)), ""])


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]
