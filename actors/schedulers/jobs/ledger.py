"""What a scheduler that places tasks knows of the nodes: the estimated work that was assigned and has not ended.

A node's waiting time is its work, less what the running task has done, spread over its slots; less than NEVER. With
resources a task's work is that of the part of the node that it takes, and what running tasks have done counts as left.
A node that is known to be down waits longer than that, however many slots it has: it is chosen if there is no other.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import inlined
from actors.kernel.queue import NEVER
from actors.kernel.sums import LARGE, WHOLE, carry, spread

IDLE = np.int64(-1)
DOWN = LARGE  # ns; a bit of a node's work


class Ledger(NamedTuple):
    """What a scheduler knows of the nodes by assignments and reports, [N] each; times in ns.

    One array a field, unlike other state: the search for idle nodes reads the work of all of them.
    """

    work: np.ndarray  # estimated work assigned and not ended, and DOWN of a node that is down
    wholes: np.ndarray  # and this many WHOLE (`actors.kernel.sums`)
    started: np.ndarray  # when the task started that is known to run; NEVER if none is
    running: np.ndarray  # its estimate
    slots: np.ndarray


@inlined
def add_work(ledger: Ledger, node: int, amount: int) -> None:
    """Add to the work of a node, up or down."""
    down = ledger.work[node] & DOWN
    work, ledger.wholes[node] = carry(ledger.work[node] - down + amount, ledger.wholes[node])
    ledger.work[node] = work + down


@inlined
def waiting(ledger: Ledger, node: int, t: int) -> int:
    """Estimated time until the node has done all that was assigned to it, ns.

    A node without work waits IDLE, less than nothing: it comes before one whose work takes no time. A busy one
    waits at least 1 ns, however late its task. With several slots the work is taken to be spread evenly.
    """
    work = ledger.work[node]
    if work <= 0:
        return IDLE
    down, wholes = work & DOWN, np.int64(0)
    work -= down
    if work >= WHOLE:
        wholes = ledger.wholes[node]
    if t > ledger.started[node]:
        work -= min(t - ledger.started[node], ledger.running[node])
    wait = spread(work, wholes, ledger.slots[node])
    return max(wait, 1) if down == 0 else NEVER + min(max(wait, 0), LARGE)
