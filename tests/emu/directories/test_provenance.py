"""The record of a run: what its manifest says of when, where, by what it was made; and what that does not change."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sweep_grids import SMALL, write

import emu as emu_package
from emu.directories import provenance
from emu.running import emulation
from emu.sweeps.sweep import prepare_sweep, sweep
from workloads.jobs import JobWorkload

Cli = Callable[..., Any]
RUN = ("run", "--scheduler", "random", "--nodes", "9", "--in-process", "--workload", "small")


def recorded(folder: str | Path) -> dict[str, Any]:
    return json.loads((Path(folder) / "manifest.json").read_text())["record"]


def test_a_manifest_says_when_where_and_by_which_command(emu: Cli, trace: Path) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    argv = (*RUN, "--seed", "3", "--set", "network.delay=1 ms", "--out", "r")
    assert emu(*argv).code == 0
    found = recorded("r")
    assert found["command"] == ["emu", *argv]
    assert found["host"] == socket.gethostname()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["date"])
    assert before <= datetime.fromisoformat(found["date"]) <= datetime.now(UTC)


def test_in_python_there_is_no_command(workload: JobWorkload, tmp_path: Path) -> None:
    result = emu_package.run("random", workload, 9, in_process=True, out=tmp_path / "r")
    assert recorded(tmp_path / "r") == result.manifest["record"]
    assert set(result.manifest["record"]) <= {"date", "host", "source"}


@pytest.mark.parametrize(
    "command",
    [("compare", "--schedulers", "random,central-fifo"), ("run", "--scheduler", "random", "--seeds", "2")],
)
def test_of_several_runs_the_whole_and_each_have_one(emu: Cli, trace: Path, command: tuple[str, ...]) -> None:
    argv = (*command, "--nodes", "9", "--in-process", "--workload", "small", "--out", "c")
    assert emu(*argv).code == 0
    manifests = sorted(path.parent for path in Path("c").rglob("manifest.json"))
    assert len(manifests) == 3
    assert {tuple(recorded(folder)["command"]) for folder in manifests} == {("emu", *argv)}


def test_a_run_that_is_gone_on_with_keeps_its_record(
    emu: Cli, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from emu.running import runs

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "execute", interrupted)
    assert emu(*RUN, "--out", "r").code == 130
    was = recorded("r")
    monkeypatch.setattr(runs, "execute", emulation.execute)
    monkeypatch.setattr(socket, "gethostname", lambda: "another")
    assert emu("run", "--resume", "r").code == 0
    assert recorded("r") == was


def test_a_record_decides_nothing(
    emu: Cli, trace: Path, counted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(SMALL)
    sweep(path, in_process=True)
    was = recorded("runs/sweep-grid")
    counted.clear()
    monkeypatch.setattr(socket, "gethostname", lambda: "another")
    assert all(run.is_done() for run in prepare_sweep(path).runs)
    assert emu("sweep", "grid.toml", "--in-process").code == 0
    assert counted == []
    assert recorded("runs/sweep-grid") == was
    identities = []
    for host in ("one", "two"):
        monkeypatch.setattr(socket, "gethostname", lambda host=host: host)
        plan = prepare_sweep(path).runs[0].plan
        assert plan.manifest(0)["record"]["host"] == host
        identities.append(plan.identity(0))
    assert identities[0] == identities[1]


# The source


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A git checkout with a file, which stands for that of Emu."""
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    root = tmp_path / "checkout"
    (root / "emu").mkdir(parents=True)
    (root / "emu" / "a.py").write_text("one\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "first")
    monkeypatch.setattr(provenance, "_ROOT", root)
    provenance._source.cache_clear()
    yield root
    provenance._source.cache_clear()


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_the_commit_and_whether_the_source_differs(checkout: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    assert provenance.provenance()["source"] == {"commit": head, "modified": False}
    (checkout / "notes.txt").write_text("of no account")
    provenance._source.cache_clear()
    assert provenance.provenance()["source"] == {"commit": head, "modified": False}
    (checkout / "emu" / "b.py").write_text("new\n")
    provenance._source.cache_clear()
    assert provenance.provenance()["source"] == {"commit": head, "modified": True}
    (checkout / "emu" / "b.py").unlink()
    (checkout / "emu" / "a.py").write_text("two\n")
    provenance._source.cache_clear()
    assert provenance.provenance()["source"]["modified"]


def test_another_repository_is_not_taken_for_the_source(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert provenance.provenance()["source"]["commit"] == head
    inside = checkout / "site-packages"  # an installed Emu, in an environment within another repository
    inside.mkdir()
    monkeypatch.setattr(provenance, "_ROOT", inside)
    provenance._source.cache_clear()
    assert "source" not in provenance.provenance()


def test_without_git_there_is_no_commit(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "source" not in provenance.provenance()
