"""Shuffles that are pushed to homes of tasks: by hand, and against programs that share no code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from coflow_emulations import setting_of as coflow_setting
from hypothesis import given, settings
from hypothesis import strategies as st
from test_coordinated import COORDINATORS, bytes_over, last_ends, orders, under, workload_of
from test_network import GB, MACHINES, of_one_core, on_network, seconds

from actors.hosting.outcome import Outcome
from actors.inputs import origins_of, parts_of
from actors.kernel.random import HOMES
from actors.setting import Costs, Network, Setting
from clusters.capacity import capacities, demands
from clusters.cluster import Cluster, build_cluster
from tests.actors.checkpointing import digest_with_restores
from tests.actors.dag_settings import mixed_dags, with_bytes, with_input
from tests.actors.splitmix import draw
from tests.actors.transfers.network_simulator import NOWHERE, fetched_s
from tests.emulations import OBSERVED, digest, run_setting
from workloads.dags import DagWorkload, make_dag_workload

MANAGERS = ("drf", "fair-dags", "cpm", "capacity", "sjf", "srtf", "tetris", "tetris-fair", "heft", "dagps")
COSTLY = Costs(model="fixed", per_message_s=0.01)
UNEVEN = Network(0.001, spread_s=0.01)
TWO = build_cluster("machines", [3, 4], cpu_cores=[3.0, 4.0])


def pushed(setting: Setting, **given: Any) -> Setting:
    return replace(setting, switch=replace(setting.switch, shuffle="push", **given))


def on(network: str, work: DagWorkload, nodes: Cluster, **given: Any) -> Setting:
    make = on_network if network == "fair" else lambda *of, **more: under(network, *of, **more)
    return pushed(make(work, nodes, **given))


def with_homes(wanted: list[int], network: str, work: DagWorkload, nodes: Cluster, **given: Any) -> Setting:
    """A setting by whose seed tasks have these homes, -1: none."""
    for seed in range(1000):
        setting = on(network, work, nodes, seed=seed, **given)
        if homes_of(setting).tolist() == wanted:
            return setting
    raise AssertionError("no seed has such homes")


def homes_of(setting: Setting) -> np.ndarray:
    """Where tasks run to which others send bytes, -1 for others, by the same draws from lists."""
    work, nodes = setting.workload, range(setting.cluster.num_nodes)
    arrays, managers = work.arrays(), setting.parameters.get("managers", 1)
    found = np.full(arrays.stage_first_task[-1], -1)
    needs, has = (np.rint(of * 1e9) for of in (demands(work), capacities(setting.cluster, work.resources)))
    for job in range(work.num_jobs):
        own = [
            node
            for node in nodes
            if int(np.searchsorted(bounds(nodes, managers), node, "right")) - 1 == job % managers
        ]
        for stage in range(arrays.first_stage[job], arrays.first_stage[job + 1]):
            if not (arrays.parent_bytes[slice(*arrays.first_parent[stage : stage + 2])] > 0).any():
                continue
            fit = [node for node in own if (needs[stage] <= has[node]).all()]
            fit.sort(key=lambda node: (*has[node].tolist(), node))
            for task in range(*arrays.stage_first_task[stage : stage + 2]):
                found[task] = fit[draw(setting.seed, HOMES, task, 0, len(fit))]
    return found


def bounds(nodes: range, managers: int) -> list[int]:
    return [len(nodes) * i // managers for i in range(managers + 1)]


@pytest.mark.parametrize(("network", "comes_s"), [("fair", 3.3), ("fifo", 3.5)])
def test_a_shuffle_between_two_machines(network: str, comes_s: float) -> None:
    # Messages take 0.1 s. Maps run from 0.1 to 1.1 s on machine 0, and to 2.1 s on machine 1; each sends 1 GB to each
    # reducer, of which the first is at home on machine 1, the other on 0. The manager hears of the last end at 2.2 s,
    # and homes are asked at 2.3 s. Both flows take 1 s: under fair from then on; a coordinator gets to know of them at
    # 2.4 s, and machines of their rates at 2.5 s. Then the manager hears of it, and launches.
    work = make_dag_workload(
        "two", [0], [2], [2, 2], [1, 2, 1, 3], [(0, 0, 1)], cpu_cores=[2, 1], edge_bytes=[4 * GB]
    )
    nodes = build_cluster("machines", [2, 2], cpu_cores=[2.0, 2.0])
    found = run_setting(with_homes([-1, -1, 1, 0], network, work, nodes, delay_s=0.1))
    assert found.tasks is not None
    assert found.tasks["node"].tolist() == [0, 1, 1, 0]
    ns = np.rint(np.array([2.3, comes_s, comes_s + 0.1, comes_s + 0.2]) * 1e9).astype(int).tolist()
    assert found.series.sent_ns.tolist() == [-1, -1, ns[0], ns[0]]
    assert found.series.fetched_ns.tolist() == [-1, -1, ns[1], ns[1]]
    assert found.series.ready_ns.tolist() == [-1, -1, ns[2], ns[2]]
    assert found.tasks["start_ns"].tolist() == [100_000_000, 100_000_000, ns[3], ns[3]]
    assert found.tasks["finish_ns"].tolist()[2:] == [ns[3] + 1_000_000_000, ns[3] + 3_000_000_000]
    assert (found.series.moved_bytes, found.series.local_bytes) == (2 * GB, 2 * GB)
    assert found.counters["flows"] == 2
    if network == "fifo":
        assert (found.series.coflows, found.series.mean_cct_s) == (1, 1.2)


@pytest.mark.parametrize("network", ["fair", "sebf"])
def test_nothing_is_held_meanwhile(network: str) -> None:
    # Three maps on machine 0 send 6 GB to a reducer that fills machine 1, from 5 to 11 s. J1, which comes at 6 s and
    # fills machine 1, too, runs there until 13 s; then the reducer does. Pulled, it holds the machine from 5 to 12 s.
    work = make_dag_workload(
        "beside",
        [0, 6],
        [2, 1],
        [3, 1, 1],
        [1, 2, 5, 1, 7],
        [(0, 0, 1)],
        cpu_cores=[1, 4, 4],
        edge_bytes=[6 * GB],
    )
    setting = on(network, work, TWO)
    assert seconds(run_setting(setting)) == ([0, 0, 0, 13, 6], [-1, -1, -1, 11, -1], [1, 2, 5, 14, 13])
    pulled = replace(setting, switch=replace(setting.switch, shuffle="pull"))
    assert seconds(run_setting(pulled)) == ([0, 0, 0, 5, 12], [-1, -1, -1, 11, -1], [1, 2, 5, 12, 19])


def test_copies_are_sent_as_each_task_ends() -> None:
    # Copies of 1 GB: of maps that end at 1, 2 and 2 s, to homes on the other machine. The first one is there at 2 s,
    # when the two others begin, as one flow.
    work = make_dag_workload(
        "copies",
        [0],
        [2],
        [3, 3],
        [1, 2, 2, 1, 1, 1],
        [(0, 0, 1)],
        cpu_cores=[1, 1],
        edge_kind=["one-to-one"],
        edge_bytes=[3 * GB],
    )
    found = run_setting(with_homes([-1, -1, -1, 1, 1, 1], "fair", work, TWO))
    assert seconds(found) == ([0, 0, 0, 2, 4, 4], [-1, -1, -1, 2, 4, 4], [1, 2, 2, 3, 5, 5])
    assert found.counters["flows"] == 2


def test_what_lies_at_home_needs_no_network() -> None:
    work = make_dag_workload(
        "here", [0], [2], [1, 2], [1, 1, 1], [(0, 0, 1)], cpu_cores=[1, 1], edge_bytes=[2 * GB]
    )
    found = run_setting(with_homes([-1, 0, 0], "fair", work, TWO))
    assert seconds(found) == ([0, 1, 1], [-1, 1, 1], [1, 2, 2])
    assert (found.series.moved_bytes, found.series.local_bytes, found.counters.get("flows", 0)) == (
        0,
        2 * GB,
        0,
    )


def test_a_task_waits_for_its_home_and_others_do_not() -> None:
    # Both reducers are at home on machine 1 of one core, which runs one after the other; machine 0 is free.
    work = make_dag_workload(
        "waits", [0], [2], [1, 2], [1, 2, 2], [(0, 0, 1)], cpu_cores=[1, 1], edge_bytes=[2 * GB]
    )
    found = run_setting(with_homes([-1, 1, 1], "fair", work, of_one_core(2)))
    assert seconds(found) == ([0, 3, 5], [-1, 3, 3], [1, 5, 7])


def sent_from(setting: Setting, tasks: dict[str, np.ndarray]) -> np.ndarray:
    """When each task with a home was asked for: two messages after the last report of a task that it waits for, ns."""
    arrays, found = setting.workload.arrays(), tasks["start_ns"].copy()
    first, delay_ns = arrays.stage_first_task, round(setting.network.delay_s * 1e9)
    beat_ns = round(setting.parameters["heartbeat_s"] * 1e9)
    begins = arrays.submit_ns[0] + tasks["node"] * beat_ns // setting.cluster.num_nodes
    reported = tasks["finish_ns"]
    if beat_ns:
        reported = begins + np.maximum(-((begins - reported) // beat_ns), 0) * beat_ns
    for task in np.flatnonzero(homes_of(setting) >= 0).tolist():
        stage, last = int(np.searchsorted(first, task, "right")) - 1, 0
        for e in range(arrays.first_parent[stage], arrays.first_parent[stage + 1]):
            theirs = reported[slice(*first[arrays.parent[e] : arrays.parent[e] + 2])]
            last = max(
                last, int(theirs[task - first[stage]] if arrays.parent_one_to_one[e] else theirs.max())
            )
        found[task] = last + 2 * delay_ns
    return found


def check_pushed(setting: Setting, found: Outcome, origin: Mapping[int, int] = NOWHERE) -> None:
    """Check homes, order and bytes of a run."""
    work, tasks, series = setting.workload, found.tasks, found.series
    assert tasks is not None
    assert (found.finish_ns >= 0).all()
    arrays, home = work.arrays(), homes_of(setting)
    has_home, delay_ns = home >= 0, round(setting.network.delay_s * 1e9)
    assert (series.home == home).all()
    assert (tasks["node"][has_home] == home[has_home]).all()
    assert (series.sent_ns[~has_home] == -1).all()
    assert (series.ready_ns[~has_home] == -1).all()
    assert (series.ready_ns >= series.fetched_ns + delay_ns)[has_home].all()
    if setting.costs.model == "none" and setting.network.spread_s == 0:
        assert (series.sent_ns == sent_from(setting, tasks))[has_home].all()
        assert (series.ready_ns == series.fetched_ns + delay_ns)[has_home].all()
    assert (series.fetched_ns >= series.sent_ns)[has_home].all()
    assert (tasks["start_ns"] >= series.ready_ns + delay_ns)[has_home].all()
    begin = np.where(has_home | (series.fetched_ns < 0), tasks["start_ns"], series.fetched_ns)
    assert (tasks["finish_ns"] - begin == arrays.duration_ns).all()
    in_all = np.nansum(arrays.parent_bytes) + sum(
        arrays.input_bytes[stage] * sum(task in origin for task in range(*arrays.stage_first_task[stage : stage + 2]))
        / np.diff(arrays.stage_first_task)[stage]
        for stage in np.flatnonzero(arrays.input_bytes > 0)
    )  # fmt: skip
    assert np.isclose(series.moved_bytes + series.local_bytes, in_all)
    check_room(setting, tasks)


def check_room(setting: Setting, tasks: dict[str, np.ndarray]) -> None:
    """No machine holds more than it has: ends come before starts of the same time."""
    needs = np.repeat(demands(setting.workload), np.diff(setting.workload.arrays().stage_first_task), axis=0)
    has = capacities(setting.cluster, setting.workload.resources)
    for node in range(setting.cluster.num_nodes):
        on = np.flatnonzero((tasks["node"] == node) & (tasks["finish_ns"] > tasks["start_ns"]))
        times = np.concatenate([2 * tasks["finish_ns"][on], 2 * tasks["start_ns"][on] + 1])
        held = np.concatenate([-needs[on], needs[on]])[np.argsort(times, kind="stable")].cumsum(axis=0)
        assert (held <= has[node] + 1e-9).all()


@pytest.mark.parametrize("scheduler", MANAGERS)
@given(
    seed=st.integers(0, 10**6),
    delay_s=st.sampled_from([0.0, 0.0005]),
    skew=st.sampled_from([0.0, 0.7]),
    more=st.sampled_from([{}, {"heartbeat_s": 1.0}, {"priorities": True}]),
)
@settings(max_examples=5)
def test_tasks_have_their_input_when_another_simulation_says(
    scheduler: str, seed: int, delay_s: float, skew: float, more: dict[str, Any]
) -> None:
    work = with_bytes(mixed_dags(jobs=8, seed=seed, priorities=3), seed)
    given = {"skew": skew, "scheduler": scheduler, "delay_s": delay_s, "seed": seed}
    setting = on("fair", work, MACHINES, **given, **more)
    found = run_setting(setting)
    check_pushed(setting, found)
    check_times(setting, found, parts_of(np.diff(work.arrays().stage_first_task), skew, seed))


def check_times(
    setting: Setting, found: Outcome, part: np.ndarray, origin: Mapping[int, int] = NOWHERE
) -> None:
    """Check against max-min fair rates by another program, in which tasks fetch from when homes were asked."""
    assert found.tasks is not None
    begun = found.tasks | {"start_ns": sent_from(setting, found.tasks)}
    expected, moved, local = fetched_s(setting.workload.arrays(), begun, GB, origin, part)
    has_input = found.series.fetched_ns >= 0
    assert (has_input == np.isfinite(expected)).all()
    assert np.allclose(found.series.fetched_ns[has_input] / 1e9, expected[has_input], rtol=0, atol=1e-6)
    assert np.isclose(found.series.moved_bytes, moved)
    assert np.isclose(found.series.local_bytes, local)


@pytest.mark.parametrize("wait_s", [0.0, 0.5])
@pytest.mark.parametrize("read", ["share", "replicas"])
@pytest.mark.parametrize("scheduler", ["drf", "tetris"])
def test_with_the_input_of_jobs(scheduler: str, read: str, wait_s: float) -> None:
    work = with_input(with_bytes(mixed_dags(jobs=20), 3), 3)
    setting = on("fair", work, MACHINES, scheduler=scheduler)
    wait_s *= read != "share"
    setting = pushed(setting, input=read, local_share=0.5, replicas=2, locality_wait_s=wait_s)
    if scheduler == "tetris":
        setting.parameters["remote_penalty"] = 0.3
    found = run_setting(setting)
    assert found.tasks is not None
    origins = origins_of(setting, found.tasks["node"])
    origin = {task: int(of) for task, of in enumerate(origins.tolist()) if of >= 0}
    check_pushed(setting, found, origin)
    check_times(setting, found, np.ones(origins.size), origin)


def test_several_managers_have_homes_on_their_own_machines() -> None:
    work, nodes = with_bytes(mixed_dags(jobs=16), 3), build_cluster("machines", [4] * 7, cpu_cores=[4.0] * 7)
    setting = on("sebf", work, nodes, managers=3, delay_s=0.001)
    found = run_setting(setting)
    check_pushed(setting, found)
    home, job = found.series.home, np.repeat(np.arange(16), np.diff(work.arrays().first_task))
    manager = np.searchsorted(bounds(range(7), 3), home, "right") - 1
    assert (manager == job % 3)[home >= 0].all()


@pytest.mark.parametrize("coordinator", COORDINATORS)
@given(
    seed=st.integers(0, 10**6),
    scheduler=st.sampled_from(("drf", "srtf")),
    delay_s=st.sampled_from([0.0, 0.0005]),
)
@settings(max_examples=5)
def test_coflows_are_served_as_those_of_a_workload(
    coordinator: str, seed: int, scheduler: str, delay_s: float
) -> None:
    dags = with_bytes(mixed_dags(jobs=8, seed=seed), seed)
    setting = pushed(under(coordinator, dags, scheduler=scheduler, delay_s=delay_s, waves="apart", seed=seed))
    found = run_setting(setting)
    check_pushed(setting, found)
    arrays, tasks = dags.arrays(), found.tasks
    assert tasks is not None
    begun = tasks | {"start_ns": sent_from(setting, tasks)}
    sizes = bytes_over(arrays, begun)
    for order in orders(arrays, sizes):
        work = workload_of(order, sizes, MACHINES.num_nodes)
        served = run_setting(coflow_setting(coordinator, work, speed=GB, delay_s=delay_s))
        if (found.series.fetched_ns == last_ends(arrays, begun, served, order, work)).all():
            break
    else:
        raise AssertionError("no order of registration gives the same times")
    assert found.series.coflows == work.num_coflows
    assert np.isclose(found.series.mean_cct_s, (served.finish_ns - work.arrays().arrival_ns).mean() / 1e9)
    shuffles = ~arrays.parent_one_to_one.astype(bool) & (arrays.parent_bytes > 0)
    assert found.series.coflows <= shuffles.sum() + sum(
        np.diff(arrays.stage_first_task)[arrays.parent[e]] for e in np.flatnonzero(arrays.parent_one_to_one)
    )


@pytest.mark.parametrize("network", ["fair", *COORDINATORS])
def test_few_rows(network: str) -> None:
    # With few rows the host makes room again and again; no time differs.
    work = with_bytes(mixed_dags(jobs=30), 2)
    whole, grown = (run_setting(on(network, work, MACHINES, rows=rows)) for rows in (1 << 16, 1))
    assert (grown.finish_ns == whole.finish_ns).all()
    for one, other in zip(grown.series, whole.series, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("network", ["fair", "sebf", "philae"])
def test_a_run_goes_on_from_any_checkpoint(network: str) -> None:
    setting = on(network, with_bytes(mixed_dags(), 2), MACHINES, scheduler="srtf", delay_s=0.0005, rows=1)
    found, moves = digest_with_restores(setting, 5)
    assert moves > 3
    assert found == digest(run_setting(setting, OBSERVED))


@pytest.mark.parametrize("given", [{"costs": COSTLY}, {"network": UNEVEN}])
def test_managers_may_be_busy_and_delays_may_differ(given: dict[str, Any]) -> None:
    setting = replace(on("fair", with_bytes(mixed_dags(), 2), MACHINES, delay_s=0.001), **given)
    found = run_setting(setting)
    check_pushed(setting, found)
    arrays, sent = setting.workload.arrays(), found.series.sent_ns
    for stage in range(setting.workload.num_stages):
        own = slice(*arrays.stage_first_task[stage : stage + 2])
        for e in range(arrays.first_parent[stage], arrays.first_parent[stage + 1]):
            if not arrays.parent_one_to_one[e]:
                assert np.unique(sent[own]).size <= np.unique(found.series.home[own]).size


@pytest.mark.parametrize("scheduler", ["drf", "fair-dags", "capacity"])
def test_where_nothing_is_left_over(scheduler: str) -> None:
    for seed in range(5):
        work = with_bytes(mixed_dags(jobs=20, seed=seed), seed)
        setting = on("fair", work, MACHINES, scheduler=scheduler, leftover="none", seed=seed)
        check_pushed(setting, run_setting(setting))


def test_without_bytes_nothing_changes() -> None:
    setting = on("fair", with_input(mixed_dags(jobs=20), 3), MACHINES)
    switch = replace(setting.switch, input="share")
    pull, push = (
        run_setting(replace(setting, switch=replace(switch, shuffle=of))) for of in ("pull", "push")
    )
    assert pull.tasks is not None
    assert push.tasks is not None
    for name in ("node", "start_ns", "finish_ns"):
        assert (pull.tasks[name] == push.tasks[name]).all()
    assert pull.counters == push.counters
    assert pull.counters["flows"] > 0
    assert (push.series.home == -1).all()


def test_more_is_asked_for_than_one_event_may_send() -> None:
    # 40 stages of 20 tasks on five machines: an event sends 61 messages at most, and 40 stages have 200 homes. On two
    # machines 600 tasks are asked for by two messages, and each machine asks for more than it may at once.
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
    many = make_dag_workload(
        "many", [0], [2], [2, 600], [1] * 602, [(0, 0, 1)], cpu_cores=[200, 0.25], edge_bytes=[4 * GB]
    )
    for network in ("fair", "sebf"):
        setting = on(network, wide, MACHINES)
        found = run_setting(setting)
        check_pushed(setting, found)
        assert set(found.series.sent_ns[1:].tolist()) == {1_000_000_000}
        setting = on(network, many, build_cluster("machines", [300] * 2, cpu_cores=[300.0] * 2))
        found = run_setting(setting)
        check_pushed(setting, found)
        assert found.counters["flows"] == 2
