"""One queue with preemption: where its scheduler sends tasks, against a program of its own, and by hand."""

from __future__ import annotations

import heapq
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emulations import run_setting, setting_of
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.environment import Dynamics, Preemption
from actors.setting import Setting
from clusters.cluster import build_cluster
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

S = 1_000_000_000  # ns


def workload_of(*rows: tuple[float, float, int]) -> JobWorkload:
    """Jobs of one task: when it comes and how long it runs (s), and its priority."""
    submit_s, duration_s, priority = zip(*rows, strict=True)
    return make_workload(
        "by hand", submit_s, [1] * len(rows), duration_s, requests=Requests(priority=list(priority))
    )


def with_preemption(workload: JobWorkload, cluster: Any, delay_s: float = 0.0, **how: Any) -> Setting:
    setting = setting_of("central-fifo", workload, cluster, cutoff_s=math.inf, network=delay_s)
    return replace(setting, priorities=True, resources=workload.resources, preemption=Preemption(**how))


def test_the_lowest_priority_of_all_nodes_makes_room() -> None:
    """Of tasks of priority 2, 1 and 1 on three nodes those of 1 go first, and the one of 2 for the third."""
    workload = workload_of((0, 20, 2), (0, 20, 1), (0, 20, 1), (3, 5, 9), (4, 5, 9), (5, 5, 9), (6, 1, 2))
    tasks = run_setting(with_preemption(workload, build_cluster("three", [1, 1, 1]))).tasks
    assert tasks is not None
    assert tasks["node"][3:6].tolist() == [1, 2, 0]
    # The one of 2 stands before the one that came at 6, and both before those of 1, which start again.
    assert (tasks["start_ns"] / S).tolist() == [8, 10, 10, 3, 4, 5, 9]


def test_more_priorities_than_there_are_levels_are_refused() -> None:
    workload = workload_of(*((0, 1, p) for p in range(65)))
    with pytest.raises(
        InputError, match="jobs have 65 priorities; one queue with preemption takes at most 64"
    ):
        run_setting(with_preemption(workload, build_cluster("one", [1])))


def amounts_of(cluster: Any, name: str) -> list[float]:
    """What each node has: memory in GiB, as tasks state it."""
    if name == "cpu_cores":
        return cluster.attribute("cores").tolist()
    return [amount / 2**30 for amount in cluster.attribute("memory").tolist()]


