"""Backfilling in a node's queue: what fits may pass what does not, within a bound on starvation.

Where the entry whose turn it is needs more than the node has free, the first entry that fits goes before it. No entry
is passed by more estimated work than `passing` times its own estimate; at 0 none is, and the node waits for room. None
is passed by one of lower priority.
"""

import math

from actors.kernel.compiled import compiled, inlined
from actors.kernel.room import demand_of, fits
from actors.kernel.world import NONE, World
from actors.nodes.shortest import waits
from actors.nodes.waiting import goes_before


@inlined
def entry_fits(w: World, node: int, entry: int) -> bool:
    """Whether the node has free what an entry of its queue needs."""
    return fits(w, node, demand_of(w, w.entries.job[entry], w.entries.task[entry]))


@compiled
def pick_fitting(w: World, node: int) -> tuple[int, int]:
    """Find the first entry that fits and may go now, and the one in front of it; (NONE, NONE) if there is none."""
    rows, slack = w.entries, math.inf
    entry, before, first = w.nodes.head[node], NONE, NONE
    while entry != NONE and w.room.passing > 0.0:
        if waits(w, entry):
            estimate = w.work.estimate[rows.job[entry]]
            if first != NONE and goes_before(w, rows.job[first], rows.job[entry]):
                break
            if estimate <= slack and entry_fits(w, node, entry):
                return entry, before
            first = entry
            slack = min(slack, w.room.passing * estimate - rows.bypassed[entry])
        entry, before = rows.next[entry], entry
    return NONE, NONE
