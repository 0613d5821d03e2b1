"""Report sections on runs of DAG jobs: completion times, factors of improvement, fairness; facts of a run."""

from __future__ import annotations

from emu.families.dags.comparison import GROUPS, compare_dags, compare_efficiency
from emu.families.dags.terminal_text import (
    EFFICIENCY_EXPLAINED,
    FACTOR_LABELS,
    SLOWER_HEAD,
    dag_facts,
    efficiency_cells,
    efficiency_head,
    slower_caption,
    slower_rows,
)
from emu.families.jobs.report import run_facts as facts_of_jobs
from emu.report.page import paragraph, section, sentence
from emu.report.report_sections import factors_section, waits_section
from emu.results.paired_comparison import shares_caption, tolerance_of
from emu.results.result import Result, Runs
from emu.results.text_tables import number


def group_section(results: Runs, warmup_s: float) -> list[str]:
    """Return the tables of runs of the same DAG jobs."""
    first, several = next(iter(results)), len(results) > 1
    clause = f", and as factors of improvement of {first}: the other's over its own" * several
    shares = f" {sentence(shares_caption(first, 'jobs', tolerance_of(results)))}." * several
    parts: list[str] = [paragraph(f"Job completion time in seconds{clause}.{shares}")]
    rows = compare_dags(results, warmup_s)
    for group in GROUPS:
        if own := [row for row in rows if row.group == group]:
            title = f"{group.capitalize()} jobs ({number(own[0].count)})"
            parts.append(factors_section(title, own, several, FACTOR_LABELS))
    efficiency = compare_efficiency(results)
    cells = [[row.scheduler, *efficiency_cells(row, efficiency)] for row in efficiency]
    parts.append(
        section(
            "Efficiency and fairness",
            f"{sentence(EFFICIENCY_EXPLAINED)}.",
            ["scheduler", *efficiency_head(efficiency)],
            cells,
        )
    )
    if several:
        words = (
            f"{sentence(slower_caption(first))}: the share of them, and the smallest factor of improvement."
        )
        parts.append(section("Slower jobs", words, ["than", *SLOWER_HEAD], slower_rows(results, warmup_s)))
    return [*parts, *waits_section(rows, "Wait and slowdown")]


def run_facts(run: Result) -> dict[str, str]:
    """Return the facts of one run of DAG jobs for its table."""
    return {
        **facts_of_jobs(run),
        "stages": f"{run.summary['dags']['stages']:,.0f}",
        **dag_facts(run.summary["dags"]),
    }
