"""Recording of events: which events a plan asks for, where partitions write them, and which are kept."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from emu.configuration.event_selection import jobs_after, jobs_before, parse_events
from emu.configuration.plan import Plan
from emu.directories.names import CHECKPOINTS
from emu.results.events import batches
from emu.results.result import Result, Summarising
from workloads.errors import InputError, not_written

if TYPE_CHECKING:
    from actors.hosting.outcome import Outcome
    from actors.hosting.recording import Recording

TRACES = "traces"
"""Folder beside the checkpoints, where partitions write events until the run has ended."""
NS = 1e9


def recording_of(plan: Plan, index: int, out: Path | None) -> Recording | None:
    """Return which events the run of a scheduler records, and in which folder, which is made; None for no events.

    Raise `InputError` for a job that does not exist, for rates of other families than coflows, and if the folder cannot
    be made.
    """
    chosen = parse_events(plan.config["output.events"])
    if chosen is None:
        return None
    if chosen.rates and plan.family.name != "coflows":
        raise InputError(
            f"output.events: rates are those of flows of coflows; this is a run of {plan.family.name}"
        )
    from actors.hosting.cleanup import temporary_folder
    from actors.hosting.recording import Recording
    from actors.kernel.queue import NEVER

    setting = plan.setting(index)
    is_long = setting.scheduler.worlds.is_long(setting)
    jobs = jobs_before(chosen, setting.num_jobs, is_long, plan.seed)
    folder = temporary_folder("events") if out is None else Path(os.path.abspath(out)) / CHECKPOINTS
    try:
        (folder / TRACES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_written(error, folder / TRACES) from None
    first, last = (int(min(seconds * NS, float(NEVER))) for seconds in chosen.span_s)
    kept = None if jobs is None else tuple(jobs.tolist())
    return Recording(folder / TRACES, kept, (first, last), chosen.rates)


def add_events(plan: Plan, index: int, recording: Recording, outcome: Outcome, result: Result) -> None:
    """Give a result the events that were recorded; a temporary folder with them is removed with the result.

    Raise `InputError` if some are missing, because partitions ran on machines that do not see the folder.
    """
    from actors.hosting.cleanup import remove_folder
    from actors.hosting.recorded import check_recorded

    chosen = parse_events(plan.config["output.events"])
    assert chosen is not None
    check_recorded(recording, outcome.recorded)
    setting = plan.setting(index)
    arrival_ns, _ = setting.scheduler.worlds.span_ns(setting)
    took_ns = np.where(outcome.finish_ns < 0, -1, outcome.finish_ns - arrival_ns)
    recorded = None if recording.jobs is None else np.array(recording.jobs)
    kept = jobs_after(chosen, recorded, took_ns)
    result.recorded = lambda: batches(recording, setting, kept)
    if chosen.is_whole:
        plan.family[Summarising].add_waits(plan, result, outcome, result.recorded(), kept)
    if recording.folder.parent.name != CHECKPOINTS:
        weakref.finalize(result, remove_folder, recording.folder.parent)
