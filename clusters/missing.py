"""Clusters without a share of their nodes, which are drawn."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from clusters.cluster import Cluster
from workloads.arrow import from_numpy
from workloads.errors import InputError

_STREAM = 0x3155


def whole_share(share: float, count: int) -> int:
    """Return a share of a number as a whole number, at least one."""
    return max(math.floor(share * count + 0.5), 1)


def without(cluster: Cluster, share: float, seed: int) -> Cluster:
    """Return a cluster without a share of its nodes (at least one), drawn from `seed`; the others keep their racks.

    Raises
    ------
    InputError
        No node would be left.
    """
    nodes = cluster.num_nodes
    lost = whole_share(share, nodes)
    if lost >= nodes:
        raise InputError(f"{share:.4g} of {nodes:,} nodes leaves none", field="without")
    random = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, _STREAM])))
    left = np.sort(random.permutation(nodes)[lost:])
    table = cluster.table.take(from_numpy(left))
    ids = table.schema.get_field_index("node_id")
    table = table.set_column(ids, table.schema.field(ids), from_numpy(np.arange(nodes - lost)))
    note = f"{lost:,} of {nodes:,} nodes are missing, drawn with seed {seed}"
    return replace(cluster, table=table, notes=(*cluster.notes, note), missing=lost)
