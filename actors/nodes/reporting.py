"""Heartbeats: a node reports its load at the first one after a change; those with nothing to report are left out."""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import inlined
from actors.kernel.queue import SOURCE_SHIFT, wake
from actors.kernel.sums import carry
from actors.kernel.world import NONE, World
from actors.nodes.load_messages import HEARTBEAT


class Loads(NamedTuple):
    """What N nodes know of their own load, and when they report it."""

    work: np.ndarray  # [N] estimated work that waits or runs, ns,
    wholes: np.ndarray  # [N] and this many WHOLE (`actors.kernel.sums`)
    to_report: np.ndarray  # [N] bool: the load has changed since the node's last heartbeat
    heartbeat: int  # time between two heartbeats, ns


def make_loads(nodes: int, heartbeat: int) -> Loads:
    """Return the loads of idle nodes."""
    return Loads(np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), np.zeros(nodes, np.bool_), heartbeat)


@inlined
def add_load(loads: Loads, node: int, amount: int) -> None:
    """Add to a node's load, up or down, ns."""
    loads.work[node], loads.wholes[node] = carry(loads.work[node] + amount, loads.wholes[node])


@inlined
def change_load(w: World, loads: Loads, t: int, node: int, amount: int) -> None:
    """Change a node's load; the node reports that at the first heartbeat from `t` on."""
    add_load(loads, node, amount)
    if not loads.to_report[node]:
        loads.to_report[node] = True
        next_beat = (t + loads.heartbeat - 1) // loads.heartbeat * loads.heartbeat
        wake(w, next_beat, node, HEARTBEAT, NONE, NONE, NONE)


@inlined
def take_evicted(w: World, loads: Loads, t: int, node: int) -> None:
    """Take the work of the tasks that a node has evicted in the event at hand from its load."""
    if w.preemption.work[0] > 0:
        change_load(w, loads, t, node, -w.preemption.work[0])
        w.preemption.work[0] = 0


@inlined
def is_current(w: World, node: int, generation: int) -> bool:
    """Whether a report is from the generation of its node that the schedulers know to be up."""
    return w.faults.active == 0 or w.faults.actors.heard[node] == 2 * generation + 1


@inlined
def number_of(w: World) -> int:
    """Return the sequence number of the message that is handled, among all messages of its source."""
    return w.queue.now.key[0] & ((np.int64(1) << SOURCE_SHIFT) - 1)


@inlined
def is_newest(w: World, newest: np.ndarray, node: int) -> bool:
    """Whether the report is newer than all earlier ones of the node; its number is kept in `newest` [N].

    Where network delays vary, one report may overtake another. The node does not repeat the newer report.
    """
    number = number_of(w)
    if number <= newest[node]:
        return False
    newest[node] = number
    return True
