"""Machines fail where tasks fetch their input over a network: by hand, and against a simulation that shares no code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from actors.hosting.outcome import Outcome
from actors.kernel.inputs import LAUNCHED
from actors.setting import Network, Setting
from clusters.cluster import build_cluster
from tests.actors.dag_settings import mixed_dags, with_bytes
from tests.actors.transfers import failing_network_simulator as other
from tests.actors.transfers.failing_runs import (
    MACHINES,
    Rows,
    attempts_of,
    failing,
    goes_on_from_checkpoints,
    holds_no_more_than_there_is,
    outages,
)
from tests.actors.transfers.test_network import GB, of_one_core, on_network
from tests.emulations import run_setting, started, steps
from workloads.dags import DagWorkload, make_dag_workload


def on_three_machines(rows: Rows, detection_s: float, heartbeat_s: float = 0.0) -> Outcome:
    """Two maps of 1 s, and two reducers of 3 s that need 4 GB each of every map, on three machines of a core."""
    work = make_dag_workload(
        "by hand", [0], [2], [2, 2], [1, 1, 3, 3], [(0, 0, 1)], cpu_cores=[1, 1], edge_bytes=[16 * GB]
    )
    return run_setting(failing(on_network(work, of_one_core(3), heartbeat_s=heartbeat_s), rows, detection_s))


def found_attempts(found: Outcome) -> list[tuple[int, int, float, float]]:
    return sorted((one.task, one.node, one.start_s, one.end_s) for one in attempts_of(found))


def test_a_machine_fails_from_which_a_task_fetches() -> None:
    # Each reducer is where a map ran, and would fetch 4 GB of the other one from 1 to 5 s. Machine 1 fails at 3 s, with
    # the first reducer and the second map's output. That is known at 4 s: then the second reducer gives up, too, and
    # the map runs again, on machine 2. At 5 s both reducers begin once more.
    found = on_three_machines([(1, 3.0, 100.0)], detection_s=1.0)
    assert found_attempts(found) == [
        (0, 0, 0, 1),
        (1, 1, 0, 1),
        (1, 2, 4, 5),
        (2, 1, 1, 3),
        (2, 2, 5, 12),
        (3, 0, 1, 4),
        (3, 0, 5, 12),
    ]
    assert found.series.fetched_ns.tolist() == [-1, -1, 9_000_000_000, 9_000_000_000]
    # Until 3 s 2 GB went each way, later 4 GB.
    assert (found.series.moved_bytes, found.series.local_bytes) == (12 * GB, 16 * GB)
    names = ("tasks_lost", "fetches_failed", "run_again", "sent_again", "launches")
    assert [found.counters[name] for name in names] == [2, 1, 1, 2, 7]
    assert found.attempts["ended"].tolist() == [1, 0, 0]


def test_what_is_lost_after_all_have_fetched_it_is_not_made_again() -> None:
    found = on_three_machines([(1, 6.0, 100.0)], detection_s=0.5)
    # The reducer on machine 0, which has its input since 5 s, goes on. The other one is lost, and needs both outputs.
    assert found_attempts(found) == [
        (0, 0, 0, 1),
        (1, 1, 0, 1),
        (1, 2, 6.5, 7.5),
        (2, 1, 1, 6),
        (2, 2, 7.5, 14.5),  # 4 GB from machine 0
        (3, 0, 1, 8),
    ]
    # When machine 0 fails the reducer there has ended: what that has made is safe.
    late = on_three_machines([(1, 7.5, 100.0), (0, 8.5, 100.0)], detection_s=0.0)
    assert found_attempts(late) == [
        (0, 0, 0, 1),
        (0, 2, 8.5, 9.5),
        (1, 1, 0, 1),
        (1, 2, 7.5, 8.5),
        (2, 1, 1, 7.5),
        (2, 2, 9.5, 12.5),  # both outputs are on its machine
        (3, 0, 1, 8),
    ]


def test_a_machine_that_is_back_before_its_failure_is_known_has_lost_its_outputs() -> None:
    found = on_three_machines([(1, 3.0, 3.5)], detection_s=9.0)
    again = [one for one in found_attempts(found) if one[0] == 1]
    assert again[1][2] == 3.5  # when it is back, it is known that it had failed
    assert found.counters["run_again"] == 1


def test_ancestors_run_again_as_far_as_their_outputs_are_lost() -> None:
    # A chain of three tasks over one-to-one edges, the first two on machine 0. It fails while the third one fetches.
    work = make_dag_workload(
        "by hand",
        [0],
        [3],
        [1, 1, 1],
        [1, 1, 1],
        [(0, 0, 1), (0, 1, 2)],
        cpu_cores=[1, 1, 2],
        edge_kind=["one-to-one", "one-to-one"],
        edge_bytes=[GB, 4 * GB],
    )
    nodes = build_cluster("machines", [1, 2], cpu_cores=[1.0, 2.0])
    found = run_setting(failing(on_network(work, nodes), [(0, 3.0, 50.0)], 1.0))
    assert found_attempts(found) == [
        (0, 0, 0, 1),
        (0, 1, 4, 5),
        (1, 0, 1, 2),
        (1, 1, 5, 6),
        (2, 1, 2, 4),
        (2, 1, 6, 7),
    ]


def drawn(
    seed: int, scheduler: str, heartbeat_s: float, delay_s: float, detection_s: float
) -> tuple[Setting, Rows]:
    """Jobs of three priorities, of two managers if `seed` is odd, on machines that fail every few seconds."""
    work = with_bytes(mixed_dags(jobs=8, seed=seed, priorities=3), seed)
    rows = outages(np.random.default_rng(seed), 40.0)
    given: dict[str, Any] = {
        "heartbeat_s": heartbeat_s,
        "managers": 1 + seed % 2,
        "priorities": seed % 3 == 0,
    }
    setting = on_network(work, MACHINES, scheduler, delay_s=delay_s, seed=seed, **given)
    return failing(setting, rows, detection_s), rows


@given(
    seed=st.integers(0, 10**6),
    scheduler=st.sampled_from(["drf", "tetris", "carbyne", "srtf", "capacity", "dagps", "heft"]),
    heartbeat_s=st.sampled_from([0.0, 1.5]),
    delay_s=st.sampled_from([0.0, 0.0005, 0.3]),
    detection_s=st.sampled_from([0.0, 0.5, 2.0]),
)
@settings(max_examples=25)
@example(1042, "heft", 0.0, 0.3, 0.5)  # a machine fails again before what it had lost is fetched
def test_attempts_become_what_another_simulation_says(
    seed: int, scheduler: str, heartbeat_s: float, delay_s: float, detection_s: float
) -> None:
    setting, rows = drawn(seed, scheduler, heartbeat_s, delay_s, detection_s)
    found = run_setting(setting)
    work, attempts = setting.workload, attempts_of(found)
    assert isinstance(work, DagWorkload)
    failures = [
        other.Failure(node, fail, repair, min(fail + detection_s, repair)) for node, fail, repair in rows
    ]
    holds_no_more_than_there_is(work, attempts, failures)
    expected = other.simulate(work.arrays(), attempts, failures, GB)
    fetched = np.array([expected.fetched_s.get(one, -1e-9) for one in attempts[: work.num_tasks]])
    assert np.allclose(found.series.fetched_ns / 1e9, fetched, rtol=0, atol=1e-6)
    assert set(attempts[: work.num_tasks]) <= set(expected.ended)
    given_up = [one for one in attempts if one in expected.given_up_s]
    assert all(abs(one.end_s - expected.given_up_s[one]) < 1e-6 for one in given_up)
    assert len(given_up) == found.counters.get("fetches_failed", 0)
    again = [one for one in attempts[work.num_tasks :] if one in expected.ended]
    assert len(again) == int(found.attempts["ended"].sum())
    for one in attempts[work.num_tasks :]:
        is_lost = any(f.node == one.node and abs(f.fail_s - one.end_s) < 1e-9 for f in failures)
        assert is_lost or one in expected.given_up_s or one in expected.ended
    if heartbeat_s == 0:  # with heartbeats an end that was not reported is lost, too
        assert found.counters.get("run_again", 0) == len(again)
        assert all(other.was_needed(work.arrays(), one, attempts, expected, failures) for one in again)


def test_input_that_a_lost_attempt_had_fetched_is_not_that_of_the_next_one() -> None:
    # Delays differ so much that a machine's message that a task has its input may come when the task is known as lost.
    for seed in range(8):
        work = with_bytes(mixed_dags(jobs=8, seed=seed), seed)
        setting = replace(on_network(work, MACHINES, seed=seed), network=Network(0.05, spread_s=0.5))
        partition = started(failing(setting, outages(np.random.default_rng(seed), 60.0), 0.0))
        for _ in steps(partition):
            inputs, book = partition.world.inputs, partition.state.schedulers.lineage
            has_input = (book.has_input == 1) & (inputs.phase == LAUNCHED)
            assert (inputs.fetched[has_input] >= 0).all()


def test_a_run_goes_on_from_checkpoints_as_it_would_have() -> None:
    setting, _ = drawn(6, "drf", 0.0, 0.0005, 0.5)
    goes_on_from_checkpoints(setting)


@pytest.mark.parametrize("scheduler", ["drf", "srtf"])
def test_a_failure_after_all_have_ended_changes_nothing(scheduler: str) -> None:
    work = with_bytes(mixed_dags(jobs=6, seed=3), 3)
    setting = on_network(work, MACHINES, scheduler, seed=3)
    whole = run_setting(replace(setting, network=Network(0.0005)))
    late = failing(replace(setting, network=Network(0.0005)), [(0, 10_000.0, 10_001.0)], 1.0)
    found = run_setting(late)
    assert found.tasks is not None
    assert whole.tasks is not None
    assert all((found.tasks[name] == whole.tasks[name]).all() for name in whole.tasks)
