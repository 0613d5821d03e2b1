"""The life of one job, from its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from emu.columns import numbers
from emu.explaining.explanation import NS, Explanation, counted
from emu.explaining.records import NONE, Record
from emu.families.jobs.causes import CAUSES, Handled, Step, chain_of
from emu.families.jobs.waits import Ran, ahead_of, starts_of, sticky_jobs
from emu.results.result import Result
from emu.results.tables import number
from workloads.arrow import column

MEANINGS = {
    "work": "tasks of the chain that ended last ran",
    "queueing": "they waited in the queue of a node, or at the scheduler for a node",
    "network": "messages were on their way",
    "decision": "a scheduler was busy, or waited before it probed again",
    "failure": "what ran or waited was lost, until a scheduler knew",
}
MOST_AHEAD = 5
"""Tasks that ran ahead are named up to so many."""


def submits_ns(result: Result) -> list[int]:
    """Return when each job arrived, ns."""
    return [round(seconds * NS) for seconds in column(result.jobs, "submit_s").tolist()]


def causes_of_all(
    result: Result, record: Record, handled: Handled | None
) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield each job that ended, by its row in the table of jobs, and nanoseconds of its completion time by cause."""
    submit_ns, nodes, is_sticky = submits_ns(result), result.summary["nodes"], sticky_jobs(result)
    for job, events in record.by_job():
        if steps := chain_of(events, nodes, submit_ns[job], handled, bool(is_sticky[job])):
            yield job, causes_of(steps)


def causes_of(steps: list[Step]) -> dict[str, int]:
    """Return nanoseconds by cause."""
    sums = dict.fromkeys(CAUSES, 0)
    for step in steps:
        sums[step.cause] += step.end_ns - step.begin_ns
    return sums


def explain_job(result: Result, record: Record, job: int, handled: Handled | None) -> Explanation:
    """Explain a job, by its row in the table of jobs, from the record of its events and the table of all tasks."""
    row = {name: values[0] for name, values in result.jobs.slice(job, 1).to_pydict().items()}
    nodes = result.summary["nodes"]
    submit_ns = round(row["submit_s"] * NS)
    events = record.rows(np.flatnonzero(record.job == job))
    steps = chain_of(events, nodes, submit_ns, handled, bool(sticky_jobs(result)[job]))
    tasks = _task_rows(result, job, events, nodes)
    jct_s = row["jct_s"]
    ended = f"ended after {number(jct_s)} s" if jct_s is not None else "did not end"
    sentences = [
        f"It is a {row['job_class']} job of {counted(row['num_tasks'], 'task')} of {number(row['mean_task_s'])} s on "
        f"average. It arrived at {number(row['submit_s'])} s and {ended}.",
        *_deeds(events, nodes),
    ]
    if steps:
        sentences += _last_task(result, steps, tasks)
    return Explanation(
        f"job {row['job_id']}, {result.summary['scheduler']} on {result.summary['workload']}, {nodes:,} nodes",
        NONE if jct_s is None else sum(step.end_ns - step.begin_ns for step in steps),
        causes_of(steps),
        MEANINGS,
        sentences,
        {"task": tasks, "what led to its end": [_step_row(s, nodes) for s in steps if s.end_ns > s.begin_ns]},
    )


def _deeds(events: Record, nodes: int) -> Iterator[str]:
    """Yield sentences about probes, placements, refusals, thefts."""
    kinds = Counter(events.kind.tolist())
    by_node = events.sender < nodes
    probes = (events.kind == "PROBE") & ~by_node
    stolen = int(np.count_nonzero((events.kind == "PROBE") & by_node)) + kinds["MOVE"]
    if probes.any():
        asked = np.unique(events.receiver[probes]).size
        yield f"Its scheduler sent {counted(int(probes.sum()), 'probe')} to {counted(asked, 'node')}."
    if kinds["ASK_LENGTH"]:
        yield f"Its scheduler asked {counted(kinds['ASK_LENGTH'], 'node')} for the length of their queues."
    if kinds["PLACED"]:
        yield f"Its scheduler placed {counted(kinds['PLACED'], 'task')} on nodes."
    refusals = events.kind == "REJECTED"
    if refusals.any():
        where = Counter(events.sender[refusals].tolist())
        yield (
            f"{counted(int(refusals.sum()), 'time')} a node refused, as it had long work or no room: "
            f"{_names(where)}; each time its scheduler chose another one."
        )
    for kind, text in (
        ("NO_TASK", "no task was left to start for {}"),
        ("BYPASS", "{} it was served before its turn, as it had the least work left"),
        ("REORDER", "{} it was served before its turn for its constraints' sake"),
        ("RELAX", "{} a soft constraint of it was dropped"),
        ("LOST", "{} a task or a probe of it was lost with a node"),
    ):
        if kinds[kind]:
            how_often = counted(kinds[kind], "probe" if kind == "NO_TASK" else "time")
            yield text.format(how_often).capitalize() + "."
    if stolen:
        yield f"{counted(stolen, 'probe')} moved to an idle node that stole from a queue."


