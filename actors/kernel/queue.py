"""Messages in virtual time: one partition's event queue.

A message is one row of eight int64, 64 bytes: a cache line here, a fixed-width row on the wire. Events are
ordered by (time, rank of the kind, source actor, the source's own sequence number), a total order that does
not depend on how actors are grouped into partitions; the last three make up the `key`.

Two containers share the work. With a constant network delay, messages are sent in the order in which they
arrive: they go to a ring (the lane), appended and taken in constant time. Those of one instant are brought into
order when their turn comes; they are few, and lie side by side. Whatever would break the lane's order of time,
and all that an actor sends itself for later, goes to a 4-ary heap. Its nodes hold time and slot alone, so that a sift
moves 16 bytes and not a message of 64.

What is for an actor of another partition goes to the outbox; the host of the partitions delivers it. A message to all
schedulers, or to all actors, is taken by the listener, the last actor, of which partitions have copies.
"""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.message_kinds import PUBLISHED, is_background, rank_of
from actors.kernel.random import DELAYS, random_bits, unit
from actors.kernel.records import Records, doubled, records
from actors.kernel.trace import ACTOR_BITS, SENT_BITS, Trace, append_row, is_recorded, no_trace

MESSAGE = np.dtype([(name, "i8") for name in ("time", "key", "kind", "dst", "a", "b", "c", "d")])
RANK_SHIFT, SOURCE_SHIFT = 59, 35  # rank: 4 bits, source actor: 24 bits, sequence number: 35 bits
MOST_ACTORS = 1 << 24
NEVER = np.int64(1) << 62  # a time, ns: nothing happens from here on, 146 years

NONE = np.int64(-1)  # no actor, job, task, entry or version

# Stop reasons of a loop. HANDED: the event at hand is for the other one of two loops (`actors.kernel.turns`).
RUNNING, HORIZON, IDLE, GROW, PYTHON, HANDED = range(6)
SPARE = np.int64(8)  # messages that an event may send besides those of which it sends many

# The message being handled, and the queue's cursors: a single row.
CURSOR = np.dtype(
    [
        *MESSAGE.descr,
        ("lane_head", "i8"),  # messages ever taken from the lane
        ("lane_tail", "i8"),  # messages ever appended to it
        ("lane_group", "i8"),  # the first message of the instant that is being taken
        ("lane_ready", "i8"),  # messages up to here are in order
        ("heap_size", "i8"),
        ("events", "i8"),  # messages handled
        ("first", "i8"),  # the actors of this partition: nodes, or all actors, with ids from `first` on
        ("end", "i8"),  # and below `end`
        ("first_scheduler", "i8"),  # and schedulers, with ids from here on
        ("end_scheduler", "i8"),  # and below this
        # 1: of the copies of a message to all schedulers, that of this partition is an event
        ("counts_copies", "i8"),
        # 1: what is sent is held back in the outbox until the cost of its handler is known
        ("held_back", "i8"),
        ("lookahead", "i8"),  # of a partition that may run ahead of the others, ns; else NEVER
        ("limit", "i8"),  # from here on another partition may answer what it has sent
        ("outbox_size", "i8"),  # messages for actors of other partitions
        ("background", "i8"),  # background messages in lane and heap; counted where nodes can fail
        ("unfinished", "i8"),  # tasks less those that ended here; counted where nodes can fail
        # Where nodes share a network, one loop handles its events, and one those of schedulers and nodes.
        ("two_loops", "i8"),  # 1: there are both
        ("turn", "i8"),  # which of them goes on: 1: that of the network
        ("handed", "i8"),  # 1: the event at hand was taken by the other one, and waits for this one
    ]
)
# Of the heap's slots the first `heap_size` are in order of the heap; the rest are free.
HEAP = np.dtype([("time", "i8"), ("slot", "i8")])


