"""Messages to all schedulers, or all actors: the listener, the last actor, takes them; partitions have copies of it."""

import numpy as np

from actors.kernel.compiled import inlined
from actors.kernel.message_kinds import is_background
from actors.kernel.queue import (
    NONE,
    HasQueue,
    Queue,
    insert,
    is_whole,
    network_delay,
    next_key,
    post,
)


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
