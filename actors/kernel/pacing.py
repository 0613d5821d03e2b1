"""One partition by the wall clock: it takes messages, handles events when they are due, and posts what they send.

Each ordered pair of partitions has a ring in memory that both have: one writes, one reads. A batch in a ring is a row
that says when it was sent and how many messages follow, and the messages, a row each. What has no room stays in the
outbox, in order. The reader's bell is rung after each batch, so that one word tells it whether anything is there.

The words: for each partition LINE words, BELL and SLEEPS; for each pair 2 LINE words, TAIL and HEAD, the rows ever
written and ever read; then the rows, [K, K, rows, FIELDS], by writer and reader.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from actors.kernel.clock import WALL, clock_ns
from actors.kernel.compiled import compiled, entry, inlined, waiting_entry
from actors.kernel.cost import HasCost, settle
from actors.kernel.histogram import note_time
from actors.kernel.meeting import LINE, address
from actors.kernel.queue import GROW, HORIZON, IDLE, NEVER, RUNNING
from actors.kernel.records import Records
from actors.kernel.sharing import add, load, pause, sleep_while, swap, wake_all
from actors.kernel.window import FIELDS, has_copy, has_room, insert_row, next_time, partition_of

BELL, SLEEPS = 0, 8
TAIL, HEAD = 0, LINE
AT_ONCE = np.int64(-NEVER)  # messages keep the time at which they are due, however late they are

# A partition's own words.
(
    DEADLINE,  # when `pace` returns, by the wall clock
    SAMPLE,  # when the next sample is due, emulated ns
    UNTIL,  # events before this time are handled now
    HEARD,  # the bell when messages were last taken
    TURN,  # events handled since the partition looked whether any are due
    TURNS,
    BACKLOG_SUM,
    BACKLOG_MAX,
    BACKLOG_SINCE,  # the most since the last sample
    SENT,  # messages, to other partitions
    RECEIVED,
    BATCHES,  # sent
    INBOUND,  # messages that wait for room here
    OFFSET,  # this machine's clock less the driver's, ns
    CARRIES,  # 1 if a ring has something for a partition that does not share this memory
    CARRY_AT,  # when it is to be carried there, by the wall clock
    WAITED_AWAKE,  # ns in all in which it only looked whether there is anything to do
    OWN,
) = range(18)
# Rows of `posts` [.., K]: whether a partition shares this memory; and while it posts, the tail of its ring and the rows
# there that are free.
HERE, END, FREE, POSTS = range(4)
LATENCY, FLOOR, TIMES = range(3)  # rows of `times`: of batches with messages, and of those without
# Why `pace` returns, besides the stop reasons of a loop.
PAUSED, SAMPLES, CARRY = range(10, 13)

EVENTS = np.int64(64)  # between two looks for messages: some 20 to 100 us
FULL_NS = 100_000  # until it looks again whether there is room in a ring
# A sleep ends so long before the next event, and may be as much longer than asked for. Where other processes use the
# cores, twice this makes events late more often: who was awake is not woken at once.
EARLY_NS = 50_000


def words_of(partitions: int, rows: int) -> int:
    """Return how many words partitions share; `rows`, of a ring, is a power of two."""
    return LINE * (partitions + 2 * partitions**2) + partitions**2 * rows * FIELDS


@inlined
def rows_of(words: int, partitions: int) -> int:
    """Return how many rows a ring has."""
    return (words - LINE * (partitions + 2 * partitions**2)) // (partitions**2 * FIELDS)


@inlined
def ring_of(partitions: int, source: int, target: int) -> int:
    """Return where the counters of a pair's ring begin."""
    return LINE * (partitions + 2 * (source * partitions + target))


@inlined
def row_of(partitions: int, rows: int, source: int, target: int, number: int) -> int:
    """Return where a row of a pair's ring begins: the `number`-th that is ever written."""
    first = LINE * (partitions + 2 * partitions**2)
    return first + ((source * partitions + target) * rows + (number & (rows - 1))) * FIELDS


@compiled
def ring_bell(base: int, target: int) -> None:
    """Tell a partition that a batch is there."""
    bell = address(base, LINE * target + BELL)
    add(bell, 1)
    if load(address(base, LINE * target + SLEEPS)) > 0:
        wake_all(bell)


