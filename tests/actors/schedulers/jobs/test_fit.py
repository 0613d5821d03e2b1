"""Best and worst fit: each choice against what the table of tasks says that the scheduler knew."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emulations import OBSERVED, run_partition, run_setting, setting_of
from hypothesis import given, settings
from hypothesis import strategies as st
from resource_check import check_run, judge

from actors.environment import Dynamics
from actors.setting import Setting
from clusters.cluster import Cluster, build_cluster
from emu.families.jobs.results import tasks_table
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests


def left_on(free: list[int], capacity: tuple[int, ...], demand: tuple[int, ...]) -> float | None:
    """Return the largest share that is left of a resource; None where it does not fit."""
    if any(f < d for f, d in zip(free, demand, strict=True)):
        return None
    return max((f - d) / max(c, 1) for f, d, c in zip(free, demand, capacity, strict=True))


def check_choices(setting: Setting) -> int:
    """Check each placement by the table of tasks; return how many were on a node with room."""
    outcome = run_setting(setting)
    assert outcome.tasks is not None
    table = tasks_table(setting.workload, outcome.tasks)
    check_run(table, setting.workload, setting.cluster, resources=setting.resources)
    judged = judge(table, setting.workload, setting.cluster, setting.resources)
    submit_s, delay_s = setting.workload.jobs["submit_s"].to_pylist(), setting.network.delay_s
    most: dict[int, tuple[int, ...]] = defaultdict(lambda: (0,) * len(judged.resources))
    for task in judged.tasks:
        most[task.job] = tuple(map(max, most[task.job], task.demand))
    sign, with_room = (1 if setting.parameters["fit"] == "best" else -1), 0
    for i, task in enumerate(judged.tasks):
        now_s, demand = submit_s[task.job], most[task.job]
        free = [list(c) for c in judged.capacity]
        for before in judged.tasks[:i]:
            if before.finish_s + delay_s > now_s:
                free[before.node] = [f - d for f, d in zip(free[before.node], most[before.job], strict=True)]
        left = [left_on(f, c, demand) for f, c in zip(free, judged.capacity, strict=True)]
        scores = [(sign * share, node) for node, share in enumerate(left) if share is not None]
        if scores:
            with_room += 1
            assert left[task.node] == pytest.approx(abs(min(scores)[0]), abs=2e-9), (i, left)
    return with_room


def placed_jobs(
    rng: np.random.Generator, counts: np.ndarray, gap_s: float, requests: Requests
) -> JobWorkload:
    """Jobs of so many tasks, that come every `gap_s` in the mean."""
    return make_workload(
        "placing",
        np.sort(rng.uniform(0, gap_s * counts.size, counts.size)),
        counts,
        rng.exponential(8, int(counts.sum())) + 0.01,
        requests=requests,
    )


def unlike_nodes(rng: np.random.Generator, nodes: int, **more: list[str]) -> Cluster:
    """Nodes with other slots, cores and memory each; the first has room for every task."""
    return build_cluster(
        "some",
        rng.integers(1, 4, nodes),
        cpu_cores=[4.0, *rng.choice([1.0, 2.0, 4.0, 16.0], nodes - 1)],
        memory_bytes=np.array([8, *rng.choice([2, 8, 32], nodes - 1)]) << 30,
        **more,
    )


@st.composite
def placing(draw: st.DrawFn, **more: Any) -> Setting:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, nodes = draw(st.integers(1, 20)), draw(st.integers(1, 6))
    counts = rng.integers(1, 6, n)
    tasks = int(counts.sum())
    requests = Requests(
        {"cpu_cores": rng.choice([0.3, 1.0, 2.0], n), "memory_gib": rng.choice([0.0, 1.0, 3.0, 6.0], n)},
        {"cpu_cores": rng.choice([math.nan, 0.1, 1.5], tasks)} if draw(st.booleans()) else {},
    )
    gap_s = draw(st.sampled_from([1, 5, 20]))
    workload = placed_jobs(rng, counts, gap_s, requests)
    cluster = unlike_nodes(rng, nodes)
    setting = setting_of(
        draw(st.sampled_from(["central-lwl", "hawk", "eagle"])),
        workload,
        cluster,
        cutoff_s=0.0,  # all jobs are long
        network=draw(st.sampled_from([0.0, 0.25])),
        fit=draw(st.sampled_from(["best", "worst"])),
        **more,
    )
    resources = draw(st.sampled_from([(), ("cpu_cores",), ("cpu_cores", "memory_gib")]))
    return replace(setting, resources=resources, passing=draw(st.sampled_from([0.0, 2.0])))


@settings(max_examples=60)
@given(placing())
def test_each_choice_is_the_best_or_worst_of_what_was_known(setting: Setting) -> None:
    check_choices(setting)


@settings(max_examples=30)
@given(placing(dynamics=Dynamics(mtbf_s=60.0, mttr_s=5.0, detection_s=2.0)))
def test_with_failures_all_that_was_taken_is_given_back(setting: Setting) -> None:
    partition = run_partition(setting, OBSERVED)
    state = partition.state
    placer = state.long if setting.scheduler.name == "central-lwl" else state.placer
    capacity = partition.world.room.capacity if setting.resources else placer.ledger.slots[:, None]
    assert np.array_equal(placer.fit.free, capacity)
    table = tasks_table(setting.workload, partition.outcome().tasks)
    check_run(table, setting.workload, setting.cluster, resources=setting.resources)
