"""Several networks in one sweep, and runs with and without a network beside each other."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from test_network_runs import HERE, shuffle

import emu
from emu.cli import main
from emu.results.run_groups import workload_hash
from emu.sweeps.sweep import sweep
from workloads.arrow import column
from workloads.dags import DagWorkload, make_dag_workload

GRID: dict[str, Any] = {"nodes": 2, "cluster": "homogeneous", "network": {"delay": 0}}
SPEEDS = ["8 Gbps", "16 Gbps"]
NETWORKS = ["none", "fair", "sebf"]


def with_demands() -> DagWorkload:
    return shuffle(demands={"network_in": [0.1, 0.9], "network_out": [0.9, 0.1]})


def test_a_sweep_compares_networks_and_runs_without_one_once(tmp_path: Path) -> None:
    axes = {"scheduler": "drf", "network.scheduler": NETWORKS, "fabric.port_speed": SPEEDS}
    found = sweep(
        {**GRID, "workload": with_demands(), "sweep": axes}, out=tmp_path, in_process=True, progress=False
    )
    assert [(row["network"], row["port_speed"], row["jobs.all.mean"]) for row in found.rows] == [
        ("none", None, 2.0),
        ("fair", 8e9, 3.0),
        ("fair", 16e9, 2.5),
        ("sebf", 8e9, 3.0),
        ("sebf", 16e9, 2.5),
    ]
    assert (tmp_path / "scheduler=drf" / "network=none" / "seed=1" / "summary.json").exists()
    assert [line.split(":")[0] for line in found.text.splitlines() if line.startswith("shuffle on")] == [
        "shuffle on 2 nodes, port_speed=8 Gbps, seed 1",
        "shuffle on 2 nodes, port_speed=16 Gbps, seed 1",
    ]
    points = json.loads((tmp_path / "summary.json").read_text())["points"]
    assert [(p["network"], p["port_speed"], p["baseline"], p["ratios"]["all"]["mean"]["mean"]) for p in points] == [
        ("none", 8e9, "drf network=none", 1.0),
        ("fair", 8e9, "drf network=none", 1.5),
        ("sebf", 8e9, "drf network=none", 1.5),
        ("none", 16e9, "drf network=none", 1.0),
        ("fair", 16e9, "drf network=none", 1.25),
        ("sebf", 16e9, "drf network=none", 1.25),
    ]  # fmt: skip
    rows = list(csv.DictReader((tmp_path / "comparison.csv").read_text().splitlines()))
    assert {(row["network"], row["port_speed"]) for row in rows} == {
        (network, speed) for network in NETWORKS for speed in ("8000000000.0", "16000000000.0")
    }
    again = sweep(
        {**GRID, "workload": with_demands(), "sweep": axes}, out=tmp_path, in_process=True, progress=False
    )
    assert again.rows == found.rows


def test_networks_under_which_jobs_arrive_otherwise_are_not_compared(tmp_path: Path) -> None:
    """The load of a run without network is that of its demands for bandwidth, of which the others have none."""
    demands = {"network_in": [0.1, 0.9] * 2, "network_out": [0.9, 0.1] * 2}
    edges, cores = [(0, 0, 1), (1, 0, 1)], [0.1] * 4
    work = make_dag_workload(
        "shuffle",
        [0, 9],
        [2, 2],
        [2] * 4,
        [1] * 8,
        edges,
        cpu_cores=cores,
        demands=demands,
        edge_bytes=[4e9] * 2,
    )
    axes = {"scheduler": ["drf", "tetris"], "network.scheduler": ["none", "fair"]}
    found = sweep(
        {**GRID, "workload": work, "load": 0.5, "sweep": axes}, out=tmp_path, in_process=True, progress=False
    )
    heads = [line.split(":")[0] for line in found.text.splitlines() if line.startswith("shuffle on")]
    assert ["network=none" in head for head in heads] == [True, False]
    assert ["network=fair" in head for head in heads] == [False, True]
    assert len(heads) == 2


def test_a_run_without_network_beside_one_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = {**HERE, "fabric_port_speed": None}
    runs = [
        emu.run("drf", with_demands(), 2, **here | {"network_scheduler": network}, out=tmp_path / network)
        for network in ("none", "fair")
    ]
    assert workload_hash(runs[0]) == workload_hash(runs[1])
    assert list(runs[0].summary["dags"]["used"]) == ["cpu_cores", "network_in", "network_out"]
    assert list(runs[1].summary["dags"]["used"]) == ["cpu_cores"]
    paths = [str(tmp_path / network) for network in ("none", "fair")]
    capsys.readouterr()
    assert main(["explain", paths[0], "0", "--beside", paths[1]]) == 0
    text = capsys.readouterr().out
    assert next(line.split() for line in text.splitlines() if "fetching  " in line) == [
        "fetching",
        "0",
        "8",
        "8",
    ]
    assert "1: job 0, drf on workload, 2 nodes\n" in text
    assert "2: job 0, drf on workload, 2 nodes, network fair\n" in text
    table = emu.causes(paths[1])
    assert column(table, "fetching_ns").tolist() == [8_000_000_000]
