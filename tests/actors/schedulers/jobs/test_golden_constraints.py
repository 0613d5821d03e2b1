"""Examples worked out by hand: constraint-aware schedulers.

As in the examples of their twins, times are in seconds and a message takes 1 s: a probe that finds an idle slot at t
has its task at t + 2, a task that is placed at t runs from t + 1.
"""

from __future__ import annotations

from emulations import counts, jobs, log_of
from splitmix import draw

from actors.kernel.random import PROBES
from clusters.cluster import Cluster, build_cluster
from workloads.constraints import parse_constraint_set, with_constraints
from workloads.jobs import JobWorkload


def asking(rows: tuple[tuple[float, list[float]], ...], *texts: str) -> JobWorkload:
    """Jobs whose constraints are these, in the same order."""
    sets = [parse_constraint_set(text) if text else () for text in texts]
    return with_constraints(jobs(*rows), sets, range(len(rows)))


def nodes_of(*cores: int, racks: list[int] | None = None) -> Cluster:
    """Nodes of one slot with so many cores; each has as many disks as its number, from 0 on."""
    count = len(cores)
    return build_cluster("by hand", [1] * count, rack=racks, cpu_cores=cores, max_disks=range(1, count + 1))


def test_sparrow_probes_nodes_that_satisfy() -> None:
    # Two probes for two nodes that have the cores: node 1 receives nothing. Job 1 takes nodes 1 and 2 of three: each
    # of its tasks would run on any, but it asks for four cores if it can, else for two at twice the time; two nodes do.
    log = log_of(
        "sparrow-c",
        asking(((0, [3, 5]), (20, [1])), "cores >= 4", "cores >= 8 soft 2 and max_disks = 2"),
        nodes_of(4, 1, 4),
        probe_ratio=1.0,
        schedulers=1,
    )
    assert log.tasks == [("0.0", 0, 3, 6), ("0.1", 2, 3, 8), ("1.0", 1, 23, 25)]
    assert log.kinds == counts(ARRIVAL=2, PROBE=3, REQUEST=3, TASK=3, TASK_END=3, DONE=3)
    assert log.counters == {"probes": 3, "jobs_relaxed": 1}


def test_sparrow_hands_out_one_task_a_rack() -> None:
    # Racks {0, 1} and {2, 3}; four probes, one a node. At 2 they ask, in order of their ids: node 0 gets 0.0, node 1
    # may not have the other and gets none, and a probe goes to node 2 or 3. Node 2 gets 0.1, and nothing is left for
    # node 3. The new probe comes at 3, and learns at its turn that no task is left.
    log = log_of(
        "sparrow-c",
        asking(((0, [3, 5]),), "spread-racks"),
        nodes_of(1, 1, 1, 1, racks=[0, 0, 1, 1]),
        schedulers=1,
    )
    assert log.tasks == [("0.0", 0, 3, 6), ("0.1", 2, 3, 8)]
    assert log.kinds == counts(ARRIVAL=1, PROBE=5, REQUEST=5, TASK=2, NO_TASK=3, TASK_END=2, DONE=2)
    assert log.counters == {"probes": 4, "empty_answers": 2, "refusals": 1}
    assert [m.dst for m in log.messages if m.kind == "NO_TASK"][:2] == [1, 3]
    (again,) = [m for m in log.messages if m.kind == "PROBE" and m.time_s == 3]
    assert again.dst in (2, 3)


def test_sparrow_keeps_a_job_in_a_rack_that_has_room() -> None:
    # Of racks {0}, {1, 2, 3} and {4} the middle one alone has three nodes. Three probes: one each.
    log = log_of(
        "sparrow-c",
        asking(((0, [1, 1, 1]),), "same-rack and spread-nodes"),
        nodes_of(1, 1, 1, 1, 1, racks=[0, 1, 1, 1, 2]),
        schedulers=1,
    )
    assert sorted(node for _, node, _, _ in log.tasks) == [1, 2, 3]
    assert log.kinds == counts(ARRIVAL=1, PROBE=3, REQUEST=3, TASK=3, TASK_END=3, DONE=3)
    assert log.counters == {"probes": 3}


