"""Yacc-D: what it promises: bounded queues, bounded passing, an end under overload."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bounded_runs import started, steps
from emulations import (
    NS,
    OBSERVED,
    digest,
    mixed_workload,
    run_partition,
    run_setting,
    run_windows,
    setting_of,
)
from hard_settings import EXAMPLES, JOBS, columns, settings_of
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.kernel.queue import NONE
from actors.schedulers.jobs.build import estimated_ns
from actors.setting import Network, Setting
from clusters.cluster import build_cluster
from workloads.jobs import make_workload


@settings(max_examples=EXAMPLES)
@given(settings_of("yacc-d"))
def test_queues_are_bounded_at_all_times(setting: Setting) -> None:
    parameters, slots = setting.parameters, setting.cluster.slots()
    partition = started(setting, OBSERVED)
    rows, nodes, estimate = partition.world.entries, partition.world.nodes, partition.world.work.estimate
    for _ in steps(partition):
        for node in range(len(slots)):
            waiting = []
            entry = nodes.head[node]
            while entry != NONE:
                waiting.append(int(estimate[rows.job[entry]]))
                entry = rows.next[entry]
            if parameters["bound"] == "length":
                assert len(waiting) <= parameters["queue_limit"] * slots[node]
            elif waiting:  # the last one to come found less than the bound; it is not known which
                assert sum(waiting) - max(waiting) < parameters["queue_wait_s"] * NS * slots[node]
            assert not waiting or nodes.idle[node] == 0


@settings(max_examples=EXAMPLES)
@given(JOBS, st.sampled_from(["sjf", "srjf", "lrtf"]), st.sampled_from([0.0, 0.5, 2.0, 5.0]))
def test_no_task_is_passed_by_more_than_its_slack(rows: Any, order: str, slack: float) -> None:
    """One node with a queue that is long enough: tasks come in the order of the workload."""
    rows = sorted(rows, key=lambda row: row[0])
    workload = make_workload(
        "random", [t for t, _ in rows], [len(d) for _, d in rows], [x for _, ds in rows for x in ds]
    )
    setting = setting_of(
        "yacc-d",
        workload,
        1,
        network=0.0,
        order=order,
        slack=slack,
        queue_limit=100,
        schedulers=1,
        rebalance=False,
    )
    _, start, _ = columns(run_setting(setting))
    arrays = workload.arrays()
    each = estimated_ns(arrays.mean_ns, setting.estimates, setting.seed)
    estimate = np.repeat(each, np.diff(arrays.first_task))
    for task in range(len(start)):
        passed_by = int(estimate[task + 1 :][start[task + 1 :] < start[task]].sum())
        assert passed_by <= slack * estimate[task]


@pytest.mark.parametrize(
    "bound", [{"queue_limit": 1}, {"bound": "wait", "queue_wait_s": 1}, {"queue_limit": 0}]
)
def test_overload_comes_to_an_end(bound: dict[str, Any]) -> None:
    """Hundreds of tasks at once, two nodes, three schedulers: most wait at their schedulers, and all run."""
    burst = make_workload("burst", np.zeros(60), [5] * 60, [2.0] * 300)
    setting = setting_of("yacc-d", burst, 2, schedulers=3, **bound)
    partition = run_partition(setting)
    outcome = partition.outcome()
    assert outcome.counters["backlogged"] > 100
    assert (partition.world.jobs.unfinished == 0).all()
    assert (partition.state.backlog.schedulers.jobs == 0).all()
    # The nodes are busy except for the time that reports of idle slots and new tasks take: a heartbeat for each task.
    busy_s, least_s = outcome.finish_ns.max() / NS, 300 * 2.0 / 2
    assert least_s <= busy_s <= least_s * (1 + 1.0 / 2.0) + 1


@pytest.mark.slow("the conformance suite tries it in small cases")
@pytest.mark.parametrize(
    "network",
    [Network(0.0005), Network(0.01, spread_s=0.02, cross_rack_delay_s=0.05)],
    ids=["constant", "varies"],
)
@pytest.mark.parametrize(
    "parameters",
    [{"queue_limit": 1, "rebalance_s": 0.5}, {"bound": "wait", "queue_wait_s": 2, "tries": 1, "choices": 1}],
    ids=["length", "wait"],
)
def test_full_queues_make_no_difference_to_partitions(parameters: dict[str, Any], network: Network) -> None:
    cluster = build_cluster("racked", [1, 2, 1] * 2, rack=[0, 0, 0, 1, 1, 1])
    setting = setting_of(
        "yacc-d", mixed_workload(25, seed=5), cluster, long_partition=0.7, network=network, **parameters
    )
    whole = run_setting(setting, OBSERVED)
    assert whole.counters["turned_away"] > 0
    assert whole.counters["backlogged"] > 0
    for partitions in (2, 3, 5):
        assert digest(run_windows(setting, OBSERVED, partitions)) == digest(whole)
