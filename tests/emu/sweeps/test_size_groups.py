"""Targets of `emu size` on jobs of a priority, or of a tenant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emu.results.measures import Measure
from emu.results.result import read_result
from emu.sweeps.sizing import size
from emu.sweeps.targets import Target, read_targets
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

HERE: dict[str, Any] = {"in_process": True, "tolerance": 0, "network_delay": 0}


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("priority:9.wait.p99 < 60s", Target("priority:9", Measure("wait", "p99"), True, 60.0)),
        ("priority:-1.p99.9<=2", Target("priority:-1", Measure("", "p99.9"), False, 2.0)),
        ("tenant:ads.slowdown.mean < 3", Target("tenant:ads", Measure("slowdown", "mean"), True, 3.0)),
        ("tenant:a<b.p99 < 60s", Target("tenant:a<b", Measure("", "p99"), True, 60.0)),
        ("tenant:web.team 7.max < 1h", Target("tenant:web.team 7", Measure("", "max"), True, 3600.0)),
    ],
)
def test_groups_are_read_and_written(text: str, target: Target) -> None:
    assert read_targets([text]) == (target,)
    assert read_targets([str(target)]) == (target,)


def mixed(jobs: int = 60) -> JobWorkload:
    """Two jobs of 4.5 s each second, the second more important and of another tenant."""
    is_second = np.arange(2 * jobs) % 2
    asked = Requests(priority=np.where(is_second, 9.0, np.nan))
    submit_s = (np.arange(2 * jobs) // 2).astype(float)
    tenants = [("batch", "web.team")[which] for which in is_second]
    return make_workload("mixed", submit_s, [1] * 2 * jobs, [4.5] * 2 * jobs, requests=asked, tenant=tenants)


def test_a_priority_needs_fewer_nodes_than_all_jobs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    given = {**HERE, "short_cutoff": 10, "low": 2, "high": 16}
    of_all = size("wait.p99 < 6s", "central-lwl", mixed(), **given)
    first = size("priority:9.wait.p99 < 6s", "central-lwl", mixed(), **given)
    assert of_all.nodes is not None
    assert first.nodes is not None
    assert first.nodes < of_all.nodes
    last = size(["priority:0.wait.p99 < 6s"], "central-lwl", mixed(), **given)
    tenant = size("tenant:batch.wait.p99 < 6s", "central-lwl", mixed(), **given)
    assert last.nodes == tenant.nodes  # the same jobs; a job that states no priority has 0
    run = read_result(first.path / f"nodes={first.nodes}" / "seed=1")
    waits = run.jobs["wait_s"].to_numpy()[run.jobs["priority"].fill_null(0).to_numpy() == 9]
    probe = next(p for p in first.probes if p.nodes == first.nodes)
    assert probe.values[0][0] == pytest.approx(np.percentile(waits, 99))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("priority:7.p99 < 60s", "mixed has no jobs of priority 7; there are 0 and 9"),
        ("tenant:web.p99 < 60s", "mixed has no jobs of tenant 'web'; did you mean 'web.team'"),
    ],
)
def test_a_group_without_jobs_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=rf"^--target: .*{expected}"):
        size(text, "random", mixed(), **HERE)
    assert not Path("runs").exists()
