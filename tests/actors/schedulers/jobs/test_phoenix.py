"""Phoenix: the Constraint Resource Vector, what nodes and schedulers do by it, and what they do without.

In the examples worked out by hand a message takes 1 s (see golden_jobs.py). A job of one probe that finds an idle
slot at t runs from t + 2. Nodes report at multiples of 5 s, which arrives 1 s later; the monitor makes its table 2 s
after the heartbeat, and all know it 1 s later.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bounded_runs import started, steps
from emulations import (
    OBSERVED,
    constrained,
    counts,
    digest,
    emulate_small,
    log_of,
    mixed_cluster,
    mixed_workload,
    outages,
    run_partition,
    run_setting,
    run_windows,
    setting_of,
    with_dynamics,
)
from phoenix_examples import BY_CRV, ONE_PROBE, asking, contended, nodes_of

from actors.kernel.queue import RANK_SHIFT, SOURCE_SHIFT
from actors.nodes.contention_state import SHARE, UNIT
from actors.nodes.load_messages import WAIT_REPORT
from actors.schedulers.jobs import phoenix, phoenix_monitor
from actors.schedulers.jobs.build import NS
from actors.schedulers.jobs.phoenix_monitor import find_asked
from actors.setting import Dynamics, Network, Setting
from clusters.cluster import load_cluster
from workloads.errors import InputError

# Job 0 runs from 3 to 23 on the only node. Behind it wait job 1 (4 s) and job 2 (6 s), which asks for cores.
WAITING = asking((0, [20], ""), (1, [4], ""), (2, [6], "cores >= 4"))


def test_the_entry_with_the_greatest_crv_goes_first() -> None:
    #  t=5  the node reports one entry that asks for cores, of which there is one node: CRV 1, made at 7, known at 8
    #       with the news that it counts.
    #  t=23 job 2 goes before the shorter job 1: 2.0 from 25 to 31. The heartbeat at 25 reports that no entry asks any
    #       more, which the table has at 27. Job 1 asks at 31: 1.0 from 33.
    #  The ends at 31 and 37 change the expected wait, reported at 35 and 40; the table stays as it is.
    log = log_of("phoenix", WAITING, nodes_of(8), crv_threshold=0.5, **BY_CRV)
    assert log.tasks == [("0.0", 0, 3, 23), ("2.0", 0, 25, 31), ("1.0", 0, 33, 37)]
    assert log.kinds == counts(
        ARRIVAL=3,
        PROBE=3,
        REQUEST=3,
        TASK=3,
        TASK_END=3,
        DONE=3,
        HEARTBEAT=4,
        WAIT_REPORTS=4,
        MONITOR=4,
        ANNOUNCED=3,
    )
    times = {kind: [m.time_s for m in log.messages if m.kind == kind] for kind in log.kinds}
    assert times["HEARTBEAT"] == [5, 25, 35, 40]
    assert times["MONITOR"] == [7, 27, 37, 42]
    assert times["ANNOUNCED"] == [8, 8, 28]
    assert log.counters == {"probes": 3, "bypasses": 1, "load_reports": 4, "reorders": 1}


def test_the_table_over_time() -> None:
    outcome = emulate_small("phoenix", WAITING, nodes_of(8), network=1.0, crv_threshold=0.5, **BY_CRV)
    series = outcome.series
    assert series is not None
    assert series.names == ["cores"]
    assert (series.time_ns / 1e9).tolist() == [7, 27, 37, 42]
    assert series.demand.tolist() == [[1], [0], [0], [0]]
    assert series.crv.tolist() == [[1], [0], [0], [0]]
    assert series.supply[0] == 1
    assert np.isnan(series.supply[1:]).all()


@pytest.mark.parametrize(
    "changed",
    [
        {"reorder": False},
        {"crv_threshold": 1.0},  # the CRV is not above it
        {"slack": 1.0},  # job 1 may be passed by its own 4 s, not by 6
        {"heartbeat_s": 30},  # the table comes too late
    ],
)
def test_elsewhere_the_shortest_remaining_job_goes_first(changed: dict[str, Any]) -> None:
    log = log_of("phoenix", WAITING, nodes_of(8), **(BY_CRV | {"crv_threshold": 0.5} | changed))
    assert log.tasks == [("0.0", 0, 3, 23), ("1.0", 0, 25, 29), ("2.0", 0, 31, 37)]
    assert "reorders" not in log.counters


def test_remaining_work_over_crv() -> None:
    # Behind job 0, which runs from 3 to 33, wait job 1 (4 s) and four jobs that ask for cores: CRV 4 on one node. By
    # CRV job 1 is the last. By remaining work over CRV job 2 has 12 / 4, and job 1, which has 4, goes next: when job 2
    # has gone the CRV is 3, and the others have 20 / 3.
    workload = asking(
        (0, [30], "isa = arm"),
        (1, [4], "isa = arm"),
        (2, [12], "cores >= 4"),
        (3, [20], "cores >= 4"),
        (4, [20], "cores >= 4"),
        (5, [20], "cores >= 4"),
    )
    cluster = nodes_of(2, 2, 2, 8, isa="x86 x86 x86 arm")
    for order, first in (("crv", ["2.0", "3.0"]), ("weighted", ["2.0", "1.0"])):
        log = log_of("phoenix", workload, cluster, crv_threshold=2, slack=20, **BY_CRV | {"order": order})
        assert [task for task, *_ in log.tasks][1:3] == first


def test_no_entry_is_passed_by_more_than_its_slack() -> None:
    # Job 1 (4 s) may be passed by 1.5 * 4 = 6 s of work: by six of the eight jobs of one second that ask for cores.
    rows = [(0.0, [20.0], ""), (1.0, [4.0], ""), *((2.0 + i / 8, [1.0], "cores >= 4") for i in range(8))]
    log = log_of("phoenix", asking(*rows), nodes_of(8), crv_threshold=0.5, slack=1.5, **BY_CRV)
    order = [task for task, *_ in log.tasks]
    assert order.index("1.0") == 1 + 6


def test_scarcity_by_resource_and_level() -> None:
    cluster = mixed_cluster()  # of 8 nodes 5 have 4 cores, 2 have 8; 4 of 2 GHz are not x86 …
    texts = [
        "cores >= 8 soft 1.5 and clock >= 3 GHz soft 2",
        "cores >= 4 and cores < 8 and isa = arm",
        "spread-nodes",
    ]
    workload = constrained(mixed_workload(3, seed=1), *texts)
    found = find_asked(setting_of("phoenix", workload, cluster))
    assert found.names == ["cores", "isa", "clock"]
    cores, isa, clock = cluster.attribute("cores"), cluster.attribute("isa"), cluster.attribute("clock")
    arm = cluster.attribute_names("isa").index("arm")

    def share(nodes: np.ndarray) -> int:
        return round(int(SHARE) * cores.size / nodes.sum())

    # Levels: all of the first set, without cores, without both; the second set; the third, which asks for none.
    assert found.asks.tolist() == [0b101, 0b100, 0, 0b011, 0]
    assert found.scarcity.tolist() == [
        [share(cores >= 8), 0, share(clock >= 3e9)],
        [0, 0, share(clock >= 3e9)],
        [0, 0, 0],
        [share((cores >= 4) & (cores < 8)), share(isa == arm), 0],
        [0, 0, 0],
    ]


def test_what_is_asked_for_is_forgotten_when_it_is_served() -> None:
    partition = run_partition(contended())
    state, outcome = partition.state, partition.outcome()
    for name in ("reorders", "admissions", "jobs_relaxed", "load_reports"):
        assert outcome.counters[name] > 0
    assert outcome.series is not None
    assert outcome.series.demand.max() > 0
    assert not state.monitor.demand.any()
    assert not state.monitor.pressure.any()
    for reported in (state.monitor.reported, state.contention.reported):
        assert not reported.any()
    assert not state.contention.nodes.to_report.any()
    crv = outcome.series.demand / outcome.series.supply
    asked = outcome.series.demand > 0
    assert outcome.series.crv[asked] == pytest.approx(crv[asked])


def test_a_report_of_a_nodes_earlier_life_is_ignored() -> None:
    # Two of the three nodes run jobs of 20 s, behind which others wait, when they report at 5. They fail right then
    # and are back before that is known everywhere. Delays vary: in some runs a report comes after the news that its
    # node is up, empty. No entry asks for anything at the end.
    workload = asking(*((i / 8, [20.0], "cores >= 4") for i in range(8)))
    down = outages(("node 0", 5.001, 5.05), ("node 1", 5.001, 5.05))
    rough = {"network": Network(0.01, spread_s=0.2), "dynamics": Dynamics(outages=down, detection_s=0.02)}
    late = 0
    for seed in range(8):
        setting = setting_of("phoenix", workload, nodes_of(8, 8, 8), seed=seed, **BY_CRV, **rough)
        partition = started(setting, OBSERVED)
        now, heard = partition.world.queue.now[0], partition.world.faults.actors.heard
        for _ in steps(partition):
            src = int(now.key) % (1 << RANK_SHIFT) >> SOURCE_SHIFT
            late += now.kind == WAIT_REPORT and now.time < 10 * NS and src < 2 and heard[src] == 3
        monitor = partition.state.monitor
        assert not monitor.demand.any()
        assert not monitor.pressure.any()
        assert not monitor.reported.any()
    assert late > 0


@pytest.mark.parametrize("scheduler", ["phoenix", "phoenix-released"])
@pytest.mark.parametrize("rough", [False, True])
def test_the_same_bits_and_the_same_table_for_any_partitions(scheduler: str, rough: bool) -> None:
    setting = contended(scheduler, 12, **({"load_gate": 0.3} if scheduler == "phoenix-released" else {}))
    setting = with_dynamics(setting) if rough else setting
    whole = run_setting(setting, OBSERVED)
    assert whole.series is not None
    for partitions in (2, 3, 6):
        outcome = run_windows(setting, OBSERVED, partitions)
        assert digest(outcome) == digest(whole)
        assert outcome.series is not None
        assert outcome.series.names == whole.series.names
        for name in ("time_ns", "demand", "supply", "crv"):
            assert getattr(outcome.series, name).tobytes() == getattr(whole.series, name).tobytes()


def test_a_full_log_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run_setting(contended(), OBSERVED)
    monkeypatch.setattr(phoenix_monitor, "LOG_ROWS", 1)
    grown = run_setting(contended(), OBSERVED)
    assert digest(grown) == digest(whole)
    assert whole.series is not None
    assert grown.series is not None
    assert grown.series.demand.tobytes() == whole.series.demand.tobytes()


def test_without_constraints_phoenix_is_eagle() -> None:
    workload, settings = mixed_workload(40, seed=8), {"long_partition": 0.7, "seed": 2, "least_probes": 3}
    ours = setting_of("phoenix", workload, mixed_cluster(), crv_threshold=0, **settings)
    assert digest(run_setting(ours)) == digest(
        run_setting(setting_of("eagle", workload, mixed_cluster(), **settings))
    )


def same_jobs(one: Setting, other: Setting) -> bool:
    """Whether all tasks run at the same places and times."""
    a, b = run_setting(one), run_setting(other)
    assert a.tasks is not None
    assert b.tasks is not None
    return all((a.tasks[name] == b.tasks[name]).all() for name in a.tasks)


def test_where_nothing_is_contended_phoenix_is_eagle_c() -> None:
    eagle = setting_of(
        "eagle-c",
        contended().workload,
        mixed_cluster(),
        long_partition=0.7,
        seed=11,
        least_probes=3,
    )
    assert same_jobs(contended(crv_threshold=1e6), eagle)
    assert same_jobs(contended(reorder=False, admission=False, negotiate=False), eagle)
    assert same_jobs(contended("phoenix-released", load_gate=1), eagle)
    assert not same_jobs(contended(), eagle)


@pytest.mark.parametrize(
    "changed",
    [
        {"heartbeat_s": 7},
        {"crv_threshold": 2},
        {"reorder": False},
        {"order": "weighted"},
        {"admission": False},
        {"candidates": 1},
        {"negotiate": False},
        {"window": 2},
        {"rho_cap": 0.1},
        {"report_change": 1},
        {"sticky": False},
        {"shortest_first": False},
        {"slack": 0.5},
        {"reprobe_rounds": 0},
    ],
    ids=str,
)
def test_every_parameter_matters(changed: dict[str, Any]) -> None:
    assert digest(run_setting(contended(num_jobs=120, **changed))) != digest(
        run_setting(contended(num_jobs=120))
    )


def test_a_heartbeat_no_longer_than_the_network_delay_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"^parameter heartbeat_s of phoenix: 1.0 s is not longer than the network"
    ):
        run_setting(setting_of("phoenix", WAITING, nodes_of(8), network=1.0, heartbeat_s=1))


def test_released_serves_by_weights_under_load() -> None:
    # Behind job 0 wait jobs without a constraint, for disks (0.9121) and for an instruction set (2), the shortest
    # first. The only slot is busy at the heartbeat at 5: from 8 on the queue goes by weight.
    workload = asking((0, [20], ""), (1, [1], ""), (2, [2], "min_disks >= 1"), (3, [3], "isa = x86"))
    settings = ONE_PROBE | {"slack": 10}
    log = log_of("phoenix-released", workload, nodes_of(8), load_gate=0.8, **settings)
    assert [task for task, *_ in log.tasks] == ["0.0", "3.0", "2.0", "1.0"]
    log = log_of("phoenix-released", workload, nodes_of(8), load_gate=1, **settings)
    assert [task for task, *_ in log.tasks] == ["0.0", "1.0", "2.0", "3.0"]
    assert "admissions" not in log.counters


def test_released_serves_equal_weights_in_order_of_arrival() -> None:
    # The longest of jobs without constraints has come first.
    workload = asking((0, [20], ""), (1, [3], ""), (2, [2], ""), (3, [1], "isa = x86"))
    log = log_of("phoenix-released", workload, nodes_of(8), load_gate=0.8, **ONE_PROBE)
    assert [task for task, *_ in log.tasks] == ["0.0", "3.0", "1.0", "2.0"]


def test_released_has_a_probe_for_every_job() -> None:
    """In the simulator jobs that ask for a kernel had none, and an empty list of nodes lost a job."""
    kinds = (
        "isa = x86",
        "cores >= 2",
        "max_disks >= 1",
        "min_disks >= 1",
        "cpus >= 1",
        "kernel >= 2.6",
        "clock >= 1 GHz",
    )
    texts = [*kinds, "port >= 1 Mbps", ""]
    workload = constrained(mixed_workload(27, seed=6), *texts)
    for scheduler in ("phoenix", "phoenix-released"):
        setting = setting_of(scheduler, workload, load_cluster("phoenix", 40), cutoff_s=1e9, least_probes=3)
        tasks = np.diff(workload.arrays().first_task)
        outcome = run_setting(setting)
        assert outcome.counters["probes"] == np.maximum(2 * tasks, 3).sum()
        assert (outcome.finish_ns > 0).all()


@pytest.mark.parametrize("isa", [2.0, 2.03])
def test_no_schedule_depends_on_the_weight_of_an_instruction_set(
    isa: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 2.03 in the paper's Table II, 2.0 in its authors' simulator: the greatest weight of all in both.
    by_default = digest(run_setting(contended("phoenix-released", load_gate=0)))
    monkeypatch.setitem(phoenix.WEIGHTS, "isa", isa)
    assert digest(run_setting(contended("phoenix-released", load_gate=0))) == by_default


def test_weights_are_exact() -> None:
    names = find_asked(contended("phoenix-released")).names
    crv = run_partition(contended("phoenix-released")).state.contention.crv
    assert dict(zip(names, crv / int(UNIT), strict=True)) == pytest.approx(
        {"cores": 1.9054, "isa": 2, "clock": 1.7567}
    )
