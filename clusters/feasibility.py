"""The jobs that no node can run, the gangs that do not fit, and the most tasks that constraints allow a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from clusters.capacity import lack_text
from clusters.cluster import Cluster
from clusters.matching import (
    SAME_RACK,
    SPREAD_NODES,
    SPREAD_RACKS,
    Matching,
    Needs,
    billionths,
    list_of,
    match,
    nodes_of,
    satisfies,
)
from clusters.schema import find_attribute
from workloads.arrow import column
from workloads.constraints import PLACEMENT, Constraint, set_text
from workloads.dags import DagWorkload, JobsOrDags
from workloads.errors import InputError
from workloads.groups import Int64Array
from workloads.jobs import JobWorkload
from workloads.requests import NO_GANG, gang_nodes

UNBOUNDED = 2**62
"""More tasks than any job has."""
_SHOWN = 4


def most_tasks(matching: Matching, cluster: Cluster) -> Int64Array:
    """Return the most tasks of a job that runs at each level: shape (V,).

    0 without a satisfying node, and `UNBOUNDED` without a placement: tasks can follow one another on a node. With
    ``spread-nodes`` the number of satisfying nodes, with ``spread-racks`` that of racks with such nodes, since no two
    tasks of the job may share one. With ``same-rack`` and ``spread-nodes`` the number of satisfying nodes of the rack
    with most; with ``same-rack`` and ``spread-racks`` 1.
    """
    racks = cluster.racks()
    keys = list(zip(matching.list_of_level.tolist(), matching.placement.tolist(), strict=True))
    known = {(at, bits): _most_tasks(racks[list_of(matching, at)], bits) for at, bits in set(keys)}
    return np.array([known[key] for key in keys], np.int64)


def infeasible_jobs(workload: JobWorkload | DagWorkload, cluster: Cluster, matching: Matching) -> Int64Array:
    """Return the places of the jobs that no node can run, by their hard constraints (see `most_tasks`)."""
    hard = most_tasks(matching, cluster)[matching.first_level[1:] - 1]
    most = np.append(hard, UNBOUNDED)  # the last for set -1
    tasks = column(workload.jobs, "num_tasks")
    return np.flatnonzero(tasks > most[matching.set_of_job])


def check_feasible(
    workload: JobWorkload | DagWorkload, cluster: Cluster, matching: Matching, needs: Needs | None = None
) -> None:
    """Refuse a workload with jobs that no node can run.

    Raises
    ------
    InputError
        Names the first such job, its hard constraints, and the number of nodes that satisfy each of them alone.
    """
    jobs = infeasible_jobs(workload, cluster, matching)
    if not len(jobs):
        return
    set_id = int(matching.set_of_job[jobs[0]])
    hard = tuple(c for c in matching.sets[set_id] if c.price is None)
    job_id = column(workload.jobs, "job_id")[jobs[0]]
    tasks = int(column(workload.jobs, "num_tasks")[jobs[0]])
    more = f"; {len(jobs):,} of {workload.num_jobs:,} jobs cannot run" if len(jobs) > 1 else ""
    of_nodes = [c for c in hard if c.attribute != PLACEMENT]
    if needs is not None:
        demand = needs.demand[needs.of_job[jobs[0]]]
        fitting = (billionths(demand) <= billionths(needs.capacity)).all(axis=1)
        if not fitting.any():
            who = "a task needs" if needs.tasks_are_alike else "the most that its tasks need is"
            raise InputError(
                f"job {job_id}: {lack_text(demand, needs.resources, needs.capacity, cluster, who)}{more}"
            )
        if of_nodes and not len(nodes_of(matching, set_id, -1)):
            raise InputError(
                f"job {job_id}: none of the {int(fitting.sum()):,} nodes of cluster {cluster.name} that have what its"
                f" tasks need satisfies {set_text(of_nodes)}{more}"
            )
    if len(nodes_of(matching, set_id, -1)):
        most = int(most_tasks(matching, cluster)[matching.first_level[set_id + 1] - 1])
        wrong = f"its {tasks:,} tasks cannot be placed under {set_text(hard)}: at most {most:,} can"
    else:
        wrong = f"no node satisfies {set_text(of_nodes)}; {_alone(cluster, of_nodes)}"
    raise InputError(f"job {job_id}: {wrong} on {_nodes_of(cluster)}{more}")


def drop_infeasible(
    workload: JobsOrDags, cluster: Cluster, needs: Needs | None = None, constrained: bool = True
) -> tuple[JobsOrDags, int]:
    """Return the workload without the jobs that no node can run, with a note, and the number of these jobs.

    Tasks that fit on no node count where `needs` are given, and constraints where `constrained`.

    Raises
    ------
    InputError
        No job would be left.
    """
    matching = match(workload, cluster, needs, constrained)
    dropped = infeasible_jobs(workload, cluster, matching)
    if len(dropped) == workload.num_jobs:
        check_feasible(workload, cluster, matching, needs)
    or_demands = " or demands" if needs is not None else ""
    where = _nodes_of(cluster)
    return _without(workload, dropped, f"whose hard constraints{or_demands} {where} cannot meet"), len(
        dropped
    )


def gangs_of(workload: JobWorkload, which: str) -> Int64Array:
    """Return the number of nodes of each gang, 0 for any number, and `NO_GANG` for other jobs: shape (J,).

    ``which`` jobs are gangs: those that are "stated" to be, or "all".
    """
    nodes = gang_nodes(workload.jobs)
    return np.maximum(nodes, 0) if which == "all" else nodes


def wide_gangs(
    workload: JobWorkload, nodes: Int64Array, cluster: Cluster, needs: Needs | None = None
) -> Int64Array:
    """Return the places of the gangs whose tasks do not fit on the cluster at once; `nodes` as of `gangs_of`.

    A task takes a slot, or what `needs` state: the most that one of its job needs. A gang on a number of nodes has its
    tasks spread evenly over them; where it does not divide, some have one more.
    """
    tasks = column(workload.jobs, "num_tasks")
    is_wide = np.zeros(len(tasks), bool)
    of_job = np.zeros(len(tasks), np.int64) if needs is None else needs.of_job
    gangs = np.flatnonzero(nodes != NO_GANG)
    by_demand = gangs[np.argsort(of_job[gangs], kind="stable")]
    for some in np.split(by_demand, np.flatnonzero(np.diff(of_job[by_demand])) + 1) if len(gangs) else ():
        room = cluster.slots() if needs is None else tasks_on_nodes(needs, int(of_job[some[0]]))
        is_wide[some] = _are_wide(tasks[some], nodes[some], np.sort(room))
    return np.flatnonzero(is_wide)


def _are_wide(tasks: Int64Array, nodes: Int64Array, room: Int64Array) -> npt.NDArray[np.bool_]:
    """Return which gangs do not fit on nodes with room for so many of their tasks, sorted."""
    room = np.minimum(room, int(tasks.max()))  # so that the sum of rooms without a bound is a number
    is_wide = tasks > room.sum()
    some = np.flatnonzero(nodes > 0)
    on = np.minimum(nodes[some], tasks[some])
    share, larger = tasks[some] // on, tasks[some] % on
    with_share, with_more = (len(room) - np.searchsorted(room, least) for least in (share, share + 1))
    is_wide[some] |= (with_share < on) | (with_more < larger)
    return is_wide


def tasks_on_nodes(needs: Needs, demand: int) -> Int64Array:
    """Return how many tasks of a demand, a row of `needs.demand`, each node holds: shape (N,)."""
    needed = np.minimum(billionths(needs.demand[demand]), UNBOUNDED).astype(np.int64)
    has = billionths(needs.capacity).astype(np.int64)
    room = np.full(has.shape, UNBOUNDED)
    np.floor_divide(has, needed, out=room, where=needed > 0)
    return np.asarray(room.min(axis=1))


def check_widths(
    workload: JobWorkload, nodes: Int64Array, cluster: Cluster, needs: Needs | None = None
) -> None:
    """Refuse a workload with a gang whose tasks do not fit on the cluster at once; arguments as of `wide_gangs`.

    Raises
    ------
    InputError
        Names the first such job, its tasks, and the slots there are, or how many of its tasks the nodes hold.
    """
    wide = wide_gangs(workload, nodes, cluster, needs)
    if not len(wide):
        return
    job_id, tasks = (int(column(workload.jobs, name)[wide[0]]) for name in ("job_id", "num_tasks"))
    on = f" on {_counted(int(nodes[wide[0]]), 'node')}" if nodes[wide[0]] > 0 else ""
    more = f"; {len(wide):,} of {workload.num_jobs:,} jobs do not fit" if len(wide) > 1 else ""
    where = _size_of(cluster)
    if needs is not None:
        room = np.minimum(tasks_on_nodes(needs, int(needs.of_job[wide[0]])), tasks)
        where, some = _nodes_of(cluster), f"{int(room.sum()):,} fit"
        if nodes[wide[0]] > 0:
            least = tasks // min(int(nodes[wide[0]]), tasks)
            least += int(
                (room >= least).sum() >= nodes[wide[0]]
            )  # where it does not divide, some have one more
            some = f"{least:,} of them fit on {int((room >= least).sum()):,} of the nodes"
        demand = needs.demand[needs.of_job[wide[0]]].tolist()
        what = ", ".join(f"{d:g} of {name}" for d, name in zip(demand, needs.resources, strict=True) if d)
        more = f": each needs {what}, and {some}{more}"
    raise InputError(
        f"job {job_id}: its {tasks:,} tasks start at once{on}, for which {where} has no room{more}"
    )


def drop_wide(
    workload: JobWorkload, nodes: Int64Array, cluster: Cluster, needs: Needs | None = None
) -> JobWorkload:
    """Return the workload without the gangs that do not fit, with a note; arguments as of `wide_gangs`.

    Raises
    ------
    InputError
        No job would be left.
    """
    dropped = wide_gangs(workload, nodes, cluster, needs)
    if len(dropped) == workload.num_jobs:
        check_widths(workload, nodes, cluster, needs)
    where = _size_of(cluster) if needs is None else _nodes_of(cluster)
    return _without(workload, dropped, f"whose tasks start at once, for which {where} has no room")


def _size_of(cluster: Cluster) -> str:
    return f"{_nodes_of(cluster)} and {_counted(cluster.total_slots, 'slot')}"


def _nodes_of(cluster: Cluster) -> str:
    """Return a cluster and its size; a name may be a number, as that of a file of a size."""
    return f"cluster {cluster.name} of {_counted(cluster.num_nodes, 'node')}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _without(workload: JobsOrDags, dropped: Int64Array, why: str) -> JobsOrDags:
    """Return the workload without some jobs, with a note that says why."""
    from workloads.transform.primitives import take, with_tables

    if not len(dropped):
        return workload
    note = f"{len(dropped):,} of {workload.num_jobs:,} jobs dropped, {why}"
    made = take(workload, np.delete(np.arange(workload.num_jobs), dropped))
    return with_tables(made, notes=(*made.notes, note))


def _most_tasks(racks: Int64Array, placement: int) -> int:
    """Return the most tasks of a job on nodes in these racks."""
    if len(racks) == 0 or placement == 0:
        return UNBOUNDED if len(racks) else 0
    in_rack = np.unique(racks, return_counts=True)[1]
    if placement & SPREAD_RACKS:
        return 1 if placement & SAME_RACK else len(in_rack)
    if placement & SPREAD_NODES:
        return int(in_rack.max()) if placement & SAME_RACK else len(racks)
    return UNBOUNDED


def _alone(cluster: Cluster, constraints: Sequence[Constraint]) -> str:
    """Return the number of nodes that satisfy each constraint alone, and the nodes' values if that is 0."""
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
