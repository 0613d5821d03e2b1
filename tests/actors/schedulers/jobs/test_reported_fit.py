"""Best and worst fit by what nodes report: each choice against what the table of tasks says was known."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from emulations import NS, OBSERVED, digest, run_partition, run_setting, run_windows, setting_of
from hypothesis import given, settings
from hypothesis import strategies as st
from resource_check import check_run, judge
from test_fit import left_on, placed_jobs, unlike_nodes

from actors.environment import Dynamics, Preemption
from actors.setting import Setting
from emu.families.jobs.results import tasks_table
from workloads.requests import Requests

ALL_DRAWN = {"choices": 100, "queue_limit": 1000, "rebalance": False}


class Known(NamedTuple):
    """What a scheduler knows of a node: what is free in billionths, and its estimated work, ns."""

    free: list[int]
    work: int


class Cluster:
    """What schedulers know by the table of tasks: reports at heartbeats, and what each of them has placed."""

    def __init__(self, setting: Setting) -> None:
        outcome = run_setting(setting)
        assert outcome.tasks is not None
        table = tasks_table(setting.workload, outcome.tasks)
        check_run(table, setting.workload, setting.cluster, resources=setting.resources)
        judged = judge(table, setting.workload, setting.cluster, setting.resources)
        arrays = setting.workload.arrays()
        self.tasks, self.capacity = judged.tasks, judged.capacity
        self.start, self.finish = outcome.tasks["start_ns"], outcome.tasks["finish_ns"]
        self.submit = arrays.submit_ns[[task.job for task in self.tasks]]
        self.estimate = arrays.mean_ns
        self.delay = round(setting.network.delay_s * NS)
        self.beat = round(setting.parameters["heartbeat_s"] * NS)
        self.schedulers = setting.parameters["schedulers"]
        self.most: dict[int, tuple[int, ...]] = defaultdict(lambda: (0,) * len(judged.resources or (1,)))
        for task in self.tasks:
            self.most[task.job] = tuple(map(max, self.most[task.job], task.demand))

    def work(self, node: int, job: int) -> int:
        """Return the estimated work of a task of a job at a node, ns."""
        part = max(
            d / max(c, d) if d else 0.0 for d, c in zip(self.most[job], self.capacity[node], strict=True)
        )
        return int(self.estimate[job] * part)

    def reported(self, node: int, now: int) -> tuple[Known, int]:
        """Return what the node's last report has said, and when that was known."""
        here = [i for i, task in enumerate(self.tasks) if task.node == node]
        times = [x for i in here for x in (int(self.submit[i]) + self.delay, int(self.finish[i]))]
        beats = [-(-x // self.beat) * self.beat for x in times]
        at = max((b for b in beats if b + self.delay <= now), default=None)
        free, work = list(self.capacity[node]), 0
        if at is None:
            return Known(free, work), -1
        for i in here:
            if self.submit[i] + self.delay <= at < self.finish[i]:
                job = self.tasks[i].job
                need = self.tasks[i].demand if self.start[i] <= at else self.most[job]
                free = [f - n for f, n in zip(free, need, strict=True)]
                work += self.work(node, job)
        return Known([max(f, -1) for f in free], work), at + self.delay

    def known(self, node: int, i: int) -> Known:
        """Return what the scheduler of a task knows of a node when it places the task."""
        job, now = self.tasks[i].job, int(self.submit[i])
        (free, work), since = self.reported(node, now)
        for j, task in enumerate(self.tasks[:i]):
            if (
                task.node == node
                and task.job % self.schedulers == job % self.schedulers
                and self.submit[j] >= since
            ):
                free = [f - n for f, n in zip(free, self.most[task.job], strict=True)]
                work += self.work(node, task.job)
        return Known(free, work)


def check_choices(setting: Setting) -> tuple[int, int]:
    """Check each placement by the table of tasks; return how many were on a node with room, and how many were not."""
    cluster = Cluster(setting)
    sign, with_room, without = (1 if setting.parameters["fit"] == "best" else -1), 0, 0
    for i, task in enumerate(cluster.tasks):
        known = [cluster.known(node, i) for node in range(len(cluster.capacity))]
        demand = cluster.most[task.job]
        left = [left_on(k.free, c, demand) for k, c in zip(known, cluster.capacity, strict=True)]
        scores = [sign * share for share in left if share is not None]
        if scores:
            with_room += 1
            assert left[task.node] == pytest.approx(abs(min(scores)), abs=2e-9), (i, left)
        elif setting.resources:
            without += 1
            large = [all(d <= c for d, c in zip(demand, has, strict=True)) for has in cluster.capacity]
            least = min(k.work for k, may_run in zip(known, large, strict=True) if may_run)
            assert known[task.node].work == pytest.approx(least, abs=5), (i, known)
    return with_room, without


@st.composite
def placing(draw: st.DrawFn, **more: Any) -> Setting:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, nodes = draw(st.integers(1, 20)), draw(st.integers(1, 6))
    counts = rng.integers(1, 6, n)
    tasks = int(counts.sum())
    scheduler = draw(st.sampled_from(["dist-lwl", "yacc-d"]))
    names = ["cpu_cores", "memory_gib", "attr:gpus", "attr:licences"]
    requests = Requests(
        {name: rng.choice([0.0, 1.0, 2.0], n) for name in names}
        | {"cpu_cores": rng.choice([0.3, 1.0, 2.0], n)},
        {"cpu_cores": rng.choice([math.nan, 0.1, 1.5], tasks)} if draw(st.booleans()) else {},
        priority=rng.integers(0, 3, n).tolist(),
    )
    gap_s = draw(st.sampled_from([0.2, 1, 5]))
    workload = placed_jobs(rng, counts, gap_s, requests)
    cluster = unlike_nodes(
        rng, nodes, **{name: ["2", *map(str, rng.integers(0, 9, nodes - 1))] for name in names[2:]}
    )
    setting = setting_of(
        scheduler,
        workload,
        cluster,
        cutoff_s=math.inf,
        network=draw(st.sampled_from([0.0, 0.25])),
        fit=draw(st.sampled_from(["best", "worst"])),
        schedulers=draw(st.sampled_from([1, 3])),
        heartbeat_s=draw(st.sampled_from([1.0, 4.0])),
        **more,
    )
    resources = draw(st.sampled_from([(), ("cpu_cores",), tuple(names)]))
    return replace(setting, resources=resources, passing=draw(st.sampled_from([0.0, 2.0])))


def plain(setting: Setting) -> Setting:
    """Return a setting in which all tasks go to their nodes as their jobs arrive, without a random time."""
    given = {"jitter_s": 0.0} if setting.scheduler.name == "dist-lwl" else ALL_DRAWN
    return replace(setting, parameters={**setting.parameters, **given})


def test_each_choice_is_the_best_or_worst_of_what_was_known() -> None:
    found = []

    @settings(max_examples=60)
    @given(placing())
    def check(setting: Setting) -> None:
        found.append(check_choices(plain(setting)))

    check()
    assert min(np.sum(found, axis=0)) > 100  # with room, and where it fits on none


@pytest.mark.slow("the conformance suite tries it in small cases")
@settings(max_examples=30)
@given(placing(), st.booleans(), st.booleans())
def test_it_is_the_same_in_partitions_with_failures_and_full_queues(
    setting: Setting, fails: bool, preempts: bool
) -> None:
    small = {"queue_limit": 1} if setting.scheduler.name == "yacc-d" else {"late_binding": fails}
    setting = replace(setting, parameters={**setting.parameters, **small})
    if fails:
        setting = replace(setting, dynamics=Dynamics(mtbf_s=60.0, mttr_s=5.0, detection_s=2.0))
    if preempts:
        setting = replace(setting, priorities=True, preemption=Preemption())
    whole = run_setting(setting, OBSERVED)
    if setting.network.delay_s > 0 and setting.cluster.num_nodes >= 3:
        assert digest(run_windows(setting, OBSERVED, 3)) == digest(whole)
    table = tasks_table(setting.workload, whole.tasks)
    check_run(table, setting.workload, setting.cluster, resources=setting.resources)
    partition = run_partition(setting, OBSERVED)
    state = partition.state
    fit = state.known.fit if setting.scheduler.name == "yacc-d" else state.short.fit
    capacity = partition.world.room.capacity if setting.resources else setting.cluster.slots()[:, None]
    if not fails:
        assert np.array_equal(fit.reported, capacity)