class Queue(NamedTuple):
    """The event queue of one partition."""

    now: Records  # [1] CURSOR
    lane: Records  # [power of two] ring of messages in order of time
    order: np.ndarray  # [the same] the message to take as the i-th of the lane
    heap: Records  # HEAP
    pool: Records  # messages that wait in the heap, by slot
    outbox: Records  # messages for other partitions, in the order in which they were sent
    seq: np.ndarray  # [actors] the next sequence number of each actor; a column of the actors' table
    room: int  # the most messages that the handling of one event may send
    trace: Trace  # the record of what happens


class Network(NamedTuple):
    """The delays of messages between two actors."""

    delay_ns: int  # within a rack, and the least there is
    cross_ns: int  # between racks, and to and from schedulers
    spread_ns: float  # mean of an exponential on top; 0 for none
    rack: np.ndarray  # [nodes]
    seed: int
    varies: int  # 0: every message takes delay_ns


class HasQueue(Protocol):
    """The part of a world that the functions of this file need."""

    @property
    def queue(self) -> Queue:
        """The event queue."""

    @property
    def network(self) -> Network:
        """The delays of messages."""

    @property
    def cost(self) -> Any:
        """The cost model, an `actors.kernel.cost.Cost`."""


def make_queue(seq: np.ndarray, room: int, capacity: int = 1 << 12) -> Queue:
    """Return an empty queue in which one event may send up to `room` messages."""
    while capacity < 2 * room + 2:
        capacity *= 2
    heap = records(HEAP, capacity)
    heap.slot[:] = np.arange(capacity)
    now = records(CURSOR, 1)
    now.end[0] = seq.size
    now.counts_copies[0], now.lookahead[0], now.limit[0] = 1, NEVER, NEVER
    return Queue(
        now=now,
        lane=records(MESSAGE, capacity),
        order=np.zeros(capacity, np.int64),
        heap=heap,
        pool=records(MESSAGE, capacity),
        outbox=records(MESSAGE, capacity),
        seq=seq,
        room=room,
        trace=no_trace(),
    )


def grow_queue(queue: Queue, messages: int = 0) -> Queue:
    """Return the same queue, with twice the space in each container that is short of it.

    Args:
        messages: how many are to be inserted besides those that one event may send.
    """
    now, lane = queue.now[0], queue.lane
    room = queue.room + messages
    if lane.size - (now.lane_tail - now.lane_group) < room:
        wider, order = records(MESSAGE, 2 * lane.size), np.zeros(2 * lane.size, np.int64)
        places = np.arange(now.lane_group, now.lane_tail)
        wider[places & (wider.size - 1)] = lane[places & (lane.size - 1)]
        order[places & (wider.size - 1)] = queue.order[places & (lane.size - 1)]
        queue = queue._replace(lane=wider, order=order)
    size = queue.heap.size
    if size - now.heap_size < room:
        heap, pool = doubled(queue.heap), doubled(queue.pool)
        heap.slot[size:] = np.arange(size, 2 * size)
        queue = queue._replace(heap=heap, pool=pool)
    if queue.outbox.size - now.outbox_size < queue.room:
        queue = queue._replace(outbox=doubled(queue.outbox))
    return queue


@inlined
def write_message(
    rows: Records, i: int, time: int, key: int, kind: int, dst: int, a: int, b: int, c: int, d: int
) -> None:
    """Write a message into row `i`."""
    rows.time[i], rows.key[i], rows.kind[i], rows.dst[i] = time, key, kind, dst
    rows.a[i], rows.b[i], rows.c[i], rows.d[i] = a, b, c, d


@inlined
def copy_message(to: Any, source: Records, i: int) -> None:
    """Copy row `i` of `source` into the single row `to`."""
    to.time[0], to.key[0], to.kind[0], to.dst[0] = (
        source.time[i],
        source.key[i],
        source.kind[i],
        source.dst[i],
    )
    to.a[0], to.b[0], to.c[0], to.d[0] = source.a[i], source.b[i], source.c[i], source.d[i]


