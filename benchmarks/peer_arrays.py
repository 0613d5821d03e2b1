"""Compiled functions that the simulators of peers' rules share: plain loops in the place of NumPy's functions.

Each of NumPy's ways to make, add, compare or sort arrays takes numba up to a second to compile: the simulators get
their arrays from Python, and change them in loops.
"""

import numba
import numpy as np

NONE = np.int64(-1)

# Of what only compiled code calls: a wrapper for Python would take as long to compile as the function.
inner = numba.njit(cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


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
