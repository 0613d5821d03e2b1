"""Invariants of every scheduler of jobs, checked on small drawn cases, from the tables of results alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clusters.capacity import capacity
from clusters.cluster import Cluster, build_cluster
from clusters.schema import encode_texts
from emu.families.drawn_cases import (
    Case,
    draw_parameters,
    drawn_features,
    draws_of,
    effective_settings,
)
from emu.families.jobs.constraint_check import check_tasks
from emu.families.result_checks import SLACK_S, head, hold
from emu.results.result import Result
from workloads.arrow import column, optional_column
from workloads.constraints import parse_constraint_set, with_constraints
from workloads.dags import DagWorkload
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import NO_GANG, Requests, gang_nodes

if TYPE_CHECKING:
    import pandas as pd

    from actors.scheduler import Scheduler

SHAPES = ("mixed", "burst", "mixed", "wide", "short tasks", "few")
"""What the jobs of a case are like, in turn."""
# Whole seconds and a few odd ones: many events fall on one instant, and some tasks take no time.
DURATIONS_S = (0, 0.0005, 1, 2, 2, 2.5, 4, 6, 8, 20, 30)
GAPS_S = (0, 0, 0.5, 1, 2, 4)
CONSTRAINTS = ("cores >= 4", "cores < 8", "clock >= 2 GHz", "isa = arm", "isa != arm", "rack != 1",
               "tags = ssd", "attr:gen >= 3", "attr:licence = gold", 'attr:licence = ""', "kernel >= 4.4")  # fmt: skip
LYING = ("", "", "same-rack", "spread-nodes", "spread-racks", "same-rack and spread-nodes")
PRICES = ("", "", " soft", " soft 1.25", " soft 2", " soft 3")
DEMANDS = {
    "cpu_cores": (0.0, 1e-9, 0.1, 0.3, 1.0, 2.000000001, 4.0),
    "memory_gib": (0.0, 0.7, 5.0, 16.0),
    "attr:gpus": (0.0, 0.0, 1.0, 1.5, 2.0),
}
"""What tasks may need: all of it at once fits on the first node."""
TEXTS = {"weights": "t0=5", "guarantees": "t0=0.6,t1=0.1", "ceilings": "t0=0.7"}
"""Values of parameters that are text: of tenants t0, t1 and t2."""
SLOWDOWN = 2.0  # of stragglers


def features_of(scheduler: Scheduler) -> tuple[str, ...]:
    """Return what cases of a scheduler may have."""
    ignored = dict(scheduler.ignores)
    return (
        "tenants",
        *(("constraints",) if scheduler.constrained else ()),
        *(("gangs",) if scheduler.gangs else ()),
        "resources",
        "priorities",
        *(("preemption",) if scheduler.preempts else ()),
        "failures",
        "stragglers",
        "speeds",
        *(("estimates",) if "estimates" not in ignored else ()),
        "costs",
        "delays",
    )


def draw_case(
    scheduler: Scheduler, seed: int, given: Mapping[str, Any] | None = None, features: str | None = None
) -> Case:
    """Return the case of a seed, with features that the scheduler declares: each by chance, or `drawn_cases.ALL`.

    `given` are values of parameters; others are drawn.
    """
    rng, shape = draws_of(scheduler, seed), SHAPES[seed % len(SHAPES)]
    has = drawn_features(rng, features_of(scheduler), features)
    if TEXTS.keys() & {name for name, value in (given or {}).items() if value}:
        has.add("tenants")
    texts = TEXTS if "tenants" in has else None
    parameters = draw_parameters(rng, scheduler, given or {}, scale_s=2.0, texts=texts)
    cluster = _draw_cluster(rng, alike=scheduler.own is not None)
    workload = _draw_workload(rng, shape, has)
    if "constraints" in has:
        workload = _constrained(rng, workload)
    settings: dict[str, Any] = {
        "infeasible": "drop",
        "short_cutoff": rng.choice([0.5, 3.0, 100.0]),
        "long_partition": rng.choice([1.0, 0.7, 0.5]),
        "network_delay": rng.choice([0.0005, 0.0005, 0.25, 0.75]),
        "resources_use": "slots",
        "timeline_period": 5.0,
    }
    if "resources" in has:
        settings |= {"resources_use": "stated", "resources_passing": rng.choice([0.0, 0.5, 5.0])}
    if "speeds" in has:
        settings["machine_speed"] = True
    if "estimates" in has:
        error, size = [("constant", -0.9), ("constant", 0.5), ("random", 0.9)][rng.integers(3)]
        settings |= {"estimates_error": error, "estimates_size": size}
    if "delays" in has:
        settings |= {"network_spread": 0.3, "network_cross_rack_delay": 0.9}
    if "costs" in has:
        settings |= {
            "cost_model": "fixed",
            "cost_per_message": 0.01,
            "cost_per_job": 0.1,
            "cost_per_task": 0.02,
        }
    files = {}
    settings |= draw_trouble(rng, has)
    if "failures" in has:
        files["dynamics_failures"] = draw_outages(rng, cluster.num_nodes)
    name = ", ".join([f"case {seed} ({shape}", *sorted(has)]) + ")"
    settings = {name: _plain(value) for name, value in effective_settings(scheduler, settings).items()}
    return Case(name, workload, settings, parameters, cluster, files)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def draw_trouble(rng: np.random.Generator, has: set[str]) -> dict[str, Any]:
    """Return settings of preemption, failures and stragglers, as far as a case has them."""
    settings: dict[str, Any] = {}
    if "preemption" in has:
        settings |= {
            "preemption_mode": rng.choice(["restart", "checkpoint"]),
            "preemption_cost": rng.choice([0.0, 0.3]),
            "preemption_most": rng.choice([1, 2, 1000]),
            "preemption_order": rng.choice(["youngest", "oldest"]),
        }
        if rng.random() < 0.3:
            settings["preemption_below"] = 2
    if "failures" in has:
        settings["dynamics_detection"] = rng.choice([0.0, 2.0])
        if rng.random() < 0.5:
            settings["dynamics_failover"] = 0.5
        if rng.random() < 0.5:
            settings |= {"dynamics_mtbf": 120.0, "dynamics_mttr": 5.0}
    if "stragglers" in has:
        settings |= {"dynamics_straggler_share": 0.3, "dynamics_straggler_slowdown": SLOWDOWN}
    return {name: _plain(value) for name, value in settings.items()}


def draw_outages(rng: np.random.Generator, nodes: int) -> pa.Table:
    """Return outages of half of the nodes and of schedulers, none of them for good, some right after another."""
    rows = [("scheduler 0", 2.0, 7.0), ("central", 1.0, 4.0)]
    for node in rng.permutation(nodes)[: max(nodes // 2, 1)].tolist():
        fail_s, lasts_s = float(rng.integers(1, 25)), float(rng.choice([0.5, 4.0, 12.0]))
        rows += [(f"node {node}", fail_s, fail_s + lasts_s)]
        rows += [(f"node {node}", fail_s + lasts_s + 0.5, fail_s + lasts_s + 9.0)] * int(rng.integers(2))
    return pa.table([*zip(*rows, strict=True)], names=["target", "fail_s", "repair_s"])


def _draw_cluster(rng: np.random.Generator, alike: bool) -> Cluster:
    """Return nodes in three racks that differ in all that is asked for; `alike`: all can hold what the first can."""
    nodes = int(rng.integers(6, 12))

    def each(first: Any, *others: Any, hold: bool = False) -> list[Any]:
        drawn = rng.choice([first, *others], nodes - 1).tolist()
        return [first, *([first] * (nodes - 1) if hold and alike else drawn)]

    return build_cluster(
        "drawn",
        each(3, 1, 1, 2),
        rack=np.sort(np.arange(nodes) % 3),
        cpu_cores=each(8, 4, 2, hold=True),
        memory_bytes=np.array(each(16, 1, 5, hold=True)) * 2**30,
        clock_hz=each(2e9, 1e9, 3e9),
        kernel=each(4 * 10**12, 5 * 10**12),
        speed=each(1.0, 0.5, 2.0),
        isa=encode_texts(each("arm", "x86")),
        tags=encode_texts(each("gpu ssd", "", "ssd")),
        **{
            "attr:gen": encode_texts(each("3", "1", "", "new")),
            "attr:licence": encode_texts(each("gold", "")),
            "attr:gpus": encode_texts(each("3", "1.5", "", hold=True)),
        },
    )


def _draw_workload(rng: np.random.Generator, shape: str, has: set[str]) -> JobWorkload:
    """Return jobs of one to seven tasks, of which the first is of one task that needs nothing."""
    jobs = 3 if shape == "few" else int(rng.integers(12, 24))
    counts = rng.integers(1, 8 if shape == "mixed" else 4, jobs)
    counts[0] = 1
    if shape == "wide":
        counts[1] = 40
    gaps_s = np.zeros(jobs) if shape == "burst" else rng.choice(GAPS_S, jobs)
    tasks = int(counts.sum())
    durations_s = rng.choice(DURATIONS_S[:5] if shape == "short tasks" else DURATIONS_S, tasks)
    unstated = np.arange(jobs) == 0

    def stated(values: Any, often: float = 1.0) -> npt.NDArray[np.float64]:
        amounts = rng.choice(np.array(values, float), jobs)
        return np.where(unstated | (rng.random(jobs) >= often), np.nan, amounts)

    demands: dict[str, Any] = {}
    of_tasks: dict[str, Any] = {}
    if "resources" in has:
        names = [*rng.permutation(list(DEMANDS))[: rng.integers(1, 4)]]
        demands = {str(name): stated(DEMANDS[name], 0.8) for name in names}
        demands[str(names[0])][1] = 1.0
        own = rng.choice([0.1, 1.0], tasks)
        own[rng.random(tasks) < 0.7] = np.nan
        of_tasks = {str(names[0]): np.where(np.arange(tasks) == 0, np.nan, own)}
    evicts = "priorities" in has or "preemption" in has
    requests = Requests(
        demands,
        of_tasks,
        priority=rng.integers(0, 4, jobs) if evicts else None,
        gang_nodes=stated([0, 0, 1, 2, 3], 0.7) if "gangs" in has else None,
        requested_s=rng.choice([2.0, 10.0, 60.0], jobs) if "gangs" in has else None,
    )
    tenant = [f"t{job % 3}" for job in range(jobs)] if "tenants" in has else None
    return make_workload("drawn", np.cumsum(gaps_s), counts, durations_s, tenant=tenant, requests=requests)


def _constrained(rng: np.random.Generator, workload: JobWorkload) -> JobWorkload:
    """Return the jobs, most of which have hard and soft constraints on nodes, and on how their tasks lie."""
    texts = []
    for _ in range(5):
        asked = [*rng.choice(CONSTRAINTS, rng.integers(0, 3), replace=False), *[rng.choice(LYING)]]
        priced = rng.permutation(PRICES)
        parts = [part for text in asked for part in str(text).split(" and ") if part]
        texts.append(" and ".join(part + price for part, price in zip(parts, priced, strict=False)))
    sets = [parse_constraint_set(text) for text in texts if text]
    of_jobs = rng.integers(-1, len(sets), workload.num_jobs)
    of_jobs[0] = -1
    return with_constraints(workload, sets, of_jobs) if sets else workload


def check_case(scheduler: Scheduler, case: Case, result: Result) -> None:
    """Check the result of a drawn case by its tables alone; raises as `check_scheduler`."""
    name, settings, cluster, workload = (
        case.name,
        case.settings,
        case.cluster,
        result.workload or case.workload,
    )
    assert cluster is not None
    assert isinstance(workload, JobWorkload)
    holds_slots = settings["resources_use"] == "slots"
    slots = cluster.slots() if holds_slots else np.full(cluster.num_nodes, workload.num_tasks)
    check_result(result, workload, cluster.num_nodes, slots, name, lasting=False)
    speed = column(cluster.table, "speed") if settings.get("machine_speed") else np.ones(cluster.num_nodes)
    check_durations(case, result, workload, speed)
    check_troubles(case, result)
    if not holds_slots:
        check_resources(result, workload, cluster, name)
    if scheduler.gangs and "network_spread" not in settings:
        check_gangs(result, workload, name)
    plain = not settings.get("dynamics_straggler_share") and "preemption_mode" not in settings
    assert result.tasks is not None
    if workload.job_constraints.num_rows:
        check_tasks(
            result.tasks.to_pandas(),
            workload,
            cluster,
            relaxed=result.counters.get("jobs_relaxed", 0),
            machine_speed=settings.get("machine_speed", False),
            straggling=not plain,
            case=name,
        )
    tasks, jobs = result.tasks.to_pandas(), result.jobs.to_pandas()
    by_job = jobs.set_index("job_id").loc[tasks.job_id]
    early = tasks.start_s < by_job.submit_s.to_numpy() + settings["network_delay"] - SLACK_S
    hold(not early.any(), name, "a task started before a message about its job could be at a node")
    if scheduler.own is None and holds_slots and not workload.job_constraints.num_rows:
        _check_partition(case, by_job.job_class.to_numpy() == "long", tasks.node.to_numpy())
    _check_heads(jobs, tasks, result, settings["short_cutoff"], name)
    check_timeline(result, name)


def _check_partition(case: Case, is_long: npt.NDArray[np.bool_], node: npt.NDArray[Any]) -> None:
    """Check that tasks of long jobs, where a scheduler knows them, keep off the nodes that are for short ones."""
    settings, cluster = case.settings, case.cluster
    assert cluster is not None
    if {"estimates_error", "dynamics_detection"} & settings.keys():  # it misjudges jobs, or has no other node
        return
    strays = is_long & (node < cluster.partition(settings.get("long_partition", 1.0)))
    hold(not strays.any(), case.name, "a task of a long job ran on a node that is for short ones")


def _check_heads(jobs: pd.DataFrame, tasks: pd.DataFrame, result: Result, cutoff_s: float, case: str) -> None:
    """Check that jobs start and finish with their tasks, and have the class of their mean duration."""
    first_s = tasks.groupby("job_id").start_s.min()
    if result.attempts is not None:
        before = result.attempts.to_pandas().groupby("job_id").start_s.min()
        first_s = first_s.combine(before, min).fillna(first_s)
    off = np.abs(first_s.loc[jobs.job_id].to_numpy() - jobs.start_s) > SLACK_S
    hold(not off.any(), case, "a job did not start with its first task")
    last_s = tasks.groupby("job_id").finish_s.max().loc[jobs.job_id].to_numpy()
    hold(
        bool((np.abs(last_s - jobs.finish_s) < SLACK_S).all()),
        case,
        "a job did not finish with its last task",
    )
    long = (jobs.job_class == "long") == (jobs.mean_task_s > cutoff_s)
    hold(bool(long.all()), case, "a job is in another class than its mean duration says")


def check_timeline(result: Result, case: str) -> None:
    """Check that the timeline counts tasks: a row at t shows what has happened before t, and nothing that happens then.

    Where tasks are evicted or lost a row counts attempts that the table of tasks does not have.
    """
    timeline = result.timeline.to_pandas()
    if result.attempts is not None or timeline.empty:
        return
    assert result.tasks is not None
    tasks, jobs = result.tasks.to_pandas(), result.jobs.to_pandas().set_index("job_id")
    of_job = jobs.loc[tasks.job_id]
    at_s = timeline.time_s.to_numpy()[:, None]
    near = np.abs(np.concatenate([tasks.start_s, tasks.finish_s, of_job.submit_s])[None, :] - at_s) < SLACK_S
    clear = ~near.any(axis=1)
    for of_class in ("short", "long"):
        own = (of_job.job_class == of_class).to_numpy()
        start_s, finish_s = tasks.start_s.to_numpy()[own], tasks.finish_s.to_numpy()[own]
        queued = ((of_job.submit_s.to_numpy()[own] < at_s) & (start_s > at_s)).sum(axis=1)
        running = ((start_s < at_s) & (finish_s > at_s)).sum(axis=1)
        for what, counted in (("queued", queued), ("running", running)):
            shown = timeline[f"{what}_{of_class}"].to_numpy()
            right = bool((shown == counted)[clear].all())
            hold(right, case, f"the timeline counts other {of_class} tasks that are {what}")


def check_durations(case: Case, result: Result, workload: Any, speed: Any) -> None:
    """Check that tasks took what the workload says, by the speed [N] of nodes, or what stragglers and evictions make.

    Where soft constraints were dropped, `check_constraints` checks how long the tasks of constrained jobs took.
    """
    assert result.tasks is not None
    tasks, settings = result.tasks.to_pandas(), case.settings
    ran_s, said_s = (tasks.finish_s - tasks.start_s).to_numpy(), column(workload.tasks, "duration_s")
    said_s = said_s / speed[tasks.node.to_numpy(np.int64)]
    factors = (1.0, SLOWDOWN) if settings.get("dynamics_straggler_share") else (1.0,)
    costs_s, mode = {0.0, settings.get("preemption_cost", 0.0)}, settings.get("preemption_mode", "none")
    judged = np.ones(len(tasks), bool)
    if result.counters.get("jobs_relaxed", 0):
        judged = ~np.isin(tasks.job_id, column(workload.job_constraints, "job_id"))
    if mode == "checkpoint":
        right = ran_s <= said_s * factors[-1] + max(costs_s) + SLACK_S
    else:
        wanted = [said_s * factor + cost for factor in factors for cost in costs_s]
        right = (np.abs(np.array(wanted) - ran_s) <= SLACK_S).any(axis=0)
    wrong = tasks.index[judged & ~right]
    hold(len(wrong) == 0, case.name, f"a task of job {head(tasks, wrong)} did not run for its duration")
    slow = (ran_s > said_s + max(costs_s) + SLACK_S) & judged
    if len(factors) > 1 and mode == "none" and judged.all():
        stretched = int((slow & (said_s > 0)).sum())
        most = result.counters.get("stragglers", 0)
        hold(stretched <= most, case.name, f"{stretched} tasks took longer, and {most} straggle")


def check_troubles(case: Case, result: Result) -> None:
    """Check that no attempt at a task ran on a node that was down, and that those that came to nothing add up."""
    assert result.tasks is not None
    counters, spans = result.counters, _attempts(result)
    lost = least = 0
    if result.attempts is not None:
        lost = least = result.attempts.num_rows
        if "gang_nodes" in case.workload.jobs.column_names or case.parameters.get("gangs") == "all":
            # Tasks of a gang that have ended, or were on their way to a node, run again with it, and are not counted.
            tried = result.attempts.to_pandas()
            least = int((~tried.ended & (tried.end_s > tried.start_s)).sum())
    ended = counters.get("evictions", 0) + counters.get("tasks_lost", 0) + counters.get("run_again", 0)
    hold(least <= ended <= lost, case.name, f"{lost} attempts came to nothing, and {ended} are counted")
    if "evictions" in result.jobs.column_names:
        evicted = int(np.sum(column(result.jobs, "evictions")))
        what = f"{evicted} evictions of jobs, and {counters.get('evictions', 0)} are counted"
        hold(evicted == counters.get("evictions", 0), case.name, what)
    if "dynamics_failures" not in case.files:
        return
    for target, fail_s, repair_s in zip(*case.files["dynamics_failures"].to_pydict().values(), strict=True):
        if target.startswith("node "):
            here = spans[spans.node == int(target.split()[1])]
            over = (here.start_s < repair_s - SLACK_S) & (here.finish_s > fail_s + SLACK_S)
            hold(not over.any(), case.name, f"a task ran on {target} between {fail_s:g} and {repair_s:g} s")


def _attempts(result: Result) -> pd.DataFrame:
    """Return node, start and end of all attempts at tasks, of their jobs and numbers there."""
    import pandas as pd

    assert result.tasks is not None
    names = ["job_id", "task", "node", "start_s", "finish_s"]
    ran = result.tasks.to_pandas()[names]
    if result.attempts is None:
        return ran
    before = result.attempts.to_pandas().rename(columns={"end_s": "finish_s"})[names]
    return pd.concat([ran, before], ignore_index=True)


def check_result(
    result: Result,
    workload: JobWorkload | DagWorkload,
    nodes: int,
    slots: int | npt.NDArray[np.int64],
    case: str = "the run",
    *,
    lasting: bool = True,
) -> None:
    """Check a result with tasks against its workload; raises as `check_scheduler`.

    Where soft constraints were dropped, `check_constraints` checks how long the tasks of constrained jobs took.

    Parameters
    ----------
    slots : int or array of int, shape (N,)
        Of every node, or of each.
    lasting : bool
        Whether tasks take as long as the workload says: not where they straggle, are evicted, or nodes differ in speed.
    """
    assert result.tasks is not None, "the result has no tasks; run with output_tasks=True"
    tasks, jobs = result.tasks.to_pandas(), result.jobs.to_pandas()
    count = f"{workload.num_tasks} tasks arrived, {len(tasks)} are reported"
    hold(len(tasks) == workload.num_tasks, case, count)
    never = tasks.index[tasks.start_s.isna() | tasks.finish_s.isna()]
    hold(len(never) == 0, case, f"{len(never)} tasks never ran, the first of job {head(tasks, never)}")
    off = tasks.index[~tasks.node.between(0, nodes - 1)]
    hold(len(off) == 0, case, f"a task of job {head(tasks, off)} ran on a node that does not exist")
    if lasting:
        ran_s = tasks.finish_s - tasks.start_s
        judged = np.ones(len(tasks), bool)
        if result.counters.get("jobs_relaxed", 0):
            judged = ~np.isin(tasks.job_id, column(workload.job_constraints, "job_id"))
        wrong = tasks.index[judged & ((ran_s - column(workload.tasks, "duration_s")).abs() > SLACK_S)]
        hold(len(wrong) == 0, case, f"a task of job {head(tasks, wrong)} did not run for its duration")
    submit_s = np.repeat(jobs.submit_s.to_numpy(), jobs.num_tasks)
    early = tasks.index[tasks.start_s < submit_s - SLACK_S]
    hold(len(early) == 0, case, f"a task of job {head(tasks, early)} started before the job arrived")
    room = np.broadcast_to(slots, nodes)
    over = np.flatnonzero((most := _most_at_once(_attempts(result), nodes)) > room)
    if len(over):
        raise AssertionError(f"{case}: a node of {room[over[0]]} slots ran {most[over[0]]} tasks at once")
    last_s = tasks.groupby("job_id").finish_s.max().loc[jobs.job_id].to_numpy()
    hold(bool((np.abs(last_s - jobs.finish_s) < 1.0).all()), case, "a job did not finish with its last task")


def check_gangs(result: Result, workload: JobWorkload, case: str = "the run") -> None:
    """Check that the tasks of each gang started at one time, on the nodes that it states; raises as `check_scheduler`.

    Where delays of messages vary, tasks that are sent at one time do not start at one.
    """
    assert result.tasks is not None, "the result has no tasks; run with output_tasks=True"
    of_job = result.tasks.to_pandas().groupby("job_id", sort=False)
    wanted = gang_nodes(workload.jobs)
    spans, on = of_job.start_s.agg(np.ptp).to_numpy(), of_job.node.nunique().to_numpy()
    apart = np.flatnonzero((wanted != NO_GANG) & (spans > SLACK_S))
    jobs = column(workload.jobs, "job_id")
    hold(len(apart) == 0, case, f"the tasks of gang {_first(jobs, apart)} did not start at one time")
    wanted = np.minimum(wanted, column(workload.jobs, "num_tasks"))
    wrong = np.flatnonzero((wanted > 0) & (on != wanted))
    hold(len(wrong) == 0, case, f"gang {_first(jobs, wrong)} ran on another number of nodes than it states")


def _first(jobs: np.ndarray, rows: np.ndarray) -> str:
    return str(jobs[rows[0]]) if len(rows) else ""


def check_resources(result: Result, workload: JobWorkload, cluster: Cluster, case: str = "the run") -> None:
    """Check that no node of a result with tasks ever held more of a resource than it has; raises as `check_scheduler`.

    Each attempt at a task holds what the workload states, or its job where it states nothing, from its start to its
    end. Amounts are counted in whole billionths, so that no sum is rounded.
    """
    assert result.tasks is not None, "the result has no tasks; run with output_tasks=True"
    spans = _attempts(result)
    first = workload.arrays().first_task[:-1]
    row = dict(zip(column(workload.jobs, "job_id").tolist(), first.tolist(), strict=True))
    of_span = spans.job_id.map(row).to_numpy(np.int64) + spans.task.to_numpy(np.int64)
    at_s = np.concatenate([spans.start_s, spans.finish_s])
    node = np.concatenate([spans.node, spans.node]).astype(np.int64)
    ends = np.repeat([0, 1], len(spans))
    order = np.lexsort((1 - ends, at_s, node))  # at equal times ends come first
    of_job = np.repeat(np.arange(workload.num_jobs), np.diff(workload.arrays().first_task))
    for name in workload.resources:
        held = np.full(workload.num_tasks, np.nan)
        if name in workload.tasks.column_names:
            held = optional_column(workload.tasks, name).astype(np.float64)
        if name in workload.jobs.column_names:
            held = np.where(np.isnan(held), optional_column(workload.jobs, name)[of_job], held)
        amount = np.round(np.nan_to_num(held) * 1e9).astype(np.int64)[of_span]
        amount[spans.finish_s == spans.start_s] = 0
        # every node ends at 0: one sum serves them all
        sums = np.cumsum(np.concatenate([amount, -amount])[order])
        over = sums - np.round(capacity(cluster, name) * 1e9).astype(np.int64)[node[order]]
        at = int(np.argmax(over))
        where = int(node[order][at])
        what = (
            f"node {where}, {at_s[order][at]:.9g} s: tasks held {sums[at] / 1e9:.9g} of {name}, and it has "
        )
        hold(over[at] <= 0, case, f"{what}{capacity(cluster, name)[where]:.9g}")


def _most_at_once(spans: Any, nodes: int) -> np.ndarray:
    """Return, for each node, the largest number of tasks that ran at the same time."""
    some = spans[spans.finish_s > spans.start_s]
    node = np.concatenate([some.node, some.node]).astype(np.int64)
    change = np.repeat([1, -1], len(some))
    # One task ends as the next starts: at equal times ends come first.
    order = np.lexsort((change, np.concatenate([some.start_s, some.finish_s]), node))
    running = np.cumsum(change[order])  # every node ends at 0, so one sum serves them all
    most = np.zeros(nodes, np.int64)
    np.maximum.at(most, node[order], running)
    return most
