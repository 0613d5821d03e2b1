"""Why nodes serve entries of their queues before others that came earlier: priorities, least work, what fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from emu.explaining.causes_text import parameters_of
from emu.explaining.explanation import NS
from emu.families.jobs.job_wait import JobWait
from emu.results.result import Result
from emu.results.text_tables import number
from workloads.arrow import column


def higher_priority(
    case: JobWait, rows: Sequence[dict[str, Any]], later: Sequence[int]
) -> tuple[str, set[int]]:
    """Return how many of the tasks that came later have a higher priority, as text, and the jobs of the others."""
    of, own = case.priority[case.tasks.job[case.rows_ahead()[later]]], int(case.priority[case.job])
    equal = {rows[i]["job"] for i, one in zip(later, of.tolist(), strict=True) if one <= own}
    higher = of[of > own]
    if not higher.size:
        return "", equal
    which = " to ".join(map(str, dict.fromkeys((int(higher.min()), int(higher.max())))))
    have = f"{higher.size:,} {'has' if higher.size == 1 else 'have'}" if equal else "they have"
    return f"{have} a higher priority ({which}; its own {own})", equal


def least_work(case: JobWait, job_ids: set[int]) -> str:
    """Return what the node compared when it served other jobs first, by the notes among the events."""
    e = case.record
    ids = column(case.result.jobs, "job_id")
    here = (e.receiver == case.step.actor) & (e.time_ns > case.begin_ns) & (e.time_ns <= case.end_ns)
    notes = np.flatnonzero(here & e.is_kind("BYPASS", "REORDER"))
    notes = notes[np.isin(ids[e.job[notes]], list(job_ids))]
    if notes.size == 0:
        return ""
    if case.setting is not None and case.setting.resources and case.setting.passing:
        return "they fitted where the entries in front of them did not, or were preferred by the scheduler's order"
    by_crv = int(np.count_nonzero(e.is_kind("REORDER")[notes]))
    if by_crv:
        return f"{by_crv} times one was preferred because of its constraints"
    own, first = (np.sort(e.field(name, notes))[notes.size // 2] for name in ("own_left", "first_left"))
    order = order_of(case.result)
    if order == "lrtf":
        return f"their jobs had fewer tasks left (in the median {own:,}; the first in the queue {first:,})"
    less = "their tasks took less" if order == "sjf" else "their jobs had less work left"
    return f"{less} (in the median {number(own / NS)} s; the first in the queue {number(first / NS)} s)"


def order_of(result: Result) -> str:
    """Return the parameter `order`, by which nodes serve their queues.

    `srjf` (the default) compares the work left of jobs, `sjf` estimates of tasks, `lrtf` the tasks left of jobs.
    """
    return str(parameters_of(result).get("order", "srjf"))
