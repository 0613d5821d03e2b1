"""Runs of DAG jobs over a network whose coordinator takes time: what they write, stories, and costs from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import emu
from emu.results.reasons import reason_rows
from emu.results.summary_text import render_summary
from tests.actors.dag_settings import mixed_dags, with_bytes
from workloads.arrow import column
from workloads.dags import make_dag_workload

HERE: dict[str, Any] = {
    "in_process": True,
    "network_delay": 0.0,
    "fabric_port_speed": "8 Gbps",
}


def test_what_a_coordinator_does_is_apart_from_what_managers_do() -> None:
    # Two maps, and two reducers that each fetch 1 GB of the other machine. A second job comes at 25 s. The manager has
    # a message of each job and task, the coordinator one registration and two ends, and a decision of one coflow.
    work = make_dag_workload(
        "by hand", [0, 25], [2, 1], [2, 2, 1], [1] * 5, [(0, 0, 1)], cpu_cores=[1] * 3, edge_bytes=[4e9]
    )
    given: dict[str, Any] = {"cost_model": "fixed", "cost_per_message": "0.5 s", "cost_per_coflow": "7.5 s"}
    network = {"network_scheduler": "fifo@rates=greedy", "cluster": "homogeneous", "output_events": "all"}
    run = emu.run("drf", work, 2, **HERE, **network, **given)
    summary = run.summary
    schedulers, coordinator = summary["schedulers"], summary["coordinator"]
    assert (schedulers["count"], schedulers["messages"]) == (1, 7)
    assert coordinator["messages"] == 3
    assert coordinator["cost_mean_s"] * 3 == 9
    assert coordinator["work_s"] * coordinator["intervals"] == pytest.approx(9)
    assert coordinator["busy_while_arriving"] == 9 / 25
    assert "decisions" not in summary
    story = emu.explain(run, 0)
    assert sum(link.end_ns - link.begin_ns for link in story.chain) == column(run.jobs, "jct_s")[0] * 1e9
    assert story.longest is not None
    assert story.longest.link.cause == "fetching"
    assert "What its coordinator does takes time" in " ".join(story.longest.reasons)
    assert "coordinator busy" in render_summary(summary)
    rows = {row[0]: row[1] for row in reason_rows([summary])}
    assert rows["coordinator, busy while work arrived"] != rows["busiest scheduler, busy while work arrived"]


def test_a_coordinator_that_is_busy_is_a_bottleneck() -> None:
    given = {"cost_model": "fixed", "cost_per_flow": "1 s", "network_scheduler": "aalo"}
    run = emu.run("drf", with_bytes(mixed_dags(), 2), 5, **HERE, **given)
    assert [text for text in run.summary["bottlenecks"] if text.startswith("the coordinator of the network")]
    assert not [text for text in run.summary["bottlenecks"] if text.startswith("drf")]


@pytest.mark.parametrize("network", ["philae", "examples/smallest_coflow.py:LeastSent"])
def test_measured_costs_from_a_file(network: str, tmp_path: Path) -> None:
    work, given = with_bytes(mixed_dags(), 2), HERE | {"network_scheduler": network, "network_delay": "1 ms"}
    first = emu.run("drf", work, 5, **given, cost_model="measured", out=tmp_path / "a")
    file = str(tmp_path / "a" / "costs.parquet")
    again = emu.run("drf", work, 5, **given, cost_model="recorded", cost_file=file)
    assert again.jobs.equals(first.jobs)
    assert again.summary["dags"] == first.summary["dags"]
    assert again.summary["coordinator"] == first.summary["coordinator"]
    assert first.costs is not None
    assert first.summary["decisions"]["count"] == sum(first.costs["decides"].to_pylist())
    assert set(column(first.costs, "scheduler")) == {0, 1}
