"""The life of one job, from its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from emu.explaining.causes import sum_by_cause
from emu.explaining.event_record import NONE, Handled, Record
from emu.explaining.explained_run import parameters_of, plan_of, title_of
from emu.explaining.explanation import NS, Explanation, counted
from emu.explaining.spans import NEVER
from emu.families.jobs.chain import Chain, longest_span, meanings_of
from emu.families.jobs.holders import tasks_of
from emu.families.jobs.job_wait import JobWait
from emu.families.jobs.metrics import has_classes
from emu.families.jobs.run_causes import chain_of
from emu.families.jobs.task_waits import BOUND, ahead_of, starts_of, sticky_jobs
from emu.families.jobs.wait_reasons import order_of, wait_of
from emu.results.result import Result
from emu.results.text_tables import number
from workloads.arrow import column, optional_column


def explain_job(result: Result, record: Record, job: int, handled: Handled | None) -> Explanation:
    """Explain a job, by its row in the table of jobs, from the record of its events and the table of all tasks."""
    row = {name: values[0] for name, values in result.jobs.slice(job, 1).to_pydict().items()}
    jct_s = row["jct_s"]
    chain = _chain(result, record, job, handled)
    ended = f"ended after {number(jct_s)} s" if jct_s is not None else "did not end"
    size = f"1 task of {number(row['ideal_s'])} s"
    if row["num_tasks"] > 1:
        mean, longest = number(row["mean_task_s"]), number(row["ideal_s"])
        stated = "" if _is_mean(result, row) else " as the workload states them"
        size = f"{row['num_tasks']:,} tasks of {mean} s on average{stated}, the longest of {longest} s"
    sentences = [
        f"It is a {_class_of(result, row)}job of {size}. It arrived at {number(row['submit_s'])} s and {ended}.",
        *_deeds(result, chain.e, NONE if jct_s is None else chain.submit_ns + round(jct_s * NS)),
    ]
    links, case = chain.described(), _longest(result, record, job, chain)
    wait = None
    if case is not None:  # one link, also where trips interrupt the wait
        wait = wait_of(case, links[case.first]._replace(end_ns=links[case.end - 1].end_ns))
    return Explanation(
        title_of(result, row["job_id"]),
        NONE if jct_s is None else sum(link.end_ns - link.begin_ns for link in links),
        sum_by_cause(links, meanings_of(result)),
        meanings_of(result),
        sentences,
        {"task": _task_rows(result, record, chain)},
        [link for link in links if link.s],
        wait,
        chain.submit_ns,
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
    case = _longest(result, record, job, _chain(result, record, job, handled))
    return [] if case is None else [other for other in case.known_jobs if other != job]


def _chain(result: Result, record: Record, job: int, handled: Handled | None) -> Chain:
    return chain_of(result, record.rows(np.flatnonzero(record.job == job)), job, handled)


def _longest(result: Result, record: Record, job: int, chain: Chain) -> JobWait | None:
    """Return the longest wait of a job; None if it did not wait, or the result has no tasks."""
    span = longest_span(chain.links, chain.num_nodes)
    if span is None or result.tasks is None:
        return None
    return JobWait(result, record, job, chain, *span)


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


def _task_rows(result: Result, record: Record, chain: Chain) -> list[dict[str, Any]]:
    """Return a row for each task that started: its node, its times, and the tasks ahead of it."""
    events, submit_ns = chain.e, chain.submit_ns
    starts = starts_of(events, chain.num_nodes, sticky_jobs(result))
    known = starts.enqueued_ns != NONE
    count, work_ns = np.zeros(known.size, np.int64), np.zeros(known.size)
    if result.tasks is not None:
        tasks = tasks_of(result, record.rows(np.zeros(0, np.int64)))  # without those that were lost
        ran = tasks.rows(tasks.end_ns != NEVER)
        of = (values[known] for values in (starts.node, starts.enqueued_ns, starts.start_ns))
        count[known], work_ns[known] = ahead_of(ran, *of)
    done = np.flatnonzero(events.is_kind("DONE"))
    done = done[::-1]  # of several tasks that started on a node at one instant, the first to end
    runs = zip(events.sender[done].tolist(), events.field("start", done).tolist(), strict=True)
    finish_of = dict(zip(runs, events.field("finish", done).tolist(), strict=True))

    def since(at_ns: int | None) -> float | None:
        return None if at_ns is None else (at_ns - submit_ns) / NS

    rows = []
    for i, (task, node, start_ns, enqueued_ns) in enumerate(
        zip(*(of.tolist() for of in starts), strict=True)
    ):
        is_counted = known[i] and result.tasks is not None
        rows.append(
            {
                "task": task - chain.first_task,
                "node": node,
                "enqueued_s": since(enqueued_ns) if known[i] else None,
                "start_s": since(start_ns),
                "finish_s": since(finish_of.get((node, start_ns))),
                "waited_s": (start_ns - enqueued_ns) / NS if known[i] else None,
                "ahead": int(count[i]) if is_counted else None,
                "ahead_s": work_ns[i] / NS if is_counted else None,
            }
        )
    return rows
