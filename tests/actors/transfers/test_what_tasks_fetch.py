"""When tasks have their input: as other programs say, in every setting of the network."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from actors.hosting.outcome import Outcome
from actors.inputs import origins_of, parts_of
from actors.kernel.random import READS
from actors.setting import Costs, Network, Setting
from clusters.cluster import build_cluster
from tests.actors.dag_settings import mixed_dags, with_bytes, with_input
from tests.actors.splitmix import draw, draw_bits
from tests.actors.transfers.network_simulator import Network as Simulated
from tests.actors.transfers.network_simulator import is_as_simulated
from tests.actors.transfers.runs import (
    COORDINATORS,
    GB,
    JOB_SCHEDULERS,
    MACHINES,
    MANAGERS,
    OWN,
    holds_what_it_has,
    homes_of,
    of_cores,
    over,
    places_of,
)
from tests.actors.transfers.served_as_coflows import is_served_as_coflows
from tests.emulations import run_setting
from workloads.dags import DagWorkload, make_dag_workload

RACKED = build_cluster("machines", [4, 8, 4, 2, 6], cpu_cores=[4.0, 8.0, 4.0, 2.0, 6.0], rack=[0, 0, 1, 1, 2])
SMALL = (
    build_cluster("one slot", [1], cpu_cores=[2.0]),
    build_cluster("two slots", [1, 1], cpu_cores=[2.0, 2.0]),
    build_cluster("three slots", [2, 1], cpu_cores=[2.0, 2.0]),
)
PIPELINED = {"registration": "pipelined"}
PUSHED = {"shuffle": "push"}
READ: dict[str, dict[str, Any]] = {
    "share": {"input": "share", "local_share": 0.4},
    "replicas": {"input": "replicas", "replicas": 2},
    "racks": {"input": "replicas", "replicas": 3, "replica_placement": "racks"},
}
PRICES = {
    "per_message_s": 0.002,
    "per_job_s": 0.05,
    "per_task_s": 0.01,
    "per_update_s": 0.001,
    "per_flow_s": 0.0005,
    "per_coflow_s": 0.003,
    "per_schedule_s": 0.0007,
}


def work_of(seed: int, jobs: int = 8) -> DagWorkload:
    return with_input(with_bytes(mixed_dags(jobs=jobs, seed=seed, priorities=3), seed), seed)


def origins(setting: Setting, node: np.ndarray) -> dict[int, int]:
    """From where each task reads, that was launched on `node`."""
    arrays, switch, nodes = setting.workload.arrays(), setting.switch, setting.cluster.num_nodes
    racks, first = setting.cluster.racks(), arrays.stage_first_task
    if switch.input == "outside":
        return {}
    found = {}
    lies = places_of(setting) if switch.input == "replicas" else {}
    for stage in np.flatnonzero(np.nan_to_num(arrays.input_bytes) > 0):
        for task in range(first[stage], first[stage + 1]):
            here = int(node[task])
            if lies:
                near = [other for other in lies[task] if racks[other] == racks[here]]
                # Of several they are listed by rack, which is by number here.
                of = sorted([here] if here in near else near or lies[task])
                found[task] = of[draw(setting.seed, READS, task, 0, len(of))]
            else:
                is_local = draw_bits(setting.seed, READS, task, 0) / 2**64 < switch.local_share
                others = [other for other in range(nodes) if other != here]
                found[task] = here if is_local else others[draw(setting.seed, READS, task, 1, len(others))]
    return found


def begin_of(setting: Setting, found: Outcome) -> np.ndarray:
    """When each task began to fetch, ns: when it was launched; pushed, two messages after the last report of a task
    that it waits for.
    """
    tasks, arrays = found.tasks, setting.workload.arrays()
    assert tasks is not None
    begin, first = tasks["start_ns"].copy(), arrays.stage_first_task
    if setting.switch.shuffle != "push":
        return begin
    delay_ns, beat_ns = round(setting.network.delay_s * 1e9), round(setting.parameters["heartbeat_s"] * 1e9)
    reported = tasks["finish_ns"]
    if beat_ns:
        begins = arrays.submit_ns[0] + tasks["node"] * beat_ns // setting.cluster.num_nodes
        reported = begins + np.maximum(-((begins - reported) // beat_ns), 0) * beat_ns
    for task in np.flatnonzero(homes_of(setting) >= 0).tolist():
        stage, last = int(np.searchsorted(first, task, "right")) - 1, 0
        for e in range(arrays.first_parent[stage], arrays.first_parent[stage + 1]):
            theirs = reported[slice(*first[arrays.parent[e] : arrays.parent[e] + 2])]
            last = max(
                last, int(theirs[task - first[stage]] if arrays.parent_one_to_one[e] else theirs.max())
            )
        begin[task] = last + 2 * delay_ns
    return begin


def holds(setting: Setting, found: Outcome, origin: dict[int, int]) -> None:
    """Check what holds of each run: capacities, order, durations, bytes, and what is counted."""
    arrays, tasks, series = setting.workload.arrays(), found.tasks, found.series
    assert tasks is not None
    node, start, finish = tasks["node"], tasks["start_ns"], tasks["finish_ns"]
    holds_what_it_has(setting, node, start, finish)
    assert (found.finish_ns == np.maximum.reduceat(finish, arrays.first_task[:-1])).all()
    assert (start >= np.repeat(arrays.submit_ns, np.diff(arrays.first_task))).all()
    is_pushed = setting.switch.shuffle == "push"
    has_home = homes_of(setting) >= 0 if is_pushed else np.zeros(node.size, np.bool_)
    compute = np.where(has_home | (series.fetched_ns < 0), start, series.fetched_ns)
    assert (finish - compute == arrays.duration_ns).all()
    # A job starts when one of its tasks computes, under schedulers of jobs when one has a slot.
    first = start if setting.scheduler.worlds.also == "jobs" else compute
    assert (found.start_ns == np.minimum.reduceat(first, arrays.first_task[:-1])).all()
    local = sum(origin[task] == node[task] for task in origin)
    assert found.counters.get("local_reads", 0) == local
    assert found.counters.get("remote_reads", 0) == len(origin) - local
    # All that edges and stages state has come to where it is needed.
    stated = np.nansum(arrays.edge_bytes) + np.nansum(arrays.input_bytes) * (
        setting.switch.input != "outside"
    )
    assert np.isclose(series.moved_bytes + series.local_bytes, stated)
    if is_pushed:
        holds_of_homes(setting, found, has_home)
    else:
        check_order(setting, found, compute)


def holds_of_homes(setting: Setting, found: Outcome, has_home: np.ndarray) -> None:
    series, tasks, delay_ns = found.series, found.tasks, round(setting.network.delay_s * 1e9)
    assert tasks is not None
    assert (series.home == homes_of(setting)).all()
    assert (tasks["node"][has_home] == series.home[has_home]).all()
    assert (series.sent_ns[~has_home] == -1).all()
    assert (series.ready_ns[~has_home] == -1).all()
    assert (series.ready_ns >= series.fetched_ns + delay_ns)[has_home].all()
    if setting.costs.model == "none" and setting.network.spread_s == 0:
        assert (series.sent_ns == begin_of(setting, found))[has_home].all()
        assert (series.ready_ns == series.fetched_ns + delay_ns)[has_home].all()
    assert (series.fetched_ns >= series.sent_ns)[has_home].all()
    assert (tasks["start_ns"] >= series.ready_ns + delay_ns)[has_home].all()


def check_order(setting: Setting, found: Outcome, compute: np.ndarray) -> None:
    """No task is launched before its parents have ended; over pipelined edges, before they were launched, and it
    computes when they have ended.
    """
    arrays, tasks, launched = setting.workload.arrays(), found.tasks, found.series.launched_ns
    assert tasks is not None
    first, start, finish = arrays.stage_first_task, tasks["start_ns"], tasks["finish_ns"]
    is_pipelined = setting.switch.registration == "pipelined"
    is_of_jobs = (
        setting.scheduler.worlds.also == "jobs"
    )  # which waits for the whole stage, and for two messages
    delay_ns = 2 * round(setting.network.delay_s * 1e9) if is_of_jobs else 0
    if is_pipelined:
        assert (launched <= np.maximum.reduceat(start, first[:-1])).all()
    for stage in range(first.size - 1):
        own = slice(*first[stage : stage + 2])
        for e in range(arrays.first_parent[stage], arrays.first_parent[stage + 1]):
            theirs = slice(*first[arrays.parent[e] : arrays.parent[e] + 2])
            if arrays.parent_one_to_one[e] and not is_of_jobs:
                assert (start[own] >= finish[theirs]).all()
            elif is_pipelined and arrays.parent_bytes[e] > 0:
                assert compute[own].min() >= finish[theirs].max()
                assert start[own].min() >= launched[arrays.parent[e]] >= 0
            else:
                assert start[own].min() >= finish[theirs].max() + delay_ns


class Kind(NamedTuple):
    """A way in which tasks get their input, and under which schedulers it is tried."""

    given: dict[str, Any]
    schedulers: tuple[str, ...] = MANAGERS
    nodes: tuple[Any, ...] = (MACHINES,)
    heartbeats_s: tuple[float, ...] = (0.0, 1.0)


KINDS = {
    "pulled": Kind({}),
    "priorities": Kind({"priorities": True}),
    "two managers": Kind({"managers": 2}),
    "stage by stage": Kind({}, JOB_SCHEDULERS, (MACHINES,), (0.0,)),
    "pipelined": Kind(PIPELINED, nodes=(*SMALL, MACHINES)),
    "pipelined, parts": Kind({**PIPELINED, **READ["share"]}),
    "pushed": Kind(PUSHED),
    "pushed, priorities": Kind({**PUSHED, "priorities": True}),
    "pushed, parts": Kind({**PUSHED, **READ["replicas"], "locality_wait_s": 0.5}),
    **{f"parts by {name}": Kind(read, nodes=(RACKED,)) for name, read in READ.items()},
}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data(), seed=st.integers(0, 10**6))
@settings(max_examples=12)
def test_tasks_have_their_input_when_another_simulation_says(kind: str, data: Any, seed: int) -> None:
    more, schedulers, clusters, heartbeats_s = KINDS[kind]
    given = {
        "scheduler": data.draw(st.sampled_from(schedulers)),
        "nodes": data.draw(st.sampled_from(clusters)),
        "delay_s": data.draw(st.sampled_from([0.0, 0.0005])),
        "skew": data.draw(st.sampled_from([0.0, 0.7])),
    }
    if len(heartbeats_s) > 1:
        given["heartbeat_s"] = data.draw(st.sampled_from(heartbeats_s))
    setting = over("fair", work_of(seed), seed=seed, **given, **more)
    found, arrays = run_setting(setting), setting.workload.arrays()
    assert found.tasks is not None
    origin = origins(setting, found.tasks["node"])
    holds(setting, found, origin)
    part = parts_of(np.diff(arrays.stage_first_task), setting.switch.skew, seed)
    net = Simulated(GB, origin, part, setting.switch.registration == "pipelined")
    is_as_simulated(arrays, found, net, begin_of(setting, found))


COORDINATED: dict[str, Kind] = {
    "pulled": Kind({}, ("drf", "carbyne", "srtf")),
    "pipelined": Kind(PIPELINED, ("drf", "srtf", "tetris")),
    "pushed": Kind(PUSHED, ("drf", "srtf")),
    "parts": Kind(READ["racks"], ("drf", "tetris", "carbyne"), (RACKED,)),
    "costs": Kind({"costs": Costs("fixed", **PRICES)}, ("drf",)),
}


@pytest.mark.slow("many drawn cases")
@pytest.mark.parametrize("coordinator", [*COORDINATORS, *OWN])
@pytest.mark.parametrize("kind", COORDINATED)
@given(data=st.data(), seed=st.integers(0, 10**6), delay_s=st.sampled_from([0.0, 0.0005]))
@settings(max_examples=3)
def test_coflows_are_served_as_those_of_a_workload(
    kind: str, coordinator: Any, data: Any, seed: int, delay_s: float
) -> None:
    more, schedulers, (nodes,), _ = COORDINATED[kind]
    scheduler = data.draw(st.sampled_from(schedulers))
    work = work_of(seed, jobs=4 if kind == "parts" else 6)
    setting = over(coordinator, work, nodes, scheduler, delay_s=delay_s, waves="apart", seed=seed, **more)
    found, arrays = run_setting(setting), work.arrays()
    assert found.tasks is not None
    origin = origins(setting, found.tasks["node"])
    if kind != "costs":
        holds(setting, found, origin)
    served = is_served_as_coflows(
        coordinator,
        arrays,
        found,
        begin_ns=begin_of(setting, found),
        origin=origin,
        is_pipelined=setting.switch.registration == "pipelined",
        delay_s=delay_s,
        costs=setting.costs,
    )
    assume(served is not None)
    assert served is not None
    if kind == "costs":
        for name in ("busy", "served", "waited", "longest", "most", "free"):
            assert found.servers[name][-2] == served.servers[name][0]


@pytest.mark.parametrize(
    "given", [{"costs": Costs("fixed", per_message_s=0.01)}, {"network": Network(0.001, spread_s=0.01)}]
)
def test_pushed_managers_may_be_busy_and_delays_may_differ(given: dict[str, Any]) -> None:
    setting = replace(over("fair", with_bytes(mixed_dags(), 2), delay_s=0.001, **PUSHED), **given)
    found = run_setting(setting)
    holds(setting, found, {})
    arrays, sent = setting.workload.arrays(), found.series.sent_ns
    for stage in range(setting.workload.num_stages):
        own = slice(*arrays.stage_first_task[stage : stage + 2])
        for e in range(arrays.first_parent[stage], arrays.first_parent[stage + 1]):
            if not arrays.parent_one_to_one[e]:
                assert np.unique(sent[own]).size <= np.unique(found.series.home[own]).size


@pytest.mark.parametrize("scheduler", ["drf", "fair-dags", "capacity"])
def test_pushed_where_nothing_is_left_over(scheduler: str) -> None:
    for seed in range(5):
        setting = over("fair", work_of(seed, 12), scheduler=scheduler, leftover="none", seed=seed, **PUSHED)
        holds(setting, run_setting(setting), {})


def test_several_managers_have_homes_on_their_own_machines() -> None:
    work, nodes = with_bytes(mixed_dags(jobs=16), 3), build_cluster("machines", [4] * 7, cpu_cores=[4.0] * 7)
    setting = over("sebf", work, nodes, managers=3, delay_s=0.001, **PUSHED)
    found = run_setting(setting)
    holds(setting, found, {})
    home, job = found.series.home, np.repeat(np.arange(16), np.diff(work.arrays().first_task))
    manager = np.searchsorted([7 * i // 3 for i in range(4)], home, "right") - 1
    assert (manager == job % 3)[home >= 0].all()


@pytest.mark.parametrize("scheduler", JOB_SCHEDULERS)
def test_tasks_that_wait_at_their_scheduler_are_served_by_it(scheduler: str) -> None:
    # Of two schedulers that have queues of their own, one has both jobs' stages of odd numbers: not so if stages took
    # turns.
    work = make_dag_workload(
        "wide",
        [0, 0, 0],
        [2, 2, 2],
        [1, 6] * 3,
        [1] * 21,
        [(job, 0, 1) for job in range(3)],
        cpu_cores=[1] * 6,
    )
    given = {"schedulers": 2} if scheduler in ("yacc-d", "sparrow", "hawk", "eagle", "phoenix") else {}
    cutoffs = {"short_cutoff_s": 3.0, "long_partition": 0.8}
    setting = over("none", work, of_cores(1), scheduler, delay_s=0.0005, **cutoffs, **given)
    found = run_setting(setting)
    assert found.tasks is not None
    start, finish = found.tasks["start_ns"].reshape(3, 7), found.tasks["finish_ns"].reshape(3, 7)
    assert (start[:, 1:] >= finish[:, :1] + 1_000_000).all()
    assert np.array_equal(np.sort(start.ravel())[1:] >= np.sort(finish.ravel())[:-1], np.ones(20, np.bool_))


@pytest.mark.parametrize("coordinator", COORDINATORS)
def test_stage_by_stage_under_a_coordinator_all_bytes_move(coordinator: str) -> None:
    work = with_input(with_bytes(mixed_dags(jobs=10, seed=3), 3), 3)
    setting = over(coordinator, work, scheduler="sparrow", delay_s=0.0005, input="replicas", replicas=2)
    found = run_setting(setting)
    assert found.tasks is not None
    origin = {t: int(of) for t, of in enumerate(origins_of(setting, found.tasks["node"]).tolist()) if of >= 0}
    holds(setting, found, origin)
    assert (found.series.fetched_ns[found.series.fetched_ns >= 0] > 0).all()
    # All that one machine receives takes its port at least so long.
    assert found.finish_ns.max() / 1e9 * MACHINES.num_nodes * GB >= found.series.moved_bytes


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
