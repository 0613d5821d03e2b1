"""The causes of the completion times of all jobs of a run: as a table, as means by class, and as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from actors.causes import Remedy
from emu.columns import Column, make_table
from emu.explaining.event_record import Handled, Record
from emu.explaining.explained_run import has_costs, title_of
from emu.explaining.explanation import NS, Explanation, Link
from emu.families.registry import family_of_summary
from emu.results.result import Result
from emu.results.text_tables import align, number, percent
from workloads.arrow import column
from workloads.errors import InputError

Means = Mapping[str, float]
"""Mean seconds of completion times by cause."""


def _no_explanation(result: Result, *_: Any) -> Any:
    raise InputError(f"what happens in a run of {result.family} is not explained yet", file=result.path)


CausesOfAll = Callable[[Result, Record, Handled | None], Iterator[tuple[int, dict[str, int]]]]


@dataclass(frozen=True, kw_only=True)
class Causes:
    """What a family does to explain completion times. A row is the place of a job, or coflow, in their table.

    Attributes
    ----------
    explain : (result, record, row, handled) -> Explanation
        Why one of them took as long as it did.
    needs_all : bool
        Whether `explain` needs the events of all of them, and `of_all` the table of parts.
    others : (result, record, row, handled) -> rows
        The others whose events `explain` needs too: those that held what it waited for.
    of_all : (result, record, handled) -> pairs
        The row of each, and nanoseconds of its completion time by cause; the first cause is not a delay.
    finer : (result, record, handled) -> pairs
        The same with finer causes, for pages; None: `of_all`.
    remedies : mapping
        By key of the configuration: which (finer) causes of delay it addresses, and how.
    """

    explain: Callable[[Result, Record, int, Handled | None], Explanation] = _no_explanation
    needs_all: bool = False
    others: Callable[[Result, Record, int, Handled | None], Sequence[int]] = lambda *_: ()
    of_all: CausesOfAll = _no_explanation
    finer: CausesOfAll | None = None
    remedies: Mapping[str, Sequence[Remedy]] = field(default_factory=dict)


def sum_by_cause(links: Iterable[Link], causes: Iterable[str]) -> dict[str, int]:
    """Return nanoseconds by cause of the links of a chain."""
    sums = dict.fromkeys(causes, 0)
    for link in links:
        sums[link.cause] += link.end_ns - link.begin_ns
    return sums


def causes_table(result: Result, record: Record, finer: bool = False) -> pa.Table:
    """Return the table of `emu.causes` from the events of all jobs, or that of the family's finer causes."""
    family = family_of_summary(result.summary)
    own, one = family[Causes], f"{family.one}_id"
    causes = own.of_all if not finer or own.finer is None else own.finer
    found = dict(causes(result, record, record.handled_ns if has_costs(result) else None))
    names = [f"{cause}_ns" for cause in next(iter(found.values()), {})]
    columns = (Column(one, pa.int64(), "", ""), *(Column(name, pa.int64(), "ns", "") for name in names))
    values = np.array([[*of_one.values()] for of_one in found.values()], np.int64).reshape(
        len(found), len(names)
    )
    ids = column(result.heads, one)[np.array([*found], np.int64)]
    return make_table(columns, {one: ids, **dict(zip(names, values.T, strict=True))})


def cause_means(result: Result, table: pa.Table) -> Iterator[tuple[str, int, Means]]:
    """Yield each group of jobs of a table of causes, their number, and the mean seconds of their time by cause."""
    name = f"{family_of_summary(result.summary).one}_id"
    ids = column(result.heads, name)
    order = np.argsort(ids, kind="stable")
    rows = order[np.searchsorted(ids[order], column(table, name))]
    groups = {"all": np.ones(len(rows), bool)}
    if "job_class" in result.heads.column_names:
        of_row = np.array(result.heads["job_class"].to_pylist())[rows]
        of_class = {group: of_row == group for group in ("short", "long")}
        if all(mine.any() for mine in of_class.values()):
            groups |= of_class
    times = {c.removesuffix("_ns"): column(table, c) for c in table.column_names if c.endswith("_ns")}
    for group, mine in groups.items():
        if mine.any():
            yield group, int(mine.sum()), {c: float(np.mean(ns[mine])) / NS for c, ns in times.items()}


def mean_cells(count: int, means: Means, causes: Iterable[str]) -> list[str]:
    """Return the cells of a row of mean completion times: how many jobs, their mean, and what each cause took of it."""
    total = sum(means.values())
    shares = (f"{number(means[c])} ({percent(means[c] / total) if total else '-'})" for c in causes)
    return [f"{count:,}", number(total), *shares]


def render_causes(tables: Sequence[tuple[Result, pa.Table]]) -> str:
    """Return where the mean completion time of each group went, by run."""
    lines = []
    for result, table in tables:
        lines += [title_of(result), ""]
        heads, rows = family_of_summary(result.summary).heads, list[list[str]]()
        for group, count, means in cause_means(result, table):
            rows = rows or [["mean completion time by cause (s)", heads, "mean", *means]]
            rows.append([f"  {group}", *mean_cells(count, means, means)])
        lines += (
            [*align(rows), ""] if rows else [f"No {family_of_summary(result.summary).one} has ended.", ""]
        )
    return "\n".join(lines)
