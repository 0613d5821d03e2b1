"""The environment of a scheduler: network, estimates, costs, failures, switch, and the pace of a live run.

Configuration keys read their defaults here. So this module imports nothing that takes time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workloads.units import format_duration

if TYPE_CHECKING:
    import numpy as np

    from clusters.failures import Outages


@dataclass(frozen=True)
class Network:
    """The delay of a message between two actors, in seconds."""

    delay_s: float = 0.0005  # within a rack, and the lower bound of any delay
    spread_s: float = 0.0  # mean of an exponential added to it
    cross_rack_delay_s: float | None = None  # between racks, and to and from schedulers; None: delay_s


@dataclass(frozen=True)
class Preemption:
    """Running tasks make room for those of higher priority (`actors.nodes.preemption`).

    Attributes:
        keeps: an evicted task goes on from where it was; else from its beginning.
        cost_s: what is added to the run time of a task that was evicted.
        most: how often a task is evicted, at the most.
        below: tasks of this priority or a higher one are not evicted; None: all may be.
        oldest_first: among tasks of one priority the one that started first is evicted first; else the last.
    """

    keeps: bool = False
    cost_s: float = 0.0
    most: int = 1000
    below: int | None = None
    oldest_first: bool = False


@dataclass(frozen=True)
class Estimates:
    """The error of estimated task durations: error is "none", "constant" or "random".

    Constant: estimate = mean · (1 + size). Random: mean · U(1 - size, 1 + size), drawn once per job.
    """

    error: str = "none"
    size: float = 0.0
    demands: bool = False  # of DAG jobs: the same error for what tasks need of machines, drawn by stage


@dataclass(frozen=True, eq=False)
class Costs:
    """What a message costs the scheduler that handles it (actors/kernel/cost.py).

    Attributes:
        model: "none", "fixed", "measured", or "recorded".
        per_message_s: fixed: for each message, also of the coordinator of a network of DAG jobs.
        per_job_s, per_task_s: fixed: for each job that arrives, and for each of its tasks, on top.
        per_update_s: fixed: for each message of an update that the coordinator of coflows receives, on top.
        per_flow_s, per_coflow_s: fixed: for each flow and each coflow that is scheduled in a decision.
        per_schedule_s: fixed: for each schedule that is sent to an agent.
        recorded: COST records of a measured run, for "recorded".
    """

    model: str = "none"
    per_message_s: float = 0.0
    per_job_s: float = 0.0
    per_task_s: float = 0.0
    per_update_s: float = 0.0
    per_flow_s: float = 0.0
    per_coflow_s: float = 0.0
    per_schedule_s: float = 0.0
    recorded: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Dynamics:
    """Failures of nodes and schedulers (actors/failures.py), and stragglers.

    Attributes:
        outages: when which node or scheduler is down; None: by draws alone.
        mtbf_s, mttr_s: means of the exponential times between a node's repair and failure, and from failure to repair;
            None: no draws. Nodes that `outages` names fail by it alone.
        detection_s: time until a node's failure is detected.
        failover_s: time until a scheduler's standby takes over; None: the scheduler itself comes back.
        straggler_share: of the tasks.
        straggler_slowdown: mean factor of their durations.
        straggler_distribution: "constant", "pareto" or "lognormal".
        straggler_shape: of pareto, above 1.
        straggler_sigma: of lognormal.
    """

    outages: Outages | None = None
    mtbf_s: float | None = None
    mttr_s: float | None = None
    detection_s: float = 0.0
    failover_s: float | None = None
    straggler_share: float = 0.0
    straggler_slowdown: float = 3.0
    straggler_distribution: str = "constant"
    straggler_shape: float = 2.0
    straggler_sigma: float = 1.0


MANY_ATTEMPTS = 10.0
"""So many attempts at one task, in the mean, are worth a warning: they grow with e to its length."""


def frequent_failures(dynamics: Dynamics, most_s: float) -> str | None:
    """Return what to say where nodes fail so often that the longest task, of `most_s` seconds, hardly ever ends.

    A task starts again from its beginning. With a mean time between failures M, one of length d ends in an attempt with
    probability e^(-d/M), so that e^(d/M) attempts are the mean: e, where M is d.
    """
    if dynamics.mtbf_s is None:
        return None
    attempts = math.exp(min(most_s / dynamics.mtbf_s, 700.0))
    if attempts < MANY_ATTEMPTS:
        return None
    return (
        f"the longest task takes {format_duration(most_s)} and nodes fail every {format_duration(dynamics.mtbf_s)}: "
        f"about {attempts:.2g} attempts in the mean until it ends, as a lost task starts again; with a dynamics.mtbf of"
        f" at least {format_duration(most_s)} it takes fewer than 3"
    )


@dataclass(frozen=True)
class Switch:
    """The fabric that coflows, and the input of tasks of DAG jobs, cross: one big switch.

    Attributes:
        port_bytes_per_s: in each direction, of ports whose speed the workload does not know.
        local_is_free: flows from a port to itself take no bandwidth, and end at once.
        scheduler: of DAG jobs, who divides the ports among flows: "none", input takes no time; "fair", all flows share
            them; or a coordinator.
        registration: of DAG jobs: tasks are launched, and the flows of their shuffles become known, when all tasks of
            their parents have ended ("barrier"); or they may be launched when these have been launched, and flows
            become known as each of them ends ("pipelined").
        shuffle: of DAG jobs: a task that is launched fetches what others send it ("pull"); or that is sent to its home,
            a machine that is drawn, when its parents have ended, and the task is launched there when all has come
            ("push").
        waves: of DAG jobs, whose shuffles are fetched in waves, as tasks are launched: to a coordinator the waves of a
            shuffle are one coflow ("together"), or each is one ("apart").
        skew: of DAG jobs: how unevenly the tasks of a stage share what its parents send over an all-to-all edge. One
            of them, drawn by the seed, has the most; the k-th after it has a part in proportion to 1 / (k + 1)**skew.
        input: of DAG jobs, what their stages read from outside: it takes no time ("outside"); a `local_share` of the
            tasks have their part on their machine, and others read it from any other ("share"); or each part lies on
            some machines ("replicas").
        replicas, replica_placement: on how many machines a part lies, and on which: any ("random"), or as HDFS chooses
            them ("racks").
        locality_wait_s: how long a job waits for machines that have parts of its input; 0: tasks go in order.
    """

    port_bytes_per_s: float = 125e6
    local_is_free: bool = False
    scheduler: str = "none"
    registration: str = "barrier"
    shuffle: str = "pull"
    waves: str = "together"
    skew: float = 0.0
    input: str = "outside"
    local_share: float = 0.9
    replicas: int = 3
    replica_placement: str = "random"
    locality_wait_s: float = 0.0


@dataclass(frozen=True)
class Pace:
    """The pace of a live run.

    Attributes:
        dilation: seconds of wall time for a second of emulated time.
        tick_s: the least wall time between two batches to the same partition.
        lateness_bound_s: of the 99th percentile of event lateness, in emulated time.
    """

    dilation: float = 1.0
    tick_s: float = 0.002
    lateness_bound_s: float = 0.02
