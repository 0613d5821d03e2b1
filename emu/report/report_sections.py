"""Report sections that all families share: reasons, waits and slowdown, measurements of a live run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from emu.report.page import Cell, paragraph, section, sentence
from emu.results.comparison_row import SHARES, Pair, Row
from emu.results.measures import DEFAULT, Measure
from emu.results.reasons import EXPLAINED, reason_rows
from emu.results.text_tables import TIMES, number, percent, ratio, with_error
from workloads.hints import in_words
from workloads.units import format_duration

BEST_EXPLAINED = {
    False: "Bold is the best, and what is within 1 % of it: one seed does not show random variation.",
    True: "Bold is the best, and what differs from it by no more than chance: the 95 % intervals of differences and of "
    "ratios, seed by seed, reach what is called equal (where seeds make no difference: what is within 1 %).",
}
"""The explanation of bold figures, by whether there are several seeds."""
WAITS = tuple(
    Measure(metric, statistic)
    for metric, statistics in (
        ("wait", ("mean", "p50", "p99")),
        ("slowdown", ("p50", "p99")),
        ("bounded_slowdown", ("mean", "p99")),
    )
    for statistic in statistics
)
"""The metrics shown for each group beside completion times."""


def figure_cell(row: Row, measure: Measure, several: bool) -> str | Cell:
    """Return a cell with a figure; where there are several schedulers, those that are the best stand out."""
    shown = with_error(*row.figures[measure.name])
    return Cell(shown, "best") if several and measure.name in row.best else shown


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


def factors_section(title: str, rows: Sequence[Row], several: bool, labels: Mapping[str, str]) -> str:
    """Return completion times, and factors of the first scheduler by their labels, of one group."""
    cells = []
    for row in rows:
        line = [row.scheduler, *(figure_cell(row, m, several) for m in DEFAULT)]
        if several:
            line += [*(Cell(ratio(*row.speedup[name]), "ratio") for name in labels), *shares_of(row)]
        cells.append(line)
    more = [*labels.values(), *SHARES] if several else []
    faster = {label: {row.scheduler: row.speedup[name] for row in rows[1:]} for name, label in labels.items()}
    words = behind_note(rows[0].scheduler, faster) if several else ""
    return section(title, words, ["scheduler", *(m.name for m in DEFAULT), *more], cells)


def shares_of(row: Row) -> list[str]:
    """Return the cells of what became better, equal and worse."""
    return [percent(*row.shares[name]) for name in SHARES]


def waits_section(rows: Sequence[Row], title: str) -> list[str]:
    """Return waits and slowdowns of one or more groups; nothing where there are none."""
    shown = [m for m in WAITS if any(m.name in row.figures for row in rows)]
    if not rows or not shown:
        return []
    several = len({row.scheduler for row in rows}) > 1
    cells = [[row.scheduler, row.group, *(figure_cell(row, m, several) for m in shown)] for row in rows]
    explained = (
        "Seconds until the first task, or flow, starts; slowdown is completion time over what it is alone."
    )
    if any(m.metric == "bounded_slowdown" for m in shown):
        explained += " Bounded slowdown takes jobs below a threshold (by default 10 s) as long as that."
    head = [f"{m.metric.removesuffix('_slowdown')} {m.statistic}" for m in shown]
    return [section(title, explained, ["scheduler", "of", *head], cells)]


def reasons_section(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what jobs and messages waited for, and how busy schedulers and nodes were, a column a scheduler."""
    rows = reason_rows(summaries)
    if not rows:
        return []
    return [
        section("Reasons", f"{sentence(EXPLAINED)}.", ["reason", *(s["scheduler"] for s in summaries)], rows)
    ]


def run_reasons(summary: Mapping[str, Any]) -> list[str]:
    """Return the same of one run, and whether a live run kept up."""
    rows = reason_rows([summary])
    live = summary.get("live", {})
    parts: list[str] = [paragraph(f"{sentence(live['verdict'])}.")] if "verdict" in live else []
    if rows:
        parts.append(section("", f"{sentence(EXPLAINED)}:", ["reason", "value"], rows))
    return [*parts, *_live_tables(live)]


def _live_tables(live: Mapping[str, Any]) -> list[str]:
    """Return what a live run measured of the machine; nothing of another run."""
    if "lateness" not in live:
        return []
    spreads = {f"lateness of {who}": spread for who, spread in live["lateness"].items()}
    spreads["message latency"] = live.get("message_latency", {})
    quantiles = ("p50", "p90", "p99", "max")
    rows = [[name, *(format_duration(s[q]) for q in quantiles)] for name, s in spreads.items() if s]
    facts = {
        "dilation": number(live["dilation"]),
        "CPU of the busiest scheduler": percent(live["scheduler_cpu"]["busiest"]),
        "events due and not handled, most": number(live["backlog"]["max"]),
        "calls between partitions, a second": number(live["calls_per_s"]),
    }
    return [
        section("", "What the clock live measured, in emulated time:", ["measured", *quantiles], rows),
        section("", "", ["figure", "value"], facts.items()),
    ]
