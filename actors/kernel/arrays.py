"""Operations of compiled code on whole arrays."""

from typing import Any

import numpy as np

from actors.kernel.compiled import compiled


@compiled
def fill(values: np.ndarray, value: Any) -> None:
    """Set every element to `value`."""
    for i in range(values.size):
        values[i] = value


@compiled
def largest(values: np.ndarray) -> int:
    """Return the index of the largest element, the first of several."""
    place = 0
    for i in range(1, values.size):
        if values[i] > values[place]:
            place = i
    return place


@compiled
def first_from(values: np.ndarray, low: int, end: int, least: Any) -> int:
    """Return the first place from `low` on whose element is at least `least`, `end` if none is; elements ascend."""
    while low < end:
        middle = (low + end) >> 1
        if values[middle] < least:
            low = middle + 1
        else:
            end = middle
    return low


@compiled
def total(values: np.ndarray) -> Any:
    """Return the sum of all elements."""
    found = values[0] - values[0]
    for i in range(values.size):
        found += values[i]
    return found