def expected(setting: Setting, delay: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Return when and where each task of a setting last started (ns), and how often each was evicted.

    Messages of one instant are handled in the order: ends, then those of nodes and of the scheduler by sender, then
    arrivals; as the words of the project say.
    """
    how, workload = setting.preemption, setting.workload
    assert how is not None
    below, cost = math.inf if how.below is None else how.below, round(how.cost_s * S)
    jobs = workload.jobs.to_pydict()
    job_of = [j for j, n in enumerate(jobs["num_tasks"]) for _ in range(n)]
    whole = [round(d * S) for d in workload.tasks["duration_s"].to_pylist()]
    names = setting.resources
    demand = [tuple(jobs[name][j] for name in names) if names else (1,) for j in range(len(jobs["priority"]))]
    capacity = (
        list(zip(*(amounts_of(setting.cluster, name) for name in names), strict=True))
        if names
        else [(n,) for n in setting.cluster.slots().tolist()]
    )
    priority = jobs["priority"]
    ranks = sorted(set(priority))
    nodes, scheduler = range(len(capacity)), len(capacity)

    placed: dict[int, int] = {}  # what the scheduler knows: the node of a task
    order = [list(nodes) for _ in ranks]
    running: list[list[int]] = [[] for _ in nodes]  # what runs: the last to start first
    start, end, done, times = (dict.fromkeys(range(len(whole)), 0) for _ in range(4))
    waiting: list[tuple[int, int, int, int]] = []  # -priority, job, -losses before, task
    queue: list[tuple[int, int, int, int, str, Any]] = []
    sent = [0] * (len(capacity) + 1)
    found = [(-1, -1)] * len(whole)
    losses = 0

    def send(at: int, rank: int, sender: int, kind: str, what: Any) -> None:
        sent[sender] += 1
        heapq.heappush(queue, (at, rank, sender, sent[sender], kind, what))

    def counts(task: int, evictions: int, level: int) -> bool:
        own = priority[job_of[task]]
        return own >= below or evictions >= how.most or ranks.index(own) >= level

    known: dict[int, int] = {}  # evictions of placed tasks, as the scheduler knows them

    def left(node: int, level: int) -> list[float]:
        held = [demand[job_of[t]] for t, n in placed.items() if n == node and counts(t, known[t], level)]
        return [c - sum(h[r] for h in held) for r, c in enumerate(capacity[node])]

    def dispatch(t: int) -> None:
        while waiting:
            _, job, _, task = min(waiting)
            at = next(
                (
                    node
                    for level in range(ranks.index(priority[job]) + 1)
                    for node in order[level]
                    if all(f >= d for f, d in zip(left(node, level), demand[job], strict=True))
                ),
                None,
            )
            if at is None:
                return
            waiting.remove(min(waiting))
            placed[task], known[task] = at, times[task]
            send(t + delay, 1, scheduler, "placed", (task, at))

    def forget(task: int) -> None:
        node = placed.pop(task)
        for level in range(len(ranks)):
            if counts(task, known[task], level):
                order[level].remove(node)
                order[level].append(node)

    def evict_for(t: int, node: int, task: int) -> None:
        need = demand[job_of[task]]

        def lacking() -> list[int]:
            held = [demand[job_of[other]] for other in running[node]]
            return [r for r, c in enumerate(capacity[node]) if c - sum(h[r] for h in held) < need[r]]

        while lacking():
            may = [
                other
                for other in running[node]
                if priority[job_of[other]] < min(priority[job_of[task]], below)
                and times[other] < how.most
                and any(demand[job_of[other]][r] > 0 for r in lacking())
            ]
            by = [
                (priority[job_of[v]], start[v] if how.oldest_first else -start[v], i)
                for i, v in enumerate(may)
            ]
            if how.oldest_first:
                by = [(p, s, -i) for p, s, i in by]
            victim = may[by.index(min(by))]
            running[node].remove(victim)
            ran, restore = t - start[victim], cost if times[victim] else 0
            times[victim] += 1
            if how.keeps:
                of = max(end[victim] - start[victim] - restore, 1)
                done[victim] += math.floor((1_000_000 - done[victim]) * float(max(ran - restore, 0)) / of)
            send(t + delay, 1, node, "lost", victim)

    for job, submit_s in enumerate(jobs["submit_s"]):
        heapq.heappush(queue, (round(submit_s * S), 3, scheduler, job, "arrival", job))
    while queue:
        t, _, _, _, kind, what = heapq.heappop(queue)
        if kind == "arrival":
            waiting += [(-priority[what], what, 1, task) for task, j in enumerate(job_of) if j == what]
        elif kind == "placed":
            task, node = what
            evict_for(t, node, task)
            running[node].insert(0, task)
            start[task] = t
            end[task] = t + whole[task] - round(whole[task] * done[task] / 1e6) + (cost if times[task] else 0)
            found[task] = (t, node)
            send(end[task], 0, node, "end", (task, node, t))
            continue
        elif kind == "end":
            task, node, since = what
            if task in running[node] and start[task] == since:
                running[node].remove(task)
                send(t + delay, 1, node, "done", task)
            continue
        else:
            forget(what)
            if kind == "lost":
                losses += 1
                waiting.append((-priority[job_of[what]], job_of[what], -losses, what))
        dispatch(t)
    return found, [times[t] for t in range(len(whole))]


@st.composite
def preempting(draw: st.DrawFn, with_failures: bool = False) -> tuple[Setting, int]:
    """Up to 30 jobs of four priorities on one to five nodes of slots, or of cores and memory."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, nodes = draw(st.integers(2, 30)), draw(st.integers(1, 5))
    counts = rng.integers(1, 4, n)
    tasks = int(counts.sum())
    resources = draw(st.sampled_from([(), ("cpu_cores",), ("cpu_cores", "memory_gib")]))
    requests = Requests(
        {name: rng.choice([0.5, 1.0, 2.0], n) for name in resources},
        priority=[0, 3, *rng.integers(0, 4, n - 2).tolist()],
    )
    submit, durations = np.sort(rng.integers(0, 4_000 * n, n)) / 1e3, rng.integers(1, 20_000, tasks) / 1e3
    workload = make_workload("preempting", submit, counts, durations, requests=requests)
    cluster = build_cluster(
        "some", rng.integers(1, 4, nodes), cpu_cores=rng.choice([2.0, 4.0], nodes), memory_bytes=4 << 30
    )
    delay_s = draw(st.sampled_from([0.25, 0.0]))
    how = {
        "keeps": draw(st.booleans()),
        "cost_s": draw(st.sampled_from([0.0, 0.7])),
        "most": draw(st.sampled_from([1, 2, 1000])),
        "below": draw(st.sampled_from([None, 2])),
        "oldest_first": draw(st.booleans()),
    }
    setting = with_preemption(workload, cluster, delay_s, **how)
    if with_failures:
        setting = replace(setting, dynamics=Dynamics(mtbf_s=80.0, mttr_s=5.0, detection_s=2.0))
    return setting, round(delay_s * S)


@settings(max_examples=150)
@given(preempting())
def test_starts_nodes_and_evictions_are_those_of_an_independent_program(case: tuple[Setting, int]) -> None:
    setting, delay = case
    outcome = run_setting(setting)
    assert outcome.tasks is not None
    found, times = expected(setting, delay)
    assert outcome.tasks["start_ns"].tolist() == [t for t, _ in found]
    assert outcome.tasks["node"].tolist() == [node for _, node in found]
    if outcome.evicted is not None:
        ends = np.cumsum(setting.workload.jobs["num_tasks"].to_pylist())
        assert outcome.evicted[0].tolist() == np.add.reduceat(times, [0, *ends[:-1]]).tolist()
