"""What tasks hold of nodes in a run: which resources, for how long, and what the run says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import emu
from clusters.cluster import build_cluster
from emu.families.jobs.resources import work_s
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests


def three(**more: Any) -> JobWorkload:
    """Three tasks of 10 s, each of which needs 2 cores and 1 GiB, one after another."""
    asked = Requests({"cpu_cores": [2.0] * 3, "memory_gib": [1.0] * 3}, **more)
    return make_workload("three", [0.0, 1.0, 2.0], [1, 1, 1], [10.0] * 3, requests=asked)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """One node of 4 slots, 2 cores and 8 GiB."""
    cluster = build_cluster("machine", [4], cpu_cores=2.0, memory_bytes=8 << 30)
    pq.write_table(cluster.table, tmp_path / "machine.parquet")
    return tmp_path / "machine.parquet"


def test_the_scarcest_resource_takes_the_longest() -> None:
    cluster = build_cluster("two", [1, 3], cpu_cores=[4.0, 8.0], memory_bytes=[2 << 30, 2 << 30])
    assert work_s(three(), cluster, ()).tolist() == [7.5]
    assert work_s(three(), cluster, ("cpu_cores", "memory_gib")).tolist() == pytest.approx([5.0, 7.5])


@pytest.mark.parametrize("use", ["stated", "memory_gib", "cpu_cores, memory_gib"])
def test_a_resource_that_only_dropped_jobs_state_is_not_held(machine: Path, use: str) -> None:
    asked = Requests({"cpu_cores": [1.0] * 3, "memory_gib": [np.nan, np.nan, 64.0]})
    jobs = make_workload("large-last", [0.0, 1.0, 2.0], [1, 1, 1], [10.0] * 3, requests=asked)
    given: dict[str, Any] = {
        "cluster": machine,
        "resources_use": use,
        "in_process": True,
        "short_cutoff": 60.0,
    }
    for load in (None, 0.5):
        result = emu.run("central-lwl", jobs, infeasible="drop", load=load, **given)
        assert result.summary["jobs"]["all"]["count"] == 2
        assert set(result.summary["jobs"].get("used", {})) == (
            {"cpu_cores"} if use != "memory_gib" else set()
        )
    with pytest.raises(InputError, match="needs 64 of memory_gib"):
        emu.run("central-lwl", jobs, **given)
