"""What a compiled function depends on, as a hash: its code, and the code and constants of all that it calls.

A kernel on the disk is found by this hash, so a change of a file compiles only those kernels again that use what
changed. Comments, docstrings of modules and the place of a function in its file do not count.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

OURS = Path(__file__).resolve().parents[1]  # what else compiled code uses comes with a version

_own: dict[Callable, tuple[bytes, tuple[Callable, ...]]] = {}


@cache
def fingerprint(function: Callable) -> str:
    """Return a hash of a plain function, of all that it calls, and of the constants that these read.

    Functions may call each other in a circle: the hash is that of the set of all that can be reached.
    """
    digest = hashlib.sha256(_name(function).encode())
    for own in sorted(_describe(each)[0] for each in closure(function)):
        digest.update(own)
    return digest.hexdigest()


def closure(function: Callable) -> set[Callable]:
    """Return a plain function and all compiled ones that it calls, directly or through others, as plain functions."""
    reached = {function}
    left = [function]
    while left:
        for called in _describe(left.pop())[1]:
            if called not in reached:
                reached.add(called)
                left.append(called)
    return reached


def _describe(function: Callable) -> tuple[bytes, tuple[Callable, ...]]:
    """Return a hash of a function without what it calls, and what it calls."""
    if function not in _own:
        calls: list[Callable] = []
        digest = hashlib.sha256()
        for part in _parts(function, calls):
            digest.update(part.encode() + b"\0")
        _own[function] = digest.digest(), tuple(dict.fromkeys(calls))
    return _own[function]


def _parts(function: Any, calls: list[Callable]) -> Iterator[str]:
    yield _name(function)
    code = function.__code__
    yield from _code(code)
    for value in function.__defaults__ or ():
        yield from _value(value, code, calls)
    for cell in function.__closure__ or ():
        yield from _value(cell.cell_contents, code, calls)
    for name in sorted(_names(code)):
        if name in function.__globals__:  # else it is built into Python
            yield name
            yield from _value(function.__globals__[name], code, calls)


def _code(code: CodeType) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_argcount} {code.co_names} {code.co_varnames} {code.co_freevars}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        elif isinstance(constant, frozenset):  # whose order differs from process to process
            yield repr(sorted(map(repr, constant)))
        else:
            yield repr(constant)


def _names(code: CodeType) -> set[str]:
    """Return the names of globals that code may read; those of attributes are among them, which costs little."""
    return set(code.co_names).union(*(_names(each) for each in code.co_consts if isinstance(each, CodeType)))


def _value(value: Any, code: CodeType, calls: list[Callable]) -> Iterator[str]:
    """Yield what compiled code takes from a global value, a default or a cell; functions are added to `calls`."""
    if hasattr(value, "py_func"):  # compiled
        yield f"{_name(value.py_func)} {_options(value)}"
        calls.append(value.py_func)
    elif isinstance(value, FunctionType):
        yield f"{_name(value)} {_module_hash(value.__module__)}"  # its compiled form is an overload that stands there
    elif isinstance(value, ModuleType):
        yield value.__name__
        if _is_ours(value.__name__):  # of a module, the attributes of which this code may speak
            for name in sorted(_names(code) & vars(value).keys()):
                yield from _value(vars(value)[name], code, calls)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype.descr} {value.shape} {value.tobytes().hex()}"
    elif isinstance(value, tuple):
        yield f"{_name(type(value))} {getattr(value, '_fields', ())}"
        for each in value:
            yield from _value(each, code, calls)
    elif isinstance(value, int | float | complex | str | bytes | np.generic | np.dtype | Enum | None):
        yield f"{_name(type(value))} {value!r}"
    else:  # a class, an intrinsic; or of numba, NumPy or Python, whose versions count elsewhere
        text = repr(value)
        yield f"{_name(type(value))} {'' if ' at 0x' in text else text} {getattr(value, '__qualname__', '')}"
        yield _module_hash(getattr(value, "__module__", None))


def _options(function: Any) -> str:
    """How a function is compiled into its callers: the options of its decorator."""
    return " ".join(
        f"{key}={value!r}" for key, value in sorted(function.targetoptions.items()) if key != "pipeline_class"
    )


def _name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


@cache
def _is_ours(module: str) -> bool:
    """Whether a module has no version: one of this package, of a user's, or of the tests."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return module not in sys.builtin_module_names
    parts = Path(file).resolve()
    return parts.is_relative_to(OURS) or (
        not {"site-packages", "dist-packages"} & set(parts.parts)
        and not (parts.is_relative_to(Path(os.__file__).resolve().parent))
    )


@cache
def _module_hash(module: str | None) -> str:
    """Return a hash of a module's source; of one that comes with a version, nothing."""
    if module is None or not _is_ours(module):
        return ""
    return hashlib.sha256(Path(str(sys.modules[module].__file__)).read_bytes()).hexdigest()
