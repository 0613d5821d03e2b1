"""Constraints of jobs: what a node must have to run their tasks, and how their tasks may lie.

A constraint compares an attribute of nodes with a value (``cores >= 16``, ``isa = x86``), or is a placement of
the job's tasks (`PLACEMENTS`). It is hard, or soft: then it may be relaxed, at a price. A job has one set of
constraints, all of which hold, or none. Many jobs share a set, so that a workload holds distinct sets once, in
two tables: `CONSTRAINT_SETS_SCHEMA` and `JOB_CONSTRAINTS_SCHEMA`.

Here a value is text as it was written. What attributes there are and what their values mean is the cluster's
business: see `clusters.matching`.

An attribute of the user's own (``attr:NAME``) may be compared with the empty value, written ``""``, which equals nodes
without the attribute. The constraints of Google's traces are of this form
(`workloads.readers.google_rules`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workloads.arrow import column, described_field, from_numpy, from_optional, from_strings, is_known
from workloads.errors import InputError
from workloads.groups import Int64Array, distinct_ids, positions, refuse_first


class Constrained(Protocol):
    """Jobs or DAGs: a workload whose jobs may have constraints."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def jobs(self) -> pa.Table:
        """Its jobs, with ``job_id`` and ``constraint``."""

    @property
    def num_jobs(self) -> int:
        """Their number."""

    @property
    def constraint_sets(self) -> pa.Table:
        """As `CONSTRAINT_SETS_SCHEMA`."""

    @property
    def job_constraints(self) -> pa.Table:
        """As `JOB_CONSTRAINTS_SCHEMA`."""


W = TypeVar("W", bound=Constrained)

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
OWN = "attr:"
"""The prefix of the names of attributes that the user defines, such as ``attr:licence``."""
PLACEMENT = "placement"
"""The attribute of a constraint on how the tasks of a job lie to one another."""
PLACEMENTS = {
    "same-rack": "all tasks of the job run in one rack",
    "spread-racks": "no two tasks of the job run in the same rack",
    "spread-nodes": "no two tasks of the job run on the same node",
}
MAX_PRICE = 1e6

CONSTRAINT_SETS_SCHEMA = pa.schema(
    [
        described_field("set_id", pa.int64(), "1", "0, 1, ...; constraints of a set lie together"),
        described_field(
            "attribute", pa.string(), "", "attribute of nodes, or 'placement' of the job's tasks"
        ),
        described_field("operator", pa.string(), "", "=, !=, <, <=, > or >="),
        described_field("value", pa.string(), "", "what the attribute is compared with, as written"),
        described_field(
            "price", pa.float64(), "1", "factor on the job's task durations if relaxed; null if hard", True
        ),
    ],
    metadata={"schema_version": "1"},
)
"""One row per constraint of each distinct set."""

JOB_CONSTRAINTS_SCHEMA = pa.schema(
    [
        described_field("job_id", pa.int64(), "1", "a job that has constraints; in job order"),
        described_field("set_id", pa.int64(), "1", "its set"),
    ],
    metadata={"schema_version": "1"},
)
"""One row per job that has constraints."""

_NOTHING = '""'
_SYMBOLS = {"==": "=", "≠": "!=", "≤": "<=", "≥": ">="}
_COMPARISON = re.compile(r"([^\s=!<>≠≤≥]+)\s*(==|!=|<=|>=|≠|≤|≥|=|<|>)\s*([^\s=!<>].*)")
_SOFT = re.compile(r"(.*\S)\s+soft(?:\s+(\S+))?")
_EXAMPLES = "such as 'cores >= 16', 'isa = x86', 'clock >= 2.4 GHz soft 1.2' or 'spread-racks'"


