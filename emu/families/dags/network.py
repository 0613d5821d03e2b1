"""The network of runs of DAG jobs: who divides it, and what it can run with; the figures of what it moved."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from emu.families.dags.keys import MAX_MIN_FAIR
from workloads.hints import did_you_mean
from workloads.jobs import MAX_TIME_S
from workloads.transform.primitives import with_tables

if TYPE_CHECKING:
    from actors.hosting.outcome import Outcome
    from actors.scheduler import Scheduler
    from actors.setting import Switch
    from clusters.cluster import Cluster
    from emu.configuration.config import Config
    from workloads.dags import DagWorkload

_ONLY = {
    "clock": (
        ("virtual", "windows"),
        "rates depend on all flows at once, which no partition knows whose clock is its own",
    ),
    "preemption.mode": (("none",), "tasks that have fetched their input are not evicted"),
}
"""The values with which a network runs, and why not with others."""
_ONLY_MADD = {
    "cost.model": (
        ("none", "fixed"),
        "MADD's rates need what a decision costs before it is made; want rates=greedy",
    )
}
"""The same of coordinators with MADD's rates."""
MOST_SKEW = 10


def on_network(config: Config, schedulers: tuple[Scheduler, ...]) -> tuple[Scheduler, ...]:
    """Return the schedulers, whose tasks fetch their input over the network that is asked for.

    Raises
    ------
    InputError
        There is no such network, or it does not run with another value.
    """
    from actors.scheduler import resolve_parameters
    from actors.schedulers.jobs.by_stage import by_stage
    from actors.transfers.joined import with_network

    if gangs := [scheduler.name for scheduler in schedulers if scheduler.gangs]:
        wrong = f"{gangs[0]} starts all tasks of a job at once, and DAG jobs run stage by stage"
        raise config.error("scheduler", f"{wrong}; want a scheduler of tasks, such as sparrow or central-lwl")
    network = config["network.scheduler"]
    if network != "none" and config["network.registration"] == "pipelined":
        _check_pipelined(config, schedulers)
    if network != "none" and {config["dynamics.failures"], config["dynamics.mtbf"]} != {None}:
        _check_failing(config, schedulers)
    if network != "none" and config["network.shuffle"] == "push":
        _check_pushed(config, schedulers)
    if network != "none" and config["clock"] == "windows":
        _check_divided(config, schedulers)
    schedulers = tuple(by_stage(one) if one.family == "jobs" else one for one in schedulers)
    if network == "none":
        return schedulers
    coordinator = None if network == MAX_MIN_FAIR else coordinator_of(config, network)
    has_madd = coordinator is not None and resolve_parameters(coordinator, {}).get("rates") == "madd"
    for name, (values, why) in (_ONLY | _ONLY_MADD if has_madd else _ONLY).items():
        if config[name] not in values:
            raise config.error(
                "network.scheduler", f"{network} does not go with {name}={config[name]}: {why}"
            )
    return tuple(with_network(scheduler, coordinator) for scheduler in schedulers)


def _check_pipelined(config: Config, schedulers: tuple[Scheduler, ...]) -> None:
    """Refuse schedulers under which tasks are not launched before their parents have ended."""
    _check_schedulers(
        config,
        schedulers,
        "network.registration",
        own="a scheduler of one's own gets tasks when their parents have ended",
        jobs="a stage goes to a scheduler of jobs when its parents have ended",
    )


def _check_pushed(config: Config, schedulers: tuple[Scheduler, ...]) -> None:
    """Refuse schedulers that choose other machines than those to which the input of tasks is sent."""
    if config["network.registration"] == "pipelined":
        wrong = (
            "push does not go with network.registration=pipelined: input is sent when all parents have ended"
        )
        raise config.error("network.shuffle", wrong)
    _check_schedulers(
        config,
        schedulers,
        "network.shuffle",
        own="a scheduler of one's own chooses machines, and does not know homes of tasks",
        jobs="schedulers of jobs send tasks to nodes wherever their input is",
    )


