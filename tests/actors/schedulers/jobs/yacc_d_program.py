"""Nodes of one slot and one scheduler of yacc-d: a plain account of what each does when a message comes.

On one node with a queue and preemption, or on several without queues, where it does not matter which is chosen.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from typing import Any

import numpy as np
from emulations import NS

from actors.setting import Setting


class Node:
    """A node, and what the scheduler knows of it."""

    def __init__(self, limit: int) -> None:
        self.runs: int | None = None
        self.queue: list[int] = []
        self.to_report = False
        self.room, self.sent, self.lowest, self.replaces = limit + 1, 0, math.inf, False


class Program:
    def __init__(self, setting: Setting) -> None:
        arrays, p, jobs = setting.workload.arrays(), setting.parameters, setting.workload.jobs
        self.delay, self.beat = round(setting.network.delay_s * NS), round(p["heartbeat_s"] * NS)
        self.limit, self.tries, self.evicts = p["queue_limit"], p["tries"], setting.preemption
        self.submit, self.first = arrays.submit_ns.tolist(), arrays.first_task.tolist()
        self.duration = (setting.workload.tasks["duration_s"].to_numpy() * NS).round().astype(int).tolist()
        self.priority = jobs["priority"].to_pylist()
        self.counts = len(set(self.priority)) > 1
        self.job = np.repeat(np.arange(len(self.submit)), np.diff(self.first)).tolist()
        self.by_share = p["backlog_order"] != "arrival"
        self.tenant = jobs["tenant"].to_pylist() if self.by_share else [None] * len(self.submit)
        self.tenants = list(dict.fromkeys(self.tenant))
        self.weight, self.most = defaultdict(lambda: 1.0), defaultdict(lambda: math.inf)
        for text, to in ((p["weights"], self.weight), (p["ceilings"], self.most)):
            to.update((name, float(value)) for name, value in (x.split("=") for x in text.split(",") if x))
        self.held: dict[str | None, int] = defaultdict(int)
        self.nodes = [Node(self.limit) for _ in range(setting.cluster.num_nodes)]
        self.events: list[tuple[int, int, int, str, Any]] = []
        self.number = 0
        self.start = [0] * len(self.duration)
        self.evicted = [0] * len(self.duration)
        self.returns = [0] * len(self.duration)
        self.waiting: dict[int, tuple[tuple[int, int], list[int]]] = {}
        self.came, self.due = 0, None

    def after(self, time: int, rank: int, what: str, *about: Any) -> None:
        self.number += 1
        heapq.heappush(self.events, (time, rank, self.number, what, about))

    def level(self, task: int) -> int:
        return self.priority[self.job[task]]

    # The nodes.

    def changed(self, now: int, node: Node) -> None:
        if not node.to_report:
            node.to_report = True
            self.after(-(-now // self.beat) * self.beat, 2, "beats", node)

    def may_evict(self, now: int, node: Node, task: int) -> bool:
        if self.evicts is None or node.runs is None:
            return False
        ends_now = self.start[node.runs] + self.duration[node.runs] <= now
        return self.is_below(node.runs, self.level(task)) and not ends_now

    def is_below(self, running: int, level: float) -> bool:
        below = math.inf if self.evicts.below is None else self.evicts.below
        return self.level(running) < min(level, below) and self.evicted[running] < self.evicts.most

    def offered(self, now: int, node: Node, task: int) -> None:
        level = self.level(task)
        if node.runs is not None and len(node.queue) >= self.limit:
            is_first = not node.queue or level > self.level(node.queue[0])
            if not (is_first and self.may_evict(now, node, task)):
                back = task
                if node.queue and level > self.level(node.queue[-1]):
                    back = node.queue.pop()
                    self.changed(now, node)
                self.after(now + self.delay, 1, "returned", node, back)
                if back == task:
                    return
        self.changed(now, node)
        stands_first = self.evicted[task] > 0
        at = sum(self.level(x) > level or (self.level(x) == level and not stands_first) for x in node.queue)
        node.queue.insert(at, task)
        self.serve(now, node)

    def serve(self, now: int, node: Node) -> None:
        while node.queue:
            if node.runs is not None:
                if not self.may_evict(now, node, node.queue[0]):
                    return
                self.evicted[node.runs] += 1
                self.after(now + self.delay, 1, "lost", node.runs)
                self.changed(now, node)
            task = node.runs = node.queue.pop(0)
            self.start[task] = now
            self.after(now + self.duration[task], 0, "ends", node, task, now)

    def ends(self, now: int, node: Node, task: int, start: int) -> None:
        if node.runs == task and self.start[task] == start:
            node.runs = None
            self.after(now + self.delay, 1, "done", task)
            self.changed(now, node)
            self.serve(now, node)

    def beats(self, now: int, node: Node) -> None:
        node.to_report = False
        room = self.limit - len(node.queue) + (node.runs is None)
        lowest = self.level(node.queue[-1]) if node.queue else math.inf
        if self.evicts is not None and node.runs is not None and self.is_below(node.runs, lowest):
            lowest = self.level(node.runs)
        self.after(now + self.delay, 1, "reported", node, room, lowest)

    # The scheduler.

    def reported(self, now: int, node: Node, room: int, lowest: float) -> None:
        node.room, node.lowest, node.sent, node.replaces = room, lowest, 0, False

    def done(self, now: int, task: int) -> None:
        self.held[self.tenant[self.job[task]]] -= 1

    def lost(self, now: int, task: int) -> None:
        self.done(now, task)
        self.come(now, [task])

    def returned(self, now: int, node: Node, task: int) -> None:
        self.done(now, task)
        node.sent = max(node.room, 0)
        self.returns[task] += 1
        if self.returns[task] > self.tries:
            self.wait(now, [task])
        else:
            self.come(now, [task])

    def is_within(self, job: int) -> bool:
        """Whether the job's tenant may hold one more."""
        who = self.tenant[job]
        return self.held[who] + 1 <= self.most[who] * len(self.nodes) * (1 + 1e-12)

    def is_sent(self, now: int, task: int) -> bool:
        """Send a task to a node with room, or where one can make room for it; return whether there is one."""
        if not self.is_within(self.job[task]):
            return False
        node = next((node for node in self.nodes if node.room > node.sent), None)
        if node is None and self.counts:
            below = (node for node in self.nodes if node.lowest < self.level(task) and not node.replaces)
            if node := next(below, None):
                node.replaces = True
        if node is None:
            return False
        node.sent += 1
        self.held[self.tenant[self.job[task]]] += 1
        self.after(now + self.delay, 1, "offered", node, task)
        return True

    def look(self, time: int) -> None:
        self.due = time
        self.after(time, 4, "search")

    def wait(self, now: int, tasks: list[int]) -> None:
        job = self.job[tasks[0]]
        if job not in self.waiting:
            self.waiting[job] = ((-self.priority[job], self.came), [])
            self.came += 1
        self.waiting[job][1][:0] = tasks
        if self.due is None:
            self.look_again(now)

    def look_again(self, now: int) -> None:
        self.look(((now - self.delay) // self.beat + 1) * self.beat + self.delay)

    def arrives(self, now: int, job: int) -> None:
        self.come(now, [*range(self.first[job], self.first[job + 1])])

    def come(self, now: int, tasks: list[int]) -> None:
        above = any(-key[0] > self.level(tasks[0]) for key, _ in self.waiting.values())
        if above or (self.waiting and self.by_share):
            self.wait(now, tasks)
            self.look(now)
            return
        while tasks and self.is_sent(now, tasks[0]):
            tasks.pop(0)
        if tasks:
            self.wait(now, tasks)

    def search(self, now: int) -> None:
        if self.due != now:
            return
        while self.waiting:
            firsts: dict[str | None, tuple[tuple[int, int], int]] = {}
            for job, (key, _) in self.waiting.items():
                who = self.tenant[job]
                firsts[who] = min(firsts.get(who, (key, job)), (key, job))
            may = [
                (self.held[who] / self.weight[who], self.tenants.index(who), job)
                for who, (_, job) in firsts.items()
                if self.is_within(job)
            ]
            if not may:
                break
            job = min(may)[2]
            tasks = self.waiting[job][1]
            if not self.is_sent(now, tasks[0]):
                break
            tasks.pop(0)
            if not tasks:
                del self.waiting[job]
        self.due = None
        if self.waiting:
            self.look_again(now)

    def run(self) -> tuple[list[int], int]:
        """Return when each task last started, and how many were evicted."""
        for job, time in enumerate(self.submit):
            self.after(time, 3, "arrives", job)
        while self.events:
            now, _, _, what, about = heapq.heappop(self.events)
            getattr(self, what)(now, *about)
        return self.start, sum(self.evicted)
