"""The workload and the cluster of a configuration: loaded once for all plans that use them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from emu.configuration.config import Config
from emu.configuration.seeds import scheduler_seed, steps_seed, workload_seed
from emu.configuration.workload_cache import WorkloadCache
from emu.families.registry import family_of_workload, find_family
from workloads.errors import InputError

if TYPE_CHECKING:
    from actors.scheduler import Scheduler
    from clusters.cluster import Cluster

TIMELINE_ROWS = 200
"""Rows of a timeline over the shortest time that a run can take, where no period is given."""
AUTO_ROWS = 10 * TIMELINE_ROWS
"""The most rows of such a timeline, however long the run takes."""


class CannotRun(InputError):
    """A cluster cannot run some jobs of a workload, or where such jobs are dropped none of them."""

    @classmethod
    def of(cls, config: Config, error: InputError) -> CannotRun:
        """Return the error about the workload of a configuration, whose jobs without such nodes can be dropped."""
        hint = "" if config["infeasible"] == "drop" else "; --infeasible drop leaves such jobs out"
        about = config.error("workload", f"{error.message}{hint}")
        return cls(about.message, file=about.file, line=about.line, field=about.field)


class Loaded(NamedTuple):
    """The workload and cluster of a plan, and values derived from them.

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
    notes : tuple of str
        Notes for the user, to print before the run.
    setting : dict
        What the setting of an emulation has of this family alone.
    keys : dict
        Values of keys as they hold for this workload, in place of those that were given.
    """

    source: Any
    workload: Any
    cluster: Cluster
    load: float | None
    load_s: float
    period_s: float
    notes: tuple[str, ...]
    setting: dict[str, Any]
    keys: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Loading:
    """The functions of a family that load the workload and the cluster of a configuration.

    Attributes
    ----------
    load : (config, schedulers, cache) -> Loaded
        Load a workload and a cluster, and check both, and that the schedulers can run them.
    capacity : (config, workload, cluster) -> float
        What an offered load is a share of.
    at_load : (workload, capacity, load) -> workload
        The workload with its arrivals brought to an offered load.
    joined : (config, schedulers) -> schedulers
        The schedulers with what they run together with, such as a network.
    """

    load: Callable[[Config, tuple[Scheduler, ...], WorkloadCache], Loaded]
    capacity: Callable[[Config, Any, Cluster], float]
    at_load: Callable[[Any, float, float], Any]
    joined: Callable[[Config, tuple[Scheduler, ...]], tuple[Scheduler, ...]] = lambda config, schedulers: (
        schedulers
    )


class Keyed(NamedTuple):
    """A workload, and the key under which a cache keeps it: all that it was made from."""

    workload: Any
    key: tuple[Hashable, ...]


def load_of_family(config: Config, cache: WorkloadCache, family: str, scheduler: str) -> Keyed:
    """Return the workload that a configuration names, or holds; refuse one of another family."""
    found = load_workload_of(config, cache, family)
    if find_family(family).take(found.workload) is None:
        own = family_of_workload(found.workload)
        assert own is not None
        raise config.error("workload", _wrong_family(found.workload.name, own[0].name, scheduler, family))
    return found


def _wrong_family(workload: str, has: str, scheduler: str, wants: str) -> str:
    """Return the error about a workload that a scheduler cannot run, with the schedulers that can."""
    from actors.schedulers.registry import scheduler_names

    able = ", ".join(scheduler_names(has))
    return f"{workload} has {has}, and {scheduler} schedules {wants}; for {has} there are {able}"


def load_workload_of(config: Config, cache: WorkloadCache, family: str = "") -> Keyed:
    """Return the workload that a configuration names, or holds, as a family runs it, and its key in the cache.

    Its steps are applied, and then it is resampled, if the configuration asks for that. A workload that the family
    cannot run is taken as the first family that can run it does: of DAGs, the jobs.
    """
    from workloads.catalogue import load_workload
    from workloads.transform import resample

    given, steps = config["workload"], config["workload_steps"]
    options = workload_options(config, cache)
    key: tuple[Hashable, ...]
    if is_given(config):
        workload, key = given, ("workload", id(given))
    else:
        key = ("workload", str(given), *((name, repr(value)) for name, value in options.items()))
        if not steps:
            key = (*key, "as run by", family)
        with _name_options(config):
            # Steps are applied to what was read: to DAGs, not to their jobs.
            workload = cache.get(
                key, lambda: _take(load_workload(given, options=options), family, now=not steps)
            )
    if steps:
        seed, loaded = steps_seed(config, workload.name), workload
        key = (*key, steps, seed, "as run by", family)
        workload = cache.get(key, lambda: _take(_after_steps(config, loaded, seed), family))
    elif is_given(config):
        key = (*key, "as run by", family)
        workload = cache.get(key, lambda: _take(given, family))
    block_s = config["resample.block"]
    if block_s is None:
        return Keyed(workload, key)
    if isinstance(given, str) and path_of(config, "workload") is None:
        problem = f"{given} is generated, with other draws for every seed; resample.block is for traces"
        raise config.error("resample.block", problem)
    seed = workload_seed(config)
    key = (*key, "resample", block_s, seed)
    with config.errors_name("resample.block"):
        return Keyed(cache.get(key, lambda: resample(workload, block_s, seed)), key)


def _after_steps(config: Config, workload: Any, seed: int) -> Any:
    """Return a workload after the steps of a configuration."""
    from workloads.limits import limited, take_limits
    from workloads.transform.registry import parse_steps

    given = {name: found.value for name, found in config.workload_options.items()}
    with config.errors_name("workload_steps"), limited(take_limits(given)[0]):
        for text in config["workload_steps"]:
            for step in parse_steps(text):
                workload = step.apply(workload, seed)
    return workload


def draws_steps(config: Config) -> bool:
    """Return whether a step draws with the workload's seed."""
    if not config["workload_steps"]:
        return False
    from workloads.transform.registry import parse_steps

    return any(step.follows_seed for text in config["workload_steps"] for step in parse_steps(text))


