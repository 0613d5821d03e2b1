"""The life of one job, from its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from emu.explaining.causes_text import parameters_of, sum_by_cause, title_of
from emu.explaining.event_record import NONE, Handled, Record
from emu.explaining.explained_plan import plan_of
from emu.explaining.explanation import NS, Explanation, Link, counted
from emu.families.jobs.causes import Step, chain_of, meanings_of
from emu.families.jobs.chain_text import ChainText, longest_span
from emu.families.jobs.job_wait import JobWait
from emu.families.jobs.metrics import has_classes
from emu.families.jobs.serving_order import order_of
from emu.families.jobs.slot_holders import tasks_of
from emu.families.jobs.task_waits import BOUND, Ran, ahead_of, starts_of, sticky_jobs
from emu.families.jobs.wait_reasons import jobs_that_held, wait_of
from emu.results.result import Result
from emu.results.text_tables import number
from workloads.arrow import column, optional_column


def submits_ns(result: Result) -> list[int]:
    """Return when each job arrived, ns."""
    return [round(seconds * NS) for seconds in column(result.jobs, "submit_s").tolist()]


def causes_of_all(
    result: Result, record: Record, handled: Handled | None
) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield each job that ended, by its row in the table of jobs, and nanoseconds of its completion time by cause."""
    submit_ns, nodes, is_sticky = submits_ns(result), result.summary["nodes"], sticky_jobs(result)
    meanings = meanings_of(result)
    for job, events in record.by_job():
        if steps := chain_of(events, nodes, submit_ns[job], handled, bool(is_sticky[job])):
            yield job, sum_by_cause(steps, meanings)


def explain_job(result: Result, record: Record, job: int, handled: Handled | None) -> Explanation:
    """Explain a job, by its row in the table of jobs, from the record of its events and the table of all tasks."""
    row = {name: values[0] for name, values in result.jobs.slice(job, 1).to_pydict().items()}
    nodes, submit_ns, jct_s = result.summary["nodes"], round(row["submit_s"] * NS), row["jct_s"]
    events, steps, words = _chain(result, record, job, handled)
    ended = f"ended after {number(jct_s)} s" if jct_s is not None else "did not end"
    size = f"1 task of {number(row['ideal_s'])} s"
    if row["num_tasks"] > 1:
        mean, longest = number(row["mean_task_s"]), number(row["ideal_s"])
        stated = "" if _is_mean(result, row) else " as the workload states them"
        size = f"{row['num_tasks']:,} tasks of {mean} s on average{stated}, the longest of {longest} s"
    sentences = [
        f"It is a {_class_of(result, row)}job of {size}. It arrived at {number(row['submit_s'])} s and {ended}.",
        *_deeds(result, events, NONE if jct_s is None else submit_ns + round(jct_s * NS)),
    ]
    chain = [words.link(step) for step in steps]
    case = _longest(result, record, job, events, steps, words)
    return Explanation(
        title_of(result, row["job_id"]),
        NONE if jct_s is None else sum(step.end_ns - step.begin_ns for step in steps),
        sum_by_cause(steps, meanings_of(result)),
        meanings_of(result),
        sentences,
        {"task": _task_rows(result, job, events, nodes)},
        [link for link in chain if link.s],
        None if case is None else wait_of(case, _link_of(case, chain)),
        submit_ns,
    )


def _class_of(result: Result, row: dict[str, Any]) -> str:
    """Return the class of a job and a blank; empty where all jobs are of one class."""
    return f"{row['job_class']} " if has_classes(result.jobs) else ""


def _is_mean(result: Result, row: dict[str, Any]) -> bool:
    """Return whether the mean task duration that the workload states is that of the tasks as they ran."""
    if result.tasks is None:
        return True
    own = result.tasks.filter(column(result.tasks, "job_id") == row["job_id"])
    ran_s = optional_column(own, "finish_s") - optional_column(own, "start_s")
    return bool(np.isclose(ran_s.mean(), row["mean_task_s"], rtol=1e-3))


def others_of(result: Result, record: Record, job: int, handled: Handled | None) -> list[int]:
    """Return the rows of the jobs whose events are needed to explain a job's longest wait."""
    case = _longest(result, record, job, *_chain(result, record, job, handled))
    return [] if case is None else [other for other in jobs_that_held(case) if other != job]


