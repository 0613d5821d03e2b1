"""The disk cache of compiled code: a second process compiles nothing, and a changed source is noticed."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from python_process import ROOT, run_python

from actors.kernel import compiled
from actors.kernel.compiled import config

RUN = """
import json, sys
from numba.core.dispatcher import Dispatcher
from actors.hosting.partition import Partition
from emulations import ALL_TASKS, mixed_workload, setting_of

partition = Partition(setting_of("random", mixed_workload(20, 1), 4), ALL_TASKS)
warm = partition.is_warm()
partition.start()
while not partition.run(1.0).done:
    pass
loops = {
    id(v): v
    for name, module in sys.modules.items() if name.startswith("actors.")
    for v in vars(module).values() if isinstance(v, Dispatcher)
}
stats = [d.stats for d in loops.values()]
print(json.dumps({
    "warm": warm,
    "misses": sum(sum(s.cache_misses.values()) for s in stats),
    "hits": sum(sum(s.cache_hits.values()) for s in stats),
    "loops": len(loops),
    "folder": stats[0].cache_path,
}))
"""


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    # In a copy, so that no other process changes the sources between the two.
    root, cache = tmp_path / "emu", tmp_path / "cache"
    for folder in ("actors", "clusters", "workloads"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "emulations.py", root / "tests")
    first, second = (json.loads(run_python(RUN, root, EMU_CACHE_DIR=str(cache))) for _ in range(2))
    assert not first["warm"]
    assert first["misses"] > 0
    assert first["loops"] > 20
    assert first["folder"].startswith(str(cache))
    assert second["warm"]
    assert second["misses"] == 0
    assert second["hits"] > 0


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package's sources, and the hash taken of it."""
    copy = tmp_path / "actors"
    shutil.copytree(ROOT / "actors", copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(compiled, "__file__", str(copy / "kernel" / "compiled.py"))
    return copy


def test_a_copy_has_the_same_hash(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = compiled._source_hash()
    monkeypatch.undo()
    assert compiled._source_hash() == here


@pytest.mark.parametrize("source", ["nodes/worker.py", "kernel/random.py", "schedulers/jobs/eagle.py"])
def test_a_change_in_any_source_changes_the_hash(copied: Path, source: str) -> None:
    before = compiled._source_hash()
    path = copied / source
    path.write_text(path.read_text() + "\n")
    assert compiled._source_hash() != before


def test_a_source_that_moves_or_comes_changes_the_hash(copied: Path) -> None:
    before = compiled._source_hash()
    (copied / "nodes" / "worker.py").rename(copied / "nodes" / "other.py")
    moved = compiled._source_hash()
    (copied / "nodes" / "new.py").write_text("")
    assert len({before, moved, compiled._source_hash()}) == 3


def test_bounds_checks_and_versions_have_a_cache_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    before = compiled._source_hash()
    monkeypatch.setattr(config, "BOUNDSCHECK", 1)
    checked = compiled._source_hash()
    monkeypatch.setattr(compiled.importlib.metadata, "version", lambda package: "0")
    assert len({before, checked, compiled._source_hash()}) == 3


def test_the_folder_is_the_one_named_and_another_if_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMU_CACHE_DIR", str(tmp_path / "cache"))
    assert compiled._cache_folder() == tmp_path / "cache" / "kernels" / compiled._source_hash()
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("EMU_CACHE_DIR", str(blocked))
    monkeypatch.setattr(compiled.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = compiled._cache_folder()
    assert folder.is_dir()
    assert folder.is_relative_to(tmp_path)


def _twice(x):
    return x * 2


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
def test_a_full_cache_folder_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(compiled.FunctionCache, "save_overload", full)
    assert compiled.entry(_twice)(np.int64(3)) == 6
    printed = capsys.readouterr().err
    assert f"compiled code is not kept: {compiled.CACHE_FOLDER}: No space left on device" in printed


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
def test_a_damaged_cache_is_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*_: object) -> None:
        raise EOFError("Ran out of input")

    monkeypatch.setattr(compiled.FunctionCache, "load_overload", damaged)
    monkeypatch.setattr(compiled.FunctionCache, "save_overload", lambda *_: None)
    assert compiled.entry(_twice)(np.int64(3)) == 6


def test_a_folder_that_another_user_made_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Compiled code is loaded from there, and all users may write to a folder for temporary files."""
    monkeypatch.setattr(compiled.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("EMU_CACHE_DIR", "/proc/nowhere")
    private = tmp_path / f"emu-cache-{os.getuid()}"
    assert compiled._cache_folder().is_relative_to(private)
    before = os.getuid()
    monkeypatch.setattr(compiled.os, "getuid", lambda: before + 1)
    (tmp_path / f"emu-cache-{before + 1}").mkdir()
    assert not compiled._cache_folder().is_relative_to(tmp_path / f"emu-cache-{before + 1}")
