"""Several schedulers over the same coflows: completion times, speed-ups of the first, learning, and what jobs gain.

The first scheduler is the one that others are compared with. A ratio is the other's figure over the first's: how many
times as long coflows take under the other, which is the speed-up of the first, as papers on coflows report it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from emu.columns import numbers
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

PERCENTILES = (50, 90)


@dataclass(frozen=True)
class LearningRow:
    """The cost and accuracy of one scheduler's learning of coflow sizes.

    Attributes
    ----------
    scheduler : str
    count : float
        Coflows that had to be learned.
    cct_share, bytes_share : dict of str to Pair
        Mean, p50 and p90 of the share of the completion time, and of the bytes.
    late : Pair
        Share of these coflows that were learned late.
    latency_times, bytes_times : Pair
        Median, coflow by coflow, of time and bytes over those under the first scheduler that learns; NaN for it.
    error : dict of str to Pair
        Mean, std, p50 and p90 of the relative error of estimated sizes; empty without any.
    """

    scheduler: str
    count: float
    cct_share: dict[str, Pair]
    bytes_share: dict[str, Pair]
    late: Pair
    latency_times: Pair
    bytes_times: Pair
    error: dict[str, Pair]


class CoordinatorRow(NamedTuple):
    """The work of a coordinator in a scheduling interval: the ``coordinator`` part of summaries."""

    scheduler: str
    figures: dict[str, Pair]


class JobRow(NamedTuple):
    """Completion times of jobs that shuffle by one coflow each, of another scheduler over those of the first."""

    scheduler: str
    speedup: dict[str, Pair]


def compare_group(results: Runs, group: str, warmup_s: float) -> list[Row]:
    """Return one row per scheduler for a group of coflows; none when it has none that finished.

    Replicas in which it has none under some scheduler are left out.
    The `Row.speedup` of the first over another: ``average`` is the ratio of mean completion times, ``p50`` and ``p90``
    are of the ratios coflow by coflow. NaN for the first itself.
    """
    every = {name: [part_of(r.summary["coflows"], group) for r in runs] for name, runs in results.items()}
    finished = [all(part.get("count") for part in parts) for parts in zip(*every.values(), strict=True)]
    if not any(finished):
        return []
    gains = {row.scheduler: row.gains for row in compare_gains(results)} if group == "all" else {}
    results = {name: list(compress(runs, finished)) for name, runs in results.items()}
    parts = {name: list(compress(own, finished)) for name, own in every.items()}
    rows = compare_parts(
        results,
        parts,
        group,
        all_measures("coflows"),
        lambda run: numbers(run.coflows, "cct_s"),
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
    """Return what each scheduler that learns took for it; none where none does."""
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


def compare_job_times(results: Runs, warmup_s: float) -> list[JobRow]:
    """Return what jobs gain that shuffle by one coflow each, for every scheduler but the first.

    The share of its time that a job shuffles is drawn as in `shuffle_shares`, with the run's seed, and is of its time
    under the first scheduler: its compute time follows from that and the completion time of its coflow there, and is
    the same under all others.
    """
    first, *others = results
    rows = []
    for name in others:
        found = [job_speedups(a, b, warmup_s) for a, b in zip(results[first], results[name], strict=True)]
        if all(len(ratio) for ratio in found):
            rows.append(JobRow(name, percentiles_over_seeds(found, PERCENTILES)))
    return rows


def compare_coordinators(results: Runs) -> list[CoordinatorRow]:
    """Return what coordinators did, of those that work in intervals."""
    found = {name: [r.summary.get("coordinator") for r in runs] for name, runs in results.items()}
    return [CoordinatorRow(name, _means([p for p in own if p])) for name, own in found.items() if all(own)]


def job_speedups(first: Result, other: Result, warmup_s: float) -> Float64Array:
    """Return completion times of jobs under another scheduler over those under the first (see `compare_job_times`)."""
    base_s, cct_s = numbers(first.coflows, "cct_s"), numbers(other.coflows, "cct_s")
    share = shuffle_shares(len(base_s), first.summary["seed"])
    under = [job_times(base_s, own_s, share) for own_s in (base_s, cct_s)]
    return speedups(under[0], under[1], counted(first.coflows, "all", warmup_s))


def coflow_speedups(first: Result, other: Result, group: str, warmup_s: float) -> Float64Array:
    """Return completion times of the coflows of a group under another scheduler over those under the first."""
    base_s, cct_s = numbers(first.coflows, "cct_s"), numbers(other.coflows, "cct_s")
    return speedups(base_s, cct_s, counted(first.coflows, group, warmup_s))


def learning_shares(results: Runs, warmup_s: float) -> Iterator[tuple[str, Float64Array]]:
    """Yield each scheduler that learns, and its shares of completion times that learning took, all seeds together."""
    for name, runs in results.items():
        own = [
            learning_share(r.coflows)[was_learned(r.coflows) & counted(r.coflows, "all", warmup_s)]
            for r in runs
        ]
        if any(len(share) for share in own):
            yield name, np.concatenate(own)


def counted(coflows: pa.Table, group: str, warmup_s: float) -> BoolArray:
    """Return which coflows of a group count: those that do not arrive within the warm-up."""
    return after_warmup(numbers(coflows, "arrival_s"), warmup_s) & in_group(coflows, group)


def _median_ratio(pairs: Sequence[tuple[Result, Result]], column: str, warmup_s: float, own: bool) -> Pair:
    """Return the median of a learning column over that under the first, of coflows that both had to learn."""
    if own:
        return NOTHING
    found = []
    for first, other in pairs:
        mask = was_learned(first.coflows) & was_learned(other.coflows)
        mask &= counted(first.coflows, "all", warmup_s)
        ratio = speedups(numbers(first.coflows, column), numbers(other.coflows, column), mask)
        found.append(float(np.median(ratio)) if len(ratio) else math.nan)
    return confidence_95(found)


def _means(figures: Sequence[Mapping[str, float]]) -> dict[str, Pair]:
    return {name: confidence_95([f[name] for f in figures]) for name in figures[0]}
