"""Report sections of runs that recorded their events: where completion times went, and the slowest jobs explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from emu.columns import numbers
from emu.configuration.events import parse_events
from emu.explaining.records import Record
from emu.explaining.summary import cause_means, causes_table, has_costs, of_config
from emu.families.registry import family_of_summary
from emu.report.page import section
from emu.results.result import Result
from emu.results.tables import number, percent

SLOWEST = 5
"""Jobs of a run that are explained."""
EXPLAINED = (
    "Mean completion time, and the part of it that each cause took, along the chain of events that ends with the last "
    "task; causes that took nothing are left out. emu explain shows the same for one job."
)


TimeByCause = Mapping[str, Sequence[tuple[str, int, dict[str, float]]]]
"""By group of jobs, or coflows: scheduler, their number, and mean seconds of their completion time by cause."""


def time_by_cause(results: Mapping[str, Sequence[Result]]) -> TimeByCause:
    """Return where the completion time of each group of jobs went, of first seeds; nothing without events of all."""
    found: dict[str, list[tuple[str, int, dict[str, float]]]] = {}
    for name, (run, *_) in results.items():
        if recorded_all(run):
            table = causes_table(run, Record.of(run.events), finer=True)
            for group, count, means in cause_means(run, table):
                found.setdefault(group, []).append((name, count, means))
    return found


def causes_section(found: TimeByCause, several: bool = False) -> list[str]:
    """Return where the completion time of each group of jobs went, by scheduler; `several` seeds have run."""
    every = [means for of_group in found.values() for _, _, means in of_group]
    causes = [cause for cause in (every[0] if every else {}) if any(means[cause] for means in every)]
    rows = []
    for group, of_group in found.items():  # schedulers stand below each other
        for name, count, means in of_group:
            total = sum(means.values())
            shares = (f"{number(means[c])} ({percent(means[c] / total) if total else '-'})" for c in causes)
            rows.append([name, group, f"{count:,}", number(total), *shares])
    head = ["scheduler", "of", "jobs", "mean (s)", *causes]
    words = f"{EXPLAINED} Of the first seed alone." if several else EXPLAINED
    return [section("Where the time went", words, head, rows)] if rows else []


def slowest_section(run: Result) -> list[str]:
    """Return the explanation of the slowest jobs of a run; nothing without events, or without the table of tasks."""
    family = family_of_summary(run.summary)
    if not recorded_all(run) or run.tables.get(family.part) is None:
        return []
    record = Record.of(run.events)
    took_s = numbers(run.heads, family.time)
    order = np.argsort(-np.where(np.isfinite(took_s), took_s, -1.0), kind="stable")[:SLOWEST]
    rows = []
    for row in order.tolist():
        explained = family.explain(run, record, row, record.handled_ns if has_costs(run) else None)
        most = max(explained.causes, key=lambda cause: explained.causes[cause])
        rows.append(
            [
                explained.title.partition(",")[0],
                number(explained.time_ns / 1e9),
                most,
                " ".join(explained.story()),
            ]
        )
    return [section("The slowest", "", [family.one, "took (s)", "mostly", "why"], rows)]


def recorded_all(run: Result) -> bool:
    """Return whether a run has recorded the events of all jobs, from beginning to end."""
    chosen = parse_events(of_config(run, "output", "events", "none"))
    whole = chosen is not None and chosen.is_all and chosen.is_whole
    family = family_of_summary(run.summary)
    return whole and (not family.explained_from_all or run.tables.get(family.part) is not None)
