"""A node under contention for constrained resources: which entry it serves next, by the CRV.

The CRV (Constraint Resource Vector, Phoenix, ICDCS'17) has for each resource, an attribute of nodes that jobs have
constraints on, what is asked for over what there is: see actors/schedulers/jobs/phoenix.py. A CRV up to the
threshold counts as 0. An entry of a queue has the greatest CRV of the resources that its job asks for at its level;
an entry without constraints, and a long one, has 0.

Where an entry in the queue has a CRV above 0, the entry with the greatest CRV goes first, and among equals the one with
the shortest remaining work; or, `weighted`, the one with the least remaining work over CRV, one of less than 1 counting
as 1. No short entry is passed by more than `slack` times its estimate, as in actors/nodes/waiting.py. Elsewhere the
queue is served as at other nodes.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from actors.failures import generation_of, is_down
from actors.kernel.compiled import compiled, inlined
from actors.kernel.message_kinds import rank_of
from actors.kernel.messages import FAIL, read_announced, read_job
from actors.kernel.queue import NONE, RANK_SHIFT, SOURCE_SHIFT, is_whole, note, push
from actors.kernel.records import Records, records
from actors.kernel.trace import REORDERED
from actors.nodes.failing import is_void
from actors.nodes.messages import (
    HEARTBEAT,
    MOST_ENTRIES,
    MOST_SCARCITY,
    PROBE,
    TASK,
    TASK_END,
    WAIT_REPORTS,
    read_probe,
    read_task_end,
    read_task_sent,
    send_wait_report,
)
from actors.nodes.preemption import preempts
from actors.nodes.waiting import goes_before, length_of, pick_first, remaining_work, waits, whole
from actors.nodes.worker import give_slot, last_message, next_entry, take_in
from actors.nodes.world import N_REORDERS, N_REPORTS, World
from actors.resources import idle_slots

# The expected waiting time of a task at a node: an M/G/1 queue, by the Pollaczek-Khinchin formula.
#
# E[W] = λ E[S²] / (2 (1 - ρ)) with ρ = λ E[S]. That is ρ E[R] / (1 - ρ), where E[R] = E[S²] / (2 E[S]) is what a
# running task has left on the mean: a task finds the server busy with probability ρ (Poisson arrivals see time
# averages), waits E[R] / (1 - ρ) then, and not at all otherwise. A node knows which case it is in. So it expects no
# wait while a slot is idle and E[W | busy] = E[R] / (1 - ρ) while none is; over time that is P-K's mean. Several slots
# count as one server as many times as fast; with exponential tasks E[W | busy] is then that of M/M/c.
#
# λ and the moments of S are the node's own: means over about the last `window` tasks that it ran, older ones fading
# out. λ is the rate at which tasks leave: under late binding a node does not know which of its probes will bring a
# task, and a sticky one brings several; and as many tasks leave a queue as come to it, unless it grows without end.
# There ρ comes to 1, and a cap keeps the formula finite. From one task to the next passes the time for which the server
# works and the time for which it is idle, so that 1 / λ = E[S] + E[I]. The idle time before a task counts from its
# start on: a node that has had nothing to do for an hour knows that when the next task comes, and not when that ends.
# The time for which a slot is held for a scheduler's answer counts as neither. An attempt that is evicted leaves as a
# task that ends does.

# Of one node, times in ns of one server.
SERVED = np.dtype(
    [
        ("seen", "i8"),  # attempts that ended
        ("since", "i8"),  # up to when idle time is counted
        ("unused", "f8"),  # idle time since the last end
        ("idle", "f8"),  # mean idle time between two ends
        ("service", "f8"),  # mean service time
        ("square", "f8"),  # its mean square
    ]
)


@inlined
def note_idle(rows: Records, node: int, t: int, share: float) -> None:
    """Note that this share of the node's slots was idle up to `t`."""
    if share > 0.0:
        rows.unused[node] += share * (t - rows.since[node])
    rows.since[node] = t


@inlined
def note_service(rows: Records, node: int, service: float, window: int) -> None:
    """Note the end of an attempt that took a server `service` ns."""
    seen = rows.seen[node] + 1
    share = 1.0 / min(seen, window)
    rows.idle[node] += (rows.unused[node] - rows.idle[node]) * share
    rows.service[node] += (service - rows.service[node]) * share
    rows.square[node] += (service * service - rows.square[node]) * share
    rows.seen[node], rows.unused[node] = seen, 0.0


