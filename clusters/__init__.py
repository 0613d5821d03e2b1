"""Clusters of Emu: nodes with slots, racks and hardware attributes, as an Arrow table.

`clusters.cluster` has `Cluster`, `load_cluster` and `presets`, `clusters.schema` the attributes of nodes. Presets are
the TOML files in ``clusters/presets``, and those with random nodes in `clusters.drawn`. `clusters.matching` finds the
nodes that satisfy the constraints of a workload, `clusters.feasibility` the jobs that no node can run, and
`clusters.figures` describes both.
"""

from clusters.cluster import CLUSTER_SCHEMA, Cluster, load_cluster, presets
from clusters.figures import cluster_figures, describe_cluster
from clusters.schema import ATTRIBUTES

__all__ = [
    "ATTRIBUTES",
    "CLUSTER_SCHEMA",
    "Cluster",
    "cluster_figures",
    "describe_cluster",
    "load_cluster",
    "presets",
]
