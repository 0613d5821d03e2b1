"""Which nodes a job may use, and how long its tasks take there: constraints.

A job's constraints are those of its set at a level: level 0 is all of them, each further one is without the cheapest
soft one that is left (clusters/matching.py). The nodes that satisfy a level are a sorted list, shared by all jobs that
have it; a job that must run in one rack may use the stretch of it that lies there. A place among a job's nodes is a
number from 0 on; of a job without constraints it is the node itself.

The level of a job belongs to its scheduler. Nodes have it from the message that brings a task or a probe.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from actors.conditions import read_only
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.kernel.records import Records, records
from actors.setting import Setting
from clusters.capacity import needs_of
from clusters.cluster import Cluster
from clusters.failures import NODE
from clusters.feasibility import check_feasible, most_tasks
from clusters.matching import (
    SAME_RACK,
    SPREAD_NODES,
    SPREAD_RACKS,
    Matching,
    Needs,
    match,
    nodes_of,
    requirements,
)
from clusters.schema import ATTRIBUTES, find_attribute
from workloads.arrow import column, from_numpy
from workloads.constraints import PLACEMENT, ConstraintSet, set_text
from workloads.errors import InputError

MOST_NS = 2.0**62  # a task takes no longer, whatever slows it down: a run does not either (`NEVER`)
IN_RACK, OVER_RACKS, OVER_NODES = np.int64(SAME_RACK), np.int64(SPREAD_RACKS), np.int64(SPREAD_NODES)

# What a job's scheduler knows of the nodes that the job may use.
ELIGIBLE_JOB = np.dtype(
    [
        ("level", "i8"),  # index of `factor`, `placement` and `list_of_level`; NONE without constraints
        ("begin", "i8"),  # the job may use the list's nodes from here on,
        ("count", "i8"),  # and this many of them
        # the rack of a job that runs in one (a run of nodes, see `rack_end`); NONE before it is chosen
        ("rack", "i8"),
        ("held", "i8"),  # nodes that its tasks hold, if they must be spread
        ("placed", "i8"),  # 1: they hold them since they were placed, 0: since they were handed out
        ("draws", "i8"),  # random nodes drawn for it beyond its first probes
    ]
)


class Eligible(NamedTuple):
    """Nodes by constraints; S sets, V levels of all sets, L lists. Arrays are empty where none are respected."""

    active: int  # 1: some job has constraints, and the scheduler is constraint-aware
    set_of_job: np.ndarray  # [J] NONE for a job without constraints
    first_level: np.ndarray  # [S + 1] where the levels of a set begin
    list_of_level: np.ndarray  # [V]
    factor: np.ndarray  # [V] float64, on the durations of tasks
    placement: np.ndarray  # [V] bits IN_RACK, OVER_RACKS, OVER_NODES
    num_nodes: np.ndarray  # [L] nodes on the list
    low: np.ndarray  # [L] the first id of a list that is a run of ids, otherwise NONE
    first: np.ndarray  # [L + 1] where the other lists begin in `nodes`
    nodes: np.ndarray
    # [S] bit r: it constrains attribute r of clusters.schema.ATTRIBUTES; placement and own: the next two
    kinds: np.ndarray
    rack_end: np.ndarray  # [racks] one behind the last node of each, where some job must run in one rack
    jobs: Records  # [J] ELIGIBLE_JOB
    held: np.ndarray  # [T] a job's part holds its `held` nodes; where some job's tasks must be spread


class HasEligible(Protocol):
    """The part of a world that the functions of this file need."""

    @property
    def eligible(self) -> Eligible:
        """The nodes that jobs may use."""

    @property
    def nodes(self) -> Records:
        """[N] a row for each node."""

    @property
    def duration(self) -> np.ndarray:
        """[T] of each task, ns."""

    @property
    def speed(self) -> np.ndarray:
        """[N] speeds of the nodes; empty where all are alike."""


@inlined
def is_constrained(w: HasEligible, job: int) -> bool:
    """Return whether a job has constraints that the scheduler respects."""
    return w.eligible.active == 1 and w.eligible.jobs.level[job] != NONE


@inlined
def placement_of(w: HasEligible, job: int) -> int:
    """Return the placement constraint of a job: bits IN_RACK, OVER_RACKS, OVER_NODES; 0 without one."""
    if not is_constrained(w, job):
        return np.int64(0)
    return w.eligible.placement[w.eligible.jobs.level[job]]


@inlined
def eligible_count(w: HasEligible, job: int) -> int:
    """Return how many nodes the job may use: those that satisfy it at its level, in its rack."""
    if not is_constrained(w, job):
        return w.nodes.size
    return w.eligible.jobs.count[job]


@inlined
def eligible_node(w: HasEligible, job: int, i: int) -> int:
    """Return the node at place `i` among those that the job may use."""
    if not is_constrained(w, job):
        return i
    low, first = listing_of(w, job)
    return listed(w, low, first, i)


@inlined
def eligible_before(w: HasEligible, job: int, node: int) -> int:
    """Return how many nodes that the job may use have an id below `node`: its place, if it is one of them."""
    if not is_constrained(w, job):
        return node
    place = place_of(w.eligible, list_of(w, job), node) - w.eligible.jobs.begin[job]
    return min(max(place, 0), w.eligible.jobs.count[job])


@inlined
def first_place(w: HasEligible, job: int, node: int) -> int:
    """Return the job's first place that may be used: that of a node from `node` on, if it may use one there."""
    begin = eligible_before(w, job, node)
    if is_constrained(w, job) and begin == w.eligible.jobs.count[job]:
        return np.int64(0)
    return begin


