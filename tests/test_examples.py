"""Examples run, and print what is beside them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from emu.sweeps.grid import read_grid

pytestmark = [pytest.mark.compiled, pytest.mark.slow("each example is a process")]

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.out"))


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("expected", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_prints_what_is_beside_it(expected: Path, tmp_path: Path) -> None:
    script = expected.with_suffix(".py")
    run = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == expected.read_text(encoding="utf-8"), (
        f"python {script.relative_to(ROOT)} prints otherwise"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("*.toml")), ids=lambda p: p.stem)
def test_a_sweep_file_has_the_runs_that_it_states(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    needs_file = "--set workload=FILE" in text and not re.search(r"^workload = ", text, re.MULTILINE)
    grid = read_grid(path, ["workload=synthetic-coflows"] if needs_file else [])
    stated = re.search(r"([\d,]+) runs", text)
    assert stated is not None
    assert len(grid.points) == int(stated[1].replace(",", ""))
