"""Effects of constraints on jobs: completion time and slowdown by kind of constraint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from emu.results.comparison_row import Pair
from emu.results.metrics import confidence_95, ratios
from emu.results.result import Runs
from emu.results.text_tables import align, indented, number, ratio, times_clause, with_error


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
