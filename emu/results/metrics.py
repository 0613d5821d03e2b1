"""What a run comes to: percentiles by class, makespan, fairness; means and intervals over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu.columns import equals_text, numbers, text_codes
from emu.configuration.keys import COFLOWS, JOBS
from emu.results.bottlenecks import BOTTLENECKS, bottlenecks_of

CLASSES = ("all", "short", "long")
SIDES = ("constrained", "unconstrained")
SPLIT = tuple(f"{side} {name}" for name in ("short", "long") for side in SIDES)
"""Groups of jobs that are shown where a class has both."""
MOST_KINDS = 24
OTHER_KINDS = "other kinds"
"""What jobs of the kinds beyond `MOST_KINDS` are told as; a kind made by `workloads.constraints` has no space."""
STATISTICS = ("mean", "p50", "p90", "p99")
"""Of completion times, in tables that are not asked for others."""
QUANTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}
EVERY_STATISTIC = ("mean", *QUANTILES)
"""Of everything that is described, in summaries."""
THRESHOLD_S = 10.0
"""Of bounded slowdown, by default: as in its definition, and in most papers since."""

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
    """Return count, mean, linear percentiles and the largest of values; of none, only the count."""
    if len(values) == 0:
        return {"count": 0}
    found = np.percentile(values, list(QUANTILES.values())).tolist()
    return {"count": len(values), "mean": float(values.mean()), **dict(zip(QUANTILES, found, strict=True))}


def bounded_slowdown(
    jct_s: Float64Array, ideal_s: Float64Array, threshold_s: float = THRESHOLD_S
) -> Float64Array:
    """Return max(1, jct_s / max(ideal_s, threshold_s)); NaN where a job did not finish.

    A job of 5 ms that takes 5 s is slowed down a thousand times, and nobody minds. The threshold keeps such jobs from
    deciding means and fairness indices.

    References
    ----------
    Feitelson, Rudolph, Schwiegelshohn, Sevcik and Wong, Theory and Practice in Parallel Job Scheduling, JSSPP 1997,
    whose runtime is here the ideal time.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        bounded: Float64Array = np.maximum(jct_s / np.maximum(ideal_s, threshold_s), 1.0)
    return bounded


def jain_index(slowdown: Float64Array) -> float | None:
    """Return Jain's fairness index (Σx)² / (n Σx²): 1 when all jobs are slowed down alike, 1/n at worst."""
    squares = float(np.square(slowdown).sum())
    return float(slowdown.sum()) ** 2 / (len(slowdown) * squares) if squares > 0 else None


def after_warmup(submit_s: Float64Array, warmup_s: float) -> BoolArray:
    """Return which jobs count: those that arrive `warmup_s` or more after the first."""
    return submit_s >= submit_s[0] + warmup_s


def describe_jobs(jobs: pa.Table, warmup_s: float = 0.0, threshold_s: float = THRESHOLD_S) -> dict[str, Any]:
    """Return the ``jobs`` part of a summary.

    Parameters
    ----------
    jobs : pyarrow.Table
        With the columns submit_s, finish_s, jct_s, wait_s, ideal_s, slowdown, job_class and constraint of
        ``jobs.parquet``.
    warmup_s : float
        Jobs that arrive earlier than this after the first are left out of everything but the makespan.
    threshold_s : float
        Of `bounded_slowdown`.

    Returns
    -------
    dict
        ``all``, and of ``short`` and ``long`` those that have jobs: `describe_values` of completion times of the
        finished jobs, and in ``wait``, ``slowdown`` and ``bounded_slowdown`` of those; ``makespan_s`` from first
        arrival to last completion; ``jain_index`` of the slowdowns, and ``bounded_jain_index`` of the bounded
        ones, with their ``slowdown_threshold_s``; ``unfinished``, the number of jobs that did not finish, where
        there are any. Where jobs have constraints, also what `describe_constraints` returns.
    """
    submit_s, finish_s = numbers(jobs, "submit_s"), numbers(jobs, "finish_s")
    values = _values_of(jobs, threshold_s)
    counts = after_warmup(submit_s, warmup_s)
    is_long = class_is_long(jobs)
    masks = {"all": counts, "short": counts & ~is_long, "long": counts & is_long}
    summary = _describe_groups(values, masks)
    finished = np.isfinite(values[""])
    if finished.any():
        summary["makespan_s"] = float(np.nanmax(finish_s) - submit_s[0])
    for name, metric in (("jain_index", "slowdown"), ("bounded_jain_index", "bounded_slowdown")):
        index = jain_index(_finite(values[metric][counts]))
        if index is not None:
            summary[name] = index
    summary["slowdown_threshold_s"] = threshold_s
    if not finished.all():
        summary["unfinished"] = int(np.count_nonzero(~finished))
    return summary | describe_constraints(jobs, counts, threshold_s)


