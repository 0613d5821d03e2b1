"""Schedulers of jobs in runs of DAG jobs: beside managers, refused, explained, swept, and in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_network_runs import HERE, shuffle

import emu
from clusters.cluster import load_cluster
from emu.cli import main
from emu.families.dags.testing import check_dag_result
from emu.sweeps.sweep import sweep
from workloads.catalogue import load_workload
from workloads.dags import make_dag_workload

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


def test_the_way_of_a_probe_is_network_and_its_turn_is_a_wait() -> None:
    # Messages take 5 s: a probe, the request, and the task. A second job's probes wait for the first one's tasks.
    work = make_dag_workload("two", [0, 1], [1, 1], [1, 1], [60, 1], np.zeros((0, 3), int), cpu_cores=[1, 1])
    found = emu.run(
        "sparrow",
        work,
        1,
        cluster="homogeneous",
        in_process=True,
        network_delay=5.0,
        network_scheduler="none",
        slots=1,
        output_events="all",
    )
    first, second = (emu.explain(found, job) for job in (0, 1))
    parts = [
        [(link.begin_ns / 1e9, link.end_ns / 1e9, link.cause) for link in of.chain] for of in (first, second)
    ]
    assert parts[0] == [(0, 5, "network"), (5, 10, "network"), (10, 15, "network"), (15, 75, "work")]
    # The first job's second probe is served before, and answered by none 10 s later.
    waits = [(0, 5, "network"), (5, 84, "queueing"), (84, 89, "network"), (89, 94, "network")]
    assert parts[1] == [*waits, (94, 95, "work")]


def test_a_wait_in_a_queue_is_no_failure(tmp_path: Path) -> None:
    # Two tasks of 10 s go to one node; it fails at 15 s, so that the second has waited 10 s and run 5 s for nothing.
    # Its scheduler looks for a node every second, and finds one at 17 s.
    work = make_dag_workload("two", [0, 0], [1, 1], [1, 1], [10, 10], np.zeros((0, 3), int), cpu_cores=[1, 1])
    (tmp_path / "failures.csv").write_text("target,fail_s,repair_s\nnode 0,15,16\n", encoding="utf-8")
    found = emu.run(
        "central-lwl",
        work,
        1,
        cluster="homogeneous",
        in_process=True,
        network_delay=0.0,
        network_scheduler="none",
        slots=1,
        short_cutoff=99.0,
        output_events="all",
        dynamics_failures=tmp_path / "failures.csv",
    )
    parts = [(link.begin_ns / 1e9, link.end_ns / 1e9, link.cause) for link in emu.explain(found, 1).chain]
    assert parts == [(0, 10, "queueing"), (10, 15, "failure"), (15, 17, "queueing"), (17, 27, "work")]


REFUSED = {
    "--scheduler easy --network fair": "easy starts all tasks of a job at once, and DAG jobs run stage by stage",
    "--scheduler hawk --network fair": "--short-cutoff: required: hawk treats short and long jobs apart",
    "--scheduler sparrow,aalo --network fair": "a run has schedulers of one family",
    "--scheduler sparrow --network fair --set resources.passing=2": "not for sparrow",
    "--scheduler sparrow --network fair --set dynamics.mtbf=5min": "sparrow does not run tasks again that have ended",
    "--scheduler sparrow --network fair --set network.input=replicas --set network.locality_wait=5s": (
        "network.locality_wait"
    ),
    "--scheduler central-fifo --network none --set workload_options.tenants=2 --set order=fair"
    " --set ceilings=t1=0.0025": ("a task of stage "),
    "--scheduler sparrow --network fair --set network.registration=pipelined": (
        "pipelined does not go with scheduler=sparrow: a stage goes to a scheduler of jobs when its parents have ended"
    ),
    "--scheduler sparrow --network fair --clock live": "fair does not go with clock=live",
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


def test_the_size_of_a_cluster_is_searched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    over = ["--network", "fair", "--set", "fabric.port_speed=100 Gbps", "--target", "all.mean < 600s"]
    given = ["--scheduler", "sparrow", *FEW[:4], "--in-process", *over]
    assert main(["size", *given, "--high", "64", "--out", str(tmp_path / "s")]) == 0
    assert "nodes" in capsys.readouterr().out