@compiled
def push(
    now: Records,
    heap: Records,
    pool: Records,
    time: int,
    key: int,
    kind: int,
    dst: int,
    a: int,
    b: int,
    c: int,
    d: int,
) -> None:
    """Insert a message into the heap of a queue."""
    i = now.heap_size[0]
    slot = heap.slot[i]
    now.heap_size[0] = i + 1
    write_message(pool, slot, time, key, kind, dst, a, b, c, d)
    while i > 0:
        up = (i - 1) >> 2
        if heap.time[up] < time or (heap.time[up] == time and pool.key[heap.slot[up]] < key):
            break
        heap.time[i], heap.slot[i] = heap.time[up], heap.slot[up]
        i = up
    heap.time[i], heap.slot[i] = time, slot


@inlined
def drop_first(now: Records, heap: Records, pool: Records) -> None:
    """Remove the first message of the heap, and free its slot."""
    n = now.heap_size[0] - 1
    now.heap_size[0] = n
    time, slot = heap.time[n], heap.slot[n]
    heap.slot[n] = heap.slot[0]
    if n == 0:
        return
    key = pool.key[slot]
    i = 0
    while 4 * i + 1 < n:
        least = 4 * i + 1
        for child in range(least + 1, min(least + 4, n)):
            if heap.time[child] < heap.time[least] or (
                heap.time[child] == heap.time[least]
                and pool.key[heap.slot[child]] < pool.key[heap.slot[least]]
            ):
                least = child
        if heap.time[least] > time or (heap.time[least] == time and pool.key[heap.slot[least]] > key):
            break
        heap.time[i], heap.slot[i] = heap.time[least], heap.slot[least]
        i = least
    heap.time[i], heap.slot[i] = time, slot


@inlined
def next_key(queue: Queue, src: int, kind: int) -> int:
    """Return the order key of the next message of `src`, and count the message."""
    seq = queue.seq[src]
    queue.seq[src] = seq + 1
    return (rank_of(kind) << RANK_SHIFT) | (src << SOURCE_SHIFT) | seq


@compiled
def network_delay(network: Network, src: int, dst: int, key: int) -> int:
    """Return the delay of a message, ns, where delays differ; its random part is drawn from the message's key."""
    delay = network.delay_ns
    nodes = network.rack.size
    if src >= nodes or dst >= nodes or network.rack[src] != network.rack[dst]:
        delay = network.cross_ns
    if network.spread_ns > 0.0:
        bits = random_bits(network.seed, DELAYS, src, key)
        delay += np.int64(-math.log(unit(bits)) * network.spread_ns)
    return delay


@inlined
def is_here(queue: Queue, actor: int) -> bool:
    """Return whether an actor is of this partition."""
    now = queue.now
    return now.first[0] <= actor < now.end[0] or now.first_scheduler[0] <= actor < now.end_scheduler[0]


@inlined
def is_whole(queue: Queue) -> bool:
    """Return whether all actors are of this partition."""
    return queue.now.end[0] - queue.now.first[0] == queue.seq.size


@inlined
def send(w: HasQueue, t: int, src: int, dst: int, kind: int, a: int, b: int, c: int, d: int) -> None:
    """Send a message from one actor to another at time `t`; it arrives after the network delay."""
    queue = w.queue
    key = next_key(queue, src, kind)
    delay = w.network.delay_ns
    if w.network.varies == 1:
        delay = network_delay(w.network, src, dst, key)
    time, heaped, stays = t + delay, delay == 0, is_here(queue, dst)
    if w.cost.model > 0:  # what a scheduler sends leaves when it is done
        time += w.cost.handler.spent[0]
        heaped, stays = True, stays and queue.now.held_back[0] == 0
    if stays:
        insert(queue, heaped, time, key, kind, dst, a, b, c, d)
    else:
        post(queue.now, queue.outbox, time, key, kind, dst, a, b, c, d)


@inlined
def insert(
    queue: Queue, heaped: bool, time: int, key: int, kind: int, dst: int, a: int, b: int, c: int, d: int
) -> None:
    """Append a message to the lane; or insert it into the heap, if it is earlier than the lane's last, or `heaped`."""
    now, lane = queue.now, queue.lane
    tail = now.lane_tail[0]
    if heaped or (tail > now.lane_head[0] and lane.time[(tail - 1) & (lane.size - 1)] > time):
        push(now, queue.heap, queue.pool, time, key, kind, dst, a, b, c, d)
    else:
        i = tail & (lane.size - 1)
        write_message(lane, i, time, key, kind, dst, a, b, c, d)
        queue.order[i] = tail
        now.lane_tail[0] = tail + 1


