"""Small hard workloads and clusters, drawn by hypothesis, and what holds of every schedule."""

from __future__ import annotations

import math

import numpy as np
from emulations import VARIANTS, named, setting_of
from hypothesis import strategies as st

from actors.hosting.outcome import Outcome
from actors.kernel.compiled import config
from actors.schedulers.registry import built_in_schedulers, find_scheduler
from actors.setting import Estimates, Network, Setting
from clusters.cluster import build_cluster
from emu.families.jobs.constraint_check import check_tasks
from emu.families.jobs.results import tasks_table
from workloads.constraints import set_of_job
from workloads.jobs import make_workload

AWARE = [scheduler.name for scheduler in built_in_schedulers() if scheduler.constrained]

EXAMPLES = 8 if config.DISABLE_JIT else 25

NETWORKS = st.sampled_from(
    [
        Network(0.0),
        Network(0.0005),
        Network(1.0),
        Network(0.5, cross_rack_delay_s=2.0),
        Network(0.01, spread_s=0.5),
        Network(0.0, spread_s=1e-9),
        Network(0.25, spread_s=0.3, cross_rack_delay_s=0.75),
    ]
)
# Whole seconds and a few odd ones: many events fall on one instant, and some tasks take no time.
DURATIONS = st.one_of(st.integers(0, 6), st.sampled_from([0.0005, 2.5, 30, 45]))
JOBS = st.lists(
    st.tuples(st.one_of(st.integers(0, 4), st.floats(0, 20)), st.lists(DURATIONS, min_size=1, max_size=7)),
    min_size=1,
    max_size=12,
)


@st.composite
def settings_of(draw: st.DrawFn, scheduler: str) -> Setting:
    rows = draw(JOBS)
    workload = make_workload(
        "random", [t for t, _ in rows], [len(d) for _, d in rows], [x for _, ds in rows for x in ds]
    )
    slots = draw(st.lists(st.integers(1, 3), min_size=1, max_size=6))
    if find_scheduler(named(scheduler)).gangs:
        slots = [*slots, 7]  # for the widest job
    racks = [int(i >= len(slots) // 2) for i in range(len(slots))]
    return setting_of(
        named(scheduler),
        workload,
        build_cluster("random", slots, rack=racks),
        cutoff_s=draw(st.sampled_from([0.0, 4.0, 10.0, math.inf])),
        long_partition=draw(st.sampled_from([1.0, 0.7, 0.5])),
        network=draw(NETWORKS),
        estimates=draw(st.sampled_from([Estimates(), Estimates("constant", -0.9), Estimates("random", 1.0)])),
        seed=draw(st.integers(0, 2**31)),
        **draw(st.sampled_from(VARIANTS[scheduler])),
    )


def columns(outcome: Outcome) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    assert outcome.tasks is not None
    return outcome.tasks["node"], outcome.tasks["start_ns"], outcome.tasks["finish_ns"]


def slots_suffice(setting: Setting, outcome: Outcome) -> None:
    node, start, finish = columns(outcome)
    for each, slots in enumerate(setting.cluster.slots()):
        here = node == each
        times = np.concatenate([finish[here], start[here]])
        change = np.repeat([-1, 1], int(here.sum()))
        # An end makes room for a start at the same instant, so that of a task without length is counted there too.
        order = np.lexsort((change, times))
        assert np.cumsum(change[order]).max(initial=0) <= slots


def check_constraints_of(setting: Setting, outcome: Outcome) -> list[tuple[int, int, int]]:
    """Check the constraints of all jobs. Of those that have some: place, and the least and most that they dropped."""
    assert outcome.tasks is not None
    tasks = tasks_table(setting.workload, outcome.tasks).to_pandas()
    tasks["duration_s"] = setting.scheduler.build(setting)[0].duration / 1e9  # of stragglers, too
    checked = check_tasks(
        tasks,
        setting.workload,
        setting.cluster,
        relaxed=outcome.counters.get("jobs_relaxed", 0),
        machine_speed=setting.machine_speed,
    )
    jobs = np.flatnonzero(set_of_job(setting.workload) >= 0)
    return list(zip(jobs, checked.least_dropped, checked.most_dropped, strict=True))


def every_task_ran_once(setting: Setting, outcome: Outcome) -> None:
    node, start, finish = columns(outcome)
    arrays = setting.workload.arrays()
    assert node.min() >= 0
    assert np.array_equal(outcome.finish_ns, np.maximum.reduceat(finish, arrays.first_task[:-1]))
    assert (start >= np.repeat(arrays.submit_ns, np.diff(arrays.first_task))).all()
