"""Tenants at schedulers of gangs: by hand, and against a program of its own."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from emulations import NS, run_setting, setting_of
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.environment import Network, Preemption
from actors.setting import Setting
from clusters.cluster import build_cluster
from workloads.errors import InputError
from workloads.jobs import make_workload
from workloads.requests import Requests


class Job(NamedTuple):
    """A job whose tasks take equally long."""

    submit_ns: int
    tenant: str | None
    tasks: int
    ns: int
    is_gang: bool
    priority: int


def setting_with(scheduler: str, jobs: list[Job], slots: int, **given: Any) -> Setting:
    workload = make_workload(
        "tenants",
        [job.submit_ns / NS for job in jobs],
        [job.tasks for job in jobs],
        [job.ns / NS for job in jobs for _ in range(job.tasks)],
        tenant=[job.tenant for job in jobs],
        requests=Requests(
            gang_nodes=[0.0 if job.is_gang else math.nan for job in jobs],
            priority=[job.priority for job in jobs],
        ),
    )
    cluster = build_cluster("one", [slots])
    setting = setting_of(scheduler, workload, cluster, network=0.0, cutoff_s=math.inf, **given)
    return replace(setting, priorities=True)


def starts(setting: Setting) -> list[int]:
    """Return when each task started, sorted within its job (ns)."""
    tasks = run_setting(setting).tasks
    assert tasks is not None
    ends = np.cumsum(setting.workload.jobs["num_tasks"].to_pylist())[:-1]
    return [t for of_job in np.split(tasks["start_ns"], ends) for t in sorted(of_job.tolist())]


def gang(at_s: int, tenant: str, tasks: int, s: int) -> Job:
    return Job(at_s * NS, tenant, tasks, s * NS, True, 0)


SIX_EACH = [gang(0, who, 2, 10) for who in ("ads", "web") for _ in range(6)]


@pytest.mark.parametrize(
    ("given", "ads", "web"),
    [
        ({}, [0, 0, 0, 0, 10, 10], [10, 10, 20, 20, 20, 20]),
        ({"order": "fair"}, [0, 0, 10, 10, 20, 20], [0, 0, 10, 10, 20, 20]),
        ({"order": "fair", "weights": "web=3"}, [0, 10, 20, 20, 20, 20], [0, 0, 0, 10, 10, 10]),
        ({"order": "capacity", "guarantees": "web=0.75"}, [0, 10, 20, 20, 20, 20], [0, 0, 0, 10, 10, 10]),
        ({"order": "fair", "ceilings": "ads=0.25"}, [0, 10, 20, 30, 40, 50], [0, 0, 0, 10, 10, 10]),
    ],
)
@pytest.mark.parametrize("scheduler", ["central-fcfs-gang", "easy"])
def test_tenants_by_hand(scheduler: str, given: dict[str, str], ads: list[int], web: list[int]) -> None:
    found = starts(setting_with(scheduler, SIX_EACH, 8, **given))
    assert [t / NS for t in found[::2]] == [*ads, *web]


@pytest.mark.parametrize(("scheduler", "third"), [("central-fcfs-gang", 15), ("easy", 2)])
def test_the_gang_of_the_tenant_with_the_least_share_has_the_reservation(scheduler: str, third: int) -> None:
    # ads holds a slot until 30 s, and three until 10 s: then web's gang starts, which needs four. Beside that ads' next
    # task ends before, and its last one does not.
    jobs = [
        gang(0, "ads", 1, 30),
        gang(0, "ads", 3, 10),
        gang(1, "web", 4, 5),
        gang(2, "ads", 1, 5),
        gang(2, "ads", 1, 20),
    ]
    found = starts(setting_with(scheduler, jobs, 5, order="fair"))
    assert [found[i] / NS for i in (0, 1, 4, 8, 9)] == [0, 0, 10, third, 15]


@pytest.mark.parametrize("scheduler", ["central-fcfs-gang", "easy"])
def test_what_is_evicted_does_not_take_the_room_again(scheduler: str) -> None:
    """web's guarantee is larger, but ads holds nothing when its gang has been evicted at 5 s; a message takes 1 s."""
    jobs = [Job(0, "ads", 2, 20 * NS, True, 0), Job(5 * NS, "web", 3, 10 * NS, True, 5)]
    setting = setting_with(scheduler, jobs, 4, order="capacity", guarantees="web=0.9")
    setting = replace(setting, network=Network(1.0), preemption=Preemption(keeps=True))
    found = run_setting(setting)
    assert found.tasks is not None
    assert (found.tasks["start_ns"] / NS).tolist() == [20, 20, 8, 8, 8]
    assert found.counters["evictions"] == 2


