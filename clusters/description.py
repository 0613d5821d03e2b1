"""Descriptions of clusters in files: machine types in TOML, or a Parquet table of nodes.

A TOML description::

    description = "two generations"   # optional, for lists
    rack_size = 40                    # nodes a rack, 40 by default
    order = "blocks"                  # or "racks", "shuffled": the order of machine types

    [[machines]]
    type = "old"
    count = 300                       # or share = "30%"; one of the two, the same for all entries
    slots = 4                         # 1 by default
    cores = 4                         # one a slot by default
    memory = "16 GiB"                 # 4 GiB a slot by default
    port = "1 Gbps"
    clock = "2.4 GHz"
    kernel = "3.10"                   # in quotes: the number 3.10 is 3.1
    isa = "x86"
    tags = ["public-ip", "ssd"]       # names of your own
    "attr:licences" = 8               # an attribute of your own: a text or a number

A machine type may give every attribute of `clusters.schema.ATTRIBUTES` except the rack, by its name or by its
column's (``memory_bytes = 17179869184``), and any of the user's own. A Parquet table has the columns of
`CLUSTER_SCHEMA` and of the user's own, null on nodes that lack them; a kernel may be text there too.

Nodes are numbered in the order of the entries (``blocks``), which matters to policies that reserve the first nodes for
short jobs. ``racks`` puts whole racks, and ``shuffled`` single nodes, into a random order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from clusters.drawn import random_numbers
from clusters.schema import (
    ATTRIBUTES,
    DEFAULT_SLOTS,
    MACHINE_TYPE,
    MAX_NODES,
    RACK_SIZE,
    Attribute,
    check_whole,
    cluster_schema,
    encode_texts,
    find_attribute,
    is_own,
    join_tags,
    with_defaults,
)
from workloads.arrow import from_numpy, to_numpy
from workloads.constraints import OWN
from workloads.errors import InputError
from workloads.groups import Int64Array, apportion, refuse_first
from workloads.hints import did_you_mean
from workloads.requests import distinct_rows
from workloads.small_files import parse_toml, read_small_text
from workloads.units import parse_share

ORDERS = ("blocks", "racks", "shuffled")
_OWN_TYPES = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_floating, pa.types.is_null,
)  # fmt: skip
_TOP_KEYS = ("description", "machines", "order", "rack_size")
_BY_KEY = {key: a for a in ATTRIBUTES.values() if a.name != "rack" for key in (a.name, a.column)}
_MACHINE_KEYS = ("count", "share", *_BY_KEY)
OF_LARGEST = ("memory", "port", "max_disks")
"""The attributes that demands may be shares of: of the largest machine's."""


def load_toml(path: Path) -> dict[str, Any]:
    """Return the parsed TOML file, its top-level keys checked."""
    description = parse_toml(read_small_text(path), path)
    _known_keys(description, _TOP_KEYS, path, "")
    machines = description.get("machines")
    if not isinstance(machines, list) or not machines or not all(isinstance(m, dict) for m in machines):
        raise InputError("want one or more [[machines]] entries", file=path, field="machines")
    return description


class Described(NamedTuple):
    """The nodes that a description gives.

    Attributes
    ----------
    columns : dict
        Of the cluster table.
    largest : dict of str to float
        By attribute that demands are shares of, the most that a machine of the description has, whether or not there is
        one among the nodes.
    notes : tuple of str
    """

    columns: dict[str, Any]
    largest: dict[str, float]
    notes: tuple[str, ...] = ()


def columns_from_toml(
    path: Path, nodes: int | None, slots: int | None, seed: int, counts: Mapping[str, int] | None = None
) -> Described:
    """Return the nodes that a TOML description of machine types gives; `counts`: how many of each type."""
    description = load_toml(path)
    machines = [_machine(m, f"machines[{i}]", path, slots) for i, m in enumerate(description["machines"])]
    rack_size = check_whole("rack_size", description.get("rack_size", RACK_SIZE), MAX_NODES, file=path)
    order = description.get("order", ORDERS[0])
    if order not in ORDERS:
        hint = did_you_mean(str(order), ORDERS)
        raise InputError(f"{order!r} is not an order of machine types{hint}", file=path, field="order")
    entries = description["machines"]
    of_type = _counts(entries, nodes, path) if counts is None else _counts_of_types(machines, counts, path)
    rows, rack = _arrange(of_type, rack_size, order, seed)
    columns: dict[str, Any] = {"rack": rack}
    for name in dict.fromkeys(name for machine in machines for name in machine):
        attribute = find_attribute(name)
        values = [m.get(name, attribute.default) for m in machines]
        columns[name] = _of_rows(values, rows, attribute)
    of_largest = {name: ATTRIBUTES[name].column for name in OF_LARGEST}
    largest = {name: float(max(m[column] for m in machines)) for name, column in of_largest.items()}
    return Described(columns, largest)


