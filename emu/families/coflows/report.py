"""Report sections on runs of coflows: tables of completion times, speed-ups, learning and jobs; facts of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence

from emu.families.coflows.comparison import (
    CoordinatorRow,
    JobRow,
    LearningRow,
    compare_coflows,
    compare_coordinators,
    compare_job_times,
    compare_learning,
)
from emu.families.coflows.deadlines import (
    EXPLAINED,
    GAINS_HEAD,
    DeadlineRow,
    GainRow,
    compare_deadlines,
    compare_gains,
    deadline_cells,
    deadline_head,
    gain_cells,
    gains_caption,
    missed_by_reason,
)
from emu.families.coflows.metrics import GROUPS
from emu.families.coflows.terminal_text import (
    COORDINATOR_EXPLAINED,
    LEARNING_EXPLAINED,
    SPEEDUP_LABELS,
    coordinator_cells,
    coordinator_head,
    facts_of,
    jobs_caption,
    learning_cells,
    learning_head,
    rows_title,
)
from emu.report.page import paragraph, section, sentence
from emu.report.report_sections import behind_note, factors_section, waits_section
from emu.results.metrics import STATISTICS
from emu.results.paired_comparison import best_of, shares_caption, tolerance_of
from emu.results.result import Result, Runs
from emu.results.text_tables import number, percent, ratio
from workloads.units import format_duration

SHUFFLE_NOTE = (
    "Each coflow is the shuffle of a job of its own. The share of the job's time that it shuffles is drawn: below 25 % "
    "for 61 % of the jobs, 25 to 50 % for 13 %, 50 to 75 % for 14 %, and more for the rest. It is of the job's time "
    "under the first scheduler, and what the job computes beside is the same under all."
)


def group_section(results: Runs, warmup_s: float) -> list[str]:
    """Return the tables of runs of the same coflows."""
    first = next(iter(results))
    several = len(results) > 1
    clause = (
        f", and as speed-up of {first}: the other's over its own, in the mean and coflow by coflow" * several
    )
    shares = f" {sentence(shares_caption(first, 'coflows', tolerance_of(results)))}." * several
    parts: list[str] = [paragraph(f"Coflow completion time in seconds{clause}.{shares}")]
    rows = compare_coflows(results, warmup_s)
    for group in GROUPS:
        own = [row for row in rows if row.group == group]
        if own:
            parts.append(factors_section(sentence(rows_title(own)), own, several, SPEEDUP_LABELS))
    return [
        *parts,
        *waits_section(rows, "Wait and slowdown"),
        *_deadline_section(compare_deadlines(results)),
        *_gain_section(compare_gains(results), results),
        *_learning_section(compare_learning(results, warmup_s)),
        *_coordinator_section(compare_coordinators(results)),
        *_jobs_section(compare_job_times(results, warmup_s), first),
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


def _most_met(results: Runs, rows: Sequence[DeadlineRow]) -> str:
    """Return which schedulers meet most deadlines: all that differ by no more than chance, or 1 %, from the best."""
    missed = {
        name: [1.0 - run.summary["coflows"].get("acceptance_rate", math.nan) for run in runs]
        for name, runs in results.items()
    }
    best = best_of(missed)
    shown = {row.scheduler: f"{row.scheduler} {percent(*row.met)}" for row in sorted(rows, key=_missed)}
    most, *equal = [name for name in shown if name in best] or [""]
    if not most:
        return f"no difference is shown in the share that is met: {', '.join(shown.values())}"
    same = f"; the same, to within chance or 1 %: {', '.join(shown[name] for name in equal)}" * bool(equal)
    others = [text for name, text in shown.items() if name not in best]
    fewer = f" ({', '.join(others)})" if others else ""
    return f"{most} meets most of them, {shown[most].removeprefix(most).strip()}{same}{fewer}"


def _why_missed(results: Runs) -> list[str]:
    """Return how many deadlines were missed for what reason, of all seeds; nothing where all were met."""
    found = {
        name: [missed_by_reason(run.coflows, run.warmup_s) for run in runs] for name, runs in results.items()
    }
    parts = []
    for name, own in found.items():
        counts = {words: sum(getattr(one, reason) for one in own) for reason, words in _REASONS.items()}
        if any(counts.values()):
            listed = ", ".join(f"{count:,} {words}" for words, count in counts.items() if count)
            parts.append(f"under {name} {listed}")
    if not parts:
        return []
    alone = any(one.alone for own in found.values() for one in own)
    faster = " No scheduler meets what takes too long even alone; a higher fabric.port_speed does." * alone
    return [f"Coflows that missed theirs: {'; '.join(parts)}.{faster}"]


_REASONS = {
    "unended": "rejected or dropped",
    "late": "ended late",
    "alone": "too long even alone",
}


def _missed(row: DeadlineRow) -> float:
    return 1.0 - row.met[0]


def run_facts(run: Result) -> dict[str, str]:
    """Return the facts of one run for its table, as name to text."""
    engine = run.summary["engine"]
    coflows = run.summary["coflows"]
    facts = {f"completion time (s), {s}": number(coflows.get(s)) for s in STATISTICS}
    return (
        facts
        | facts_of(run.summary)
        | {
            "flows": f"{engine['flows']:,}",
            "events": f"{engine['events']:,}",
            "engine time": format_duration(engine["wall_s"]),
            "flows per second of engine time": f"{engine['tasks_per_s']:,.0f}",
        }
    )


def _deadline_section(rows: Sequence[DeadlineRow]) -> list[str]:
    """Return how many deadlines were met; nothing where there are none."""
    if not rows:
        return []
    cells = [(row.scheduler, *deadline_cells(row, rows)) for row in rows]
    words = f"{sentence(EXPLAINED)}."
    return [section("Deadlines", words, ["scheduler", *deadline_head(rows)], cells)]


def _gain_section(rows: Sequence[GainRow], results: Runs) -> list[str]:
    """Return what is gained in deadlines met, replica by replica; nothing where there are no replicas."""
    if not rows:
        return []
    words = f"{sentence(gains_caption(rows, results))}."
    return [section("Gain in deadlines met", words, ["scheduler", *GAINS_HEAD], gain_cells(rows))]


def _learning_section(rows: Sequence[LearningRow]) -> list[str]:
    """Return what learning took; nothing where no scheduler learns."""
    if not rows:
        return []
    cells = [(row.scheduler, *learning_cells(row, rows)) for row in rows]
    words = f"{sentence(LEARNING_EXPLAINED)}."
    return [section("Learning", words, ["scheduler", *learning_head(rows)], cells)]


def _coordinator_section(rows: Sequence[CoordinatorRow]) -> list[str]:
    """Return what coordinators did; nothing where none works in intervals."""
    if not rows:
        return []
    cells = [(row.scheduler, *coordinator_cells(row, rows)) for row in rows]
    words = f"{sentence(COORDINATOR_EXPLAINED)}."
    return [section("Coordinator", words, ["scheduler", *coordinator_head(rows)], cells)]


def _jobs_section(rows: Sequence[JobRow], first: str) -> list[str]:
    """Return what jobs gain; nothing where nothing is compared."""
    if not rows:
        return []
    cells = [(row.scheduler, *(ratio(*pair) for pair in row.speedup.values())) for row in rows]
    faster = {name: {row.scheduler: row.speedup[name.lower()] for row in rows} for name in ("P50", "P90")}
    words = f"{sentence(jobs_caption(first))}. {SHUFFLE_NOTE} {behind_note(first, faster)}".rstrip()
    return [section("Jobs", words, ["scheduler", "P50", "P90"], cells)]
