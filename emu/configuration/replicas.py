"""Replicas: the runs of one scheduler that differ by chance alone; means and intervals are taken over them.

A configuration has a replica for each of its seeds. A workload that is an archive of several instances is a batch:
it has a replica for each instance, all with one seed. Schedulers are compared in pairs, on the same replica each.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from emu.configuration.config import Config, Given, Place
from emu.configuration.keys import WORKLOAD_OPTIONS
from emu.configuration.loading import instances_in
from emu.configuration.seeds import seeds_of
from emu.configuration.workload_cache import WorkloadCache
from emu.directories.run_directory import safe_name
from workloads.errors import InputError

INSTANCE = "instance"
"""The name of an option of the readers of archives, of a part of paths, and of an entry of summaries."""
MOST_TEXT = 200
"""Characters of a name in a path, whose parts a file system limits to 255."""


class Replica(NamedTuple):
    """One of the runs that means are taken over."""

    seed: int
    instance: str = ""  # the reader's name for it; empty where the workload is not a batch

    def __str__(self) -> str:
        return f"{self.unit} {self.instance or self.seed}"

    @property
    def unit(self) -> str:
        """What the replicas of its kind are: seeds, or instances."""
        return INSTANCE if self.instance else "seed"


def replicas_of(config: Config, cache: WorkloadCache) -> tuple[Replica, ...]:
    """Return the replicas of a configuration, one or more; raise `InputError` for a batch with several seeds."""
    seeds = seeds_of(config)
    names = instances_in(config, cache)
    if names and len(seeds) > 1:
        raise no_seeds(config, len(names))
    if names:
        return tuple(Replica(seeds[0], name) for name in names)
    return tuple(map(Replica, seeds))


def no_seeds(config: Config, instances: int) -> InputError:
    """Return the error about a batch that is to be run with several seeds."""
    return config.error(
        "seeds",
        f"{batch_name(config['workload'])} is a batch of {instances:,} instances, and means are over instances or over "
        f"seeds, not both; give one seed, or choose one instance by {WORKLOAD_OPTIONS}.{INSTANCE}",
    )


def of_replica(config: Config, replica: Replica) -> Config:
    """Return the configuration of one of its replicas."""
    own = config.but(seed=replica.seed, seeds=1)
    if not replica.instance:
        return own
    chosen = Given(replica.instance, config.places.get("workload", Place("workload")))
    return replace(own, workload_options={**config.workload_options, INSTANCE: chosen})


def replica_of(summary: Mapping[str, Any]) -> Replica:
    """Return which replica the run of a summary is."""
    return Replica(summary["seed"], summary.get(INSTANCE, ""))


def left_out_text(lost: Sequence[Replica]) -> str:
    """Return the note about replicas that are left out of pairs.

    Examples
    --------
    >>> left_out_text([Replica(3), Replica(5)])
    'seeds without a run of every scheduler are left out: 3, 5'
    """
    shown = ", ".join(str(replica.instance or replica.seed) for replica in lost)
    return f"{lost[0].unit}s without a run of every scheduler are left out: {shown}"


def folders_of(replicas: Sequence[Replica]) -> dict[Replica, str]:
    """Return the folder of each replica, as a Hive partition: ``seed=3``, ``instance=in001``; they differ."""
    folders: dict[Replica, str] = {}
    taken: set[str] = set()
    for replica in replicas:
        text = f"{replica.unit}={safe_name((replica.instance or str(replica.seed))[:MOST_TEXT])}"
        others = (f"{text}-{number}" for number in itertools.count(2))
        folders[replica] = next(name for name in itertools.chain([text], others) if name not in taken)
        taken.add(folders[replica])
    return folders


def batch_name(workload: Any) -> str:
    """Return the name of a batch: that of the archive, without the suffix."""
    name = Path(workload).resolve().name
    return next((name.removesuffix(s) for s in (".zip", ".tar", ".tar.gz", ".tgz") if name.endswith(s)), name)
