"""Tenants at schedulers of gangs: by hand, and against a program of its own."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from emulations import NS, run_setting, setting_of
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.setting import Setting
from clusters.cluster import build_cluster
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
