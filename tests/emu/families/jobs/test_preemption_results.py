"""What the user sees of preemption: columns, sums by priority, tables, stories, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import emu
from emu.results.result import Result
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests


@pytest.fixture
def workload() -> JobWorkload:
    """A job of 10 s; one of higher priority comes at 4 s, another of the lower one at 5 s."""
    requests = Requests(priority=[0, 9, 0])
    return make_workload("three", [0.0, 4.0, 5.0], [1] * 3, [10.0, 3.0, 1.0], requests=requests)


def run_of(workload: JobWorkload, mode: str = "restart", **more: Any) -> Result:
    asked = {"nodes": 1, "network_delay": 0.0, "short_cutoff": 100.0, "preemption_mode": mode, **more}
    result = emu.run(asked.pop("scheduler", "central-lwl"), workload=workload, **asked)
    assert isinstance(result, Result)
    return result


@pytest.mark.parametrize(("below", "is_noted"), [(0, True), (-3, True), (1, False)])
def test_a_bound_that_protects_all_jobs_is_noted(workload: JobWorkload, below: int, is_noted: bool) -> None:
    result = run_of(workload, preemption_below=below, in_process=True)
    said = f"preemption.below={below} protects all jobs, as the lowest priority of a job is 0: preemption.mode=restart"
    assert any(note.startswith(said) for note in result.notes) == is_noted
    assert (result.jobs["evictions"].to_pylist() == [0, 0, 0]) == is_noted
