"""A binary heap of pairs of a key and a value; of pairs with equal keys the one with the least value comes first."""

from typing import Any, NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined


class Heap(NamedTuple):
    """Pairs, of which the first is the least."""

    keys: np.ndarray
    values: np.ndarray
    size: np.ndarray  # [1] how many pairs there are


def make_heap(room: int, key: Any = 0) -> Heap:
    """Return an empty heap with room for this number of pairs, whose keys have the type of `key`."""
    return Heap(np.full(room, key), np.zeros(room, np.int64), np.zeros(1, np.int64))


@compiled
def push(heap: Heap, key: int | float, value: int) -> None:
    """Put a pair into a heap."""
    keys, values, i = heap.keys, heap.values, heap.size[0]
    heap.size[0] = i + 1
    while i > 0:
        up = (i - 1) >> 1
        if keys[up] < key or (keys[up] == key and values[up] <= value):
            break
        keys[i], values[i] = keys[up], values[up]
        i = up
    keys[i], values[i] = key, value


@compiled
def drop(heap: Heap) -> None:
    """Take the first pair out of a heap."""
    last = heap.size[0] - 1
    heap.size[0] = last
    replace_first(heap, heap.keys[last], heap.values[last])


@inlined
def replace_first(heap: Heap, key: int | float, value: int) -> None:
    """Put a pair in the place of the first of a heap, and move it down to its own place."""
    keys, values, n, i = heap.keys, heap.values, heap.size[0], 0
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
