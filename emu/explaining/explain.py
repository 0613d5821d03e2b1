"""`emu.explain` and `emu.causes`: why jobs took as long as they did."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from emu.explaining.causes import Causes, causes_table
from emu.explaining.event_record import Record
from emu.explaining.explained_run import has_costs, keep_plan, of_config, plan_to_run_again, records_all
from emu.families.registry import family_of_summary
from emu.results.result import Result, read_result
from workloads.arrow import column, optional_column
from workloads.errors import InputError

if TYPE_CHECKING:
    from emu.explaining.explanation import Explanation


def explain(run: Result | str | Path, job: int) -> Explanation:
    """Explain why a job, or coflow, took as long as it did.

    Parameters
    ----------
    run : Result or path
        A run, or its directory. Where it has not recorded the events of the job (``output.events``), it is run again.
    job : int
        The ``job_id``, or ``coflow_id``.

    Returns
    -------
    Explanation
        Printed by `print(explanation.render())`; notebooks show it as HTML.

    Raises
    ------
    InputError
        There is no such job, or the run cannot be run again as it was: it is live, or its costs were measured.

    Examples
    --------
    >>> import emu
    >>> result = emu.run("sparrow", "yahoo", 100, workload_options={"jobs": 20}, in_process=True)
    >>> sum(emu.explain(result, 3).causes.values()) == emu.explain(result, 3).time_ns
    True
    """
    result = read_result(run) if isinstance(run, str | Path) else run
    family = family_of_summary(result.summary)
    own = family[Causes]
    row = _row_of(result, family.heads, f"{family.one}_id", job)
    again = with_events_of(result, [row])
    record = Record.of(again.events)
    handled = record.handled_ns if has_costs(result) else None
    if not records_all(again) and (others := own.others(again, record, row, handled)):
        again = with_events_of(result, [row, *others])
        record = Record.of(again.events)
    return own.explain(again, record, row, handled)


def causes(run: Result | str | Path) -> pa.Table:
    """Return the causes of the completion time of every job, in nanoseconds, which add up to it exactly.

    Parameters
    ----------
    run : Result or path
        A run, or its directory. Where it has not recorded all events, it is run again.

    Returns
    -------
    pyarrow.Table
        A row for each job or coflow that ended: its id, and a column ``NAME_ns`` for each cause.

    Raises
    ------
    InputError
        The run cannot be run again as it was.
    """
    result = read_result(run) if isinstance(run, str | Path) else run
    family = family_of_summary(result.summary)
    again = with_events_of(result, None, parts=family[Causes].needs_all)
    return causes_table(again, Record.of(again.events))


def recorded(run: Result | str | Path) -> Result:
    """Return a run with all its events and tasks; it is run again where it has not recorded them.

    Raises
    ------
    InputError
        The run cannot be run again as it was.
    """
    return with_events_of(read_result(run) if isinstance(run, str | Path) else run, None)


def _row_of(result: Result, heads: str, name: str, job: int) -> int:
    ids = column(result.tables[heads], name)
    found = np.flatnonzero(ids == job)
    if found.size == 0:
        known = f"they are {ids.min()} to {ids.max()}" if ids.size else "it has none"
        raise InputError(f"has no {name} {job} in its table of {heads}; {known}", file=result.path)
    return int(found[0])


def with_events_of(result: Result, rows: Sequence[int] | None, parts: bool = True) -> Result:
    """Return the run with the events of some jobs, or of all, and with its tasks if `parts` are wanted."""
    has_parts = any(result.tables.get(name) is not None for name in ("tasks", "flows"))
    if records_all(result) and (has_parts or not parts):
        return result
    if result.summary.get("clock") == "live" or of_config(result, "cost", "model", "none") == "measured":
        raise InputError(
            "its events were not recorded, and a live run, or one with measured costs, cannot be repeated: "
            "run it with output.events=all and output.tasks=true",
            file=result.path,
        )
    from_all = rows is None or has_costs(result) or family_of_summary(result.summary)[Causes].needs_all
    # Tables do not have what ran until a node failed, or evicted it, nor outages.
    from_all |= any(result.counters.get(name) for name in ("node_failures", "evictions"))
    return _again(result, "all" if from_all else f"job={','.join(map(str, rows or ()))}", parts)


def _again(result: Result, events: str, parts: bool) -> Result:
    """Repeat the run of a result, with its events."""
    from emu.running.emulation import execute

    settings = {"output_events": events, "output_tasks": parts, "in_process": True}
    plan = plan_to_run_again(result, settings)
    again = execute(plan, 0)
    before, after = (
        optional_column(one.heads, family_of_summary(result.summary).time) for one in (result, again)
    )
    if not np.array_equal(before, after, equal_nan=True):
        raise InputError("gives other completion times when this version repeats it", file=result.path)
    keep_plan(again, plan)
    return again
