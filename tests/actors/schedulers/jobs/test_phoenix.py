"""Phoenix: the Constraint Resource Vector, what nodes and schedulers do by it, and what they do without.

Examples worked out by hand are in golden/jobs/phoenix.txt.
"""

from __future__ import annotations

import numpy as np
import pytest
from bounded_runs import started, steps
from emulations import (
    OBSERVED,
    constrained,
    digest,
    mixed_cluster,
    mixed_workload,
    outages,
    run_partition,
    run_setting,
    run_windows,
    setting_of,
    with_dynamics,
)
from phoenix_examples import BY_CRV, asking, contended, nodes_of

from actors.kernel.queue import RANK_SHIFT, SOURCE_SHIFT
from actors.nodes.contention import SHARE, UNIT
from actors.nodes.messages import WAIT_REPORT
from actors.schedulers.jobs import phoenix
from actors.schedulers.jobs.build import NS
from actors.schedulers.jobs.phoenix import find_asked
from actors.setting import Dynamics, Network, Setting
from clusters.cluster import load_cluster


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


@pytest.mark.slow("the conformance suite tries it in small cases")
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
    monkeypatch.setattr(phoenix, "LOG_ROWS", 1)
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
