"""Tables of stages and edges: their columns, the resources that tasks of a stage need, and the kinds of edges.

A task holds its demand of each resource from its start to its end. Demands are of nodes: cores, shares (0..1) of a
node's memory and of its disk's and network's bandwidth in each direction, and amounts of attributes that the user
defines (``attr:NAME``, as in `workloads.constraints`). What no stage is known to need has no column, except for
``cpu_cores`` and ``memory``, which are always there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workloads.arrow import coded_labels, described_field, from_strings, optional_column, text_column
from workloads.constraints import OWN
from workloads.errors import InputError
from workloads.groups import Int64Array, refuse_first, same_length
from workloads.hints import did_you_mean
from workloads.jobs import SCHEMA_VERSION, TASKS_SCHEMA, Float64Array


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
_OWN_RESOURCE = Resource(
    "", "amount of a node's own attribute each task needs, or null", "an amount, 0 or more", 1e18
)
_OWN_NAME = re.compile(rf"{OWN}[^\s=!<>≠≤≥]+")

ALL_TO_ALL, ONE_TO_ONE = "all-to-all", "one-to-one"
EDGE_KINDS = {
    ALL_TO_ALL: "a task of the child waits for all tasks of the parent",
    ONE_TO_ONE: "task i of the child waits for task i of the parent only",
}

_VERSION = {"schema_version": str(SCHEMA_VERSION)}


def _demand_field(name: str) -> pa.Field:
    resource = RESOURCES.get(name, _OWN_RESOURCE)
    return described_field(name, pa.float64(), resource.unit, resource.about, nullable=True)


STAGES_SCHEMA = pa.schema(
    [
        described_field("job_id", pa.int64(), "1", "job of the stage; stages of a job lie together"),
        described_field("stage", pa.int64(), "1", "0, 1, ... within the job, in the order of the source"),
        described_field("name", pa.string(), "", "what the source calls the stage, or null", nullable=True),
        described_field("num_tasks", pa.int64(), "1", "tasks of the stage, at least one"),
        described_field("mean_task_s", pa.float64(), "s", "mean task duration as the source states it"),
        _demand_field("cpu_cores"),
        _demand_field("memory"),
    ],
    metadata=_VERSION,
)
"""One row per stage, in job order and within a job in stage order; `stages_schema` has the other demands."""

EDGES_SCHEMA = pa.schema(
    [
        described_field("job_id", pa.int64(), "1", "job of both stages; edges lie in job order"),
        described_field("parent", pa.int64(), "1", "stage that must have ended"),
        described_field("child", pa.int64(), "1", "before this one may start"),
    ],
    metadata=_VERSION,
)
"""One row per edge between two stages of a job, in job order, then by parent and child; `edges_schema` has its kind."""

DAG_TASKS_SCHEMA = TASKS_SCHEMA.append(
    described_field("stage", pa.int64(), "1", "stage of the task; tasks of a job lie in stage order")
)
"""One row per task, in job order and within a job in stage order."""

_KIND = described_field(
    "kind", pa.string(), "", f"{' or '.join(EDGE_KINDS)}; null is the former", nullable=True
)
_ALWAYS = {"cpu_cores", "memory"}


def in_order(names: Iterable[str]) -> list[str]:
    """Return names of resources in the order of tables and arrays: `RESOURCES`, then the user's own by name.

    Examples
    --------
    >>> in_order({"attr:b", "memory", "attr:a", "cpu_cores"})
    ['cpu_cores', 'memory', 'attr:a', 'attr:b']
    """
    given = set(names)
    return [name for name in RESOURCES if name in given] + sorted(given - {*RESOURCES})


def is_resource(name: str) -> bool:
    """Return whether a name is that of a resource: one of `RESOURCES`, or ``attr:NAME``."""
    return name in RESOURCES or bool(_OWN_NAME.fullmatch(name))


def check_resource(name: str, *, file: object = None, field: str | None = None) -> None:
    """Refuse a name that is not a resource."""
    if not is_resource(name):
        hint = did_you_mean(name, RESOURCES)
        raise InputError(
            f"{name!r} is not a resource; want {OWN}NAME for one of your own{hint}", file=file, field=field
        )


def stages_schema(names: Iterable[str]) -> pa.Schema:
    """Return the schema of stages with the demands that are among these names of columns."""
    more = [name for name in in_order(filter(is_resource, names)) if name not in _ALWAYS]
    return pa.schema([*STAGES_SCHEMA, *map(_demand_field, more)], metadata=_VERSION)


def edges_schema(names: Iterable[str]) -> pa.Schema:
    """Return the schema of edges, with their kind where it is among these names of columns."""
    return pa.schema([*EDGES_SCHEMA, *([_KIND] if _KIND.name in names else [])], metadata=_VERSION)


def resources_of(stages: pa.Table) -> tuple[str, ...]:
    """Return the resources of which some stage has a known demand, in order."""
    known = (name for name in stages.column_names if is_resource(name))
    return tuple(in_order(name for name in known if stages[name].null_count < stages.num_rows))


def demand_array(stages: pa.Table, resources: Sequence[str]) -> Float64Array:
    """Return what each task of each stage needs of each resource: shape (S, R), 0 where it is not known."""
    columns = [np.nan_to_num(optional_column(stages, name), nan=0.0) for name in resources]
    return np.ascontiguousarray(np.stack(columns, axis=1)) if columns else np.zeros((stages.num_rows, 0))


def one_to_one_edges(edges: pa.Table) -> npt.NDArray[np.int8]:
    """Return 1 for each edge that is one-to-one, else 0: shape (E,)."""
    if _KIND.name not in edges.column_names:
        return np.zeros(edges.num_rows, np.int8)
    kinds, code = coded_labels(edges[_KIND.name])
    return np.array([kind == ONE_TO_ONE for kind in kinds] + [False])[code].astype(np.int8)


def without_unused(table: pa.Table) -> pa.Table:
    """Return stages or edges without the optional columns that say nothing: no demand is known, no edge one-to-one."""
    unused = [name for name in table.column_names if is_resource(name) and name not in _ALWAYS]
    unused = [name for name in unused if table[name].null_count == table.num_rows]
    if _KIND.name in table.column_names and not one_to_one_edges(table).any():
        unused.append(_KIND.name)
    return table.drop_columns(unused) if unused else table


def alike(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """Return tables of stages, or of edges, with the same columns: optional ones that some lack are null there."""
    names = {name: None for table in tables for name in table.column_names}
    if all(table.num_columns == len(names) for table in tables):
        return [*tables]
    schema = stages_schema(names) if "stage" in names else edges_schema(names)
    return [
        pa.Table.from_arrays(
            [
                table[f.name] if f.name in table.column_names else pa.nulls(table.num_rows, f.type)
                for f in schema
            ],
            schema=schema,
        )
        for table in tables
    ]


def check_demands(
    given: Mapping[str, npt.ArrayLike | None], count: int, file: object
) -> dict[str, Float64Array]:
    """Return demands by resource in the order of tables, checked: NaN where not known.

    ``cpu_cores`` and ``memory`` are always there, others where some stage's is known.

    Raises
    ------
    InputError
        A name that is not a resource, or a demand that is out of its range.
    """
    for name in given:
        check_resource(name, file=file, field="demands")
    found = {}
    for name in in_order({*given, *_ALWAYS}):
        if (values := given.get(name)) is not None:
            found[name] = _check_demand(values, count, name, file)
        elif name in _ALWAYS:
            found[name] = np.full(count, np.nan)
    return {name: values for name, values in found.items() if name in _ALWAYS or not np.isnan(values).all()}


def _check_demand(values: npt.ArrayLike, count: int, name: str, file: object) -> Float64Array:
    demands = np.array(values, np.float64)
    same_length(demands, count, name, "stages", file=file)
    resource = RESOURCES.get(name, _OWN_RESOURCE)
    with np.errstate(invalid="ignore"):
        bad = (demands < 0) | (demands > resource.most)
    refuse_first(bad, demands, f"is not {resource.wanted}", name, file=file)
    return np.where(np.isnan(demands), np.nan, demands + 0.0)  # one NaN, no -0.0: one fingerprint


def check_edge_kinds(
    kinds: pa.Array | Sequence[str | None] | None,
    parent_tasks: Int64Array,
    child_tasks: Int64Array,
    file: object,
) -> npt.NDArray[np.bool_]:
    """Return which edges are one-to-one; the stages of such an edge must have equally many tasks.

    Parameters
    ----------
    kinds : string array or sequence of str or None, length E
        Of `EDGE_KINDS`; None is all-to-all.
    parent_tasks, child_tasks : ndarray of int64, shape (E,)

    Raises
    ------
    InputError
        An unknown kind, or stages with different numbers of tasks.
    """
    if kinds is None:
        return np.zeros(len(parent_tasks), bool)
    known, code = coded_labels(text_column(kinds, len(parent_tasks), "kind", "edges", file))
    for at, kind in enumerate(known):
        if kind not in EDGE_KINDS:
            wrong = f"{kind!r} is not a kind of edge; want {' or '.join(EDGE_KINDS)}"
            raise InputError(wrong, file=file, line=int(np.argmax(code == at)) + 1, field="kind")
    one = np.array([kind == ONE_TO_ONE for kind in known] + [False])[code]
    unlike = one & (parent_tasks != child_tasks)
    if unlike.any():
        at = int(np.argmax(unlike))
        wrong = (
            f"{ONE_TO_ONE} between a stage of {parent_tasks[at]} and one of {child_tasks[at]} tasks; "
            "want equally many"
        )
        raise InputError(wrong, file=file, line=at + 1, field="kind")
    return one


def kind_column(one_to_one: npt.NDArray[np.bool_]) -> pa.Array:
    """Return the kinds of edges as a column of their table."""
    return from_strings([ONE_TO_ONE if one else ALL_TO_ALL for one in one_to_one.tolist()])
