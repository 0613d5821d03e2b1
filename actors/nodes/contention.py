"""A node under contention for constrained resources: whose turn it is by the CRV, and what the node reports.

The CRV (Constraint Resource Vector, Phoenix, ICDCS'17) has for each resource, an attribute of nodes that jobs have
constraints on, what is asked for over what there is: see actors/schedulers/jobs/phoenix_monitor.py. A CRV up to the
threshold counts as 0. An entry of a queue has the greatest CRV of the resources that its job asks for at its level;
an entry without constraints, and a long one, has 0.

Where an entry in the queue has a CRV above 0, the entry with the greatest CRV goes first, and among equals the one with
the shortest remaining work; or, `weighted`, the one with the least remaining work over CRV, one of less than 1 counting
as 1. No short entry is passed by more than `slack` times its estimate, as in actors/nodes/shortest.py. Elsewhere the
queue is served as ever.

What a node reports at a heartbeat is in actors/nodes/demand.py.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.eligible import LEVEL_SHIFT
from actors.kernel.kinds import (
    FAIL,
    PLACED,
    PROBE,
    TASK_END,
)
from actors.kernel.queue import (
    records,
)
from actors.kernel.world import N_REORDERS, NONE
from actors.nodes.demand import LOAD, ROUND, expect_report, has_moved, nothing_told
from actors.nodes.failing import is_void
from actors.nodes.queueing import SERVED, forget_service, note_idle, note_service
from actors.nodes.shortest import pick_first, remaining_work, waits
from actors.nodes.worker import give_slot, next_entry, take_in

UNIT = np.int64(1) << 32  # of a CRV
SHARE = np.int64(1) << 10  # scarcity of one entry that asks for what all nodes have

NODE = np.dtype(
    [
        *SERVED.descr,
        ("wait", "i8"),  # E[W] as last reported, ns
        ("asked", "i8"),  # bits: resources that queued entries ask for, likewise
        ("to_report", "i8"),  # 1: there may be something new
    ]
)


class Contention(NamedTuple):
    """What nodes know of the CRV and of themselves; N nodes, R resources, V levels of all sets of constraints."""

    crv: np.ndarray  # [R] in UNIT, as last announced; 0 up to the threshold
    hot: np.ndarray  # [1] bits: resources whose CRV is above it
    open: np.ndarray  # [1] 1: the CRV counts, 0: the cluster's load is too low for that
    asks: np.ndarray  # [V] bits: the resources that a job asks for at this level
    scarcity: np.ndarray  # [V, R] in SHARE: N over the number of nodes that have what is asked for
    nodes: np.recarray  # [N] NODE
    busy: np.ndarray  # [N] busy slots as last reported, where that is wanted
    told: np.ndarray  # [N, R] what was last reported of a resource, as `pack_resource` makes it
    counts: np.ndarray  # [R] scratch, 0 between reports
    total: np.ndarray  # [R] scratch, likewise
    slots: np.ndarray  # [N]
    ring: np.ndarray  # [N] nodes that are to report at the next heartbeat
    round: np.recarray  # [1] ROUND
    loads: np.recarray  # [N] LOAD, those that one event brings
    more: (
        np.ndarray
    )  # [2, R] likewise: entries that ask for a resource, and their scarcity, more than was told before
    reorder: int  # 1: nodes serve their queues by the CRV
    weighted: int  # 1: by remaining work over CRV
    static: int  # 1: by weights that never change, first come first served among equals; all queues, where they count
    shortest_first: int  # 1: where it does not, the shortest remaining job goes first
    reporting: int  # 1: there is somebody who wants to know
    gated: int  # 1: and wants to know the load
    window: int  # tasks
    rho_cap: float
    change: float  # share by which the expected wait must have changed to be reported anew
    heartbeat: int  # ns


def make_contention(
    asks: np.ndarray,
    scarcity: np.ndarray,
    slots: np.ndarray,
    crv: np.ndarray,
    **settings: Any,
) -> Contention:
    """Nodes that have nothing to tell; `settings` are the scalars of `Contention`."""
    nodes, resources = slots.size, crv.size
    return Contention(
        crv=crv.astype(np.int64),
        hot=np.zeros(1, np.int64),
        open=np.zeros(1, np.int64),
        asks=asks,
        scarcity=scarcity,
        nodes=records(NODE, nodes),
        busy=np.zeros(nodes, np.int64),
        told=nothing_told(nodes, resources),
        counts=np.zeros(resources, np.int64),
        total=np.zeros(resources, np.int64),
        slots=slots.astype(np.int64),
        ring=np.zeros(nodes, np.int64),
        round=records(ROUND, 1),
        loads=records(LOAD, nodes),
        more=np.zeros((2, resources), np.int64),
        **settings,
    )


@inlined
def on_announced(c, resource, value):
    """News of the CRV: that of a resource, or if there is none, whether the CRV counts."""
    if resource == NONE:
        c.open[0] = value
    else:
        c.crv[resource] = value
    hot = np.int64(0)
    for r in range(c.crv.size):
        if c.open[0] == 1 and c.crv[r] > 0:
            hot |= np.int64(1) << r
    c.hot[0] = hot


@inlined
def on_contended_node(w, c, t, kind, node):
    """Handle a message to a node, other than its heartbeat."""
    message = w.queue.now
    void, level, idle = w.faults.active == 1 and is_void(w, node), NONE, w.nodes.idle[node]
    note_idle(c.nodes, node, t, idle / c.slots[node])
    if kind == FAIL:
        forget_all(c, node, t)
    elif kind == TASK_END and not void:
        note_service(c.nodes, node, float(t - message.c[0]) / c.slots[node], c.window)
    elif kind == PROBE and w.work.is_long[message.a[0]] == 0:
        level = (message.b[0] >> LEVEL_SHIFT) - 1
    serves, _ = take_in(w, node)
    if (kind == PROBE or kind == PLACED) and not void:
        w.entries.level[w.nodes.tail[node]] = level
    if serves:
        serve_contended(w, c, t, node)
    if c.reporting == 1 and not void and kind != FAIL and c.nodes.to_report[node] == 0:
        # What asks for a resource has come, or may have gone; or others are expected to wait longer or less.
        asks = level != NONE or c.nodes.asked[node] != 0
        waits_anew = kind == TASK_END or (idle > 0) != (w.nodes.idle[node] > 0)
        if asks or c.gated == 1 or (waits_anew and has_moved(w, c, node)):
            expect_report(w, c, t, node)


@compiled
def forget_all(c, node, t):
    """A node that fails has lost its queue, and what it had told is void."""
    forget_service(c.nodes, node, t)
    c.nodes.wait[node], c.busy[node], c.nodes.asked[node] = 0, 0, 0
    for r in range(c.counts.size):
        c.told[node, r] = r


@inlined
def serve_contended(w, c, t, node):
    """Give idle slots to the entries whose turn it is."""
    while w.nodes.idle[node] > 0:
        entry, before = next_contended(w, c, node)
        if not give_slot(w, t, node, entry, before):
            break


@inlined
def next_contended(w, c, node):
    """The entry whose turn it is and the one in front of it; NONE if none waits."""
    entry = w.nodes.head[node]
    if entry != NONE and w.entries.next[entry] != NONE:
        if c.open[0] == 1 and c.reorder == 1 and is_contended(w, c, node):
            return pick_by_crv(w, c, node)
        if c.shortest_first == 0:
            return pick_first(w, node)
    return next_entry(w, node)


@inlined
def is_contended(w, c, node):
    """Whether the queue is to be served by the CRV."""
    if c.static == 1:
        return True
    if c.hot[0] == 0:
        return False
    entry = w.nodes.head[node]
    while entry != NONE:
        if asks_of(w, c, entry) & c.hot[0] != 0:
            return True
        entry = w.entries.next[entry]
    return False


@inlined
def asks_of(w, c, entry):
    """The resources that an entry asks for, as bits."""
    level = w.entries.level[entry]
    if level == NONE:
        return np.int64(0)
    return c.asks[level]


@inlined
def crv_of(w, c, entry):
    """The greatest CRV of the resources that an entry asks for, 0 if it asks for none."""
    asks, most = asks_of(w, c, entry), np.int64(0)
    for r in range(c.crv.size):
        if asks >> r & 1 == 1:
            most = max(most, c.crv[r])
    return most


@compiled
def pick_by_crv(w, c, node):
    """The entry with the greatest CRV and the one in front of it, within the bound on starvation.

    A long entry at the front goes first; one that is chosen from further back ends the scan, as in `pick_shortest`. By
    fixed weights any long entry ends it. Entries that do not wait for a slot are no choice, and nobody passes them.
    """
    rows = w.entries
    entry, before = w.nodes.head[node], NONE
    chosen, in_front = NONE, NONE
    most, least, slack = NONE, math.inf, math.inf
    some_wait = passes = False
    while entry != NONE:
        if waits(w, entry):
            job, is_long = rows.job[entry], rows.is_long[entry] == 1
            if is_long and c.static == 1 and chosen != NONE:
                break
            estimate, crv, remaining = w.work.estimate[job], crv_of(w, c, entry), 0.0
            if c.static == 0 and c.shortest_first == 1:
                remaining = remaining_work(w, entry)
            if c.weighted == 1:
                remaining, crv = remaining / max(float(crv) / float(UNIT), 1.0), np.int64(0)
            if (crv > most or (crv == most and remaining < least)) and estimate <= slack:
                chosen, in_front, most, least, passes = entry, before, crv, remaining, some_wait
                if is_long:
                    break
            if not is_long:
                slack = min(slack, w.rules.slack * estimate - rows.bypassed[entry])
            some_wait = True
        entry, before = rows.next[entry], entry
    if passes:
        w.counts[N_REORDERS] += 1
    return chosen, in_front
