"""Examples worked out by hand: for every policy a handful of nodes and jobs, whose whole log is compared.

All times are in seconds. A message takes 1 s, so that every hop shows; with it, a probe that finds an idle slot at t
has its task at t + 2. A log has each task as ("job.task", node, start, finish), the number of messages of each kind,
and what the mechanisms counted. At one instant a node's own completion comes first, then messages by sender, then
heartbeats, then arrivals, then retries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulations import Log, jobs, step_through
from splitmix import draw

from actors.kernel.random import PLACEMENT, PROBES, RETRIES
from actors.schedulers.jobs.shared_state import TRIES

DELAY_S = 1.0


def log_of(scheduler: Any, workload: Any, nodes: Any, **settings: Any) -> Log:
    return step_through(scheduler, workload, nodes, network=DELAY_S, **settings)


def counts(**messages: int) -> dict[str, int]:
    """Numbers of messages by kind; those of a kind that does not occur are left out."""
    return messages


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
    #       scheduler at 9, nothing left, answer at 10; its second probe asks in vain until 12.
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


def test_eagle_rejected_probes_go_to_a_free_node_and_stick_there() -> None:
    # Two nodes for all jobs. Long job 0 goes to node 0 and sets its bit: version 1 of the picture.
    #  t=3  job 1's four probes reach the nodes in turn. Node 0 has long work and rejects its two, with version 1.
    #       Node 1 asks; the probe stays in the queue, behind it waits the second.
    #  t=4  the scheduler gives node 1 task 1.0, then, when all else at this instant is done, sends the two again:
    #       in version 1 only node 1 is free.
    #  t=5  node 1 runs 1.0 until 8; two more probes join the queue. At 8 the first, sticky probe asks again: 1.1
    #       comes at 10 with nothing left of the job: all four probes go without asking.
    log = log_of("eagle", jobs((0, [20]), (2, [3, 5])), 2, least_probes=2, schedulers=1)
    assert log.tasks == [("0.0", 0, 1, 21), ("1.0", 1, 5, 8), ("1.1", 1, 10, 15)]
    assert log.kinds == counts(
        ARRIVAL=2,
        PLACED=1,
        STARTED=1,
        PROBE=6,
        REJECTED=2,
        RETRY=1,
        REQUEST=2,
        TASK=2,
        TASK_END=3,
        DONE=3,
    )
    assert log.counters == {"probes": 4, "placements": 1, "rejections": 2, "probes_again": 2}
    assert [(m.time_s, m.src, m.dst) for m in log.messages if m.kind == "PROBE"] == [
        (3, 2, 0),
        (3, 2, 1),
        (3, 2, 0),
        (3, 2, 1),
        (5, 2, 1),
        (5, 2, 1),
    ]


def test_eagle_sends_what_is_rejected_twice_to_the_short_partition() -> None:
    # Node 0 is the short partition. Long job 0 goes to node 1 (version 1), long job 2 to node 2 (version 2).
    #  t=3  job 1 (one task) has a probe at each node; node 1 rejects its one with version 1; nodes 0 and 2 ask.
    #  t=4  node 0 is answered first: 1.0, from 5 to 9; node 2: nothing left. Job 2's long task reaches node 2 and
    #       waits, for the slot is held. The rejected probe is drawn anew among nodes 0 and 2, which version 1 has as
    #       free: with the seed chosen here, the first that is not node 1 is node 2.
    #  t=5  node 2 learns that there is no task, starts the long one, and rejects the probe, with version 2.
    #  t=6  second rejection: to the short partition, node 0, where it is taken at 7, asks at 9 and gets nothing at 11.
    def first_free(seed: int) -> int:
        draws = (draw(seed, RETRIES, 1, (TRIES + 1) * 1 + i, 3) for i in range(TRIES))
        return next(node for node in draws if node != 1)

    seed = next(seed for seed in range(100) if first_free(seed) == 2)
    log = log_of(
        "eagle",
        jobs((0, [30]), (2, [4]), (3, [40])),
        3,
        long_partition=2 / 3,
        least_probes=3,
        schedulers=1,
        seed=seed,
    )
    assert log.tasks == [("0.0", 1, 1, 31), ("1.0", 0, 5, 9), ("2.0", 2, 5, 45)]
    assert log.kinds == counts(
        ARRIVAL=3,
        PLACED=2,
        STARTED=2,
        PROBE=5,
        REJECTED=2,
        RETRY=2,
        REQUEST=3,
        TASK=1,
        NO_TASK=2,
        TASK_END=3,
        DONE=3,
    )
    assert log.counters == {
        "probes": 3,
        "placements": 2,
        "empty_answers": 2,
        "rejections": 2,
        "probes_again": 2,
    }
    assert [(m.time_s, m.dst) for m in log.messages if m.kind == "PROBE"] == [
        (3, 0),
        (3, 1),
        (3, 2),
        (5, 2),
        (7, 0),
    ]


STICKY_JOBS = ((0, [2, 50]), (4, [5, 5]))


def test_eagle_sticky_probe_runs_one_task_after_another() -> None:
    # One probe a task. Job 0 runs on both nodes, on node 1 until 53. Its probe at node 0 stays: told at 3 that one
    # task is left, it asks at 5, in vain, until 7. Then job 1's probe has its turn: 1.0 from 9 to 14; it stays, asks
    # again, 1.1 from 16 to 21. Node 1's probe of job 1 asks at 53 in vain.
    log = log_of("eagle", jobs(*STICKY_JOBS), 2, cutoff_s=100, probe_ratio=1, least_probes=1, schedulers=1)
    assert log.tasks == [("0.0", 0, 3, 5), ("0.1", 1, 3, 53), ("1.0", 0, 9, 14), ("1.1", 0, 16, 21)]
    assert log.kinds == counts(ARRIVAL=2, PROBE=4, REQUEST=6, TASK=4, NO_TASK=2, TASK_END=4, DONE=4)
    assert log.counters == {"probes": 4, "empty_answers": 2}


def test_eagle_probe_that_does_not_stick_runs_one_task() -> None:
    # Node 0 has nothing left at 5 but the probe of job 1 that comes then: 1.0 from 7 to 12. The other one waits for
    # node 1: 1.1 from 55.
    log = log_of(
        "eagle",
        jobs(*STICKY_JOBS),
        2,
        cutoff_s=100,
        probe_ratio=1,
        least_probes=1,
        schedulers=1,
        sticky=False,
    )
    assert log.tasks == [("0.0", 0, 3, 5), ("0.1", 1, 3, 53), ("1.0", 0, 7, 12), ("1.1", 1, 55, 60)]
    assert log.kinds == counts(ARRIVAL=2, PROBE=4, REQUEST=4, TASK=4, TASK_END=4, DONE=4)


SHORTEST_JOBS = ((0, [10]), (1, [4, 4]), (2, [6]), (3, [1]))


def test_eagle_serves_the_shortest_job_first_within_the_slack() -> None:
    # One node, busy with 0.0 from 3 to 13. Then its queue is, front to back: job 1 twice (work left 8), job 2 (6),
    # job 3 (1). Slack 1.5: who has an estimate e may be passed by 1.5 e in all.
    #  t=13 job 3 has the least left, and its 1 s is within all slacks (6, 6, 9). It asks: 3.0 from 15 to 16. Jobs 1
    #       and 2 are charged 1 s.
    #  t=16 job 2 (6) has less left than job 1 (8), but would pass job 1 by 6, which has 6 - 1 = 5 left: job 1 asks,
    #       1.0 from 18 to 22. At 22 job 1 has 4 left and is first anyway: 1.1 from 24 to 28. Then 2.0 from 30.
    settings = {"cutoff_s": 100, "probe_ratio": 1, "least_probes": 1, "schedulers": 1}
    log = log_of("eagle", jobs(*SHORTEST_JOBS), 1, slack=1.5, **settings)
    assert log.tasks == [
        ("0.0", 0, 3, 13),
        ("3.0", 0, 15, 16),
        ("1.0", 0, 18, 22),
        ("1.1", 0, 24, 28),
        ("2.0", 0, 30, 36),
    ]
    assert log.kinds == counts(ARRIVAL=4, PROBE=5, REQUEST=5, TASK=5, TASK_END=5, DONE=5)
    assert log.counters == {"probes": 5, "bypasses": 1}
    # Slack 5: at 16 job 1 may still be passed by 20 - 1, so job 2 goes first.
    log = log_of("eagle", jobs(*SHORTEST_JOBS), 1, slack=5, **settings)
    assert log.tasks[2:] == [("2.0", 0, 18, 24), ("1.0", 0, 26, 30), ("1.1", 0, 32, 36)]
    assert log.counters == {"probes": 5, "bypasses": 2}
    # In order of arrival.
    log = log_of("eagle", jobs(*SHORTEST_JOBS), 1, shortest_first=False, **settings)
    assert [task for task, *_ in log.tasks] == ["0.0", "1.0", "1.1", "2.0", "3.0"]


def test_slack_may_be_used_up_under_eagle_and_not_under_dist_lwl() -> None:
    # As above without job 3. Job 2 (6 s) would use up job 1's slack of 1.5 * 4 to the last. Eagle allows it: 2.0
    # from 15 to 21, 1.0 from 23. The rule of dist-lwl is strict: 1.0 from 11, 1.1, and 2.0 from 19.
    settings = {"cutoff_s": 100, "slack": 1.5, "schedulers": 1}
    log = log_of("eagle", jobs(*SHORTEST_JOBS[:3]), 1, probe_ratio=1, least_probes=1, **settings)
    assert log.tasks[1:] == [("2.0", 0, 15, 21), ("1.0", 0, 23, 27), ("1.1", 0, 29, 33)]
    log = log_of("dist-lwl", jobs(*SHORTEST_JOBS[:3]), 1, jitter_s=0, **settings)
    assert log.tasks[1:] == [("1.0", 0, 11, 15), ("1.1", 0, 15, 19), ("2.0", 0, 19, 25)]


def test_eagle_goes_by_the_newest_of_the_pictures_that_come_back() -> None:
    # Long job 0 fills nodes 0, 1 and 2: version 3 has them all set. 0.0 and 0.2 are reported done at 14 and 15
    # (versions 4, 5); long job 1 goes to node 0 at 20 (version 6: nodes 0 and 1).
    #  t=26 job 2's probes: node 0 rejects with version 6, node 1 with version 3, node 2 asks. In version 6 node 2 is
    #       free, in version 3 none is: both go to node 2, there at 28 behind 2.0 (28 to 30), and ask in vain.
    log = log_of("eagle", jobs((0, [12, 60, 13]), (20, [40]), (25, [2])), 3, least_probes=3, schedulers=1)
    assert log.tasks == [
        ("0.0", 0, 1, 13),
        ("0.1", 1, 1, 61),
        ("0.2", 2, 1, 14),
        ("1.0", 0, 21, 61),
        ("2.0", 2, 28, 30),
    ]
    assert [(m.time_s, m.dst) for m in log.messages if m.kind == "PROBE"] == [
        (26, 0),
        (26, 1),
        (26, 2),
        (28, 2),
        (28, 2),
    ]
    assert log.kinds == counts(
        ARRIVAL=3,
        PLACED=4,
        STARTED=4,
        PROBE=5,
        REJECTED=2,
        RETRY=1,
        REQUEST=3,
        TASK=1,
        NO_TASK=2,
        TASK_END=5,
        DONE=5,
    )


def test_eagle_long_work_at_the_front_goes_first() -> None:
    # One node. 0.0 runs from 3 to 7; at 3 the long task 1.0 has come. Probes are rejected from then on (job 2's at 4,
    # version 1: no node is free in it, so it goes to any node, the only one, and is accepted at 6). At 7 the queue is
    # long 1.0, job 2. The long one is at the front: 7 to 27. Then job 2: 29 to 30.
    log = log_of("eagle", jobs((0, [4]), (2, [20]), (3, [1])), 1, probe_ratio=1, least_probes=1, schedulers=1)
    assert log.tasks == [("0.0", 0, 3, 7), ("1.0", 0, 7, 27), ("2.0", 0, 29, 30)]
    assert log.counters == {"probes": 2, "placements": 1, "rejections": 1, "probes_again": 1}


def test_ideal_eagle_probes_only_nodes_free_of_long_work() -> None:
    # Long job 0 is assigned to node 0 at 0. Job 1's four probes all go to node 1, at 2: 1.0 from 4 to 7, and with the
    # sticky probe 1.1 from 9 to 14.
    log = log_of("ideal-eagle", jobs((0, [20]), (1, [3, 5])), 2, least_probes=2, schedulers=1)
    assert log.tasks == [("0.0", 0, 1, 21), ("1.0", 1, 4, 7), ("1.1", 1, 9, 14)]
    assert log.kinds == counts(ARRIVAL=2, PLACED=1, STARTED=1, PROBE=4, REQUEST=2, TASK=2, TASK_END=3, DONE=3)
    assert [m.dst for m in log.messages if m.kind == "PROBE"] == [1, 1, 1, 1]
    assert log.counters == {"probes": 4, "placements": 1}


def test_ideal_eagle_takes_a_node_for_free_when_its_long_work_is_reported_done() -> None:
    # Long job 0 on both nodes; node 0 is done at 21, known at 22. Job 1 (t=30): all four probes to node 0.
    log = log_of("ideal-eagle", jobs((0, [20, 50]), (30, [3, 5])), 2, least_probes=2, schedulers=1)
    assert log.tasks == [("0.0", 0, 1, 21), ("0.1", 1, 1, 51), ("1.0", 0, 33, 36), ("1.1", 0, 38, 43)]
    assert [m.dst for m in log.messages if m.kind == "PROBE"] == [0, 0, 0, 0]


def test_central_fifo_gives_tasks_to_the_slot_that_is_idle_longest() -> None:
    # Node 0 has two slots, node 1 one. Idle slots in order: node 0, node 1, node 0.
    #  t=0  job 0: 0.0 to node 0, 0.1 to node 1, there at 1. t=1: 1.0 to node 0; 1.1 waits. t=2: 2.0 waits.
    #  t=5  node 1 reports the end of 0.1 (at 4): 1.1 goes there, 6 to 8.
    #  t=7  node 0 reports two ends (at 6): 2.0 goes there, and its other slot is idle when job 3 comes.
    log = log_of("central-fifo", jobs((0, [5, 3]), (1, [4, 2]), (2, [1]), (7, [2])), [2, 1])
    assert log.tasks == [
        ("0.0", 0, 1, 6),
        ("0.1", 1, 1, 4),
        ("1.0", 0, 2, 6),
        ("1.1", 1, 6, 8),
        ("2.0", 0, 8, 9),
        ("3.0", 0, 8, 10),
    ]
    assert log.kinds == counts(ARRIVAL=4, PLACED=6, TASK_END=6, DONE=6)
    assert log.counters == {"placements": 6}


def test_central_lwl_fills_the_least_loaded_nodes_first() -> None:
    # Work left as the scheduler has it, nodes 0, 1, 2. Ties go to the node just given a task, then to the lowest id.
    #  t=0  idle, idle, idle. Job 0 (four tasks of 4): 0, 1, 2, and with 4, 4, 4 the last stays with node 2.
    #  t=2  4, 4, 8 less 1 s each (all known to run since 1): 3, 3, 7. Job 1 (three of 1): node 0 (4), node 1 (4), and
    #       again node 1 (5).
    #  t=7  node 0 idle (1.0, 5 to 6, is reported). Node 1: of 1 s, running since 6, nothing is left: as good as idle,
    #       but not idle. Node 2: 4 running since 5: 2 left. Job 2 (two of 2): node 0, then node 1.
    #  t=8  long job 3 may use nodes 1 and 2. Node 1: 2 (2.1), node 2: 4 running since 5, 1 left: node 2.
    workload = jobs((0, [4, 4, 4, 4]), (2, [1, 1, 1]), (7, [2, 2]), (8, [20]))
    log = log_of("central-lwl", workload, 3, long_partition=2 / 3)
    assert log.tasks == [
        ("0.0", 0, 1, 5),
        ("0.1", 1, 1, 5),
        ("0.2", 2, 1, 5),
        ("1.0", 0, 5, 6),
        ("1.1", 1, 5, 6),
        ("0.3", 2, 5, 9),
        ("1.2", 1, 6, 7),
        ("2.0", 0, 8, 10),
        ("2.1", 1, 8, 10),
        ("3.0", 2, 9, 29),
    ]
    assert log.kinds == counts(ARRIVAL=4, PLACED=10, STARTED=10, TASK_END=10, DONE=10)
    assert log.counters == {"placements": 10}


def test_dist_lwl_places_by_the_last_heartbeat() -> None:
    # Heartbeats every 8 s, reports 1 s later, no random time.
    #  t=0  both nodes idle: 0.0 to node 0, 1 to 7. t=2: the view is as it was: 1.0 to node 0 too, 7 to 10.
    #  t=8  heartbeat, of which nobody knows yet: 2.0 to node 0, there at 9, 10 to 11.
    #  t=9  report: node 0 has 3, running since 7 (2.0 had not come). It waits 1 s, node 1 none: 3.0 to node 1.
    #  t=16 the second heartbeat reports both nodes as empty, and as nothing changes any more it is the last.
    log = log_of(
        "dist-lwl", jobs((0, [6]), (2, [3]), (8, [1]), (9, [2])), 2, heartbeat_s=8, jitter_s=0, schedulers=1
    )
    assert log.tasks == [("0.0", 0, 1, 7), ("1.0", 0, 7, 10), ("2.0", 0, 10, 11), ("3.0", 1, 10, 12)]
    assert log.kinds == counts(ARRIVAL=4, PLACED=4, TASK_END=4, DONE=4, HEARTBEAT=2, LOAD_REPORT=2)
    assert log.counters == {"placements": 4, "load_reports": 3}
    beats = [(m.time_s, m.kind) for m in log.messages if m.kind in ("HEARTBEAT", "LOAD_REPORT")]
    assert beats == [(8, "HEARTBEAT"), (9, "LOAD_REPORT"), (16, "HEARTBEAT"), (17, "LOAD_REPORT")]


def test_dist_lwl_reports_at_a_heartbeat_what_comes_at_its_instant() -> None:
    # 0.0 reaches node 0 at 8, and is in the report of that heartbeat: known at 9, when job 1 comes. To node 1.
    log = log_of("dist-lwl", jobs((7, [6]), (9, [2])), 2, heartbeat_s=8, jitter_s=0, schedulers=1)
    assert log.tasks == [("0.0", 0, 8, 14), ("1.0", 1, 10, 12)]


def test_dist_lwl_bounds_the_bypass_of_every_entry() -> None:
    # One node, busy with 0.0 from 1 to 11. Its queue then: 1.0 and 1.1 (work left 8 each), 2.0 (6), 3.0 (1).
    # Slack 1.5: 3.0 is within all slacks; all others are charged 1. Then 2.0 would pass job 1 by 6 with 5 left: job 1
    # keeps its place, both tasks.
    log = log_of("dist-lwl", jobs(*SHORTEST_JOBS), 1, cutoff_s=100, slack=1.5, jitter_s=0, schedulers=1)
    assert log.tasks == [
        ("0.0", 0, 1, 11),
        ("3.0", 0, 11, 12),
        ("1.0", 0, 12, 16),
        ("1.1", 0, 16, 20),
        ("2.0", 0, 20, 26),
    ]
    assert log.counters["bypasses"] == 1
    # Slack 5: 2.0 passes job 1 as well, whose tasks may be passed by 20 - 1.
    log = log_of("dist-lwl", jobs(*SHORTEST_JOBS), 1, cutoff_s=100, slack=5, jitter_s=0, schedulers=1)
    assert [task for task, *_ in log.tasks] == ["0.0", "3.0", "2.0", "1.0", "1.1"]
    assert log.counters["bypasses"] == 2


class FewestTasksAndNotes:
    """Places by the fewest tasks, and notes what it was shown."""

    seen: list[tuple[Any, ...]]

    def start(self, num_nodes: int, seed: int) -> None:
        type(self).seen = [("start", num_nodes, seed)]

    def place(self, job: Any, nodes: Any) -> np.ndarray:
        shown = (nodes.tasks.tolist(), nodes.work_left_s.tolist(), nodes.slots.tolist(), nodes.first_long)
        self.seen.append((job.job_id, job.submit_s, job.num_tasks, job.estimate_s, job.is_long, *shown))
        return np.resize(np.argsort(nodes.tasks, kind="stable"), job.num_tasks)


def test_own_scheduler_sees_its_own_bookkeeping() -> None:
    # Two nodes, node 0 kept for short jobs (by those who care).
    #  t=0  job 0 (5 and 2, estimate 3.5): one task each. Both start at 1, known at 2.
    #  t=3  0.1 has just ended, which is not known yet: one task each, 3.5 less the 2 s since 1. Job 1: 0, 1, 0.
    #  t=6  node 1 has reported both its tasks; node 0 has 1 + 2 tasks: 3.5 + 1 + 1, of which 3.5 are done (it has run
    #       5 s, but not longer than estimated): 2 left. Job 2: node 1.
    workload = jobs((0, [5, 2]), (3, [1, 1, 1]), (6, [1]))
    log = log_of(FewestTasksAndNotes, workload, 2, long_partition=0.5, seed=9, cutoff_s=3)
    assert FewestTasksAndNotes.seen == [
        ("start", 2, 9),
        (0, 0.0, 2, 3.5, True, [0, 0], [0, 0], [1, 1], 1),
        (1, 3.0, 3, 1.0, False, [1, 1], [1.5, 1.5], [1, 1], 1),
        (2, 6.0, 1, 1.0, False, [3, 0], [2.0, 0], [1, 1], 1),
    ]
    assert log.tasks == [
        ("0.0", 0, 1, 6),
        ("0.1", 1, 1, 3),
        ("1.1", 1, 4, 5),
        ("1.0", 0, 6, 7),
        ("1.2", 0, 7, 8),
        ("2.0", 1, 7, 8),
    ]
    assert log.kinds == counts(ARRIVAL=3, PLACED=6, STARTED=6, TASK_END=6, DONE=6)
    assert log.counters == {"placements": 6}


@pytest.mark.parametrize("scheduler", ["central-lwl", "dist-lwl"])
def test_bound_late_a_placement_takes_the_next_task_of_its_job(scheduler: str) -> None:
    # One node. Bound late, placements are probes: each costs two hops more, and takes the job's next task whichever
    # came first. 0.0 from 3 to 23; job 1's probes come at 30: 1.0 from 32 to 35, then 1.1 from 37.
    workload, late = jobs((0, [20]), (29, [3, 9])), {"cutoff_s": 100, "late_binding": True}
    log = log_of(scheduler, workload, 1, **late)
    assert log.tasks == [("0.0", 0, 3, 23), ("1.0", 0, 32, 35), ("1.1", 0, 37, 46)]
    kinds = {kind: n for kind, n in log.kinds.items() if kind not in ("HEARTBEAT", "LOAD_REPORT")}
    assert kinds == counts(ARRIVAL=2, PROBE=3, REQUEST=3, TASK=3, TASK_END=3, DONE=3)
    assert log.counters["probes"] == 3
    assert "placements" not in log.counters
