"""The life of one DAG job: the chain of tasks that ends with its last one.

The chain is followed backwards: before a task in the chain is the last one to end of those that it waits for. Between
two tasks are the report of that end to the resource manager, the wait for resources, the manager's decision and the
message that launches the task. With `network.registration=pipelined` it may have been launched before that end, from
which on it then fetches. With `network.shuffle=push` its input is sent to its machine before it waits for resources.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from emu.explaining.causes_text import sum_by_cause, title_of
from emu.explaining.event_record import NONE, Handled, Record
from emu.explaining.explanation import NS, Explanation, Link, Row, Wait, counted, longest_wait
from emu.families.dags.chain import JobTasks, chain_of
from emu.families.dags.fetch_reasons import fetch_of, most_users
from emu.families.dags.wait_reasons import wait_of
from emu.families.jobs.causes import cause_of_loss, meanings_of
from emu.families.jobs.explain import evictions_of
from emu.results.result import Result
from emu.results.text_tables import number
from workloads.arrow import column
from workloads.errors import InputError

MEANINGS = {
    "work": "tasks of the chain that ended last ran",
    "fetching": "their input was on its way over the network, to the machine that they had or were to run on",
    "queueing": "they were runnable, and no machine had room or others came first",
    "network": "ends were reported, and launches were on their way",
    "decision": "the manager was busy",
    "failure": "tasks were lost with a machine, or what they had sent or were to fetch",
    "preemption": "they ran until they were evicted for tasks of higher priority, and that work was lost",
}


def _meanings(result: Result) -> dict[str, str]:
    """Return what each cause of a run means; runs without a network have no time to fetch input."""
    found = meanings_of(result, MEANINGS)
    if "moved_bytes" not in result.summary["dags"]:
        del found["fetching"]
    return found


class _Part(NamedTuple):
    """A part of a job's time, and the row of the task of the chain that it is about."""

    link: Link
    at: int


def _parts(events: Record, tasks: JobTasks, submit_ns: int, handled: Any) -> list[_Part]:
    """Return the parts of a job's time that are not empty, in order."""
    parts: list[_Part] = []
    chain = chain_of(tasks)[::-1]
    for i, at in enumerate(chain):
        start, end = int(tasks.start[at]), int(tasks.finish[at])
        begin = int(tasks.awaited[at]) if i else submit_ns
        # One that could be launched before its parents had ended did not wait until the manager heard of that.
        is_reported = tasks.runnable[at] == tasks.awaited[at] or tasks.sent[at] >= 0
        before = chain[i - 1] if i and is_reported and tasks.known[at] == NONE else NONE
        marks = _marks(events, tasks, at, before, begin, handled)
        for (first, *_), (last, cause, what) in pairwise(
            [*marks, (start, "queueing", "waited for a machine")]
        ):
            upto = [min(max(at_ns, begin), start) for at_ns in (first, last)]
            if upto[1] > upto[0]:
                parts.append(_Part(_link(upto[0], upto[1], cause, f"{tasks.name(at)} {what}", submit_ns), at))
        where = f"ran on node {tasks.node[at]}"
        fetched = int(tasks.fetched[at])
        if fetched > max(start, begin):
            rest = "the rest of its input" if begin > start else "its input"
            what = f"{tasks.name(at)} fetched {rest} to node {tasks.node[at]}"
            parts.append(_Part(_link(max(start, begin), fetched, "fetching", what, submit_ns), at))
        if end > fetched:
            parts.append(_Part(_link(fetched, end, "work", f"{tasks.name(at)} {where}", submit_ns), at))
    return parts


def _link(begin_ns: int, end_ns: int, cause: str, what: str, submit_ns: int) -> Link:
    return Link(begin_ns - submit_ns, end_ns - submit_ns, cause, what)


