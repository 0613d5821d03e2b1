"""The disk cache of compiled code: a changed source is noticed.

That a second process compiles nothing is in tests/test_packaging.py.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import llvmlite
import numba
import numpy as np
import pytest
from python_process import ROOT

from actors.compiling import kernel_cache
from actors.kernel import compiled
from actors.kernel.compiled import config


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package's sources, and the hash taken of it."""
    copy = tmp_path / "actors"
    shutil.copytree(ROOT / "actors", copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(kernel_cache, "__file__", str(copy / "kernel" / "kernel_cache.py"))
    return copy


def test_a_copy_has_the_same_hash(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = kernel_cache._source_hash()
    monkeypatch.undo()
    assert kernel_cache._source_hash() == here


@pytest.mark.parametrize("source", ["nodes/worker.py", "kernel/random.py", "schedulers/jobs/eagle.py"])
def test_a_change_in_any_source_changes_the_hash(copied: Path, source: str) -> None:
    before = kernel_cache._source_hash()
    path = copied / source
    path.write_text(path.read_text() + "\n")
    assert kernel_cache._source_hash() != before


def test_a_source_that_moves_or_comes_changes_the_hash(copied: Path) -> None:
    before = kernel_cache._source_hash()
    (copied / "nodes" / "worker.py").rename(copied / "nodes" / "other.py")
    moved = kernel_cache._source_hash()
    (copied / "nodes" / "new.py").write_text("")
    assert len({before, moved, kernel_cache._source_hash()}) == 3


def test_bounds_checks_and_versions_have_a_cache_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernel_cache._source_hash()
    monkeypatch.setattr(config, "BOUNDSCHECK", 1)
    found = {before, kernel_cache._source_hash()}
    for package in (numba, llvmlite, np):
        monkeypatch.setattr(package, "__version__", "0")
        found.add(kernel_cache._source_hash())
    assert len(found) == 5


def test_the_folder_is_the_one_named_and_another_if_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMU_CACHE_DIR", str(tmp_path / "cache"))
    below = Path("kernels") / kernel_cache._source_hash() / kernel_cache.CACHE_FOLDER.name
    assert kernel_cache._cache_folder() == tmp_path / "cache" / below
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("EMU_CACHE_DIR", str(blocked))
    monkeypatch.setattr(kernel_cache.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = kernel_cache._cache_folder()
    assert folder.is_dir()
    assert folder.is_relative_to(tmp_path)


def _twice(x):
    return x * 2


def kept_of_twice(what: str) -> dict[Path, bytes]:
    """The files of `_twice` in the cache."""
    return {path: path.read_bytes() for path in kernel_cache.CACHE_FOLDER.glob(f"*/*._twice-*.{what}")}


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
def test_a_full_cache_folder_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for path in kept_of_twice("nb?"):  # by an earlier run of the tests
        path.unlink()
    monkeypatch.setattr(kernel_cache.FunctionCache, "save_overload", full)
    assert compiled.entry(_twice)(np.int64(3)) == 6
    printed = capsys.readouterr().err
    assert f"compiled code is not kept: {kernel_cache.CACHE_FOLDER}: No space left on device" in printed


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
@pytest.mark.parametrize("damage", [b"", b"half", b"zeros", b"text"])
@pytest.mark.parametrize("what", ["nbi", "nbc"])
def test_a_damaged_cache_is_compiled_again_and_written_again(what: str, damage: bytes) -> None:
    assert compiled.entry(_twice)(np.int64(3)) == 6
    whole = kept_of_twice(what)
    assert whole
    for path, content in whole.items():
        half = content[: len(content) // 2]
        path.write_bytes(
            {b"half": half, b"zeros": half + bytes(len(half)), b"text": b"not a pickle\n" * 20}.get(
                damage, b""
            )
        )
    again = compiled.entry(_twice)
    assert again(np.int64(4)) == 8
    assert again.stats.cache_hits == {}  # type: ignore[attr-defined]
    assert compiled.entry(_twice)(np.int64(5)) == 10
    mended = kept_of_twice(what)
    assert mended.keys() == whole.keys()
    assert all(
        len(content) > len(whole[path]) * 0.9 for path, content in mended.items()
    )  # names have numbers


def test_a_folder_that_another_user_made_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Compiled code is loaded from there, and all users may write to a folder for temporary files."""
    monkeypatch.setattr(kernel_cache.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("EMU_CACHE_DIR", "/proc/nowhere")
    private = tmp_path / f"emu-cache-{os.getuid()}"
    assert kernel_cache._cache_folder().is_relative_to(private)
    before = os.getuid()
    monkeypatch.setattr(kernel_cache.os, "getuid", lambda: before + 1)
    (tmp_path / f"emu-cache-{before + 1}").mkdir()
    assert not kernel_cache._cache_folder().is_relative_to(tmp_path / f"emu-cache-{before + 1}")
