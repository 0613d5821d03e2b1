"""Critical paths of DAGs: when a job would end if it had all machines to itself, and what of that is the network's."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from workloads.dags import DagWorkload, stage_levels
from workloads.groups import rows_of_groups
from workloads.jobs import Float64Array, Int64Array

LATEST_NS = 1 << 62
"""No run comes to a later time: starts in a chain of tasks that takes longer are held here, or they would wrap."""


def earliest_ends_ns(dag: DagWorkload, duration_ns: Int64Array | None = None) -> Int64Array:
    """Return when each task ends at the earliest, shape (T,), ns after its job has arrived.

    Parameters
    ----------
    dag : DagWorkload
    duration_ns : ndarray of int64, shape (T,), optional
        Of the tasks; by default as the workload has them.
    """
    arrays = dag.arrays()
    duration = arrays.duration_ns if duration_ns is None else duration_ns
    first, count = arrays.stage_first_task[:-1], np.diff(arrays.stage_first_task)
    level = stage_levels(dag)
    child_of_edge = np.repeat(np.arange(dag.num_stages), np.diff(arrays.first_parent))
    parent, one_to_one = arrays.parent, arrays.parent_one_to_one == 1
    by_level = np.argsort(level[child_of_edge], kind="stable")
    bounds = np.searchsorted(level[child_of_edge][by_level], np.arange(int(level.max()) + 2))
    end = duration.copy()  # of tasks that wait for nothing
    for at in range(1, bounds.size - 1):  # parents are of lower levels, and done
        edges = by_level[bounds[at] : bounds[at + 1]]
        children = np.unique(child_of_edge[edges])
        begin = np.zeros(dag.num_stages, np.int64)
        whole = edges[~one_to_one[edges]]
        if whole.size:
            parents = np.unique(parent[whole])
            tasks = rows_of_groups(count, parents)
            last = np.zeros(dag.num_stages, np.int64)
            last[parents] = np.maximum.reduceat(end[tasks], np.append(0, np.cumsum(count[parents])[:-1]))
            np.maximum.at(begin, child_of_edge[whole], last[parent[whole]])
        tasks = rows_of_groups(count, children)
        start = np.repeat(begin[children], count[children])
        place = np.full(dag.num_stages, -1)  # of the first task of a stage in `tasks`
        place[children] = np.append(0, np.cumsum(count[children])[:-1])
        for edge in edges[one_to_one[edges]].tolist():
            own, of = child_of_edge[edge], parent[edge]
            slots = slice(place[own], place[own] + count[own])
            start[slots] = np.maximum(start[slots], end[first[of] : first[of] + count[of]])
        end[tasks] = np.minimum(start, LATEST_NS) + duration[tasks]
    return end


def critical_paths_ns(dag: DagWorkload, duration_ns: Int64Array | None = None) -> Int64Array:
    """Return the length of each job's critical path, shape (J,), ns: no job ends earlier after it has arrived."""
    longest: Int64Array = np.maximum.reduceat(
        earliest_ends_ns(dag, duration_ns), dag.arrays().first_task[:-1]
    )
    return longest


def network_paths_s(dag: DagWorkload, bytes_per_s: float) -> tuple[Float64Array, Float64Array]:
    """Return the longest path of each job with its edges, and what of it these take: both of shape (J,), s.

    A stage takes its mean task duration, an edge of b bytes between p and c tasks ``b / (bytes_per_s * min(p, c))``.
    With a machine for each task, a port of `bytes_per_s` in each direction for each machine, and all bytes over ports
    (those between tasks of one machine, too), no edge takes less. One whose bytes are not known takes no time. Of
    paths that are equally long the one is taken whose edges take most.
    """
    arrays = dag.arrays()
    tasks, level = np.diff(arrays.stage_first_task), stage_levels(dag)
    child = np.repeat(np.arange(dag.num_stages), np.diff(arrays.first_parent))
    narrower = np.minimum(tasks[arrays.parent], tasks[child])
    edge_s = np.nan_to_num(arrays.parent_bytes) / (bytes_per_s * narrower)
    end_s, network_s = arrays.stage_mean_ns / 1e9, np.zeros(dag.num_stages)
    by_level = np.argsort(level[child], kind="stable")
    bounds = np.searchsorted(level[child][by_level], np.arange(1, int(level.max()) + 2))
    for first, last in pairwise(bounds.tolist()):  # parents are of lower levels, and done
        edges = by_level[first:last]
        before_s = end_s[arrays.parent[edges]] + edge_s[edges]
        of_edges_s = network_s[arrays.parent[edges]] + edge_s[edges]
        latest = _last_of_groups(child[edges], before_s, of_edges_s)
        end_s[child[edges[latest]]] += before_s[latest]
        network_s[child[edges[latest]]] = of_edges_s[latest]
    job = np.repeat(np.arange(dag.num_jobs), np.diff(arrays.first_stage))
    latest = _last_of_groups(job, end_s, network_s)
    return end_s[latest], network_s[latest]


def _last_of_groups(group: Int64Array, *by: Float64Array) -> Int64Array:
    """Return the row of each group, in order, that is the largest by these columns, of which the first counts most."""
    order = np.lexsort((*by[::-1], group))
    sorted_groups = group[order]
    return order[np.append(sorted_groups[1:] != sorted_groups[:-1], True)]
