"""Report sections on runs of DAG jobs: completion times, factors of improvement, fairness; facts of a run."""

from __future__ import annotations

from functools import partial

from emu.families.dags.comparison import TITLES, compare_dags
from emu.families.dags.coordinator import coordinator_facts
from emu.families.dags.terminal_text import FACTOR_LABELS, dag_facts, more_tables
from emu.families.jobs.report import run_facts as facts_of_jobs
from emu.report.report_sections import factors_section, sections_by_group, table_section, waits_section
from emu.results.result import Result, Runs


def group_section(results: Runs, warmup_s: float) -> list[str]:
    """Return the tables of runs of the same DAG jobs."""
    clause = f", and as factors of improvement of {next(iter(results))}: the other's over its own"
    words = "Job completion time in seconds" + clause * (len(results) > 1)
    rows, make = compare_dags(results, warmup_s), partial(factors_section, labels=FACTOR_LABELS)
    return [
        *sections_by_group(results, rows, words, "jobs", TITLES, make),
        *map(table_section, more_tables(results, warmup_s)),
        *waits_section(rows, "Wait and slowdown"),
    ]


def run_facts(run: Result) -> dict[str, str]:
    """Return the facts of one run of DAG jobs for its table."""
    return {
        **facts_of_jobs(run),
        "stages": f"{run.summary['dags']['stages']:,.0f}",
        **dag_facts(run.summary["dags"]),
        **coordinator_facts(run.summary),
    }
