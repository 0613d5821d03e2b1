"""The decorators of compiled code, which with NUMBA_DISABLE_JIT=1 stays plain Python.

With the versions of numba that the tests have run with, each inner function is compiled and optimised once
(`actors.compiling.linking`). With others, or where the environment has EMU_KERNELS=plain, numba compiles kernels as it
does all functions, which takes several times as long. Both give the same results.
"""

import types
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.registry import CPUDispatcher

from actors.compiling.kernel_cache import IS_QUICK, KernelCache, WhenUsed, compiled_once, config, is_kept
from actors.compiling.rows import is_tree, table_of

F = TypeVar("F", bound=Callable)
_njit: Any = numba.njit  # with options that its hints do not know

if IS_QUICK:
    from actors.compiling.linking import EntryCompiler, InnerCompiler, InnerOnDisk

    class _InnerCache(KernelCache):
        _impl_class: Any = InnerOnDisk

    # Kernels allocate nothing: no reference counting, which is numba's private option.
    _ENTRY: dict[str, Any] = {"_nrt": False, "pipeline_class": EntryCompiler}
    _INNER: dict[str, Any] = {
        "_nrt": False,
        "pipeline_class": InnerCompiler,
        "no_cpython_wrapper": True,
        "no_cfunc_wrapper": True,
    }


def is_plain() -> bool:
    """Return whether kernels are plain Python."""
    return bool(config.DISABLE_JIT)


class _CalledByPython(CPUDispatcher):
    """A compiled function that takes named tuples as tables."""

    def __call__(self, *arguments: Any) -> Any:
        return super().__call__(*map(as_compiled, arguments))


class _CalledByCompiled(CPUDispatcher):
    """A compiled function without a wrapper for calls from Python, which takes as long to compile as the function.

    Where Python calls it nevertheless, as users' schedulers and tests do, a copy with a wrapper is compiled.
    """

    def __call__(self, *arguments: Any) -> Any:
        return self._for_python(*arguments)

    @cached_property
    def _for_python(self) -> Any:
        py_func = self.py_func
        copy = types.FunctionType(
            py_func.__code__, py_func.__globals__, py_func.__name__, py_func.__defaults__, py_func.__closure__
        )
        copy.__module__ = py_func.__module__
        copy.__qualname__ = f"{py_func.__qualname__}_for_python"  # which has a cache of its own
        return entry(copy)


def as_compiled(value: Any) -> Any:
    """Return a value as compiled code takes it."""
    return table_of(value) if is_tree(value) else value


def _compile(function: Any, called: type, cache: type, **options: Any) -> Any:
    made = _njit(**options)(function)
    if not config.DISABLE_JIT:
        made._cache = WhenUsed(cache, made.py_func)
        made.__class__ = called
    return made


def entry(function: F) -> F:
    """Compile a function that Python calls, such as a policy's loop; it allocates nothing, and is cached on disk."""
    made: F = _compile(function, _CalledByPython, KernelCache, **(_ENTRY if IS_QUICK else {}))
    return made


def waiting_entry(function: F) -> F:
    """As `entry`, of a function that may wait for other processes: other threads of Python run meanwhile."""
    made: F = _compile(function, _CalledByPython, KernelCache, nogil=True, **(_ENTRY if IS_QUICK else {}))
    return made


def compiled(function: F) -> F:
    """Compile a function that allocates nothing and is called from compiled code; cached on disk."""
    # Said explicitly: numba would let it inherit the caller's, and so give one function two names in the disk cache.
    return _inner(function, forceinline=False)


def inlined(function: F) -> F:
    """Compile a small function into its callers; for other functions LLVM decides."""
    return _inner(function, forceinline=True)


def template(function: F) -> F:
    """Compile a function into its callers before they are typed: its arguments may be compiled functions, as handlers.

    A loop that is given its handlers so is compiled as part of a policy's own `entry`, and kept on disk with that.
    """
    return cast(F, _njit(inline="always")(function))


def _inner(function: Any, **options: Any) -> Any:
    if not IS_QUICK:
        return _compile(function, _CalledByPython, KernelCache, **options)
    return _compile(function, _CalledByCompiled, _InnerCache, **_INNER, **options)


def direct(function: F, *arguments: Any) -> Callable[..., Any]:
    """Return `function` compiled for arguments of these types, of which named tuples come first.

    It omits numba's check of the argument types at every call, and keeps the tables of named tuples as long as it
    gets the same first and last one. An argument of another type is not detected; a plain whole number is taken for an
    int64. In place of a compiled function stands its `loop_type`.
    """
    if not isinstance(function, CPUDispatcher):
        return lambda *given: function(*(np.int64(x) if type(x) is int else x for x in given))
    called: Any = function._for_python if isinstance(function, _CalledByCompiled) else function
    with compiled_once(called):
        made = called.compile(tuple(map(_type_of, arguments)))
    count = sum(map(is_tree, arguments))
    if count == 0:
        return made
    first, last, tables = arguments[0], arguments[count - 1], [*map(table_of, arguments[:count])]

    def call(*given: Any) -> Any:  # users' schedulers make thousands of calls a second
        nonlocal first, last, tables
        if given[0] is not first or given[count - 1] is not last:
            first, last = given[0], given[count - 1]
            tables = [*map(table_of, given[:count])]
        return made(*tables, *given[count:])

    return call


def loop_type(*arguments: Any) -> Any:
    """Return the type of compiled functions that take arguments of these types and return a whole number."""
    return numba.types.FunctionType(numba.types.int64(*map(_type_of, arguments)))


def _type_of(argument: Any) -> Any:
    return argument if isinstance(argument, numba.types.Type) else numba.typeof(as_compiled(argument))


def is_warm(loop: Callable) -> bool:
    """Return whether the disk cache holds a compiled form of `loop`, a compiled function."""
    return is_plain() or is_kept(loop)
