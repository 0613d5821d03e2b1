"""Descriptions of clusters in files: machine types in TOML, or a Parquet table of nodes.

A TOML description::

    description = "two generations"   # optional, for lists
    rack_size = 40                    # nodes a rack, 40 by default

    [[machines]]                      # nodes are numbered in the order of the entries
    type = "old"
    count = 300                       # or share = "30%"; one of the two, the same for all entries
    slots = 4                         # 1 by default
    cpu_cores = 4.0                   # one a slot by default
    memory = "16 GiB"                 # 4 GiB a slot by default
    port = "1 Gbps"                   # 1 Gbps by default
"""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from clusters.schema import (
    CLUSTER_SCHEMA,
    DEFAULT_SLOTS,
    MACHINE_TYPE,
    MAX_NODES,
    MAX_SLOTS,
    MEMORY_PER_SLOT_BYTES,
    PORT_BPS,
    RACK_SIZE,
    check_whole,
)
from workloads.apportion import apportion
from workloads.arrow import from_numpy, from_strings, to_numpy
from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.units import parse_bandwidth, parse_share, parse_size

_TOP_KEYS = ("description", "machines", "rack_size")
_MACHINE_KEYS = ("count", "cpu_cores", "memory", "port", "share", "slots", "type")


def load_toml(path: Path) -> dict[str, Any]:
    """Return the parsed TOML file, its top-level keys checked."""
    try:
        with open(path, "rb") as file:
            description = tomllib.load(file)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is not TOML: {error}", file=path) from None
    _known_keys(description, _TOP_KEYS, path, "")
    machines = description.get("machines")
    if not isinstance(machines, list) or not machines or not all(isinstance(m, dict) for m in machines):
        raise InputError("want one or more [[machines]] entries", file=path, field="machines")
    return description


def columns_from_toml(path: Path, nodes: int | None, slots: int | None) -> dict[str, Any]:
    """Return the columns of `CLUSTER_SCHEMA` that a TOML description of machine types gives."""
    description = load_toml(path)
    machines = [_machine(m, f"machines[{i}]", path, slots) for i, m in enumerate(description["machines"])]
    rack_size = check_whole("rack_size", description.get("rack_size", RACK_SIZE), MAX_NODES, file=path)
    counts = _counts(description["machines"], nodes, path)
    names = list(dict.fromkeys(m["machine_type"] for m in machines))
    codes = np.repeat(np.array([names.index(m["machine_type"]) for m in machines], np.int32), counts)
    columns: dict[str, Any] = {
        key: np.repeat(np.array([m[key] for m in machines]), counts)
        for key in ("slots", "cpu_cores", "memory_bytes", "port_bps")
    }
    columns["rack"] = np.arange(len(codes)) // rack_size
    columns["machine_type"] = pa.DictionaryArray.from_arrays(from_numpy(codes), from_strings(names))
    return columns


def columns_from_table(path: Path, nodes: int | None, slots: int | None) -> dict[str, Any]:
    """Return the columns of `CLUSTER_SCHEMA` that a Parquet table of nodes has."""
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
            table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise InputError(f"is not a Parquet file that can be read ({error})", file=path) from None
    _known_keys(table.column_names, CLUSTER_SCHEMA.names, path, "")
    if nodes is not None and nodes != table.num_rows:
        raise InputError(
            f"has {table.num_rows} nodes, not {nodes}; leave the number out", file=path, field="nodes"
        )
    check_whole("nodes", table.num_rows, MAX_NODES, file=path)
    columns = {
        field.name: _column(table, field, path)
        for field in CLUSTER_SCHEMA
        if field.name in table.column_names
    }
    if "slots" not in columns and slots is None:
        raise InputError("no such column; a table of nodes needs their slots", file=path, field="slots")
    if slots is not None:
        columns["slots"] = np.full(table.num_rows, slots)
    if "node_id" in columns:
        _first_bad(
            columns["node_id"] != np.arange(table.num_rows), columns, "node_id", "0, 1, 2, … in order", path
        )
    for name, least, most, want in (
        ("slots", 1, MAX_SLOTS, f"a number from 1 to {MAX_SLOTS:,}"),
        ("rack", 0, MAX_NODES, f"a number from 0 to {MAX_NODES:,}"),
        ("cpu_cores", 0, math.inf, "a number, 0 or more"),
        ("memory_bytes", 0, math.inf, "a number, 0 or more"),
        ("port_bps", 1, 1e18, "a speed in bit/s above 0"),
    ):
        if name in columns:
            bad = ~((columns[name] >= least) & (columns[name] <= most) & np.isfinite(columns[name]))
            _first_bad(bad, columns, name, want, path)
    columns.pop("node_id", None)
    return columns


