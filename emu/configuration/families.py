"""Families of schedulers, and the keys that only one of them has.

A run has schedulers of one family: those that place jobs on nodes, or those that schedule coflows over ports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from emu.configuration.keys import BY_NAME, COFLOWS, JOBS
from workloads.coflows import CoflowWorkload
from workloads.jobs import JobWorkload

if TYPE_CHECKING:
    from actors.scheduler import Scheduler
    from emu.configuration.config import Config

OwnWorkload = JobWorkload | CoflowWorkload
"""What is run, and what a Python program can give; of DAGs it is their jobs."""
_SAME_TIME = "schedules must reach all agents at the same time"
_OUR_PORTS = "the nodes of a run of coflows are the workload's ports, all alike"
_WHY = {
    "cluster": _OUR_PORTS,
    "cluster_seed": _OUR_PORTS,
    "slots": _OUR_PORTS,
    "machine_speed": _OUR_PORTS,
    "infeasible": _OUR_PORTS,
    "load_by": _OUR_PORTS,
    "constraints": _OUR_PORTS,
    "network.spread": _SAME_TIME,
    "network.cross_rack_delay": _SAME_TIME,
    "slowdown_threshold": "coflows are compared with what they would take alone, however short that is",
    "short_cutoff": "coflows are neither short nor long",
    "long_partition": "coflows are neither short nor long",
    "estimates": "coflows have no tasks whose durations could be estimated",
    "dynamics": "nothing fails or straggles in a run of coflows",
    "cost": "for coflows there are cost.per_message, .per_update, .per_flow, .per_coflow and .per_schedule",
}
"""Why a key, or all keys of a table, are not for coflows."""


def family_of(config: Config, schedulers: Sequence[Scheduler]) -> str:
    """Return the family of all schedulers of a run.

    Raises
    ------
    InputError
        They are of several.
    """
    first = schedulers[0]
    for other in schedulers:
        if other.family != first.family:
            raise config.error(
                "scheduler",
                f"{first.name} is for {first.family} and {other.name} for {other.family}; "
                "a run has schedulers of one family",
            )
    return COFLOWS if first.family == COFLOWS else JOBS


def for_family(config: Config, family: str, scheduler: str) -> Config:
    """Return the configuration with the defaults of a family.

    Raises
    ------
    InputError
        A key of the other family has another value than its default.
    """
    values = dict(config.values)
    for name, key in BY_NAME.items():
        given = name in config.places
        if given and key.family not in ("", family) and config[name] != key.default:
            why = (
                _why(name) if family == COFLOWS else f"it is for coflows, and {scheduler} schedules {family}"
            )
            raise config.error(name, f"not for {scheduler}: {why}")
        if not given and family == COFLOWS and key.for_coflows is not None:
            values[name] = key.for_coflows
    return replace(config, values=values)


def own_keys(values: dict[str, Any], family: str) -> dict[str, Any]:
    """Return the values of the keys that a family has."""
    return {name: value for name, value in values.items() if BY_NAME[name].family in ("", family)}


def _why(name: str) -> str:
    return _WHY.get(name) or _WHY[name.partition(".")[0]]
