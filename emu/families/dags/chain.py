"""The tasks of one DAG job, and its chain: the tasks that waited for each other and end with the last one, as links.

The chain is followed backwards: before a task in the chain is the last one to end of those that it waits for. Between
two tasks are the report of that end to the resource manager, the wait for resources, the manager's decision and the
message that launches the task. With `network.registration=pipelined` it may have been launched before that end, from
which on it then fetches. With `network.shuffle=push` its input is sent to its machine before it waits for resources.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa

from emu.explaining.event_record import NONE, BoolArray, Handled, IntArray, Record
from emu.explaining.explanation import NS, Link
from emu.explaining.spans import whole
from emu.families.dags.fetches import sent_of
from emu.families.jobs.chain import cause_of_loss
from emu.results.result import Result
from workloads.arrow import column, optional_column

Mark = tuple[int, str, str]
"""The end, ns, the cause and the description of a part of a task's wait."""
_LAUNCHES = ("LAUNCH", "TASK", "PLACED", "OFFERED")
"""The messages that bring a task to a node."""
_OF_LOSS = {
    "failure": "had been launched, and was lost with its machine",
    "preemption": "ran until it was evicted and that was known",
    "work": "ran until it was evicted and that was known, and what it had done was kept",
    "network": "was sent back, as the message that stopped it had come to its machine before it",
}


class JobTasks:
    """The tasks of one job, and those that had ended and ran again: arrays of int64, ns; -1 for what did not happen.

    Attributes
    ----------
    ids, task, stage, node : which they are, over all in workload order and in their stage, and where they ran
    runnable, start, finish : when they could be launched, were launched and ended
    awaited : when all that they wait for had ended
    sent, came, fetched : from when their input was sent, when it had come, and when they had started and had it
    had, known : of one that ran again which machine had its output before, and when its loss was known
    """

    def __init__(self, result: Result, mine: BoolArray, record: Record):
        table = result.tasks
        self.has_network, self.has_sent, self.has_ends = (
            name in table.column_names for name in ("fetched_s", "sent_s", "parents_ended_s")
        )
        self.ids = np.flatnonzero(mine)
        self.task, self.stage = (column(table, name)[mine] for name in ("task", "stage"))
        self.node = whole(optional_column(table, "node")[mine])
        self.start, self.finish, self.runnable = (
            _ns(table, name, mine) for name in ("start_s", "finish_s", "runnable_s")
        )
        self.came = _ns(table, "fetched_s", mine) if self.has_network else self.start
        self.fetched, self.sent = np.maximum(self.came, self.start), sent_of(table)[mine]
        self.awaited = _ns(table, "parents_ended_s", mine) if self.has_ends else self.runnable
        count = self.ids.size
        if result.counters.get("run_again") and result.attempts is not None:
            self._add_attempts(result.attempts, column(table, "job_id")[mine][0])
        self.had, self.known = np.full((2, self.ids.size), NONE)
        if self.ids.size > count:
            of_machines = record.rows(np.flatnonzero(record.is_kind("FAIL", "NODE_DOWN", "NODE_UP")))
            for task in np.unique(self.ids[count:]).tolist():
                self._follow(task, of_machines)

    def _add_attempts(self, table: pa.Table, job_id: int) -> None:
        """Add the attempts that had ended, of tasks that ran again as their output was lost."""
        mine = table["ended"].to_numpy() & (column(table, "job_id") == job_id)
        which = column(table, "task")[mine]
        finish = _ns(table, "end_s", mine)
        fetched = finish - (self.finish - self.fetched)[which]
        more = {name: getattr(self, name)[which] for name in ("ids", "task", "stage")} | {
            "node": whole(optional_column(table, "node")[mine]),
            "start": _ns(table, "start_s", mine),
            "finish": finish,
            "runnable": _ns(table, "runnable_s", mine),
            "sent": np.full(which.size, NONE),
            "fetched": fetched,
            "came": fetched,
        }
        for name, values in more.items():
            setattr(self, name, np.append(getattr(self, name), values))
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
            news = of_node & record.is_kind("NODE_DOWN", "NODE_UP")
            known = record.time_ns[news & (record.time_ns >= lost_ns)]
            ended = self.finish[(self.finish <= lost_ns) & (np.arange(self.ids.size) != at)]
            self.awaited[at] = ended.max()
            self.had[at], self.known[at] = self.node[before], known.min(initial=self.start[at])

    def name(self, at: int) -> str:
        """Return what a task is called."""
        return f"task {self.task[at]} of stage {self.stage[at]}"

    def chain(self) -> list[int]:
        """Return the rows of the tasks of the chain, the last one first."""
        at = int(np.argmax(self.finish))
        rows = [at]
        while True:
            # What it waits for is in other stages, or it ran again, after any task of its job.
            others = (self.stage != self.stage[at]) | (self.known[at] != NONE)
            others[rows] = False
            before = np.flatnonzero((self.finish == self.awaited[at]) & others)
            if before.size == 0:
                return rows
            at = int(before[0])
            rows.append(at)


