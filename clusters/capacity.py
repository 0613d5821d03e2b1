"""Capacities of nodes in the units of tasks' demands, and the stages of DAGs whose tasks fit on a node."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from clusters.cluster import Cluster
from clusters.matching import Needs, billionths
from workloads.arrow import column
from workloads.dags import DagWorkload
from workloads.errors import InputError
from workloads.jobs import JobWorkload

Float64Array = npt.NDArray[np.float64]
MOST_OF_A_RESOURCE = 1e9
"""The most of all nodes together: runs count billionths in int64."""


def capacities(cluster: Cluster, resources: tuple[str, ...]) -> Float64Array:
    """Return the resources of each node, shape (N, R), in the units of demands (`workloads.resources`).

    Demands of memory, disks and network are shares of the largest machine of the cluster's description, also where none
    of these is among its nodes; ``memory_gib`` is not. A node's bandwidth to disks is in proportion to its disks
    (`max_disks`). Without resources a node has slots, shape (N, 1).

    Raises
    ------
    InputError
        An attribute of the user's own is not a number on some node, or the nodes have too much of a resource.
    """
    if not resources:
        found = cluster.slots()[:, None].astype(np.float64)
    else:
        found = np.stack([capacity(cluster, name) for name in resources], axis=1)
    total = found.sum(axis=0)
    if (total > MOST_OF_A_RESOURCE).any():
        name = (resources or ("slots",))[int(np.argmax(total))]
        raise InputError(
            f"{cluster.name}: its nodes have {total.max():.6g} of {name} together, more than {MOST_OF_A_RESOURCE:.0e}, "
            "the most that can be counted in billionths; give it in a larger unit, as GiB for bytes"
        )
    return found


def capacity(cluster: Cluster, name: str) -> Float64Array:
    """Return what each node has of a resource, shape (N,), as `capacities`."""
    if name == "cpu_cores":
        return np.asarray(cluster.attribute("cores"), np.float64)
    if name == "memory_gib":
        return np.asarray(cluster.attribute("memory"), np.float64) / 2**30
    for begin, attribute in (("memory", "memory"), ("network", "port"), ("disk", "max_disks")):
        if name.startswith(begin):
            values = np.asarray(cluster.attribute(attribute), np.float64)
            return values / max(values.max(), cluster.largest.get(attribute, 0.0), 1e-300)
    codes, texts = cluster.attribute(name), cluster.attribute_names(name)
    amounts = []
    for text in texts:
        try:
            amount = float(text or 0)
        except ValueError:
            amount = -1.0
        if not 0 <= amount < math.inf:
            wrong = f"tasks need amounts of {name}, and a node has {text!r} there; want a number, 0 or more"
            raise InputError(f"{cluster.name}: {wrong}")
        amounts.append(amount)
    return np.array(amounts)[codes]


def demands(workload: DagWorkload) -> Float64Array:
    """Return the demands of a task of each stage, shape (S, R), as for `capacities`; a slot if no demand is known."""
    return workload.arrays().demand if workload.resources else np.ones((workload.num_stages, 1))


def needs_of(workload: JobWorkload, cluster: Cluster, resources: tuple[str, ...]) -> Needs:
    """Return what the tasks of jobs need of some of the resources that they state, and what the nodes have."""
    found = workload.demands().only(resources)
    alike = not found.of_task.size
    return Needs(resources, found.vector, found.of_job, capacities(cluster, resources), alike)


def fits(demand: Float64Array, of_nodes: Float64Array) -> npt.NDArray[np.bool_]:
    """Return whether each demand, shape (D, R), fits on some empty node of these capacities, shape (N, R)."""
    found, wanted = np.zeros(len(demand), bool), billionths(demand)
    for kind in np.unique(billionths(of_nodes), axis=0):
        found |= (wanted <= kind).all(axis=1)
    return found


def fitting_stages(workload: DagWorkload, cluster: Cluster) -> npt.NDArray[np.bool_]:
    """Return whether the tasks of each stage fit on some node of an empty cluster, shape (S,)."""
    return fits(demands(workload), capacities(cluster, workload.resources))


def check_demands(workload: DagWorkload, cluster: Cluster) -> None:
    """Refuse a workload with tasks that no node can run.

    Raises
    ------
    InputError
        Names the first such stage, what it needs, and the most that a node has.
    """
    lacking = np.flatnonzero(~fitting_stages(workload, cluster))
    if not lacking.size:
        return
    stage, names = lacking[0], workload.resources or ("slots",)
    lack = lack_text(demands(workload)[stage], names, capacities(cluster, workload.resources), cluster)
    jobs = np.unique(column(workload.stages, "job_id")[lacking])
    more = f"; {jobs.size:,} of {workload.num_jobs:,} jobs cannot run" if jobs.size > 1 else ""
    raise InputError(
        f"job {column(workload.stages, 'job_id')[stage]}, stage {column(workload.stages, 'stage')[stage]}: {lack}{more}"
    )


def lack_text(
    demand: Float64Array,
    names: Sequence[str],
    capacity: Float64Array,
    cluster: Cluster,
    who: str = "a task needs",
) -> str:
    """Return what a task needs that no node has, and the most that a node has; `demand` (R,), `capacity` (N, R)."""
    most = capacity.max(axis=0)
    over = np.flatnonzero(billionths(demand) > billionths(most)).tolist()
    needs = ", ".join(
        f"{demand[r]:g} of {names[r]} (the most of a node is {most[r]:g})" for r in over or range(len(names))
    )
    together = "" if over else " on one node together"
    return f"{who} {needs}{together}, which no node of {cluster.name} has"


def drop_oversized(workload: DagWorkload, cluster: Cluster) -> DagWorkload:
    """Return the workload without the jobs whose tasks fit on no node, with a note.

    Raises
    ------
    InputError
        No job would be left.
    """
    from workloads.transform.primitives import take, with_tables

    fitting = np.logical_and.reduceat(fitting_stages(workload, cluster), workload.arrays().first_stage[:-1])
    if fitting.all():
        return workload
    if not fitting.any():
        check_demands(workload, cluster)
    made = take(workload, np.flatnonzero(fitting))
    note = (
        f"{np.count_nonzero(~fitting):,} of {workload.num_jobs:,} jobs dropped, whose tasks fit on no node of "
        f"{cluster.name}"
    )
    return with_tables(made, notes=(*made.notes, note))


def offered_load(workload: DagWorkload, cluster: Cluster) -> float | None:
    """Return the largest work over capacity of a resource while jobs arrive; None if all arrive at once."""
    submit_s = column(workload.jobs, "submit_s")
    span_s = float(submit_s[-1] - submit_s[0])
    return float(work_s(workload, cluster).max()) / span_s if span_s > 0 else None


def work_s(workload: DagWorkload, cluster: Cluster) -> Float64Array:
    """Return the time (s) in which all nodes could do all work, by resource, shape (R,): no run is shorter."""
    arrays = workload.arrays()
    of_stage = np.add.reduceat(arrays.duration_ns / 1e9, arrays.stage_first_task[:-1])
    total = capacities(cluster, workload.resources).sum(axis=0)
    needed: Float64Array = (demands(workload) * of_stage[:, None]).sum(axis=0)
    return np.divide(needed, total, out=np.zeros_like(needed), where=total > 0)