def test_hawk_thieves_take_what_they_may_run() -> None:
    # Long job 0 runs on node 0 until 31. Job 1, which wants four cores, has its one probe there too, with a seed that
    # draws place 0 of the nodes 0 and 2. Node 1, which has one core, is done with job 2 at 7; its requests find
    # nothing. Node 2, which alone has three disks, is done with job 3 at 15, steals the probe, and runs 1.0.
    seed = next(seed for seed in range(100) if draw(seed, PROBES, 1, 0, 2) == 0)
    log = log_of(
        "hawk-c",
        asking(
            ((0, [30]), (1, [3]), (2, [2]), (10, [2])),
            "cores >= 4",
            "cores >= 4",
            "cores < 4",
            "max_disks >= 3",
        ),
        nodes_of(4, 1, 4),
        probe_ratio=1.0,
        schedulers=1,
        seed=seed,
    )
    (stolen,) = [task for task in log.tasks if task[0] == "1.0"]
    assert [task for task in log.tasks if task[0] != "1.0"] == [
        ("0.0", 0, 1, 31),
        ("2.0", 1, 5, 7),
        ("3.0", 2, 13, 15),
    ]
    asked = [(m.a, m.dst, m.time_s) for m in log.messages if m.kind == "STEAL" and m.time_s < 31]
    assert any(thief == 1 and victim == 0 for thief, victim, _ in asked)
    found = next(at for thief, victim, at in asked if (thief, victim) == (2, 0))
    # The probe is a second on its way to the thief, which asks for the task: two more.
    assert stolen == ("1.0", 2, found + 3, found + 6)
    assert (log.counters["steals"], log.counters["stolen_probes"]) == (1, 1)


def test_eagle_probes_again_among_nodes_that_satisfy() -> None:
    # Nodes 2 and 3 have the cores. Long job 0 goes to node 2, which at 3 rejects job 1's probe, with version 1 of the
    # picture. Nodes 0, 1 and 3 are free in it, but the job may use node 3 alone: there the probe joins the first one,
    # which runs 1.0 from 5 to 8, asks again, and runs 1.1 from 10, when both go.
    log = log_of(
        "eagle-c",
        asking(((0, [20]), (2, [3, 5])), "cores >= 4", "cores >= 4"),
        nodes_of(1, 1, 4, 4),
        least_probes=2,
        probe_ratio=1.0,
        schedulers=1,
    )
    assert log.tasks == [("0.0", 2, 1, 21), ("1.0", 3, 5, 8), ("1.1", 3, 10, 15)]
    assert log.kinds == counts(
        ARRIVAL=2, PLACED=1, STARTED=1, PROBE=3, REJECTED=1, RETRY=1, REQUEST=2, TASK=2, TASK_END=3, DONE=3
    )
    assert log.counters == {"probes": 2, "placements": 1, "rejections": 1, "probes_again": 1}


def test_central_places_on_the_least_loaded_that_satisfy() -> None:
    # Nodes 1 and 2 have the cores. At 0 job 0's tasks go to 1, 2 and, by the rule of ties, 2, though node 0 is idle; at
    # 1 job 1 goes to 0. At 2 job 2's tasks go to different nodes: first to 1, which has less work, then to 2. Job 3
    # asks for more cores than there are, and does without at twice the time: at 3 node 0 waits least.
    log = log_of(
        "central-c",
        asking(
            ((0, [10, 10, 10]), (1, [1]), (2, [1, 1]), (3, [2])),
            "cores >= 4",
            "",
            "cores >= 4 and spread-nodes",
            "cores >= 8 soft 2",
        ),
        nodes_of(1, 4, 4),
    )
    assert log.tasks == [
        ("0.0", 1, 1, 11),
        ("0.1", 2, 1, 11),
        ("1.0", 0, 2, 3),
        ("3.0", 0, 4, 8),
        ("2.0", 1, 11, 12),
        ("0.2", 2, 11, 21),
        ("2.1", 2, 21, 22),
    ]
    assert log.kinds == counts(ARRIVAL=4, PLACED=7, STARTED=7, TASK_END=7, DONE=7)
    assert log.counters == {"placements": 7, "jobs_relaxed": 1}
