"""What jobs ask for beside time, in numbers: demands of tasks, priorities, gangs, requested run times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from workloads.arrow import column, is_known
from workloads.critical_path import critical_paths_ns
from workloads.dags import DagWorkload
from workloads.errors import printable
from workloads.info.common import number, quantiles, row, share
from workloads.jobs import Float64Array, Int64Array, JobWorkload
from workloads.requests import NO_GANG, gang_nodes, priorities, requested_s
from workloads.resources import RESOURCES, resource_named
from workloads.stated_demands import task_demand

_MOST_PRIORITIES = 12
_UNITS = dict.fromkeys(RESOURCES, " nodes") | {"cpu_cores": " cores", "memory_gib": " GiB"}


def describe_requests(
    workload: JobWorkload | DagWorkload, work_s: Float64Array, span_s: float
) -> dict[str, Any]:
    """Return demands, priorities, gangs and requested run times.

    ``demands`` has for each resource its ``unit``, the share of tasks whose demand is ``known`` and the number of tasks
    ``without`` one, quantiles over tasks, and the amount ``in_use`` on average if all work is done in the time of the
    arrivals: in cores, GiB, nodes (shares), or the unit of a user's attribute; None if all arrive at once.

    ``priorities`` has how many are ``distinct``, the jobs ``without`` one, and the dozen ``values`` with most jobs, the
    largest first, each with its jobs, tasks and share of task-seconds; ``others`` is the sum over other values,
    ``unstated`` that over the jobs without one.
    ``gangs`` has their number, their share of task-seconds, quantiles of their ``width`` in tasks, how many
    state a number of nodes, and quantiles of these ``nodes``. ``requested`` has the jobs with a requested run
    time, quantiles of it and of it ``over_run_time`` (the longest task of the job, or the critical path), and how many
    jobs ``ran_longer``. The last three are None where no job states such a thing.

    Parameters
    ----------
    workload
    work_s : ndarray of float64, shape (J,)
        Task-seconds of each job.
    span_s : float
        From the first arrival to the last.
    """
    return {
        "demands": {name: _demand(workload, name, span_s) for name in workload.resources},
        "priorities": _priorities(workload, work_s),
        "gangs": _gangs(workload, work_s),
        "requested": _requested(workload),
    }


def _demand(workload: JobWorkload | DagWorkload, name: str, span_s: float) -> dict[str, Any]:
    each = task_demand(workload, name)
    known = ~np.isnan(each)
    held_s = float((each[known] * column(workload.tasks, "duration_s")[known]).sum())
    return {
        "unit": resource_named(name).unit,
        "known": float(known.mean()),
        "without": int((~known).sum()),
        "quantiles": quantiles(each[known]),
        "in_use": held_s / span_s if span_s > 0 else None,
    }


def _priorities(workload: JobWorkload | DagWorkload, work_s: Float64Array) -> dict[str, Any] | None:
    if "priority" not in workload.jobs.column_names:
        return None
    of_jobs, stated = priorities(workload.jobs), is_known(workload.jobs["priority"].combine_chunks())
    if not stated.any():
        return None
    values, code, jobs = np.unique(of_jobs[stated], return_inverse=True, return_counts=True)
    tasks = np.bincount(code, column(workload.jobs, "num_tasks")[stated])
    work = np.bincount(code, work_s[stated])
    total_s = float(work_s.sum())

    def row_of(which: Int64Array) -> dict[str, Any]:
        held = {"jobs": int(jobs[which].sum()), "tasks": int(tasks[which].sum())}
        return {**held, "work_share": share(work[which].sum(), total_s)}

    by_jobs = np.argsort(-jobs, kind="stable")
    shown, others = np.sort(by_jobs[:_MOST_PRIORITIES])[::-1], by_jobs[_MOST_PRIORITIES:]
    return {
        "distinct": len(values),
        "without": int((~stated).sum()),
        "values": [{"priority": int(values[v]), **row_of(np.array([v]))} for v in shown],
        "others": {"values": len(others), **row_of(others)} if len(others) else None,
        "unstated": {
            "jobs": int((~stated).sum()),
            "tasks": int(column(workload.jobs, "num_tasks")[~stated].sum()),
            "work_share": share(work_s[~stated].sum(), total_s),
        },
    }


def _gangs(workload: JobWorkload | DagWorkload, work_s: Float64Array) -> dict[str, Any] | None:
    nodes = gang_nodes(workload.jobs)
    gang = nodes != NO_GANG
    if not gang.any():
        return None
    return {
        "jobs": int(gang.sum()),
        "work_share": share(work_s[gang].sum(), work_s.sum()),
        "width": quantiles(column(workload.jobs, "num_tasks")[gang]),
        "stated_nodes": int((nodes > 0).sum()),
        "nodes": quantiles(nodes[nodes > 0]),
    }


def _requested(workload: JobWorkload | DagWorkload) -> dict[str, Any] | None:
    asked_s = requested_s(workload.jobs)
    stated = ~np.isnan(asked_s)
    if not stated.any():
        return None
    if isinstance(workload, DagWorkload):
        run_s = critical_paths_ns(workload) / 1e9
    else:
        run_s = np.maximum.reduceat(column(workload.tasks, "duration_s"), workload.arrays().first_task[:-1])
    ran = stated & (run_s > 0)
    return {
        "jobs": int(stated.sum()),
        "requested_s": quantiles(asked_s[stated]),
        "over_run_time": quantiles(asked_s[ran] / run_s[ran]),
        "ran_longer": int((run_s[stated] > asked_s[stated]).sum()),
    }


def render_requests(d: Mapping[str, Any]) -> list[str]:
    """Return the lines of what `describe_requests` found; none where jobs ask for nothing."""
    lines = [*_render_demands(d), *_render_priorities(d)]
    head = row("quantile", [f"{q} %" for q in d["quantiles"]])
    if (gangs := d["gangs"]) is not None:
        lines += [
            "",
            f"gangs: {gangs['jobs']:,} of {d['jobs']:,} jobs, {gangs['work_share']:.2%} of task-seconds; "
            f"nodes stated for {gangs['stated_nodes']:,}",
            head,
            row("width (tasks)", map(number, gangs["width"])),
        ]
        lines += [row("nodes", map(number, gangs["nodes"]))] if gangs["nodes"] else []
    if (asked := d["requested"]) is not None:
        lines += [
            "",
            f"requested run times: {asked['jobs']:,} of {d['jobs']:,} jobs; {asked['ran_longer']:,} ran longer",
            head,
            row("requested (s)", map(number, asked["requested_s"])),
        ]
        ratio = asked["over_run_time"]
        lines += [row("over run time", map(number, ratio))] if ratio else []
    return lines


def _render_demands(d: Mapping[str, Any]) -> list[str]:
    demands = d["demands"]
    if not demands:
        return []
    lines = [
        "",
        "demands of all tasks (cores; GiB; shares of a node of memory, disk and network)",
        row("quantile", [f"{q} %" for q in d["quantiles"]]),
        *(row(printable(name), map(number, of["quantiles"])) for name, of in demands.items()),
    ]
    if d["span_s"] > 0:
        uses = (
            f"{printable(name)} {number(of['in_use'])}{_UNITS.get(name, '')}" for name, of in demands.items()
        )
        lines.append(f"  in use on average: {', '.join(uses)}")
    some = [
        f"{printable(name)} by {of['without']:,} of {d['tasks']:,} tasks"
        for name, of in demands.items()
        if of["without"]
    ]
    return lines + ([f"  not stated: {', '.join(some)}"] if some else [])


def _render_priorities(d: Mapping[str, Any]) -> list[str]:
    found = d["priorities"]
    if found is None:
        return []
    without = f"; {found['without']:,} jobs state none, which is 0" if found["without"] else ""
    rows = [(str(of["priority"]), of) for of in found["values"]]
    if (others := found["others"]) is not None:
        rows.append((f"{others['values']:,} others", others))
    if found["without"]:
        rows.append(("none stated", found["unstated"]))
    return [
        "",
        f"priorities: {found['distinct']:,} distinct, the larger goes first{without}",
        row("priority", ["jobs", "share", "tasks", "share", "work"]),
        *(
            row(
                label,
                [
                    *(f"{of['jobs']:,}", f"{share(of['jobs'], d['jobs']):.2%}"),
                    *(f"{of['tasks']:,}", f"{share(of['tasks'], d['tasks']):.2%}"),
                    f"{of['work_share']:.2%}",
                ],
            )
            for label, of in rows
        ),
    ]
