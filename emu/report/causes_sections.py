"""Report sections of runs that recorded their events: causes of completion times, the slowest jobs explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from emu.explaining.causes import Causes, Means, cause_means, causes_table, mean_cells
from emu.explaining.event_record import Record
from emu.explaining.explained_run import has_costs, records_all
from emu.families.family import Family
from emu.families.registry import family_of_summary
from emu.report.page import fill, section, sentence, table_of
from emu.results.metrics import after_warmup
from emu.results.result import Result, Runs, read_result
from emu.results.text_tables import number, percent
from workloads.arrow import optional_column

if TYPE_CHECKING:
    from emu.explaining.explanation import Explanation

SLOWEST = 5
"""Jobs of a run that are shown and explained."""
MOST_HOLDERS = 3
"""Holders of what a job waited for that a page names."""
LEAST_SLOWDOWN = 1.01
"""The least slowdown of the slowest."""
EXPLAINED_TITLE = "The slowest, explained"
NO_PARTS = "The table of tasks is not recorded: with --set output.tasks=true this page explains them."
NONE_SLOWED = "None took more than 1 % longer than it takes alone."
SLOWDOWN = "slowdown"
EXPLAINED = (
    "Mean completion time, and the part of it that each cause took, along the chain of events that ends with the last "
    "of a {one}'s {part}; causes that took nothing are left out. emu explain shows the same for one {one}."
)


TimeByCause = Mapping[str, Sequence[tuple[str, int, Means]]]
"""By group of jobs, or coflows: scheduler, their number, and mean seconds of their completion time by cause."""


def causes_tables(results: Runs) -> dict[str, pa.Table]:
    """Return the finer causes of all jobs, or coflows, by scheduler that recorded all events; of first seeds."""
    whole = {name: _with_parts(run) for name, (run, *_) in results.items()}
    return {
        name: causes_table(run, Record.of(run.events), finer=True)
        for name, run in whole.items()
        if recorded_all(run)
    }


def _with_parts(run: Result) -> Result:
    """Return a run with its table of parts, such as tasks, which a comparison drops once it is on the disk."""
    part = family_of_summary(run.summary).part
    on_disk = f"{part}.parquet" in run.manifest.get("results", {})
    return read_result(run.path) if run.path is not None and on_disk and part not in run.tables else run


def time_by_cause(results: Runs, tables: Mapping[str, pa.Table] | None = None) -> TimeByCause:
    """Return the causes of the completion time of each group of jobs, of first seeds; nothing without all events."""
    found: dict[str, list[tuple[str, int, Means]]] = {}
    for name, table in (causes_tables(results) if tables is None else tables).items():
        for group, count, means in cause_means(results[name][0], table):
            found.setdefault(group, []).append((name, count, means))
    return found


def causes_section(found: TimeByCause, family: Family, several: bool = False) -> list[str]:
    """Return the causes of the completion time of each group of jobs, by scheduler; `several`: seeds have run."""
    every = [means for of_group in found.values() for _, _, means in of_group]
    causes = [cause for cause in (every[0] if every else {}) if any(means[cause] for means in every)]
    rows = []
    for group, of_group in found.items():  # schedulers stand below each other
        for name, count, means in of_group:
            rows.append([name, group, *mean_cells(count, means, causes)])
    head = ["scheduler", "of", family.heads, "mean (s)", *causes]
    words = EXPLAINED.format(one=family.one, part=family.part) + " Of the first seed alone." * several
    return [section("Where the time went", words, head, rows)] if rows else []


def slowest_section(results: Runs, tables: Mapping[str, pa.Table]) -> list[str]:
    """Return the slowest jobs, or coflows, by slowdown under each scheduler, of first seeds.

    Where `tables` of `causes_tables` are given, the greatest cause of each is shown.
    """
    runs = {name: own[0] for name, own in results.items()}
    first = next(iter(runs.values()))
    family = family_of_summary(first.summary)
    if SLOWDOWN not in first.heads.column_names:
        return []
    slowdowns = {name: optional_column(run.heads, SLOWDOWN) for name, run in runs.items()}
    rows = []
    for name, run in runs.items():
        mostly = _greatest(run, tables[name]) if name in tables else {}
        for row in _slowest(run):
            job = int(run.heads[f"{family.one}_id"][row].as_py())
            head = [name, str(job), number(float(optional_column(run.heads, family.width)[row]))]
            cells = [number(float(optional_column(run.heads, family.time)[row]))]
            cells += [number(float(of_run[row])) for of_run in slowdowns.values()]
            rows.append([*head, *cells, *([mostly.get(job, "")] if tables else [])])
    words = f"By slowdown: completion time over what the {family.one} takes alone."
    words += " Of the first seed." if any(len(own) > 1 for own in results.values()) else ""
    head = ["slowest under", family.one, family.part, "took (s)"]
    head += [f"slowdown, {name}" if len(runs) > 1 else "slowdown" for name in runs]
    head += ["mostly"] if tables else []
    return [section(f"The slowest {family.heads}", words, head, rows)] if rows else []


def explained_section(run: Result) -> list[str]:
    """Return the explanation of the slowest jobs of a run; nothing without all events.

    Without the table of tasks, it states how to record it.
    """
    whole, family = _with_parts(run), family_of_summary(run.summary)
    if not recorded_all(whole) or SLOWDOWN not in run.heads.column_names:
        return []
    if whole.tables.get(family.part) is None:
        return [fill("explained.html", title=EXPLAINED_TITLE, words=NO_PARTS, blocks=[])]
    record = Record.of(run.events)
    blocks = []
    for row in _slowest(run):
        explained = family[Causes].explain(whole, record, row, record.handled_ns if has_costs(run) else None)
        most = max(explained.causes, key=lambda cause: explained.causes[cause])
        slowdown = number(float(optional_column(run.heads, SLOWDOWN)[row]))
        facts = f"slowdown {slowdown}, took {number(explained.time_ns / 1e9)} s, mostly {most}"
        blocks.append(_explained_block(explained, f"{explained.title.partition(',')[0]}: {facts}"))
    return [fill("explained.html", title=EXPLAINED_TITLE, words="" if blocks else NONE_SLOWED, blocks=blocks)]


def _explained_block(explained: Explanation, head: str) -> dict[str, Any]:
    """Return what the template shows of one explanation."""
    held = explained.holders(MOST_HOLDERS)
    table, wait = None, explained.longest
    if held:
        table = table_of(list(held[0]), [list(row.values()) for row in held], f"{head}: who held")
    return {
        "head": sentence(head),
        "sentences": explained.sentences,
        "wait": explained.wait_head() + (f" {explained.held_head()}:" if held else ""),
        "held": table,
        "reasons": () if wait is None else wait.reasons,
    }


def _slowest(run: Result) -> list[int]:
    """Return the rows of the slowest jobs, or coflows, after the warm-up, the greatest slowdown first."""
    family = family_of_summary(run.summary)
    slowdown = optional_column(run.heads, SLOWDOWN)
    known = np.isfinite(slowdown) & after_warmup(optional_column(run.heads, family.arrival), run.warmup_s)
    known &= slowdown >= LEAST_SLOWDOWN
    order = np.argsort(-np.where(known, slowdown, -1.0), kind="stable")
    return order[: min(SLOWEST, int(known.sum()))].tolist()


def _greatest(run: Result, table: pa.Table) -> dict[int, str]:
    """Return the greatest cause of each job, or coflow, by its id, and its share."""
    ids, *names = table.column_names
    parts = np.array([table[name].to_numpy() for name in names])
    total, most = parts.sum(axis=0), parts.argmax(axis=0)
    return {
        job: f"{names[at].removesuffix('_ns')} ({percent(part / max(of_all, 1))})"
        for job, at, part, of_all in zip(
            table[ids].to_pylist(), most.tolist(), parts.max(axis=0).tolist(), total.tolist(), strict=True
        )
    }


def recorded_all(run: Result) -> bool:
    """Return whether a run has recorded all that its causes are found from."""
    family = family_of_summary(run.summary)
    return records_all(run) and (not family[Causes].needs_all or run.tables.get(family.part) is not None)
