"""Logs from public reports, with values counted by programs that share nothing with the readers."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from workloads.arrow import column
from workloads.catalogue import load_workload
from workloads.critical_path import earliest_ends_ns
from workloads.dags import DagWorkload

CASES = Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[3].parent / "shared") / "cases"

pytestmark = [
    pytest.mark.reference,
    pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not here"),
]


@pytest.mark.parametrize(
    ("case", "jobs", "tasks", "task_s", "note"),
    [
        ("05-swf-extra/chains.swf", 12, 28, 50_400, "repaired 8: jobs that wait for a preceding job"),
        ("05-swf-extra/jaros1.swf", 12, 28, 50_400, "repaired 12: lines with more than 18 fields"),
        ("05-swf-extra/wide21.swf", 40, 1_248, 77_905_582, "repaired 40: lines with more than 18 fields"),
        ("07-sacct-recycled/clusters.txt", 3, 6, 600, ""),
        ("07-sacct-recycled/jobs.txt", 3, 6, 12_060, ""),
        ("10-sacct-reqcpus/jobs.txt", 2, 80, 57_600, "allocated processors unknown"),
        ("11-k8s-null-times/pods.json", 1, 1, 60, "dropped 1: pods without the time"),
    ],
)
def test_what_a_log_holds(case: str, jobs: int, tasks: int, task_s: float, note: str) -> None:
    found = load_workload(CASES / case)
    assert (found.num_jobs, found.num_tasks) == (jobs, tasks)
    assert column(found.tasks, "duration_s").sum() == task_s
    assert note in " ".join(found.notes)


def test_what_jobs_of_a_dump_asked_for() -> None:
    jobs = load_workload(CASES / "10-sacct-reqcpus" / "jobs.txt").jobs
    assert jobs["memory_gib"].to_pylist() == [4 / 64, 4 / 16]
    assert jobs["gang_nodes"].to_pylist() == [1, 1]
    assert jobs["requested_s"].to_pylist() == [3600.0, None]


@pytest.mark.parametrize("name", ["chains.swf", "jaros1.swf"])
def test_each_chain_takes_as_long_as_its_jobs(name: str) -> None:
    found = load_workload(CASES / "05-swf-extra" / name, options={"family": "dags"})
    assert isinstance(found, DagWorkload)
    ends_s = earliest_ends_ns(found) / 1e9
    assert np.maximum.reduceat(ends_s, found.arrays().first_task[:-1]).tolist() == [4_200.0] * 4
