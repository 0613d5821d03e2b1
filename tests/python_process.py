"""A Python process of its own, for tests of what holds between processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 900  # for a process that compiles everything on a machine that does much else


def run_python(code: str, root: Path = ROOT, **environment: str) -> str:
    """What a Python process of its own, which finds the repository at `root` and its tests, prints."""
    path = os.pathsep.join([str(root), str(root / "tests")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
