"""When flows of a run of coflows were sent, and how fast: by the rates that the coordinator set, or by their spans."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from emu.explaining.event_record import BoolArray, IntArray, Record
from emu.explaining.spans import covered_ns, overlap_ns
from emu.results.metrics import Float64Array

RATES = ("SET_RATE", "SET_EXTRA", "SET_LINE", "SHRINK", "PACE")
"""The messages that set rates. Those of single flows tell when each flow is sent; the others are for many at once."""


class Sending(NamedTuple):
    """Spans in which flows were sent at one rate: ndarrays, shape (n,).

    Attributes
    ----------
    flow : the flow from 0 over all in workload order
    begin_ns, end_ns : int64
    rate : float64, bytes per ns
    """

    flow: IntArray
    begin_ns: IntArray
    end_ns: IntArray
    rate: Float64Array

    def rows(self, which: npt.NDArray[Any]) -> Sending:
        """Return some of the spans."""
        return Sending(*(values[which] for values in self))

    def within(self, begin_ns: int, end_ns: int) -> IntArray:
        """Return how long each lasted within a span of time, ns."""
        return overlap_ns(self.begin_ns, self.end_ns, begin_ns, end_ns)

    def covered_ns(self, begin_ns: int, end_ns: int) -> int:
        """Return for how long of a span of time at least one lasted, ns."""
        return covered_ns(np.maximum(self.begin_ns, begin_ns), np.minimum(self.end_ns, end_ns))


def is_exact(record: Record) -> bool:
    """Return whether the events of a run tell the rate of each flow at each time."""
    return bool(record.is_kind("SET_RATE").any() and not record.is_kind(*RATES[1:]).any())


def sendings(record: Record, start_ns: IntArray, finish_ns: IntArray, size_bytes: Float64Array) -> Sending:
    """Return the spans of all flows, by flow and time.

    Where the rates of single flows are not known, a flow has one span, from its begin to its end, at its mean rate.

    Parameters
    ----------
    start_ns, finish_ns : ndarray of int64, shape (F,)
        Of flows; -1 for never.
    size_bytes : ndarray of float64, shape (F,)
    """
    if not is_exact(record):
        flow = np.flatnonzero((start_ns >= 0) & (finish_ns > start_ns))
        begin, end = start_ns[flow], finish_ns[flow]
        return Sending(flow, begin, end, size_bytes[flow] / (end - begin))
    rows = np.flatnonzero(record.is_kind("SET_RATE") & (record.task >= 0) & (record.task < start_ns.size))
    rows = rows[np.lexsort((rows, record.time_ns[rows], record.task[rows]))]
    flow, begin = record.task[rows], record.time_ns[rows]
    rate = record.rows(rows).field("rate")
    last = np.iinfo(np.int64).max
    end = np.where(finish_ns < 0, last, finish_ns)[flow]
    is_followed = flow[:-1] == flow[1:]
    end[:-1][is_followed] = np.minimum(end[:-1], begin[1:])[is_followed]
    kept: BoolArray = (rate > 0.0) & (end > begin) & (end != last)
    return Sending(flow[kept], begin[kept], end[kept], rate[kept])


def covered_by(groups: IntArray, begin: Float64Array, end: Float64Array, count: int) -> Float64Array:
    """Return for how long at least one span of each of `count` groups lasted, in the unit of the spans."""
    apart = float(end.max(initial=0.0)) + 1.0  # so that spans of two groups do not overlap
    order = np.lexsort((begin, groups))
    begins, ends = (values[order] + groups[order] * apart for values in (begin, end))
    latest = np.maximum.accumulate(np.concatenate([[0.0], ends]))[:-1]
    lasted = np.maximum(ends - np.maximum(begins, latest), 0.0)
    return np.asarray(np.bincount(groups[order], lasted, count), np.float64)