@inlined
def wake(w: HasQueue, time: int, actor: int, kind: int, a: int, b: int, c: int) -> None:
    """Send a message of an actor to itself that arrives at `time`, which may be now."""
    queue, key = w.queue, next_key(w.queue, actor, kind)
    push(queue.now, queue.heap, queue.pool, time, key, kind, actor, a, b, c, NONE)


@inlined
def wake_in_background(w: HasQueue, time: int, actor: int, kind: int) -> None:
    """Send a background message of a node to itself."""
    wake(w, time, actor, kind, NONE, NONE, NONE)
    w.queue.now.background[0] += 1


@compiled
def post(
    now: Records, outbox: Records, time: int, key: int, kind: int, dst: int, a: int, b: int, c: int, d: int
) -> None:
    """Append a message for another partition to the outbox."""
    i = now.outbox_size[0]
    now.limit[0] = min(now.limit[0], time + now.lookahead[0])
    write_message(outbox, i, time, key, kind, dst, a, b, c, d)
    now.outbox_size[0] = i + 1


@inlined
def has_schedulers(queue: Queue) -> bool:
    """Return whether any scheduler is of this partition, which then has a copy of the listener."""
    return is_whole(queue) or queue.now.first_scheduler[0] < queue.now.end_scheduler[0]


@inlined
def publish(w: HasQueue, t: int, kind: int, a: int, b: int, c: int) -> None:
    """Send a change of shared state to the schedulers of all other partitions, without a delay.

    Within a partition they read the state. The messages that make them read it take at least the network delay.
    """
    queue, listener = w.queue, w.queue.seq.size - 1
    if not is_whole(queue):
        key = next_key(queue, listener, kind)
        post(queue.now, queue.outbox, t, key, kind, listener, a, b, c, NONE)


@inlined
def announce(w: HasQueue, t: int, src: int, kind: int, a: int, b: int, c: int) -> None:
    """Send one message to all actors of all partitions; it arrives at the same time, also where delays vary."""
    queue, listener = w.queue, w.queue.seq.size - 1
    key, time = next_key(queue, src, kind), t + w.network.cross_ns + w.cost.handler.spent[0]
    insert(queue, True, time, key, kind, listener, a, b, c, NONE)
    if not is_whole(queue):
        post(queue.now, queue.outbox, time, key, kind, listener, a, b, c, NONE)


@inlined
def send_to_schedulers(w: HasQueue, t: int, node: int, kind: int, a: int, b: int, c: int, d: int) -> None:
    """Send one message of a node to all schedulers, which receive it at one time: each partition of them has a copy."""
    queue, now, listener = w.queue, w.queue.now, np.int64(w.queue.seq.size - 1)
    key, delay = next_key(queue, node, kind), w.network.delay_ns
    if w.network.varies == 1:
        delay = network_delay(w.network, node, listener, key)
    if has_schedulers(queue):
        insert(queue, delay == 0, t + delay, key, kind, listener, a, b, c, d)
        if is_background(kind):
            now.background[0] += 1
        elif now.counts_copies[0] == 0:
            now.events[0] -= 1
    if not is_whole(queue):
        post(now, queue.outbox, t + delay, key, kind, listener, a, b, c, d)


@compiled
def order_instant(now: Records, lane: Records, order: np.ndarray) -> None:
    """Sort the messages of the lane's next instant by their keys (Shell's sort)."""
    mask = lane.size - 1
    head, tail = now.lane_head[0], now.lane_tail[0]
    end, sorted_yet = head + 1, True
    while end < tail and lane.time[end & mask] == lane.time[head & mask]:
        sorted_yet = sorted_yet and lane.key[(end - 1) & mask] < lane.key[end & mask]
        end += 1
    now.lane_group[0], now.lane_ready[0] = head, end
    gap = 0 if sorted_yet else 1
    while 0 < gap < (end - head) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(head + gap, end):
            moving = order[i & mask]
            key = lane.key[moving & mask]
            j = i
            while j - gap >= head and lane.key[order[(j - gap) & mask] & mask] > key:
                order[j & mask] = order[(j - gap) & mask]
                j -= gap
            order[j & mask] = moving
        gap //= 3


