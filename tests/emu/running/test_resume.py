"""`--resume`: what was interrupted, killed or failed goes on, and its results have the bytes of an undisturbed run."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from python_process import PATIENCE_S, ROOT
from run_commands import RUN as WHOLE_RUN
from run_commands import same_bytes

import emu as package
from emu.directories import run_directory as rd
from emu.directories.names import CHECKPOINTS, CONFIG
from workloads.errors import InputError
from workloads.jobs import JobWorkload

Cli = Callable[..., "Ended"]  # noqa: F821

# A scheduler that records the jobs it has placed, and can be made to do something at one of them. It is slow where its
# process is to be killed, so that there are checkpoints before.
SLOW = """
import os, signal, time
import numpy as np

class Slow:
    def __init__(self):
        self.placed = []

    def place(self, job, nodes):
        WAIT
        self.placed.append(job.job_id)
        if job.job_id == AT and not os.path.exists("FOLDER/once"):
            open("FOLDER/once", "w").close()
            ACT
        assert self.placed == list(range(job.job_id + 1))
        return np.resize(np.argsort(nodes.tasks, kind="stable"), job.num_tasks)
"""
KILL, INTERRUPT, FAIL = (
    "os.kill(os.getpid(), signal.SIGKILL)",
    "signal.raise_signal(signal.SIGINT)",
    "raise ValueError('once')",
)
RUN = WHOLE_RUN[3:]
OFTEN = ("--set", "checkpoint.period=1 ms")


def write_slow(folder: Path, act: str = "pass", at: int = 40) -> str:
    text = SLOW.replace("WAIT", "pass" if act in ("pass", INTERRUPT, FAIL) else "time.sleep(0.02)")
    text = text.replace("ACT", act).replace("FOLDER", str(folder))
    (folder / "slow.py").write_text(text.replace("AT", str(at if act != "pass" else -1)))
    return "slow.py:Slow"


def numbers(folder: Path) -> list[str]:
    return sorted(os.listdir(folder / CHECKPOINTS))


@pytest.fixture
def whole(emu: Cli, trace: Path) -> Path:
    """The directory of an undisturbed run."""
    scheduler = write_slow(trace.parent)
    assert emu("run", "--scheduler", scheduler, *RUN, "--out", "whole").code == 0
    return trace.parent / "whole"


@pytest.mark.parametrize("act", [KILL, INTERRUPT, FAIL], ids=["killed", "interrupted", "failed"])
def test_a_run_that_ended_early_goes_on(act: str, whole: Path, emu: Cli, program: Cli, often: None) -> None:
    folder = whole.parent
    scheduler = write_slow(folder, act)
    ended = (program if act == KILL else emu)("run", "--scheduler", scheduler, *RUN, *OFTEN, "--out", "r")
    code, status = {KILL: (-9, "running"), INTERRUPT: (130, "interrupted"), FAIL: (2, "failed")}[act]
    assert ended.code == code, ended.err
    assert rd.read_manifest(folder / "r")["status"] == status
    if act == INTERRUPT:
        assert ended.err == "emu: interrupted; emu run --resume r resumes it\n"
    assert len(numbers(folder / "r")) == 2
    again = emu("run", "--resume", "r", "--json")
    assert (again.code, again.err) == (0, "")
    assert json.loads(again.out)["engine"]["restarts"] == 1
    assert same_bytes(folder / "r", whole)
    manifest = rd.read_manifest(folder / "r")
    assert (manifest["status"], "process" in manifest) == ("finished", False)
    assert not (folder / "r" / CHECKPOINTS).exists()
    assert (folder / "r" / CONFIG).read_text() != ""


@pytest.mark.parametrize("period", ["never", "1h"])
def test_without_a_checkpoint_it_starts_from_the_beginning(period: str, whole: Path, emu: Cli) -> None:
    folder = whole.parent
    argv = ("--scheduler", write_slow(folder, FAIL), *RUN, "--set", f"checkpoint.period={period}")
    assert emu("run", *argv, "--out", "r").code == 2
    assert not (folder / "r" / CHECKPOINTS).exists()
    again = emu("run", "--resume", "r")
    assert again.code == 0
    assert again.err == "emu: note: r has no checkpoint: the run starts again from the beginning\n"
    assert same_bytes(folder / "r", whole)


def test_a_damaged_checkpoint_is_said_and_the_one_before_used(whole: Path, emu: Cli, often: None) -> None:
    folder = whole.parent
    assert emu("run", "--scheduler", write_slow(folder, FAIL), *RUN, "--out", "r").code == 2
    newest = folder / "r" / CHECKPOINTS / numbers(folder / "r")[-1] / "0.npz"
    content = bytearray(newest.read_bytes())
    content[1000] ^= 255
    newest.write_bytes(content)
    again = emu("run", "--resume", "r")
    assert again.code == 0
    assert again.err.count("\n") == 1
    assert again.err.endswith("is not used: 0.npz is damaged\n")
    assert same_bytes(folder / "r", whole)


def test_checkpoint_keys_change_nothing_but_how_often(whole: Path, emu: Cli, often: None) -> None:
    argv = ("run", "--scheduler", write_slow(whole.parent), *RUN)
    assert emu(*argv, "--set", "checkpoint.keep=1", "--out", "r").code == 0
    assert same_bytes(whole.parent / "r", whole)
    ended = emu(*argv, "--set", "checkpoint.keep=0")
    assert "checkpoint.keep: '0' is too little; the least is 1" in ended.line()


# What --resume refuses.


@pytest.fixture
def interrupted(trace: Path, emu: Cli) -> Path:
    folder = trace.parent
    argv = ("run", "--scheduler", write_slow(folder, INTERRUPT), *RUN, "--out", "r")
    assert emu(*argv).code == 130
    return folder / "r"


def test_one_that_is_being_run_is_refused(interrupted: Path, emu: Cli) -> None:
    import socket

    here = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}

    def claim(**process: Any) -> None:
        manifest = {**rd.read_manifest(interrupted), "status": "running", "process": process}
        rd.write_manifest(interrupted, manifest)

    with rd.claimed_again(interrupted) as manifest:
        rd.begin(interrupted, manifest)
        assert f"--resume: r is being run by process {os.getpid()} on " in emu("run", "--resume", "r").line()
    assert not (interrupted / ".lock").exists()
    # Locks of other machines may not be seen here: the error names the process that left the lock file behind.
    (interrupted / ".lock").touch()
    claim(**{**here, "host": "elsewhere"})
    line = emu("run", "--resume", "r").line()
    assert "on elsewhere since " in line
    assert line.endswith("; if that is gone, remove r/.lock")
    (interrupted / ".lock").unlink()
    with rd.claimed_again(interrupted):
        pass
    # A process of this machine that has no lock is gone, whatever has its id now.
    (interrupted / ".lock").touch()
    claim(**here)
    with rd.claimed_again(interrupted):
        pass


def test_where_the_file_system_has_no_locks_the_process_id_tells(
    interrupted: Path, emu: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno
    import socket

    def no_locks(*_: Any) -> None:
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    here = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
    manifest = rd.read_manifest(interrupted)
    for process in (here, {**here, "pid": ended.pid}, {**here, "since": 1.0}, {}):
        (interrupted / ".lock").touch()
        rd.write_manifest(interrupted, {**manifest, "status": "running", "process": process})
        if process is here:
            assert f"r is being run by process {os.getpid()} on " in emu("run", "--resume", "r").line()
        elif process.get("since") != 1.0 or Path("/proc/stat").exists():  # a process with that id came later
            with rd.claimed_again(interrupted):
                pass


@pytest.mark.parametrize("what", ["workload", "scheduler"])
def test_changed_inputs_are_refused(what: str, interrupted: Path, emu: Cli) -> None:
    from workloads.catalogue import load_workload, save_workload

    folder = interrupted.parent
    if what == "workload":
        save_workload(
            load_workload("yahoo", options={"jobs": 60, "nodes": 5}), folder / "small", overwrite=True
        )
    else:
        (folder / "slow.py").write_text((folder / "slow.py").read_text() + "\n")
    line = emu("run", "--resume", "r").line()
    assert line.startswith(f"emu: --resume: the {what}")
    assert "has changed since r was begun; start again from the beginning with --config r/config.toml" in line


def test_other_options_are_refused(interrupted: Path, emu: Cli) -> None:
    assert "--nodes: not with --resume" in emu("run", "--resume", "r", "--nodes", "5").line()
    assert "--set: not with --resume" in emu("run", "--resume", "r", "--set", "seed=2").line()
    assert "--out: not with --resume" in emu("compare", "--resume", "r", "--out", "x").line()


def test_what_is_no_run_is_refused(trace: Path, emu: Cli) -> None:
    with rd.claimed("s", {"what": "sweep"}, ""):
        pass
    assert "--resume: s holds a sweep" in emu("run", "--resume", "s").line()


# Comparisons and seeds: what is finished is kept.


@pytest.mark.slow("whole runs with their figures")
@pytest.mark.parametrize(
    ("argv", "inner", "act"),
    [
        (
            ("compare", "--schedulers"),
            [f"scheduler={name}/seed=1" for name in ("sparrow", "Slow", "random")],
            KILL,
        ),
        (("run", "--seeds", "3", "--scheduler"), [f"seed={k}" for k in (1, 2, 3)], INTERRUPT),
    ],
    ids=["schedulers", "seeds"],
)
def test_several_runs_go_on(
    argv: tuple[str, ...], inner: list[str], act: str, trace: Path, emu: Cli, program: Cli
) -> None:
    folder = trace.parent
    names = "sparrow,slow.py:Slow,random" if argv[0] == "compare" else "slow.py:Slow"
    write_slow(folder)
    assert emu(*argv, names, *RUN, "--out", "whole").code == 0
    write_slow(folder, act)
    ended = (program if act == KILL else emu)(*argv, names, *RUN, *OFTEN, "--out", "c")
    assert ended.code == (-9 if act == KILL else 130)
    kept = {
        p: (p / "jobs.parquet").stat().st_mtime_ns
        for p in map((folder / "c").joinpath, inner)
        if rd.is_finished(p)
    }
    assert len(kept) == (1 if argv[0] == "compare" else 0)
    again = emu(argv[0], "--resume", "c", "--json")
    assert again.code == 0, again.err
    summaries = json.loads(again.out)
    assert len(summaries) == 3 if argv[0] == "compare" else summaries["seeds"] == [1, 2, 3]
    assert all(same_bytes(folder / "c" / name, folder / "whole" / name) for name in inner)
    assert all((p / "jobs.parquet").stat().st_mtime_ns == at for p, at in kept.items())
    assert not list((folder / "c").rglob(CHECKPOINTS))
    manifests = [rd.read_manifest(folder / where) for where in ("c", "whole")]
    assert manifests[0]["runs"] == manifests[1]["runs"] == inner
    assert manifests[0]["status"] == "finished"


# From Python.


class Counting:
    """A scheduler with a memory, made with an argument; breaks off once."""

    def __init__(self, step: int, stop: Path) -> None:
        self.step, self.stop, self.count = step, stop, 0

    def place(self, job: Any, nodes: Any) -> np.ndarray:
        self.count += self.step
        if job.job_id == 30 and not self.stop.exists():
            self.stop.touch()
            signal.raise_signal(signal.SIGINT)
        return (self.count + np.arange(job.num_tasks)) % len(nodes.slots)


def test_from_python_with_objects(workload: JobWorkload, tmp_path: Path, emu: Cli) -> None:
    def scheduler(stop: str) -> Counting:
        return Counting(7, tmp_path / stop)

    (tmp_path / "never").touch()
    settings = {"in_process": True, "nodes": 20}
    undisturbed = package.run(scheduler("never"), workload, out=tmp_path / "a", **settings)
    with pytest.raises(KeyboardInterrupt):
        package.run(scheduler("once"), workload, out=tmp_path / "r", **settings)
    assert numbers(tmp_path / "r") == ["000001"]
    assert "was an object of a Python program" in emu("run", "--resume", tmp_path / "r").line()
    result = package.resume(tmp_path / "r", scheduler=scheduler("once"))
    assert result.jobs.equals(undisturbed.jobs)
    assert same_bytes(tmp_path / "r", tmp_path / "a")
    for name in ("config", "inputs", "versions"):
        assert result.manifest[name] == undisturbed.manifest[name]
    assert result.config == undisturbed.config
    assert result.summary["workload"] == undisturbed.summary["workload"]
    assert package.resume(tmp_path / "r").jobs.equals(undisturbed.jobs)  # finished: it is read


def test_a_comparison_from_python(workload: JobWorkload, tmp_path: Path) -> None:
    (tmp_path / "never").touch()

    def schedulers(stop: str) -> list[Any]:
        return ["sparrow", Counting(7, tmp_path / stop)]

    settings = {"in_process": True, "nodes": 20}
    undisturbed = package.compare(schedulers("never"), workload, out=tmp_path / "a", **settings)
    with pytest.raises(KeyboardInterrupt):
        package.compare(schedulers("once"), workload, out=tmp_path / "r", **settings)
    comparison = package.resume(tmp_path / "r", scheduler=schedulers("once"))
    assert comparison.to_text() == undisturbed.to_text()
    shutil.rmtree(tmp_path / "a")


# On Ray.


@pytest.mark.ray
def test_an_actor_that_dies_under_a_run(whole: Path, program: Cli) -> None:
    folder = whole.parent
    argv = ["run", "--scheduler", write_slow(folder, KILL), *RUN[:-1], *OFTEN, "--json", "--out", "r"]
    ended = program(*argv)
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["engine"]["restarts"] == 1  # and nothing else on standard output
    assert ended.err.count("\n") == 1
    assert "the actor of a partition is gone (ActorDiedError); the run goes on from virtual time" in ended.err
    assert same_bytes(folder / "r", whole)


@pytest.mark.ray
def test_a_driver_that_is_killed(whole: Path, emu: Cli) -> None:
    folder = whole.parent
    # It stops where it is to be killed, with checkpoints written: how fast this process looks does not matter.
    scheduler = write_slow(folder, f"time.sleep({PATIENCE_S})")
    argv = ("run", "--scheduler", scheduler, *RUN[:-1], *OFTEN, "--out", "r")
    driver = subprocess.Popen(
        [sys.executable, str(ROOT / "run.py"), *argv], cwd=folder, stderr=subprocess.PIPE
    )
    end = time.monotonic() + PATIENCE_S
    while not (folder / "once").exists() and driver.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    assert rd.read_manifest(folder / "r")["status"] == "running"
    again = emu("run", "--resume", "r", "--in-process")
    assert again.code == 0, again.err
    assert same_bytes(folder / "r", whole)


def test_a_comparison_of_another_form_is_not_said_to_be_made_again(
    workload: JobWorkload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "c"
    package.compare(["sparrow", "random"], workload, nodes=5, in_process=True, out=out)

    def of_another_form(folder: Path) -> Any:
        raise InputError("summary.json has another form")

    monkeypatch.setattr("emu.results.comparison.read_comparison", of_another_form)
    with pytest.raises(InputError, match="another form"):  # all files are as they were written
        package.resume(out)
    assert "made again" not in capsys.readouterr().err
