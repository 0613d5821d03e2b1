"""A plan: a configuration with every name resolved and everything loaded, ready to be run."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emu import disk
from emu.configuration.config import Config, layer_from_arguments, resolve
from emu.configuration.config_file import layer_from_file, write_config
from emu.configuration.costs import check_clock, costs_of
from emu.configuration.family_keys import family_of, for_family, own_keys
from emu.configuration.ineffective_values import (
    effective_options,
    effective_parameters,
    ignored_notes,
    ineffective,
    ineffective_keys,
    leftover_notes,
)
from emu.configuration.keys import BY_NAME
from emu.configuration.loading import (
    Loading,
    draws_workload,
    input_files,
    is_given,
    load_of_family,
    path_of,
    workload_options,
)
from emu.configuration.replicas import INSTANCE, Replica, batch_name, of_replica, replicas_of
from emu.configuration.schedulers import (
    NETWORK,
    find_schedulers,
    is_object,
    scheduler_file,
    scheduler_parameters,
    text_of,
    variants_of,
)
from emu.configuration.seeds import (
    check_seeds,
    constraints_seed,
    drawn,
    scheduler_seed,
    with_first_seed,
    workload_seed,
)
from emu.configuration.workload_cache import WorkloadCache
from emu.directories import run_directory as rd
from emu.directories.manifest import NODES_FOR_LOAD, versions
from emu.directories.names import SCHEMA_VERSION, WORKLOAD
from emu.directories.provenance import provenance
from emu.families.family import Family
from workloads.errors import InputError

if TYPE_CHECKING:
    from actors.scheduler import Scheduler
    from actors.setting import Costs, Setting
    from clusters.cluster import Cluster

KEPT_WORKLOAD = f"./{WORKLOAD}"
"""The name of a workload that is stored in the run directory itself."""
HOSTING = ("in_process", "address", "checkpoint")
"""Tables and keys that determine how a run is hosted; they do not change its result."""
READ_FILES = {
    "cost.file": "costs file",
    "dynamics.failures": "failures file",
    "fabric.updates": "updates file",
}
"""Keys whose files are read besides workload and cluster, to their names in manifests."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A configuration with every name resolved: the runs of one replica, one for each scheduler.

    A plan of several replicas has the workload of the first; `of_replica` gives the plans of all.

    Attributes
    ----------
    config : Config
    workload, cluster
        Loaded, the same for all schedulers.
    schedulers, parameters : tuple
        Side by side; parameters are full.
    period_s : float
        Of the timeline.
    load : float | None
        Offered load.
    load_s : float
        Wall time it took to load the workload.
    source
        The workload as it was loaded and drawn, before its arrivals were brought to a load.
    costs : Costs
        What messages cost schedulers.
    notes : tuple of str
        Notes for the user, to print before the run.
    options : dict
        All options of the workload's generator or reader, as they hold.
    drawn : dict of str to int
        What is drawn, and with which seed (`emu.configuration.seeds.drawn`).
    cache : WorkloadCache
        What was loaded for this plan and others.
    family : Family
    own : dict
        What the setting of an emulation has of this family alone.
    keys : dict
        Values of keys as they hold for this workload, in place of those that were given.
    replicas : tuple of Replica
        The seeds to run, or the instances of a batch.
    """

    config: Config
    workload: Any
    cluster: Cluster
    schedulers: tuple[Scheduler, ...]
    parameters: tuple[dict[str, Any], ...]
    period_s: float
    load: float | None
    load_s: float
    source: Any
    costs: Costs
    notes: tuple[str, ...]
    options: dict[str, Any]
    drawn: dict[str, int]
    cache: WorkloadCache
    family: Family
    own: dict[str, Any]
    keys: dict[str, Any]
    replicas: tuple[Replica, ...]

    @property
    def seed(self) -> int:
        """The first, or only, seed."""
        return self.replicas[0].seed

    @property
    def is_batch(self) -> bool:
        """Whether the replicas are instances of an archive."""
        return bool(self.replicas[0].instance)

    @property
    def name(self) -> str:
        """The name of the workload, or of the batch."""
        return batch_name(self.config["workload"]) if self.is_batch else str(self.workload.name)

    @property
    def instance(self) -> dict[str, str]:
        """The entries of a summary about the chosen instance of an archive; empty for other workloads."""
        chosen = None if self.is_batch else self.options.get(INSTANCE)
        if chosen is None:
            return {}
        return {INSTANCE: str(chosen), "batch": batch_name(self.config["workload"])}

    def of_replica(self, replica: Replica) -> Plan:
        """Return the plan of one of its replicas, which may have another workload."""
        if len(self.replicas) == 1:
            return self
        try:
            return prepare(of_replica(self.config, replica), self.cache, one_of_many=True)
        except InputError as error:
            wrong = f"{replica}: {error.message}"
            raise InputError(wrong, file=error.file, line=error.line, field=error.field) from None

    @property
    def work(self) -> tuple[int, str]:
        """The amount of work, and its unit, such as tasks."""
        return self.schedulers[0].worlds.num_tasks(self.workload), self.family.part

    def setting(self, index: int) -> Setting:
        """Return what the emulation of one scheduler depends on."""
        from actors.setting import Network, Setting

        config = self.config
        return Setting(
            scheduler=self.schedulers[index],
            parameters=self.parameters[index],
            workload=self.workload,
            cluster=self.cluster,
            network=Network(
                delay_s=config["network.delay"],
                spread_s=config["network.spread"],
                cross_rack_delay_s=config["network.cross_rack_delay"],
            ),
            costs=self.costs,
            seed=scheduler_seed(config),
            **self.own,
        )

    def resolved(self, index: int | None = None) -> dict[str, Any]:
        """Return all keys as they hold, in base units: of the whole plan, or of one scheduler's run."""
        schedulers = tuple(self.schedulers[i] for i in self._which(index))
        values = self.config.values | ineffective_keys(self.config, schedulers)
        given = self.config["scheduler"]
        values["scheduler"] = tuple(
            text_of(self.config, given[i], self.schedulers[i]) for i in self._which(index)
        )
        for what in ("workload", "cluster"):
            path = path_of(self.config, what)
            values[what] = values[what] if path is None else path.resolve()
        for name in READ_FILES:
            if values[name] is not None:
                values[name] = Path(values[name]).resolve()
        if (coordinator := self.schedulers[0].coordinator) is not None:
            values[NETWORK] = text_of(self.config, values[NETWORK], coordinator)
        values["workload_steps"] = values["workload_steps"] or None
        if self.keeps_workload:
            values["workload"] = KEPT_WORKLOAD
        several = index is None and len(self.replicas) > 1
        if several:  # each replica may have a workload, and so a number of nodes, of its own
            if not self.is_batch:
                values["nodes"] = self._num_nodes if self._nodes_for_load is None else None
        else:
            values |= {"nodes": self._num_nodes, "seeds": 1, **self._own_seeds()}
            if self.keeps_workload:  # what is written has them already
                done = ("constraints.", "resample.", "workload_steps")
                values |= {name: key.default for name, key in BY_NAME.items() if name.startswith(done)}
            if self.keeps_workload or self.config["load_by"] == "nodes":
                values |= {"load": None, "load_by": BY_NAME["load_by"].default}
        if not several:  # as it holds for one workload
            values |= self.keys
        return own_keys(values, self.family)

    @property
    def _num_nodes(self) -> int:
        """Number of nodes of the cluster, with those that it is without."""
        return self.cluster.num_nodes + self.cluster.missing

    @property
    def _nodes_for_load(self) -> float | None:
        """The load from which the number of nodes follows, seed by seed; None if the number is given."""
        load: float | None = self.config["load"] if self.config["load_by"] == "nodes" else None
        return load

    def _own_seeds(self) -> dict[str, int | None]:
        """Return the seeds that do not follow another one: equal runs have equal configurations."""
        config = self.config
        follows = {"scheduler_seed": scheduler_seed(config) == config["seed"]}
        follows["workload_seed"] = (
            workload_seed(config) == config["seed"] or "seed" in config.workload_options
        )
        follows["constraints.seed"] = constraints_seed(config) == workload_seed(config)
        return {name: None if follow else config[name] for name, follow in follows.items()}

    @property
    def keeps_workload(self) -> bool:
        """Whether the workload came from Python, so that the run directory must hold it."""
        return is_given(self.config)

    def config_toml(self, index: int | None = None) -> str:
        """Return the text of ``config.toml``: of the whole plan, or of one scheduler's run."""
        options = effective_options(self.config, self.options)
        if "seed" not in self.config.workload_options:  # it follows
            options.pop("seed", None)
        if self.is_batch:
            options.pop(INSTANCE)
        own: dict[str, Any] = {}
        variants: dict[str, Any] = {}
        for i in self._which(index):
            scheduler, coordinator = self.schedulers[i], self.schedulers[i].coordinator
            own[scheduler.name] = effective_parameters(scheduler, self.parameters[i])
            variants |= variants_of(self.config, self.config["scheduler"][i], scheduler)
            if coordinator is not None:
                variants |= variants_of(self.config, self.config[NETWORK], coordinator)
        return write_config(self.resolved(index), own, options, variants)

    def manifest(self, index: int | None = None) -> dict[str, Any]:
        """Return the content of a manifest before the run: of the whole plan, or of one scheduler."""
        return {
            "schema_version": SCHEMA_VERSION,
            "status": rd.RUNNING,
            "config": tomllib.loads(self.config_toml(index)),
            "inputs": self.inputs,
            "versions": versions(),
            "record": provenance(),
            "notes": list(self.notes),
            **({} if self._nodes_for_load is None else {NODES_FOR_LOAD: self._nodes_for_load}),
            **({"from_python": True} if any(map(is_object, self.config["scheduler"])) else {}),
        }

    def identity(self, index: int) -> str:
        """Return a hash (hex) of all that the states of a run depend on, except for Emu itself."""
        config = tomllib.loads(self.config_toml(index))
        inputs = [found["sha256"] for found in self.inputs]
        identifying = [{name: value for name, value in config.items() if name not in HOSTING}, inputs]
        return hashlib.sha256(json.dumps(identifying, sort_keys=True, default=str).encode()).hexdigest()

    def _which(self, index: int | None) -> range:
        return range(len(self.schedulers)) if index is None else range(index, index + 1)

    @cached_property
    def inputs(self) -> list[dict[str, str]]:
        """The inputs with their sha256: the workload's content, and files."""
        found = [{"what": "workload", "name": self.workload.name, "sha256": self.workload.fingerprint()}]
        for what in ("workload", "cluster"):
            path = path_of(self.config, what)
            found += [self._input(f"{what} file", f, f) for f in input_files(path) if f.is_file()]
        for key, what in READ_FILES.items():
            if self.config[key] is not None:
                read = Path(self.config[key])
                found.append(self._input(what, read.resolve(), read))
        for given in (*self.config["scheduler"], self.config[NETWORK]):
            if (file := scheduler_file(self.config, given)) is not None:
                found.append(self._input("scheduler file", file.resolve(), file))
        return found

    def _input(self, what: str, name: Path, file: Path) -> dict[str, str]:
        """Return a file that was read; its hash is made once, for all plans that share a cache."""
        state = file.stat()
        key = ("sha256", str(file), state.st_mtime_ns, state.st_size)
        return {"what": what, "name": str(name), "sha256": self.cache.get(key, lambda: disk.sha256_of(file))}


