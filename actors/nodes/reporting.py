"""Heartbeats: a node reports its load at the first one after a change; those with nothing to report are left out."""

import numpy as np

from actors.kernel.compiled import inlined
from actors.kernel.kinds import (
    HEARTBEAT,
)
from actors.kernel.queue import (
    MOST_ACTORS,
    SOURCE_SHIFT,
    wake,
)
from actors.kernel.world import NONE

NODE_BITS = MOST_ACTORS.bit_length() - 1  # of the column of a report that has the node and its generation


@inlined
def change_load(w, p, t, node, amount):
    """A node's load changes; it is to report that at the first heartbeat from `t` on.

    `p` has `load` [N], estimated work that waits or runs, ns; `to_report` [N], bool; and `heartbeat`, ns.
    """
    p.load[node] += amount
    if not p.to_report[node]:
        p.to_report[node] = True
        next_beat = (t + p.heartbeat - 1) // p.heartbeat * p.heartbeat
        wake(w, next_beat, node, HEARTBEAT, NONE, NONE, NONE)


@inlined
def reporter(w, node):
    """How a report names its node: with the generation, where nodes fail."""
    if w.faults.active == 0:
        return node
    return node | w.faults.actors.generation[node] << NODE_BITS


@inlined
def node_of(who):
    """The node that a report names."""
    return who & ((np.int64(1) << NODE_BITS) - 1)


@inlined
def is_of_now(w, who):
    """Whether a report is of the generation of its node that the schedulers know to be up."""
    return w.faults.active == 0 or w.faults.actors.heard[node_of(who)] == 2 * (who >> NODE_BITS) + 1


@inlined
def number_of(w):
    """The number of the message that is handled, among all that its source has sent."""
    return w.queue.now.key[0] & ((np.int64(1) << SOURCE_SHIFT) - 1)


@inlined
def is_newest(w, newest, node):
    """Whether the report that is handled is newer than all of the node so far; its number goes into `newest` [N] then.

    Where network delays vary one may overtake another. The node would not tell the newer news again.
    """
    number = number_of(w)
    if number <= newest[node]:
        return False
    newest[node] = number
    return True
