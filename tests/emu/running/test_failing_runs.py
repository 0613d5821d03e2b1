"""What fails does not take the rest with it: a scheduler, a seed, a disk that is full."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from run_commands import RUN, TABLES, files_at_most, same_bytes
from sweep_grids import FAILS, SMALL, write

import emu as package
from emu import disk
from emu.cli import commands
from emu.directories import run_directory as rd
from workloads.errors import InputError, NotWritten, UnavailableError

Cli = Callable[..., Any]


@pytest.fixture
def fails(emu: Cli, trace: Path) -> str:
    """A scheduler that fails while there is a file ``fail``."""
    Path("fails.py").write_text(FAILS)
    Path("fail").touch()
    return "fails.py:Fails"


def test_others_are_compared_without_the_one_that_fails(emu: Cli, fails: str) -> None:
    for name in ("random", "central-fifo"):
        assert emu("run", "--scheduler", name, *RUN[3:], "--out", f"whole-{name}").code == 0
    ended = emu("compare", "--schedulers", f"random,{fails},central-fifo", *RUN[3:], "--out", "c")
    assert ended.code == 1
    assert "emu: note: Fails failed: " in ended.err
    assert "emu: note: Fails is not compared, as it failed\n" in ended.err
    assert "\n  central-fifo " in ended.out
    assert "failed: scheduler=Fails/seed=1: " in ended.out
    assert "no place for job" in ended.out
    for name in ("random", "central-fifo"):
        assert same_bytes(Path(f"c/scheduler={name}/seed=1"), Path(f"whole-{name}"))
    manifest = rd.read_manifest(Path("c"))
    assert (manifest["status"], list(manifest["failures"])) == ("failed", ["scheduler=Fails/seed=1"])
    inner = rd.read_manifest(Path("c/scheduler=Fails/seed=1"))
    assert inner["status"] == "failed"
    assert "no place for job" in inner["error"]
    assert "failed: scheduler=Fails/seed=1: " in Path("c/report.html").read_text()
    assert emu("report", "c", "--out", "page.html").code == 0
    assert "failed: c/scheduler=Fails/seed=1: " in Path("page.html").read_text()
    output = emu("compare", "--schedulers", f"{fails},random", *RUN[3:], "--out", "d", "--json")
    assert output.code == 1
    assert json.loads(output.out)["scheduler"] == "random"
    assert "failed: scheduler=Fails/seed=1: " in output.err
    # It is tried again, and the others are not.
    Path("fail").unlink()
    before = Path("c/scheduler=random/seed=1/jobs.parquet").stat().st_mtime_ns
    ended = emu("compare", "--resume", "c")
    assert ended.code == 0, ended.err
    assert "\n  Fails " in ended.out
    assert Path("c/scheduler=random/seed=1/jobs.parquet").stat().st_mtime_ns == before
    manifest = rd.read_manifest(Path("c"))
    assert (manifest["status"], "failures" in manifest) == ("finished", False)


def test_if_all_fail_the_first_error_is_the_end(emu: Cli, fails: str) -> None:
    ended = emu("run", "--scheduler", fails, *RUN[3:], "--seeds", "2", "--out", "c")
    assert ended.code == 2  # as of one run: the scheduler is the user's
    assert ended.err.splitlines()[-1].endswith("no place for job (job 0)")
    assert rd.read_manifest(Path("c"))["status"] == "failed"
    assert emu("run", "--scheduler", fails, *RUN[3:], "--out", "one").line().count("no place for job") == 1


def test_seeds_that_fail_are_left_out(emu: Cli, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from emu.running import runs

    execute = runs.execute

    def fails(plan: Any, index: int, *rest: Any) -> Any:
        name, seed = plan.schedulers[index].name, plan.seed
        if (name, seed) in failing:
            raise RuntimeError(f"{name} {seed}")
        return execute(plan, index, *rest)

    monkeypatch.setattr(runs, "execute", fails)
    failing = {("random", 2)}
    settings = {"nodes": 20, "in_process": True, "seeds": 3}
    compared = package.compare(["central-fifo", "random"], "small", **settings)
    assert compared.failures == {"scheduler=random/seed=2": "random 2"}
    assert {name: [r.summary["seed"] for r in runs] for name, runs in compared.results.items()} == {
        "central-fifo": [1, 3],
        "random": [1, 3],
    }
    assert "seeds without a run of every scheduler are left out: 2" in compared.notes
    assert compared.to_text().endswith("failed: scheduler=random/seed=2: random 2\n")
    # Without a seed in common the one with the fewest goes.
    failing = {("random", 2), ("random", 3), ("central-fifo", 1)}
    assert list(package.compare(["central-fifo", "random"], "small", **settings).results) == ["central-fifo"]
    failing |= {("random", 1), ("central-fifo", 2), ("central-fifo", 3)}
    with pytest.raises(RuntimeError, match="central-fifo 1"):
        package.compare(["central-fifo", "random"], "small", **settings)


# The disk.


@pytest.fixture
def whole(emu: Cli, trace: Path) -> Path:
    assert emu(*RUN, "--out", "whole").code == 0
    return Path("whole")


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """A disk that takes no file of that name, or path, with that error."""
    refused: dict[str, int] = {}
    replace = os.replace

    def refusing(source: Any, target: Any) -> None:
        for name, number in refused.items():
            if name in (str(target), Path(target).name):
                raise OSError(number, os.strerror(number))
        replace(source, target)

    monkeypatch.setattr(os, "replace", refusing)
    return refused


@pytest.mark.parametrize("name", [*TABLES, "summary.json"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named_and_what_was_computed_stays(
    number: int, name: str, whole: Path, emu: Cli, full: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    from actors.hosting.checkpoint import Checkpoints

    monkeypatch.setattr(Checkpoints, "due", lambda self: not self.saved)
    full[name] = number
    ended = emu(*RUN, "--out", "r")
    assert ended.code == 1
    advice = "when there is room, emu run --resume r resumes it"
    assert ended.line() == f"emu: r/{name}: cannot be written: {os.strerror(number)}; {advice}"
    manifest = rd.read_manifest(Path("r"))
    assert manifest["status"] == "failed"
    assert name in manifest["error"]
    assert list(Path("r/checkpoints").iterdir())
    assert not [p for p in Path("r").iterdir() if p.name.startswith(".")]
    full.clear()
    ended = emu("run", "--resume", "r", "--json")
    assert (ended.code, ended.err, json.loads(ended.out)["engine"]["restarts"]) == (0, "", 1)
    assert same_bytes(Path("r"), whole)


def test_without_a_checkpoint_a_long_run_is_kept_elsewhere(
    whole: Path, emu: Cli, full: dict[str, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    result = package.read_result(whole)
    result.summary["engine"]["wall_s"] = 100.0
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere").mkdir()
    full["r/summary.json"] = errno.ENOSPC
    with pytest.raises(
        NotWritten, match=r"; what was computed is in .*/elsewhere/emu-results-\S*/r; when there"
    ):
        result.save("r")
    (kept,) = (tmp_path / "elsewhere").glob("*/r")
    assert same_bytes(package.read_result(kept).path or Path(), whole)


def test_where_not_even_the_manifest_can_be_written(whole: Path, emu: Cli, full: dict[str, int]) -> None:
    def until_it_runs(*_: Any) -> None:
        full["manifest.json"] = full["summary.json"] = errno.ENOSPC

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(disk, "write_table", until_it_runs)
        assert "r/summary.json: cannot be written" in emu(*RUN, "--out", "r").line()
    assert rd.read_manifest(Path("r"))["status"] == "running"
    assert "r/manifest.json: cannot be written: No space left" in emu("run", "--resume", "r").err
    full.clear()
    assert emu("run", "--resume", "r").code == 0
    assert same_bytes(Path("r"), whole)
    full["manifest.json"] = errno.ENOSPC
    ended = emu(*RUN, "--out", "new")
    assert (ended.code, ended.line()) == (1, "emu: --out: new cannot be written: No space left on device")


def test_a_full_disk_ends_a_sweep_and_a_comparison(
    whole: Path, emu: Cli, full: dict[str, int], counted: list[str]
) -> None:
    source = write(SMALL)
    full["summary.json"] = errno.ENOSPC
    ended = emu("sweep", source, "--in-process", "--out", "s")
    assert ended.code == 1
    assert ended.line().endswith("No space left on device; when there is room, the same command resumes s")
    assert len(counted) == 1  # it would be so with the next one too
    ended = emu("compare", "--schedulers", "random,central-fifo", *RUN[3:], "--out", "c")
    assert ended.code == 1
    assert ended.line().endswith("when there is room, emu compare --resume c resumes it")
    full.clear()
    assert emu("sweep", source, "--in-process", "--out", "s").code == 0
    assert emu("compare", "--resume", "c").code == 0
    assert same_bytes(Path("c/scheduler=random/seed=1"), whole)


def test_a_limit_on_the_size_of_files(whole: Path, emu: Cli) -> None:
    """What a real system says, which is not always what Python's errors have been tried with."""
    least = min((whole / name).stat().st_size for name in TABLES)
    with files_at_most(least - 1):
        ended = emu(*RUN, "--out", "r")
    assert ended.code == 1
    assert (
        "parquet: cannot be written: File too large; when there is room, emu run --resume r" in ended.line()
    )
    assert emu("run", "--resume", "r").code == 0
    assert same_bytes(Path("r"), whole)


