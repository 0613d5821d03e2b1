"""The one decorator of compiled code, and the disk cache behind it.

Kernels allocate nothing, so they are compiled without reference counting (numba's private option `_nrt`),
which halves the cost of passing arrays. With NUMBA_DISABLE_JIT=1 the decorator leaves plain Python.

numba's own cache does not notice that a function in *another* file changed. The cache folder is therefore
keyed by a hash of all compiled sources and of the versions that matter.
"""

import hashlib
import importlib.metadata
import os
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import config as _config

config: Any = _config  # numba sets its configuration at run time


def _source_hash() -> str:
    """Hash of every source file of this package, of numba's and NumPy's versions, and of Python's."""
    digest = hashlib.sha256()
    root = Path(__file__).resolve().parents[1]
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    for package in ("numba", "llvmlite", "numpy"):
        digest.update(importlib.metadata.version(package).encode())
    # A run with bounds checks must not load what was compiled without them.
    digest.update(f"{platform.python_version()} {platform.machine()} {config.BOUNDSCHECK}".encode())
    return digest.hexdigest()[:16]


def _cache_folder() -> Path:
    """A writable folder for compiled code; EMU_CACHE_DIR or NUMBA_CACHE_DIR, else the user's cache folder."""
    named = os.environ.get("EMU_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "emu"
    private = Path(tempfile.gettempdir()) / f"emu-cache-{os.getuid()}"
    for base in (Path(named) if named else home, private):
        folder = base / "kernels" / _source_hash()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix="emu-cache-"))


F = TypeVar("F", bound=Callable)

CACHE_FOLDER = _cache_folder()
# Must stand before the first decorated function: numba fixes the place when it decorates.
config.CACHE_DIR = str(CACHE_FOLDER)


_OPTIONS: dict[str, Any] = {"cache": True, "_nrt": False}


def compiled(function: F) -> F:
    """Compile a function that allocates nothing; cached on disk."""
    return numba.njit(**_OPTIONS)(function)


def inlined(function: F) -> F:
    """Compile a small function into its callers.

    A named tuple of arrays is hundreds of bytes when passed by value; inlining a handler into its loop was
    measured to be worth 1.6 times in events per second (docs/architecture.md, Departures).
    """
    return numba.njit(forceinline=True, **_OPTIONS)(function)


def is_warm(loop: Callable) -> bool:
    """Whether the disk cache holds a compiled form of `loop`, a module-level compiled function."""
    if config.DISABLE_JIT:
        return True
    module = loop.__module__.rpartition(".")[2]
    return any(CACHE_FOLDER.rglob(f"{module}.{loop.__name__}-*.nbc"))
