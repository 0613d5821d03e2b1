"""Queues of tenants at central-fifo, and tasks that hold resources: by hand, and against a program of its own."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from emulations import run_setting, setting_of
from hypothesis import given, settings
from hypothesis import strategies as st
from resource_check import BILLION, check_run, judge

from actors.environment import Dynamics
from actors.hosting.outcome import Outcome
from actors.setting import Setting
from clusters.cluster import build_cluster
from emu.families.jobs.results import tasks_table
from workloads.jobs import make_workload
from workloads.requests import Requests


class Node(NamedTuple):
    """What the program below knows of a node: its capacity by resource, in billionths, and what is free."""

    capacity: list[int]
    free: list[int]


def expected(setting: Setting) -> list[tuple[float, int]]:
    """Return start (s) and node of each task, by a program that shares no code with the scheduler.

    To the scheduler a task holds its room from its placement until its end is reported, two messages longer than it
    runs. All times differ but those of one arrival, so that the order of events is that of times.
    """
    workload, given, delay_s = setting.workload, setting.parameters, setting.network.delay_s
    empty = tasks_table(
        workload, dict.fromkeys(("node", "start_ns", "finish_ns"), np.full(workload.num_tasks, -1))
    )
    judged = judge(empty, workload, setting.cluster, setting.resources)
    most = defaultdict(lambda: (0,) * len(judged.resources))
    for task in judged.tasks:  # a report names the job alone
        most[task.job] = tuple(max(pair) for pair in zip(most[task.job], task.demand, strict=True))
    nodes = [Node(list(c), list(c)) for c in judged.capacity]
    # Of slots each stands in the list on its own, of resources a node.
    widest = max(c[0] for c in judged.capacity) // BILLION
    idle = [n for nth in range(widest) for n, c in enumerate(judged.capacity) if c[0] // BILLION > nth]
    idle = [*range(len(nodes))] if setting.resources else idle
    total = [sum(c[r] for c in judged.capacity) for r in range(len(judged.resources))]
    tenants = (
        workload.jobs["tenant"].to_pylist() if given["order"] != "arrival" else [None] * workload.num_jobs
    )
    names = list(dict.fromkeys(tenants))
    weight, ceiling = shares_of(given, names)
    held = {name: [0] * len(total) for name in names}
    waiting: dict[Any, list[tuple[int, int, int]]] = {name: [] for name in names}  # -priority, job, task
    durations = workload.tasks["duration_s"].to_pylist()
    counts = np.cumsum([0, *workload.jobs["num_tasks"].to_pylist()]).tolist()
    events = [(t, 0, job, 0) for job, t in enumerate(workload.jobs["submit_s"].to_pylist())]
    heapq.heapify(events)
    found = [(math.nan, -1)] * workload.num_tasks
    while events:
        t, is_end, job, node = heapq.heappop(events)
        if is_end:
            for r, amount in enumerate(most[job]):
                nodes[node].free[r] += amount
                held[tenants[job]][r] -= amount
            if setting.resources:
                idle.remove(node)
            idle.append(node)
        else:
            own = -judged.tasks[counts[job]].priority if setting.priorities else 0
            waiting[tenants[job]] += [(own, job, task) for task in range(counts[job], counts[job + 1])]
        while True:
            best = None
            for name in names:
                if not waiting[name]:
                    continue
                _, j, task = first = min(waiting[name])
                share = max(h / c for h, c in zip(held[name], total, strict=True) if c) / weight[name]
                within = all(
                    h + need <= ceiling[name] * c * (1 + 1e-12)
                    for h, need, c in zip(held[name], most[j], total, strict=True)
                )
                place = next(
                    (
                        p
                        for p, n in enumerate(idle)
                        if all(f >= d for f, d in zip(nodes[n].free, most[j], strict=True))
                    ),
                    None,
                )
                if within and place is not None and (best is None or share < best[0]):
                    best = share, name, first, place
            if best is None:
                break
            _, name, first, place = best
            waiting[name].remove(first)
            _, j, task = first
            node = idle[place] if setting.resources else idle.pop(place)
            for r, amount in enumerate(most[j]):
                nodes[node].free[r] -= amount
                held[name][r] += amount
            found[task] = (t + delay_s, node)
            heapq.heappush(events, (t + 2 * delay_s + durations[task], 1, j, node))
    return found


def shares_of(given: dict[str, Any], names: list[str | None]) -> tuple[dict[Any, float], dict[Any, float]]:
    """Return the weight, or guarantee, and the ceiling of each tenant."""

    def read(text: str) -> dict[str, float]:
        return {one.split("=")[0]: float(one.split("=")[1]) for one in text.split(",") if one}

    ceiling = {name: read(given["ceilings"]).get(str(name), 1e9) for name in names}
    if given["order"] != "capacity":
        return {name: read(given["weights"]).get(str(name), 1.0) for name in names}, ceiling
    stated = read(given["guarantees"])
    others = len([name for name in names if name not in stated])
    rest = (1 - sum(stated.values())) / max(others, 1)
    return {name: stated.get(str(name), rest) for name in names}, ceiling


@st.composite
def queued(draw: st.DrawFn, with_failures: bool = False) -> Setting:
    """Jobs of three tenants and of none, each of which may hold a half of the cluster or more, on one to five nodes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 25))
    counts = rng.integers(1, 6, n)
    tasks = int(counts.sum())
    tenant = rng.choice(np.array(["ads", "web", "etl", None], object), n).tolist()
    resources = draw(st.sampled_from([(), ("cpu_cores",), ("cpu_cores", "memory_gib")]))
    own = draw(st.booleans())
    requests = Requests(
        {"cpu_cores": rng.choice([0.3, 1.0, 2.0], n), "memory_gib": rng.choice([0.0, 1.0, 4.0], n)},
        {"cpu_cores": rng.choice([math.nan, 0.1, 1.5], tasks)} if own else {},
        priority=rng.integers(0, 3, n).tolist(),
    )
    submit = np.sort(rng.uniform(0, 5 * n, n))
    workload = make_workload(
        "queued", submit, counts, rng.exponential(8, tasks) + 0.01, tenant=tenant, requests=requests
    )
    nodes = draw(st.integers(1, 5))
    cluster = build_cluster(
        "some",
        rng.integers(2, 4, nodes),
        cpu_cores=[4.0, *rng.choice([2.0, 4.0], nodes - 1)],
        memory_bytes=8 << 30,
    )
    known = [name for name in ("ads", "web") if name in tenant]
    order = draw(st.sampled_from(["arrival", "fair", "capacity"]))
    given = {
        "fair": {"weights": ",".join(f"{name}={draw(st.sampled_from([0.5, 2.0]))}" for name in known)},
        "capacity": {"guarantees": ",".join(f"{name}={draw(st.sampled_from([0.1, 0.4]))}" for name in known)},
        "arrival": {},
    }[order]
    if order != "arrival" and known and draw(st.booleans()):
        given["ceilings"] = f"{known[0]}=0.5" if nodes > 1 or not resources else f"{known[0]}=0.6"
    dynamics = Dynamics(mtbf_s=60.0, mttr_s=5.0, detection_s=2.0) if with_failures else Dynamics()
    setting = setting_of(
        "central-fifo",
        workload,
        cluster,
        network=draw(st.sampled_from([0.0, 0.25])),
        cutoff_s=math.inf,
        dynamics=dynamics,
        order=order,
        **given,
    )
    return replace(setting, resources=resources, priorities=draw(st.booleans()))


