"""Rows of coflows that have ended are given back, and more are made if few are free, by the host between events."""

from typing import Any

import numpy as np

from actors.fabric.coordinator import remove_ended
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.initial_arrays import clear, longer, sizes_of
from actors.fabric.messages import PACE, SET_EXTRA, SET_LINE, SET_RATE, SHRINK, VERDICT
from actors.kernel.cost import NO_COST
from actors.kernel.queue import Queue
from actors.transfers.books import Free, Shuffles
from actors.transfers.runs import Runs, free_runs, longest, total
from workloads.groups import rows_between

ROWS = ("flow", "line", "word")  # of rows that lie side by side, in the order of `Shuffles.span`
# Messages to agents: about flows, and about lines.
TO_AGENTS = ((SET_RATE, PACE, SET_EXTRA), (SHRINK, SET_LINE, VERDICT))


def make_room(now_ns: int, n: CoflowWorld, p: Any, s: Shuffles) -> tuple[CoflowWorld, Any, Shuffles]:
    """Return the world of coflows, the coordinator's state and the books, with rows for what the books lack."""
    give_back(now_ns, n, p, s)
    was = sizes_of(n.fabric)
    free = [free_runs(*spans_of(s, k), was[kind]) for k, kind in enumerate(ROWS)]
    now = dict(was)
    for kind, runs, wanted in zip(ROWS, free, s.lacks.tolist(), strict=True):
        now[kind] = size_for(was[kind], runs, wanted)
    coflows = np.flatnonzero(~s.in_use)
    if 2 * coflows.size < was["coflow"] or coflows.size == 0:
        now["coflow"] = 2 * max(was["coflow"], 1)
    now["group"], now["place"] = 2 * now["coflow"], 2 * now["flow"]
    now["flow or line"] = now["flow"] + now["line"]
    now["flow twice or line"] = now["flow"] + now["flow or line"]
    if now != was:
        lines = n.fabric.lines
        lines.group[lines.group >= was["coflow"]] += now["coflow"] - was["coflow"]
        n, p, s = longer(n, was, now), longer(p, was, now), longer(s, was, now)
        free = [free_runs(*spans_of(s, k), now[kind]) for k, kind in enumerate(ROWS)]
    s.lacks[:] = 0
    unused = np.flatnonzero(~s.in_use)[::-1]
    slots = np.zeros(s.in_use.size, np.int64)
    slots[: unused.size] = unused
    return n, p, s._replace(free=Free(free[0], free[1], free[2], slots, np.array([unused.size])))


def size_for(size: int, free: Runs, wanted: int) -> int:
    """Return how many rows there should be: twice as many, where fewer than half are free or no run is long enough."""
    if longest(free) >= wanted and 2 * total(free) >= size:
        return size
    return max(2 * size, size + wanted)


def spans_of(s: Shuffles, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rows of the coflows that have rows, and the rows after their last."""
    used = s.span[s.in_use]
    return used[:, 2 * k], used[:, 2 * k + 1]


def give_back(now_ns: int, n: CoflowWorld, p: Any, s: Shuffles) -> None:
    """Give back the rows of coflows that have ended, and about which no message is under way."""
    coflows = n.fabric.coflows
    remove_ended(n, p.agenda)
    has_ended = s.in_use & (s.unended == 0) & (coflows.left == 0)
    has_ended &= coflows.finish < now_ns - 2 * n.network.delay_ns
    if hasattr(p, "order"):
        has_ended[p.order.groups[: p.order.used[0]]] = False
    if n.cost.model != NO_COST:  # what the coordinator sends leaves when it is done, which may be much later
        for k, kinds in enumerate(TO_AGENTS):
            has_ended &= ~are_named(under_way(n.queue, kinds), s.span[:, 2 * k], s.span[:, 2 * k + 1])
    ended = np.flatnonzero(has_ended)
    spans = s.span[ended]
    rows = {kind: rows_between(spans[:, 2 * k], spans[:, 2 * k + 1]) for k, kind in enumerate(ROWS)}
    rows |= {"coflow": ended, "group": np.concatenate([ended, ended + s.in_use.size])}
    for part in (n, p, s):
        clear(part, rows)


def under_way(queue: Queue, kinds: tuple[int, ...]) -> np.ndarray:
    """Return the rows that messages of some kinds are about, which are under way, in order.

    With costs all messages are in the heap.
    """
    rows = np.asarray(queue.pool)[queue.heap.slot[: queue.now.heap_size[0]]]
    return np.sort(rows["a"][np.isin(rows["kind"], kinds)])


def are_named(named: np.ndarray, first: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return of each span of rows whether any of it is among those that are named, which are in order."""
    found: np.ndarray = np.searchsorted(named, end) > np.searchsorted(named, first)
    return found