@inlined
def is_eligible(w: HasEligible, job: int, node: int) -> bool:
    """Return whether the job may use the node."""
    if not is_constrained(w, job):
        return True
    place = eligible_before(w, job, node)
    return place < w.eligible.jobs.count[job] and eligible_node(w, job, place) == node


@inlined
def list_of(w: HasEligible, job: int) -> int:
    """Return the list of nodes of a job that has constraints."""
    return w.eligible.list_of_level[w.eligible.jobs.level[job]]


@inlined
def listing_of(w: HasEligible, job: int) -> tuple[int, int]:
    """Return where the job's nodes begin, for loops over them: `low` and `first` of `listed`."""
    low, first = np.int64(0), np.int64(0)
    if is_constrained(w, job):
        which, begin = list_of(w, job), w.eligible.jobs.begin[job]
        low, first = w.eligible.low[which], w.eligible.first[which] + begin
        if low >= 0:
            low += begin
    return low, first


@inlined
def listed(w: HasEligible, low: int, first: int, i: int) -> int:
    """Return the node at place `i` among a job's nodes: a run of ids from `low` on, or a list from `first` on."""
    if low >= 0:
        return low + i
    return w.eligible.nodes[first + i]


@inlined
def place_of(eligible: Eligible, which: int, node: int) -> int:
    """Return how many nodes of a list have an id below `node`."""
    low = eligible.low[which]
    if low >= 0:
        return min(max(node - low, 0), eligible.num_nodes[which])
    begin, end = eligible.first[which], eligible.first[which + 1]
    while begin < end:
        middle = (begin + end) >> 1
        if eligible.nodes[middle] < node:
            begin = middle + 1
        else:
            end = middle
    return begin - eligible.first[which]


@compiled
def set_level(w: HasEligible, job: int, level: int) -> None:
    """Set the level of a job with constraints. A job whose rack is chosen stays there if it must run in one."""
    jobs, eligible = w.eligible.jobs, w.eligible
    jobs.level[job] = level
    jobs.begin[job], jobs.count[job] = 0, eligible.num_nodes[eligible.list_of_level[level]]
    if eligible.placement[level] & IN_RACK == 0:
        jobs.rack[job] = NONE
    elif jobs.rack[job] != NONE:
        keep_to_rack(w, job, jobs.rack[job])