@inlined
def reset_service(rows: Records, node: int, t: int) -> None:
    """Discard what the node has measured before `t`."""
    rows.seen[node], rows.since[node], rows.unused[node] = 0, t, 0.0
    rows.idle[node], rows.service[node], rows.square[node] = 0.0, 0.0, 0.0


@inlined
def expected_wait(rows: Records, node: int, idle_slots: int, window: int, rho_cap: float) -> float:
    """Return E[W] of a task that arrives now, ns; 0 while a slot is idle, and before the first task has ended."""
    if idle_slots > 0 or rows.service[node] <= 0.0:
        return 0.0
    # The idle time since the last end belongs to the next end, and is weighted like it.
    idle = rows.idle[node] + (rows.unused[node] - rows.idle[node]) / min(rows.seen[node] + 1, window)
    rho = min(rows.service[node] / (rows.service[node] + idle), rho_cap)
    return rows.square[node] / (2.0 * rows.service[node] * (1.0 - rho))


# State of nodes under contention: what they know of the CRV and of their own queues.

UNIT = np.int64(1) << 32  # of a CRV
SHARE = np.int64(1) << 10  # scarcity of one entry that asks for what all nodes have

NODE = np.dtype(
    [
        *SERVED.descr,
        ("wait", "i8"),  # E[W] as last reported, ns
        ("asked", "i8"),  # bits: resources that queued entries ask for, as last reported
        ("to_report", "i8"),  # 1: there may be something new
    ]
)


# A ring of the nodes that have something to report; and, for the event that stands for a heartbeat's messages, the
# numbers of messages and of loads of nodes.
ROUND = np.dtype([("next", "i8"), ("end", "i8"), ("messages", "i8"), ("loads", "i8")])
LOAD = np.dtype([("node", "i8"), ("wait", "i8"), ("busy", "i8")])

# The weights of the authors' simulator: the relative slowdown of jobs with such a constraint. Table II of the paper has
# the same figures with two digits behind the point, but 2.03 for the instruction set.
WEIGHTS = {
    "isa": 2.0,
    "cpus": 1.966,
    "port": 1.9122,
    "cores": 1.9054,
    "max_disks": 1.9054,
    "kernel": 1.777,
    "clock": 1.7567,
    "min_disks": 0.9121,
}


class Contention(NamedTuple):
    """What nodes know of the CRV and of themselves; N nodes, R resources, V levels of all sets of constraints."""

    crv: np.ndarray  # [R] in UNIT, as last announced; 0 up to the threshold
    hot: np.ndarray  # [1] bits: resources whose CRV is above it
    open: np.ndarray  # [1] 1: the CRV counts, 0: the cluster's load is too low for that
    asks: np.ndarray  # [V] bits: the resources that a job asks for at this level
    scarcity: np.ndarray  # [V, R] in SHARE: N over the number of nodes that have what is asked for
    nodes: Records  # [N] NODE
    busy: np.ndarray  # [N] busy slots as last reported, where that is wanted
    reported: np.ndarray  # [2, N, R] as last reported: entries that ask for a resource, and their scarcity
    counts: np.ndarray  # [R] scratch, 0 between reports
    total: np.ndarray  # [R] scratch, 0 between reports
    slots: np.ndarray  # [N]
    ring: np.ndarray  # [N] nodes that are to report at the next heartbeat
    round: Records  # [1] ROUND
    loads: Records  # [N] LOAD, those that one event brings
    # [2, R] what one event brings: by how much the entries that ask for a resource, and their scarcity, have grown
    more: np.ndarray
    reorder: bool  # nodes serve their queues by the CRV
    weighted: bool  # by remaining work over CRV
    static: bool  # by weights that never change, first come first served among equals; all queues, where they count
    shortest_first: bool  # where it does not, the shortest remaining job goes first
    reporting: bool  # there is a monitor to report to
    gated: bool  # and wants to know the load
    window: int  # tasks
    rho_cap: float
    change: float  # share by which the expected wait must have changed to be reported again
    heartbeat: int  # ns


