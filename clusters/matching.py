"""Which nodes satisfy which constraints, and which jobs no node can run.

A workload has few distinct sets of constraints, and each leaves some nodes of a cluster. `match` finds them once,
as sorted lists of ids, so that drawing k of them costs O(k). Where to look for a part of the cluster (ids below a
bound) is a binary search. Sets with the same nodes share a list, and a list that is a run of ids, as that of all
nodes, takes no memory.

Soft constraints are relaxed in order of price, the cheapest first (at the same price in the order of the set). So
a set with m soft constraints has levels 0 to m: level i does without the i cheapest, and the tasks of a job that
runs at it take as many times as long as their prices multiplied. At level m the hard constraints alone hold.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clusters.cluster import Cluster
from clusters.schema import find_attribute, parse_number
from workloads.arrow import column
from workloads.constraints import (
    PLACEMENT,
    PLACEMENTS,
    Constraint,
    ConstraintSet,
    constraint_sets,
    set_of_job,
    set_text,
)
from workloads.dags import DagWorkload, JobsOrDags
from workloads.errors import InputError
from workloads.groups import Int64Array, first_rows
from workloads.jobs import Float64Array, JobWorkload

MAX_IDS = 1 << 27
"""Ids of nodes in all lists of a matching: 1 GiB."""
UNBOUNDED = 2**62
"""More tasks than any job has."""
SAME_RACK, SPREAD_RACKS, SPREAD_NODES = (1 << bit for bit in range(len(PLACEMENTS)))
"""Bits of `Matching.placement`, in the order of `workloads.constraints.PLACEMENTS`."""

_COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SHOWN = 4


class Matching(NamedTuple):
    """Satisfying nodes of J jobs with S distinct sets of constraints, V levels in all, on L distinct lists.

    Node k of list l is ``low[l] + k`` where ``low[l] >= 0``, else ``nodes[first[l] + k]``; 0 <= k < ``num_nodes[l]``.

    Attributes
    ----------
    set_of_job : ndarray of int64, shape (J,)
        -1 for a job without constraints.
    first_level : ndarray of int64, shape (S + 1,)
        Levels of set s are ``first_level[s]:first_level[s + 1]``; the last of them is its hard constraints.
    list_of_level : ndarray of int64, shape (V,)
    factor : ndarray of float64, shape (V,)
        On the task durations of a job that runs at this level; 1 at level 0.
    placement : ndarray of int64, shape (V,)
        `SAME_RACK`, `SPREAD_RACKS` and `SPREAD_NODES`, or 0.
    num_nodes : ndarray of int64, shape (L,)
        Nodes on the list.
    low : ndarray of int64, shape (L,)
        First id of a list that is a run of ids, otherwise -1.
    first : ndarray of int64, shape (L + 1,)
    nodes : ndarray of int64
        The other lists one after the other, each sorted.
    """

    set_of_job: Int64Array
    first_level: Int64Array
    list_of_level: Int64Array
    factor: Float64Array
    placement: Int64Array
    num_nodes: Int64Array
    low: Int64Array
    first: Int64Array
    nodes: Int64Array


def match(workload: JobWorkload | DagWorkload, cluster: Cluster, max_ids: int = MAX_IDS) -> Matching:
    """Return which nodes of a cluster satisfy each set of constraints of a workload.

    Raises
    ------
    InputError
        A constraint is on an attribute that nodes do not have, its value is none of that attribute, or its
        operator has no meaning for it; the lists would hold more than `max_ids` ids.
    """
    lists = _Lists(cluster.num_nodes, max_ids)
    masks: dict[tuple[str, str, str], npt.NDArray[np.uint8]] = {}
    all_nodes = np.packbits(np.ones(cluster.num_nodes, bool))
    list_of_level, factors, placements, levels = [], [], [], []
    for constraints in constraint_sets(workload):
        steps = relaxing_steps(constraints)
        mask, of_set = all_nodes, []
        for added in reversed(steps):  # from the hard ones alone to all of them
            for one in added:
                if one.attribute == PLACEMENT:
                    continue
                if one[:3] not in masks:
                    masks[one[:3]] = np.packbits(satisfies(cluster, one))
                mask = mask & masks[one[:3]]
            of_set.append(lists.add(mask))
        list_of_level += of_set[::-1]
        levels.append(len(steps))
        for level in range(len(steps)):
            relaxed = [one.price or 1.0 for step in steps[:level] for one in step]
            factors.append(float(np.prod(relaxed)))
            kept = [one.value for step in steps[level:] for one in step if one.attribute == PLACEMENT]
            placements.append(sum(1 << bit for bit, name in enumerate(PLACEMENTS) if name in kept))
    count, low, first, nodes = lists.arrays()
    made = Matching(
        set_of_job(workload),
        first_rows(np.array(levels, np.int64)),
        np.array(list_of_level, np.int64),
        np.array(factors, np.float64),
        np.array(placements, np.int64),
        count,
        low,
        first,
        nodes,
    )
    for array in made:
        array.flags.writeable = False
    return made


def satisfies(cluster: Cluster, constraint: Constraint) -> npt.NDArray[np.bool_]:
    """Return which nodes satisfy a constraint on one of their attributes: shape (N,).

    Numbers and versions are compared by size, a text is equal or is not, and a node equals a tag that it has. An
    attribute of the user's own is equal as a text, or is compared by size as a number: 0 where a node lacks it,
    and neither more nor less than any where a node has another text.

    Raises
    ------
    InputError
        As `match`.
    """
    attribute = find_attribute(constraint.attribute)
    value = attribute.parse(constraint.value, str(constraint))
    compare = _COMPARE[constraint.operator]
    if attribute.kind == "own":
        own = cluster.attribute_names(attribute.name)
        if constraint.operator in ("=", "!="):
            holds = [compare(text, value) for text in own]
        else:
            size = parse_number(value, str(constraint))
            holds = [compare(_size(text), size) for text in own]
        return np.array(holds, bool)[cluster.attribute(attribute.name)]
    if attribute.kind in ("text", "tags"):
        if constraint.operator not in ("=", "!="):
            raise InputError(f"{constraint}: {attribute.name} has no order; compare it with = or !=")
        names = cluster.attribute_names(attribute.name)
        known = [(n.split() if attribute.kind == "tags" else [n]) for n in names]
        equal = np.array([value in of_code for of_code in known], bool)
        return (equal if constraint.operator == "=" else ~equal)[cluster.attribute(attribute.name)]
    found: npt.NDArray[np.bool_] = compare(cluster.attribute(attribute.name), value)
    return found


def _size(text: str) -> float:
    """Return an attribute of the user's own as a number, nan if it is none."""
    try:
        return parse_number(text or 0, "")
    except InputError:
        return math.nan


