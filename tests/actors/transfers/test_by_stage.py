"""Schedulers of jobs that run DAG jobs stage by stage, over a network and without one: by hand, and against others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.hosting.outcome import Outcome
from actors.inputs import parts_of
from actors.scheduler import resolve_parameters
from actors.schedulers.jobs.by_stage import by_stage
from actors.schedulers.registry import find_scheduler
from actors.setting import Costs, Dynamics, Network, Preemption, Setting, Switch
from actors.transfers.joined import with_network
from clusters.cluster import Cluster, build_cluster
from tests.actors.checkpointing import digest_with_restores
from tests.actors.dag_settings import mixed_dags, with_bytes, with_input
from tests.actors.transfers.network_simulator import is_as_simulated
from tests.actors.transfers.test_coordinated import COORDINATORS
from tests.emulations import OBSERVED, digest, outages, run_setting, run_windows
from tests.emulations import setting_of as setting_of_jobs
from workloads.conversion import as_dags
from workloads.dags import DagWorkload, make_dag_workload
from workloads.jobs import make_workload
from workloads.requests import Requests

GB, NS = 1e9, 1_000_000_000
MACHINES = build_cluster("machines", [4, 8, 4, 2, 6], cpu_cores=[4.0, 8.0, 4.0, 2.0, 6.0])
SCHEDULERS = (
    *("random", "sparrow", "hawk", "eagle", "ideal-eagle", "central-fifo", "central-lwl", "dist-lwl"),
    *("phoenix", "yacc-d"),
)


def staged(
    scheduler: Any,
    workload: DagWorkload,
    nodes: Cluster = MACHINES,
    network: Any = "none",
    *,
    delay_s: float = 0.0005,
    speed: float = GB,
    cutoff_s: float = 3.0,
    skew: float = 0.0,
    read: str = "outside",
    seed: int = 0,
    setting: dict[str, Any] | None = None,
    **parameters: Any,
) -> Setting:
    """An emulation of DAG jobs by a scheduler of jobs."""
    found = find_scheduler(scheduler)
    made = by_stage(found)
    if network != "none":
        made = with_network(made, None if network == "fair" else find_scheduler(network))
    return Setting(
        made,
        resolve_parameters(found, parameters),
        workload,
        nodes,
        short_cutoff_s=cutoff_s,
        long_partition=0.8,
        network=Network(delay_s),
        switch=Switch(port_bytes_per_s=speed, scheduler=str(network), skew=skew, input=read, replicas=2),
        seed=seed,
        **(setting or {}),
    )


def of_one_core(count: int) -> Cluster:
    return build_cluster("machines", [1] * count, cpu_cores=[1.0] * count)


def two_maps_and_a_reducer() -> DagWorkload:
    return make_dag_workload(
        "by hand", [0], [2], [2, 1], [1, 1, 2], [(0, 0, 1)], cpu_cores=[1, 1], edge_bytes=[GB]
    )


def start_and_finish_s(outcome: Outcome) -> list[tuple[float, float]]:
    assert outcome.tasks is not None
    times = (outcome.tasks[name] / NS for name in ("start_ns", "finish_ns"))
    return [*zip(*(of.tolist() for of in times), strict=True)]


@pytest.mark.parametrize("scheduler", ["central-lwl", "random"])
def test_a_chain_of_single_tasks_ends(scheduler: str) -> None:
    """One event of such a scheduler sends one message at most, and the end of a fetch as many as it may."""
    work = make_dag_workload(
        "by hand", [0], [2], [1, 1], [1, 1], [(0, 0, 1)], cpu_cores=[1, 1], edge_bytes=[GB]
    )
    found = run_setting(staged(scheduler, work, of_one_core(2), "fair", delay_s=0.5))
    assert found.tasks is not None
    assert (found.tasks["finish_ns"] > 0).all()


@pytest.mark.parametrize(
    ("scheduler", "network", "expected"),
    [
        # A placed task comes half a second after its stage. The maps run to 1.5 s, the scheduler knows at 2 s, the
        # reducer comes at 2.5 s; it fetches half of the gigabyte from the other machine.
        ("central-lwl", "none", [(0.5, 1.5), (0.5, 1.5), (2.5, 4.5)]),
        ("central-lwl", "fair", [(0.5, 1.5), (0.5, 1.5), (2.5, 5.0)]),
        # A coflow is registered, and its rates are sent: a second more.
        ("central-lwl", "sebf", [(0.5, 1.5), (0.5, 1.5), (2.5, 6.0)]),
        # A probe comes at 0.5 s, the request at 1 s, the task at 1.5 s; the maps are known to have ended at 3 s.
        ("sparrow", "none", [(1.5, 2.5), (1.5, 2.5), (4.5, 6.5)]),
        ("sparrow", "fair", [(1.5, 2.5), (1.5, 2.5), (4.5, 7.0)]),
    ],
)
def test_two_maps_and_a_reducer(scheduler: str, network: str, expected: list[tuple[float, float]]) -> None:
    found = run_setting(staged(scheduler, two_maps_and_a_reducer(), of_one_core(2), network, delay_s=0.5))
    assert start_and_finish_s(found) == expected
    assert (found.start_ns[0] / NS, found.finish_ns[0] / NS) == (expected[0][0], expected[-1][1])
    if network != "none":
        assert (found.series.moved_bytes, found.series.local_bytes) == (GB / 2, GB / 2)


def test_a_stage_waits_for_all_of_its_parents_and_holds_its_slot_while_it_fetches() -> None:
    # Stage 2 waits for stage 0 (1 s) and for stage 1 (3 s), which sends 2 GB: on the machine of stage 1 it fetches
    # nothing of that, and on the other all. Another job's task waits behind it.
    work = make_dag_workload(
        "by hand",
        [0, 3.5],
        [3, 1],
        [1, 1, 2, 1],
        [1, 3, 1, 1, 1],
        [(0, 0, 2), (0, 1, 2)],
        cpu_cores=[1, 1, 1, 1],
        edge_bytes=[0, 4 * GB],
    )
    found = run_setting(staged("central-lwl", work, of_one_core(2), "fair", delay_s=0.0))
    assert found.tasks is not None
    assert start_and_finish_s(found)[:2] == [(0.0, 1.0), (0.0, 3.0)]
    ends = {
        int(node): end
        for node, (_, end) in zip(found.tasks["node"][2:4], start_and_finish_s(found)[2:4], strict=True)
    }
    source = int(found.tasks["node"][1])
    assert ends == {source: 4.0, 1 - source: 6.0}
    behind = int(found.tasks["node"][4])
    assert start_and_finish_s(found)[4] == (ends[behind], ends[behind] + 1.0)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_jobs_of_one_stage_run_as_jobs(scheduler: str) -> None:
    draws = np.random.default_rng(5)
    tasks = draws.integers(1, 12, 40)
    work = make_workload(
        "jobs", np.cumsum(draws.exponential(0.5, 40)), tasks, draws.exponential(3.0, tasks.sum())
    )
    nodes = build_cluster("test", [2] * 12)
    of_jobs = replace(setting_of_jobs(scheduler, work, nodes, cutoff_s=3.0, long_partition=0.8))
    plain, by_stages = run_setting(of_jobs), run_setting(staged(scheduler, as_dags(work), nodes))
    assert plain.tasks is not None
    assert by_stages.tasks is not None
    for name, values in plain.tasks.items():
        assert (values == by_stages.tasks[name]).all()
    assert (plain.start_ns == by_stages.start_ns).all()
    assert (plain.finish_ns == by_stages.finish_ns).all()
    assert (plain.events, plain.counters) == (by_stages.events, by_stages.counters)


def check_stages(work: DagWorkload, nodes: Cluster, found: Outcome, delay_ns: int) -> None:
    """Tasks start two network delays after their parents' have ended, or later; machines hold what they have."""
    arrays, tasks = work.arrays(), found.tasks
    assert tasks is not None
    start, finish = tasks["start_ns"], tasks["finish_ns"]
    submit = np.repeat(arrays.submit_ns, np.diff(arrays.first_task))
    assert (start >= submit).all()
    for stage in range(work.num_stages):
        own = slice(*arrays.stage_first_task[stage : stage + 2])
        for parent in arrays.parent[slice(*arrays.first_parent[stage : stage + 2])]:
            ended = finish[slice(*arrays.stage_first_task[parent : parent + 2])].max()
            assert (start[own] >= ended + 2 * delay_ns).all()
    cores = np.repeat(arrays.demand, np.diff(arrays.stage_first_task), axis=0)[
        :, work.resources.index("cpu_cores")
    ]
    for node, capacity in enumerate(nodes.attribute("cpu_cores")):
        on = np.flatnonzero((tasks["node"] == node) & (finish > start))
        times, change = np.concatenate([finish[on], start[on]]), np.concatenate([-cores[on], cores[on]])
        assert change[np.argsort(times, kind="stable")].cumsum().max(initial=0) <= capacity + 1e-6
    assert (found.finish_ns == np.maximum.reduceat(finish, arrays.first_task[:-1])).all()
    assert (found.start_ns == np.minimum.reduceat(start, arrays.first_task[:-1])).all()