@inlined
def keep_to_rack(w: HasEligible, job: int, rack: int) -> None:
    """Restrict a job to the nodes of its list that lie in this rack."""
    jobs, eligible = w.eligible.jobs, w.eligible
    start = eligible.rack_end[rack - 1] if rack > 0 else 0
    which = list_of(w, job)
    begin = place_of(eligible, which, start)
    jobs.rack[job], jobs.begin[job] = rack, begin
    jobs.count[job] = place_of(eligible, which, eligible.rack_end[rack]) - begin


@inlined
def is_relaxed(w: HasEligible, job: int) -> bool:
    """Return whether one of the job's soft constraints was dropped."""
    if not is_constrained(w, job):
        return False
    return w.eligible.jobs.level[job] > w.eligible.first_level[w.eligible.set_of_job[job]]


@inlined
def level_of(w: HasEligible, job: int) -> int:
    """Return the level of a job, which a node needs for the run time of its tasks; NONE without constraints."""
    if w.eligible.active == 0:
        return NONE
    return w.eligible.jobs.level[job]


@inlined
def is_spread(w: HasEligible, level: int) -> bool:
    """Return whether the tasks of a job at this level must run on different nodes."""
    return level != NONE and w.eligible.placement[level] & (OVER_NODES | OVER_RACKS) != 0


@inlined
def run_time(w: HasEligible, node: int, task: int, level: int) -> int:
    """Return the run time of a task, ns: by its duration, the level of its job and the node's speed."""
    duration = w.duration[task]
    if w.eligible.active == 0 and w.speed.size == 0:
        return duration
    factor, speed = 1.0, 1.0
    if level != NONE:
        factor = w.eligible.factor[level]
    if w.speed.size > 0:
        speed = w.speed[node]
    if factor == 1.0 and speed == 1.0:
        return duration
    return np.int64(min(np.rint(duration * factor / speed), MOST_NS))


# At time 0: the nodes of each job, and the level at which it starts.


def make_eligible(setting: Setting) -> Eligible:
    """Return the nodes that each job may use; empty where there are no constraints, or the scheduler ignores them.

    A job starts at the first level at which its tasks fit: all constraints, if they do.

    Raises:
        InputError: no node can run some job, or none is left when nodes have failed for good; or a job must run in one
            rack, and the nodes of a rack do not lie together.
    """
    workload, cluster = setting.workload, setting.cluster
    needs, constrained = _conditions(setting)
    if not constrained and needs is None:
        return _nothing()
    found = match(workload, cluster, needs, constrained)
    check_feasible(workload, cluster, found, needs)
    if found.first_level.size == 1:  # any node can run any task
        return _nothing()
    jobs = records(ELIGIBLE_JOB, workload.num_jobs)
    tasks = np.diff(workload.arrays().first_task)
    some = np.flatnonzero(found.set_of_job >= 0)
    jobs.level[:], jobs.rack[:] = NONE, NONE
    jobs.level[some] = start_levels(found, most_tasks(found, cluster), found.set_of_job[some], tasks[some])
    jobs.count[some] = found.num_nodes[found.list_of_level[jobs.level[some]]]
    in_one_rack = bool((found.placement & IN_RACK).any())
    spread = bool((found.placement & (OVER_RACKS | OVER_NODES)).any())
    _enough_come_back(setting, found, needs, jobs.level, tasks)
    return Eligible(
        1,
        *found[:-1],
        kinds=read_only(np.array([_kinds(one) for one in found.sets], np.int64)),
        rack_end=read_only(_rack_ends(cluster) if in_one_rack else np.zeros(0, np.int64)),
        jobs=jobs,
        held=np.zeros(workload.num_tasks if spread else 0, np.int64),
    )


def sets_of(setting: Setting) -> list[ConstraintSet]:
    """Return [S] the sets of constraints of `Eligible`."""
    return requirements(setting.workload, *_conditions(setting))[0]


