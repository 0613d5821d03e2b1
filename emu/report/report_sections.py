"""Report sections that all families share: reasons, waits and slowdown, measurements of a live run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from emu.families.registry import find_family
from emu.report.page import paragraph, section, sentence
from emu.results.comparison_tables import behind_note, by_group, row_cells, row_head, shares_caption
from emu.results.measures import DEFAULT, PAGE, Row
from emu.results.paired_comparison import Comparing, compare, tolerance_of
from emu.results.reasons import EXPLAINED, reason_rows
from emu.results.result import Runs
from emu.results.text_tables import Table, number, percent, times_clause
from workloads.units import format_duration

BEST_EXPLAINED = {
    False: "Bold is the best, and what is within 1 % of it: one seed does not show random variation.",
    True: "Bold is the best, and what differs from it by no more than chance: the 95 % intervals of differences and of "
    "ratios, seed by seed, reach what is called equal (where seeds make no difference: what is within 1 %).",
}
"""The explanation of bold figures, by whether there are several seeds."""


def table_section(table: Table) -> Markup:
    """Return a table of a comparison."""
    return section(table.title, f"{sentence(table.caption)}. {table.note}".rstrip(), table.head, table.rows)


def comparison_sections(results: Runs, warmup_s: float) -> list[str]:
    """Return the tables of runs that are compared: what they show, one for each group that has rows, and the others."""
    first = next(iter(results))
    family = find_family(results[first][0].family)
    how, several = family[Comparing], len(results) > 1
    words = f"{sentence(family.one)} completion time in seconds"
    if how.factors is not None:
        words += (
            f", and as {how.factors.words} of {first}: the other's over its own{how.factors.how}" * several
        )
    else:
        words += times_clause(first) * several
        words += f"; {family.heads} of the first {format_duration(warmup_s)} left out" if warmup_s else ""
    shares = f" {sentence(shares_caption(first, family.heads, tolerance_of(results)))}." * several
    rows = compare(results, warmup_s)
    return [
        paragraph(f"{words}.{shares}"),
        *(_rows_section(how.title(own), own, how) for own in by_group(rows, how)),
        *(table_section(t) for t in how.tables(results, rows, warmup_s) if t.only in ("", PAGE)),
    ]


def _rows_section(title: str, rows: Sequence[Row], how: Comparing) -> Markup:
    """Return the rows of one group of a comparison, and which of the others are faster than the first."""
    first, several = rows[0].scheduler, len(rows) > 1
    words = ""
    if several and how.factors is not None:
        faster = {
            label: {row.scheduler: row.speedup[name] for row in rows[1:]}
            for name, label in how.factors.labels.items()
        }
        words = behind_note(first, faster)
    cells = (row_cells(row, first, how, DEFAULT, several, False) for row in rows)
    return section(sentence(title), words, row_head("scheduler", how, DEFAULT, several, False), cells)


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