def _names(where: Counter[int], most: int = 6) -> str:
    shown = [
        f"node {node}" + (f" ({times} times)" if times > 1 else "") for node, times in where.most_common(most)
    ]
    more = len(where) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _last_task(result: Result, steps: list[Step], tasks: list[dict[str, Any]]) -> Iterator[str]:
    last = steps[-1]
    row = next(
        (row for row in tasks if row["start_s"] == last.begin_ns / NS and row["node"] == last.actor), None
    )
    ran = number((last.end_ns - last.begin_ns) / NS)
    if row is None:
        yield f"The task that ended last ran {ran} s on node {last.actor}."
        return
    waited = "" if row["waited_s"] is None else f", where it had waited {number(row['waited_s'])} s"
    yield f"Task {row['task']} ended last: it ran {ran} s on node {last.actor}{waited}."
    if row["enqueued_s"] is None or not row["ahead"]:
        return
    ahead = _ahead(result, last.actor, row["enqueued_s"], row["start_s"])
    texts = [
        f"task {task['task']} of {task['job_class']} job {task['job_id']} ({number(task['s'])} s)"
        for task in ahead[:MOST_AHEAD]
    ]
    more = f", and {len(ahead) - MOST_AHEAD:,} more" if len(ahead) > MOST_AHEAD else ""
    yield f"While it waited, {counted(len(ahead), 'task')} ran there: {', '.join(texts)}{more}."


def _ahead(result: Result, node: int, begin_s: float, end_s: float) -> list[dict[str, Any]]:
    """Return the tasks that ran on a node in a span of time, the longest within it first."""
    tasks = result.tasks
    if tasks is None:
        return []
    on_node, start, finish = _of_node(result, node)
    mine = (start < end_s) & (finish > begin_s)
    found = []
    for at in on_node[mine].tolist():
        row = {name: tasks[name][at].as_py() for name in ("job_id", "task", "start_s", "finish_s")}
        spent = min(row["finish_s"], end_s) - max(row["start_s"], begin_s)
        found.append({**row, "s": spent, "job_class": _class_of(result, row["job_id"])})
    return sorted(found, key=lambda row: -row["s"])


def _of_node(result: Result, node: int) -> tuple[Any, Any, Any]:
    """Return the rows of the tasks of a node, and their starts and ends."""
    tasks = result.tasks
    nodes, start, finish = (
        tasks[name].fill_null(NONE).to_numpy() for name in ("node", "start_s", "finish_s")
    )
    rows = np.flatnonzero(nodes == node)
    return rows, start[rows], finish[rows]


def _class_of(result: Result, job_id: int) -> str:
    at = int(np.searchsorted(ids := column(result.jobs, "job_id"), job_id))
    if at >= len(ids) or ids[at] != job_id:
        at = int(np.flatnonzero(ids == job_id)[0])
    return str(result.jobs["job_class"][at].as_py())


def _task_rows(result: Result, job: int, events: Record, nodes: int) -> list[dict[str, Any]]:
    """Return a row for each task that started: where, when it was enqueued, what ran ahead of it."""
    first_task = int(np.sum(column(result.jobs, "num_tasks")[:job]))
    starts = starts_of(events, nodes, sticky_jobs(result))
    known = starts.enqueued_ns != NONE
    count, work_ns = np.zeros(known.size, np.int64), np.zeros(known.size)
    if result.tasks is not None:
        count[known], work_ns[known] = ahead_of(
            _ran(result), starts.node[known], starts.enqueued_ns[known], starts.start_ns[known]
        )
    known_ahead = known & (result.tasks is not None)
    done = events.is_kind("DONE")
    rows = []
    for i, (node, start_ns) in enumerate(zip(starts.node.tolist(), starts.start_ns.tolist(), strict=True)):
        ended = np.flatnonzero(done & (events.b == node) & (events.c == start_ns))
        enqueued_ns = int(starts.enqueued_ns[i])
        rows.append(
            {
                "task": int(starts.task[i]) - first_task,
                "node": node,
                "enqueued_s": enqueued_ns / NS if known[i] else None,
                "start_s": start_ns / NS,
                "finish_s": int(events.d[ended[0]]) / NS if ended.size else None,
                "waited_s": (start_ns - enqueued_ns) / NS if known[i] else None,
                "ahead": int(count[i]) if known_ahead[i] else None,
                "ahead_s": work_ns[i] / NS if known_ahead[i] else None,
            }
        )
    return rows


def _ran(result: Result) -> Ran:
    """Return all tasks that ran to their end."""
    node, start_s, finish_s = (numbers(result.tasks, name) for name in ("node", "start_s", "finish_s"))
    ran = np.isfinite(finish_s)
    return Ran(
        node[ran].astype(np.int64),
        np.round(start_s[ran] * NS).astype(np.int64),
        np.round(finish_s[ran] * NS).astype(np.int64),
    )


def _step_row(step: Step, nodes: int) -> dict[str, Any]:
    where = f"node {step.actor}" if step.actor < nodes else f"scheduler {step.actor - nodes}"
    return {
        "from_s": f"{step.begin_ns / NS:,.6f}",
        "to_s": f"{step.end_ns / NS:,.6f}",
        "cause": step.cause,
        "s": (step.end_ns - step.begin_ns) / NS,
        "at": where if step.actor >= 0 else "",
        "until": step.kind,
    }
