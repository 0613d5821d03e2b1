"""Clusters of Emu: nodes with slots, racks and hardware, as an Arrow table.

`clusters.cluster` has `Cluster`, `load_cluster`, `describe_cluster` and `presets`; the presets are the TOML
files in ``clusters/presets``.
"""

from clusters.cluster import CLUSTER_SCHEMA, Cluster, describe_cluster, load_cluster, presets

__all__ = ["CLUSTER_SCHEMA", "Cluster", "describe_cluster", "load_cluster", "presets"]
