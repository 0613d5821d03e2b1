"""Spans of time as arrays: their overlap, the time that they cover together, who held nodes, what was free."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu.explaining.event_record import NONE, BoolArray, IntArray, Record
from emu.explaining.explanation import NS
from workloads.arrow import optional_column

NEVER = np.iinfo(np.int64).max


def whole(values: npt.NDArray[np.float64], scale: float = 1.0) -> IntArray:
    """Return values times a scale as whole numbers; -1 for what is not finite."""
    known = np.isfinite(values)
    return np.where(known, np.rint(np.where(known, values, 0.0) * scale), NONE).astype(np.int64)


def overlap_ns(begins: IntArray, ends: IntArray, begin_ns: int, end_ns: int) -> IntArray:
    """Return the length of each span within another one, ns."""
    return np.maximum(np.minimum(ends, end_ns) - np.maximum(begins, begin_ns), 0)


def merged(begins: IntArray, ends: IntArray) -> list[tuple[int, int]]:
    """Return the union of spans as pairs of times, in order."""
    found: list[tuple[int, int]] = []
    order = np.argsort(begins, kind="stable")
    for begin, end in zip(begins[order].tolist(), ends[order].tolist(), strict=True):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif end > begin:
            found.append((begin, end))
    return found


def covered_ns(begins: IntArray, ends: IntArray) -> int:
    """Return the length of the union of spans, ns; a span that ends before it begins counts as empty."""
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    before = np.concatenate([begins[:1], ends[:-1]])
    return int(np.maximum(ends - np.maximum(begins, before), 0).sum())


def until_ns(record: Record, begins: IntArray, ends: IntArray, of: IntArray) -> IntArray:
    """Return when each of the events `begins` is followed by one of `ends` of the same actor or task; NEVER if not.

    Parameters
    ----------
    begins, ends : ndarray of int64
        Rows of the record.
    of : ndarray of int64
        By row of the record: the actor, or task, that begins and ends in turn.
    """
    if begins.size == 0:
        return np.zeros(0, np.int64)
    rows = np.concatenate([begins, ends])
    order = np.lexsort((rows, record.time_ns[rows], of[rows]))
    following = np.empty(rows.size, np.int64)
    following[order] = np.append(order[1:], NONE)
    after = following[: begins.size]
    is_end = (after >= begins.size) & (of[rows[after]] == of[begins])
    return np.where(is_end, record.time_ns[rows[after]], NEVER)


class Held(NamedTuple):
    """Spans in which tasks held nodes: ndarrays of int64, shape (n,).

    Attributes
    ----------
    job : row of the job in the table of jobs; -1: the node was down
    task : the task from 0 over all in workload order; -1: the node was down
    node, begin_ns, end_ns : where, and from when to when; NEVER if it did not end
    """

    job: IntArray
    task: IntArray
    node: IntArray
    begin_ns: IntArray
    end_ns: IntArray

    def rows(self, which: npt.NDArray[np.generic]) -> Held:
        """Return some of the spans."""
        return Held(*(values[which] for values in self))

    def beside(self, *others: Held) -> Held:
        """Return these spans, then others."""
        return Held(*map(np.concatenate, zip(self, *others, strict=True)))

    def within(self, begin_ns: int, end_ns: int) -> IntArray:
        """Return the length of each within a span of time, ns."""
        return overlap_ns(self.begin_ns, self.end_ns, begin_ns, end_ns)

    def at(self, at_ns: int) -> IntArray:
        """Return the rows of those that held a node at a time."""
        return np.flatnonzero((self.begin_ns <= at_ns) & (self.end_ns > at_ns))


def held_by_tasks(table: pa.Table, job: IntArray) -> Held:
    """Return what tasks held from their start to their end, by the table of tasks; ``job``: of each, by its row."""
    node, start_ns, finish_ns = (
        whole(optional_column(table, name), scale)
        for name, scale in (("node", 1.0), ("start_s", NS), ("finish_s", NS))
    )
    finish_ns = np.where(finish_ns == NONE, NEVER, finish_ns)
    return Held(job, np.arange(job.size), node, start_ns, finish_ns).rows(start_ns != NONE)


class ByNode:
    """Spans in which tasks held nodes, by node."""

    def __init__(self, held: Held, num_nodes: int):
        self._held, self._order = held, np.argsort(held.node, kind="stable")
        self._bounds = np.searchsorted(held.node[self._order], np.arange(num_nodes + 1))

    def rows(self, node: int, begin_ns: int, end_ns: int) -> IntArray:
        """Return the rows of those that held a node within a span of time."""
        rows = self._order[self._bounds[node] : self._bounds[node + 1]]
        return rows[(self._held.end_ns[rows] > begin_ns) & (self._held.begin_ns[rows] < end_ns)]


def outages(record: Record, begins: str, ends: str, actor: IntArray, num_nodes: int) -> Held:
    """Return the spans from events of a kind to the next of another, of nodes that ``actor`` names by event."""
    rows, back = (np.flatnonzero(record.is_kind(kind) & (actor < num_nodes)) for kind in (begins, ends))
    none = np.full(rows.size, NONE)
    return Held(none, none, actor[rows], record.time_ns[rows], until_ns(record, rows, back, actor))


class Free(NamedTuple):
    """What was free of nodes between two changes, in order of node and time: ndarrays of int64, shape (K,).

    Attributes
    ----------
    node, begin_ns, end_ns : where, and from when to when
    amount : shape (K, R)
    """

    node: IntArray
    begin_ns: IntArray
    end_ns: IntArray
    amount: IntArray

    @property
    def lasted(self) -> IntArray:
        """The length of each span, ns."""
        return self.end_ns - self.begin_ns

    def that_fits(self, needs: IntArray, gap_ns: int) -> Free:
        """Return, by node and time, each time for more than `gap_ns` in which so much was free throughout."""
        fits: BoolArray = np.asarray((self.amount >= needs).all(axis=1))
        follows = fits & np.append(False, fits[:-1] & (self.node[1:] == self.node[:-1]))[: fits.size]
        begins, ends = fits & ~follows, fits & ~np.append(follows[1:], False)
        long_enough = self.end_ns[ends] - self.begin_ns[begins] > gap_ns
        of = (self.node[begins], self.begin_ns[begins], self.end_ns[ends], self.amount[begins])
        return Free(*(values[long_enough] for values in of))


def free_during(
    capacity: IntArray, held: Held, demand: IntArray, nodes: IntArray, begin_ns: int, end_ns: int
) -> Free:
    """Return what was free of some nodes within a span of time.

    Parameters
    ----------
    capacity : ndarray of int64, shape (N, R)
        Of all nodes. Sums over all of them must fit.
    demand : ndarray of int64, shape (n, R)
        Of each row of `held`.
    nodes : ndarray of int64
        In rising order.
    """
    is_asked: BoolArray = np.zeros(len(capacity), bool)
    is_asked[nodes] = True
    rows = np.flatnonzero((held.begin_ns < end_ns) & (held.end_ns > begin_ns) & is_asked[held.node])
    node = np.concatenate([nodes, held.node[rows], held.node[rows]])
    begins, ends = held.begin_ns[rows].clip(min=begin_ns), held.end_ns[rows].clip(max=end_ns)
    at_ns = np.concatenate([np.full(nodes.size, begin_ns), begins, ends])
    order = np.lexsort((at_ns, node))
    node, at_ns = node[order], at_ns[order]
    whole_nodes = capacity[nodes]
    change = np.concatenate([whole_nodes, -demand[rows], demand[rows]])[order]
    # All that was held of a node is free after its last change, and stays in the sum.
    before = whole_nodes.cumsum(axis=0) - whole_nodes
    free = change.cumsum(axis=0) - before[np.searchsorted(nodes, node)]
    until_ns = np.append(at_ns[1:], end_ns)
    until_ns[np.append(node[1:] != node[:-1], True)] = end_ns
    lasts = until_ns > at_ns
    return Free(node[lasts], at_ns[lasts], until_ns[lasts], free[lasts])