@settings(max_examples=60)
@given(queued())
def test_starts_and_nodes_are_those_of_an_independent_program(setting: Setting) -> None:
    outcome = run_setting(setting)
    assert outcome.tasks is not None
    for task, (start_s, node) in enumerate(expected(setting)):
        assert outcome.tasks["start_ns"][task] / 1e9 == pytest.approx(start_s, abs=1e-6), task
        assert outcome.tasks["node"][task] == node, task
    within_ceilings(setting, outcome)


@settings(max_examples=40)
@given(queued(with_failures=True))
def test_with_failures_all_run_and_ceilings_hold(setting: Setting) -> None:
    within_ceilings(setting, run_setting(setting))


def within_ceilings(setting: Setting, outcome: Outcome) -> None:
    """Check nodes' capacities and tenants' ceilings by the table of tasks alone."""
    assert outcome.tasks is not None
    table = tasks_table(setting.workload, outcome.tasks)
    check_run(table, setting.workload, setting.cluster, resources=setting.resources)
    judged = judge(table, setting.workload, setting.cluster, setting.resources)
    tenants = setting.workload.jobs["tenant"].to_pylist()
    _, ceiling = shares_of(setting.parameters, [*dict.fromkeys(tenants)])
    total = [sum(c[r] for c in judged.capacity) for r in range(len(judged.resources))]
    for one in judged.tasks:
        runs = [
            t
            for t in judged.tasks
            if t.start_s <= one.start_s < t.finish_s and tenants[t.job] == tenants[one.job]
        ]
        for r, of_all in enumerate(total):
            assert sum(t.demand[r] for t in runs) <= ceiling[tenants[one.job]] * of_all + 1
