"""Queues of tenants at central-fifo, and tasks that hold resources: by hand, and against a program of its own."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from emulations import cluster_of, outages, run_setting, setting_of
from hypothesis import given, settings
from hypothesis import strategies as st
from resource_check import BILLION, check_run, judge

from actors.environment import Dynamics
from actors.hosting.outcome import Outcome
from actors.setting import Setting
from actors.tenants import given_to
from clusters.cluster import Cluster, build_cluster
from emu.families.jobs.results import tasks_table
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

FOUR = build_cluster("four slots", [4])


def jobs(*rows: tuple[float, list[float], str | None], **asked: Any) -> JobWorkload:
    """Jobs that arrive at a time (s), with the durations of their tasks and a tenant."""
    counts, durations = [len(d) for _, d, _ in rows], [x for _, d, _ in rows for x in d]
    tenant = [who for _, _, who in rows]
    return make_workload(
        "jobs", [t for t, _, _ in rows], counts, durations, tenant=tenant, requests=Requests(**asked)
    )


def starts(
    workload: JobWorkload, cluster: Cluster, resources: tuple[str, ...] = (), **more: Any
) -> list[float]:
    """Return the start of each task (s)."""
    priorities = more.pop("priorities", False)
    setting = setting_of("central-fifo", workload, cluster, network=0.0, cutoff_s=math.inf, **more)
    tasks = run_setting(replace(setting, resources=resources, priorities=priorities)).tasks
    assert tasks is not None
    return (tasks["start_ns"] / 1e9).tolist()


TWO = jobs((0.0, [4.0] * 10, "ads"), (1.0, [4.0] * 4, "web"))


@pytest.mark.parametrize(
    ("given", "ads", "web"),
    [
        ({}, [0] * 4 + [4] * 4 + [8] * 2, [8, 8, 12, 12]),
        # At 4 s slots free one by one, each for the tenant that then holds least: web, web, ads, ads.
        ({"order": "fair"}, [0] * 4 + [4, 4, 8, 8, 12, 12], [4, 4, 8, 8]),
        ({"order": "fair", "weights": "ads=9"}, [0] * 4 + [4] * 3 + [8] * 3, [4, 8, 12, 12]),
        ({"order": "capacity", "guarantees": "web=0.9"}, [0] * 4 + [4] + [8] * 3 + [12] * 2, [4, 4, 4, 8]),
        ({"order": "fair", "ceilings": "ads=0.5"}, [0, 0, 4, 4, 8, 8, 12, 12, 16, 16], [1, 1, 5, 5]),
        ({"order": "capacity", "ceilings": "ads=0.25, web=0.5"}, [*range(0, 40, 4)], [1, 1, 5, 5]),
    ],
)
def test_tenants_by_hand(given: dict[str, str], ads: list[float], web: list[float]) -> None:
    assert starts(TWO, FOUR, **given) == [*map(float, ads), *map(float, web)]


@pytest.mark.parametrize(
    ("resources", "due"),
    [
        # At 3 s there is room for one of the last two. ads holds half of the memory, web 3/8 of the cores.
        (("cpu_cores", "memory_gib"), [0, 0, 0, 8, 3]),
        (("cpu_cores",), [0, 0, 0, 3, 8]),  # of cores alone ads holds a quarter
    ],
)
def test_the_dominant_share_decides(resources: tuple[str, ...], due: list[float]) -> None:
    cluster = build_cluster("one", [1], cpu_cores=4.0, memory_bytes=8 << 30)
    workload = jobs(
        (0.0, [9.0], "ads"),
        (0.0, [8.0], "web"),
        (0.0, [3.0], "etl"),
        (1.0, [5.0], "ads"),
        (1.0, [5.0], "web"),
        demands={"cpu_cores": [1.0, 1.5, 1.5, 1.5, 1.5], "memory_gib": [4.0, 1.0, 3.0, 1.0, 1.0]},
    )
    assert starts(workload, cluster, resources, order="fair") == due


@pytest.mark.parametrize(("priorities", "due"), [(False, [5, 0, 8]), (True, [6, 0, 5])])
def test_a_lost_task_goes_before_its_equals_alone(priorities: bool, due: list[float]) -> None:
    # Node 0 fails at 2; its task waits for node 1, which is idle at 5, and is back at 8.
    workload = jobs((0.0, [5.0, 5.0], None), (4.0, [1.0], None), priority=[0, 1])
    dynamics = Dynamics(outages=outages(("node 0", 2, 8)))
    assert starts(workload, cluster_of(2), priorities=priorities, dynamics=dynamics) == due


def test_the_first_of_a_queue_is_not_passed_but_another_tenant_goes_on() -> None:
    cluster = build_cluster("one", [1], cpu_cores=4.0)
    rows = ((0.0, [10.0], "ads"), (1.0, [5.0], "ads"), (2.0, [1.0], "web"))
    workload = jobs(*rows, demands={"cpu_cores": [3.0, 2.0, 1.0]})
    assert starts(workload, cluster, ("cpu_cores",)) == [0.0, 10.0, 10.0]
    assert starts(workload, cluster, ("cpu_cores",), order="fair") == [0.0, 10.0, 2.0]


def test_higher_priority_goes_first() -> None:
    workload = jobs(*((float(t), [10.0], None) for t in range(4)), priority=[0, 0, 5, 0])
    one = build_cluster("one", [1])
    assert starts(workload, one, priorities=True) == [0.0, 20.0, 10.0, 30.0]
    assert starts(workload, one) == [0.0, 10.0, 20.0, 30.0]


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        (
            {"order": "fair", "weights": "adds=2"},
            "parameter weights of central-fifo: there is no tenant 'adds'.*'ads'",
        ),
        ({"order": "fair", "weights": "ads=0"}, "'ads=0' is not a tenant and a weight above 0, as in ads=2"),
        ({"order": "fair", "weights": "ads=inf"}, "'ads=inf' is not a tenant and a weight above 0"),
        (
            {"order": "fair", "ceilings": "ads=1.5"},
            "'ads=1.5' is not a tenant and a part above 0 and up to 1",
        ),
        (
            {"order": "fair", "ceilings": "web=0.2"},
            "ceilings of central-fifo: a task of job 1 needs 1 of slots; tenant web may hold 0",
        ),
        (
            {"order": "capacity", "guarantees": "ads=0.8,web=0.3"},
            "the parts sum to 1.1; 1 is all of the cluster",
        ),
        ({"order": "capacity", "guarantees": "ads=1"}, "nothing is left for tenant web"),
        ({"order": "fair", "ceilings": "ads=0%"}, "'ads=0%' is not a tenant and a part above 0"),
        ({"order": "fair", "weights": "ads=50%"}, "'ads=50%' is not a tenant and a weight"),
        (
            {"order": "capacity", "guarantees": "ads=75%", "ceilings": "ads=0.5"},
            "guarantees of central-fifo: tenant ads is guaranteed 0.75, and its ceiling is 0.5; want a part up to that",
        ),
    ],
)
def test_wrong_shares_are_refused(given: dict[str, str], wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        starts(TWO, FOUR, **given)


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


def test_parts_are_shares_or_percentages() -> None:
    for part in ("0.5", "50%", "50 %"):
        assert given_to(f"ads={part}", ["ads", "web"], "ceilings") == {"ads": 0.5}
    same = {"order": "capacity", "guarantees": "ads=0.5", "ceilings": "ads=50%"}
    assert starts(TWO, FOUR, **same) == starts(TWO, FOUR, order="fair", ceilings="ads=0.5")
