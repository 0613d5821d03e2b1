"""Waves of a shuffle in the queues of a coordinator; what they are served as is in `golden/dags/waves.txt`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from actors.fabric.ports import build_fabric
from actors.fabric.priority_queues import INACTIVE, make_queues
from actors.fabric.waves import Waves, enqueue_together, make_waves
from workloads.coflows import no_coflows


class Standing(NamedTuple):
    waves: Waves


def test_a_shuffle_stays_in_the_last_queue_that_a_wave_has_entered() -> None:
    fabric = build_fabric(no_coflows(2).arrays(), 1e9)
    queues = make_queues(
        fabric, {"first_limit_bytes": 1, "factor": 10.0, "queues": 4, "interval_s": 1, "starvation": "strict"}
    )
    queues = queues._replace(queue=np.full(2, INACTIVE), entered=np.zeros(2, np.int64))
    standing = Standing(make_waves(2, 1)._replace(shuffle=np.zeros(2, np.int64)))
    for wave, queue in ((0, 2), (1, 1), (1, 2)):
        enqueue_together(standing, queues, wave, queue)
        assert standing.waves.queue.tolist() == [2]
    assert queues.queue.tolist() == [2, 2]
    assert queues.entered[0] == queues.entered[1]
