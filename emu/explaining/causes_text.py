"""The causes of the completion times of all jobs, by class, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from emu.columns import Column, make_table
from emu.configuration.keys import PARAMETERS
from emu.directories.manifest import MANIFEST
from emu.explaining.event_record import Record
from emu.families.registry import family_of_summary
from emu.results.result import Result
from emu.results.text_tables import align, number, percent
from workloads.arrow import column
from workloads.errors import InputError

NS = 1e9


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
    """Return the parameters of the scheduler of a run, by name: those of its variant, or of its policy."""
    own = of_config(result, PARAMETERS, result.summary["scheduler"], None)
    return own if own is not None else of_config(result, PARAMETERS, result.summary["policy"], {})


def has_costs(result: Result) -> bool:
    """Return whether messages cost the schedulers of a run something."""
    return bool(of_config(result, "cost", "model", "none") != "none" or result.summary.get("clock") == "live")


def causes_table(result: Result, record: Record, finer: bool = False) -> pa.Table:
    """Return the table of `emu.causes` from the events of all jobs, or that of the family's finer causes."""
    family = family_of_summary(result.summary)
    rows, found = [], []
    causes = family.finer_causes if finer and family.finer_causes is not None else family.causes
    for row, of_one in causes(result, record, record.handled_ns if has_costs(result) else None):
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
    """Yield each group of jobs, their number, and the mean seconds of their completion time by cause.

    Parameters
    ----------
    table : pyarrow.Table
        As `emu.causes` returns it.
    """
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
        if "all" not in family.group_titles or all(mine.any() for mine in of_class.values()):
            groups |= of_class  # of DAG jobs most workloads have one class, which is all of them
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
        summary, family = result.summary, family_of_summary(result.summary)
        lines += [
            f"{summary['scheduler']} on {summary['workload']}, {summary['nodes']:,} {family.node}s",
            "",
        ]
        rows: list[list[str]] = []
        for group, count, means in cause_means(result, table):
            total = sum(means.values())
            rows = rows or [["mean completion time by cause (s)", family.heads, "mean", *means]]
            shares = (
                f"{number(value)} ({percent(value / total) if total else '-'})" for value in means.values()
            )
            rows.append([f"  {group}", f"{count:,}", number(total), *shares])
        lines += [*align(rows), ""]
    return "\n".join(lines)
