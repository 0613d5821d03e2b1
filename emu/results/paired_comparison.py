"""Schedulers against the first, seed by seed: means, ratios, the best, what became better, equal or worse.

Runs with equal seeds have the same workload, so that differences and ratios are taken seed by seed; their mean and
interval show whether schedulers differ (a paired t-test).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from emu.configuration.keys import BY_NAME
from emu.families.registry import find_family
from emu.results.measures import NOTHING, SHARES, Pair, Row, all_measures
from emu.results.metrics import BoolArray, Float64Array, confidence_95, ratios
from emu.results.result import Result, Runs, counted
from emu.results.text_tables import Table
from workloads.arrow import optional_column
from workloads.errors import InputError
from workloads.units import format_duration, parse_duration, parse_share


class Factors(NamedTuple):
    """The factors by which the first scheduler is faster, which papers on DAG jobs and on coflows report.

    Attributes
    ----------
    words : str
        What they are called.
    labels : mapping of str to str
        ``average``, of mean completion times, and percentiles of those of single jobs, or coflows, as ``p50``; to what
        each is called in tables.
    how : str
        What a page says besides of how they are taken.
    """

    words: str
    labels: Mapping[str, str]
    how: str = ""

    @property
    def percentiles(self) -> tuple[int, ...]:
        """The percentiles among the labels."""
        return tuple(int(name[1:]) for name in self.labels if name != "average")


@dataclass(frozen=True, kw_only=True)
class Comparing:
    """What of several schedulers a family compares, and what tables say of it.

    Attributes
    ----------
    groups : sequence of str
        The groups that are compared, in the order of tables.
    classes : sequence of str
        The groups of which the beginning of a page says who is best; without any, all.
    title : (rows of one group) -> str
        What a table says above its rows.
    factors : Factors, optional
        By default each figure has its ratio to that of the first scheduler beside it.
    only_finished : bool
        Whether replicas are left out in which none of a group finished under some scheduler.
    gains : (results) -> mapping
        `Row.gains` of each scheduler.
    tables : (results, rows, warmup_s) -> iterable of Table
        All other tables of a comparison, in order.
    """

    groups: Sequence[str] = ("all",)
    classes: Sequence[str] = ()
    title: Callable[[Sequence[Row]], str] = lambda rows: rows[0].group
    factors: Factors | None = None
    only_finished: bool = False
    gains: Callable[[Runs], Mapping[str, Mapping[str, Mapping[str, float]]]] = lambda results: {}
    tables: Callable[[Runs, Sequence[Row], float], Iterable[Table]] = lambda results, rows, warmup_s: ()


DELAYS = 20
"""Network delays up to which a difference may be due to messages: Hawk's ten attempts to steal take as many, and no
scheduler sends more messages in sequence for a task."""
BEST_WITHIN = 0.01
"""The relative margin of the best figures where a single seed, or equal results, show no variation."""


class Tolerance(NamedTuple):
    """The difference up to which two completion times are equal: in seconds, or as a share of the longer."""

    absolute_s: float = 0.01
    relative: float = BY_NAME["tolerance.relative"].default

    def of(self, one: Any, other: Any) -> Any:
        """Return how much two values, or arrays of them, may differ."""
        return np.maximum(self.absolute_s, self.relative * np.maximum(one, other))

    def __str__(self) -> str:
        share = f"{100 * self.relative:g} %"
        return f"{format_duration(self.absolute_s)} or {share}" if self.absolute_s else share


def tolerance_of(results: Runs) -> Tolerance:
    """Return the tolerance of a comparison, by the configuration of its runs."""
    config = next(iter(results.values()))[0].manifest.get("config", {})
    given, network = config.get("tolerance", {}), config.get("network", {})
    relative = parse_share(given.get("relative", Tolerance().relative), "tolerance.relative")
    absolute = given.get("absolute", BY_NAME["tolerance.absolute"].default)
    if absolute != "auto":
        return Tolerance(parse_duration(absolute, "tolerance.absolute"), relative)
    delays = [
        parse_duration(network[d], f"network.{d}") for d in ("delay", "cross_rack_delay") if d in network
    ]
    return Tolerance(DELAYS * max(delays) if delays else Tolerance().absolute_s, relative)


def compare(results: Runs, warmup_s: float) -> list[Row]:
    """Return a row for each scheduler and group of the runs' family, without a class that has everything."""
    family = find_family(next(iter(results.values()))[0].family)
    figures = [run.summary[family.heads] for runs in results.values() for run in runs]
    named = {name for of_run in figures for name, _ in family.groups(of_run)}
    groups = [group for group in family[Comparing].groups if group in named]
    return [row for group in groups for row in compare_group(results, group, warmup_s)]