def _chain(
    result: Result, record: Record, job: int, handled: Handled | None
) -> tuple[Record, list[Step], ChainText]:
    nodes, submit_ns = result.summary["nodes"], submits_ns(result)[job]
    events = record.rows(np.flatnonzero(record.job == job))
    steps = chain_of(events, nodes, submit_ns, handled, bool(sticky_jobs(result)[job]))
    first_task = int(np.sum(column(result.jobs, "num_tasks")[:job]))
    return events, steps, ChainText(events, nodes, first_task, submit_ns)


def _longest(
    result: Result, record: Record, job: int, events: Record, steps: list[Step], words: ChainText
) -> JobWait | None:
    """Return the longest wait of a job; None if it did not wait, or the result has no tasks."""
    span = longest_span(steps, result.summary["nodes"])
    if span is None or result.tasks is None:
        return None
    return JobWait(result, record, job, events, steps, *span, words, tasks_of(result, record))


def _link_of(case: JobWait, chain: list[Link]) -> Link:
    """Return a wait as one link, also where trips interrupt it."""
    first = chain[case.first]
    return first if case.end == case.first + 1 else first._replace(end_ns=chain[case.end - 1].end_ns)


def _deeds(result: Result, events: Record, end_ns: int) -> Iterator[str]:
    """Yield sentences about the probes, placements, refusals and steals of a job until it ended."""
    nodes = result.summary["nodes"]
    e = events if end_ns == NONE else events.rows(np.flatnonzero(events.time_ns <= end_ns))
    kinds = Counter(e.kind.tolist())
    probes = e.is_kind("PROBE") & (e.sender >= nodes)
    if probes.any():
        asked = np.unique(e.receiver[probes]).size
        none = f"; for {kinds['NO_TASK']:,} no task was left to start" if kinds["NO_TASK"] else ""
        yield f"Its scheduler sent {counted(int(probes.sum()), 'probe')} to {counted(asked, 'node')}{none}."
    if kinds["ASK_LENGTH"]:
        yield f"Its scheduler asked {counted(kinds['ASK_LENGTH'], 'node')} for the length of their queues."
    if any(kinds[kind] for kind in BOUND):
        yield from _placements(e)
    refused = np.flatnonzero(e.is_kind("REJECTED"))
    if refused.size:
        where = counted(np.unique(e.sender[refused]).size, "node")
        times = counted(refused.size, "probe")
        yield f"{times} came to nodes with long work ({where}), which refused them; they were sent again."
    yield from _turns(e, _why_first(result))
    stolen = int(np.count_nonzero(e.is_kind("PROBE") & (e.sender < nodes))) + kinds["MOVE"]
    if stolen:
        yield f"{counted(stolen, 'time')} an idle node took a probe of it from the queue of another node."
    if kinds["RELAX"]:
        yield f"{counted(kinds['RELAX'], 'time')} a soft constraint of it was dropped."
    yield from evictions_of(result, e)
    lost = int(np.count_nonzero(e.is_kind("LOST") & (e.sender < nodes))) - kinds["EVICT"]
    cancels = np.flatnonzero(e.is_kind("CANCEL"))
    if lost > 0:
        gang = ", or ended with its gang, of which a node had lost a task" if cancels.size else ""
        yield f"{counted(lost, 'time')} a task or a probe of it was lost with a node{gang}."


def evictions_of(result: Result, e: Record) -> Iterator[str]:
    """Yield a sentence about how often tasks of a job were evicted, and for whom, if any was."""
    evicts = np.flatnonzero(e.is_kind("EVICT"))
    if evicts.size:
        found = Counter(e.field("for_job", evicts).tolist())
        most = int(column(result.jobs, "job_id")[found.most_common(1)[0][0]])
        whose = f"job {most}" if len(found) == 1 else f"{len(found):,} jobs, mostly job {most}"
        yield f"{counted(evicts.size, 'time')} a task of it was evicted, for {whose}, of higher priority."


