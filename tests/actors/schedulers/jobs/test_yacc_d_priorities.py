"""Full queues of yacc-d and priorities: one node and one scheduler against a program of its own."""

from __future__ import annotations

import heapq
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emulations import NS, OBSERVED, digest, run_setting, run_windows, setting_of
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.environment import Costs, Dynamics, Preemption
from actors.setting import Setting
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

Row = tuple[float, list[float], int]
"""When a job arrives (s), how long its tasks take (s), and its priority."""
ONE_NODE = {"order": "fifo", "rebalance": False, "schedulers": 1, "heartbeat_s": 10.0}


def workload_of(*rows: Row, tenant: list[str] | None = None) -> JobWorkload:
    submit_s, tasks, priority = zip(*rows, strict=True)
    flat = [d for durations in tasks for d in durations]
    asked = Requests(priority=list(priority))
    return make_workload("jobs", submit_s, [len(d) for d in tasks], flat, tenant=tenant, requests=asked)


class Program:
    """A node of one slot and a scheduler: a plain account of what each does when a message comes."""

    def __init__(self, setting: Setting) -> None:
        arrays, p = setting.workload.arrays(), setting.parameters
        self.delay, self.beat = round(setting.network.delay_s * NS), round(p["heartbeat_s"] * NS)
        self.limit, self.tries, self.evicts = p["queue_limit"], p["tries"], setting.preemption
        self.submit, self.first = arrays.submit_ns.tolist(), arrays.first_task.tolist()
        self.duration = (setting.workload.tasks["duration_s"].to_numpy() * NS).round().astype(int).tolist()
        self.priority = setting.workload.jobs["priority"].to_pylist()
        self.counts = len(set(self.priority)) > 1
        self.job = np.repeat(np.arange(len(self.submit)), np.diff(self.first)).tolist()
        self.events: list[tuple[int, int, int, str, Any]] = []
        # The node.
        self.runs: int | None = None
        self.start = [0] * len(self.duration)
        self.evicted = [0] * len(self.duration)
        self.queue: list[int] = []
        self.to_report = False
        # The scheduler.
        self.room, self.sent, self.lowest, self.replaces = self.limit + 1, 0, math.inf, False
        self.returns = [0] * len(self.duration)
        self.waiting: dict[int, tuple[tuple[int, int], list[int]]] = {}
        self.came, self.due = 0, None

    def after(self, time: int, rank: int, what: str, about: Any = None) -> None:
        heapq.heappush(self.events, (time, rank, len(self.start_order), what, about))
        self.start_order.append(what)

    def level(self, task: int) -> int:
        return self.priority[self.job[task]]

    # The node.

    def changed(self, now: int) -> None:
        if not self.to_report:
            self.to_report = True
            self.after(-(-now // self.beat) * self.beat, 2, "beat")

    def begin(self, now: int, task: int) -> None:
        self.runs, self.start[task] = task, now
        self.after(now + self.duration[task], 0, "end", (task, now))

    def may_evict(self, now: int, task: int) -> bool:
        if self.evicts is None or self.runs is None:
            return False
        ends_now = self.start[self.runs] + self.duration[self.runs] <= now
        return self.is_below(self.runs, self.level(task)) and not ends_now

    def is_below(self, running: int, level: float) -> bool:
        below = math.inf if self.evicts.below is None else self.evicts.below
        return self.level(running) < min(level, below) and self.evicted[running] < self.evicts.most

    def offered(self, now: int, task: int) -> None:
        level = self.level(task)
        if self.runs is not None and len(self.queue) >= self.limit:
            is_first = not self.queue or level > self.level(self.queue[0])
            if not (is_first and self.may_evict(now, task)):
                back = task
                if self.queue and level > self.level(self.queue[-1]):
                    back = self.queue.pop()
                    self.changed(now)
                self.after(now + self.delay, 1, "returned", back)
                if back == task:
                    return
        self.changed(now)
        stands_first = self.evicted[task] > 0
        at = sum(self.level(x) > level or (self.level(x) == level and not stands_first) for x in self.queue)
        self.queue.insert(at, task)
        self.serve(now)

    def serve(self, now: int) -> None:
        while self.queue:
            if self.runs is not None:
                if not self.may_evict(now, self.queue[0]):
                    return
                self.evicted[self.runs] += 1
                self.after(now + self.delay, 1, "lost", self.runs)
                self.changed(now)
            self.begin(now, self.queue.pop(0))

    def end(self, now: int, task: int, start: int) -> None:
        if self.runs == task and self.start[task] == start:
            self.runs = None
            self.changed(now)
            self.serve(now)

    def report(self, now: int) -> None:
        self.to_report = False
        room = self.limit - len(self.queue) + (self.runs is None)
        lowest = self.level(self.queue[-1]) if self.queue else math.inf
        if self.evicts is not None and self.runs is not None and self.is_below(self.runs, lowest):
            lowest = self.level(self.runs)
        self.after(now + self.delay, 1, "report", (room, lowest))

    # The scheduler.

    def finds(self, task: int) -> bool:
        if self.room > self.sent:
            return True
        if self.counts and self.lowest < self.level(task) and not self.replaces:
            self.replaces = True
            return True
        return False

    def send(self, now: int, task: int) -> None:
        self.sent += 1
        self.after(now + self.delay, 1, "offered", task)

    def next_look(self, now: int) -> int:
        return ((now - self.delay) // self.beat + 1) * self.beat + self.delay

    def look(self, time: int) -> None:
        self.due = time
        self.after(time, 4, "look")

    def wait(self, now: int, tasks: list[int]) -> None:
        job = self.job[tasks[0]]
        if job not in self.waiting:
            self.waiting[job] = ((-self.priority[job], self.came), [])
            self.came += 1
        self.waiting[job][1][:0] = tasks
        if self.due is None:
            self.look(self.next_look(now))

    def come(self, now: int, tasks: list[int]) -> None:
        if any(-key[0] > self.level(tasks[0]) for key, _ in self.waiting.values()):
            self.wait(now, tasks)
            self.look(now)
            return
        while tasks and self.finds(tasks[0]):
            self.send(now, tasks.pop(0))
        if tasks:
            self.wait(now, tasks)

    def returned(self, now: int, task: int) -> None:
        self.sent = max(self.room, 0)
        self.returns[task] += 1
        if self.returns[task] > self.tries:
            self.wait(now, [task])
        else:
            self.come(now, [task])

    def search(self, now: int) -> None:
        if self.due != now:
            return
        while self.waiting:
            job = min(self.waiting, key=lambda job: self.waiting[job][0])
            tasks = self.waiting[job][1]
            if not self.finds(tasks[0]):
                break
            self.send(now, tasks.pop(0))
            if not tasks:
                del self.waiting[job]
        self.due = None
        if self.waiting:
            self.look(self.next_look(now))

    def run(self) -> tuple[list[int], int]:
        self.start_order: list[str] = []
        for job, time in enumerate(self.submit):
            self.after(time, 3, "arrive", job)
        while self.events:
            now, _, _, what, about = heapq.heappop(self.events)
            if what == "end":
                self.end(now, *about)
            elif what == "offered":
                self.offered(now, about)
            elif what == "beat":
                self.report(now)
            elif what == "report":
                (self.room, self.lowest), self.sent, self.replaces = about, 0, False
            elif what == "returned":
                self.returned(now, about)
            elif what == "lost":
                self.come(now, [about])
            elif what == "arrive":
                self.come(now, [*range(self.first[about], self.first[about + 1])])
            else:
                self.search(now)
        return self.start, sum(self.evicted)


@st.composite
def overloaded(draw: st.DrawFn, nodes: int = 1, **more: Any) -> Setting:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, levels = draw(st.integers(1, 25)), draw(st.sampled_from([1, 2, 5]))
    rows = [
        (float(t), (rng.exponential(3, rng.integers(1, 4)) + 0.01).tolist(), int(rng.integers(0, levels)))
        for t in np.sort(rng.uniform(0, draw(st.sampled_from([2.0, 6.0])) * n, n))
    ]
    preemption = draw(
        st.sampled_from([None, Preemption(), Preemption(most=2), Preemption(below=3, oldest_first=True)])
    )
    setting = setting_of(
        "yacc-d",
        workload_of(*rows),
        nodes,
        cutoff_s=math.inf,
        network=draw(st.sampled_from([0.0, 0.1, 0.7])),
        **{
            **ONE_NODE,
            "queue_limit": draw(st.sampled_from([0, 1, 3])),
            "tries": draw(st.sampled_from([0, 2])),
            "heartbeat_s": draw(st.sampled_from([1.0, 4.0])),
            **more,
        },
    )
    return replace(setting, priorities=True, preemption=preemption)


@settings(max_examples=150)
@given(overloaded())
def test_tasks_start_as_in_a_program_of_its_own(setting: Setting) -> None:
    outcome = run_setting(setting)
    assert outcome.tasks is not None
    start, evicted = Program(setting).run()
    assert outcome.tasks["start_ns"].tolist() == start
    assert outcome.counters.get("evictions", 0) == evicted


@settings(max_examples=25)
@given(
    overloaded(nodes=4, schedulers=3, order="srjf", rebalance=True, rebalance_s=1.0),
    st.booleans(),
    st.booleans(),
)
def test_it_is_the_same_in_partitions_with_failures_and_costs(
    setting: Setting, fails: bool, costs: bool
) -> None:
    if costs:
        setting = replace(setting, costs=Costs("fixed", per_message_s=0.05, per_task_s=0.1))
    if fails:
        setting = replace(setting, dynamics=Dynamics(mtbf_s=20.0, mttr_s=2.0, detection_s=1.0))
    whole = run_setting(setting, OBSERVED)
    if setting.network.delay_s > 0:
        assert digest(run_windows(setting, OBSERVED, 3)) == digest(whole)


@pytest.mark.parametrize("bound", [{"bound": "length"}, {"bound": "wait", "queue_wait_s": 2.0}])
def test_those_of_high_priority_wait_less_in_an_overload(bound: dict[str, Any]) -> None:
    """Four nodes, ten schedulers, twice as much work as they can do, a tenth of it of high priority."""
    rng = np.random.default_rng(0)
    rows = [(i / 2, [float(x) for x in rng.exponential(4, 4)], int(i % 10 == 0) * 9) for i in range(200)]
    given = {"schedulers": 10, "queue_limit": 5, **bound}
    setting = setting_of("yacc-d", workload_of(*rows), 4, cutoff_s=math.inf, network=0.01, **given)
    outcome = run_setting(replace(setting, priorities=True))
    arrays, high = setting.workload.arrays(), np.array([p > 0 for _, _, p in rows])
    wait_s = (outcome.start_ns - arrays.submit_ns) / NS
    assert wait_s[high].mean() < 0.1 * wait_s[~high].mean()
