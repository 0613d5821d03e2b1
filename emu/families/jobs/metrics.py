"""Figures of runs of jobs: percentiles by class, makespan, fairness, what constraints do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu.columns import equals_text, numbers, text_codes
from emu.families.jobs.keys import THRESHOLD_S
from emu.results.metrics import BoolArray, Float64Array, after_warmup, describe_metrics, finite

if TYPE_CHECKING:
    from emu.results.result import Result

CLASSES = ("all", "short", "long")


SIDES = ("constrained", "unconstrained")


SPLIT = tuple(f"{side} {name}" for name in ("short", "long") for side in SIDES)
"""Groups of jobs that are shown where a class has both."""


MOST_KINDS = 24


OTHER_KINDS = "other kinds"
"""The kind of all jobs beyond `MOST_KINDS` kinds; a kind made by `workloads.constraints` has no space."""


def bounded_slowdown(
    jct_s: Float64Array, ideal_s: Float64Array, threshold_s: float = THRESHOLD_S
) -> Float64Array:
    """Return max(1, jct_s / max(ideal_s, threshold_s)); NaN where a job did not finish.

    A job of 5 ms that takes 5 s is slowed down a thousand times, without practical effect. The threshold keeps such
    jobs from dominating means and fairness indices.

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
        if index is not None:
            summary[name] = index
    summary["slowdown_threshold_s"] = threshold_s
    if not finished.all():
        summary["unfinished"] = int(np.count_nonzero(~finished))
    return summary | describe_constraints(jobs, counts, threshold_s)


def values_of(jobs: pa.Table, threshold_s: float) -> dict[str, Float64Array]:
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
        jobs of the same run; what the same jobs take without constraints, only a second run can show.
    """
    kind_of_job, kinds = text_codes(jobs, "constraint")
    if not kinds:
        return {}
    values = values_of(jobs, threshold_s)
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


def job_values(run: Result, metric: str, group: str, warmup_s: float) -> Float64Array:
    """Return a metric of the jobs of a group that arrive after the warm-up, NaN where there is none."""
    threshold_s = run.summary["jobs"].get("slowdown_threshold_s", THRESHOLD_S)
    counts = after_warmup(numbers(run.jobs, "submit_s"), warmup_s) & in_group(run.jobs, group)
    return values_of(run.jobs, threshold_s)[metric][counts]


def part_of(summary: Mapping[str, Any], group: str) -> Mapping[str, Any]:
    """Return the figures of a group in the ``jobs`` part of a summary; an empty mapping if it has none.

    A class is split only where it has both constrained jobs and others; else one half were the class itself.
    """
    side, _, job_class = group.rpartition(" ")
    if not side:
        return summary.get(job_class, {})
    halves = {s: summary[s][job_class] for s in SIDES if job_class in summary.get(s, {})}
    return halves[side] if len(halves) == len(SIDES) else {}


def offered_load(task_seconds: float, span_s: float, slots: int) -> float | None:
    """Return work over capacity while jobs arrive; None when all arrive at once."""
    return task_seconds / (span_s * slots) if span_s > 0 else None