def _conditions(setting: Setting) -> tuple[Needs | None, bool]:
    """Return what tasks need of nodes, if it counts, and whether constraints count."""
    workload, resources = setting.workload, setting.resources
    constrained = setting.scheduler.constrained and workload.job_constraints.num_rows > 0
    return needs_of(workload, setting.cluster, resources) if resources else None, constrained


def start_levels(found: Matching, most: np.ndarray, sets: np.ndarray, tasks: np.ndarray) -> np.ndarray:
    """[J] the first level of each job's set at which its tasks fit; `most` [V] is how many do at each level."""
    level = found.first_level[sets]
    while (too_many := most[level] < tasks).any():
        level[too_many] += 1
    return level


def _nothing() -> Eligible:
    none = read_only(np.zeros(0, np.int64))
    empty = dict.fromkeys(Matching._fields[:-1], none) | {"factor": read_only(np.zeros(0))}
    return Eligible(
        0, **empty, kinds=none, rack_end=none, jobs=records(ELIGIBLE_JOB, 0), held=np.zeros(0, np.int64)
    )


def _kinds(constraints: ConstraintSet) -> int:
    """Return what a set constrains, as bits; all attributes that a user has added share the last one."""
    names = [*ATTRIBUTES, PLACEMENT]
    bits = 0
    for one in constraints:
        name = one.attribute if one.attribute == PLACEMENT else find_attribute(one.attribute).name
        bits |= 1 << (names.index(name) if name in names else len(names))
    return bits


def _rack_ends(cluster: Cluster) -> np.ndarray:
    """[racks] one behind the last node of each.

    Raises:
        InputError: the nodes of a rack do not lie together.
    """
    racks = cluster.racks()
    ends = np.append(np.flatnonzero(racks[1:] != racks[:-1]) + 1, racks.size)
    if ends.size > np.unique(racks).size:
        seen, twice = np.unique(racks[ends - 1], return_counts=True)
        raise InputError(
            f"{cluster.name}: the nodes of rack {seen[twice > 1][0]} do not lie together, as jobs that run in one rack"
            " (same-rack) want; sort the nodes by rack"
        )
    return ends


def _enough_come_back(
    setting: Setting, found: Matching, needs: Needs | None, level: np.ndarray, tasks: np.ndarray
) -> None:
    """Refuse a schedule of failures that leaves a job without its nodes for good."""
    outages, workload, cluster = setting.dynamics.outages, setting.workload, setting.cluster
    if outages is None:
        return
    stays = np.ones(cluster.num_nodes, bool)
    stays[outages.number[(outages.kind == NODE) & np.isinf(outages.repair_s)]] = False
    if stays.all():
        return
    left = Cluster(cluster.name, cluster.table.take(from_numpy(np.flatnonzero(stays))))
    if needs is not None:
        needs = needs._replace(capacity=needs.capacity[stays])
    most = most_tasks(match(workload, left, needs, _conditions(setting)[1]), left)
    racks = np.unique(cluster.racks(), return_inverse=True)[1]
    known: dict[tuple[int, int], bool] = {}
    for job in np.flatnonzero(level >= 0):
        at = int(level[job])
        fits = most[at] >= tasks[job]
        if fits and found.placement[at] & IN_RACK:  # any rack that has nodes enough now may be chosen
            wanted = int(tasks[job]) if found.placement[at] & OVER_NODES else 1
            if (at, wanted) not in known:
                nodes = nodes_of(
                    found, int(found.set_of_job[job]), at - int(found.first_level[found.set_of_job[job]])
                )
                before, after = (
                    np.bincount(racks[n], minlength=racks.size) for n in (nodes, nodes[stays[nodes]])
                )
                known[at, wanted] = bool((after >= wanted)[before >= wanted].all())
            fits = known[at, wanted]
        if not fits:
            asked = set_text(found.sets[found.set_of_job[job]]) or "what its tasks need"
            raise InputError(
                f"dynamics.failures: job {column(workload.jobs, 'job_id')[job]} ({asked}) may wait for ever for nodes"
                " that fail for good; give them a repair_s"
            )
