"""Which nodes satisfy which constraints.

A workload has few distinct sets of constraints, and some nodes of a cluster satisfy each. `match` finds them once,
as sorted lists of ids, so that drawing k of them costs O(k), and finding the part below an id is a binary search. Sets
with the same nodes share a list, and a list that is a run of ids, as that of all nodes, takes no memory.

Soft constraints are relaxed in order of price, the cheapest first (at the same price in the order of the set). So a set
with m soft constraints has levels 0 to m: level i drops the i cheapest, and the durations of the tasks of a job at this
level are multiplied by their prices. At level m only the hard constraints hold.
"""

from __future__ import annotations

import hashlib
import math
import operator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clusters.cluster import Cluster
from clusters.schema import find_attribute, parse_number
from workloads.constraints import (
    PLACEMENT,
    PLACEMENTS,
    Constraint,
    ConstraintSet,
    constraint_sets,
    set_of_job,
)
from workloads.dags import DagWorkload
from workloads.errors import InputError
from workloads.groups import Int64Array, first_rows
from workloads.jobs import Float64Array, JobWorkload
from workloads.requests import distinct_rows

MAX_IDS = 1 << 27
"""Ids of nodes in all lists of a matching: 1 GiB."""
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


class Matching(NamedTuple):
    """The satisfying nodes of J jobs with S distinct requirements, V levels in all, in L distinct lists.

    A requirement is a set of constraints, and the nodes on which the tasks of a job fit.

    Node k of list l is ``low[l] + k`` where ``low[l] >= 0``, else ``nodes[first[l] + k]``; 0 <= k < ``num_nodes[l]``.

    Attributes
    ----------
    set_of_job : ndarray of int64, shape (J,)
        -1 for a job that any node can run.
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
    sets : list of ConstraintSet, length S
        The constraints of each requirement.
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
    sets: list[ConstraintSet]


class Needs(NamedTuple):
    """What the tasks of J jobs need of R resources, D distinct demands, and what N nodes have.

    Attributes
    ----------
    resources : tuple of str
    demand : ndarray of float64, shape (D, R)
    of_job : ndarray of int64, shape (J,)
        The most that a task of the job needs.
    capacity : ndarray of float64, shape (N, R)
    tasks_are_alike : bool
        Whether all tasks of each job need the same.
    """

    resources: tuple[str, ...]
    demand: Float64Array
    of_job: Int64Array
    capacity: Float64Array
    tasks_are_alike: bool = True


def billionths(amounts: npt.ArrayLike) -> Float64Array:
    """Return amounts of resources in whole billionths: runs count them so, and what fits is decided in them.

    They are float64, as a demand of 1e18 has too many for int64.

    Examples
    --------
    >>> bool(billionths(0.1 + 0.2) <= billionths(0.3)), bool(billionths(2 + 1e-9) <= billionths(2))
    (True, False)
    """
    return np.round(np.asarray(amounts, np.float64) * 1e9)


def fitting_nodes(needs: Needs) -> tuple[list[npt.NDArray[np.bool_]], Int64Array]:
    """Return distinct masks of nodes, shape (N,) each, and which each job has: where one of its tasks fits; -1: all."""
    kinds, of_node = distinct_rows(needs.capacity)
    demand, has = billionths(needs.demand), billionths(kinds)
    fits: npt.NDArray[np.bool_] = np.all(demand[:, None, :] <= has[None, :, :], axis=2)
    masks, of_demand = distinct_rows(fits.astype(np.float64))
    of_demand = np.where(fits.all(axis=1), -1, of_demand)
    return [np.asarray(masks[i, of_node] > 0) for i in range(len(masks))], of_demand[needs.of_job]


def match(
    workload: JobWorkload | DagWorkload,
    cluster: Cluster,
    needs: Needs | None = None,
    constrained: bool = True,
    max_ids: int = MAX_IDS,
) -> Matching:
    """Return which nodes of a cluster satisfy each set of constraints of a workload, and fit its tasks.

    Parameters
    ----------
    needs : Needs, optional
        What tasks need; by default nothing.
    constrained : bool
        Whether constraints count.
    max_ids : int
        Ids in all lists, at most.

    Raises
    ------
    InputError
        A constraint has an attribute that nodes do not have, or a value or operator that does not suit the attribute;
        the lists would hold more than `max_ids` ids.
    """
    lists = _Lists(cluster.num_nodes, max_ids)
    masks: dict[tuple[str, str, str], npt.NDArray[np.uint8]] = {}
    all_nodes = np.packbits(np.ones(cluster.num_nodes, bool))
    list_of_level, factors, placements, levels = [], [], [], []
    sets, fit_masks, requirement = requirements(workload, needs, constrained)
    for constraints, fitting in zip(sets, fit_masks, strict=True):
        steps = relaxing_steps(constraints)
        mask, of_set = all_nodes if fitting is None else np.packbits(fitting), []
        for added in reversed(steps):  # from the hard constraints to all of them
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
        requirement,
        first_rows(np.array(levels, np.int64)),
        np.array(list_of_level, np.int64),
        np.array(factors, np.float64),
        np.array(placements, np.int64),
        count,
        low,
        first,
        nodes,
        sets,
    )
    for array in made[:-1]:
        array.flags.writeable = False
    return made


def requirements(
    workload: JobWorkload | DagWorkload, needs: Needs | None, constrained: bool
) -> tuple[list[ConstraintSet], list[npt.NDArray[np.bool_] | None], Int64Array]:
    """Return the constraints of each requirement, the nodes on which tasks fit (None: all), and that of each job."""
    sets, of_job = (constraint_sets(workload), set_of_job(workload)) if constrained else ([], None)
    if of_job is None:
        of_job = np.full(workload.num_jobs, -1, np.int64)
    if needs is None:
        return sets, [None] * len(sets), of_job
    masks, fit_of_job = fitting_nodes(needs)
    code = (of_job + 1) * (len(masks) + 1) + fit_of_job + 1
    known, requirement = np.unique(code, return_inverse=True)
    any_node = int(known[0] == 0)  # neither constraints nor nodes that are too small
    pairs = [divmod(one, len(masks) + 1) for one in known[any_node:].tolist()]
    return (
        [sets[of - 1] if of else () for of, _ in pairs],
        [masks[fit - 1] if fit else None for _, fit in pairs],
        requirement.astype(np.int64) - any_node,
    )


def satisfies(cluster: Cluster, constraint: Constraint) -> npt.NDArray[np.bool_]:
    """Return which nodes satisfy a constraint on one of their attributes: shape (N,).

    Numbers and versions are compared by size, texts for equality, and a node equals a tag that it has. An attribute of
    the user's own is compared as text for equality, and as a number by size: 0 if the node lacks it; with another text
    the node does not satisfy the constraint.

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
    """Return an attribute of the user's own as a number, nan if it is not a number."""
    try:
        return parse_number(text or 0, "")
    except InputError:
        return math.nan


def nodes_of(matching: Matching, set_id: int, level: int = 0) -> Int64Array:
    """Return the ids of the nodes that satisfy a set at a level, sorted; level -1 is its hard constraints."""
    first, end = matching.first_level[set_id : set_id + 2]
    return list_of(matching, int(matching.list_of_level[first:end][level]))


class _Lists:
    """Distinct lists of nodes, given as packed bits, one for each node."""

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


def list_of(matching: Matching, at: int) -> Int64Array:
    """Return the ids of a list."""
    if matching.low[at] >= 0:
        return np.arange(matching.low[at], matching.low[at] + matching.num_nodes[at])
    return matching.nodes[matching.first[at] : matching.first[at + 1]]


def relaxing_steps(constraints: ConstraintSet) -> list[list[Constraint]]:
    """Return the constraints that each level drops: soft ones, the cheapest first; then the hard ones."""
    soft = sorted((c for c in constraints if c.price is not None), key=lambda c: c.price or 0.0)
    return [*([c] for c in soft), [c for c in constraints if c.price is None]]