def compare_group(results: Runs, group: str, warmup_s: float) -> list[Row]:
    """Return a row for each scheduler and one group; none where a scheduler has no figures of it."""
    every = results
    family = find_family(next(iter(results.values()))[0].family)
    how, measures = family[Comparing], all_measures(family.name)
    parts = {
        name: [family.part_of(run.summary[family.heads], group) for run in runs]
        for name, runs in results.items()
    }
    left_out = 0
    if how.only_finished:
        finished = [all(part.get("count") for part in own) for own in zip(*parts.values(), strict=True)]
        results = {name: list(compress(runs, finished)) for name, runs in results.items()}
        parts = {name: list(compress(own, finished)) for name, own in parts.items()}
        left_out = finished.count(False)
    if not all(own and all(own) for own in parts.values()):
        return []
    tolerance = tolerance_of(results)
    first = next(iter(parts))
    values = {m: {name: [m.of(p) for p in own] for name, own in parts.items()} for m in measures}
    best = {m.name: best_of(by_name, tolerance if m.is_time else None) for m, by_name in values.items()}
    gains = how.gains(every) if group == "all" else {}
    rows = []
    for name, own in parts.items():
        judged = [
            _judge(a, b, group, warmup_s, tolerance)
            for a, b in zip(results[first], results[name], strict=True)
        ]
        against = {m.name: ratios(values[m][first], values[m][name]) for m in measures}
        rows.append(
            Row(
                scheduler=name,
                group=group,
                count=float(np.mean([p["count"] for p in own])),
                figures={m.name: confidence_95(values[m][name]) for m in measures},
                ratios=against,
                best=frozenset(m for m, names in best.items() if name in names),
                shares={
                    s: NOTHING if name == first else confidence_95([j[s] for j in judged]) for s in SHARES
                },
                improved=math.nan if name == first else float(np.mean([j["improved"] for j in judged])),
                speedup={} if how.factors is None else _factors_of(results, name, group, warmup_s, against),
                gains=gains.get(name, {}),
                left_out=left_out,
            )
        )
    return rows


def times_of(run: Result) -> Float64Array:
    """Return the completion times of all jobs, or coflows, of a run; NaN for those that did not finish."""
    return optional_column(run.heads, find_family(run.family).time)


def _judge(
    first: Result, other: Result, group: str, warmup_s: float, tolerance: Tolerance
) -> dict[str, float]:
    """Return `shares_of` of a seed, and the share that improved by however little.

    Raises
    ------
    InputError
        The two have different numbers of jobs, or coflows: a file has changed since it was written.
    """
    own, want = other.heads.num_rows, first.heads.num_rows
    if own != want:
        wrong = f"has {own:,} {other.family}, and {first.path} has {want:,}; they cannot be compared"
        raise InputError(wrong, file=other.path)
    mask, times = counted(first, group, warmup_s), (times_of(first), times_of(other))
    with np.errstate(invalid="ignore"):
        improved = float((times[1] < times[0])[mask].mean()) if mask.any() else math.nan
    return {**shares_of(*times, mask, tolerance), "improved": improved}


