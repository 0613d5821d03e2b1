"""Tasks of DAG jobs that fetch their input over a network: by hand, and against a simulation that shares no code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.hosting.outcome import Outcome
from actors.inputs import parts_of
from actors.setting import Network, Setting, Switch
from actors.transfers.joined import FIRST_ROWS, with_network
from clusters.cluster import Cluster, build_cluster
from tests.actors.checkpointing import digest_with_restores
from tests.actors.dag_settings import mixed_dags, setting_of, two_shuffles, with_bytes
from tests.actors.transfers.network_simulator import fetched_s, is_as_simulated
from tests.emulations import OBSERVED, digest, run_setting
from workloads.dags import DagWorkload, make_dag_workload

GB = 1e9


def on_network(
    workload: DagWorkload,
    nodes: Cluster,
    scheduler: str = "drf",
    speed: float = GB,
    delay_s: float = 0.0,
    rows: int = FIRST_ROWS,
    skew: float = 0.0,
    **given: Any,
) -> Setting:
    setting = setting_of(scheduler, workload, nodes, network=Network(delay_s), **given)
    switch = Switch(port_bytes_per_s=speed, scheduler="fair", skew=skew)
    return replace(setting, scheduler=with_network(setting.scheduler, None, rows), switch=switch)


def of_one_core(count: int) -> Cluster:
    return build_cluster("machines", [1] * count, cpu_cores=[1.0] * count)


def seconds(outcome: Outcome) -> tuple[list[float], list[float], list[float]]:
    """Start, end of fetching (-1: nothing to fetch) and end of tasks, s."""
    assert outcome.tasks is not None
    fetched = outcome.series.fetched_ns
    return (
        (outcome.tasks["start_ns"] / 1e9).tolist(),
        np.where(fetched >= 0, fetched / 1e9, -1).tolist(),
        (outcome.tasks["finish_ns"] / 1e9).tolist(),
    )


def test_a_shuffle_between_two_machines() -> None:
    # Two maps of 1 s, one on each machine; each sends 1 GB to each of two reducers, of which one is on its own machine.
    work = make_dag_workload(
        "by hand", [0], [2], [2, 2], [1, 1, 1, 1], [(0, 0, 1)], cpu_cores=[1, 1], edge_bytes=[4 * GB]
    )
    found = run_setting(on_network(work, of_one_core(2)))
    assert seconds(found) == ([0, 0, 1, 1], [-1, -1, 2, 2], [1, 1, 3, 3])
    assert (found.series.moved_bytes, found.series.local_bytes) == (2 * GB, 2 * GB)
    assert found.counters["flows"] == 2
    assert found.finish_ns.tolist() == [3_000_000_000]


def test_shuffles_of_two_jobs_share_a_port() -> None:
    # Each job is a map of 1 s and a reducer of 1 s. Both maps run on machine 0, the reducers on 1 and 2, as they fit on
    # no other. The first job sends 1 GB, the second one 2 GB.
    nodes = build_cluster("machines", [2, 4, 4], cpu_cores=[2.0, 4.0, 4.0])
    found = run_setting(on_network(two_shuffles(1, 2), nodes))
    assert found.tasks is not None
    assert found.tasks["node"].tolist() == [0, 1, 0, 2]
    # Both leave by the port of machine 0 at 1 s, each at half its speed: 1 GB until 3 s, then the other GB until 4 s.
    assert seconds(found) == ([0, 1, 0, 1], [-1, 3, -1, 4], [1, 4, 1, 5])


def test_what_a_straggler_sends_is_waited_for() -> None:
    # Maps of 1 and 5 s: the reducer starts when both have ended, and then fetches 1 GB of the other machine.
    work = make_dag_workload(
        "by hand", [0], [2], [2, 1], [1, 5, 2], [(0, 0, 1)], cpu_cores=[1, 1], edge_bytes=[2 * GB]
    )
    found = run_setting(on_network(work, of_one_core(2)))
    assert seconds(found) == ([0, 0, 5], [-1, -1, 6], [1, 5, 8])


def test_copies_of_one_machine_are_one_flow() -> None:
    # What tasks on machine 0 copy to tasks on machine 1 is one flow, at the speed of a port.
    work = make_dag_workload(
        "by hand",
        [0],
        [2],
        [4, 4],
        [1] * 8,
        [(0, 0, 1)],
        cpu_cores=[1, 2],
        edge_kind=["one-to-one"],
        edge_bytes=[4 * GB],
    )
    nodes = build_cluster("machines", [4, 8], cpu_cores=[4.0, 8.0])
    found = run_setting(on_network(work, nodes, scheduler="srtf"))
    assert found.tasks is not None
    moved = found.tasks["node"][:4] != found.tasks["node"][4:]
    assert found.series.moved_bytes == moved.sum() * GB
    assert found.counters["flows"] == 1
    assert found.finish_ns.tolist() == [(2 + moved.sum()) * 1_000_000_000]


MACHINES = build_cluster("machines", [4, 8, 4, 2, 6], cpu_cores=[4.0, 8.0, 4.0, 2.0, 6.0])
CASES = ("drf", "tetris", "carbyne", "srtf", "capacity", "dagps", "heft")


@given(
    seed=st.integers(0, 10**6),
    scheduler=st.sampled_from(CASES),
    delay_s=st.sampled_from([0.0, 0.0005]),
    skew=st.sampled_from([0.0, 0.7]),
)
@settings(max_examples=25)
def test_tasks_have_their_input_when_another_simulation_says(
    seed: int, scheduler: str, delay_s: float, skew: float
) -> None:
    work = with_bytes(mixed_dags(jobs=8, seed=seed), seed)
    setting = on_network(work, MACHINES, scheduler, delay_s=delay_s, skew=skew, seed=seed)
    found = run_setting(setting)
    arrays, tasks = work.arrays(), found.tasks
    assert tasks is not None
    is_as_simulated(arrays, found, GB, part=parts_of(np.diff(arrays.stage_first_task), skew, seed))
    assert (found.finish_ns == np.maximum.reduceat(tasks["finish_ns"], arrays.first_task[:-1])).all()


@given(
    num_tasks=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    skew=st.floats(0, 10),
    seed=st.integers(0, 9),
)
def test_tasks_share_what_is_sent_to_them_by_the_skew(num_tasks: list[int], skew: float, seed: int) -> None:
    parts, first = parts_of(np.array(num_tasks), skew, seed).tolist(), 0
    for tasks in num_tasks:
        own = parts[first : first + tasks]
        assert np.isclose(sum(own), tasks)
        most = own.index(max(own))
        for place in range(tasks):
            assert np.isclose(own[(most + place) % tasks] * (place + 1) ** skew, own[most])
        first += tasks


def test_a_skewed_shuffle() -> None:
    # Three reducers on machine 1 get 6 GB of a map on machine 0, in proportion to 1, 1/2 and 1/3, one after the other:
    # each fetches 36/11 GB over its place, and computes for 1 s.
    work = make_dag_workload(
        "by hand", [0], [2], [1, 3], [1] * 4, [(0, 0, 1)], cpu_cores=[1, 2], edge_bytes=[6 * GB]
    )
    nodes = build_cluster("machines", [1, 2], cpu_cores=[1.0, 2.0])
    starts, fetched, _ = seconds(run_setting(on_network(work, nodes, skew=1)))
    took_s = sorted(end - start for start, end in zip(starts[1:], fetched[1:], strict=True))
    assert np.allclose(took_s, [12 / 11, 18 / 11, 36 / 11], rtol=0, atol=1e-8)


@pytest.mark.parametrize("given", [{"heartbeat_s": 1.0}, {"managers": 2}])
def test_heartbeats_and_managers(given: dict[str, Any]) -> None:
    work = with_bytes(mixed_dags(jobs=8), 3)
    cluster = build_cluster("machines", [4] * 6, cpu_cores=[4.0] * 6)
    found = run_setting(on_network(work, cluster, **given))
    expected, *_ = fetched_s(work.arrays(), found.tasks or {}, GB)
    fetched = found.series.fetched_ns
    assert np.allclose(fetched[fetched >= 0] / 1e9, expected[fetched >= 0], rtol=0, atol=1e-6)


def test_more_tasks_fetch_together_than_one_event_may_start() -> None:
    # 300 reducers fit on each of two machines at once; an event sends 66 messages at most.
    work = make_dag_workload(
        "by hand", [0], [2], [2, 600], [1] * 602, [(0, 0, 1)], cpu_cores=[200, 1], edge_bytes=[4 * GB]
    )
    nodes = build_cluster("machines", [300] * 2, cpu_cores=[300.0] * 2)
    found = run_setting(on_network(work, nodes))
    assert found.counters["flows"] == 2
    assert found.finish_ns.tolist() == [3_000_000_000]


def test_on_one_machine_a_network_changes_nothing() -> None:
    work, one = with_bytes(mixed_dags(), 1), build_cluster("machine", [16], cpu_cores=[16.0])
    found, without = (
        run_setting(on_network(work, one)),
        run_setting(setting_of("drf", work, one, network=Network(0.0))),
    )
    assert found.tasks is not None
    assert without.tasks is not None
    for name in ("node", "start_ns", "finish_ns"):
        assert (found.tasks[name] == without.tasks[name]).all()
    assert found.series.moved_bytes == 0 < found.series.local_bytes


def test_over_ports_of_any_speed_each_fetch_takes_a_nanosecond() -> None:
    # A flow takes 1 ns at least: a chain of two shuffles ends 2 ns later than without a network.
    work = make_dag_workload(
        "by hand",
        [0],
        [3],
        [2, 2, 2],
        [1] * 6,
        [(0, 0, 1), (0, 1, 2)],
        cpu_cores=[1] * 3,
        edge_bytes=[GB, GB],
    )
    found = run_setting(on_network(work, of_one_core(2), speed=1e18))
    assert found.finish_ns.tolist() == [3_000_000_002]


def test_rows_of_flows_grow() -> None:
    work = with_bytes(mixed_dags(), 2)
    whole, grown = (run_setting(on_network(work, MACHINES, rows=rows)) for rows in (FIRST_ROWS, 1))
    assert digest(grown) == digest(whole)
    assert (grown.series.fetched_ns == whole.series.fetched_ns).all()


def test_a_run_goes_on_from_any_checkpoint() -> None:
    # Arrays grow between checkpoints.
    setting = on_network(with_bytes(mixed_dags(), 2), MACHINES, "carbyne", delay_s=0.0005, rows=1)
    found, moves = digest_with_restores(setting, 5)
    assert moves > 3
    assert found == digest(run_setting(setting, OBSERVED))
