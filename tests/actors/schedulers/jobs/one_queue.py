"""One queue of tasks (central-fifo) in plain Python: for `jobs_simulator`."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from typing import Any

from jobs_given import Job, Preempt, Tenants
from resource_check import BILLION

Task = tuple[int, int]  # job, number


class OneQueue:
    """Tasks that wait, what the scheduler knows of the nodes, and what runs there."""

    def __init__(self, jobs: list[Job], capacity: list[list[int]], delay: int, preempt: Preempt | None,
                 tenants: Tenants, by_slot: bool, most: int) -> None:  # fmt: skip
        self.jobs, self.capacity, self.delay, self.rule = jobs, capacity, delay, preempt
        self.tenants, self.total = tenants, [sum(of) for of in zip(*capacity, strict=True)]
        self.ranks = sorted({job.priority for job in jobs}) if preempt else [0]
        self.tasks = [(job, i) for job, one in enumerate(jobs) for i in range(len(one.runs))]
        nodes = range(len(capacity))
        # By rank: where those above it may evict, a node is tried the later the later something of its ended. Without
        # preemption each slot stands in the list on its own.
        self.order = [[*nodes] for _ in self.ranks]
        self.by_slot, self.most = by_slot and preempt is None, most
        if self.by_slot:
            slots = [of[0] // BILLION for of in capacity]
            self.order = [[n for nth in range(max(slots)) for n in nodes if slots[n] > nth]]
        self.placed: dict[Task, tuple[int, int]] = {}  # node, and evictions before, as the scheduler knows it
        self.held = [[0] * len(self.total) for _ in tenants.weight]
        self.waiting: list[tuple[int, int, int, Task]] = []  # -priority, job, -losses before
        self.losses = 0
        self.runs: list[list[Task]] = [[] for _ in nodes]  # the last to start first
        self.start = [[-1] * len(job.runs) for job in jobs]
        self.nodes = [[-1] * len(job.runs) for job in jobs]
        self.end = dict.fromkeys(self.tasks, 0)
        self.done = dict.fromkeys(self.tasks, 0)  # in millionths
        self.times = [[0] * len(job.runs) for job in jobs]
        self.queue: list[tuple[int, int, int, int, str, Any]] = []
        self.sent = 0

    def send(self, at: int, rank: int, sender: int, kind: str, what: Any) -> None:
        self.sent += 1
        heapq.heappush(self.queue, (at, rank, sender, self.sent, kind, what))

    def counts(self, task: Task, level: int) -> bool:
        """Whether a placed task takes room from those of a rank: they may not evict it."""
        rule, priority = self.rule, self.jobs[task[0]].priority
        if rule is None:
            return True
        return (
            priority >= rule.below or self.placed[task][1] >= rule.most or self.ranks.index(priority) >= level
        )

    def fits(self, node: int, level: int, needs: Sequence[int]) -> bool:
        held = [
            self.jobs[t[0]].needs
            for t, (at, _) in self.placed.items()
            if at == node and self.counts(t, level)
        ]
        left = [c - sum(h[r] for h in held) for r, c in enumerate(self.capacity[node])]
        return all(has >= need for has, need in zip(left, needs, strict=True))

    def place_for(self, job: int) -> tuple[int, int] | None:
        """Return the place in the list of a rank that a task of a job is sent to."""
        one = self.jobs[job]
        levels = range(self.ranks.index(one.priority) + 1) if self.rule else [0]
        found = (
            (level, place)
            for level in levels
            for place, node in enumerate(self.order[level])
            if self.fits(node, level, one.needs)
        )
        return next(found, None)

    def dispatch(self, now: int) -> None:
        """Send out what can start; of very many the rest in an event of its own, behind all others of the instant."""
        for sent in itertools.count():
            firsts: dict[int, Any] = {}
            for row in sorted(self.waiting):
                firsts.setdefault(self.jobs[row[1]].tenant, row)
            may = []
            for tenant, row in firsts.items():
                held, needs = self.held[tenant], self.jobs[row[1]].needs
                place = self.place_for(row[1])
                if place is not None and self.tenants.room(tenant, held, self.total, needs) >= 1:
                    may.append((self.tenants.share(tenant, held, self.total), tenant, row, place))
            if not may:
                return
            if sent == self.most:
                self.send(now, 4, len(self.capacity), "dispatch", None)
                return
            _, tenant, row, (level, place) = min(may)
            self.waiting.remove(row)
            task, node = row[3], self.order[level][place]
            if self.by_slot:
                self.order[0].pop(place)
            self.placed[task] = node, self.times[task[0]][task[1]]
            self.hold(task, 1)
            self.send(now + self.delay, 1, len(self.capacity), "placed", (task, node))

    def hold(self, task: Task, sign: int) -> None:
        one = self.jobs[task[0]]
        held = self.held[one.tenant]
        self.held[one.tenant] = [h + sign * need for h, need in zip(held, one.needs, strict=True)]

    def forget(self, task: Task) -> None:
        node = self.placed[task][0]
        for level, order in enumerate(self.order):
            if self.counts(task, level):
                if not self.by_slot:
                    order.remove(node)
                order.append(node)
        del self.placed[task]
        self.hold(task, -1)

    def restoring(self, task: Task) -> int:
        return self.rule.cost if self.rule and self.times[task[0]][task[1]] else 0

    def comes(self, now: int, task: Task, node: int) -> None:
        """Start a task at a node, and evict what stands in its way."""
        while lacking := self.lacking(node, self.jobs[task[0]].needs):
            self.evict(now, node, task, lacking)
        job, i = task
        self.runs[node].insert(0, task)
        self.start[job][i], self.nodes[job][i] = now, node
        whole = self.jobs[job].runs[i]
        self.end[task] = now + whole - round(whole * self.done[task] / 1e6) + self.restoring(task)
        self.send(self.end[task], 0, node, "end", (task, node, now))

    def lacking(self, node: int, needs: Sequence[int]) -> list[int]:
        held = [self.jobs[other].needs for other, _ in self.runs[node]]
        return [r for r, c in enumerate(self.capacity[node]) if c - sum(h[r] for h in held) < needs[r]]

    def evict(self, now: int, node: int, task: Task, lacking: list[int]) -> None:
        rule = self.rule
        assert rule is not None
        below = min(self.jobs[task[0]].priority, rule.below)

        def order(place: int) -> tuple[int, ...]:
            job, i = self.runs[node][place]
            sign = 1 if rule.oldest else -1
            return self.jobs[job].priority, sign * self.start[job][i], -sign * place

        may = [
            place
            for place, (job, i) in enumerate(self.runs[node])
            if self.jobs[job].priority < below
            and self.times[job][i] < rule.most
            and any(self.jobs[job].needs[r] for r in lacking)
        ]
        victim = self.runs[node].pop(min(may, key=order))
        job, i = victim
        restoring = self.restoring(victim)
        self.times[job][i] += 1
        if rule.keeps:
            of = max(self.end[victim] - self.start[job][i] - restoring, 1)
            ran = max(now - self.start[job][i] - restoring, 0)
            self.done[victim] += math.floor((1_000_000 - self.done[victim]) * float(ran) / of)
        self.send(now + self.delay, 1, node, "lost", victim)

    def run(self) -> None:
        for job, one in enumerate(self.jobs):
            self.send(one.submit, 3, len(self.capacity), "arrival", job)
        while self.queue:
            now, _, _, _, kind, what = heapq.heappop(self.queue)
            if kind == "arrival":
                one = self.jobs[what]
                self.waiting += [(-one.priority, what, 1, (what, i)) for i in range(len(one.runs))]
            elif kind == "placed":
                self.comes(now, *what)
                continue
            elif kind == "end":
                task, node, since = what
                if task in self.runs[node] and self.start[task[0]][task[1]] == since:
                    self.runs[node].remove(task)
                    self.send(now + self.delay, 1, node, "done", task)
                continue
            elif kind != "dispatch":
                self.forget(what)
                if kind == "lost":
                    self.losses += 1
                    self.waiting.append((-self.jobs[what[0]].priority, what[0], -self.losses, what))
            self.dispatch(now)