class Constraint(NamedTuple):
    """One constraint.

    Attributes
    ----------
    attribute : str
        Of nodes, or `PLACEMENT`.
    operator : str
        One of `OPERATORS`; of a placement ``=``.
    value : str
        As written, with its unit; of a placement one of `PLACEMENTS`.
    price : float | None
        Of a soft one: factor (1 or more) on the task durations of the job if it is relaxed. None of a hard one,
        which must hold.
    """

    attribute: str
    operator: str
    value: str
    price: float | None = None

    def __str__(self) -> str:
        placement = self.attribute == PLACEMENT
        text = self.value if placement else f"{self.attribute} {self.operator} {self.value or _NOTHING}"
        return text if self.price is None else f"{text} soft {self.price!r}"


ConstraintSet = tuple[Constraint, ...]


def parse_constraint(text: str, what: str = "constraint") -> Constraint:
    """Return a constraint from its text.

    Parameters
    ----------
    text : str
        ``ATTRIBUTE OPERATOR VALUE`` or a placement; behind it ``soft`` and the price (1 without one) where it
        may be relaxed.
    what : str
        The option or key the text was given for; errors name it.

    Raises
    ------
    InputError
        The text is not a constraint, or the price is not a factor of 1 or more.

    Examples
    --------
    >>> parse_constraint("cores>=16")
    Constraint(attribute='cores', operator='>=', value='16', price=None)
    >>> str(parse_constraint("clock ≥ 2.4 GHz soft 1.2")), parse_constraint("same-rack").attribute
    ('clock >= 2.4 GHz soft 1.2', 'placement')
    """
    base, price = text.strip(), None
    if soft := _SOFT.fullmatch(base):
        base, price = soft[1], _price(soft[2] or "1", what)
    if base in PLACEMENTS:
        return Constraint(PLACEMENT, "=", base, price)
    match = _COMPARISON.fullmatch(base)
    if match is None or match[1] == PLACEMENT:
        raise InputError(
            f"{what}: {text!r} is not a constraint {_EXAMPLES} (placements: {', '.join(PLACEMENTS)})"
        )
    value = "" if match[3] == _NOTHING else match[3]
    return Constraint(match[1], _SYMBOLS.get(match[2], match[2]), value, price)


def parse_constraint_set(text: str, what: str = "constraint") -> ConstraintSet:
    """Return the constraints of a text with ``and`` between them, as `parse_constraint`."""
    return tuple(parse_constraint(part, what) for part in re.split(r"\s+and\s+", text.strip()))


def set_text(constraints: Iterable[Constraint]) -> str:
    """Return a set as text, which `parse_constraint_set` reads."""
    return " and ".join(map(str, constraints))


def kind_of(constraints: Iterable[Constraint]) -> str:
    """Return the kind of a set, for results: its attributes and placements, each once, with ``+`` between.

    Examples
    --------
    >>> kind_of(parse_constraint_set("isa = x86 and clock >= 2 GHz and spread-racks"))
    'isa+clock+spread-racks'
    """
    return "+".join(dict.fromkeys(c.value if c.attribute == PLACEMENT else c.attribute for c in constraints))


def no_sets() -> pa.Table:
    """Return the table of constraint sets of a workload without constraints."""
    return _sets_table([])


def no_job_constraints() -> pa.Table:
    """Return the table of jobs with constraints of a workload without."""
    none = from_numpy(np.zeros(0, np.int64))  # an `empty_table` would import pandas
    return pa.Table.from_arrays([none, none], schema=JOB_CONSTRAINTS_SCHEMA)


def constraint_sets(workload: Constrained) -> list[ConstraintSet]:
    """Return the distinct sets of a workload; set i is that of ``set_id`` i."""
    sets: list[list[Constraint]] = []
    for row in workload.constraint_sets.to_pylist():
        if row.pop("set_id") == len(sets):
            sets.append([])
        sets[-1].append(Constraint(**row))
    return [tuple(constraints) for constraints in sets]


def set_of_job(workload: Constrained) -> Int64Array:
    """Return the set of each job, -1 for jobs without constraints: shape (J,)."""
    found = np.full(workload.num_jobs, -1)
    owners = column(workload.job_constraints, "job_id")
    found[positions(column(workload.jobs, "job_id"), owners)] = column(workload.job_constraints, "set_id")
    return found


