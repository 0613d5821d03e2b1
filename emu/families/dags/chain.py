"""The tasks of one DAG job, and the chain of those that waited for each other and end with the last one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa

from emu.explaining.event_record import NONE, BoolArray, Record
from emu.explaining.explanation import NS
from emu.explaining.spans import whole
from emu.families.dags.fetches import sent_of
from emu.results.result import Result
from workloads.arrow import column, optional_column


class JobTasks:
    """The tasks of one job, in ns; -1 for what did not happen."""

    def __init__(self, result: Result, mine: BoolArray, record: Record):
        table = result.tasks
        self.ids = np.flatnonzero(mine)
        self.task, self.stage = (column(table, name)[mine] for name in ("task", "stage"))
        self.node, self.start, self.finish, self.runnable = (
            whole(optional_column(table, name)[mine], scale)
            for name, scale in (("node", 1.0), ("start_s", NS), ("finish_s", NS), ("runnable_s", NS))
        )
        self.fetched = self.start  # when it had its input
        self.has_network = "fetched_s" in table.column_names
        if self.has_network:
            self.came = whole(optional_column(table, "fetched_s")[mine], NS)
            self.fetched = np.maximum(self.came, self.start)
        self.sent, self.has_sent = sent_of(table)[mine], "sent_s" in table.column_names
        self.awaited = self.runnable  # when all that it waits for had ended
        self.has_ends = "parents_ended_s" in table.column_names
        if self.has_ends:
            self.awaited = whole(optional_column(table, "parents_ended_s")[mine], NS)
        if result.counters.get("run_again") and result.attempts is not None:
            self._add_attempts(result.attempts, column(table, "job_id")[mine][0])
        # Of one that ran again: which machine had its output before, and when its loss was known.
        self.had, self.known = np.full((2, self.ids.size), NONE)
        if self.ids.size > np.count_nonzero(mine):
            kinds = record.is_kind("FAIL") | record.is_kind("NODE_DOWN") | record.is_kind("NODE_UP")
            of_machines = record.rows(np.flatnonzero(kinds))
            for task in np.unique(self.ids[np.count_nonzero(mine) :]).tolist():
                self._follow(task, of_machines)

    def _add_attempts(self, table: pa.Table, job_id: int) -> None:
        """Add the attempts that had ended, of tasks that ran again as their output was lost."""
        mine = table["ended"].to_numpy() & (column(table, "job_id") == job_id)
        names = (("node", 1.0), ("start_s", NS), ("end_s", NS), ("runnable_s", NS))
        node, start, finish, runnable = (
            whole(optional_column(table, name)[mine], scale) for name, scale in names
        )
        which = column(table, "task")[mine]
        fetched = finish - (self.finish - self.fetched)[which]
        self.ids, self.task, self.stage = (
            np.append(of, of[which]) for of in (self.ids, self.task, self.stage)
        )
        self.node, self.start, self.finish = (
            np.append(of, more)
            for of, more in ((self.node, node), (self.start, start), (self.finish, finish))
        )
        self.runnable, self.sent = (
            np.append(self.runnable, runnable),
            np.append(self.sent, np.full(node.size, NONE)),
        )
        self.fetched, self.came = np.append(self.fetched, fetched), np.append(self.came, fetched)
        self.awaited = self.runnable

    def _follow(self, task: int, record: Record) -> None:
        """Let attempts at a task come after the last end in its job before the output of the one before was lost.

        ``record``: of failures and repairs of machines.
        """
        self.awaited = self.awaited.copy()
        rows = np.flatnonzero(self.ids == task)
        rows = rows[np.argsort(self.start[rows], kind="stable")]
        for before, at in pairwise(rows.tolist()):
            of_node = (record.sender == self.node[before]) & (record.time_ns >= self.finish[before])
            failed = record.time_ns[of_node & record.is_kind("FAIL")]
            lost_ns = int(failed.min(initial=self.start[at]))
            news = of_node & (record.is_kind("NODE_DOWN") | record.is_kind("NODE_UP"))
            known = record.time_ns[news & (record.time_ns >= lost_ns)]
            ended = self.finish[(self.finish <= lost_ns) & (np.arange(self.ids.size) != at)]
            self.awaited[at] = ended.max()
            self.had[at], self.known[at] = self.node[before], known.min(initial=self.start[at])

    def name(self, at: int) -> str:
        """Return what a task is called."""
        return f"task {self.task[at]} of stage {self.stage[at]}"


def chain_of(tasks: JobTasks) -> list[int]:
    """Return the rows of the tasks of the chain, the last one first."""
    at = int(np.argmax(tasks.finish))
    rows = [at]
    while True:
        # What it waits for is in other stages, or it ran again, after any task of its job.
        others = (tasks.stage != tasks.stage[at]) | (tasks.known[at] != NONE)
        others[rows] = False
        before = np.flatnonzero((tasks.finish == tasks.awaited[at]) & others)
        if before.size == 0:
            return rows
        at = int(before[0])
        rows.append(at)
