"""Schedulers of jobs with a central queue, in plain Python: what they make of a setting, without any of Emu's code.

Schedulers of gangs (first come first served, EASY, conservative backfilling) on nodes that may fail: all is computed
again at each decision, from what runs and what is reserved. At each instant the reports come first, then the arrivals,
then one decision. Nodes are filled in order; on plain slots the one first that was the last to have an idle one.

One queue (central-fifo): tasks start one by one, on the first node with room, of those that have waited longest since
something ended there. Messages of one instant are handled in the order: ends, then those of nodes and of the scheduler
by sender, then arrivals; after each of them tasks are sent out. To make room a node evicts tasks when one comes.

With both: slots or resources, priorities, preemption, tenants with weights, guarantees and ceilings. Times are whole
ns, amounts whole billionths.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from emulations import NS
from jobs_given import NO_CEILING, ONE_TENANT, Job, Outage, Preempt, Tenants
from jobs_machine import Amounts, Counts, Machine, Spots, lay, less, room
from one_queue import OneQueue
from resource_check import BILLION, judge

from actors.conditions import estimated_ns
from actors.resources import node_slots
from actors.setting import Setting
from emu.families.jobs.results import tasks_table


def _first_come(machine: Machine) -> None:
    by_share = machine.tenants.by_share
    while (job := machine.head()) is not None:
        free = machine.free_at(machine.now)
        if machine.stacked:  # in their order
            free = [free[node] for node in machine.open[::-1]]
        one_by_one = by_share and not machine.jobs[job].gang
        spots = machine.fits(free, job, 1 if one_by_one else None)
        if spots is None:
            return
        machine.start(job, spots)
        if machine.left[job] and not by_share:
            return


def _first_come_first_served(machine: Machine) -> None:
    _first_come(machine)
    _make_way(machine)


def _easy(machine: Machine) -> None:
    _first_come(machine)
    _make_way(machine)
    head = machine.head()
    if head is None or _is_room_coming(machine):
        return
    jobs, counted = machine.jobs, machine.stacked
    needs = len(machine.left[head]) if jobs[head].gang else 1
    dues = {max(held.due, machine.now + 1) for tasks in machine.running.values() for held in tasks.values()}
    shadow = min(
        (time for time in dues if machine.fits(machine.free_at(time, counted), head, needs) is not None),
        default=math.inf,
    )
    then = machine.free_at(int(shadow), counted) if shadow < math.inf else []
    for job in [job for job in machine.waiting if job != head]:
        free = machine.free_at(machine.now, counted)
        spots = machine.fits(free, job, machine.allowed(job, len(machine.left[job])))
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
    while (head := machine.head()) is not None and (units := _to_end(machine, head)):
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
    free, head = machine.free_at(machine.now), machine.head()
    if machine.preempt is None or head is None or machine.fits(free, head) is not None:
        return False
    for job, tasks in machine.running.items():
        for task, held in tasks.items():
            if job in machine.stopping or (job, task) in machine.ending:
                free = less(free, [(held.node, -1)], machine.jobs[job])
    return machine.fits(free, head) is not None


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
        one, free = machine.jobs[job], machine.free_at(machine.now, machine.stacked)
        changes = [(machine.now, 0, [], 0)]
        for other, held_by in machine.running.items():
            for held in held_by.values():
                spot = (0 if machine.stacked else held.node, -1)
                changes.append((max(held.due, machine.now + 1), other, [spot], 1))
        for (other, _), (begin, spots) in self.booked.items():
            changes += [(begin, other, spots, 1), (begin + machine.span(other), other, spots, -1)]
        now, rooms = [room(of, one, tasks) for of in free], {}
        for time, other, spots, sign in sorted(changes, key=lambda change: change[0]):
            free = less(free, [(node, sign * count) for node, count in spots], machine.jobs[other])
            for node, _ in spots:
                now[node] = room(free[node], one, tasks)
            rooms[time] = now[:]
        times = sorted(rooms)
        for i, begin in enumerate(times):
            least, end = rooms[begin], begin + machine.span(job)
            for time in times[i:]:
                if time >= end or sum(least) < tasks:
                    break
                least = [min(pair) for pair in zip(least, rooms[time], strict=True)]
            spots = lay(least, one, tasks)
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


class Found(NamedTuple):
    """What comes out by job: the last starts of its tasks, their nodes, their evictions; and, except of one queue, its
    first start, the work (us) that evictions lost, and what failures ended."""

    first: list[float] | None
    starts: list[list[int]]
    nodes: list[list[int]]
    times: list[list[int]]
    lost_us: list[int] | None
    counts: Counts | None


def simulate(setting: Setting) -> Found:
    """Run a setting."""
    jobs, capacity = jobs_of(setting)
    priorities = {job.priority for job in jobs}
    if (rule := setting.preemption) is not None:
        below = math.inf if rule.below is None else rule.below
        rule = Preempt(rule.keeps, round(rule.cost_s * NS), rule.most, below, rule.oldest_first)
    rule = rule if len(priorities) > 1 else None
    delay, tenants = round(setting.network.delay_s * NS), tenants_of(setting)
    if setting.scheduler.name == "central-fifo":
        most = min(int(node_slots(setting).sum()), setting.workload.num_tasks)  # that an event has room for
        queue = OneQueue(jobs, capacity, delay, rule, tenants, not setting.resources, most)
        queue.run()
        return Found(None, queue.start, queue.nodes, queue.times, None, None)
    down = []
    if (of := setting.dynamics.outages) is not None:
        times = [round(x * NS) if x < math.inf else math.inf for x in (*of.fail_s, *of.repair_s)]
        down = [Outage(*row) for row in zip(of.number.tolist(), times, times[len(of.number) :], strict=False)]
    stated = any(job.nodes > 0 for job in jobs) and setting.scheduler.name != "central-fcfs-gang"
    stacked = not setting.resources and not stated and rule is None
    detection = round(setting.dynamics.detection_s * NS)
    machine = Machine(jobs, capacity, delay, down, detection, stacked, rule, tenants)
    decide: Callable[[Machine], None] = {
        "central-fcfs-gang": _first_come_first_served,
        "easy": _easy,
        "conservative": _Conservative(),
    }[setting.scheduler.name]
    arrivals = list(range(len(jobs)))[::-1]
    while arrivals or machine.waiting or machine.running:
        machine.advance(arrivals)
        decide(machine)
    return Found(machine.first, machine.starts, machine.nodes, machine.times, machine.lost_us, machine.counts)


def jobs_of(setting: Setting) -> tuple[list[Job], list[list[int]]]:
    """Return the jobs of a setting, and what each node has.

    To the scheduler a task takes two messages longer than estimated, and needs the most that a task of its job needs.
    """
    workload, scheduler = setting.workload, setting.scheduler.name
    empty = dict.fromkeys(("node", "start_ns", "finish_ns"), np.full(workload.num_tasks, -1))
    judged = judge(tasks_table(workload, empty), workload, setting.cluster, setting.resources)
    columns, tenants, by_slot = workload.jobs.to_pydict(), names_of(setting), not setting.resources
    arrays, delay = workload.arrays(), round(setting.network.delay_s * NS)
    expected = estimated_ns(arrays.mean_ns, setting.estimates, setting.seed) + 2 * delay
    found = []
    for job, (first, after) in enumerate(itertools.pairwise(arrays.first_task.tolist())):
        tasks = judged.tasks[first:after]
        on = columns["gang_nodes"][job] if "gang_nodes" in columns else None
        gang = setting.parameters.get("gangs") == "all" or on is not None
        found.append(
            Job(
                int(arrays.submit_ns[job]),
                arrays.duration_ns[first:after].tolist(),
                int(expected[job]),
                [BILLION]
                if by_slot
                else [max(of) for of in zip(*(task.demand for task in tasks), strict=True)],
                min(int(on or 0), after - first),
                tasks[0].priority if setting.priorities else 0,
                gang and scheduler != "central-fifo",
                tenants.index(columns["tenant"][job]) if len(tenants) > 1 else 0,
            )
        )
    return found, [list(of) for of in judged.capacity]


def names_of(setting: Setting) -> list[str | None]:
    """Return the tenants that have queues of their own, in the order of their first jobs."""
    by_share = setting.parameters.get("order", "arrival") != "arrival"
    return list(dict.fromkeys(setting.workload.jobs["tenant"].to_pylist())) if by_share else [None]


def tenants_of(setting: Setting) -> Tenants:
    """Return the weight, or guarantee, and the ceiling of each tenant."""
    given, names = setting.parameters, names_of(setting)
    order = given.get("order", "arrival")
    if order == "arrival":
        return ONE_TENANT

    def read(name: str) -> dict[str, float]:
        return {one.split("=")[0]: float(one.split("=")[1]) for one in given[name].split(",") if one}

    ceiling = [read("ceilings").get(str(name), NO_CEILING) for name in names]
    stated, other = read("weights"), 1.0
    if order == "capacity":
        stated = read("guarantees")
        other = (1 - sum(stated.values())) / max(len([name for name in names if name not in stated]), 1)
    return Tenants(True, [stated.get(str(name), other) for name in names], ceiling)
