"""What a central scheduler of one's own is shown, by hand: its own bookkeeping; a message takes 1 s."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from emulations import jobs, log_of, outages

from actors.setting import Dynamics


class LeastWorkAndNotes:
    """Places on the nodes with the least work, and notes what it was shown."""

    seen: list[tuple[Any, ...]]

    def start(self, num_nodes: int, seed: int) -> None:
        type(self).seen = [("start", num_nodes, seed)]

    def place(self, job: Any, nodes: Any) -> np.ndarray:
        shown = (nodes.tasks.tolist(), nodes.work_left_s.tolist(), nodes.slots.tolist(), nodes.first_long)
        self.seen.append((job.job_id, job.submit_s, job.num_tasks, job.estimate_s, job.is_long, *shown))
        return np.resize(np.argsort(nodes.work_left_s, kind="stable"), job.num_tasks)


def test_it_sees_what_it_has_placed_and_what_was_reported() -> None:
    # Two nodes, node 0 kept for short jobs (by those who care).
    #  t=0  job 0 (5 and 2, estimate 3.5): one task each. Both start at 1, known at 2.
    #  t=3  0.1 has just ended, which is not known yet: one task each, 3.5 less the 2 s since 1. Job 1: 0, 1, 0.
    #  t=6  node 1 has reported both its tasks; node 0 has 1 + 2 tasks: 3.5 + 1 + 1, of which 3.5 are done (it has run
    #       5 s, but not longer than estimated): 2 left. Job 2: node 1.
    workload = jobs((0, [5, 2]), (3, [1, 1, 1]), (6, [1]))
    log = log_of(LeastWorkAndNotes, workload, 2, long_partition=0.5, seed=9, cutoff_s=3)
    assert LeastWorkAndNotes.seen == [
        ("start", 2, 9),
        (0, 0.0, 2, 3.5, True, [0, 0], [0, 0], [1, 1], 1),
        (1, 3.0, 3, 1.0, False, [1, 1], [1.5, 1.5], [1, 1], 1),
        (2, 6.0, 1, 1.0, False, [3, 0], [2.0, 0], [1, 1], 1),
    ]
    assert [node for _, node, _, _ in log.tasks] == [0, 1, 1, 0, 0, 1]


def test_after_a_failure_it_is_asked_again_for_one_task() -> None:
    fails = Dynamics(outages=outages(("node 0", 2, 8)))
    log = log_of(LeastWorkAndNotes, jobs((0, [5, 5]), (4, [1])), 2, dynamics=fails)
    assert [(job, at, tasks, work_s) for job, at, tasks, *_, work_s, _, _ in LeastWorkAndNotes.seen[1:]] == [
        (0, 0.0, 2, [0, 0]),
        (0, 0.0, 1, [math.inf, 3.0]),  # 5 s of work, running since 1
        (1, 4.0, 1, [math.inf, 7.0]),
    ]
    assert log.tasks == [("0.1", 1, 1, 6), ("0.0", 1, 6, 11), ("1.0", 1, 11, 12)]
