"""Tasks that need resources: no node is ever over its capacity, under every scheduler, and everything is given back."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emulations import OBSERVED, VARIANTS, named, run_partition, setting_of
from hard_settings import DURATIONS, EXAMPLES, NETWORKS, every_task_ran_once
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.environment import Dynamics
from actors.hosting.outcome import Outcome
from actors.kernel.room import UNLIMITED
from actors.setting import Estimates, Setting
from clusters.cluster import Cluster, build_cluster
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

RESOURCES = ("cpu_cores", "memory_gib")
CORES, MEMORY = (1.0, 2.0, 4.0), (2.0, 4.0, 16.0)
CENTRAL_FIFO = "central-fifo"  # it counts slots
SCHEDULERS = [name for name in VARIANTS if name != CENTRAL_FIFO]


class MostFree:
    """A user's central scheduler: tasks go in turn to the nodes that they fit, those with most cores free first."""

    def place(self, job: Any, nodes: Any) -> np.ndarray:
        room = np.min([nodes.capacity[name] - job.demand[name] for name in job.demand], axis=0)
        first = next(iter(nodes.free.values()))
        order = np.argsort(-first, kind="stable")
        return np.resize(order[room[order] >= 0], job.num_tasks)


@st.composite
def workloads(draw: st.DrawFn) -> JobWorkload:
    """Jobs whose tasks fit on the first node of `clusters`; some tasks state demands of their own."""
    submit = draw(st.lists(st.one_of(st.integers(0, 4), st.floats(0, 20)), min_size=1, max_size=10))
    durations = [draw(st.lists(DURATIONS, min_size=1, max_size=7)) for _ in submit]
    tasks = sum(map(len, durations))
    cores, memory = (
        st.sampled_from([0.0, 0.1, 0.25, 0.3, 1.0, 2.5, 4.0]),
        st.sampled_from([0.0, 0.7, 2.0, 15.0]),
    )
    own = st.one_of(st.none(), cores).map(lambda x: math.nan if x is None else x)
    asked = {name: [draw(of) for _ in submit] for name, of in zip(RESOURCES, (cores, memory), strict=True)}
    each = draw(st.booleans())
    return make_workload(
        "random",
        submit,
        [len(d) for d in durations],
        [x for ds in durations for x in ds],
        requests=Requests(asked, {"cpu_cores": [draw(own) for _ in range(tasks)]} if each else {}),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    kinds = [2, *draw(st.lists(st.integers(0, 2), max_size=5))]
    return build_cluster(
        "random",
        [1] * len(kinds),
        rack=[int(i >= len(kinds) // 2) for i in range(len(kinds))],
        cpu_cores=[CORES[k] for k in kinds],
        memory_bytes=[int(MEMORY[k] * 2**30) for k in kinds],
    )


@st.composite
def settings_with_resources(draw: st.DrawFn, scheduler: str) -> Setting:
    setting = setting_of(
        MostFree if scheduler == "own" else named(scheduler),
        draw(workloads()),
        draw(clusters()),
        cutoff_s=draw(st.sampled_from([0.0, 4.0, math.inf])),
        long_partition=draw(st.sampled_from([1.0, 0.5])),
        network=draw(NETWORKS),
        estimates=draw(st.sampled_from([Estimates(), Estimates("random", 1.0)])),
        dynamics=draw(st.sampled_from([Dynamics(), Dynamics(mtbf_s=60.0, mttr_s=5.0, detection_s=2.0)])),
        seed=draw(st.integers(0, 2**31)),
        **draw(st.sampled_from(VARIANTS[scheduler])),
    )
    stated = setting.workload.resources
    return replace(
        setting,
        resources=tuple(name for name in stated if draw(st.booleans()) or name == stated[0]),
        passing=draw(st.sampled_from([0.0, 0.5, 5.0])),
    )


def capacity_suffices(setting: Setting, outcome: Outcome) -> None:
    """By the times of tasks alone, as fractions of nothing: amounts are counted in billionths."""
    assert outcome.tasks is not None
    node, start, finish = (outcome.tasks[name] for name in ("node", "start_ns", "finish_ns"))
    counts = np.diff(setting.workload.arrays().first_task)
    has = {
        "cpu_cores": setting.cluster.attribute("cores"),
        "memory_gib": setting.cluster.attribute("memory") / 2**30,
    }
    for name in setting.resources:
        of_job = setting.workload.jobs[name].to_pylist()
        need = np.repeat(of_job, counts).astype(float)
        if name in setting.workload.tasks.column_names:
            stated = setting.workload.tasks[name].to_pylist()
            need = np.array([a if b is None else b for a, b in zip(need, stated, strict=True)])
        need = np.rint(need * 1e9).astype(int)
        for each in range(setting.cluster.num_nodes):
            here = (node == each) & (finish > start)
            times = np.concatenate([finish[here], start[here]])
            change = np.concatenate([-need[here], need[here]])
            order = np.lexsort((change, times))
            assert np.cumsum(change[order]).max(initial=0) <= round(has[name][each] * 1e9)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_no_node_is_over_its_capacity(scheduler: str) -> None:
    @settings(max_examples=EXAMPLES)
    @given(settings_with_resources(scheduler))
    def hold(setting: Setting) -> None:
        partition = run_partition(setting, OBSERVED)
        outcome, world = partition.outcome(), partition.world
        every_task_ran_once(setting, outcome)
        capacity_suffices(setting, outcome)
        down = (
            world.faults.actors.down[: world.nodes.size]
            if world.faults.active
            else np.zeros(world.nodes.size)
        )
        up = down == 0
        assert (world.nodes.idle[up] == UNLIMITED).all()
        assert np.array_equal(world.room.free[up], world.room.capacity[up])
        assert (world.nodes.longs[up] == 0).all()

    hold()
