"""Everything an emulation depends on, with all names resolved."""

from dataclasses import dataclass, field
from typing import Any

from actors.schedulers.policy import Scheduler
from clusters.cluster import Cluster
from workloads.jobs import JobWorkload


@dataclass(frozen=True)
class Network:
    """What a message between two actors costs, in seconds."""

    delay_s: float = 0.0005  # within a rack, and the lower bound of any delay
    spread_s: float = 0.0  # mean of an exponential added to it
    cross_rack_delay_s: float | None = None  # between racks, and to and from schedulers; None: delay_s


@dataclass(frozen=True)
class Estimates:
    """How far estimated task durations are off: error is "none", "constant" or "random".

    Constant: estimate = mean · (1 + size). Random: mean · U(1 - size, 1 + size), drawn once per job.
    """

    error: str = "none"
    size: float = 0.0


@dataclass(frozen=True)
class Setting:
    """An emulation, ready to run."""

    scheduler: Scheduler
    parameters: dict[str, Any]
    workload: JobWorkload
    cluster: Cluster
    short_cutoff_s: float  # mean task duration up to which a job is short; inf: all are
    long_partition: float = 1.0  # share of the nodes that long jobs may use
    network: Network = field(default_factory=Network)
    estimates: Estimates = field(default_factory=Estimates)
    seed: int = 0
