"""A simulation of DAG jobs with priorities and preemption in plain Python, which shares no code with the engine.

One resource manager, messages that take no time, jobs of stages one after the other; of a priority the job with the
least `place` goes first, as under `sjf`. It keeps no lists of what has changed: every stage is considered for every
machine at every match.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from typing import NamedTuple

MILLION = 1_000_000


class Job(NamedTuple):
    """When it arrives, its priority and place, and of each stage the demand and the durations (ns) of its tasks."""

    submit: int
    priority: int
    place: float
    stages: list[tuple[tuple[int, ...], list[int]]]


class How(NamedTuple):
    """How tasks are evicted."""

    keeps: bool = False
    cost: int = 0
    most: int = 1000
    below: int | None = None
    oldest_first: bool = False


class Task:
    """A task and its state."""

    def __init__(self, number: int, job: int, stage: int, demand: tuple[int, ...], length: int):
        self.number, self.job, self.stage, self.demand, self.length = number, job, stage, demand, length
        self.done = self.times = self.since = self.node = self.turn = self.whole = 0
        self.owed: set[int] = set()  # tasks that are being stopped for it


class Simulator:
    """The simulation; `log` has (kind, ns, machine, task) of each launch, end and eviction, in order."""

    def __init__(self, jobs: list[Job], machines: list[tuple[int, ...]], how: How):
        self.jobs, self.how, self.free = jobs, how, [list(machine) for machine in machines]
        self.total = [sum(of) for of in zip(*machines, strict=True)]
        self.tasks: list[Task] = []
        self.of_stage: dict[tuple[int, int], list[Task]] = defaultdict(list)
        for j, job in enumerate(jobs):
            for s, (demand, lengths) in enumerate(job.stages):
                for length in lengths:
                    task = Task(len(self.tasks), j, s, demand, length)
                    self.tasks.append(task)
                    self.of_stage[j, s].append(task)
        self.left = {stage: len(tasks) for stage, tasks in self.of_stage.items()}
        self.ready: dict[tuple[int, int], list[Task]] = {}
        self.running: list[dict[int, Task]] = [{} for _ in machines]
        self.used = [[0] * len(self.total) for _ in jobs]
        self.dirty: list[int] = []
        self.stopping: list[tuple[Task, Task]] = []
        self.asked = [0] * len(machines)
        self.withheld = [[0] * len(self.total) for _ in machines]
        self.log: list[tuple[str, int, int, int]] = []
        self.launches = 0
        self.ends: list[tuple[int, int, int, int]] = []

    def run(self) -> list[tuple[str, int, int, int]]:
        """Return the log of the whole run."""
        arrivals = sorted(range(len(self.jobs)), key=lambda j: self.jobs[j].submit)
        for _ in range(100_000):
            nexts = [self.jobs[arrivals[0]].submit] if arrivals else []
            nexts += [self.ends[0][0]] if self.ends else []
            if not nexts:
                return self.log
            now, changed = min(nexts), False
            while self.ends and self.ends[0][0] == now:
                _, node, number, turn = heapq.heappop(self.ends)
                task = self.running[node].get(number)
                if task is not None and task.turn == turn:
                    self.end(now, node, task)
                    changed = True
            while arrivals and self.jobs[arrivals[0]].submit == now:
                job = arrivals.pop(0)
                self.ready[job, 0] = self.of_stage[job, 0][:]
                changed = True
            while changed:
                self.match(now)
                changed = bool(self.stopping)
                self.answer(now)
        raise AssertionError("the simulation has no end")

    def end(self, now: int, node: int, task: Task) -> None:
        """A task ends, and perhaps the next stage can begin."""
        del self.running[node][task.number]
        self.log.append(("end", now, node, task.number))
        self.hold(node, task, -1)
        self.note(node)
        stage = (task.job, task.stage)
        self.left[stage] -= 1
        following = (task.job, task.stage + 1)
        if self.left[stage] == 0 and following in self.of_stage:
            self.ready[following] = self.of_stage[following][:]

    def hold(self, node: int, task: Task, times: int) -> None:
        for r, amount in enumerate(task.demand):
            self.free[node][r] -= times * amount
            self.used[task.job][r] += times * amount

    def note(self, node: int) -> None:
        if node not in self.dirty:
            self.dirty.append(node)

    def fits(self, stage: tuple[int, int], node: int) -> bool:
        demand = self.ready[stage][0].demand
        return all(need <= free for need, free in zip(demand, self.free[node], strict=True))

    def waiting(self, priority: int) -> list[tuple[int, int]]:
        """The stages of a priority that have tasks to launch, in order."""
        stages = [s for s, tasks in self.ready.items() if tasks and self.jobs[s[0]].priority == priority]
        return sorted(stages, key=lambda s: (self.jobs[s[0]].place, s))

    def match(self, now: int) -> None:
        """Launch what fits, priority by priority, and evict for what does not."""
        for priority in sorted({job.priority for job in self.jobs}, reverse=True):
            for node in self.dirty[::-1]:
                while fitting := [s for s in self.waiting(priority) if self.fits(s, node)]:
                    self.place(now, node, self.ready[fitting[0]].pop(0))
            while places := [
                (s, n) for s in self.waiting(priority) for n in range(len(self.free)) if self.fits(s, n)
            ]:
                self.place(now, places[0][1], self.ready[places[0][0]].pop(0))
            for own in (True, False):
                while self.evict_for(now, priority, own):
                    pass
        self.dirty = []

    def evict_for(self, now: int, priority: int, own: bool) -> bool:
        """Make room for the first task for which it can be made; return whether there is one."""
        for stage in self.waiting(priority):
            job, demand = stage[0], self.ready[stage][0].demand
            used = self.used[job]
            within = all(u + d <= t for u, d, t in zip(used, demand, self.total, strict=True))
            if own and not within and any(used):
                continue
            if any(self.fits(stage, node) for node in range(len(self.free))):
                continue
            best = None
            for node in range(len(self.free)):
                victims = self.victims(node, demand, priority)
                if victims is not None:
                    highest = max(self.jobs[v.job].priority for v in victims)
                    worth = (highest, sum(now - v.since for v in victims), node)
                    if best is None or worth < best[0]:
                        best = (worth, victims)
            if best is not None:
                self.make_room(best[0][2], best[1], self.ready[stage].pop(0))
                return True
        return False

    def victims(self, node: int, demand: tuple[int, ...], priority: int) -> list[Task] | None:
        """Which tasks go, in order; None if they would not suffice."""
        how = self.how
        lower = [t for t in self.running[node].values() if self.jobs[t.job].priority < priority]
        lower = [t for t in lower if t.times < how.most]
        lower = [t for t in lower if how.below is None or self.jobs[t.job].priority < how.below]
        lower.sort(key=lambda t: (self.jobs[t.job].priority, t.turn if how.oldest_first else -t.turn))
        lacking = [need - free for need, free in zip(demand, self.free[node], strict=True)]
        found = []
        for task in lower:
            if any(lack > 0 and held > 0 for lack, held in zip(lacking, task.demand, strict=True)):
                found.append(task)
                lacking = [lack - held for lack, held in zip(lacking, task.demand, strict=True)]
        return found if max(lacking) <= 0 else None

    def make_room(self, node: int, victims: list[Task], task: Task) -> None:
        """Stop tasks; what they hold beyond the demand of the one that comes cannot be used before they answer."""
        held = [sum(v.demand[r] for v in victims) for r in range(len(self.total))]
        for victim in victims:
            del self.running[node][victim.number]
            self.hold(node, victim, -1)
            self.stopping.append((victim, task))
            task.owed.add(victim.number)
            self.asked[node] += 1
        self.note(node)
        for r, amount in enumerate(held):
            more = max(amount - task.demand[r], 0)
            self.withheld[node][r] += more
            self.free[node][r] -= more
        self.hold(node, task, 1)
        task.node = node

    def answer(self, now: int) -> None:
        """The machines answer, and the tasks for which others were stopped are launched."""
        for victim, task in self.stopping:
            node = victim.node
            self.log.append(("evict", now, node, victim.number))
            if self.how.keeps:
                ran, restoring = now - victim.since, self.how.cost if victim.times else 0
                whole = victim.whole - restoring
                ran -= min(restoring, ran)
                victim.done += math.floor((MILLION - victim.done) * float(ran) / max(whole, 1))
            victim.times += 1
            self.ready[victim.job, victim.stage].append(victim)
            self.asked[node] -= 1
            if self.asked[node] == 0:
                self.free[node] = [
                    free + more for free, more in zip(self.free[node], self.withheld[node], strict=True)
                ]
                self.withheld[node] = [0] * len(self.total)
                self.note(node)
            task.owed.remove(victim.number)
            if not task.owed:
                self.launch(now, node, task)
                self.note(node)
        self.stopping = []

    def place(self, now: int, node: int, task: Task) -> None:
        self.hold(node, task, 1)
        self.launch(now, node, task)

    def launch(self, now: int, node: int, task: Task) -> None:
        """Start a task, for what is left of it."""
        self.launches += 1
        task.node, task.since, task.turn = node, now, self.launches
        task.whole = task.length
        if task.times:
            task.whole += self.how.cost - round(float(task.length) * task.done / MILLION)
        self.running[node][task.number] = task
        self.log.append(("launch", now, node, task.number))
        heapq.heappush(self.ends, (now + task.whole, node, task.number, task.turn))
