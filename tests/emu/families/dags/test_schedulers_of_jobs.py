"""Schedulers of jobs in runs of DAG jobs: beside managers, refused, explained, swept, and in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_network_runs import HERE, shuffle

import emu
from clusters.cluster import load_cluster
from emu.cli import main
from emu.families.dags.testing import check_dag_result
from emu.sweeps.sweep import sweep
from workloads.catalogue import load_workload

FEW = ["--workload", "query-dags", "--set", "workload_options.jobs=3", "--nodes", "4", "--in-process"]


def test_managers_and_schedulers_of_jobs_are_compared(tmp_path: Path) -> None:
    found = emu.compare(
        ["drf", "sparrow", "central-lwl"], shuffle(), 2, **HERE, short_cutoff=9.0, out=tmp_path / "runs"
    )
    assert [summary["scheduler"] for summary in found.summaries] == ["drf", "sparrow", "central-lwl"]
    assert {summary["dags"]["moved_bytes"] for summary in found.summaries} == {2e9}
    # Maps and reducers of 1 s, and between them a second in which each reducer fetches 1 GB.
    assert [summary["jobs"]["all"]["mean"] for summary in found.summaries] == [3.0, 3.0, 3.0]


def test_stages_are_run_in_order_where_the_network_is_none() -> None:
    apart, staged = (
        emu.run("sparrow", shuffle(), 1, in_process=True, network_delay=0.0, slots=4, **given)
        for given in ({}, {"network_scheduler": "none"})
    )
    assert (apart.family, staged.family) == ("jobs", "dags")
    assert apart.summary["jobs"]["all"]["mean"] == 1.0
    assert staged.summary["jobs"]["all"]["mean"] == 2.0
    lost = "precedence between stages is left out"
    assert (lost in apart.notes, lost in staged.notes) == (True, False)


@pytest.mark.parametrize("scheduler", ["sparrow", "hawk", "eagle", "central-lwl", "yacc-d"])
def test_machines_hold_no_more_than_they_have(scheduler: str) -> None:
    work = load_workload("query-dags", options={"jobs": 4})
    given: dict[str, Any] = {"network_scheduler": "none", "short_cutoff": "60%", "long_partition": "80%"}
    nodes = load_cluster("carbyne", 20)
    found = emu.run(scheduler, work, 20, in_process=True, cluster="carbyne", output_tasks=True, **given)
    check_dag_result(found, work, nodes)


@pytest.mark.parametrize("network", ["fair", "sebf"])
def test_the_chain_of_a_job_whose_stages_go_to_a_scheduler_of_jobs(network: str) -> None:
    given = HERE | {"network_delay": 0.25, "network_scheduler": network, "short_cutoff": 9.0}
    story = emu.explain(emu.run("central-lwl", shuffle(), 2, **given, output_events="all"), 0)
    parts = [(link.begin_ns / 1e9, link.end_ns / 1e9, link.cause) for link in story.chain]
    # A message to the node, the map, one to the scheduler and one back; of a coflow two more before it is sent.
    fetched = 2.75 if network == "fair" else 3.25
    assert parts == [
        (0.0, 0.25, "network"),
        (0.25, 1.25, "work"),
        (1.25, 1.5, "network"),
        (1.5, 1.75, "network"),
        (1.75, fetched, "fetching"),
        (fetched, fetched + 1.0, "work"),
    ]
    assert "waited until its scheduler heard of the end of task" in story.chain[2].what


REFUSED = {
    "--scheduler easy --network fair": "easy starts all tasks of a job at once, and DAG jobs run stage by stage",
    "--scheduler hawk --network fair": "--short-cutoff: required: hawk treats short and long jobs apart",
    "--scheduler sparrow,aalo --network fair": "a run has schedulers of one family",
    "--scheduler sparrow --network fair --set resources.passing=2": "not for sparrow",
    "--scheduler sparrow --network fair --set dynamics.mtbf=5min": "fair does not go with dynamics.mtbf",
    "--scheduler sparrow --network fair --clock windows": "fair does not go with clock=windows",
}


@pytest.mark.parametrize("given", REFUSED)
def test_what_does_not_go_with_it_is_refused(
    given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["run", *FEW, "--out", str(tmp_path / "r"), *given.split()])
    error = [line for line in capsys.readouterr().err.splitlines() if "note:" not in line]
    assert code == 2
    assert len(error) == 1
    assert REFUSED[given] in error[0]


def test_a_sweep_over_schedulers_and_networks(tmp_path: Path) -> None:
    axes = {"scheduler": ["drf", "sparrow"], "network.scheduler": ["none", "fair"]}
    base = {"nodes": 2, "cluster": "homogeneous", "network": {"delay": 0}, "fabric": {"port_speed": "8 Gbps"}}
    given = {**base, "workload": shuffle(), "sweep": axes}
    found = sweep(given, out=tmp_path, in_process=True, progress=False)
    means = {(row["scheduler"], row["network"]): row["jobs.all.mean"] for row in found.rows}
    whole = {"none": 2.0, "fair": 3.0}
    assert means == {(name, network): whole[network] for name in ("drf", "sparrow") for network in whole}


def test_the_size_of_a_cluster_is_searched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    over = ["--network", "fair", "--set", "fabric.port_speed=100 Gbps", "--target", "all.mean < 600s"]
    given = ["--scheduler", "sparrow", *FEW[:4], "--in-process", *over]
    assert main(["size", *given, "--high", "64", "--out", str(tmp_path / "s")]) == 0
    assert "nodes" in capsys.readouterr().out
