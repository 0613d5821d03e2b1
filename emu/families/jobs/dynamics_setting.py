"""Dynamics of an emulation, from configuration to setting: failures of nodes and schedulers, stragglers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emu.configuration.seeds import scheduler_seed

if TYPE_CHECKING:
    from actors.setting import Dynamics
    from clusters.cluster import Cluster
    from emu.configuration.config import Config


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


def endless_task_note(dynamics: Dynamics, workload: Any) -> tuple[str, ...]:
    """Return a note if the longest task has little chance to end between two failures."""
    from actors.environment import frequent_failures

    found = frequent_failures(dynamics, float(workload.arrays().duration_ns.max()) / 1e9)
    return () if found is None else (found,)
