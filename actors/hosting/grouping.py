"""Which actors share a partition: shards of nodes, shards of probe schedulers, the central scheduler.

Results do not depend on it. Ids of actors are contiguous in each partition, those of nodes first.
"""

from dataclasses import dataclass

import numpy as np

from workloads.errors import InputError

SCHEDULERS_SHARE = 3 / 8  # of a probed task's eight events, three are its scheduler's


@dataclass(frozen=True)
class Cast:
    """The actors of an emulation: nodes, then probe schedulers, the central scheduler and the listener."""

    nodes: int
    probe_schedulers: int
    probes: bool  # whether probe schedulers have jobs
    central: bool  # whether the central scheduler has


@dataclass(frozen=True)
class Grouping:
    """Partitions of an emulation's actors."""

    first: np.ndarray  # [K] id of the first actor of each partition
    end: np.ndarray  # [K] one behind the id of its last
    schedulers: int  # the first partition that has schedulers; 0 if one partition has all actors
    cast: Cast

    @property
    def size(self) -> int:
        """Number of partitions."""
        return self.first.size

    def describe(self, k: int) -> str:
        """Return in words what partition `k` hosts."""
        first, end, nodes = int(self.first[k]), int(self.end[k]), self.cast.nodes
        central = nodes + self.cast.probe_schedulers
        parts = []
        if first < nodes:
            parts.append(f"{min(end, nodes) - first:,} nodes")
        probes = min(end, central) - max(first, nodes)
        if self.cast.probes and probes > 0:
            parts.append(f"{probes:,} probe scheduler{'s' if probes > 1 else ''}")
        if self.cast.central and first <= central < end:
            parts.append("the central scheduler")
        return ", ".join(parts) or "nothing"


def group_actors(cast: Cast, partitions: int, rack: np.ndarray | None = None) -> Grouping:
    """Divide the actors among partitions; refuse more partitions than actors.

    `rack`, [N] racks of the nodes, are kept whole; None if racks have no effect.
    """
    starts = np.arange(cast.nodes) if rack is None else np.flatnonzero(np.diff(rack, prepend=rack[0] - 1))
    groups = (cast.probe_schedulers if cast.probes else 0) + int(cast.central)
    most = starts.size + groups
    if partitions > most:
        what = f"{starts.size:,} {'nodes' if rack is None else 'racks'}"
        raise InputError(
            f"--partitions: {partitions} partitions for {what} and {groups} schedulers; the most is {most}"
        )
    all_end = cast.nodes + cast.probe_schedulers + 2
    if partitions == 1:
        return Grouping(np.zeros(1, np.int64), np.array([all_end]), 0, cast)
    if partitions == 2:
        bounds = [0, cast.nodes, all_end]
        return Grouping(np.array(bounds[:-1]), np.array(bounds[1:]), 1, cast)
    own = int(cast.central and cast.probes)  # a partition for the central scheduler alone
    shards = 1
    if cast.probes:
        shards = min(max(1, round((partitions - own) * SCHEDULERS_SHARE)), cast.probe_schedulers)
        shards = max(shards, partitions - own - starts.size)
    node_shards = partitions - own - shards
    bounds = [0, *(int(starts[starts.size * k // node_shards]) for k in range(1, node_shards))]
    central = cast.nodes + cast.probe_schedulers
    if cast.probes:
        bounds += [cast.nodes + cast.probe_schedulers * k // shards for k in range(shards)]
        bounds += [central] if own else []
    else:
        bounds += [cast.nodes]
    # Where several partitions have schedulers, each of them has a copy of the listener.
    several = partitions - node_shards > 1
    bounds.append(central + 1 if several else all_end)
    return Grouping(np.array(bounds[:-1]), np.array(bounds[1:]), node_shards, cast)