def workload_options(config: Config, cache: WorkloadCache) -> dict[str, Any]:
    """Return the values of all options of the workload's generator, or of its reader, the seed among them."""
    from workloads.catalogue import options_of

    name = config["workload"]
    given = {option: found.value for option, found in config.workload_options.items()}
    if is_given(config):
        for option, found in config.workload_options.items():
            raise found.place.error(
                f"{option!r} is an option of a generator or a reader, and {name.name} is loaded"
            )
        return {}
    key = ("options", str(name), *((option, repr(value)) for option, value in given.items()))
    with _name_options(config):
        options = cache.get(key, lambda: options_of(name, given))
    return options | {"seed": workload_seed(config)} if "seed" in options else options


def instances_in(config: Config, cache: WorkloadCache) -> tuple[str, ...]:
    """Return the instances of an archive of several workloads; nothing for other workloads, or if one is chosen."""
    from workloads.catalogue import instances_of

    name = config["workload"]
    if is_given(config):
        return ()
    options = {option: found.value for option, found in config.workload_options.items()}
    key = ("instances", str(name), *((option, repr(value)) for option, value in options.items()))
    with _name_options(config):
        return cache.get(key, lambda: instances_of(name, options))


def is_given(config: Config) -> bool:
    """Return whether the workload is an object of a Python program, and not a name or a path."""
    return not isinstance(config["workload"], str | Path)


def _take(workload: Any, family: str, now: bool = True) -> Any:
    """Return a workload as a family runs it, or else as the first family that can run it; unchanged if not `now`."""
    if not now:
        return workload
    if family and (taken := find_family(family).take(workload)) is not None:
        return taken
    found = family_of_workload(workload)
    assert found is not None
    return found[1]


