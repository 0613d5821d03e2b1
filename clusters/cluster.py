"""Clusters: nodes with slots, in racks, with hardware attributes.

A cluster is an Arrow table, one row per node. It is described by machine types in TOML, which scale to any
number of nodes, or given node by node as a Parquet table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clusters.description import columns_from_table, columns_from_toml, load_toml
from clusters.schema import (
    CLUSTER_SCHEMA,
    MACHINE_TYPE,
    MAX_NODES,
    MAX_SLOTS,
    MEMORY_PER_SLOT_BYTES,
    PORT_BPS,
    RACK_SIZE,
    check_whole,
)
from workloads.arrow import column, from_numpy, from_strings, to_numpy
from workloads.errors import InputError
from workloads.hints import did_you_mean, names_beside

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cluster:
    """Nodes with their hardware, as `CLUSTER_SCHEMA`; make one with `load_cluster`."""

    name: str
    table: pa.Table

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.table.num_rows

    @property
    def total_slots(self) -> int:
        """Slots of all nodes."""
        return int(self.slots().sum())

    @property
    def max_slots(self) -> int:
        """Slots of the largest node."""
        return int(self.slots().max())

    def slots(self) -> Int64Array:
        """Return the slots of each node, read-only."""
        return column(self.table, "slots")

    def racks(self) -> Int64Array:
        """Return the rack of each node, read-only."""
        return column(self.table, "rack")

    def partition(self, long_partition: float) -> int:
        """Return the number of nodes that are for short jobs only: nodes ``0 .. n - 1``.

        Long jobs use the rest, a share `long_partition` (0..1) of the nodes, as in Hawk and Eagle. The
        number is rounded down: 98 % of 4,610 nodes leaves 92.
        """
        if not 0 <= long_partition <= 1:
            raise InputError(f"{long_partition!r} is not a share in 0..1", field="long_partition")
        # In floats 1 - 0.9 is 0.09999999999999998, which would leave 99 of 1,000 nodes instead of 100.
        return math.floor(round((1 - long_partition) * self.num_nodes, 9))


def load_cluster(
    name_or_path: str | Path = "homogeneous", nodes: int | None = None, *, slots: int | None = None
) -> Cluster:
    """Return a cluster by the name of a preset or the path of a TOML or Parquet file.

    Parameters
    ----------
    name_or_path : str or Path
        A preset (see `presets`), a ``.toml`` file with ``[[machines]]`` entries, or a ``.parquet`` table
        with one row per node. Of a table only ``slots`` is required; columns it lacks take the defaults.
    nodes : int, optional
        Number of nodes. Machine types are scaled to it in proportion to their counts (or shares), by largest
        remainder; a table must have exactly that many rows. By default the counts as given.
    slots : int, optional
        Slots of every node, in place of what the description says; cores and memory that were not given
        follow.

    Raises
    ------
    InputError
        Neither a preset nor a file, a number out of range, or a description that is wrong: file and key are
        named.
    """
    if nodes is not None:
        nodes = check_whole("nodes", nodes, MAX_NODES)
    if slots is not None:
        slots = check_whole("slots", slots, MAX_SLOTS)
    text = str(name_or_path)
    path = Path(text)
    if text in _preset_paths() and isinstance(name_or_path, str):
        path = _preset_paths()[text]
        if nodes is None:
            raise InputError(f"the preset {text!r} needs a number of nodes", field="nodes")
    elif not _is_file(path):
        _not_found(text, path)
    read_columns = columns_from_table if path.suffix == ".parquet" else columns_from_toml
    return build_cluster(path.stem, **read_columns(path, nodes, slots))


def build_cluster(
    name: str,
    slots: npt.ArrayLike,
    *,
    rack: npt.ArrayLike | None = None,
    cpu_cores: npt.ArrayLike | None = None,
    memory_bytes: npt.ArrayLike | None = None,
    port_bps: npt.ArrayLike | None = None,
    machine_type: pa.DictionaryArray | None = None,
    rack_size: int = RACK_SIZE,
) -> Cluster:
    """Build a cluster of N nodes from arrays of shape (N,); what is None takes the default."""
    per_node = np.ascontiguousarray(slots, np.int64)
    count = len(per_node)
    ids = np.arange(count)
    if machine_type is None:
        machine_type = pa.DictionaryArray.from_arrays(
            from_numpy(np.zeros(count, np.int32)), from_strings([MACHINE_TYPE])
        )
    columns = [
        from_numpy(np.array(values, dtype))
        for values, dtype in (
            (ids, np.int64),
            (per_node, np.int64),
            (ids // rack_size if rack is None else rack, np.int64),
            (per_node if cpu_cores is None else cpu_cores, np.float64),
            (per_node * MEMORY_PER_SLOT_BYTES if memory_bytes is None else memory_bytes, np.int64),
            (np.full(count, PORT_BPS) if port_bps is None else port_bps, np.float64),
        )
    ]
    return Cluster(name, pa.Table.from_arrays([*columns, machine_type], schema=CLUSTER_SCHEMA))


def presets() -> dict[str, str]:
    """Return the presets: name to one line of description."""
    return {name: str(load_toml(path).get("description", "")) for name, path in _preset_paths().items()}


def describe_cluster(cluster: Cluster) -> str:
    """Return what a cluster is like as text for a terminal."""
    table = cluster.table
    racks = len(np.unique(cluster.racks()))
    kinds = table["machine_type"].combine_chunks()
    lines = [
        f"{cluster.name}: {cluster.num_nodes:,} nodes, {cluster.total_slots:,} slots, {racks:,} racks",
        f"  {'machine type':<20}{'nodes':>12}{'slots':>8}{'cores':>10}{'memory GiB':>12}{'port Gbps':>11}",
    ]
    codes = to_numpy(kinds.indices)
    for code, name in enumerate(kinds.dictionary.to_pylist()):
        rows = codes == code
        if rows.any():
            slots, cores, memory, port = (
                _range(column(table, attribute)[rows] / scale)
                for attribute, scale in (
                    ("slots", 1),
                    ("cpu_cores", 1),
                    ("memory_bytes", 1024**3),
                    ("port_bps", 1e9),
                )
            )
            lines.append(f"  {name:<20}{rows.sum():>12,}{slots:>8}{cores:>10}{memory:>12}{port:>11}")
    return "\n".join(lines) + "\n"


def _preset_paths() -> dict[str, Path]:
    folder = Path(__file__).parent / "presets"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError) as error:  # a name too long, or with a NUL
        raise InputError(f"cannot be read: {error}", file=path) from None


def _not_found(text: str, path: Path) -> NoReturn:
    if path.is_dir():
        raise InputError("is a folder; want a .toml or .parquet file", file=path)
    if path.suffix or len(path.parts) > 1:
        raise InputError(f"no such file{did_you_mean(path.name, names_beside(path))}", file=path)
    hint = did_you_mean(text, _preset_paths())
    raise InputError(f"unknown cluster {text!r}{hint}; or give the path of a .toml or .parquet file")


def _range(values: npt.NDArray[Any]) -> str:
    low, high = f"{values.min():.4g}", f"{values.max():.4g}"
    return low if low == high else f"{low}-{high}"