@given(
    seed=st.integers(0, 10**6),
    scheduler=st.sampled_from(("sparrow", "hawk", "eagle", "central-lwl", "central-fifo", "yacc-d")),
    skew=st.sampled_from([0.0, 0.7]),
)
@settings(max_examples=25)
def test_tasks_have_their_input_when_another_simulation_says(seed: int, scheduler: str, skew: float) -> None:
    work = with_bytes(mixed_dags(jobs=8, seed=seed), seed)
    found = run_setting(staged(scheduler, work, network="fair", skew=skew, seed=seed))
    check_stages(work, MACHINES, found, 500_000)
    arrays = work.arrays()
    is_as_simulated(arrays, found, GB, part=parts_of(np.diff(arrays.stage_first_task), skew, seed))


@pytest.mark.parametrize("coordinator", COORDINATORS)
def test_under_a_coordinator_all_bytes_move_and_no_fetch_is_faster_than_its_ports(coordinator: str) -> None:
    work = with_input(with_bytes(mixed_dags(jobs=10, seed=3), 3), 3)
    found = run_setting(staged("sparrow", work, network=coordinator, read="replicas"))
    check_stages(work, MACHINES, found, 500_000)
    arrays, tasks = work.arrays(), found.tasks
    assert tasks is not None
    roots = np.diff(arrays.first_parent) == 0
    whole = np.nansum(arrays.edge_bytes) + np.nansum(arrays.input_bytes)
    assert roots.any()
    assert np.isclose(found.series.moved_bytes + found.series.local_bytes, whole)
    assert found.counters["remote_reads"] + found.counters["local_reads"] > 0
    fetched = found.series.fetched_ns
    begin = np.where(fetched >= 0, fetched, tasks["start_ns"])
    assert (begin >= tasks["start_ns"]).all()
    assert (tasks["finish_ns"] - begin == arrays.duration_ns).all()
    # All that one machine receives takes its port at least so long.
    assert found.finish_ns.max() / NS * MACHINES.num_nodes * GB >= found.series.moved_bytes


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_scheduler_ends_every_stage(scheduler: str) -> None:
    work = with_bytes(mixed_dags(jobs=20, seed=11), 11)
    for network in ("none", "fair"):
        check_stages(work, MACHINES, run_setting(staged(scheduler, work, network=network)), 500_000)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
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
    found = run_setting(staged(scheduler, work, of_one_core(1), **given))
    check_stages(work, of_one_core(1), found, 500_000)


