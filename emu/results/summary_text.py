"""The summary of a run as text for a terminal: what those of all families have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from emu.configuration.seeds import summary_alike, summary_head
from emu.results.bottlenecks import BOTTLENECKS
from emu.results.measures import Measure
from emu.results.text_tables import align, counter_texts, statistics_cells
from workloads.units import format_duration

Part = Mapping[str, Any]


def summary_text(
    summary: Part,
    heads: str,
    title: str,
    groups: Mapping[str, str],
    part_of: Callable[[Part, str], Part],
    columns: Sequence[Measure],
    facts: Sequence[str],
    more: Iterable[str] = (),
) -> str:
    """Return the summary of a run, or of the runs of several seeds, as text.

    Parameters
    ----------
    summary : mapping
    heads : str
        The part of the summary with the figures, ``jobs`` or ``coflows``.
    title : str
        Of the table of figures.
    groups : mapping
        The groups in it, in order, to what each is called there; those without figures are left out.
    part_of : callable
        From that part of the summary and a group to its figures.
    columns : sequence of Measure
    facts : sequence of str
        The line below the tables.
    more : iterable of str
        Lines behind the table: other tables.
    """
    figures, intervals = summary[heads], summary.get("confidence_95", {}).get(heads, {})
    rows = [[title, heads, *(m.name for m in columns)]]
    for group, name in groups.items():
        if part := part_of(figures, group):
            rows.append([f"  {name}", *statistics_cells(part, part_of(intervals, group), columns)])
    lines = [summary_head(summary), "", *align(rows), *more]
    lines += ["", ", ".join(facts)] if facts else []
    return "\n".join([*lines, *_run_lines(summary)]) + "\n" + summary_alike(summary)


def _run_lines(summary: Part) -> list[str]:
    """Return the lines about a run itself: its size and speed, decision latency, bottlenecks, counters."""
    engine = summary["engine"]
    parts = "flows" if "coflows" in summary else "tasks"
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


def engine_facts(summary: Part) -> dict[str, str]:
    """Return the size and speed of one run, as name to text."""
    engine = summary["engine"]
    parts = "flows" if "coflows" in summary else "tasks"
    return {
        parts: f"{engine[parts]:,}",
        "events": f"{engine['events']:,}",
        "engine time": format_duration(engine["wall_s"]),
        f"{parts} per second of engine time": f"{engine['tasks_per_s']:,.0f}",
    }
