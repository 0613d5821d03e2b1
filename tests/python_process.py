"""A Python process of its own, for tests of what holds between processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 900  # for a process that compiles everything on a machine that does much else


# Before what plain Python runs. NumPy makes a new view for each `rows.field`, 2 µs, which took nine tenths of the time;
# here the rows keep it. Fields of rows are only read (what is set are their elements), so it stays the same view.
KEEP_FIELDS = """
import numpy as np
view_of = np.recarray.__getattribute__
def kept(rows, name):
    try:
        return object.__getattribute__(rows, name)
    except AttributeError:
        rows.__dict__[name] = found = view_of(rows, name)
        return found
np.recarray.__getattribute__ = kept
"""


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
