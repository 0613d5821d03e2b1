"""Runs over a network that must be alike: with few rows, from checkpoints, and where a setting has no effect."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from actors.schedulers.registry import find_scheduler
from actors.schedulers.variants import make_variant
from actors.setting import Setting
from actors.transfers.joined import with_network
from clusters.cluster import build_cluster
from tests.actors.checkpointing import digest_with_restores
from tests.actors.dag_settings import mixed_dags, with_bytes, with_input
from tests.actors.transfers.failing_runs import failing
from tests.actors.transfers.own_coordinators import FirstComes, LeastLeft
from tests.actors.transfers.runs import (
    COORDINATORS,
    GB,
    JOB_SCHEDULERS,
    MACHINES,
    OWN,
    of_cores,
    over,
    places_of,
)
from tests.actors.transfers.runs import times_of as all_times_of
from tests.emulations import OBSERVED, digest, run_setting, run_windows
from tests.emulations import setting_of as setting_of_jobs
from workloads.conversion import as_dags
from workloads.dags import make_dag_workload
from workloads.jobs import make_workload
from workloads.stages import EDGE_BYTES, edges_schema
from workloads.transform.primitives import with_tables

pytestmark = pytest.mark.slow("rows, checkpoints and twins of every setting")

WORK = with_input(with_bytes(mixed_dags(), 2), 3)
REPLICAS = {"input": "replicas", "replicas": 2}
RACKS = {"input": "replicas", "replicas": 3, "replica_placement": "racks"}
MODES: dict[str, dict[str, Any]] = {
    "pulled": {"scheduler": "carbyne"},
    "pipelined": {"scheduler": "srtf", "registration": "pipelined"},
    "pushed": {"scheduler": "srtf", "shuffle": "push"},
    "parts": {"scheduler": "carbyne", **RACKS},
    "waits for parts": {"scheduler": "tetris", **REPLICAS, "locality_wait_s": 1.0},
    "stage by stage": {"scheduler": "sparrow", **REPLICAS},
}
SOME = ("fair", "sebf", "aalo", "philae", LeastLeft)
ROWS = [("pulled", network) for network in ("fair", *COORDINATORS, *OWN)]
ROWS += [(mode, network) for mode in MODES if mode != "pulled" for network in SOME]


@pytest.mark.parametrize(("mode", "network"), ROWS)
def test_rows_are_given_back_and_grow(mode: str, network: Any) -> None:
    # With few rows the host makes room again and again: the numbers of events differ, and no time does.
    work = with_input(with_bytes(mixed_dags(jobs=20), 2), 3)
    whole, grown = (run_setting(over(network, work, rows=rows, **MODES[mode])) for rows in (1 << 16, 1))
    assert all_times_of(grown) == all_times_of(whole)
    assert (whole.finish_ns >= 0).all()


SAVED = [(mode, network) for mode in MODES for network in ("fair", "philae", FirstComes)]


@pytest.mark.parametrize(("mode", "network"), [*SAVED, ("stage by stage", "none")])
def test_a_run_goes_on_from_any_checkpoint(mode: str, network: Any) -> None:
    # Arrays grow between checkpoints.
    given = {"scheduler": "eagle"} if network == "none" else MODES[mode]
    setting = over(network, WORK, delay_s=0.0005, rows=1, **given)
    found, moves = digest_with_restores(setting, 5)
    assert moves > 3
    assert found == digest(run_setting(setting, OBSERVED))


def of_one_wave() -> Any:
    """Jobs for machines that have room for all tasks, so that all reducers of a job are launched at one time."""
    draw = np.random.default_rng(3)
    tasks = draw.integers(1, 30, 40)
    return make_dag_workload(
        "map and reduce",
        draw.uniform(0, 3, 20),
        [2] * 20,
        tasks,
        draw.uniform(0.5, 1, tasks.sum()),
        [(job, 0, 1) for job in range(20)],
        cpu_cores=[1.0] * 40,
        edge_bytes=draw.choice([1e7, 3e8, 2e9], 20),
    )


def bytes_of_copies_alone() -> Any:
    """Of all-to-all edges no bytes are known."""
    work = mixed_dags(jobs=20)
    size = [GB if kind == "one-to-one" else None for kind in work.edges["kind"].to_pylist()]
    table = work.edges.append_column(EDGE_BYTES, pa.array(size, pa.float64()))
    return with_tables(work, edges=table.cast(edges_schema(table.column_names)))


def after_the_end(scheduler: str) -> tuple[Setting, Setting]:
    setting = over("fair", with_bytes(mixed_dags(jobs=6, seed=3), 3), scheduler=scheduler, delay_s=0.0005)
    return setting, failing(setting, [(0, 10_000.0, 10_001.0)], 1.0)


def pairs(work: Any, given: dict[str, Any], one: dict[str, Any], other: dict[str, Any]) -> Any:
    return lambda: tuple(over(workload=work, **{**given, **more}) for more in (one, other))


ONE_MACHINE = build_cluster("machine", [16], cpu_cores=[16.0])
READS = with_input(mixed_dags(jobs=20), 3)
LOCAL = ({}, {"input": "share", "local_share": 1.0})
TWINS: dict[str, Callable[[], Any]] = {
    "a network of one machine": pairs(WORK, {"nodes": ONE_MACHINE}, {"network": "none"}, {"network": "fair"}),
    "pipelined without bytes over all-to-all edges": pairs(
        bytes_of_copies_alone(), {"network": "fair"}, {}, {"registration": "pipelined"}
    ),
    "pushed without bytes": pairs(READS, {"network": "fair", "input": "share"}, {}, {"shuffle": "push"}),
    **{f"a failure after the end, {name}": lambda name=name: after_the_end(name) for name in ("drf", "srtf")},
    **{
        f"local parts under {name} over {network}": pairs(
            WORK, {"network": network, "scheduler": name}, *LOCAL
        )
        for network in ("fair", "sebf", "aalo")
        for name in ("drf", "tetris", "carbyne", "srtf")
    },
}


@pytest.mark.parametrize("twins", TWINS)
def test_what_changes_nothing(twins: str) -> None:
    settings = TWINS[twins]()
    one, other = map(run_setting, settings)
    assert one.tasks is not None
    assert other.tasks is not None
    for name in ("node", "start_ns", "finish_ns"):
        assert (one.tasks[name] == other.tasks[name]).all()
    assert (one.finish_ns == other.finish_ns).all()
    if twins == "a network of one machine":
        assert other.series.moved_bytes == 0 < other.series.local_bytes
    elif twins.startswith("local parts"):
        assert one.series.moved_bytes == other.series.moved_bytes
        read = np.nansum(WORK.arrays().input_bytes)
        assert np.isclose(other.series.local_bytes, one.series.local_bytes + read)
    elif "without bytes" in twins:
        assert one.counters == other.counters
        assert one.counters["flows"] > 0
        assert (one.series.fetched_ns == other.series.fetched_ns).all()
        assert (other.series.home == -1).all() if "pushed" in twins else one.series.launched_ns.size == 0


@pytest.mark.parametrize("coordinator", COORDINATORS)
def test_shuffles_of_one_wave_are_the_same_together_and_apart(coordinator: str) -> None:
    work, nodes = of_one_wave(), build_cluster("machines", [10] * 120, cpu_cores=[10.0] * 120)
    together, apart = (
        run_setting(over(coordinator, work, nodes, waves=waves)) for waves in ("together", "apart")
    )
    assert 10 < together.series.coflows <= 20
    assert digest(together) == digest(apart)


@pytest.mark.parametrize("scheduler", JOB_SCHEDULERS)
def test_jobs_of_one_stage_run_as_jobs(scheduler: str) -> None:
    draws = np.random.default_rng(5)
    tasks = draws.integers(1, 12, 40)
    work = make_workload(
        "jobs", np.cumsum(draws.exponential(0.5, 40)), tasks, draws.exponential(3.0, tasks.sum())
    )
    nodes = build_cluster("test", [2] * 12)
    plain = run_setting(setting_of_jobs(scheduler, work, nodes, cutoff_s=3.0, long_partition=0.8))
    given = {"delay_s": 0.0005, "short_cutoff_s": 3.0, "long_partition": 0.8}
    by_stages = run_setting(over("none", as_dags(work), nodes, scheduler, **given))
    assert all_times_of(plain) == all_times_of(by_stages)
    assert (plain.start_ns == by_stages.start_ns).all()
    assert (plain.events, plain.counters) == (by_stages.events, by_stages.counters)


@pytest.mark.parametrize("scheduler", ["sparrow", "eagle", "central-lwl"])
def test_partitions_do_not_change_a_run_stage_by_stage(scheduler: str) -> None:
    setting = over("none", WORK, scheduler=scheduler, delay_s=0.0005, short_cutoff_s=3.0, long_partition=0.8)
    whole = digest(run_setting(setting, OBSERVED))
    assert [digest(run_windows(setting, OBSERVED, partitions)) for partitions in (2, 3)] == [whole] * 2


@pytest.mark.parametrize("coordinator", [*COORDINATORS, *OWN])
def test_coflows_of_an_instant_are_registered_before_anything_else_happens(coordinator: Any) -> None:
    # At 1 s the stages of three jobs fetch. With 2 rows the host makes room in between. The input of the first job's
    # task is on its machine, and it takes no time: its end lets a task of the last job start on that machine at 1 s,
    # where another of its stage fetches already.
    work = make_dag_workload(
        "by hand",
        [0] * 4,
        [1, 2, 2, 2],
        [1, 1, 1, 2, 2, 1, 2],
        [1, 1, 0, 1, 1, 1, 1, 1, 1, 1],
        [(1, 0, 1), (2, 0, 1), (3, 0, 1)],
        cpu_cores=[4, 2, 2, 0.5, 1, 0.5, 2],
        edge_bytes=[1e6, 1e9, 1e9],
    )
    nodes = of_cores(6, 0.5, 0.5, 0.5)
    whole, in_parts = (run_setting(over(coordinator, work, nodes, rows=rows)) for rows in (1024, 2))
    assert all_times_of(in_parts) == all_times_of(whole)
    assert in_parts.series.coflows == whole.series.coflows == 3


def test_a_variant_of_a_coordinator_is_made_again_elsewhere() -> None:
    # As a run through Ray, or a resumed one, gets it.
    variant = make_variant(find_scheduler("philae"), {"policy": "A", "thin_limit": 0}, "philae-a")
    joined = with_network(find_scheduler("drf"), variant)
    plain = over("philae", with_bytes(mixed_dags(jobs=8), 3))
    setting = replace(plain, scheduler=joined)
    again = replace(setting, scheduler=pickle.loads(pickle.dumps(joined)))
    assert digest(run_setting(again)) == digest(run_setting(setting))
    assert digest(run_setting(again)) != digest(run_setting(plain))


def reducers(count: int, second_s: float = 1.0, cores: float = 1.0) -> Any:
    """Two maps, of which each fills three quarters of a machine, and many reducers, to which either sends 2 GB."""
    durations = [1.0, second_s, *[1.0] * count]
    return make_dag_workload(
        "many",
        [0],
        [2],
        [2, count],
        durations,
        [(0, 0, 1)],
        cpu_cores=[0.375 * count, cores],
        edge_bytes=[4 * GB],
    )


@pytest.mark.parametrize(
    ("network", "second_s", "cores", "mode", "end_s"),
    [
        ("fair", 1, 1.0, {}, 3),
        # They wait for a map of 2 s, on a machine that has room for them beside it.
        *((network, 2, 0.25, {"registration": "pipelined"}, 4) for network in ("fair", "sebf")),
        *((network, 1, 0.25, {"shuffle": "push"}, None) for network in ("fair", "sebf")),
    ],
)
def test_more_tasks_fetch_together_than_one_event_may_tell(
    network: str, second_s: float, cores: float, mode: dict[str, Any], end_s: float | None
) -> None:
    # An event sends 66 messages at most, and 200 reducers run on each of two machines.
    found = run_setting(over(network, reducers(400, second_s, cores), of_cores(200, 200), **mode))
    assert end_s is None or found.finish_ns.tolist() == [end_s * 1e9]
    assert found.counters["flows"] == 2
    assert (found.series.fetched_ns[2:] > 1.9e9).all()  # drawn homes differ a little in number


@pytest.mark.parametrize("network", ["fair", "sebf"])
def test_more_homes_are_asked_than_one_event_may_ask(network: str) -> None:
    # 40 stages of 20 tasks on five machines: an event sends 61 messages at most, and 40 stages have 200 homes.
    wide = make_dag_workload(
        "wide",
        [0],
        [41],
        [1] + [20] * 40,
        [1] * 801,
        [(0, 0, stage) for stage in range(1, 41)],
        cpu_cores=[1] + [0.01] * 40,
        edge_bytes=[GB] * 40,
    )
    found = run_setting(over(network, wide, MACHINES, shuffle="push"))
    assert set(found.series.sent_ns[1:].tolist()) == {1_000_000_000}
    assert (found.finish_ns > 0).all()


def test_more_tasks_wait_for_their_parts_than_one_event_may_launch() -> None:
    # 300 tasks on two machines of 300 cores each: those local to machine 0 start there, the others on machine 1.
    work = make_dag_workload("reads", [0], [1], [300], [1] * 300, [], cpu_cores=[1], input_bytes=[300 * GB])
    given = {"input": "replicas", "replicas": 1, "locality_wait_s": 5.0}
    setting = over("fair", work, of_cores(300, 300), **given)
    found = run_setting(setting)
    assert found.tasks is not None
    assert found.tasks["node"].tolist() == [machines[0] for machines in places_of(setting).values()]
    assert found.finish_ns.tolist() == [1_000_000_000]