def _check_schedulers(
    config: Config, schedulers: tuple[Scheduler, ...], key: str, own: str, jobs: str
) -> None:
    """Refuse with the value of a key schedulers that plan, and those of one's own and of jobs, with these reasons."""
    for scheduler in schedulers:
        why = own if scheduler.own else ""
        if scheduler.family == "jobs":
            why = jobs
        if scheduler.plans:
            why = "it plans tasks to start when their parents have ended"
        if why:
            raise config.error(key, f"{config[key]} does not go with scheduler={scheduler.name}: {why}")


def _check_divided(config: Config, schedulers: tuple[Scheduler, ...]) -> None:
    """Refuse managers of users: they are shown what machines know."""
    for scheduler in schedulers:
        if scheduler.own is not None and scheduler.family == "dags":
            wrong = (
                f"{scheduler.name} is shown which tasks fetch their input, which other partitions do not know"
            )
            raise config.error("clock", f"{wrong}; want virtual")


def _check_failing(config: Config, schedulers: tuple[Scheduler, ...]) -> None:
    """Refuse what does not run again the tasks whose output a machine that has failed had."""
    from actors.schedulers.registry import built_in_schedulers

    for scheduler in schedulers:
        if scheduler.family == "jobs" and not scheduler.runs_again:
            able = sorted(one.name for one in built_in_schedulers() if one.runs_again and not one.constrained)
            wrong = f"a machine that fails loses outputs, and {scheduler.name} does not run tasks again that have ended"
            raise config.error(
                "network.scheduler",
                f"{wrong}; want {' or '.join(able)}, a scheduler of DAG jobs, or network=none",
            )
    for name, wanted, why in (
        ("network.registration", "barrier", "tasks would wait for what runs again, and hold its room"),
        ("network.shuffle", "pull", "what was sent to a machine is lost with it"),
        ("network.input", "outside", "parts that lie on a machine that has failed are not copied"),
    ):
        if config[name] != wanted:
            wrong = f"{config[name]} does not go with dynamics.failures or dynamics.mtbf: {why}"
            raise config.error(name, f"{wrong}; want {wanted}")


def coordinator_of(config: Config, network: Any) -> Scheduler:
    """Return the coordinator that a configuration names: a built-in one, a user's own, or a variant of one."""
    from actors.schedulers.registry import coordinator_names, scheduler_names
    from emu.configuration.schedulers import find_one

    wrong = partial(config.error, "network.scheduler")
    if not isinstance(network, str):
        raise wrong(
            f"{network!r} is not text; want a name, or where a class is: 'path.py:Class', 'module:Class'"
        )
    is_place = ":" in network or "@" in network
    if not is_place and network not in (*config.variants, *scheduler_names("coflows")):
        names = ("none", MAX_MIN_FAIR, *coordinator_names(), *config.variants)
        raise wrong(f"no network {network!r}{did_you_mean(network, names)}")
    found = find_one(config, network, wrong)
    if found.transfers is None:
        what = found.policy if found.family == "coflows" else f"a scheduler of {found.family}"
        which = f"{network} is {what}" if what != network else network
        raise wrong(
            f"{which}, which does not coordinate the coflows of DAG jobs; want one of "
            f"{', '.join(coordinator_names())}, or a class with order or rates"
        )
    return found


def moved_by(config: Config, workload: DagWorkload) -> DagWorkload:
    """Return the workload, of which no demand for network bandwidth is held if a network moves what tasks send."""
    shares = [name for name in workload.resources if name.startswith("network_")]
    if config["network.scheduler"] == "none" or not shares:
        return workload
    note = f"{' and '.join(shares)} of {workload.name} are not held: the network moves what tasks send"
    return with_tables(workload, not_held=tuple(shares), notes=(*workload.notes, note))


