"""Where compiled kernels are kept on disk, and when they are compiled again.

numba's disk cache does not notice that a function in *another* file changed. So a kernel is found by its fingerprint: a
hash of the function's code and of all that it calls (`actors.compiling.fingerprint`). What a function becomes depends
on this package and on versions, too; they name the folder. Only kernels are kept there: what else a process compiles
with numba stays where numba keeps it.
"""

import fcntl
import glob
import hashlib
import os
import platform
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import IO, Any

import llvmlite
import numba
import numpy as np
from numba.core import config as _config
from numba.core.caching import CompileResultCacheImpl, FunctionCache

from actors.compiling.fingerprint import closure, fingerprint

config: Any = _config  # numba sets its configuration at run time
QUICK_SINCE, QUICK_BEFORE = (0, 62), (0, 69)  # the versions of numba that the quick form was tried with
IS_QUICK = (
    os.environ.get("EMU_KERNELS") != "plain"
    and QUICK_SINCE <= tuple(int(part) for part in numba.__version__.split(".")[:2]) < QUICK_BEFORE
)
"""Whether kernels are linked by `actors.compiling.linking`."""


def _compiler_hash() -> str:
    """Return a hash of how functions are compiled: of this package, and of the versions that matter."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).resolve().parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    for package in (numba, llvmlite, np):
        digest.update(package.__version__.encode())
    # A run with bounds checks must not load what was compiled without them.
    digest.update(f"{platform.python_version()} {platform.machine()} {config.BOUNDSCHECK}".encode())
    return digest.hexdigest()[:16]


def _cache_folder() -> Path:
    """Return a writable folder for kernels: EMU_CACHE_DIR or NUMBA_CACHE_DIR, else the user's cache folder."""
    named = os.environ.get("EMU_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "emu"
    private = Path(tempfile.gettempdir()) / f"emu-cache-{os.getuid()}"
    for base in (Path(named) if named else home, private):
        folder = base / "kernels" / _compiler_hash() / ("quick" if IS_QUICK else "plain")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        # What is in it is run: in a folder that all can write to, another user may have made one of this name.
        if os.access(folder, os.W_OK) and (base is not private or base.lstat().st_uid == os.getuid()):
            return folder
    return Path(tempfile.mkdtemp(prefix="emu-cache-"))


CACHE_FOLDER = _cache_folder()


class _InFolder:
    """A locator of numba's: the place of a function's file in CACHE_FOLDER, by names alone."""

    def __init__(self, function: Any, file: str):
        self._folder = CACHE_FOLDER / Path(file).resolve().parent.name
        self._fingerprint = fingerprint(function)

    @classmethod
    def from_function(cls, function: Any, file: str) -> "_InFolder | None":
        """Return the place of a function; None if it stands in no file, and is not kept."""
        return cls(function, file) if os.path.exists(file) else None

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._folder)

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_source_stamp(self) -> None:
        """Return nothing: an edit that changes no code of the function does not count."""

    def get_disambiguator(self) -> str:
        """Return what stands in the names of files, and tells functions of one name apart."""
        return self._fingerprint


class OnDisk(CompileResultCacheImpl):
    """The form of a compiled function on disk."""

    _locator_classes: Any = (_InFolder,)


class KernelCache(FunctionCache):
    """numba's disk cache, to which one process at a time writes.

    Two that add different overloads of a function at once would give both the same file, and later processes would
    call one for the other.
    """

    _impl_class: Any = OnDisk

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function."""
        try:
            with (CACHE_FOLDER / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
                try:
                    super().save_overload(sig, data)
                except OSError:
                    raise
                except Exception:  # the index is damaged, and whatever its bytes make pickle do
                    self.flush()
                    super().save_overload(sig, data)
        except OSError as error:  # a disk that is full: the next process compiles again
            _print_once(f"compiled code is not kept: {CACHE_FOLDER}: {error.strerror or error}")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a compiled function that is kept; None if it is not, or damaged."""
        try:
            # Not numba's own, which first gets ready to compile: that takes 0.2 s, a fifth of a small run. Code with
            # reference counting needs what that makes.
            return (self._load_overload if IS_QUICK else super().load_overload)(sig, target_context)
        except Exception:  # damaged, as by a disk that was full; whatever its bytes make pickle and LLVM do
            return None


class WhenUsed:
    """A disk cache that is made when it is used: it looks for the function's file, and a run uses few functions."""

    def __init__(self, cache: type, function: Any):
        self._cache, self._function = cache, function

    @cached_property
    def _made(self) -> Any:
        return self._cache(self._function)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)


def is_kept(function: Any) -> bool:
    """Return whether a compiled form of a compiled function is on the disk."""
    files = f"*/*.{function.py_func.__qualname__}-{fingerprint(function.py_func)}.*.nbc"
    return bool(glob.glob(files, root_dir=CACHE_FOLDER, include_hidden=True))


def fingerprints_of(functions: Iterable[Any]) -> set[str]:
    """Return the fingerprints of compiled functions and of all that they call."""
    return {fingerprint(each) for function in functions for each in closure(function.py_func)}


def kept_fingerprints() -> set[str]:
    """Return the fingerprints of all functions that are on the disk."""
    return {name.rpartition("-")[2].partition(".")[0] for name in glob.glob("*/*.nbi", root_dir=CACHE_FOLDER)}


@contextmanager
def compiled_once(function: Any) -> Iterator[None]:
    """Within, no other process compiles this function: one that wants to waits here, and then finds it on the disk."""
    if is_kept(function):
        yield
        return
    lock = _lock_of(function)
    try:
        yield
    finally:
        if lock is not None:
            lock.close()


def _lock_of(function: Any) -> IO[str] | None:
    """Return a file that holds the lock of a function until it is closed; None where none can be had.

    It is a lock of one byte of the file, in the place of the function's hash: there is one file for all.
    """
    try:
        file = (CACHE_FOLDER / "compiling.lock").open("w")
        fcntl.lockf(file, fcntl.LOCK_EX, 1, int(fingerprint(function.py_func)[:15], 16))
        return file
    except OSError:
        return None


@cache
def _print_once(text: str) -> None:
    print(f"emu: note: {text}", file=sys.stderr, flush=True)