@inlined
def lacks_room(queue: Queue) -> bool:
    """Whether a container of messages has less room than one event may need."""
    now, lane = queue.now, queue.lane
    return (
        queue.heap.size - now.heap_size[0] < queue.room
        or lane.size - (now.lane_tail[0] - now.lane_group[0]) < queue.room
        or queue.outbox.size - now.outbox_size[0] < queue.room
    )


@inlined
def take_first(queue: Queue, entries: Records, until: int) -> int:
    """Take the first message before `until` into `queue.now`; return RUNNING, or the stop reason.

    Room is checked before the event is taken: an array that is too small would be written past its end.
    `entries` holds those of the nodes' queues, of which one event takes at most one.
    """
    now, lane, heap = queue.now, queue.lane, queue.heap
    head, tail, size = now.lane_head[0], now.lane_tail[0], now.heap_size[0]
    until = min(until, now.limit[0])
    if lacks_room(queue):
        return GROW
    if is_recorded(queue.trace) and queue.trace.log.size - queue.trace.size[0] < 2 * queue.room:
        return GROW
    if entries.next[0] < 0 and entries.job[0] == entries.size:
        return GROW
    mask = lane.size - 1
    from_lane = tail > head and (size == 0 or lane.time[head & mask] <= heap.time[0])
    if from_lane:
        if lane.time[head & mask] >= until:
            return HORIZON
        if head == now.lane_ready[0]:
            # All messages of this instant are there: whatever is sent from now on arrives later.
            order_instant(now, lane, queue.order)
        i = queue.order[head & mask] & mask
        if size > 0 and lane.time[i] == heap.time[0] and queue.pool.key[heap.slot[0]] < lane.key[i]:
            from_lane = False
        else:
            copy_message(now, lane, i)
            now.lane_head[0] = head + 1
    elif size == 0:
        return IDLE
    if not from_lane:
        if heap.time[0] >= until:
            return HORIZON
        copy_message(now, queue.pool, heap.slot[0])
        drop_first(now, heap, queue.pool)
    now.events[0] += 1
    if is_recorded(queue.trace):
        append_event(queue)
    return RUNNING


@compiled
def append_event(queue: Queue) -> None:
    """Append the message that is about to be handled to the trace."""
    now, trace = queue.now, queue.trace
    trace.event[0], trace.event[1] = now.time[0], now.key[0]
    if now.kind[0] == PUBLISHED:  # which is not a message
        return
    dst = now.dst[0]
    what = (now.kind[0] << ACTOR_BITS) | dst
    state = (trace.queued[dst] << SENT_BITS) | queue.seq[dst]
    append_row(trace, now.time[0], what, now.a[0], now.b[0], now.c[0], now.d[0], state)


@entry
def find_departures(
    network: Network, sender: np.ndarray, receiver: np.ndarray, rows: Records, left: np.ndarray
) -> None:
    """Set `left` to when each message left its sender, ns; NONE of an actor's messages to itself."""
    for i in range(rows.size):
        left[i] = NONE
        if sender[i] != receiver[i]:
            delay = network.delay_ns
            if network.varies == 1:
                delay = network_delay(network, sender[i], receiver[i], rows.key[i])
            left[i] = rows.time[i] - delay


@inlined
def note(w: HasQueue, t: int, actor: int, number: int, job: int, b: int, c: int, d: int) -> None:
    """Append to the trace what happens within an actor; `number` is one of `actors.kernel.trace.NOTES`."""
    trace = w.queue.trace
    if is_recorded(trace):
        state = (trace.queued[actor] << SENT_BITS) | w.queue.seq[actor]
        append_row(trace, t, (number << ACTOR_BITS) | actor, job, b, c, d, state)
