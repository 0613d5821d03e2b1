"""What hosts must know of worlds of DAG jobs."""

from typing import Any

import numpy as np

from actors.conditions import counted_priorities
from actors.failures import ATTEMPT, TASK_STATE
from actors.machines.dag_world import COUNTERS
from actors.machines.evictable import GROUPS, PLACED
from actors.machines.overuse import RUNNING_TASK
from actors.worlds import Worlds
from workloads.dags import make_dag_workload

BYTES_PER_TASK, BYTES_PER_STAGE = 64, 300


class DagWorlds(Worlds):
    """Worlds of resource managers and node managers."""

    family = "dags"
    counters = COUNTERS
    schedulers_share = 0.9  # the resource manager's, by `cost.model=measured`
    events_a_part = 1.25
    event_ns = 2_000.0

    def rehearsal(self, workload: Any) -> Any:
        """Its task needs what one of the first stage does: the resources are the same."""
        first = workload.arrays().demand[:1]
        needs = {name: first[:, r] for r, name in enumerate(workload.resources)}
        return make_dag_workload("rehearsal", [0.0], [1], [1], [0.0], np.zeros((0, 3), int), demands=needs)

    def is_long(self, setting: Any) -> np.ndarray:
        """[J] bool: jobs whose mean task duration is above the cut-off."""
        mean_ns: np.ndarray = setting.workload.arrays().mean_ns
        return mean_ns > setting.short_cutoff_s * 1e9

    def needed_bytes(self, setting: Any) -> tuple[int, int]:
        """Every partition knows all stages and tasks by their number."""
        each = BYTES_PER_TASK * setting.num_tasks + BYTES_PER_STAGE * setting.workload.num_stages
        if setting.slows:
            each += RUNNING_TASK.itemsize * setting.num_tasks
        if setting.preemption is not None:
            each += (TASK_STATE.itemsize + PLACED.itemsize + 2 * ATTEMPT.itemsize) * setting.num_tasks
            groups = min(np.unique(counted_priorities(setting)).size, GROUPS)
            each += 8 * groups * max(len(setting.workload.resources), 1) * setting.cluster.num_nodes
        return each, 0


DAG_WORLDS = DagWorlds()
