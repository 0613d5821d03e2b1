"""Examples worked out by hand: schedulers that place at random or by probes.

Every policy has a handful of nodes and jobs, whose whole log is compared.

All times are in seconds. A message takes 1 s, so that every hop shows; with it, a probe that finds an idle slot at t
has its task at t + 2. A log has each task as ("job.task", node, start, finish), the number of messages of each kind,
and what the mechanisms counted. At one instant a node's own completion comes first, then messages by sender, then
heartbeats, then arrivals, then retries.
"""

from __future__ import annotations

import numpy as np
import pytest
from emulations import counts, jobs, log_of, step_through
from splitmix import draw

from actors.kernel.random import PLACEMENT, PROBES


def test_random_places_each_task_at_once_and_long_ones_behind_the_short_partition() -> None:
    # Nodes 0 and 1 are for short jobs; long ones (mean above 10) go to node 2, the only other one.
    # Job 0 (t=0): two tasks, to the nodes that its draws 0 and 1 name. Seed 34 sends them to nodes 2 and 1.
    # Job 1 (t=1): long, both tasks to node 2, there at 2. Job 2 (t=2): its draw names node 0, there at 3.
    seed = 34
    assert [draw(seed, PLACEMENT, 0, 0, 3), draw(seed, PLACEMENT, 0, 1, 3)] == [2, 1]
    assert draw(seed, PLACEMENT, 2, 0, 3) == 0
    log = log_of(
        "random", jobs((0, [4, 5]), (1, [20, 21]), (2, [1])), 3, long_partition=1 / 3, seed=seed, schedulers=1
    )
    assert log.tasks == [
        ("0.1", 1, 1, 6),
        ("0.0", 2, 1, 5),
        ("2.0", 0, 3, 4),
        ("1.0", 2, 5, 25),
        ("1.1", 2, 25, 46),
    ]
    assert log.kinds == counts(ARRIVAL=3, PLACED=5, TASK_END=5, DONE=5)
    assert log.counters == {"placements": 5}


def test_sparrow_binds_late_and_holds_a_slot_while_it_asks() -> None:
    # Two nodes, two probes a task: job 0 (one task) probes both, job 1 (two tasks) both twice.
    #  t=1  both nodes get job 0's probe, hold their slot and ask.
    #  t=2  the scheduler answers node 0 first (the lower sender): task 0.0; node 1 gets none. Job 1's probes arrive
    #       and wait, for both slots are held.
    #  t=3  node 0 runs 0.0 until 8. Node 1 is free again, takes job 1's first probe and asks: 1.0 comes at 5, runs
    #       until 7; then its second probe asks, at the scheduler at 8.
    #  t=8  the scheduler gives node 1 the last task, 1.1: runs 9 to 12. Node 0 ends 0.0 and asks for job 1: at the
    #       scheduler at 9, nothing left, answer at 10; its second probe asks, and gets no task at 12.
    log = log_of("sparrow", jobs((0, [5]), (1, [2, 3])), 2, schedulers=1)
    assert log.tasks == [("0.0", 0, 3, 8), ("1.0", 1, 5, 7), ("1.1", 1, 9, 12)]
    assert log.kinds == counts(ARRIVAL=2, PROBE=6, REQUEST=6, TASK=3, NO_TASK=3, TASK_END=3, DONE=3)
    assert log.counters == {"probes": 6, "empty_answers": 3}
    # Message by message. Actors: nodes 0 and 1, the probe scheduler 2 (3 would be a central one, 4 a monitor).
    assert [tuple(m) for m in log.messages] == [
        (0, "ARRIVAL", 2, 2, 0),
        (1, "PROBE", 2, 0, 0),
        (1, "PROBE", 2, 1, 0),
        (1, "ARRIVAL", 2, 2, 1),
        (2, "REQUEST", 0, 2, 0),
        (2, "REQUEST", 1, 2, 0),
        (2, "PROBE", 2, 0, 1),
        (2, "PROBE", 2, 1, 1),
        (2, "PROBE", 2, 0, 1),
        (2, "PROBE", 2, 1, 1),
        (3, "TASK", 2, 0, 0),
        (3, "NO_TASK", 2, 1, 0),
        (4, "REQUEST", 1, 2, 1),
        (5, "TASK", 2, 1, 1),
        (7, "TASK_END", 1, 1, 1),
        (8, "TASK_END", 0, 0, 0),
        (8, "DONE", 1, 2, 1),
        (8, "REQUEST", 1, 2, 1),
        (9, "DONE", 0, 2, 0),
        (9, "REQUEST", 0, 2, 1),
        (9, "TASK", 2, 1, 1),
        (10, "NO_TASK", 2, 0, 1),
        (11, "REQUEST", 0, 2, 1),
        (12, "TASK_END", 1, 1, 1),
        (12, "NO_TASK", 2, 0, 1),
        (13, "DONE", 1, 2, 1),
    ]


