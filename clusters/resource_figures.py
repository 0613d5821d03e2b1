"""What of a cluster the tasks of a workload hold, by resource, in numbers and as text."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from clusters.capacity import capacities, demands, fits
from clusters.cluster import Cluster
from clusters.figures import amount
from clusters.matching import billionths
from workloads.arrow import column
from workloads.critical_path import earliest_ends_ns
from workloads.dags import DagWorkload
from workloads.errors import printable
from workloads.jobs import Float64Array, Int64Array, JobWorkload
from workloads.requests import NO_GANG, gang_nodes
from workloads.resources import resource_named
from workloads.stated_demands import memory_in_two_units
from workloads.units import format_duration

_HOUR_S = 3600.0
_MANY = 2**31
"""Tasks that need nothing of a resource fit as often as that."""


class _Tasks(NamedTuple):
    """Demands and times of T tasks on a cluster without bounds: each starts as soon as it could.

    `vector` has the distinct demands, shape (D, R), and `which` that of each task, shape (T,).
    """

    resources: tuple[str, ...]
    vector: Float64Array
    which: Int64Array
    start_s: Float64Array
    end_s: Float64Array


def resource_figures(workload: JobWorkload | DagWorkload, cluster: Cluster) -> dict[str, Any]:
    """Return what of a cluster a workload holds.

    ``resources`` has ``slots``, of which a task takes one, and the resources that the workload states. Each has its
    ``unit``, the ``total`` of all nodes and the most of one node (``largest``). ``in_use`` is what is held on average
    if all work is done in the time of the arrivals; None if all arrive at once. ``busiest`` is what is held on average
    in the busiest hour if each task runs as soon as it could: a task of a job when the job arrives, one of a DAG after
    the tasks that it waits for. ``share`` and ``busiest_share`` are these over the total, None where no node has any.
    ``busiest_start_s`` is when that hour begins, ``tasks_over`` the tasks that need more than any node has.

    ``window_s`` is the hour, or the time of the arrivals where that is shorter. ``bottleneck`` is the resource with the
    largest share; ``slots`` only where no demand is stated. ``tasks_without_node`` need more than any node has, of one
    resource or of several together; ``jobs_without_node`` have such tasks. ``gangs_without_room`` are the gangs whose
    tasks do not fit at one time on the empty cluster, evenly on as many nodes as they state; of tasks that differ, each
    counts as their largest.

    Raises
    ------
    InputError
        An attribute that tasks need is not a number on some node.
    """
    tasks = _tasks(workload)
    submit_s = column(workload.jobs, "submit_s")
    span_s = float(submit_s[-1] - submit_s[0])
    window_s = span_s if 0 < span_s < _HOUR_S else _HOUR_S
    edges_s = float(submit_s[0]) + window_s * np.arange(int(span_s / window_s) + 2, dtype=np.float64)
    orders = np.argsort(tasks.start_s, kind="stable"), np.argsort(tasks.end_s, kind="stable")
    capacity = capacities(cluster, tasks.resources) if tasks.resources else np.zeros((cluster.num_nodes, 0))
    rows = {}
    for name, of_vector, of_nodes in (
        ("slots", np.ones(len(tasks.vector)), cluster.slots().astype(np.float64)),
        *zip(tasks.resources, tasks.vector.T, capacity.T, strict=True),
    ):
        each = of_vector[tasks.which]
        until = np.zeros(len(edges_s))
        for times_s, order, sign in zip((tasks.start_s, tasks.end_s), orders, (1, -1), strict=True):
            until += sign * _rise(edges_s, times_s[order], each[order])
        held_s = float((each * (tasks.end_s - tasks.start_s)).sum())
        rows[name] = _row(name, of_nodes, each, held_s / span_s if span_s > 0 else None)
        rows[name] |= _busiest(edges_s, np.diff(until) / window_s, rows[name]["total"])
    lacking = ~fits(tasks.vector, capacity)[tasks.which]
    of_jobs = np.logical_or.reduceat(lacking, workload.arrays().first_task[:-1])
    return {
        "cluster": cluster.name,
        "nodes": cluster.num_nodes,
        "window_s": window_s,
        "resources": rows,
        "bottleneck": _bottleneck(rows),
        "tasks_without_node": int(lacking.sum()),
        "jobs_without_node": int(of_jobs.sum()),
        "gangs_without_room": _gangs_without_room(workload, cluster),
    }


def describe_resources(workload: JobWorkload | DagWorkload, figures: dict[str, Any]) -> str:
    """Return the figures of `resource_figures` as text for a terminal.

    The busiest hour is left out where less is held in it than on average: work goes on for long after the last arrival.
    """
    window = "hour" if figures["window_s"] == _HOUR_S else format_duration(figures["window_s"])
    lines = [
        f"what tasks hold of {printable(figures['cluster'])} of {figures['nodes']:,} nodes, on average and in the "
        f"busiest {window}",
        f"  {'resource':<18}{'of all nodes':>14}{'average':>12}{'share':>9}{'busiest':>12}{'share':>9}"
        f"{'of a node':>12}{'tasks over':>12}",
    ]
    for name, of in figures["resources"].items():
        busiest = (of["busiest"], of["busiest_share"]) if _is_busier(of) else (None, None)
        lines.append(
            f"  {printable(name):<18}{_amount(of['total']):>14}{_amount(of['in_use']):>12}{_share(of['share']):>9}"
            f"{_amount(busiest[0]):>12}{_share(busiest[1]):>9}{_amount(of['largest']):>12}"
            f"{of['tasks_over']:>12,}"
        )
    if (name := figures["bottleneck"]) is not None:
        of = figures["resources"][name]
        share = of["busiest_share"] if of["share"] is None else of["share"]
        held = "of it is held"
        if share > 1:
            held = "of it is asked for while jobs arrive, more than there is, so that tasks must wait"
        when = f"; its busiest {window} begins at {format_duration(of['busiest_start_s'])}"
        lines.append(
            f"  the bottleneck is {printable(name)}: {_share(share)} {held}{when if _is_busier(of) else ''}"
        )
    if (count := figures["tasks_without_node"]) > 0:
        lines.append(
            f"  {count:,} of {workload.num_tasks:,} tasks, in {figures['jobs_without_node']:,} jobs, fit on no node"
        )
    if (count := figures["gangs_without_room"]) > 0:
        lines.append(f"  {count:,} gangs do not fit on all nodes together")
    if both := memory_in_two_units(workload):
        lines.append(f"  {both}: these are of the same memory, and tasks can hold one of them alone")
    return "\n".join(lines) + "\n"


def _is_busier(of: dict[str, Any]) -> bool:
    """Return whether as much of a resource as on average is held in the busiest hour."""
    return of["in_use"] is None or of["busiest"] >= of["in_use"]


def _gangs_without_room(workload: JobWorkload | DagWorkload, cluster: Cluster) -> int:
    """Return how many gangs do not fit on the empty cluster; DAGs are not gangs, as stages wait for each other."""
    on = gang_nodes(workload.jobs)
    gangs = np.flatnonzero(on != NO_GANG)
    if isinstance(workload, DagWorkload) or gangs.size == 0:
        return 0
    asked = workload.demands()
    vector = asked.vector if asked.resources else np.ones((1, 1))
    kinds, count = np.unique(capacities(cluster, asked.resources), axis=0, return_counts=True)
    room = np.full((len(vector), len(kinds)), _MANY)  # tasks that fit on a node of each kind
    for need, has in zip(billionths(vector).T, billionths(kinds).T, strict=True):
        often = np.divide(has, need[:, None], out=np.full(room.shape, float(_MANY)), where=need[:, None] > 0)
        room = np.minimum(room, np.floor(np.minimum(often, _MANY)).astype(np.int64))
    room, on = room[asked.of_job[gangs]], on[gangs]
    width = column(workload.jobs, "num_tasks")[gangs]
    spread = np.clip(on, 1, width)
    each, more = width // spread, width % spread  # tasks of each node, and the nodes that have one more
    with_each, with_more = ((count * (room >= least[:, None])).sum(axis=1) for least in (each, each + 1))
    total = (count * np.minimum(room, width[:, None])).sum(axis=1)
    return int(np.where(on > 0, (with_each < spread) | (with_more < more), total < width).sum())


def _tasks(workload: JobWorkload | DagWorkload) -> _Tasks:
    duration_s = column(workload.tasks, "duration_s")
    submit_s = np.repeat(column(workload.jobs, "submit_s"), column(workload.jobs, "num_tasks"))
    if isinstance(workload, DagWorkload):
        end_s = submit_s + earliest_ends_ns(workload) / 1e9
        which = np.repeat(np.arange(workload.num_stages), column(workload.stages, "num_tasks"))
        vector = demands(workload) if workload.resources else np.zeros((workload.num_stages, 0))
        return _Tasks(workload.resources, vector, which, end_s - duration_s, end_s)
    asked = workload.demands()
    which = (
        asked.of_task if asked.of_task.size else np.repeat(asked.of_job, column(workload.jobs, "num_tasks"))
    )
    return _Tasks(asked.resources, asked.vector, which, submit_s, submit_s + duration_s)


def _rise(edges_s: Float64Array, times_s: Float64Array, amount: Float64Array) -> Float64Array:
    """Return the integral up to each edge of a sum that rises by an amount at each time; both are in order."""
    since_s = times_s - edges_s[0]
    until = np.searchsorted(times_s, edges_s)
    risen, by = (np.append(0.0, np.cumsum(x))[until] for x in (amount, amount * since_s))
    integral: Float64Array = risen * (edges_s - edges_s[0]) - by
    return integral


def _row(name: str, of_nodes: Float64Array, each: Float64Array, in_use: float | None) -> dict[str, Any]:
    total, largest = float(of_nodes.sum()), float(of_nodes.max())
    return {
        "unit": "slots" if name == "slots" else resource_named(name).unit,
        "total": total,
        "largest": largest,
        "tasks_over": int((billionths(each) > billionths(largest)).sum()),
        "in_use": in_use,
        "share": in_use / total if in_use is not None and total > 0 else None,
    }


def _busiest(edges_s: Float64Array, held: Float64Array, total: float) -> dict[str, Any]:
    at = int(np.argmax(held))
    most = float(held[at])
    return {
        "busiest": most,
        "busiest_share": most / total if total > 0 else None,
        "busiest_start_s": float(edges_s[at]),
    }


def _bottleneck(rows: dict[str, dict[str, Any]]) -> str | None:
    """Return the resource of the largest share; where all arrive at once, in the busiest hour."""
    stated = [name for name in rows if name != "slots"] or ["slots"]
    key = "busiest_share" if rows["slots"]["share"] is None else "share"
    with_nodes = [name for name in stated if rows[name][key] is not None]
    return max(with_nodes, key=lambda name: rows[name][key], default=None)


def _amount(value: float | None) -> str:
    return "-" if value is None else amount(value)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
