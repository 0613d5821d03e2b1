"""Tables of several schedulers: figures by group beside the first scheduler's, and facts of summaries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from emu.families.registry import find_family
from emu.results.measures import NOTHING, PAGE, SHARES, Fact, Measure, Pair, Row, text_of
from emu.results.metrics import confidence_95
from emu.results.paired_comparison import Comparing, Tolerance
from emu.results.result import Runs
from emu.results.text_tables import (
    TIMES,
    Cell,
    Table,
    align,
    indented,
    percent,
    ratio,
    render_tables,
    times_clause,
    with_error,
    words_of,
)
from workloads.hints import in_words

WAITS = tuple(
    Measure(metric, statistic)
    for metric, statistics in (
        ("wait", ("mean", "p50", "p99")),
        ("slowdown", ("p50", "p99")),
        ("bounded_slowdown", ("mean", "p99")),
    )
    for statistic in statistics
)
"""The metrics that pages show for each group beside completion times."""


def render_rows(
    rows: Sequence[Row], family: str, head: str, tolerance: Tolerance, columns: Sequence[Measure]
) -> str:
    """Return the rows of a comparison as text: below a head a table for each group, and what its columns are."""
    of = find_family(family)
    how = of[Comparing]
    if not rows:
        return f"{head}: no {of.one} finished under all schedulers\n"
    first, several = rows[0].scheduler, is_of_several(rows)
    what = column_names(columns, of.one)
    if several and how.factors is None:
        what += times_clause(first)
    elif several and how.factors is not None:
        what += f", and as {how.factors.words} of {first}: the others' over its own"
    lines = [f"{head}: {what}"]
    names = ["" if name == TIMES else name for name in row_head("", how, columns, several, True)]
    for own in by_group(rows, how):
        table = [words_of(row_cells(row, first, how, columns, several, True)) for row in own]
        lines += ["", how.title(own), *indented(align([names, *table]))]
    lines += ["", shares_caption(first, of.heads, tolerance)] if several else []
    return "\n".join(lines) + "\n"


def render_more(results: Runs, rows: Sequence[Row], warmup_s: float) -> str:
    """Return the other tables of a comparison as text."""
    family = find_family(next(iter(results.values()))[0].family)
    return render_tables(family[Comparing].tables(results, rows, warmup_s))


def is_of_several(rows: Iterable[Row]) -> bool:
    """Return whether rows are of several schedulers."""
    return len({row.scheduler for row in rows}) > 1


def by_group(rows: Sequence[Row], how: Comparing) -> list[list[Row]]:
    """Return the rows of each group that has any, in the family's order."""
    found = ([row for row in rows if row.group == group] for group in how.groups)
    return [own for own in found if own]


def row_head(
    scheduler: str, how: Comparing, columns: Sequence[Measure], several: bool, in_text: bool
) -> list[str]:
    """Return the heads of the columns of `row_cells`; `scheduler` is that of the first."""
    head = [scheduler]
    for measure in columns:
        head += [measure.name, *([TIMES] if how.factors is None and (several or in_text) else [])]
    if several and how.factors is not None:
        head += how.factors.labels.values()
    return [*head, *(SHARES if several else ())]


def row_cells(
    row: Row, first: str, how: Comparing, columns: Sequence[Measure], several: bool, in_text: bool
) -> list[str | Cell]:
    """Return a row of a comparison as cells: figures, ratios or factors, and of several schedulers `SHARES`.

    `first` is the scheduler that others are compared with. In a text the columns of ratios are there for a single
    scheduler too, and shares have no error.
    """
    cells: list[str | Cell] = [row.scheduler]
    for measure in columns:
        cells.append(figure_cell(row, measure, several))
        if how.factors is None and (several or in_text):
            cells.append(Cell("" if row.scheduler == first else ratio(*row.ratios[measure.name]), "ratio"))
    if several:
        if how.factors is not None:
            cells += [Cell(ratio(*row.speedup[name]), "ratio") for name in how.factors.labels]
        cells += [percent(*row.shares[name][: 1 if in_text else 2]) for name in SHARES]
    return cells


def figure_cell(row: Row, measure: Measure, several: bool) -> str | Cell:
    """Return a cell with a figure; of several schedulers, the best ones are bold."""
    shown = with_error(*row.figures[measure.name])
    return Cell(shown, "best") if several and measure.name in row.best else shown


def waits_table(rows: Sequence[Row], title: str) -> list[Table]:
    """Return the table of waits and slowdowns of all groups, for a page; none where there are none."""
    shown = [m for m in WAITS if any(m.name in row.figures for row in rows)]
    if not shown:
        return []
    several = is_of_several(rows)
    cells = [[row.scheduler, row.group, *(figure_cell(row, m, several) for m in shown)] for row in rows]
    caption = (
        "seconds until the first task, or flow, starts; slowdown is completion time over what it is alone"
    )
    bounded = any(m.metric == "bounded_slowdown" for m in shown)
    note = (
        "Bounded slowdown takes jobs below a threshold (by default 10 s) as long as that." if bounded else ""
    )
    head = [f"{m.metric.removesuffix('_slowdown')} {m.statistic}" for m in shown]
    return [Table(title, caption, ["scheduler", "of", *head], cells, note, only=PAGE)]


