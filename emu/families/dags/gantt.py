"""Gantt charts of runs of DAG jobs that have recorded tasks: of machines, of one job, and a job's tasks over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu import disk
from emu.columns import numbers
from emu.report.drawing import COLOURS, add_legend, figure_style, line_look, new_figure, plain_label
from emu.results.paired import Runs
from emu.results.result import Result
from workloads.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TASKS = "tasks.parquet"
MACHINES, MOST_BARS = 6, 4000
"""Machines of a chart by default, and the most tasks that one draws: the rest of the run is cut off."""
Int64Array = npt.NDArray[np.int64]


def machines_figure(run: Result, nodes: Sequence[int] | None = None) -> Figure:
    """Return the tasks of machines over time: a lane for each task that runs at once, a colour for each job.

    Parameters
    ----------
    run : Result
        With tasks (``output.tasks``).
    nodes : sequence of int, optional
        By default the `MACHINES` that ran most.

    Raises
    ------
    InputError
        The run has no tasks, or not these machines.
    """
    start, finish, node, job = _tasks(run)
    count = int(run.summary["nodes"])
    if nodes is None:
        busy = np.bincount(node, finish - start, minlength=count)
        nodes = np.sort(np.argsort(-busy, kind="stable")[:MACHINES]).tolist()
    if wrong := [n for n in nodes if not 0 <= n < count]:
        raise InputError(f"nodes: {wrong[0]} is no machine of the run; it has 0 to {count - 1}")
    chosen = np.flatnonzero(np.isin(node, nodes))
    chosen = chosen[np.argsort(start[chosen], kind="stable")][:MOST_BARS]
    with figure_style():
        figure, axes = new_figure(6.4, 0.8 + 0.7 * len(nodes))
        bottom, ticks = 0.0, []
        for machine in nodes:
            own = chosen[node[chosen] == machine]
            lane = lanes(start[own], finish[own])
            height = max(int(lane.max(initial=0)) + 1, 1)
            places = bottom + lane / height
            colours = [COLOURS[j % len(COLOURS)] for j in job[own].tolist()]
            look = {"color": colours, "linewidth": 0, "align": "edge"}
            axes.barh(places, finish[own] - start[own], 1 / height, start[own], **look)
            ticks.append(bottom + 0.5)
            bottom += 1.1
        axes.set_yticks(ticks, [f"machine {n}" for n in nodes])
        axes.set_ylim(0.0, bottom)
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("virtual time (s)")
        return figure


def job_figure(run: Result, job_id: int) -> Figure:
    """Return the tasks of one job over time since its arrival: a row for each stage, darker where more tasks run.

    Raises
    ------
    InputError
        The run has no tasks, or not this job.
    """
    stage, start, finish = _of_job(run, job_id)
    last = float(finish.max())
    with figure_style():
        count = int(stage.max()) + 1
        figure, axes = new_figure(6.4, 1.0 + 0.22 * count)
        for number in range(count):
            own = stage == number
            bars = min(int(own.sum()), MOST_BARS)
            colour = COLOURS[number % len(COLOURS)]
            order = np.argsort(start[own], kind="stable")[:bars]
            lengths = (finish - start)[own][order]
            alpha = max(1.0 / bars, 0.05)
            axes.barh(
                np.full(bars, number), lengths, 0.8, start[own][order], color=colour, alpha=alpha, linewidth=0
            )
        axes.set_xlim(0.0, last * 1.02)
        axes.set_ylim(-0.6, count - 0.4)
        axes.invert_yaxis()
        axes.set_ylabel("stage")
        axes.set_xlabel(f"time since job {job_id} arrived (s)")
        return figure


def running_figure(results: Runs, job_id: int) -> Figure:
    """Return how many tasks of a job run over time since its arrival, under each scheduler (first seed).

    Raises
    ------
    InputError
        A run has no tasks, or not this job.
    """
    with figure_style():
        figure, axes = new_figure(6.4, 3.2)
        for number, (name, runs) in enumerate(results.items()):
            _, start, finish = _of_job(runs[0], job_id)
            times = np.concatenate([start, finish])
            order = np.argsort(times, kind="stable")
            running = np.cumsum(np.repeat([1, -1], start.size)[order])
            axes.plot(
                times[order], running, drawstyle="steps-post", label=plain_label(name), **line_look(number)
            )
        axes.set_ylim(bottom=0.0)
        axes.set_xlim(left=0.0)
        axes.set_xlabel(f"time since job {job_id} arrived (s)")
        axes.set_ylabel("running tasks")
        add_legend(axes)
        return figure


def shown_job(results: Runs) -> int:
    """Return the job that pictures show: of those of median length under the first scheduler that with most stages."""
    jobs = next(iter(results.values()))[0].jobs
    jct, stages = numbers(jobs, "jct_s"), numbers(jobs, "num_stages")
    middle = np.abs(jct - np.nanmedian(jct)) <= np.nanquantile(np.abs(jct - np.nanmedian(jct)), 0.25)
    return int(numbers(jobs, "job_id")[np.argmax(np.where(middle, stages, -1))])


def lanes(start: npt.NDArray[Any], finish: npt.NDArray[Any]) -> Int64Array:
    """Return a lane for each interval, in order of their starts, such that no two in a lane overlap."""
    found = np.zeros(start.size, np.int64)
    free: list[float] = []
    for i, (begin, end) in enumerate(zip(start.tolist(), finish.tolist(), strict=True)):
        lane = next((k for k, until in enumerate(free) if until <= begin), len(free))
        if lane == len(free):
            free.append(end)
        free[lane] = end
        found[i] = lane
    return found


def has_tasks(run: Result) -> bool:
    """Return whether a run has recorded its tasks; in comparisons they are on the disk alone."""
    return run.tasks is not None or (run.path is not None and (run.path / TASKS).exists())


def tasks_of(run: Result) -> pa.Table:
    """Return the tasks of a run.

    Raises
    ------
    InputError
        It has none.
    """
    if run.tasks is not None:
        return run.tasks
    if run.path is None or not (run.path / TASKS).exists():
        raise InputError("the run has no tasks; run it with output.tasks")
    return disk.read_table(run.path / TASKS)


def _of_job(run: Result, job_id: int) -> tuple[Int64Array, npt.NDArray[Any], npt.NDArray[Any]]:
    """Return stage, start and finish (s, since the job's arrival) of the tasks of a job."""
    start, finish, _, job = _tasks(run)
    own = job == job_id
    if not own.any():
        raise InputError(f"job {job_id} has no tasks in the run")
    jobs = run.jobs
    arrival = float(numbers(jobs, "submit_s")[numbers(jobs, "job_id") == job_id][0])
    return numbers(tasks_of(run), "stage")[own], start[own] - arrival, finish[own] - arrival


def _tasks(run: Result) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Int64Array, Int64Array]:
    """Return start, finish, node and job of all tasks."""
    table = tasks_of(run)
    columns = [numbers(table, name) for name in ("start_s", "finish_s", "node", "job_id")]
    return columns[0], columns[1], columns[2].astype(np.int64), columns[3]
