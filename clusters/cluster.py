"""Clusters: nodes with slots, in racks, with hardware attributes.

A cluster is an Arrow table, one row per node. It is described by machine types in TOML, which scale to any
number of nodes, or given node by node as a Parquet table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clusters.description import Described, columns_from_table, columns_from_toml, load_table, load_toml
from clusters.drawn import DRAWN
from clusters.schema import (
    ATTRIBUTES,
    CLUSTER_SCHEMA,
    DEFAULT_SLOTS,
    MAX_NODES,
    MAX_SLOTS,
    RACK_SIZE,
    Attribute,
    check_whole,
    cluster_schema,
    encode_texts,
    find_attribute,
    is_own,
    with_defaults,
)
from workloads.arrow import WithTables, column, from_numpy, from_strings, to_numpy
from workloads.errors import InputError
from workloads.hints import did_you_mean, names_beside

__all__ = [
    "CLUSTER_SCHEMA",
    "Cluster",
    "build_cluster",
    "load_cluster",
    "presets",
]

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cluster(WithTables):
    """Nodes with the columns of `CLUSTER_SCHEMA` and the user's own; `load_cluster` makes one.

    Attributes
    ----------
    name : str
    table : pyarrow.Table
    notes : tuple of str
        What was read, repaired and dropped.
    largest : mapping of str to float
        By attribute that demands are shares of, the most that a machine of the description has; where it is not stated,
        or less, the most of the nodes.
    missing : int
        Further nodes, which are not there (`without`).
    """

    name: str
    table: pa.Table
    notes: tuple[str, ...] = ()
    largest: Mapping[str, float] = field(default_factory=dict)
    missing: int = 0

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

    @property
    def attributes(self) -> dict[str, Attribute]:
        """The attributes of its nodes by name: `ATTRIBUTES`, then the user's own."""
        return ATTRIBUTES | {name: find_attribute(name) for name in self.table.column_names if is_own(name)}

    def slots(self) -> Int64Array:
        """Return the slots of each node, read-only."""
        return column(self.table, "slots")

    def racks(self) -> Int64Array:
        """Return the rack of each node, read-only."""
        return column(self.table, "rack")

    def attribute(self, name: str) -> npt.NDArray[Any]:
        """Return an attribute of each node, shape (N,), read-only.

        Parameters
        ----------
        name : str
            Of `clusters.schema.ATTRIBUTES`, or its column, or of the user's own, which nodes may lack.

        Returns
        -------
        ndarray
            int64 or float64 in the column's unit; for text int32 codes, indices of `attribute_names`.

        Raises
        ------
        InputError
            Nodes have no such attribute.
        """
        attribute = find_attribute(name)
        if pa.types.is_dictionary(attribute.type):
            return to_numpy(self._coded(attribute).indices)
        return column(self.table, attribute.column)

    def attribute_names(self, name: str) -> tuple[str, ...]:
        """Return the texts of an attribute's codes, () for a number; a text of tags is a set with spaces between."""
        attribute = find_attribute(name)
        if not pa.types.is_dictionary(attribute.type):
            return ()
        return tuple(self._coded(attribute).dictionary.to_pylist())

    def _coded(self, attribute: Attribute) -> pa.DictionaryArray:
        """Return a column of text; the default where the table lacks it."""
        if attribute.column not in self.table.column_names:
            return _array(attribute.default, attribute.type, self.num_nodes)
        return self.table[attribute.column].combine_chunks()

    def partition(self, long_partition: float) -> int:
        """Return the number of nodes for short jobs only: nodes ``0 .. n - 1``, rounded down.

        Long jobs use the others, a share `long_partition` (0..1) of the nodes, as in Hawk and Eagle: 98 % of 4,610
        nodes leaves 92.
        """
        if not 0 <= long_partition <= 1:
            raise InputError(f"{long_partition!r} is not a share in 0..1", field="long_partition")
        # As floats 1 - 0.9 is 0.09999999999999998, which would leave 99 of 1,000 nodes instead of 100.
        return math.floor(round((1 - long_partition) * self.num_nodes, 9))