def shares_of(
    first_s: Float64Array, other_s: Float64Array, mask: BoolArray, tolerance: Tolerance
) -> dict[str, float]:
    """Return the `SHARES` of the jobs in `mask` that finished under at least one of the two schedulers.

    A job that finished under one of them only is better, or worse.
    """
    first, other = (np.where(np.isfinite(t), t, np.inf)[mask] for t in (first_s, other_s))
    some = np.isfinite(first) | np.isfinite(other)
    first, other = first[some], other[some]
    if not len(first):
        return dict.fromkeys(SHARES, math.nan)
    both = np.isfinite(first) & np.isfinite(other)
    equal = np.zeros(len(first), bool)
    equal[both] = np.abs(other - first)[both] <= tolerance.of(first[both], other[both])
    better = ~equal & (other < first)
    return {
        "better": float(better.mean()),
        "equal": float(equal.mean()),
        "worse": float((~equal & ~better).mean()),
    }


def best_of(values: Mapping[str, Sequence[float]], tolerance: Tolerance | None = None) -> frozenset[str]:
    """Return those with the least mean, and those that are as good; none where all are.

    With several seeds, one is as good if the 95 % intervals of its differences to the least, seed by seed, and of the
    logarithms of its ratios both reach the tolerance: where the workloads of some seeds take many times as long, a few
    differences dominate. With one seed, or where all differences are equal, one is as good if it is within the
    tolerance or `BEST_WITHIN` of the least.

    Parameters
    ----------
    values : mapping
        By name, seed by seed; NaN for no value.
    tolerance : Tolerance, optional
        Of times; ratios are compared by `Tolerance.relative` alone.
    """
    known = {name: np.asarray(own, np.float64) for name, own in values.items() if np.isfinite(own).all()}
    if not known:
        return frozenset()
    least = min(known.values(), key=lambda own: float(own.mean()))
    allowed = float((tolerance or Tolerance(0.0)).of(least.mean(), least.mean()))
    untold = max(allowed, BEST_WITHIN * abs(float(least.mean())))
    good = set()
    for name, own in known.items():
        mean, half = confidence_95((own - least).tolist())
        if (mean - half <= allowed and not _is_longer(own, least, allowed)) if half > 0 else mean <= untold:
            good.add(name)
    return frozenset(good) if len(good) < len(values) else frozenset()


def _is_longer(own: Float64Array, least: Float64Array, allowed: float) -> bool:
    """Return whether ratios, seed by seed, are above the tolerance by more than chance."""
    if min(own.min(), least.min()) <= 0:
        return False
    mean, half = confidence_95(np.log(own / least).tolist())
    return mean - half > math.log1p(allowed / float(least.mean()))


def _factors_of(
    results: Runs, name: str, group: str, warmup_s: float, against: Mapping[str, Pair]
) -> dict[str, Pair]:
    """Return the factors by which the first scheduler is faster than another; `against` has its ratios."""
    first = next(iter(results))
    how = find_family(results[first][0].family)[Comparing].factors
    assert how is not None
    nothing = dict.fromkeys(how.labels, NOTHING)
    if name == first:
        return nothing
    found = [
        single_factors(a, b, group, warmup_s) for a, b in zip(results[first], results[name], strict=True)
    ]
    of_single = percentiles_over_seeds(found, how.percentiles) if all(map(len, found)) else {}
    return nothing | {"average": against["mean"]} | of_single


def single_factors(first: Result, other: Result, group: str, warmup_s: float) -> Float64Array:
    """Return completion times of the jobs, or coflows, of a group under another scheduler over those under the first.

    Of those that both finished, and that take longer than 0 under the first.
    """
    return quotients(times_of(other), times_of(first), counted(first, group, warmup_s))


def quotients(values: Float64Array, divisors: Float64Array, mask: BoolArray) -> Float64Array:
    """Return values over divisors above 0, of those in `mask` for which both are known."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Float64Array = values / divisors
    return found[mask & np.isfinite(found) & (divisors > 0)]


def percentiles_over_seeds(found: Sequence[Float64Array], percentiles: Sequence[int]) -> dict[str, Pair]:
    """Return the mean and interval of each percentile of the values of several seeds."""
    return {f"p{q}": confidence_95([float(np.percentile(own, q)) for own in found]) for q in percentiles}
