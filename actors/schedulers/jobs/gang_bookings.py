"""Reservations of nodes: when which tasks of a job that waits are to run where, so that no node has too little free.

A reservation is two changes of what its nodes have free, when it begins and when it ends, in one list by time, of all
nodes. On which nodes it lies, its tasks' rows say (`gang_outlook.PLACED_ROW`). The expected ends of what runs are
changes too. To find the earliest time at which a job fits costs what the changes until then hold, once; and once more
those within the job's span, for each time at which it would fit at first and a later reservation is in its way. The
single tasks of a job are alike, so that none fits earlier than the one before: the search goes on from there, and those
that fit at one time are found at once.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.arrays import first_from
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NEVER
from actors.kernel.records import Records, records
from actors.schedulers.jobs.gang_ends import Ends, row_at
from actors.schedulers.jobs.gang_outlook import Outlook, all_fit, copy_free, look_at, make_outlook, take_rows

# A reservation begins (sign 1) or ends (-1): so many tasks of a job, which lie as the rows from `first` on say.
CHANGE = np.dtype([(name, "i8") for name in ("time", "job", "first", "tasks", "sign")])


# How many ends and changes are applied to what nodes have free: up to the time that is looked at, and, where the job
# fits then, up to the end of its span.
APPLIED = np.dtype([(name, "i8") for name in ("ends", "changes", "span_ends", "span_changes")])


class Bookings(NamedTuple):
    """Reservations, and what nodes have free at the time that is looked at."""

    changes: Records  # [2 a reservation] CHANGE, by time
    number: np.ndarray  # [1] changes
    at: Outlook
    applied: Records  # [1] APPLIED


def make_bookings(now: Outlook, reservations: int) -> Bookings:
    """Return no reservations, with room for so many."""
    return Bookings(
        records(CHANGE, 2 * reservations + 2),
        np.zeros(1, np.int64),
        make_outlook(now.demand, now.free.copy(), now.up),
        records(APPLIED, 1),
    )


@inlined
def place_of_time(b: Bookings, time: int) -> int:
    """Return how many changes come before a time."""
    return first_from(b.changes.time, np.int64(0), b.number[0], time)


@inlined
def copy_change(b: Bookings, i: int, j: int) -> None:
    """Copy the i-th change over the j-th."""
    rows = b.changes
    rows.time[j], rows.job[j], rows.first[j] = rows.time[i], rows.job[i], rows.first[i]
    rows.tasks[j], rows.sign[j] = rows.tasks[i], rows.sign[i]


@compiled
def add_change(b: Bookings, time: int, job: int, first: int, tasks: int, sign: int) -> None:
    """Add a change: at one time, what ends comes before what begins."""
    rows, place = b.changes, place_of_time(b, time + np.int64(sign == 1))
    for i in range(b.number[0], place, -1):
        copy_change(b, i - 1, i)
    rows.time[place], rows.job[place], rows.first[place] = time, job, first
    rows.tasks[place], rows.sign[place] = tasks, sign
    b.number[0] += 1


@compiled
def drop_change(b: Bookings, time: int, first: int, sign: int) -> None:
    """Remove the change of the reservation whose rows begin at `first`."""
    rows, place = b.changes, place_of_time(b, time)
    while rows.first[place] != first or rows.sign[place] != sign:
        place += 1
    for i in range(place + 1, b.number[0]):
        copy_change(b, i, i - 1)
    b.number[0] -= 1


@inlined
def end_at(ends: Ends, i: int, t: int) -> int:
    """Return when the i-th row of the ends is expected to end: what is late, 1 ns from `t`; NEVER: there is none."""
    return max(ends.rows.end[row_at(ends, i)], t + 1) if i < ends.span[1] else NEVER


@inlined
def change_at(b: Bookings, j: int) -> int:
    """Return when the j-th change is; NEVER: there is none."""
    return b.changes.time[j] if j < b.number[0] else NEVER


@inlined
def apply_end(
    b: Bookings, ends: Ends, placed: Records, of_job: np.ndarray, i: int, sign: int, least: bool
) -> None:
    """Let what the i-th row of the ends holds be free; be held again with sign -1."""
    row = row_at(ends, i)
    take_rows(
        b.at, placed, ends.rows.first[row], ends.rows.tasks[row], of_job[ends.rows.job[row]], -sign, least
    )


@inlined
def apply_change(b: Bookings, placed: Records, of_job: np.ndarray, j: int, sign: int, least: bool) -> None:
    """Apply the j-th change, or with sign -1 its opposite."""
    rows = b.changes
    take_rows(b.at, placed, rows.first[j], rows.tasks[j], of_job[rows.job[j]], sign * rows.sign[j], least)


@compiled
def pass_changes(
    b: Bookings,
    ends: Ends,
    placed: Records,
    of_job: np.ndarray,
    t: int,
    i: int,
    j: int,
    until: int,
    least: bool,
) -> tuple[int, int]:
    """Apply ends and changes up to `until`, from the i-th and the j-th on; return the next ones.

    `least`: keep the least that fits on each node, and stop when the job that is looked at does not fit any more.
    """
    while not least or all_fit(b.at):
        end, change = end_at(ends, i, t), change_at(b, j)
        if min(end, change) > until or (i == ends.span[1] and j == b.number[0]):
            break
        if end <= change and i < ends.span[1]:
            apply_end(b, ends, placed, of_job, i, 1, least)
            i += 1
        else:
            apply_change(b, placed, of_job, j, 1, least)
            j += 1
    return i, j


@compiled
def begin_search(b: Bookings, free: np.ndarray, demand: int, tasks: int, least: int, nodes: int) -> None:
    """Begin to look for when `least` of so many tasks of a demand fit; `free`: of now, [N, R]."""
    copy_free(b.at, free)
    look_at(b.at, demand, tasks, nodes)
    b.at.look.least[0] = least
    b.applied.ends[0], b.applied.changes[0] = 0, 0


@compiled
def leave_span(b: Bookings, ends: Ends, placed: Records, of_job: np.ndarray) -> None:
    """Go back from the end of the job's span to its begin."""
    applied = b.applied
    for k in range(applied.ends[0], applied.span_ends[0]):
        apply_end(b, ends, placed, of_job, k, -1, False)
    for k in range(applied.changes[0], applied.span_changes[0]):
        apply_change(b, placed, of_job, k, -1, False)


@compiled
def find_begin(
    b: Bookings, ends: Ends, placed: Records, of_job: np.ndarray, t: int, begin: int, span: int
) -> int:
    """Return from when on the tasks fit for `span`, ns, as early as possible from `begin` on; NEVER if they never do.

    `Bookings.at` has how many fit on each node for that long. The search may go on from there, after `leave_span`.
    """
    applied = b.applied
    i, j = pass_changes(b, ends, placed, of_job, t, applied.ends[0], applied.changes[0], begin, False)
    while True:
        if all_fit(b.at):
            last = min(begin + span, NEVER) - 1
            applied.ends[0], applied.changes[0] = i, j
            applied.span_ends[0], applied.span_changes[0] = pass_changes(
                b, ends, placed, of_job, t, i, j, last, True
            )
            if all_fit(b.at):
                return begin
            leave_span(b, ends, placed, of_job)
        begin = min(end_at(ends, i, t), change_at(b, j))
        if i == ends.span[1] and j == b.number[0]:
            return NEVER
        i, j = pass_changes(b, ends, placed, of_job, t, i, j, begin, False)