def draws_workload(config: Config, cache: WorkloadCache) -> bool:
    """Return whether jobs, or coflows, are drawn with the workload's seed."""
    return (
        config["resample.block"] is not None
        or draws_steps(config)
        or "seed" in workload_options(config, cache)
    )


@contextmanager
def _name_options(config: Config) -> Iterator[None]:
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


def load_cluster_of(config: Config, nodes: int | None, cache: WorkloadCache) -> Cluster:
    """Return the cluster that a configuration names, with a number of nodes, less those that it is without."""
    from clusters.cluster import load_cluster, without
    from clusters.machine_types import read_counts

    name, slots, seed, machines = (config[key] for key in ("cluster", "slots", "cluster_seed", "machines"))
    counts = None if machines is None else read_counts(machines)
    if counts is not None and nodes not in (None, sum(counts.values())):
        raise config.error("machines", f"has {sum(counts.values()):,} nodes, and nodes is {nodes:,}")
    key: tuple[Hashable, ...] = ("cluster", name, nodes, slots, seed, machines)
    with config.errors_name("cluster"):
        cluster = cache.get(key, lambda: load_cluster(name, nodes, slots=slots, seed=seed, machines=counts))
    if (share := config["without"]) == 0:
        return cluster
    key = (*key, share, scheduler_seed(config))
    try:
        return cache.get(key, lambda: without(cluster, share, scheduler_seed(config)))
    except InputError as error:
        raise CannotRun(config.error("without", error.message).message) from None


def cluster_before(config: Config, cache: WorkloadCache, example: int) -> Cluster | None:
    """Return the cluster of a configuration, before its workload is loaded, which takes longer.

    None if the number of nodes follows from the load. `example` is a number of nodes for the error message.
    """
    by_nodes = config["load"] is not None and config["load_by"] == "nodes"
    if by_nodes and config["nodes"] is not None:
        raise config.error("nodes", "not allowed with load_by 'nodes', which picks the number of nodes")
    if by_nodes and config["machines"] is not None:
        raise config.error("machines", "not allowed with load_by 'nodes', which picks the number of nodes")
    if by_nodes:
        return None
    if config["nodes"] is None and config["machines"] is None and path_of(config, "cluster") is None:
        raise InputError(f"--nodes: required, such as --nodes {example}")
    return load_cluster_of(config, config["nodes"], cache)


def cluster_for_load(
    config: Config,
    cache: WorkloadCache,
    source: Any,
    nodes_for_load: Callable[[Config, Any, float, WorkloadCache], int],
) -> Cluster:
    """Return the cluster on which a workload offers the load that a configuration asks for."""
    with config.errors_name("load"):
        return load_cluster_of(config, nodes_for_load(config, source, config["load"], cache), cache)


def at_load_of(config: Config, cache: WorkloadCache, family: str, source: Keyed, cluster: Cluster) -> Any:
    """Return a workload with its arrivals brought to the load that a configuration asks for, if it asks for one."""
    if config["load"] is None:
        return source.workload
    own = find_family(family)[Loading]
    with config.errors_name("load"):
        wanted = (own.capacity(config, source.workload, cluster), config["load"])
        return cache.get((*source.key, "load", *wanted), lambda: own.at_load(source.workload, *wanted))


def path_of(config: Config, what: str) -> Path | None:
    """Return the path of the workload or cluster; None when it is a name or an object."""
    from clusters.cluster import presets
    from workloads.catalogue import generators

    given = config[what]
    if not isinstance(given, str | Path) or given in (generators() if what == "workload" else presets()):
        return None
    return Path(given)


def input_files(path: Path | None) -> list[Path]:
    """Return the files whose hashes are in a manifest: of a folder its Parquet files, or the machines of a trace."""
    if path is None or not path.is_dir():
        return [] if path is None else [path]
    from workloads.formats import machine_tables

    return sorted(path.glob("*.parquet")) or machine_tables(path)
