"""The events of jobs as arrays, and where each message came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workloads.arrow import coded_labels, column

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
NONE = -1
Handled = Callable[[int, int], int]
"""From a sender and the number of its message to when the event arrived during which it was sent, ns."""


@cache
def _fields_of(name: str) -> dict[str, Any]:
    """Return the place of a field in each kind of messages and notes that has it, except in column `a`."""
    from actors.hosting.recorded import RECORDED

    fields = {kind.name: kind.fields[name] for kind in RECORDED.values() if name in kind.fields}
    return {kind: field for kind, field in fields.items() if field.column != "a"}


class Record:
    """Events in order, as arrays of int64; -1 where an event has no value.

    Attributes
    ----------
    kind : ndarray of str, shape (n,)
        The kind of each.
    time_ns, sender, receiver, job, task, left_ns, queued, number, sent, b, c, d : ndarray of int64, shape (n,)
        As the columns of ``events.parquet``.
    """

    time_ns: IntArray
    sender: IntArray
    receiver: IntArray
    job: IntArray
    task: IntArray
    left_ns: IntArray
    queued: IntArray
    number: IntArray
    sent: IntArray
    b: IntArray
    c: IntArray
    d: IntArray

    def __init__(self, codes: IntArray, names: list[str], fields: dict[str, IntArray]):
        self._codes, self._names, self._fields = codes, names, tuple(fields)
        vars(self).update(fields)

    @classmethod
    def of(cls, events: pa.Table) -> Record:
        """Return the record of a table with the columns of ``events.parquet``."""
        names, codes = coded_labels(events["kind"])
        fields = {}
        for name in cls.__annotations__:
            values = events[name].combine_chunks()
            filled = values.fill_null(NONE) if values.null_count else values
            fields[name] = column(pa.table({name: filled}), name).astype(np.int64)
        return cls(codes.astype(np.int64), names, fields)

    def __len__(self) -> int:
        return len(self._codes)

    @cached_property
    def kind(self) -> npt.NDArray[Any]:
        """The kind of each event."""
        return np.array(self._names or [""])[self._codes]

    def is_kind(self, *kinds: str) -> BoolArray:
        """Return which events are of one of these kinds."""
        found = np.zeros(len(self), bool)  # np.isin takes several times as long for the few events of a job
        for at, name in enumerate(self._names):
            if name in kinds:
                found |= self._codes == at
        return found

    def field(self, name: str, rows: IntArray | None = None) -> npt.NDArray[Any]:
        """Return a field (docs/reference/events.md) of all events, or of some rows; -1 of events without it."""
        codes, at = self._codes if rows is None else self._codes[rows], _fields_of(name)
        found = np.full(codes.size, NONE, float if any(field.is_float for field in at.values()) else np.int64)
        for code, kind in enumerate(self._names):
            if (field := at.get(kind)) is not None and (mine := codes == code).any():
                column = getattr(self, field.column)
                found[mine] = field.of(column[mine] if rows is None else column[rows[mine]])
        return found

    def value(self, name: str, row: int) -> int:
        """Return a field of one event; -1 if it does not have it."""
        return int(self.field(name, np.array([row]))[0])

    def rows(self, which: npt.NDArray[Any]) -> Record:
        """Return some of the events."""
        fields = {name: getattr(self, name)[which] for name in self._fields}
        return Record(self._codes[which], self._names, fields)

    def by_job(self) -> Iterator[tuple[int, Record]]:
        """Yield each job that is named, and its events."""
        order = np.argsort(self.job, kind="stable")
        order = order[self.job[order] >= 0]
        jobs, first = np.unique(self.job[order], return_index=True)
        ends = np.append(first, order.size)[1:]
        for job, begin, end in zip(jobs.tolist(), first.tolist(), ends.tolist(), strict=True):
            yield job, self.rows(order[begin:end])

    @cached_property
    def _by_receiver(self) -> tuple[IntArray, IntArray, IntArray]:
        """The events by receiver: their rows, where those of each actor begin, and their `sent`."""
        own = np.flatnonzero(self.number != NONE)  # notes have no number
        order = own[np.argsort(self.receiver[own], kind="stable")]
        begins = np.searchsorted(self.receiver[order], np.arange(self.receiver.max(initial=0) + 2))
        return order, begins, self.sent[order]

    def handled_ns(self, sender: int, number: int) -> int:
        """Return when the event arrived during which an actor sent a message; needs the events of all jobs."""
        order, begins, sent = self._by_receiver
        begin, end = begins[sender], begins[sender + 1]
        at = int(np.searchsorted(sent[begin:end], number, "right")) - 1
        return int(self.time_ns[order[begin + at]]) if at >= 0 else NONE