def _marks(
    events: Record, tasks: JobTasks, at: int, before: int, begin_ns: int, handled: Any
) -> list[tuple[int, str, str]]:
    """Return the end, cause and description of each part of a task's wait; first when the wait began."""
    start_ns, mine = int(tasks.start[at]), events.task == tasks.ids[at]
    launch = np.flatnonzero(mine & np.isin(events.kind, _LAUNCHES) & (events.time_ns <= start_ns))
    who, marks = _scheduler(events), [(begin_ns, "", "")]
    if tasks.known[at] != NONE:
        what = (
            f"was to run again, as its output was lost with node {tasks.had[at]}: what needed it began again"
        )
        marks.append((int(tasks.known[at]), "failure", what))
    if before != NONE:
        heard = _heard(events, tasks, before)
        heard = heard[heard <= start_ns]
        what = f"waited until {who} heard of the end of {tasks.name(before)}"
        marks.append((int(heard[-1]) if heard.size else begin_ns, "network", what))
    if tasks.sent[at] >= 0:
        marks += [
            (int(tasks.sent[at]), "network", "waited until its machine was asked to receive its input"),
            (int(tasks.came[at]), "fetching", f"was sent its input to node {tasks.node[at]}"),
            (int(tasks.runnable[at]), "network", f"waited until {who} heard that its input was there"),
        ]
    # A scheduler that finds no node for a lost task tells itself to look again.
    lost = mine & (events.kind == "LOST") & (events.sender != events.receiver)
    for row in np.flatnonzero(lost & (events.time_ns > begin_ns) & (events.time_ns <= start_ns)).tolist():
        if (before_it := launch[events.time_ns[launch] <= events.time_ns[row]]).size:
            cause = _cause_of_loss(events, tasks, at, row)
            came_ns = int(events.time_ns[before_it[-1]])
            marks += [
                (came_ns, "queueing", "waited for a machine"),
                (_left_queue(events, mine, came_ns, row), "queueing", "waited for its turn on its machine"),
                (int(events.time_ns[row]), cause, _of_loss(events, cause, row)),
            ]
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


_LAUNCHES = ("LAUNCH", "TASK", "PLACED", "OFFERED")
"""The messages that bring a task to a node."""


def _scheduler(events: Record) -> str:
    """Return who schedules the tasks of a job: the manager, or a scheduler of jobs to which its stages come."""
    return "its scheduler" if (events.kind == "ARRIVAL").any() else "the manager"


def _left_queue(events: Record, mine: Any, came_ns: int, lost: int) -> int:
    """Return until when a task waited on its machine before it was lost there, ns, from when it came.

    A resource manager's tasks start when they come. Others started, or they waited until their node failed.
    """
    if events.kind[lost] == "LOST" and not (mine & (events.kind == "LAUNCH")).any():
        start = events.time_ns[mine & (events.kind == "START")]
        start = start[(start >= came_ns) & (start <= events.time_ns[lost])]
        left_ns = int(events.left_ns[lost])
        return int(start[-1]) if start.size else max(came_ns, left_ns)
    return came_ns


def _asking(events: Record, launch: int, begin_ns: int) -> list[tuple[int, str, str]]:
    """Return the marks of a probe, where the task came as the answer to one: it came, and its node asked for a task."""
    if events.kind[launch] != "TASK":
        return []
    node, asked_ns = events.receiver[launch], int(events.left_ns[launch])
    requests = (events.kind == "REQUEST") & (events.sender == node) & (events.time_ns <= asked_ns)
    if not requests.any():
        return []
    left_ns = int(events.left_ns[np.flatnonzero(requests)[-1]])
    probes = (events.kind == "PROBE") & (events.receiver == node) & (events.left_ns >= begin_ns)
    came = events.time_ns[probes & (events.time_ns <= left_ns)]
    marks = (
        [(int(came[0]), "network", "waited for a probe that was on its way to its machine")]
        if came.size
        else []
    )
    marks.append((left_ns, "queueing", "waited for the turn of a probe on its machine"))
    return [*marks, (asked_ns, "network", "was asked for by its machine")]


def _heard(events: Record, tasks: JobTasks, before: int) -> Any:
    """Return when who schedules a job heard that a task of it had ended, ns: once, or not at all."""
    ended = (events.left_ns == tasks.finish[before]) & (events.sender == tasks.node[before])
    of_it = (events.task == tasks.ids[before]) & np.isin(events.kind, ("TASK_DONE", "ENDED"))
    reported = of_it | (ended & (events.kind == "DONE"))
    return events.time_ns[reported & (events.receiver != tasks.node[before])]


_OF_LOSS = {
    "failure": "had been launched, and was lost with its machine",
    "preemption": "ran until it was evicted and that was known",
    "work": "ran until it was evicted and that was known, and what it had done was kept",
    "network": "was sent back, as the message that stopped it had come to its machine before it",
}


