"""Run directories: processes that die, processes at the same time, and what is overwritten."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from killed import calls_of, kill_at
from python_process import PATIENCE_S
from run_commands import COMPARE, RUN, SIZE, TABLES, same_bytes
from sweep_grids import SMALL, write

import emu as package
from actors.hosting.checkpoint import Checkpoints
from actors.hosting.interrupts import Lost
from emu import disk
from emu.directories import locks
from emu.directories import run_directory as rd
from emu.directories.names import CHECKPOINTS, CONFIG, SUMMARY
from emu.results.result import read_result
from emu.sweeps.sweep import sweep
from workloads.errors import InputError

Cli = Callable[..., Any]


# Kills: at every call to the file system, in a process that dies there.


@pytest.mark.slow("kills a process at every call of the system")
def test_killed_anywhere_it_is_whole_or_goes_on(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Checkpoints, "due", lambda self: not self.saved)
    names = {p.name for p in finished.iterdir()}

    def act() -> None:
        package.run("random", "small", 20, in_process=True, out="killed")

    number = calls_of(act)
    assert {p.name for p in Path("killed").iterdir()} == names
    begun = 0
    for k in sorted({*range(0, number, 3), *range(number - 12, number)}):  # all were tried, which takes 20 s
        shutil.rmtree("killed", ignore_errors=True)
        kill_at(k, act)
        there = {p.name for p in Path("killed").iterdir()} if Path("killed").exists() else set()
        if rd.MANIFEST not in there:  # nothing but a lock and what was begun: it is claimed again
            assert all(name == locks.LOCK or name.startswith(f".{rd.MANIFEST}.") for name in there)
            act()
        else:
            begun += 1
            if read_or_none(Path("killed")) is not None:  # the manifest is the last thing that is written
                assert there - {locks.LOCK} == names
            assert same_bytes(Path(package.resume("killed").path or ""), finished)
        assert same_bytes(Path("killed"), finished)
        assert {p.name for p in Path("killed").iterdir()} == names, f"killed at call {k}"
    assert begun > number / 6


def read_or_none(folder: Path) -> package.Result | None:
    try:
        return read_result(folder)
    except InputError:
        return None


def test_what_was_done_is_not_done_again(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed while checkpoints are removed: results are on the disk, and nothing is computed."""
    manifest = {**rd.read_manifest(finished), "status": "running"}
    rd.write_manifest(finished, manifest)
    (finished / CHECKPOINTS / "000001").mkdir(parents=True)
    (finished / ".jobs.parquet.123").touch()
    (finished / locks.LOCK).touch()

    def computed(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr("emu.running.runs.execute", computed)
    package.resume(finished)
    assert {p.name for p in finished.iterdir()} == {rd.MANIFEST, CONFIG, SUMMARY, *TABLES}


def test_results_are_on_the_disk_before_the_manifest_says_so(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    write_manifest, flush = rd.write_manifest, disk.flush

    def flushing(path: Path) -> None:
        flushed.append(path.name)
        flush(path)

    def writing(out: Path, manifest: dict[str, Any]) -> None:
        if manifest["status"] == "finished":
            flushed.append("said")
        write_manifest(out, manifest)

    monkeypatch.setattr(rd, "flush", flushing)
    monkeypatch.setattr(rd, "write_manifest", writing)
    read_result(finished).save("again")
    assert {*TABLES, SUMMARY, CONFIG, "again"} <= {*flushed[: flushed.index("said")]}


@pytest.mark.slow("kills a process at every call of the system")
def test_a_sweep_that_was_killed_leaves_nothing(emu: Cli, trace: Path) -> None:
    source = write(SMALL.replace('"random", "central-fifo"', '"random"').replace("[1, 2]", "[1]"))
    sweep(source, in_process=True, out="whole")
    names = sorted(p.relative_to("whole").as_posix() for p in Path("whole").rglob("*"))

    def act() -> None:
        sweep(source, in_process=True, out="s")

    number = calls_of(act)
    for k in range(2, number, 9):
        shutil.rmtree("s", ignore_errors=True)
        kill_at(k, act)
        act()
        assert sorted(p.relative_to("s").as_posix() for p in Path("s").rglob("*")) == names, k
        assert same_bytes(Path("s/scheduler=random/seed=1"), Path("whole/scheduler=random/seed=1"))


@pytest.mark.parametrize("left", [locks.LOCK, CHECKPOINTS])
def test_what_a_process_leaves_at_its_very_end_the_next_one_removes(
    left: str, compared: Path, emu: Cli
) -> None:
    source = write(SMALL)
    for command in (("sweep", source, "--in-process"), SIZE):
        assert emu(*command, "--out", command[0]).code == 0
    for run in (compared / "seed=2", Path("sweep/scheduler=random/seed=1"), Path("size/nodes=9/seed=1")):
        (run / left).touch() if left == locks.LOCK else (run / left).mkdir()
    assert emu("run", "--resume", "c").code == 0
    for command in (("sweep", source, "--in-process"), SIZE):
        assert emu(*command, "--out", command[0]).code == 0
    assert [*Path().rglob(left)] == []


# Claims.


def test_of_several_at_once_all_but_one_are_refused(finished: Path) -> None:
    rd.write_manifest(finished, {**rd.read_manifest(finished), "status": "interrupted"})
    program = """
import os, sys, time
from pathlib import Path
from emu.directories import run_directory as rd
from workloads.errors import InputError
sys.stdin.read()
try:
    with rd.claimed_again(Path("r")) as manifest:
        rd.begin(Path("r"), manifest)
        while not Path("others-ended").exists():
            time.sleep(0.02)
        print("had it", os.getpid())
except InputError as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )
        for _ in range(4)
    ]  # fmt: skip
    for child in children:
        assert child.stdin is not None
        child.stdin.close()  # all are let loose
    end = time.monotonic() + PATIENCE_S
    while sum(child.poll() is None for child in children) > 1 and time.monotonic() < end:
        time.sleep(0.02)
    Path("others-ended").touch()
    output = [child.stdout.read().strip() for child in children if child.stdout is not None]
    for child in children:
        child.wait()
    (holder,) = [text.removeprefix("had it ") for text in output if text.startswith("had it ")]
    assert sum(text.startswith(f"--resume: r is being run by process {holder} on ") for text in output) == 3


def test_a_lock_ends_with_its_process(finished: Path) -> None:
    def hold() -> None:
        rd.hold(finished, "--out")
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        hold()
    os.waitpid(child, 0)
    assert (finished / locks.LOCK).exists()
    assert not locks.is_held(finished)
    assert locks.acquire(finished) is locks.Found.LEFT
    assert locks.is_held(finished)
    assert locks.acquire(finished) is locks.Found.HELD
    locks.release(finished)
    assert not (finished / locks.LOCK).exists()


def test_a_child_does_not_keep_the_lock(finished: Path) -> None:
    locks.acquire(finished)
    child = os.fork()
    if not child:
        signal.pause()
    locks.release(finished, remove=False)
    try:
        assert locks.acquire(finished) is locks.Found.LEFT
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        locks.release(finished)


@pytest.mark.parametrize("command", [RUN, COMPARE], ids=["run", "compare"])
def test_a_directory_that_is_being_run_is_refused(command: tuple[str, ...], finished: Path, emu: Cli) -> None:
    with rd.claimed_again(finished) as manifest:
        rd.begin(finished, manifest)
        for more in ((), ("--overwrite",)):
            line = emu(*command, "--out", "r", *more).line()
            assert line.startswith(f"emu: --out: r is being run by process {os.getpid()} on ")
            assert "remove" not in line
        assert f"r: is being run by process {os.getpid()} on " in emu("report", "r").line()
    assert "r holds a run that was killed; emu run --resume r resumes it" in emu(*RUN, "--out", "r").line()


@pytest.mark.parametrize(
    ("status", "expected"),
    [("interrupted", "was interrupted"), ("failed", "failed"), ("running", "was killed")],
)
def test_a_run_that_ended_early_is_named_with_the_command_that_resumes_it(
    status: str, expected: str, finished: Path, emu: Cli
) -> None:
    rd.write_manifest(finished, {**rd.read_manifest(finished), "status": status})
    for command in ((*RUN, "--out", "r"), ("report", "r")):
        assert f"holds a run that {expected}; emu run --resume r resumes it" in emu(*command).line()


# Overwriting.


def test_a_run_within_that_is_being_run_is_not_overwritten(compared: Path, emu: Cli) -> None:
    with rd.claimed_again(compared / "seed=2"):
        line = emu(*RUN, "--out", "c", "--overwrite").line()
    assert line == "emu: --overwrite: c/seed=2 is being run by another process"
    assert read_result(compared / "seed=1")


@pytest.mark.parametrize(
    ("clock", "advice"),
    [
        ("windows", "resumes it"),
        ("live", "runs it again from the beginning, as the clock live cannot resume"),
    ],
)
@pytest.mark.parametrize("ends", [Lost, KeyboardInterrupt])
def test_what_ends_early_names_what_can_be_done(
    clock: str, advice: str, ends: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    manifest = {"config": {"clock": clock}}
    with pytest.raises(ends) as caught, rd.claimed("r", manifest, ""):
        raise ends("the cluster is gone")
    assert str(caught.value).endswith(f"emu run --resume r {advice}")
    assert rd.read_manifest(Path("r"))["status"] == ("failed" if ends is Lost else "interrupted")
