"""Messages in virtual time: one partition's event queue.

A message is one row of eight int64, 64 bytes: a cache line here, a fixed-width row on the wire. Events are
ordered by (time, rank of the kind, source actor, the source's own sequence number), a total order that does
not depend on how actors are grouped into partitions; the last three make up the `key`.

Two containers share the work. With a constant network delay, messages are sent in the order in which they
arrive: they go to a ring (the lane), appended and taken in constant time. Those of one instant are brought into
order when their turn comes; they are few, and lie side by side. Whatever would break the lane's order of time,
and all that an actor tells itself for later, goes to a 4-ary heap.

What is for an actor of another partition goes to the outbox; whoever hosts the partitions carries it over.
"""

import math
from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.random import DELAYS, random_bits, unit

MESSAGE = np.dtype([(name, "i8") for name in ("time", "key", "kind", "dst", "a", "b", "c", "d")])
RANK_SHIFT, SOURCE_SHIFT = 59, 35  # rank: 4 bits, source actor: 24 bits, sequence number: 35 bits
MOST_ACTORS = 1 << 24
NEVER = np.int64(1) << 62  # a time, ns: nothing happens from here on, 146 years
WHOLE = np.int64(1) << 60  # ns: what many actors add up to is kept as so many of these, and the rest

# Kinds of messages. They are int64, since numba compiles a callee anew for every plain number. The upper
# hexadecimal digit is the rank: at equal times completions come before messages, those before heartbeats,
# those before job arrivals; RETRY comes when all else at its instant is done. In the comments: columns a, b,
# c, d in this order, NONE if unused; node and job are ids, times are in ns.
TASK_END = np.int64(0x00)  # node to itself: job, task, start
PUBLISHED = np.int64(0x01)  # what shared state has changed, from another partition: node, new bit
ANNOUNCED = np.int64(0x02)  # monitor to all actors: resource or NONE, what is new of it
# scheduler to node: job, tasks left and level, round and epoch, version of the shared state
PROBE = np.int64(0x10)
REQUEST = np.int64(0x11)  # node to scheduler: job, node, generation of the node
TASK = np.int64(0x12)  # scheduler to node: job, task, tasks left and epoch, generation of the node
NO_TASK = np.int64(0x13)  # scheduler to node: job, none, epoch, generation of the node
DONE = np.int64(0x14)  # node to scheduler: job, node, start, finish
PLACED = np.int64(
    0x15
)  # scheduler to node, a task bound to it: job, task, tasks left, version of the shared state
STARTED = np.int64(0x16)  # node to central scheduler: job, node, start
# node to scheduler: job, version of the shared state, round; of a bound task: job, task, node, the node's work
REJECTED = np.int64(0x17)
STEAL = np.int64(0x18)  # node to node: thief, attempts left, random bits
# node to all schedulers: node, its work, start and estimate of its task; or end of its task and room in its queue
LOAD_REPORT = np.int64(0x19)
ASK_LENGTH = np.int64(0x1A)  # scheduler to node: job, which of its probes
LENGTH = np.int64(0x1B)  # node to scheduler: job, which of its probes, node, queue length
LOST = np.int64(0x1C)  # node to scheduler, or scheduler to itself: job, task or NONE for a probe, node, start
NODE_DOWN = np.int64(0x1E)  # node to all schedulers: node, generation, when
NODE_UP = np.int64(0x1F)  # node to all schedulers: node, generation, when
HEARTBEAT = np.int64(0x20)  # node to itself
MONITOR = np.int64(0x21)  # monitor to itself
FAIL = np.int64(0x2D)  # node to itself
DETECT = np.int64(0x2E)  # node to itself
REPAIR = np.int64(0x2F)  # node to itself
ARRIVAL = np.int64(0x30)  # scheduler to itself: job
RETRY = np.int64(0x40)  # scheduler to itself: job, round

NONE = np.int64(-1)  # no actor, job, task, entry or version

# Why the loop stopped.
RUNNING, HORIZON, IDLE, GROW, PYTHON = range(5)

# A kind whose lower digit is this or more is no work: a run is over when all that is left is of such kinds.
FIRST_IDLE = np.int64(0xD)

