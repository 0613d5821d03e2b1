"""Whole numbers in given proportions, by largest remainder."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt


def apportion(total: int, weights: Sequence[float]) -> npt.NDArray[np.int64]:
    """Split `total` in proportion to `weights`; the parts add up to `total`, ties go to the first.

    Examples
    --------
    >>> apportion(10, [2, 1]).tolist()
    [7, 3]
    """
    whole = sum(map(Fraction, weights))
    exact = [Fraction(w) * total / whole for w in weights]
    parts = np.array([int(x) for x in exact], np.int64)
    by_remainder = sorted(range(len(exact)), key=lambda i: int(exact[i]) - exact[i])
    parts[by_remainder[: total - int(parts.sum())]] += 1
    return parts
