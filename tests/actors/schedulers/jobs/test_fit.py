"""Best and worst fit: by hand, and each choice against what the table of tasks says that the scheduler knew."""

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

THREE = build_cluster("three", [8, 4, 2], cpu_cores=[8.0, 4.0, 2.0])


def placed(
    rows: list[tuple[float, list[float]]], cores: float, fit: str, cluster: Cluster = THREE, **more: Any
) -> list[int]:
    """Return the nodes of tasks of jobs with an arrival and durations (s); without `cores` they take slots."""
    resources = ("cpu_cores",) if cores else ()
    requests = Requests({"cpu_cores": [cores] * len(rows)}) if cores else Requests()
    durations = [x for _, ds in rows for x in ds]
    workload = make_workload(
        "jobs", [t for t, _ in rows], [len(d) for _, d in rows], durations, requests=requests
    )
    setting = setting_of("central-lwl", workload, cluster, cutoff_s=math.inf, network=0.5, fit=fit, **more)
    tasks = run_setting(replace(setting, resources=resources)).tasks
    assert tasks is not None
    return [int(node) for node in tasks["node"]]


@pytest.mark.parametrize(
    ("fit", "nodes"),
    [
        # Of 8, 4 and 2 cores tasks of 2 leave 6/8, 2/4 and 0/2.
        ("best", [2, 1, 1, 0]),
        ("worst", [0, 0, 1, 0]),  # the second: 4/8 as on the second node
    ],
)
def test_by_hand(fit: str, nodes: list[int]) -> None:
    assert placed([(0.0, [9.0] * 4)], 2.0, fit) == nodes
    assert placed([(float(t), [9.0]) for t in range(4)], 2.0, fit) == nodes
    one_slot_is_two_cores = build_cluster("slots", [4, 2, 1])
    assert placed([(0.0, [9.0] * 4)], 0.0, fit, one_slot_is_two_cores) == nodes


def test_where_it_fits_on_none_the_least_work_decides_and_ends_are_known_when_reported() -> None:
    """A task holds its node for the scheduler from its placement to the report of its end: 2 s of work take 3 s."""
    fills = [(0.0, [20.0]), (0.0, [20.0]), (0.0, [2.0])]
    rows = [*fills, (2.9, [1.0]), (3.1, [1.0])]
    cluster = build_cluster("three nodes", [1] * 3, cpu_cores=2.0)
    # At 2.9 s the third node has the least work left; so has it at 3.1 s the task of 1 s, and no room.
    assert placed(rows, 2.0, "best", cluster) == [0, 1, 2, 2, 2]
    rows = [*fills, (3.1, [1.0]), (3.2, [1.0])]
    assert placed(rows, 2.0, "best", cluster) == [0, 1, 2, 2, 2]


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
