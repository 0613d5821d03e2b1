"""A node under contention for constrained resources: whose turn it is by the CRV, and what the node reports.

The CRV (Constraint Resource Vector, Phoenix, ICDCS'17) has for each resource, an attribute of nodes that jobs have
constraints on, what is asked for over what there is: see actors/schedulers/jobs/phoenix_monitor.py. A CRV up to the
threshold counts as 0. An entry of a queue has the greatest CRV of the resources that its job asks for at its level;
an entry without constraints, and a long one, has 0.

Where an entry in the queue has a CRV above 0, the entry with the greatest CRV goes first, and among equals the one with
the shortest remaining work; or, `weighted`, the one with the least remaining work over CRV, one of less than 1 counting
as 1. No short entry is passed by more than `slack` times its estimate, as in actors/nodes/shortest.py. Elsewhere the
queue is served as ever.

At a heartbeat a node that has something new reports how long a task is expected to wait (actors/nodes/queueing.py),
and by resource how many queued entries ask for it and how scarce what they ask for is. All schedulers hear it at the
same time. Where they are in the node's partition and all messages take equally long, one event brings all reports of a
heartbeat, and counts as one for each: a message would cost more than what it says.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.eligible import LEVEL_SHIFT
from actors.kernel.faults import is_down
from actors.kernel.queue import (
    FAIL,
    HEARTBEAT,
    LOAD_REPORT,
    PLACED,
    PROBE,
    RANK_SHIFT,
    SOURCE_SHIFT,
    TASK_END,
    push,
    records,
    send,
)
from actors.kernel.world import N_REORDERS, N_REPORTS, NONE
from actors.nodes.failing import is_void
from actors.nodes.queueing import SERVED, expected_wait, forget_service, note_service
from actors.nodes.shortest import remaining_work
from actors.nodes.worker import give_slot, next_entry, take_in

UNIT = np.int64(1) << 32  # of a CRV
SHARE = np.int64(1) << 10  # scarcity of one entry that asks for what all nodes have
BUSY_SHIFT = 24  # busy slots share a report's column with the node
# One resource in a report: which, how many entries ask for it, their scarcity.
RESOURCE_BITS, COUNT_BITS, SCARCITY_BITS = 6, 16, 41
COUNT_SHIFT, SCARCITY_SHIFT = RESOURCE_BITS, RESOURCE_BITS + COUNT_BITS
MOST_RESOURCES = (1 << RESOURCE_BITS) - 2  # as many as an int64 has bits for
MOST_WAIT = 2.0**60

NODE = np.dtype(
    [
        *SERVED.descr,
        ("wait", "i8"),  # E[W] as last reported, ns
        ("busy", "i8"),  # busy slots, likewise
        ("asked", "i8"),  # queued entries and resources that they ask for, likewise
        ("to_report", "i8"),  # 1: there may be something new
    ]
)
# Nodes that have something to report, as places in a ring; and reports that are under way in one event.
ROUND = np.dtype([("next", "i8"), ("end", "i8"), ("reports", "i8")])
# A node's report, or a part of it: the node and its busy slots, E[W], and up to two resources.
REPORT = np.dtype([("who", "i8"), ("wait", "i8"), ("first", "i8"), ("second", "i8")])


class Contention(NamedTuple):
    """What nodes know of the CRV and of themselves; N nodes, R resources, V levels of all sets of constraints."""

    crv: np.ndarray  # [R] in UNIT, as last announced; 0 up to the threshold
    hot: np.ndarray  # [1] bits: resources whose CRV is above it
    open: np.ndarray  # [1] 1: the CRV counts, 0: the cluster's load is too low for that
    asks: np.ndarray  # [V] bits: the resources that a job asks for at this level
    scarcity: np.ndarray  # [V, R] in SHARE: N over the number of nodes that have what is asked for
    level: np.ndarray  # [entries of all queues] the level of the entry's job, NONE without constraints
    nodes: np.recarray  # [N] NODE
    told: np.ndarray  # [N, R] what was last reported of a resource, as `pack_resource` makes it
    counts: np.ndarray  # [R] scratch
    total: np.ndarray  # [R] scratch
    slots: np.ndarray  # [N]
    ring: np.ndarray  # [N] nodes that are to report at the next heartbeat
    round: np.recarray  # [1] ROUND
    reports: np.recarray  # REPORT, those that are under way in one event; room for all parts of all nodes'
    reorder: int  # 1: nodes heed the CRV
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
    entries: int,
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
        level=np.full(entries, NONE),
        nodes=records(NODE, nodes),
        told=nothing_told(nodes, resources),
        counts=np.zeros(resources, np.int64),
        total=np.zeros(resources, np.int64),
        slots=slots.astype(np.int64),
        ring=np.zeros(nodes, np.int64),
        round=records(ROUND, 1),
        reports=records(REPORT, nodes * max((resources + 1) // 2, 1)),
        **settings,
    )


def nothing_told(nodes: int, resources: int) -> np.ndarray:
    """[N, R] packed resources that no entry asks for."""
    return np.tile(np.arange(resources), (nodes, 1))


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
    void, level = w.faults.active == 1 and is_void(w, node), NONE
    if kind == FAIL:
        forget_all(c, node)
    elif kind == TASK_END and not void:
        note_service(c.nodes, node, t, float(t - message.c[0]) / c.slots[node], c.window)
    elif kind == PROBE and w.work.is_long[message.a[0]] == 0:
        level = (message.b[0] >> LEVEL_SHIFT) - 1
    serves, _ = take_in(w, node)
    if (kind == PROBE or kind == PLACED) and not void:
        c.level[w.nodes.tail[node]] = level
    if serves:
        entry, before = next_contended(w, c, node)
        give_slot(w, t, node, entry, before)
    if c.reporting == 1 and not void and kind != FAIL and c.nodes.to_report[node] == 0:
        # What asks for a resource has come, or may have gone; or others are expected to wait longer or less.
        asks = level != NONE or c.nodes.asked[node] > 0
        if asks or c.gated == 1 or (kind == TASK_END and has_moved(c, node)):
            expect_report(w, c, t, node)


@inlined
def has_moved(c, node):
    """Whether the expected wait is no longer about what the node has reported."""
    return differs(c, expected_wait(c.nodes, node, c.rho_cap), c.nodes.wait[node])


@inlined
def differs(c, wait, told):
    """Whether an expected wait is to be reported anew."""
    return abs(wait - told) > c.change * told


@inlined
def expect_report(w, c, t, node):
    """The node is to report at the first heartbeat from `t` on."""
    c.nodes.to_report[node] = 1
    c.ring[c.round.end[0] % c.ring.size] = node
    c.round.end[0] += 1
    if c.round.end[0] - c.round.next[0] == 1:
        expect_beat(w, (t + c.heartbeat - 1) // c.heartbeat * c.heartbeat)


@inlined
def expect_beat(w, beat):
    """The heartbeat of all nodes here that have something to report: one event, whatever the partitions.

    Its key is nobody's, so that no node's messages are numbered otherwise for it.
    """
    queue = w.queue
    key = (HEARTBEAT >> 4) << RANK_SHIFT | np.int64(queue.seq.size - 1) << SOURCE_SHIFT
    first = queue.now.first[0]
    push(queue.now, queue.heap, queue.pool, beat, key, HEARTBEAT, first, NONE, NONE, NONE, NONE)


@compiled
def on_heartbeat(w, c, t):
    """Nodes report what is new, as many as there is room for messages; the others in an event of their own."""
    most, together = c.reports.size // c.slots.size, are_together(w)
    left, done = w.queue.room - 4, 0
    while c.round.next[0] < c.round.end[0] and left >= most:
        node = c.ring[c.round.next[0] % c.ring.size]
        c.round.next[0] += 1
        c.nodes.to_report[node] = 0
        if not is_down(w, node):
            left -= report(w, c, t, node, together)
        done += 1
    w.queue.now.events[0] += done - 1  # one for each node
    if c.round.reports[0] > 0:
        expect_reports(w, t)
    if c.round.next[0] < c.round.end[0]:
        expect_beat(w, t)


@inlined
def are_together(w):
    """Whether the reports of a heartbeat may come in one event: all actors are here, and hear them at the same time."""
    now = w.queue.now
    return now.end[0] - now.first[0] == w.queue.seq.size and w.network.spread_ns == 0.0 and w.cost.model == 0


@inlined
def expect_reports(w, t):
    """The reports of a heartbeat arrive in one event, behind the other messages of that instant.

    The next heartbeat comes later: it is longer than the network delay.
    """
    queue, listener = w.queue, np.int64(w.queue.seq.size - 1)
    key = (LOAD_REPORT >> 4) << RANK_SHIFT | listener << SOURCE_SHIFT
    time = t + w.network.cross_ns
    push(queue.now, queue.heap, queue.pool, time, key, LOAD_REPORT, listener, NONE, NONE, NONE, NONE)


@compiled
def forget_all(c, node):
    """A node that fails has lost its queue, and what it had told is void."""
    forget_service(c.nodes, node)
    c.nodes.wait[node], c.nodes.busy[node], c.nodes.asked[node] = 0, 0, 0
    for r in range(c.counts.size):
        c.told[node, r] = r


@inlined
def next_contended(w, c, node):
    """The entry whose turn it is and the one in front of it; NONE if the queue is empty."""
    if c.open[0] == 1 and c.reorder == 1 and is_contended(w, c, node):
        return pick_by_crv(w, c, node)
    if c.shortest_first == 0:
        return w.nodes.head[node], NONE
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
        if asks_of(c, entry) & c.hot[0] != 0:
            return True
        entry = w.entries.next[entry]
    return False


@inlined
def asks_of(c, entry):
    """The resources that an entry asks for, as bits."""
    level = c.level[entry]
    if level == NONE:
        return np.int64(0)
    return c.asks[level]


@inlined
def crv_of(c, entry):
    """The greatest CRV of the resources that an entry asks for, 0 if it asks for none."""
    asks, most = asks_of(c, entry), np.int64(0)
    for r in range(c.crv.size):
        if asks >> r & 1 == 1:
            most = max(most, c.crv[r])
    return most


@compiled
def pick_by_crv(w, c, node):
    """The entry with the greatest CRV and the one in front of it, within the bound on starvation.

    A long entry at the front goes first; one that is chosen from further back ends the scan, as in `pick_shortest`. By
    fixed weights any long entry ends it.
    """
    rows = w.entries
    entry, before = w.nodes.head[node], NONE
    chosen, in_front = NONE, NONE
    most, least, slack = NONE, math.inf, math.inf
    while entry != NONE:
        job, is_long = rows.job[entry], rows.is_long[entry] == 1
        if is_long and c.static == 1 and chosen != NONE:
            break
        estimate, crv, remaining = w.work.estimate[job], crv_of(c, entry), 0.0
        if c.static == 0 and c.shortest_first == 1:
            remaining = remaining_work(w, entry)
        if c.weighted == 1:
            remaining, crv = remaining / max(float(crv) / float(UNIT), 1.0), np.int64(0)
        if (crv > most or (crv == most and remaining < least)) and estimate <= slack:
            chosen, in_front, most, least = entry, before, crv, remaining
            if is_long:
                break
        if not is_long:
            slack = min(slack, w.rules.slack * estimate - rows.bypassed[entry])
        entry, before = rows.next[entry], entry
    if in_front != NONE:
        w.counts[N_REORDERS] += 1
    return chosen, in_front


@inlined
def report(w, c, t, node, together):
    """A node reports what is new, in parts of up to two resources; returns how many messages that took."""
    rows, sent, told = c.nodes, 0, NONE
    rows.asked[node] = count_queue(w, c, node)
    busy = (c.slots[node] - w.nodes.idle[node]) * c.gated
    wait = expected_wait(rows, node, c.rho_cap)
    news = differs(c, wait, rows.wait[node]) or busy != rows.busy[node]
    if news:
        rows.wait[node], rows.busy[node] = np.int64(min(wait, MOST_WAIT)), busy
    for r in range(c.counts.size):
        packed = pack_resource(np.int64(r), c.counts[r], c.total[r])
        if packed == c.told[node, r]:
            continue
        c.told[node, r], news = packed, True
        if told == NONE:
            told = packed
        else:
            tell_part(w, c, t, node, told, packed, together)
            told, news, sent = NONE, False, sent + 1
    if news:
        tell_part(w, c, t, node, told, NONE, together)
        sent += 1
    w.counts[N_REPORTS] += sent > 0
    return 0 if together else sent


@inlined
def tell_part(w, c, t, node, first, second, together):
    """A part of a node's report: one message to all schedulers, or one of those that an event brings together."""
    who, wait = node | c.nodes.busy[node] << BUSY_SHIFT, c.nodes.wait[node]
    if together:
        i, rows = c.round.reports[0], c.reports
        rows.who[i], rows.wait[i], rows.first[i], rows.second[i] = who, wait, first, second
        c.round.reports[0] = i + 1
    else:
        send(w, t, node, np.int64(w.queue.seq.size - 1), LOAD_REPORT, who, wait, first, second)


