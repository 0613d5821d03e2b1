"""What hosts must know of worlds of jobs."""

from typing import Any

import numpy as np

from actors.failures import TASK_STATE
from actors.kernel.queue import NONE
from actors.nodes.world import COUNTERS
from actors.resources import idle_at_start
from actors.worlds import Worlds

BYTES_PER_TASK, BYTES_PER_JOB, BYTES_PER_NODE, BYTES_PER_VIEW = 150, 400, 160, 130
"""Measured for sparrow, eagle and central-lwl with 1,000 to 1,000,000 nodes, 1,000 to 97,000 jobs and 41,000 to 3.9
million tasks: 40 bytes a task. Queues that grow under overload are not in it: hence more for tasks. A node has its
row in one partition, and in the cluster, which all share: 61 and 110 bytes. What schedulers know of it lies in each
partition: by ``python -m benchmarks.windows memory`` nothing for sparrow, 64 bytes for eagle, 120 for yacc-d: the
most."""


class _JobWorlds(Worlds):
    family = "jobs"
    counters = COUNTERS

    def is_long(self, setting: Any) -> np.ndarray:
        """[J] bool: jobs whose mean task duration is above the cut-off."""
        mean_ns: np.ndarray = setting.workload.arrays().mean_ns
        return mean_ns > setting.short_cutoff_s * 1e9

    def start_nodes(self, world: Any, setting: Any, own: slice) -> None:
        """Nodes have idle slots and an empty queue."""
        nodes = world.nodes
        for rows in (nodes.head, nodes.tail, nodes.version, nodes.running):
            rows[own] = NONE
        nodes.idle[own] = idle_at_start(setting)[own]

    def needed_bytes(self, setting: Any) -> tuple[int, int]:
        """Schedulers of every partition may know all jobs and nodes; nodes and tasks lie in one."""
        nodes = setting.cluster.num_nodes
        each = BYTES_PER_JOB * setting.num_jobs + BYTES_PER_VIEW * nodes
        dynamics = setting.dynamics
        if setting.preemption is not None or dynamics.mtbf_s is not None or dynamics.outages is not None:
            each += TASK_STATE.itemsize * setting.num_tasks
        return each, BYTES_PER_TASK * setting.num_tasks + BYTES_PER_NODE * nodes


JOB_WORLDS = _JobWorlds()
