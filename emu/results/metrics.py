"""Figures of a run: percentiles by class, makespan, fairness; means and intervals over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from emu.families.registry import family_of_summary
from emu.results.bottlenecks import BOTTLENECKS, bottlenecks_of

STATISTICS = ("mean", "p50", "p90", "p99")
"""Statistics of completion times in tables by default."""
QUANTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}
EVERY_STATISTIC = ("mean", *QUANTILES)
"""Statistics of all metrics in summaries."""

# Two-sided 95 % quantiles of Student's t by degrees of freedom; between two rows the wider one holds, and
# above the last the normal distribution's.
_T_95 = {
    1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 6: 2.4469, 7: 2.3646, 8: 2.3060, 9: 2.2622,
    10: 2.2281, 11: 2.2010, 12: 2.1788, 13: 2.1604, 14: 2.1448, 15: 2.1314, 16: 2.1199, 17: 2.1098,
    18: 2.1009, 19: 2.0930, 20: 2.0860, 21: 2.0796, 22: 2.0739, 23: 2.0687, 24: 2.0639, 25: 2.0595,
    26: 2.0555, 27: 2.0518, 28: 2.0484, 29: 2.0452, 30: 2.0423, 40: 2.0211, 60: 2.0003, 120: 1.9799,
}  # fmt: skip
_NORMAL_95 = 1.9600
_T_LAST = 1000

Float64Array = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def describe_values(values: Float64Array) -> dict[str, Any]:
    """Return count, mean, linear percentiles and the maximum of values; only the count where there are none."""
    if len(values) == 0:
        return {"count": 0}
    found = np.percentile(values, list(QUANTILES.values())).tolist()
    return {"count": len(values), "mean": float(values.mean()), **dict(zip(QUANTILES, found, strict=True))}


def after_warmup(submit_s: Float64Array, warmup_s: float) -> BoolArray:
    """Return which jobs count: those that arrive `warmup_s` or more after the first."""
    return submit_s >= submit_s[0] + warmup_s


def finite(values: Float64Array) -> Float64Array:
    """Return the values that are finite."""
    return values[np.isfinite(values)]


def describe_metrics(values: Mapping[str, Float64Array]) -> dict[str, Any]:
    """Return `describe_values` of completion times, whose name is empty, and of other metrics within it by name."""
    described = {metric: describe_values(finite(own)) for metric, own in values.items()}
    return described.pop("") | described


def describe_utilisation(
    time_s: Float64Array, utilisation: Float64Array, last_arrival_s: float
) -> dict[str, float]:
    """Return the ``utilisation`` part of a summary, of the rows of a timeline; nothing without rows.

    ``mean`` and ``max`` are of all rows, ``while_arriving`` is the mean of rows up to the last arrival: after it a few
    long jobs run alone.
    """
    if len(time_s) == 0:
        return {}
    arriving = utilisation[time_s <= last_arrival_s]
    return {
        "mean": float(utilisation.mean()),
        **({"while_arriving": float(arriving.mean())} if len(arriving) else {}),
        "max": float(utilisation.max()),
    }


def t_quantile(degrees: int) -> float:
    """Return the two-sided 95 % quantile of Student's t; between rows of the table the larger one."""
    if degrees < 1:
        return math.inf
    if degrees > _T_LAST:
        return _NORMAL_95
    return _T_95[max(row for row in _T_95 if row <= degrees)]


