"""Several schedulers over the same jobs: percentiles by class, ratios against the first, jobs that improved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from emu.by_constraint import compare_kinds, compare_waits, render_kinds, render_waits
from emu.columns import numbers
from emu.metrics import (
    SPLIT,
    STATISTICS,
    after_warmup,
    confidence_95,
    in_group,
    part_of,
    ratios,
    share_improved,
)
from emu.results import Result
from emu.tables import TIMES, align, number, with_error

GROUPS = ("short", "long", "all", *SPLIT)
"""What is compared: classes, and where jobs have constraints, jobs with and without."""


@dataclass(frozen=True)
class Row:
    """One scheduler and group of a comparison; pairs are a mean over the seeds and its 95 % half-width."""

    scheduler: str
    job_class: str
    count: float
    times: dict[str, tuple[float, float]]
    ratios: dict[str, tuple[float, float]]
    improved: float


def compare_jobs(results: Mapping[str, list[Result]], warmup_s: float) -> list[Row]:
    """Return the rows of all `GROUPS` of jobs."""
    return [row for name in GROUPS for row in compare_class(results, name, warmup_s)]


def compare_class(results: Mapping[str, list[Result]], job_class: str, warmup_s: float) -> list[Row]:
    """Return one row per scheduler for the jobs of a class, or another of `GROUPS`; none when it has no jobs."""
    runs = list(results.values())
    figures = {name: [part_of(r.summary["jobs"], job_class) for r in own] for name, own in results.items()}
    if not all(part for parts in figures.values() for part in parts):
        return []
    bases = figures[next(iter(figures))]
    rows = []
    for name, own in results.items():
        parts = figures[name]
        values = {s: [p.get(s, math.nan) for p in parts] for s in STATISTICS}
        base_values = {s: [b.get(s, math.nan) for b in bases] for s in STATISTICS}
        improved = [_improved(a, b, job_class, warmup_s) for a, b in zip(runs[0], own, strict=True)]
        rows.append(
            Row(
                scheduler=name,
                job_class=job_class,
                count=float(np.mean([p["count"] for p in parts])),
                times={s: confidence_95(values[s]) for s in STATISTICS},
                ratios={s: ratios(base_values[s], values[s]) for s in STATISTICS},
                improved=math.nan if own is runs[0] else float(np.mean(improved)),
            )
        )
    return rows


def render_rows(rows: list[Row], head: str) -> str:
    """Return rows of a comparison as a table, class by class."""
    base = f", and {TIMES} that of {rows[0].scheduler}" if len({r.scheduler for r in rows}) > 1 else ""
    lines = [f"{head}: job completion time in seconds{base}"]
    for name in GROUPS:
        own = [row for row in rows if row.job_class == name]
        if not own:
            continue
        table = [["", *(cell for s in STATISTICS for cell in (s, "")), "improved"]]
        for row in own:
            cells = [row.scheduler]
            for s in STATISTICS:
                ratio, half = row.ratios[s]
                first = row is own[0] or not math.isfinite(ratio)
                cells += [
                    with_error(*row.times[s]),
                    "" if first else with_error(ratio, half, f"{ratio:.2f}") + TIMES,
                ]
            table.append([*cells, "" if math.isnan(row.improved) else f"{row.improved:.1%}"])
        lines += ["", f"{name} jobs ({number(own[0].count)})", *(f"  {line}" for line in align(table))]
    return "\n".join(lines) + "\n"


def render_constraints(results: Mapping[str, list[Result]]) -> str:
    """Return the tables of queueing delay and of kinds of constraints; nothing where no job has any."""
    return render_waits(compare_waits(results)) + render_kinds(compare_kinds(results))


def _improved(first: Result, other: Result, job_class: str, warmup_s: float) -> float:
    mask = after_warmup(numbers(first.jobs, "submit_s"), warmup_s) & in_group(first.jobs, job_class)
    return share_improved(numbers(first.jobs, "jct_s"), numbers(other.jobs, "jct_s"), mask)