def load_table(path: Path) -> pa.Table:
    """Return the Parquet table of nodes."""
    from workloads.readers.parquet_tables import parquet_file, read_columns

    with parquet_file(path) as file:
        names = file.schema_arrow.names
        if len({*names}) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError("the column occurs twice", file=path, field=twice)
        return read_columns(file, names, path)


def columns_from_table(
    table: pa.Table,
    path: Path,
    nodes: int | None,
    slots: int | None,
    counts: Mapping[str, int] | None = None,
) -> Described:
    """Return the nodes of a table, or as many as asked for (`scaled`, `with_counts`); errors name `path`."""
    schema = cluster_schema(table.column_names)
    _known_keys(table.column_names, schema.names, path, "")
    check_whole("nodes", table.num_rows, MAX_NODES, file=path)
    columns = {
        field.name: _column(table, field, path) for field in schema if field.name in table.column_names
    }
    if "slots" not in columns and slots is None:
        raise InputError("no such column; a table of nodes needs their slots", file=path, field="slots")
    if slots is not None:
        columns["slots"] = np.full(table.num_rows, slots)
    ids = columns.pop("node_id", None)
    if ids is not None:
        refuse_first(
            ids != np.arange(table.num_rows), ids, "is not 0, 1, 2, … in order", "node_id", file=path
        )
    for attribute in ATTRIBUTES.values():
        values = columns.get(attribute.column)
        if isinstance(values, np.ndarray):
            bad = ~((values >= attribute.least) & (values <= attribute.most) & np.isfinite(values))
            refuse_first(bad, values, f"is not {attribute.want}", attribute.column, file=path)
    most = columns.get("max_disks")
    if most is not None:
        least = columns.get("min_disks", ATTRIBUTES["min_disks"].default)
        refuse_first(most < least, most, "is not as many as min_disks, or more", "max_disks", file=path)
    filled = with_defaults(columns)
    largest = {name: float(np.max(filled[ATTRIBUTES[name].column])) for name in OF_LARGEST}
    if counts is None and (nodes is None or nodes == table.num_rows):
        return Described(columns, largest)
    try:
        columns = scaled(columns, nodes or 0) if counts is None else with_counts(columns, counts)
    except InputError as error:
        raise InputError(error.message, file=path, field="machines") from None
    made = len(columns["slots"])
    how = "nodes of each machine type as asked for" if counts else "machine types in proportion"
    return Described(columns, largest, (f"{table.num_rows:,} machines scaled to {made:,} nodes, {how}",))


def _machine(entry: dict[str, Any], where: str, path: Path, slots: int | None) -> dict[str, Any]:
    """Return a machine type by column, with units resolved and defaults filled in."""
    _known_keys((key for key in entry if not is_own(key)), _MACHINE_KEYS, path, f"{where}.")
    machine: dict[str, Any] = {"slots": DEFAULT_SLOTS}
    given: dict[str, str] = {}
    for key, value in entry.items():
        if key in ("count", "share"):
            continue
        attribute = find_attribute(key)
        if attribute.column in given:
            raise InputError(
                f"is given as {given[attribute.column]!r} too", file=path, field=f"{where}.{key}"
            )
        given[attribute.column] = key
        machine[attribute.column] = _value(attribute, value, f"{where}.{key}", path)
    if slots is not None:
        machine["slots"] = slots
    machine = with_defaults(machine)
    if machine["max_disks"] < machine["min_disks"]:
        wrong = f"{machine['max_disks']} is below min_disks, {machine['min_disks']}"
        raise InputError(wrong, file=path, field=f"{where}.max_disks")
    return machine


def _value(attribute: Attribute, value: object, where: str, path: Path) -> Any:
    """Return a value of a machine type in the form of the table, within its limits."""
    if attribute.kind == "number" and attribute.unit == "1" and attribute.type == pa.int64():
        return check_whole(where, value, int(attribute.most), file=path, least=int(attribute.least))
    try:
        if attribute.kind == "tags":
            tags = value.split() if isinstance(value, str) else value
            if not isinstance(tags, list):
                raise InputError(f"{where}: {value!r} is not a list of names")
            return join_tags(str(attribute.parse(tag, where)) for tag in tags)
        parsed = attribute.parse(value, where)
    except InputError as error:
        raise InputError(error.message.removeprefix(f"{where}: "), file=path, field=where) from None
    if not isinstance(parsed, str) and not attribute.least <= parsed <= attribute.most:
        raise InputError(f"{value!r} is not {attribute.want}", file=path, field=where)
    return parsed


