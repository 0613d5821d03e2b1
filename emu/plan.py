"""A plan: a configuration with every name resolved and everything loaded, ready to be run."""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emu import run_directory as rd
from emu.clocks import check_clock, costs_of
from emu.coflow_plan import check_updates, load_coflows, switch_of
from emu.columns import SCHEMA_VERSION
from emu.config import Config, Given, layer_from_arguments, resolve
from emu.config_file import layer_from_file, write_config
from emu.families import OwnWorkload, family_of, for_family, own_keys
from emu.job_plan import load_jobs
from emu.keys import BY_NAME, COFLOWS, GROUPS, JOBS
from emu.loading import Memo, path_of
from emu.needs import ignored_notes, meaningless, refuse
from workloads.coflow_updates import CoflowUpdates
from workloads.coflows import CoflowWorkload
from workloads.errors import InputError
from workloads.hints import did_you_mean

if TYPE_CHECKING:
    from actors.schedulers.policy import Scheduler
    from actors.setting import Costs, Dynamics, Setting, Switch
    from clusters.cluster import Cluster

KEPT_WORKLOAD = "./workload"
"""How a run directory names the workload that it keeps itself."""
HOSTING = ("in_process", "address", "checkpoint")
"""Tables and keys that say how a run is hosted; its result is the same."""
READ_FILES = {"dynamics.failures": "failures file", "fabric.updates": "updates file"}
"""Keys whose files are read besides workload and cluster, and what they are called."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A configuration with every name resolved: what is run, for each scheduler and seed.

    Attributes
    ----------
    config : Config
    workload, cluster
        Loaded, the same for all schedulers and seeds.
    schedulers, parameters : tuple
        Side by side; parameters are full.
    short_cutoff_s, long_partition : float
        What holds: the user's, or the workload's own, or infinity and 1.
    period_s : float
        Of the timeline.
    load : float | None
        Offered load.
    load_s : float
        Wall time it took to load the workload.
    source
        The workload as it was loaded, before its arrivals were brought to a load.
    costs : Costs
        What messages cost schedulers.
    dynamics : Dynamics
        What fails, and what straggles.
    notes : tuple of str
        What the user must be told before the run.
    updates : CoflowUpdates | None
        Of coflows under way.
    """

    config: Config
    workload: OwnWorkload
    cluster: Cluster
    schedulers: tuple[Scheduler, ...]
    parameters: tuple[dict[str, Any], ...]
    short_cutoff_s: float
    long_partition: float
    period_s: float
    load: float | None
    load_s: float
    source: OwnWorkload
    costs: Costs
    dynamics: Dynamics
    notes: tuple[str, ...]
    updates: CoflowUpdates | None = None

    @property
    def seeds(self) -> range:
        """Seeds to run."""
        return range(self.config["seed"], self.config["seed"] + self.config["seeds"])

    @property
    def family(self) -> str:
        """``jobs`` or ``coflows``."""
        return COFLOWS if isinstance(self.workload, CoflowWorkload) else JOBS

    @property
    def switch(self) -> Switch:
        """The fabric that coflows cross."""
        return switch_of(self.config)

    @property
    def work(self) -> tuple[int, str]:
        """How much there is to run, and what it is: tasks, or flows."""
        workload = self.workload
        if isinstance(workload, CoflowWorkload):
            return workload.num_flows, "flows"
        return workload.num_tasks, "tasks"

    def setting(self, index: int, seed: int) -> Setting:
        """Return what the emulation of one scheduler with one seed depends on."""
        from actors.setting import Estimates, Network, Setting

        config = self.config
        return Setting(
            scheduler=self.schedulers[index],
            parameters=self.parameters[index],
            workload=self.workload,
            cluster=self.cluster,
            short_cutoff_s=self.short_cutoff_s,
            long_partition=self.long_partition,
            network=Network(
                delay_s=config["network.delay"],
                spread_s=config["network.spread"],
                cross_rack_delay_s=config["network.cross_rack_delay"],
            ),
            estimates=Estimates(config["estimates.error"], config["estimates.size"]),
            costs=self.costs,
            dynamics=self.dynamics,
            switch=self.switch,
            updates=self.updates,
            machine_speed=config["machine_speed"],
            seed=seed,
        )

    def resolved(self, index: int | None = None, seed: int | None = None) -> dict[str, Any]:
        """Return all keys as they hold, in base units: of the whole plan, or of one of its runs."""
        given = self.config["scheduler"]
        values = dict(self.config.values)
        values["scheduler"] = tuple(_name_of(given[i], self.schedulers[i].name) for i in self._which(index))
        for what in ("workload", "cluster"):
            path = path_of(self.config, what)
            values[what] = values[what] if path is None else path.resolve()
        for name in READ_FILES:
            if values[name] is not None:
                values[name] = Path(values[name]).resolve()
        if self.keeps_workload:
            drawn = {name: key.default for name, key in BY_NAME.items() if name.startswith("constraints.")}
            values |= {"workload": KEPT_WORKLOAD} | drawn  # it has them already
        if self.keeps_workload or self.config["load_by"] == "nodes":  # what is written has the load already
            values |= {"load": None, "load_by": BY_NAME["load_by"].default}
        values["nodes"] = self.cluster.num_nodes
        values["short_cutoff"] = self.short_cutoff_s if math.isfinite(self.short_cutoff_s) else None
        values["long_partition"] = self.long_partition
        values["timeline.period"] = self.period_s
        if seed is not None:
            values |= {"seed": seed, "seeds": 1}
        return own_keys(values, self.family)

    @property
    def keeps_workload(self) -> bool:
        """Whether the workload came from Python, so that the run directory must hold it."""
        return isinstance(self.config["workload"], OwnWorkload)

    def config_toml(self, index: int | None = None, seed: int | None = None) -> str:
        """Return the text of ``config.toml``: of the whole plan, or of one of its runs."""
        options = {name: given.value for name, given in self.config.workload_options.items()}
        own = {self.schedulers[i].name: self.parameters[i] for i in self._which(index)}
        return write_config(self.resolved(index, seed), own, options)

    def manifest(self, index: int | None = None, seed: int | None = None) -> dict[str, Any]:
        """Return what a manifest says before the run: the whole plan's, or one of its runs'."""
        return {
            "schema_version": SCHEMA_VERSION,
            "status": rd.RUNNING,
            "config": tomllib.loads(self.config_toml(index, seed)),
            "inputs": self.inputs,
            "versions": rd.versions(),
            "notes": list(self.notes),
            **({"from_python": True} if any(map(_is_object, self.config["scheduler"])) else {}),
        }

    def identity(self, index: int, seed: int) -> str:
        """Return a hash (hex) of all that the states of a run depend on, but for Emu itself."""
        config = tomllib.loads(self.config_toml(index, seed))
        inputs = [found["sha256"] for found in self.inputs]
        told = [{name: value for name, value in config.items() if name not in HOSTING}, inputs]
        return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()

    def _which(self, index: int | None) -> range:
        return range(len(self.schedulers)) if index is None else range(index, index + 1)

    @cached_property
    def inputs(self) -> list[dict[str, str]]:
        """What was read, with its sha256: the workload's content, and files."""
        found = [{"what": "workload", "name": self.workload.name, "sha256": self.workload.fingerprint()}]
        for what in ("workload", "cluster"):
            path = path_of(self.config, what)
            files = sorted(path.glob("*.parquet")) if path is not None and path.is_dir() else [path]
            found += [
                {"what": f"{what} file", "name": str(f), "sha256": rd.sha256_of(f)}
                for f in files
                if f is not None and f.is_file()
            ]
        for key, what in READ_FILES.items():
            if self.config[key] is not None:
                read = Path(self.config[key])
                found.append({"what": what, "name": str(read.resolve()), "sha256": rd.sha256_of(read)})
        for given in self.config["scheduler"]:
            file = (
                Path(f"{given.partition('.py:')[0]}.py")
                if isinstance(given, str) and ".py:" in given
                else None
            )
            if file is not None and file.is_file():
                name = str(file.resolve())
                found.append({"what": "scheduler file", "name": name, "sha256": rd.sha256_of(file)})
        return found


