"""Best fit and worst fit: to which of the nodes with room for a task a scheduler that places sends it.

A node has room for a task that fits beside all that the scheduler has placed there and does not know to have ended.
Best fit takes the node that then has least room left, worst fit the one with most: the largest share of a resource, or
of its slots, that is free. Where a task fits on no node now, it goes to the node that waits least. The tasks of a job
are taken to be alike, each as the most that one of them needs.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import inlined
from actors.kernel.world import World
from actors.scheduler import Parameter
from actors.schedulers.jobs.known_room import needed
from actors.schedulers.jobs.ledger import DOWN, Ledger, waiting

LEAST_WORK, BEST, WORST = np.int64(0), np.int64(1), np.int64(2)
KINDS = {"least-work": LEAST_WORK, "best": BEST, "worst": WORST}
# A node with room has this in place of its wait, more or less the share that is left in billionths: less than any wait.
ROOM = np.int64(-1) << 40
SHARES = 1e9

FIT = Parameter(
    "fit",
    "least-work",
    "choice",
    "to which of the nodes that have room for a task now, as far as their scheduler knows, it goes: to that with the "
    "least work left, or to that with the least (best fit) or most (worst fit) room left then",
    choices=tuple(KINDS),
)


class Fit(NamedTuple):
    """What a scheduler knows to be free."""

    kind: int  # LEAST_WORK, BEST or WORST
    free: (
        np.ndarray
    )  # [N, R], less than 0 where tasks wait; R is 1 where they take slots; empty of LEAST_WORK


NO_FIT = Fit(0, np.zeros((0, 0), np.int64))


def make_fit(kind: str, w: World, slots: np.ndarray) -> Fit:
    """Return the fit of one of `KINDS` for empty nodes with these slots."""
    if kind == "least-work":
        return NO_FIT
    free = w.room.capacity.copy() if w.room.active else slots.astype(np.int64)[:, None].copy()
    return Fit(int(KINDS[kind]), free)


@inlined
def share_left(w: World, fit: Fit, ledger: Ledger, node: int, job: int) -> float:
    """Return the largest share of a resource, or of slots, that a task of the job leaves free; -1 without room."""
    if ledger.work[node] >= DOWN:
        return -1.0
    if w.room.active == 0:
        return (fit.free[node, 0] - 1) / ledger.slots[node] if fit.free[node, 0] > 0 else -1.0
    left, demand, has_room = 0.0, w.room.of_job[job], True
    for r in range(w.room.demand.shape[1]):
        free = fit.free[node, r] - w.room.demand[demand, r]
        has_room &= free >= 0
        left = max(left, free / max(w.room.capacity[node, r], 1))
    return left if has_room else -1.0


@inlined
def wait_for(w: World, fit: Fit, ledger: Ledger, t: int, node: int, job: int) -> int:
    """Return how long a node waits, ns; of a fit, below all waits the place of a node with room among those."""
    if fit.kind != LEAST_WORK:
        left = share_left(w, fit, ledger, node, job)
        if left >= 0.0:
            share = np.int64(left * SHARES)
            return ROOM + share if fit.kind == BEST else ROOM - share
    return waiting(ledger, node, t)


@inlined
def take_room(w: World, fit: Fit, node: int, job: int, sign: int) -> None:
    """Of a fit: take the room of a task of the job, or give it back if `sign` is -1."""
    if fit.kind != LEAST_WORK:
        for r in range(fit.free.shape[1]):
            fit.free[node, r] -= sign * needed(w.room, job, r)
