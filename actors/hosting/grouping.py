"""Which actors share a partition: each has some of the nodes and some of the schedulers, in proportion to their work.

Results do not depend on it. Ids of actors are those of nodes first, then those of probe schedulers, the central
scheduler and the listener; a partition has a range of nodes and a range of schedulers.

Where tasks fetch their input over a network, all nodes and the network's coordinator, which has the place of the
central scheduler, are in one partition: a node and its network tell each other things without delay, and rates depend
on all flows at once. The others have schedulers alone.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from workloads.errors import InputError

BESIDE_NETWORK = 0.2
"""The share of all work that schedulers do where there is a network (``python -m benchmarks.dag_network``)."""


@dataclass(frozen=True)
class Cast:
    """The actors of an emulation, and how its work divides among them."""

    nodes: int
    probe_schedulers: int
    probes_share: float  # of all work, which probe schedulers do; 0.0: no job comes to them
    central_share: float  # and the central scheduler
    has_network: bool = False  # over which tasks fetch their input


def cast_of(world: Any, schedulers_share: float) -> Cast:
    """Return the actors of a world whose schedulers do a share of the work, each as much as its jobs have tasks."""
    nodes = world.nodes.size
    probe_schedulers = world.queue.seq.size - 2 - nodes
    if world.queue.now[0].two_loops == 1:
        return Cast(nodes, probe_schedulers, BESIDE_NETWORK, 0.0, has_network=True)
    tasks = (world.work.end_task - world.work.first_task).astype(float)
    central = world.work.home == nodes + probe_schedulers
    central_share = schedulers_share * float(tasks[central].sum() / max(tasks.sum(), 1.0))
    probes_share = 0.0 if central.all() else schedulers_share - central_share
    return Cast(nodes, probe_schedulers, probes_share, central_share)


@dataclass(frozen=True)
class Grouping:
    """Partitions of an emulation's actors."""

    first: np.ndarray  # [2 K] id of the first node of each partition, then of its first scheduler
    cast: Cast

    @property
    def size(self) -> int:
        """Number of partitions."""
        return self.first.size // 2

    def hosted(self, k: int) -> tuple[range, range]:
        """Return the ids of the nodes of partition `k`, and of its schedulers."""
        central = self.cast.nodes + self.cast.probe_schedulers
        bounds = [*self.first.tolist(), central + 1]
        return range(bounds[k], bounds[k + 1]), range(bounds[self.size + k], bounds[self.size + k + 1])

    def has_schedulers(self, k: int) -> bool:
        """Return whether partition `k` hosts schedulers."""
        return len(self.hosted(k)[1]) > 0

    def work(self) -> list[float]:
        """Return the share of all work that each partition has."""
        cast, shares = self.cast, []
        for k in range(self.size):
            nodes, schedulers = self.hosted(k)
            has_central = cast.nodes + cast.probe_schedulers in schedulers
            probes = (len(schedulers) - has_central) / max(cast.probe_schedulers, 1)
            of_nodes = (1 - cast.probes_share - cast.central_share) * len(nodes) / cast.nodes
            shares.append(of_nodes + cast.probes_share * probes + cast.central_share * has_central)
        return shares

    def describe(self, k: int) -> str:
        """Return in words what partition `k` hosts."""
        nodes, schedulers = self.hosted(k)
        central = self.cast.nodes + self.cast.probe_schedulers
        probes = len(schedulers) - (central in schedulers)
        network, kind = ("the network of ", "scheduler") if self.cast.has_network else ("", "probe scheduler")
        parts = [f"{network}{len(nodes):,} node{'s' if len(nodes) > 1 else ''}"] if nodes else []
        if self.cast.probes_share and probes > 0:
            parts.append(f"{probes:,} {kind}{'s' if probes > 1 else ''}")
        if self.cast.central_share and central in schedulers:
            parts.append("the central scheduler")
        return ", ".join(parts) or "nothing"


def group_actors(cast: Cast, partitions: int, rack: np.ndarray | None = None) -> Grouping:
    """Divide the actors among partitions, so that each has as much work; refuse more partitions than actors.

    The central scheduler is in the last partition, with as many others as leave it no more work than the rest.

    Args:
        cast: the actors.
        partitions: K.
        rack: [N] racks of the nodes, which are kept whole; None if racks have no effect.
    """
    if cast.has_network:
        return _beside_network(cast, partitions)
    starts = np.arange(cast.nodes) if rack is None else np.flatnonzero(np.diff(rack, prepend=rack[0] - 1))
    groups = (cast.probe_schedulers if cast.probes_share else 0) + int(cast.central_share > 0)
    most = starts.size + groups
    if partitions > most:
        what = f"{starts.size:,} {'nodes' if rack is None else 'racks'}"
        raise InputError(
            f"--partitions: {partitions} partitions for {what} and {groups} schedulers; the most is {most}"
        )
    work = np.zeros(partitions)
    work[-1] = cast.central_share
    probes = np.zeros(partitions, np.int64)  # without jobs they are where the central scheduler is
    if cast.probes_share:
        probes = _spread(np.arange(cast.probe_schedulers), work, cast.probes_share)
    work += np.diff([*probes, cast.probe_schedulers]) * cast.probes_share / max(cast.probe_schedulers, 1)
    nodes = _spread(starts, work, 1.0 - cast.probes_share - cast.central_share)
    nodes = np.append(starts, cast.nodes)[nodes]
    return Grouping(np.concatenate([nodes, cast.nodes + probes]).astype(np.int64), cast)


def _beside_network(cast: Cast, partitions: int) -> Grouping:
    """Return a grouping in which the last partition has all nodes and their network, and others have schedulers."""
    most = cast.probe_schedulers + 1
    if partitions > most:
        schedulers = f"{cast.probe_schedulers} scheduler{'s' if cast.probe_schedulers > 1 else ''}"
        raise InputError(
            f"--partitions: {partitions} partitions for one network with its nodes, which cannot be divided, and"
            f" {schedulers}; the most is {most}"
        )
    work = np.zeros(partitions)
    work[-1] = 1.0 - cast.probes_share
    probes = _spread(np.arange(cast.probe_schedulers), work, cast.probes_share)
    return Grouping(np.append(np.zeros(partitions), cast.nodes + probes).astype(np.int64), cast)


def _spread(pieces: np.ndarray, work: np.ndarray, more: float) -> np.ndarray:
    """Return [K] the first of each partition's pieces, which are `more` work together.

    `work` is [K] what the partitions have already; those that have least get most.
    """
    given = np.maximum(_level(work, more) - work, 0.0)
    ends = np.cumsum(given) / given.sum() * pieces.size
    return np.concatenate([[0], np.round(ends[:-1])]).astype(np.int64)


def _level(work: np.ndarray, more: float) -> float:
    """Return the level up to which partitions are filled that have `work` [K] and get `more` together."""
    least = np.sort(work)
    levels = (more + np.cumsum(least)) / np.arange(1, least.size + 1)
    return float(levels[np.append(levels[:-1] <= least[1:], True)][0])