# From this kind on they are decisions, and no messages: what a scheduler does when it has handled those of an instant.
FIRST_DECISION = np.int64(0x50)


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
        ("first", "i8"),  # the actors of this partition: ids from `first` on
        ("end", "i8"),  # and below `end`
        ("outbox_size", "i8"),  # messages for actors of other partitions
        ("background", "i8"),  # messages in lane and heap that are no work; counted where nodes can fail
        ("unfinished", "i8"),  # tasks less those that ended here; likewise
    ]
)
# Of the heap's slots the first `heap_size` are in order of the heap; the rest are free.
HEAP = np.dtype([("time", "i8"), ("slot", "i8")])


class Queue(NamedTuple):
    """The event queue of one partition."""

    now: np.recarray  # [1] CURSOR
    lane: np.recarray  # [power of two] ring of messages in order of time
    order: np.ndarray  # [the same] the message to take as the i-th of the lane
    heap: np.recarray  # HEAP
    pool: np.recarray  # messages that wait in the heap, by slot
    outbox: np.recarray  # messages for other partitions, in the order in which they were sent
    seq: np.ndarray  # [actors] the next sequence number of each actor; a column of the actors' table
    room: int  # the most messages that the handling of one event may send


class Network(NamedTuple):
    """What a message between two actors costs."""

    delay_ns: int  # within a rack, and the least there is
    cross_ns: int  # between racks, and to and from schedulers
    spread_ns: float  # mean of an exponential on top; 0 for none
    rack: np.ndarray  # [nodes]
    seed: int
    varies: int  # 0: every message takes delay_ns


def records(dtype: np.dtype, size: int) -> np.recarray:
    """A zeroed array of records, with fields as attributes in compiled code and in plain Python."""
    return np.zeros(size, dtype).view(np.recarray)


def make_queue(seq: np.ndarray, room: int, capacity: int = 1 << 14) -> Queue:
    """An empty queue in which one event may send up to `room` messages."""
    while capacity < 2 * room + 2:
        capacity *= 2
    heap = records(HEAP, capacity)
    heap.slot[:] = np.arange(capacity)
    now = records(CURSOR, 1)
    now.end[0] = seq.size
    return Queue(
        now=now,
        lane=records(MESSAGE, capacity),
        order=np.zeros(capacity, np.int64),
        heap=heap,
        pool=records(MESSAGE, capacity),
        outbox=records(MESSAGE, capacity),
        seq=seq,
        room=room,
    )


def grow_queue(queue: Queue, messages: int = 0) -> Queue:
    """The same queue with twice the space in whichever container is short of it.

    Args:
        messages: that are to be entered besides those that one event may send.
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
        heap, pool = records(HEAP, 2 * size), records(MESSAGE, 2 * size)
        heap[:size], pool[:size] = queue.heap, queue.pool
        heap.slot[size:] = np.arange(size, 2 * size)
        queue = queue._replace(heap=heap, pool=pool)
    if queue.outbox.size - now.outbox_size < queue.room:
        outbox = records(MESSAGE, 2 * queue.outbox.size)
        outbox[: queue.outbox.size] = queue.outbox
        queue = queue._replace(outbox=outbox)
    return queue


@inlined
def next_key(queue, src, kind):
    """The order key of the next message of `src`, which counts it."""
    seq = queue.seq[src]
    queue.seq[src] = seq + 1
    return ((kind >> 4) << RANK_SHIFT) | (src << SOURCE_SHIFT) | seq


@compiled
def network_delay(network, src, dst, key):
    """Delay of one message where not all are equal, ns; its random part is drawn from the message's own key."""
    delay = network.delay_ns
    nodes = network.rack.size
    if src >= nodes or dst >= nodes or network.rack[src] != network.rack[dst]:
        delay = network.cross_ns
    if network.spread_ns > 0.0:
        bits = random_bits(network.seed, DELAYS, src, key)
        delay += np.int64(-math.log(unit(bits)) * network.spread_ns)
    return delay


@inlined
def send(w, t, src, dst, kind, a, b, c, d):
    """Send a message from one actor to another at time `t`; it arrives after the network delay."""
    queue = w.queue
    key = next_key(queue, src, kind)
    delay = w.network.delay_ns
    if w.network.varies == 1:
        delay = network_delay(w.network, src, dst, key)
    time = t + delay
    if w.cost.model > 0:  # what a scheduler sends leaves when it is done
        time += w.cost.handler.spent[0]
    now = queue.now
    if dst < now.first[0] or dst >= now.end[0]:
        post(now, queue.outbox, time, key, kind, dst, a, b, c, d)
    else:
        insert(queue, delay == 0 or w.cost.model > 0, time, key, kind, dst, a, b, c, d)


