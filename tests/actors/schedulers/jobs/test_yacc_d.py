"""Yacc-D: examples worked out by hand, and what it promises: bounded queues, bounded passing, an end under overload.

All times are in seconds. In the examples a message takes 1 s, heartbeats are at multiples of `heartbeat_s`, and
their reports are known 1 s later. A log has each task as ("job.task", node, start, finish).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bounded_runs import started, steps
from emulations import (
    NS,
    OBSERVED,
    SHORTEST_JOBS,
    Log,
    constrained,
    counts,
    digest,
    jobs,
    log_of,
    mixed_workload,
    run_partition,
    run_setting,
    run_windows,
    setting_of,
)
from hard_settings import EXAMPLES, JOBS, columns, settings_of
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.kernel.world import NONE
from actors.schedulers.jobs.build import estimated_ns
from actors.setting import Network, Setting
from clusters.cluster import build_cluster
from emu.testing import check_scheduler
from workloads.jobs import make_workload


def log_of_yacc_d(workload: Any, nodes: Any, **parameters: Any) -> Log:
    return log_of(
        "yacc-d", workload, nodes, cutoff_s=100, **{"schedulers": 1, "heartbeat_s": 10, **parameters}
    )


def names(log: Log) -> list[str]:
    return [name for name, *_ in log.tasks]


# Examples.


def test_tasks_go_where_the_wait_is_least_by_reports_and_own_placements() -> None:
    # All nodes are drawn. Estimates: 4 for each task of job 0.
    #  t=0  0.0 to node 0; it has 4 now, as far as the scheduler knows: 0.1 to node 1. There at 1.
    #  t=2  4 and 4: 1.0 to node 0, behind 0.0.
    #  t=10 heartbeat: nothing waits or runs. t=11: the reports, which make the scheduler forget what it has sent. An
    #       arrival comes behind them: 2.0 to node 0. t=12: that has 1, node 1 none: 3.0 to node 1.
    log = log_of_yacc_d(jobs((0, [6, 2]), (2, [3]), (11, [1]), (12, [4])), 2)
    assert log.tasks == [
        ("0.0", 0, 1, 7),
        ("0.1", 1, 1, 3),
        ("1.0", 0, 7, 10),
        ("2.0", 0, 12, 13),
        ("3.0", 1, 13, 17),
    ]
    assert log.kinds == counts(ARRIVAL=4, OFFERED=5, TASK_END=5, DONE=5, HEARTBEAT=4, QUEUE_REPORT=4)
    assert log.counters == {"placements": 5, "load_reports": 4}


def test_a_full_queue_sends_tasks_back_and_they_wait_for_a_report_of_room() -> None:
    # One node, whose queue holds one task; the two schedulers have jobs in turn.
    #  0.0 runs from 1 to 6, 1.0 waits from 2. 2.0 comes at 3: no room, and it is back at 4; 3.0 likewise at 5.
    #  t=10 1.0 ends, the node reports an idle slot and an empty queue. t=11: both schedulers find room.
    log = log_of_yacc_d(
        jobs((0, [5]), (1, [4]), (2, [6]), (3, [2])), 1, queue_limit=1, schedulers=2, tries=0, order="fifo"
    )
    assert log.tasks == [("0.0", 0, 1, 6), ("1.0", 0, 6, 10), ("2.0", 0, 12, 18), ("3.0", 0, 18, 20)]
    assert log.kinds == counts(
        ARRIVAL=4, OFFERED=6, RETURNED=2, TASK_END=4, DONE=4, HEARTBEAT=2, QUEUE_REPORT=2, DISPATCH=2
    )
    assert log.counters == {"placements": 4, "load_reports": 2, "turned_away": 2, "backlogged": 2}


def test_a_task_that_is_sent_back_tries_another_node() -> None:
    # No queues at all. 0.0 runs on node 0 from 1 to 21, 0.1 on node 1 from 1 to 5. The other scheduler knows nothing of
    # that: 1.0 goes to node 0 (at 2), is back at 3 and goes to node 1 (at 4), is back at 5 and waits. The report of
    # the heartbeat at 6 is there at 7: node 1 has room.
    workload = jobs((0, [20, 4]), (1, [4]))
    log = log_of_yacc_d(workload, 2, queue_limit=0, schedulers=2, tries=1, heartbeat_s=3)
    assert log.tasks == [("0.0", 0, 1, 21), ("0.1", 1, 1, 5), ("1.0", 1, 8, 12)]
    assert [(m.time_s, m.dst) for m in log.messages if m.kind == "OFFERED"][2:] == [(2, 0), (4, 1), (8, 1)]
    assert [m.time_s for m in log.messages if m.kind == "RETURNED"] == [3, 5]
    assert log.counters == {"placements": 3, "load_reports": 6, "turned_away": 2, "backlogged": 1}


def test_a_queue_can_be_bounded_by_its_work() -> None:
    # The node takes work while less than 5 waits: 1.0 (4) and 2.0 (then 10 wait), not 3.0, which is back at 5. At 10
    # nothing runs out: 1.0 runs from 6 to 10, and 2.0 starts. The report has room; 3.0 comes at 12.
    workload = jobs((0, [5]), (1, [4]), (2, [6]), (3, [2]))
    log = log_of_yacc_d(workload, 1, bound="wait", queue_wait_s=5, schedulers=4, order="fifo")
    assert log.tasks == [("0.0", 0, 1, 6), ("1.0", 0, 6, 10), ("2.0", 0, 10, 16), ("3.0", 0, 16, 18)]
    assert log.counters["turned_away"] == 1
    assert [m.time_s for m in log.messages if m.kind == "OFFERED" and m.a == 3] == [4, 12]


@pytest.mark.parametrize(("rebalance", "last"), [(True, ("0.4", 1, 12, 32)), (False, ("0.4", 0, 41, 61))])
def test_a_node_gives_back_what_waits_too_far_behind(rebalance: bool, last: tuple[Any, ...]) -> None:
    # Six tasks of 10.5 by the estimate, in turn to nodes 0 and 1. Those of node 0 take 20, those of node 1 one second.
    # t=10: node 0 runs 0.0, 0.2 and 0.4 wait; 0.4 has 10.5 in front of it, more than 5 above the mean
    # (0) that was last sent to the node. It is back at 11, and goes to the other node, since the one that gave it back
    # gets nothing until its next report.
    log = log_of_yacc_d(jobs((0, [20, 1] * 3)), 2, rebalance=rebalance, rebalance_s=5)
    assert ("0.2", 0, 21, 41) in log.tasks
    assert last in log.tasks
    assert log.counters.get("given_back", 0) == int(rebalance)


def test_a_task_is_given_back_once() -> None:
    # One node: what it gives back at 10, one task of 0.2 and 0.3 behind 0.1, has to wait for a report, and comes again.
    # From then on it stays, though as much is in front of it.
    log = log_of_yacc_d(jobs((0, [20] * 4)), 1, rebalance_s=5)
    assert log.counters["given_back"] == 2
    assert [(m.time_s, m.a) for m in log.messages if m.kind == "RETURNED"] == [(11, 0), (11, 0)]
    assert len(log.tasks) == 4


@pytest.mark.parametrize(
    ("order", "slack", "expected"),
    [
        # One node, busy with 0.0 until 11. Then 1.0 and 1.1 (4 each), 2.0 (6) and 3.0 (1) wait.
        ("fifo", 5, ["1.0", "1.1", "2.0", "3.0"]),
        ("sjf", 100, ["3.0", "1.0", "1.1", "2.0"]),
        ("srjf", 100, ["3.0", "2.0", "1.0", "1.1"]),  # 8 of job 1 are left
        ("lrtf", 100, ["2.0", "3.0", "1.0", "1.1"]),  # two tasks of job 1, and one of each other
        # 3.0 is within all bounds. Job 1 was passed by 1 then, and may be by 5 more, but not by 6.
        ("srjf", 1.5, ["3.0", "1.0", "1.1", "2.0"]),
    ],
)
def test_orders(order: str, slack: float, expected: list[str]) -> None:
    log = log_of_yacc_d(jobs(*SHORTEST_JOBS), 1, order=order, slack=slack, rebalance=False)
    assert names(log) == ["0.0", *expected]


def test_tasks_wait_for_a_node_that_satisfies_their_job() -> None:
    # Node 2 alone has the cores, and no queue. Job 1 comes while job 0 runs there, and waits for the report at 11.
    cluster = build_cluster("three", [1] * 3, cpu_cores=[1, 1, 4])
    log = log_of_yacc_d(constrained(jobs((0, [5]), (1, [4])), "cores >= 4"), cluster, queue_limit=0)
    assert log.tasks == [("0.0", 2, 1, 6), ("1.0", 2, 12, 16)]
    assert log.counters["backlogged"] == 1


# What always holds.


def test_it_passes_the_checks_for_schedulers() -> None:
    check_scheduler("yacc-d")
    check_scheduler("yacc-d", {"queue_limit": 0, "tries": 0})


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
