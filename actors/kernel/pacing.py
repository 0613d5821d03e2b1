"""One partition by the wall clock: it takes messages, handles events when they are due, and posts what they send.

Each ordered pair of partitions has a ring in memory that both have: one writes, one reads. A batch in a ring is a row
that says when it was sent and how many messages follow, and the messages, a row each. What has no room stays in the
outbox, in order. The reader's bell is rung after each batch, so that one word tells it whether anything is there.

The words: for each partition LINE words, BELL and SLEEPS; for each pair 2 LINE words, TAIL and HEAD, the rows ever
written and ever read; then the rows, [K, K, rows, FIELDS], by writer and reader.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, entry, inlined, waiting_entry
from actors.kernel.cost import HasCost, settle
from actors.kernel.histogram import note_time
from actors.kernel.meeting import LINE, address
from actors.kernel.queue import GROW, HORIZON, IDLE, NEVER, RUNNING
from actors.kernel.system_calls import WALL, add, clock_ns, load, pause, sleep_while, swap, wake_all
from actors.kernel.window import FIELDS, has_copy, has_room, insert_row, next_time, partition_of, put_row

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


class Rings(NamedTuple):
    """What one partition has of the rings of K partitions."""

    base: int  # address of `shared`
    shared: np.ndarray  # the words
    own: np.ndarray  # [OWN] this partition's
    posts: np.ndarray  # [POSTS, K] what it knows of the others
    times: np.ndarray  # [TIMES, BUCKETS] histograms of how long batches took to come here, in wall time
    delayed: np.ndarray  # as of `actors.kernel.window.deliver`
    first: np.ndarray  # as of `actors.kernel.window.pack`, as is `me`
    me: int
    partitions: int
    rows: int  # of a ring


def words_of(partitions: int, rows: int) -> int:
    """Return how many words partitions share; `rows`, of a ring, is a power of two."""
    return LINE * (partitions + 2 * partitions**2) + partitions**2 * rows * FIELDS


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


@inlined
def row_to(rings: Rings, target: int, number: int) -> int:
    """Return where a row of the ring to a partition begins."""
    return row_of(rings.partitions, rings.rows, rings.me, target, number)


@compiled
def ring_bell(base: int, target: int) -> None:
    """Tell a partition that a batch is there."""
    bell = address(base, LINE * target + BELL)
    add(bell, 1)
    if load(address(base, LINE * target + SLEEPS)) > 0:
        wake_all(bell)


@compiled
def take_batches(w: HasCost, rings: Rings) -> bool:
    """Insert the messages of all rings; return False if there is no room for INBOUND of them."""
    own, shared = rings.own, rings.shared
    bell = load(address(rings.base, LINE * rings.me + BELL))
    if bell == own[HEARD]:
        return True
    for k in range(rings.partitions):
        ring = ring_of(rings.partitions, k, rings.me)
        tail, head = load(address(rings.base, ring + TAIL)), shared[ring + HEAD]
        while head < tail:
            row = row_of(rings.partitions, rings.rows, k, rings.me, head)
            sent, count = shared[row], shared[row + 1]
            if not has_room(w.queue, count):
                own[INBOUND] = count
                return False
            note_time(rings.times, FLOOR if count == 0 else LATENCY, clock_ns(WALL) - own[OFFSET] - sent)
            for i in range(1, count + 1):
                insert_row(
                    w,
                    shared,
                    row_of(rings.partitions, rings.rows, k, rings.me, head + i),
                    AT_ONCE,
                    rings.delayed,
                )
            own[RECEIVED] += count
            head += count + 1
            swap(address(rings.base, ring + HEAD), head)
    own[HEARD], own[INBOUND] = bell, 0
    return True


@compiled
def finds_room(rings: Rings, k: int) -> bool:
    """Return whether another message fits into the ring to partition `k`; the first also needs the batch's own row."""
    posts = rings.posts
    if posts[FREE, k] < 0:
        ring = ring_of(rings.partitions, rings.me, k)
        tail, head = load(address(rings.base, ring + TAIL)), load(address(rings.base, ring + HEAD))
        posts[END, k], posts[FREE, k] = tail + 1, rings.rows - (tail - head) - 1
    return posts[FREE, k] > 0


