"""First come first served, EASY and conservative backfilling of gangs on nodes that may fail, in plain Python.

It shares no code with Emu's, nor with `batch_simulator`, which counts processors. All is computed again at each
decision, from what runs and what is reserved. Times and amounts are whole numbers. At each instant the reports come
first, then the arrivals, then one decision. Nodes are filled in order; on plain slots those first that have had an idle
one for the shortest time.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from batch_machine import Amounts, Machine, Spots, lay, less, room


def _first_come(machine: Machine) -> None:
    while machine.waiting:
        job = machine.waiting[0]
        free = machine.free_at(machine.now)
        if machine.stacked:  # in their order
            free = [free[node] for node in machine.open[::-1]]
        spots = machine.fits(free, job)
        if spots is None:
            return
        machine.start(job, spots)
        if machine.left[job]:
            return


def _first_come_first_served(machine: Machine) -> None:
    _first_come(machine)
    _make_way(machine)


def _easy(machine: Machine) -> None:
    _first_come(machine)
    if not machine.waiting:
        return
    _make_way(machine)
    head, *others = machine.waiting
    if _is_room_coming(machine):
        return
    jobs, counted = machine.jobs, machine.stacked
    needs = len(machine.left[head]) if jobs[head].gang else 1
    dues = {max(held.due, machine.now + 1) for tasks in machine.running.values() for held in tasks.values()}
    shadow = min(
        (time for time in dues if machine.fits(machine.free_at(time, counted), head, needs) is not None),
        default=math.inf,
    )
    then = machine.free_at(int(shadow), counted) if shadow < math.inf else []
    for job in others:
        free = machine.free_at(machine.now, counted)
        spots = machine.fits(free, job)
        if spots is None:
            continue
        if machine.now + machine.span(job) > shadow:
            if machine.fits(less(then, spots, jobs[job]), head, needs) is None:
                of_head = machine.fits(then, head, needs)
                assert of_head is not None
                beside = less(then, of_head, jobs[head])
                both: Amounts = [
                    None if a is None or b is None else [min(pair) for pair in zip(a, b, strict=True)]
                    for a, b in zip(beside, free, strict=True)
                ]
                tasks = len(machine.left[job]) if jobs[job].gang else sum(count for _, count in spots)
                spots = machine.fits(both, job, tasks)
                if spots is None:
                    continue
            then = less(then, spots, jobs[job])
        machine.start(job, spots)


def _make_way(machine: Machine) -> bool:
    """Let others end for the first job that waits; return whether some do."""
    found = False
    while machine.waiting and (units := _to_end(machine, machine.waiting[0])):
        found = True
        for job, tasks in units:
            if machine.jobs[job].gang:
                machine.evicted[job] += 1
                machine.stop(job, "evicted")
            else:
                machine.ending.add((job, tasks[0]))
                machine.end(job, tasks[0], "evicted")
    return found


def _is_room_coming(machine: Machine) -> bool:
    """Whether the first job that waits, or a task of it, fits when those have ended that are to end, not now."""
    free = machine.free_at(machine.now)
    if machine.preempt is None or not machine.waiting or machine.fits(free, machine.waiting[0]) is not None:
        return False
    for job, tasks in machine.running.items():
        for task, held in tasks.items():
            if job in machine.stopping or (job, task) in machine.ending:
                free = less(free, [(held.node, -1)], machine.jobs[job])
    return machine.fits(free, machine.waiting[0]) is not None


def _to_end(machine: Machine, head: int) -> list[tuple[int, list[int]]]:
    """Gangs, and single tasks of other jobs, that end for a job; or for one more task of it, if it is no gang."""
    rule, jobs = machine.preempt, machine.jobs
    if rule is None:
        return []
    units, free = [], machine.free_at(machine.now)
    for job, tasks in machine.running.items():
        units += [(job, [*tasks])] if jobs[job].gang else [(job, [task]) for task in tasks]

    def without(free: Amounts, unit: tuple[int, list[int]], sign: int = -1) -> Amounts:
        job, tasks = unit
        return less(free, [(machine.running[job][task].node, sign) for task in tasks], jobs[job])

    def count(free: Amounts) -> int:
        spots = machine.fits(free, head)
        return sum(tasks for _, tasks in spots or [])

    might = []
    for job, tasks in units:
        gang = jobs[job].gang
        if job in machine.stopping or (job, tasks[0]) in machine.ending:
            free = without(free, (job, tasks))
            continue
        times = machine.evicted[job] if gang else machine.times[job][tasks[0]]
        if jobs[job].priority < min(jobs[head].priority, rule.below) and times < rule.most:
            might.append((job, tasks))
    there, wanted = count(free), len(machine.left[head])
    goal = wanted if jobs[head].gang else min(there + 1, wanted)

    def order(unit: tuple[int, list[int]]) -> tuple[int, ...]:
        job, tasks = unit
        start, sign = machine.running[job][tasks[0]].arrives, 1 if rule.oldest else -1
        return jobs[job].priority, sign * start, sign * job, sign * min(tasks)

    chosen: list[tuple[int, list[int]]] = []
    for unit in sorted(might, key=order):
        if count(free) >= goal:
            break
        chosen.append(unit)
        free = without(free, unit)
    if count(free) < goal:
        return []
    for unit in chosen[-2::-1]:
        if count(less_than := without(free, unit, 1)) >= goal:
            chosen.remove(unit)
            free = less_than
    return chosen


class _Conservative:
    """Reservations, of gangs and of each task of other jobs: when they begin, and where."""

    def __init__(self) -> None:
        self.booked: dict[tuple[int, int], tuple[int, Spots]] = {}

    def earliest(self, machine: Machine, job: int, tasks: int) -> tuple[int, Spots] | None:
        changes = {machine.now}
        changes |= {
            max(held.due, machine.now + 1)
            for held_by in machine.running.values()
            for held in held_by.values()
        }
        for (other, _), (begin, _) in self.booked.items():
            changes |= {begin, begin + machine.span(other)}
        one = machine.jobs[job]
        rooms = {}
        for time in changes:
            free = machine.free_at(time, machine.stacked)
            for (other, _), (begin, spots) in self.booked.items():
                if begin <= time < begin + machine.span(other):
                    free = less(free, spots, machine.jobs[other])
            rooms[time] = [room(of, one, tasks) for of in free]
        for begin in sorted(rooms):
            during = [rooms[t] for t in rooms if begin <= t < begin + machine.span(job)]
            spots = lay([min(of_node) for of_node in zip(*during, strict=True)], one, tasks)
            if spots is not None:
                return begin, spots
        return None

    def __call__(self, machine: Machine) -> None:
        waits = _is_room_coming(machine)
        if not waits:
            self.plan(machine)
        waits |= _make_way(machine)
        if waits:
            machine.changed = True
            self.booked.clear()
        machine.wakes = [] if machine.is_late() else sorted(begin for begin, _ in self.booked.values())[:1]

    def plan(self, machine: Machine) -> None:
        if (
            machine.changed
            or machine.is_late()
            or any(begin < machine.now for begin, _ in self.booked.values())
        ):
            self.booked.clear()
        machine.changed = False
        if not self.booked:  # no reservation can be delayed
            _first_come(machine)
        for job in machine.waiting:
            keys = [(job, task) for task in machine.left[job][: 1 if machine.jobs[job].gang else None]]
            if machine.ended_early:
                for key in keys:
                    self.booked.pop(key, None)
            for key in keys:
                if key not in self.booked:
                    tasks = len(machine.left[job]) if machine.jobs[job].gang else 1
                    found = self.earliest(machine, job, tasks)
                    if found is None:
                        break
                    self.booked[key] = found
        machine.ended_early = False
        due = [key for key, (begin, _) in self.booked.items() if begin == machine.now]
        for key in sorted(due, key=lambda key: machine.waiting.index(key[0])):
            machine.start(key[0], self.booked.pop(key)[1])


def run(policy: str, machine: Machine) -> Machine:
    """Run all jobs, which are in order of arrival, and return the machine as it is then."""
    decide: Callable[[Machine], None] = {
        "central-fcfs-gang": _first_come_first_served,
        "easy": _easy,
        "conservative": _Conservative(),
    }[policy]
    arrivals = list(range(len(machine.jobs)))[::-1]
    while arrivals or machine.waiting or machine.running:
        machine.advance(arrivals)
        decide(machine)
    return machine