def confidence_95(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and half-width of its 95 % confidence interval; the half-width of one value is NaN."""
    data = np.asarray(values, np.float64)
    if len(data) < 2:
        return float(data.mean()), math.nan
    if np.ptp(data) == 0:  # the deviation of equal numbers is not always 0 when rounded
        return float(data[0]), 0.0
    half = t_quantile(len(data) - 1) * float(data.std(ddof=1)) / math.sqrt(len(data))
    return float(data.mean()), half


_BY_REPLICA = ("offered_load", "engine", "counters", "decision_latency", "sustained_tasks_per_s", "schedulers",
            "utilisation", "coordinator", "programs", "decisions", "windows", "live")  # fmt: skip
"""Parts of a summary that differ from run to run, besides those of the family."""


def summarise_replicas(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one summary of the runs of several seeds, or of several instances.

    It has the keys of a run's summary. Figures are means over the runs, ``seed`` is the first, ``seeds`` has all and
    ``varied`` what they vary; ``confidence_95`` has ``[low, high]`` for each mean of ``jobs``, or ``coflows``. Of a
    batch ``instances`` has the instances, and ``workload`` is the batch's name.
    Where all runs gave the same, ``alike`` is true and there are no intervals. A part that some seeds lack is left
    out; a flag of ``live``, such as overloaded, is true if it is true for any seed. Of a batch a part is the mean over
    the instances that have it: some have no wide coflows, or none that meets its deadline.
    """
    from emu.configuration.seeds import are_alike, replicas_part

    first = summaries[0]
    family = family_of_summary(first)
    together = replicas_part(summaries)
    batch = "instances" in together
    found = {name: _means([s[name] for s in summaries], of_some=batch) for name in family.parts}
    alike = are_alike(summaries)
    sizes = [s.get("nodes") for s in summaries]
    own = ("instance", "batch") if batch else ()
    merged = {
        **{
            k: v
            for k, v in first.items()
            if k not in (*family.parts, BOTTLENECKS, "drawn", *own, *_BY_REPLICA)
        },
        **together,
        **({"alike": True} if alike else {}),
        **({"nodes_by_seed": sizes} if len(set(sizes)) > 1 else {}),
        **{name: means for name, (means, _) in found.items()},
        "confidence_95": {name: {} if alike else intervals for name, (_, intervals) in found.items()},
    }
    parts = [_numbers({name: s[name] for name in _BY_REPLICA if name in s}) for s in summaries]
    merged |= _means(parts, of_some=batch)[0]
    if "programs" in merged:
        gaps = [s["programs"]["worst_gap"] for s in summaries if "programs" in s]
        merged["programs"]["worst_gap"] = max(gaps)
    if "live" in merged:
        flags = ("overloaded", "saturated")
        merged["live"] |= {name: any(s["live"][name] for s in summaries) for name in flags}
    return merged | bottlenecks_of(merged)


def _numbers(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers in a part of a summary, nested as they are."""
    return {
        name: _numbers(value) if isinstance(value, Mapping) else value
        for name, value in part.items()
        if isinstance(value, Mapping) or (isinstance(value, int | float) and not isinstance(value, bool))
    }


def ratios(first: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """Return mean and 95 % half-width of other / first, seed by seed; NaN where the first is 0."""
    pairs = [b / a if a > 0 else math.nan for a, b in zip(first, other, strict=True)]
    return confidence_95(pairs)


_COUNTED = ("count", "unfinished")
"""Keys whose absence means 0."""


def _means(
    parts: Sequence[Mapping[str, Any]], of_some: bool = False
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the means of equal keys, nested, and their intervals.

    A key that some parts lack is left out, or with `of_some` its mean is of the parts that have it.
    """
    means: dict[str, Any] = {}
    intervals: dict[str, Any] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        values = [part[name] for part in parts if name in part]
        if len(values) < len(parts):
            if not of_some:
                continue
            if name in _COUNTED:
                values += [0] * (len(parts) - len(values))
        if isinstance(values[0], Mapping):
            means[name], intervals[name] = _means(values, of_some)
        elif name == "count":
            means[name] = values[0] if len(set(values)) == 1 else float(np.mean(values))
        else:
            mean, half = confidence_95(values)
            means[name] = mean
            if math.isfinite(half):
                intervals[name] = [mean - half, mean + half]
    return means, intervals


def spread(values: Float64Array) -> dict[str, float]:
    """Return mean, p50 and p90."""
    return {"mean": float(values.mean()), **percentiles(values, (50, 90))}


def percentiles(values: Float64Array, at: tuple[int, ...]) -> dict[str, float]:
    """Return percentiles, linear, as ``p50`` and so on."""
    return {f"p{q}": float(v) for q, v in zip(at, np.percentile(values, at), strict=True)}
