"""Nodes and schedulers that fail, tasks that straggle: what always holds, and the same bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bounded_runs import started, steps
from emulations import (
    OBSERVED,
    ROUGH,
    digest,
    jobs,
    mixed_workload,
    outages,
    run_partition,
    run_setting,
    run_windows,
    setting_of,
    with_dynamics,
)
from hard_settings import columns

from actors.failures import straggler_factors
from actors.kernel.message_kinds import KINDS
from actors.nodes.messages import LOAD_REPORT
from actors.setting import Dynamics, Network

# What always holds.


# The same bits.


def test_a_report_of_a_nodes_earlier_life_is_ignored() -> None:
    # Two of the three nodes have work when they report at 5. They fail right then and are back before that is known
    # everywhere. Delays vary: in some runs a report comes after the news that its node is up, empty.
    work = jobs(*((i / 8, [20.0]) for i in range(8)))
    down = outages(("node 0", 5.001, 5.05), ("node 1", 5.001, 5.05))
    rough = {"network": Network(0.01, spread_s=0.2), "dynamics": Dynamics(outages=down, detection_s=0.02)}
    late = 0
    for seed in range(8):
        partition = started(setting_of("dist-lwl", work, 3, seed=seed, heartbeat_s=5.0, **rough), OBSERVED)
        now, row = partition.world.queue.now[0], partition.world.faults.actors
        work_ns = partition.state.short.ledger.work
        known = work_ns.copy()
        for _ in steps(partition):
            if now.kind == LOAD_REPORT:
                report = KINDS[int(LOAD_REPORT)].read((now.a, now.b, now.c, now.d))
                node = report["node"]
                if row.heard[node] > 2 * report["generation"] + 1:
                    assert work_ns[node] == known[node]
                    late += 1
            known[:] = work_ns
    assert late > 0


@pytest.mark.slow("long runs, for a mean")
def test_the_shared_log_of_eagle_grows() -> None:
    # Long tasks that are placed many times: more changes than there are long tasks.
    workload = jobs(*((i, [30, 30]) for i in range(20)), *((i, [1]) for i in range(0, 300, 3)))
    setting = setting_of(
        "eagle", workload, 12, long_partition=0.75, dynamics=Dynamics(mtbf_s=20.0, mttr_s=5.0), seed=4
    )
    partition = run_partition(setting, OBSERVED)
    assert partition.state.shared.length[0] > 2 * 40 + 1
    assert digest(run_windows(setting, OBSERVED, 3)) == digest(partition.outcome())


# Stragglers.


@pytest.mark.parametrize(("distribution", "shape"), [("constant", 2.0), ("pareto", 3.0), ("lognormal", 2.0)])
def test_stragglers_have_the_mean_factor_asked_for(distribution: str, shape: float) -> None:
    dynamics = Dynamics(
        straggler_share=0.25,
        straggler_slowdown=4.0,
        straggler_distribution=distribution,
        straggler_shape=shape,
        straggler_sigma=0.5,
    )
    factors = straggler_factors(dynamics, 400_000, seed=5)
    assert factors is not None
    slow = factors[factors > 1]
    assert abs(slow.size / factors.size - 0.25) < 0.005
    assert factors.min() == 1.0
    assert abs(slow.mean() - 4.0) < 0.1
    if distribution == "constant":
        assert slow.std() == 0
    else:
        assert slow.std() > 1


def test_the_same_tasks_straggle_under_every_scheduler() -> None:
    found = []
    for scheduler in ("random", "central-fifo"):
        outcome = run_setting(
            setting_of(
                scheduler,
                mixed_workload(20, 1),
                5,
                dynamics=Dynamics(straggler_share=0.5, straggler_slowdown=2.0),
            )
        )
        _, start, finish = columns(outcome)
        found.append(finish - start)
        assert outcome.counters["stragglers"] > 0
    own = mixed_workload(20, 1).arrays().duration_ns
    assert np.array_equal(found[0], found[1])
    assert set(np.unique(found[0][own > 0] / own[own > 0])) == {1.0, 2.0}


def test_nothing_that_goes_wrong_is_no_dynamics() -> None:
    setting = setting_of("eagle", mixed_workload(20, 2), 6)
    assert digest(run_setting(with_dynamics(setting, Dynamics()), OBSERVED)) == digest(
        run_setting(setting, OBSERVED)
    )
    never = Dynamics(mtbf_s=1e9, mttr_s=1.0)
    found = run_setting(with_dynamics(setting, never), OBSERVED)
    timeline = dict(found.timeline)
    assert (timeline.pop("up_nodes") == 6).all()
    assert digest(replace(found, timeline=timeline)) == digest(run_setting(setting, OBSERVED))
    assert digest(run_setting(with_dynamics(setting, ROUGH), OBSERVED)) != digest(
        run_setting(setting, OBSERVED)
    )


def test_a_failure_after_the_last_task_does_not_stretch_the_run() -> None:
    setting = setting_of("random", jobs((0, [5])), 3, dynamics=Dynamics(mtbf_s=1e4, mttr_s=10.0))
    quiet = run_setting(setting_of("random", jobs((0, [5])), 3))
    outcome = run_setting(setting)
    assert "node_failures" not in outcome.counters
    assert outcome.events == quiet.events
    assert digest(run_windows(setting, OBSERVED, 2)) == digest(run_setting(setting, OBSERVED))
