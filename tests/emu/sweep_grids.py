"""What tests of sweeps share: two grids over the workload `small`, a scheduler that fails, and what a run came to."""

from __future__ import annotations

import json
from pathlib import Path

GRID = """\
workload = "small"
nodes = 20

[sweep]
scheduler = ["sparrow", "random"]
seed = [1, 2]
load = ["50%", 0.8]

[sweep.parameters]
probe_ratio = [2, 3]
"""

SMALL = """\
workload = "small"
nodes = 20
[sweep]
scheduler = ["random", "central-fifo"]
seed = [1, 2]
"""

# Fails while the current folder has a file `fail`.
FAILS = """\
class Fails:
    def place(self, job, nodes):
        import os
        if os.path.exists("fail"):
            raise ValueError("no place\\nfor job")
        return [0] * job.num_tasks
"""


def write(text: str, name: str = "grid.toml") -> Path:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


def status(folder: Path) -> str:
    return json.loads((folder / "manifest.json").read_text())["status"]
