"""Sweeps whose runs are Ray tasks: the same bytes, workers that die, Ctrl-C from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from python_process import PATIENCE_S
from sweep_grids import FAILS, GRID, SMALL, status, write

from emu.sweeps.parallel_runs import Hosting
from emu.sweeps.sweep import prepare_sweep, run_sweep, sweep
from workloads.jobs import JobWorkload

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.ray


def test_ray_gives_the_bytes_of_this_process(trace: Path, ray_session: None, workload: JobWorkload) -> None:
    write(GRID)
    there, here = sweep("grid.toml", out="there"), sweep("grid.toml", out="here", in_process=True)
    assert len(there.rows) == len(here.rows) == 12
    for row in here.rows:
        ours, theirs = (Path(where) / row["path"] / "jobs.parquet" for where in ("here", "there"))
        assert ours.read_bytes() == theirs.read_bytes()
    assert there.summary["points"] == here.summary["points"]


DIES = """\
import os
import re
class Dies:
    def place(self, job, nodes):
        with open("{place}/attempts", "a") as file:
            file.write(".")
        if os.path.getsize("{place}/attempts") <= {times}:
            os._exit(1)
        return [0] * job.num_tasks
"""


@pytest.mark.parametrize(("times", "code"), [(1, 0), (100, 1)])
def test_a_worker_that_dies_is_tried_again(trace: Path, ray_session: None, times: int, code: int) -> None:
    Path("dies.py").write_text(DIES.format(place=Path.cwd(), times=times))
    write(SMALL.replace('"random"', '"dies.py:Dies"').replace("[1, 2]", "[1]"))
    ready = prepare_sweep("grid.toml")
    result = run_sweep(ready, Hosting(parallel=1, retries=1))
    if code == 0:
        assert result.failures == {}
        assert len(result.rows) == 2
    else:
        assert result.failures == {"scheduler=Dies/seed=1": "its worker process died, 2 times"}
        assert [row["scheduler"] for row in result.rows] == ["central-fifo"]
        assert Path("attempts").stat().st_size == 2


KILLS = """\
import os
import signal
class Kills:
    def place(self, job, nodes):
        if not os.path.exists("{place}/killed"):
            open("{place}/killed", "w").close()
            os.kill(os.getsid(0), signal.SIGKILL)
        return [0] * job.num_tasks
"""


@pytest.mark.skipif(not os.path.exists("/proc"), reason="sessions are looked up in /proc")
def test_a_sweep_survives_what_drives_ray(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from actors.hosting.child import close

    Path("kills.py").write_text(KILLS.format(place=Path.cwd()))
    write(SMALL.replace('"random"', '"kills.py:Kills"'))
    there = sweep("grid.toml", out="there", parallel=2)
    close()
    here = sweep("grid.toml", out="here", in_process=True)
    assert there.failures == {}
    assert len(there.rows) == 4
    output = capsys.readouterr().err.splitlines()
    assert len([line for line in output if line.endswith("runs begin again")]) == 1, output
    for row in here.rows:
        ours, theirs = (Path(where) / row["path"] / "jobs.parquet" for where in ("here", "there"))
        assert ours.read_bytes() == theirs.read_bytes()


def test_a_pool_that_is_lost_while_it_is_made_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import contextmanager

    from actors.hosting import pool
    from actors.hosting.interrupts import Lost

    class There:
        def cpus(self) -> int:
            return 3

    @contextmanager
    def in_child(*_: object, **__: object) -> Iterator[There]:
        left.pop()
        if left:
            raise Lost("what drives Ray is gone")
        yield There()

    monkeypatch.setattr(pool, "in_child", in_child)
    lines: list[str] = []
    left = [1, 2, 3]
    assert pool.Pool(warn=lines.append).parallel == 3
    assert lines == ["what drives Ray is gone; 0 runs begin again"] * 2
    left = [*range(9)]
    with pytest.raises(Lost, match="what drives Ray is gone; 4 times without a run that ended in between"):
        pool.Pool()


def test_a_run_s_own_error_is_not_tried_again(trace: Path, ray_session: None) -> None:
    Path("fails.py").write_text(FAILS.replace('"fail"', repr(str(Path.cwd() / "fail"))))
    Path("fail").touch()
    write(SMALL.replace('"random"', '"fails.py:Fails"'))
    result = sweep("grid.toml", parallel=1)
    assert list(result.failures) == ["scheduler=Fails/seed=1", "scheduler=Fails/seed=2"]
    assert all("no place for job" in error for error in result.failures.values())


SLOW = """
import time
import tomllib
class Slow:
    def place(self, job, nodes):
        open("{place}/started", "w").close()
        time.sleep(0.2)
        return [0] * job.num_tasks
"""


def test_ctrl_c_from_outside(trace: Path) -> None:
    Path("slow.py").write_text(SLOW.format(place=Path.cwd()))
    write(SMALL.replace('["random", "central-fifo"]', '["slow.py:Slow"]').replace("[1, 2]", "[1, 2, 3, 4]"))
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "run.py"), "sweep", "grid.toml", "--parallel", "2", "--out", "s"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ""},
    )
    waited = time.monotonic() + PATIENCE_S
    while not Path("started").exists() and process.poll() is None and time.monotonic() < waited:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (130, ""), err
    assert err == "emu: interrupted; the same command resumes s\n"
    assert status(Path("s")) == "interrupted"
    begun = sorted(Path("s").glob("scheduler=Slow/seed=*"))
    assert 1 <= len(begun) <= 2
    assert {status(run) for run in begun} == {"interrupted"}
