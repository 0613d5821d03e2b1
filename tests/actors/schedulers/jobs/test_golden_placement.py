"""Examples worked out by hand: schedulers that place by what they know of the nodes.

Every policy has a handful of nodes and jobs, whose whole log is compared.

All times are in seconds. A message takes 1 s, so that every hop shows; with it, a probe that finds an idle slot at t
has its task at t + 2. A log has each task as ("job.task", node, start, finish), the number of messages of each kind,
and what the mechanisms counted. At one instant a node's own completion comes first, then messages by sender, then
heartbeats, then arrivals, then retries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulations import SHORTEST_JOBS, counts, jobs, log_of


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
    #  t=8  heartbeat, which no scheduler has yet: 2.0 to node 0, there at 9, 10 to 11.
    #  t=9  report: node 0 has 3, running since 7 (2.0 had not come). It waits 1 s, node 1 none: 3.0 to node 1.
    #  t=16 both nodes report themselves empty, and as nothing changes any more these heartbeats are the last.
    log = log_of(
        "dist-lwl", jobs((0, [6]), (2, [3]), (8, [1]), (9, [2])), 2, heartbeat_s=8, jitter_s=0, schedulers=1
    )
    assert log.tasks == [("0.0", 0, 1, 7), ("1.0", 0, 7, 10), ("2.0", 0, 10, 11), ("3.0", 1, 10, 12)]
    assert log.kinds == counts(ARRIVAL=4, PLACED=4, TASK_END=4, DONE=4, HEARTBEAT=3, LOAD_REPORT=3)
    assert log.counters == {"placements": 4, "load_reports": 3}
    beats = [(m.time_s, m.kind) for m in log.messages if m.kind in ("HEARTBEAT", "LOAD_REPORT")]
    assert beats == [
        (8, "HEARTBEAT"),
        (9, "LOAD_REPORT"),
        (16, "HEARTBEAT"),
        (16, "HEARTBEAT"),
        (17, "LOAD_REPORT"),
        (17, "LOAD_REPORT"),
    ]


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


class LeastReported:
    """A probing scheduler of a user's own: tasks go to the node that says it has least work."""

    schedulers = 1

    def on_arrival(self, job: Any, cluster: Any) -> None:
        self.job, self.work_s = job, {}
        cluster.ask([0, 1])

    def on_load(self, node: Any, number: int, cluster: Any) -> None:
        self.work_s[node.node_id] = node.work_left_s
        if len(self.work_s) == cluster.num_nodes:
            cluster.place(self.job, [min(self.work_s, key=lambda node: self.work_s[node])])


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


@pytest.mark.parametrize(
    ("scheduler", "parameters"),
    [
        ("central-lwl", {}),
        ("hawk", {}),
        ("dist-lwl", {"heartbeat_s": 4.0, "jitter_s": 0.0}),
        ("dist-lwl", {"heartbeat_s": 4.0, "jitter_s": 0.0, "global_view": True}),
        ("yacc-d", {"heartbeat_s": 4.0}),
        ("yacc-d", {"heartbeat_s": 4.0, "bound": "wait", "queue_wait_s": 1e6}),
        (LeastReported, {}),
    ],
)
def test_work_that_no_integer_holds_is_spread_evenly(scheduler: Any, parameters: dict[str, Any]) -> None:
    # Half of 36 tasks of 32 years are 570 years of work at a node with 100 slots; an int64 of ns holds 292.
    log = log_of(scheduler, jobs(*((10 * i, [1e9]) for i in range(36))), [100, 100], **parameters)
    nodes = [node for _, node, _, _ in log.tasks]
    assert abs(nodes.count(0) - nodes.count(1)) <= 2
