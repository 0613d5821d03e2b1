"""When running gangs are expected to end: rows in the order of their ends, in a ring.

A row stands for tasks of one job that started together. Most jobs begin with late ends and leave with early ones, so a
row moves only those on the shorter side of its place.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.records import Records, records
from actors.schedulers.jobs.gang_outlook import row_of

# Tasks that started together: when they are expected to end, ns; their job; how many still run; where the rows begin
# that say on which nodes, if reservations are of nodes (`gang_outlook.PLACED_ROW`); when they were placed, ns; and
# scratch space: as which of those that are to make room it was chosen.
END = np.dtype([(name, "i8") for name in ("end", "job", "tasks", "first", "start", "choice")])


class Ends(NamedTuple):
    """The expected ends of what runs."""

    rows: Records  # [power of two] END, a ring
    span: np.ndarray  # [2] the first row, and the number of rows


def make_ends(most: int) -> Ends:
    """Return the ends of nothing, with room for `most` rows."""
    size = 1
    while size < most + 1:
        size *= 2
    return Ends(records(END, size), np.zeros(2, np.int64))


@inlined
def row_at(ends: Ends, i: int) -> int:
    """Return where the row is that ends as the i-th."""
    return (ends.span[0] + i) & (ends.rows.size - 1)


@inlined
def copy_row(ends: Ends, i: int, j: int) -> None:
    """Copy the i-th row over the j-th."""
    rows, source, target = ends.rows, row_at(ends, i), row_at(ends, j)
    rows.end[target], rows.job[target] = rows.end[source], rows.job[source]
    rows.tasks[target], rows.first[target] = rows.tasks[source], rows.first[source]
    rows.start[target], rows.choice[target] = rows.start[source], rows.choice[source]


@compiled
def place_of(ends: Ends, end: int, job: int) -> int:
    """Return how many rows come before this one, by end and then by job."""
    low, high = np.int64(0), ends.span[1]
    while low < high:
        middle = (low + high) // 2
        row = row_at(ends, middle)
        if ends.rows.end[row] < end or (ends.rows.end[row] == end and ends.rows.job[row] < job):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def add_end(ends: Ends, end: int, job: int, tasks: int, first: int, start: int) -> None:
    """Note that so many tasks of a job start, and are expected to end at `end`; `first`: of their rows."""
    at = place_of(ends, end, job)
    row = row_at(ends, at)
    if at < ends.span[1] and ends.rows.end[row] == end and ends.rows.job[row] == job:
        ends.rows.tasks[row] += tasks
    else:
        insert_end(ends, at, end, job, tasks, first, start)


@compiled
def insert_end(ends: Ends, at: int, end: int, job: int, tasks: int, first: int, start: int) -> None:
    """Insert a row at a place; arguments as of `add_end`."""
    number = ends.span[1]
    ends.span[1] = number + 1
    if at < number // 2:
        ends.span[0] = (ends.span[0] - 1) & (ends.rows.size - 1)
        for i in range(at):
            copy_row(ends, i + 1, i)
    else:
        for i in range(number, at, -1):
            copy_row(ends, i - 1, i)
    row = row_at(ends, at)
    ends.rows.end[row], ends.rows.job[row] = end, job
    ends.rows.tasks[row], ends.rows.first[row] = tasks, first
    ends.rows.start[row], ends.rows.choice[row] = start, 0


@compiled
def end_sooner(ends: Ends, at: int, end: int) -> None:
    """Let the row at a place be expected to end at `end`."""
    row = row_at(ends, at)
    job, tasks, first = ends.rows.job[row], ends.rows.tasks[row], ends.rows.first[row]
    start, choice = ends.rows.start[row], ends.rows.choice[row]
    drop_end(ends, at)
    at = place_of(ends, end, job)
    insert_end(ends, at, end, job, tasks, first, start)
    ends.rows.choice[row_at(ends, at)] = choice


@compiled
def first_of(ends: Ends, job: int) -> int:
    """Return the place of the job's row that is expected to end first."""
    for i in range(ends.span[1]):
        if ends.rows.job[row_at(ends, i)] == job:
            return np.int64(i)
    return np.int64(-1)


@compiled
def row_of_task(ends: Ends, end: int, job: int, task: int) -> int:
    """Return the place of the row of a task that has one of its own, and is expected to end at `end`."""
    at = place_of(ends, end, job)
    while ends.rows.first[row_at(ends, at)] != task:
        at += 1
    return at


@compiled
def first_on(ends: Ends, placed: Records, job: int, node: int) -> int:
    """Return the place of the job's row that is expected to end first of those with a task on a node."""
    for i in range(ends.span[1]):
        row = row_at(ends, i)
        if (
            ends.rows.job[row] == job
            and row_of(placed, ends.rows.first[row], ends.rows.tasks[row], node) >= 0
        ):
            return np.int64(i)
    return np.int64(-1)


@compiled
def end_one(ends: Ends, at: int) -> int:
    """Note that one task of the row at this place has ended; return when it was expected to."""
    row = row_at(ends, at)
    expected: int = ends.rows.end[row]
    ends.rows.tasks[row] -= 1
    if ends.rows.tasks[row] == 0:
        drop_end(ends, at)
    return expected


@compiled
def drop_end(ends: Ends, at: int) -> None:
    """Remove the row at a place."""
    number = ends.span[1]
    if at < number // 2:
        for i in range(at, 0, -1):
            copy_row(ends, i - 1, i)
        ends.span[0] = (ends.span[0] + 1) & (ends.rows.size - 1)
    else:
        for i in range(at, number - 1):
            copy_row(ends, i + 1, i)
    ends.span[1] = number - 1
