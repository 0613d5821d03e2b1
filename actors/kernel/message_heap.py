"""The 4-ary heap of an event queue: messages in slots of a pool, ordered by time and key.

Nodes of the heap hold time and slot alone, so that a sift moves 16 bytes and not a message of 64.
"""

from typing import Any

from actors.kernel.compiled import compiled, inlined
from actors.kernel.records import Records


@inlined
def write_message(
    rows: Records, i: int, time: int, key: int, kind: int, dst: int, a: int, b: int, c: int, d: int
) -> None:
    """Write a message into row `i`."""
    rows.time[i], rows.key[i], rows.kind[i], rows.dst[i] = time, key, kind, dst
    rows.a[i], rows.b[i], rows.c[i], rows.d[i] = a, b, c, d


@inlined
def copy_message(to: Any, source: Records, i: int) -> None:
    """Copy row `i` of `source` into the single row `to`."""
    to.time[0], to.key[0], to.kind[0], to.dst[0] = (
        source.time[i],
        source.key[i],
        source.kind[i],
        source.dst[i],
    )
    to.a[0], to.b[0], to.c[0], to.d[0] = source.a[i], source.b[i], source.c[i], source.d[i]


@compiled
def push(
    now: Records,
    heap: Records,
    pool: Records,
    time: int,
    key: int,
    kind: int,
    dst: int,
    a: int,
    b: int,
    c: int,
    d: int,
) -> None:
    """Insert a message into the heap of a queue."""
    i = now.heap_size[0]
    slot = heap.slot[i]
    now.heap_size[0] = i + 1
    write_message(pool, slot, time, key, kind, dst, a, b, c, d)
    while i > 0:
        up = (i - 1) >> 2
        if heap.time[up] < time or (heap.time[up] == time and pool.key[heap.slot[up]] < key):
            break
        heap.time[i], heap.slot[i] = heap.time[up], heap.slot[up]
        i = up
    heap.time[i], heap.slot[i] = time, slot


@inlined
def drop_first(now: Records, heap: Records, pool: Records) -> None:
    """Remove the first message of the heap, and free its slot."""
    n = now.heap_size[0] - 1
    now.heap_size[0] = n
    time, slot = heap.time[n], heap.slot[n]
    heap.slot[n] = heap.slot[0]
    if n == 0:
        return
    key = pool.key[slot]
    i = 0
    while 4 * i + 1 < n:
        least = 4 * i + 1
        for child in range(least + 1, min(least + 4, n)):
            if heap.time[child] < heap.time[least] or (
                heap.time[child] == heap.time[least]
                and pool.key[heap.slot[child]] < pool.key[heap.slot[least]]
            ):
                least = child
        if heap.time[least] > time or (heap.time[least] == time and pool.key[heap.slot[least]] > key):
            break
        heap.time[i], heap.slot[i] = heap.time[least], heap.slot[least]
        i = least
    heap.time[i], heap.slot[i] = time, slot