def test_sparrow_batch_sampling_places_tasks_on_the_shortest_queues() -> None:
    # Without late binding. Nodes answer with entries that wait less idle slots.
    #  t=1  job 0 asks both nodes: -1, -1. At 2 the first asked wins: 0.0 to node 0, 3 to 8.
    #  t=2  job 1 asks nodes 0, 1, 0, 1: all -1, for 0.0 is still under way. At 3 the first two asked get a task each,
    #       the worse of them (the later asked) the first task: 1.0 on node 1, 4 to 6; 1.1 behind 0.0, 8 to 11.
    #  t=5  job 2 asks: one waits at node 0, none at node 1: 2.0 to node 1, 7 to 8.
    log = log_of("sparrow", jobs((0, [5]), (1, [2, 3]), (4, [1])), 2, schedulers=1, sampling="batch")
    assert log.tasks == [("0.0", 0, 3, 8), ("1.0", 1, 4, 6), ("2.0", 1, 7, 8), ("1.1", 0, 8, 11)]
    assert log.kinds == counts(ARRIVAL=3, ASK_LENGTH=8, LENGTH=8, PLACED=4, TASK_END=4, DONE=4)
    assert log.counters == {"probes": 8, "placements": 4}


def test_sparrow_per_task_sampling_gives_each_task_its_own_nodes() -> None:
    # Job 0 draws nodes 0 and 1; job 1 draws node 0 twice for its first task and node 1 twice for its second: 1.0 waits
    # behind 0.0 until 8, though both could ask elsewhere.
    wanted = [0, 1, 0, 0, 1, 1]

    def draws(seed: int) -> list[int]:
        return [draw(seed, PROBES, job, i, 2) for job, i in [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (1, 3)]]

    seed = next(seed for seed in range(1000) if draws(seed) == wanted)
    log = log_of("sparrow", jobs((0, [5]), (1, [2, 3])), 2, schedulers=1, sampling="per-task", seed=seed)
    assert log.tasks == [("0.0", 0, 3, 8), ("1.1", 1, 4, 7), ("1.0", 0, 8, 10)]
    assert log.kinds == counts(ARRIVAL=2, ASK_LENGTH=6, LENGTH=6, PLACED=3, TASK_END=3, DONE=3)


def test_sparrow_batch_sampling_counts_idle_slots() -> None:
    # Node 0 has one idle slot (-1), node 1 two (-2).
    log = log_of("sparrow", jobs((0, [5])), [1, 2], schedulers=1, sampling="batch")
    assert log.tasks == [("0.0", 1, 3, 8)]


