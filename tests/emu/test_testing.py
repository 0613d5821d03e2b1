"""The checks for schedulers: good ones pass; schedulers and results that are broken do not, and the error says how."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import emu
from actors.schedulers.registry import find_scheduler
from emu.families.coflows import testing as of_coflows
from emu.families.dags import testing as of_dags
from emu.families.drawn_cases import ALL, Case, arguments
from emu.families.jobs import testing as of_jobs
from emu.results.result import Result
from emu.testing import check_coflow_result, check_resources, check_result, check_scheduler
from workloads.errors import InputError


class RoundRobin:
    """Keeps going round the nodes."""

    def __init__(self) -> None:
        self.next = 0

    def place(self, job: Any, nodes: Any) -> np.ndarray:
        ids = (self.next + np.arange(job.num_tasks)) % len(nodes.work_left_s)
        self.next = int(ids[-1]) + 1
        return ids


class OutOfRange:
    def place(self, job: Any, nodes: Any) -> np.ndarray:
        return np.full(job.num_tasks, len(nodes.work_left_s))


class TooFew:
    def place(self, job: Any, nodes: Any) -> np.ndarray:
        return np.zeros(job.num_tasks - 1, np.int64)


class Undecided:
    calls = 0

    def place(self, job: Any, nodes: Any) -> np.ndarray:
        Undecided.calls += 1
        return np.random.default_rng(Undecided.calls).integers(0, len(nodes.work_left_s), job.num_tasks)


class LeastSent:
    def order(self, coflows: Any, now_s: float) -> np.ndarray:
        return np.argsort(coflows.bytes_sent, kind="stable")


class OldestAlone:
    """Only the coflow that came first is served, its flows at equal shares of what is there."""

    def rates(self, coflows: Any, flows: Any, now_s: float) -> np.ndarray:
        full = np.minimum(flows.ingress_bytes_per_s[flows.ingress], flows.egress_bytes_per_s[flows.egress])
        return np.where(flows.coflow == 0, full, 0.0) / len(flows.coflow)


# Built-in schedulers are checked by the same code, in more cases: tests/actors/test_conformance.py
@pytest.mark.parametrize("scheduler", ["random", "fair", "drf", RoundRobin, LeastSent, OldestAlone])
def test_good_schedulers_pass(scheduler: object) -> None:
    check_scheduler(scheduler)


@pytest.mark.parametrize("scheduler", [OutOfRange, TooFew])
def test_what_is_no_placement_is_refused(scheduler: type) -> None:
    with pytest.raises(InputError, match=scheduler.__name__):
        check_scheduler(scheduler)


def test_a_scheduler_that_is_not_the_same_twice_is_caught() -> None:
    with pytest.raises(AssertionError, match="two different results"):
        check_scheduler(Undecided)


class Ran(NamedTuple):
    """A case of a scheduler, and its result."""

    scheduler: Any
    case: Case
    result: Result
    testing: Any

    def check(self, result: Result) -> None:
        self.testing.check_case(self.scheduler, self.case, result)

    def broken(self, table: str, name: str, change: Callable[[np.ndarray], Any]) -> Result:
        """Return the result with another column."""
        tables = self.result.tables
        values = tables[table][name].to_numpy()
        column = pa.array(change(values.copy()), tables[table][name].type, from_pandas=True)
        at = tables[table].column_names.index(name)
        return dataclasses.replace(
            self.result, tables=tables | {table: tables[table].set_column(at, name, column)}
        )


def ran(name: str, testing: Any, seed: int, **given: Any) -> Ran:
    """Run a case with these values of parameters."""
    scheduler = find_scheduler(name)
    case = testing.draw_case(scheduler, seed, given)
    with arguments(case) as settings:
        result = emu.run(name, case.workload, **settings, in_process=True, output_tasks=True, seed=7)
    testing.check_case(scheduler, case, result)
    return Ran(scheduler, case, result, testing)


def plain(testing: Any, scheduler: str, features: str, monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Run a case that has these features and no others."""
    monkeypatch.setattr(testing, "drawn_features", lambda rng, names, which: set(features.split()))
    return ran(scheduler, testing, 0)


def third_never(v: np.ndarray) -> np.ndarray:
    return np.where(np.arange(len(v)) == 3, np.nan, v)