@inlined
def insert(queue, heaped, time, key, kind, dst, a, b, c, d):
    """Put a message behind the others of the lane, or if it is earlier than those, or `heaped`, into the heap."""
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
def wake(w, time, who, kind, a, b, c):
    """A message of an actor to itself at `time`, which may be now."""
    queue, key = w.queue, next_key(w.queue, who, kind)
    push(queue.now, queue.heap, queue.pool, time, key, kind, who, a, b, c, NONE)


@inlined
def is_background(kind):
    """Whether a message is no work: one of those that failures and repairs consist of."""
    return kind & 15 >= FIRST_IDLE


@inlined
def wake_idly(w, time, who, kind):
    """A message of a node to itself that is no work."""
    wake(w, time, who, kind, NONE, NONE, NONE)
    w.queue.now.background[0] += 1


@inlined
def publish(w, t, kind, a, b, c):
    """Tell the schedulers of all other partitions at once what has changed in the state that they share.

    Within a partition they read it. The messages that make them look for it take at least the network delay.
    """
    queue, listener = w.queue, w.queue.seq.size - 1
    # While a handler is timed nobody is here; its record has the end.
    if listener >= max(queue.now.end[0], w.cost.handler.end[0]):
        key = next_key(queue, listener, kind)
        post(queue.now, queue.outbox, t, key, kind, listener, a, b, c, NONE)


@inlined
def announce(w, t, src, a, b):
    """Tell all actors of all partitions the same; they hear it at the same time, also where network delays vary."""
    queue, now, handler = w.queue, w.queue.now, w.cost.handler
    listener, key = queue.seq.size - 1, next_key(queue, src, ANNOUNCED)
    time = t + w.network.cross_ns + handler.spent[0]
    insert(queue, True, time, key, ANNOUNCED, listener, a, b, NONE, NONE)
    # While a handler is timed nobody is here; its record has who is.
    if max(now.first[0], handler.first[0]) > 0 or max(now.end[0], handler.end[0]) <= listener:
        post(now, queue.outbox, time, key, ANNOUNCED, listener, a, b, NONE, NONE)


@compiled
def post(now, outbox, time, key, kind, dst, a, b, c, d):
    """Put a message for another partition into the outbox."""
    i = now.outbox_size[0]
    write_message(outbox, i, time, key, kind, dst, a, b, c, d)
    now.outbox_size[0] = i + 1


@inlined
def write_message(rows, i, time, key, kind, dst, a, b, c, d):
    """Fill row `i`."""
    rows.time[i], rows.key[i], rows.kind[i], rows.dst[i] = time, key, kind, dst
    rows.a[i], rows.b[i], rows.c[i], rows.d[i] = a, b, c, d


@compiled
def push(now, heap, pool, time, key, kind, dst, a, b, c, d):
    """Put a message into the heap of a queue."""
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
def drop_first(queue):
    """Take the first message out of the heap, and free its slot."""
    heap, pool = queue.heap, queue.pool
    n = queue.now.heap_size[0] - 1
    queue.now.heap_size[0] = n
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
def copy_message(to, source, i):
    """Copy row `i` of `source` into the single row `to`."""
    to.time[0], to.key[0], to.kind[0], to.dst[0] = (
        source.time[i],
        source.key[i],
        source.kind[i],
        source.dst[i],
    )
    to.a[0], to.b[0], to.c[0], to.d[0] = source.a[i], source.b[i], source.c[i], source.d[i]


@compiled
def order_instant(now, lane, order):
    """Bring the messages of the next instant of the lane into the order of their keys (Shell's sort)."""
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
def take_first(queue, entries, until):
    """Take the first message before `until` into `queue.now`; says why there is none.

    Room is checked before the event is taken: an array that is too small would be written past its end.
    `entries` holds those of the nodes' queues, of which one event takes at most one.
    """
    now, lane, heap = queue.now, queue.lane, queue.heap
    head, tail, size = now.lane_head[0], now.lane_tail[0], now.heap_size[0]
    if heap.size - size < queue.room or lane.size - (tail - now.lane_group[0]) < queue.room:
        return GROW
    if queue.outbox.size - now.outbox_size[0] < queue.room:
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
        drop_first(queue)
    now.events[0] += 1
    return RUNNING
