"""A cache that plans share: workloads and clusters are loaded once, within a limit on memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from workloads.transform.primitives import Workload

ROOM_BYTES = 1 << 30
T = TypeVar("T")


class WorkloadCache:
    """A cache from keys to objects; it keeps the workloads used last, up to `room_bytes`, and always the last one."""

    def __init__(self, room_bytes: int = ROOM_BYTES):
        self._room_bytes = room_bytes
        self._made: dict[Hashable, Any] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made under a key, or make it."""
        is_new = key not in self._made
        made: T = make() if is_new else self._made.pop(key)
        self._made[key] = made  # the last one asked for
        if is_new:
            self._drop_oldest(key)
        return made

    def _drop_oldest(self, last: Hashable) -> None:
        keys: dict[int, list[Hashable]] = {}
        for key, value in self._made.items():
            if isinstance(value, Workload):
                keys.setdefault(id(value), []).append(key)
        sizes = {same: _bytes(self._made[of_it[0]]) for same, of_it in keys.items()}
        used = sum(sizes.values())
        for same, of_it in keys.items():
            if used <= self._room_bytes:
                return
            if last not in of_it:
                used -= sizes[same]
                for key in of_it:
                    del self._made[key]


def _bytes(workload: Workload) -> int:
    """Return the size of a workload's tables and arrays."""
    tables = sum(part.nbytes for part in vars(workload).values() if isinstance(part, pa.Table))
    arrays = vars(workload).get("_arrays", ())
    return int(tables + sum(a.nbytes for a in arrays if isinstance(a, np.ndarray)))
