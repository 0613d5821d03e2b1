"""A binary heap of (key, value) pairs in two arrays; of pairs with one key the least value comes first."""

import numpy as np

from actors.kernel.compiled import compiled, inlined


@compiled
def push(keys: np.ndarray, values: np.ndarray, size: np.ndarray, key: int | float, value: int) -> None:
    """Put a pair into a heap of which `size[0]` are in use; the least pair is first."""
    i = size[0]
    size[0] = i + 1
    while i > 0:
        up = (i - 1) >> 1
        if keys[up] < key or (keys[up] == key and values[up] <= value):
            break
        keys[i], values[i] = keys[up], values[up]
        i = up
    keys[i], values[i] = key, value


@compiled
def drop(keys: np.ndarray, values: np.ndarray, size: np.ndarray) -> None:
    """Take the first pair out of a heap."""
    n = size[0] - 1
    size[0] = n
    sink_first(keys, values, n, keys[n], values[n])


@inlined
def sink_first(keys: np.ndarray, values: np.ndarray, n: int, key: int | float, value: int) -> None:
    """Put a pair in the place of the first of a heap of n, and bring it down to where it belongs."""
    i = 0
    while 2 * i + 1 < n:
        least = 2 * i + 1
        right = least + 1
        if right < n and (
            keys[right] < keys[least] or (keys[right] == keys[least] and values[right] < values[least])
        ):
            least = right
        if keys[least] > key or (keys[least] == key and values[least] >= value):
            break
        keys[i], values[i] = keys[least], values[least]
        i = least
    keys[i], values[i] = key, value
