"""Heartbeats: a node reports its load at the first one after a change; those with nothing to report are left out."""

from typing import Protocol

import numpy as np

from actors.kernel.compiled import inlined
from actors.kernel.queue import SOURCE_SHIFT, wake
from actors.kernel.sums import carry
from actors.kernel.world import NONE, World
from actors.nodes.load_messages import HEARTBEAT


class Reporting(Protocol):
    """What nodes know of their own load; part of the state of a policy whose nodes report it."""

    @property
    def load(self) -> np.ndarray:
        """[N] estimated work that waits or runs, ns."""

    @property
    def load_wholes(self) -> np.ndarray:
        """[N] and so many WHOLE besides (`actors.kernel.sums`)."""

    @property
    def to_report(self) -> np.ndarray:
        """[N] bool: the load has changed since the node's last heartbeat."""

    @property
    def heartbeat(self) -> int:
        """Time between two heartbeats, ns."""


@inlined
def change_load(w: World, p: Reporting, t: int, node: int, amount: int) -> None:
    """Change a node's load; the node reports that at the first heartbeat from `t` on."""
    p.load[node], p.load_wholes[node] = carry(p.load[node] + amount, p.load_wholes[node])
    if not p.to_report[node]:
        p.to_report[node] = True
        next_beat = (t + p.heartbeat - 1) // p.heartbeat * p.heartbeat
        wake(w, next_beat, node, HEARTBEAT, NONE, NONE, NONE)


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
