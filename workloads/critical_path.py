"""Critical paths of DAGs: when each task would end if the job had all machines to itself."""

from __future__ import annotations

import numpy as np

from workloads.dags import DagWorkload, stage_levels
from workloads.groups import rows_of_groups
from workloads.jobs import Int64Array

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