def _values_of(jobs: pa.Table, threshold_s: float) -> dict[str, Float64Array]:
    """Return what is described of each job, by its name in a summary: of completion times that is empty."""
    jct_s = numbers(jobs, "jct_s")
    return {
        "": jct_s,
        "wait": numbers(jobs, "wait_s"),
        "slowdown": numbers(jobs, "slowdown"),
        "bounded_slowdown": bounded_slowdown(jct_s, numbers(jobs, "ideal_s"), threshold_s),
    }


def _describe_groups(values: Mapping[str, Float64Array], masks: Mapping[str, BoolArray]) -> dict[str, Any]:
    """Return the figures of groups of jobs; of those but ``all`` that have any."""
    return {
        name: describe_metrics({metric: of_all[mask] for metric, of_all in values.items()})
        for name, mask in masks.items()
        if name == "all" or mask.any()
    }


def describe_metrics(values: Mapping[str, Float64Array]) -> dict[str, Any]:
    """Return `describe_values` of completion times, whose name is empty, with that of the others in it by name."""
    described = {metric: describe_values(_finite(own)) for metric, own in values.items()}
    return described.pop("") | described


def describe_constraints(
    jobs: pa.Table, counts: BoolArray, threshold_s: float = THRESHOLD_S
) -> dict[str, Any]:
    """Return what the ``jobs`` part of a summary has where jobs have constraints; nothing where none has.

    Returns
    -------
    dict
        ``constrained`` and ``unconstrained``, each as ``all``, ``short`` and ``long`` of the whole.
        ``by_constraint``: by kind of constraint, that with most jobs first, the same for all and for short jobs,
        and ``slowdown_vs_unconstrained``: total completion time over total ideal_s of the kind's short jobs, over
        the same of the unconstrained short jobs. (Means of slowdowns hang on the shortest jobs.) Those are other
        jobs of the same run; what the same jobs take without constraints, only a second run can tell.
    """
    kind_of_job, kinds = text_codes(jobs, "constraint")
    if not kinds:
        return {}
    values = _values_of(jobs, threshold_s)
    jct_s, ideal_s = values[""], numbers(jobs, "ideal_s")
    is_short = ~class_is_long(jobs)
    classes = {"all": counts, "short": counts & is_short, "long": counts & ~is_short}

    def describe(group: BoolArray, names: Sequence[str]) -> dict[str, Any]:
        return _describe_groups(values, {name: group & classes[name] for name in names})

    def stretch(group: BoolArray) -> float:
        done = group & classes["short"] & np.isfinite(jct_s)
        ideal = float(ideal_s[done].sum())
        return float(jct_s[done].sum()) / ideal if ideal > 0 else 0.0

    free = kind_of_job < 0
    base = stretch(free)
    by_kind = {}
    for name, group in _kinds_by_jobs(kind_of_job, kinds, counts).items():
        by_kind[name] = describe(group, ("all", "short"))
        if base and (own := stretch(group)):
            by_kind[name]["slowdown_vs_unconstrained"] = own / base
    return {
        "constrained": describe(~free, CLASSES),
        "unconstrained": describe(free, CLASSES),
        "by_constraint": by_kind,
    }


def _kinds_by_jobs(
    kind_of_job: npt.NDArray[Any], kinds: Sequence[str], counts: BoolArray
) -> dict[str, BoolArray]:
    """Return which jobs are of each kind, that with most jobs that count first, and the rest as one."""
    jobs = np.bincount(kind_of_job[counts & (kind_of_job >= 0)], minlength=len(kinds))
    order = [k for k in sorted(range(len(kinds)), key=lambda k: (-jobs[k], kinds[k])) if jobs[k]]
    found = {kinds[k]: kind_of_job == k for k in order[:MOST_KINDS]}
    if rest := order[MOST_KINDS:]:
        found[OTHER_KINDS] = np.isin(kind_of_job, rest)
    return found


def _finite(values: Float64Array) -> Float64Array:
    return values[np.isfinite(values)]


def class_is_long(jobs: pa.Table) -> BoolArray:
    """Return which jobs are of the class ``long``."""
    return equals_text(jobs, "job_class", "long")


def is_constrained(jobs: pa.Table) -> BoolArray:
    """Return which jobs have constraints."""
    return text_codes(jobs, "constraint")[0] >= 0


