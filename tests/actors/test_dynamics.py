"""Nodes and schedulers that fail, tasks that straggle: examples by hand, what always holds, and the same bits.

In the examples a message takes 1 s, and failures are detected at once unless it is said otherwise: what a node loses at
t is known to the schedulers at t + 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from emulations import (
    OBSERVED,
    ROUGH,
    VARIANTS,
    FewestTasks,
    digest,
    jobs,
    log_of,
    mixed_workload,
    named,
    outages,
    run_partition,
    run_setting,
    setting_of,
    with_dynamics,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from test_invariants import EXAMPLES, columns, settings_of, slots_suffice

from actors.dynamics import durations_ns, straggler_factors
from actors.hosting.outcome import Outcome
from actors.hosting.partition import Partition
from actors.hosting.windows import emulate_here
from actors.kernel.faults import NEVER_AGAIN, find_outage
from actors.kernel.world import N_ARRIVED, N_FINISHED, N_STARTED, NONE
from actors.schedulers.jobs.least_work import DOWN, Placer
from actors.schedulers.policy import needs_global_view
from actors.schedulers.registry import scheduler_names
from actors.setting import Dynamics, Network, Setting
from clusters.cluster import build_cluster
from workloads.errors import InputError

NS = 1_000_000_000
PARTITIONS = (1, 2, 3, 8)
RACKED = build_cluster("racked", [1, 2, 1] * 8, rack=np.arange(24) // 3)
NETWORKS = {"constant": Network(0.0005), "varies": Network(0.01, spread_s=0.5)}


def down(*rows: tuple[str, float, float], **others: Any) -> Dynamics:
    return Dynamics(outages=outages(*rows), **others)


def kinds_of(log: Any, *names: str) -> list[tuple[float, str, int]]:
    """Time, kind and destination of the messages of some kinds."""
    return [(m.time_s, m.kind, m.dst) for m in log.messages if m.kind in names]


# Examples.


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


def test_the_one_queue_takes_a_lost_task_first() -> None:
    # Node 0 fails at 2 and its slot is gone. 0.0 waits from 3 and goes to node 1 at 7, when 0.1 is known to
    # have ended; 1.0, which came at 4, waits for the slot of node 0, which is back at 9.
    log = log_of("central-fifo", jobs((0, [5, 5]), (4, [1])), 2, dynamics=down(("node 0", 2, 8)))
    assert log.tasks == [("0.1", 1, 1, 6), ("0.0", 1, 8, 13), ("1.0", 0, 10, 11)]


def test_hawk_places_the_long_task_again_and_drops_a_probe_that_nobody_needs() -> None:
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
    setting = setting_of("random", jobs((0, [5])), 3, dynamics=Dynamics(mtbf_s=1e4, mttr_s=10))
    quiet = run_setting(setting_of("random", jobs((0, [5])), 3))
    outcome = run_setting(setting)
    assert "node_failures" not in outcome.counters
    assert outcome.events == quiet.events
    assert digest(emulate_here(setting, OBSERVED, 2)) == digest(run_setting(setting, OBSERVED))


def test_what_has_no_end_is_refused() -> None:
    for row, what in ((("node 0", 1, math.inf), "all nodes"), (("central", 1, math.inf), "scheduler")):
        with pytest.raises(InputError, match=f"dynamics.failures: .*{what}"):
            run_setting(setting_of("central-lwl", jobs((0, [5])), 1, dynamics=down(row)))
    # Another node is there: it takes all.
    gone = setting_of("central-lwl", jobs((0, [5, 5])), 2, dynamics=down(("node 0", 1, math.inf)))
    assert (columns(run_setting(gone))[0] == 1).all()


# What always holds.

DYNAMICS = st.builds(
    Dynamics,
    outages=st.sampled_from(
        [None, outages(("node 0", 1, 4), ("node 0", 4.5, 9), ("scheduler 0", 2, 7), ("central", 0, 3))]
    ),
    mtbf_s=st.sampled_from([None, 60.0, 300.0]),
    mttr_s=st.sampled_from([1.0, 30.0]),
    detection_s=st.sampled_from([0.0, 2.0, 20.0]),
    failover_s=st.sampled_from([None, 0.5]),
    straggler_share=st.sampled_from([0.0, 0.3]),
    straggler_slowdown=st.just(1.5),
)


@pytest.mark.parametrize("scheduler", VARIANTS)
def test_invariants(scheduler: str) -> None:
    @settings(max_examples=EXAMPLES)
    @given(settings_of(scheduler), DYNAMICS)
    def hold(setting: Setting, dynamics: Dynamics) -> None:
        setting = with_dynamics(setting, dynamics)
        partition = run_partition(setting, OBSERVED)
        outcome = partition.outcome()
        every_task_finishes_once(setting, outcome, partition)
        nobody_runs_on_a_node_that_is_down(setting, outcome)
        slots_suffice(setting, outcome)
        nothing_is_left(setting, partition)
        counters_add_up(outcome)

    hold()


def every_task_finishes_once(setting: Setting, outcome: Outcome, partition: Partition) -> None:
    _, start, finish = columns(outcome)
    assert np.array_equal(finish - start, durations_ns(setting))
    arrays = setting.workload.arrays()
    first = arrays.first_task[:-1]
    is_long = np.repeat(outcome.is_long, np.diff(arrays.first_task))
    for which in (N_ARRIVED, N_STARTED, N_FINISHED):
        assert partition.world.counts[which : which + 2].tolist() == [
            int((~is_long).sum()),
            int(is_long.sum()),
        ]
    assert (outcome.start_ns <= np.minimum.reduceat(start, first)).all()
    assert (outcome.start_ns >= arrays.submit_ns).all()
    assert np.array_equal(outcome.finish_ns, np.maximum.reduceat(finish, first))


def nobody_runs_on_a_node_that_is_down(setting: Setting, outcome: Outcome) -> None:
    faults = setting.scheduler.build(setting)[0].faults
    if not faults.active:
        return
    node, start, finish = columns(outcome)
    with np.errstate(over="ignore"):
        for each in range(setting.cluster.num_nodes):
            here, k, since = node == each, 0, np.int64(faults.origin)
            while True:
                fail, back = find_outage(faults, setting.seed, np.int64(each), np.int64(k), np.int64(since))
                if fail >= min(NEVER_AGAIN, outcome.finish_ns.max()):
                    break
                assert ((finish[here] <= fail) | (start[here] >= back)).all()
                k, since = k + 1, back


def nothing_is_left(setting: Setting, partition: Partition) -> None:
    """Only a node that is down may have something in its queue: lost work that nobody needs."""
    world, slots = partition.world, setting.cluster.slots()
    up = np.ones(slots.size, bool)
    if world.faults.active:
        actors = world.faults.actors[: slots.size]
        up = actors.down == 0
        assert (actors.running == NONE).all()
        assert (world.faults.jobs.lost == 0).all()
        assert (world.faults.jobs.again == NONE).all()
    assert np.array_equal(world.nodes.idle[up], slots[up])
    assert (world.nodes.head[up] == NONE).all()
    assert (world.nodes.longs[up] == 0).all()
    used, free = 0, 0
    for entry in world.nodes.head:
        while entry != NONE:
            used, entry = used + 1, world.entries.next[entry]
    entry = int(world.entries.next[0])
    while entry != NONE:
        free, entry = free + 1, int(world.entries.next[entry])
    assert used + free == world.entries.job[0] - 1
    if setting.scheduler.name in ("central-lwl", "hawk", "eagle", "ideal-eagle", "FewestTasks"):
        placer = next(field for field in partition.state if isinstance(field, Placer))
        assert (placer.ledger.work & (DOWN - 1) == 0).all()


def counters_add_up(outcome: Outcome) -> None:
    counters = outcome.counters
    lost = sum(counters.get(name, 0) for name in ("tasks_lost", "placements_lost", "probes_lost"))
    assert counters.get("sent_again", 0) <= lost
    assert counters.get("tasks_lost", 0) + counters.get("placements_lost", 0) <= counters.get("sent_again", 0)
    if "node_failures" not in counters:
        # Failures count up to the end of the last task; a probe left over then may still be lost.
        assert lost == counters.get("probes_lost", 0)


# The same bits.


def divisible() -> list[str]:
    names = [*scheduler_names("jobs"), "own"]
    return [n for n in names if not needs_global_view((s := small(n).scheduler), small(n).parameters) and s]


def small(scheduler: str, network: Network = NETWORKS["constant"]) -> Setting:
    setting = setting_of(
        named(scheduler), mixed_workload(12, seed=5), RACKED, long_partition=0.75, network=network, seed=3
    )
    return with_dynamics(setting)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("scheduler", divisible())
def test_results_are_the_same_for_any_number_of_partitions(scheduler: str, network: str) -> None:
    setting = small(scheduler, NETWORKS[network])
    whole = run_setting(setting, OBSERVED)
    assert whole.counters["node_failures"] > 0
    assert whole.counters["scheduler_failures"] > 0
    assert "sent_again" in whole.counters
    for partitions in PARTITIONS:
        assert digest(emulate_here(setting, OBSERVED, partitions)) == digest(whole), (
            f"{partitions} partitions"
        )


def test_the_shared_log_of_eagle_grows() -> None:
    # Long tasks that are placed many times: more changes than there are long tasks.
    workload = jobs(*((i, [30, 30]) for i in range(20)), *((i, [1]) for i in range(0, 300, 3)))
    setting = setting_of(
        "eagle", workload, 12, long_partition=0.75, dynamics=Dynamics(mtbf_s=20, mttr_s=5), seed=4
    )
    partition = run_partition(setting, OBSERVED)
    assert partition.state.shared.length[0] > 2 * 40 + 1
    assert digest(emulate_here(setting, OBSERVED, 3)) == digest(partition.outcome())


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
    assert digest(run_setting(with_dynamics(setting, never), OBSERVED)) == digest(
        run_setting(setting, OBSERVED)
    )
    assert digest(run_setting(with_dynamics(setting, ROUGH), OBSERVED)) != digest(
        run_setting(setting, OBSERVED)
    )