def test_places_that_cannot_be_written_are_named(whole: Path, emu: Cli) -> None:
    line = emu(*RUN, "--out", "x" * 300).line()
    assert line.endswith("cannot be written: File name too long")
    assert line.startswith("emu: --out: xxx")
    Path("file").touch()
    assert emu(*RUN, "--out", "file/r").line() == "emu: --out: file/r cannot be written: Not a directory"
    assert emu(*RUN, "--out", "file").line() == "emu: --out: file cannot be written: File exists"
    assert emu(*RUN, "--out", "/proc/r").code == 2
    assert emu("report", "whole", "--out", "file/x.html").line() == (
        "emu: file/x.html: cannot be written: Not a directory"
    )
    with pytest.raises(InputError, match="cannot be written: Not a directory"):
        package.read_result("whole").save("file/r")
    with pytest.raises(InputError, match="cannot be written"):
        package.read_result("whole").to_csv("file/r.csv")
    shutil.rmtree("whole")


@pytest.mark.slow("interrupts a process")
def test_ctrl_c_while_no_task_ends_says_which_setting_is_the_cause(
    emu: Cli, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[str] = []

    def say(text: str) -> None:
        printed.append(text)
        if text.startswith("note: "):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(commands, "say", say)
    fails = ("--set", "dynamics.mtbf=1 s", "--set", "dynamics.mttr=1 s")
    ended = emu(*RUN, "--out", "r", *fails)
    assert ended.code == 130
    line = ended.err.splitlines()[-1]
    assert line.startswith("emu: interrupted; no task has ended for ")
    assert "; likely cause: dynamics.mtbf: the longest task takes " in line
    assert line.endswith("; emu run --resume r resumes it")
    assert "no task has ended for " in printed[-1]


@pytest.mark.parametrize("with_checkpoint", [True, False])
def test_where_ray_has_gone_from_a_run_that_can_be_resumed_the_error_says_so(
    with_checkpoint: bool, emu: Cli, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any, **__: Any) -> None:
        if with_checkpoint:
            Path("r/checkpoints/000001").mkdir(parents=True)
        raise UnavailableError("--address 192.0.2.2:6379: no node of the Ray cluster there lives")

    monkeypatch.setattr("actors.hosting.runs.emulate", gone)
    ended = emu(*RUN, "--out", "r")
    advice = "; emu run --resume r resumes it" if with_checkpoint else ""
    assert (ended.code, ended.line()) == (
        1,
        f"emu: --address 192.0.2.2:6379: no node of the Ray cluster there lives{advice}",
    )
    assert rd.read_manifest(Path("r"))["status"] == "failed"
