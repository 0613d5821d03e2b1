"""Differences between the configurations of runs, and groups of runs that can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from emu.configuration.config import Given, Place, flatten, read_given
from emu.configuration.keys import BY_NAME, PARAMETERS, WORKLOAD_OPTIONS
from emu.configuration.replicas import INSTANCE, Replica, replica_of
from emu.directories.manifest import NODES_FOR_LOAD
from emu.results.result import Result
from emu.results.text_tables import number
from workloads.units import format_duration

NO_AXES = (
    "scheduler",
    "seed",
    "seeds",
    "in_process",
    "address",
    "checkpoint",
    "output",
    "timeline",
    "tolerance",
    "variants",
    f"{WORKLOAD_OPTIONS}.{INSTANCE}",
)
"""Keys, and tables of keys, in which runs that are compared may differ; for other seeds see `_is_axis`."""
OF_THE_WORKLOAD = ("short_cutoff", "long_partition")
"""Keys whose values are the workload's unless they are given."""
IN_HEADINGS = ("workload", "nodes")
"""Axes that all headings show."""
OFFERED_LOAD = "offered_load"
COMPARED = {"network.scheduler": "network"}
"""Keys that choose a scheduler too, and their labels: runs that differ in them are compared with each other."""
OF_A_NETWORK = (
    "fabric.port_speed",
    *(
        f"network.{name}"
        for name in (
            "waves",
            "skew",
            "input",
            "local_share",
            "replicas",
            "replica_placement",
            "locality_wait",
        )
    ),
)
"""Keys without effect on DAG jobs where `network.scheduler` is none: such a run is compared with those of any value."""


class Axis(NamedTuple):
    """A key that differs between runs.

    Attributes
    ----------
    label : str
        A dotted key, or the name of a parameter.
    values : tuple
        In base units; numbers in rising order, others in order of appearance.
    is_own : bool
        Whether it is a parameter of schedulers.
    """

    label: str
    values: tuple[Any, ...]
    is_own: bool


@dataclass(frozen=True)
class Group:
    """Runs that differ only in scheduler, network and replica.

    Attributes
    ----------
    at : dict of str to object
        Label to value, in base units, of the axes that are not parameters.
    results : dict of str to list of Result
        By scheduler, with the network and the parameters in which its runs differ; in order of replicas.
    own : dict of str to dict
        Label to value of that network and those parameters, by scheduler.
    """

    at: dict[str, Any]
    results: dict[str, list[Result]] = field(default_factory=dict)
    own: dict[str, dict[str, Any]] = field(default_factory=dict)


def group_runs(runs: Sequence[Result]) -> list[Group]:
    """Return the runs that can be compared.

    Schedulers are compared if they have run with the same seeds, or on the same instances of an archive, with the same
    workload for each. Where a scheduler has several runs of a replica, each run is a group of its own.
    """
    pairs = list(_with_configs(runs))
    runs, configs = [run for run, _ in pairs], [config for _, config in pairs]
    shared = _shared(runs, configs)
    names, own = _variants(runs, configs)
    keys = [
        (
            run.family,
            run.summary.get("batch", run.summary["workload"]),
            config.get("nodes", run.summary["nodes"]),
            *(str(config.get(name)) for name in shared),
        )
        for run, config in zip(runs, configs, strict=True)
    ]
    inputs = [workload_hash(run) for run in runs]
    replicas = [replica_of(run.summary) for run in runs]
    # The same scheduler with the same seed has several workloads: they differ in something that is not a key.
    same = list(zip(keys, names, replicas, strict=True))
    untold = len(set(zip(same, inputs, strict=True))) > len(set(same))
    groups: dict[Any, Group] = {}
    for i, run in enumerate(runs):
        at = {name: base_value(name, configs[i].get(name)) for name in shared}
        if untold and OFFERED_LOAD in run.summary:
            at[OFFERED_LOAD] = run.summary[OFFERED_LOAD]
        group = groups.setdefault((keys[i], inputs[i] if untold else ""), Group(at))
        group.results.setdefault(names[i], []).append(run)
        group.own[names[i]] = own[i]
    return [part for group in groups.values() for part in _paired(group)]


def axes_of(groups: Sequence[Group]) -> list[Axis]:
    """Return the axes of groups."""
    found: dict[tuple[str, bool], list[Any]] = {}
    for group in groups:
        for label, value in group.at.items():
            found.setdefault((label, False), []).append(value)
        for values in group.own.values():
            for label, value in values.items():
                found.setdefault((label, True), []).append(value)
    return [Axis(label, _in_order(values), is_own) for (label, is_own), values in found.items()]


def _with_configs(runs: Sequence[Result]) -> Iterator[tuple[Result, dict[str, Any]]]:
    """Yield runs and their keys, a run without network once with the keys of each network: they do not change it."""
    configs = [_config_of(run) for run in runs]
    of_networks = [
        {name: config[name] for name in OF_A_NETWORK if name in config}
        for config in configs
        if config.get("network.scheduler", "none") != "none"
    ]
    for run, config in zip(runs, configs, strict=True):
        has_none = config.get("network.scheduler") == "none"
        for keys in {repr(keys): keys for keys in of_networks}.values() if has_none and of_networks else [{}]:
            yield run, config | keys


