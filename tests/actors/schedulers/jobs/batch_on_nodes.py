"""First come first served, EASY and conservative backfilling of gangs on nodes with resources, in plain Python.

It shares no code with Emu's, nor with `batch_simulator`, which counts processors. All is computed again at each
decision, from what runs and what is reserved. Times and amounts are whole numbers. At each instant the ends come first,
then the arrivals, then one decision. Nodes are filled in order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

Spots = list[tuple[int, int]]  # (node, tasks)
Amounts = list[list[int]]  # by node and resource


class Job(NamedTuple):
    """A gang: when it arrives, how long each task runs, how long the scheduler expects them to run, what each needs,
    on how many nodes they lie (0: any), and its priority, of which a larger one goes first."""

    submit: int
    runs: Sequence[int]
    expected: int
    needs: Sequence[int]
    nodes: int = 0
    priority: int = 0


def room(free: Sequence[int], job: Job) -> int:
    """How many of the job's tasks fit, at most all."""
    return min([len(job.runs), *(has // need for has, need in zip(free, job.needs, strict=True) if need)])


def lay(rooms: Sequence[int], job: Job) -> Spots | None:
    """Where the job's tasks go on nodes with room for so many of them; None: they do not fit."""
    tasks, spots = len(job.runs), []
    if job.nodes == 0:
        for node, here in enumerate(rooms):
            here = min(here, tasks - sum(count for _, count in spots))
            if here:
                spots.append((node, here))
        return spots if sum(count for _, count in spots) == tasks else None
    share, larger = divmod(tasks, job.nodes)
    shares = {True: larger, False: job.nodes - larger}
    for node, here in enumerate(rooms):
        more = here > share and shares[True] > 0
        if here >= share and shares[more] > 0:
            shares[more] -= 1
            spots.append((node, share + more))
    return None if any(shares.values()) else spots


class Machine:
    """What nodes have free, and the jobs that wait and run."""

    def __init__(self, jobs: Sequence[Job], capacity: Sequence[Sequence[int]]):
        self.jobs, self.now = jobs, 0
        self.free = [list(of) for of in capacity]
        self.waiting: list[int] = []
        self.started: dict[int, int] = {}
        self.running: dict[int, dict[int, int]] = {}  # job: node: tasks that run there
        self.ends: list[tuple[int, int, int]] = []  # of tasks: time, job, node
        self.wakes: list[int] = []
        self.ended_early = False

    def span(self, job: int) -> int:
        return max(self.jobs[job].expected, 1)

    def due(self, job: int) -> int:
        """When a running job ends, as far as is known: what is late ends as soon as it can."""
        return max(self.started[job] + self.span(job), self.now + 1)

    def is_late(self) -> bool:
        return any(self.started[job] + self.span(job) <= self.now for job in self.running)

    def start(self, job: int, spots: Spots) -> None:
        self.waiting.remove(job)
        self.started[job] = self.now
        self.running[job] = dict(spots)
        self.free = less(self.free, spots, self.jobs[job])
        assert all(amount >= 0 for of in self.free for amount in of)
        nodes = [node for node, count in spots for _ in range(count)]
        for node, run in zip(nodes, self.jobs[job].runs, strict=True):
            heapq.heappush(self.ends, (self.now + run, job, node))

    def advance(self, arrivals: list[int]) -> None:
        """Go to the next instant at which something happens, and let it happen."""
        times = [self.ends[0][0]] if self.ends else []
        times += [self.jobs[arrivals[-1]].submit] if arrivals else []
        times += [time for time in self.wakes if time > self.now]
        self.now = min(times)
        while self.ends and self.ends[0][0] == self.now:
            _, job, node = heapq.heappop(self.ends)
            self.free = less(self.free, [(node, -1)], self.jobs[job])
            self.running[job][node] -= 1
            self.ended_early |= self.started[job] + self.span(job) > self.now
            if not any(self.running[job].values()):
                del self.running[job]
        while arrivals and self.jobs[arrivals[-1]].submit == self.now:
            self.waiting.append(arrivals.pop())
        self.waiting.sort(key=lambda job: -self.jobs[job].priority)  # stable: of equal ones by arrival

    def lay_in(self, free: Amounts, job: int) -> Spots | None:
        return lay([room(of, self.jobs[job]) for of in free], self.jobs[job])

    def free_at(self, time: int) -> Amounts:
        """What is free when all that is expected to end by then has ended."""
        free = self.free
        for job, held in self.running.items():
            if self.due(job) <= time:
                free = less(free, [(node, -count) for node, count in held.items()], self.jobs[job])
        return free


def less(free: Amounts, spots: Iterable[tuple[int, int]], job: Job) -> Amounts:
    """What is left beside a job on these spots."""
    left = [list(of) for of in free]
    for node, count in spots:
        left[node] = [has - count * need for has, need in zip(left[node], job.needs, strict=True)]
    return left


def _first_come(machine: Machine) -> None:
    while machine.waiting:
        spots = machine.lay_in(machine.free, machine.waiting[0])
        if spots is None:
            return
        machine.start(machine.waiting[0], spots)


def _easy(machine: Machine) -> None:
    _first_come(machine)
    if not machine.waiting:
        return
    head, *others = machine.waiting
    jobs = machine.jobs
    shadow = min(
        time
        for time in {machine.due(job) for job in machine.running}
        if machine.lay_in(machine.free_at(time), head) is not None
    )
    then = machine.free_at(shadow)
    for job in others:
        spots = machine.lay_in(machine.free, job)
        if spots is None:
            continue
        if machine.now + machine.span(job) > shadow:
            if machine.lay_in(less(then, spots, jobs[job]), head) is None:
                of_head = machine.lay_in(then, head)
                assert of_head is not None
                beside = less(then, of_head, jobs[head])
                both = [
                    [min(a, b) for a, b in zip(*of, strict=True)]
                    for of in zip(beside, machine.free, strict=True)
                ]
                spots = machine.lay_in(both, job)
                if spots is None:
                    continue
            then = less(then, spots, jobs[job])
        machine.start(job, spots)


class _Conservative:
    """Reservations: when jobs begin, and where."""

    def __init__(self) -> None:
        self.booked: dict[int, tuple[int, Spots]] = {}

    def free_at(self, machine: Machine, time: int) -> Amounts:
        free = machine.free_at(time)
        for job, (begin, spots) in self.booked.items():
            if begin <= time < begin + machine.span(job):
                free = less(free, spots, machine.jobs[job])
        return free

    def earliest(self, machine: Machine, job: int) -> tuple[int, Spots]:
        changes = {machine.now, *(machine.due(running) for running in machine.running)}
        for other, (begin, _) in self.booked.items():
            changes |= {begin, begin + machine.span(other)}
        one = machine.jobs[job]
        rooms = {t: [room(of, one) for of in self.free_at(machine, t)] for t in changes if t >= machine.now}
        for begin in sorted(rooms):
            during = [rooms[t] for t in rooms if begin <= t < begin + machine.span(job)]
            spots = lay([min(of_node) for of_node in zip(*during, strict=True)], one)
            if spots is not None:
                return begin, spots
        raise AssertionError(f"job {job} never fits")

    def __call__(self, machine: Machine) -> None:
        if machine.is_late() or any(begin < machine.now for begin, _ in self.booked.values()):
            self.booked.clear()
        if not self.booked:  # no reservation can be delayed
            _first_come(machine)
        for job in machine.waiting:
            if machine.ended_early:
                self.booked.pop(job, None)
            if job not in self.booked:
                self.booked[job] = self.earliest(machine, job)
        machine.ended_early = False
        for job in [job for job in machine.waiting if self.booked[job][0] == machine.now]:
            machine.start(job, self.booked.pop(job)[1])
        machine.wakes = [] if machine.is_late() else sorted(begin for begin, _ in self.booked.values())[:1]


def starts(policy: str, jobs: Sequence[Job], capacity: Sequence[Sequence[int]]) -> list[int]:
    """When each job starts; jobs are in order of arrival; `capacity` is by node and resource."""
    machine = Machine(jobs, capacity)
    decide: Callable[[Machine], None] = {
        "central-fcfs-gang": _first_come,
        "easy": _easy,
        "conservative": _Conservative(),
    }[policy]
    arrivals = list(range(len(jobs)))[::-1]
    while len(machine.started) < len(jobs):
        machine.advance(arrivals)
        decide(machine)
    return [machine.started[job] for job in range(len(jobs))]
