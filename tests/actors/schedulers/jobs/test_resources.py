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
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests
from workloads.transform.primitives import joined

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


def started(
    scheduler: str, rows: list[tuple[float, list[float], Requests]], cluster: Cluster, **settings: Any
) -> list[tuple[int, float]]:
    """Return node and start (s) of each task of jobs that arrive at these times, with what each asks for."""
    extra = {name: settings.pop(name) for name in ("passing", "priorities", "resources") if name in settings}
    made = [make_workload("one", [t], [len(d)], d, requests=asked) for t, d, asked in rows]
    workload = joined(made)
    setting = setting_of(scheduler, workload, cluster, cutoff_s=math.inf, **settings)
    setting = replace(setting, **{"resources": workload.resources} | extra)
    tasks = run_setting(setting).tasks
    assert tasks is not None
    return [(int(n), t / 1e9) for n, t in zip(tasks["node"], tasks["start_ns"], strict=True)]


def cores(amount: float, **more: Any) -> Requests:
    return Requests({"cpu_cores": [amount]}, **more)


FOUR_CORES = build_cluster("four", [1], cpu_cores=4.0, memory_bytes=8 << 30)


@pytest.mark.parametrize(
    ("passing", "due"),
    [
        (0.0, [0, 10, 10, 10]),  # the second needs 2 cores, 1 is free: all behind it wait
        (5.0, [0, 10, 2, 3]),  # the others may pass it by 25 s of work
        (0.3, [0, 10, 2, 10]),  # by 1.5 s: after the third, of 1 s, none may
        (0.1, [0, 10, 10, 10]),  # by 0.5 s, less than the third takes
    ],
)
def test_what_fits_passes_what_does_not_within_its_bound(passing: float, due: list[float]) -> None:
    rows = [(0, [10], cores(3)), (1, [5], cores(2)), (2, [1], cores(1)), (3, [1], cores(1))]
    found = started("central-lwl", rows, FOUR_CORES, network=0.0, passing=passing)
    assert found == [(0, t) for t in due]


def test_the_scarcest_resource_decides() -> None:
    asked = Requests({"cpu_cores": [1.0], "memory_gib": [5.0]})
    rows = [(0, [4.0, 4.0], asked)]
    assert started("central-lwl", rows, FOUR_CORES, network=0.0) == [(0, 0), (0, 4)]
    assert started("central-lwl", rows, FOUR_CORES, network=0.0, resources=("cpu_cores",)) == [(0, 0), (0, 0)]


def test_a_probe_holds_the_most_that_a_task_of_its_job_needs_until_the_task_is_there() -> None:
    """The first probe holds 3 of 4 cores until its task, of 1 core, comes after 3 delays; then the second asks."""
    rows = [(0, [9.0, 9.0], Requests({}, {"cpu_cores": [1.0, 3.0]}))]
    assert started("sparrow", rows, FOUR_CORES, network=1.0) == [(0, 3), (0, 5)]


TWO_AND_EIGHT = build_cluster("two and eight", [1, 1], cpu_cores=[2.0, 8.0])


def test_tasks_go_only_where_they_ever_fit() -> None:
    rows = [(0, [5.0, 5.0, 5.0], cores(3))]
    for scheduler in ("central-lwl", "random", "hawk"):
        assert started(scheduler, rows, TWO_AND_EIGHT, network=0.0)[:2] == [(1, 0), (1, 0)]


def test_the_work_of_a_task_counts_by_the_part_of_the_node_that_it_takes() -> None:
    """8 s on half of the first node are 4 s of it, on an eighth of the second 1 s: the third and fourth go there."""
    rows = [(t, [8.0], cores(1)) for t in (0.0, 0.1, 0.2, 0.3)]
    assert [node for node, _ in started("central-lwl", rows, TWO_AND_EIGHT, network=0.0)] == [0, 1, 1, 1]


@pytest.mark.parametrize("scheduler", ["sparrow", "eagle", "central-lwl", "dist-lwl"])
def test_the_higher_priority_goes_first_and_does_not_interrupt(scheduler: str) -> None:
    rows = [(t, [10.0], Requests(priority=[p])) for t, p in ((0, 0), (1, 0), (2, 5), (3, 9), (4, 5))]
    one = build_cluster("one", [1])
    order = [0, 40, 20, 10, 30]
    found = started(scheduler, rows, one, network=0.0, priorities=True)
    assert found == [(0, t) for t in order]
    assert started(scheduler, rows, one, network=0.0) == [(0, t) for t in (0, 10, 20, 30, 40)]


def test_a_node_of_a_user_s_scheduler_must_have_what_a_task_needs() -> None:
    class First:
        def place(self, job: Any, nodes: Any) -> np.ndarray:
            return np.zeros(job.num_tasks, int)

    with pytest.raises(
        InputError, match=r"returned node 0 for job 0, whose tasks need 3 of cpu_cores; the node has 2"
    ):
        started(First, [(0, [1.0], cores(3))], TWO_AND_EIGHT)


def test_a_task_that_fits_on_no_node_is_refused() -> None:
    with pytest.raises(InputError, match=r"job 0: a task needs 9 of cpu_cores \(the most of a node is 8\)"):
        started("sparrow", [(0, [1.0], cores(9))], TWO_AND_EIGHT)


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
