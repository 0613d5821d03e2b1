"""Hosted by Ray: the same bytes as in this process, for one's own scheduler too, and Ctrl-C from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from emulations import PATIENCE_S

ROOT = Path(__file__).parents[2]
OWN = f"{ROOT / 'examples' / 'least_loaded.py'}:LeastLoaded"
pytestmark = pytest.mark.ray


def start(*argv: object, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(ROOT / "run.py"), *map(str, argv)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": ""},
    )


def test_ray_gives_the_bytes_of_this_process(trace: Path) -> None:
    argv = (
        "compare",
        "--schedulers",
        f"sparrow,{OWN}",
        "--workload",
        "small",
        "--nodes",
        "20",
        "--json",
        "--out",
    )
    for where in ("ray", "here"):
        process = start(*argv, where, *(["--in-process"] if where == "here" else []), cwd=trace.parent)
        out, err = process.communicate()
        assert (process.returncode, err) == (0, "")
        assert [s["scheduler"] for s in json.loads(out)] == ["sparrow", "LeastLoaded"]
    for name in ("sparrow", "LeastLoaded"):
        ours, theirs = (trace.parent / w / f"scheduler={name}" / "seed=1" for w in ("here", "ray"))
        assert (ours / "jobs.parquet").read_bytes() == (theirs / "jobs.parquet").read_bytes()
        assert (ours / "timeline.parquet").read_bytes() == (theirs / "timeline.parquet").read_bytes()


SLOW = """
import time
class Slow:
    def place(self, job, nodes):
        open("started", "w").close()
        time.sleep(0.2)
        return [0] * job.num_tasks
"""


@pytest.mark.parametrize("where", [[], ["--in-process"]], ids=["ray", "in-process"])
def test_ctrl_c_from_outside(trace: Path, where: list[str]) -> None:
    started = trace.parent / "started"
    (trace.parent / "slow.py").write_text(SLOW.replace("started", str(started)))
    argv = ("run", "--scheduler", "slow.py:Slow", "--workload", "small", "--nodes", "20", "--out", "r")
    process = start(*argv, *where, cwd=trace.parent)
    waited = time.monotonic() + PATIENCE_S
    while not started.exists() and process.poll() is None and time.monotonic() < waited:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (130, ""), err
    assert err == "emu: interrupted; emu run --resume r goes on with it\n"
    assert json.loads((trace.parent / "r" / "manifest.json").read_text())["status"] == "interrupted"


@pytest.mark.parametrize("first", ["import ray", ""])
def test_a_token_on_this_machine_does_not_hinder_a_session_of_our_own(first: str) -> None:
    """Whether Ray was imported before, and so has read its settings, or not."""
    code = (
        f"{first}\nfrom actors.hosting.ray_session import close, connect\nconnect()\nclose()\nprint('done')"
    )
    environment = {**os.environ, "RAY_AUTH_TOKEN": "0123456789abcdef" * 4}
    environment.pop("RAY_AUTH_MODE", None)
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ended.stdout.endswith("done\n"), ended.stderr[-2000:]
