"""Description of a cluster: the distribution of its attributes over the nodes, as text and as figures."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from clusters.capacity import capacities, capacity, demands, fits
from clusters.cluster import Cluster
from clusters.feasibility import infeasible_jobs
from clusters.matching import Matching, billionths, match, satisfies
from clusters.schema import Attribute, is_own
from workloads.arrow import column
from workloads.constraints import PLACEMENT, constraint_sets, set_text
from workloads.critical_path import earliest_ends_ns
from workloads.dags import DagWorkload, memory_in_two_units
from workloads.errors import printable
from workloads.jobs import Float64Array, Int64Array, JobWorkload
from workloads.requests import NO_GANG, gang_nodes
from workloads.resources import resource_named
from workloads.units import format_duration

_MOST_VALUES = 24
_MOST_OWN_LINES = 3
_MOST_CAPACITIES = 8
_WIDEST = 40
_WIDTH = 110


def cluster_figures(cluster: Cluster) -> dict[str, Any]:
    """Return the figures of a cluster as plain Python values, which can be written as JSON.

    Returns
    -------
    dict
        ``name``; ``nodes``, ``slots`` and ``racks``, their numbers; ``rack_nodes``, the nodes of the smallest
        and the largest rack; ``capacities``, of ``cpu_cores``, ``memory_gib`` and the user's own attributes that are
        numbers, each with its ``unit``, the ``total`` of all nodes and the ``least`` and ``most`` of one;
        ``machine_types``, each with its ``type``, ``nodes`` and the least and most
        ``slots``, ``cpu_cores``, ``memory_bytes`` and ``port_bps``; ``attributes``, for each of
        `Cluster.attributes` but the rack its ``unit``, how many ``distinct`` values there are and the
        ``values``, each with ``text``, ``nodes`` and ``share`` (0..1).

        Numbers are in order, texts by their nodes; of more than 24 values the 24 with most nodes are given. The values
        of ``tags`` are single tags.
    """
    rack_nodes = np.unique(cluster.racks(), return_counts=True)[1]
    return {
        "name": cluster.name,
        "nodes": cluster.num_nodes,
        "slots": cluster.total_slots,
        "racks": len(rack_nodes),
        "rack_nodes": [int(rack_nodes.min()), int(rack_nodes.max())],
        "capacities": _capacities(cluster),
        "machine_types": _machine_types(cluster),
        "attributes": {
            name: _distribution(cluster, attribute)
            for name, attribute in cluster.attributes.items()
            if name != "rack"
        },
    }


def describe_cluster(cluster: Cluster) -> str:
    """Return the figures of a cluster as text for a terminal, at most 120 columns wide."""
    figures = cluster_figures(cluster)
    wide = max(20, *(min(len(m["type"]) + 2, _WIDEST) for m in figures["machine_types"]))
    total = f"{figures['nodes']:,} nodes, {figures['slots']:,} slots, {figures['racks']:,} racks"
    heads = f"{'nodes':>12}{'slots':>8}{'cores':>10}{'memory GiB':>12}{'port Gbps':>11}"
    lines = [f"{cluster.name}: {total}", *_capacity_lines(figures), f"  {'machine type':<{wide}}{heads}"]
    for machine in figures["machine_types"]:
        slots, cores, memory, port = (
            _range(*(x / scale for x in machine[column]))
            for column, scale in (
                ("slots", 1),
                ("cpu_cores", 1),
                ("memory_bytes", 1024**3),
                ("port_bps", 1e9),
            )
        )
        name = _short(machine["type"], wide - 2)
        lines.append(f"  {name:<{wide}}{machine['nodes']:>12,}{slots:>8}{cores:>10}{memory:>12}{port:>11}")
    return "\n".join([*lines, "", *_attribute_lines(figures)]) + "\n"


def _machine_types(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the machine types of the nodes, with the ranges of their main attributes."""
    codes, found = cluster.attribute("type"), []
    columns = {name: cluster.attribute(name) for name in ("slots", "cpu_cores", "memory_bytes", "port_bps")}
    for code, name in enumerate(cluster.attribute_names("type")):
        rows = codes == code
        if rows.any():
            ranges = {
                c: [values[rows].min().item(), values[rows].max().item()] for c, values in columns.items()
            }
            found.append({"type": name, "nodes": int(rows.sum()), **ranges})
    return found


