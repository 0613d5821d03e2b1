"""Description of a workload of DAGs: as jobs, and the shape of their graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from workloads.arrow import column
from workloads.critical_path import critical_paths_ns, network_paths_s
from workloads.dags import DagArrays, DagWorkload, stage_levels
from workloads.info import jobs
from workloads.info.common import Distribution, number, quantiles, row
from workloads.jobs import Float64Array, Int64Array
from workloads.stages import ALL_TO_ALL, ONE_TO_ONE
from workloads.units import format_quantity

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
    without jobs that take no time. ``bytes`` is None, or as `describe_bytes` says.
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


# Description of the bytes of DAGs: on edges and of input, and how long the former take at a network.

PORT_BPS = 10e9
"""The speed of each port, in each direction, of the network for which times of edges are given."""


def describe_bytes(workload: DagWorkload) -> dict[str, Any] | None:
    """Return the figures of bytes; None where none are known.

    ``edges`` has the bytes on edges by their kind, ``edges_known`` the share of edges whose bytes are known (None
    without edges), ``input`` the bytes of input, ``stages_known`` the share of stages whose input is known. ``job`` has
    quantiles: ``edge_bytes`` and ``input_bytes`` over the jobs of which some are known, and ``network_share`` over the
    jobs with bytes on some edge known whose longest path takes time: the share that edges take of that path
    (`workloads.critical_path.network_paths_s`), for ports of ``port_bps`` bit/s.
    """
    if not workload.bytes_known:
        return None
    arrays = workload.arrays()
    sent, read = arrays.edge_bytes, arrays.input_bytes
    one = arrays.edge_one_to_one == 1
    stage_job = np.repeat(np.arange(workload.num_jobs), np.diff(arrays.first_stage))
    edge_job = np.repeat(stage_job, np.diff(arrays.first_child))
    path_s, network_s = network_paths_s(workload, PORT_BPS / 8)
    some = (path_s > 0) & (np.bincount(edge_job[~np.isnan(sent)], minlength=workload.num_jobs) > 0)
    return {
        "edges": {ALL_TO_ALL: float(np.nansum(sent[~one])), ONE_TO_ONE: float(np.nansum(sent[one]))},
        "edges_known": float((~np.isnan(sent)).mean()) if len(sent) else None,
        "input": float(np.nansum(read)),
        "stages_known": float((~np.isnan(read)).mean()),
        "port_bps": PORT_BPS,
        "job": {
            "edge_bytes": quantiles(_by_job(sent, edge_job)),
            "input_bytes": quantiles(_by_job(read, stage_job)),
            "network_share": quantiles(network_s[some] / path_s[some]),
        },
    }


def render_bytes(d: dict[str, Any]) -> list[str]:
    """Return the lines of a description of DAGs on their bytes, if any are known."""
    if (found := d["bytes"]) is None:
        return []
    edges, speed = found["edges"], f"{found['port_bps'] / 1e9:g} Gbps"
    parts = [
        f"{format_quantity(size, 'B')} {kind}" for kind, size in edges.items() if size or kind == ALL_TO_ALL
    ]
    on_edges = f"{', '.join(parts)} (known of {_percent(found['edges_known'] or 0.0)} of edges)"
    of_input = (
        f"{format_quantity(found['input'], 'B')} (known of {_percent(found['stages_known'])} of stages)"
    )
    lines = [
        "",
        f"bytes on edges: {on_edges if found['edges_known'] else 'not known'}",
        f"bytes of input: {of_input if found['stages_known'] else 'not known'}",
        row("quantile", [f"{q} %" for q in d["quantiles"]]),
    ]
    for label, name, scale in (
        ("edges (MB)", "edge_bytes", 1e6),
        ("input (MB)", "input_bytes", 1e6),
        ("network (%)", "network_share", 0.01),
    ):
        if values := found["job"][name]:
            lines.append(row(label, [number(x / scale) for x in values]))
    if found["job"]["network_share"]:
        lines += [
            "  network: the share of a job's longest path that edges take, for a job alone with a machine a task and",
            f"  ports of {speed}. A stage takes its mean task duration, an edge of b bytes between p and c tasks takes",
            f"  b / ({speed} x min(p, c)), which is the least that it can, and nothing where b is not known",
        ]
    return lines


def _by_job(values: Float64Array, job: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the sum of the known values of each job that has any."""
    known = ~np.isnan(values)
    sums: npt.NDArray[Any] = np.bincount(job[known], values[known])
    return sums[np.bincount(job[known]) > 0]


def _percent(part: float) -> str:
    """Return a share as a percentage; one that is not all does not look so.

    Examples
    --------
    >>> _percent(1.0), _percent(0.99999), _percent(0.324)
    ('100 %', '99.99 %', '32.4 %')
    """
    return f"{100 * part if part == 1 else min(100 * part, 99.99):.4g} %"
