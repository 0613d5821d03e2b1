"""How many probes and messages a task takes under each policy, and which policies leave no node idle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from emulations import OBSERVED, VARIANTS, run_setting, setting_of
from hard_settings import EXAMPLES, JOBS, columns, settings_of
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.hosting.partition import Outcome
from actors.schedulers.jobs.build import long_jobs
from actors.setting import Setting
from workloads.jobs import make_workload

NS = 1_000_000_000

# Bound at once a task is one hop away from its scheduler; a probe, a request and an answer are three.
GANGS = ("central-fcfs-gang", "easy", "conservative")
BOUND = {"random", "central-fifo", *GANGS, "central-lwl", "dist-lwl", "yacc-d", "own"}
PROBES_SHORT = ("hawk", "eagle", "ideal-eagle", "phoenix", "phoenix-released")


@pytest.mark.parametrize("scheduler", VARIANTS)
def test_probes_and_messages_are_those_of_the_policy(scheduler: str) -> None:
    # Settings are drawn inside, so that every scheduler has its own examples.
    @settings(max_examples=EXAMPLES)
    @given(settings_of(scheduler))
    def hold(setting: Setting) -> None:
        outcome = run_setting(setting, OBSERVED)
        no_task_is_early(setting, outcome, 1 if scheduler in BOUND else 3)
        counters_add_up(scheduler, setting, outcome)

    hold()


def first_tasks(setting: Setting) -> np.ndarray:
    return setting.workload.arrays().first_task


def job_of_task(setting: Setting) -> np.ndarray:
    return np.repeat(np.arange(setting.workload.num_jobs), np.diff(first_tasks(setting)))


def submit_of_task(setting: Setting) -> np.ndarray:
    return setting.workload.arrays().submit_ns[job_of_task(setting)]


def no_task_is_early(setting: Setting, outcome: Outcome, hops: int) -> None:
    _, start, _ = columns(outcome)
    if setting.parameters.get("late_binding"):
        hops = 3
    elif setting.scheduler.name in PROBES_SHORT:
        hops = np.where(long_jobs(setting)[job_of_task(setting)], 1, 3)
    least = round(setting.network.delay_s * NS)
    assert (start >= submit_of_task(setting) + hops * least).all()


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