def configure(arguments: Mapping[str, Any], config: str | Path | None = None) -> Config:
    """Return the configuration of keyword arguments over a file."""
    layers = [] if config is None else [layer_from_file(config)]
    return resolve([*layers, layer_from_arguments(arguments)])


def prepare(config: Config, memo: Memo | None = None, *, one_of_many: bool = False) -> Plan:
    """Resolve every name of a configuration and load its workload.

    Parameters
    ----------
    config : Config
    memo : dict, optional
        Keeps what is loaded, so that plans that are given the same one share equal workloads and clusters.
    one_of_many : bool
        A value that changes nothing in this plan is not refused: it may in others (`emu.needs`).

    Raises
    ------
    InputError
        What is missing, unknown or wrong, and where it was given.
    """
    from actors.schedulers.registry import find_scheduler

    memo = {} if memo is None else memo
    for name in ("scheduler", "workload"):
        if config[name] is None:
            raise InputError(f"{BY_NAME[name].option}: required; `emu run --help` has examples")
    with config.blame("scheduler"):
        schedulers = tuple(find_scheduler(name) for name in config["scheduler"])
    names = [s.name for s in schedulers]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise config.error("scheduler", f"{twice!r} is there twice")
    family = family_of(config, schedulers)
    config = for_family(config, family, schedulers[0].name)
    parameters = scheduler_parameters(config, schedulers)
    if not one_of_many:
        refuse(meaningless(config, schedulers, parameters))
    check_clock(config, schedulers, parameters)
    if family == COFLOWS:
        check_updates(config, schedulers, parameters)
    costs = costs_of(config, family)
    load = load_coflows if family == COFLOWS else load_jobs
    loaded = load(config, schedulers, memo)
    loaded = loaded._replace(notes=loaded.notes + ignored_notes(config, schedulers))
    return Plan(config=config, schedulers=schedulers, parameters=parameters, costs=costs, **loaded._asdict())


