"""What the user sees of preemption of DAG jobs: columns, sums by priority, tables, stories, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import emu
from clusters.cluster import build_cluster
from emu.families.dags.terminal_text import more_tables
from emu.results.result import Result
from workloads.dags import DagWorkload, make_dag_workload
from workloads.errors import InputError
from workloads.requests import Requests


class FirstFit:
    """A scheduler of DAG jobs of a user's own, which launches nothing here."""

    def launch(self, stages: Any, machines: Any, now_s: float) -> list[tuple[int, int]]:
        return []


@pytest.fixture
def workload() -> DagWorkload:
    """A job of 10 s; one of higher priority comes at 4 s, another of the lower one at 5 s."""
    ones = [1, 1, 1]
    requests = Requests(priority=[0, 9, 0])
    return make_dag_workload(
        "three", [0.0, 4.0, 5.0], ones, ones, [10.0, 3.0, 1.0], [], cpu_cores=[2, 2, 2], requests=requests
    )


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The file of a cluster of one machine with two cores."""
    pq.write_table(build_cluster("one", [1], cpu_cores=[2]).table, tmp_path / "one.parquet")
    return tmp_path / "one.parquet"


def run_of(workload: DagWorkload, machine: Path, mode: str = "restart", **more: Any) -> Result:
    asked = {"cluster": machine, "network_delay": 0.0, "preemption_mode": mode, **more}
    result = emu.run(asked.pop("scheduler", "drf"), workload=workload, in_process=True, **asked)
    assert isinstance(result, Result)
    return result


def test_evictions_and_lost_work_are_counted_by_job_and_by_priority(
    workload: DagWorkload, machine: Path
) -> None:
    result = run_of(workload, machine, preemption_cost=1.0)
    assert result.jobs["finish_s"].to_pylist() == [18.0, 7.0, 19.0]
    assert result.jobs["evictions"].to_pylist() == [1, 0, 0]
    assert result.jobs["evicted_work_s"].to_pylist() == [5.0, 0.0, 0.0]  # what it had run, and its start
    assert result.jobs["wait_s"].to_pylist() == [0.0, 0.0, 13.0]
    summary = result.summary["jobs"]
    assert (summary["evictions"], summary["evicted_work_s"]) == (1, 5.0)
    of = summary["by_priority"]
    assert [(of[band]["evictions"], of[band]["evicted_work_s"]) for band in ("9", "0")] == [(0, 0), (1, 5)]
    table = next(t for t in more_tables({"a": [result]}, 0.0) if t.title == "Evictions by priority")
    assert [list(row) for row in table.rows] == [["a", "priority 9", "0", "0"], ["a", "priority 0", "1", "5"]]
    assert any("running tasks make room for those of higher priority" in note for note in result.notes)
    # Held from 0 to 19 s without a break, by one task or another.
    assert result.summary["dags"]["used"]["cpu_cores"] == pytest.approx(1.0)


def test_a_run_without_preemption_has_no_column_of_it(workload: DagWorkload, machine: Path) -> None:
    result = run_of(workload, machine, "none")
    assert result.jobs["finish_s"].to_pylist() == [10.0, 13.0, 14.0]
    assert "evictions" not in result.jobs.column_names
    assert "evictions" not in result.summary["jobs"]


def test_an_eviction_is_recorded(workload: DagWorkload, machine: Path) -> None:
    events = run_of(workload, machine, output_events="all").events.to_pandas()
    assert events[events.kind == "EVICT"][["time_ns", "task"]].to_numpy().tolist() == [[4_000_000_000, 0]]


def test_preemption_that_could_not_be_is_refused(workload: DagWorkload, machine: Path) -> None:
    with pytest.raises(InputError, match=r"preemption_mode: nodes evict no tasks under FirstFit; want none"):
        run_of(workload, machine, scheduler=FirstFit)
