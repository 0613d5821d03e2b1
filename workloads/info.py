"""What a workload is like, in numbers: arrivals, work, and quantiles by class of job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from workloads.arrow import column
from workloads.jobs import Float64Array, JobWorkload
from workloads.units import format_duration

QUANTILES = (0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 100)
"""Percentages at which quantiles are given; they interpolate linearly."""


def describe(workload: JobWorkload, nodes: Sequence[int] = ()) -> dict[str, Any]:
    """Return the figures of a workload as plain numbers, lists and dictionaries.

    Parameters
    ----------
    workload : JobWorkload
    nodes : sequence of int, optional
        Numbers of one-slot nodes to give the offered load for; by default a few around what is busy on
        average.

    Returns
    -------
    dict
        ``span_s`` is the time from first to last arrival. ``busy_nodes`` is task-seconds over span: the
        nodes that are busy on average if all work is done in that time; None when all jobs arrive at once,
        as is ``offered_load``. ``classes`` holds ``all`` and, where the workload has a cut-off, ``short``
        and ``long``.
    """
    submit_s = column(workload.jobs, "submit_s")
    num_tasks = column(workload.jobs, "num_tasks")
    mean_s = column(workload.jobs, "mean_task_s")
    durations = column(workload.tasks, "duration_s")
    work_s = np.add.reduceat(durations, np.cumsum(num_tasks) - num_tasks)
    span_s = float(submit_s[-1] - submit_s[0])
    total_s = float(work_s.sum())
    busy = total_s / span_s if span_s > 0 else None
    masks = {"all": np.ones(len(mean_s), bool)}
    if workload.short_cutoff_s is not None:
        masks |= {"short": mean_s <= workload.short_cutoff_s, "long": mean_s > workload.short_cutoff_s}
    gaps = np.diff(submit_s)
    return {
        "name": workload.name,
        "jobs": workload.num_jobs,
        "tasks": workload.num_tasks,
        "first_submit_s": float(submit_s[0]),
        "span_s": span_s,
        "mean_gap_s": float(gaps.mean()) if len(gaps) else None,
        "gap_cv": float(gaps.std() / gaps.mean()) if span_s > 0 else None,
        "task_seconds": total_s,
        "longest_task_s": float(durations.max()),
        "busy_nodes": busy,
        "offered_load": None if busy is None else {int(n): busy / n for n in nodes or _node_counts(busy)},
        "short_cutoff_s": workload.short_cutoff_s,
        "long_partition": workload.long_partition,
        "quantiles": list(QUANTILES),
        "classes": {name: _describe_class(m, num_tasks, mean_s, work_s) for name, m in masks.items()},
        "metadata": dict(workload.metadata),
        "notes": list(workload.notes),
    }


def render(description: dict[str, Any]) -> str:
    """Return a description as text for a terminal."""
    d = description
    lines = [
        f"{d['name']}: {d['jobs']:,} jobs, {d['tasks']:,} tasks",
        f"arrivals   over {format_duration(d['span_s'])}"
        + (
            ""
            if d["gap_cv"] is None
            else f", mean gap {format_duration(d['mean_gap_s'])} (cv {d['gap_cv']:.2f})"
        ),
        f"work       {d['task_seconds']:,.0f} task-seconds, "
        f"longest task {format_duration(d['longest_task_s'])}",
    ]
    if d["busy_nodes"] is not None:
        loads = ", ".join(f"{load:.2f} on {n:,}" for n, load in d["offered_load"].items())
        lines += [f"busy       {d['busy_nodes']:,.1f} nodes on average", f"load       {loads} one-slot nodes"]
    if d["short_cutoff_s"] is not None:
        lines.append(f"cut-off    jobs up to {d['short_cutoff_s']:g} s mean task duration are short")
    if d["long_partition"] is not None:
        lines.append(f"partition  long jobs may use {d['long_partition']:.4g} of the nodes")
    for name, c in d["classes"].items():
        lines += [
            "",
            f"{name} jobs: {c['jobs']:,} ({c['job_share']:.2%}), {c['work_share']:.2%} of task-seconds",
        ]
        if c["jobs"]:
            lines += [
                _row("quantile", [f"{q} %" for q in d["quantiles"]]),
                _row("tasks per job", [f"{x:,.4g}" if x < 1e4 else f"{x:,.0f}" for x in c["num_tasks"]]),
                _row("mean task (s)", [f"{x:.4g}" if x < 1e4 else f"{x:,.0f}" for x in c["mean_task_s"]]),
            ]
    if d["metadata"]:
        lines += ["", *(f"{key}: {value}" for key, value in d["metadata"].items())]
    return "\n".join([*lines, *(f"note: {n}" for n in d["notes"])]) + "\n"


def _describe_class(
    mask: npt.NDArray[np.bool_], num_tasks: npt.NDArray[np.int64], mean_s: Float64Array, work_s: Float64Array
) -> dict[str, Any]:
    count, total_s = int(mask.sum()), float(work_s.sum())
    return {
        "jobs": count,
        "tasks": int(num_tasks[mask].sum()),
        "job_share": count / len(mask),
        "work_share": float(work_s[mask].sum()) / total_s if total_s > 0 else 0.0,
        "num_tasks": np.percentile(num_tasks[mask], QUANTILES).tolist() if count else [],
        "mean_task_s": np.percentile(mean_s[mask], QUANTILES).tolist() if count else [],
    }


def _node_counts(busy: float) -> list[int]:
    """Return round node counts at which the load is about 1.1, 0.9, 0.7 and 0.5."""
    counts = []
    for load in (1.1, 0.9, 0.7, 0.5):
        exact = max(busy / load, 1.0)
        digits = max(len(str(int(exact))) - 2, 0)
        counts.append(max(round(exact / 10**digits), 1) * 10**digits)
    return sorted(set(counts))


def _row(label: str, cells: list[str]) -> str:
    return f"  {label:<14}" + "".join(f"{cell:>9}" for cell in cells)
