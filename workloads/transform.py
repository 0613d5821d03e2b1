"""Workloads made from workloads: the same jobs, brought to another offered load."""

from __future__ import annotations

from dataclasses import replace

from workloads.arrow import column, from_numpy
from workloads.errors import InputError
from workloads.jobs import MAX_TIME_S, JobWorkload


def busy_slots(workload: JobWorkload) -> float:
    """Return task-seconds over the span of the arrivals: the slots that are busy on average at that rate.

    Over the slots of a cluster it is the offered load.

    Raises
    ------
    InputError
        The workload has no offered load: all jobs arrive at once, or no task takes any time.
    """
    submit_s = column(workload.jobs, "submit_s")
    span_s = float(submit_s[-1] - submit_s[0])
    work_s = float(column(workload.tasks, "duration_s").sum())
    if span_s <= 0:
        raise InputError(f"all jobs of {workload.name} arrive at once, so that it has no offered load")
    if work_s <= 0:
        raise InputError(f"no task of {workload.name} takes any time, so that its offered load is 0")
    return work_s / span_s


def at_load(workload: JobWorkload, slots: int, load: float) -> JobWorkload:
    """Return the workload with its arrivals stretched, or packed, so that it offers a load.

    The first arrival stays where it is and all gaps are scaled alike, so that the order of jobs, their tasks
    and the variation of the gaps stay as they are. The name stays; the metadata says what was done.

    Parameters
    ----------
    workload : JobWorkload
    slots : int
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
    submit_s = column(workload.jobs, "submit_s")
    stretched = submit_s[0] + (submit_s - submit_s[0]) * factor
    if not stretched[-1] <= MAX_TIME_S:
        raise InputError(
            f"at a load of {load:g} on {slots:,} slots the last job of {workload.name} would arrive after "
            f"{stretched[-1]:.2g} s; the most is {MAX_TIME_S:.0e} s"
        )
    at = workload.jobs.schema.get_field_index("submit_s")
    jobs = workload.jobs.set_column(at, workload.jobs.schema.field(at), from_numpy(stretched))
    done = f"gaps scaled by {factor:.6g}, to an offered load of {load:g} on {slots} slots"
    return replace(workload, jobs=jobs, metadata={**workload.metadata, "arrivals": done})
