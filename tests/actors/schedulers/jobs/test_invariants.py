"""What holds for every scheduler, tried on small hard workloads and clusters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from emulations import OBSERVED, VARIANTS, run_partition, run_setting, setting_of
from hard_settings import EXAMPLES, JOBS, columns, settings_of, slots_suffice
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.hosting.partition import Outcome, Partition
from actors.kernel.counters import N_ARRIVED, N_FINISHED, N_STARTED
from actors.kernel.world import NONE
from actors.schedulers.jobs.build import long_jobs
from actors.setting import Setting
from workloads.jobs import make_workload

NS = 1_000_000_000

# Bound at once a task is one hop away from its scheduler; a probe, a request and an answer are three.
GANGS = ("central-fcfs-gang", "easy", "conservative")
BOUND = {"random", "central-fifo", *GANGS, "central-lwl", "dist-lwl", "yacc-d", "own"}
PROBES_SHORT = ("hawk", "eagle", "ideal-eagle", "phoenix", "phoenix-released")
KEEPS_PARTITION = {"random", "central-lwl", "dist-lwl", "yacc-d", *PROBES_SHORT}


@pytest.mark.parametrize("scheduler", VARIANTS)
def test_invariants(scheduler: str) -> None:
    # Settings are drawn inside, so that every scheduler has its own examples.
    @settings(max_examples=EXAMPLES)
    @given(settings_of(scheduler))
    def hold(setting: Setting) -> None:
        partition = run_partition(setting, OBSERVED)
        outcome = partition.outcome()
        tasks_run_once(setting, outcome, partition.world.counts)
        nothing_is_left(setting, partition)
        slots_suffice(setting, outcome)
        no_task_is_early(setting, outcome, 1 if scheduler in BOUND else 3)
        if scheduler in KEEPS_PARTITION:
            long_tasks_keep_off_the_short_partition(setting, outcome)
        jobs_follow_their_tasks(setting, outcome)
        timeline_counts_tasks(setting, outcome)
        counters_add_up(scheduler, setting, outcome)

    hold()


def first_tasks(setting: Setting) -> np.ndarray:
    return setting.workload.arrays().first_task


def job_of_task(setting: Setting) -> np.ndarray:
    return np.repeat(np.arange(setting.workload.num_jobs), np.diff(first_tasks(setting)))


def submit_of_task(setting: Setting) -> np.ndarray:
    return setting.workload.arrays().submit_ns[job_of_task(setting)]


def tasks_run_once(setting: Setting, outcome: Outcome, counts: np.ndarray) -> None:
    """A second run of a task would be counted; one that never ran would leave its row at zero."""
    node, start, finish = columns(outcome)
    assert np.array_equal(finish - start, setting.workload.arrays().duration_ns)
    assert node.min() >= 0
    assert node.max() < setting.cluster.num_nodes
    is_long = outcome.is_long[job_of_task(setting)]
    by_class = [int((~is_long).sum()), int(is_long.sum())]
    for which in (N_ARRIVED, N_STARTED, N_FINISHED):
        assert counts[which : which + 2].tolist() == by_class


def nothing_is_left(setting: Setting, partition: Partition) -> None:
    """Every slot is idle again, every queue empty, and every entry of the pool free."""
    world = partition.world
    assert np.array_equal(world.nodes.idle, setting.cluster.slots())
    assert (world.nodes.longs == 0).all()
    assert (world.nodes.running == NONE).all() or setting.cluster.max_slots > 1
    queued = set()
    for entry in world.nodes.head:
        while entry != NONE:
            queued.add(int(entry))
            entry = world.entries.next[entry]
    free, entry = set(), int(world.entries.next[0])
    while entry != NONE:
        free.add(entry)
        entry = int(world.entries.next[entry])
    assert not queued
    assert free == set(range(1, int(world.entries.job[0])))


def no_task_is_early(setting: Setting, outcome: Outcome, hops: int) -> None:
    _, start, _ = columns(outcome)
    if setting.parameters.get("late_binding"):
        hops = 3
    elif setting.scheduler.name in PROBES_SHORT:
        hops = np.where(long_jobs(setting)[job_of_task(setting)], 1, 3)
    least = round(setting.network.delay_s * NS)
    assert (start >= submit_of_task(setting) + hops * least).all()


def long_tasks_keep_off_the_short_partition(setting: Setting, outcome: Outcome) -> None:
    node, _, _ = columns(outcome)
    first = setting.cluster.partition(setting.long_partition)
    assert (node[long_jobs(setting)[job_of_task(setting)]] >= first).all()


def jobs_follow_their_tasks(setting: Setting, outcome: Outcome) -> None:
    _, start, finish = columns(outcome)
    first = first_tasks(setting)[:-1]
    assert np.array_equal(outcome.start_ns, np.minimum.reduceat(start, first))
    assert np.array_equal(outcome.finish_ns, np.maximum.reduceat(finish, first))
    arrays = setting.workload.arrays()
    assert np.array_equal(outcome.is_long, arrays.mean_ns > setting.short_cutoff_s * NS)


def timeline_counts_tasks(setting: Setting, outcome: Outcome) -> None:
    """A sample at t shows what has happened before t, and nothing that happens at t."""
    _, start, finish = columns(outcome)
    submit, is_long = submit_of_task(setting), outcome.is_long[job_of_task(setting)]
    timeline = outcome.timeline
    for i, t in enumerate(np.rint(timeline["time_s"] * NS).astype(np.int64)):
        queued = (submit < t) & (start >= t)
        running = (start < t) & (finish >= t)
        for name, of_class in (("short", ~is_long), ("long", is_long)):
            assert timeline[f"queued_{name}"][i] == (queued & of_class).sum()
            assert timeline[f"running_{name}"][i] == (running & of_class).sum()
        assert timeline["utilisation"][i] == running.sum() / setting.cluster.total_slots
    if outcome.finish_ns.max() > setting.workload.arrays().submit_ns[0] + 5 * NS:
        assert timeline["time_s"].size > 0
        assert np.allclose(np.diff(timeline["time_s"]), 5.0)


def counters_add_up(scheduler: str, setting: Setting, outcome: Outcome) -> None:
    counters, parameters = outcome.counters, setting.parameters
    tasks, long = np.diff(first_tasks(setting)), long_jobs(setting)
    late = parameters.get("late_binding", False)
    by_probe = {
        "sparrow": np.ones_like(long),
        "central-lwl": np.full_like(long, late),
        "dist-lwl": np.full_like(long, late),
        **dict.fromkeys(PROBES_SHORT, ~long),
    }.get(scheduler, np.zeros_like(long))
    placed = int(tasks[~by_probe].sum())
    if parameters.get("sampling", "batch-late") != "batch-late":
        by_probe, placed = np.ones_like(long), int(tasks.sum())
    ratio, least = parameters.get("probe_ratio", 1.0), parameters.get("least_probes", 1)
    if parameters.get("sampling") == "per-task":
        ratio = math.ceil(ratio)
    probes = int(np.maximum(np.ceil(ratio * tasks[by_probe]), least).sum())
    if late and scheduler in PROBES_SHORT:
        probes, placed = probes + placed, 0
    assert counters.get("probes", 0) == probes
    assert counters.get("placements", 0) == placed
    assert counters.get("probes_again", 0) == counters.get("rejections", 0)
    assert counters.get("steals", 0) <= counters.get("stolen_probes", 0)
    assert counters.get("steals", 0) <= counters.get("steal_attempts", 0)
    if scheduler == "sparrow" and placed == 0:  # every probe asks once, and is answered by a task or by none
        assert counters.get("empty_answers", 0) == probes - int(tasks.sum())
    if scheduler == "hawk":
        assert counters.get("empty_answers", 0) == probes + placed - int(tasks.sum())
        if parameters["steal_attempts"] == 0:
            assert "steal_attempts" not in counters
        assert counters.get("stolen_probes", 0) <= counters.get("steals", 0) * parameters["steal_limit"]
    if scheduler == "eagle" and parameters["reprobe_rounds"] == 0:
        assert counters.get("rejections", 0) <= probes


@settings(max_examples=EXAMPLES)
@given(rows=JOBS, slots=st.lists(st.integers(1, 3), min_size=1, max_size=5))
def test_invariants_central_fifo_conserves_work_and_keeps_the_order(rows: Any, slots: list[int]) -> None:
    workload = make_workload(
        "random", [t for t, _ in rows], [len(d) for _, d in rows], [x for _, ds in rows for x in ds]
    )
    setting = setting_of("central-fifo", workload, slots, network=0.0)
    outcome = run_setting(setting)
    _, start, finish = columns(outcome)
    submit, total = submit_of_task(setting), sum(slots)
    assert (np.diff(start) >= 0).all()
    for t in np.unique(np.concatenate([submit, start, finish])):
        # Right after t, until the next event.
        running = ((start <= t) & (finish > t)).sum()
        waiting = ((submit <= t) & (start > t)).sum()
        assert waiting == 0 or running == total


@settings(max_examples=EXAMPLES)
@given(rows=JOBS, nodes=st.integers(1, 5))
def test_invariants_a_node_of_sparrow_is_never_idle_with_work_to_do_at_zero_delay(
    rows: Any, nodes: int
) -> None:
    # Probes of every job at every node: no node may be idle while a job has a task that no node runs.
    workload = make_workload(
        "random", [t for t, _ in rows], [len(d) for _, d in rows], [x for _, ds in rows for x in ds]
    )
    setting = setting_of("sparrow", workload, nodes, network=0.0, probe_ratio=float(nodes))
    _, start, finish = columns(run_setting(setting))
    submit = submit_of_task(setting)
    for t in np.unique(np.concatenate([submit, start, finish])):
        running = ((start <= t) & (finish > t)).sum()
        waiting = ((submit <= t) & (start > t)).sum()
        assert waiting == 0 or running == nodes
