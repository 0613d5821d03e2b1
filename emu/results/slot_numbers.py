"""Slots of machines for intervals that overlap."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]


def slot_numbers(machine: npt.NDArray[Any], start: npt.NDArray[Any], finish: npt.NDArray[Any]) -> Int64Array:
    """Return a slot for each interval, shape (n,), from 0: in order of starts, the lowest free slot of its machine."""
    slot = np.zeros(machine.size, np.int64)
    order = np.lexsort((start, machine))
    ordered = machine[order]
    next_is_same = ordered[1:] == ordered[:-1]
    overlap = next_is_same & (start[order][1:] < finish[order][:-1])
    # Machines whose intervals do not overlap have one slot.
    shared = order[np.isin(ordered, ordered[1:][overlap])]
    now: Any = None
    running: list[tuple[Any, int]] = []
    free: list[int] = []
    of_shared = zip(*(values[shared].tolist() for values in (machine, start, finish)), strict=True)
    for row, (on, begin, end) in zip(shared.tolist(), of_shared, strict=True):
        if on != now:
            now, running, free = on, [], []
        while running and running[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(running)[1])
        slot[row] = heapq.heappop(free) if free else len(running)
        heapq.heappush(running, (end, int(slot[row])))
    return slot