def load_cluster(
    name_or_path: str | Path = "homogeneous",
    nodes: int | None = None,
    *,
    slots: int | None = None,
    seed: int = 0,
    machines: Mapping[str, int] | None = None,
) -> Cluster:
    """Return a cluster by the name of a preset or the path of a TOML or Parquet file, or of a trace's machines.

    Parameters
    ----------
    name_or_path : str or Path
        A preset (see `presets`), a ``.toml`` file with ``[[machines]]`` entries, a ``.parquet`` table
        with one row per node, a converted trace with its ``cluster.parquet``, or a trace's tables of machines
        (`workloads.formats`). A table needs ``slots``; other columns have defaults.
    nodes : int, optional
        Number of nodes, to which machine types are scaled in proportion to their counts (or shares), by largest
        remainder, and so are the machines of a table (`clusters.description`). By default the counts as given.
    slots : int, optional
        Slots of every node, in place of those in the description; cores and memory that were not given follow.
    seed : int, default 0
        Of random draws: the order of machine types that are not in blocks, the nodes of the presets ``phoenix`` and
        ``sharma``.
    machines : mapping of str to int, optional
        The number of nodes of each machine type, in place of `nodes`; 0 of those that are not named.

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
    seed = check_whole("seed", seed, 2**64 - 1, least=0)
    if machines is not None:
        nodes = check_whole("machines", sum(machines.values()), MAX_NODES)
    text = str(name_or_path)
    path = Path(text)
    if isinstance(name_or_path, str) and (text in DRAWN or text in _preset_paths()):
        if nodes is None:
            raise InputError(f"the preset {text!r} needs a number of nodes", field="nodes")
        if text in DRAWN:
            if machines is not None:
                raise InputError(f"the nodes of {text} are drawn; it has no machine types", field="machines")
            _, draw = DRAWN[text]
            return build_cluster(text, np.full(nodes, slots or DEFAULT_SLOTS), **draw(nodes, seed))
        path = _preset_paths()[text]
    elif not _exists(path):
        _not_found(text, path)
    # Imported here: Ray's processes need no readers of traces.
    from workloads.formats import is_trace_table, read_machines
    from workloads.readers.duckdb_tables import CLUSTER_FILE

    if (path / CLUSTER_FILE).is_file():
        path = path / CLUSTER_FILE
    if path.suffix == ".parquet" and path.is_file() and not is_trace_table(path):
        return _built(path.stem, columns_from_table(load_table(path), path, nodes, slots, machines))
    if path.suffix == ".toml":
        return _built(path.stem, columns_from_toml(path, nodes, slots, seed, machines))
    found = read_machines(path)
    if found is None:
        wrong = (
            "holds no machines; want a .toml or .parquet file, or a trace's machine_events, machine_meta or "
            "server_event"
        )
        raise InputError(wrong, file=path)
    table, notes = found
    described = columns_from_table(table, path, nodes, slots, machines)
    name = path.name.partition(".")[0] or "machines"
    return _built(name, described._replace(notes=(*notes, *described.notes)))


def _built(name: str, described: Described) -> Cluster:
    return replace(build_cluster(name, **described.columns), notes=described.notes, largest=described.largest)


def build_cluster(
    name: str,
    slots: npt.ArrayLike,
    *,
    rack: npt.ArrayLike | None = None,
    rack_size: int = RACK_SIZE,
    **columns: npt.ArrayLike | pa.DictionaryArray,
) -> Cluster:
    """Build a cluster of N nodes from columns; those not given take the defaults.

    Parameters
    ----------
    name : str
        Of the cluster.
    slots, rack : array_like of int, shape (N,)
        Slots and racks; by default `rack_size` nodes a rack, in order.
    rack_size : int
        Nodes a rack where `rack` is not given.
    **columns
        By the names of `CLUSTER_SCHEMA` or of the user's own, in their units: arrays of shape (N,) or one
        value for all nodes; of text a sequence of N texts, one for all nodes, or a dictionary array.
    """
    per_node = np.ascontiguousarray(slots, np.int64)
    ids = np.arange(len(per_node))
    given = with_defaults({"slots": per_node} | columns)
    given["rack"] = ids // rack_size if rack is None else rack
    schema = cluster_schema(given)
    unknown = given.keys() - {*schema.names[1:]}
    if unknown:
        raise TypeError(f"build_cluster() got no such columns of nodes: {', '.join(sorted(unknown))}")
    arrays = [from_numpy(ids.astype(np.int64))]
    arrays += [_array(given[field.name], field.type, len(ids)) for field in [*schema][1:]]
    return Cluster(name, pa.Table.from_arrays(arrays, schema=schema))


def _array(values: Any, kind: pa.DataType, count: int) -> pa.Array:
    """Return a column of the cluster table, one value repeated for all nodes."""
    if isinstance(values, pa.DictionaryArray):
        return values
    if not pa.types.is_dictionary(kind):
        dtype = np.int64 if kind == pa.int64() else np.float64
        return from_numpy(np.array(np.broadcast_to(values, count), dtype))
    if isinstance(values, str):
        return pa.DictionaryArray.from_arrays(from_numpy(np.zeros(count, np.int32)), from_strings([values]))
    return encode_texts(values)


@cache
def presets() -> dict[str, str]:
    """Return the presets, name to one line of description: the default first, then by name."""
    found = {name: str(load_toml(path).get("description", "")) for name, path in _preset_paths().items()}
    found |= {name: about for name, (about, _) in DRAWN.items()}
    return {name: found[name] for name in sorted(found, key=lambda name: (name != "homogeneous", name))}


def _preset_paths() -> dict[str, Path]:
    folder = Path(__file__).parent / "presets"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError) as error:  # a name too long, or with a NUL
        raise InputError(f"cannot be read: {error}", file=path) from None


def _not_found(text: str, path: Path) -> NoReturn:
    if path.suffix or len(path.parts) > 1:
        raise InputError(f"no such file{did_you_mean(path.name, names_beside(path))}", file=path)
    hint = did_you_mean(text, presets())
    raise InputError(f"unknown cluster {text!r}{hint}; or give the path of a .toml or .parquet file")


# Clusters without a share of their nodes, which are drawn.

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
