"""The same seed gives the same bytes of `jobs.parquet`, however the run is hosted and compiled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from emu.cli import main
from workloads.catalogue import load_workload, save_workload

COMMAND = ["run", "--nodes", "30", "--seed", "3", "--scheduler"]


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("workload") / "small"
    save_workload(load_workload("yahoo", options={"jobs": 25, "nodes": 30}), path)
    return path


@pytest.mark.parametrize(
    ("scheduler", "variables", "options"),
    [
        ("hawk", {"NUMBA_DISABLE_JIT": "1"}, ["--in-process"]),
        # The policy that compiles fastest: all of them run with bounds checks in plain Python (test_bounds_checks.py).
        ("random", {"NUMBA_BOUNDSCHECK": "1"}, ["--in-process"]),
        pytest.param("hawk", {}, [], marks=pytest.mark.ray),
    ],
    ids=["plain-python", "bounds-checks", "ray"],
)
def test_another_way_to_run_gives_the_same_bytes(
    scheduler: str, variables: dict[str, str], options: list[str], workload: Path, tmp_path: Path
) -> None:
    run, expected = [*COMMAND, scheduler, "--workload", str(workload)], tmp_path / "expected"
    assert main([*run, "--in-process", "--out", str(expected)]) == 0
    out = tmp_path / "run"
    command = [sys.executable, "-m", "emu", *run, "--out", str(out), *options]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (out / "jobs.parquet").read_bytes() == (expected / "jobs.parquet").read_bytes()
