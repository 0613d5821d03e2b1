"""The clock `windows`: the same bits for any number of partitions, and what a quantum costs."""

from __future__ import annotations

import dataclasses
import re
from itertools import chain

import numpy as np
import pytest
from emulations import OBSERVED, digest, mixed_workload, named, run_setting, run_windows, setting_of
from hypothesis import given
from hypothesis import strategies as st

from actors.hosting import partition
from actors.hosting.grouping import Cast, group_actors
from actors.hosting.groups import largest_share, needed_bytes, refuse_too_large
from actors.hosting.windows import divide, emulate_windows, expected_windows, lookahead_ns, window_ns
from actors.kernel.window import partition_of, runs_schedulers
from actors.scheduler import needs_global_view
from actors.setting import Network, Setting
from clusters.cluster import build_cluster, load_cluster
from workloads.errors import InputError
from workloads.jobs import make_workload

NETWORKS = {
    "constant": Network(0.0005),
    "varies": Network(0.01, spread_s=0.02, cross_rack_delay_s=0.05),
}
RACKED = build_cluster("racked", [1, 2, 1] * 8, rack=np.arange(24) // 3)


def small(scheduler: str, network: Network, **changes: object) -> Setting:
    """A setting that takes few windows."""
    setting = setting_of(
        named(scheduler), mixed_workload(12, seed=5), RACKED, long_partition=0.75, network=network, seed=3
    )
    assert not needs_global_view(setting.scheduler, setting.parameters)
    return dataclasses.replace(setting, **changes)


@pytest.mark.parametrize("messages", [8, 11])
def test_frames_that_are_too_small_change_nothing(messages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "FRAME_MESSAGES", messages)
    setting = small("eagle", NETWORKS["constant"])
    whole = run_setting(setting, OBSERVED)
    several = run_windows(setting, OBSERVED, 8)
    assert digest(several) == digest(whole)
    monkeypatch.undo()
    assert several.windows > run_windows(setting, OBSERVED, 8).windows  # some took several barriers


def test_a_quantum_delays_what_should_have_crossed_earlier() -> None:
    rng = np.random.default_rng(2)
    busy = make_workload("busy", np.cumsum(rng.exponential(0.01, 100)), [3] * 100, rng.exponential(0.1, 300))
    setting = setting_of("sparrow", busy, 24)
    exact = run_windows(setting, OBSERVED, 3)
    coarse = run_windows(setting, OBSERVED, 3, quantum_s=0.02)
    late, late_ns, most_ns = coarse.delayed
    assert late > 0
    assert 0 < most_ns < 20_000_000
    assert late_ns <= late * most_ns
    assert coarse.windows < exact.windows
    assert coarse.tasks is not None
    ran_ns = coarse.tasks["finish_ns"] - coarse.tasks["start_ns"]
    assert (ran_ns == setting.workload.arrays().duration_ns).all()
    assert coarse.finish_ns.mean() > exact.finish_ns.mean()


@pytest.mark.slow("several whole runs")
@pytest.mark.parametrize("scheduler", ["sparrow", "hawk", "dist-lwl"])
def test_a_quantum_adds_no_barriers_where_events_are_rare(scheduler: str) -> None:
    setting = setting_of(scheduler, mixed_workload(60, seed=4), 40, seed=2)  # a job a second, or so
    counts = [run_windows(setting, OBSERVED, 3, quantum_s=q).windows for q in (0.001, 0.005, 0.02, 1.0)]
    assert counts == sorted(counts, reverse=True), counts
    exact = run_windows(setting, OBSERVED, 3).windows
    assert counts[-1] < exact < counts[0]  # partitions of an exact run run ahead of each other


def test_a_quantum_as_long_as_the_delay_delays_something_only_up_to_it() -> None:
    setting = small("sparrow", Network(0.5))
    outcome = run_windows(setting, OBSERVED, 2, quantum_s=0.5)
    assert outcome.delayed[2] < 500_000_000


def test_a_quantum_below_the_lookahead_is_refused() -> None:
    with pytest.raises(InputError, match=r"^--quantum: 0.0001 s is less than the lookahead, 0.0005 s"):
        window_ns(small("sparrow", NETWORKS["constant"]), 0.0001)


def test_without_network_delay_there_are_no_windows() -> None:
    with pytest.raises(InputError, match=r"^network.delay: messages take no time"):
        window_ns(small("sparrow", Network(0.0)), None)


def test_racks_stay_whole_where_that_makes_windows_longer() -> None:
    setting = small("sparrow", NETWORKS["varies"])
    assert lookahead_ns(setting) == 50_000_000
    assert lookahead_ns(small("sparrow", NETWORKS["constant"])) == 500_000


@given(
    nodes=st.integers(1, 60),
    schedulers=st.integers(1, 12),
    probes=st.booleans(),
    central=st.booleans(),
    partitions=st.integers(1, 20),
    rack_size=st.none() | st.integers(1, 20),
)
def test_every_actor_is_in_one_partition(
    nodes: int, schedulers: int, probes: bool, central: bool, partitions: int, rack_size: int | None
) -> None:
    central_share = 3 / 8 * central / (1 + probes)
    cast = Cast(nodes, schedulers, 3 / 8 - central_share, central_share)
    rack = None if rack_size is None else np.arange(nodes) // rack_size
    try:
        grouping = group_actors(cast, partitions, rack)
    except InputError as error:
        most = int(str(error).rpartition(" ")[2])
        assert partitions > most
        assert group_actors(cast, most, rack).size == most
        return
    assert grouping.size == partitions
    hosted = [[*chain(*grouping.hosted(k))] for k in range(partitions)]
    assert sorted(chain(*hosted)) == [*range(nodes + schedulers + 1)]
    for actor in range(nodes + schedulers + 1):
        assert actor in hosted[partition_of(grouping.first, actor)]
    for k in range(partitions):
        assert grouping.has_schedulers(k) == runs_schedulers(grouping.first, k, nodes + schedulers + 1)
    if rack is not None:
        of_racks = [[actor // rack_size for actor in grouping.hosted(k)[0]] for k in range(partitions)]
        assert len([*chain(*map(set, of_racks))]) == len(set(rack))


@pytest.mark.parametrize("partitions", range(1, 9))
@pytest.mark.parametrize("central_share", [0.0, 0.05, 0.2, 3 / 8])
def test_each_partition_has_as_much_work(partitions: int, central_share: float) -> None:
    cast = Cast(10_000, 200, 3 / 8 - central_share, central_share)
    grouping, work = group_actors(cast, partitions), []
    for k in range(partitions):
        nodes, schedulers = grouping.hosted(k)
        probes = len(schedulers) - (10_200 in schedulers)
        central = central_share * (10_200 in schedulers)
        work.append(len(nodes) / 10_000 * 5 / 8 + probes / 200 * cast.probes_share + central)
    # What cannot be divided is alone; the others are even.
    rest = work[:-1] if central_share > 1 / partitions else work
    assert not rest or max(rest) - min(rest) < 0.005
    assert max(work) == pytest.approx(max(central_share, 1 / partitions, *rest), abs=0.005)


def test_each_partition_starts_its_own_nodes_alone() -> None:
    """Rows of others stay zero: memory that is never touched is not taken."""
    setting, none = small("eagle", Network(0.0005)), -1
    members = [partition.Partition(setting, OBSERVED, whole=False) for _ in range(3)]
    grouping = divide(setting, members[0].cast(), 3)
    for k, member in enumerate(members):
        member.join(grouping, k)
        nodes, own = member.world.nodes, np.arange(grouping.first[k], [*grouping.first[1:3], 24][k])
        others = np.setdiff1d(np.arange(24), own)
        assert own.size > 0
        assert (nodes.idle[own] == setting.cluster.slots()[own]).all()
        assert not np.asarray(nodes)[others].tobytes().strip(b"\0")
        for rows in (nodes.head, nodes.tail, nodes.version, nodes.running):
            assert (rows[own] == none).all()


def test_the_number_of_windows_is_foreseen() -> None:
    setting = setting_of("sparrow", mixed_workload(200, seed=5), 100, seed=3)
    windows = run_windows(setting, OBSERVED, 2).windows
    assert 0.4 < expected_windows(setting, window_ns(setting, None), 2) / windows < 2.5


def test_a_plan_that_does_not_fit_is_refused_with_the_number_that_would() -> None:
    setting = small("sparrow", NETWORKS["constant"])
    three = needed_bytes(setting, 3)
    refuse_too_large(setting, 3, three)
    with pytest.raises(InputError, match=r"^--partitions: 8 partitions need about .* free; 3 would fit$"):
        refuse_too_large(setting, 8, three)
    with pytest.raises(InputError, match=r"^--nodes: 24 nodes need about .*, in one partition too$"):
        refuse_too_large(setting, 8, 1 << 20)


def test_nodes_lie_in_one_partition_each() -> None:
    setting = small("sparrow", NETWORKS["constant"], cluster=load_cluster("homogeneous", 10_000_000))
    one, two, four = (needed_bytes(setting, k) for k in (1, 2, 4))
    assert two - one < 0.6 * one  # but schedulers of each may know all of them
    assert four - two == 2 * (two - one)


@pytest.mark.parametrize(
    ("machines", "count", "share"),
    [([2.0], 4, 0.5), ([1.0, 1.0], 3, 0.5), ([4.0, 1.0], 5, 1.0), ([4.0, 1.0], 6, 0.8), ([0.0, 3.0], 2, 1.5)],
)
def test_each_actor_has_a_part_of_the_cpus_of_one_machine(
    machines: list[float], count: int, share: float
) -> None:
    assert largest_share(machines, count) == share


@pytest.mark.ray
@pytest.mark.parametrize("transport", ["memory", "calls"])
def test_in_ray_actors(ray_session: None, transport: str) -> None:
    setting = small("eagle", NETWORKS["varies"])
    plans: list[str] = []
    outcome = emulate_windows(setting, OBSERVED, partitions=3, transport=transport, announce=plans.append)
    assert digest(outcome) == digest(run_setting(setting, OBSERVED))
    (plan,) = plans
    assert re.search(r"actor 0: \d+ nodes, \d probe schedulers \(", plan)
    assert re.search(r"actor 2: .*the central scheduler \(", plan)
    assert {"memory": "shared memory", "calls": "calls"}[transport] in plan