def _of_loss(events: Record, cause: str, row: int) -> str:
    """Return what became of an attempt at a task that ended with the event LOST in a row."""
    if cause == "failure" and _lacked_input(events, row):
        return "could not get its input, of which some was lost with another machine"
    return _OF_LOSS[cause]


def _lacked_input(events: Record, row: int) -> bool:
    """Return whether the event LOST in a row is of a task that gave up its fetch."""
    failed = (events.kind == "FETCH_FAILED") & (events.receiver == events.sender[row])
    return bool((events.time_ns[failed] == events.left_ns[row]).any())


def _cause_of_loss(events: Record, tasks: JobTasks, at: int, row: int) -> str:
    """Return the cause of the time of an attempt at a task that ended with the event LOST in a row."""
    evicts = (events.kind == "EVICT") & (events.task == tasks.ids[at])
    if _was_sent_back(events, row):
        return "network"
    return cause_of_loss(events, row, bool((events.time_ns[evicts] == events.left_ns[row]).any()))


def _was_sent_back(events: Record, row: int) -> bool:
    """Return whether a task was lost as a message that stopped it came to its machine before it."""
    stops = (
        (events.kind == "STOP_TASK")
        & (events.task == events.task[row])
        & (events.receiver == events.sender[row])
    )
    return events.value("start", row) == NONE and bool((events.time_ns[stops] <= events.left_ns[row]).any())


