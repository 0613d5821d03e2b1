"""Compiled functions that the simulators of peers' rules share: plain loops in the place of NumPy's functions.

Each of NumPy's ways to make, add, compare or sort arrays takes numba up to a second to compile: the simulators get
their arrays from Python, in named tuples that are passed as tables, and change them in loops.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from actors.compiling.linking import EntryCompiler, InnerCompiler
from actors.kernel.compiled import as_compiled

NONE = np.int64(-1)

# As `actors.kernel.compiled`, which names the folder of compiled code, for functions that make lists. What only
# compiled code calls has no cache of its own.
_outer: Any = numba.njit(cache=True, pipeline_class=EntryCompiler)
inner: Any = numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=InnerCompiler)


def outer(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that Python calls with named tuples of arrays."""
    made = _outer(function)
    if made is function:  # NUMBA_DISABLE_JIT
        return function
    return lambda *arguments: made(*map(as_compiled, arguments))


@inner
def by_key(key, order):
    """Return the numbers of a list by their keys; those of equal keys stay as they are."""
    found = [NONE for _ in range(0)]
    for number in order:
        found.append(number)
        i = len(found) - 1
        while i > 0 and key[found[i - 1]] > key[number]:
            found[i] = found[i - 1]
            i -= 1
        found[i] = number
    return found


@inner
def set_all(values, to):
    """Set all of a matrix."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[i, j] = to


@inner
def take(values, less):
    """Subtract one matrix from another."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[i, j] -= less[i, j]
