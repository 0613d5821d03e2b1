"""Several schedulers over the same coflows: completion times, speed-ups of the first, learning, and what jobs gain.

A ratio is a figure of another scheduler over that of the first: the speed-up of the first, as papers report it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress

import numpy as np
import pyarrow as pa

from emu.families.coflows.deadlines import compare_gains
from emu.families.coflows.metrics import (
    GROUPS,
    in_group,
    job_times,
    learning_share,
    part_of,
    shuffle_shares,
    speedups,
    was_learned,
)
from emu.results.comparison_row import NOTHING, Pair, Row
from emu.results.measures import all_measures
from emu.results.metrics import BoolArray, Float64Array, after_warmup, confidence_95
from emu.results.paired_comparison import compare_parts, factors_of, percentiles_over_seeds
from emu.results.result import Result, Runs
from workloads.arrow import optional_column

PERCENTILES = (50, 90)


@dataclass(frozen=True)
class LearningRow:
    """The cost and accuracy of one scheduler's learning of coflow sizes.

    ``count`` of the coflows that had to be learned, and of these: mean, p50 and p90 of the share of the completion time
    and of the bytes, the share that was learned ``late``, and medians, coflow by coflow, of time and bytes over those
    under the first scheduler that learns (NaN for it). ``error`` has mean, std, p50 and p90 of the relative error of
    estimated sizes; empty without any.
    """

    scheduler: str
    count: float
    cct_share: dict[str, Pair]
    bytes_share: dict[str, Pair]
    late: Pair
    latency_times: Pair
    bytes_times: Pair
    error: dict[str, Pair]


def compare_group(results: Runs, group: str, warmup_s: float) -> list[Row]:
    """Return one row per scheduler for a group of coflows; none where no coflow of it finished.

    Replicas in which none finished under some scheduler are left out. In `Row.speedup` of the first scheduler over
    another ``average`` is the ratio of mean completion times, ``p50`` and ``p90`` are of ratios coflow by coflow.
    """
    every = {name: [part_of(r.summary["coflows"], group) for r in runs] for name, runs in results.items()}
    finished = [all(part.get("count") for part in parts) for parts in zip(*every.values(), strict=True)]
    if not any(finished):
        return []
    gains = compare_gains(results) if group == "all" else {}
    results = {name: list(compress(runs, finished)) for name, runs in results.items()}
    parts = {name: list(compress(own, finished)) for name, own in every.items()}
    rows = compare_parts(
        results,
        parts,
        group,
        all_measures("coflows"),
        lambda run: optional_column(run.coflows, "cct_s"),
        lambda run: counted(run.coflows, group, warmup_s),
    )
    measure = partial(coflow_speedups, group=group, warmup_s=warmup_s)
    return [
        replace(
            row,
            speedup=factors_of(results, row, PERCENTILES, measure),
            gains=gains.get(row.scheduler, {}),
            left_out=finished.count(False),
        )
        for row in rows
    ]


def compare_coflows(results: Runs, warmup_s: float) -> list[Row]:
    """Return all groups, all coflows first."""
    return [row for group in GROUPS for row in compare_group(results, group, warmup_s)]


def compare_learning(results: Runs, warmup_s: float) -> list[LearningRow]:
    """Return the row of each scheduler that learns."""
    learning = {
        name: runs for name, runs in results.items() if all("learning" in r.summary["coflows"] for r in runs)
    }
    rows = []
    for name, runs in learning.items():
        first = next(iter(learning.values()))
        figures = [r.summary["coflows"]["learning"] for r in runs]
        errors = [r.summary["coflows"].get("estimates") for r in runs]
        pairs = list(zip(first, runs, strict=True))
        own = runs is first
        rows.append(
            LearningRow(
                scheduler=name,
                count=float(np.mean([f["count"] for f in figures])),
                cct_share=_means([f["cct_share"] for f in figures]),
                bytes_share=_means([f["bytes_share"] for f in figures]),
                late=confidence_95([f["late"] for f in figures]),
                latency_times=_median_ratio(pairs, "learned_s", warmup_s, own),
                bytes_times=_median_ratio(pairs, "learned_bytes", warmup_s, own),
                error=_means([{k: e[k] for k in ("mean", "std", "p50", "p90")} for e in errors if e])
                if all(errors)
                else {},
            )
        )
    return rows


def compare_job_times(results: Runs, warmup_s: float) -> dict[str, dict[str, Pair]]:
    """Return the speed-ups of jobs that shuffle by one coflow each, for every scheduler but the first.

    The share of its time that a job shuffles under the first scheduler is drawn with the run's seed (`shuffle_shares`);
    its compute time follows from that, and is the same under all others.
    """
    first, *others = results
    found = {
        name: [job_speedups(a, b, warmup_s) for a, b in zip(results[first], results[name], strict=True)]
        for name in others
    }
    return {
        name: percentiles_over_seeds(own, PERCENTILES) for name, own in found.items() if all(map(len, own))
    }


def compare_coordinators(results: Runs) -> dict[str, dict[str, Pair]]:
    """Return the ``coordinator`` part of the summaries by scheduler, of those that work in intervals."""
    found = {name: [r.summary.get("coordinator") for r in runs] for name, runs in results.items()}
    return {name: _means([part for part in own if part]) for name, own in found.items() if all(own)}


def job_speedups(first: Result, other: Result, warmup_s: float) -> Float64Array:
    """Return completion times of jobs under another scheduler over those under the first (see `compare_job_times`)."""
    base_s, cct_s = optional_column(first.coflows, "cct_s"), optional_column(other.coflows, "cct_s")
    share = shuffle_shares(len(base_s), first.summary["seed"])
    under = [job_times(base_s, own_s, share) for own_s in (base_s, cct_s)]
    return speedups(under[0], under[1], counted(first.coflows, "all", warmup_s))


def coflow_speedups(first: Result, other: Result, group: str, warmup_s: float) -> Float64Array:
    """Return completion times of the coflows of a group under another scheduler over those under the first."""
    base_s, cct_s = optional_column(first.coflows, "cct_s"), optional_column(other.coflows, "cct_s")
    return speedups(base_s, cct_s, counted(first.coflows, group, warmup_s))


def learning_shares(results: Runs, warmup_s: float) -> Iterator[tuple[str, Float64Array]]:
    """Yield each scheduler that learns, and the shares of completion times that learning took, of all seeds."""
    for name, runs in results.items():
        own = [
            learning_share(r.coflows)[was_learned(r.coflows) & counted(r.coflows, "all", warmup_s)]
            for r in runs
        ]
        if any(len(share) for share in own):
            yield name, np.concatenate(own)


def counted(coflows: pa.Table, group: str, warmup_s: float) -> BoolArray:
    """Return which coflows of a group arrive after the warm-up."""
    return after_warmup(optional_column(coflows, "arrival_s"), warmup_s) & in_group(coflows, group)


def _median_ratio(pairs: Sequence[tuple[Result, Result]], column: str, warmup_s: float, own: bool) -> Pair:
    """Return the median ratio of a learning column to that under the first, of coflows that both had to learn."""
    if own:
        return NOTHING
    found = []
    for first, other in pairs:
        mask = was_learned(first.coflows) & was_learned(other.coflows)
        mask &= counted(first.coflows, "all", warmup_s)
        ratio = speedups(optional_column(first.coflows, column), optional_column(other.coflows, column), mask)
        found.append(float(np.median(ratio)) if len(ratio) else math.nan)
    return confidence_95(found)


def _means(figures: Sequence[Mapping[str, float]]) -> dict[str, Pair]:
    return {name: confidence_95([f[name] for f in figures]) for name in figures[0]}
