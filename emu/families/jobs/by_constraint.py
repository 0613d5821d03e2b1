"""Effects of constraints on jobs: queueing delay with and without constraints, and slowdown by kind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from emu.families.jobs.metrics import SPLIT, part_of
from emu.results.comparison_row import Pair
from emu.results.metrics import STATISTICS, confidence_95, ratios
from emu.results.result import Runs
from emu.results.text_tables import Table, align, indented, number, ratio, times_clause, with_error


@dataclass(frozen=True)
class KindRow:
    """Short jobs with one kind of constraint, by scheduler.

    ``count`` is under the first scheduler, ``mean`` the mean completion time in seconds, and ``ratio`` the same over
    that of the first, seed by seed: where the first ignores constraints, what they cost these jobs. ``slowdown`` is
    ``slowdown_vs_unconstrained`` of the summaries.
    """

    kind: str
    count: float
    mean: dict[str, Pair]
    ratio: dict[str, Pair]
    slowdown: dict[str, Pair]


def wait_tables(results: Runs) -> list[Table]:
    """Return the table of queueing delays; none where no class has jobs with constraints and without."""
    rows = []
    for group in SPLIT:
        for scheduler, runs in results.items():
            parts = [part_of(r.summary["jobs"], group) for r in runs]
            if all(parts):
                waits = ([p["wait"].get(s, math.nan) for p in parts] for s in STATISTICS)
                cells = (with_error(*confidence_95(of_seeds)) for of_seeds in waits)
                rows.append([scheduler, f"{group} jobs", *cells])
    title = "Queueing delay with constraints and without"
    caption = "queueing delay in seconds, until a job's first task starts"
    head = ["scheduler", "jobs", *STATISTICS]
    note = "Of the classes that have jobs with constraints and without."
    return [Table(title, caption, head, rows, note, names=2)] if rows else []


def compare_kinds(results: Runs) -> list[KindRow]:
    """Return the kinds of constraints that short jobs have in all runs, the most frequent first."""
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


def render_kinds(rows: Sequence[KindRow]) -> str:
    """Return kinds of constraints as a table behind a blank line; empty without rows."""
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
    return "\n".join(["", what, *indented(align(cells)), ""])