def make_contention(
    asks: np.ndarray, scarcity: np.ndarray, slots: np.ndarray, crv: np.ndarray, **settings: Any
) -> Contention:
    """Return the state of nodes without reports; `settings` are the scalars of `Contention`."""
    nodes, resources = slots.size, crv.size
    return Contention(
        crv=crv.astype(np.int64),
        hot=np.zeros(1, np.int64),
        open=np.zeros(1, np.int64),
        asks=asks,
        scarcity=scarcity,
        nodes=records(NODE, nodes),
        busy=np.zeros(nodes, np.int64),
        reported=np.zeros((2, nodes, resources), np.int64),
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
def contended_resources(contention: Contention) -> int:
    """The resources whose CRV is above the threshold, as bits."""
    return contention.hot[0]


@inlined
def on_announced(w: World, contention: Contention) -> None:
    """Note an announcement of the monitor."""
    resource, crv, counts = read_announced(w)
    if resource == NONE:
        contention.open[0] = counts
    else:
        contention.crv[resource] = crv
    hot = np.int64(0)
    for r in range(contention.crv.size):
        if contention.open[0] == 1 and contention.crv[r] > 0:
            hot |= np.int64(1) << r
    contention.hot[0] = hot


@inlined
def on_contended_node(w: World, contention: Contention, t: int, kind: int, node: int) -> None:
    """Handle a message to a node, other than its heartbeat."""
    void, level, idle = w.faults.active == 1 and is_void(w, node), NONE, idle_slots(w, node)
    note_idle(contention.nodes, node, t, idle / contention.slots[node])
    if kind == FAIL:
        invalidate_report(contention, node, t)
    elif kind == TASK_END and not void:
        _, _, start = read_task_end(w)
        note_service(contention.nodes, node, float(t - start) / contention.slots[node], contention.window)
    elif kind == PROBE and w.work.is_long[read_job(w)] == 0:
        _, _, level, _, _, _ = read_probe(w)
    elif (
        kind == TASK and preempts(w) and w.work.is_long[read_job(w)] == 0
    ):  # it may have to wait in the queue
        _, _, level = read_task_sent(w)
    serves, _ = take_in(w, node)
    if serves:
        serve_contended(w, contention, t, node)
    evicts = note_evicted(w.preemption.ran, contention, node)
    if contention.reporting and not void and kind != FAIL and contention.nodes.to_report[node] == 0:
        # Entries that ask for a resource have arrived or may have left, or the expected wait has changed.
        asks = level != NONE or contention.nodes.asked[node] != 0
        wait_changes = kind == TASK_END or evicts or (idle > 0) != (idle_slots(w, node) > 0)
        if asks or contention.gated or (wait_changes and wait_has_changed(w, contention, node)):
            expect_report(w, contention, t, node)


@inlined
def note_evicted(ran: np.ndarray, contention: Contention, node: int) -> bool:
    """Note the attempts that a node has ended in this event; return whether there were any."""
    if ran.size == 0 or ran[0] == 0:
        return False
    for i in range(ran[0]):
        note_service(contention.nodes, node, float(ran[1 + i]) / contention.slots[node], contention.window)
    ran[0] = 0
    return True


@compiled
def invalidate_report(contention: Contention, node: int, t: int) -> None:
    """Invalidate the last report of a node that fails: its queue is lost."""
    reset_service(contention.nodes, node, t)
    contention.nodes.wait[node], contention.busy[node], contention.nodes.asked[node] = 0, 0, 0
    for r in range(contention.counts.size):
        contention.reported[0, node, r], contention.reported[1, node, r] = 0, 0


@inlined
def serve_contended(w: World, contention: Contention, t: int, node: int) -> None:
    """Give idle slots to the next entries."""
    last = last_message(w, node)
    while w.nodes.idle[node] > 0 or preempts(w):
        # A task is evicted for the first entry, not for one that the CRV would let go before it.
        entry, before = next_contended(w, contention, node) if w.nodes.idle[node] > 0 else next_entry(w, node)
        if not give_slot(w, t, node, entry, before, last):
            break


@inlined
def next_contended(w: World, contention: Contention, node: int) -> tuple[int, int]:
    """Find the next entry to serve and the one in front of it; NONE if none waits."""
    entry = w.nodes.head[node]
    if entry != NONE and w.entries.next[entry] != NONE:
        if contention.open[0] == 1 and contention.reorder and is_contended(w, contention, node):
            return pick_by_crv(w, contention, node)
        if not contention.shortest_first:
            return pick_first(w, node)
    return next_entry(w, node)


@inlined
def is_contended(w: World, contention: Contention, node: int) -> bool:
    """Whether the queue is to be served by the CRV."""
    if contention.static:
        return True
    if contended_resources(contention) == 0:
        return False
    entry = w.nodes.head[node]
    while entry != NONE:
        if asks_of(w, contention, entry) & contended_resources(contention) != 0:
            return True
        entry = w.entries.next[entry]
    return False


@inlined
def crv_of(w: World, contention: Contention, entry: int) -> int:
    """The greatest CRV of the resources that an entry asks for, 0 if it asks for none."""
    asks, most = asks_of(w, contention, entry), np.int64(0)
    for r in range(contention.crv.size):
        if asks >> r & 1 == 1:
            most = max(most, contention.crv[r])
    return most


@compiled
def pick_by_crv(w: World, contention: Contention, node: int) -> tuple[int, int]:
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
            if is_long and contention.static and chosen != NONE:
                break
            estimate, crv = w.work.estimate[job], crv_of(w, contention, entry)
            remaining = 0.0
            if not contention.static and contention.shortest_first:
                remaining = remaining_work(w, entry)
            if contention.weighted:
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


# What a node reports at a heartbeat: how long a task is expected to wait, and what its queue asks for.
#
# A node that has something new (also when a first slot falls idle, or the last idle one gets work) reports the expected
# wait, and by resource how many queued entries ask for it and how scarce what they ask for
# is. All schedulers receive it at the same time. A message has up to two resources. Where the schedulers are in the
# node's partition, all messages take equally long and no node fails, one event stands for the messages of a heartbeat,
# and counts as that number of events. It has the changes since the last reports, summed over the nodes: the messages
# would cost more time than their contents.

MOST_WAIT = 2.0**60


@inlined
def wait_now(w: World, contention: Contention, node: int) -> float:
    """How long a task that comes to the node now is expected to wait, ns."""
    return expected_wait(contention.nodes, node, idle_slots(w, node), contention.window, contention.rho_cap)


@inlined
def wait_has_changed(w: World, contention: Contention, node: int) -> bool:
    """Whether the expected wait differs from the reported one by more than the tolerance."""
    return differs(contention, wait_now(w, contention, node), contention.nodes.wait[node])


@inlined
def differs(contention: Contention, wait: float, before: int) -> bool:
    """Whether a new expected wait must be reported; a wait that has become 0 always is."""
    return abs(wait - before) > contention.change * before or (wait == 0.0 and before > 0)


@inlined
def expect_report(w: World, contention: Contention, t: int, node: int) -> None:
    """Schedule the node's report at the first heartbeat from `t` on."""
    contention.nodes.to_report[node] = 1
    contention.ring[contention.round.end[0] % contention.ring.size] = node
    contention.round.end[0] += 1
    if contention.round.end[0] - contention.round.next[0] == 1:
        beat = (t + contention.heartbeat - 1) // contention.heartbeat * contention.heartbeat
        schedule(w, beat, HEARTBEAT, w.queue.now.first[0])


@inlined
def schedule(w: World, time: int, kind: int, actor: int) -> None:
    """Schedule an event of many nodes. Its key belongs to none, so that their messages do not depend on partitions."""
    queue, listener = w.queue, np.int64(w.queue.seq.size - 1)
    key = rank_of(kind) << RANK_SHIFT | listener << SOURCE_SHIFT
    push(queue.now, queue.heap, queue.pool, time, key, kind, actor, NONE, NONE, NONE, NONE)


@compiled
def on_heartbeat(w: World, contention: Contention, t: int) -> None:
    """Let nodes report what is new, as many as one event has room for; the others report in a further event."""
    most, together = max((contention.crv.size + 1) // 2, 1), are_together(w)
    left: int = w.queue.room - 4
    done = 0
    while contention.round.next[0] < contention.round.end[0] and left >= most:
        node = contention.ring[contention.round.next[0] % contention.ring.size]
        contention.round.next[0] += 1
        contention.nodes.to_report[node] = 0
        if not is_down(w, node):
            messages = report(w, contention, t, node, together)
            w.counts[N_REPORTS] += messages > 0
            if together:
                contention.round.messages[0] += messages
            else:
                left -= messages
        done += 1
    w.queue.now.events[0] += done - 1  # one for each node
    if contention.round.messages[0] > 0:
        # They arrive before the next heartbeat: a heartbeat is longer than the network delay.
        schedule(w, t + w.network.cross_ns, WAIT_REPORTS, np.int64(w.queue.seq.size - 1))
    if contention.round.next[0] < contention.round.end[0]:
        schedule(w, t, HEARTBEAT, w.queue.now.first[0])


@inlined
def are_together(w: World) -> bool:
    """Whether one event may stand for the messages of a heartbeat."""
    return is_whole(w.queue) and w.network.spread_ns == 0.0 and w.cost.model == 0 and w.faults.active == 0


@inlined
def report(w: World, contention: Contention, t: int, node: int, together: bool) -> int:
    """Report what is new at a node; return the number of messages."""
    rows, changed = contention.nodes, np.int64(0)
    waiting: int = NONE
    wait = wait_now(w, contention, node)
    is_other = differs(contention, wait, rows.wait[node])
    if contention.gated and contention.slots[node] - idle_slots(w, node) != contention.busy[node]:
        contention.busy[node], is_other = contention.slots[node] - idle_slots(w, node), True
    if is_other:
        rows.wait[node] = np.int64(min(wait, MOST_WAIT))
    asked = rows.asked[node]
    rows.asked[node] = count_queue(w, contention, node)
    asked |= rows.asked[node]
    r = 0
    while asked != 0:
        if asked & 1 == 1:
            entries, scarcity = (
                min(contention.counts[r], MOST_ENTRIES),
                min(contention.total[r], MOST_SCARCITY),
            )
            contention.counts[r], contention.total[r] = 0, 0
            more, scarcer = (
                entries - contention.reported[0, node, r],
                scarcity - contention.reported[1, node, r],
            )
            if more != 0 or scarcer != 0:
                contention.reported[0, node, r], contention.reported[1, node, r] = entries, scarcity
                changed += 1
                if together:
                    contention.more[0, r] += more
                    contention.more[1, r] += scarcer
                elif changed & 1 == 1:
                    waiting = r
                else:
                    send_report(w, contention, t, node, waiting, r)
        asked, r = asked >> 1, r + 1
    if together:
        if is_other:
            add_load(contention, node)
    elif changed & 1 == 1 or (is_other and changed == 0):
        send_report(w, contention, t, node, waiting if changed > 0 else NONE, NONE)
    return max((changed + 1) // 2, np.int64(is_other))


@inlined
def count_queue(w: World, contention: Contention, node: int) -> int:
    """Count the queued entries that ask for each resource, and add up their scarcity; returns the resources as bits.

    `counts` and `total` are 0 before.
    """
    found = np.int64(0)
    entry = w.nodes.head[node]
    while entry != NONE:
        asks, r, count = asks_of(w, contention, entry), 0, length_of(w.entries, entry)
        found |= asks
        while asks != 0:
            if asks & 1 == 1:
                contention.counts[r] += count
                contention.total[r] += count * contention.scarcity[w.entries.level[entry], r]
            asks, r = asks >> 1, r + 1
        entry = w.entries.next[entry]
    return found


@inlined
def asks_of(w: World, contention: Contention, entry: int) -> int:
    """The resources that an entry asks for, as bits; one of a long job does not count as asking."""
    level = w.entries.level[entry]
    if level == NONE or w.work.is_long[w.entries.job[entry]] == 1:
        return np.int64(0)
    return contention.asks[level]


@inlined
def add_load(contention: Contention, node: int) -> None:
    """Add the node's load to the event of this heartbeat."""
    i, rows = contention.round.loads[0], contention.loads
    rows.node[i], rows.wait[i], rows.busy[i] = node, contention.nodes.wait[node], contention.busy[node]
    contention.round.loads[0] = i + 1


@inlined
def send_report(w: World, contention: Contention, t: int, node: int, first: int, second: int) -> None:
    """Send a node's report, or a part of it: that of up to two resources, NONE for none."""
    entries, scarcity = reported_of(contention, node, first)
    second_entries, second_scarcity = reported_of(contention, node, second)
    send_wait_report(
        w, t, node, contention.busy[node], generation_of(w, node), contention.nodes.wait[node],
        first, entries, scarcity, second, second_entries, second_scarcity,
    )  # fmt: skip


@inlined
def reported_of(contention: Contention, node: int, r: int) -> tuple[int, int]:
    """Return the entries that ask for a resource, as last reported, and their scarcity; of NONE 0."""
    if r == NONE:
        return np.int64(0), np.int64(0)
    return contention.reported[0, node, r], contention.reported[1, node, r]
