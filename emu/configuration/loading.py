"""The workload and the cluster of a configuration: loaded once, however many plans want them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from emu.configuration.config import Config
from emu.configuration.families import OwnWorkload
from emu.configuration.memo import Memo
from emu.configuration.seeds import constraints_seed, workload_seed
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
AUTO_ROWS = 10 * TIMELINE_ROWS
"""The most rows of such a timeline, however long the run takes."""
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


class Keyed(NamedTuple, Generic[W]):
    """A workload, and the key under which a memo keeps it: all that it was made from."""

    workload: W
    key: tuple[Hashable, ...]


def load_jobs_of(config: Config, memo: Memo, scheduler: str) -> Keyed[JobWorkload]:
    """Return the jobs that a configuration names, or holds, with the constraints that it asks for.

    Raises
    ------
    InputError
        It is not there or wrong, or of coflows; an option of a generator is named where it was given.
    """
    workload, key = load_workload_of(config, memo)
    if isinstance(workload, CoflowWorkload):
        raise config.error("workload", _wrong_family(workload, scheduler, "jobs", "coflows"))
    if config["constraints.model"] is None:
        return Keyed(workload, key)
    asked = {name: config[f"constraints.{name}"] for name in _CONSTRAINTS} | {
        "seed": constraints_seed(config)
    }
    key = (*key, "constraints", *asked.items())
    return Keyed(memo.once(key, lambda: _constrained(config, workload, asked)), key)


def load_coflows_of(config: Config, memo: Memo, scheduler: str) -> Keyed[CoflowWorkload]:
    """Return the coflows that a configuration names, or holds.

    Raises
    ------
    InputError
        They are not there or wrong, or jobs; an option of a generator is named where it was given.
    """
    workload, key = load_workload_of(config, memo)
    if not isinstance(workload, CoflowWorkload):
        raise config.error("workload", _wrong_family(workload, scheduler, "coflows", "jobs"))
    return Keyed(workload, key)


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


def load_workload_of(config: Config, memo: Memo) -> Keyed[OwnWorkload]:
    """Return the workload that a configuration names, or holds, resampled if it asks for that; of DAGs their jobs."""
    from workloads.catalogue import load_workload
    from workloads.transform import resample

    given = config["workload"]
    options = workload_options(config, memo)
    if isinstance(given, OwnWorkload):
        workload: OwnWorkload = given
        key: tuple[Hashable, ...] = ("workload", id(given))
    else:
        key = ("workload", str(given), *((name, repr(value)) for name, value in options.items()))
        with _blame_options(config):
            workload = memo.once(key, lambda: _as_jobs(load_workload(given, options=options)))
    block_s = config["resample.block"]
    if block_s is None:
        return Keyed(workload, key)
    if _is_generated(config):
        told = f"{given} is generated, and another one with every seed; resample.block is for traces"
        raise config.error("resample.block", told)
    seed = workload_seed(config)
    key = (*key, "resample", block_s, seed)
    with config.blame("resample.block"):
        return Keyed(memo.once(key, lambda: resample(workload, block_s, seed)), key)


def workload_options(config: Config, memo: Memo) -> dict[str, Any]:
    """Return all options of the workload's generator, or of its reader, as they hold, the seed among them.

    Raises
    ------
    InputError
        An option that does not exist or is wrong, where it was given; there is no such workload.
    """
    from workloads.catalogue import options_of

    name = config["workload"]
    given = {option: found.value for option, found in config.workload_options.items()}
    if isinstance(name, OwnWorkload):
        for option, found in config.workload_options.items():
            raise found.place.error(
                f"{option!r} is an option of a generator or a reader, and {name.name} is loaded"
            )
        return {}
    key = ("options", str(name), *((option, repr(value)) for option, value in given.items()))
    with _blame_options(config):
        options = memo.once(key, lambda: options_of(name, given))
    return options | {"seed": workload_seed(config)} if "seed" in options else options


def draws_workload(config: Config, memo: Memo) -> bool:
    """Return whether the workload's seed decides what the jobs, or coflows, are."""
    return config["resample.block"] is not None or "seed" in workload_options(config, memo)


def _is_generated(config: Config) -> bool:
    return isinstance(config["workload"], str) and path_of(config, "workload") is None


@contextmanager
def _blame_options(config: Config) -> Iterator[None]:
    """Within, an error about the workload gets the place of the option that it names, or of the workload."""
    try:
        yield
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
        return memo.once(
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


def path_of(config: Config, what: str) -> Path | None:
    """Return the path of the workload or cluster; None when it is a name or an object."""
    from clusters.cluster import presets
    from workloads.catalogue import generators

    given = config[what]
    if not isinstance(given, str | Path) or given in (generators() if what == "workload" else presets()):
        return None
    return Path(given)


def input_files(path: Path | None) -> list[Path]:
    """Return the files whose content a manifest tells of: of a folder Parquet files, or a trace's machines."""
    if path is None or not path.is_dir():
        return [] if path is None else [path]
    from workloads.readers.machines import machine_tables

    return sorted(path.glob("*.parquet")) or machine_tables(path)
