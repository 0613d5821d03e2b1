"""Description of a workload of DAGs: as jobs, and the shape of their graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from workloads.arrow import column
from workloads.critical_path import critical_paths_ns
from workloads.dags import DagArrays, DagWorkload, stage_levels
from workloads.info import jobs
from workloads.info.common import Distribution, number, quantiles, row
from workloads.info.dag_bytes import describe_bytes, render_bytes
from workloads.jobs import Int64Array

_LABELS = {
    "depth": "depth (stages on the longest path)",
    "width": "width (most stages at one level)",
    "critical_path_s": "critical path (s)",
}
_ROWS = {
    "num_stages": "stages per job",
    "barriers": "barriers",
    "depth": "depth",
    "disjoint_paths": "disjoint paths",
    "input_work": "input work",
    "width": "width",
    "width_tasks": "tasks, level",
    "critical_path_s": "crit. path (s)",
    "parallelism": "parallelism",
}


def describe(workload: DagWorkload, nodes: Sequence[int] = ()) -> dict[str, Any]:
    """Return the figures of DAGs: those of `jobs.describe`, and quantiles over jobs of their ``shape``.

    A stage's level is the longest path to it from a stage without parents. Depth is the number of levels, the length of
    the critical path in stages, and width the most stages of a level. ``barriers`` are stages with several parents,
    ``input_work`` is the share of a job's task-seconds in stages without parents (Carbyne, OSDI 2016, Table 1).
    ``disjoint_paths`` is the least number of paths that share no stage and have all stages of the job.
    ``critical_path_s`` is the longest path of tasks: no schedule ends a job earlier. ``parallelism`` is task-seconds
    over the critical path, the slots that a job with all resources keeps busy on average; it and the input work are
    without jobs that take no time. ``bytes`` is None, or as `workloads.info.dag_bytes.describe_bytes` says.
    """
    return {
        **jobs.describe(workload, nodes),
        "family": "dags",
        "stages": workload.num_stages,
        "edges": workload.edges.num_rows,
        "shape": {name: quantiles(values) for name, values in shapes(workload).items()},
        "bytes": describe_bytes(workload),
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
        *render_bytes(d),
    ]


def shapes(workload: DagWorkload) -> dict[str, npt.NDArray[Any]]:
    """Return depth, width and the like of every job, by the names of `describe`."""
    arrays = workload.arrays()
    first, tasks = arrays.first_stage[:-1], column(workload.stages, "num_tasks")
    durations = column(workload.tasks, "duration_s")
    work_s = np.add.reduceat(durations, arrays.first_task[:-1])
    level = stage_levels(workload)
    critical_s = critical_paths_ns(workload) / 1e9
    parents = np.diff(arrays.first_parent)
    of_stages_s = np.add.reduceat(durations, arrays.stage_first_task[:-1])
    input_s = np.add.reduceat(np.where(parents == 0, of_stages_s, 0.0), first)

    # A level is less than the number of the job's stages, so that each level has a place among the stages.
    counts = np.diff(arrays.first_stage)
    place = np.repeat(first, counts) + level
    at_level = np.bincount(place, minlength=len(level))
    tasks_at_level = np.bincount(place, weights=tasks, minlength=len(level))
    takes_time = critical_s > 0
    return {
        "num_stages": counts,
        "barriers": np.add.reduceat((parents > 1).astype(np.int64), first),
        "depth": np.maximum.reduceat(level, first) + 1,
        "disjoint_paths": _disjoint_paths(arrays),
        "width": np.maximum.reduceat(at_level, first),
        "width_tasks": np.maximum.reduceat(tasks_at_level, first),
        "input_work": input_s[takes_time] / work_s[takes_time],
        "critical_path_s": critical_s,
        "parallelism": work_s[takes_time] / critical_s[takes_time],
    }


def _disjoint_paths(arrays: DagArrays) -> Int64Array:
    """Return the least number of paths that share no stage and have all stages of each job.

    It is the number of stages minus the size of a maximum matching: the most edges of which no two begin or end at the
    same stage (Dilworth's theorem by König's; Fulkerson, 1956).
    """
    from scipy.sparse import csr_array  # 0.2 s
    from scipy.sparse.csgraph import maximum_bipartite_matching

    counts = np.diff(arrays.first_stage)
    if len(arrays.child) == 0:
        return counts
    size = len(arrays.first_child) - 1
    after = csr_array(
        (np.ones(len(arrays.child), np.int8), arrays.child, arrays.first_child), shape=(size, size)
    )
    matched = maximum_bipartite_matching(after, perm_type="column") >= 0
    return counts - np.add.reduceat(matched.astype(np.int64), arrays.first_stage[:-1])