def with_constraints(workload: W, sets: Sequence[Iterable[Constraint]], set_of_job: npt.ArrayLike) -> W:
    """Return the workload with these constraints in place of those it has; their kinds are in its jobs.

    Parameters
    ----------
    workload : JobWorkload or DagWorkload
    sets : sequence of sets
        An empty set means no constraints. Sets that are equal become one, sets that no job has are left out, and what
        remains is numbered in the order of the first job that has it.
    set_of_job : array_like of int, shape (J,)
        The set of each job, as its place in `sets`; -1 for a job without constraints.

    Raises
    ------
    InputError
        A row that is not a constraint or is repeated in its set, or a set that does not exist.
    """
    given = np.asarray(set_of_job, np.int64)
    if given.shape != (workload.num_jobs,):
        raise InputError(f"{len(given)} sets for {workload.num_jobs} jobs", field="set_of_job")
    wrong = f"is not a set: there are {len(sets)}, from 0 on, and -1 for none"
    refuse_first((given < -1) | (given >= len(sets)), given, wrong, "set_id")
    known = [tuple(constraints) for constraints in sets]
    table = _sets_table([(i, *c) for i, constraints in enumerate(known) for c in constraints])
    check_sets(table)
    sizes = np.array([*map(len, known)], np.int64)
    some = given >= 0
    some[some] = sizes[given[some]] > 0
    ids = column(workload.jobs, "job_id")
    owners = pa.Table.from_arrays(
        [from_numpy(ids[some]), from_numpy(given[some])], schema=JOB_CONSTRAINTS_SCHEMA
    )
    return _labelled(replace(workload, **tidied(table, owners)), np.zeros(workload.num_jobs, bool))


def attach_constraints(
    workload: W, sets: pa.Table, owners: pa.Table, *, sets_file: object, owners_file: object
) -> W:
    """Return the workload with constraints from tables; jobs that state no kind get that of their set.

    Parameters
    ----------
    sets : pyarrow.Table
        As `CONSTRAINT_SETS_SCHEMA`; rows of a set need not lie together.
    owners : pyarrow.Table
        As `JOB_CONSTRAINTS_SCHEMA`, in any order.
    sets_file, owners_file : optional
        Files named in errors.

    Raises
    ------
    InputError
        A row that is not a constraint or is repeated in its set, a job or a set that does not exist, a job that is
        given twice.
    """
    check_sets(sets, file=sets_file)
    sets = sets.take(from_numpy(np.argsort(column(sets, "set_id"), kind="stable")))
    ids, of_set = column(owners, "job_id"), column(owners, "set_id")
    at = positions(column(workload.jobs, "job_id"), ids)
    refuse_first(at < 0, ids, "is not a job of the workload", "job_id", file=owners_file)
    distinct_ids(ids, "job_id", file=owners_file)
    unknown = ~np.isin(of_set, column(sets, "set_id"))
    refuse_first(unknown, of_set, "is not one of the constraint sets", "set_id", file=owners_file)
    owners = owners.take(from_numpy(np.argsort(at, kind="stable")))
    kinds = workload.jobs["constraint"].combine_chunks()
    return _labelled(replace(workload, **tidied(sets, owners)), is_known(kinds))


