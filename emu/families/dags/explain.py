"""The life of one job of stages: the chain of tasks that ends with its last one.

The chain is followed backwards: a task became runnable when the last task that it waits for had ended, which is the one
before it in the chain. Between two tasks lie the report of that end to the resource manager, the wait for resources,
the manager's decision and the message that launches the task.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from emu.columns import numbers
from emu.explaining.explanation import NS, Explanation, counted
from emu.explaining.records import NONE, BoolArray, IntArray, Record
from emu.results.result import Result
from emu.results.tables import number
from workloads.arrow import column
from workloads.errors import InputError

CAUSES = ("work", "queueing", "network", "decision", "failure")
MEANINGS = {
    "work": "tasks of the chain that ended last ran",
    "queueing": "they were runnable, and the manager launched others or none",
    "network": "ends were reported, and launches were on their way",
    "decision": "the manager was busy",
    "failure": "tasks had been launched and were lost with a machine",
}


class _Tasks:
    """The tasks of one job, in ns; -1 for what did not happen."""

    def __init__(self, result: Result, mine: BoolArray):
        table = result.tasks
        self.ids = np.flatnonzero(mine)
        self.task, self.stage = (column(table, name)[mine] for name in ("task", "stage"))
        self.node, self.start, self.finish, self.runnable = (
            _whole(numbers(table, name)[mine], scale)
            for name, scale in (("node", 1.0), ("start_s", NS), ("finish_s", NS), ("runnable_s", NS))
        )


def _whole(values: Any, scale: float) -> IntArray:
    return np.where(np.isfinite(values), np.round(values * scale), NONE).astype(np.int64)


def _chain(tasks: _Tasks) -> list[int]:
    """Return the rows of the tasks of the chain, the last one first."""
    at = int(np.argmax(tasks.finish))
    rows = [at]
    while True:
        before = np.flatnonzero((tasks.finish == tasks.runnable[at]) & (tasks.stage != tasks.stage[at]))
        if before.size == 0:
            return rows
        at = int(before[0])
        rows.append(at)


def _causes(events: Record, tasks: _Tasks, submit_ns: int, handled: Any) -> tuple[dict[str, int], list[int]]:
    """Return nanoseconds by cause, and the chain."""
    sums, chain = dict.fromkeys(CAUSES, 0), _chain(tasks)
    for i, at in enumerate(chain):
        mine = events.task == tasks.ids[at]
        sums["work"] += int(tasks.finish[at] - tasks.start[at])
        end, begin = int(tasks.start[at]), int(tasks.runnable[at] if i + 1 < len(chain) else submit_ns)
        launch = np.flatnonzero(mine & (events.kind == "LAUNCH") & (events.time_ns <= end))
        marks = [(begin, "")]  # the end of each part of the wait, and its cause
        if i + 1 < len(chain):
            reported = (events.task == tasks.ids[chain[i + 1]]) & np.isin(events.kind, ("TASK_DONE", "ENDED"))
            heard = events.time_ns[
                reported & (events.receiver != tasks.node[chain[i + 1]]) & (events.time_ns <= end)
            ]
            marks.append((int(heard[-1]) if heard.size else begin, "network"))
        lost = events.time_ns[mine & (events.kind == "LOST") & (events.time_ns <= end)]
        if lost.size and launch.size:
            marks += [(int(events.time_ns[launch[0]]), "queueing"), (int(lost[-1]), "failure")]
        if launch.size:
            left = int(events.left_ns[launch[-1]])
            decided = left
            if handled is not None:
                decided = handled(int(events.sender[launch[-1]]), int(events.number[launch[-1]]))
            marks += [(decided, "queueing"), (left, "decision"), (int(events.time_ns[launch[-1]]), "network")]
        marks.append((end, "queueing"))
        for (first, _), (last, cause) in pairwise(marks):
            upto = [min(max(at_ns, begin), end) for at_ns in (first, last)]
            sums[cause] += max(upto[1] - upto[0], 0)
    return sums, chain


def causes_of_all(
    result: Result, record: Record, handled: Any = None
) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield each job that ended, by its row in the table of jobs, and nanoseconds of its completion time by cause.

    Raises
    ------
    InputError
        The result has no table of tasks.
    """
    jobs, by_job = _checked(result), dict(record.by_job())
    job_of_task = column(result.tasks, "job_id")
    columns = (jobs[name].to_pylist() for name in ("job_id", "submit_s", "jct_s"))
    for row, (job, submit_s, jct_s) in enumerate(zip(*columns, strict=True)):
        if jct_s is not None and row in by_job:
            yield (
                row,
                _causes(by_job[row], _Tasks(result, job_of_task == job), round(submit_s * NS), handled)[0],
            )


def _checked(result: Result) -> Any:
    if result.tasks is None:
        raise InputError("the result has no tasks; run it with output.tasks=true", file=result.path)
    return result.jobs


def explain_dag(result: Result, record: Record, row: int, handled: Any = None) -> Explanation:
    """Explain a job, by its row in the table of jobs.

    Raises
    ------
    InputError
        The result has no table of tasks.
    """
    values = {name: cells[0] for name, cells in _checked(result).slice(row, 1).to_pydict().items()}
    events = record.rows(np.flatnonzero(record.job == row))
    tasks = _Tasks(result, column(result.tasks, "job_id") == values["job_id"])
    jct_s, submit_ns = values["jct_s"], round(values["submit_s"] * NS)
    sums = dict.fromkeys(CAUSES, 0)
    chain: list[int] = []
    if jct_s is not None:
        sums, chain = _causes(events, tasks, submit_ns, handled)
    ended = f"ended after {number(jct_s)} s" if jct_s is not None else "did not end"
    sentences = [
        f"It has {counted(values['num_tasks'], 'task')} in {counted(values['num_stages'], 'stage')}, "
        f"{values['levels']} on its longest chain. It arrived at {number(values['submit_s'])} s and {ended}.",
        f"Alone on a cluster without end it would take {number(values['ideal_s'])} s, the length of its critical path.",
    ]
    if chain:
        last = chain[0]
        sentences += [
            f"Task {tasks.task[last]} of stage {tasks.stage[last]} ended last, on node {tasks.node[last]}.",
            f"It was the last of {counted(len(chain), 'task')} that waited for each other and ran "
            f"{number(sums['work'] / NS)} s in all.",
        ]
    lost = int(np.count_nonzero(events.kind == "LOST"))
    if lost:
        sentences.append(f"{counted(lost, 'task')} of it were lost with a machine and launched again.")
    return Explanation(
        f"job {values['job_id']}, {result.summary['scheduler']} on {result.summary['workload']}, "
        f"{result.summary['nodes']:,} nodes",
        sum(sums.values()) if jct_s is not None else NONE,
        sums,
        MEANINGS,
        sentences,
        {"task of the chain": [_row(tasks, at) for at in chain[::-1]]},
    )


def _row(tasks: _Tasks, at: int) -> dict[str, Any]:
    return {
        "task": int(tasks.task[at]),
        "stage": int(tasks.stage[at]),
        "node": int(tasks.node[at]),
        "runnable_s": int(tasks.runnable[at]) / NS,
        "start_s": int(tasks.start[at]) / NS,
        "finish_s": int(tasks.finish[at]) / NS,
        "waited_s": int(tasks.start[at] - tasks.runnable[at]) / NS,
    }