def scheduler_parameters(config: Config, schedulers: tuple[Scheduler, ...]) -> tuple[dict[str, Any], ...]:
    """Return the full parameters of each scheduler.

    ``NAME`` goes to every scheduler that has it, and one at least must; ``SCHEDULER.NAME`` to that one.
    """
    from actors.schedulers.policy import resolve_parameters

    chosen: list[dict[str, Any]] = [{} for _ in schedulers]
    for name, given in config.parameters:
        targets = _targets(name, given, schedulers)
        for index, parameter in targets:
            try:
                resolve_parameters(schedulers[index], {parameter: given.value})
            except InputError as error:
                raise given.place.error(error.message) from None
            chosen[index][parameter] = given.value
    return tuple(resolve_parameters(s, own) for s, own in zip(schedulers, chosen, strict=True))


def _targets(name: str, given: Given, schedulers: tuple[Scheduler, ...]) -> list[tuple[int, str]]:
    """Return (index, parameter) of the schedulers a parameter goes to."""
    for index, scheduler in enumerate(schedulers):
        if name.startswith(f"{scheduler.name}."):
            return [(index, name.removeprefix(f"{scheduler.name}."))]
    having = [i for i, s in enumerate(schedulers) if any(p.name == name for p in s.parameters)]
    if having:
        return [(i, name) for i in having]
    owners = [s.name for s in schedulers]
    if "." in name:
        owner = name.rpartition(".")[0]
        near = did_you_mean(owner, [*owners, *GROUPS])
        raise given.place.error(f"no scheduler {owner!r} in this run, nor keys of that name{near}")
    known = {p.name for s in schedulers for p in s.parameters} | set(BY_NAME)
    what = f"neither a key nor a parameter of {' or '.join(owners)}"
    raise given.place.error(f"{name!r} is {what}{did_you_mean(name, known)}")


def _name_of(given: Any, name: str) -> str:
    """Return how a configuration names a scheduler: a file by absolute path, an object by its class."""
    if isinstance(given, str):
        file, colon, inner = given.partition(".py:")
        return f"{Path(file).resolve()}.py:{inner}" if colon else given
    made = given if isinstance(given, type) else type(given)
    return f"{made.__module__}:{made.__qualname__}" if made.__module__ != "__main__" else name


def _is_object(given: Any) -> bool:
    """Return whether a scheduler is one that no configuration file can name."""
    return not isinstance(given, str | type) or getattr(given, "__module__", None) == "__main__"
