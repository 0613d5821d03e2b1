"""Descriptions of clusters for tests, and clusters that are read from them."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from clusters import Cluster, load_cluster

EVERYTHING = """
[[machines]]
count = 2
type = "big"
slots = 4
cores = 16
memory = "64 GiB"
port = "10 Gbps"
isa = "arm"
cpus = 2
min_disks = 2
max_disks = 12
kernel = "3.10.2"
platform = "C"
clock = "2.6 GHz"
accelerator = "gpu"
speed = 1.5
price_per_hour = 0.35
tags = ["ssd", "public-ip", "ssd"]
[[machines]]
count = 3
clock_hz = 3e9
min_disks = 5
tags = "ssd"
"""


def load_text(folder: Path, text: str, nodes: int | None = None, seed: int = 0) -> Cluster:
    """The cluster of a description."""
    path = folder / "c.toml"
    path.write_text(text)
    return load_cluster(path, nodes, seed=seed)


def loaded(content: str | dict[str, Any], nodes: int | None = None) -> Cluster:
    """The cluster of a description, or of the columns of a table, in a folder of its own; errors name no folder."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        path = Path("c.toml" if isinstance(content, str) else "c.parquet")
        if isinstance(content, str):
            path.write_text(content)
        else:
            pq.write_table(pa.table(content), path)
        return load_cluster(path, nodes)


def named(cluster: Cluster, name: str) -> list[str]:
    """What each node has of an attribute whose values are names."""
    names = cluster.attribute_names(name)
    return [names[code] for code in cluster.attribute(name).tolist()]
