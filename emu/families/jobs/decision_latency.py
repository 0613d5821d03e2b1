"""Decision latency: the time that a task waited for its scheduler and the network, and not for a busy node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from emu.families.jobs.metrics import class_is_long
from emu.results.metrics import after_warmup, describe_values
from workloads.arrow import optional_column
from workloads.jobs import JobWorkload

Int64Array = npt.NDArray[np.int64]


def decision_latency_ns(
    submit_ns: Int64Array, node: Int64Array, start_ns: Int64Array, finish_ns: Int64Array, slots: Int64Array
) -> Int64Array:
    """Return each task's time from submission to start, less the time in which its node was full.

    A node is full while as many tasks run on it as it has slots; a slot that waits for a task on its way is not full.
    The rest is the time in which the task could have run on this node if its scheduler had placed it at once.

    Parameters
    ----------
    submit_ns, node, start_ns, finish_ns : (T,) int64
        Of each task; start and finish are -1 for never, and a task that did not finish keeps its slot.
    slots : (N,) int64
        Of each node.

    Returns
    -------
    (T,) int64
        Nanoseconds; -1 for tasks that did not start.

    Notes
    -----
    The time that a node has been full is summed over its starts and finishes in order of time; submissions are sorted
    among them, and the sum at each is taken.
    """
    latency = np.full(start_ns.size, -1, np.int64)
    ran = np.flatnonzero(start_ns >= 0)
    if ran.size == 0:
        return latency
    begin, end, asked, where = start_ns[ran], finish_ns[ran], submit_ns[ran], node[ran]
    end = np.where(end < 0, max(end.max(), begin.max()), end)
    # Three points for each task: its submission changes nothing, its start takes a slot, its finish frees one.
    time = np.concatenate([asked, begin, end])
    at = np.tile(where, 3)
    taken = np.repeat(np.array([0, 1, -1]), ran.size)
    order = np.lexsort((time, at))
    running = np.cumsum(taken[order])  # 0 at the end of each node
    full = running >= np.asarray(slots)[at[order]]
    gap = np.diff(time[order], append=0)
    gap[np.diff(at[order], append=-1) != 0] = 0  # from the last point of a node to the first of the next
    full_before = np.concatenate([[0], np.cumsum(np.where(full, gap, 0))[:-1]])
    upto = np.empty_like(full_before)
    upto[order] = full_before
    latency[ran] = begin - asked - (upto[ran.size : 2 * ran.size] - upto[: ran.size])
    return latency


def sustained_rate(start_ns: Int64Array) -> float | None:
    """Return the tasks started per second between a tenth and nine tenths of them; None where that takes no time.

    While schedulers keep up it is the rate of arrivals, else the rate at which they can decide.
    """
    started = np.sort(start_ns[start_ns >= 0])
    low, high = started.size // 10, started.size - 1 - started.size // 10
    if high <= low or started[high] == started[low]:
        return None
    return float((high - low) / (started[high] - started[low]) * 1e9)


def describe_latency(
    workload: JobWorkload,
    tasks: Mapping[str, Int64Array],
    slots: Int64Array,
    jobs: Any,
    warmup_s: float = 0.0,
) -> dict[str, dict[str, float]]:
    """Return the ``decision_latency`` part of a summary: count of tasks, mean and quantiles in seconds, by class.

    `tasks` has node, start_ns and finish_ns of each task, and `jobs` is the table of jobs. Tasks of jobs that arrive
    within the warm-up are left out.
    """
    arrays = workload.arrays()
    count = np.diff(arrays.first_task)
    latency = decision_latency_ns(np.repeat(arrays.submit_ns, count), **tasks, slots=slots)
    counts = np.repeat(after_warmup(optional_column(jobs, "submit_s"), warmup_s), count) & (latency >= 0)
    is_long = np.repeat(class_is_long(jobs), count)
    classes = {"all": counts, "short": counts & ~is_long, "long": counts & is_long}
    return {name: describe_values(latency[mask] / 1e9) for name, mask in classes.items() if mask.any()}
