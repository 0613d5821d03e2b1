"""Machines fail where tasks fetch their input over a network: beside a simulation, and what must hold of each run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from actors.hosting.outcome import Outcome
from actors.inputs import ENDED, LAUNCHED
from actors.setting import Network, Setting
from actors.stages import is_kept, lacks_input
from tests.actors.checkpointing import digest_with_restores
from tests.actors.dag_settings import mixed_dags, with_bytes
from tests.actors.transfers.failing_runs import Rows, attempts_of, failing, outages
from tests.actors.transfers.network_simulator import (
    Attempt,
    Failure,
    Found,
    inputs_of,
    needed_tasks,
    simulate,
    was_needed,
)
from tests.actors.transfers.network_simulator import Network as Simulated
from tests.actors.transfers.own_coordinators import FirstComes, LeastLeft
from tests.actors.transfers.runs import COORDINATORS, GB, holds_what_it_has, over
from tests.emulations import OBSERVED, digest, run_setting, started, steps

ALL = (*COORDINATORS, FirstComes, LeastLeft)
CASES: dict[str, st.SearchStrategy[Any]] = {
    "seed": st.integers(0, 10**6),
    "heartbeat_s": st.sampled_from([0.0, 1.5]),
    "delay_s": st.sampled_from([0.0, 0.0005, 0.3]),
    "detection_s": st.sampled_from([0.0, 0.5, 2.0]),
}
OF_JOBS = (("sparrow", "batch-late"), ("sparrow", "batch"), ("sparrow", "per-task"), ("random", ""))
"""Schedulers of jobs under which what is lost runs again, with values of `sampling`."""


def drawn(
    network: Any, seed: int, scheduler: str, heartbeat_s: float, delay_s: float, detection_s: float
) -> tuple[Setting, Rows]:
    """Jobs of three priorities, of two managers if `seed` is odd, on machines that fail every few seconds."""
    work = with_bytes(mixed_dags(jobs=8, seed=seed, priorities=3), seed)
    rows = outages(np.random.default_rng(seed), 40.0)
    given: dict[str, Any] = {
        "heartbeat_s": heartbeat_s,
        "managers": 1 + seed % 2,
        "priorities": seed % 3 == 0,
        "waves": ("together", "apart")[seed % 2],
        "rows": (1, 1024)[seed % 3 > 0],
    }
    setting = over(network, work, scheduler=scheduler, delay_s=delay_s, seed=seed, **given)
    return failing(setting, rows, detection_s), rows


def drawn_of_jobs(
    network: Any, seed: int, which: tuple[str, str], delay_s: float, detection_s: float
) -> tuple[Setting, Rows]:
    """The same under a scheduler of jobs, one or three of them."""
    work = with_bytes(mixed_dags(jobs=8, seed=seed, priorities=3), seed)
    rows, (scheduler, sampling) = outages(np.random.default_rng(seed), 40.0), which
    given: dict[str, Any] = {
        "schedulers": (1, 3)[seed % 2],
        "priorities": seed % 3 == 0,
        "waves": ("together", "apart")[seed % 2],
        "short_cutoff_s": 3.0,
        **({"sampling": sampling} if sampling else {"long_partition": 0.8}),
    }
    return failing(
        over(network, work, scheduler=scheduler, delay_s=delay_s, seed=seed, **given), rows, detection_s
    ), rows


def failures_of(rows: Rows, detection_s: float) -> list[Failure]:
    return [Failure(node, fail, repair, min(fail + detection_s, repair)) for node, fail, repair in rows]


def is_lost(one: Attempt, failures: list[Failure]) -> bool:
    """Whether an attempt ended as its machine failed."""
    return any(f.node == one.node and abs(f.fail_s - one.end_s) < 1e-9 for f in failures)


def holds(setting: Setting, found: Outcome, failures: list[Failure]) -> list[Attempt]:
    """Check that tasks hold no more than a machine has, and nothing while it is down; return the attempts."""
    attempts, tasks = attempts_of(found), found.tasks
    assert tasks is not None
    columns = [tasks[name] for name in ("node", "start_ns", "finish_ns")]
    again = [found.attempts[name] for name in ("node", "start", "end")]
    number = np.append(np.arange(setting.num_tasks), found.attempts["task"])
    node, start, end = (np.append(of, more) for of, more in zip(columns, again, strict=True))
    holds_what_it_has(setting, node, start, end, number)
    for f in failures:
        assert not any(
            one.node == f.node and one.start_s < f.repair_s and one.end_s > f.fail_s for one in attempts
        )
    return attempts


@given(scheduler=st.sampled_from(["drf", "tetris", "carbyne", "srtf", "capacity", "dagps", "heft"]), **CASES)
@settings(max_examples=15)
# A machine fails again before what it had lost is fetched.
@example(seed=1042, scheduler="heft", heartbeat_s=0.0, delay_s=0.3, detection_s=0.5)
def test_attempts_become_what_another_simulation_says(
    seed: int, scheduler: str, heartbeat_s: float, delay_s: float, detection_s: float
) -> None:
    setting, rows = drawn("fair", seed, scheduler, heartbeat_s, delay_s, detection_s)
    found, failures = run_setting(setting), failures_of(rows, detection_s)
    again, attempts, expected = became(setting, found, failures)
    if heartbeat_s == 0:  # with heartbeats an end that was not reported is lost, too
        assert found.counters.get("run_again", 0) == len(again)
        arrays = setting.workload.arrays()
        assert all(was_needed(arrays, one, attempts, expected, failures) for one in again)


@given(
    which=st.sampled_from(OF_JOBS),
    seed=CASES["seed"],
    delay_s=CASES["delay_s"],
    detection_s=CASES["detection_s"],
)
@settings(max_examples=15)
# A task that was bound to a node is launched there as what it needs runs again; and gives up at once.
@example(which=("sparrow", "per-task"), seed=8, delay_s=0.0, detection_s=2.0)
@example(which=("sparrow", "batch-late"), seed=2, delay_s=0.3, detection_s=0.5)
def test_stage_by_stage_attempts_become_what_another_simulation_says(
    which: tuple[str, str], seed: int, delay_s: float, detection_s: float
) -> None:
    setting, rows = drawn_of_jobs("fair", seed, which, delay_s, detection_s)
    found, failures, arrays = run_setting(setting), failures_of(rows, detection_s), setting.workload.arrays()
    if fetches_look_alike(arrays, attempts_of(found)):
        hold_under_a_coordinator(setting, failures)
        return
    again, attempts, expected = became(setting, found, failures)
    assert found.counters.get("run_again", 0) == len(again)
    assert all(was_needed(arrays, one, attempts, expected, failures) for one in again)


def fetches_look_alike(arrays: Any, attempts: list[Attempt]) -> bool:
    """Whether tasks of a stage were launched on a machine at an instant before and after another gave up there."""
    stage_of = np.repeat(np.arange(arrays.stage_first_task.size - 1), np.diff(arrays.stage_first_task))
    at_once = {(one.node, one.start_s) for one in attempts if one.end_s == one.start_s}
    beside = [one for one in attempts if (one.node, one.start_s) in at_once and one.end_s > one.start_s]
    return len({(one.node, one.start_s, stage_of[one.task]) for one in beside}) < len(beside)


def became(
    setting: Setting, found: Outcome, failures: list[Failure]
) -> tuple[list[Attempt], list[Attempt], Found]:
    """Check what became of attempts; return those that had ended, of tasks that ran again, all, and what is said."""
    work = setting.workload
    attempts = holds(setting, found, failures)
    expected = simulate(work.arrays(), attempts, Simulated(GB), failures)
    fetched = np.array([expected.fetched_s.get(one, -1e-9) for one in attempts[: work.num_tasks]])
    assert np.allclose(found.series.fetched_ns / 1e9, fetched, rtol=0, atol=1e-6)
    assert set(attempts[: work.num_tasks]) <= set(expected.ended)
    given_up = [one for one in attempts if one in expected.given_up_s]
    assert all(abs(one.end_s - expected.given_up_s[one]) < 1e-6 for one in given_up)
    assert len(given_up) == found.counters.get("fetches_failed", 0)
    again = [one for one in attempts[work.num_tasks :] if one in expected.ended]
    assert len(again) == int(found.attempts["ended"].sum())
    for one in attempts[work.num_tasks :]:
        assert is_lost(one, failures) or one in expected.given_up_s or one in expected.ended
    return again, attempts, expected


@given(
    coordinator=st.sampled_from(ALL), scheduler=st.sampled_from(["drf", "tetris", "carbyne", "srtf"]), **CASES
)
@settings(max_examples=25)
def test_what_must_hold_under_a_coordinator(
    seed: int, coordinator: Any, scheduler: str, heartbeat_s: float, delay_s: float, detection_s: float
) -> None:
    setting, rows = drawn(coordinator, seed, scheduler, heartbeat_s, delay_s, detection_s)
    hold_under_a_coordinator(setting, failures_of(rows, detection_s), heartbeat_s)


@given(
    coordinator=st.sampled_from(ALL),
    which=st.sampled_from(OF_JOBS),
    seed=CASES["seed"],
    delay_s=CASES["delay_s"],
    detection_s=CASES["detection_s"],
)
@settings(max_examples=25)
def test_stage_by_stage_the_same_must_hold_under_a_coordinator(
    coordinator: Any, which: tuple[str, str], seed: int, delay_s: float, detection_s: float
) -> None:
    setting, rows = drawn_of_jobs(coordinator, seed, which, delay_s, detection_s)
    hold_under_a_coordinator(setting, failures_of(rows, detection_s))


def hold_under_a_coordinator(setting: Setting, failures: list[Failure], heartbeat_s: float = 0.0) -> None:
    found, work = run_setting(setting), setting.workload
    attempts = holds(setting, found, failures)
    last, others = attempts[: work.num_tasks], attempts[work.num_tasks :]
    ended = [one for one, row in zip(others, found.attempts, strict=True) if row["ended"]]
    given_up = [one for one in others if one not in ended and not is_lost(one, failures)]
    assert len(given_up) == found.counters.get("fetches_failed", 0)
    assert heartbeat_s > 0 or len(ended) == found.counters.get("run_again", 0)
    for one in given_up:
        assert one.end_s == one.start_s or any(abs(f.detected_s - one.end_s) < 1e-6 for f in failures)
    for one, fetched_ns in zip(last, found.series.fetched_ns.tolist(), strict=True):
        has_input_in_time(work.arrays(), one, fetched_ns / 1e9, [*last, *ended], failures)


def has_input_in_time(
    arrays: Any, one: Attempt, fetched_s: float, ended: list[Attempt], failures: list[Failure]
) -> None:
    """Check that all that a task needs was there when it was launched, and could be sent before machines failed."""
    stage = int(np.searchsorted(arrays.stage_first_task, one.task, side="right")) - 1
    where = np.full(arrays.duration_ns.size, -1)
    for other in sorted(ended, key=lambda other: other.end_s):
        if other.end_s <= one.start_s:
            where[other.task] = other.node
    needed = np.zeros(where.max(initial=one.node) + 1)
    for task, parent, of in inputs_of(arrays, stage, where):
        if task == one.task:
            for source in needed_tasks(arrays, stage, parent, task):
                last_s = max(o.end_s for o in ended if o.task == source and o.end_s <= one.start_s)
                assert not any(
                    f.node == where[source] and last_s <= f.fail_s <= one.start_s for f in failures
                )
            for node, size in of.items():
                needed[node] += size * (node != one.node)
    assert not needed.any() or fetched_s - one.start_s >= needed.sum() / GB - 1e-6
    for f in failures:
        if f.node < needed.size and needed[f.node] > 0 and one.start_s < f.fail_s < fetched_s:
            assert f.fail_s - one.start_s >= needed[f.node] / GB - 1e-6


def test_what_the_manager_knows_of_inputs_and_of_outputs_is_so() -> None:
    # Delays differ so much that a machine's message that a task has its input may come when the task is known as lost,
    # and that of an end when the machine is known to have failed since.
    for seed in range(16):
        work = with_bytes(mixed_dags(jobs=8, seed=seed), seed)
        scheduler = "drf" if seed < 8 else "sparrow"
        setting = replace(
            over("fair", work, scheduler=scheduler, seed=seed), network=Network(0.05, spread_s=0.5)
        )
        partition = started(failing(setting, outages(np.random.default_rng(seed), 60.0), 0.0))
        needs = list(needs_of(work.arrays(), partition.world.inputs))
        for _ in steps(partition):
            world, book = partition.world, partition.world.stages.lineage
            has_input = (book.has_input == 1) & (world.inputs.phase == LAUNCHED)
            assert (world.inputs.fetched[has_input] >= 0).all()
            ended = np.flatnonzero(world.inputs.phase == ENDED).tolist()
            lost = {task for task in ended if not is_kept(world, task)}
            # A scheduler of jobs finds what runs again when all that happens at an instant is known.
            for tasks, task in needs if lost and not book.due.any() else ():
                assert lost.isdisjoint(tasks) or not lacks_input(world, task)


def needs_of(arrays: Any, inputs: Any) -> Iterator[tuple[range, int]]:
    """Yield, of each task and each edge with bytes to its stage, whose outputs it needs."""
    for stage in range(inputs.first_parent.size - 1):
        first, end = arrays.stage_first_task[stage : stage + 2].tolist()
        for edge in range(*inputs.first_parent[stage : stage + 2]):
            parent = int(inputs.parent[edge])
            if parent >= 0 and inputs.size[edge] > 0:
                for task in range(first, end):
                    yield range_of(arrays, parent, task - first if inputs.one_to_one[edge] else None), task


def range_of(arrays: Any, stage: int, place: int | None) -> range:
    """Return the tasks of a stage, or the one at a place."""
    first, end = arrays.stage_first_task[stage : stage + 2].tolist()
    return range(first, end) if place is None else range(first + place, first + place + 1)


@pytest.mark.parametrize("scheduler", ["sparrow", "hawk", "eagle", "central-lwl"])
def test_stage_by_stage_lost_tasks_run_again_before_children_start(scheduler: str) -> None:
    work = mixed_dags(jobs=10)
    given = {"delay_s": 0.0005, "short_cutoff_s": 3.0, "long_partition": 0.8}
    setting = failing(over("none", work, scheduler=scheduler, **given), [(0, 12, 30), (1, 4, 9)], 1.0)
    found, arrays = run_setting(setting), work.arrays()
    assert found.counters["tasks_lost"] > 0
    assert found.tasks is not None
    for stage in range(work.num_stages):
        own = found.tasks["start_ns"][slice(*arrays.stage_first_task[stage : stage + 2])]
        for parent in arrays.parent[slice(*arrays.first_parent[stage : stage + 2])]:
            ended = found.tasks["finish_ns"][slice(*arrays.stage_first_task[parent : parent + 2])].max()
            assert (own >= ended).all()


@pytest.mark.slow("the conformance suite tries it in small cases")
@pytest.mark.parametrize("network", ["fair", "sebf", "aalo", "philae", FirstComes])
def test_a_run_goes_on_from_checkpoints_as_it_would_have(network: Any) -> None:
    setting, _ = drawn(network, 6, "drf", 0.0, 0.0005, 0.5)
    goes_on(setting)


@pytest.mark.slow("the same by stages")
@pytest.mark.parametrize("which", OF_JOBS)
def test_stage_by_stage_a_run_goes_on_from_checkpoints(which: tuple[str, str]) -> None:
    goes_on(drawn_of_jobs("fair", 0, which, 0.0005, 0.5)[0])


def goes_on(setting: Setting) -> None:
    whole = run_setting(setting, OBSERVED)
    assert whole.counters["run_again"] > 0
    assert whole.counters["fetches_failed"] > 0
    again, moves = digest_with_restores(setting, seed=6)
    assert moves > 5
    assert again == digest(whole)
