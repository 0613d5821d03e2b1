"""Machines fail where tasks fetch their input under a coordinator of coflows: by hand, and what must hold."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.setting import Setting
from clusters.cluster import build_cluster
from tests.actors.dag_settings import mixed_dags, two_shuffles, with_bytes
from tests.actors.transfers.failing_network_simulator import Attempt, Failure
from tests.actors.transfers.failing_runs import (
    MACHINES,
    attempts_of,
    failing,
    goes_on_from_checkpoints,
    holds_no_more_than_there_is,
    outages,
)
from tests.actors.transfers.own_coordinators import FirstComes, LeastLeft
from tests.actors.transfers.test_coordinated import COORDINATORS, GB, under
from tests.emulations import run_setting
from workloads.dags import DagWorkload

ALL = (*COORDINATORS, FirstComes, LeastLeft)


@pytest.mark.parametrize("coordinator", ["fair", *ALL])
def test_what_a_receiver_that_fails_would_have_got_goes_to_others(coordinator: Any) -> None:
    # Machine 0 sends 1 GB to machine 1 and 2 GB to machine 2 from 1 s on, in 3 s. Machine 1 fails at 1.5 s, with half
    # of its GB, or a quarter under fair sharing. So the other one has its input at 3.5 s, or 3.25 s.
    nodes = build_cluster("machines", [2, 4, 4], cpu_cores=[2.0, 4.0, 4.0])
    setting = under(coordinator, two_shuffles(1, 2), nodes)
    found = run_setting(failing(setting, [(1, 1.5, 100.0)], 0.5))
    assert found.tasks is not None
    fetched_s = found.series.fetched_ns[3] / 1e9
    assert 3.24 < fetched_s < 3.53
    # The first reducer, lost at 1.5 s, runs when machine 2 has room again, and fetches the whole GB.
    assert found.tasks["node"].tolist() == [0, 2, 0, 2]
    assert found.tasks["start_ns"][1] == found.tasks["finish_ns"][3] > 4e9
    assert 1.0 <= (found.series.fetched_ns[1] - found.tasks["start_ns"][1]) / 1e9 < 1.02
    # Machine 0 sends without a pause until the other one has its input.
    assert found.series.moved_bytes == pytest.approx((fetched_s - 1 + 1) * GB, rel=0.02)


@pytest.mark.parametrize("coordinator", ALL)
def test_a_fetch_from_a_machine_that_fails_is_given_up(coordinator: Any) -> None:
    # Machine 0 fails at 2 s with both maps' outputs. That is known at 2.5 s: both reducers give up, both maps run again
    # on the machines of the reducers, and these fetch again.
    nodes = build_cluster("machines", [2, 4, 4], cpu_cores=[2.0, 4.0, 4.0])
    found = run_setting(failing(under(coordinator, two_shuffles(3, 3), nodes), [(0, 2.0, 100.0)], 0.5))
    rows = found.attempts
    assert [(row["task"], row["end"] / 1e9, row["ended"]) for row in rows] == [
        (0, 1, 1),
        (1, 2.5, 0),
        (2, 1, 1),
        (3, 2.5, 0),
    ]
    assert [found.counters[name] for name in ("fetches_failed", "run_again", "tasks_lost")] == [2, 2, 2]
    assert (found.finish_ns >= 0).all()


@given(
    seed=st.integers(0, 10**6),
    coordinator=st.sampled_from(ALL),
    scheduler=st.sampled_from(["drf", "tetris", "carbyne", "srtf"]),
    heartbeat_s=st.sampled_from([0.0, 1.5]),
    delay_s=st.sampled_from([0.0, 0.0005, 0.3]),
    detection_s=st.sampled_from([0.0, 0.5, 2.0]),
)
@settings(max_examples=25)
def test_what_must_hold(
    seed: int, coordinator: Any, scheduler: str, heartbeat_s: float, delay_s: float, detection_s: float
) -> None:
    setting, rows = (
        drawn(seed, coordinator, scheduler, heartbeat_s, delay_s),
        outages(np.random.default_rng(seed), 40.0),
    )
    found, work = run_setting(failing(setting, rows, detection_s)), setting.workload
    assert isinstance(work, DagWorkload)
    failures = [Failure(node, fail, repair, min(fail + detection_s, repair)) for node, fail, repair in rows]
    attempts = attempts_of(found)
    holds_no_more_than_there_is(work, attempts, failures)
    last, others = attempts[: work.num_tasks], attempts[work.num_tasks :]
    ended = [one for one, row in zip(others, found.attempts, strict=True) if row["ended"]]
    given_up = [one for one in others if one not in ended and not is_lost(one, failures)]
    assert len(given_up) == found.counters.get("fetches_failed", 0)
    assert heartbeat_s > 0 or len(ended) == found.counters.get("run_again", 0)
    for one in given_up:
        assert one.end_s == one.start_s or any(abs(f.detected_s - one.end_s) < 1e-6 for f in failures)
    for one, fetched_ns in zip(last, found.series.fetched_ns.tolist(), strict=True):
        has_input_in_time(work.arrays(), one, fetched_ns / 1e9, [*last, *ended], failures)


def drawn(seed: int, coordinator: Any, scheduler: str, heartbeat_s: float, delay_s: float) -> Setting:
    work = with_bytes(mixed_dags(jobs=8, seed=seed, priorities=3), seed)
    given: dict[str, Any] = {
        "heartbeat_s": heartbeat_s,
        "managers": 1 + seed % 2,
        "priorities": seed % 3 == 0,
    }
    waves, rows = ("together", "apart")[seed % 2], (1, 1024)[seed % 3 > 0]
    return under(coordinator, work, MACHINES, scheduler, delay_s, rows, waves, seed=seed, **given)


def is_lost(one: Attempt, failures: list[Failure]) -> bool:
    """Whether an attempt ended as its machine failed."""
    return any(f.node == one.node and abs(f.fail_s - one.end_s) < 1e-9 for f in failures)


def has_input_in_time(
    arrays: Any, one: Attempt, fetched_s: float, ended: list[Attempt], failures: list[Failure]
) -> None:
    """Check that all that a task needs was there when it was launched, and could be sent before machines failed."""
    first = arrays.stage_first_task
    stage = int(np.searchsorted(first, one.task, side="right")) - 1
    needed: dict[int, float] = defaultdict(float)
    for e in range(*arrays.first_parent[stage : stage + 2]):
        theirs = range(*first[arrays.parent[e] : arrays.parent[e] + 2])
        size = arrays.parent_bytes[e] / (first[stage + 1] - first[stage])
        if arrays.parent_one_to_one[e]:
            theirs = theirs[one.task - first[stage] :][:1]
        for task in theirs:
            before = [other for other in ended if other.task == task and other.end_s <= one.start_s]
            source = max(before, key=lambda other: other.end_s)
            if size > 0:
                assert not any(
                    f.node == source.node and source.end_s <= f.fail_s <= one.start_s for f in failures
                )
                needed[source.node] += size / len(theirs)
    needed.pop(one.node, None)
    assert not needed or fetched_s - one.start_s >= sum(needed.values()) / GB - 1e-6
    for node, size in needed.items():
        for f in failures:
            if f.node == node and one.start_s < f.fail_s < fetched_s:
                assert f.fail_s - one.start_s >= size / GB - 1e-6


@pytest.mark.parametrize("coordinator", ["sebf", "aalo", "saath", "philae", FirstComes])
def test_a_run_goes_on_from_checkpoints_as_it_would_have(coordinator: Any) -> None:
    setting = failing(drawn(6, coordinator, "drf", 0.0, 0.0005), outages(np.random.default_rng(6), 40.0), 0.5)
    goes_on_from_checkpoints(setting)
