"""Best fit and worst fit: to which of the nodes with room for a task a scheduler that places sends it.

A node has room for a task that fits beside all that the scheduler has placed there and does not know to have ended.
Best fit takes the node that then has least room left, worst fit the one with most: the largest share of a resource, or
of its slots, that is free. Where a task fits on no node now, it goes to the node that waits least. The tasks of a job
are taken to be alike, each as the most that one of them needs.

One scheduler that places all tasks knows what each node has left by what it placed and what has ended. Where there are
several, each knows it by the node's last report (`ROOM_REPORT`), and by what it has placed there itself since it
received that. What others have placed, what was on its way when the node reported, and what has ended since are not
known: a task may have to wait at a node that was taken to have room, and a node with room may be passed over. Of more
than three resources a report is several messages: with the first of them the scheduler forgets what it has placed.
"""

from typing import NamedTuple

import numpy as np

from actors.causes import BEHIND_EQUALS, BEHIND_LONG, BEHIND_UNFIT, Remedy
from actors.kernel.compiled import inlined
from actors.kernel.queue import NEVER, NONE
from actors.kernel.sums import spread
from actors.nodes.messages import read_room_report
from actors.nodes.reporting import TOGETHER, is_current, is_newest
from actors.nodes.world import World
from actors.resources import needed, work_at
from actors.scheduler import Parameter
from actors.schedulers.jobs.ledger import DOWN, Ledger, waiting

LEAST_WORK, BEST, WORST = np.int64(0), np.int64(1), np.int64(2)
KINDS = {"least-work": LEAST_WORK, "best": BEST, "worst": WORST}
# A node with room has this in place of its wait, more or less the share that is left in billionths, and room below that
# for a draw among equals: less than any wait.
ROOM, DRAWS = np.int64(-1) << 42, np.int64(1024)
SHARES = 1e9

FIT = Parameter(
    "fit",
    "least-work",
    "choice",
    "to which of the nodes that have room for a task now, as far as their scheduler knows, it goes: to that with the "
    "least work left, or to that with the least (best fit) or most (worst fit) room left then",
    choices=tuple(KINDS),
    addresses=tuple(
        Remedy(cause, "best or worst fit chooses among nodes with room now", needs="used")
        for cause in (BEHIND_LONG, *BEHIND_EQUALS, BEHIND_UNFIT)
    ),
)


class Fit(NamedTuple):
    """What is known to be free, a row for each node; by reports, each of S schedulers has a row for each node."""

    kind: int  # LEAST_WORK, BEST or WORST
    # [N or S · N, R], below 0 where tasks wait; R is 1 where they take slots; empty of LEAST_WORK
    free: np.ndarray
    # By reports; empty for one scheduler that places all tasks. Work is estimated, and placed since the report, ns.
    work: np.ndarray  # [S · N]
    seen: np.ndarray  # [S · N] the number of that report
    reports: np.ndarray  # [N] reports so far
    reported: np.ndarray  # [N, R] by the last one
    newest: np.ndarray  # [parts · N] number of the newest message of each part


NOTHING = np.zeros(0, np.int64)
NO_FIT = Fit(0, np.zeros((0, 0), np.int64), NOTHING, NOTHING, NOTHING, np.zeros((0, 0), np.int64), NOTHING)


def make_fit(kind: str, w: World, slots: np.ndarray) -> Fit:
    """Return the fit of one of `KINDS` for empty nodes with these slots, and one scheduler."""
    if kind == "least-work":
        return NO_FIT
    free = w.room.capacity.copy() if w.room.active else slots.astype(np.int64)[:, None].copy()
    return NO_FIT._replace(kind=int(KINDS[kind]), free=free)


def make_reported_fit(kind: str, w: World, slots: np.ndarray, schedulers: int) -> Fit:
    """Return the fit of one of `KINDS` for empty nodes with these slots, and schedulers that go by reports."""
    empty = make_fit(kind, w, slots)
    if kind == "least-work":
        return empty
    reported, (nodes, resources) = empty.free, empty.free.shape
    nothing = np.zeros(schedulers * nodes, np.int64)
    newest = np.full(parts_of(resources) * nodes, NONE)
    free, reports = np.tile(reported, (schedulers, 1)), np.zeros(nodes, np.int64)
    return Fit(empty.kind, free, nothing, nothing.copy(), reports, reported, newest)


