"""Checks for a scheduler of one's own: what every scheduler must hold, tried on small hard workloads.

    from emu.testing import check_constraints, check_scheduler
    check_scheduler(MyScheduler)
    check_constraints(emu.run("phoenix", …, output_tasks=True))
"""  # fmt: skip

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from actors.schedulers.registry import find_scheduler
from clusters.cluster import Cluster, build_cluster
from clusters.schema import encode_texts
from emu.families.jobs.constraint_check import check_constraints
from emu.results.result import Result
from emu.running.run import run
from workloads.arrow import column
from workloads.coflows import CoflowWorkload, make_coflow_workload
from workloads.constraints import parse_constraint_set, with_constraints
from workloads.jobs import JobWorkload, make_workload

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["check_coflow_result", "check_constraints", "check_result", "check_scheduler"]

SLACK_S = 1e-6
"""Times in tables are rounded: two equal ones may differ by less than this."""


def check_scheduler(
    scheduler: Any, parameters: Mapping[str, Any] | None = None, *, in_process: bool = True
) -> None:
    """Check that a scheduler runs every task once, within slots, not too early, and the same way twice.

    Of a constraint-aware scheduler also that tasks run where their jobs' constraints let them (`check_constraints`). Of
    a scheduler of coflows: that every flow is sent once, not too early, and never more than ports can carry.

    Parameters
    ----------
    scheduler : str, class or object
        As `emu.run` takes it.
    parameters : mapping, optional
        Of the scheduler.
    in_process : bool
        False also checks that the scheduler can be hosted by Ray.

    Raises
    ------
    AssertionError
        What does not hold, and in which case.
    InputError
        The scheduler returned something that is no placement, or neither an order nor rates.
    """
    found = find_scheduler(scheduler)

    def run_twice(case: str, workload: JobWorkload | CoflowWorkload, **settings: Any) -> Result:
        settings |= {"parameters": parameters, "in_process": in_process, "output_tasks": True, "seed": 7}
        first, again = (run(scheduler, workload, **settings) for _ in range(2))
        _hold(first.heads.equals(again.heads), case, "the same seed gave two different results")
        return first

    if found.family == "coflows":
        for case, coflows in _coflow_cases():
            check_coflow_result(run_twice(case, coflows), coflows, case)
        return
    classes = {"short_cutoff": 5.0, "long_partition": 0.8}
    for case, workload, nodes, slots in _cases():
        result = run_twice(case, workload, nodes=nodes, slots=slots, **classes)
        check_result(result, workload, nodes, slots, case)
    if found.constrained:
        with tempfile.TemporaryDirectory(prefix="emu-check-") as folder:
            for i, (case, workload, cluster) in enumerate(_constrained_cases()):
                file = Path(folder) / f"cluster-{i}.parquet"
                pq.write_table(cluster.table, file)
                result = run_twice(case, workload, cluster=file, **classes)
                check_result(result, workload, cluster.num_nodes, cluster.max_slots, case)
                check_constraints(result, workload, cluster, case)


def check_result(
    result: Result, workload: JobWorkload, nodes: int, slots: int, case: str = "the run"
) -> None:
    """Check a result with tasks against its workload; raises as `check_scheduler`.

    Where jobs did without soft constraints, `check_constraints` judges how long the tasks of constrained jobs took.
    """
    assert result.tasks is not None, "the result has no tasks; run with output_tasks=True"
    tasks, jobs = result.tasks.to_pandas(), result.jobs.to_pandas()
    _hold(
        len(tasks) == workload.num_tasks,
        case,
        f"{workload.num_tasks} tasks arrived, {len(tasks)} are reported",
    )
    never = tasks.index[tasks.start_s.isna() | tasks.finish_s.isna()]
    _hold(len(never) == 0, case, f"{len(never)} tasks never ran, the first of job {_head(tasks, never)}")
    off = tasks.index[~tasks.node.between(0, nodes - 1)]
    _hold(len(off) == 0, case, f"a task of job {_head(tasks, off)} ran on a node that does not exist")
    ran_s = tasks.finish_s - tasks.start_s
    judged = np.ones(len(tasks), bool)
    if result.counters.get("jobs_relaxed", 0):
        judged = ~np.isin(tasks.job_id, column(workload.job_constraints, "job_id"))
    wrong = tasks.index[judged & ((ran_s - tasks.duration_s).abs() > SLACK_S)]
    _hold(len(wrong) == 0, case, f"a task of job {_head(tasks, wrong)} did not run for its duration")
    submit_s = np.repeat(jobs.submit_s.to_numpy(), jobs.num_tasks)
    early = tasks.index[tasks.start_s < submit_s - SLACK_S]
    _hold(len(early) == 0, case, f"a task of job {_head(tasks, early)} started before the job arrived")
    most = int(_most_at_once(tasks, nodes).max())
    _hold(most <= slots, case, f"a node of {slots} slots ran {most} tasks at once")
    last_s = tasks.groupby("job_id").finish_s.max().loc[jobs.job_id].to_numpy()
    _hold(bool((np.abs(last_s - jobs.finish_s) < 1.0).all()), case, "a job did not finish with its last task")


