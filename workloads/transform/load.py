"""The load a workload offers, and workloads brought to another."""

from __future__ import annotations

import numpy as np

from workloads.arrow import column
from workloads.coflows import CoflowWorkload
from workloads.dags import DagWorkload
from workloads.errors import InputError
from workloads.generators.draws import check_positive, check_whole
from workloads.jobs import MAX_TIME_S, Float64Array, JobWorkload
from workloads.transform.history import recorded
from workloads.transform.primitives import (
    JobsOrDags,
    W,
    Workload,
    arrivals_s,
    arriving_at,
    family,
    set_column,
    with_tables,
)

_MAX_NODES = 10_000_000
_MAX_SLOTS = 1_000_000


def busy_slots(workload: JobWorkload | DagWorkload) -> float:
    """Return task-seconds over the span of the arrivals: the slots that are busy on average at that rate.

    Over the slots of a cluster it is the offered load.

    Raises
    ------
    InputError
        The workload has no offered load: all jobs arrive at once, or no task takes any time.
    """
    span_s = _span_s(workload)
    work_s = float(column(workload.tasks, "duration_s").sum())
    if work_s <= 0:
        raise InputError(f"no task of {workload.name} takes any time, so that its offered load is 0")
    return work_s / span_s


def at_load(workload: JobsOrDags, slots: float, load: float) -> JobsOrDags:
    """Return the workload with its arrivals stretched, or packed, so that it offers a load.

    The first arrival stays where it is and all gaps are scaled alike, so that the order of jobs, their tasks
    and the variation of the gaps stay as they are. The name stays; the metadata states what was done.

    Parameters
    ----------
    workload : JobWorkload or DagWorkload
    slots : float
        Of the cluster that the load is meant for.
    load : float
        Offered load: task-seconds over the span of the arrivals times `slots`.

    Raises
    ------
    InputError
        The workload has no offered load (see `busy_slots`), or its arrivals would come too late.

    Examples
    --------
    >>> from workloads.jobs import make_workload
    >>> two = make_workload("two", [0.0, 10.0], [1, 1], [6.0, 4.0])
    >>> at_load(two, slots=1, load=0.5).jobs["submit_s"].to_pylist()
    [0.0, 20.0]
    """
    factor = busy_slots(workload) / (load * slots)
    stretched = stretched_s(workload, factor, f"at a load of {load:g} on {slots:,} slots")
    jobs = set_column(workload.jobs, "submit_s", stretched)
    done = f"gaps scaled by {factor:.6g}, to an offered load of {load:g} on {slots} slots"
    return with_tables(workload, jobs=jobs, metadata={**workload.metadata, "arrivals": done})


def offered_bytes_per_s(workload: CoflowWorkload) -> float:
    """Return the bytes of all coflows over the span of their arrivals.

    Over what the ports can carry (see `fabric_bytes_per_s`) it is the offered load.

    Raises
    ------
    InputError
        All coflows arrive at once.
    """
    span_s = _span_s(workload)
    return float(column(workload.coflows, "size_bytes").sum()) / span_s


def fabric_bytes_per_s(workload: CoflowWorkload, port_speed_bps: float | None = None) -> float:
    """Return what all ports carry together in one direction: the lesser of all ingress and all egress speeds.

    Parameters
    ----------
    port_speed_bps : float, optional
        Speed of every port (bit/s) in each direction; by default what the workload says of its ports.

    Raises
    ------
    InputError
        The workload does not say it for every port, and no speed is given.
    """
    if port_speed_bps is not None:
        check_positive("port_speed_bps", port_speed_bps)
        return workload.num_ports * port_speed_bps / 8
    arrays = workload.arrays()
    speed = min(float(arrays.ingress_bytes_per_s.sum()), float(arrays.egress_bytes_per_s.sum()))
    if not speed > 0:  # NaN where one is not known
        raise InputError(
            f"{workload.name} does not state the speed of its ports; give it, such as '1 Gbps'",
            field="port_speed_bps",
        )
    return speed


def scale(
    workload: W, load: float, nodes: int | None = None, slots: int = 1, port_speed_bps: float | None = None
) -> W:
    """Return the workload with all gaps between arrivals scaled alike, so that it offers a load.

    The first arrival stays where it is.

    Parameters
    ----------
    workload
        Jobs, DAGs or coflows.
    load : float
        Of jobs and DAGs: task-seconds over the span of the arrivals times ``nodes * slots``. Of coflows:
        bytes over the span times what all ports carry in one direction.
    nodes, slots : int
        The cluster the load is meant for, for jobs and DAGs.
    port_speed_bps : float, optional
        Speed of every port (bit/s), for coflows whose ports do not say it.

    Raises
    ------
    InputError
        The workload has no offered load, its arrivals would come too late, or an option is missing or out of
        range.
    """
    check_positive("load", load)
    if isinstance(workload, CoflowWorkload):
        ports = workload.num_ports
        if nodes not in (None, ports):
            raise InputError(
                f"{workload.name} has {ports:,} ports, not {nodes:,}; replicate it to have more",
                field="nodes",
            )
        factor = offered_bytes_per_s(workload) / (load * fabric_bytes_per_s(workload, port_speed_bps))
        wanted = f"at a load of {load:g} on {ports:,} ports"
        asked = {"load": load, "nodes": nodes, "port_speed_bps": port_speed_bps}
    else:
        if nodes is None:
            raise InputError("give the number of nodes that the load is meant for", field="nodes")
        if port_speed_bps is not None:
            raise InputError(f"{workload.name} has jobs, which use no ports", field="port_speed_bps")
        check_whole("nodes", nodes, 1, _MAX_NODES)
        check_whole("slots", slots, 1, _MAX_SLOTS)
        factor = busy_slots(workload) / (load * nodes * slots)
        wanted = f"at a load of {load:g} on {nodes * slots:,} slots"
        asked = {"load": load, "nodes": nodes, "slots": slots}
    made = arriving_at(workload, stretched_s(workload, factor, wanted))
    return recorded(made, "scale", asked, f"gaps scaled by {factor:.6g}")


def _span_s(workload: Workload) -> float:
    times_s = arrivals_s(workload)
    span_s = float(times_s[-1] - times_s[0])
    if span_s <= 0:
        raise InputError(
            f"all {family(workload).name} of {workload.name} arrive at once, so that it has no offered load"
        )
    return span_s


def stretched_s(workload: Workload, factor: float, wanted: str) -> Float64Array:
    """Return the arrivals (s) with their gaps scaled; `wanted` begins the error when that is too much."""
    times_s = arrivals_s(workload)
    with np.errstate(over="ignore"):
        stretched: Float64Array = times_s[0] + (times_s - times_s[0]) * factor
    if not stretched[-1] <= MAX_TIME_S:
        raise InputError(
            f"{wanted} the last {family(workload).name[:-1]} of {workload.name} would arrive after "
            f"{stretched[-1]:.2g} s; the most is {MAX_TIME_S:.0e} s"
        )
    if stretched[-1] == stretched[0] < times_s[-1]:
        raise InputError(
            f"{wanted} all {family(workload).name} of {workload.name} would arrive at once: their work is too little"
        )
    return stretched
