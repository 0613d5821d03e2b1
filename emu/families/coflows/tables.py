"""What tables and pages say of runs of coflows: groups, facts, learning, coordinators, deadlines, jobs that shuffle.

A ratio is a figure of another scheduler over that of the first: the speed-up of the first, as papers report it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from emu.families.coflows.deadlines import compare_gains, deadline_tables, gain_tables
from emu.families.coflows.metrics import BINS, GROUPS, LATE_SHARE, job_times, shuffle_shares, was_learned
from emu.results.comparison_tables import FactTable, Given, behind_note, mean_of, waits_table
from emu.results.measures import PAGE, Fact, Pair, Row, engine_facts
from emu.results.metrics import STATISTICS, Float64Array
from emu.results.paired_comparison import Factors, percentiles_over_seeds, quotients, times_of
from emu.results.result import Result, Runs, counted
from emu.results.text_tables import TIMES, Table, number, ratio
from workloads.arrow import optional_column

FACTORS = Factors(
    "speed-up",
    {"average": "average", "p50": "P50", "p90": "P90"},
    ", in the mean and coflow by coflow",
)
SHUFFLE_NOTE = (
    "Each coflow is the shuffle of a job of its own. The share of the job's time that it shuffles is drawn: below 25 % "
    "for 61 % of the jobs, 25 to 50 % for 13 %, 50 to 75 % for 14 %, and more for the rest. It is of the job's time "
    "under the first scheduler, and what the job computes beside is the same under all."
)


def _statistic(name: str) -> Fact:
    return Fact(f"completion time (s), {name}", "coflows", lambda part: number(part.get(name)), PAGE)


FACTS = (
    *map(_statistic, STATISTICS),
    Fact("makespan", "coflows.makespan_s", "duration"),
    Fact("deadlines met", "coflows.acceptance_rate", ".1%"),
    Fact("deadlines met by weight", "coflows.weighted_acceptance_rate", ".1%"),
    Fact("admitted and late", "coflows.prediction_error", ".1%"),
    Fact("bytes of late and dropped coflows", "coflows.wasted.share", ".1%"),
    Fact("CPU time of a decision, median", "decisions.p50", "duration"),
    Fact("99th percentile", "decisions.p99", "duration"),
    Fact("time to learn, median share", "coflows.learning.cct_share.p50", ".1%"),
    Fact("error of sizes, mean", "coflows.estimates.mean", ".1%"),
    Fact("intervals missed", "coordinator.missed", ".1%"),
    Fact("without rates", "coordinator.without_rates", ".1%"),
    Fact("coflows that did not finish", "coflows.unfinished", ",.0f"),
    *engine_facts("flows"),
)
WAITS = tuple(Fact(f"wait of coflows, {s} (s)", f"coflows.wait.{s}") for s in ("p50", "p99"))
COORDINATORS = FactTable(
    "Coordinator",
    "the coordinator, in a scheduling interval",
    (
        Fact("missed", "coordinator.missed", "share"),
        Fact("without rates", "coordinator.without_rates", "share"),
        Fact("agents heard", "coordinator.agents_heard"),
        Fact("updates", "coordinator.updates"),
        Fact("decisions", "coordinator.decisions"),
        Fact("schedules sent", "coordinator.schedules"),
        Fact(
            "work (ms)",
            lambda summary: None if (s := summary["coordinator"].get("work_s")) is None else 1e3 * s,
        ),
    ),
    needs="coordinator",
    optional={"work (ms)"},
)


def rows_title(rows: Sequence[Row]) -> str:
    """Return the title of the rows of a group, with the number of coflows and of replicas left out."""
    counts, few = [row.count for row in rows], rows[0].left_out
    low, high = number(min(counts)), number(max(counts))
    count = low if low == high else f"{low} to {high}, by scheduler"
    clause = f"; without {few:,} replica{'s'[: few != 1]} in which a scheduler finished none" if few else ""
    return f"{group_title(rows[0].group)} ({count}{clause})"


def group_title(group: str) -> str:
    """Return the name of a group of coflows in tables."""
    return f"{group}, {BINS[group]}" if group in BINS else "all coflows"


NAMES = {group: group_title(group) for group in GROUPS}


def further_tables(results: Runs, rows: Sequence[Row], warmup_s: float) -> Iterator[Table]:
    """Yield the tables of a comparison besides those of completion times."""
    yield from waits_table(rows, "Wait and slowdown")
    yield from deadline_tables(results)
    yield from gain_tables(compare_gains(results), results)
    yield from learning_tables(results, warmup_s)
    yield from COORDINATORS.tables(results)
    yield from job_tables(compare_job_times(results, warmup_s), next(iter(results)))


def learning(results: Runs, warmup_s: float) -> FactTable:
    """Return the table of what learning of sizes costs, and how right it is.

    Of the coflows that had to be learned: how many there are, percentiles of the share of the completion time, the
    share that was learned late, the median share of the bytes, medians, coflow by coflow, of time and bytes over those
    under the first scheduler that learns, and of estimated sizes the mean and the deviation of the relative error.
    """
    learners = {
        name: runs for name, runs in results.items() if all("learning" in r.summary["coflows"] for r in runs)
    }
    several = len(learners) > 1
    return FactTable(
        "Learning",
        "learning, of the coflows that were not known when they arrived, as share of completion time and bytes",
        (
            Fact("coflows", lambda summary: summary["coflows"]["learning"]["count"], "count"),
            Fact("time p50", "coflows.learning.cct_share.p50", "share"),
            Fact("time p90", "coflows.learning.cct_share.p90", "share"),
            Fact(f"above {LATE_SHARE:.0%}", "coflows.learning.late", "share"),
            Fact("bytes p50", "coflows.learning.bytes_share.p50", "share"),
            *(
                Given(f"{what} {TIMES} P50", _median_ratios(learners, column, warmup_s))
                for what, column in (("time", "learned_s"), ("bytes", "learned_bytes"))
                if several
            ),
            Fact("size error mean", "coflows.estimates.mean", "share"),
            Fact("std", "coflows.estimates.std", "share"),
        ),
        needs="coflows.learning",
        optional=("size error mean", "std"),
    )


def learning_tables(results: Runs, warmup_s: float) -> list[Table]:
    """Return the table of learning; none where no scheduler learns."""
    return learning(results, warmup_s).tables(results)


def _median_ratios(learners: Runs, column: str, warmup_s: float) -> dict[str, Pair]:
    """Return the median ratio of a learning column to that under the first, of coflows that both had to learn."""
    first, *others = learners
    found = {}
    for name in others:
        medians = []
        for one, other in zip(learners[first], learners[name], strict=True):
            mask = was_learned(one.coflows) & was_learned(other.coflows) & counted(one, "all", warmup_s)
            values = [optional_column(run.coflows, column) for run in (other, one)]
            ratios = quotients(values[0], values[1], mask)
            medians.append(float(np.median(ratios)) if len(ratios) else math.nan)
        found[name] = mean_of(medians)
    return found


def compare_job_times(results: Runs, warmup_s: float) -> dict[str, dict[str, Pair]]:
    """Return the speed-ups of jobs that shuffle by one coflow each, for every scheduler but the first.

    The share of its time that a job shuffles under the first scheduler is drawn with the run's seed (`shuffle_shares`);
    its compute time follows from that, and is the same under all others.
    """
    first, *others = results
    found = {
        name: [job_speedups(a, b, warmup_s) for a, b in zip(results[first], results[name], strict=True)]
        for name in others
    }
    return {
        name: percentiles_over_seeds(own, FACTORS.percentiles)
        for name, own in found.items()
        if all(map(len, own))
    }


def job_speedups(first: Result, other: Result, warmup_s: float) -> Float64Array:
    """Return completion times of jobs under another scheduler over those under the first (see `compare_job_times`)."""
    base_s, cct_s = times_of(first), times_of(other)
    share = shuffle_shares(len(base_s), first.summary["seed"])
    under, under_first = (job_times(base_s, own_s, share) for own_s in (cct_s, base_s))
    return quotients(under, under_first, counted(first, "all", warmup_s))


def job_tables(speedups: Mapping[str, Mapping[str, Pair]], first: str) -> list[Table]:
    """Return the table of the speed-ups of jobs, from `compare_job_times`; none where nothing is compared."""
    if not speedups:
        return []
    rows = [[name, *(ratio(*pair) for pair in own.values())] for name, own in speedups.items()]
    faster = {label: {name: own[label.lower()] for name, own in speedups.items()} for label in ("P50", "P90")}
    caption = f"jobs that compute too, and shuffle for a drawn share of their time: speed-up of {first}"
    note = f"{SHUFFLE_NOTE} {behind_note(first, faster)}".rstrip()
    return [Table("Jobs", caption, ["scheduler", "P50", "P90"], rows, note)]