def parts_of(resources: int) -> int:
    """Return in how many messages a node reports what is free of so many resources."""
    return -(-resources // TOGETHER)


@inlined
def note_room(w: World, fit: Fit) -> None:
    """Note what a node reports to be free."""
    node, part, generation, free, second_free, third_free = read_room_report(w)
    if is_current(w, node, generation) and is_newest(w, fit.newest, part * w.nodes.size + node):
        fit.reports[node] += 1
        r = part * TOGETHER
        note_free(fit, node, r, free)
        note_free(fit, node, r + 1, second_free)
        note_free(fit, node, r + 2, third_free)


@inlined
def note_free(fit: Fit, node: int, r: int, free: int) -> None:
    """Note what is reported of one resource, if there are so many."""
    if r < fit.reported.shape[1]:
        fit.reported[node, r] = free


@inlined
def note_empty(w: World, fit: Fit, node: int) -> None:
    """Note that a node is up again, and all of it free."""
    if fit.kind != LEAST_WORK:
        fit.reports[node] += 1
        for r in range(fit.reported.shape[1]):
            fit.reported[node, r] = (
                w.room.capacity[node, r] if w.room.active == 1 else w.faults.actors.slots[node]
            )


@inlined
def row_of(w: World, fit: Fit, node: int, job: int) -> int:
    """Return the row of what the job's scheduler knows of a node, by the last report of that."""
    if fit.reports.size == 0:
        return node
    row = (w.work.home[job] - w.nodes.size) * w.nodes.size + node
    if fit.seen[row] != fit.reports[node]:
        fit.seen[row], fit.work[row] = fit.reports[node], 0
        for r in range(fit.reported.shape[1]):
            fit.free[row, r] = fit.reported[node, r]
    return row


@inlined
def share_left(w: World, fit: Fit, slots: int, row: int, node: int, job: int) -> float:
    """Return the largest share of a resource, or of slots, that a task of the job leaves free; -1 without room."""
    if w.room.active == 0:
        return (fit.free[row, 0] - 1) / slots if fit.free[row, 0] > 0 else -1.0
    left, demand, has_room = 0.0, w.room.of_job[job], True
    for r in range(w.room.demand.shape[1]):
        free = fit.free[row, r] - w.room.demand[demand, r]
        has_room &= free >= 0
        left = max(left, free / max(w.room.capacity[node, r], 1))
    return left if has_room else -1.0


@inlined
def wait_for(w: World, fit: Fit, ledger: Ledger, t: int, node: int, job: int) -> int:
    """Return how long a node waits, ns; of a fit, below all waits the place of a node with room among those."""
    wait = waiting(ledger, node, t)
    if fit.kind != LEAST_WORK and ledger.work[node] < DOWN:
        row = row_of(w, fit, node, job)
        if fit.work.size > 0 and fit.work[row] > 0:
            wait = min(max(wait, 0) + spread(fit.work[row], np.int64(0), ledger.slots[node]), NEVER)
        return among_fitting(w, fit, ledger.slots[node], row, node, job, wait)
    return wait


@inlined
def among_fitting(w: World, fit: Fit, slots: int, row: int, node: int, job: int, wait: int) -> int:
    """Return the place of a node with room among those, below all waits; of one without its wait."""
    left = share_left(w, fit, slots, row, node, job)
    if left < 0.0:
        return wait
    share = np.int64(left * SHARES) * DRAWS
    return ROOM + share if fit.kind == BEST else ROOM - share


@inlined
def take_room(w: World, fit: Fit, node: int, job: int, sign: int) -> None:
    """Of a fit: take the room of a task of the job, or give it back if `sign` is -1; by reports, add its work."""
    if fit.kind != LEAST_WORK:
        row = row_of(w, fit, node, job)
        for r in range(fit.free.shape[1]):
            fit.free[row, r] -= sign * needed(w.room, job, r)
        if fit.work.size > 0:
            fit.work[row] = min(fit.work[row] + work_at(w, node, job), NEVER)
