"""The tasks that held nodes while jobs waited, what they held, and what was free beside them."""

from __future__ import annotations

import numpy as np

from actors.resources import amounts, demands_of
from actors.setting import Setting
from clusters.capacity import capacities
from emu.explaining.event_record import NONE, BoolArray, IntArray, Record
from emu.explaining.spans import ByNode, Free, Held, free_during, held_by_tasks
from emu.families.jobs.task_waits import latest_key
from emu.results.result import Result
from workloads.arrow import column

SLOTS = "slots"
MANY = np.int64(1) << 53
"""Tasks that fit where they need nothing."""


def tasks_of(result: Result, record: Record) -> Held:
    """Return the tasks of a result that started, and from the events those that were lost with a node, or evicted."""
    assert result.tasks is not None
    job = np.repeat(np.arange(result.jobs.num_rows), column(result.jobs, "num_tasks"))
    return held_by_tasks(result.tasks, job).beside(lost_runs(record))


def runs_of(record: Record) -> Held:
    """Return the tasks that started, as `tasks_of` does, from all events of a run alone."""
    lost, ends = lost_runs(record), np.flatnonzero(record.is_kind("TASK_END"))
    job, task, node, end_ns = (of[ends] for of in (record.job, record.task, record.receiver, record.time_ns))
    start_ns = record.field("start", ends)
    was_lost = latest_key(lost.task, lost.begin_ns, task, start_ns) == start_ns
    return Held(job, task, node, start_ns, end_ns).rows(~was_lost).beside(lost)


def lost_runs(record: Record) -> Held:
    """Return the tasks that ran until their node failed, or evicted them, or until they ended with their gang."""
    lost = np.flatnonzero(record.is_kind("LOST") & (record.task >= 0))
    start_ns, node = record.field("start", lost), record.field("node", lost)
    ran = (start_ns >= 0) & (node >= 0)
    lost, start_ns, node = lost[ran], start_ns[ran], node[ran]
    task, left_ns = record.task[lost], record.left_ns[lost]
    fails, stops = (np.flatnonzero(record.is_kind(*kinds)) for kinds in (("FAIL",), ("EVICT", "CANCEL")))
    # A node tells at once of what it stopped, and of what failed when that is detected.
    failed_ns = latest_key(record.receiver[fails], record.time_ns[fails], node, record.time_ns[lost])
    nodes = int(record.receiver.max(initial=0)) + 1
    where = record.task[stops] * nodes + record.receiver[stops]
    is_stopped = latest_key(where, record.time_ns[stops], task * nodes + node, left_ns) == left_ns
    return Held(record.job[lost], task, node, start_ns, np.where(is_stopped, left_ns, failed_ns))


class Room:
    """What nodes have, what tasks and outages held of it, and what tasks need; amounts in whole billionths.

    Attributes
    ----------
    names : tuple of str
        R resources; `SLOTS` where tasks take one each.
    capacity : ndarray of int64, shape (N, R)
    needs, of_job : ndarray of int64, shape (T, R) and (J, R)
        Of each task, and the most that a task of each job needs.
    tasks, by_node, all : Held, ByNode, Held
        Tasks, also by node; tasks and, behind them, outages.
    demand : ndarray of int64, shape (n, R)
        Of each row of `all`.
    is_by_job : bool
        Tasks need different amounts, and of all of them the most that one of their job needs is counted.
    """

    def __init__(self, setting: Setting, tasks: Held, down: Held | None = None, by_job: bool = False):
        self.names, self.tasks = setting.resources or (SLOTS,), tasks
        self.all = tasks if down is None else tasks.beside(down)
        self.capacity = amounts(capacities(setting.cluster, setting.resources))
        counts = np.diff(setting.workload.arrays().first_task)
        vector, of_job, of_task = np.ones((1, 1)), np.zeros(counts.size, np.int64), np.zeros(0, np.int64)
        if setting.resources:
            _, vector, of_job, of_task = demands_of(setting)
        self.is_by_job = by_job and of_task.size > 0
        self.of_job = amounts(vector)[of_job]
        is_by_task = of_task.size > 0 and not by_job
        self.needs = amounts(vector)[of_task] if is_by_task else np.repeat(self.of_job, counts, axis=0)
        is_down = (self.all.task == NONE)[:, None]
        self.demand = np.where(is_down, self.capacity[self.all.node], self.needs[self.all.task])

        self.by_node = ByNode(tasks, len(self.capacity))

    def during(self, node: int, begin_ns: int, end_ns: int, rows: IntArray, *left_out: BoolArray) -> Free:
        """Return what was free of a node within a span of time beside tasks that ran there, the `rows` of `tasks`.

        Parameters
        ----------
        left_out : ndarrays of bool, of the shape of `rows`
            Of each R more columns follow: what was free without these of the tasks.
        """
        demand = np.hstack(
            [self.demand[rows]] + [np.where(some[:, None], 0, self.demand[rows]) for some in left_out]
        )
        capacity = np.tile(self.capacity[[node]], 1 + len(left_out))
        here = self.tasks.rows(rows)._replace(node=np.zeros(rows.size, np.int64))
        return free_during(capacity, here, demand, np.zeros(1, np.int64), begin_ns, end_ns)

    def at(self, at_ns: int, left_out: BoolArray | None = None) -> IntArray:
        """Return what was free on each node at a time, shape (N, R), also without some rows of `all`."""
        rows = self.all.at(at_ns)
        rows = rows if left_out is None else rows[~left_out[rows]]
        free = self.capacity.copy()
        np.subtract.at(free, self.all.node[rows], self.demand[rows])
        return free


def times_that_fit(free: IntArray, needs: IntArray) -> IntArray:
    """Return how often what a task needs of each resource goes into what is free, shape (N, R)."""
    return np.where(needs > 0, free // np.maximum(needs, 1), MANY).clip(0)
