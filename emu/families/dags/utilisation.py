"""Use of machines over time, from the times of tasks: shares of resources, numbers of tasks and jobs, fairness."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from emu.families.jobs.metrics import jain_index

Float64Array = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]
MOST_WINDOWS, MOST_PIECES = 1_000_000, 20_000_000
"""The most windows, and the most pieces into which they cut the tasks of a run."""


class FairShares(NamedTuple):
    """The dominant share of a job that is there, the same for all of them, summed over time.

    With v_j the demand of the mean task of job j as shares of all machines, divided by its largest, it is 1 / max over
    resources of the sum of v_j over the jobs that are there (Parkes, Dolev and Shah, EC 2012), 0 where none is.
    """

    times_s: Float64Array  # (2 J,) when jobs come and go, ascending
    sums_s: Float64Array  # (2 J,) of it up to then, share times seconds

    def mean(self, begin_s: Float64Array, end_s: Float64Array) -> Float64Array:
        """Return its mean between times, each end after its begin."""
        until: Float64Array = np.interp(end_s, self.times_s, self.sums_s)
        return (until - np.interp(begin_s, self.times_s, self.sums_s)) / (end_s - begin_s)


def fair_shares(submit_s: Float64Array, end_s: Float64Array, demand: Float64Array) -> FairShares:
    """Return the share of jobs that are there from `submit_s` to `end_s`, shape (J,); `demand`, (J, R), as shares."""
    most = demand.max(axis=1, keepdims=True)
    profile = np.divide(demand, most, out=np.zeros_like(demand), where=most > 0)
    times = np.concatenate([submit_s, end_s])
    order = np.argsort(times, kind="stable")
    there = np.cumsum(np.repeat([1, -1], submit_s.size)[order])
    together = np.cumsum(np.concatenate([profile, -profile])[order], axis=0).max(axis=1)
    share = np.divide(1.0, together, out=np.zeros(order.size), where=(there > 0) & (together > 0.5))
    return FairShares(times[order], np.append(0.0, np.cumsum(share[:-1] * np.diff(times[order]))))


def count_between(times_ns: Int64Array, begin_ns: Int64Array, end_ns: Int64Array) -> Int64Array:
    """Return how many intervals have begun at each time and not ended; negative times mean never."""
    begun = np.searchsorted(np.sort(begin_ns[begin_ns >= 0]), times_ns, side="right")
    ended = np.searchsorted(np.sort(end_ns[end_ns >= 0]), times_ns, side="right")
    found: Int64Array = begun - ended
    return found


def wide_enough(window_s: float, span_s: float, work_s: float) -> float:
    """Return a length of windows, doubled until `MOST_WINDOWS` and `MOST_PIECES` suffice."""
    while span_s / window_s > MOST_WINDOWS or work_s / window_s > MOST_PIECES:
        window_s *= 2
    return window_s


def windows(
    submit_s: Float64Array,
    end_s: Float64Array,
    job: Int64Array,
    start_s: Float64Array,
    finish_s: Float64Array,
    share: Float64Array,
    fair: FairShares,
    window_s: float,
) -> tuple[Int64Array, Float64Array]:
    """Return the number of present jobs, shape (W,), by window from the first arrival on, and Jain's indices, (3, W).

    A job counts with the mean of what it held over the part of the window in which it was present. The indices are of
    all present jobs, of those that ran, and of all in what they held of the resource of which they held most, up to the
    mean fair share over that part of the window.

    Parameters
    ----------
    submit_s, end_s : ndarray, shape (J,)
        Of jobs.
    job : ndarray of int64, shape (T,)
        Of each task.
    start_s, finish_s : ndarray, shape (T,)
        When it ran.
    share : ndarray, shape (T, R)
        What share of each resource of the cluster it held.
    fair : FairShares
        What share of the cluster a job that is there is due.
    window_s : float
    """
    origin = float(submit_s[0])
    count = max(int(np.ceil((float(end_s.max()) - origin) / window_s)), 1)
    key, held = _held_in_windows(job, start_s - origin, finish_s - origin, share, window_s, count)
    first = np.minimum(((submit_s - origin) / window_s).astype(np.int64), count - 1)
    last = np.minimum(((end_s - origin) / window_s).astype(np.int64), count - 1)
    numbers = np.zeros(count, np.int64)
    found = np.full((3, count), np.nan)
    by_window = np.argsort(key % count, kind="stable")
    bounds = np.searchsorted((key % count)[by_window], np.arange(count + 1))
    arrived, ended = np.argsort(first, kind="stable"), np.argsort(last, kind="stable")
    there = np.zeros(submit_s.size, bool)
    at, gone = 0, 0
    for k in range(count):
        while at < first.size and first[arrived[at]] <= k:
            there[arrived[at]] = True
            at += 1
        while gone < last.size and last[ended[gone]] < k:
            there[ended[gone]] = False
            gone += 1
        jobs = np.flatnonzero(there)
        begin, end = origin + k * window_s, origin + (k + 1) * window_s
        jobs = jobs[np.minimum(end_s[jobs], end) > np.maximum(submit_s[jobs], begin)]
        since, until = np.maximum(submit_s[jobs], begin), np.minimum(end_s[jobs], end)
        rows = by_window[bounds[k] : bounds[k + 1]]
        amount = np.zeros((2, submit_s.size))
        amount[:, key[rows] // count] = held[:, rows]
        mean, most = amount[:, jobs] / (until - since)
        numbers[k] = jobs.size
        due = np.minimum(most, fair.mean(since, until))
        found[:, k] = jain_index(mean), jain_index(mean[mean > 0]), jain_index(due)
    return numbers, found


def _held_in_windows(
    job: Int64Array,
    start_s: Float64Array,
    finish_s: Float64Array,
    share: Float64Array,
    window_s: float,
    count: int,
) -> tuple[Int64Array, Float64Array]:
    """Return the keys ``job * count + window`` of jobs in windows, shape (K,), and what each held, share times seconds.

    That is, in (2, K), the mean of all resources, and of the resource of which it held most.
    """
    first = np.minimum((start_s / window_s).astype(np.int64), count - 1)
    last = np.minimum((finish_s / window_s).astype(np.int64), count - 1)
    pieces = last - first + 1
    task = np.repeat(np.arange(job.size), pieces)
    window = np.arange(task.size) - np.repeat(np.cumsum(pieces) - pieces, pieces) + first[task]
    end = np.minimum(finish_s[task], (window + 1) * window_s)
    end = np.where(window == count - 1, finish_s[task], end)  # the last window has no end
    inside = end - np.maximum(start_s[task], window * window_s)
    key, place = np.unique(job[task] * count + window, return_inverse=True)
    held = np.zeros((2, key.size))
    held[0] = np.bincount(place, share.mean(axis=1)[task] * inside, minlength=key.size)
    for of_resource in share.T:
        np.maximum(held[1], np.bincount(place, of_resource[task] * inside, minlength=key.size), out=held[1])
    return key, held


def runnable_ns(
    submit_ns: Int64Array,
    first_stage: Int64Array,
    stage_first_task: Int64Array,
    first_parent: Int64Array,
    parent: Int64Array,
    one_to_one: npt.NDArray[np.int8],
    finish_ns: Int64Array,
    launched_ns: Int64Array | None = None,
    at_launch: npt.NDArray[np.bool_] | None = None,
) -> Int64Array:
    """Return when each task became runnable, shape (T,), ns: when its job arrived, or the last task it awaits ended.

    Parents and tasks are as in `workloads.dags.DagArrays`; ``finish_ns`` is of tasks. -1 is never. Over edges
    ``at_launch``, in the order of ``parent``, a task awaits that all tasks of the parent have been launched:
    ``launched_ns``, of stages.
    """
    never = np.iinfo(np.int64).max
    count = np.diff(stage_first_task)
    end = np.where(finish_ns < 0, never, finish_ns)
    last = np.maximum.reduceat(end, stage_first_task[:-1])
    begin = np.repeat(submit_ns, np.diff(first_stage))
    child = np.repeat(np.arange(count.size), np.diff(first_parent))
    whole = one_to_one == 0
    if launched_ns is not None and at_launch is not None:
        launched = np.where(launched_ns < 0, never, launched_ns)
        np.maximum.at(begin, child[at_launch], launched[parent[at_launch]])
        whole &= ~at_launch
    np.maximum.at(begin, child[whole], last[parent[whole]])
    found = np.repeat(begin, count)
    for edge in np.flatnonzero(one_to_one).tolist():
        own, of = stage_first_task[child[edge]], stage_first_task[parent[edge]]
        size = count[child[edge]]
        found[own : own + size] = np.maximum(found[own : own + size], end[of : of + size])
    return np.where(found == never, -1, found)
