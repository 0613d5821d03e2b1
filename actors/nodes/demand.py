"""What a node reports at a heartbeat: how long a task is expected to wait, and what its queue asks for.

A node that has something new (also when a first slot falls idle, or the last idle one gets work) reports the expected
wait (actors/nodes/queueing.py), and by resource how many queued entries ask for it and how scarce what they ask for is.
All schedulers receive it at the same time. A message has up to two resources. Where the schedulers are in the node's
partition, all messages take equally long and no node fails, one event stands for the messages of a heartbeat, and
counts as that number of events. It has the changes since the last reports, summed over the nodes: the messages would
cost more time than their contents.
"""

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.faults import generation_of, is_down
from actors.kernel.message_kinds import rank_of
from actors.kernel.queue import RANK_SHIFT, SOURCE_SHIFT, is_whole, push
from actors.kernel.room import idle_slots
from actors.kernel.world import N_REPORTS, NONE, World
from actors.nodes.contention_state import Contention
from actors.nodes.load_messages import HEARTBEAT, MOST_ENTRIES, MOST_SCARCITY, WAIT_REPORTS, send_wait_report
from actors.nodes.queueing import expected_wait
from actors.nodes.waiting import length_of

MOST_WAIT = 2.0**60


@inlined
def wait_now(w: World, c: Contention, node: int) -> float:
    """How long a task that comes to the node now is expected to wait, ns."""
    return expected_wait(c.nodes, node, idle_slots(w, node), c.window, c.rho_cap)


@inlined
def wait_has_changed(w: World, c: Contention, node: int) -> bool:
    """Whether the expected wait differs from the reported one by more than the tolerance."""
    return differs(c, wait_now(w, c, node), c.nodes.wait[node])


@inlined
def differs(c: Contention, wait: float, before: int) -> bool:
    """Whether a new expected wait must be reported; a wait that has become 0 always is."""
    return abs(wait - before) > c.change * before or (wait == 0.0 and before > 0)


@inlined
def expect_report(w: World, c: Contention, t: int, node: int) -> None:
    """Schedule the node's report at the first heartbeat from `t` on."""
    c.nodes.to_report[node] = 1
    c.ring[c.round.end[0] % c.ring.size] = node
    c.round.end[0] += 1
    if c.round.end[0] - c.round.next[0] == 1:
        beat = (t + c.heartbeat - 1) // c.heartbeat * c.heartbeat
        schedule(w, beat, HEARTBEAT, w.queue.now.first[0])


@inlined
def schedule(w: World, time: int, kind: int, actor: int) -> None:
    """Schedule an event of many nodes. Its key belongs to none, so that their messages do not depend on partitions."""
    queue, listener = w.queue, np.int64(w.queue.seq.size - 1)
    key = rank_of(kind) << RANK_SHIFT | listener << SOURCE_SHIFT
    push(queue.now, queue.heap, queue.pool, time, key, kind, actor, NONE, NONE, NONE, NONE)


