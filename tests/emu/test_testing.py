"""The checks for schedulers: built-in ones pass, broken results and schedulers do not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import emu
from clusters.cluster import build_cluster
from emu.families.jobs.testing import check_gangs, resource_cases, with_files
from emu.results.result import Result
from emu.testing import check_coflow_result, check_resources, check_result, check_scheduler
from workloads.coflows import CoflowWorkload, make_coflow_workload
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests


class RoundRobin:
    """Keeps going round the nodes."""

    def __init__(self) -> None:
        self.next = 0

    def place(self, job, nodes):
        ids = (self.next + np.arange(job.num_tasks)) % len(nodes.work_left_s)
        self.next = int(ids[-1]) + 1
        return ids


class OutOfRange:
    def place(self, job, nodes):
        return np.full(job.num_tasks, len(nodes.work_left_s))


class TooFew:
    def place(self, job, nodes):
        return np.zeros(job.num_tasks - 1, np.int64)


class Undecided:
    calls = 0

    def place(self, job, nodes):
        Undecided.calls += 1
        return np.random.default_rng(Undecided.calls).integers(0, len(nodes.work_left_s), job.num_tasks)


@pytest.mark.parametrize("scheduler", ["random", "sparrow", "central-fifo", "eagle", RoundRobin])
def test_good_schedulers_pass(scheduler: object) -> None:
    check_scheduler(scheduler)


@pytest.mark.parametrize("scheduler", [OutOfRange, TooFew])
def test_what_is_no_placement_is_refused(scheduler: type) -> None:
    with pytest.raises(InputError, match=scheduler.__name__):
        check_scheduler(scheduler)


def test_a_scheduler_that_is_not_the_same_twice_is_caught() -> None:
    with pytest.raises(AssertionError, match="two different results"):
        check_scheduler(Undecided)


@pytest.fixture(scope="module")
def result(workload: JobWorkload) -> Result:
    return emu.run("sparrow", workload, 6, in_process=True, output_tasks=True)


def changed(result: Result, name: str, change: Callable[[np.ndarray], np.ndarray]) -> Result:
    assert result.tasks is not None
    at = result.tasks.column_names.index(name)
    values = pa.array(change(result.tasks[name].to_numpy().copy()), from_pandas=True)
    return dataclasses.replace(
        result, tables=result.tables | {"tasks": result.tasks.set_column(at, name, values)}
    )


def test_a_good_result_passes(result: Result, workload: JobWorkload) -> None:
    check_result(result, workload, 6, 1)


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("node", lambda v: np.zeros_like(v), "1 slots ran .* tasks at once"),
        ("node", lambda v: v + 1, "node that does not exist"),
        ("start_s", lambda v: v - 1e4, "did not run for its duration"),
        ("start_s", lambda v: np.where(np.arange(len(v)) == 3, np.nan, v), "1 tasks never ran"),
    ],
)
def test_broken_results_are_caught(
    result: Result, workload: JobWorkload, name: str, change: Callable[..., np.ndarray], expected: str
) -> None:
    with pytest.raises(AssertionError, match=expected):
        check_result(changed(result, name, change), workload, 6, 1)


def test_tasks_before_their_job_are_caught(result: Result, workload: JobWorkload) -> None:
    both = changed(changed(result, "start_s", lambda v: v - 1e4), "finish_s", lambda v: v - 1e4)
    with pytest.raises(AssertionError, match="before the job arrived"):
        check_result(both, workload, 6, 1)


def test_gangs_that_do_not_start_together_or_lie_elsewhere_are_caught() -> None:
    asked = Requests(gang_nodes=[np.nan, 0, 2])
    gangs = make_workload("gangs", [0, 1, 2], [2, 2, 2], [5.0] * 6, requests=asked)
    ran = emu.run("central-fcfs-gang", gangs, nodes=3, output_tasks=True, in_process=True)
    check_gangs(ran, gangs)
    with pytest.raises(AssertionError, match="tasks of gang 1 did not start at one time"):
        check_gangs(changed(ran, "start_s", lambda v: v + np.arange(len(v))), gangs)
    with pytest.raises(AssertionError, match="gang 2 ran on another number of nodes"):
        check_gangs(changed(ran, "node", lambda v: np.zeros_like(v)), gangs)


@pytest.mark.parametrize("of", ["job", "task"])
def test_a_node_that_holds_more_than_it_has_is_caught(of: str, tmp_path: Path) -> None:
    """Two tasks of 0.6 cores on a node of two slots and one core, which run at once where each takes a slot."""
    cluster = build_cluster("one core", [2], cpu_cores=[1])
    pq.write_table(cluster.table, tmp_path / "cluster.parquet")
    stated = {"cpu_cores": [0.6, 0.6]}
    requests = Requests(stated) if of == "job" else Requests({"cpu_cores": [1.0, np.nan]}, stated)
    workload = make_workload("two", [0.0, 1.0], [1, 1], [5.0, 5.0], requests=requests)

    def run(use: str) -> Result:
        given = {"workload": workload, "cluster": tmp_path / "cluster.parquet", "resources_use": use}
        return emu.run("sparrow", **given, in_process=True, output_tasks=True)

    check_resources(run("stated"), workload, cluster)
    with pytest.raises(AssertionError, match=r"node 0, .* s: tasks held 1.2 of cpu_cores, and it has 1"):
        check_resources(run("slots"), workload, cluster)


def test_slots_would_break_each_case_with_resources(tmp_path: Path) -> None:
    """A run in which tasks take slots, whatever they need, holds too much in each of the cases."""
    found = 0
    for case, workload, cluster, file in with_files(resource_cases()):
        settings = {"cluster": file, "resources_use": "slots", "in_process": True, "output_tasks": True}
        result = emu.run("sparrow", workload, short_cutoff=5.0, **settings)
        with pytest.raises(AssertionError, match=f"{case}: node .* tasks held"):
            check_resources(result, workload, cluster, case)
        found += 1
    assert found == 4


class LeastSent:
    def order(self, coflows, now_s):
        return np.argsort(coflows.bytes_sent, kind="stable")


class OldestAlone:
    """Only the coflow that came first is served, its flows at equal shares of what is there."""

    def rates(self, coflows, flows, now_s):
        full = np.minimum(flows.ingress_bytes_per_s[flows.ingress], flows.egress_bytes_per_s[flows.egress])
        return np.where(flows.coflow == 0, full, 0.0) / len(flows.coflow)


@pytest.mark.parametrize("scheduler", ["fifo", "fair", LeastSent, OldestAlone])
def test_good_schedulers_of_coflows_pass(scheduler: object) -> None:
    check_scheduler(scheduler)


@pytest.fixture(scope="module")
def sent() -> tuple[Result, CoflowWorkload]:
    speed = np.full(3, 1e6)
    workload = make_coflow_workload(
        "two", [0.0, 1.0], [2, 1], [0, 1, 0], [2, 2, 1], [4e6, 2e6, 3e6], 3,
        ingress_bytes_per_s=speed, egress_bytes_per_s=speed,
    )  # fmt: skip
    return emu.run("fifo", workload, in_process=True, output_tasks=True), workload


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("start_s", lambda v: v - 1.0, "started before the coflow arrived"),
        ("start_s", lambda v: np.where(np.arange(len(v)) == 1, np.nan, v), "1 flows never ended"),
        ("finish_s", lambda v: v * 0.5 + 0.5, "egress port 2 carried|ingress port 0 carried"),
        ("finish_s", lambda v: v + 1.0, "did not finish with its last flow"),
    ],
)
def test_broken_results_of_coflows_are_caught(
    sent: tuple[Result, CoflowWorkload], name: str, change: Callable[..., np.ndarray], expected: str
) -> None:
    result, workload = sent
    check_coflow_result(result, workload)
    assert result.flows is not None
    at = result.flows.column_names.index(name)
    values = pa.array(change(result.flows[name].to_numpy().copy()), from_pandas=True)
    broken = dataclasses.replace(
        result, tables=result.tables | {"flows": result.flows.set_column(at, name, values)}
    )
    with pytest.raises(AssertionError, match=expected):
        check_coflow_result(broken, workload)