def _arrange(counts: np.ndarray, rack_size: int, order: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the machine type and the rack of each node."""
    rows = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    rack = np.arange(len(rows)) // rack_size
    random = random_numbers(seed)
    if order == "shuffled":
        rows = random.permutation(rows)
    elif order == "racks":
        turn = random.permutation(int(rack[-1]) + 1)
        sizes = np.bincount(rack)
        # Racks keep their sizes: the last one, which may not be full, may come before others.
        rows = np.concatenate([rows[r * rack_size : r * rack_size + sizes[r]] for r in turn])
        rack = np.repeat(np.arange(len(turn)), sizes[turn])
    return rows, rack


def _of_rows(values: list[Any], rows: np.ndarray, attribute: Attribute) -> Any:
    """Return a column of the cluster table from each machine type's value and each node's machine type."""
    if not pa.types.is_dictionary(attribute.type):
        return np.array(values, np.int64 if attribute.type == pa.int64() else np.float64)[rows]
    coded = encode_texts(values)
    return pa.DictionaryArray.from_arrays(from_numpy(to_numpy(coded.indices)[rows]), coded.dictionary)


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


def _counts_of_types(machines: list[dict[str, Any]], counts: Mapping[str, int], path: Path) -> np.ndarray:
    """Return the nodes of each machine, of the numbers by machine type; 0 of a type that is not named."""
    names = [str(machine["machine_type"]) for machine in machines]
    for name in counts:
        if names.count(name) != 1:
            wrong = f"{names.count(name)} entries are of type {name!r}; give each a type of its own"
            raise InputError(wrong if name in names else no_type(name, names), file=path, field="machines")
    return np.array([counts.get(name, 0) for name in names])


def _share(value: Any, where: str, path: Path) -> float:
    try:
        return parse_share(value, where)
    except InputError as error:
        raise InputError(error.message, file=path) from None


def _column(table: pa.Table, field: pa.Field, path: Path) -> Any:
    """Return a column as a NumPy array (text as a dictionary array), without nulls."""
    values = table[field.name]
    if pa.types.is_dictionary(values.type):  # its dictionary may have a null
        values = values.cast(values.type.value_type)
    if is_own(field.name):
        return _own(values, field.name, path)
    if values.null_count:
        row = int(np.argmax(np.asarray(values.is_null())))
        raise InputError("is null; every node needs a value", file=path, line=row + 1, field=field.name)
    have, want = values.type, field.type
    text = pa.types.is_string(have) or pa.types.is_large_string(have)
    attribute = _BY_KEY.get(field.name)
    if text and attribute is not None and attribute.kind != "number":
        return _texts(values.cast(pa.string()).combine_chunks().dictionary_encode(), attribute, path)
    if pa.types.is_dictionary(want) or not (
        pa.types.is_integer(have) or (pa.types.is_floating(want) and pa.types.is_floating(have))
    ):
        raise InputError(f"has type {values.type}, want {want}", file=path, field=field.name)
    try:
        return to_numpy(values.cast(want).combine_chunks())
    except pa.ArrowInvalid as error:
        raise InputError(f"does not fit {want} ({error})", file=path, field=field.name) from None


def _own(values: pa.ChunkedArray, name: str, path: Path) -> pa.DictionaryArray:
    """Return a column of the user's own as text, empty on nodes that lack the attribute."""
    kind = values.type
    if not any(is_kind(kind) for is_kind in _OWN_TYPES):
        raise InputError(f"has type {kind}, want text or numbers", file=path, field=name)
    return values.cast(pa.string()).fill_null("").combine_chunks().dictionary_encode()


def _texts(coded: pa.DictionaryArray, attribute: Attribute, path: Path) -> Any:
    """Return a column of text after a check of each distinct value; a column of versions as numbers."""
    found: list[Any] = []
    for code, text in enumerate(coded.dictionary.to_pylist()):
        try:
            found.append(join_tags(text.split()) if attribute.kind == "tags" else attribute.parse(text))
        except InputError as error:
            row = int(np.argmax(to_numpy(coded.indices) == code))
            message = error.message.removeprefix(f"{attribute.name}: ")
            raise InputError(message, file=path, line=row + 1, field=attribute.column) from None
    return _of_rows(found, to_numpy(coded.indices), attribute)


def _known_keys(given: Any, known: Any, path: Path, where: str) -> None:
    for key in given:
        if key not in known:
            raise InputError(f"no such key{did_you_mean(key, known)}", file=path, field=f"{where}{key}")


# The JSON schema of the TOML files of machine types, for editors.

_TEXT = {"type": "string", "minLength": 1}
_VERSION = {"type": "string", "pattern": r"^\s*[0-9]{1,3}(\.[0-9]{1,6}){0,2}\s*$"}
_SHARE = {"type": ["number", "string"], "minimum": 0, "maximum": 1}


def cluster_json_schema() -> dict[str, Any]:
    """Return the schema of a description of a cluster, without dialect and title."""
    machine: dict[str, Any] = {
        "count": {
            **_whole(0, MAX_NODES),
            "description": "Nodes of this type; all entries have one, or all a share.",
        },
        "share": {
            **_SHARE,
            "description": "Share of the nodes, such as 0.25 or '25%'; the shares add up to 1.",
        },
    }
    for attribute in ATTRIBUTES.values():
        if attribute.name != "rack":
            for name in dict.fromkeys((attribute.name, attribute.column)):
                machine[name] = {**_of_attribute(attribute), "description": attribute.about}
    entry = {
        "type": "object",
        "properties": machine,
        "patternProperties": {
            f"^{OWN}[^\\s=!<>]": {"type": ["string", "number"], "description": "an attribute of your own"}
        },
        "additionalProperties": False,
        "oneOf": [{"required": ["count"]}, {"required": ["share"]}],
    }
    return {
        "type": "object",
        "required": ["machines"],
        "properties": {
            "description": {"type": "string", "description": "For lists of clusters."},
            "rack_size": {
                **_whole(1, MAX_NODES),
                "description": f"Nodes a rack; {RACK_SIZE} where not given.",
            },
            "order": {"enum": list(ORDERS), "description": "The order of machine types over the nodes."},
            "machines": {"type": "array", "minItems": 1, "items": entry},
        },
        "additionalProperties": False,
    }


def _whole(least: int, most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


def _of_attribute(attribute: Attribute) -> dict[str, Any]:
    """Return the schema of an attribute's values; texts with a unit are checked when the file is read."""
    if attribute.kind == "tags":
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": _TEXT}]}
    if attribute.kind != "number":
        return _VERSION if attribute.kind == "version" else _TEXT
    if attribute.unit == "1" and attribute.type == pa.int64():
        return _whole(int(attribute.least), int(attribute.most))
    return {"type": ["number", "string"], "minimum": attribute.least}


# Tables of nodes with more or fewer nodes than they list: machine types in proportion, or a number of each.

Columns = Mapping[str, Any]


def scaled(columns: Columns, nodes: int) -> dict[str, Any]:
    """Return the columns of a number of nodes, with machines that are alike in proportion, within one of each kind."""
    size = len(columns["slots"])
    codes = [_codes(values).astype(np.float64) for name, values in columns.items() if name != "rack"]
    _, kind = distinct_rows(np.stack(codes, axis=1))
    by_kind = np.argsort(kind, kind="stable")
    return _taken(columns, by_kind[_spread(nodes, size)])


def with_counts(columns: Columns, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the columns of a number of nodes of each machine type; nodes of a type are taken in turn, evenly.

    Raises
    ------
    InputError
        No node is of a type that is named.
    """
    texts = columns.get("machine_type")
    types = np.array(texts.to_pylist() if texts is not None else [MACHINE_TYPE] * len(columns["slots"]))
    rows = []
    for name, count in counts.items():
        own = np.flatnonzero(types == name)
        if not own.size:
            raise InputError(no_type(name, types.tolist()))
        rows.append(own[_spread(count, own.size)])
    return _taken(columns, np.concatenate(rows))


def no_type(name: str, known: Iterable[str]) -> str:
    """Return the error about a machine type that there is not."""
    return f"there is no machine type {name!r}{did_you_mean(name, dict.fromkeys(known))}"


def _spread(count: int, size: int) -> Int64Array:
    """Return so many places among `size`, evenly spread; each again and again where there are fewer."""
    return (2 * np.arange(count, dtype=np.int64) + 1) * size // (2 * max(count, 1))


def _taken(columns: Columns, rows: Int64Array) -> dict[str, Any]:
    """Return rows of columns in order of the table; a row that is taken again is in another rack each time."""
    rows = np.sort(rows)
    made = {
        name: values.take(pa.array(rows)) if isinstance(values, pa.DictionaryArray) else values[rows]
        for name, values in columns.items()
    }
    if "rack" in made:
        again = np.arange(rows.size) - np.searchsorted(rows, rows)
        made["rack"] = made["rack"] + again * (int(columns["rack"].max()) + 1)
    return made


def _codes(values: Any) -> Any:
    return to_numpy(values.indices) if isinstance(values, pa.DictionaryArray) else values
