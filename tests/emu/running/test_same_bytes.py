"""The same seed gives the same bytes of `jobs.parquet`, however the run is hosted and compiled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from emu.cli import main
from workloads.catalogue import load_workload, save_workload

COMMAND = ["run", "--scheduler", "hawk", "--nodes", "30", "--seed", "3"]


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("workload") / "small"
    save_workload(load_workload("yahoo", options={"jobs": 25, "nodes": 30}), path)
    return path


@pytest.fixture(scope="module")
def expected(workload: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    out = tmp_path_factory.mktemp("expected") / "run"
    assert main([*COMMAND, "--workload", str(workload), "--in-process", "--out", str(out)]) == 0
    return (out / "jobs.parquet").read_bytes()


@pytest.mark.parametrize(
    ("variables", "options"),
    [
        ({"NUMBA_DISABLE_JIT": "1"}, ["--in-process"]),
        ({"NUMBA_BOUNDSCHECK": "1"}, ["--in-process"]),
        pytest.param({}, [], marks=pytest.mark.ray),
    ],
    ids=["plain-python", "bounds-checks", "ray"],
)
def test_another_way_to_run_gives_the_same_bytes(variables, options, workload, expected, tmp_path):
    out = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "emu",
        *COMMAND,
        "--workload",
        str(workload),
        "--out",
        str(out),
        *options,
    ]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (out / "jobs.parquet").read_bytes() == expected
