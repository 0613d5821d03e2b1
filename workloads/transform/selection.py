"""Parts of a workload: some of its time, some of its jobs, no more than so long."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from workloads.arrow import column, from_optional
from workloads.coflows import CoflowWorkload
from workloads.dags import DagWorkload
from workloads.defaults import DEFAULT_SEED
from workloads.errors import InputError
from workloads.generators.draws import check_whole, generator
from workloads.groups import apportion
from workloads.jobs import Float64Array, Int64Array
from workloads.requests import requested_s
from workloads.transform.history import recorded
from workloads.transform.primitives import (
    JobsOrDags,
    W,
    Workload,
    arrivals_s,
    arriving_at,
    family,
    heads,
    set_column,
    take,
    with_tables,
)

NARROW_FLOWS = 50
SHORT_FLOW_BYTES = 5e6
"""Coflows of up to 50 flows are narrow, those whose longest flow is below 5 MB short (Varys, SIGCOMM 2014)."""


def time_slice(workload: W, start_s: float = 0.0, end_s: float | None = None, rebase: bool = True) -> W:
    """Return what arrives from `start_s` on and before `end_s`.

    Parameters
    ----------
    workload
        Jobs, DAGs or coflows.
    start_s, end_s : float
        Times of the workload's own clock, as in its arrivals (s); by default up to the last arrival.
    rebase : bool
        Whether `start_s` becomes time 0.

    Raises
    ------
    InputError
        Nothing arrives in that time, or it is empty.
    """
    stop_s = math.inf if end_s is None else end_s
    if not 0 <= start_s < stop_s:
        raise InputError(
            f"from {start_s:g} s to {stop_s:g} s is empty; want 0 <= start < end", field="start_s"
        )
    times_s = arrivals_s(workload)
    first, end = np.searchsorted(times_s, [start_s, stop_s])  # start_s is in, end_s is not
    name = family(workload).name
    if first == end:
        raise InputError(
            f"none of the {name} of {workload.name} arrives from {start_s:g} s to {stop_s:g} s; they arrive "
            f"from {times_s[0]:g} s to {times_s[-1]:g} s"
        )
    made = take(workload, np.arange(first, end))
    if rebase:
        made = arriving_at(made, times_s[first:end] - start_s)
    options = {"start_s": start_s, "end_s": end_s, "rebase": rebase}
    return recorded(made, "slice", options, f"{end - first:,} of {len(times_s):,} {name}")


def sample(workload: W, share: float | None = None, count: int | None = None, seed: int = DEFAULT_SEED) -> W:
    """Return a random part of the jobs or coflows that keeps their mix; their times stay.

    Drawn without replacement from strata: short and long, and in each by powers of two of the number of tasks
    (of flows). Every class, and every stratum of a class, gets its share of the sample to within one. Short
    are jobs up to the workload's cut-off (without one, by powers of ten of their mean task duration), and
    coflows whose longest flow is below `SHORT_FLOW_BYTES`. The load falls with the number: see
    `scale`. Jobs stay as wide as they were, so that on fewer nodes at the same load they wait longer.

    Parameters
    ----------
    workload
        Jobs, DAGs or coflows.
    share : float
        Of the jobs or coflows, above 0 up to 1. Either this or `count`.
    count : int
        How many, from 1 on.
    seed : int

    Raises
    ------
    InputError
        Both or neither of share and count are given, or one is out of range.
    """
    total, name = heads(workload).num_rows, family(workload).name
    if (share is None) == (count is None):
        raise InputError(f"give the share or the number of {name} to keep, one of the two", field="share")
    if share is not None:
        if not 0 < share <= 1:
            raise InputError(f"{share!r} is not a share above 0 up to 1", field="share")
        wanted = max(round(share * total), 1)
    else:
        check_whole("count", count, 1, total)
        wanted = int(count or 0)
    rng = generator(seed)
    classes, sizes = _mix(workload)
    kept = []
    for members, part in _apportioned(np.arange(total), classes, wanted):
        for stratum, number in _apportioned(members, sizes, part):
            kept.append(rng.permutation(stratum)[:number])
    made = take(workload, np.sort(np.concatenate(kept)))
    options = {"share": share, "count": count, "seed": seed}
    return recorded(made, "sample", options, f"{wanted:,} of {total:,} {name}")


def truncate(workload: JobsOrDags, cap_s: float) -> JobsOrDags:
    """Return the workload with tasks that last longer than `cap_s` ended then; a note counts what was cut.

    The mean task duration that a job (a stage) states shrinks as its task-seconds do, and the run time that was
    requested for a job as its longest task does, so that estimates are as good or bad as they were. The cut-off stays:
    a long job may so become a short one.

    Raises
    ------
    InputError
        `cap_s` is not above 0, or the workload has no durations.
    """
    if isinstance(workload, CoflowWorkload):
        raise InputError(f"{workload.name} has coflows, which have sizes and no durations")
    if not 0 < cap_s < math.inf:
        raise InputError(f"{cap_s!r} is not a duration above 0", field="cap_s")
    durations = column(workload.tasks, "duration_s")
    cut = np.minimum(durations, cap_s)
    counts = column(workload.jobs, "num_tasks")
    means = column(workload.jobs, "mean_task_s")
    shorter = means * _kept_share(durations, cut, counts)
    changed: dict[str, Any] = {
        "tasks": set_column(workload.tasks, "duration_s", cut),
        "jobs": set_column(workload.jobs, "mean_task_s", shorter),
    }
    if "requested_s" in workload.jobs.column_names:
        longest_s = np.maximum.reduceat(durations, np.cumsum(counts) - counts)
        requested = from_optional(requested_s(workload.jobs) * (cap_s / np.maximum(longest_s, cap_s)))
        changed["jobs"] = set_column(changed["jobs"], "requested_s", requested)
    if isinstance(workload, DagWorkload):
        kept = _kept_share(durations, cut, column(workload.stages, "num_tasks"))
        stages = set_column(workload.stages, "mean_task_s", column(workload.stages, "mean_task_s") * kept)
        changed["stages"] = stages
    longer = durations > cap_s
    total_s, cut_s = float(durations.sum()), float((durations - cut).sum())
    jobs_cut = np.add.reduceat(longer.astype(np.int64), np.cumsum(counts) - counts) > 0
    outcome = (
        f"{int(longer.sum()):,} of {len(cut):,} tasks in {int(jobs_cut.sum()):,} jobs cut, by {cut_s:,.6g} of "
        f"{total_s:,.6g} task-seconds" + (f" ({cut_s / total_s:.2%})" if total_s > 0 else "")
    )
    cutoff_s = workload.short_cutoff_s
    if cutoff_s is not None and (now_short := int(((means > cutoff_s) & (shorter <= cutoff_s)).sum())):
        outcome += f"; {now_short:,} long jobs are short now"
    return recorded(with_tables(workload, **changed), "truncate", {"cap_s": cap_s}, outcome, note=True)


def _mix(workload: Workload) -> tuple[Int64Array, Int64Array]:
    """Return the class of each job or coflow, and its power of two of tasks or flows."""
    if isinstance(workload, CoflowWorkload):
        arrays = workload.arrays()
        longest = np.maximum.reduceat(arrays.size_bytes, arrays.first_flow[:-1])
        return (longest >= SHORT_FLOW_BYTES).astype(np.int64), _power(column(workload.coflows, "width"), 2)
    means = column(workload.jobs, "mean_task_s")
    cutoff_s = workload.short_cutoff_s
    classes = _power(means, 10) if cutoff_s is None else (means > cutoff_s).astype(np.int64)
    return classes, _power(column(workload.jobs, "num_tasks"), 2)


def _power(values: npt.NDArray[Any], base: int) -> Int64Array:
    tiny = 1e-9  # a nanosecond: what is less takes no time
    return np.floor(np.log(np.maximum(values, tiny)) / np.log(base)).astype(np.int64)


def _apportioned(members: Int64Array, labels: Int64Array, wanted: int) -> list[tuple[Int64Array, int]]:
    """Return the members of each label, and how many of `wanted` they get: their share, to within one."""
    found, group, sizes = np.unique(labels[members], return_inverse=True, return_counts=True)
    parts = apportion(wanted, sizes.tolist())
    return [(members[group == i], int(parts[i])) for i in range(len(found))]


def _kept_share(durations: Float64Array, cut: Float64Array, counts: Int64Array) -> Float64Array:
    """Return what is left of the task-seconds of each run of `counts` tasks, 1 where nothing was cut."""
    owner = np.repeat(np.arange(len(counts)), counts)
    before, after = (np.bincount(owner, weights=x, minlength=len(counts)) for x in (durations, cut))
    return np.divide(after, before, out=np.ones(len(counts)), where=before > after)
