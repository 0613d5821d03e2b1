"""Runs whose tasks, waits and queues take more together than an int64 of nanoseconds: 9.2 billion seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import emu
from emu.families.dags import utilisation
from emu.results.result import Result
from workloads.arrow import optional_column
from workloads.info import describe
from workloads.jobs import JobWorkload, make_workload

INT64_S = 2**63 / 1e9
DAY_S = 86_400.0
TASKS = 400
HERE: dict[str, Any] = {"in_process": True, "network_delay": 0.0, "cluster": "homogeneous"}


def long_tasks(jobs: int = 8) -> JobWorkload:
    """400 tasks of 460 days each: 16 billion seconds."""
    tasks = [TASKS // jobs] * jobs
    return make_workload("long", np.arange(jobs) * 60.0, tasks, np.full(TASKS, 4e7), short_cutoff_s=1e7)


def negative(values: Any, where: str = "") -> list[str]:
    """Return where in nested values a number is negative."""
    if isinstance(values, dict):
        return [found for name, of in values.items() for found in negative(of, f"{where}.{name}")]
    if isinstance(values, list | tuple):
        return [found for of in values for found in negative(of, where)]
    return [where] if isinstance(values, float | int) and values < 0 else []


def negative_cells(result: Result) -> list[str]:
    """Return the columns of a result in which a number is negative."""
    tables = {name: table for name, table in result.tables.items() if table is not None}
    numeric = {
        f"{name}.{column.name}": optional_column(table, column.name)
        for name, table in tables.items()
        for column in table.schema
        if str(column.type) in ("int64", "double")
    }
    return [name for name, values in numeric.items() if (values < 0).any()]


@pytest.mark.parametrize("scheduler", ["sparrow", "central-lwl", "drf"])
def test_nothing_of_a_result_is_negative(scheduler: str) -> None:
    workload = long_tasks()
    given = HERE | ({"fairness_window": 1e7} if scheduler == "drf" else {})
    result = emu.run(scheduler, workload, nodes=2, slots=50, output_tasks=True, **given)
    assert workload.arrays().duration_ns.sum() < 0, "the sum does not wrap: the test shows nothing"
    assert negative(dict(result.summary)) == []
    assert negative_cells(result) == []
    assert negative(describe(workload)) == []
    assert describe(workload)["task_seconds"] == pytest.approx(1.6e10)


def test_windows_of_fairness_are_widened(monkeypatch: pytest.MonkeyPatch) -> None:
    """16 billion task-seconds are cut into at most so many pieces, whatever the window that was asked for."""
    monkeypatch.setattr(utilisation, "MOST_PIECES", 20_000)
    result = emu.run("drf", long_tasks(), nodes=2, slots=200, fairness_window=60.0, **HERE)
    time_s = optional_column(result.tables["fairness"], "time_s")
    width_s = float(time_s[1] - time_s[0])
    assert width_s == 60.0 * 2 ** np.ceil(np.log2(1.6e10 / 20_000 / 60.0))


def test_schedulers_waits_are_those_of_all_messages() -> None:
    """3,000 arrivals at once and two messages of each task, each of which costs a day: thousands of years."""
    workload = make_workload("many", np.zeros(3000), np.ones(3000, int), np.ones(3000))
    result = emu.run("central-fifo", workload, nodes=5, cost_model="fixed", cost_per_message=DAY_S, **HERE)
    described = result.summary["schedulers"]
    arrivals_s = 3000 * 2999 // 2 * DAY_S
    assert described["wait_mean_s"] * described["messages"] >= arrivals_s > 20 * INT64_S
    assert described["wait_mean_s"] <= described["wait_max_s"]
    assert described["backlog_mean"] <= described["backlog_max"]


def test_what_ran_ahead_on_a_large_node() -> None:
    """Of 3,000 tasks on a node of 1,000 slots, the last thousand waits while 2,000 of 116 days each run."""
    workload = make_workload("one node", np.arange(3000) / 1e3, np.ones(3000, int), np.full(3000, 1e7))
    result = emu.run("random", workload, nodes=1, slots=1000, output_tasks=True, output_events="all", **HERE)
    ahead_s = optional_column(result.tables["tasks"], "ahead_s")
    started = np.sort(optional_column(result.tables["tasks"], "start_s"))
    assert started[-1] == pytest.approx(2e7, rel=1e-3)
    assert ahead_s.max() == pytest.approx(1000 * 2e7, rel=1e-3)
    assert ahead_s.min() >= 0
