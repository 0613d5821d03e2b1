"""Floats in the columns of messages, which are whole numbers, and times rounded to whole ns."""

import numpy as np

from actors.kernel.compiled import inlined
from actors.kernel.hints import Int


@inlined
def bits_of(value: float) -> Int:
    """Return a float's bits, as a message carries it."""
    return np.float64(value).view(np.int64)


@inlined
def float_of(bits: Int) -> float:
    """Return the float that a message's column carries."""
    return np.int64(bits).view(np.float64)


@inlined
def whole_ns(duration: float) -> Int:
    """Return a duration in ns as a whole number, at least 1."""
    return max(np.int64(duration + 0.5), np.int64(1))
