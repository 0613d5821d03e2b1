"""Shuffles whose flows are registered as tasks of parents end: by hand, and against programs that share no code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_coordinated import COORDINATORS, under
from test_network import GB, MACHINES, of_one_core, on_network, seconds

from actors.hosting.outcome import Outcome
from actors.inputs import origins_of, parts_of
from actors.setting import Setting
from clusters.cluster import build_cluster
from tests.actors.checkpointing import digest_with_restores
from tests.actors.dag_settings import mixed_dags, with_bytes, with_input
from tests.actors.transfers.network_simulator import is_as_simulated
from tests.emulations import OBSERVED, digest, run_setting
from workloads.dags import DagWorkload, make_dag_workload
from workloads.stages import EDGE_BYTES, edges_schema
from workloads.transform.primitives import with_tables

MANAGERS = ("drf", "fair-dags", "cpm", "capacity", "sjf", "srtf", "tetris", "tetris-fair", "heft", "dagps")


def pipelined(setting: Setting, **given: Any) -> Setting:
    return replace(setting, switch=replace(setting.switch, registration="pipelined", **given))


def both(setting: Setting) -> tuple[Outcome, Outcome]:
    """A run in which flows are registered when all parents have ended, and one in which they are as each ends."""
    return run_setting(setting), run_setting(pipelined(setting))


def maps_and_a_reducer() -> DagWorkload:
    """Maps of 1, 2 and 5 s, of which each sends 2 GB to the only reducer, of 1 s."""
    return make_dag_workload(
        "by hand", [0], [2], [3, 1], [1, 2, 5, 1], [(0, 0, 1)], cpu_cores=[1, 4], edge_bytes=[6 * GB]
    )


TWO = build_cluster("machines", [3, 4], cpu_cores=[3.0, 4.0])
"""The maps run on machine 0, the reducer on machine 1, as it fits on no other."""


def on_two(work: DagWorkload, network: str) -> Setting:
    return on_network(work, TWO) if network == "fair" else under(network, work, TWO)


@pytest.mark.parametrize("network", ["fair", "fifo", "sebf"])
def test_a_reducer_fetches_as_maps_end(network: str) -> None:
    # All at once: 6 GB are fetched from 5 to 11 s. As maps end: under fair the first flow has the port from 1 to 2 s, a
    # half of it until 4 s, when its 2 GB have come; the second one the other half, and from 4 s on all, until 5 s. The
    # third one is sent from 5 to 7 s. Waves of a shuffle one after the other: until 3, 5 and 7 s.
    barrier, early = both(on_two(maps_and_a_reducer(), network))
    assert seconds(barrier) == ([0, 0, 0, 5], [-1, -1, -1, 11], [1, 2, 5, 12])
    assert seconds(early) == ([0, 0, 0, 0], [-1, -1, -1, 7], [1, 2, 5, 8])
    assert (barrier.counters["flows"], early.counters["flows"]) == (1, 3)
    assert barrier.series.moved_bytes == early.series.moved_bytes == 6 * GB
    assert early.series.launched_ns.tolist() == [0, 0]
    if network != "fair":
        assert (early.series.coflows, early.series.mean_cct_s) == (3, ((3 - 1) + (5 - 2) + (7 - 5)) / 3)


def test_what_lies_on_the_machine_of_a_task_needs_no_network_as_it_ends() -> None:
    # Maps of 1 s on machine 0 and of 5 s on machine 1; each sends 1 GB to a reducer on either machine. The reducer on
    # machine 1 has the other's from 2 s on, and computes from 5 s on; that on machine 0 fetches from 5 to 6 s.
    work = make_dag_workload(
        "by hand",
        [0],
        [2],
        [2, 2],
        [1, 5, 1, 1],
        [(0, 0, 1)],
        cpu_cores=[1.5, 0.5],
        edge_bytes=[4 * GB],
    )
    nodes = build_cluster("machines", [2, 2], cpu_cores=[2.0, 2.0])
    for setting in (on_network(work, nodes), under("sebf", work, nodes)):
        barrier, early = both(setting)
        assert barrier.tasks is not None
        assert early.tasks is not None
        # All at once: both reducers run where the straggler has ended, and fetch 2 GB of machine 0.
        assert barrier.tasks["node"].tolist() == [0, 1, 1, 1]
        assert seconds(barrier) == ([0, 0, 5, 5], [-1, -1, 7, 7], [1, 5, 8, 8])
        assert early.tasks["node"].tolist() == [0, 1, 0, 1]
        assert seconds(early) == ([0, 0, 0, 0], [-1, -1, 6, 5], [1, 5, 7, 6])
        assert (early.series.moved_bytes, early.series.local_bytes) == (2 * GB, 2 * GB)


def test_reducers_that_wait_hold_machines_that_others_need() -> None:
    # A's reducer is launched at 0 s with its map of 10 s, on the other machine, and holds it until it has fetched 1 GB,
    # at 11 s. So B's map, which comes at 1 s, runs from 10 s on where A's map has ended; else it had run from 1 s on,
    # and A's reducer at 10 s, on the machine of its map. Both jobs end later.
    work = make_dag_workload(
        "by hand", [0, 1], [2, 1], [1, 1, 1], [10, 1, 2], [(0, 0, 1)], cpu_cores=[1] * 3, edge_bytes=[GB]
    )
    barrier, early = both(on_network(work, of_one_core(2)))
    assert seconds(barrier) == ([0, 10, 1], [-1, 10, -1], [10, 11, 3])
    assert seconds(early) == ([0, 0, 10], [-1, 11, -1], [10, 12, 12])


def test_reducers_come_after_the_last_map_is_launched() -> None:
    # Four maps of 1 s on two slots, then reducers: launched before the last map, they would hold both slots for ever.
    # At 1 s the last maps get them, and at 2 s both reducers.
    work = make_dag_workload(
        "by hand", [0], [2], [4, 2], [1] * 6, [(0, 0, 1)], cpu_cores=[1, 1], edge_bytes=[8 * GB]
    )
    _, early = both(on_network(work, of_one_core(2)))
    # Each reducer has 2 GB on its machine, and fetches 2 GB that all ended before it was launched.
    assert seconds(early) == ([0, 0, 1, 1, 2, 2], [-1] * 4 + [4, 4], [1, 1, 2, 2, 5, 5])
    assert early.series.launched_ns.tolist() == [1_000_000_000, 2_000_000_000]


def test_a_reducer_that_gets_its_machine_late_fetches_what_has_ended_at_once() -> None:
    # Maps of 1, 2 and 5 s on machine 0; job B holds machine 1 until 3 s. Then the reducer is launched, and fetches the
    # 4 GB of two maps as one flow, until 7 s; from 5 to 7 s with 2 GB of the last one, of which 1 GB have come by then.
    # The rest comes until 9 s: 6 GB from 3 s on.
    work = make_dag_workload(
        "by hand",
        [0, 0],
        [1, 2],
        [1, 3, 1],
        [3, 1, 2, 5, 1],
        [(1, 0, 1)],
        cpu_cores=[4, 1, 4],
        edge_bytes=[6 * GB],
    )
    _, early = both(on_network(work, TWO))
    assert seconds(early) == ([0, 0, 0, 0, 3], [-1, -1, -1, -1, 9], [3, 1, 2, 5, 10])
    assert early.counters["flows"] == 2


def test_a_stage_waits_for_the_ends_of_parents_over_other_edges() -> None:
    # Stage 2 has an all-to-all edge with bytes from a map of 4 s, and one without bytes from a map of 2 s: it is
    # launched at 2 s, fetches 1 GB from 4 to 5 s, and ends at 6 s.
    work = make_dag_workload(
        "by hand",
        [0],
        [3],
        [1, 1, 1],
        [4, 2, 1],
        [(0, 0, 2), (0, 1, 2)],
        cpu_cores=[1, 1, 4],
        edge_bytes=[GB, np.nan],
    )
    _, early = both(on_network(work, TWO))
    assert seconds(early) == ([0, 0, 2], [-1, -1, 5], [4, 2, 6])


def test_heartbeats_tell_the_manager_late_and_the_network_at_once() -> None:
    # The machine of the maps beats at 5 and 15 s, the other one at 0, 10 and 20 s; jobs come after a beat of the same
    # instant. The maps run from 5 to 6, 7 and 11 s. The reducer is launched at 10 s, and fetches 6 GB from then on: 4,
    # and the last 2 GB from 11 s on, though the manager hears of that end at 15 s. All at once it is launched at 20 s.
    work = make_dag_workload(
        "by hand", [0], [2], [3, 1], [1, 2, 6, 1], [(0, 0, 1)], cpu_cores=[1, 4], edge_bytes=[6 * GB]
    )
    nodes = build_cluster("machines", [4, 3], cpu_cores=[4.0, 3.0])
    barrier, early = both(on_network(work, nodes, heartbeat_s=10.0))
    assert seconds(barrier) == ([5, 5, 5, 20], [-1, -1, -1, 26], [6, 7, 11, 27])
    assert seconds(early) == ([5, 5, 5, 10], [-1, -1, -1, 16], [6, 7, 11, 17])
    assert early.counters["flows"] == 2


SMALL = (
    build_cluster("one slot", [1], cpu_cores=[2.0]),
    build_cluster("two slots", [1, 1], cpu_cores=[2.0, 2.0]),
    build_cluster("three slots", [2, 1], cpu_cores=[2.0, 2.0]),
    MACHINES,
)


@given(
    seed=st.integers(0, 10**6),
    scheduler=st.sampled_from(MANAGERS),
    nodes=st.sampled_from(SMALL),
    delay_s=st.sampled_from([0.0, 0.0005]),
    skew=st.sampled_from([0.0, 0.7]),
    heartbeat_s=st.sampled_from([0.0, 0.0, 1.0]),
)
@settings(max_examples=40)
def test_tasks_have_their_input_when_another_simulation_says(
    seed: int, scheduler: str, nodes: Any, delay_s: float, skew: float, heartbeat_s: float
) -> None:
    work = with_bytes(mixed_dags(jobs=8, seed=seed), seed)
    setting = on_network(
        work, nodes, scheduler, delay_s=delay_s, skew=skew, seed=seed, heartbeat_s=heartbeat_s
    )
    found = run_setting(pipelined(setting))
    check_pipelined(work, found, parts_of(np.diff(work.arrays().stage_first_task), skew, seed))


def check_pipelined(
    work: DagWorkload, found: Outcome, part: np.ndarray, origin: Mapping[int, int] | None = None
) -> None:
    """Check against max-min fair rates by another program, which let no port carry more than its speed."""
    arrays, tasks, fetched = work.arrays(), found.tasks, found.series.fetched_ns
    assert tasks is not None
    assert (found.finish_ns >= 0).all()
    is_as_simulated(arrays, found, GB, origin=origin or {}, part=part, is_pipelined=True)
    begin = np.where(fetched >= 0, fetched, tasks["start_ns"])
    check_order(arrays, tasks, begin, found.series.launched_ns)


def check_order(arrays: Any, tasks: dict[str, np.ndarray], begin: np.ndarray, launched: np.ndarray) -> None:
    """No task computes before its parents have ended, or is launched before they are, or end over other edges."""
    first, start, finish = arrays.stage_first_task, tasks["start_ns"], tasks["finish_ns"]
    assert (launched <= np.maximum.reduceat(start, first[:-1])).all()
    for stage in range(first.size - 1):
        own = slice(*first[stage : stage + 2])
        for e in range(arrays.first_parent[stage], arrays.first_parent[stage + 1]):
            theirs = slice(*first[arrays.parent[e] : arrays.parent[e] + 2])
            if arrays.parent_one_to_one[e]:
                assert (start[own] >= finish[theirs]).all()
            elif arrays.parent_bytes[e] > 0:
                assert begin[own].min() >= finish[theirs].max()
                assert start[own].min() >= launched[arrays.parent[e]] >= 0
            else:
                assert start[own].min() >= finish[theirs].max()


@pytest.mark.parametrize("read", ["share", "replicas"])
def test_with_the_input_of_jobs(read: str) -> None:
    work = with_input(with_bytes(mixed_dags(jobs=8), 3), 3)
    setting = pipelined(on_network(work, MACHINES), input=read, local_share=0.5, replicas=2)
    found = run_setting(
        replace(setting, switch=replace(setting.switch, locality_wait_s=0.5 * (read != "share")))
    )
    assert found.tasks is not None
    origins = origins_of(setting, found.tasks["node"])
    origin = {task: int(of) for task, of in enumerate(origins.tolist()) if of >= 0}
    check_pipelined(work, found, np.ones(origins.size), origin)


@pytest.mark.parametrize("network", ["fair", *COORDINATORS])
def test_waves_together_and_few_rows(network: str) -> None:
    # With few rows the host makes room again and again; no time differs. Nothing waits for ever.
    work = with_bytes(mixed_dags(jobs=30), 2)
    make = on_network if network == "fair" else lambda *given, **more: under(network, *given, **more)
    whole, grown = (run_setting(pipelined(make(work, MACHINES, rows=rows))) for rows in (1 << 16, 1))
    assert (whole.finish_ns >= 0).all()
    assert (grown.finish_ns == whole.finish_ns).all()
    for one, other in zip(grown.series, whole.series, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("network", ["fair", "sebf", "philae"])
def test_a_run_goes_on_from_any_checkpoint(network: str) -> None:
    work = with_bytes(mixed_dags(), 2)
    make = on_network if network == "fair" else lambda *given, **more: under(network, *given, **more)
    setting = pipelined(make(work, MACHINES, scheduler="srtf", delay_s=0.0005, rows=1))
    found, moves = digest_with_restores(setting, 5)
    assert moves > 3
    assert found == digest(run_setting(setting, OBSERVED))


def test_without_bytes_over_all_to_all_edges_nothing_changes() -> None:
    # Of these edges no bytes are known; copies have some.
    work = mixed_dags(jobs=20)
    size = [GB if kind == "one-to-one" else None for kind in work.edges["kind"].to_pylist()]
    table = work.edges.append_column(EDGE_BYTES, pa.array(size, pa.float64()))
    known = with_tables(work, edges=table.cast(edges_schema(table.column_names)))
    barrier, early = both(on_network(known, MACHINES))
    assert early.tasks is not None
    assert barrier.tasks is not None
    for name in ("node", "start_ns", "finish_ns"):
        assert (early.tasks[name] == barrier.tasks[name]).all()
    assert early.counters == barrier.counters
    assert early.counters["flows"] > 0
    assert (early.series.fetched_ns == barrier.series.fetched_ns).all()
    assert barrier.series.launched_ns.size == 0


def test_more_fetch_as_one_task_ends_than_one_event_may_tell() -> None:
    # 300 reducers on each of two machines wait for a map of 2 s; an event sends 66 messages at most.
    work = make_dag_workload(
        "by hand",
        [0],
        [2],
        [2, 600],
        [1, 2] + [1] * 600,
        [(0, 0, 1)],
        cpu_cores=[150, 0.25],
        edge_bytes=[4 * GB],
    )
    nodes = build_cluster("machines", [300] * 2, cpu_cores=[225.0] * 2)
    for setting in (on_network(work, nodes), under("sebf", work, nodes)):
        _, early = both(setting)
        assert early.finish_ns.tolist() == [4_000_000_000]
