"""The resources that tasks need and nodes have: names, units, columns of demands.

A task holds its demand of each resource from its start to its end. Demands are of nodes: cores, memory in GiB, shares
(0..1) of the memory and of the disk's and network's bandwidth of the largest node, and amounts of attributes that the
user defines (``attr:NAME``, as in `workloads.constraints`, such as ``attr:gpus``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workloads.arrow import described_field, optional_column
from workloads.constraints import OWN
from workloads.errors import InputError
from workloads.groups import refuse_first, same_length
from workloads.hints import did_you_mean

Float64Array = npt.NDArray[np.float64]


class Resource(NamedTuple):
    """A resource of nodes: its unit, what its column holds, and valid demands, in words and the most."""

    unit: str
    about: str
    wanted: str
    most: float


def _share(of: str) -> Resource:
    about = f"share (0..1) of a node's {of} each task needs, or null"
    return Resource("1", about, f"a share of a node's {of}, 0..1", 1.0)


RESOURCES = {
    "cpu_cores": Resource("cores", "each task needs, or null", "a number of cores, 0 or more", 1e9),
    "memory": _share("memory"),
    "disk_in": _share("disk read bandwidth"),
    "disk_out": _share("disk write bandwidth"),
    "network_in": _share("inbound network bandwidth"),
    "network_out": _share("outbound network bandwidth"),
}
"""The resources that every node has, in the order in which all tables and arrays have them."""
_KNOWN = RESOURCES | {
    "memory_gib": Resource(
        "GiB",
        "memory each task needs, or null; where its share is not known",
        "a size in GiB, 0 or more",
        1e9,
    )
}
_OWN_RESOURCE = Resource(
    "", "amount of a node's own attribute each task needs, or null", "an amount, 0 or more", 1e18
)
_OWN_NAME = re.compile(rf"{OWN}[^\s=!<>≠≤≥]+")


def demand_field(name: str) -> pa.Field:
    """Return the column of demands of a resource."""
    resource = resource_named(name)
    return described_field(name, pa.float64(), resource.unit, resource.about, nullable=True)


def resource_named(name: str) -> Resource:
    """Return what is known of a resource."""
    return _KNOWN.get(name, _OWN_RESOURCE)


def in_order(names: Iterable[str]) -> list[str]:
    """Return names of resources in the order of tables and arrays: `RESOURCES`, ``memory_gib``, one's own by name.

    Examples
    --------
    >>> in_order({"attr:b", "memory", "attr:a", "cpu_cores"})
    ['cpu_cores', 'memory', 'attr:a', 'attr:b']
    """
    given = set(names)
    return [name for name in _KNOWN if name in given] + sorted(given - {*_KNOWN})


def is_resource(name: str) -> bool:
    """Return whether a name is that of a resource: one of `RESOURCES`, ``memory_gib``, or ``attr:NAME``."""
    return name in _KNOWN or bool(_OWN_NAME.fullmatch(name))


def check_resource(name: str, *, file: object = None, field: str | None = None) -> None:
    """Refuse a name that is not a resource."""
    if not is_resource(name):
        hint = did_you_mean(name, _KNOWN)
        raise InputError(
            f"{name!r} is not a resource; want {OWN}NAME for one of your own{hint}", file=file, field=field
        )


def resources_of(table: pa.Table) -> tuple[str, ...]:
    """Return the resources of which a table has a known demand, in order."""
    known = (name for name in table.column_names if is_resource(name))
    return tuple(in_order(name for name in known if table[name].null_count < table.num_rows))


def demand_array(table: pa.Table, resources: Sequence[str]) -> Float64Array:
    """Return the demands of each row of a table: shape (rows, R), 0 where it is not known."""
    columns = [np.nan_to_num(optional_column(table, name), nan=0.0) for name in resources]
    return np.ascontiguousarray(np.stack(columns, axis=1)) if columns else np.zeros((table.num_rows, 0))


def check_demands(
    given: Mapping[str, npt.ArrayLike | None], count: int, of: str, file: object, always: Sequence[str] = ()
) -> dict[str, Float64Array]:
    """Return demands by resource in the order of tables, checked: NaN where not known.

    Those of `always` are there in any case, others where some is known. `of`: what the `count` rows are, for errors.

    Raises
    ------
    InputError
        A name that is not a resource, or a demand that is out of its range.
    """
    for name in given:
        check_resource(name, file=file, field="demands")
    found = {}
    for name in in_order({*given, *always}):
        if (values := given.get(name)) is not None:
            found[name] = _checked(values, count, name, of, file)
        elif name in always:
            found[name] = np.full(count, np.nan)
    return {name: values for name, values in found.items() if name in always or not np.isnan(values).all()}


def _checked(values: npt.ArrayLike, count: int, name: str, of: str, file: object) -> Float64Array:
    demands = np.array(values, np.float64)
    same_length(demands, count, name, of, file=file)
    check_demand(demands, name, file=file)
    return np.where(np.isnan(demands), np.nan, demands + 0.0)  # one NaN, no -0.0: one fingerprint


def check_demand(
    demands: Float64Array, name: str, *, file: object = None, lines: npt.NDArray[np.int64] | None = None
) -> None:
    """Refuse demands of one resource that are out of its range; `lines`: of each, by default its 1-based position."""
    resource = resource_named(name)
    with np.errstate(invalid="ignore"):
        bad = (demands < 0) | (demands > resource.most)
        above = (demands > resource.most) & np.isfinite(demands)
    if resource.most > 1:
        wrong = f"is more than {resource.most:,.0f}, the most that a task may need"
        refuse_first(above, demands, wrong, name, file=file, lines=lines)
    refuse_first(bad, demands, f"is not {resource.wanted}", name, file=file, lines=lines)
