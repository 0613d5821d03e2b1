"""Hosted by Ray: the same bytes as in this process, for one's own scheduler too, and Ctrl-C from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from python_process import PATIENCE_S

ROOT = Path(__file__).parents[3]
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


def test_ray_gives_the_bytes_of_this_process(trace: Path, emu: Callable[..., Any]) -> None:
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
    process = start(*argv, "ray", cwd=trace.parent)
    here = emu(*argv, "here", "--in-process")
    printed, errors = process.communicate()
    for code, out, err in ((process.returncode, printed, errors), here):
        assert (code, err) == (0, "")
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


@pytest.mark.parametrize(
    ("where", "number"),
    [
        ([], signal.SIGINT),
        (["--in-process"], signal.SIGINT),
        (["--in-process"], signal.SIGHUP),
        (["--clock", "windows", "--partitions", "2"], signal.SIGTERM),
    ],
    ids=["ray", "in-process", "hang-up", "windows-term"],
)
def test_ctrl_c_from_outside(trace: Path, where: list[str], number: signal.Signals) -> None:
    started = trace.parent / "started"
    (trace.parent / "slow.py").write_text(SLOW.replace("started", str(started)))
    argv = ("run", "--scheduler", "slow.py:Slow", "--workload", "small", "--nodes", "20", "--out", "r")
    process = start(*argv, *where, cwd=trace.parent)
    waited = time.monotonic() + PATIENCE_S
    while not started.exists() and process.poll() is None and time.monotonic() < waited:
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (130, ""), err
    assert err.endswith("emu: interrupted; emu run --resume r resumes it\n")
    assert len(err.splitlines()) == 1 or "windows" in where
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


LOUD = """
import sys
class Loud:
    def place(self, job, nodes):
        print("placing")
        return [0] * job.num_tasks
"""


def test_json_is_alone_on_standard_output(trace: Path) -> None:
    """Also where a user's scheduler prints, and where this process has used Ray before."""
    (trace.parent / "loud.py").write_text(LOUD)
    used = (
        "import ray, time\nray.init(address='local', num_cpus=2, include_dashboard=False)\n"
        "@ray.remote\ndef talk():\n    time.sleep(1)\n    print('a word')\n"
        "later = talk.remote()\n"
    )
    code = (
        "import sys\nfrom emu.cli import main\n"
        "sys.exit(main(['run', '--scheduler', 'loud.py:Loud', '--workload', 'small', '--nodes', '20', '--json',"
        " *sys.argv[1:]]))"
    )
    for before, where, heard in ((used, [], "a word"), ("", ["--in-process"], "placing")):
        ended = subprocess.run(
            [sys.executable, "-c", before + code, *where],
            cwd=trace.parent,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert ended.returncode == 0, ended.stderr[-2000:]
        assert json.loads(ended.stdout)["scheduler"] == "Loud"
        assert heard in ended.stderr


def test_too_many_partitions_are_refused_before_anything_is_started(
    trace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from actors.hosting import child
    from emu.cli import main

    monkeypatch.setattr(child, "the_child", lambda address: pytest.fail("a child was started"))
    for clock in ("windows", "live"):
        argv = ["run", "--scheduler", "sparrow", "--workload", "small", "--nodes", "2", "--clock", clock]
        assert main([*argv, "--partitions", "20", "--out", clock]) == 2
        assert "--partitions: 20 partitions for 2 nodes and " in capsys.readouterr().err