@compiled
def post(w: HasCost, rings: Rings) -> None:
    """Move messages from the outbox into the rings of those they go to, as many as have room, in order."""
    now, outbox, posts = w.queue.now, w.queue.outbox, rings.posts
    listener, size, taken, fits = w.queue.seq.size - 1, now.outbox_size[0], 0, True
    for k in range(rings.partitions):
        posts[FREE, k] = -1
    while taken < size:
        kind, dst = outbox.kind[taken], outbox.dst[taken]
        for k in range(rings.partitions):
            if goes_to(kind, dst, k, rings.first, rings.me, listener):
                fits = fits and finds_room(rings, k)
        if not fits:
            break
        for k in range(rings.partitions):
            if goes_to(kind, dst, k, rings.first, rings.me, listener):
                put_row(outbox, taken, rings.shared, row_to(rings, k, posts[END, k]))
                posts[END, k] += 1
                posts[FREE, k] -= 1
        taken += 1
    for i in range(taken, size):
        outbox[i - taken] = outbox[i]
    now.outbox_size[0] -= taken
    for k in range(rings.partitions):
        count = posts[END, k] - rings.shared[ring_of(rings.partitions, rings.me, k) + TAIL] - 1
        if posts[FREE, k] >= 0 and count > 0:
            send_batch(rings, k, count)
            rings.own[SENT] += count
            rings.own[BATCHES] += 1


@inlined
def goes_to(kind: int, dst: int, k: int, first: np.ndarray, me: int, listener: int) -> bool:
    """Return whether a message of partition `me` for the actor `dst` goes to partition `k`."""
    return has_copy(kind, k, first, me, listener) if dst == listener else k == partition_of(first, dst)


@compiled
def send_batch(rings: Rings, k: int, count: int) -> None:
    """Let partition `k` read a batch of `count` messages, or leave it to be carried."""
    shared, tail_at = rings.shared, ring_of(rings.partitions, rings.me, k) + TAIL
    tail = shared[tail_at]
    row = row_to(rings, k, tail)
    shared[row], shared[row + 1] = clock_ns(WALL) - rings.own[OFFSET], count
    swap(address(rings.base, tail_at), tail + count + 1)
    if rings.posts[HERE, k] == 1:
        ring_bell(rings.base, k)
    else:
        rings.own[CARRIES] = 1


@entry
def greet(rings: Rings) -> None:
    """Send each other partition a batch without messages, to measure how long that takes."""
    for k in range(rings.partitions):
        rings.posts[FREE, k] = -1
        if k != rings.me and finds_room(rings, k):
            send_batch(rings, k, np.int64(0))


@entry
def bring(rings: Rings, batches: np.ndarray, source: int) -> bool:
    """Put batches of a partition that does not share this memory into its ring; return False if they do not fit."""
    ring, shared = ring_of(rings.partitions, source, rings.me), rings.shared
    tail, count = shared[ring + TAIL], batches.size // FIELDS
    if rings.rows - (tail - load(address(rings.base, ring + HEAD))) < count:
        return False
    for i in range(count):
        row = row_of(rings.partitions, rings.rows, source, rings.me, tail + i)
        for j in range(FIELDS):
            shared[row + j] = batches[i * FIELDS + j]
    swap(address(rings.base, ring + TAIL), tail + count)
    ring_bell(rings.base, rings.me)
    return True


@compiled
def rest(w: HasCost, rings: Rings, is_idle: bool) -> None:
    """Wait for a batch, the next event or sample, the deadline, or the time to carry: asleep, and awake at the end."""
    own, bell, sleeps = (
        rings.own,
        address(rings.base, LINE * rings.me + BELL),
        address(rings.base, LINE * rings.me + SLEEPS),
    )
    begin = clock_ns(WALL)
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
        swap(sleeps, 1)
        # Whoever rings from here on sees that this one sleeps; who rang before has changed the bell.
        sleep_while(bell, own[HEARD], min(asleep_ns, 500_000_000))
        swap(sleeps, 0)
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
def pace(w: HasCost, state: Any, rings: Rings, loop: Callable[..., int]) -> int:
    """Go on by the wall clock; return the stop reason. Called again, it continues where it stopped.

    Args:
        w, state, loop: as `actors.kernel.meeting.meet`.
    """
    own = rings.own
    while True:
        if not take_batches(w, rings):
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
            post(w, rings)
        if why == RUNNING:
            continue
        if stop < own[UNTIL]:
            return SAMPLES
        if own[TURN] > 0:
            note_turn(own)
        else:
            rest(w, rings, why == IDLE)