def in_group(jobs: pa.Table, group: str) -> BoolArray:
    """Return which jobs are of a group: a class, or one of `SPLIT`."""
    side, _, job_class = group.rpartition(" ")
    found = (
        np.ones(jobs.num_rows, bool) if job_class == "all" else class_is_long(jobs) == (job_class == "long")
    )
    return found & (is_constrained(jobs) == (side == "constrained")) if side else found


def part_of(summary: Mapping[str, Any], group: str) -> Mapping[str, Any]:
    """Return the figures of a group in the ``jobs`` part of a summary; an empty mapping if it has none.

    A class is split only where it has both constrained jobs and others; else one half were the class itself.
    """
    side, _, job_class = group.rpartition(" ")
    if not side:
        return summary.get(job_class, {})
    halves = {s: summary[s][job_class] for s in SIDES if job_class in summary.get(s, {})}
    return halves[side] if len(halves) == len(SIDES) else {}


def describe_utilisation(
    time_s: Float64Array, utilisation: Float64Array, last_arrival_s: float
) -> dict[str, float]:
    """Return the ``utilisation`` part of a summary, of the rows of a timeline; of none, nothing.

    Returns
    -------
    dict
        ``mean`` of all rows; ``while_arriving``, that of the rows up to the last arrival, if there are any: long jobs
        that run on alone after it make the first one small; ``max``.
    """
    if len(time_s) == 0:
        return {}
    arriving = utilisation[time_s <= last_arrival_s]
    return {
        "mean": float(utilisation.mean()),
        **({"while_arriving": float(arriving.mean())} if len(arriving) else {}),
        "max": float(utilisation.max()),
    }


def offered_load(task_seconds: float, span_s: float, slots: int) -> float | None:
    """Return work over capacity while jobs arrive; None when all arrive at once."""
    return task_seconds / (span_s * slots) if span_s > 0 else None


def t_quantile(degrees: int) -> float:
    """Return the two-sided 95 % quantile of Student's t, exact to the table's rows and never too small."""
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


_BY_SEED = ("offered_load", "engine", "counters", "decision_latency", "sustained_tasks_per_s", "schedulers",
            "utilisation", "coordinator", "windows", "live")  # fmt: skip
"""Parts of a summary that differ from seed to seed, beside those of jobs or coflows."""


def summarise_seeds(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one summary of the runs of several seeds.

    It has the keys of a run's summary. Figures are means over the seeds, ``seed`` is the first, ``seeds`` holds all
    and ``varied`` what they vary; ``confidence_95`` has ``[low, high]`` for each mean of ``jobs``, or ``coflows``.
    Where all runs gave the same, ``alike`` is true and there are no intervals. A part that not all runs have is left
    out; what any seed of ``live`` was, such as overloaded, all are.
    """
    from emu.configuration.seeds import are_alike, varied

    first = summaries[0]
    family = COFLOWS if COFLOWS in first else JOBS
    means, intervals = _means([s[family] for s in summaries])
    alike = are_alike(summaries)
    sizes = [s.get("nodes") for s in summaries]
    told = {
        **{k: v for k, v in first.items() if k not in (family, BOTTLENECKS, "drawn", *_BY_SEED)},
        "seeds": [s["seed"] for s in summaries],
        "varied": varied(summaries),
        **({"alike": True} if alike else {}),
        **({"nodes_by_seed": sizes} if len(set(sizes)) > 1 else {}),
        family: means,
        "confidence_95": {family: {} if alike else intervals},
    }
    told |= _means([_numbers({name: s[name] for name in _BY_SEED if name in s}) for s in summaries])[0]
    if "live" in told:
        flags = ("overloaded", "saturated")
        told["live"] |= {name: any(s["live"][name] for s in summaries) for name in flags}
    return told | bottlenecks_of(told)


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


def _means(parts: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the means of equal keys, nested, and their intervals; a key that a part lacks is left out."""
    means: dict[str, Any] = {}
    intervals: dict[str, Any] = {}
    for name in parts[0]:
        if not all(name in part for part in parts):
            continue
        values = [part[name] for part in parts]
        if isinstance(values[0], Mapping):
            means[name], intervals[name] = _means(values)
        elif name == "count":
            means[name] = values[0] if len(set(values)) == 1 else float(np.mean(values))
        else:
            mean, half = confidence_95(values)
            means[name] = mean
            if math.isfinite(half):
                intervals[name] = [mean - half, mean + half]
    return means, intervals
