"""The tasks that held slots of nodes while a job waited, and the slots that were free."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from emu.explaining.event_record import NONE, BoolArray, IntArray, Record
from emu.explaining.explanation import NS
from emu.explaining.spans import NEVER, overlap_ns, until_ns
from emu.families.jobs.task_waits import latest
from emu.results.result import Result
from workloads.arrow import column, optional_column


class Tasks(NamedTuple):
    """The tasks that started, of all jobs: ndarrays of int64, shape (n,).

    Attributes
    ----------
    job : row of the job in the table of jobs
    task : the task from 0 over all in workload order
    node, start_ns, finish_ns : where and when it ran; NEVER if it did not finish
    """

    job: IntArray
    task: IntArray
    node: IntArray
    start_ns: IntArray
    finish_ns: IntArray

    def within(self, begin_ns: int, end_ns: int) -> IntArray:
        """Return how long each task ran within a span of time, ns."""
        return overlap_ns(self.start_ns, self.finish_ns, begin_ns, end_ns)


class Free(NamedTuple):
    """Slots that were free at a time.

    Attributes
    ----------
    nodes : int
        Nodes with a slot that no task took for a while.
    first_ns, first_node : int
        When, from that time on, such a slot was free first, and where; NEVER and -1 if none was.
    """

    nodes: int
    first_ns: int
    first_node: int


def tasks_of(result: Result, record: Record) -> Tasks:
    """Return the tasks of a result that started, and from the events those that were lost with a node, or evicted."""
    assert result.tasks is not None
    job = np.repeat(np.arange(result.jobs.num_rows), column(result.jobs, "num_tasks"))
    node, start_s, finish_s = (
        optional_column(result.tasks, name) for name in ("node", "start_s", "finish_s")
    )
    rows = np.flatnonzero(np.isfinite(start_s))
    ended = np.isfinite(finish_s[rows])
    finish_ns = np.full(rows.size, NEVER)
    finish_ns[ended] = np.round(finish_s[rows][ended] * NS).astype(np.int64)
    start_ns = np.round(start_s[rows] * NS).astype(np.int64)
    last = Tasks(job[rows], rows, node[rows].astype(np.int64), start_ns, finish_ns)
    return Tasks(*(np.concatenate(both) for both in zip(last, lost_runs(record), strict=True)))


def runs_of(record: Record) -> Tasks:
    """Return the tasks that started, as `tasks_of` does, from all events of a run alone."""
    lost, ends = lost_runs(record), np.flatnonzero(record.is_kind("TASK_END"))
    start_ns = record.field("start", ends)
    gone = set(zip(lost.task.tolist(), lost.start_ns.tolist(), strict=True))
    is_lost = [one in gone for one in zip(record.task[ends].tolist(), start_ns.tolist(), strict=True)]
    kept = ~np.array(is_lost, bool)
    ends, start_ns = ends[kept], start_ns[kept]
    last = Tasks(record.job[ends], record.task[ends], record.receiver[ends], start_ns, record.time_ns[ends])
    return Tasks(*(np.concatenate(both) for both in zip(last, lost, strict=True)))


def lost_runs(record: Record) -> Tasks:
    """Return the tasks that ran until their node failed, or evicted them, or until they ended with their gang."""
    lost = np.flatnonzero(record.is_kind("LOST") & (record.task >= 0))
    start_ns, node = record.field("start", lost), record.field("node", lost)
    ran = (start_ns >= 0) & (node >= 0)
    lost, start_ns, node = lost[ran], start_ns[ran], node[ran]
    fails = np.flatnonzero(record.is_kind("FAIL"))
    last = latest(record.receiver[fails], record.time_ns[fails], node, record.time_ns[lost])
    failed_ns = np.append(record.time_ns[fails], NONE)[last]
    evicts = np.flatnonzero(record.is_kind("EVICT"))
    begun_ns = record.field("start", evicts)
    # Of one task on one node, by when it started: the eviction that ended that run, if there is one.
    nodes = int(record.receiver.max(initial=0)) + 1
    ended = record.task[evicts] * nodes + record.receiver[evicts]
    found = latest(ended, begun_ns, record.task[lost] * nodes + node, start_ns)
    same = np.append(begun_ns, NONE)[found] == start_ns
    end_ns = np.where(same, np.append(record.time_ns[evicts], NONE)[found], failed_ns)
    cancels = np.flatnonzero(record.is_kind("CANCEL"))
    cancelled = record.task[cancels] * nodes + record.receiver[cancels]
    left_ns = record.left_ns[lost]
    found = latest(cancelled, record.time_ns[cancels], record.task[lost] * nodes + node, left_ns)
    end_ns = np.where(np.append(record.time_ns[cancels], NONE)[found] == left_ns, left_ns, end_ns)
    return Tasks(record.job[lost], record.task[lost], node, start_ns, end_ns)


def with_outages(tasks: Tasks, record: Record, slots: IntArray) -> Tasks:
    """Return tasks, and for each slot of a node that was down one without a job, from the failure to the repair."""
    fails, repairs = (
        np.flatnonzero(record.is_kind(kind) & (record.receiver < slots.size)) for kind in ("FAIL", "REPAIR")
    )
    node, begin_ns = record.receiver[fails], record.time_ns[fails]
    none = np.full(fails.size, NONE)
    down = Tasks(none, none, node, begin_ns, until_ns(record, fails, repairs, record.receiver))
    times = slots[node]
    return Tasks(*(np.concatenate([own, np.repeat(of, times)]) for own, of in zip(tasks, down, strict=True)))


def free_slots(tasks: Tasks, slots: IntArray, usable: BoolArray, at_ns: int, gap_ns: int) -> Free:
    """Return which nodes had a free slot at a time, and where and when one was free first from then on.

    A slot counts as free if no task takes it within `gap_ns`: for so long it may wait for a task on its way.

    Parameters
    ----------
    slots : ndarray of int64, shape (nodes,)
    usable : ndarray of bool, shape (nodes,)
        The nodes that are considered.
    """
    later = usable[tasks.node] & (tasks.finish_ns > at_ns)
    node, start_ns, finish_ns = tasks.node[later], tasks.start_ns[later], tasks.finish_ns[later]
    places = np.flatnonzero(usable)
    # Each node begins at `at_ns`, with what runs there; then tasks start and end.
    times = np.concatenate([np.full(places.size, at_ns), np.maximum(start_ns, at_ns), finish_ns])
    change = np.repeat([0, 1, -1], [places.size, node.size, node.size])
    where = np.concatenate([places, node, node])
    order = np.lexsort((change, times, where))
    times, where = times[order], where[order]
    busy = np.cumsum(change[order])  # it is 0 after the last event of each node
    is_last = np.append(where[1:] != where[:-1], True)
    until = np.append(times[1:], NEVER)
    until[is_last] = NEVER
    lasts = until > times
    is_free = (busy < slots[where]) & lasts
    # Spans that follow each other are one; empty spans are left out.
    times, until, where, is_free = times[lasts], until[lasts], where[lasts], is_free[lasts]
    continues = is_free[1:] & is_free[:-1] & (where[1:] == where[:-1])
    begins, ends = is_free & ~np.append(False, continues), is_free & ~np.append(continues, False)
    first, last, nodes = times[begins], until[ends], where[begins]
    long_enough = last - first > gap_ns
    first, nodes = first[long_enough], nodes[long_enough]
    if first.size == 0:
        return Free(0, NEVER, NONE)
    best = int(np.lexsort((nodes, first))[0])
    return Free(int(np.count_nonzero(first == at_ns)), int(first[best]), int(nodes[best]))
