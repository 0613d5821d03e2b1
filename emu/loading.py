"""The workload and the cluster of a configuration: loaded once, however many plans want them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from emu.config import Config
from emu.families import OwnWorkload
from workloads.coflow_updates import CoflowUpdates
from workloads.coflows import CoflowWorkload
from workloads.dags import DagWorkload, as_jobs
from workloads.errors import InputError
from workloads.jobs import JobWorkload
from workloads.transform import at_load, busy_slots, scale
from workloads.transform.families import Workload

if TYPE_CHECKING:
    from actors.setting import Dynamics
    from clusters.cluster import Cluster

TIMELINE_ROWS = 200
"""Rows of a timeline over the shortest time that a run can take, where no period is given."""
_CONSTRAINTS = ("model", "combined", "jobs", "soft", "price", "seed")
Memo = dict[Hashable, Any]
"""What plans share: loaded workloads and clusters, by what they were loaded from."""
T = TypeVar("T")
W = TypeVar("W", bound=OwnWorkload)


class Loaded(NamedTuple):
    """What the schedulers of a plan run, and what follows from it.

    Attributes
    ----------
    source, workload
        As it was loaded, and with its arrivals brought to the load that is asked for.
    cluster : Cluster
        Nodes; of coflows one for each port.
    load : float | None
        Offered load.
    load_s : float
        Wall time it took to load the workload.
    period_s : float
        Of the timeline.
    short_cutoff_s, long_partition : float
        What holds: the user's, or the workload's own, or infinity and 1.
    dynamics : Dynamics
    notes : tuple of str
        What the user must be told before the run.
    updates : CoflowUpdates | None
        Of coflows under way.
    """

    source: Any
    workload: Any
    cluster: Cluster
    load: float | None
    load_s: float
    period_s: float
    short_cutoff_s: float
    long_partition: float
    dynamics: Dynamics
    notes: tuple[str, ...]
    updates: CoflowUpdates | None = None


def load_jobs_of(config: Config, memo: Memo, scheduler: str) -> JobWorkload:
    """Return the jobs that a configuration names, or holds, with the constraints that it asks for.

    Raises
    ------
    InputError
        It is not there or wrong, or of coflows; an option of a generator is named where it was given.
    """
    workload = load_workload_of(config, memo)
    if isinstance(workload, CoflowWorkload):
        raise config.error("workload", _wrong_family(workload, scheduler, "jobs", "coflows"))
    asked = tuple((name, config[f"constraints.{name}"]) for name in _CONSTRAINTS)
    if config["constraints.model"] is None:
        return workload
    return once(memo, ("constraints", workload, *asked), lambda: _constrained(config, workload, dict(asked)))


def load_coflows_of(config: Config, memo: Memo, scheduler: str) -> CoflowWorkload:
    """Return the coflows that a configuration names, or holds.

    Raises
    ------
    InputError
        They are not there or wrong, or jobs; an option of a generator is named where it was given.
    """
    workload = load_workload_of(config, memo)
    if not isinstance(workload, CoflowWorkload):
        raise config.error("workload", _wrong_family(workload, scheduler, "coflows", "jobs"))
    return workload


def _wrong_family(workload: OwnWorkload, scheduler: str, theirs: str, ours: str) -> str:
    """Return what is wrong with a workload that a scheduler cannot run, and which ones can."""
    from actors.schedulers.registry import scheduler_names

    able = ", ".join(scheduler_names(ours))
    return f"{workload.name} has {ours}, and {scheduler} schedules {theirs}; for {ours} there are {able}"


def _constrained(config: Config, workload: JobWorkload, asked: dict[str, Any]) -> JobWorkload:
    """Return the workload with constraints drawn for its jobs, or without any."""
    from workloads.constraints import with_constraints
    from workloads.transform import constrain

    if asked["model"] == "none":
        return with_constraints(workload, [], np.full(workload.num_jobs, -1))
    if asked["soft"] is None:  # a price means nothing then
        del asked["price"]
    try:
        return constrain(workload, **asked)
    except InputError as error:
        name = error.field if error.field in _CONSTRAINTS else "model"
        raise config.error(f"constraints.{name}", error.message) from None


def load_workload_of(config: Config, memo: Memo) -> OwnWorkload:
    """Return the workload that a configuration names, or holds; of DAGs their jobs, without precedence."""
    from workloads.catalogue import load_workload

    name = config["workload"]
    if isinstance(name, OwnWorkload):
        return name
    options = {option: given.value for option, given in config.workload_options.items()}
    key = ("workload", name, tuple(sorted((option, repr(value)) for option, value in options.items())))
    try:
        return once(memo, key, lambda: _as_jobs(load_workload(name, options=options or None)))
    except InputError as error:
        if error.file is not None:
            raise
        for name, given in config.workload_options.items():
            if error.field == name or repr(name) in error.message:  # about an option: name its place
                raise given.place.error(error.message) from None
        raise config.error("workload", error.message) from None


def _as_jobs(workload: Workload) -> OwnWorkload:
    """Return the workload, of DAGs their jobs, which run without precedence; the notes say so."""
    return as_jobs(workload) if isinstance(workload, DagWorkload) else workload


def brought_to(workload: W, capacity: float, load: float) -> W:
    """Return the workload with its arrivals scaled so that it offers a load.

    Parameters
    ----------
    workload
    capacity : float
        Of jobs the cluster's slots; of coflows the speed, in bytes per second, of ports that do not say theirs.
    load : float
    """
    if isinstance(workload, CoflowWorkload):
        scaled = scale(with_port_speeds(workload, capacity), load)
        return replace(workload, coflows=scaled.coflows, metadata=scaled.metadata)
    return at_load(workload, int(capacity), load)


def with_port_speeds(workload: CoflowWorkload, port_bytes_per_s: float) -> CoflowWorkload:
    """Return the workload with a speed of every port: its own where it says one."""
    from workloads.arrow import from_numpy

    ports = workload.ports
    for name in ("ingress_bytes_per_s", "egress_bytes_per_s"):
        speed = getattr(workload.arrays(), name)
        filled = from_numpy(np.where(np.isnan(speed), port_bytes_per_s, speed))
        at = ports.schema.get_field_index(name)
        ports = ports.set_column(at, ports.schema.field(at), filled)
    return replace(workload, ports=ports)


def load_cluster_of(config: Config, nodes: int | None, memo: Memo) -> Cluster:
    """Return the cluster that a configuration names, with a number of nodes."""
    from clusters.cluster import load_cluster

    name, slots, seed = config["cluster"], config["slots"], config["cluster_seed"]
    with config.blame("cluster"):
        return once(
            memo,
            ("cluster", name, nodes, slots, seed),
            lambda: load_cluster(name, nodes, slots=slots, seed=seed),
        )


def feasible(config: Config, workload: JobWorkload, cluster: Cluster) -> JobWorkload:
    """Return the workload, without the jobs that no node can run where the configuration says so.

    Raises
    ------
    InputError
        A job cannot run: it and its constraints are named.
    """
    if not workload.job_constraints.num_rows:
        return workload
    from clusters.matching import check_feasible, drop_infeasible, match

    try:
        if config["infeasible"] == "drop":
            return drop_infeasible(workload, cluster)[0]
        check_feasible(workload, cluster, match(workload, cluster))
    except InputError as error:
        hint = "" if config["infeasible"] == "drop" else "; --infeasible drop leaves such jobs out"
        raise config.error("workload", f"{error.message}{hint}") from None
    return workload


def cluster_for_load(config: Config, source: JobWorkload, memo: Memo) -> Cluster:
    """Return the cluster on which a workload offers the load that a configuration asks for."""
    with config.blame("load"):
        return load_cluster_of(config, nodes_for_load(config, source, config["load"], memo), memo)


def nodes_for_load(config: Config, source: JobWorkload, load: float, memo: Memo) -> int:
    """Return the number of nodes, at least one, on which a workload offers about this load."""
    wanted = busy_slots(source) / load
    nodes = max(round(wanted), 1)
    for _ in range(8):  # exact at once where all nodes have equal slots; machine types come in proportion
        slots = load_cluster_of(config, nodes, memo).total_slots
        better = max(round(nodes * wanted / slots), 1)
        if better == nodes:
            break
        nodes = better
    return nodes


def once(memo: Memo, key: Hashable, make: Callable[[], T]) -> T:
    """Return what was made under a key before, or make it."""
    if key not in memo:
        memo[key] = make()
    made: T = memo[key]
    return made


def path_of(config: Config, what: str) -> Path | None:
    """Return the path of the workload or cluster; None when it is a name or an object."""
    from clusters.cluster import presets
    from workloads.catalogue import generators

    given = config[what]
    if not isinstance(given, str | Path) or given in (generators() if what == "workload" else presets()):
        return None
    return Path(given)
