"""The causes of the completion times of all jobs, by class, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from actors.causes import Remedy
from emu.columns import Column, make_table
from emu.configuration.event_selection import parse_events
from emu.configuration.keys import PARAMETERS
from emu.directories.manifest import MANIFEST
from emu.explaining.event_record import Handled, Record
from emu.explaining.explanation import Explanation
from emu.families.registry import family_of_summary
from emu.results.result import Result
from emu.results.text_tables import align, number, percent
from workloads.arrow import column
from workloads.errors import InputError

if TYPE_CHECKING:
    from actors.scheduler import Scheduler

NS = 1e9


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


def of_config(result: Result, table: str, key: str, default: Any) -> Any:
    """Return a text of the resolved configuration of a run, or the parameters of a scheduler.

    Raises
    ------
    InputError
        The manifest has something else there.
    """
    values = result.manifest.get("config", {}).get(table, {})
    if isinstance(values, dict) and key not in values:
        return default
    value = values[key] if isinstance(values, dict) else None
    if not isinstance(value, dict if table == PARAMETERS else str):
        wanted = "names and values" if table == PARAMETERS else "a text"
        file = (result.path or Path()) / MANIFEST
        raise InputError(f"is damaged: want {wanted}", file=file, field=f"config.{table}.{key}")
    return value


def parameters_of(result: Result) -> Any:
    """Return the parameters of the scheduler of a run, by name, of its variant if it has one."""
    own = of_config(result, PARAMETERS, result.summary["scheduler"], None)
    return own if own is not None else of_config(result, PARAMETERS, result.summary["policy"], {})


def scheduler_of(result: Result) -> Scheduler | None:
    """Return the scheduler of a run; None where it is not found, such as one of a user's file that was removed."""
    from actors.schedulers.registry import find_scheduler

    # One that is no registered name stands in the configuration as the place of its class or object.
    policy = result.summary["policy"]
    for given in (policy, result.manifest.get("config", {}).get("scheduler")):
        try:
            found = find_scheduler(given) if isinstance(given, str) else None
        except InputError:
            continue
        if found is not None and found.policy == policy:
            return found
    return None


def rule_of(result: Result) -> str:
    """Return the rule of the scheduler of a run; empty where it is not known."""
    scheduler = scheduler_of(result)
    return "" if scheduler is None else scheduler.rule_with(parameters_of(result))


def title_of(result: Result, which: int) -> str:
    """Return what an explanation is of: the job, or coflow, of an id, and its run."""
    return f"{family_of_summary(result.summary).one} {which}, {_run_title(result)}"


def _run_title(result: Result) -> str:
    summary = result.summary
    node = family_of_summary(summary).node
    network = of_config(result, "network", "scheduler", "none")
    over = "" if network == "none" else f", network {network}"
    return f"{summary['scheduler']} on {summary['workload']}, {summary['nodes']:,} {node}s{over}"


def records_all(result: Result) -> bool:
    """Return whether a run has recorded the events of all jobs, from beginning to end."""
    chosen = parse_events(of_config(result, "output", "events", "none"))
    return chosen is not None and chosen.is_all and chosen.is_whole


def sum_by_cause(parts: Iterable[Any], causes: Iterable[str]) -> dict[str, int]:
    """Return nanoseconds by cause, of parts of a completion time with ``cause``, ``begin_ns`` and ``end_ns``."""
    sums = dict.fromkeys(causes, 0)
    for part in parts:
        sums[part.cause] += part.end_ns - part.begin_ns
    return sums


def has_costs(result: Result) -> bool:
    """Return whether messages cost the schedulers of a run something."""
    return bool(of_config(result, "cost", "model", "none") != "none" or result.summary.get("clock") == "live")


def causes_table(result: Result, record: Record, finer: bool = False) -> pa.Table:
    """Return the table of `emu.causes` from the events of all jobs, or that of the family's finer causes."""
    family = family_of_summary(result.summary)
    rows, found = [], []
    handled = record.handled_ns if has_costs(result) else None
    own = family[Causes]
    causes = own.of_all if not finer or own.finer is None else own.finer
    for row, of_one in causes(result, record, handled):
        rows.append(row)
        found.append(of_one)
    one = f"{family.one}_id"
    names = list(found[0]) if found else []
    columns = [
        Column(one, pa.int64(), "", ""),
        *(Column(f"{name}_ns", pa.int64(), "ns", "") for name in names),
    ]
    data = {f"{name}_ns": np.array([of_one[name] for of_one in found], np.int64) for name in names}
    return make_table(tuple(columns), {one: column(result.heads, one)[np.array(rows, np.int64)], **data})


def cause_means(result: Result, table: pa.Table) -> Iterator[tuple[str, int, dict[str, float]]]:
    """Yield each group of jobs of a table of causes, their number, and the mean seconds of their time by cause."""
    family = family_of_summary(result.summary)
    name = f"{family.one}_id"
    ids = column(result.heads, name)
    order = np.argsort(ids, kind="stable")
    rows = order[np.searchsorted(ids[order], column(table, name))]
    classes = result.heads["job_class"].to_pylist() if "job_class" in result.heads.column_names else None
    groups = {"all": np.ones(len(rows), bool)}
    if classes is not None:
        of_row = np.array(classes)[rows]
        of_class = {group: of_row == group for group in ("short", "long")}
        if all(mine.any() for mine in of_class.values()):
            groups |= of_class
    causes = [c.removesuffix("_ns") for c in table.column_names if c.endswith("_ns")]
    for group, mine in groups.items():
        if mine.any():
            yield (
                group,
                int(mine.sum()),
                {c: float(np.mean(column(table, f"{c}_ns")[mine])) / NS for c in causes},
            )


def render_causes(tables: Sequence[tuple[Result, pa.Table]]) -> str:
    """Return where the mean completion time of each group went, by run."""
    lines = []
    for result, table in tables:
        lines += [_run_title(result), ""]
        heads, rows = family_of_summary(result.summary).heads, list[list[str]]()
        for group, count, means in cause_means(result, table):
            total = sum(means.values())
            rows = rows or [["mean completion time by cause (s)", heads, "mean", *means]]
            shares = (
                f"{number(value)} ({percent(value / total) if total else '-'})" for value in means.values()
            )
            rows.append([f"  {group}", f"{count:,}", number(total), *shares])
        lines += [*align(rows), ""]
    return "\n".join(lines)
