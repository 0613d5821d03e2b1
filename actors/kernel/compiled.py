"""The decorators of compiled code, and its disk cache.

Kernels allocate nothing, so they are compiled without reference counting (numba's private option `_nrt`),
which halves the cost of passing arrays. With NUMBA_DISABLE_JIT=1 functions stay plain Python.

numba's own cache does not notice that a function in *another* file changed. The cache folder is therefore
keyed by a hash of all compiled sources and of the versions that matter.
"""

import fcntl
import glob
import hashlib
import importlib
import os
import platform
import sys
import tempfile
import types
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import llvmlite
import numba
import numpy as np
from numba.core import config as _config
from numba.core.caching import FunctionCache
from numba.core.registry import CPUDispatcher
from numba.np import linalg as _linalg

from actors.kernel.linking import EntryCompiler, InnerCompiler, InnerOnDisk
from actors.kernel.rows import Table, is_tree, table_of


def _import_without_scipy() -> None:
    """Import numba's functions of arrays, which ask for SciPy's BLAS: to import it takes a sixth of a small run.

    What uses BLAS, such as `np.dot`, asks again when it is compiled.
    """
    ensure_blas: Any = _linalg.ensure_blas

    def there_is_none() -> None:
        raise ImportError

    try:
        _linalg.ensure_blas = there_is_none
        importlib.import_module("numba.np.arraymath")
    finally:
        _linalg.ensure_blas = ensure_blas


_import_without_scipy()
config: Any = _config  # numba sets its configuration at run time
_njit: Any = numba.njit  # with options that its hints do not know


def _source_hash() -> str:
    """Return a hash of every source file of this package, of numba's and NumPy's versions, and of Python's."""
    digest = hashlib.sha256()
    root = Path(__file__).resolve().parents[1]
    for path in sorted(glob.glob("**/*.py", root_dir=root, recursive=True)):
        digest.update(path.encode() + b"\0" + (root / path).read_bytes())
    for package in (numba, llvmlite, np):
        digest.update(package.__version__.encode())
    # A run with bounds checks must not load what was compiled without them.
    digest.update(f"{platform.python_version()} {platform.machine()} {config.BOUNDSCHECK}".encode())
    return digest.hexdigest()[:16]


def _cache_folder() -> Path:
    """Return a writable folder for compiled code: EMU_CACHE_DIR or NUMBA_CACHE_DIR, else the user's cache folder."""
    named = os.environ.get("EMU_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "emu"
    private = Path(tempfile.gettempdir()) / f"emu-cache-{os.getuid()}"
    for base in (Path(named) if named else home, private):
        folder = base / "kernels" / _source_hash()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        # What is in it is run: in a folder that all can write to, another user may have made one of this name.
        if os.access(folder, os.W_OK) and (base is not private or base.lstat().st_uid == os.getuid()):
            return folder
    return Path(tempfile.mkdtemp(prefix="emu-cache-"))


F = TypeVar("F", bound=Callable)

SOURCE_HASH = _source_hash()  # of the sources that this process runs, whatever happens to them later
CACHE_FOLDER = _cache_folder()
# Must stand before the first decorated function: numba fixes the place when it decorates.
config.CACHE_DIR = str(CACHE_FOLDER)


class _CalledByPython(CPUDispatcher):
    """A compiled function that takes named tuples as tables."""

    def __call__(self, *arguments: Any) -> Any:
        return super().__call__(*map(as_compiled, arguments))


class _CalledByCompiled(CPUDispatcher):
    """A compiled function without a wrapper for calls from Python, which takes as long to compile as the function.

    Where Python calls it nevertheless, as tests do, a copy with a wrapper is compiled.
    """

    def __call__(self, *arguments: Any) -> Any:
        return self._for_python(*arguments)

    @cached_property
    def _for_python(self) -> Any:
        f = self.py_func
        copy = types.FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
        copy.__module__ = f.__module__
        copy.__qualname__ = f"{f.__qualname__}_for_python"  # which has a cache of its own
        return entry(copy)


def as_compiled(value: Any) -> Any:
    """Return a value as compiled code takes it."""
    return table_of(value) if is_tree(value) else value


@cache
def _print_once(text: str) -> None:
    print(f"emu: note: {text}", file=sys.stderr, flush=True)


class _OneWriter(FunctionCache):
    """numba's disk cache, to which one process at a time writes.

    Two that add different overloads of a function at once would give both the same file, and later processes would
    call one for the other.
    """

    def save_overload(self, sig: Any, data: Any) -> None:
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
        try:
            # Not numba's own, which first gets ready to compile: that takes 0.2 s, a fifth of a small run.
            return self._load_overload(sig, target_context)
        except Exception:  # damaged, as by a disk that was full; whatever its bytes make pickle and LLVM do
            return None


class _OfInner(_OneWriter):
    _impl_class: Any = InnerOnDisk


class _WhenUsed:
    """A disk cache that is made when it is used: it looks for the function's file, and a run uses few functions."""

    def __init__(self, cache: type, function: Any):
        self._cache, self._function = cache, function

    @cached_property
    def _made(self) -> Any:
        return self._cache(self._function)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)


