"""The workload and the cluster of a configuration: loaded once, however many plans want them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from emu.config import Config
from workloads.coflows import CoflowWorkload
from workloads.dags import DagWorkload, as_jobs
from workloads.errors import InputError
from workloads.jobs import JobWorkload
from workloads.transform import busy_slots
from workloads.transform.families import Workload

if TYPE_CHECKING:
    from clusters.cluster import Cluster

_CONSTRAINTS = ("model", "combined", "jobs", "soft", "price", "seed")
Memo = dict[Hashable, Any]
"""What plans share: loaded workloads and clusters, by what they were loaded from."""
T = TypeVar("T")


def load_workload_of(config: Config, memo: Memo) -> JobWorkload:
    """Return the workload that a configuration names, or holds, with the constraints that it asks for.

    Raises
    ------
    InputError
        It is not there or wrong; an option of a generator is named where it was given.
    """
    workload = _load_workload(config, memo)
    asked = tuple((name, config[f"constraints.{name}"]) for name in _CONSTRAINTS)
    if config["constraints.model"] is None:
        return workload
    return once(memo, ("constraints", workload, *asked), lambda: _constrained(config, workload, dict(asked)))


def _constrained(config: Config, workload: JobWorkload, asked: dict[str, Any]) -> JobWorkload:
    """Return the workload with constraints drawn for its jobs, or without any."""
    from workloads.constraints import with_constraints
    from workloads.transform import constrain

    if asked["model"] == "none":
        return with_constraints(workload, [], np.full(workload.num_jobs, -1))
    try:
        return constrain(workload, **asked)
    except InputError as error:
        name = error.field if error.field in _CONSTRAINTS else "model"
        raise config.error(f"constraints.{name}", error.message) from None


def _load_workload(config: Config, memo: Memo) -> JobWorkload:
    """Return the workload that a configuration names, or holds."""
    from workloads.catalogue import load_workload

    name = config["workload"]
    if isinstance(name, JobWorkload):
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


def _as_jobs(workload: Workload) -> JobWorkload:
    """Return the jobs of a workload; those of DAGs run without precedence, which its notes say."""
    if isinstance(workload, CoflowWorkload):
        raise InputError(f"{workload.name} is a workload of coflows; the schedulers there are run jobs")
    return as_jobs(workload) if isinstance(workload, DagWorkload) else workload


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