@pytest.mark.parametrize(("tasks", "probes"), [(1, 2), (4, 8), (7, 14), (13, 26)])
def test_sparrow_probes_different_nodes_all_equally_often(tasks: int, probes: int) -> None:
    nodes, count = 10, 200
    log = step_through("sparrow", jobs(*((i, [0.1] * tasks) for i in range(count))), nodes)
    asked = np.zeros((count, nodes), int)
    for m in log.messages:
        if m.kind == "PROBE":
            asked[m.a, m.dst] += 1
    assert (asked.sum(axis=1) == probes).all()
    # As even as it can be within each job: every node floor or ceil of probes / nodes times.
    assert asked.min() == probes // nodes
    assert asked.max() == -(-probes // nodes)
    extra = probes % nodes / nodes
    error = np.sqrt(count * extra * (1 - extra))
    assert (abs(asked.sum(axis=0) - count * probes / nodes) < 5 * error).all()


def test_hawk_steals_the_group_of_short_probes_behind_the_first_long_work() -> None:
    # Nodes 0 and 1 are the short partition, node 2 runs long jobs and is the only victim. One probe a task.
    #  t=1  node 2 starts long 0.0 (until 31); 0.1 waits. t=2: job 1's probes (three tasks) reach all nodes, t=3: long
    #       2.0 reaches node 2, t=4: job 3's probes reach all nodes. At node 2 wait long 0.1, 1, long 2.0, 3.
    #  t=4  nodes 0 and 1 run 1.0 (until 12) and 1.1 (until 6). At 6 node 1 asks for job 3: 3.0 from 8 to 14; at 12
    #       node 0 does: 3.1 from 14 to 20.
    #  t=14 node 1 has nothing left and asks node 2, there at 15. Node 2 runs long work: it skips long 0.1 and gives
    #       the shorts up to the next long one: job 1's probe alone, at node 1 at 16. That asks, 1.2 runs 18 to 27.
    #  t=20 node 0 steals in the same way what is now the first group: job 3's probe; 3.2 runs 24 to 30.
    #  t=27 node 1 asks again: node 2 has only long work left. It may ask nine more nodes for node 1, but draws only
    #       itself: nine attempts lost, no message. The same for node 0 at 30. At 91 node 2 runs dry and draws only
    #       itself, ten times. Attempts: 1 + 1 + 10 + 10 + 10.
    workload = jobs((0, [30, 20]), (1, [8, 2, 9]), (2, [40]), (3, [6, 6, 6]))
    log = log_of("hawk", workload, 3, long_partition=1 / 3, probe_ratio=1, schedulers=1)
    assert log.tasks == [
        ("0.0", 2, 1, 31),
        ("1.0", 0, 4, 12),
        ("1.1", 1, 4, 6),
        ("3.0", 1, 8, 14),
        ("3.1", 0, 14, 20),
        ("1.2", 1, 18, 27),
        ("3.2", 0, 24, 30),
        ("0.1", 2, 31, 51),
        ("2.0", 2, 51, 91),
    ]
    assert log.kinds == counts(
        ARRIVAL=4, PROBE=8, PLACED=3, STARTED=3, REQUEST=6, TASK=6, TASK_END=9, DONE=9, STEAL=4
    )
    assert log.counters == {
        "probes": 6,
        "placements": 3,
        "steal_attempts": 32,
        "steals": 2,
        "stolen_probes": 2,
    }
    steals = [m[:4] for m in log.messages if m.kind == "STEAL" or (m.kind == "PROBE" and m.src == 2)]
    assert steals == [
        (15, "STEAL", 1, 2),
        (16, "PROBE", 2, 1),
        (21, "STEAL", 0, 2),
        (22, "PROBE", 2, 0),
        (28, "STEAL", 1, 2),
        (31, "STEAL", 0, 2),
    ]


def test_hawk_thief_that_looks_into_queues_takes_without_a_message() -> None:
    # The same until 14. There node 1 takes job 1's probe at once and asks: 1.2 comes at 16, runs until 25. At 20 node
    # 0 takes job 3's: 3.2 from 22 to 28. Failed searches at 25, 28 and 91 cost ten attempts each.
    workload = jobs((0, [30, 20]), (1, [8, 2, 9]), (2, [40]), (3, [6, 6, 6]))
    log = log_of(
        "hawk", workload, 3, long_partition=1 / 3, probe_ratio=1, schedulers=1, instant_stealing=True
    )
    assert log.tasks == [
        ("0.0", 2, 1, 31),
        ("1.0", 0, 4, 12),
        ("1.1", 1, 4, 6),
        ("3.0", 1, 8, 14),
        ("3.1", 0, 14, 20),
        ("1.2", 1, 16, 25),
        ("3.2", 0, 22, 28),
        ("0.1", 2, 31, 51),
        ("2.0", 2, 51, 91),
    ]
    assert log.kinds == counts(ARRIVAL=4, PROBE=6, PLACED=3, STARTED=3, REQUEST=6, TASK=6, TASK_END=9, DONE=9)
    assert log.counters == {
        "probes": 6,
        "placements": 3,
        "steal_attempts": 32,
        "steals": 2,
        "stolen_probes": 2,
    }


def test_hawk_without_stealing_leaves_short_work_behind_long_work() -> None:
    # Node 2 serves its queue in order: long until 31, long until 51, job 1 asks: 1.2 from 53 to 62; long 2.0 until
    # 102; job 3 asks: 3.2 from 104.
    workload = jobs((0, [30, 20]), (1, [8, 2, 9]), (2, [40]), (3, [6, 6, 6]))
    log = log_of("hawk", workload, 3, long_partition=1 / 3, probe_ratio=1, schedulers=1, steal_attempts=0)
    assert log.tasks[-4:] == [
        ("0.1", 2, 31, 51),
        ("1.2", 2, 53, 62),
        ("2.0", 2, 62, 102),
        ("3.2", 2, 104, 110),
    ]
    assert log.counters == {"probes": 6, "placements": 3}
