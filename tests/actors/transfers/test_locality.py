"""Where parts of jobs' input lie, and by which rules jobs wait for machines that have them, in all runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.inputs import make_job_input, reading_stages
from actors.setting import Setting
from clusters.cluster import build_cluster
from tests.actors.dag_settings import mixed_dags, with_bytes, with_input
from tests.actors.transfers.runs import GB, of_cores, over, places_of
from tests.emulations import run_setting
from workloads.dags import DagWorkload, make_dag_workload

CASES = ("drf", "tetris", "carbyne", "srtf", "capacity", "dagps", "heft")
ALIKE = build_cluster("machines", [4] * 5, cpu_cores=[4.0] * 5)


def reads_gb(*of_jobs: float, tasks: int = 1) -> DagWorkload:
    """Jobs of one stage of tasks of a core and 1 s, which read that many GB together."""
    count = len(of_jobs)
    sizes = [GB * size for size in of_jobs]
    durations = [1] * tasks * count
    return make_dag_workload(
        "reads",
        [0] * count,
        [1] * count,
        [tasks] * count,
        durations,
        [],
        cpu_cores=[1] * count,
        input_bytes=sizes,
    )


@pytest.mark.parametrize("placement", ["random", "racks"])
def test_parts_lie_on_different_machines_in_the_racks_of_hdfs(placement: str) -> None:
    nodes = of_cores(*[9] * 12, rack=[0] * 5 + [1] * 4 + [2] * 3)
    given = {"input": "replicas", "replicas": 4, "replica_placement": placement}
    setting = over("fair", reads_gb(4, tasks=400), nodes, **given)
    arrays, racks = setting.workload.arrays(), nodes.racks()
    lies = make_job_input(setting, arrays, reading_stages(setting, arrays)).lies
    assert [sorted(of) for of in places_of(setting).values()] == [sorted(of) for of in lies.tolist()]
    assert all(len(set(of)) == 4 for of in lies.tolist())
    counts = np.bincount(lies.ravel(), minlength=12)
    assert counts.sum() == 1600
    assert (abs(counts - 1600 / 12) < 60).all()
    # By racks no part is in one rack, and two of it are together in another.
    of_rack = Counter(len(set(racks[of].tolist())) for of in lies)
    assert (of_rack[1] == 0) == (placement == "racks")
    one_rack = replace(setting, cluster=of_cores(*[9] * 12))
    found = make_job_input(one_rack, arrays, np.array([0])).lies.tolist()
    assert [sorted(of) for of in found] == [sorted(of) for of in places_of(one_rack).values()]


@pytest.mark.parametrize("network", ["fair", "sebf"])
def test_a_replica_in_the_same_rack_is_read_first(network: str) -> None:
    # Two racks of two machines, a replica in each: the task on machine 0 reads there, or from machine 1 of its rack.
    nodes = of_cores(1, 0.5, 0.5, 0.5, rack=[0, 0, 1, 1])
    given = {"input": "replicas", "replicas": 2, "replica_placement": "racks"}
    seen = set()
    for seed in range(12):
        setting = over(network, reads_gb(1), nodes, seed=seed, **given)
        (lies,) = places_of(setting).values()
        assert sorted(node // 2 for node in lies) == [0, 1]
        seen.add(0 in lies)
        assert run_setting(setting).series.fetched_ns.tolist() == [0 if 0 in lies else 1_000_000_000]
    assert seen == {True, False}


def reads(setting: Setting, tasks: dict[str, np.ndarray]) -> Iterator[tuple[int, int, int, bool]]:
    """Yield job, task, start and whether it is local, of all tasks that read."""
    first = setting.workload.arrays().first_task
    for task, machines in places_of(setting).items():
        job = int(np.searchsorted(first, task, "right")) - 1
        yield job, task, int(tasks["start_ns"][task]), int(tasks["node"][task]) in machines


@pytest.mark.parametrize("scheduler", CASES)
@given(
    seed=st.integers(0, 10**6),
    wait_s=st.sampled_from([0.25, 2.0]),
    network=st.sampled_from(["fair", "sebf", "aalo"]),
    heartbeat_s=st.sampled_from([0.0, 0.5]),
)
@settings(max_examples=6)
def test_each_remote_read_follows_a_wait(
    scheduler: str, seed: int, wait_s: float, network: str, heartbeat_s: float
) -> None:
    work = with_input(with_bytes(mixed_dags(jobs=8, seed=seed), seed), seed)
    given: dict[str, Any] = {"input": "replicas", "replicas": 2, "heartbeat_s": heartbeat_s}
    setting = over(network, work, ALIKE, scheduler, seed=seed, locality_wait_s=wait_s, **given)
    found, arrays = run_setting(setting), work.arrays()
    assert found.tasks is not None
    wait_ns, rows, lies = round(wait_s * 1e9), list(reads(setting, found.tasks)), places_of(setting)
    stage_of = np.repeat(np.arange(work.num_stages), np.diff(arrays.stage_first_task))
    roots = np.diff(arrays.first_parent) == 0
    for job, task, start, is_local in rows:
        if is_local:
            continue
        # It was passed over for that long, and has launched no local task since the wait began.
        assert start >= arrays.submit_ns[job] + wait_ns
        assert not [
            1 for other, _, at, local in rows if other == job and local and start - wait_ns < at < start
        ]
        # No task of its stage that was ready had its part there, when it was launched.
        alike = [other for _, other, at, _ in rows if stage_of[other] == stage_of[task] and at > start]
        if roots[stage_of[task]]:
            assert not [1 for other in alike if found.tasks["node"][task] in lies[other]]


@pytest.mark.parametrize("scheduler", CASES)
def test_with_a_long_wait_all_reads_are_local(scheduler: str) -> None:
    # Each machine has room for each task at some time, and a day is longer than all jobs take.
    work = with_input(with_bytes(mixed_dags(), 3), 3)
    given = {"input": "replicas", "replicas": 1}
    near, anywhere = (
        run_setting(over("fair", work, ALIKE, scheduler, locality_wait_s=wait_s, **given)).counters
        for wait_s in (86400.0, 0.0)
    )
    assert "remote_reads" not in near
    assert anywhere["remote_reads"] > 0
    assert near["local_reads"] == anywhere["local_reads"] + anywhere["remote_reads"]


def test_managers_share_the_machines_but_not_the_parts() -> None:
    # Machines 0 and 1 are of the first manager, as are jobs 0 and 2; parts lie on all four.
    given = {"input": "replicas", "replicas": 1, "locality_wait_s": 3.0, "managers": 2}
    setting = over("fair", reads_gb(4, 4, 4, 4, tasks=4), of_cores(*[2] * 4), seed=5, **given)
    found = run_setting(setting)
    assert found.tasks is not None
    half, lies = np.repeat([0, 1, 0, 1], 4), places_of(setting)
    assert (found.tasks["node"] // 2 == half).all()
    foreign = [task for task, machines in lies.items() if machines[0] // 2 != half[task]]
    assert 0 < len(foreign) < 16
    assert (found.tasks["start_ns"][foreign] >= 3_000_000_000).all()