def causes_of_all(
    result: Result, record: Record, handled: Handled | None = None
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
            tasks = JobTasks(result, job_of_task == job, record)
            parts = _parts(by_job[row], tasks, round(submit_s * NS), handled)
            yield row, sum_by_cause((part.link for part in parts), _meanings(result))


def _checked(result: Result) -> Any:
    if result.tasks is None:
        raise InputError("the result has no tasks; run it with output.tasks=true", file=result.path)
    return result.jobs


def explain_dag(result: Result, record: Record, row: int, handled: Handled | None = None) -> Explanation:
    """Explain a job, by its row in the table of jobs.

    Raises
    ------
    InputError
        The result has no table of tasks.
    """
    values = {name: cells[0] for name, cells in _checked(result).slice(row, 1).to_pydict().items()}
    events = record.rows(np.flatnonzero(record.job == row))
    tasks = JobTasks(result, column(result.tasks, "job_id") == values["job_id"], record)
    jct_s, submit_ns = values["jct_s"], round(values["submit_s"] * NS)
    parts = _parts(events, tasks, submit_ns, handled) if jct_s is not None else []
    links, chain = [part.link for part in parts], chain_of(tasks) if jct_s is not None else []
    sums = sum_by_cause(links, _meanings(result))
    ended = f"ended after {number(jct_s)} s" if jct_s is not None else "did not end"
    sentences = [
        f"It has {counted(values['num_tasks'], 'task')} in {counted(values['num_stages'], 'stage')}, "
        f"{values['levels']} on its longest chain. It arrived at {number(values['submit_s'])} s and {ended}.",
        f"Alone on a cluster of unlimited size it would take {number(values['ideal_s'])} s, the length of its critical "
        "path.",
    ]
    if chain:
        last = chain[0]
        sentences += [
            f"Task {tasks.task[last]} of stage {tasks.stage[last]} ended last, on node {tasks.node[last]}.",
            f"It was the last of {counted(len(chain), 'task')} that waited for each other and ran "
            f"{number(sums['work'] / NS)} s in all.",
        ]
    sentences += [*evictions_of(result, events), *_evicted_for(result, record, row)]
    back = sum(_was_sent_back(events, row) for row in np.flatnonzero(events.kind == "LOST").tolist())
    lost = int(np.count_nonzero(events.kind == "LOST") - np.count_nonzero(events.kind == "EVICT")) - back
    if back:
        sentences.append(
            f"{counted(back, 'time')} a task of it was stopped before it had come to its machine."
        )
    given_up = sum(_lacked_input(events, row) for row in np.flatnonzero(events.kind == "LOST").tolist())
    if given_up:
        sentences.append(
            f"{counted(given_up, 'time')} a task of it could not get its input, of which some was lost with another "
            "machine."
        )
    if lost > given_up:
        sentences.append(
            f"{counted(lost - given_up, 'time')} a task of it was lost with a machine and launched again."
        )
    if again := int(tasks.ids.size - np.unique(tasks.ids).size):
        sentences.append(
            f"{counted(again, 'time')} a task of it ran again after it had ended, as its output was lost."
        )
    tables: dict[str, Sequence[Row]] = {
        "task of the chain": [_row(tasks, at, submit_ns) for at in chain[::-1]]
    }
    wait, fetch = _waits(result, record, row, tasks, parts, submit_ns)
    if fetch is not None:
        sentences += [_fetch_head(fetch.link), *fetch.reasons, *most_users(fetch)]
        if fetch.holders:
            tables["job whose tasks used that port"] = fetch.holders
    return Explanation(
        title_of(result, values["job_id"]),
        sum(sums.values()) if jct_s is not None else NONE,
        sums,
        _meanings(result),
        sentences,
        tables,
        links,
        wait,
        submit_ns,
    )


def _waits(
    result: Result, record: Record, row: int, tasks: JobTasks, parts: list[_Part], submit_ns: int
) -> tuple[Wait | None, Wait | None]:
    """Return the longest wait, and the longest time to fetch input, unless they are the same; None for what is not."""
    task_of = {part.link: int(tasks.ids[part.at]) for part in parts}
    longest = longest_wait(list(task_of))
    fetch = longest_wait([link for link in task_of if link.cause == "fetching"])
    fetched = None
    if fetch is not None and not _ran_again(result):
        fetched = fetch_of(result, fetch, task_of[fetch], submit_ns)
    elif fetch is not None:
        fetched = Wait(
            fetch, (), ["Tasks fetched again, as machines failed: at which port it waited is not known."]
        )
    if longest is None or longest == fetch:
        return fetched, None
    return wait_of(result, record, row, longest, task_of[longest], submit_ns), fetched


def _ran_again(result: Result) -> bool:
    """Return whether tasks.parquet, with the last attempt of each task, does not have all fetches."""
    return any(result.counters.get(name) for name in ("run_again", "tasks_lost"))


def _fetch_head(link: Link) -> str:
    begin, what = number(link.begin_ns / NS), link.what
    return f"The longest fetch of that chain: {number(link.s)} s from {begin} s after its arrival: {what}."


def _evicted_for(result: Result, record: Record, row: int) -> Iterator[str]:
    """Yield a sentence about the tasks of other jobs that made room for a job, if any did."""
    evicts = np.flatnonzero(record.is_kind("EVICT"))
    jobs = record.job[evicts[record.field("for_job", evicts) == row]]
    if jobs.size:
        whose = ", ".join(str(job) for job in column(result.jobs, "job_id")[np.unique(jobs)[:5]].tolist())
        more = " and others" if np.unique(jobs).size > 5 else ""
        yield f"{counted(jobs.size, 'task')} of lower priority made room for it, of job {whose}{more}."


def _row(tasks: JobTasks, at: int, submit_ns: int) -> dict[str, Any]:
    return {
        "task": int(tasks.task[at]),
        "stage": int(tasks.stage[at]),
        "node": int(tasks.node[at]),
        "runnable_s": int(tasks.runnable[at] - submit_ns) / NS,
        "start_s": int(tasks.start[at] - submit_ns) / NS,
        **({"parents_ended_s": int(tasks.awaited[at] - submit_ns) / NS} if tasks.has_ends else {}),
        **_of_fetch(tasks, at, submit_ns),
        "finish_s": int(tasks.finish[at] - submit_ns) / NS,
        "waited_s": int(tasks.start[at] - tasks.runnable[at]) / NS,
    }


def _of_fetch(tasks: JobTasks, at: int, submit_ns: int) -> dict[str, float]:
    """Return when a task had its input, or when it started if it needed none; and from when that was sent."""
    if not tasks.has_network:
        return {}
    is_sent = tasks.sent[at] >= 0
    sent, came = (tasks.sent, tasks.came) if is_sent else (tasks.start, tasks.fetched)
    return {
        **({"sent_s": int(sent[at] - submit_ns) / NS} if tasks.has_sent else {}),
        "fetched_s": int(came[at] - submit_ns) / NS,
    }
