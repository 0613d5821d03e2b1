"""Description of a workload of DAGs: as jobs, and the shape of their graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from workloads.arrow import column
from workloads.dags import DagWorkload, stage_levels
from workloads.info import jobs
from workloads.info.common import Distribution, number, quantiles, row
from workloads.jobs import Float64Array, Int64Array

_LABELS = {
    "depth": "depth (stages on the longest path)",
    "width": "width (most stages at one level)",
    "critical_path_s": "critical path (s)",
}
_ROWS = {
    "num_stages": "stages per job",
    "depth": "depth",
    "width": "width",
    "width_tasks": "tasks, level",
    "critical_path_s": "crit. path (s)",
    "parallelism": "parallelism",
}


def describe(workload: DagWorkload, nodes: Sequence[int] = ()) -> dict[str, Any]:
    """Return the figures of DAGs: those of `jobs.describe`, and quantiles over jobs of their ``shape``.

    A stage's level is the longest path to it from a stage without parents, so that depth is the number of
    levels and width the most stages at one. ``critical_path_s`` is the longest path where each stage takes as
    long as its longest task: no schedule ends a job earlier. ``parallelism`` is task-seconds over it: the
    slots that a job keeps busy on average if it has all it can use; jobs that take no time are left out.
    """
    return {
        **jobs.describe(workload, nodes),
        "family": "dags",
        "stages": workload.num_stages,
        "edges": workload.edges.num_rows,
        "shape": {name: quantiles(values) for name, values in shapes(workload).items()},
    }


def distributions(workload: DagWorkload) -> list[Distribution]:
    """Return depth, width and critical path of jobs."""
    of_jobs = shapes(workload)
    return [Distribution(name, label, "jobs", {"all": of_jobs[name]}) for name, label in _LABELS.items()]


def render(d: dict[str, Any]) -> list[str]:
    """Return the lines of a description of DAGs."""
    first, *lines = jobs.render(d)
    return [
        f"{first}, {d['stages']:,} stages, {d['edges']:,} edges",
        *lines,
        "",
        "graphs of all jobs (parallelism is work over critical path)",
        row("quantile", [f"{q} %" for q in d["quantiles"]]),
        *(row(_ROWS[name], [number(x) for x in values]) for name, values in d["shape"].items() if values),
    ]


def shapes(workload: DagWorkload) -> dict[str, npt.NDArray[Any]]:
    """Return depth, width and the like of every job, by the names of `describe`."""
    arrays = workload.arrays()
    first, tasks = arrays.first_stage[:-1], column(workload.stages, "num_tasks")
    durations = column(workload.tasks, "duration_s")
    work_s = np.add.reduceat(durations, arrays.first_task[:-1])
    longest_s = np.maximum.reduceat(durations, arrays.stage_first_task[:-1])
    level = stage_levels(workload)
    parent = np.repeat(np.arange(len(level)), np.diff(arrays.first_child))
    critical_s = np.maximum.reduceat(_finish_s(longest_s, level, parent, arrays.child), first)

    # A level is less than the number of the job's stages: each has its place among the stages.
    counts = np.diff(arrays.first_stage)
    place = np.repeat(first, counts) + level
    at_level = np.bincount(place, minlength=len(level))
    tasks_at_level = np.bincount(place, weights=tasks, minlength=len(level))
    takes_time = critical_s > 0
    return {
        "num_stages": counts,
        "depth": np.maximum.reduceat(level, first) + 1,
        "width": np.maximum.reduceat(at_level, first),
        "width_tasks": np.maximum.reduceat(tasks_at_level, first),
        "critical_path_s": critical_s,
        "parallelism": work_s[takes_time] / critical_s[takes_time],
    }


def _finish_s(
    longest_s: Float64Array, level: Int64Array, parent: Int64Array, child: Int64Array
) -> Float64Array:
    """Return when each stage ends at the earliest (s), from the start of its job."""
    finish_s = longest_s.copy()
    order = np.lexsort((child, level[child]))
    parent, child = parent[order], child[order]
    if len(child) == 0:
        return finish_s
    next_level = np.flatnonzero(np.diff(level[child])) + 1
    for above, below in zip(np.split(parent, next_level), np.split(child, next_level), strict=True):
        first = np.flatnonzero(np.diff(below, prepend=-1))
        finish_s[below[first]] += np.maximum.reduceat(finish_s[above], first)
    return finish_s
