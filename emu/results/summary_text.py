"""The summary of a run as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from emu.configuration.seeds import summary_alike, summary_head
from emu.families.registry import family_of_summary
from emu.results.bottlenecks import BOTTLENECKS
from emu.results.comparison_tables import column_names
from emu.results.measures import DEFAULT, TERMINAL, Measure, facts_of
from emu.results.result import Summarising
from emu.results.text_tables import align, counter_texts, number
from workloads.units import format_duration

Part = Mapping[str, Any]


def render_summary(summary: Part, columns: Sequence[Measure] = DEFAULT) -> str:
    """Return the summary of a run, or of the runs of several seeds, as text; `columns` are those of its table."""
    family = family_of_summary(summary)
    how = family[Summarising]
    figures, intervals = (part.get(family.heads, {}) for part in (summary, summary.get("confidence_95", {})))
    named = {group for group, _ in family.groups(figures)}
    rows = [[how.title or column_names(columns, family.one), family.heads, *(m.name for m in columns)]]
    for group, name in how.names.items():
        if group in named and (part := family.part_of(figures, group)):
            rows.append([f"  {name}", *statistics_cells(part, family.part_of(intervals, group), columns)])
    lines = [summary_head(summary), "", *align(rows)]
    for table in how.tables(figures, intervals):
        lines += ["", *align(table)]
    facts = facts_of(how.facts, summary, TERMINAL)
    lines += ["", ", ".join(f"{name} {text}".strip() for name, text in facts.items())] if facts else []
    return "\n".join([*lines, *_run_lines(summary, family.part)]) + "\n" + summary_alike(summary)


def statistics_cells(part: Part, intervals: Part, columns: Sequence[Measure]) -> list[str]:
    """Return count and figures of one group of jobs, or coflows, as cells."""
    count = number(part["count"])  # a mean over runs need not be an integer
    return [count, *(measure.cell(part, intervals) for measure in columns)]


def _run_lines(summary: Part, parts: str) -> list[str]:
    """Return the lines about a run itself: its size and speed, decision latency, bottlenecks, counters."""
    engine = summary["engine"]
    lines = [
        f"{engine[parts]:,.0f} {parts}, {engine['events']:,.0f} events "
        f"in {format_duration(engine['wall_s'])} ({engine['tasks_per_s']:,.0f} {parts}/s)"
    ]
    if "decision_latency" in summary:
        spread = summary["decision_latency"]["all"]
        shown = ", ".join(f"{name} {format_duration(spread[name])}" for name in ("p50", "p90", "p99", "max"))
        lines.append(f"decision latency: {shown}")
    if "verdict" in summary.get("live", {}):
        lines.append(summary["live"]["verdict"])
    else:
        lines += summary.get(BOTTLENECKS, [])
    if counters := counter_texts(summary.get("counters", {})):
        lines.append(", ".join(f"{name} {value}" for name, value in counters.items()))
    return lines