def test_a_job_is_short_or_long_with_all_of_its_stages() -> None:
    # A task of 10 s and nine of 1 s: 1.9 s in the mean. Alone the first stage would be long.
    work = make_dag_workload(
        "by hand", [0, 0], [2, 1], [1, 9, 1], [10, *[1] * 9, 5], [(0, 0, 1)], cpu_cores=[1, 1, 1]
    )
    found = run_setting(staged("hawk", work, of_one_core(4), steal_attempts=0))
    assert found.is_long.tolist() == [False, True]
    assert found.counters["placements"] == 1
    assert found.counters["probes"] == 2 * 10


@pytest.mark.parametrize("network", ["none", "fair", "philae"])
@pytest.mark.parametrize("scheduler", ["sparrow", "eagle"])
def test_a_run_goes_on_from_any_checkpoint(scheduler: str, network: str) -> None:
    setting = staged(scheduler, with_bytes(mixed_dags(), 3), network=network)
    expected = digest(run_setting(setting, OBSERVED))
    found, moves = digest_with_restores(setting, seed=4)
    assert moves > 3
    assert found == expected


@pytest.mark.parametrize("scheduler", ["sparrow", "eagle", "central-lwl"])
def test_partitions_do_not_change_a_run_without_network(scheduler: str) -> None:
    setting = staged(scheduler, mixed_dags())
    whole = run_setting(setting, OBSERVED)
    for partitions in (2, 3):
        assert digest(run_windows(setting, OBSERVED, partitions)) == digest(whole)


