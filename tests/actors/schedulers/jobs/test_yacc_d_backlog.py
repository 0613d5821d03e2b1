"""Tasks of yacc-d that wait at a scheduler: by priority and by tenant, against a program of its own."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emulations import NS, OBSERVED, constrained, digest, run_setting, run_windows, setting_of
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.environment import Dynamics
from actors.setting import Setting
from clusters.cluster import build_cluster
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

NO_QUEUES = {"queue_limit": 0, "rebalance": False, "choices": 100, "schedulers": 1}


def jobs(*rows: tuple[float, list[float], str | None, int]) -> JobWorkload:
    """Jobs that arrive at a time (s), with the durations of their tasks, a tenant and a priority."""
    counts, durations = [len(d) for _, d, *_ in rows], [x for _, d, *_ in rows for x in d]
    tenant, priority = [who for *_, who, _ in rows], [p for *_, p in rows]
    return make_workload(
        "jobs", [t for t, *_ in rows], counts, durations, tenant=tenant, requests=Requests(priority=priority)
    )


def starts(workload: JobWorkload, nodes: Any, **more: Any) -> list[float]:
    """Return the start of each task (s); heartbeats are 10 s apart, and messages take 1 s."""
    given = {**NO_QUEUES, "heartbeat_s": 10.0, **more}
    setting = setting_of("yacc-d", workload, nodes, cutoff_s=math.inf, network=1.0, **given)
    tasks = run_setting(replace(setting, priorities=True)).tasks
    assert tasks is not None
    return (tasks["start_ns"] / NS).tolist()


@pytest.mark.parametrize("high", [0, 9])
def test_many_of_high_priority_that_find_no_node_do_not_block_others(high: int) -> None:
    """100 jobs want node 1, which is busy for long; node 0 is free again at 11 s for a job behind them."""
    first = [(0.0, [90.0], None, 0), (0.0, [1.0], None, 0)]
    many = [(1.0 + i / 1000, [0.5], None, high) for i in range(100)]
    workload = jobs(*first, *many, (2.0, [3.0], None, 0))
    cluster = build_cluster("two", [1, 1], cpu_cores=[1, 4])
    sets = ["cores >= 4", "cores <= 1", *["cores >= 4"] * 100, ""]
    found = starts(with_sets(workload, sets), cluster)
    assert found[0] == 1.0
    assert found[-1] == (12.0 if high else 22.0)  # of one priority 64 are looked at in each search


def with_sets(workload: JobWorkload, texts: list[str]) -> JobWorkload:
    """Return the workload with a set of constraints for each job."""
    return constrained(workload, *texts)


class Program:
    """One scheduler, nodes of one slot without queues: what tasks wait, and when they start."""

    def __init__(self, setting: Setting) -> None:
        p, arrays = setting.parameters, setting.workload.arrays()
        self.delay, self.beat = round(setting.network.delay_s * NS), round(p["heartbeat_s"] * NS)
        self.nodes = self.open = setting.cluster.num_nodes
        self.submit, self.first = arrays.submit_ns.tolist(), arrays.first_task.tolist()
        self.duration = (setting.workload.tasks["duration_s"].to_numpy() * NS).round().astype(int).tolist()
        tenant = setting.workload.jobs["tenant"].to_pylist()
        self.by_share = p["backlog_order"] != "arrival"
        self.tenant = tenant if self.by_share else [None] * len(tenant)
        self.priority = setting.workload.jobs["priority"].to_pylist()
        self.weight, self.most = defaultdict(lambda: 1.0), defaultdict(lambda: math.inf)
        for text, to in ((p["weights"], self.weight), (p["ceilings"], self.most)):
            to.update((name, float(value)) for name, value in (x.split("=") for x in text.split(",") if x))
        self.held: dict[str | None, int] = defaultdict(int)
        self.waiting: dict[int, tuple[tuple[int, int], list[int]]] = {}
        self.came, self.due = 0, None
        self.start: dict[int, int] = {}
        self.events: list[tuple[int, int, str, Any]] = []

    def after(self, time: int, rank: int, what: str, about: Any = None) -> None:
        heapq.heappush(self.events, (time, rank, what, about))

    def next_beat(self, time: int) -> int:
        return -(-time // self.beat) * self.beat

    def may_go(self, job: int) -> bool:
        who = self.tenant[job]
        return self.open > 0 and self.held[who] + 1 <= self.most[who] * self.nodes * (1 + 1e-12)

    def send(self, now: int, job: int, task: int) -> None:
        """Send a task to an open node: it is full until it reports, after the task has come or has ended."""
        self.open -= 1
        self.held[self.tenant[job]] += 1
        start = now + self.delay
        end = self.start[task] = start
        end += self.duration[task]
        beat = self.next_beat(start)
        self.after((beat if end <= beat else self.next_beat(end)) + self.delay, 1, "room")
        self.after(end + self.delay, 1, "end", job)

    def wait(self, now: int, job: int, tasks: list[int]) -> None:
        if tasks:
            self.waiting[job] = ((-self.priority[job], self.came), tasks)
            self.came += 1
            if self.due is None:
                self.look(((now - self.delay) // self.beat + 1) * self.beat + self.delay)

    def look(self, time: int) -> None:
        self.due = time
        self.after(time, 4, "look")

    def arrive(self, now: int, job: int) -> None:
        tasks = [*range(self.first[job], self.first[job + 1])]
        before = self.by_share or any(-key[0] > self.priority[job] for key, _ in self.waiting.values())
        if self.waiting and before:
            self.wait(now, job, tasks)
            self.look(now)
            return
        while tasks and self.may_go(job):
            self.send(now, job, tasks.pop(0))
        self.wait(now, job, tasks)

    def search(self, now: int) -> None:
        if self.due != now:
            return
        while self.open > 0:
            first = {}
            for job, (key, _) in self.waiting.items():
                who = self.tenant[job]
                first[who] = min(first.get(who, (key, job)), (key, job))
            found = [
                (self.held[who] / self.weight[who], who or "", job)
                for who, (_, job) in first.items()
                if self.may_go(job)
            ]
            if not found:
                break
            least = min(share for share, *_ in found)
            job = min((self.order[who], job) for share, who, job in found if share == least)[1]
            tasks = self.waiting[job][1]
            self.send(now, job, tasks.pop(0))
            if not tasks:
                del self.waiting[job]
        self.due = None
        if self.waiting:
            self.look(((now - self.delay) // self.beat + 1) * self.beat + self.delay)

    def run(self) -> list[int]:
        self.order = {who or "": i for i, who in enumerate(dict.fromkeys(self.tenant))}
        for job, time in enumerate(self.submit):
            self.after(time, 3, "arrive", job)
        while self.events:
            now, _, what, about = heapq.heappop(self.events)
            if what == "room":
                self.open += 1
            elif what == "end":
                self.held[self.tenant[about]] -= 1
            elif what == "arrive":
                self.arrive(now, about)
            else:
                self.search(now)
        return [self.start[task] for task in range(len(self.duration))]


@st.composite
def waiting(draw: st.DrawFn, **more: Any) -> Setting:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, nodes = draw(st.integers(1, 25)), draw(st.integers(2, 6))
    counts = rng.integers(1, 6, n)
    tenants = [["ads", "web", None][i] for i in (*range(3), *rng.integers(0, 3, n))][:n]
    levels = draw(st.sampled_from([1, 2, 9]))
    workload = make_workload(
        "waiting",
        np.sort(rng.uniform(0, draw(st.sampled_from([0.5, 2.0])) * n, n)),
        counts,
        rng.exponential(3, int(counts.sum())) + 0.01,
        tenant=tenants,
        requests=Requests(priority=rng.integers(0, levels, n).tolist()),
    )
    order = draw(st.sampled_from(["arrival", "fair", "fair", "capacity"]))
    given = {"backlog_order": order}
    if order == "fair" and n >= 2:
        given |= {"weights": "ads=3,web=0.5"}
    if order != "arrival" and draw(st.booleans()):
        given |= {"ceilings": "ads=0.5"}
    setting = setting_of(
        "yacc-d",
        workload,
        nodes,
        cutoff_s=math.inf,
        network=draw(st.sampled_from([0.0, 0.1, 0.7])),
        seed=draw(st.integers(0, 99)),
        **{**NO_QUEUES, "heartbeat_s": draw(st.sampled_from([1.0, 4.0])), **given, **more},
    )
    return replace(setting, priorities=True)


@settings(max_examples=100)
@given(waiting())
def test_tasks_start_as_in_a_program_of_its_own(setting: Setting) -> None:
    tasks = run_setting(setting).tasks
    assert tasks is not None
    assert tasks["start_ns"].tolist() == Program(setting).run()


@settings(max_examples=30)
@given(waiting(schedulers=3, queue_limit=1), st.booleans())
def test_it_is_the_same_in_partitions_with_failures(setting: Setting, fails: bool) -> None:
    if setting.parameters["ceilings"]:
        setting = replace(setting, parameters={**setting.parameters, "schedulers": 1})
    if fails:
        setting = replace(setting, dynamics=Dynamics(mtbf_s=20.0, mttr_s=2.0, detection_s=1.0))
    whole = run_setting(setting, OBSERVED)
    if setting.network.delay_s > 0 and setting.cluster.num_nodes >= 3:
        assert digest(run_windows(setting, OBSERVED, 3)) == digest(whole)
    if setting.parameters["ceilings"] and not fails:
        never_above(setting, whole)


def never_above(setting: Setting, outcome: Any) -> None:
    """Check that the tenant with a ceiling of a half never ran on more nodes."""
    of_job = np.array([who == "ads" for who in setting.workload.jobs["tenant"].to_pylist()])
    mine = np.repeat(of_job, np.diff(setting.workload.arrays().first_task))
    start, finish = outcome.tasks["start_ns"][mine], outcome.tasks["finish_ns"][mine]
    for time in start:
        assert np.count_nonzero((start <= time) & (finish > time)) <= setting.cluster.num_nodes / 2
