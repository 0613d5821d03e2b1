"""Examples worked out by hand: Eagle and its ideal form.

Every policy has a handful of nodes and jobs, whose whole log is compared.

All times are in seconds. A message takes 1 s, so that every hop shows; with it, a probe that finds an idle slot at t
has its task at t + 2. A log has each task as ("job.task", node, start, finish), the number of messages of each kind,
and what the mechanisms counted. At one instant a node's own completion comes first, then messages by sender, then
heartbeats, then arrivals, then retries.
"""

from __future__ import annotations

from emulations import SHORTEST_JOBS, counts, jobs, log_of
from splitmix import draw

from actors.kernel.random import RETRIES
from actors.schedulers.jobs.shared_state import TRIES


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
    #       waits, for the slot is held. The rejected probe is drawn again among nodes 0 and 2, which version 1 has as
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
    # One probe a task. Job 0 runs on both nodes, on node 1 until 53. Its probe at node 0 stays: informed at 3 that one
    # task is left, it asks at 5 and gets none at 7. Then job 1's probe has its turn: 1.0 from 9 to 14; it stays, asks
    # again, 1.1 from 16 to 21. Node 1's probe of job 1 asks at 53 and gets none.
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
    #       free, in version 3 none is: both go to node 2, there at 28 behind 2.0 (28 to 30), and get no task.
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
