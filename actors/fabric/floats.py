"""Floats in the columns of messages, which are whole numbers, and times rounded to whole ns."""

from typing import Any

import numpy as np

from actors.kernel.compiled import inlined


@inlined
def bits_of(value: float) -> Any:
    """Return a float's bits, as a message carries it."""
    return np.float64(value).view(np.int64)


@inlined
def float_of(bits: int) -> float:
    """Return the float that a message's column carries."""
    return np.int64(bits).view(np.float64)  # type: ignore[attr-defined]


_FAR = 1e18  # ns, 32 years: what takes longer, at next to no rate, would not fit into a time


@inlined
def whole_ns(duration: float) -> int:
    """Return a duration in ns as a whole number, from 1 to that of 32 years."""
    return max(np.int64(min(duration, _FAR) + 0.5), np.int64(1))