@compiled
def on_heartbeat(w: World, c: Contention, t: int) -> None:
    """Let nodes report what is new, as many as one event has room for; the others report in a further event."""
    most, together = max((c.crv.size + 1) // 2, 1), are_together(w)
    left: int = w.queue.room - 4
    done = 0
    while c.round.next[0] < c.round.end[0] and left >= most:
        node = c.ring[c.round.next[0] % c.ring.size]
        c.round.next[0] += 1
        c.nodes.to_report[node] = 0
        if not is_down(w, node):
            messages = report(w, c, t, node, together)
            w.counts[N_REPORTS] += messages > 0
            if together:
                c.round.messages[0] += messages
            else:
                left -= messages
        done += 1
    w.queue.now.events[0] += done - 1  # one for each node
    if c.round.messages[0] > 0:
        # They arrive before the next heartbeat: a heartbeat is longer than the network delay.
        schedule(w, t + w.network.cross_ns, WAIT_REPORTS, np.int64(w.queue.seq.size - 1))
    if c.round.next[0] < c.round.end[0]:
        schedule(w, t, HEARTBEAT, w.queue.now.first[0])


@inlined
def are_together(w: World) -> bool:
    """Whether one event may stand for the messages of a heartbeat."""
    return is_whole(w.queue) and w.network.spread_ns == 0.0 and w.cost.model == 0 and w.faults.active == 0


@inlined
def report(w: World, c: Contention, t: int, node: int, together: bool) -> int:
    """Report what is new at a node; return the number of messages."""
    rows, changed = c.nodes, np.int64(0)
    waiting: int = NONE
    wait = wait_now(w, c, node)
    is_other = differs(c, wait, rows.wait[node])
    if c.gated and c.slots[node] - idle_slots(w, node) != c.busy[node]:
        c.busy[node], is_other = c.slots[node] - idle_slots(w, node), True
    if is_other:
        rows.wait[node] = np.int64(min(wait, MOST_WAIT))
    asked = rows.asked[node]
    rows.asked[node] = count_queue(w, c, node)
    asked |= rows.asked[node]
    r = 0
    while asked != 0:
        if asked & 1 == 1:
            entries, scarcity = min(c.counts[r], MOST_ENTRIES), min(c.total[r], MOST_SCARCITY)
            c.counts[r], c.total[r] = 0, 0
            more, scarcer = entries - c.reported[0, node, r], scarcity - c.reported[1, node, r]
            if more != 0 or scarcer != 0:
                c.reported[0, node, r], c.reported[1, node, r] = entries, scarcity
                changed += 1
                if together:
                    c.more[0, r] += more
                    c.more[1, r] += scarcer
                elif changed & 1 == 1:
                    waiting = r
                else:
                    send_report(w, c, t, node, waiting, r)
        asked, r = asked >> 1, r + 1
    if together:
        if is_other:
            add_load(c, node)
    elif changed & 1 == 1 or (is_other and changed == 0):
        send_report(w, c, t, node, waiting if changed > 0 else NONE, NONE)
    return max((changed + 1) // 2, np.int64(is_other))


@inlined
def count_queue(w: World, c: Contention, node: int) -> int:
    """Count the queued entries that ask for each resource, and add up their scarcity; returns the resources as bits.

    `counts` and `total` are 0 before.
    """
    found = np.int64(0)
    entry = w.nodes.head[node]
    while entry != NONE:
        asks, r, count = asks_of(w, c, entry), 0, length_of(w.entries, entry)
        found |= asks
        while asks != 0:
            if asks & 1 == 1:
                c.counts[r] += count
                c.total[r] += count * c.scarcity[w.entries.level[entry], r]
            asks, r = asks >> 1, r + 1
        entry = w.entries.next[entry]
    return found


@inlined
def asks_of(w: World, c: Contention, entry: int) -> int:
    """The resources that an entry asks for, as bits; one of a long job does not count as asking."""
    level = w.entries.level[entry]
    if level == NONE or w.work.is_long[w.entries.job[entry]] == 1:
        return np.int64(0)
    return c.asks[level]


@inlined
def add_load(c: Contention, node: int) -> None:
    """Add the node's load to the event of this heartbeat."""
    i, rows = c.round.loads[0], c.loads
    rows.node[i], rows.wait[i], rows.busy[i] = node, c.nodes.wait[node], c.busy[node]
    c.round.loads[0] = i + 1


@inlined
def send_report(w: World, c: Contention, t: int, node: int, first: int, second: int) -> None:
    """Send a node's report, or a part of it: that of up to two resources, NONE for none."""
    entries, scarcity = reported_of(c, node, first)
    second_entries, second_scarcity = reported_of(c, node, second)
    send_wait_report(
        w, t, node, c.busy[node], generation_of(w, node), c.nodes.wait[node],
        first, entries, scarcity, second, second_entries, second_scarcity,
    )  # fmt: skip


@inlined
def reported_of(c: Contention, node: int, r: int) -> tuple[int, int]:
    """Return the entries that ask for a resource, as last reported, and their scarcity; of NONE 0."""
    if r == NONE:
        return np.int64(0), np.int64(0)
    return c.reported[0, node, r], c.reported[1, node, r]