@compiled
def take_batches(
    w: HasCost,
    base: int,
    shared: np.ndarray,
    own: np.ndarray,
    delayed: np.ndarray,
    times: np.ndarray,
    partitions: int,
    me: int,
) -> bool:
    """Insert the messages of all rings; return False if there is no room for INBOUND of them."""
    bell = load(address(base, LINE * me + BELL))
    if bell == own[HEARD]:
        return True
    rows = rows_of(shared.size, partitions)
    for k in range(partitions):
        ring = ring_of(partitions, k, me)
        tail, head = load(address(base, ring + TAIL)), shared[ring + HEAD]
        while head < tail:
            row = row_of(partitions, rows, k, me, head)
            sent, count = shared[row], shared[row + 1]
            if not has_room(w.queue, count):
                own[INBOUND] = count
                return False
            note_time(times, FLOOR if count == 0 else LATENCY, clock_ns(WALL) - own[OFFSET] - sent)
            for i in range(1, count + 1):
                row = row_of(partitions, rows, k, me, head + i)
                insert_row(w, shared, row, AT_ONCE, delayed)
            own[RECEIVED] += count
            head += count + 1
            swap(address(base, ring + HEAD), head)
    own[HEARD], own[INBOUND] = bell, 0
    return True


@compiled
def finds_room(base: int, rows: int, posts: np.ndarray, partitions: int, me: int, k: int) -> bool:
    """Return whether another message fits into the ring to partition `k`; the first also needs the batch's own row."""
    if posts[FREE, k] < 0:
        ring = ring_of(partitions, me, k)
        tail, head = load(address(base, ring + TAIL)), load(address(base, ring + HEAD))
        posts[END, k], posts[FREE, k] = tail + 1, rows - (tail - head) - 1
    return posts[FREE, k] > 0


@compiled
def post(
    w: HasCost,
    base: int,
    shared: np.ndarray,
    own: np.ndarray,
    posts: np.ndarray,
    first: np.ndarray,
    me: int,
) -> None:
    """Move messages from the outbox into the rings of those they go to, as many as have room, in order."""
    now, outbox = w.queue.now, w.queue.outbox
    partitions, listener, size = first.size // 2, w.queue.seq.size - 1, now.outbox_size[0]
    rows, taken, fits = rows_of(shared.size, partitions), 0, True
    for k in range(partitions):
        posts[FREE, k] = -1
    while taken < size:
        kind, dst = outbox.kind[taken], outbox.dst[taken]
        for k in range(partitions):
            if goes_to(kind, dst, k, first, me, listener):
                fits = fits and finds_room(base, rows, posts, partitions, me, k)
        if not fits:
            break
        for k in range(partitions):
            if goes_to(kind, dst, k, first, me, listener):
                put_row(outbox, taken, shared, row_of(partitions, rows, me, k, posts[END, k]))
                posts[END, k] += 1
                posts[FREE, k] -= 1
        taken += 1
    for i in range(taken, size):
        outbox[i - taken] = outbox[i]
    now.outbox_size[0] -= taken
    for k in range(partitions):
        if posts[FREE, k] >= 0:
            end_batch(base, shared, own, posts, partitions, me, k)


@inlined
def goes_to(kind: int, dst: int, k: int, first: np.ndarray, me: int, listener: int) -> bool:
    """Return whether a message of partition `me` for the actor `dst` goes to partition `k`."""
    return has_copy(kind, k, first, me, listener) if dst == listener else k == partition_of(first, dst)


@inlined
def put_row(outbox: Records, i: int, shared: np.ndarray, row: int) -> None:
    """Copy a message of the outbox into a row of a ring."""
    shared[row], shared[row + 1], shared[row + 2] = outbox.time[i], outbox.key[i], outbox.kind[i]
    shared[row + 3], shared[row + 4], shared[row + 5] = outbox.dst[i], outbox.a[i], outbox.b[i]
    shared[row + 6], shared[row + 7] = outbox.c[i], outbox.d[i]


@compiled
def end_batch(
    base: int, shared: np.ndarray, own: np.ndarray, posts: np.ndarray, partitions: int, me: int, k: int
) -> None:
    """Let partition `k` read the batch that ends at its END, or leave it to be carried, if it has messages."""
    ring, rows = ring_of(partitions, me, k), rows_of(shared.size, partitions)
    tail = shared[ring + TAIL]
    count = posts[END, k] - tail - 1
    if count <= 0:
        return
    send_batch(base, shared, own, posts, partitions, rows, me, k, count)
    own[SENT] += count
    own[BATCHES] += 1


@compiled
def send_batch(
    base: int,
    shared: np.ndarray,
    own: np.ndarray,
    posts: np.ndarray,
    partitions: int,
    rows: int,
    me: int,
    k: int,
    count: int,
) -> None:
    """Write the first row of a batch of `count` messages, and let partition `k` read it."""
    ring = ring_of(partitions, me, k)
    tail = shared[ring + TAIL]
    row = row_of(partitions, rows, me, k, tail)
    shared[row], shared[row + 1] = clock_ns(WALL) - own[OFFSET], count
    swap(address(base, ring + TAIL), tail + count + 1)
    if posts[HERE, k] == 1:
        ring_bell(base, k)
    else:
        own[CARRIES] = 1


