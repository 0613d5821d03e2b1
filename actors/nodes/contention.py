"""A node under contention for constrained resources: which entry it serves next, by the CRV.

The CRV (Constraint Resource Vector, Phoenix, ICDCS'17) has for each resource, an attribute of nodes that jobs have
constraints on, what is asked for over what there is: see actors/schedulers/jobs/phoenix.py. A CRV up to the
threshold counts as 0. An entry of a queue has the greatest CRV of the resources that its job asks for at its level;
an entry without constraints, and a long one, has 0.

Where an entry in the queue has a CRV above 0, the entry with the greatest CRV goes first, and among equals the one with
the shortest remaining work; or, `weighted`, the one with the least remaining work over CRV, one of less than 1 counting
as 1. No short entry is passed by more than `slack` times its estimate, as in actors/nodes/shortest.py. Elsewhere the
queue is served as ever.

What a node reports at a heartbeat is in actors/nodes/demand.py.
"""

import math

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.messages import FAIL, read_announced, read_job
from actors.kernel.queue import note
from actors.kernel.room import idle_slots
from actors.kernel.trace import REORDERED
from actors.kernel.world import N_REORDERS, NONE, World
from actors.nodes.contention_state import UNIT, Contention
from actors.nodes.demand import asks_of, expect_report, wait_has_changed
from actors.nodes.failing import is_void
from actors.nodes.messages import PROBE, TASK, TASK_END, read_probe, read_task_end, read_task_sent
from actors.nodes.preemption import preempts
from actors.nodes.queueing import note_idle, note_service, reset_service
from actors.nodes.shortest import pick_first, remaining_work, waits, whole
from actors.nodes.waiting import goes_before
from actors.nodes.worker import give_slot, last_message, next_entry, take_in


@inlined
def contended_resources(c: Contention) -> int:
    """The resources whose CRV is above the threshold, as bits."""
    return c.hot[0]


@inlined
def on_announced(w: World, c: Contention) -> None:
    """Note an announcement of the monitor."""
    resource, crv, counts = read_announced(w)
    if resource == NONE:
        c.open[0] = counts
    else:
        c.crv[resource] = crv
    hot = np.int64(0)
    for r in range(c.crv.size):
        if c.open[0] == 1 and c.crv[r] > 0:
            hot |= np.int64(1) << r
    c.hot[0] = hot


@inlined
def on_contended_node(w: World, c: Contention, t: int, kind: int, node: int) -> None:
    """Handle a message to a node, other than its heartbeat."""
    void, level, idle = w.faults.active == 1 and is_void(w, node), NONE, idle_slots(w, node)
    note_idle(c.nodes, node, t, idle / c.slots[node])
    if kind == FAIL:
        invalidate_report(c, node, t)
    elif kind == TASK_END and not void:
        _, _, start = read_task_end(w)
        note_service(c.nodes, node, float(t - start) / c.slots[node], c.window)
    elif kind == PROBE and w.work.is_long[read_job(w)] == 0:
        _, _, level, _, _, _ = read_probe(w)
    elif (
        kind == TASK and preempts(w) and w.work.is_long[read_job(w)] == 0
    ):  # it may have to wait in the queue
        _, _, level = read_task_sent(w)
    serves, _ = take_in(w, node)
    if serves:
        serve_contended(w, c, t, node)
    evicts = note_evicted(w.preemption.ran, c, node)
    if c.reporting and not void and kind != FAIL and c.nodes.to_report[node] == 0:
        # Entries that ask for a resource have arrived or may have left, or the expected wait has changed.
        asks = level != NONE or c.nodes.asked[node] != 0
        wait_changes = kind == TASK_END or evicts or (idle > 0) != (idle_slots(w, node) > 0)
        if asks or c.gated or (wait_changes and wait_has_changed(w, c, node)):
            expect_report(w, c, t, node)


@inlined
def note_evicted(ran: np.ndarray, c: Contention, node: int) -> bool:
    """Note the attempts that a node has ended in this event; return whether there were any."""
    if ran.size == 0 or ran[0] == 0:
        return False
    for i in range(ran[0]):
        note_service(c.nodes, node, float(ran[1 + i]) / c.slots[node], c.window)
    ran[0] = 0
    return True


@compiled
def invalidate_report(c: Contention, node: int, t: int) -> None:
    """Invalidate the last report of a node that fails: its queue is lost."""
    reset_service(c.nodes, node, t)
    c.nodes.wait[node], c.busy[node], c.nodes.asked[node] = 0, 0, 0
    for r in range(c.counts.size):
        c.reported[0, node, r], c.reported[1, node, r] = 0, 0


@inlined
def serve_contended(w: World, c: Contention, t: int, node: int) -> None:
    """Give idle slots to the next entries."""
    last = last_message(w, node)
    while w.nodes.idle[node] > 0 or preempts(w):
        # A task is evicted for the first entry, not for one that the CRV would let go before it.
        entry, before = next_contended(w, c, node) if w.nodes.idle[node] > 0 else next_entry(w, node)
        if not give_slot(w, t, node, entry, before, last):
            break


@inlined
def next_contended(w: World, c: Contention, node: int) -> tuple[int, int]:
    """Find the next entry to serve and the one in front of it; NONE if none waits."""
    entry = w.nodes.head[node]
    if entry != NONE and w.entries.next[entry] != NONE:
        if c.open[0] == 1 and c.reorder and is_contended(w, c, node):
            return pick_by_crv(w, c, node)
        if not c.shortest_first:
            return pick_first(w, node)
    return next_entry(w, node)


@inlined
def is_contended(w: World, c: Contention, node: int) -> bool:
    """Whether the queue is to be served by the CRV."""
    if c.static:
        return True
    if contended_resources(c) == 0:
        return False
    entry = w.nodes.head[node]
    while entry != NONE:
        if asks_of(w, c, entry) & contended_resources(c) != 0:
            return True
        entry = w.entries.next[entry]
    return False


@inlined
def crv_of(w: World, c: Contention, entry: int) -> int:
    """The greatest CRV of the resources that an entry asks for, 0 if it asks for none."""
    asks, most = asks_of(w, c, entry), np.int64(0)
    for r in range(c.crv.size):
        if asks >> r & 1 == 1:
            most = max(most, c.crv[r])
    return most


@compiled
def pick_by_crv(w: World, c: Contention, node: int) -> tuple[int, int]:
    """Find the entry with the greatest CRV and the one in front of it, within the bound on starvation.

    A long entry at the front goes first; one that is chosen from further back ends the scan, as in `pick_shortest`. By
    fixed weights any long entry ends it. Entries that do not wait for a slot are skipped, and are not bypassed.
    """
    rows = w.entries
    entry, before = w.nodes.head[node], NONE
    chosen, in_front = NONE, NONE
    most: int = NONE
    least, slack = math.inf, math.inf
    some_wait = passes = False
    while entry != NONE:
        if waits(w, entry):
            job = rows.job[entry]
            is_long = w.work.is_long[job] == 1
            if chosen != NONE and goes_before(w, rows.job[chosen], job):
                break
            if is_long and c.static and chosen != NONE:
                break
            estimate, crv = w.work.estimate[job], crv_of(w, c, entry)
            remaining = 0.0
            if not c.static and c.shortest_first:
                remaining = remaining_work(w, entry)
            if c.weighted:
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
        note(w, w.queue.now.time[0], node, REORDERED, rows.job[chosen], rows.task[chosen], most, whole(least))
    return chosen, in_front