def _machine(entry: dict[str, Any], where: str, path: Path, slots: int | None) -> dict[str, Any]:
    """Return a machine type with units resolved and defaults filled in."""
    _known_keys(entry, _MACHINE_KEYS, path, f"{where}.")
    own = slots or check_whole(f"{where}.slots", entry.get("slots", DEFAULT_SLOTS), MAX_SLOTS, file=path)
    name = entry.get("type", MACHINE_TYPE)
    if not isinstance(name, str) or not name:
        raise InputError(f"{name!r} is not a name in quotes", file=path, field=f"{where}.type")
    cores = entry.get("cpu_cores", float(own))
    if isinstance(cores, bool) or not isinstance(cores, int | float) or not 0 <= cores < math.inf:
        raise InputError(f"{cores!r} is not a number of cores", file=path, field=f"{where}.cpu_cores")
    try:
        memory = parse_size(entry.get("memory", own * MEMORY_PER_SLOT_BYTES), f"{where}.memory")
        port = parse_bandwidth(entry.get("port", PORT_BPS), f"{where}.port")
    except InputError as error:
        raise InputError(error.message, file=path) from None
    if not memory < 2**63:
        raise InputError("more than 8 EiB of memory", file=path, field=f"{where}.memory")
    if port <= 0:
        raise InputError("a port needs a speed above 0", file=path, field=f"{where}.port")
    return {
        "machine_type": name,
        "slots": own,
        "cpu_cores": float(cores),
        "memory_bytes": memory,
        "port_bps": port,
    }


def _counts(entries: list[dict[str, Any]], nodes: int | None, path: Path) -> np.ndarray:
    """Return the nodes of each machine type: as given, or in proportion to `nodes`."""
    by_share = ["share" in e for e in entries]
    if any(("share" in e) == ("count" in e) for e in entries) or len(set(by_share)) > 1:
        wrong = "every entry needs a count, or every entry a share"
        raise InputError(wrong, file=path, field="machines")
    if by_share[0]:
        if nodes is None:
            raise InputError("machines given by share need a number of nodes", file=path, field="nodes")
        shares = [_share(e["share"], f"machines[{i}].share", path) for i, e in enumerate(entries)]
        if abs(math.fsum(shares) - 1) > 1e-6:
            raise InputError(f"shares add up to {math.fsum(shares):.6g}, want 1", file=path, field="machines")
        return apportion(nodes, shares)
    counts = [
        check_whole(f"machines[{i}].count", e["count"], MAX_NODES, file=path, least=0)
        for i, e in enumerate(entries)
    ]
    total = check_whole("machines", sum(counts), MAX_NODES, file=path)
    return np.array(counts) if nodes in (None, total) else apportion(nodes or total, counts)


def _share(value: Any, where: str, path: Path) -> float:
    try:
        return parse_share(value, where)
    except InputError as error:
        raise InputError(error.message, file=path) from None


def _column(table: pa.Table, field: pa.Field, path: Path) -> Any:
    """Return a column as a NumPy array (machine types as a dictionary array), without nulls."""
    values = table[field.name]
    if values.null_count:
        row = int(np.argmax(np.asarray(values.is_null())))
        raise InputError("is null; every node needs a value", file=path, line=row + 1, field=field.name)
    have, want = values.type, field.type
    if pa.types.is_dictionary(want):
        have = have.value_type if pa.types.is_dictionary(have) else have
        right = pa.types.is_string(have) or pa.types.is_large_string(have)
    else:
        right = pa.types.is_integer(have) or (pa.types.is_floating(want) and pa.types.is_floating(have))
    if not right:
        raise InputError(f"has type {values.type}, want {want}", file=path, field=field.name)
    try:
        if pa.types.is_dictionary(want):
            return values.cast(pa.string()).combine_chunks().dictionary_encode()
        return to_numpy(values.cast(want).combine_chunks())
    except pa.ArrowInvalid as error:
        raise InputError(f"does not fit {want} ({error})", file=path, field=field.name) from None


def _first_bad(bad: np.ndarray, columns: dict[str, Any], name: str, want: str, path: Path) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{columns[name][row]} is not {want}", file=path, line=row + 1, field=name)


def _known_keys(given: Any, known: Any, path: Path, where: str) -> None:
    for key in given:
        if key not in known:
            raise InputError(f"no such key{did_you_mean(key, known)}", file=path, field=f"{where}{key}")
