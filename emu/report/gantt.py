"""Gantt charts of runs that have recorded their tasks, or flows: of machines, of one job, and its tasks over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu import disk
from emu.families.registry import find_family
from emu.report.drawing import (
    COLOURS,
    SIZE,
    add_legend,
    figure_style,
    line_look,
    new_figure,
    place_of,
    plain_label,
)
from emu.report.scales import plain_ticks
from emu.results.metrics import BoolArray, Float64Array
from emu.results.result import ATTEMPTS, ENDED_EARLY, Result, Runs
from emu.results.slot_numbers import slot_numbers
from workloads.arrow import optional_column
from workloads.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MACHINES, MOST_MACHINES = 6, 12
"""Machines of a chart by default, and up to how many a chart grows in height."""
MOST_SHAPES = 4000
"""Tasks of a chart up to which bars are vector shapes; more are an image in vector files."""
MOST_ROWS = 100
"""Tasks of a job without stages up to which its chart grows in height."""
STRIDE = 1.1
"""Distance from one machine to the next, whose bars are 1 high."""
EARLY, HATCH = "#666666", "/////"
"""Colour of the hatches of attempts that came to nothing, and their pattern."""
EARLY_ALPHA = 0.3
"""Of the colour of their job."""
FETCHES, FETCH_COLOUR, FETCH_HATCH = "fetches input", "#ffffffa0", "....."
"""Over the part of a bar in which a task has a machine, and its input is on its way."""
Int64Array = npt.NDArray[np.int64]


class Parts(NamedTuple):
    """The tasks, or flows, of a run that ended, and attempts at tasks that came to nothing: arrays of one length.

    Attributes
    ----------
    start, finish : ndarray of float64
        Seconds.
    node, head, row : ndarray of int64
        The node, or ingress port; the id of the job, or coflow; the row in the chart of its job: its stage, or in jobs
        without stages its number.
    early : ndarray of bool
        Whether it is an attempt that came to nothing.
    fetched : ndarray of float64
        When a task had its input, s; `start` where it fetched none over a network, or that is not known.
    """

    start: Float64Array
    finish: Float64Array
    node: Int64Array
    head: Int64Array
    row: Int64Array
    early: BoolArray
    fetched: Float64Array


def machines_figure(run: Result, nodes: Sequence[int] | None = None) -> Figure:
    """Return the tasks of machines over time, in the slots of each machine, with a colour for each job.

    Parameters
    ----------
    run : Result
        With tasks, or flows (``output.tasks``), which are shown at their ingress port.
    nodes : sequence of int, optional
        By default the `MACHINES` that ran most.

    Raises
    ------
    InputError
        The run has no tasks, or not these machines.
    """
    parts, what = parts_of(run), find_family(run.family).node
    count, which = int(run.summary["nodes"]), ""
    if nodes is None:
        nodes, which = _busiest(parts, count), ", those that ran most"
    if wrong := [n for n in nodes if not 0 <= n < count]:
        raise InputError(f"nodes: the run has no {what} {wrong[0]}; it has 0 to {count - 1}")
    chosen = np.flatnonzero(np.isin(parts.node, nodes))
    chosen = chosen[np.argsort(parts.start[chosen], kind="stable")]
    places, heights = np.empty(chosen.size), np.empty(chosen.size)
    for at, machine in enumerate(nodes):
        own = np.flatnonzero(parts.node[chosen] == machine)
        slot = slot_numbers(parts.node[chosen[own]], parts.start[chosen[own]], parts.finish[chosen[own]])
        heights[own] = 1 / max(int(slot.max(initial=0)) + 1, 1)
        places[own] = STRIDE * at + slot * heights[own]
    with figure_style():
        figure, axes = new_figure(SIZE[0], 0.8 + 0.7 * min(len(nodes), MOST_MACHINES))
        start, finish, early = parts.start[chosen], parts.finish[chosen], parts.early[chosen]
        colours = _colours(parts.head[chosen])
        _add_bars(axes, places[~early], heights[~early], start[~early], finish[~early], colours[~early])
        if text := _early_text(parts, chosen):
            pale = colours[early] * (1.0, 1.0, 1.0, EARLY_ALPHA)
            _add_bars(axes, places[early], heights[early], start[early], finish[early], pale, text, HATCH)
        _add_fetches(axes, places, heights, start, parts.fetched[chosen], FETCH_COLOUR)
        add_legend(figure, axes)
        axes.set_yticks(STRIDE * np.arange(len(nodes)) + 0.5, [f"{what} {n}" for n in nodes])
        axes.set_ylim(STRIDE * len(nodes), 1.0 - STRIDE)
        axes.xaxis.set_major_formatter(plain_ticks())
        axes.set_xlim(0.0, 1.02 * float(finish.max(initial=1e-9)))
        axes.grid(visible=False, axis="y")
        if len(nodes) < count:
            axes.set_ylabel(f"{len(nodes)} of {count:,} {what}s{which}")
        axes.set_xlabel(f"virtual time (s){_left_out(run, parts)}")
        return figure


def job_figure(run: Result, job_id: int) -> Figure:
    """Return the tasks of one job over time since its arrival.

    A job with stages has a row for each stage, darker where more tasks run; another job has a row for each task, the
    last to end first, with a light bar while it waits. Attempts that came to nothing are hatched.

    Raises
    ------
    InputError
        The run has no tasks, or not this job.
    """
    from matplotlib.ticker import MaxNLocator

    parts = _of_job(run, job_id)
    by_stage = "stage" in _table_of(run).column_names
    number = parts.row if by_stage else _last_first(parts)
    count = int(number.max()) + 1
    with figure_style():
        figure, axes = new_figure(SIZE[0], 1.0 + (0.22 * count if by_stage else 0.08 * min(count, MOST_ROWS)))
        rows, early = number - 0.4, parts.early
        if by_stage:
            _draw_stages(axes, parts)
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        else:
            low, start = rows[~early], parts.start[~early]
            _add_bars(axes, low, 0.8, np.zeros(low.size), start, "#cccccc", "waits")
            _add_bars(axes, low, 0.8, start, parts.finish[~early], COLOURS[0], "runs")
            axes.set_yticks([])
        if early.any():
            begin, end, pale = parts.start[early], parts.finish[early], "#eeeeee" + "80" * by_stage
            _add_bars(axes, rows[early], 0.8, begin, end, pale, _early_text(parts), HATCH)
        # Tasks of a stage lie on each other: those that compute meanwhile show through.
        _add_fetches(axes, rows, np.full(rows.size, 0.8), parts.start, parts.fetched, "#ffffff00")
        add_legend(figure, axes)
        axes.xaxis.set_major_formatter(plain_ticks())
        axes.set_xlim(0.0, float(parts.finish.max()) * 1.02)
        axes.set_ylim(count - 0.4, -0.6)
        family = find_family(run.family)
        axes.set_ylabel("stage" if by_stage else f"{count:,} {family.part}, the last to end first")
        axes.set_xlabel(f"time since {family.one} {job_id} arrived (s){_left_out(run, parts, job_id)}")
        return figure


def _draw_stages(axes: Any, parts: Parts) -> None:
    """Draw a row of bars for each stage."""
    for number in range(int(parts.row.max()) + 1):
        own = np.flatnonzero((parts.row == number) & ~parts.early)
        colour = (COLOURS[number % len(COLOURS)], max(1.0 / max(own.size, 1), 0.05))
        _add_bars(axes, np.full(own.size, number - 0.4), 0.8, parts.start[own], parts.finish[own], colour)


def _busiest(parts: Parts, count: int) -> list[int]:
    """Return the `MACHINES` of so many that ran most, in order."""
    busy = np.bincount(parts.node, parts.finish - parts.start, minlength=count)
    return [int(node) for node in np.sort(np.argsort(-busy, kind="stable")[:MACHINES])]


def _last_first(parts: Parts) -> Int64Array:
    """Return a row for each of the parts of a job: tasks have one each, the last to end the first."""
    tasks, task = np.unique(parts.row, return_inverse=True)
    last_s, place = np.zeros(tasks.size), np.empty(tasks.size, np.int64)
    np.maximum.at(last_s, task, parts.finish)
    place[np.argsort(-last_s, kind="stable")] = np.arange(tasks.size)
    return place[task]


def _early_text(parts: Parts, chosen: Any = slice(None)) -> str:
    """Return how many attempts of those chosen came to nothing, and of how many that is."""
    count, total = int(parts.early[chosen].sum()), int(parts.early.sum())
    of_all = f", of {total:,} in the run" if count < total else ""
    return f"{count:,} attempt{'s' * (count != 1)} that came to nothing{of_all}" if total else ""


def early_clause(run: Result, job_id: int | None = None) -> str:
    """Return what the caption of a chart, of a job or of the machines that ran most, says about such attempts."""
    parts = parts_of(run) if job_id is None else _of_job(run, job_id)
    chosen = (
        np.isin(parts.node, _busiest(parts, int(run.summary["nodes"]))) if job_id is None else slice(None)
    )
    text = _early_text(parts, chosen)
    return f"; hatched: {text}" if text else ""


def _add_bars(
    axes: Any,
    low: Any,
    height: Any,
    start: Float64Array,
    finish: Float64Array,
    colours: Any,
    label: str = "",
    hatch: str | None = None,
) -> None:
    """Draw a bar for each task, as one collection; as an image where there are many."""
    from matplotlib.collections import PolyCollection

    high = low + height
    corners: Any = np.stack([start, low, start, high, finish, high, finish, low], axis=1).reshape(-1, 4, 2)
    bars = PolyCollection(
        corners, facecolors=colours, edgecolors=EARLY, linewidths=0, label=label or None, hatch=hatch
    )
    bars.set_rasterized(len(corners) > MOST_SHAPES)
    axes.add_collection(bars, autolim=False)


def _add_fetches(
    axes: Any,
    low: Any,
    height: Any,
    start: Float64Array,
    fetched: Float64Array,
    colour: str,
) -> None:
    """Draw over the bars of tasks for how long they fetched their input."""
    which = np.flatnonzero(fetched > start)
    if which.size:
        begin, end = start[which], fetched[which]
        _add_bars(axes, low[which], height[which], begin, end, colour, FETCHES, FETCH_HATCH)


def _left_out(run: Result, parts: Parts, job_id: int | None = None) -> str:
    """Return what of a job, or of all, has no bar: tasks that did not end, and attempts that are not known."""
    family = find_family(run.family)
    heads = optional_column(_table_of(run), f"{family.one}_id")
    of_all = heads.size if job_id is None else int((heads == job_id).sum())
    count = of_all - int((~parts.early).sum())
    text = f"; {count:,} {family.part} that did not end are left out" if count else ""
    known = ATTEMPTS not in family.tables or not ENDED_EARLY & run.counters.keys()
    if not known and _find_table(run, ATTEMPTS) is None:
        text += f"; attempts that came to nothing are left out: no {ATTEMPTS}.parquet"
    return text


def running_figure(results: Runs, job_id: int) -> Figure:
    """Return how many tasks of a job run over time since its arrival, under each scheduler (first seed).

    Raises
    ------
    InputError
        A run has no tasks, or not this job.
    """
    from matplotlib.ticker import MaxNLocator

    with figure_style():
        figure, axes = new_figure(SIZE[0], 3.2)
        for name, runs in results.items():
            parts = _of_job(runs[0], job_id)
            times = np.concatenate([parts.start, parts.finish])
            order = np.argsort(times, kind="stable")
            running = np.cumsum(np.repeat([1, -1], parts.start.size)[order])
            axes.plot(
                times[order],
                running,
                drawstyle="steps-post",
                label=plain_label(name),
                **line_look(place_of(name, results)),
            )
        axes.set_ylim(bottom=0.0)
        axes.set_xlim(left=0.0)
        axes.set_xlabel(f"time since job {job_id} arrived (s)")
        axes.set_ylabel("running tasks")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        add_legend(figure, axes)
        return figure


def shown_job(results: Runs) -> int:
    """Return the job that figures show: with most stages of those of about median length under the first scheduler."""
    jobs = next(iter(results.values()))[0].jobs
    jct, stages = optional_column(jobs, "jct_s"), optional_column(jobs, "num_stages")
    middle = np.abs(jct - np.nanmedian(jct)) <= np.nanquantile(np.abs(jct - np.nanmedian(jct)), 0.25)
    return int(optional_column(jobs, "job_id")[np.argmax(np.where(middle, stages, -1))])


def has_tasks(run: Result) -> bool:
    """Return whether a run has recorded its tasks; in comparisons they are only on the disk."""
    name = find_family(run.family).part
    return run.tables.get(name) is not None or _file_of(run, name) is not None


def parts_of(run: Result) -> Parts:
    """Return the tasks, or flows, of a run that ended, and then the attempts that came to nothing.

    Raises
    ------
    InputError
        It has none.
    """
    table, family = _table_of(run), find_family(run.family)
    node = "node" if "node" in table.column_names else "ingress"
    row = "stage" if "stage" in table.column_names else table.column_names[1]
    columns = [
        optional_column(table, name) for name in ("start_s", "finish_s", node, f"{family.one}_id", row)
    ]
    columns.append(columns[0])
    if "fetched_s" in table.column_names:
        fetched = optional_column(table, "fetched_s")
        columns[-1] = np.where(np.isnan(fetched), columns[0], fetched)
    ended = np.isfinite(columns[1])
    columns = [column[ended] for column in columns]
    early = np.zeros(columns[0].size, np.bool_)
    if (attempts := _find_table(run, ATTEMPTS)) is not None:
        names = ("start_s", "end_s", "node", "job_id", row, "start_s")
        further = [optional_column(attempts, name) for name in names]
        columns = [np.concatenate(pair) for pair in zip(columns, further, strict=True)]
        early = np.append(early, np.ones(attempts.num_rows, np.bool_))
    start, finish = columns[:2]
    machine, head, place = (column.astype(np.int64) for column in columns[2:5])
    return Parts(start, finish, machine, head, place, early, columns[5])


def _table_of(run: Result) -> pa.Table:
    """Return the table of tasks, or flows."""
    name = find_family(run.family).part
    if (table := _find_table(run, name)) is None:
        raise InputError(f"the run has no {name}; run it with output.tasks", file=run.path)
    return table


def _find_table(run: Result, name: str) -> pa.Table | None:
    """Return a table of a run, which may be only on the disk; None where the run does not have it."""
    if (table := run.tables.get(name)) is not None:
        return table
    file = _file_of(run, name)
    return None if file is None else disk.read_table(file)


def _file_of(run: Result, name: str) -> Path | None:
    """Return the file of a table of a run, if there is one."""
    file = None if run.path is None else run.path / f"{name}.parquet"
    return file if file is not None and file.exists() else None


def _of_job(run: Result, job_id: int) -> Parts:
    """Return the tasks of a job, times since its arrival."""
    parts, family = parts_of(run), find_family(run.family)
    own = parts.head == job_id
    if not own.any():
        raise InputError(f"{family.one} {job_id} has no {family.part} in the run", file=run.path)
    ids = optional_column(run.heads, f"{family.one}_id")
    arrival = float(optional_column(run.heads, family.arrival)[ids == job_id][0])
    parts = Parts(*(of_all[own] for of_all in parts))
    return parts._replace(
        start=parts.start - arrival, finish=parts.finish - arrival, fetched=parts.fetched - arrival
    )


def _colours(heads: Int64Array) -> Any:
    """Return the colour of each job."""
    from matplotlib.colors import to_rgba_array

    return to_rgba_array(COLOURS)[heads % len(COLOURS)]
