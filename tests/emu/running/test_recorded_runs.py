"""Runs whose events are recorded: what is written while they run belongs to their checkpoints."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_commands import RUN

from actors.kernel.trace import TRACE
from emu.directories import run_directory as rd
from emu.directories.names import CHECKPOINTS

Cli = Callable[..., Any]
# It ends its process at its 46th job, once, when there are two checkpoints of moments at which it had placed some.
DYING = """
import os, signal, time
import numpy as np

class Dying:
    def place(self, job, nodes):
        time.sleep(0.01)
        if job.job_id >= 45 and not os.path.exists("once"):
            open("once", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return np.resize(np.argsort(nodes.tasks, kind="stable"), job.num_tasks)
"""
EVENTS = ("--set", "output.events=all", "--set", "checkpoint.period=0.05 s")


@pytest.fixture
def killed(program: Any, emu: Cli, trace: Path) -> Path:
    """The checkpoints of a run that was killed, beside a whole run with its events."""
    Path("dying.py").write_text(DYING)
    argv = ("run", "--scheduler", "dying.py:Dying", *RUN[3:], *EVENTS)
    assert program(*argv, "--out", "r").code == -9
    assert emu(*argv, "--out", "whole").code == 0
    return Path("r") / CHECKPOINTS


def recorded_at(checkpoint: Path) -> int:
    """Rows of events that there were at a checkpoint."""
    with np.load(checkpoint / "0.npz") as arrays:
        return int(arrays["recorded"][0])


def zero(path: Path, begin: int, size: int = 3000) -> None:
    with path.open("r+b") as file:
        file.seek(begin)
        file.write(bytes(size))


@pytest.mark.parametrize("damage", ["none", "longer", "zeros behind the older", "short of the newer", "zeros",
                                    "short of both", "missing"])  # fmt: skip
def test_a_run_goes_on_from_a_checkpoint_whose_events_are_sound(damage: str, killed: Path, emu: Cli) -> None:
    trace = killed / "traces" / "0.trace"
    older, newer = sorted(path for path in killed.iterdir() if path.name.isdigit())
    rows, more = recorded_at(older), recorded_at(newer)
    assert 50 < rows < more - 20
    row = TRACE.itemsize
    if damage == "longer":
        with trace.open("ab") as file:
            file.write(b"begun")
    elif damage == "missing":
        trace.unlink()
    elif damage.startswith("zeros"):
        zero(trace, rows * row if damage.endswith("older") else 100)
    elif damage.startswith("short"):
        with trace.open("r+b") as file:
            file.truncate(more * row - 1 if damage.endswith("newer") else rows * row - 1)
    ended = emu("run", "--resume", "r")
    assert ended.code == 0, ended.err
    one, both = (
        damage in ("zeros behind the older", "short of the newer"),
        damage in ("zeros", "short of both", "missing"),
    )
    assert ended.err.count(f"the file of its events, {trace.resolve()}, ") == one + 2 * both
    assert ("the run starts from the beginning" in ended.err) == both
    assert Path("r/events.parquet").read_bytes() == Path("whole/events.parquet").read_bytes()
    assert not killed.exists()


def test_a_disk_that_takes_a_part_of_the_events(emu: Cli, trace: Path) -> None:
    """A limit on the size of files: the system writes a part, and then refuses."""
    assert emu(*RUN, *EVENTS, "--out", "whole").code == 0
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        ended = emu(*RUN, "--set", "output.events=all", "--out", "r")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    place = Path("r/checkpoints/traces/0.trace")
    assert ended.code == 1
    assert ended.line() == (
        f"emu: {place.resolve()}: cannot be written: File too large; when there is room, emu run --resume r resumes it"
    )
    manifest = rd.read_manifest(Path("r"))
    assert manifest["status"] == "failed"
    assert "cannot be written: File too large" in manifest["error"]
    assert place.stat().st_size == 0  # which makes room for the manifest
    ended = emu("run", "--resume", "r")
    assert (ended.code, ended.err) == (
        0,
        "emu: note: r has no checkpoint: the run starts again from the beginning\n",
    )
    assert Path("r/events.parquet").read_bytes() == Path("whole/events.parquet").read_bytes()


def test_events_lie_where_the_driver_says(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever folder a partition's process is in."""
    from emu.configuration.plan import configure, prepare
    from emu.running.recording import recording_of

    given = {"scheduler": "random", "workload": "small", "nodes": 20, "output_events": "all"}
    recording = recording_of(prepare(configure(given)), 0, Path("r"))
    assert recording is not None
    assert recording.folder == Path.cwd() / "r" / CHECKPOINTS / "traces"
    assert recording.folder.is_dir()


def test_a_folder_that_a_partition_does_not_see(trace: Path, tmp_path: Path) -> None:
    from actors.hosting.recording import EventFile
    from workloads.errors import InputError

    with pytest.raises(
        InputError, match=r"gone: is not there: output\.events needs a folder that all machines"
    ):
        EventFile(tmp_path / "gone", 0).cut(np.zeros(2, np.int64))
    with pytest.raises(
        InputError, match=r"0\.trace: has not the 5 events of the checkpoint: output\.events needs"
    ):
        EventFile(tmp_path, 0).cut(np.array([5, 1]))
    assert not (tmp_path / "gone").exists()
