"""The setting of an emulation: everything that its result depends on, with all names resolved."""

import math
from dataclasses import dataclass, field
from typing import Any

from actors.environment import Costs, Dynamics, Estimates, Network, Preemption, Switch
from actors.scheduler import Scheduler, value_text
from clusters.cluster import Cluster
from workloads.coflow_updates import CoflowUpdates
from workloads.errors import InputError

__all__ = ["Costs", "Dynamics", "Estimates", "Network", "Preemption", "Setting", "Switch"]


@dataclass(frozen=True)
class Setting:
    """An emulation, ready to run."""

    scheduler: Scheduler
    parameters: dict[str, Any]
    workload: Any  # of the scheduler's family
    cluster: Cluster
    short_cutoff_s: float = math.inf  # mean task duration up to which a job is short; inf: all are
    long_partition: float = 1.0  # share of the nodes that long jobs may use
    network: Network = field(default_factory=Network)
    estimates: Estimates = field(default_factory=Estimates)
    costs: Costs = field(default_factory=Costs)
    dynamics: Dynamics = field(default_factory=Dynamics)
    switch: Switch = field(default_factory=Switch)
    updates: CoflowUpdates | None = None  # of coflows under way
    resources: tuple[
        str, ...
    ] = ()  # that tasks hold of nodes, of those that the workload states; none: tasks take slots
    priorities: bool = (
        False  # entries of a node's queue go in order of the priorities that the workload states
    )
    preemption: Preemption | None = None  # None: running tasks are not interrupted
    passing: float = 0.0  # what fits on a node passes others by at most this many times their estimate
    dag: Any = (
        None  # the workload of DAG jobs whose stages the jobs of `workload` are; None: they have no stages
    )
    slows: bool = (
        False  # tasks of DAG jobs that together need more than their machine has slow each other down
    )
    machine_speed: bool = False  # nodes run tasks by their speed, an attribute of the cluster's nodes
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise `InputError` if values of the scheduler's parameters do not go together."""
        for values, why in self.scheduler.refuses:
            if all(self.parameters.get(name) == value for name, value in values.items()):
                together = ", ".join(f"{name}={value_text(value)}" for name, value in values.items())
                raise InputError(f"{self.scheduler.name}: {together}: {why}")

    @property
    def num_jobs(self) -> int:
        """Jobs, or what else the family schedules."""
        return self.scheduler.worlds.num_jobs(self.workload)

    @property
    def num_tasks(self) -> int:
        """Tasks, or what else these consist of."""
        return self.scheduler.worlds.num_tasks(self.workload)
