"""What hosts must know about worlds of coflows."""

from typing import Any

import numpy as np

from actors.fabric.counters import COUNTERS
from actors.worlds import Worlds
from workloads.coflows import make_coflow_workload, with_demands

BYTES_PER_FLOW = 850
"""The 706,397 flows of Facebook's trace took 860 MiB."""


class _CoflowWorlds(Worlds):
    family = "coflows"
    counters = COUNTERS
    part = "flow"
    schedulers_share = 0.9  # the coordinator's, by `cost.model=measured`
    events_a_part = 4.5
    event_ns = 260.0
    longest = "the busiest port takes {} for all its flows"

    def num_jobs(self, workload: Any) -> int:
        return int(workload.num_coflows)

    def num_tasks(self, workload: Any) -> int:
        return int(workload.num_flows)

    def span_ns(self, setting: Any) -> tuple[np.ndarray, int]:
        """The workload lasts at least as long as the busiest port needs."""
        arrays, other = setting.workload.arrays(), setting.switch.port_bytes_per_s
        sides = (
            (arrays.ingress, arrays.ingress_bytes_per_s),
            (arrays.egress, arrays.egress_bytes_per_s),
        )
        least_s = max(
            float(
                np.max(np.bincount(ports, arrays.size_bytes, speeds.size) / np.nan_to_num(speeds, nan=other))
            )
            for ports, speeds in sides
        )
        return arrays.arrival_ns, max(round(least_s * 1e9), 1)

    def rehearsal(self, workload: Any) -> Any:
        """One flow of a byte, which has time enough."""
        made = make_coflow_workload("rehearsal", [0.0], [1], [0], [0], [1.0], workload.num_ports)
        return with_demands(made, deadline_s=[1000.0])

    def needed_bytes(self, setting: Any) -> tuple[int, int]:
        """Each partition has all flows."""
        return BYTES_PER_FLOW * setting.num_tasks, 0

    def owners(self, world: Any) -> dict[str, np.ndarray]:
        """Of coflows also the flows, the lines, and the updates with their stops."""
        of_jobs = super().owners(world)
        return {
            "jobs": of_jobs["jobs"],
            "coflows": of_jobs["jobs"],
            "flows": of_jobs["tasks"],
            "lines": world.fabric.lines.group % world.work.size,  # with those of groups of pilots
            "updates": np.asarray(world.updates.row.coflow),
            "stops": np.asarray(world.updates.stop.coflow),
        }


COFLOW_WORLDS = _CoflowWorlds()