def _config_of(run: Result) -> dict[str, Any]:
    """Return the keys of a run; where a load determines the nodes, which differ by seed, the load instead."""
    config = dict(flatten(run.manifest.get("config", {})))
    if NODES_FOR_LOAD in run.manifest:
        config |= {"nodes": None, "load": run.manifest[NODES_FOR_LOAD]}
    return config


def _shared(runs: Sequence[Result], configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the keys that are not parameters and differ between runs of a family."""
    names = dict.fromkeys(name for config in configs for name in config)
    families = {run.family for run in runs}
    found = []
    for name in names:
        table = name.partition(".")[0]
        if table in (PARAMETERS, *NO_AXES) or name in (*NO_AXES, *COMPARED):
            continue
        values = [
            {str(c.get(name)) for c, run in zip(configs, runs, strict=True) if run.family == family}
            for family in families
        ]
        if any(len(v) > 1 for v in values) and _is_axis(name, runs, configs):
            found.append(name)
    return [
        name
        for name in found
        if name not in OF_THE_WORKLOAD or not _is_of_workload(name, found, runs, configs)
    ]


def _is_of_workload(
    name: str, differing: Sequence[str], runs: Sequence[Result], configs: Sequence[Mapping[str, Any]]
) -> bool:
    """Return whether the values of a key follow from the workloads: each seed may draw its own jobs."""
    by_workload: dict[str, set[str]] = {}
    for run, config in zip(runs, configs, strict=True):
        by_workload.setdefault(workload_hash(run), set()).add(str(config.get(name)))
    return "workload" in differing or all(len(values) == 1 for values in by_workload.values())


def _is_axis(name: str, runs: Sequence[Result], configs: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a key is an axis: not a seed that follows the seed of the run."""
    if "seed" not in name.rpartition(".")[2]:
        return True
    by_run: dict[tuple[str, Replica], set[str]] = {}
    for run, config in zip(runs, configs, strict=True):
        by_run.setdefault((run.summary["scheduler"], replica_of(run.summary)), set()).add(
            str(config.get(name))
        )
    return any(len(values) > 1 for values in by_run.values())


def _variants(
    runs: Sequence[Result], configs: Sequence[Mapping[str, Any]]
) -> tuple[list[str], list[dict[str, Any]]]:
    """Return a name for each run, and the network and the parameters in which runs of its scheduler differ.

    A network is named where any runs of DAG jobs differ in it, so that schedulers are not compared over unlike ones.
    """
    by_scheduler: dict[str, list[dict[str, Any]]] = {}
    given = []
    for run, config in zip(runs, configs, strict=True):
        own = {
            name.rpartition(".")[2]: value
            for name, value in config.items()
            if name.startswith(f"{PARAMETERS}.")
        }
        given.append(own)
        by_scheduler.setdefault(run.summary["scheduler"], []).append(own)
    names, differing = [], []
    differ = {
        key: label
        for key, label in COMPARED.items()
        if len({config[key] for config in configs if key in config}) > 1
    }
    for run, config, own in zip(runs, configs, given, strict=True):
        name = run.summary["scheduler"]
        several = {k: v for k, v in own.items() if len({str(o.get(k)) for o in by_scheduler[name]}) > 1}
        several = {label: config[key] for key, label in differ.items() if key in config} | several
        names.append(" ".join([name, *(f"{k}={value_text(k, v)}" for k, v in several.items())]))
        differing.append(several)
    return names, differing


def _paired(group: Group) -> Iterator[Group]:
    """Yield the schedulers of a group that have the same replicas, each on the same workload, as groups."""
    parts: dict[Any, Group] = {}
    for name, own in group.results.items():
        own.sort(key=lambda run: replica_of(run.summary))
        pairs = tuple((replica_of(run.summary), workload_hash(run)) for run in own)
        twice = len(dict(pairs)) < len(pairs)
        for place, runs in [((name, i), [run]) for i, run in enumerate(own)] if twice else [(pairs, own)]:
            part = parts.setdefault(place, Group(group.at))
            part.results[name], part.own[name] = runs, group.own[name]
    yield from parts.values()


def workload_hash(run: Result) -> str:
    """Return the hash of the workload of a run."""
    return " ".join(i["sha256"] for i in run.manifest.get("inputs", ()) if i.get("what") == "workload")


def base_value(name: str, value: Any) -> Any:
    """Return a value of a key in a configuration, in base units."""
    if value is None or name not in BY_NAME:
        return value
    return read_given(BY_NAME[name], Given(value, Place(name)))


def _in_order(values: Iterable[Any]) -> tuple[Any, ...]:
    distinct = list({repr(value): value for value in values}.values())  # a value may be a list
    return tuple(sorted(distinct) if all(map(is_number, distinct)) else distinct)


def value_text(label: str, value: Any) -> str:
    """Return a value of an axis as text; None is the default."""
    if value is None:
        return "by default"
    if isinstance(value, str):
        return value
    if label in BY_NAME and BY_NAME[label].kind == "steps":
        return "; ".join(value) or "none"
    if label in BY_NAME and BY_NAME[label].kind in ("duration", "cutoff") and is_number(value):
        return format_duration(value)
    if label in BY_NAME and BY_NAME[label].kind == "bandwidth" and is_number(value):
        return f"{value / 1e9:g} Gbps"
    if isinstance(value, bool):
        return str(value).lower()
    return number(value) if is_number(value) else str(value)


def is_number(value: Any) -> bool:
    """Return whether a value of an axis is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)
