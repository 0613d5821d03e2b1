"""Frames that partitions exchange at a barrier: messages to other partitions, and the progress of each.

A frame is an array of int64: a header, the number of messages for each partition, and the messages themselves, 8
numbers each, grouped by the partition they are for. Every partition receives the frames of all and takes its own part.
"""

import numpy as np

from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.cost import HasCost
from actors.kernel.counters import N_FINISHED
from actors.kernel.message_heap import copy_message, push
from actors.kernel.message_kinds import PUBLISHED, is_background
from actors.kernel.messages import ANNOUNCED
from actors.kernel.queue import GROW, MESSAGE, RUNNING, Queue, insert
from actors.kernel.records import Records, records
from actors.kernel.sums import carry
from actors.kernel.world import NEVER

# Fields of the header. The partition's next event, or that of a message it has sent; NEVER if there is none.
(
    NEXT,
    FINISHED,  # tasks finished so far
    EVENTS,  # events handled so far
    LEFT,  # messages that did not fit into the frame
    WORK,  # 1 if there is anything to do besides failures and repairs
    TASKS,  # tasks of the whole workload
    HEADER,
) = range(7)
FIELDS = len(MESSAGE.descr)


def make_frame(partitions: int, messages: int) -> np.ndarray:
    """Return an empty frame with room for `messages` messages."""
    return np.zeros(HEADER + partitions + FIELDS * messages, np.int64)


@inlined
def partition_of(first: np.ndarray, dst: int) -> int:
    """Return the partition of an actor; `first` [K] holds the first actor of each."""
    k = first.size - 1
    while first[k] > dst:
        k -= 1
    return k


@entry
def pack(
    w: HasCost, first: np.ndarray, me: int, schedulers: int, tasks: int, frame: np.ndarray, quiet: np.ndarray
) -> int:
    """Move messages from the outbox into the frame; return the frame's length.

    What is for the listener, the last actor, goes to every partition from `schedulers` on but this one, and what is
    announced to all actors to every one but this. `tasks` is the number of tasks of the workload.
    `quiet` becomes the frame of this partition if nothing more happens in it: a header alone.
    """
    now, rows = w.queue.now, w.queue.outbox
    partitions, listener = first.size, w.queue.seq.size - 1
    room = (frame.size - HEADER - partitions) // FIELDS
    frame[HEADER : HEADER + partitions] = 0
    taken, total, least = 0, 0, next_time(w.queue)
    work = now.heap_size[0] + now.lane_tail[0] - now.lane_head[0] > now.background[0]
    quiet[NEXT], quiet[WORK] = least, np.int64(work)
    for i in range(now.outbox_size[0]):
        if rows.kind[i] != PUBLISHED:
            least = min(least, rows.time[i])
            work = work or not is_background(rows.kind[i])
        if taken < i or total + partitions > room:
            continue
        taken = i + 1
        for k in range(partitions):
            if goes_to(rows.kind[i], rows.dst[i], k, first, me, schedulers, listener):
                frame[HEADER + k] += 1
                total += 1
    place = HEADER + partitions
    for k in range(partitions):
        if frame[HEADER + k] == 0:
            continue
        for i in range(taken):
            if goes_to(rows.kind[i], rows.dst[i], k, first, me, schedulers, listener):
                frame[place], frame[place + 1], frame[place + 2] = rows.time[i], rows.key[i], rows.kind[i]
                frame[place + 3], frame[place + 4], frame[place + 5] = rows.dst[i], rows.a[i], rows.b[i]
                frame[place + 6], frame[place + 7] = rows.c[i], rows.d[i]
                place += FIELDS
    for i in range(taken, now.outbox_size[0]):
        rows[i - taken] = rows[i]
    now.outbox_size[0] -= taken
    frame[NEXT], frame[LEFT], frame[EVENTS] = least, now.outbox_size[0], now.events[0]
    frame[WORK], frame[TASKS] = np.int64(work), tasks
    frame[FINISHED] = w.counts[N_FINISHED] + w.counts[N_FINISHED + 1]
    quiet[FINISHED], quiet[EVENTS], quiet[TASKS] = frame[FINISHED], frame[EVENTS], frame[TASKS]
    return place


@inlined
def goes_to(kind: int, dst: int, k: int, first: np.ndarray, me: int, schedulers: int, listener: int) -> bool:
    """Return whether a message of partition `me` for the actor `dst` goes to partition `k`."""
    if kind == ANNOUNCED:
        return k != me
    if dst == listener:
        return k >= schedulers and k != me
    return k == partition_of(first, dst)


@inlined
def next_time(queue: Queue) -> int:
    """Return the time of the next event of a queue, NEVER if there is none."""
    now, least = queue.now, NEVER
    if now.lane_tail[0] > now.lane_head[0]:
        # Of an instant that is being taken, any message has its time.
        least = queue.lane.time[now.lane_head[0] & (queue.lane.size - 1)]
    if now.heap_size[0] > 0:
        least = min(least, queue.heap.time[0])
    return least