def network_of(config: Config, workload: DagWorkload, cluster: Cluster) -> Switch:
    """Return the network that a configuration asks for.

    Raises
    ------
    InputError
        Its ports have no speed, or one at which nothing ends, the workload has no bytes that it could move, or parts of
        input are to lie on more machines than there are.
    """
    from actors.setting import Switch

    name, read = config["network.scheduler"], config["network.input"]
    if name == "none":
        return Switch()
    if config["fabric.port_speed"] == 0:
        raise config.error("fabric.port_speed", "is 0; want a speed such as '10 Gbps'")
    if config["network.skew"] > MOST_SKEW:
        raise config.error(
            "network.skew", f"want a number from 0 to {MOST_SKEW}, got {config['network.skew']:g}"
        )
    size = np.nansum(workload.arrays().edge_bytes)
    if read != "outside":
        of_input = np.nansum(workload.arrays().input_bytes)
        if not of_input > 0:
            wrong = (
                f"no stage of {workload.name} states what it reads of its job's input, which {read} places"
            )
            raise config.error("network.input", f"{wrong}; `emu workload info` shows which workloads do")
        size += of_input
    if not size > 0:
        wrong = f"no edge of {workload.name} states bytes, so that {name} has nothing to move"
        raise config.error("network.scheduler", f"{wrong}; `emu workload info` shows which workloads do")
    if (longest_s := size * 8 / config["fabric.port_speed"]) > MAX_TIME_S:
        wrong = f"all bytes would take {longest_s:.3g} s over one port; want a speed such as '10 Gbps'"
        raise config.error("fabric.port_speed", wrong)
    if read == "replicas" and config["network.replicas"] > cluster.num_nodes:
        wrong = f"is {config['network.replicas']} on {cluster.num_nodes} machines; want at most one on each"
        raise config.error("network.replicas", wrong)
    return Switch(
        config["fabric.port_speed"] / 8,
        scheduler=name,
        registration=config["network.registration"],
        shuffle=config["network.shuffle"],
        waves=config["network.waves"],
        skew=config["network.skew"],
        input=read,
        local_share=config["network.local_share"],
        replicas=config["network.replicas"],
        replica_placement=config["network.replica_placement"],
        locality_wait_s=config["network.locality_wait"],
    )


def network_notes(config: Config, workload: DagWorkload) -> list[str]:
    """Return notes on bytes that are not moved."""
    if config["network.scheduler"] == "none":
        return []
    arrays, notes = workload.arrays(), []
    if unknown := int(np.isnan(arrays.edge_bytes).sum()):
        notes.append(
            f"{unknown:,} of {arrays.edge_bytes.size:,} edges state no bytes: what goes over them takes no time"
        )
    if config["network.input"] != "outside":
        roots = np.diff(arrays.first_parent) == 0
        if unknown := int((np.isnan(arrays.input_bytes) & roots).sum()):
            notes.append(
                f"{unknown:,} of {roots.sum():,} stages without parents do not state what they read: it takes no time"
            )
    elif np.nansum(arrays.input_bytes) > 0:
        notes.append(
            "what jobs read from outside takes no time: the network moves what tasks send to each other"
            " (with network.input=replicas or share it takes some)"
        )
    return notes


def describe_transfers(outcome: Outcome, fetching_ns: np.ndarray) -> dict[str, Any]:
    """Return the figures of what a network moved; empty without one. ``fetching_ns``: of tasks that fetched."""
    found = outcome.series
    if found is None:
        return {}
    return {
        "moved_bytes": found.moved_bytes,
        "local_bytes": found.local_bytes,
        "flows": outcome.counters.get("flows", 0),
        **({"coflows": found.coflows, "mean_cct_s": found.mean_cct_s} if found.coflows else {}),
        "mean_fetch_s": float(fetching_ns.mean()) / 1e9 if fetching_ns.size else 0.0,
    }
