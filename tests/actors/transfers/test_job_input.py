"""What tasks read of their job's input, from where: by hand, and by a count that shares no code with the engine."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from actors.inputs import make_job_input, reading_stages
from actors.kernel.random import PLACES, READS
from actors.schedulers.registry import find_scheduler
from actors.setting import Network, Setting, Switch
from actors.transfers.joined import FIRST_ROWS, with_network
from clusters.cluster import Cluster, build_cluster
from tests.actors.checkpointing import digest_with_restores
from tests.actors.coflow_emulations import setting_of as of_coflows
from tests.actors.dag_settings import mixed_dags, setting_of, with_bytes, with_input
from tests.actors.splitmix import draw, draw_bits
from tests.actors.transfers.network_simulator import fetched_s
from tests.actors.transfers.test_coordinated import bytes_over, last_ends, orders, workload_of
from tests.actors.transfers.test_network import seconds
from tests.emulations import OBSERVED, digest, run_setting
from workloads.dags import DagWorkload, make_dag_workload

GB = 1e9
RACKS = [0, 0, 1, 1, 2]
MACHINES = build_cluster("machines", [4, 8, 4, 2, 6], cpu_cores=[4.0, 8.0, 4.0, 2.0, 6.0], rack=RACKS)
NETWORKS = ("fair", "sebf", "aalo")
READ = {
    "share": {"input": "share", "local_share": 0.4},
    "replicas": {"input": "replicas", "replicas": 2},
    "racks": {"input": "replicas", "replicas": 3, "replica_placement": "racks"},
}


def reading(
    network: str,
    workload: DagWorkload,
    nodes: Cluster = MACHINES,
    scheduler: str = "drf",
    seed: int = 0,
    rows: int = FIRST_ROWS,
    **switch: Any,
) -> Setting:
    setting = setting_of(scheduler, workload, nodes, network=Network(0.0), seed=seed)
    coordinator = None if network == "fair" else find_scheduler(network)
    switch = {"port_bytes_per_s": GB, "scheduler": network, "waves": "apart"} | switch
    joined = with_network(setting.scheduler, coordinator, rows)
    return replace(setting, scheduler=joined, switch=Switch(**switch))


def parts_of(setting: Setting) -> dict[int, list[int]]:
    """On which machines the part of each task lies, by the same draws with sets in place of arrays."""
    arrays, switch, nodes = setting.workload.arrays(), setting.switch, range(setting.cluster.num_nodes)
    racks = setting.cluster.racks().tolist()
    by_rack = sorted(nodes, key=lambda node: (racks[node], node))
    first = arrays.stage_first_task
    found = {}
    for stage in np.flatnonzero(np.nan_to_num(arrays.input_bytes) > 0):
        for task in range(first[stage], first[stage + 1]):
            chosen: list[int] = []
            for k in range(switch.replicas):
                left = [node for node in by_rack if node not in chosen]
                if switch.replica_placement == "racks" and k == 1:
                    left = [node for node in left if racks[node] != racks[chosen[0]]] or left
                if switch.replica_placement == "racks" and k == 2 and racks[chosen[1]] != racks[chosen[0]]:
                    left = [node for node in left if racks[node] == racks[chosen[1]]] or left
                chosen.append(left[draw(setting.seed, PLACES, task, k, len(left))])
            found[task] = chosen
    return found


def origins(setting: Setting, node: np.ndarray) -> dict[int, int]:
    """From where each task reads, that was launched on `node`."""
    arrays, switch, nodes = setting.workload.arrays(), setting.switch, setting.cluster.num_nodes
    racks, first = setting.cluster.racks(), arrays.stage_first_task
    found = {}
    lies = parts_of(setting) if switch.input == "replicas" else {}
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


def reads_gb(*of_jobs: float, tasks: int = 1, **given: Any) -> DagWorkload:
    """Jobs of one stage of tasks of 1 s, which read that many GB together."""
    jobs = len(of_jobs)
    return make_dag_workload(
        "reads",
        [0] * jobs,
        [1] * jobs,
        [tasks] * jobs,
        [1] * tasks * jobs,
        [],
        **{"cpu_cores": [1] * jobs, "input_bytes": [GB * size for size in of_jobs], **given},
    )


def of_cores(*cores: float, **given: Any) -> Cluster:
    return build_cluster("machines", [8] * len(cores), cpu_cores=list(cores), **given)


@pytest.mark.parametrize("network", NETWORKS)
def test_two_tasks_that_read_from_each_other_s_machine(network: str) -> None:
    # A core each: one task on either machine, at 0 s. Without local parts each has its 1 GB on the other machine.
    work, nodes = reads_gb(2, tasks=2), of_cores(1, 1)
    found = run_setting(reading(network, work, nodes, input="share", local_share=0.0))
    assert seconds(found) == ([0, 0], [1, 1], [2, 2])
    assert (found.series.moved_bytes, found.series.local_bytes) == (2 * GB, 0)
    assert (found.counters["flows"], found.counters["remote_reads"]) == (2, 2)
    assert found.series.coflows == (0 if network == "fair" else 1)


@pytest.mark.parametrize("network", NETWORKS)
def test_what_lies_on_every_machine_is_read_at_once(network: str) -> None:
    found = run_setting(reading(network, reads_gb(2, tasks=2), of_cores(1, 1), input="replicas", replicas=2))
    assert seconds(found) == ([0, 0], [0, 0], [1, 1])
    assert (found.series.moved_bytes, found.series.local_bytes) == (0, 2 * GB)
    assert found.counters["local_reads"] == 2
    assert "flows" not in found.counters
    assert found.series.coflows == 0


@pytest.mark.parametrize(("network", "first_s", "second_s"), [("fair", 2, 3), ("sebf", 1, 3)])
def test_the_input_of_two_jobs_shares_a_port(network: str, first_s: float, second_s: float) -> None:
    # Both tasks run on machine 1, as machine 0 has too few cores, and read 1 and 2 GB from it. Max-min fair, each at
    # half the port's speed until the first has its 1 GB; the smallest first, one after the other.
    found = run_setting(reading(network, reads_gb(1, 2), of_cores(0.5, 2), input="share", local_share=0.0))
    assert seconds(found) == ([0, 0], [first_s, second_s], [first_s + 1, second_s + 1])


@pytest.mark.parametrize("network", NETWORKS)
def test_what_tasks_launched_together_read_is_one_coflow_and_one_flow_of_each_machine(network: str) -> None:
    # Four tasks run on machine 1 at once: their 2 GB come from machine 0 as one flow.
    found = run_setting(
        reading(network, reads_gb(2, tasks=4), of_cores(0.5, 4), input="share", local_share=0.0)
    )
    assert seconds(found) == ([0] * 4, [2] * 4, [3] * 4)
    assert (found.counters["flows"], found.series.coflows) == (1, 0 if network == "fair" else 1)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_replica_in_the_same_rack_is_read_first(network: str) -> None:
    # Two racks of two machines, a replica in each: the task on machine 0 reads there, or from machine 1 of its rack.
    nodes = of_cores(1, 0.5, 0.5, 0.5, rack=[0, 0, 1, 1])
    seen = set()
    for seed in range(12):
        setting = reading(
            network,
            reads_gb(1),
            nodes,
            seed=seed,
            input="replicas",
            replicas=2,
            replica_placement="racks",
        )
        (lies,) = parts_of(setting).values()
        assert sorted(node // 2 for node in lies) == [0, 1]
        found = run_setting(setting)
        seen.add(0 in lies)
        fetched_at = 0 if 0 in lies else 1
        assert seconds(found) == ([0], [fetched_at], [fetched_at + 1])
    assert seen == {True, False}


@pytest.mark.parametrize("network", NETWORKS)
def test_a_task_waits_for_its_part_and_for_what_others_send(network: str) -> None:
    # The map runs on machine 0, the reducer on machine 1, which also reads 3 GB of its job's input from machine 0.
    work = make_dag_workload(
        "both", [0], [2], [1, 1], [1, 1], [(0, 0, 1)], cpu_cores=[1, 2], edge_bytes=[GB], input_bytes=[0, 3 * GB]
    )  # fmt: skip
    found = run_setting(reading(network, work, of_cores(1, 2), input="share", local_share=0.0))
    (start, _), (none, fetched), (_, end) = seconds(found)
    assert (start, none, fetched, end) == (0, -1, pytest.approx(5, abs=0.05), pytest.approx(6, abs=0.05))
    assert found.series.moved_bytes == 4 * GB


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("read", READ)
@given(seed=st.integers(0, 10**6), scheduler=st.sampled_from(("drf", "tetris", "carbyne")))
@settings(max_examples=8)
def test_who_reads_from_where_and_when_it_has_its_input(
    network: str, read: str, seed: int, scheduler: str
) -> None:
    dags = with_input(with_bytes(mixed_dags(jobs=8 if network == "fair" else 4, seed=seed), seed), seed)
    setting = reading(network, dags, scheduler=scheduler, seed=seed, **READ[read])
    found, arrays = run_setting(setting), dags.arrays()
    tasks = found.tasks
    assert tasks is not None
    origin = origins(setting, tasks["node"])
    local = sum(origin[task] == tasks["node"][task] for task in origin)
    assert found.counters.get("local_reads", 0) == local
    assert found.counters.get("remote_reads", 0) == len(origin) - local
    expected, moved, here = fetched_s(arrays, tasks, GB, origin)
    assert np.isclose(found.series.moved_bytes, moved)
    assert np.isclose(found.series.local_bytes, here)
    # All that edges and stages state has come to where it is needed.
    stated = np.nansum(arrays.edge_bytes) + np.nansum(arrays.input_bytes)
    assert np.isclose(found.series.moved_bytes + found.series.local_bytes, stated)
    fetched = found.series.fetched_ns
    assert ((fetched >= 0) == np.isfinite(expected)).all()
    begin = np.where(fetched >= 0, fetched, tasks["start_ns"])
    assert (tasks["finish_ns"] - begin == arrays.duration_ns).all()
    if network == "fair":
        assert np.allclose(fetched[fetched >= 0] / 1e9, expected[fetched >= 0], rtol=0, atol=1e-6)
        return
    sizes = bytes_over(arrays, tasks, origin)
    tried = list(orders(arrays, sizes))
    assume(len(tried) < 200)  # else these are not all
    for order in tried:
        work = workload_of(order, sizes, MACHINES.num_nodes)
        served = run_setting(of_coflows(network, work, speed=GB, delay_s=0.0))
        if (fetched == last_ends(arrays, tasks, served, order, work, origin)).all():
            break
    else:
        raise AssertionError("no order of registration gives the same times")
    assert found.series.coflows == work.num_coflows


@pytest.mark.parametrize("read", ["replicas", "racks"])
def test_parts_lie_on_different_machines_in_the_racks_of_hdfs(read: str) -> None:
    nodes = of_cores(*[9] * 12, rack=[0] * 5 + [1] * 4 + [2] * 3)
    setting = reading("fair", reads_gb(4, tasks=400), nodes, **READ[read] | {"replicas": 4})
    arrays = setting.workload.arrays()
    lies, racks = (
        make_job_input(setting, arrays, reading_stages(setting, arrays)).lies,
        setting.cluster.racks(),
    )
    assert [sorted(of) for of in parts_of(setting).values()] == [sorted(of) for of in lies.tolist()]
    assert all(len(set(of)) == 4 for of in lies.tolist())
    counts = np.bincount(lies.ravel(), minlength=12)
    assert counts.sum() == 1600
    assert (abs(counts - 1600 / 12) < 60).all()
    # By racks no part is in one rack, and two of it are together in another.
    of_rack = Counter(len(set(racks[of].tolist())) for of in lies)
    assert (of_rack[1] == 0) == (read == "racks")
    one_rack = replace(setting, cluster=of_cores(*[9] * 12))
    assert [sorted(of) for of in make_job_input(one_rack, arrays, np.array([0])).lies.tolist()] == [
        sorted(of) for of in parts_of(one_rack).values()
    ]


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("scheduler", ["drf", "tetris", "carbyne", "srtf"])
def test_with_all_parts_local_nothing_takes_longer(network: str, scheduler: str) -> None:
    work = with_input(with_bytes(mixed_dags(), 2), 2)
    outside, local = (
        run_setting(reading(network, work, scheduler=scheduler, **given))
        for given in ({}, {"input": "share", "local_share": 1.0})
    )
    assert outside.tasks is not None
    assert local.tasks is not None
    for name in ("node", "start_ns", "finish_ns"):
        assert (outside.tasks[name] == local.tasks[name]).all()
    assert (outside.finish_ns == local.finish_ns).all()
    assert outside.series.moved_bytes == local.series.moved_bytes
    of_input = np.nansum(work.arrays().input_bytes)
    assert np.isclose(local.series.local_bytes, outside.series.local_bytes + of_input)


@pytest.mark.parametrize("network", NETWORKS)
def test_rows_grow_and_a_run_goes_on_from_any_checkpoint(network: str) -> None:
    work = with_input(with_bytes(mixed_dags(jobs=10), 2), 3)
    setting = reading(network, work, scheduler="carbyne", rows=1, **READ["racks"])
    found, moves = digest_with_restores(setting, 5)
    assert moves > 3
    assert found == digest(run_setting(setting, OBSERVED))
    whole = run_setting(reading(network, work, scheduler="carbyne", **READ["racks"]))
    assert (run_setting(setting).series.fetched_ns == whole.series.fetched_ns).all()
