"""The tasks that held machines: as the resource manager knew it, from launches and reported ends, or as they ran."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from emu.explaining.event_record import NONE, IntArray, Record
from emu.explaining.explanation import NS
from emu.explaining.spans import covered_ns, overlap_ns, until_ns, whole
from emu.results.metrics import Float64Array
from emu.results.result import Result
from workloads.arrow import optional_column

SLACK = 1e-9
"""Amounts are counted in billionths by the manager."""


class Held(NamedTuple):
    """Spans in which tasks held machines: ndarrays, shape (n,), a row for each launch.

    Attributes
    ----------
    task : the task from 0 over all in workload order
    node : the machine
    begin_ns : when the launch left the manager, or the task started
    end_ns : when the manager heard that it had ended or was lost; or NEVER
    """

    task: IntArray
    node: IntArray
    begin_ns: IntArray
    end_ns: IntArray

    def within(self, begin_ns: int, end_ns: int) -> IntArray:
        """Return the length of each row within a span of time, ns."""
        return overlap_ns(self.begin_ns, self.end_ns, begin_ns, end_ns)


class Machines(NamedTuple):
    """Machines over a span of time in which a task waited.

    ``fits_ns`` is how long some machine had room for the task, and ``lacking``, shape (R,), the share of the time of
    all machines in which less of a resource was free than the task needs.
    """

    fits_ns: int
    lacking: Float64Array


def held(record: Record) -> Held:
    """Return what launches held, from all events of a run."""
    reported = record.is_kind("TASK_DONE", "LOST") & (record.task != NONE)
    launched = np.flatnonzero(record.is_kind("LAUNCH"))
    left_ns = record.left_ns[launched]
    begin_ns = np.where(left_ns == NONE, record.time_ns[launched], left_ns)
    end_ns = until_ns(record, launched, np.flatnonzero(reported), record.task)
    return Held(record.task[launched], record.receiver[launched], begin_ns, end_ns)


def held_by_tasks(result: Result) -> Held:
    """Return what tasks held from their start to their end, of a run whose tasks nodes take from queues."""
    table = result.tasks
    node, start, finish = (optional_column(table, name) for name in ("node", "start_s", "finish_s"))
    ran = np.flatnonzero(np.isfinite(finish))
    return Held(ran, *(whole(of[ran], scale) for of, scale in ((node, 1.0), (start, NS), (finish, NS))))


def down(record: Record) -> Held:
    """Return when the manager knew that machines were down, with NONE as task."""
    rows, back = (np.flatnonzero(record.is_kind(kind)) for kind in ("NODE_DOWN", "NODE_UP"))
    end_ns = until_ns(record, rows, back, record.sender)
    return Held(np.full(rows.size, NONE), record.sender[rows], record.time_ns[rows], end_ns)


def machines_during(
    of: Held, demand: Float64Array, capacity: Float64Array, needs: Float64Array, begin_ns: int, end_ns: int
) -> Machines:
    """Return which room machines had while a task waited.

    Parameters
    ----------
    demand : ndarray, shape (n, R)
        Of each row of `of`.
    capacity : ndarray, shape (N, R)
        Of machines.
    needs : ndarray, shape (R,)
        Of the task.
    """
    there = np.flatnonzero((of.begin_ns < end_ns) & (of.end_ns > begin_ns))
    by_node = there[np.argsort(of.node[there], kind="stable")]
    bounds = np.searchsorted(of.node[by_node], np.arange(capacity.shape[0] + 1))
    lacking_ns, open_spans = np.zeros(needs.size), []
    for node in range(capacity.shape[0]):
        rows = by_node[bounds[node] : bounds[node + 1]]
        times = np.concatenate([np.maximum(of.begin_ns[rows], begin_ns), np.minimum(of.end_ns[rows], end_ns)])
        changes = np.concatenate([-demand[rows], demand[rows]])
        order = np.argsort(times, kind="stable")
        free = capacity[node] + np.concatenate([np.zeros((1, needs.size)), changes[order].cumsum(axis=0)])
        edges = np.concatenate([[begin_ns], times[order], [end_ns]])
        lacks = free < needs - SLACK
        lacking_ns += (lacks * np.diff(edges)[:, None]).sum(axis=0)
        has_room = ~lacks.any(axis=1) & (np.diff(edges) > 0)
        open_spans.append(np.stack([edges[:-1][has_room], edges[1:][has_room]], axis=1))
    spans = np.concatenate(open_spans) if open_spans else np.zeros((0, 2), np.int64)
    return Machines(
        covered_ns(spans[:, 0], spans[:, 1]), lacking_ns / (capacity.shape[0] * (end_ns - begin_ns))
    )
