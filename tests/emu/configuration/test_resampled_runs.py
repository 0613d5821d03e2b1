"""Runs of a trace that is resampled by the seed."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seed_cases import shas

import emu as emu_package
from workloads.catalogue import load_workload
from workloads.jobs import JobWorkload
from workloads.transform import resample

Cli = Callable[..., Any]


def test_a_trace_is_resampled_by_the_seed(trace: Path, workload: JobWorkload) -> None:
    compared = emu_package.compare(
        ["random", "central-fifo"], "small", 20, seeds=2, resample_block="30 s", in_process=True
    )
    found = shas(compared)
    assert (
        found["random"]
        == found["central-fifo"]
        == [resample(workload, 30.0, s).fingerprint() for s in (1, 2)]
    )
    expected = (
        "small on 20 nodes, seeds 1 to 2 (trace resampled in blocks of 30 s, and scheduler), means ± 95 %"
    )
    assert compared.to_text().startswith(expected)
    assert compared.summaries[0]["resample_block_s"] == 30.0
    assert compared.summaries[0]["varied"] == ["workload", "scheduler"]


def test_an_object_is_resampled_and_kept(workload: JobWorkload, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    compared = emu_package.compare(
        ["random"], workload, 20, seeds=2, resample_block=30.0, in_process=True, out=folder
    )
    config = tomllib.loads((folder / "config.toml").read_text())
    assert (config["resample"]["block"], config["workload"]) == ("30.0 s", "./workload")
    assert load_workload(folder / "workload").fingerprint() == workload.fingerprint()
    run = folder / "seed=2"
    assert "resample" not in tomllib.loads((run / "config.toml").read_text())
    assert load_workload(run / "workload").fingerprint() == shas(compared)["random"][1]


def test_updates_of_coflows_name_those_of_the_trace(emu: Cli, tmp_path: Path) -> None:
    from coflow_cases import four_coflows

    from workloads.catalogue import save_workload

    save_workload(four_coflows(), "four")
    Path("u.csv").write_text("time_s,coflow_id,update,side,port,to\n")
    argv = (
        "run",
        "--scheduler",
        "aalo",
        "--in-process",
        "--workload",
        "four",
        "--set",
        "fabric.updates=u.csv",
    )
    assert "--set resample.block: not with fabric.updates" in emu(*argv, "--set", "resample.block=1 s").line()
