"""Figures of runs of jobs: percentiles by class, makespan, fairness, what constraints, priorities and tenants do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu.columns import equals_text
from emu.families.jobs.divisions import DIVISIONS, division_of
from emu.families.jobs.keys import THRESHOLD_S
from emu.results.metrics import BoolArray, Float64Array, after_warmup, describe_metrics, finite
from workloads.arrow import coded_labels, is_known, optional_column

if TYPE_CHECKING:
    from emu.results.result import Result

CLASSES = ("all", "short", "long")
SIDES = ("constrained", "unconstrained")
SPLIT = tuple(f"{side} {name}" for name in ("short", "long") for side in SIDES)
"""Groups of jobs that are shown where a class has both sides."""
MOST_KINDS = 24
OTHER_KINDS = "other kinds"
"""The kind of all jobs beyond `MOST_KINDS` kinds; a kind made by `workloads.constraints` has no space."""


def bounded_slowdown(
    jct_s: Float64Array, ideal_s: Float64Array, threshold_s: float = THRESHOLD_S
) -> Float64Array:
    """Return max(1, jct_s / max(ideal_s, threshold_s)); NaN where a job did not finish.

    A job of 5 ms that takes 5 s has a slowdown of a thousand, without practical effect. With the threshold such jobs do
    not dominate means and fairness indices.

    References
    ----------
    Feitelson, Rudolph, Schwiegelshohn, Sevcik and Wong, Theory and Practice in Parallel Job Scheduling, JSSPP 1997,
    whose runtime is here the ideal time.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        bounded: Float64Array = np.maximum(jct_s / np.maximum(ideal_s, threshold_s), 1.0)
    return bounded


def jain_index(values: Float64Array) -> float:
    """Return Jain's fairness index (Σx)² / (n Σx²): 1 where all n values are equal, 1/n at worst; NaN of no values."""
    squares = float(np.square(values).sum())
    return float(values.sum()) ** 2 / (len(values) * squares) if squares > 0 else np.nan


def describe_jobs(jobs: pa.Table, warmup_s: float = 0.0, threshold_s: float = THRESHOLD_S) -> dict[str, Any]:
    """Return the ``jobs`` part of a summary.

    Parameters
    ----------
    jobs : pyarrow.Table
        With the columns submit_s, finish_s, jct_s, wait_s, ideal_s, slowdown, job_class and constraint of
        ``jobs.parquet``, and priority where the workload states some.
    warmup_s : float
        Jobs that arrive earlier than this after the first are left out of everything but the makespan.
    threshold_s : float
        Of `bounded_slowdown`.

    Returns
    -------
    dict
        ``all``, and ``short`` and ``long`` if they have jobs: `describe_values` of completion times of finished jobs,
        and of their ``wait``, ``slowdown`` and ``bounded_slowdown``; ``makespan_s`` from first arrival to last
        completion; ``jain_index`` of slowdowns, and ``bounded_jain_index`` of bounded ones, with
        ``slowdown_threshold_s``; ``unfinished``, the number of jobs that did not finish, if any. With constraints, also
        what `describe_constraints` returns; of each of `DIVISIONS` that has groups, `describe_values` by group. With
        preemption, also `describe_evictions`.
    """
    submit_s, finish_s = optional_column(jobs, "submit_s"), optional_column(jobs, "finish_s")
    values = values_of(jobs, threshold_s)
    counts = after_warmup(submit_s, warmup_s)
    is_long = class_is_long(jobs)
    masks = {"all": counts, "short": counts & ~is_long, "long": counts & is_long}
    summary = _describe_groups(values, masks)
    finished = np.isfinite(values[""])
    if finished.any():
        summary["makespan_s"] = float(np.nanmax(finish_s) - submit_s[0])
    for name, metric in (("jain_index", "slowdown"), ("bounded_jain_index", "bounded_slowdown")):
        index = jain_index(finite(values[metric][counts]))
        if np.isfinite(index):
            summary[name] = index
    summary["slowdown_threshold_s"] = threshold_s
    if not finished.all():
        summary["unfinished"] = int(np.count_nonzero(~finished))
    divided = {}
    for division in DIVISIONS:
        if own := {
            name: counts & mask for name, mask in division.masks(jobs).items() if (counts & mask).any()
        }:
            divided[division.key] = _describe_groups(values, own)
            if "evictions" in jobs.column_names:
                for name, mask in own.items():
                    divided[division.key][name] |= describe_evictions(jobs, mask)
    if "evictions" in jobs.column_names:
        summary |= describe_evictions(jobs, counts)
    return summary | describe_constraints(jobs, counts, threshold_s) | divided


def describe_evictions(jobs: pa.Table, mask: BoolArray) -> dict[str, Any]:
    """Return how often tasks of some jobs were evicted, and the work that was lost by that."""
    return {
        "evictions": int(optional_column(jobs, "evictions")[mask].sum()),
        "evicted_work_s": float(optional_column(jobs, "evicted_work_s")[mask].sum()),
    }