def test_a_gang_that_is_larger_than_its_ceiling_is_refused() -> None:
    why = "ceilings of easy: 2 tasks of job 0, which start together, need 2 of slots; tenant ads may hold 1"
    with pytest.raises(InputError, match=why):
        starts(setting_with("easy", SIX_EACH, 8, order="fair", ceilings="ads=0.125"))


def expected(scheduler: str, jobs: list[Job], slots: int, given: dict[str, str]) -> list[int]:
    """Return what `starts` does, by another program: a pool of slots, and all of an instant is known at once."""
    order = given.get("order", "arrival")
    tenants = list(dict.fromkeys(job.tenant for job in jobs)) if order != "arrival" else [None]
    of = [tenants.index(job.tenant) if order != "arrival" else 0 for job in jobs]

    def read(name: str, other: float) -> list[float]:
        stated = dict(one.split("=") for one in given.get(name, "").split(",") if one)
        return [float(stated.get(str(tenant), other)) for tenant in tenants]

    weight, ceiling = read("weights", 1.0), [math.floor(c * slots + 1e-9) for c in read("ceilings", 1e6)]
    left = [0] * len(jobs)
    found: list[list[int]] = [[] for _ in jobs]
    running: list[tuple[int, int]] = []  # end, job: a task
    queue: list[int] = []

    def held(who: int) -> int:
        return sum(of[job] == who for _, job in running)

    def allowed(job: int, count: int) -> int:
        room = ceiling[of[job]] - held(of[job])
        return (count if count <= room else 0) if jobs[job].is_gang else max(min(count, room), 0)

    def fit(job: int) -> int:
        idle = slots - len(running)
        return (left[job] if left[job] <= idle else 0) if jobs[job].is_gang else min(left[job], idle)

    def start(job: int, count: int, t: int) -> None:
        for _ in range(count):
            running.append((t + jobs[job].ns, job))
            found[job].append(t)
        left[job] -= count
        if not left[job]:
            queue.remove(job)

    def head() -> int | None:
        firsts: dict[int, int] = {}
        for job in queue:
            firsts.setdefault(of[job], job)
        may = [
            (held(who) / weight[who], who, job)
            for who, job in firsts.items()
            if allowed(job, left[job] if jobs[job].is_gang else 1)
        ]
        return min(may)[2] if may else None

    while queue or running or any(not f and not n for f, n in zip(found, left, strict=True)):
        coming = [job.submit_ns for i, job in enumerate(jobs) if not found[i] and i not in queue]
        t = min([*coming, *(end for end, _ in running)])
        running[:] = [row for row in running if row[0] > t]
        for i, job in enumerate(jobs):
            if job.submit_ns == t and not found[i] and i not in queue:
                queue.append(i)
                left[i] = job.tasks
        queue.sort(key=lambda i: (-jobs[i].priority, i))
        job = head()
        while job is not None and (count := fit(job)):
            start(job, count if jobs[job].is_gang or order == "arrival" else 1, t)
            job = head()
        if scheduler == "easy" and job is not None:
            needs = left[job] if jobs[job].is_gang else 1
            idle, shadow = slots - len(running), t
            for end in sorted({end for end, _ in running}):
                if idle >= needs:
                    break
                shadow, idle = end, idle + sum(e == end for e, _ in running)
            extra = idle - needs
            for other in [i for i in queue if i != job]:
                count = allowed(other, fit(other))
                if t + jobs[other].ns > shadow:
                    if count > extra:
                        count = 0 if jobs[other].is_gang else extra
                    extra -= count
                start(other, count, t)
    return [t for times in found for t in sorted(times)]


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, list[Job], int, dict[str, str]]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, slots = draw(st.integers(1, 25)), draw(st.integers(2, 8))
    submit = np.sort(rng.integers(0, 20 * n, n)) * NS + rng.integers(0, 1000, n).cumsum()
    jobs = [
        Job(
            int(submit[i]),
            [None, "ads", "web", "etl"][rng.integers(0, 4)],
            int(rng.integers(1, slots // 2 + 1)),
            int(rng.integers(1, 60)) * NS + int(rng.integers(0, 1000)),
            bool(rng.random() < 0.7),
            int(rng.integers(0, 2)),
        )
        for i in range(n)
    ]
    named = {job.tenant for job in jobs}
    given = {"order": draw(st.sampled_from(["arrival", "fair"]))}
    if given["order"] == "fair":
        given["weights"] = ",".join(f"{who}=3" for who in ("ads", "etl") if who in named)
        if "web" in named and draw(st.booleans()):
            given["ceilings"] = "web=0.5"
    return draw(st.sampled_from(["central-fcfs-gang", "easy"])), jobs, slots, given


@settings(max_examples=150)
@given(cases())
def test_starts_are_those_of_an_independent_program(case: tuple[str, list[Job], int, dict[str, str]]) -> None:
    scheduler, jobs, slots, given = case
    assert starts(setting_with(scheduler, jobs, slots, **given)) == expected(scheduler, jobs, slots, given)
