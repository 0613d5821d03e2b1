"""Nodes that may fail, and the gangs and other jobs that run there, in plain Python: for `jobs_simulator`."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from jobs_given import ONE_TENANT, Job, Outage, Preempt, Tenants

Spots = list[tuple[int, int]]  # (node, tasks)
Amounts = list[list[int] | None]  # by node and resource; None: the node is known to be down


class Held(NamedTuple):
    """A task that was sent to a node, and of which no report has come."""

    node: int
    arrives: int
    due: int
    report: tuple[Any, ...]


class Counts(NamedTuple):
    """Tasks that a failure ended, or whose gang it ended; their time; and tasks lost before they ran."""

    tasks_lost: int
    lost_work_ns: int
    placements_lost: int


def room(free: Sequence[int] | None, job: Job, tasks: int) -> int:
    """How many of so many tasks of the job fit."""
    if free is None:
        return 0
    return min([tasks, *(has // need for has, need in zip(free, job.needs, strict=True) if need)])


def fill(rooms: Sequence[int], tasks: int) -> Spots:
    """Where tasks go, as many as there is room for."""
    spots: Spots = []
    for node, here in enumerate(rooms):
        here = min(here, tasks - sum(count for _, count in spots))
        if here:
            spots.append((node, here))
    return spots


def lay(rooms: Sequence[int], job: Job, tasks: int) -> Spots | None:
    """Where tasks of the job go that start at once, on nodes with room for so many of them; None: they do not fit."""
    if job.nodes == 0 or not job.gang:
        spots = fill(rooms, tasks)
        return spots if sum(count for _, count in spots) == tasks else None
    share, larger = divmod(tasks, job.nodes)
    shares, spots = {True: larger, False: job.nodes - larger}, []
    for node, here in enumerate(rooms):
        more = here > share and shares[True] > 0
        if here >= share and shares[more] > 0:
            shares[more] -= 1
            spots.append((node, share + more))
    return None if any(shares.values()) else spots


def less(free: Amounts, spots: Iterable[tuple[int, int]], job: Job) -> Amounts:
    """What is left beside tasks of a job on these spots."""
    left = [of and list(of) for of in free]
    for node, count in spots:
        if (of := left[node]) is not None:
            left[node] = [has - count * need for has, need in zip(of, job.needs, strict=True)]
    return left


class Machine:
    """The nodes, the jobs that wait, and what runs, as the scheduler knows it; messages take `delay`.

    `stacked`: slots are counted, and filled from the node that was the last to have an idle one.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        capacity: Sequence[Sequence[int]],
        delay: int = 0,
        outages: Sequence[Outage] = (),
        detection: int = 0,
        stacked: bool = False,
        preempt: Preempt | None = None,
        tenants: Tenants = ONE_TENANT,
    ):
        self.jobs, self.now, self.delay, self.detection = jobs, 0, delay, detection
        self.free, self.up, self.stacked = [list(of) for of in capacity], [True] * len(capacity), stacked
        self.open = list(range(len(capacity)))[::-1]
        self.outages = sorted(outages, key=lambda outage: outage.fail)
        self.waiting: list[int] = []
        self.left = [list(range(len(job.runs))) for job in jobs]  # tasks to start
        self.running: dict[int, dict[int, Held]] = {}
        self.stopping: dict[int, str] = {}  # gangs, and why
        self.ending: set[tuple[int, int]] = set()  # tasks of others that are to end
        self.preempt, self.tenants = preempt, tenants
        self.total = [sum(of) for of in zip(*capacity, strict=True)]
        self.done = [[0] * len(job.runs) for job in jobs]  # of a task, in millionths
        self.times = [[0] * len(job.runs) for job in jobs]  # evictions of a task
        self.evicted = [0] * len(jobs)  # of a gang
        self.lost_us = [0] * len(jobs)  # by evictions
        self.ended: list[list[tuple[int, int]]] = [[] for _ in jobs]  # tasks, and how long they ran
        self.starts: list[list[int]] = [[0] * len(job.runs) for job in jobs]
        self.nodes: list[list[int]] = [[0] * len(job.runs) for job in jobs]
        self.first: list[float] = [math.inf] * len(jobs)
        self.counts = Counts(0, 0, 0)
        self.reports: list[tuple[Any, ...]] = []  # time, node, order, number, what, …
        self.number = 0
        self.wakes: list[int] = []
        self.ended_early = self.changed = False
        for outage in self.outages:
            for time, order, up in ((self.detected(outage), 2, False), (outage.repair, 4, True)):
                if time < math.inf:
                    # If messages take no time, what a node says before it is repaired has all its consequences first.
                    source = outage.node + (len(capacity) + 1) * (up and delay == 0)
                    self.expect(int(time) + delay, source, order, "state", outage.node, up)

    def detected(self, outage: Outage) -> float:
        return min(outage.fail + self.detection, outage.repair)

    def expect(self, time: int, node: int, order: int, *what: Any) -> tuple[Any, ...]:
        self.number += 1  # a node that has failed reports what ran last first
        number = -self.number if order == 3 and what[-1] >= 0 else self.number
        report = (time, node, order, number, *what)
        heapq.heappush(self.reports, report)
        return report

    def span(self, job: int) -> int:
        return max(self.jobs[job].expected, 1)

    def is_late(self) -> bool:
        return any(held.due <= self.now for tasks in self.running.values() for held in tasks.values())

    def start(self, job: int, spots: Spots) -> None:
        """Start the tasks of a job on these spots; where slots are counted, on the nodes whose turn it is."""
        if self.stacked:
            order = self.open[::-1]
            count = sum(count for _, count in spots)
            rooms = [room(self.free[node], self.jobs[job], count) for node in order]
            found = lay(rooms, self.jobs[job], count)
            assert found is not None
            spots = [(order[i], count) for i, count in found]
        for node, count in spots:
            self.hold(node, job, count)
            for _ in range(count):
                self.send(job, self.left[job].pop(0), node)
        if not self.left[job]:
            self.waiting.remove(job)

    def hold(self, node: int, job: int, count: int) -> None:
        self.free[node] = [
            has - count * need for has, need in zip(self.free[node], self.jobs[job].needs, strict=True)
        ]
        assert min(self.free[node]) >= 0
        assert self.up[node]
        if self.stacked and not self.free[node][0]:
            self.close(node)

    def close(self, node: int) -> None:
        place = self.open.index(node)
        self.open[place] = self.open[-1]
        self.open.pop()

    def send(self, job: int, task: int, node: int) -> None:
        arrives, due = self.now + self.delay, self.now + self.span(job)
        self.starts[job][task], self.nodes[job][task] = arrives, node
        self.running.setdefault(job, {})[task] = self.held(job, task, node, arrives, due, None)

    def restoring(self, job: int, task: int) -> int:
        was_evicted = self.times[job][task] or self.done[job][task]
        return self.preempt.cost if self.preempt and was_evicted else 0

    def length(self, job: int, task: int) -> int:
        """How long a task runs, less what is done of it."""
        whole = self.jobs[job].runs[task]
        return whole - round(float(whole) * self.done[job][task] / 1e6) + self.restoring(job, task)

    def held(
        self,
        job: int,
        task: int,
        node: int,
        arrives: int,
        due: int,
        stopped: int | None,
        why: str = "lost",
    ) -> Held:
        """What becomes of a task that arrives at a node; `stopped`: when a message ends it."""
        ends, order, source = arrives + self.length(job, task), 0, node
        what, time, ran = "end", ends, ends - arrives
        for outage in self.outages:
            if outage.node != node:
                continue
            after, before = arrives - outage.fail, outage.repair - arrives
            # Nodes fail and are repaired behind the messages of an instant, and before the decision.
            if (after > 0 <= before and before + self.delay > 0) or (after == 0 == self.delay):
                late = self.detected(outage) < arrives
                what, time, ran = "lost", int(max(self.detected(outage), arrives)), -1
                order, stopped = 1 if late else 3, None
                break
            if arrives <= outage.fail < ends:
                what, time, ran, order = "lost", int(self.detected(outage)), outage.fail - arrives, 3
                stopped = None if stopped is not None and outage.fail < stopped else stopped
                break
        if stopped is not None and stopped < ends:
            what, time, ran, order = why, stopped, stopped - arrives, 1
        if ran >= 0:
            self.first[job] = min(self.first[job], arrives)
        if time + self.delay == self.now:  # in the order in which the scheduler sends, behind what is there
            source, order = len(self.free), 1
        return Held(node, arrives, due, self.expect(time + self.delay, source, order, what, job, task, ran))

    def stop(self, job: int, why: str) -> None:
        self.stopping[job] = why
        for task in list(self.running.get(job, {})):
            self.end(job, task, why)

    def end(self, job: int, task: int, why: str) -> None:
        """Send a message to a task's node that it is to end."""
        held = self.running[job][task]
        due = min(held.due, self.now + 2 * self.delay)
        again = self.held(job, task, held.node, held.arrives, due, self.now + self.delay, why)
        same = again.report[4:] == held.report[4:] and again.report[0] == held.report[0]
        # Of the two reports one does not come, and the scheduler decides only when one does.
        self.reports.remove(again.report if same else held.report)
        heapq.heapify(self.reports)
        self.running[job][task] = held._replace(due=due) if same else again

    def note_eviction(self, job: int, task: int, ran: int) -> None:
        """Note what is done of a task that has run for so long, and what is lost."""
        assert self.preempt is not None
        restoring, lost = min(self.restoring(job, task), ran), ran
        if self.preempt.keeps:
            whole = self.length(job, task) - self.restoring(job, task)
            left = 1_000_000 - self.done[job][task]
            lost = restoring
            self.done[job][task] += math.floor(left * float(ran - restoring) / max(whole, 1))
        self.times[job][task] += 1
        self.lost_us[job] += lost // 1000

    def reported(self, report: tuple[Any, ...]) -> None:
        """Handle a report that comes now."""
        _, _, _, _, what, *of = report
        if what == "state":
            node, up = of
            if self.stacked and self.free[node][0] and up != self.up[node]:
                self.open.append(node) if up else self.close(node)
            self.up[node], self.changed = up, True
            return
        job, task, ran = of
        held = self.running[job].pop(task)
        if not self.running[job]:
            del self.running[job]
        self.free[held.node] = [
            has + need for has, need in zip(self.free[held.node], self.jobs[job].needs, strict=True)
        ]
        if self.stacked and self.up[held.node] and self.free[held.node] == list(self.jobs[job].needs):
            self.open.append(held.node)
        self.changed |= not self.up[held.node]
        lost, work, before = self.counts
        self.ending.discard((job, task))
        if what == "end":
            self.ended_early |= held.due > self.now
            self.ended[job].append((task, ran))
            self.lost_us[job] += self.restoring(job, task) // 1000
        else:
            self.changed = True
            if what == "evicted":
                self.note_eviction(job, task, ran)
            else:
                self.counts = Counts(lost + (ran >= 0), work + max(ran, 0), before + (ran < 0))
            if self.jobs[job].gang and job not in self.stopping:
                self.stop(job, "lost")
            elif not self.jobs[job].gang:
                self.left[job].insert(0, task)
                self.waiting += [] if job in self.waiting else [job]
        if job in self.stopping and job not in self.running:
            runs = sum(ran for _, ran in self.ended[job])
            if self.stopping.pop(job) == "lost":
                lost, work, before = self.counts
                self.counts = Counts(lost + len(self.ended[job]), work + runs, before)
            elif self.preempt is not None and self.preempt.keeps:
                for task, _ in self.ended[job]:
                    self.done[job][task] = 1_000_000
            else:
                self.lost_us[job] += runs // 1000
            self.ended[job] = []
            self.left[job] = list(range(len(self.jobs[job].runs)))
            self.waiting.append(job)

    def advance(self, arrivals: list[int]) -> None:
        """Go to the next instant at which something happens, and let it happen."""
        times = [self.reports[0][0]] if self.reports else []
        times += [self.jobs[arrivals[-1]].submit] if arrivals else []
        times += [time for time in self.wakes if time > self.now]
        self.now = min(times)
        while self.reports and self.reports[0][0] == self.now:
            self.reported(heapq.heappop(self.reports))
        while arrivals and self.jobs[arrivals[-1]].submit == self.now:
            self.waiting.append(arrivals.pop())
        self.waiting.sort(key=lambda job: (-self.jobs[job].priority, job))

    def free_at(self, time: int, counted: bool = False) -> Amounts:
        """What is free when all that is expected to end by then has ended; what is late ends as soon as it can.

        `counted`: all nodes are one.
        """
        free: Amounts = [list(of) if up else None for of, up in zip(self.free, self.up, strict=True)]
        if counted:
            free = [[sum(of[0] for of in free if of is not None)]]
        for job, tasks in self.running.items():
            for held in tasks.values():
                if max(held.due, self.now + 1) <= time:
                    free = less(free, [(0 if counted else held.node, -1)], self.jobs[job])
        return free

    def held_by(self, tenant: int) -> list[int]:
        """What the running tasks of a tenant hold."""
        held = [0] * len(self.total)
        for job, tasks in self.running.items():
            if self.jobs[job].tenant == tenant:
                held = [h + len(tasks) * need for h, need in zip(held, self.jobs[job].needs, strict=True)]
        return held

    def allowed(self, job: int, tasks: int) -> int:
        """How many of so many tasks its tenant's ceiling lets start: of a gang all or none."""
        one = self.jobs[job]
        within = self.tenants.room(one.tenant, self.held_by(one.tenant), self.total, one.needs)
        return tasks if within >= tasks else 0 if one.gang else max(int(within), 0)

    def head(self) -> int | None:
        """Return the job that is to start next, if its tenant may hold more: the first of the one with least share."""
        if not self.tenants.by_share:
            return self.waiting[0] if self.waiting else None
        firsts: dict[int, int] = {}
        for job in self.waiting:
            firsts.setdefault(self.jobs[job].tenant, job)
        may = [
            (self.tenants.share(tenant, self.held_by(tenant), self.total), tenant, job)
            for tenant, job in firsts.items()
            if self.allowed(job, len(self.left[job]) if self.jobs[job].gang else 1)
        ]
        return min(may)[2] if may else None

    def fits(self, free: Amounts, job: int, tasks: int | None = None) -> Spots | None:
        """Where tasks of a job go: of a gang all or none, of others as many as fit, at most `tasks`."""
        tasks = len(self.left[job]) if tasks is None else tasks
        rooms = [room(of, self.jobs[job], tasks) for of in free]
        if self.jobs[job].gang:
            return lay(rooms, self.jobs[job], tasks)
        return fill(rooms, tasks) or None