class Given(NamedTuple):
    """A column of a `FactTable` whose values are no fact of a summary: means over the seeds by scheduler."""

    label: str
    pairs: Mapping[str, Pair]
    form: str = "ratio"


class FactTable(NamedTuple):
    """A table of facts of summaries, a row for each scheduler: means over the seeds.

    Attributes
    ----------
    title, caption, note : str
        As of `Table`.
    facts : sequence of Fact or Given
        The columns.
    needs : str
        The path of what a scheduler's runs must all have for it to have a row.
    of_some : bool
        Whether a mean is over the seeds that have a value; else it has none where a seed lacks it.
    optional : collection of str
        Labels of columns that are left out where no scheduler has a value.
    """

    title: str
    caption: str
    facts: Sequence[Fact | Given]
    note: str = ""
    needs: str = ""
    of_some: bool = False
    optional: Collection[str] = ()

    def means(self, results: Runs) -> dict[str, dict[str, Pair]]:
        """Return the values by scheduler and label, NaN for none."""
        needed = Fact("", self.needs) if self.needs else None
        return {
            name: {
                f.label: f.pairs.get(name, NOTHING) if isinstance(f, Given) else self._mean(f, runs)
                for f in self.facts
            }
            for name, runs in results.items()
            if needed is None or all(needed.of(run.summary) is not None for run in runs)
        }

    def _mean(self, fact: Fact, runs: Sequence[Any]) -> Pair:
        return mean_of([fact.of(run.summary) for run in runs], self.of_some)

    def tables(self, results: Runs, left_out: Collection[str] = ()) -> list[Table]:
        """Return the table, without some columns; none where no scheduler has a row."""
        found = self.means(results)
        shown = [f for f in self.facts if f.label not in left_out and not self._is_empty(f, found)]
        rows = [
            [name, *(text_of(str(f.form), *own[f.label]) for f in shown)]  # of a table all forms have names
            for name, own in found.items()
        ]
        head = ["scheduler", *(f.label for f in shown)]
        return [Table(self.title, self.caption, head, rows, self.note)] if rows else []

    def _is_empty(self, fact: Fact | Given, found: Mapping[str, Mapping[str, Pair]]) -> bool:
        return fact.label in self.optional and all(np.isnan(own[fact.label][0]) for own in found.values())


def mean_of(values: Sequence[float | None], of_some: bool = False) -> Pair:
    """Return the mean over seeds and its half-width; of those that have a value, or NaN where one has none."""
    known = [value for value in values if value is not None]
    if not known or not (of_some or len(known) == len(values)):
        return NOTHING
    return confidence_95(known)


def group_tables(
    results: Runs,
    groups: Mapping[str, str],
    texts: tuple[str, str, str],
    columns: Sequence[tuple[str, Callable[[Mapping[str, Any]], float], str]],
    has: Callable[[Mapping[str, Any]], bool] = bool,
) -> list[Table]:
    """Return the table of values of groups of a summary under each scheduler; none where no group has any.

    Parameters
    ----------
    groups : mapping
        The label of each group, to its name.
    texts : tuple of str
        Title, caption and note.
    columns : sequence
        Of each its head, the function from the figures of a group to its value, and the form of that.
    has : callable
        Whether the figures of a group can be shown.
    """
    family = find_family(next(iter(results.values()))[0].family)
    rows = []
    for label, group in groups.items():
        for scheduler, runs in results.items():
            parts = [family.part_of(run.summary[family.heads], group) for run in runs]
            if all(map(has, parts)):
                pairs = [(form, confidence_95([of(part) for part in parts])) for _, of, form in columns]
                rows.append([scheduler, label, *(text_of(form, *pair) for form, pair in pairs)])
    title, caption, note = texts
    head = ["scheduler", family.heads, *(head for head, _, _ in columns)]
    return [Table(title, caption, head, rows, note, names=2)] if rows else []


def behind_note(first: str, speedups: Mapping[str, Mapping[str, Pair]]) -> str:
    """Return which others are faster than the first scheduler, by the columns of a table in which it is below 1.

    Parameters
    ----------
    speedups : mapping
        By the label of a column: the speed-up of the first over each other scheduler, and its half-width.
    """
    faster = {
        label: [name for name, (mean, half) in of_column.items() if mean + (half if half > 0 else 0.0) < 1]
        for label, of_column in speedups.items()
    }
    clauses = [f"{in_words(names)} ({label})" for label, names in faster.items() if names]
    return f"Below 1{TIMES} the other is faster: than {first} here {', '.join(clauses)}." if clauses else ""


def column_names(columns: Sequence[Measure], what: str) -> str:
    """Return what the columns of a table show."""
    others = "; waits in seconds" if any(m.metric == "wait" for m in columns) else ""
    return f"{what} completion time in seconds{others}"


def shares_caption(first: str, what: str, tolerance: Tolerance) -> str:
    """Return what the columns of `SHARES` show."""
    return (
        f"better, equal, worse: share of the {what} by completion time, against {first}; "
        f"equal is within {tolerance}"
    )
