"""Report sections that all families share: reasons, waits and slowdown, measurements of a live run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from emu.report.page import Cell, paragraph, section, sentence
from emu.results.comparison_row import SHARES, Row
from emu.results.measures import DEFAULT, Measure
from emu.results.paired_comparison import behind_note, shares_caption, tolerance_of
from emu.results.reasons import EXPLAINED, reason_rows
from emu.results.result import Runs
from emu.results.text_tables import Table, number, percent, ratio, with_error
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
    """Return a cell with a figure; of several schedulers, the best ones are bold."""
    shown = with_error(*row.figures[measure.name])
    return Cell(shown, "best") if several and measure.name in row.best else shown


def table_section(table: Table) -> Markup:
    """Return a table of a comparison."""
    return section(table.title, f"{sentence(table.caption)}. {table.note}".rstrip(), table.head, table.rows)


def sections_by_group(
    results: Runs,
    rows: Sequence[Row],
    words: str,
    heads: str,
    titles: Mapping[str, Callable[[Sequence[Row]], str]],
    make: Callable[[str, Sequence[Row]], str],
) -> list[str]:
    """Return what the tables of a comparison show, and a table for each group that has rows.

    Parameters
    ----------
    words : str
        The beginning of the paragraph before the tables.
    heads : str
        What is compared: ``jobs`` or ``coflows``.
    titles : mapping
        Each group, in order, to the function that gives the title of its rows.
    make : callable
        From a title and the rows of a group to the table.
    """
    shares = f" {sentence(shares_caption(next(iter(results)), heads, tolerance_of(results)))}."
    parts: list[str] = [paragraph(f"{words}.{shares * (len(results) > 1)}")]
    for group, title in titles.items():
        if own := [row for row in rows if row.group == group]:
            parts.append(make(sentence(title(own)), own))
    return parts


def factors_section(title: str, rows: Sequence[Row], labels: Mapping[str, str]) -> str:
    """Return completion times, and factors of the first scheduler by their labels, of one group."""
    cells, several = [], len(rows) > 1
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
    """Return the cells of the shares that became better, equal and worse."""
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


def run_reasons(summary: Mapping[str, Any]) -> list[str]:
    """Return what jobs and messages of a run waited for, how busy it was, and whether a live run kept up."""
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
        "batches of messages between partitions, a second": number(live["batches_per_s"]),
    }
    return [
        section("", "What the clock live measured, in emulated time:", ["measured", *quantiles], rows),
        section("", "", ["figure", "value"], facts.items()),
    ]