def nodes_of(matching: Matching, set_id: int, level: int = 0) -> Int64Array:
    """Return the ids of the nodes that satisfy a set at a level, sorted; level -1 is its hard constraints."""
    first, end = matching.first_level[set_id : set_id + 2]
    return _nodes(matching, int(matching.list_of_level[first:end][level]))


def most_tasks(matching: Matching, cluster: Cluster) -> Int64Array:
    """Return how many tasks a job can have that runs at each level: shape (V,).

    None without a satisfying node, and `UNBOUNDED` without a placement: tasks can follow one another on a node.
    With ``spread-nodes`` as many as satisfying nodes, with ``spread-racks`` as there are racks with such nodes,
    since no two tasks of the job may share one. With ``same-rack`` and ``spread-nodes`` as many as the
    rack with the most satisfying nodes has; with ``same-rack`` and ``spread-racks`` one.
    """
    racks = cluster.racks()
    keys = list(zip(matching.list_of_level.tolist(), matching.placement.tolist(), strict=True))
    known = {(at, bits): _most_tasks(racks[_nodes(matching, at)], bits) for at, bits in set(keys)}
    return np.array([known[key] for key in keys], np.int64)


def infeasible_jobs(workload: JobWorkload | DagWorkload, cluster: Cluster, matching: Matching) -> Int64Array:
    """Return the places of the jobs that no node can run, by their hard constraints (see `most_tasks`)."""
    hard = most_tasks(matching, cluster)[matching.first_level[1:] - 1]
    most = np.append(hard, UNBOUNDED)  # the last for set -1
    tasks = column(workload.jobs, "num_tasks")
    return np.flatnonzero(tasks > most[matching.set_of_job])


