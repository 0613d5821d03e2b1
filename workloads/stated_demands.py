"""What tasks of a workload state to need, and memory that is stated in two units: as a share of a node, and in GiB."""

from __future__ import annotations

import numpy as np

from workloads.arrow import column, optional_column
from workloads.dags import DagWorkload
from workloads.errors import printable
from workloads.jobs import Float64Array, JobWorkload
from workloads.requests import stated_demand

MEMORY_UNITS = {"memory": "memory, a share of a node", "memory_gib": "memory_gib"}
"""Both are of the same memory of a node; which share of it a size is, depends on the node."""
_SHOWN = 3


def task_demand(workload: JobWorkload | DagWorkload, name: str) -> Float64Array:
    """Return what each task needs of a resource, shape (T,), NaN where it is not stated."""
    if isinstance(workload, DagWorkload):
        stages = workload.stages
        return np.repeat(optional_column(stages, name), column(stages, "num_tasks"))
    return stated_demand(workload.jobs, workload.tasks, name)


def memory_in_two_units(workload: JobWorkload | DagWorkload) -> str:
    """Return which jobs state memory in which unit, as one clause; empty where all state it in one."""
    if not {*MEMORY_UNITS} <= {*workload.resources}:
        return ""
    first_task = workload.arrays().first_task[:-1]
    parts = []
    for name, shown in MEMORY_UNITS.items():
        stating = np.flatnonzero(np.logical_or.reduceat(~np.isnan(task_demand(workload, name)), first_task))
        verb = "job states" if stating.size == 1 else "jobs state"
        parts.append(f"{stating.size:,} {verb} {shown} ({_whose(workload, stating)})")
    return ", and ".join(parts)


def _whose(workload: JobWorkload | DagWorkload, jobs: np.ndarray) -> str:
    """Return the first of some jobs, and the tenants of all of them."""
    first = f"job {column(workload.jobs, 'job_id')[jobs[0]]}"
    first = first if jobs.size == 1 else f"the first: {first}"
    found = dict.fromkeys(workload.jobs["tenant"].take(jobs).to_pylist())
    tenants = [printable(tenant) for tenant in found if tenant is not None]
    if not tenants:
        return first
    more = ", …" if len(tenants) > _SHOWN else ""
    return f"{first}; tenant{'s' if len(tenants) > 1 else ''} {', '.join(tenants[:_SHOWN])}{more}"
