"""The life of one DAG job: its story, its chain, its longest wait and its longest fetch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from emu.explaining.causes import sum_by_cause
from emu.explaining.event_record import NONE, Handled, IntArray, Record
from emu.explaining.explained_run import title_of
from emu.explaining.explanation import NS, Explanation, Link, Row, Wait, counted, longest_wait
from emu.families.dags.chain import JobTasks, lacked_input, links_of, was_sent_back
from emu.families.dags.fetches import fetch_of, most_users
from emu.families.dags.wait_reasons import wait_of
from emu.families.jobs.chain import meanings_of
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
            links = links_of(by_job[row], tasks, round(submit_s * NS), handled)
            yield row, sum_by_cause(links, _meanings(result))


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
    links = links_of(events, tasks, submit_ns, handled) if jct_s is not None else []
    chain = tasks.chain() if jct_s is not None else []
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
    sentences += [*evictions_of(result, events), *_evicted_for(result, record, row), *_losses(events, tasks)]
    tables: dict[str, Sequence[Row]] = {
        "task of the chain": [_row(tasks, at, submit_ns) for at in chain[::-1]]
    }
    wait, fetch = _waits(result, record, row, links, submit_ns)
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


def _losses(events: Record, tasks: JobTasks) -> Iterator[str]:
    """Yield sentences about tasks of a job that were stopped, lost, or ran again."""
    lost = np.flatnonzero(events.is_kind("LOST")).tolist()
    back = sum(was_sent_back(events, row) for row in lost)
    given_up = sum(lacked_input(events, row) for row in lost)
    counts = {
        "was stopped before it had come to its machine": back,
        "could not get its input, of which some was lost with another machine": given_up,
        "was lost with a machine and launched again": (
            len(lost) - int(np.count_nonzero(events.is_kind("EVICT"))) - back - given_up
        ),
        "ran again after it had ended, as its output was lost": int(
            tasks.ids.size - np.unique(tasks.ids).size
        ),
    }
    yield from (
        f"{counted(count, 'time')} a task of it {what}." for what, count in counts.items() if count > 0
    )


def _waits(
    result: Result, record: Record, row: int, links: list[Link], submit_ns: int
) -> tuple[Wait | None, Wait | None]:
    """Return the longest wait, and the longest time to fetch input, unless they are the same; None for what is not."""
    longest = longest_wait(links)
    fetch = longest_wait([link for link in links if link.cause == "fetching"])
    fetched = None
    if fetch is not None and not _ran_again(result):
        fetched = fetch_of(result, fetch, submit_ns)
    elif fetch is not None:
        fetched = Wait(
            fetch, (), ["Tasks fetched again, as machines failed: at which port it waited is not known."]
        )
    if longest is None or longest == fetch:
        return fetched, None
    return wait_of(result, record, row, longest, submit_ns), fetched


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
    """Return a task of the chain as a row; ``fetched_s`` is when it started where it needed no input."""

    def since(times: IntArray) -> float:
        return int(times[at] - submit_ns) / NS

    row: dict[str, Any] = {name: int(getattr(tasks, name)[at]) for name in ("task", "stage", "node")}
    row |= {"runnable_s": since(tasks.runnable), "start_s": since(tasks.start)}
    if tasks.has_ends:
        row["parents_ended_s"] = since(tasks.awaited)
    if tasks.has_network:
        is_sent = tasks.sent[at] >= 0
        row |= {"sent_s": since(tasks.sent if is_sent else tasks.start)} if tasks.has_sent else {}
        row["fetched_s"] = since(tasks.came if is_sent else tasks.fetched)
    waited_s = int(tasks.start[at] - tasks.runnable[at]) / NS
    return row | {"finish_s": since(tasks.finish), "waited_s": waited_s}
