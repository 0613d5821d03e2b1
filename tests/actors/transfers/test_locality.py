"""Delay scheduling: jobs wait for machines that have parts of their input. By hand, and by rules that all runs keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.setting import Setting
from clusters.cluster import build_cluster
from tests.actors.checkpointing import digest_with_restores
from tests.actors.dag_settings import mixed_dags, with_bytes, with_input
from tests.actors.transfers.test_job_input import GB, NETWORKS, of_cores, parts_of, reading, reads_gb, seconds
from tests.emulations import OBSERVED, digest, run_setting
from workloads.dags import DagWorkload, make_dag_workload

CASES = ("drf", "tetris", "carbyne", "srtf", "capacity", "dagps", "heft")
ONE_COPY = {"input": "replicas", "replicas": 1}
ALIKE = build_cluster("machines", [4] * 5, cpu_cores=[4.0] * 5)


def with_parts(wanted: list[int], network: str, work: DagWorkload, nodes: Any, **given: Any) -> Setting:
    """A setting by whose seed the parts of the tasks, in order, lie on these machines, one copy of each."""
    for seed in range(1000):
        setting = reading(network, work, nodes, seed=seed, **ONE_COPY, **given)
        if [machines[0] for machines in parts_of(setting).values()] == wanted:
            return setting
    raise AssertionError("no seed has such places")


def beside_a_large_task() -> DagWorkload:
    """J0: a task of two cores and 4 s, which reads nothing, and fits on machine 1 alone. J1, which comes at 1 s: one of
    a core and 1 s, which reads 1 GB.
    """
    return make_dag_workload(
        "waits", [0, 1], [1, 1], [1, 1], [4, 1], [], cpu_cores=[2, 1], input_bytes=[0, GB]
    )


@pytest.mark.parametrize("scheduler", ["drf", "tetris"])
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(
    ("wait_s", "node", "times"),
    [(0.0, 0, (1, 2, 3)), (2.0, 0, (3, 4, 5)), (3.0, 1, (4, 4, 5)), (5.0, 1, (4, 4, 5))],
)
def test_a_job_waits_for_the_machine_that_has_its_part(
    wait_s: float, node: int, times: tuple[float, ...], network: str, scheduler: str
) -> None:
    # J1's part lies on machine 1, which is full until 4 s. Machine 0 is free. Without a wait J1 starts there at 1 s,
    # and has its 1 GB at 2 s. With 2 s it starts there at 3 s. With 5 s it starts at 4 s on machine 1, and with 3 s
    # too: the wait ends when that machine is free, and a machine where a task has ended is considered before all are.
    setting = with_parts(
        [1], network, beside_a_large_task(), of_cores(1, 2), scheduler=scheduler, locality_wait_s=wait_s
    )
    found = run_setting(setting)
    assert found.tasks is not None
    assert found.tasks["node"].tolist() == [1, node]
    assert tuple(of[1] for of in seconds(found)) == times


@pytest.mark.parametrize("scheduler", CASES)
def test_a_local_task_of_a_stage_goes_first(scheduler: str) -> None:
    # Machine 0 runs one task at a time, machine 1 none. Task 1 has its part there, task 0 has not. At 1 s the job is
    # passed over, at 11 s its wait is over.
    work, nodes = reads_gb(2, tasks=2), of_cores(1, 0.5)
    setting = with_parts([1, 0], "fair", work, nodes, scheduler=scheduler, locality_wait_s=10.0)
    assert seconds(run_setting(setting)) == ([11, 0], [12, 0], [13, 1])


def test_after_a_wait_a_job_launches_anywhere_until_it_has_launched_a_local_task() -> None:
    # Machine 0 runs one task at a time. Tasks 0 to 2 have their parts elsewhere: the job waits for 2 s once, and then
    # launches one after the other, each of which fetches for 1 s.
    work, nodes = reads_gb(3, tasks=3), of_cores(1, 0.5)
    setting = with_parts([1, 1, 1], "fair", work, nodes, locality_wait_s=2.0)
    assert seconds(run_setting(setting))[0] == [2, 4, 6]
    # A stage that comes later, whose part is on machine 0, runs there first; the job waits for 2 s again.
    work = make_dag_workload(
        "again",
        [0],
        [3],
        [1, 1, 1],
        [1, 1, 1],
        [(0, 0, 1), (0, 1, 2)],
        cpu_cores=[1] * 3,
        edge_bytes=[0, 0],
        input_bytes=[GB] * 3,
    )
    setting = with_parts([1, 0, 1], "fair", work, nodes, locality_wait_s=2.0)
    # Passed over from 0 to 2 s, fetches until 3 s, ends at 4 s; local until 5 s; passed over until 7 s.
    assert seconds(run_setting(setting)) == ([2, 4, 7], [3, 4, 8], [4, 5, 9])


def test_others_have_the_machine_meanwhile() -> None:
    # J0 reads 1 GB that lies on machine 1, too small for it; J1 reads nothing, and J2's part is here.
    work = make_dag_workload(
        "others", [0, 0, 0], [1, 1, 1], [1, 1, 1], [1, 1, 1], [], cpu_cores=[1] * 3, input_bytes=[GB, 0, GB]
    )
    setting = with_parts([1, 0], "fair", work, of_cores(1, 0.5), locality_wait_s=1.5)
    # At 2 s the wait of J0, since 0 s, is over.
    assert seconds(run_setting(setting)) == ([2, 0, 1], [3, -1, 1], [4, 1, 2])


def test_with_heartbeats_a_machine_is_matched_when_it_has_waited() -> None:
    # Machine 0's heartbeats come at 0, before the job arrives, at 1 s, where it is passed over, at 2 s, and so on. The
    # first one after the end of the wait, at 3.5 s, is at 4 s.
    work, nodes = reads_gb(1), of_cores(1, 0.5)
    setting = with_parts([1], "fair", work, nodes, locality_wait_s=2.5)
    setting.parameters["heartbeat_s"] = 1.0
    assert seconds(run_setting(setting))[0] == [4]


def reads(setting: Setting, tasks: dict[str, np.ndarray]) -> Iterator[tuple[int, int, int, bool]]:
    """Yield job, task, start and whether it is local, of all tasks that read."""
    first = setting.workload.arrays().first_task
    for task, machines in parts_of(setting).items():
        job = int(np.searchsorted(first, task, "right")) - 1
        yield job, task, int(tasks["start_ns"][task]), int(tasks["node"][task]) in machines


@pytest.mark.parametrize("scheduler", CASES)
@given(
    seed=st.integers(0, 10**6),
    wait_s=st.sampled_from([0.25, 2.0]),
    network=st.sampled_from(NETWORKS),
    heartbeat_s=st.sampled_from([0.0, 0.5]),
)
@settings(max_examples=6)
def test_each_remote_read_follows_a_wait(
    scheduler: str, seed: int, wait_s: float, network: str, heartbeat_s: float
) -> None:
    work = with_input(with_bytes(mixed_dags(jobs=8, seed=seed), seed), seed)
    setting = reading(
        network, work, ALIKE, scheduler, seed, input="replicas", replicas=2, locality_wait_s=wait_s
    )
    setting.parameters["heartbeat_s"] = heartbeat_s
    found, arrays = run_setting(setting), work.arrays()
    assert found.tasks is not None
    wait_ns, rows, lies = round(wait_s * 1e9), list(reads(setting, found.tasks)), parts_of(setting)
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
    assert (np.sort(found.finish_ns) > 0).all()


@pytest.mark.parametrize("scheduler", CASES)
def test_with_a_long_wait_all_reads_are_local(scheduler: str) -> None:
    # Each machine has room for each task at some time, and a day is longer than all jobs take.
    work = with_input(with_bytes(mixed_dags(), 3), 3)
    near, anywhere = (
        run_setting(
            reading("fair", work, ALIKE, scheduler, input="replicas", replicas=1, locality_wait_s=wait_s)
        )
        for wait_s in (86400.0, 0.0)
    )
    assert "remote_reads" not in near.counters
    assert anywhere.counters["remote_reads"] > 0
    assert (
        near.counters["local_reads"] == anywhere.counters["local_reads"] + anywhere.counters["remote_reads"]
    )


def test_managers_share_the_machines_but_not_the_parts() -> None:
    # Machines 0 and 1 are of the first manager, as are jobs 0 and 2; parts lie on all four.
    work = reads_gb(4, 4, 4, 4, tasks=4)
    setting = reading("fair", work, of_cores(*[2] * 4), seed=5, **ONE_COPY, locality_wait_s=3.0)
    setting.parameters["managers"] = 2
    found = run_setting(setting)
    assert found.tasks is not None
    half, lies = np.repeat([0, 1, 0, 1], 4), parts_of(setting)
    assert (found.tasks["node"] // 2 == half).all()
    foreign = [task for task, machines in lies.items() if machines[0] // 2 != half[task]]
    assert 0 < len(foreign) < 16
    assert (found.tasks["start_ns"][foreign] >= 3_000_000_000).all()


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("scheduler", ["drf", "tetris"])
def test_a_run_goes_on_from_any_checkpoint(network: str, scheduler: str) -> None:
    work = with_input(with_bytes(mixed_dags(jobs=10), 2), 3)
    setting = reading(
        network, work, scheduler=scheduler, input="replicas", replicas=2, locality_wait_s=1.0, rows=1
    )
    found, moves = digest_with_restores(setting, 5)
    assert moves > 3
    assert found == digest(run_setting(setting, OBSERVED))


def test_more_tasks_wait_than_one_event_may_launch() -> None:
    # 300 tasks on two machines of 300 cores each: those local to machine 0 start there, the others on machine 1.
    work = reads_gb(300, tasks=300)
    setting = reading("fair", work, of_cores(300, 300), **ONE_COPY, locality_wait_s=5.0)
    found = run_setting(setting)
    assert found.tasks is not None
    assert found.tasks["node"].tolist() == [machines[0] for machines in parts_of(setting).values()]
    assert found.finish_ns.tolist() == [1_000_000_000]


@pytest.mark.parametrize("scheduler", ["tetris", "dagps"])
@pytest.mark.parametrize(("penalty", "starts"), [(0.0, [0, 1, 2]), (0.5, [1, 2, 0])])
def test_with_a_remote_penalty_a_stage_with_a_part_on_the_machine_goes_first(
    scheduler: str, penalty: float, starts: list[float]
) -> None:
    # Machine 0 runs one task at a time, and machine 1 none. J0's part is on machine 1; of J1's two, one is on each. All
    # are worth the same but for the penalty, and the first job goes first. With the penalty J1's second task does,
    # whose part is here; then nothing is local.
    work = make_dag_workload(
        "penalty", [0, 0], [1, 1], [1, 2], [1, 1, 1], [], cpu_cores=[1, 1], input_bytes=[1, 2]
    )
    setting = with_parts([1, 1, 0], "fair", work, of_cores(1, 0.5), scheduler=scheduler)
    setting.parameters.update(remote_penalty=penalty, remaining_weight=0.0)
    assert np.round(seconds(run_setting(setting))[0]).tolist() == starts


@pytest.mark.parametrize(("penalty", "nodes"), [(0.0, [0, 1]), (0.1, [1, 0])])
def test_with_a_remote_penalty_stages_without_parents_run_where_their_parts_are(
    penalty: float, nodes: list[int]
) -> None:
    # A machine for each of two jobs, of which the first has its part on the second machine, and the other on the first.
    setting = with_parts([1, 0], "fair", reads_gb(1, 1), of_cores(1, 1), scheduler="tetris")
    setting.parameters.update(remote_penalty=penalty, remaining_weight=0.0)
    found = run_setting(setting)
    assert found.tasks is not None
    assert found.tasks["node"].tolist() == nodes
    assert found.series.moved_bytes == (2 * GB if penalty == 0.0 else 0)