def check_feasible(workload: JobWorkload | DagWorkload, cluster: Cluster, matching: Matching) -> None:
    """Refuse a workload with jobs that no node can run.

    Raises
    ------
    InputError
        Names the first such job, its hard constraints, and how many nodes each of them leaves by itself.
    """
    jobs = infeasible_jobs(workload, cluster, matching)
    if not len(jobs):
        return
    set_id = int(matching.set_of_job[jobs[0]])
    hard = tuple(c for c in constraint_sets(workload)[set_id] if c.price is None)
    job_id = column(workload.jobs, "job_id")[jobs[0]]
    tasks = int(column(workload.jobs, "num_tasks")[jobs[0]])
    more = f"; {len(jobs):,} of {workload.num_jobs:,} jobs cannot run" if len(jobs) > 1 else ""
    of_nodes = [c for c in hard if c.attribute != PLACEMENT]
    if len(nodes_of(matching, set_id, -1)):
        most = int(most_tasks(matching, cluster)[matching.first_level[set_id + 1] - 1])
        wrong = f"its {tasks:,} tasks cannot be placed under {set_text(hard)}: at most {most:,} can"
    else:
        wrong = f"no node satisfies {set_text(of_nodes)}; {_alone(cluster, of_nodes)}"
    raise InputError(f"job {job_id}: {wrong} on {cluster.name} of {cluster.num_nodes:,} nodes{more}")


def drop_infeasible(workload: JobsOrDags, cluster: Cluster) -> tuple[JobsOrDags, int]:
    """Return the workload without the jobs that no node can run, with a note, and how many these are.

    Raises
    ------
    InputError
        No job would be left.
    """
    from workloads.transform.families import take, with_tables

    matching = match(workload, cluster)
    dropped = infeasible_jobs(workload, cluster, matching)
    if not len(dropped):
        return workload, 0
    if len(dropped) == workload.num_jobs:
        check_feasible(workload, cluster, matching)
    kept = np.delete(np.arange(workload.num_jobs), dropped)
    note = (
        f"{len(dropped):,} of {workload.num_jobs:,} jobs dropped, whose hard constraints {cluster.name} of "
        f"{cluster.num_nodes:,} nodes cannot meet"
    )
    made = take(workload, kept)
    return with_tables(made, notes=(*made.notes, note)), len(dropped)


