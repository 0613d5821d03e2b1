"""Heartbeats: a node reports its load at the first one after a change; those with nothing to report are left out.

If schedulers need it, a node also reports what is free of each of its resources, or how many slots: what no task
holds, less what the entries of its queue need, each as the most that a task of its job needs.
"""

from typing import NamedTuple

import numpy as np

from actors.failures import generation_of
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE, SOURCE_SHIFT, wake
from actors.kernel.sums import carry
from actors.nodes.messages import HEARTBEAT, send_room_report
from actors.nodes.waiting import length_of
from actors.nodes.world import World
from actors.resources import needed

TOGETHER = 3  # resources of which one message states what is free


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


@compiled
def report_room(w: World, t: int, node: int, parts: int) -> None:
    """Report what is free of a node, in so many messages."""
    generation = generation_of(w, node)
    for part in range(parts):
        r = TOGETHER * part
        free, second, third = left_of(w, node, r), left_of(w, node, r + 1), left_of(w, node, r + 2)
        send_room_report(w, t, node, np.int64(part), generation, free, second, third)


@inlined
def left_of(w: World, node: int, r: int) -> int:
    """Return what is free of a resource, or how many slots, less what waits; -1 if more waits, or there is none."""
    if r >= max(w.room.demand.shape[1], 1):
        return NONE
    free = w.room.free[node, r] if w.room.active == 1 else w.nodes.idle[node]
    entry = w.nodes.head[node]
    while entry != NONE and free >= 0:
        need, count = needed(w.room, w.entries.job[entry], r), length_of(w.entries, entry)
        free = NONE if need > 0 and free // need < count else free - need * count
        entry = w.entries.next[entry]
    return max(free, NONE)


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
