"""Invariants of every scheduler of jobs, checked on small workloads."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from clusters.capacity import capacity
from clusters.cluster import Cluster, build_cluster
from clusters.schema import encode_texts
from emu.families.jobs.constraint_check import check_constraints
from emu.results.result import Result
from workloads.arrow import column, optional_column
from workloads.constraints import parse_constraint_set, with_constraints
from workloads.dags import DagWorkload
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import NO_GANG, Requests, gang_nodes

if TYPE_CHECKING:
    from actors.scheduler import Scheduler

from emu.families.result_checks import SLACK_S, head, hold


def check_jobs(scheduler: Scheduler, run_twice: Callable[..., Result]) -> None:
    """Check a scheduler of jobs; `run_twice` emulates a case twice, with the arguments of `emu.run`."""
    classes = {"short_cutoff": 5.0, "long_partition": 0.8}
    for case, workload, nodes, slots in _cases():
        result = run_twice(case, workload, nodes=nodes, slots=slots, **classes)
        check_result(result, workload, nodes, slots, case)
    if scheduler.gangs:
        case, workload, nodes, slots = _gangs()
        result = run_twice(case, workload, nodes=nodes, slots=slots, **classes)
        check_result(result, workload, nodes, slots, case)
        check_gangs(result, workload, case)
    if scheduler.constrained:
        for case, workload, cluster, file in with_files(_constrained_cases()):
            result = run_twice(case, workload, cluster=file, **classes)
            check_result(result, workload, cluster.num_nodes, cluster.max_slots, case)
            check_constraints(result, workload, cluster, case)
    passes = "resources.passing" not in dict(scheduler.ignores)
    for case, workload, cluster, file in with_files(resource_cases(scheduler.gangs)):
        for passing in (0.0, 2.0) if passes else (0.0,):
            own = {"resources_use": "stated", "resources_passing": passing}
            result = run_twice(case, workload, cluster=file, **own, **classes)
            check_result(result, workload, cluster.num_nodes, workload.num_tasks, case)
            check_resources(result, workload, cluster, case)
            if scheduler.gangs:
                check_gangs(result, workload, case)


Case = tuple[str, JobWorkload, Cluster]


def with_files(cases: Iterator[Case]) -> Iterator[tuple[str, JobWorkload, Cluster, Path]]:
    """Yield cases with files of their clusters, which last until the next case."""
    with tempfile.TemporaryDirectory(prefix="emu-check-") as folder:
        for i, (case, workload, cluster) in enumerate(cases):
            file = Path(folder) / f"cluster-{i}.parquet"
            pq.write_table(cluster.table, file)
            yield case, workload, cluster, file


def check_result(
    result: Result, workload: JobWorkload | DagWorkload, nodes: int, slots: int, case: str = "the run"
) -> None:
    """Check a result with tasks against its workload; raises as `check_scheduler`.

    Where soft constraints were dropped, `check_constraints` checks how long the tasks of constrained jobs took.
    """
    assert result.tasks is not None, "the result has no tasks; run with output_tasks=True"
    tasks, jobs = result.tasks.to_pandas(), result.jobs.to_pandas()
    count = f"{workload.num_tasks} tasks arrived, {len(tasks)} are reported"
    hold(len(tasks) == workload.num_tasks, case, count)
    never = tasks.index[tasks.start_s.isna() | tasks.finish_s.isna()]
    hold(len(never) == 0, case, f"{len(never)} tasks never ran, the first of job {head(tasks, never)}")
    off = tasks.index[~tasks.node.between(0, nodes - 1)]
    hold(len(off) == 0, case, f"a task of job {head(tasks, off)} ran on a node that does not exist")
    ran_s = tasks.finish_s - tasks.start_s
    judged = np.ones(len(tasks), bool)
    if result.counters.get("jobs_relaxed", 0):
        judged = ~np.isin(tasks.job_id, column(workload.job_constraints, "job_id"))
    wrong = tasks.index[judged & ((ran_s - column(workload.tasks, "duration_s")).abs() > SLACK_S)]
    hold(len(wrong) == 0, case, f"a task of job {head(tasks, wrong)} did not run for its duration")
    submit_s = np.repeat(jobs.submit_s.to_numpy(), jobs.num_tasks)
    early = tasks.index[tasks.start_s < submit_s - SLACK_S]
    hold(len(early) == 0, case, f"a task of job {head(tasks, early)} started before the job arrived")
    most = int(_most_at_once(tasks, nodes).max())
    hold(most <= slots, case, f"a node of {slots} slots ran {most} tasks at once")
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


def _gangs() -> tuple[str, JobWorkload, int, int]:
    """Return name, workload, nodes and slots of a case with gangs on any nodes, gangs on some, and other jobs."""
    rng = np.random.default_rng(22)
    counts = rng.integers(1, 9, 80)
    asked = Requests(gang_nodes=np.where(rng.random(80) < 0.3, np.nan, rng.integers(0, 4, 80)))
    durations = rng.uniform(0.5, 9.0, counts.sum())
    workload = make_workload("gangs", np.cumsum(rng.exponential(2.0, 80)), counts, durations, requests=asked)
    return "gangs", workload, 5, 8


def check_resources(result: Result, workload: JobWorkload, cluster: Cluster, case: str = "the run") -> None:
    """Check that no node of a result with tasks ever held more of a resource than it has; raises as `check_scheduler`.

    Each task holds what the workload states, or its job where it states nothing, from its start to its end. Amounts are
    counted in whole billionths, so that no sum is rounded.
    """
    assert result.tasks is not None, "the result has no tasks; run with output_tasks=True"
    tasks = result.tasks.to_pandas()
    at_s = np.concatenate([tasks.start_s, tasks.finish_s])
    node = np.concatenate([tasks.node, tasks.node]).astype(np.int64)
    ends = np.repeat([0, 1], len(tasks))
    order = np.lexsort((1 - ends, at_s, node))  # at equal times ends come first
    of_job = np.repeat(np.arange(workload.num_jobs), np.diff(workload.arrays().first_task))
    for name in workload.resources:
        held = np.full(len(tasks), np.nan)
        if name in workload.tasks.column_names:
            held = optional_column(workload.tasks, name).astype(np.float64)
        if name in workload.jobs.column_names:
            held = np.where(np.isnan(held), optional_column(workload.jobs, name)[of_job], held)
        amount = np.round(np.nan_to_num(held) * 1e9).astype(np.int64)
        amount[tasks.finish_s == tasks.start_s] = 0
        sums = np.cumsum(
            np.concatenate([amount, -amount])[order]
        )  # every node ends at 0: one sum serves them all
        over = sums - np.round(capacity(cluster, name) * 1e9).astype(np.int64)[node[order]]
        at = int(np.argmax(over))
        where = int(node[order][at])
        what = (
            f"node {where}, {at_s[order][at]:.9g} s: tasks held {sums[at] / 1e9:.9g} of {name}, and it has "
        )
        hold(over[at] <= 0, case, f"{what}{capacity(cluster, name)[where]:.9g}")


def _most_at_once(tasks: Any, nodes: int) -> np.ndarray:
    """Return, for each node, the largest number of tasks that ran at the same time."""
    some = tasks[tasks.finish_s > tasks.start_s]
    node = np.concatenate([some.node, some.node]).astype(np.int64)
    change = np.repeat([1, -1], len(some))
    # One task ends as the next starts: at equal times ends come first.
    order = np.lexsort((change, np.concatenate([some.start_s, some.finish_s]), node))
    running = np.cumsum(change[order])  # every node ends at 0, so one sum serves them all
    most = np.zeros(nodes, np.int64)
    np.maximum.at(most, node[order], running)
    return most


def _cases() -> Iterator[tuple[str, JobWorkload, int, int]]:
    """Yield name, workload, nodes and slots of small cases, each of which breaks some plausible mistake."""
    rng = np.random.default_rng(20)
    yield "one job of one task", make_workload("one", [0.0], [1], [3.0]), 5, 1
    yield "a job larger than the cluster", make_workload("wide", [0.0, 1.0], [40, 1], [2.0] * 41), 5, 1
    yield "all jobs at once", make_workload("burst", np.zeros(30), [2] * 30, rng.uniform(0.1, 20, 60)), 8, 1
    yield "tasks of no length", make_workload("zero", np.arange(10.0), [3] * 10, [0.0, 1.0, 9.0] * 10), 5, 1
    counts = rng.integers(1, 9, 80)
    durations = np.repeat(np.where(rng.random(80) < 0.8, 2.0, 30.0), counts) * rng.uniform(
        0.5, 1.5, counts.sum()
    )
    mixed = make_workload("mixed", np.cumsum(rng.exponential(2.0, 80)), counts, durations)
    yield "short and long jobs", mixed, 20, 1
    yield "nodes of four slots", mixed, 5, 4


def _constrained_cases() -> Iterator[Case]:
    """Yield name, workload and cluster of small cases in which jobs have constraints."""
    rng = np.random.default_rng(21)
    counts = rng.integers(1, 4, 120)
    short = rng.random(120) < 0.8
    durations = np.repeat(np.where(short, 2.0, 20.0), counts) * rng.uniform(0.5, 1.5, counts.sum())
    workload = make_workload("asking", np.cumsum(rng.exponential(1.0, 120)), counts, durations)
    cluster = build_cluster(
        "of all kinds",
        [1] * 12,
        rack=np.repeat([0, 1, 2], [3, 4, 5]),
        cpu_cores=[2, 4, 8] * 4,
        isa=encode_texts(["x86", "x86", "arm", "arm"] * 3),
        **{"attr:licence": encode_texts(["gold", "", ""] * 4)},
    )

    def asking(*texts: str) -> JobWorkload:
        sets = [parse_constraint_set(text) if text else () for text in texts]
        return with_constraints(workload, sets, np.arange(120) % len(sets))

    yield (
        "hard constraints",
        asking("cores >= 4", "isa = arm and cores < 8", "attr:licence = gold", ""),
        cluster,
    )
    soft = "cores >= 8 soft 1.5 and isa = arm soft 3", "isa = x86 soft and attr:licence != gold soft 1000"
    yield "soft constraints", asking(*soft, "isa = arm"), cluster
    lying = "same-rack", "spread-racks", "spread-nodes and cores >= 4", "same-rack and spread-nodes"
    yield "constraints on how tasks lie", asking(*lying), cluster
    mixed = (
        "cores >= 4 and same-rack soft 1000 and spread-nodes",
        "same-rack soft 1.1 and isa = x86 and spread-nodes soft 2",
    )
    yield "all of these", asking(*mixed), cluster


def resource_cases(gangs: bool = False) -> Iterator[Case]:
    """Yield name, workload and cluster of small cases in which tasks as many as slots need more than a node has.

    `gangs`: one of them has gangs, on any nodes and on some.
    """
    rng = np.random.default_rng(22)
    counts = rng.integers(1, 5, 80)
    tasks = int(counts.sum())
    short = np.repeat(rng.random(80) < 0.8, counts)
    durations = np.where(short, 2.0, 20.0) * rng.uniform(0.5, 1.5, tasks)
    cluster = build_cluster(
        "cores, memory and GPUs",
        [8] * 6,
        cpu_cores=[4, 4, 8] * 2,
        memory_bytes=[8 * 2**30, 16 * 2**30, 16 * 2**30] * 2,
        **{"attr:gpus": encode_texts(["2", "2", "4"] * 2)},
    )

    def asking(requests: Requests) -> JobWorkload:
        return make_workload(
            "asking", np.cumsum(rng.exponential(2.0, 80)), counts, durations, requests=requests
        )

    cores, memory = rng.choice([0.5, 1.0, 4.0], 80), rng.choice([0.1, 3.0, 8.0], 80)
    yield "tasks that need cores", asking(Requests({"cpu_cores": cores})), cluster
    several = {"cpu_cores": cores, "memory_gib": memory, "attr:gpus": rng.choice([0.0, 0.0, 1.0, 2.0], 80)}
    yield "tasks that need several resources", asking(Requests(several)), cluster
    own = {"cpu_cores": rng.choice([0.1, 3.0, np.nan], tasks)}
    yield "tasks of a job that need different amounts", asking(Requests({"cpu_cores": cores}, own)), cluster
    priority = rng.integers(0, 4, 80)
    yield "tasks that need resources, and priorities", asking(Requests(several, priority=priority)), cluster
    if gangs:
        on = rng.choice([np.nan, 0.0, 2.0, 3.0], 80)
        yield (
            "gangs that need resources",
            asking(Requests(several, gang_nodes=on, priority=priority)),
            cluster,
        )