@inlined
def count_queue(w, c, node):
    """Count the queued entries that ask for each resource, and add up their scarcity; returns the sum of the counts."""
    asked = np.int64(0)
    for r in range(c.counts.size):
        c.counts[r], c.total[r] = 0, 0
    entry = w.nodes.head[node]
    while entry != NONE:
        level = c.level[entry]
        if level != NONE:
            asks, r = c.asks[level], 0
            while asks != 0:
                if asks & 1 == 1:
                    c.counts[r] += 1
                    c.total[r] += c.scarcity[level, r]
                    asked += 1
                asks, r = asks >> 1, r + 1
        entry = w.entries.next[entry]
    return asked


@inlined
def pack_resource(resource, count, scarcity):
    """One resource of a report in one number."""
    most_count, most_scarcity = np.int64((1 << COUNT_BITS) - 1), np.int64((1 << SCARCITY_BITS) - 1)
    return resource | min(count, most_count) << COUNT_SHIFT | min(scarcity, most_scarcity) << SCARCITY_SHIFT


@inlined
def unpack_resource(packed):
    """The resource, the count and the scarcity in one number of a report."""
    resource = packed & np.int64((1 << RESOURCE_BITS) - 1)
    count = packed >> COUNT_SHIFT & np.int64((1 << COUNT_BITS) - 1)
    return resource, count, packed >> SCARCITY_SHIFT
