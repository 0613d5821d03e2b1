"""Tasks that need resources: no node is ever over its capacity, under every scheduler, and everything is given back."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emulations import OBSERVED, VARIANTS, named, run_partition, run_setting, run_windows, setting_of
from hard_settings import DURATIONS, EXAMPLES, NETWORKS, every_task_ran_once
from hypothesis import given, settings
from hypothesis import strategies as st
from resource_check import check_run

from actors.environment import Dynamics
from actors.hosting.outcome import Outcome
from actors.kernel.room import UNLIMITED
from actors.schedulers.registry import find_scheduler
from actors.setting import Estimates, Setting
from clusters.cluster import Cluster, build_cluster
from emu.families.jobs.results import tasks_table
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

GIB = 2**30
AMOUNTS = {
    "cpu_cores": (0.0, 1e-9, 0.1, 0.3, 1.0, 2.0, 2.000000001, 4.0),
    "memory": (0.0, 0.05, 0.1, 0.3, 1 / 3, 1.0),
    "memory_gib": (0.0, 0.7, 5.0, 16.0),
    "disk_in": (0.0, 0.2, 0.5, 1.0),
    "network_out": (0.0, 0.1, 1 / 3, 0.9),
    "attr:gpus": (0.0, 1.0, 1.5, 3.0),
}
"""What tasks may need; all of it at once fits on the first node of `clusters`."""
SCHEDULERS = [*VARIANTS]


class MostFree:
    """A user's central scheduler: tasks go in turn to the nodes that they fit, those with most cores free first."""

    def place(self, job: Any, nodes: Any) -> np.ndarray:
        room = np.min([nodes.capacity[name] - job.demand[name] for name in job.demand], axis=0)
        first = next(iter(nodes.free.values()))
        order = np.argsort(-first, kind="stable")
        return np.resize(order[room[order] >= 0], job.num_tasks)


@st.composite
def workloads(draw: st.DrawFn) -> JobWorkload:
    """Jobs that state demands of one to three resources, some tasks their own, and some nothing."""
    names = draw(st.lists(st.sampled_from([*AMOUNTS]), min_size=1, max_size=3, unique=True))
    submit = draw(st.lists(st.one_of(st.integers(0, 4), st.floats(0, 20)), min_size=1, max_size=10))
    durations = [draw(st.lists(DURATIONS, min_size=1, max_size=7)) for _ in submit]
    tasks = sum(map(len, durations))

    def stated(name: str, count: int, often: int) -> list[float]:
        amounts = st.sampled_from([*AMOUNTS[name]] * often + [math.nan])
        return draw(st.lists(amounts, min_size=count, max_size=count))

    own = draw(st.sampled_from([(), *((name,) for name in names)]))
    return make_workload(
        "random",
        submit,
        [len(d) for d in durations],
        [x for ds in durations for x in ds],
        requests=Requests(
            {name: stated(name, len(submit), 2) for name in names},
            {name: stated(name, tasks, 1) for name in own},
            priority=[draw(st.integers(-1, 2)) for _ in submit],
        ),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """A node of everything, and others that lack something."""
    rest = draw(st.integers(0, 5))

    def nodes(first: Any, *others: Any) -> list[Any]:
        return [first, *draw(st.lists(st.sampled_from([first, *others]), min_size=rest, max_size=rest))]

    return build_cluster(
        "random",
        nodes(1, 3),
        rack=np.arange(1 + rest) // 2,
        cpu_cores=nodes(4.0, 1.0, 0.3, 2.0),
        memory_bytes=np.array(nodes(16, 1, 5)) * GIB,
        port_bps=nodes(1e10, 1e9, 1e10 / 3),
        min_disks=nodes(10, 1, 2),
        **{"attr:gpus": nodes("3", "", "1", "1.5")},
    )


@st.composite
def settings_with_resources(draw: st.DrawFn, scheduler: str) -> Setting:
    variants, dynamics = VARIANTS[scheduler], [Dynamics(), Dynamics(mtbf_s=60.0, mttr_s=5.0, detection_s=2.0)]
    if scheduler != "own" and find_scheduler(scheduler).gangs:  # of these, jobs that are no gangs
        variants, dynamics = variants[:1], dynamics[:1]
    setting = setting_of(
        MostFree if scheduler == "own" else named(scheduler),
        draw(workloads()),
        draw(clusters()),
        cutoff_s=draw(st.sampled_from([0.0, 4.0, math.inf])),
        long_partition=draw(st.sampled_from([1.0, 0.5])),
        network=draw(NETWORKS),
        estimates=draw(st.sampled_from([Estimates(), Estimates("random", 1.0)])),
        dynamics=draw(st.sampled_from(dynamics)),
        seed=draw(st.integers(0, 2**31)),
        **draw(st.sampled_from(variants)),
    )
    stated = setting.workload.resources
    return replace(
        setting,
        resources=tuple(name for name in stated if draw(st.booleans()) or name == stated[0]),
        passing=draw(st.sampled_from([0.0, 0.5, 5.0])),
        priorities=draw(st.booleans()),
    )


@pytest.mark.parametrize(
    "scheduler",
    ["random", "sparrow", "hawk", "eagle", "central-fifo", "central-lwl", "dist-lwl", "yacc-d", "phoenix"],
)
def test_partitions_do_not_change_what_tasks_get(scheduler: str) -> None:
    """With failures and priorities: the same node, start and end of each task in one partition and in three."""
    rng = np.random.default_rng(5)
    counts = rng.integers(1, 6, 60)
    tasks = int(counts.sum())
    workload = make_workload(
        "sixty",
        np.sort(rng.uniform(0, 60, 60)),
        counts,
        rng.exponential(8, tasks),
        requests=Requests(
            {"cpu_cores": rng.choice([0.5, 1, 3], 60), "memory_gib": rng.uniform(0.5, 10, 60)},
            {"cpu_cores": rng.choice([math.nan, 0.25], tasks)},
            priority=rng.integers(0, 4, 60),
        ),
    )
    cluster = build_cluster("twelve", [1] * 12, cpu_cores=[4.0, 8.0] * 6, memory_bytes=[16 << 30] * 12)
    setting = setting_of(
        scheduler,
        workload,
        cluster,
        cutoff_s=10.0,
        network=0.25,
        dynamics=Dynamics(mtbf_s=200.0, mttr_s=10.0, detection_s=1.0),
    )
    setting = replace(setting, resources=workload.resources, passing=2.0, priorities=True)
    whole, parts = run_setting(setting), run_windows(setting, OBSERVED, 3)
    assert whole.tasks is not None
    assert parts.tasks is not None
    capacity_suffices(setting, whole)
    for name, values in whole.tasks.items():
        assert np.array_equal(values, parts.tasks[name]), name


def capacity_suffices(setting: Setting, outcome: Outcome) -> None:
    """By the table of tasks alone."""
    assert outcome.tasks is not None
    run = tasks_table(setting.workload, outcome.tasks)
    check_run(run, setting.workload, setting.cluster, resources=setting.resources)


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