def _compile(function: Any, called: type, cache: type, **options: Any) -> Any:
    made = _njit(_nrt=False, **options)(function)
    if not config.DISABLE_JIT:
        made._cache = _WhenUsed(cache, made.py_func)
        made.__class__ = called
    return made


def entry(function: F) -> F:
    """Compile a function that Python calls, such as a policy's loop; it allocates nothing, and is cached on disk."""
    compiled_for_python: F = _compile(function, _CalledByPython, _OneWriter, pipeline_class=EntryCompiler)
    return compiled_for_python


def direct(function: F, *arguments: Any) -> Callable[..., Any]:
    """Return `function` compiled for arguments of these types, to be called with such alone.

    It omits numba's check of the argument types at every call, and keeps the tables of named tuples as long as it
    gets the same ones. An argument of another type is not detected; a plain whole number is taken for an int64.
    """
    if not isinstance(function, CPUDispatcher):
        return lambda *given: function(*(np.int64(x) if type(x) is int else x for x in given))
    kept = [as_compiled(argument) for argument in arguments]
    made: Any = function.compile(tuple(numba.typeof(argument) for argument in kept))
    trees = [i for i, argument in enumerate(kept) if isinstance(argument, Table)]
    if trees == [0, 1]:  # a world and a state: users' schedulers call so, thousands of times a second
        world, state = arguments[:2]
        tables = tuple(kept[:2])

        def call_two(given: Any, own: Any, *numbers: Any) -> Any:
            nonlocal world, state, tables
            if given is not world or own is not state:
                world, state = given, own
                tables = table_of(world), table_of(state)
            return made(*tables, *numbers)

        return call_two

    def call(*given: Any) -> Any:
        values = [*given]
        for i in trees:
            if kept[i].tree is not given[i]:
                kept[i] = table_of(given[i])
            values[i] = kept[i]
        return made(*values)

    return call


def compiled(function: F) -> F:
    """Compile a function that allocates nothing and is called from compiled code; cached on disk."""
    # Said explicitly: numba would let it inherit the caller's, and so give one function two names in the disk cache.
    return _inner(function, forceinline=False)


def inlined(function: F) -> F:
    """Compile a small function into its callers; for other functions LLVM decides."""
    return _inner(function, forceinline=True)


def _inner(function: Any, **options: Any) -> Any:
    no_wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return _compile(
        function, _CalledByCompiled, _OfInner, pipeline_class=InnerCompiler, **no_wrappers, **options
    )


def is_warm(loop: Callable) -> bool:
    """Return whether the disk cache holds a compiled form of `loop`, a module-level compiled function."""
    if config.DISABLE_JIT:
        return True
    module = loop.__module__.rpartition(".")[2]
    files = f"*/{module}.{loop.__name__}-*.nbc"  # numba's folders are called as those of the sources
    return bool(glob.glob(files, root_dir=CACHE_FOLDER, include_hidden=True))
