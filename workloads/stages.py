"""Tables of stages and edges: their columns, the resources that tasks of a stage need, and the kinds of edges.

What no stage is known to need (`workloads.resources`) has no column, except for ``cpu_cores`` and ``memory``, which
are always there; nor have bytes, on edges or of input, of which none are known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workloads.arrow import coded_labels, described_field, from_strings, optional_column, text_column
from workloads.coflows import MAX_BYTES
from workloads.errors import InputError
from workloads.groups import Int64Array, first_rows, refuse_first, rows_of_groups, same_length, whole_numbers
from workloads.jobs import SCHEMA_VERSION, TASKS_SCHEMA, Float64Array
from workloads.resources import demand_field, in_order, is_resource

ALL_TO_ALL, ONE_TO_ONE = "all-to-all", "one-to-one"
EDGE_KINDS = {
    ALL_TO_ALL: "a task of the child waits for all tasks of the parent",
    ONE_TO_ONE: "task i of the child waits for task i of the parent only",
}

_VERSION = {"schema_version": str(SCHEMA_VERSION)}


STAGES_SCHEMA = pa.schema(
    [
        described_field("job_id", pa.int64(), "1", "job of the stage; stages of a job lie together"),
        described_field("stage", pa.int64(), "1", "0, 1, ... within the job, in the order of the source"),
        described_field("name", pa.string(), "", "what the source calls the stage, or null", nullable=True),
        described_field("num_tasks", pa.int64(), "1", "tasks of the stage, at least one"),
        described_field("mean_task_s", pa.float64(), "s", "mean task duration as the source states it"),
        demand_field("cpu_cores"),
        demand_field("memory"),
    ],
    metadata=_VERSION,
)
"""One row per stage, in job order and within a job in stage order; `stages_schema` has the optional columns."""

EDGES_SCHEMA = pa.schema(
    [
        described_field("job_id", pa.int64(), "1", "job of both stages; edges lie in job order"),
        described_field("parent", pa.int64(), "1", "stage that must have ended"),
        described_field("child", pa.int64(), "1", "before this one may start"),
    ],
    metadata=_VERSION,
)
"""One row per edge between two stages of a job, in job order, then by parent and child; `edges_schema` has more."""

DAG_TASKS_SCHEMA = TASKS_SCHEMA.append(
    described_field("stage", pa.int64(), "1", "stage of the task; tasks of a job lie in stage order")
)
"""One row per task, in job order and within a job in stage order."""

_KIND = described_field(
    "kind", pa.string(), "", f"{' or '.join(EDGE_KINDS)}; null is the former", nullable=True
)
EDGE_BYTES, INPUT_BYTES = "size_bytes", "input_bytes"
_BYTES = {
    EDGE_BYTES: "all tasks of the parent together send so much to all tasks of the child, or null",
    INPUT_BYTES: "all tasks of the stage together read so much of the job's input, or null",
}
ALWAYS = ("cpu_cores", "memory")


def stages_schema(names: Iterable[str]) -> pa.Schema:
    """Return the schema of stages with the demands, and the bytes of input, that are among these names of columns."""
    given = set(names)
    more = [name for name in in_order(filter(is_resource, given)) if name not in ALWAYS]
    fields = [*STAGES_SCHEMA, *map(demand_field, more), *_bytes_field(INPUT_BYTES, given)]
    return pa.schema(fields, metadata=_VERSION)


def edges_schema(names: Iterable[str]) -> pa.Schema:
    """Return the schema of edges, with their kind and their bytes where these are among these names of columns."""
    given = set(names)
    kind = [_KIND] if _KIND.name in given else []
    return pa.schema([*EDGES_SCHEMA, *kind, *_bytes_field(EDGE_BYTES, given)], metadata=_VERSION)


def _bytes_field(name: str, given: Collection[str]) -> list[pa.Field]:
    return [described_field(name, pa.float64(), "B", _BYTES[name], nullable=True)] if name in given else []


def one_to_one_edges(edges: pa.Table) -> npt.NDArray[np.int8]:
    """Return 1 for each edge that is one-to-one, else 0: shape (E,)."""
    if _KIND.name not in edges.column_names:
        return np.zeros(edges.num_rows, np.int8)
    kinds, code = coded_labels(edges[_KIND.name])
    return np.array([kind == ONE_TO_ONE for kind in kinds] + [False])[code].astype(np.int8)


def without_unused(table: pa.Table) -> pa.Table:
    """Return stages or edges without the optional columns that say nothing: none is known, no edge is one-to-one."""
    unused = [n for n in table.column_names if n in _BYTES or (is_resource(n) and n not in ALWAYS)]
    unused = [name for name in unused if table[name].null_count == table.num_rows]
    if _KIND.name in table.column_names and not one_to_one_edges(table).any():
        unused.append(_KIND.name)
    return table.drop_columns(unused) if unused else table


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


def check_bytes(
    values: npt.ArrayLike | None, name: str, count: int, of: str, file: object
) -> dict[str, Float64Array]:
    """Return a column of bytes by its name, checked, shape (count,), NaN where not known; none if all are not known.

    Raises
    ------
    InputError
        There is not one value for each row, or one is neither NaN nor from 0 to `MAX_BYTES`.
    """
    if values is None:
        return {}
    sizes = np.array(values, np.float64)
    same_length(sizes, count, name, of, file=file)
    known = ~np.isnan(sizes)
    bad = known & ~((sizes >= 0) & (sizes <= MAX_BYTES))
    refuse_first(bad, sizes, f"is not a number from 0 to {MAX_BYTES:.0e}", name, file=file)
    alike = np.where(known, sizes + 0.0, np.nan)  # one NaN, no -0.0: one fingerprint
    return {name: alike} if known.any() else {}


def known_bytes(table: pa.Table, name: str) -> Float64Array:
    """Return the bytes of stages or edges, shape (rows,), NaN where not known."""
    if name not in table.column_names:
        return np.full(table.num_rows, np.nan)
    return np.asarray(optional_column(table, name), np.float64)


def kind_column(one_to_one: npt.NDArray[np.bool_]) -> pa.Array:
    """Return the kinds of edges as a column of their table."""
    return from_strings([ONE_TO_ONE if one else ALL_TO_ALL for one in one_to_one.tolist()])


# Precedence between the stages of jobs: what edges may be, and how far each stage is from the start.


def levels(first_child: Int64Array, child: Int64Array) -> Int64Array:
    """Return the level of each stage; -1 for one in a circle or behind one. All jobs advance at once."""
    children = np.diff(first_child)
    waiting = np.bincount(child, minlength=len(children))
    levels = np.full(len(children), -1)
    ready = np.flatnonzero(waiting == 0)
    level = 0
    while len(ready):
        levels[ready] = level
        freed, times = np.unique(child[rows_of_groups(children, ready)], return_counts=True)
        waiting[freed] -= times
        ready = freed[waiting[freed] == 0]
        level += 1
    return levels


def check_edges(
    edges: npt.ArrayLike, num_stages: Int64Array, job_id: npt.ArrayLike | None, file: object
) -> Int64Array:
    """Return edges as rows (job, parent, child) of an array of shape (3, E), or name the first wrong one."""
    given = np.asarray(edges)
    if given.size and given.shape[1:] != (3,):
        raise InputError(f"edges have the shape {given.shape}, want (E, 3)", file=file)
    columns = given.reshape(-1, 3).T
    job = whole_numbers(columns[0], "job_id", 0, len(num_stages) - 1, file=file)
    parent, child = (
        whole_numbers(values, name, 0, 2**40, file=file)
        for values, name in zip(columns[1:], ("parent", "child"), strict=True)
    )
    for values, name in ((parent, "parent"), (child, "child")):
        refuse_first(values >= num_stages[job], values, "is a stage the job does not have", name, file=file)
    refuse_first(parent == child, child, "is its own parent", "child", file=file)
    between = np.stack([job, parent, child])
    order = np.lexsort(between[::-1])
    twice = np.zeros(len(job), bool)
    twice[order[1:]] = (between[:, order[1:]] == between[:, order[:-1]]).all(axis=0)
    refuse_first(twice, child, "has this parent already: the edge is given twice", "child", file=file)

    first_stage = first_rows(num_stages)
    parents, children = first_stage[job][order] + parent[order], first_stage[job][order] + child[order]
    first_child = first_rows(np.bincount(parents, minlength=int(first_stage[-1])))
    stuck = levels(first_child, children) < 0
    if stuck.any():
        at = int(np.searchsorted(first_stage, np.argmax(stuck), side="right")) - 1
        circle = _circle(parents, children, stuck, int(first_stage[at]))
        number = at if job_id is None else np.asarray(job_id)[at]
        wrong = f"stages of job {number} wait for each other: {circle}"
        inside = stuck[first_stage[job] + parent] & stuck[first_stage[job] + child]
        line = int(np.argmax((job == at) & inside)) + 1
        raise InputError(wrong, file=file, line=line, field="child")
    return between


def _circle(parents: Int64Array, children: Int64Array, stuck: npt.NDArray[np.bool_], first_stage: int) -> str:
    """Return a circle of stages of a job as ``1 -> 2 -> 1``, found by going from child to parent."""
    inside = stuck[parents] & stuck[children]
    parent_of = dict(zip(children[inside].tolist(), parents[inside].tolist(), strict=True))
    at, path = int(np.argmax(stuck)), []
    while at not in path:
        path.append(at)
        at = parent_of[at]
    found = [at, *reversed(path[path.index(at) :])]
    shown = " -> ".join(str(s - first_stage) for s in found[:8])
    return shown if len(found) <= 8 else f"{shown} -> ..."