def tidied(sets: pa.Table, owners: pa.Table) -> dict[str, pa.Table]:
    """Return the two tables of constraints by their names in a workload, in a canonical form.

    Equal sets become one, sets without a job are left out, and the others are numbered in the order of the
    first job that has them. Rows of a set must lie together, and jobs in order.
    """
    given = column(owners, "set_id")
    if len(given) == 0:
        return {"constraint_sets": no_sets(), "job_constraints": no_job_constraints()}
    ids = column(sets, "set_id")
    used = np.flatnonzero(np.isin(ids, np.unique(given)))
    ids = ids[used]
    names = CONSTRAINT_SETS_SCHEMA.names[1:]
    rows = list(zip(*(sets[name].take(from_numpy(used)).to_pylist() for name in names), strict=True))
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    ends = np.append(starts[1:], len(ids))
    contents = [tuple(rows[a:b]) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    number: dict[tuple[tuple[object, ...], ...], int] = {}
    alike = np.array([number.setdefault(content, len(number)) for content in contents], np.int64)
    of_job = alike[positions(ids[starts], given)]
    _, first, inverse = np.unique(of_job, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    distinct = list(number)
    kept = [distinct[of_job[at]] for at in np.sort(first)]
    at = owners.schema.get_field_index("set_id")
    return {
        "constraint_sets": _sets_table([(i, *row) for i, content in enumerate(kept) for row in content]),
        "job_constraints": owners.set_column(at, owners.schema.field(at), from_numpy(rank[inverse])),
    }


def constraint_bytes(workload: Constrained) -> bytes:
    """Return bytes that identify the constraints of a workload; none where there are none."""
    if workload.job_constraints.num_rows == 0:
        return b""
    numbers = [column(workload.job_constraints, name).tobytes() for name in JOB_CONSTRAINTS_SCHEMA.names]
    return b"".join([b"constraints", *numbers, repr(workload.constraint_sets.to_pylist()).encode()])


def check_sets(sets: pa.Table, *, file: object = None) -> None:
    """Refuse the first row of a table of sets that is not a constraint, or is repeated in its set."""
    seen = set()
    for line, row in enumerate(sets.to_pylist(), start=1):
        set_id, one = row.pop("set_id"), Constraint(**row)
        field, wrong = _what_is_wrong(one)
        if not wrong and (key := (set_id, *one[:3])) in seen:
            field, wrong = "attribute", f"{one} is given twice in set {set_id}"
        if wrong:
            raise InputError(wrong, file=file, line=line, field=field)
        seen.add(key)


def _what_is_wrong(one: Constraint) -> tuple[str, str]:
    """Return the field of a constraint that is wrong, and what is; two empty texts if nothing is."""
    if not re.fullmatch(r"[^\s=!<>≠≤≥]+", one.attribute):
        return "attribute", f"{one.attribute!r} is not the name of an attribute"
    if one.operator not in OPERATORS:
        return "operator", f"{one.operator!r} is not one of {', '.join(OPERATORS)}"
    if one.attribute == PLACEMENT and (one.value not in PLACEMENTS or one.operator != "="):
        return "value", f"{one.operator} {one.value!r} is not a placement; known: {', '.join(PLACEMENTS)}"
    if one.price is not None and not 1 <= one.price <= MAX_PRICE:
        return "price", f"{one.price!r} is not a factor from 1 to {MAX_PRICE:g} on task durations"
    return "", ""


def _price(text: str, what: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not 1 <= price <= MAX_PRICE:
        raise InputError(f"{what}: the price {text!r} is not a factor from 1 to {MAX_PRICE:g}, such as 1.5")
    return price


def _sets_table(rows: Sequence[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(CONSTRAINT_SETS_SCHEMA)
    set_id, attribute, operator, value, price = columns
    return pa.Table.from_arrays(
        [
            from_numpy(np.array(set_id, np.int64)),
            *(from_strings([str(text) for text in texts]) for texts in (attribute, operator, value)),
            from_optional(np.array(price, np.float64)),
        ],
        schema=CONSTRAINT_SETS_SCHEMA,
    )


def _labelled(workload: W, stated: npt.NDArray[np.bool_]) -> W:
    """Return the workload whose jobs have the kinds of their sets, except those whose kind is `stated`."""
    count = workload.num_jobs
    kinds: list[str | None] = [*map(kind_of, constraint_sets(workload)), None]
    of_job = set_of_job(workload)
    known = pa.concat_arrays([workload.jobs["constraint"].combine_chunks(), from_strings(kinds)])
    rows = np.where(stated, np.arange(count), count + np.where(of_job < 0, len(kinds) - 1, of_job))
    at = workload.jobs.schema.get_field_index("constraint")
    jobs = workload.jobs.set_column(at, workload.jobs.schema.field(at), known.take(from_numpy(rows)))
    return replace(workload, jobs=jobs)
