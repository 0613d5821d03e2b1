"""Rigid first come first served, EASY and conservative backfilling in plain Python: it shares no code with Emu's.

Processors are counted and have no names. A job holds a processor for each of its tasks, each until that task's own end.
Times are whole numbers. At each instant the ends come first, then the arrivals, then one decision.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple


class Job(NamedTuple):
    """A gang: when it arrives, how long each task runs, how long the scheduler expects them to run; a larger priority
    goes first."""

    submit: int
    runs: Sequence[int]
    expected: int
    priority: int = 0


class _Machine:
    """Processors, and the jobs that wait and run."""

    def __init__(self, jobs: Sequence[Job], processors: int):
        self.jobs, self.free, self.now = jobs, processors, 0
        self.waiting: list[int] = []
        self.started: dict[int, int] = {}
        self.left: dict[int, int] = {}  # tasks of the running jobs
        self.ends: list[tuple[int, int]] = []  # of tasks
        self.wakes: list[int] = []
        self.ended_early = False

    def width(self, job: int) -> int:
        return len(self.jobs[job].runs)

    def span(self, job: int) -> int:
        return max(self.jobs[job].expected, 1)

    def start(self, job: int) -> None:
        self.waiting.remove(job)
        self.started[job], self.left[job] = self.now, self.width(job)
        self.free -= self.width(job)
        assert self.free >= 0
        for run in self.jobs[job].runs:
            heapq.heappush(self.ends, (self.now + run, job))

    def expected_end(self, job: int) -> int:
        """When a running job ends, as far as is known: what is late ends as soon as it can."""
        return max(self.started[job] + self.span(job), self.now + 1)

    def is_late(self) -> bool:
        return any(self.started[job] + self.span(job) <= self.now for job in self.left)

    def advance(self, arrivals: list[int]) -> None:
        """Go to the next instant at which something happens, and let it happen."""
        times = [self.ends[0][0]] if self.ends else []
        times += [self.jobs[arrivals[-1]].submit] if arrivals else []
        times += [time for time in self.wakes if time > self.now]
        self.now = min(times)
        while self.ends and self.ends[0][0] == self.now:
            _, job = heapq.heappop(self.ends)
            self.free += 1
            self.left[job] -= 1
            self.ended_early |= self.started[job] + self.span(job) > self.now
            if self.left[job] == 0:
                del self.left[job]
        while arrivals and self.jobs[arrivals[-1]].submit == self.now:
            self.waiting.append(arrivals.pop())
        self.waiting.sort(key=lambda job: -self.jobs[job].priority)  # stable: of equal ones by arrival


def _first_come(machine: _Machine) -> None:
    while machine.waiting and machine.width(machine.waiting[0]) <= machine.free:
        machine.start(machine.waiting[0])


def _easy(machine: _Machine) -> None:
    _first_come(machine)
    if not machine.waiting:
        return
    head, *others = machine.waiting
    by_time: dict[int, int] = {}
    for job, tasks in machine.left.items():
        end = machine.expected_end(job)
        by_time[end] = by_time.get(end, 0) + tasks
    there, shadow = machine.free, machine.now
    for time in sorted(by_time):
        there, shadow = there + by_time[time], time
        if there >= machine.width(head):
            break
    extra = there - machine.width(head)
    for job in others:
        if machine.width(job) > machine.free:
            continue
        if machine.now + machine.span(job) <= shadow:
            machine.start(job)
        elif machine.width(job) <= extra:
            extra -= machine.width(job)
            machine.start(job)


class _Conservative:
    """Reservations, as times at which jobs begin; what is free at a time is added up again each time."""

    def __init__(self) -> None:
        self.begin: dict[int, int] = {}

    def earliest(self, machine: _Machine, job: int) -> int:
        changes: dict[int, int] = {}
        for running, tasks in machine.left.items():
            end = machine.expected_end(running)
            changes[end] = changes.get(end, 0) + tasks
        for other, begin in self.begin.items():
            end = begin + machine.span(other)
            changes[begin] = changes.get(begin, 0) - machine.width(other)
            changes[end] = changes.get(end, 0) + machine.width(other)
        free = machine.free + changes.pop(machine.now, 0)
        found = machine.now if free >= machine.width(job) else None
        for time in sorted(changes):
            if found is not None and time - found >= machine.span(job):
                return found
            free += changes[time]
            if free < machine.width(job):
                found = None
            elif found is None:
                found = time
        assert found is not None
        return found

    def __call__(self, machine: _Machine) -> None:
        cannot_be_kept = machine.is_late() or any(begin < machine.now for begin in self.begin.values())
        if cannot_be_kept:
            self.begin.clear()
        for job in machine.waiting:
            if machine.ended_early:
                self.begin.pop(job, None)
            if job not in self.begin:
                self.begin[job] = self.earliest(machine, job)
        machine.ended_early = False
        for job in [job for job in machine.waiting if self.begin[job] == machine.now]:
            machine.start(job)
            del self.begin[job]
        machine.wakes = [] if machine.is_late() else sorted(self.begin.values())[:1]


def starts(policy: str, jobs: Sequence[Job], processors: int) -> list[int]:
    """When each job starts; jobs are in order of arrival."""
    machine = _Machine(jobs, processors)
    decide = {"central-fcfs-gang": _first_come, "easy": _easy, "conservative": _Conservative()}[policy]
    arrivals = list(range(len(jobs)))[::-1]
    while len(machine.started) < len(jobs):
        machine.advance(arrivals)
        decide(machine)
    return [machine.started[job] for job in range(len(jobs))]
