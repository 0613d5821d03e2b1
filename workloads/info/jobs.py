"""Description of a workload of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from workloads.arrow import column
from workloads.dags import DagWorkload
from workloads.info.common import (
    QUANTILES,
    Distribution,
    describe_arrivals,
    number,
    quantiles,
    render_arrivals,
    row,
    share,
)
from workloads.info.requests import describe_requests, render_requests
from workloads.jobs import JobWorkload
from workloads.units import format_duration


def describe(workload: JobWorkload | DagWorkload, nodes: Sequence[int] = ()) -> dict[str, Any]:
    """Return the figures of jobs.

    ``busy_nodes`` is task-seconds over span: the nodes that are busy on average if all work is done in that
    time. ``offered_load`` is the load by number of one-slot nodes. Both are None when all jobs arrive at once.
    ``classes`` holds ``all`` and, where the workload has a cut-off, ``short`` and ``long``, each with
    quantiles of tasks per job, stated mean task duration, and the durations of their tasks. What jobs ask for beside
    time is that of `requests.describe_requests`.
    """
    submit_s = column(workload.jobs, "submit_s")
    num_tasks = column(workload.jobs, "num_tasks")
    durations = column(workload.tasks, "duration_s")
    work_s = np.add.reduceat(durations, np.cumsum(num_tasks) - num_tasks)
    total_s = float(work_s.sum())
    arrivals = describe_arrivals(submit_s, {"jobs": None, "task_seconds": work_s})
    busy = total_s / arrivals["span_s"] if arrivals["span_s"] > 0 else None
    spread = distributions(workload)
    return {
        "name": workload.name,
        "family": "jobs",
        "jobs": workload.num_jobs,
        "tasks": workload.num_tasks,
        "first_submit_s": float(submit_s[0]),
        **arrivals,
        "task_seconds": total_s,
        "longest_task_s": float(durations.max()),
        "busy_nodes": busy,
        "offered_load": None if busy is None else {int(n): busy / n for n in nodes or _node_counts(busy)},
        "short_cutoff_s": workload.short_cutoff_s,
        "long_partition": workload.long_partition,
        "quantiles": list(QUANTILES),
        "classes": {
            name: {
                "jobs": int(mask.sum()),
                "tasks": int(num_tasks[mask].sum()),
                "job_share": share(mask.sum(), len(mask)),
                "work_share": share(work_s[mask].sum(), total_s),
                **{d.key: quantiles(d.values[name]) for d in spread},
            }
            for name, mask in _classes(workload).items()
        },
        **describe_requests(workload, work_s, arrivals["span_s"]),
    }


def distributions(workload: JobWorkload | DagWorkload) -> list[Distribution]:
    """Return tasks per job, stated mean task duration and task durations by class."""
    num_tasks = column(workload.jobs, "num_tasks")
    masks = _classes(workload)
    of_tasks = {name: np.repeat(mask, num_tasks) for name, mask in masks.items()}
    return [
        Distribution("num_tasks", "tasks per job", "jobs", _by_class(num_tasks, masks)),
        Distribution(
            "mean_task_s",
            "mean task duration of a job (s)",
            "jobs",
            _by_class(column(workload.jobs, "mean_task_s"), masks),
        ),
        Distribution(
            "duration_s",
            "task duration (s)",
            "tasks",
            _by_class(column(workload.tasks, "duration_s"), of_tasks),
        ),
    ]


def render(d: dict[str, Any]) -> list[str]:
    """Return the lines of a description of jobs."""
    lines = [
        f"{d['name']}: {d['jobs']:,} jobs, {d['tasks']:,} tasks",
        *render_arrivals(d, {"jobs": "jobs", "task_seconds": "task-seconds"}),
        f"work       {d['task_seconds']:,.0f} task-seconds, "
        f"longest task {format_duration(d['longest_task_s'])}",
    ]
    if d["busy_nodes"] is not None:
        loads = ", ".join(f"{load:.2f} on {n:,}" for n, load in d["offered_load"].items())
        nodes = "one-slot nodes" if d["demands"] else "nodes"  # a node may hold many tasks, or not one
        lines += [
            f"busy       {d['busy_nodes']:,.1f} {nodes} on average",
            f"load       {loads} one-slot nodes",
        ]
    if d["short_cutoff_s"] is not None:
        lines.append(f"cut-off    jobs up to {d['short_cutoff_s']:g} s mean task duration are short")
    if d["long_partition"] is not None:
        lines.append(f"partition  long jobs may use {d['long_partition']:.4g} of the nodes")
    labels = {"num_tasks": "tasks per job", "mean_task_s": "mean task (s)", "duration_s": "task (s)"}
    for name, c in d["classes"].items():
        lines += [
            "",
            f"{name} jobs: {c['jobs']:,} ({c['job_share']:.2%}), {c['work_share']:.2%} of task-seconds",
        ]
        if c["jobs"]:
            lines.append(row("quantile", [f"{q} %" for q in d["quantiles"]]))
            lines += [row(label, [number(x) for x in c[key]]) for key, label in labels.items()]
    return [*lines, *render_requests(d)]


def _classes(workload: JobWorkload | DagWorkload) -> dict[str, npt.NDArray[np.bool_]]:
    mean_s = column(workload.jobs, "mean_task_s")
    masks = {"all": np.ones(len(mean_s), bool)}
    if workload.short_cutoff_s is not None:
        masks |= {"short": mean_s <= workload.short_cutoff_s, "long": mean_s > workload.short_cutoff_s}
    return masks


def _by_class(
    values: npt.NDArray[Any], masks: dict[str, npt.NDArray[np.bool_]]
) -> dict[str, npt.NDArray[Any]]:
    return {name: values if name == "all" else values[mask] for name, mask in masks.items()}


def _node_counts(busy: float) -> list[int]:
    """Return round node counts at which the load is about 1.1, 0.9, 0.7 and 0.5."""
    counts = []
    for load in (1.1, 0.9, 0.7, 0.5):
        exact = max(busy / load, 1.0)
        digits = max(len(str(int(exact))) - 2, 0)
        counts.append(max(round(exact / 10**digits), 1) * 10**digits)
    return sorted(set(counts))