def configure(arguments: Mapping[str, Any], config: str | Path | None = None) -> Config:
    """Return the configuration of keyword arguments over a file."""
    layers = [] if config is None else [layer_from_file(config)]
    return resolve([*layers, layer_from_arguments(arguments)])


def prepare(config: Config, cache: WorkloadCache | None = None, *, one_of_many: bool = False) -> Plan:
    """Resolve every name of a configuration and load its workload.

    Parameters
    ----------
    config : Config
    cache : WorkloadCache, optional
        Keeps what is loaded, so that plans with the same cache share equal workloads and clusters.
    one_of_many : bool
        A value without effect in this plan is not refused, as it may have one in others
        (`emu.configuration.ineffective_values`).

    Raises
    ------
    InputError
        What is missing, unknown or wrong, and where it was given.
    """
    cache = WorkloadCache() if cache is None else cache
    for name in ("scheduler", "workload"):
        if config[name] is None:
            raise InputError(f"{BY_NAME[name].option}: required; `emu run --help` has examples")
    config = with_first_seed(config)
    schedulers = find_schedulers(config)
    family = family_of(config, schedulers)
    config = for_family(config, family, schedulers[0].name)
    parameters = scheduler_parameters(config, schedulers)
    schedulers = family[Loading].joined(config, schedulers)
    if not one_of_many:
        for error in ineffective(config, schedulers, parameters).values():
            raise error
    check_clock(config, schedulers, parameters)
    costs = costs_of(config, family)
    of_workload = draws_workload(config, cache)
    notes = check_seeds(config, of_workload)
    replicas = replicas_of(config, cache)
    first = of_replica(config, replicas[0])
    if replicas[0].instance:  # an error in one of them is reported before the others are run
        for replica in replicas:
            load_of_family(of_replica(config, replica), cache, family.name, schedulers[0].name)
    loaded = family[Loading].load(first, schedulers, cache)
    leftovers = () if one_of_many else leftover_notes(config, schedulers, parameters)
    return Plan(
        config=config,
        workload=loaded.workload,
        cluster=loaded.cluster,
        schedulers=schedulers,
        parameters=parameters,
        period_s=loaded.period_s,
        load=loaded.load,
        load_s=loaded.load_s,
        source=loaded.source,
        costs=costs,
        notes=(*loaded.notes, *notes, *leftovers, *ignored_notes(config, schedulers)),
        options=workload_options(first, cache),
        drawn=drawn(config, of_workload),
        cache=cache,
        family=family,
        own=loaded.setting,
        keys=loaded.keys,
        replicas=replicas,
    )
