"""Report sections on runs of coflows: tables of completion times, speed-ups, learning and jobs; facts of a run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from functools import partial

from emu.families.coflows.comparison import compare_coflows
from emu.families.coflows.deadlines import TOO_LONG, compare_deadlines, missed_by_reason
from emu.families.coflows.metrics import GROUPS
from emu.families.coflows.terminal_text import SPEEDUP_LABELS, facts_of, more_tables, rows_title
from emu.report.report_sections import factors_section, sections_by_group, table_section, waits_section
from emu.results.comparison_row import Pair
from emu.results.metrics import STATISTICS
from emu.results.paired_comparison import best_of
from emu.results.result import Result, Runs
from emu.results.summary_text import engine_facts
from emu.results.text_tables import number, percent


def group_section(results: Runs, warmup_s: float) -> list[str]:
    """Return the tables of runs of the same coflows."""
    clause = f", and as speed-up of {next(iter(results))}: the other's over its own, in the mean and coflow by coflow"
    words = "Coflow completion time in seconds" + clause * (len(results) > 1)
    rows, make = compare_coflows(results, warmup_s), partial(factors_section, labels=SPEEDUP_LABELS)
    return [
        *sections_by_group(results, rows, words, "coflows", dict.fromkeys(GROUPS, rows_title), make),
        *waits_section(rows, "Wait and slowdown"),
        *map(table_section, more_tables(results, warmup_s)),
    ]


def answers(results: Runs) -> list[str]:
    """Return which scheduler meets most deadlines, where coflows have any."""
    rows = compare_deadlines(results)
    if not rows:
        return []
    found = [f"Deadlines: {_most_met(results, rows)}.", *_why_missed(results)]
    ended = {name: sum(run.summary["coflows"]["count"] for run in runs) for name, runs in results.items()}
    if len(set(ended.values())) > 1:
        counts = ", ".join(f"{count:,} under {name}" for name, count in ended.items())
        found.append(
            f"Completion times are of the coflows that ended, which are not the same ones: {counts}."
        )
    return found


def _most_met(results: Runs, rows: Mapping[str, Mapping[str, Pair]]) -> str:
    """Return which schedulers meet most deadlines: all that differ by no more than chance, or 1 %, from the best."""
    missed = {
        name: [1.0 - run.summary["coflows"].get("acceptance_rate", math.nan) for run in runs]
        for name, runs in results.items()
    }
    best, order = best_of(missed), sorted(rows, key=lambda name: 1.0 - rows[name]["met"][0])
    shown = {name: f"{name} {percent(*rows[name]['met'])}" for name in order}
    most, *equal = [name for name in shown if name in best] or [""]
    if not most:
        return f"no difference is shown in the share that is met: {', '.join(shown.values())}"
    same = f"; the same, to within chance or 1 %: {', '.join(shown[name] for name in equal)}" * bool(equal)
    others = [text for name, text in shown.items() if name not in best]
    fewer = f" ({', '.join(others)})" if others else ""
    return f"{most} meets most of them, {shown[most].removeprefix(most).strip()}{same}{fewer}"


def _why_missed(results: Runs) -> list[str]:
    """Return how many deadlines were missed for what reason, of all seeds; nothing where all were met."""
    parts, too_long = [], 0
    for name, runs in results.items():
        counts: Counter[str] = Counter()
        for run in runs:
            counts.update(missed_by_reason(run.coflows, run.warmup_s))
        too_long += counts[TOO_LONG]
        if counts.total():
            listed = ", ".join(f"{count:,} {reason}" for reason, count in counts.items() if count)
            parts.append(f"under {name} {listed}")
    faster = " No scheduler meets what takes too long even alone; a higher fabric.port_speed does."
    return [f"Coflows that missed theirs: {'; '.join(parts)}.{faster * bool(too_long)}"] if parts else []


def run_facts(run: Result) -> dict[str, str]:
    """Return the facts of one run for its table, as name to text."""
    coflows = run.summary["coflows"]
    facts = {f"completion time (s), {s}": number(coflows.get(s)) for s in STATISTICS}
    return facts | facts_of(run.summary) | engine_facts(run.summary)
