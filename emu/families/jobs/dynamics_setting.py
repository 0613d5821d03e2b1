"""Dynamics of an emulation, from configuration to setting: failures of nodes and schedulers, stragglers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from emu.configuration.seeds import scheduler_seed
from workloads.arrow import column
from workloads.units import format_duration

if TYPE_CHECKING:
    from actors.setting import Dynamics
    from clusters.cluster import Cluster
    from emu.configuration.config import Config
    from workloads.jobs import JobWorkload

MANY_ATTEMPTS = 10.0
"""So many attempts at one task, in the mean, are worth a warning: they grow with e to its length."""


def dynamics_of(config: Config, cluster: Cluster) -> Dynamics:
    """Return the dynamics that a configuration asks for.

    Raises
    ------
    InputError
        A key goes with another that is not there, or the schedule of failures is wrong.
    """
    from actors.setting import Dynamics
    from clusters.failures import load_outages

    mtbf_s, mttr_s = config["dynamics.mtbf"], config["dynamics.mttr"]
    if (mtbf_s is None) != (mttr_s is None):
        there, missing = ("mtbf", "mttr") if mttr_s is None else ("mttr", "mtbf")
        raise config.error(
            f"dynamics.{there}",
            f"goes with dynamics.{missing}: how long nodes are up and how long they are down, both",
        )
    for name, value in (("mtbf", mtbf_s), ("mttr", mttr_s)):
        if value == 0:
            raise config.error(f"dynamics.{name}", "is 0; want a time such as '30 d' or '1 h'")
    outages = None
    if config["dynamics.failures"] is not None:
        with config.errors_name("dynamics.failures"):
            outages = load_outages(config["dynamics.failures"], cluster, scheduler_seed(config))
    distribution, slowdown = config["dynamics.straggler_distribution"], config["dynamics.straggler_slowdown"]
    if slowdown < 1:
        raise config.error(
            "dynamics.straggler_slowdown", f"{slowdown:g} would make stragglers faster; want 1 or more"
        )
    if config["dynamics.straggler_shape"] <= 1:
        raise config.error("dynamics.straggler_shape", "a Pareto distribution has a mean only above 1")
    return Dynamics(
        outages=outages,
        mtbf_s=mtbf_s,
        mttr_s=mttr_s,
        detection_s=config["dynamics.detection"],
        failover_s=config["dynamics.failover"],
        straggler_share=config["dynamics.straggler_share"],
        straggler_slowdown=slowdown,
        straggler_distribution=distribution,
        straggler_shape=config["dynamics.straggler_shape"],
        straggler_sigma=config["dynamics.straggler_sigma"],
    )


def endless_task_note(dynamics: Dynamics, workload: JobWorkload) -> str | None:
    """Return a note if the longest task has little chance to end between two failures.

    A task starts again from its beginning. With a mean time between failures M, one of length d ends in an attempt with
    probability e^(-d/M), so that e^(d/M) attempts are the mean.
    """
    if dynamics.mtbf_s is None:
        return None
    longest_s = float(column(workload.tasks, "duration_s").max())
    attempts = math.exp(min(longest_s / dynamics.mtbf_s, 700.0))
    if attempts < MANY_ATTEMPTS:
        return None
    return (
        f"the longest task takes {format_duration(longest_s)} and nodes fail every {format_duration(dynamics.mtbf_s)}: "
        f"about {attempts:.2g} attempts in the mean until it ends, as a lost task starts again"
    )