@entry
def deliver(
    w: HasCost,
    frames: np.ndarray,
    partitions: int,
    me: int,
    schedulers: int,
    barrier: int,
    delayed: np.ndarray,
) -> int:
    """Insert the messages for partition `me` of all frames; if there is no room, do nothing and return GROW.

    `barrier` is the time that all partitions have reached: what should have arrived before it arrives then,
    and is counted in `delayed` [4] (messages, ns in all, ns at the most, and WHOLE in all besides). Of the copies of a
    message to the listener only that of the first partition that has schedulers counts as an event; what is published
    or announced does not.
    """
    queue, place, count = w.queue, 0, 0
    while place < frames.size:
        count += frames[place + HEADER + me]
        place = end_of_frame(frames, place, partitions)
    if not has_room(queue, count):
        return GROW
    place = 0
    while place < frames.size:
        insert_frame(w, frames, place, partitions, me, schedulers, barrier, delayed)
        place = end_of_frame(frames, place, partitions)
    return RUNNING


@inlined
def has_room(queue: Queue, count: int) -> bool:
    """Return whether so many messages can be inserted, besides those that one event may send."""
    now = queue.now
    return (
        queue.heap.size - now.heap_size[0] >= count + queue.room
        and queue.lane.size - (now.lane_tail[0] - now.lane_group[0]) >= count + queue.room
    )


@inlined
def insert_frame(
    w: HasCost,
    frames: np.ndarray,
    place: int,
    partitions: int,
    me: int,
    schedulers: int,
    barrier: int,
    delayed: np.ndarray,
) -> None:
    """Insert the messages for partition `me` of the frame that begins at `place`; there is room for them."""
    row = place + HEADER + partitions
    for k in range(me):
        row += FIELDS * frames[place + HEADER + k]
    for _ in range(frames[place + HEADER + me]):
        insert_row(w, frames, row, barrier, delayed, me == schedulers)
        row += FIELDS


@entry
def inbound(frames: np.ndarray, partitions: int, me: int) -> int:
    """Return the number of messages for partition `me` in all frames."""
    place, count = 0, 0
    while place < frames.size:
        count += frames[place + HEADER + me]
        place = end_of_frame(frames, place, partitions)
    return count


@inlined
def end_of_frame(frames: np.ndarray, place: int, partitions: int) -> int:
    """Return where the frame that begins at `place` ends."""
    end = place + HEADER + partitions
    for k in range(partitions):
        end += FIELDS * frames[place + HEADER + k]
    return end


@inlined
def insert_row(
    w: HasCost, frames: np.ndarray, row: int, barrier: int, delayed: np.ndarray, is_first: bool
) -> None:
    """Insert one message of a frame into lane or heap."""
    queue, now = w.queue, w.queue.now
    time, key, kind, dst = frames[row], frames[row + 1], frames[row + 2], frames[row + 3]
    a, b, c, d = frames[row + 4], frames[row + 5], frames[row + 6], frames[row + 7]
    if w.faults.active == 1 and is_background(kind):
        now.background[0] += 1
    if time < barrier and kind != PUBLISHED:
        delayed[0] += 1
        delayed[1], delayed[3] = carry(delayed[1] + barrier - time, delayed[3])
        delayed[2] = max(delayed[2], barrier - time)
        time = barrier
    copied = dst == queue.seq.size - 1 and not is_first and not is_background(kind)
    if kind == PUBLISHED or kind == ANNOUNCED or copied:
        now.events[0] -= 1
    insert(queue, kind == PUBLISHED, time, key, kind, dst, a, b, c, d)


@compiled
def keep_local(queue: Queue, kept: Records) -> None:
    """Drop messages of a new queue for actors of other partitions; `kept` is scratch space as long as the heap."""
    now, count = queue.now, 0
    for i in range(now.heap_size[0]):
        dst = queue.pool.dst[queue.heap.slot[i]]
        if now.first[0] <= dst < now.end[0]:
            copy_message(kept[count : count + 1], queue.pool, queue.heap.slot[i])
            count += 1
        elif is_background(queue.pool.kind[queue.heap.slot[i]]):
            now.background[0] -= 1
    now.heap_size[0] = 0
    for i in range(count):
        row = kept[i]
        push(now, queue.heap, queue.pool, row.time, row.key, row.kind, row.dst, row.a, row.b, row.c, row.d)


def restrict(queue: Queue, first: int, end: int) -> None:
    """Restrict a new queue to the actors `first` to `end` - 1."""
    queue.now.first[0], queue.now.end[0] = first, end
    keep_local(queue, records(MESSAGE, queue.heap.size))


def holds(queue: Queue, actor: int) -> bool:
    """Return whether an actor is of the partition whose queue it is."""
    return bool(queue.now.first[0] <= actor < queue.now.end[0])