def _placements(e: Record) -> Iterator[str]:
    """Yield sentences about tasks that were bound to nodes, and those that were sent back."""
    placed, returned = np.flatnonzero(e.is_kind(*BOUND)), np.flatnonzero(e.is_kind("RETURNED"))
    tasks = np.unique(e.task[placed]).size
    again = placed.size - tasks
    more = f", and {counted(again, 'time')} one of them again" if again else ""
    yield f"Its scheduler placed {counted(tasks, 'task')} on nodes{more}."
    if returned.size:
        came = set(zip(*(of[placed].tolist() for of in (e.time_ns, e.receiver, e.task)), strict=True))
        back = zip(*(of[returned].tolist() for of in (e.left_ns, e.sender, e.task)), strict=True)
        full = sum(one in came for one in back)
        late = returned.size - full
        parts = {
            "{} a node had no room for a task and sent it back": full,
            "{} a node gave a task back at a heartbeat, as too much work was in front of it": late,
        }
        said = [text.format(counted(times, "time")) for text, times in parts.items() if times]
        yield "; ".join(said) + "."


_LEAST = {"sjf": "the shortest task", "lrtf": "the fewest tasks left"}
"""By the order of queues, what a job that was served before its turn had; by default the least work left."""


def _why_first(result: Result) -> str:
    """Return why nodes serve a job before its turn, except because of its constraints."""
    why = f"it had {_LEAST.get(order_of(result), 'the least work left')}"
    if not result.summary["jobs"].get("used") or not (plan := plan_of(result)) or not plan.setting(0).passing:
        return why
    own, fits = parameters_of(result), "it fitted where the entries in front of it did not"
    return f"{fits}, or {why}" if own.get("shortest_first") or own.get("order", "fifo") != "fifo" else fits


def _turns(e: Record, why_first: str) -> Iterator[str]:
    """Yield a sentence about how often the job was served before its turn; two notes of one time count once."""
    moments: dict[tuple[int, int], set[str]] = {}
    for at in np.flatnonzero(e.is_kind("BYPASS", "REORDER")).tolist():
        moments.setdefault((int(e.time_ns[at]), int(e.receiver[at])), set()).add(str(e.kind[at]))
    if moments:
        by_crv = sum("REORDER" in kinds for kinds in moments.values())
        whys = {"because of its constraints": by_crv, f"as {why_first}": len(moments) - by_crv}
        why = " and ".join(
            f"{n:,} {text}" if by_crv and n < len(moments) else text for text, n in whys.items() if n
        )
        yield f"{counted(len(moments), 'time')} a node served it before its turn, {why}."


def _task_rows(result: Result, job: int, events: Record, nodes: int) -> list[dict[str, Any]]:
    """Return a row for each task that started: its node, its times, and the tasks ahead of it."""
    first_task, submit_ns = int(np.sum(column(result.jobs, "num_tasks")[:job])), submits_ns(result)[job]
    starts = starts_of(events, nodes, sticky_jobs(result))
    known = starts.enqueued_ns != NONE
    count, work_ns = np.zeros(known.size, np.int64), np.zeros(known.size)
    if result.tasks is not None:
        count[known], work_ns[known] = ahead_of(
            _ran(result), starts.node[known], starts.enqueued_ns[known], starts.start_ns[known]
        )
    known_ahead = known & (result.tasks is not None)
    done = np.flatnonzero(events.is_kind("DONE"))
    started_ns, finish_ns = (events.field(name, done) for name in ("start", "finish"))
    rows = []
    for i, (node, start_ns) in enumerate(zip(starts.node.tolist(), starts.start_ns.tolist(), strict=True)):
        ended = finish_ns[(events.sender[done] == node) & (started_ns == start_ns)]
        enqueued_ns = int(starts.enqueued_ns[i])
        rows.append(
            {
                "task": int(starts.task[i]) - first_task,
                "node": node,
                "enqueued_s": (enqueued_ns - submit_ns) / NS if known[i] else None,
                "start_s": (start_ns - submit_ns) / NS,
                "finish_s": (int(ended[0]) - submit_ns) / NS if ended.size else None,
                "waited_s": (start_ns - enqueued_ns) / NS if known[i] else None,
                "ahead": int(count[i]) if known_ahead[i] else None,
                "ahead_s": work_ns[i] / NS if known_ahead[i] else None,
            }
        )
    return rows


def _ran(result: Result) -> Ran:
    """Return all tasks that ran to their end."""
    node, start_s, finish_s = (
        optional_column(result.tasks, name) for name in ("node", "start_s", "finish_s")
    )
    ran = np.isfinite(finish_s)
    return Ran(
        node[ran].astype(np.int64),
        np.round(start_s[ran] * NS).astype(np.int64),
        np.round(finish_s[ran] * NS).astype(np.int64),
    )