def _capacities(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Return what nodes have of cores, memory and the user's own attributes that are numbers."""
    own = [
        name for name in cluster.attributes if is_own(name) and _are_numbers(cluster.attribute_names(name))
    ]
    found = {}
    for name in ("cpu_cores", "memory_gib", *own):
        of_nodes = capacity(cluster, name)
        found[name] = {
            "unit": resource_named(name).unit,
            "total": float(of_nodes.sum()),
            "least": float(of_nodes.min()),
            "most": float(of_nodes.max()),
        }
    return found


def _are_numbers(texts: Iterable[str]) -> bool:
    """Return whether texts are finite numbers, or empty for nodes that lack it, and not all empty."""
    try:
        numbers = [float(text) for text in texts if text]
    except ValueError:
        return False
    return bool(numbers) and all(map(math.isfinite, numbers))


def _capacity_lines(figures: dict[str, Any]) -> list[str]:
    """Return a paragraph of what all nodes have together."""
    units = {"cpu_cores": "cores", "memory_gib": "GiB of memory"}
    amounts = [
        f"{amount(of['total'])} {units.get(name) or 'of ' + _short(name, _WIDEST)}"
        for name, of in figures["capacities"].items()
    ]
    if len(amounts) > _MOST_CAPACITIES:
        amounts[_MOST_CAPACITIES:] = [f"{len(amounts) - _MOST_CAPACITIES:,} other attributes in numbers"]
    text = f"all nodes together: {', '.join(amounts)}"
    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")


def _distribution(cluster: Cluster, attribute: Attribute) -> dict[str, Any]:
    """Return the number of nodes of each value of an attribute."""
    values, counts = np.unique(cluster.attribute(attribute.name), return_counts=True)
    found: list[tuple[Any, int]] = list(zip(values.tolist(), counts.tolist(), strict=True))
    if attribute.kind in ("text", "tags", "own"):
        nodes_of: Counter[str] = Counter()
        names = cluster.attribute_names(attribute.name)
        for code, nodes in found:
            for name in names[code].split() if attribute.kind == "tags" else [names[code]]:
                nodes_of[name] += nodes
        found = sorted(nodes_of.items(), key=lambda item: (-item[1], item[0]))
    shown = sorted(found, key=lambda item: -item[1])[:_MOST_VALUES] if len(found) > _MOST_VALUES else found
    if attribute.kind in ("number", "version"):
        shown = sorted(shown)
    return {
        "unit": attribute.unit,
        "distinct": len(found),
        "values": [
            {"value": v, "text": attribute.show(v), "nodes": n, "share": n / cluster.num_nodes}
            for v, n in shown
        ],
    }


def _attribute_lines(figures: dict[str, Any]) -> list[str]:
    """Return a table of the attributes in which nodes differ, and a paragraph of the others."""
    same, lines = [], []
    for name, attribute in figures["attributes"].items():
        values = attribute["values"]
        if values and values[0]["share"] == 1 and attribute["distinct"] == 1:
            same.append(f"{name} {_short(values[0]['text'], _WIDEST)}")
            continue
        if name == "type":  # the machine types have their own table
            continue
        if is_own(name):  # a trace has dozens of attributes
            values = values[:_MOST_OWN_LINES]
        for i, row in enumerate(values):
            shown = _short(row["text"], _WIDEST - 2)
            share = f"{100 * row['share']:.2f} %"
            lines.append(
                f"  {'' if i else _short(name, 19):<20}{shown:<{_WIDEST}}{row['nodes']:>12,}{share:>11}"
            )
        if attribute["distinct"] > len(values):
            lines.append(f"  {'':<20}and {attribute['distinct'] - len(values):,} other values")
    if lines:
        lines = [f"  {'attribute':<20}{'value':<{_WIDEST}}{'nodes':>12}{'share':>11}", *lines, ""]
    low, high = figures["rack_nodes"]
    same.append(f"nodes a rack {low:,}" if low == high else f"nodes a rack {low:,}-{high:,}")
    text = "on all nodes: " + ", ".join(same)
    return lines + textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")


def amount(value: float) -> str:
    """Return an amount of a resource: whole from 10,000 on, below with four digits.

    Examples
    --------
    >>> amount(375216.09), amount(37.25)
    ('375,216', '37.25')
    """
    return f"{value:,.0f}" if value >= 1e4 else f"{value:,.4g}"


def _range(low: float, high: float) -> str:
    return f"{low:.4g}" if f"{low:.4g}" == f"{high:.4g}" else f"{low:.4g}-{high:.4g}"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


# The constraints of a workload and the nodes of a cluster that satisfy them, in numbers and as text.


def constraint_figures(
    workload: JobWorkload | DagWorkload, cluster: Cluster, matching: Matching
) -> dict[str, Any]:
    """Return the constraints of a workload and the nodes that satisfy them.

    ``constraints`` has a row for each constraint (those drawn together count as one): the jobs that have it, their
    share ``drawn`` beside the ``asked`` one (see `workloads.transform.frequencies`), and the nodes that satisfy it.
    ``sets`` has a row for each distinct set: its jobs, the nodes that satisfy all of it, and those that satisfy its
    hard constraints.
    """
    from workloads.transform import frequencies

    sets = constraint_sets(workload)
    jobs = np.bincount(matching.set_of_job[matching.set_of_job >= 0], minlength=len(sets))
    constraints = []
    for one in frequencies(workload):
        of_nodes = [satisfies(cluster, c) for c in one.constraints if c.attribute != PLACEMENT]
        nodes = int(np.logical_and.reduce([np.ones(cluster.num_nodes, bool), *of_nodes]).sum())
        shares = {"drawn": one.drawn, "asked": one.asked}
        left = {"nodes": nodes, "node_share": nodes / cluster.num_nodes}
        constraints.append({"constraint": set_text(one.constraints), "jobs": one.jobs, **shares, **left})
    first, count = matching.first_level, matching.num_nodes[matching.list_of_level]
    return {
        "cluster": cluster.name,
        "nodes": cluster.num_nodes,
        "jobs": workload.num_jobs,
        "constrained_jobs": int(jobs.sum()),
        "infeasible_jobs": len(infeasible_jobs(workload, cluster, matching)),
        "constraints": constraints,
        "sets": [
            {
                "set": set_text(constraints_of),
                "jobs": int(jobs[s]),
                "nodes": int(count[first[s]]),
                "hard_nodes": int(count[first[s + 1] - 1]),
            }
            for s, constraints_of in enumerate(sets)
        ],
    }


def describe_constraints(workload: JobWorkload | DagWorkload, cluster: Cluster) -> str:
    """Return the constraints of a workload and the nodes that satisfy them as text for a terminal."""
    from workloads.transform import describe_frequencies, frequencies

    figures = constraint_figures(workload, cluster, match(workload, cluster))
    head, *rows = describe_frequencies(frequencies(workload))
    lines = [
        f"{figures['constrained_jobs']:,} of {figures['jobs']:,} jobs have constraints, "
        f"{len(figures['sets']):,} distinct sets; {figures['infeasible_jobs']:,} jobs cannot run on "
        f"{cluster.name} of {cluster.num_nodes:,} nodes",
        f"  {head}{'nodes':>12}{'share':>9}",
    ]
    for row, left in zip(rows, figures["constraints"], strict=True):
        lines.append(f"  {row}{left['nodes']:>12,}{left['node_share']:>9.2%}")
    return "\n".join(lines) + "\n"


# What of a cluster the tasks of a workload hold, by resource, in numbers and as text.

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
