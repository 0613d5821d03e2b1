"""Constraints of a setting, as the kernel uses them: the nodes of each job, and the level at which it starts."""

from __future__ import annotations

import numpy as np

from actors.conditions import read_only
from actors.kernel.eligible import ELIGIBLE_JOB, IN_RACK, OVER_NODES, OVER_RACKS, Eligible
from actors.kernel.queue import NONE
from actors.kernel.records import records
from actors.setting import Setting
from clusters.capacity import needs_of
from clusters.cluster import Cluster
from clusters.failures import NODE
from clusters.feasibility import check_feasible, most_tasks
from clusters.matching import Matching, Needs, match, nodes_of, requirements
from clusters.schema import ATTRIBUTES, find_attribute
from workloads.arrow import column, from_numpy
from workloads.constraints import PLACEMENT, ConstraintSet, set_text
from workloads.errors import InputError


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
