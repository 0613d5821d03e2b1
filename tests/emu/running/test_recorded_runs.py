"""Runs whose events are recorded: what is written while they run belongs to their checkpoints."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_commands import RUN, files_at_most

from actors.kernel.trace import TRACE
from emu.directories import run_directory as rd
from emu.directories.names import CHECKPOINTS

Cli = Callable[..., Any]
# It fails at its 46th job, once, when there are two checkpoints of moments at which it had placed some.
FAILING = """
import os
import numpy as np

class Failing:
    def place(self, job, nodes):
        if job.job_id >= 45 and not os.path.exists("once"):
            open("once", "w").close()
            raise ValueError("once")
        return np.resize(np.argsort(nodes.tasks, kind="stable"), job.num_tasks)
"""
EVENTS = ("--set", "output.events=all")


def recorded_at(checkpoint: Path) -> int:
    """Rows of events that there were at a checkpoint."""
    with np.load(checkpoint / "0.npz") as arrays:
        return int(arrays["recorded"][0])


def zero(path: Path, begin: int, size: int = 3000) -> None:
    with path.open("r+b") as file:
        file.seek(begin)
        file.write(bytes(size))


@pytest.mark.slow("the conformance suite tries it in small cases")
def test_a_run_goes_on_from_a_checkpoint_whose_events_are_sound(emu: Cli, trace: Path, often: None) -> None:
    Path("failing.py").write_text(FAILING)
    argv = ("run", "--scheduler", "failing.py:Failing", *RUN[3:], *EVENTS)
    assert emu(*argv, "--out", "r").code == 2
    assert emu(*argv, "--out", "whole").code == 0
    # What is done to the events, and how many of the two checkpoints have lost some of theirs.
    for damage, lost in (
        ("none", 0),
        ("longer", 0),
        ("zeros-behind-the-older", 1),
        ("short-of-the-newer", 1),
        ("zeros", 2),
        ("short-of-both", 2),
        ("missing", 2),
    ):
        shutil.copytree("r", damage)
        events = damaged(Path(damage) / CHECKPOINTS, damage)
        ended = emu("run", "--resume", damage)
        assert ended.code == 0, ended.err
        assert ended.err.count(f"the file of its events, {events}, ") == lost, damage
        assert ("the run starts from the beginning" in ended.err) == (lost == 2), damage
        assert Path(damage, "events.parquet").read_bytes() == Path("whole/events.parquet").read_bytes()
        assert not Path(damage, CHECKPOINTS).exists()


def damaged(checkpoints: Path, damage: str) -> Path:
    """The file of the events that belong to two checkpoints, damaged."""
    file = checkpoints / "traces" / "0.trace"
    older, newer = sorted(path for path in checkpoints.iterdir() if path.name.isdigit())
    rows, more = recorded_at(older), recorded_at(newer)
    assert 50 < rows < more - 20
    row = TRACE.itemsize
    if damage == "longer":
        with file.open("ab") as end:
            end.write(b"begun")
    elif damage == "missing":
        file.unlink()
    elif damage.startswith("zeros"):
        zero(file, rows * row if damage.endswith("older") else 100)
    elif damage.startswith("short"):
        with file.open("r+b") as content:
            content.truncate(more * row - 1 if damage.endswith("newer") else rows * row - 1)
    return file.resolve()


def test_a_disk_that_takes_a_part_of_the_events(emu: Cli, trace: Path) -> None:
    assert emu(*RUN, *EVENTS, "--out", "whole").code == 0
    with files_at_most(20_000):
        ended = emu(*RUN, *EVENTS, "--out", "r")
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
    from emu.running.emulation import recording_of

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
        InputError, match=r"0\.trace: lacks the 5 events of the checkpoint: output\.events needs"
    ):
        EventFile(tmp_path, 0).cut(np.array([5, 1]))
    assert not (tmp_path / "gone").exists()
