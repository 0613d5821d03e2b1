"""Description of a workload of jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from workloads.arrow import column, is_known
from workloads.critical_path import critical_paths_ns
from workloads.dags import DagWorkload, task_demand
from workloads.errors import printable
from workloads.info.common import (
    QUANTILES,
    Distribution,
    describe_arrivals,
    number,
    quantiles,
    render_arrivals,
    row,
    share,
)
from workloads.jobs import Float64Array, Int64Array, JobWorkload
from workloads.requests import NO_GANG, gang_nodes, priorities, requested_s
from workloads.resources import RESOURCES, resource_named
from workloads.units import format_duration


def describe(workload: JobWorkload | DagWorkload, nodes: Sequence[int] = ()) -> dict[str, Any]:
    """Return the figures of jobs.

    ``busy_nodes`` is task-seconds over span: the nodes that are busy on average if all work is done in that
    time. ``offered_load`` is the load by number of one-slot nodes. Both are None when all jobs arrive at once.
    ``classes`` holds ``all`` and, where the workload has a cut-off, ``short`` and ``long``, each with
    quantiles of tasks per job, stated mean task duration, and the durations of their tasks. What jobs ask for beside
    time is that of `describe_requests`.
    """
    submit_s = column(workload.jobs, "submit_s")
    num_tasks = column(workload.jobs, "num_tasks")
    durations = column(workload.tasks, "duration_s")
    work_s = np.add.reduceat(durations, np.cumsum(num_tasks) - num_tasks)
    total_s = float(work_s.sum())
    arrivals = describe_arrivals(submit_s, {"jobs": None, "task_seconds": work_s})
    busy = total_s / arrivals["span_s"] if arrivals["span_s"] > 0 else None
    spread = distributions(workload)
    return {
        "name": workload.name,
        "family": "jobs",
        "jobs": workload.num_jobs,
        "tasks": workload.num_tasks,
        "first_submit_s": float(submit_s[0]),
        **arrivals,
        "task_seconds": total_s,
        "longest_task_s": float(durations.max()),
        "busy_nodes": busy,
        "offered_load": None if busy is None else {int(n): busy / n for n in nodes or _node_counts(busy)},
        "short_cutoff_s": workload.short_cutoff_s,
        "long_partition": workload.long_partition,
        "quantiles": list(QUANTILES),
        "classes": {
            name: {
                "jobs": int(mask.sum()),
                "tasks": int(num_tasks[mask].sum()),
                "job_share": share(mask.sum(), len(mask)),
                "work_share": share(work_s[mask].sum(), total_s),
                **{d.key: quantiles(d.values[name]) for d in spread},
            }
            for name, mask in _classes(workload).items()
        },
        **describe_requests(workload, work_s, arrivals["span_s"]),
    }


def distributions(workload: JobWorkload | DagWorkload) -> list[Distribution]:
    """Return tasks per job, stated mean task duration and task durations by class."""
    num_tasks = column(workload.jobs, "num_tasks")
    masks = _classes(workload)
    of_tasks = {name: np.repeat(mask, num_tasks) for name, mask in masks.items()}
    return [
        Distribution("num_tasks", "tasks per job", "jobs", _by_class(num_tasks, masks)),
        Distribution(
            "mean_task_s",
            "mean task duration of a job (s)",
            "jobs",
            _by_class(column(workload.jobs, "mean_task_s"), masks),
        ),
        Distribution(
            "duration_s",
            "task duration (s)",
            "tasks",
            _by_class(column(workload.tasks, "duration_s"), of_tasks),
        ),
    ]


def render(d: dict[str, Any]) -> list[str]:
    """Return the lines of a description of jobs."""
    lines = [
        f"{d['name']}: {d['jobs']:,} jobs, {d['tasks']:,} tasks",
        *render_arrivals(d, {"jobs": "jobs", "task_seconds": "task-seconds"}),
        f"work       {d['task_seconds']:,.0f} task-seconds, "
        f"longest task {format_duration(d['longest_task_s'])}",
    ]
    if d["busy_nodes"] is not None:
        loads = ", ".join(f"{load:.2f} on {n:,}" for n, load in d["offered_load"].items())
        nodes = "one-slot nodes" if d["demands"] else "nodes"  # a node may hold many tasks, or not one
        lines += [
            f"busy       {d['busy_nodes']:,.1f} {nodes} on average",
            f"load       {loads} one-slot nodes",
        ]
    if d["short_cutoff_s"] is not None:
        lines.append(f"cut-off    jobs up to {d['short_cutoff_s']:g} s mean task duration are short")
    if d["long_partition"] is not None:
        lines.append(f"partition  long jobs may use {d['long_partition']:.4g} of the nodes")
    labels = {"num_tasks": "tasks per job", "mean_task_s": "mean task (s)", "duration_s": "task (s)"}
    for name, c in d["classes"].items():
        lines += [
            "",
            f"{name} jobs: {c['jobs']:,} ({c['job_share']:.2%}), {c['work_share']:.2%} of task-seconds",
        ]
        if c["jobs"]:
            lines.append(row("quantile", [f"{q} %" for q in d["quantiles"]]))
            lines += [row(label, [number(x) for x in c[key]]) for key, label in labels.items()]
    return [*lines, *render_requests(d)]


def _classes(workload: JobWorkload | DagWorkload) -> dict[str, npt.NDArray[np.bool_]]:
    mean_s = column(workload.jobs, "mean_task_s")
    masks = {"all": np.ones(len(mean_s), bool)}
    if workload.short_cutoff_s is not None:
        masks |= {"short": mean_s <= workload.short_cutoff_s, "long": mean_s > workload.short_cutoff_s}
    return masks


def _by_class(
    values: npt.NDArray[Any], masks: dict[str, npt.NDArray[np.bool_]]
) -> dict[str, npt.NDArray[Any]]:
    return {name: values if name == "all" else values[mask] for name, mask in masks.items()}


def _node_counts(busy: float) -> list[int]:
    """Return round node counts at which the load is about 1.1, 0.9, 0.7 and 0.5."""
    counts = []
    for load in (1.1, 0.9, 0.7, 0.5):
        exact = max(busy / load, 1.0)
        digits = max(len(str(int(exact))) - 2, 0)
        counts.append(max(round(exact / 10**digits), 1) * 10**digits)
    return sorted(set(counts))


# What jobs ask for beside time, in numbers: demands of tasks, priorities, gangs, requested run times.

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