def _ns(table: pa.Table, name: str, mine: BoolArray) -> IntArray:
    return whole(optional_column(table, name)[mine], NS)


def links_of(events: Record, tasks: JobTasks, submit_ns: int, handled: Handled | None) -> list[Link]:
    """Return the links of a job's chain that are not empty; ``task`` is the task of the chain that each is about."""
    links: list[Link] = []
    chain = tasks.chain()[::-1]
    for i, at in enumerate(chain):
        start, end, fetched = (int(of[at]) for of in (tasks.start, tasks.finish, tasks.fetched))
        begin = int(tasks.awaited[at]) if i else submit_ns
        # One that could be launched before its parents had ended did not wait until the manager heard of that.
        is_reported = tasks.runnable[at] == tasks.awaited[at] or tasks.sent[at] >= 0
        before = chain[i - 1] if i and is_reported and tasks.known[at] == NONE else NONE
        node, rest = tasks.node[at], "the rest of its input" if begin > start else "its input"
        parts: list[tuple[int, int, str, str]] = []
        marks = [
            *_marks(events, tasks, at, before, begin, handled),
            (start, "queueing", "waited for a machine"),
        ]
        since = begin
        for until, cause, what in marks:  # a probe that was sent before a task was lost may get it afterwards
            parts.append((since, min(max(until, since), start), cause, what))
            since = parts[-1][1]
        parts.append((max(start, begin), fetched, "fetching", f"fetched {rest} to node {node}"))
        parts.append((fetched, end, "work", f"ran on node {node}"))
        links += [
            Link(a - submit_ns, b - submit_ns, cause, f"{tasks.name(at)} {what}", task=int(tasks.ids[at]))
            for a, b, cause, what in parts
            if b > a
        ]
    return links


def _marks(
    events: Record, tasks: JobTasks, at: int, before: int, begin_ns: int, handled: Handled | None
) -> list[Mark]:
    """Return the parts of a task's wait, from when it began on."""
    start_ns, mine, node = int(tasks.start[at]), events.task == tasks.ids[at], tasks.node[at]
    # The manager schedules tasks, or a scheduler of jobs to which stages come.
    who = "its scheduler" if events.is_kind("ARRIVAL").any() else "the manager"
    launch = np.flatnonzero(mine & events.is_kind(*_LAUNCHES) & (events.time_ns <= start_ns))
    marks: list[Mark] = []
    if tasks.known[at] != NONE:
        why = f"as its output was lost with node {tasks.had[at]}: what needed it began again"
        marks.append((int(tasks.known[at]), "failure", f"was to run again, {why}"))
    if before != NONE:
        heard = _heard(events, tasks, before)
        heard = heard[heard <= start_ns]
        what = f"waited until {who} heard of the end of {tasks.name(before)}"
        marks.append((int(heard[-1]) if heard.size else begin_ns, "network", what))
    if tasks.sent[at] >= 0:
        marks += [
            (int(tasks.sent[at]), "network", "waited until its machine was asked to receive its input"),
            (int(tasks.came[at]), "fetching", f"was sent its input to node {node}"),
            (int(tasks.runnable[at]), "network", f"waited until {who} heard that its input was there"),
        ]
    # A scheduler that finds no node for a lost task tells itself to look again.
    lost = mine & events.is_kind("LOST") & (events.sender != events.receiver)
    for row in np.flatnonzero(lost & (events.time_ns > begin_ns) & (events.time_ns <= start_ns)).tolist():
        if (before_it := launch[events.time_ns[launch] <= events.time_ns[row]]).size:
            marks += _lost(events, mine, int(events.time_ns[before_it[-1]]), row)
    if launch.size:
        last = int(launch[-1])
        left = int(events.left_ns[last])
        decided = left
        if handled is not None:
            decided = handled(int(events.sender[last]), int(events.number[last]))
        marks += [
            *_asking(events, last, begin_ns),
            (decided, "queueing", "waited for a machine"),
            (left, "decision", f"waited for {who}, which was busy"),
            (int(events.time_ns[last]), "network", "was on its way to its machine"),
        ]
    return marks


