"""What a scheduler that places tasks knows of the nodes: the estimated work that was assigned and has not ended.

A node's waiting time is its work, less what the running task has done, spread over its slots. A node that is known to
be down has DOWN added to its work, so that it is chosen only if there is no other.

A sum over many slots need not fit an int64, which holds 292 years: 100,000 slots have that after a day. What is above
73 years is kept as so many WHOLE, so that sums are exact.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import inlined
from actors.kernel.queue import WHOLE
from actors.kernel.world import NEVER

IDLE = np.int64(-1)
DOWN = np.int64(1) << 61  # ns


class Ledger(NamedTuple):
    """What a scheduler knows of the nodes by assignments and reports, [N] each; times in ns.

    One array a field, unlike other state: the search for idle nodes reads the work of all of them.
    """

    work: np.ndarray  # estimated work assigned and not ended, from DOWN on of a node that is down
    wholes: (
        np.ndarray
    )  # so many WHOLE more: what is above 73 years over all slots; then `work` stays above one
    started: np.ndarray  # when the running task started as far as is known; NEVER if none is known to run
    running: np.ndarray  # its estimate
    slots: np.ndarray


@inlined
def per_slot(ledger: Ledger, node: int, work: int) -> int:
    """Return work spread evenly over a node's slots, ns; a division would take most of the search for nodes."""
    slots = ledger.slots[node]
    return work if slots == 1 else work // slots


@inlined
def add_work(ledger: Ledger, node: int, amount: int) -> None:
    """Add to the work of a node, up or down."""
    before = ledger.work[node]
    ledger.work[node] = before + amount
    if (before ^ (before + amount)) >= DOWN:  # the sum does not fit below DOWN
        ledger.work[node] -= WHOLE
        ledger.wholes[node] += 1


@inlined
def with_wholes(ledger: Ledger, node: int, work: int) -> int:
    """Return work spread over a node's slots, as `per_slot`, if its sum is in two parts; 146 years at the most."""
    slots = ledger.slots[node]
    wholes = min(ledger.wholes[node], 3 * slots)
    return min(wholes * (WHOLE // slots) + (wholes * (WHOLE % slots) + work) // slots, NEVER)


@inlined
def waiting(ledger: Ledger, node: int, t: int) -> int:
    """Estimated time until the node has done all that was assigned to it, ns.

    A node without work waits IDLE, less than nothing: it comes before one whose work takes no time. A busy one
    waits at least 1 ns, however late its task. With several slots the work is taken to be spread evenly.
    """
    work = ledger.work[node]
    if work <= 0:
        return IDLE
    in_parts = work >= WHOLE and ledger.wholes[node] > 0
    if t > ledger.started[node]:
        work -= min(t - ledger.started[node], ledger.running[node])
    if in_parts:
        return with_wholes(ledger, node, work)
    return max(per_slot(ledger, node, work), 1)