@pytest.mark.parametrize("scheduler", ["sparrow", "hawk", "eagle", "central-lwl"])
def test_lost_tasks_run_again_before_children_start(scheduler: str) -> None:
    dynamics = Dynamics(outages=outages(("node 1", 4, 9), ("node 0", 12, 30)), detection_s=1.0)
    work = mixed_dags(jobs=10)
    found = run_setting(staged(scheduler, work, setting={"dynamics": dynamics}))
    assert found.counters["tasks_lost"] > 0
    arrays, tasks = work.arrays(), found.tasks
    assert tasks is not None
    for stage in range(work.num_stages):
        own = tasks["start_ns"][slice(*arrays.stage_first_task[stage : stage + 2])]
        for parent in arrays.parent[slice(*arrays.first_parent[stage : stage + 2])]:
            ended = tasks["finish_ns"][slice(*arrays.stage_first_task[parent : parent + 2])].max()
            assert (own >= ended).all()


def test_stages_have_the_priority_of_their_job_and_evict_for_it() -> None:
    # A task of 9 s holds the only core. A more urgent job evicts it at 1 s, and its second stage at 2 s,
    # when it has just begun again.
    work = make_dag_workload(
        "by hand",
        [0, 1],
        [1, 2],
        [1, 1, 1],
        [9, 1, 1],
        [(1, 0, 1)],
        cpu_cores=[1, 1, 1],
        requests=Requests(priority=np.array([0, 1])),
    )
    given = {"priorities": True, "preemption": Preemption()}
    found = run_setting(staged("central-lwl", work, of_one_core(1), delay_s=0.0, setting=given))
    assert found.evicted is not None
    assert found.evicted.tolist()[0] == [2, 0]
    assert (found.finish_ns / NS).tolist() == [12.0, 3.0]


class Largest:
    """A central scheduler of a user's own: tasks go to the two largest nodes in turn."""

    def place(self, job: Any, nodes: Any) -> np.ndarray:
        return np.resize(np.argsort(-nodes.capacity["cpu_cores"], kind="stable")[:2], job.num_tasks)


@pytest.mark.parametrize("network", ["none", "fair", "fifo"])
def test_a_scheduler_of_ones_own_places_stages(network: str) -> None:
    work = with_bytes(mixed_dags(jobs=10), 2)
    found = run_setting(staged(Largest, work, network=network))
    check_stages(work, MACHINES, found, 500_000)
    assert found.tasks is not None
    assert {*found.tasks["node"].tolist()} == {1, 4}


def test_costs_of_messages_delay_the_next_stage() -> None:
    # The scheduler takes a second for each message: the arrival, starts and ends of the maps, the second arrival.
    costs = Costs(model="fixed", per_message_s=1.0)
    setting = staged(
        "central-lwl", two_maps_and_a_reducer(), of_one_core(2), delay_s=0.0, setting={"costs": costs}
    )
    # Placed at 1 s; starts are handled until 3 s, ends from 3 s on until 5 s; the arrival until 6 s.
    assert start_and_finish_s(run_setting(setting))[2] == (6.0, 8.0)
