"""Sums of whole numbers that an int64 need not hold.

An int64 of nanoseconds holds 292 years, 9.2 billion seconds, and NumPy wraps around without an error. One time of a
run stays below that; what the tasks of a workload take together, or its messages wait, need not.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]

_HALF = 32
_SAFE = 2.0**62


def exact_sum(values: Int64Array) -> int:
    """Return the sum of whole numbers, exact however large it is, of up to 2**31 of them.

    Examples
    --------
    >>> exact_sum(np.full(4, 2**62)) == 2**64
    True
    """
    values = np.asarray(values, np.int64)
    low: Int64Array = values & ((1 << _HALF) - 1)
    return (int((values >> _HALF).sum()) << _HALF) + int(low.sum())


def group_sums(
    values: Int64Array, times: Int64Array, first: Int64Array
) -> npt.NDArray[np.int64 | np.float64]:
    """Return the sums over groups of rows of `values`, each so many `times`: exact where int64 holds them all.

    Parameters
    ----------
    values : ndarray of int64, shape (N, R)
        None is negative.
    times : ndarray of int64, shape (N,)
    first : ndarray of int64, shape (G,)
        Where groups begin.

    Returns
    -------
    ndarray, shape (G, R)
        int64, or float64 where a sum exceeds it.
    """
    wide = np.add.reduceat(values * times[:, None].astype(np.float64), first)
    return wide if wide.max(initial=0.0) > _SAFE else np.add.reduceat(values * times[:, None], first)
