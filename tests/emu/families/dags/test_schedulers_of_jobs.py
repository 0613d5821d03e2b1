"""Schedulers of jobs in runs of DAG jobs: beside managers, refused, explained, swept, and in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_network_runs import HERE, shuffle

import emu
from clusters.cluster import load_cluster
from emu.families.dags.testing import check_dag_result
from emu.sweeps.sweep import sweep
from tests.actors.dag_settings import mixed_dags, with_bytes
from workloads.catalogue import load_workload


def test_managers_and_schedulers_of_jobs_are_compared(tmp_path: Path) -> None:
    found = emu.compare(
        ["drf", "sparrow", "central-lwl"], shuffle(), 2, **HERE, short_cutoff=9.0, out=tmp_path / "runs"
    )
    assert [summary["scheduler"] for summary in found.summaries] == ["drf", "sparrow", "central-lwl"]
    assert {summary["dags"]["moved_bytes"] for summary in found.summaries} == {2e9}
    # Maps and reducers of 1 s, and between them a second in which each reducer fetches 1 GB.
    assert [summary["jobs"]["all"]["mean"] for summary in found.summaries] == [3.0, 3.0, 3.0]


@pytest.mark.parametrize("scheduler", ["sparrow", "hawk", "eagle", "central-lwl", "yacc-d"])
def test_machines_hold_no_more_than_they_have(scheduler: str) -> None:
    work = load_workload("query-dags", options={"jobs": 2})
    given: dict[str, Any] = {"network_scheduler": "none", "short_cutoff": "60%", "long_partition": "80%"}
    nodes = load_cluster("carbyne", 20)
    found = emu.run(scheduler, work, 20, in_process=True, cluster="carbyne", output_tasks=True, **given)
    check_dag_result(found, work, nodes)


def test_a_sweep_over_schedulers_and_networks(tmp_path: Path) -> None:
    axes = {"scheduler": ["drf", "sparrow"], "network.scheduler": ["none", "fair"]}
    base = {"nodes": 2, "cluster": "homogeneous", "network": {"delay": 0}, "workload": shuffle()}
    given = {**base, "fabric": {"port_speed": "8 Gbps"}, "sweep": axes}
    found = sweep(given, out=tmp_path / "networks", in_process=True, progress=False)
    means = {(row["scheduler"], row["network"]): row["jobs.all.mean"] for row in found.rows}
    whole = {"none": 2.0, "fair": 3.0}
    assert means == {(name, network): whole[network] for name in ("drf", "sparrow") for network in whole}
    given = {**base, "sweep": {"scheduler": ["sparrow", "drf"]}}
    found = sweep(given, out=tmp_path / "mixed", in_process=True, progress=False)
    assert [(row["scheduler"], row["jobs.all.mean"]) for row in found.rows] == [
        ("sparrow", 2.0),
        ("drf", 2.0),
    ]


def test_the_size_of_a_cluster_is_searched(tmp_path: Path) -> None:
    given = {"network_scheduler": "fair", "fabric_port_speed": "100 Gbps", "in_process": True}
    found = emu.size(
        "all.mean < 60s", "sparrow", with_bytes(mixed_dags(6), 1), high=64, out=tmp_path, **given
    )
    assert found.nodes is not None