def _heard(events: Record, tasks: JobTasks, before: int) -> IntArray:
    """Return when who schedules a job heard that a task of it had ended, ns: once, or not at all."""
    node = tasks.node[before]
    ended = (events.left_ns == tasks.finish[before]) & (events.sender == node)
    of_it = (events.task == tasks.ids[before]) & events.is_kind("TASK_DONE", "ENDED")
    reported = of_it | (ended & events.is_kind("DONE"))
    return events.time_ns[reported & (events.receiver != node)]


def _asking(events: Record, launch: int, begin_ns: int) -> list[Mark]:
    """Return the parts of a probe's time, where the task came as the answer to one: it came, its node asked."""
    if events.kind[launch] != "TASK":
        return []
    node, asked_ns = events.receiver[launch], int(events.left_ns[launch])
    requests = events.is_kind("REQUEST") & (events.sender == node) & (events.time_ns <= asked_ns)
    if not requests.any():
        return []
    left_ns = int(events.left_ns[np.flatnonzero(requests)[-1]])
    probes = events.is_kind("PROBE") & (events.receiver == node) & (events.left_ns >= begin_ns)
    came = events.time_ns[probes & (events.time_ns <= left_ns)][:1].tolist()
    return [
        *((at_ns, "network", "waited for a probe that was on its way to its machine") for at_ns in came),
        (left_ns, "queueing", "waited for the turn of a probe on its machine"),
        (asked_ns, "network", "was asked for by its machine"),
    ]


def _lost(events: Record, mine: BoolArray, came_ns: int, row: int) -> list[Mark]:
    """Return the parts of the time of an attempt at a task that came to a machine, and ended with the event LOST."""
    left_ns, turn_ns = int(events.left_ns[row]), came_ns
    # A resource manager's tasks start when they come. Others started, or they waited until their node failed.
    if not (mine & events.is_kind("LAUNCH")).any():
        start = events.time_ns[mine & events.is_kind("START")]
        start = start[(start >= came_ns) & (start <= events.time_ns[row])]
        turn_ns = int(start[-1]) if start.size else max(came_ns, left_ns)
    evicted = events.is_kind("EVICT") & mine & (events.time_ns == left_ns)
    cause = "network"
    if not was_sent_back(events, row):
        cause = cause_of_loss(events, row, bool(evicted.any()))
    what = _OF_LOSS[cause]
    if cause == "failure" and lacked_input(events, row):
        what = "could not get its input, of which some was lost with another machine"
    return [
        (came_ns, "queueing", "waited for a machine"),
        (turn_ns, "queueing", "waited for its turn on its machine"),
        (int(events.time_ns[row]), cause, what),
    ]


def lacked_input(events: Record, row: int) -> bool:
    """Return whether the event LOST in a row is of a task that gave up its fetch."""
    failed = events.is_kind("FETCH_FAILED") & (events.receiver == events.sender[row])
    return bool((events.time_ns[failed] == events.left_ns[row]).any())


def was_sent_back(events: Record, row: int) -> bool:
    """Return whether a task was lost as a message that stopped it came to its machine before it."""
    of_it = (events.task == events.task[row]) & (events.receiver == events.sender[row])
    stops = events.time_ns[events.is_kind("STOP_TASK") & of_it]
    return events.value("start", row) == NONE and bool((stops <= events.left_ns[row]).any())
