"""Heartbeats: a node reports its load at the first one after a change; those with nothing to report are left out."""

from actors.kernel.compiled import inlined
from actors.kernel.queue import HEARTBEAT, wake
from actors.kernel.world import NONE


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
