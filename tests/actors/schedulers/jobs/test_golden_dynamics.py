"""What the policies do when nodes and schedulers fail: examples worked out by hand.

In the examples a message takes 1 s, and failures are detected at once unless it is said otherwise: what a node loses at
t is known to the schedulers at t + 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from emulations import (
    NS,
    OBSERVED,
    FewestTasks,
    digest,
    jobs,
    log_of,
    outages,
    run_setting,
    run_windows,
    setting_of,
)
from hard_settings import columns

from actors.setting import Dynamics
from workloads.errors import InputError


def down(*rows: tuple[str, float, float], **others: Any) -> Dynamics:
    return Dynamics(outages=outages(*rows), **others)


def kinds_of(log: Any, *names: str) -> list[tuple[float, str, int]]:
    """Time, kind and destination of the messages of some kinds."""
    return [(m.time_s, m.kind, m.dst) for m in log.messages if m.kind in names]


def test_a_lost_task_waits_until_a_node_is_up() -> None:
    # One node, down from 3 to 10. 0.0 runs from 1 and is lost; its scheduler knows at 4, and that no node is
    # up. It looks again every second; at 11 it knows that the node is back, and the task runs from 12.
    log = log_of("random", jobs((0, [5])), 1, schedulers=1, dynamics=down(("node 0", 3, 10)))
    assert log.tasks == [("0.0", 0, 12, 17)]
    assert [t for t, _, _ in kinds_of(log, "LOST")] == [4, 5, 6, 7, 8, 9, 10, 11]
    assert log.counters == {
        "placements": 1,
        "tasks_lost": 1,
        "lost_work_ns": 2 * NS,
        "sent_again": 1,
        "node_failures": 1,
        "node_downtime_ns": 7 * NS,
    }


def test_a_job_starts_with_the_first_attempt() -> None:
    setting = setting_of("random", jobs((0, [5])), 1, network=1.0, dynamics=down(("node 0", 3, 10)))
    outcome = run_setting(setting)
    assert (outcome.start_ns[0], outcome.finish_ns[0]) == (1 * NS, 17 * NS)
    _, start, _ = columns(outcome)
    assert start[0] == 12 * NS  # of the attempt that finished


def test_late_binding_hands_a_lost_task_out_again() -> None:
    # Both probes go to the one node. 0.0 runs from 3; the node fails at 4 with the other probe in its queue.
    # Both are known to be lost at 5 and sent again at 11: the first gets the task, the second none.
    log = log_of("sparrow", jobs((0, [5])), 1, schedulers=1, dynamics=down(("node 0", 4, 10)))
    assert log.tasks == [("0.0", 0, 14, 19)]
    after = [(m.time_s, m.kind) for m in log.messages if m.time_s > 11 and m.kind != "LOST"]
    assert after == [
        (12, "PROBE"),
        (12, "PROBE"),
        (13, "REQUEST"),
        (14, "TASK"),
        (19, "TASK_END"),
        (20, "DONE"),
        (20, "REQUEST"),
        (21, "NO_TASK"),
    ]
    assert (log.counters["tasks_lost"], log.counters["probes_lost"], log.counters["sent_again"]) == (1, 1, 2)


def test_an_answer_to_a_node_that_has_failed_since_is_lost() -> None:
    # The request leaves at 1, the node is down from 2 to 2.5: the task comes at 3 to one that never asked for
    # it. Lost again: known at 4, the probe comes at 5.
    log = log_of("sparrow", jobs((0, [5])), 1, schedulers=1, probe_ratio=1, dynamics=down(("node 0", 2, 2.5)))
    assert log.tasks == [("0.0", 0, 7, 12)]
    assert kinds_of(log, "TASK", "LOST") == [(3, "TASK", 0), (4, "LOST", 1), (7, "TASK", 0)]
    assert (log.counters["placements_lost"], log.counters.get("tasks_lost", 0)) == (1, 0)


def test_a_node_that_is_down_has_the_longest_queue() -> None:
    # 0.0 runs on node 0 from 3; it fails at 4, which is detected at 6. Job 1 asks both nodes at 4: node 1
    # answers at once, for node 0 the failure detector does, a nanosecond after it has found out. 0.0 is lost
    # at 7 and goes to node 1.
    log = log_of(
        "sparrow",
        jobs((0, [5]), (4, [1])),
        2,
        schedulers=1,
        sampling="batch",
        dynamics=down(("node 0", 4, 10), detection_s=2),
    )
    assert log.tasks == [("0.0", 1, 8, 13), ("1.0", 1, 13, 14)]
    assert kinds_of(log, "LENGTH", "LOST")[2:] == [
        (6, "LENGTH", 2),
        (7, "LOST", 2),
        (7.000000001, "LENGTH", 2),
    ]


def test_least_work_left_keeps_off_a_node_that_is_down() -> None:
    # Node 0 fails at 2. At 3 its work is out of the ledger and 0.0 goes to node 1, behind 0.1 (1 to 6). Job 1
    # comes at 7: node 1, though node 0 has no work. At 21 node 0 is known to be up, and has least when job 2
    # comes.
    workload = jobs((0, [5, 5]), (7, [1]), (22, [1]))
    log = log_of("central-lwl", workload, 2, dynamics=down(("node 0", 2, 20)))
    assert log.tasks == [("0.1", 1, 1, 6), ("0.0", 1, 6, 11), ("1.0", 1, 11, 12), ("2.0", 0, 23, 24)]
    assert log.counters["placements"] == 4
    assert log.counters["sent_again"] == 1


@pytest.mark.parametrize("scheduler", ["central-lwl", "dist-lwl"])
def test_a_node_that_is_down_is_kept_off_however_many_slots_it_has(scheduler: str) -> None:
    # Node 0, which has a million slots, is down from 2 to 40,000. Node 1, which has one, has 5,000 s of work by then.
    given = {"heartbeat_s": 4.0, "jitter_s": 0.0} if scheduler == "dist-lwl" else {}
    workload, fails = jobs((20, [5000]), (40, [5000]), (60, [1])), down(("node 0", 2, 40_000))
    log = log_of(scheduler, workload, [1_000_000, 1], dynamics=fails, **given)
    assert [node for _, node, _, _ in log.tasks] == [1, 1, 1]
    assert "sent_again" not in log.counters


def test_the_one_queue_takes_a_lost_task_first() -> None:
    # Node 0 fails at 2 and its slot is gone. 0.0 waits from 3 and goes to node 1 at 7, when 0.1 is known to
    # have ended; 1.0, which came at 4, waits for the slot of node 0, which is back at 9.
    log = log_of("central-fifo", jobs((0, [5, 5]), (4, [1])), 2, dynamics=down(("node 0", 2, 8)))
    assert log.tasks == [("0.1", 1, 1, 6), ("0.0", 1, 8, 13), ("1.0", 0, 10, 11)]


def test_hawk_places_the_long_task_again_and_drops_a_probe_that_is_not_needed() -> None:
    # Long 0.0 runs on node 0 from 1. Job 1's probes: node 1 gives it its task, 5 to 8; the other waits behind
    # 0.0 and is lost with it at 6. Job 1 has no task left; 0.0 goes to node 1, where it runs from 8.
    log = log_of("hawk", jobs((0, [20]), (2, [3])), 2, schedulers=1, dynamics=down(("node 0", 6, 30)))
    assert log.tasks == [("1.0", 1, 5, 8), ("0.0", 1, 8, 28)]
    assert (log.counters["tasks_lost"], log.counters["probes_lost"], log.counters["sent_again"]) == (1, 1, 1)


def test_eagle_sends_sticky_probes_again() -> None:
    # Three tasks, three probes: two to node 0, one to node 1. Both run a task from 3; node 0 fails at 6, with
    # its two sticky probes. All come to node 1 at 8; its own probe has asked at 7 already and gets 0.0 before
    # 0.2.
    log = log_of(
        "eagle",
        jobs((0, [4, 4, 4])),
        2,
        schedulers=1,
        least_probes=1,
        probe_ratio=1,
        dynamics=down(("node 0", 6, 30)),
    )
    assert log.tasks == [("0.1", 1, 3, 7), ("0.0", 1, 9, 13), ("0.2", 1, 15, 19)]
    assert (log.counters["tasks_lost"], log.counters["probes_lost"], log.counters["sent_again"]) == (1, 2, 3)


def test_eagle_clears_the_bit_of_a_node_that_has_lost_its_long_work() -> None:
    # Long 0.0 on node 1, 1.0 on node 2. Node 1 fails at 5; 0.0 goes behind 1.0. Job 2 probes all three nodes
    # at 12: node 0 has its task at 15, node 1 is down, node 2 rejects; what is sent again comes to node 0.
    log = log_of(
        "eagle",
        jobs((0, [20]), (1, [20]), (12, [2])),
        3,
        schedulers=1,
        least_probes=3,
        probe_ratio=1,
        long_partition=2 / 3,
        dynamics=down(("node 1", 5, 30)),
    )
    assert log.tasks == [("1.0", 2, 2, 22), ("2.0", 0, 15, 17), ("0.0", 2, 22, 42)]
    assert kinds_of(log, "REJECTED", "LOST") == [(6, "LOST", 4), (14, "LOST", 3), (14, "REJECTED", 3)]


@pytest.mark.parametrize(("network", "long_partition"), [(0.0, 1.0), (0.0005, 1.0), (0.0, 0.7)])
def test_eagle_does_not_send_a_probe_round_and_round(network: float, long_partition: float) -> None:
    # Node 0 is down from 1 to 30; long 0.0, lost there, runs on node 1 from 1 to 21. By the picture node 0 is free of
    # long work, but it is known to be down: job 1's probes, which node 1 has rejected, wait at node 1.
    setting = setting_of(
        "eagle",
        jobs((0, [20]), (2, [1])),
        2,
        network=network,
        schedulers=1,
        long_partition=long_partition,
        dynamics=down(("node 0", 1, 30)),
    )
    outcome = run_setting(setting)
    assert outcome.finish_ns == pytest.approx([21 * NS, 22 * NS], abs=0.01 * NS)
    assert outcome.events < 500


def test_dist_lwl_forgets_what_a_node_that_is_down_has_reported() -> None:
    # 0.0 runs on node 0 from 1, lost at 3, known at 4. By the reports both nodes are empty, but node 0 is
    # down: all goes to node 1, where the shortest goes first.
    log = log_of(
        "dist-lwl",
        jobs((0, [6]), (5, [3]), (9, [2])),
        2,
        heartbeat_s=8,
        jitter_s=0,
        schedulers=1,
        dynamics=down(("node 0", 3, 14)),
    )
    assert log.tasks == [("0.0", 1, 5, 11), ("2.0", 1, 11, 13), ("1.0", 1, 13, 16)]
    assert [dst for _, _, dst in kinds_of(log, "HEARTBEAT", "LOAD_REPORT")] == [
        0,
        1,
        4,
        1,
        4,
    ]  # none of node 0


class AvoidsInfiniteWork:
    """Places on the nodes with least work, and notes what it was asked."""

    asked: list[Any]

    def start(self, num_nodes: int, seed: int) -> None:
        type(self).asked = []

    def place(self, job: Any, nodes: Any) -> np.ndarray:
        self.asked.append((job.job_id, job.submit_s, job.num_tasks, nodes.work_left_s.tolist()))
        return np.resize(np.argsort(nodes.work_left_s, kind="stable"), job.num_tasks)


def test_own_scheduler_is_asked_again_for_one_task() -> None:
    log = log_of(AvoidsInfiniteWork, jobs((0, [5, 5]), (4, [1])), 2, dynamics=down(("node 0", 2, 8)))
    assert AvoidsInfiniteWork.asked == [
        (0, 0.0, 2, [0, 0]),
        (0, 0.0, 1, [math.inf, 3.0]),  # 5 s of work, running since 1
        (1, 4.0, 1, [math.inf, 7.0]),
    ]
    assert log.tasks == [("0.1", 1, 1, 6), ("0.0", 1, 6, 11), ("1.0", 1, 11, 12)]


def test_own_scheduler_that_insists_on_a_node_that_is_down_is_asked_later() -> None:
    # By the fewest tasks: node 0, which is down. Asked again for 0.0 every second until its node 1 has fewer.
    log = log_of(FewestTasks, jobs((0, [5, 5]), (4, [1])), 2, dynamics=down(("node 0", 2, 8)))
    assert log.tasks == [("0.1", 1, 1, 6), ("1.0", 0, 10, 11), ("0.0", 1, 10, 15)]


def test_a_scheduler_that_fails_answers_when_it_is_back_or_its_standby_has_taken_over() -> None:
    workload = jobs((0, [5]), (2.5, [1]))
    back = log_of("central-lwl", workload, 2, dynamics=down(("central", 2, 6)))
    assert back.tasks == [("0.0", 0, 1, 6), ("1.0", 1, 7, 8)]
    assert kinds_of(back, "ARRIVAL", "STARTED")[1:3] == [(6, "STARTED", 2), (6, "ARRIVAL", 2)]
    standby = log_of("central-lwl", workload, 2, dynamics=down(("central", 2, 6), failover_s=1))
    assert standby.tasks == [("1.0", 1, 4, 5), ("0.0", 0, 1, 6)] or standby.tasks == [
        ("0.0", 0, 1, 6),
        ("1.0", 1, 4, 5),
    ]
    assert standby.counters["scheduler_failures"] == 1
    # One of several probe schedulers: the jobs of the other do not wait.
    late = {"schedulers": 2, "probe_ratio": 1}
    log = log_of("sparrow", jobs((0, [1]), (0, [1])), 2, dynamics=down(("scheduler 1", 0, 9)), **late)
    assert [(task, start) for task, _, start, _ in log.tasks] == [("0.0", 3), ("1.0", 12)]


def test_a_failure_after_the_last_task_does_not_stretch_the_run() -> None:
    setting = setting_of("random", jobs((0, [5])), 3, dynamics=Dynamics(mtbf_s=1e4, mttr_s=10.0))
    quiet = run_setting(setting_of("random", jobs((0, [5])), 3))
    outcome = run_setting(setting)
    assert "node_failures" not in outcome.counters
    assert outcome.events == quiet.events
    assert digest(run_windows(setting, OBSERVED, 2)) == digest(run_setting(setting, OBSERVED))


def test_what_has_no_end_is_refused() -> None:
    for row, what in ((("node 0", 1, math.inf), "all nodes"), (("central", 1, math.inf), "scheduler")):
        with pytest.raises(InputError, match=f"dynamics.failures: .*{what}"):
            run_setting(setting_of("central-lwl", jobs((0, [5])), 1, dynamics=down(row)))
    # Another node is there: it takes all.
    gone = setting_of("central-lwl", jobs((0, [5, 5])), 2, dynamics=down(("node 0", 1, math.inf)))
    assert (columns(run_setting(gone))[0] == 1).all()