def constraint_figures(
    workload: JobWorkload | DagWorkload, cluster: Cluster, matching: Matching
) -> dict[str, Any]:
    """Return what a workload asks for and what the cluster has of it.

    ``constraints`` has a row for each constraint (those drawn together count as one): the jobs that have it,
    their share ``drawn`` beside what was ``asked`` for (see `workloads.transform.frequencies`), and the nodes
    that satisfy it. ``sets`` has a row for each distinct set: its jobs, the nodes that satisfy all of it, and
    those that satisfy its hard constraints.
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
    """Return what a workload asks for and what the cluster has of it as text for a terminal."""
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


class _Lists:
    """Distinct lists of nodes, each kept once; a list is given as packed bits, one for each node."""

    def __init__(self, num_nodes: int, max_ids: int) -> None:
        self.num_nodes, self.max_ids = num_nodes, max_ids
        self.known: dict[bytes, int] = {}
        self.count: list[int] = []
        self.low: list[int] = []
        self.ids: list[Int64Array] = []
        self.total = 0

    def add(self, packed: npt.NDArray[np.uint8]) -> int:
        """Return the number of the list with these nodes."""
        key = hashlib.blake2b(packed.data, digest_size=16).digest()
        if key in self.known:
            return self.known[key]
        nodes = np.flatnonzero(np.unpackbits(packed, count=self.num_nodes))
        is_run = len(nodes) == 0 or int(nodes[-1] - nodes[0]) + 1 == len(nodes)
        self.known[key] = len(self.known)
        self.count.append(len(nodes))
        self.low.append(int(nodes[0]) if is_run and len(nodes) else 0 if is_run else -1)
        self.ids.append(nodes[:0] if is_run else nodes)
        self.total += len(self.ids[-1])
        if self.total > self.max_ids:
            raise InputError(
                f"the lists of nodes that satisfy the constraints hold more than {self.max_ids:,} ids after "
                f"{len(self.known):,} distinct lists of {self.num_nodes:,} nodes; take fewer nodes or "
                "fewer constraints a job"
            )
        return self.known[key]

    def arrays(self) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
        """Return num_nodes, low, first and nodes, as in `Matching`."""
        sizes = np.array([len(ids) for ids in self.ids], np.int64)
        nodes = np.concatenate(self.ids) if self.ids else np.zeros(0, np.int64)
        return np.array(self.count, np.int64), np.array(self.low, np.int64), first_rows(sizes), nodes


def _nodes(matching: Matching, at: int) -> Int64Array:
    """Return the ids of a list."""
    if matching.low[at] >= 0:
        return np.arange(matching.low[at], matching.low[at] + matching.num_nodes[at])
    return matching.nodes[matching.first[at] : matching.first[at + 1]]


def relaxing_steps(constraints: ConstraintSet) -> list[list[Constraint]]:
    """Return what each level asks for beyond the next: the soft ones, cheapest first, then the hard ones."""
    soft = sorted((c for c in constraints if c.price is not None), key=lambda c: c.price or 0.0)
    return [*([c] for c in soft), [c for c in constraints if c.price is None]]


def _most_tasks(racks: Int64Array, placement: int) -> int:
    """Return how many tasks fit on nodes in these racks."""
    if len(racks) == 0 or placement == 0:
        return UNBOUNDED if len(racks) else 0
    in_rack = np.unique(racks, return_counts=True)[1]
    if placement & SPREAD_RACKS:
        return 1 if placement & SAME_RACK else len(in_rack)
    if placement & SPREAD_NODES:
        return int(in_rack.max()) if placement & SAME_RACK else len(racks)
    return UNBOUNDED


def _alone(cluster: Cluster, constraints: Sequence[Constraint]) -> str:
    """Return how many nodes each constraint leaves by itself, and what nodes have where that is none."""
    left = sorted((int(satisfies(cluster, c).sum()), str(c), c) for c in constraints)
    texts = []
    for count, text, one in left[:_SHOWN]:
        texts.append(f"{text} alone leaves {count:,}" if count else f"{text} none ({_range(cluster, one)})")
    return ", ".join(texts)


def _range(cluster: Cluster, constraint: Constraint) -> str:
    attribute = find_attribute(constraint.attribute)
    if names := cluster.attribute_names(attribute.name):
        parts = ([n] if n and attribute.kind == "own" else n.split() for n in names)
        known = sorted({word for words in parts for word in (words or ["none"])})
        shown = ", ".join(known[:_SHOWN]) + (", …" if len(known) > _SHOWN else "")
        return f"{attribute.name} is {shown}"
    values: npt.NDArray[Any] = cluster.attribute(attribute.name)
    low, high = (attribute.show(value.item()) for value in (values.min(), values.max()))
    return f"{attribute.name} is {low}" if low == high else f"{attribute.name} is {low} to {high}"