@entry
def greet(
    base: int, shared: np.ndarray, own: np.ndarray, posts: np.ndarray, partitions: int, me: int
) -> None:
    """Send each other partition a batch without messages, to measure how long that takes."""
    rows = rows_of(shared.size, partitions)
    for k in range(partitions):
        posts[FREE, k] = -1
        if k != me and finds_room(base, rows, posts, partitions, me, k):
            send_batch(base, shared, own, posts, partitions, rows, me, k, 0)


@entry
def bring(base: int, shared: np.ndarray, batches: np.ndarray, partitions: int, source: int, me: int) -> bool:
    """Put batches of a partition that does not share this memory into its ring; return False if they do not fit."""
    ring, rows = ring_of(partitions, source, me), rows_of(shared.size, partitions)
    tail, count = shared[ring + TAIL], batches.size // FIELDS
    if rows - (tail - load(address(base, ring + HEAD))) < count:
        return False
    for i in range(count):
        row = row_of(partitions, rows, source, me, tail + i)
        for j in range(FIELDS):
            shared[row + j] = batches[i * FIELDS + j]
    swap(address(base, ring + TAIL), tail + count)
    ring_bell(base, me)
    return True


@compiled
def rest(w: HasCost, base: int, own: np.ndarray, me: int, is_idle: bool) -> None:
    """Wait for a batch, the next event or sample, the deadline, or the time to carry: asleep, and awake at the end."""
    bell, begin = address(base, LINE * me + BELL), clock_ns(WALL)
    most = own[DEADLINE] - begin
    if w.queue.now.outbox_size[0] > 0:
        most = min(most, FULL_NS)
    if own[CARRIES] == 1:
        most = min(most, own[CARRY_AT] - begin)
    due = own[SAMPLE] if is_idle else min(next_time(w.queue), own[SAMPLE])
    ahead = (due - (begin - w.cost.origin) / w.cost.dilation) * w.cost.dilation
    if ahead < most:
        most = np.int64(ahead) + 1
    end, awake_since = begin + most, begin
    asleep_ns = most - EARLY_NS
    if asleep_ns > 0 and load(bell) == own[HEARD]:
        swap(address(base, LINE * me + SLEEPS), 1)
        # Whoever rings from here on sees that this one sleeps; who rang before has changed the bell.
        sleep_while(bell, own[HEARD], min(asleep_ns, 500_000_000))
        swap(address(base, LINE * me + SLEEPS), 0)
        awake_since = clock_ns(WALL)
    at = awake_since
    while at < end and load(bell) == own[HEARD]:
        for _ in range(8):
            pause()
        at = clock_ns(WALL)
    own[WAITED_AWAKE] += max(at - awake_since, 0)


@compiled
def note_turn(own: np.ndarray) -> None:
    """Record how many events were due when the partition looked for some."""
    own[TURNS] += 1
    own[BACKLOG_SUM] += own[TURN]
    own[BACKLOG_MAX] = max(own[BACKLOG_MAX], own[TURN])
    own[BACKLOG_SINCE] = max(own[BACKLOG_SINCE], own[TURN])
    own[TURN] = 0


@waiting_entry
def pace(
    w: HasCost,
    state: Any,
    loop: Callable[..., int],
    base: int,
    shared: np.ndarray,
    own: np.ndarray,
    posts: np.ndarray,
    times: np.ndarray,
    first: np.ndarray,
    delayed: np.ndarray,
    me: int,
) -> int:
    """Go on by the wall clock; return the stop reason. Called again, it continues where it stopped.

    Args:
        w, state, loop, base, shared, delayed: as `actors.kernel.meeting.meet`.
        own: [OWN] this partition's words.
        posts: [POSTS, K] what it knows of the others.
        times: [TIMES, BUCKETS] histograms of how long batches took to come here, in wall time.
        first, me: as `actors.kernel.window.pack`.
    """
    while True:
        if not take_batches(w, base, shared, own, delayed, times, first.size // 2, me):
            return GROW
        wall = clock_ns(WALL)
        if wall >= own[DEADLINE]:
            return PAUSED
        if own[CARRIES] == 1 and wall >= own[CARRY_AT]:
            return CARRY
        if own[TURN] == 0:
            own[UNTIL] = np.int64((wall - w.cost.origin) / w.cost.dilation)
        stop, before = min(own[UNTIL], own[SAMPLE]), w.queue.now.events[0]
        why = loop(w, state, stop, EVENTS)
        own[TURN] += max(w.queue.now.events[0] - before, 0)
        if why != RUNNING and why != HORIZON and why != IDLE:
            return why
        settle(w)  # time outside the loop is not charged to a handler
        if w.queue.now.outbox_size[0] > 0:
            post(w, base, shared, own, posts, first, me)
        if why == RUNNING:
            continue
        if stop < own[UNTIL]:
            return SAMPLES
        if own[TURN] > 0:
            note_turn(own)
        else:
            rest(w, base, own, me, why == IDLE)