def values_of(jobs: pa.Table, threshold_s: float) -> dict[str, Float64Array]:
    """Return the metrics of each job by their names in a summary; that of completion times is empty."""
    jct_s = optional_column(jobs, "jct_s")
    return {
        "": jct_s,
        "wait": optional_column(jobs, "wait_s"),
        "slowdown": optional_column(jobs, "slowdown"),
        "bounded_slowdown": bounded_slowdown(jct_s, optional_column(jobs, "ideal_s"), threshold_s),
    }


def _describe_groups(values: Mapping[str, Float64Array], masks: Mapping[str, BoolArray]) -> dict[str, Any]:
    """Return the figures of groups of jobs: of ``all``, and of others that have jobs."""
    return {
        name: describe_metrics({metric: of_all[mask] for metric, of_all in values.items()})
        for name, mask in masks.items()
        if name == "all" or mask.any()
    }


def describe_constraints(
    jobs: pa.Table, counts: BoolArray, threshold_s: float = THRESHOLD_S
) -> dict[str, Any]:
    """Return the figures by constraint of the ``jobs`` part of a summary; nothing where no job has constraints.

    Returns
    -------
    dict
        ``constrained`` and ``unconstrained``, each with ``all``, ``short`` and ``long``.
        ``by_constraint``: by kind of constraint, the most frequent first, the same of all and of short jobs, and
        ``slowdown_vs_unconstrained``: total completion time over total ideal_s of the kind's short jobs, over the same
        of the unconstrained short jobs, which are other jobs of the run. (Means of slowdowns depend mostly on the
        shortest jobs.)
    """
    kinds, kind_of_job = coded_labels(jobs["constraint"])
    if not kinds:
        return {}
    values = values_of(jobs, threshold_s)
    jct_s, ideal_s = values[""], optional_column(jobs, "ideal_s")
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
    """Return which jobs have each kind of constraint, the most frequent first, and the rest as one kind."""
    jobs = np.bincount(kind_of_job[counts & (kind_of_job >= 0)], minlength=len(kinds))
    order = [k for k in sorted(range(len(kinds)), key=lambda k: (-jobs[k], kinds[k])) if jobs[k]]
    found = {kinds[k]: kind_of_job == k for k in order[:MOST_KINDS]}
    if rest := order[MOST_KINDS:]:
        found[OTHER_KINDS] = np.isin(kind_of_job, rest)
    return found


def class_is_long(jobs: pa.Table) -> BoolArray:
    """Return which jobs have the class ``long``."""
    return equals_text(jobs, "job_class", "long")


def has_classes(jobs: pa.Table) -> bool:
    """Return whether a table has jobs of both classes."""
    is_long = class_is_long(jobs)
    return bool(is_long.any() and not is_long.all())


def is_constrained(jobs: pa.Table) -> BoolArray:
    """Return which jobs have constraints."""
    return is_known(jobs["constraint"].combine_chunks())


def in_group(jobs: pa.Table, group: str) -> BoolArray:
    """Return which jobs belong to a group: a class, one of `SPLIT`, or a group of one of `DIVISIONS`."""
    division, name = division_of(group)
    if division is not None:
        return division.masks(jobs).get(name, np.zeros(jobs.num_rows, bool))
    side, _, job_class = group.rpartition(" ")
    found = (
        np.ones(jobs.num_rows, bool) if job_class == "all" else class_is_long(jobs) == (job_class == "long")
    )
    return found & (is_constrained(jobs) == (side == "constrained")) if side else found


def shown_classes(figures: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the `CLASSES` that the ``jobs`` part of a summary describes, without one that has all jobs."""
    there = tuple(name for name in CLASSES if name in figures)
    counts = {figures[name].get("count") for name in there}
    return ("all",) if len(there) == 2 and len(counts) == 1 else there


def job_metrics(run: Result) -> dict[str, Float64Array]:
    """Return the metrics of each job of a run, NaN for no value."""
    return values_of(run.jobs, run.summary["jobs"].get("slowdown_threshold_s", THRESHOLD_S))


def part_of(summary: Mapping[str, Any], group: str) -> Mapping[str, Any]:
    """Return the figures of a group in the ``jobs`` part of a summary; an empty mapping if it has none.

    A class is split only where it has both constrained jobs and others.
    """
    division, name = division_of(group)
    if division is not None:
        return summary.get(division.key, {}).get(name, {})
    side, _, job_class = group.rpartition(" ")
    if not side:
        return summary.get(job_class, {})
    halves = {s: summary[s][job_class] for s in SIDES if job_class in summary.get(s, {})}
    return halves[side] if len(halves) == len(SIDES) else {}
