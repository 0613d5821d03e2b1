"""The story of a job whose tasks hold resources: what it waited for, which entry did not fit, which went first."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import emu
from clusters.cluster import build_cluster
from emu.explaining.explanation import SCREEN, Explanation
from emu.results.result import Result
from workloads.jobs import make_workload
from workloads.requests import Requests

KEPT: dict[str, Any] = {
    "in_process": True,
    "output_events": "all",
    "output_tasks": True,
    "short_cutoff": 100.0,
}


def reasons(story: Explanation) -> str:
    assert story.longest is not None
    text = " ".join(story.longest.reasons)
    assert "slot" not in str(story)
    assert len(str(story).splitlines()) <= SCREEN
    return text


@pytest.mark.parametrize("scheduler", ["sparrow", "hawk", "eagle", "yacc-d", "dist-lwl"])
def test_stories_say_nothing_of_slots(scheduler: str, tmp_path: Path) -> None:
    """Of the five jobs that wait longest; what nodes lacked is a share, and short of screens."""
    rng = np.random.default_rng(4)
    file, count = tmp_path / "cluster.parquet", 120
    pq.write_table(build_cluster("some", [1] * 6, cpu_cores=[2, 4] * 3).table, file)
    requests = Requests(
        demands={"cpu_cores": rng.choice([0.5, 1.0, 2.0], count)}, priority=rng.integers(0, 3, count)
    )
    durations = rng.choice([2.0, 30.0], 2 * count, p=[0.8, 0.2])
    workload = make_workload(
        "mix", np.cumsum(rng.exponential(0.8, count)), [2] * count, durations, requests=requests
    )
    run = emu.run(scheduler, workload, cluster=file, long_partition=0.8, **{**KEPT, "short_cutoff": 10.0})
    assert isinstance(run, Result)
    for job in np.argsort(-np.array(run.jobs["wait_s"].to_pylist()))[:5].tolist():
        story = emu.explain(run, job)
        assert "It needs cpu_cores" in reasons(story)
        assert story.longest is not None
        assert 0.0 <= story.longest.facts.get("lacking", 0.0) <= 1.0
        assert 0.0 <= story.longest.facts["free_share"] <= 1.0


def test_a_run_without_events_is_explained_with_what_evicted_attempts_held(tmp_path: Path) -> None:
    """A job that comes at 1 s waits for what the first held until it was evicted, which no table has."""
    file = tmp_path / "one.parquet"
    pq.write_table(build_cluster("one", [4], cpu_cores=8.0, memory_bytes=16 << 30).table, file)
    asked = Requests({"cpu_cores": [1.0] * 3, "memory_gib": [12.0, 9.0, 9.0]}, priority=[0, 9, 0])
    workload = make_workload("three", [0.0, 4.0, 1.0], [1] * 3, [30.0, 20.0, 5.0], requests=asked)
    result = emu.run(
        "central-lwl", workload, cluster=file, in_process=True, short_cutoff=100.0, preemption_mode="restart"
    )
    row = result.jobs["submit_s"].to_pylist().index(1.0)
    story = emu.explain(result, int(result.jobs["job_id"][row].as_py()))
    assert story.longest is not None
    held = {row["job"]: row["s"] for row in story.longest.holders}
    first = int(result.jobs["job_id"][result.jobs["submit_s"].to_pylist().index(0.0)].as_py())
    assert held[first] == pytest.approx(3.0, abs=0.01)
