"""Runs of free rows: rows that lie side by side are taken from the longest run, until none is long enough.

Then the host collects the rows that are free again, and makes more if few are (`actors.transfers.room`).
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE


class Runs(NamedTuple):
    """Runs of free rows, the longest first."""

    start: np.ndarray
    end: np.ndarray
    now: np.ndarray  # [1] the one from which rows are taken; those before it are used up


@compiled
def find_run(runs: Runs, count: int) -> int:
    """Return the first of so many free rows that lie side by side, NONE: there are no such rows."""
    for i in range(runs.now[0], runs.start.size):
        if runs.end[i] - runs.start[i] >= count:
            runs.now[0] = i
            return runs.start[i]
    return NONE


@inlined
def take_run(runs: Runs, count: int) -> None:
    """Take the first rows of the run that was found."""
    runs.start[runs.now[0]] += count


def free_runs(first: np.ndarray, end: np.ndarray, size: int) -> Runs:
    """Return the runs of rows, of `size` in all, that are not in one of the spans from `first` to before `end`."""
    order = np.argsort(first)
    starts, ends = np.append(0, end[order]), np.append(first[order], size)
    gaps = np.flatnonzero(ends > starts)
    gaps = gaps[np.argsort(starts[gaps] - ends[gaps], kind="stable")]
    return Runs(starts[gaps], ends[gaps], np.zeros(1, np.int64))


def longest(runs: Runs) -> int:
    """Return the length of the longest run."""
    return int((runs.end - runs.start).max(initial=0))


def total(runs: Runs) -> int:
    """Return how many rows are free."""
    return int((runs.end - runs.start).sum())
