"""Tables of nodes with more or fewer nodes than they list: machine types in proportion, or a number of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from clusters.schema import MACHINE_TYPE
from workloads.arrow import to_numpy
from workloads.errors import InputError
from workloads.groups import Int64Array
from workloads.hints import did_you_mean
from workloads.requests import distinct_rows

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