def check_coflow_result(result: Result, workload: CoflowWorkload, case: str = "the run") -> None:
    """Check a result with flows against its workload, whose ports have speeds; raises as `check_scheduler`."""
    assert result.flows is not None, "the result has no flows; run with output_tasks=True"
    assert result.coflows is not None
    flows, coflows = result.flows.to_pandas(), result.coflows.to_pandas()
    _hold(
        len(flows) == workload.num_flows,
        case,
        f"{workload.num_flows} flows arrived, {len(flows)} are reported",
    )
    never = flows.index[flows.start_s.isna() | flows.finish_s.isna()]
    _hold(len(never) == 0, case, f"{len(never)} flows never ended, the first of coflow {_head(flows, never)}")
    arrival_s = coflows.set_index("coflow_id").arrival_s.loc[flows.coflow_id].to_numpy()
    early = flows.index[flows.start_s < arrival_s - SLACK_S]
    _hold(len(early) == 0, case, f"a flow of coflow {_head(flows, early)} started before the coflow arrived")
    for side in ("ingress", "egress"):
        speeds = column(workload.ports, f"{side}_bytes_per_s")
        for port, sent in flows.groupby(side):
            most = _most_bytes_over(sent, speeds[port])
            _hold(
                most <= speeds[port] * SLACK_S, case, f"{side} port {port} carried {most:.0f} bytes too many"
            )
    last_s = flows.groupby("coflow_id").finish_s.max().loc[coflows.coflow_id].to_numpy()
    ended = bool((np.abs(last_s - coflows.finish_s) < SLACK_S).all())
    _hold(ended, case, "a coflow did not finish with its last flow")


def _most_bytes_over(flows: pd.DataFrame, bytes_per_s: float) -> float:
    """Return by how much flows of a port exceed what it can carry, at most, from the start of one to the end of one.

    What starts and ends between two times has been sent between them, whatever the rates were.
    """
    most = 0.0
    by_end = flows.sort_values("finish_s")
    for begin_s in flows.start_s.unique():
        within = by_end[by_end.start_s >= begin_s]
        room = (within.finish_s - begin_s) * bytes_per_s
        most = max(most, float((within.size_bytes.cumsum() - room).max()))
    return most


def _coflow_cases() -> Iterator[tuple[str, CoflowWorkload]]:
    """Yield name and workload of small cases, for ports of 1 to 4 MB/s."""
    rng = np.random.default_rng(20)

    def case(
        arrival_s: Any, width: Any, ingress: Any, egress: Any, size: Any, ports: int = 5
    ) -> CoflowWorkload:
        speed = 1e6 * (1 + np.arange(ports) % 4)
        return make_coflow_workload(
            "case", arrival_s, width, ingress, egress, size, ports,
            ingress_bytes_per_s=speed, egress_bytes_per_s=speed[::-1],
        )  # fmt: skip

    yield "one coflow of one flow", case([0.0], [1], [0], [1], [3e6])
    yield "a port that sends to itself", case([0.0, 1.0], [1, 2], [2, 2, 1], [2, 2, 2], [3e6, 1e6, 1e6])
    yield "two flows between the same ports", case([0.0], [3], [0, 0, 1], [3, 3, 3], [1e6, 2e6, 4e6])
    pairs = rng.permutation(64)
    yield (
        "all coflows at once, wide and thin",
        case(np.zeros(16), [1, 7] * 8, pairs // 8, pairs % 8, rng.lognormal(13, 1, 64), 8),
    )
    width = rng.integers(1, 20, 30)
    pairs = np.concatenate([rng.choice(64, k, replace=False) for k in width])
    size = rng.lognormal(13, 1.5, width.sum()) + 1
    yield (
        "coflows that come and go",
        case(np.cumsum(rng.exponential(2.0, 30)), width, pairs // 8, pairs % 8, size, 8),
    )


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


def _constrained_cases() -> Iterator[tuple[str, JobWorkload, Cluster]]:
    """Yield name, workload and cluster of small cases in which jobs ask for more than there is."""
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


def _head(table: pd.DataFrame, rows: pd.Index) -> Any:
    """Return whose the first of some rows of tasks, or of flows, is."""
    return table.iloc[:, 0][rows[0]] if len(rows) else None


def _hold(holds: bool, case: str, what: str) -> None:
    if not holds:
        raise AssertionError(f"{case}: {what}")
