"""The disk cache of compiled code: where it is, and what becomes of a damaged one.

By what a kernel is found there is in test_fingerprint.py; that a second process compiles nothing, in
tests/test_packaging.py.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import llvmlite
import numba
import numpy as np
import pytest

from actors.compiling import kernel_cache
from actors.kernel import compiled
from actors.kernel.compiled import config

pytestmark = pytest.mark.compiled


def test_bounds_checks_and_versions_have_a_cache_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernel_cache._compiler_hash()
    monkeypatch.setattr(config, "BOUNDSCHECK", 1)
    found = {before, kernel_cache._compiler_hash()}
    for package in (numba, llvmlite, np):
        monkeypatch.setattr(package, "__version__", "0")
        found.add(kernel_cache._compiler_hash())
    assert len(found) == 5


def test_the_folder_is_the_one_named_and_another_if_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMU_CACHE_DIR", str(tmp_path / "cache"))
    below = Path("kernels") / kernel_cache._compiler_hash() / kernel_cache.CACHE_FOLDER.name
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
    assert again.stats.cache_hits == {}
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
