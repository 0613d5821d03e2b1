"""Random events of Google's traces, and the rules of `workloads.readers.google_rules` in plain Python."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import NamedTuple

from workloads.readers.google_rules import BEGIN_US

AFTER_END = 2**63 - 1
ENDS = ("EVICT", "FAIL", "FINISH", "KILL", "LOST")


class Event(NamedTuple):
    """A row of task_events or instance_events; `kind` is a name, and ``UPDATE_PENDING`` or such changes nothing."""

    time: int
    job: int
    task: int
    kind: str


def draw_events(rng: random.Random) -> tuple[list[Event], dict[int, int]]:
    """Return rows in any order, also absurd ones, and the times at which some of their jobs were submitted."""
    kinds = ["SUBMIT", "SCHEDULE", "SCHEDULE", *ENDS, "FINISH", "UPDATE_RUNNING"]
    rows = []
    for job in rng.sample(range(1, 50), rng.randint(1, 5)):
        for task in range(rng.randint(1, 4)):
            time = rng.choice([0, BEGIN_US, BEGIN_US + 5, BEGIN_US + rng.randrange(40)])
            for _ in range(rng.randint(0, 7)):
                rows.append(Event(time, job, task, rng.choice(kinds)))
                time += rng.choice([0, 0, 1, 3, 10]) if time else rng.choice([0, BEGIN_US, BEGIN_US + 2])
            if rng.random() < 0.1:
                rows.append(Event(AFTER_END, job, task, "FINISH"))
    rows += [row for row in rows if rng.random() < 0.1]
    rng.shuffle(rows)
    # One job that every choice of options keeps.
    rows += [Event(BEGIN_US + t, 99, 0, kind) for t, kind in enumerate(("SUBMIT", "SCHEDULE", "FINISH"))]
    submits = [BEGIN_US, BEGIN_US + 7, 0]
    return rows, {row.job: rng.choice(submits) for row in rows if row.job != 99 and rng.random() < 0.2}


def expected_jobs(
    rows: list[Event], submitted: dict[int, int], attempts: str, unfinished: str
) -> list[tuple[int, int, list[int]]]:
    """Return (arrival, job, durations) in microseconds, in order."""
    events = defaultdict(set)
    for row in rows:
        if row.time != AFTER_END and not row.kind.startswith("UPDATE"):
            events[row.job, row.task].add((row.time, row.kind))
    kept: dict[int, dict[int, int]] = defaultdict(dict)
    arrival: dict[int, int] = {}
    firsts: dict[int, int] = {}
    for (job, task), expected in events.items():
        first = min(time for time, _ in expected)
        firsts[job] = min(first, firsts.get(job, first))
        for time, kind in expected:
            if kind == "SUBMIT":
                arrival[job] = min(time, arrival.get(job, time))
        took = _duration(expected, attempts, unfinished)
        if took is not None:
            kept[job][task] = took
    found = []
    for job, tasks in kept.items():
        at = submitted.get(job, arrival.get(job, firsts[job]))
        if at >= BEGIN_US:
            found.append((at - BEGIN_US, job, [tasks[task] for task in sorted(tasks)]))
    return sorted(found)


def _duration(expected: set[tuple[int, str]], attempts: str, unfinished: str) -> int | None:
    """Return how long a task takes, None where it is dropped."""
    runs: list[tuple[int, int | None]] = []
    how = None  # the last end after the last SCHEDULE
    for time, kind in sorted(expected, key=_order):
        if kind == "SCHEDULE":
            runs.append((time, None))
            how = None
        elif kind in ENDS and runs:
            how = kind
            finish = time
            if runs[-1][1] is None:
                runs[-1] = (runs[-1][0], time)
    if not runs or runs[0][0] < BEGIN_US or how is None or (how != "FINISH" and unfinished == "drop"):
        return None
    if attempts == "all":
        return sum(end - begin for begin, end in runs if end is not None)
    begin, end = runs[-1]
    assert end is not None
    return (finish if how == "FINISH" else end) - begin


def _order(event: tuple[int, str]) -> tuple[int, int]:
    time, kind = event
    return time, ("SUBMIT", "EVICT", "FAIL", "SCHEDULE", "FINISH", "KILL", "LOST").index(kind)


def jobs_of(workload):
    """Return the (submission, id, durations) of each job of a workload."""
    durations = iter(workload.tasks["duration_s"].to_pylist())
    return [
        (job["submit_s"], job["job_id"], [next(durations) for _ in range(job["num_tasks"])])
        for job in workload.jobs.to_pylist()
    ]