@pytest.mark.parametrize(
    ("table", "name", "change", "expected"),
    [
        ("tasks", "node", np.zeros_like, r"slots ran \d+ tasks at once"),
        ("tasks", "node", lambda v: v + 100, "node that does not exist"),
        (
            "tasks",
            "start_s",
            lambda v: v - 1e4,
            "started before the job arrived|did not run for its duration",
        ),
        ("tasks", "start_s", third_never, "1 tasks never ran"),
        (
            "tasks",
            "finish_s",
            lambda v: v + 0.01,
            "did not run for its duration|at once|finish with its last",
        ),
        ("jobs", "start_s", lambda v: v + 0.01, "did not start with its first task"),
        ("jobs", "finish_s", lambda v: v + 0.01, "did not finish with its last task"),
        ("jobs", "job_class", lambda v: np.full(len(v), "long"), "another class|for short ones"),
        ("timeline", "running_short", lambda v: v + 1, "counts other short tasks that are running"),
        ("timeline", "queued_long", lambda v: v + 1, "counts other long tasks that are queued"),
    ],
)
def test_broken_results_of_jobs_are_caught(
    table: str, name: str, change: Callable[..., Any], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = plain(of_jobs, "sparrow", "", monkeypatch)
    with pytest.raises(AssertionError, match=expected):
        run.check(run.broken(table, name, change))
    check_result(run.result, run.case.workload, run.case.cluster.num_nodes, run.case.cluster.slots())


def test_slots_would_break_a_case_with_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a run in which tasks take slots, whatever they need, nodes hold too much."""
    run = plain(of_jobs, "sparrow", "resources", monkeypatch)
    run.check(run.result)
    with arguments(run.case) as settings:
        settings = {n: v for n, v in settings.items() if not n.startswith("resources")} | {
            "resources_use": "slots"
        }
        slots = emu.run("sparrow", run.case.workload, **settings, in_process=True, output_tasks=True)
    with pytest.raises(AssertionError, match=r"node \d+, .* s: tasks held .* and it has"):
        check_resources(slots, run.case.workload, run.case.cluster)


@pytest.mark.parametrize(
    ("table", "name", "change", "expected"),
    [
        (
            "tasks",
            "start_s",
            lambda v: v + np.arange(len(v)) * 1e-3,
            "did not start at one time|for its duration",
        ),
        ("attempts", "node", np.zeros_like, r"ran on node|slots ran|tasks held"),
        ("attempts", "end_s", lambda v: v + 50, r"ran on node|slots ran|tasks held"),
        ("jobs", "evictions", lambda v: v + 1, "evictions of jobs, and"),
    ],
)
def test_broken_results_with_failures_and_evictions_are_caught(
    table: str, name: str, change: Callable[..., Any], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = "gangs priorities preemption failures resources"
    run = plain(of_jobs, "easy", features, monkeypatch)
    assert run.result.counters["evictions"] > 0
    assert run.result.counters["tasks_lost"] > 0
    with pytest.raises(AssertionError, match=expected):
        run.check(run.broken(table, name, change))


@pytest.mark.parametrize(
    ("table", "name", "change", "expected"),
    [
        ("flows", "start_s", lambda v: v - 1.0, "started before the coflow arrived"),
        ("flows", "start_s", third_never, "1 flows never ended"),
        ("flows", "finish_s", lambda v: v * 0.5 + 0.05, "port .* carried|finish with its last flow"),
        ("flows", "finish_s", lambda v: v + 1.0, "did not finish with its last flow"),
        ("coflows", "start_s", lambda v: v + 0.01, "did not start with its first flow"),
    ],
)
def test_broken_results_of_coflows_are_caught(
    table: str, name: str, change: Callable[..., Any], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = plain(of_coflows, "sebf", "", monkeypatch)
    check_coflow_result(run.result, run.case.workload)
    with pytest.raises(AssertionError, match=expected):
        run.check(run.broken(table, name, change))


@pytest.mark.parametrize(
    ("table", "name", "change", "expected"),
    [
        ("tasks", "node", np.zeros_like, "machine 0 held more than it has"),
        ("tasks", "start_s", lambda v: np.full_like(v, v.max()), "for its duration"),
        ("jobs", "jct_s", lambda v: v * 0.01, "before its critical path allows"),
    ],
)
def test_broken_results_of_dags_are_caught(
    table: str, name: str, change: Callable[..., Any], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = plain(of_dags, "drf", "", monkeypatch)
    with pytest.raises(AssertionError, match=expected):
        run.check(run.broken(table, name, change))


def test_a_stage_that_did_not_wait_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    run = plain(of_dags, "drf", "", monkeypatch)
    a, said_s = run.case.workload.arrays(), run.case.workload.tasks["duration_s"].to_numpy()
    arrival_s = np.repeat(a.submit_ns, np.diff(a.first_task)) / 1e9
    early = run._replace(result=run.broken("tasks", "start_s", lambda v: arrival_s))
    with pytest.raises(AssertionError, match=r"did not wait for its parents|finish with its last task"):
        run.check(early.broken("tasks", "finish_s", lambda v: arrival_s + said_s))


@pytest.mark.parametrize("name", ["eagle-c", "conservative", "philae", "carbyne"])
def test_a_case_may_have_all_that_a_scheduler_declares(name: str) -> None:
    scheduler = find_scheduler(name)
    testing = {"jobs": of_jobs, "coflows": of_coflows, "dags": of_dags}[scheduler.family]
    case = testing.draw_case(scheduler, 0, features=ALL)
    assert all(feature in case.name for feature in testing.features_of(scheduler))
    assert case.name != testing.draw_case(scheduler, 1).name
    again = testing.draw_case(scheduler, 0, features=ALL)
    assert (again.settings, again.parameters) == (case.settings, case.parameters)
    assert again.workload.fingerprint() == case.workload.fingerprint()
