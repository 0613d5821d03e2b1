"""Frames that partitions exchange at a barrier: messages to other partitions, and the progress of each.

A frame is an array of int64: a header; for each partition the number of messages for it and those before it, [K]; and
the messages themselves, 8 numbers each, in order of the partition they are for. Every partition receives the frames of
all and takes its own part, in a time that grows with K alone.
"""

import numpy as np

from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.cost import HasCost
from actors.kernel.counters import N_FINISHED
from actors.kernel.message_kinds import PUBLISHED, is_background
from actors.kernel.messages import ANNOUNCED
from actors.kernel.queue import (
    GROW,
    MESSAGE,
    NEVER,
    RUNNING,
    Queue,
    copy_message,
    insert,
    is_here,
    push,
    write_message,
)
from actors.kernel.records import Records, records
from actors.kernel.sums import carry

# Fields of the header. The partition's next event, or that of a message it has sent; NEVER if there is none.
(
    NEXT,
    FINISHED,  # tasks finished so far
    EVENTS,  # events handled so far
    LEFT,  # messages that did not fit into the frame
    WORK,  # 1 if there is anything to do besides failures and repairs
    TASKS,  # tasks of the whole workload
    OWN,  # the partition's own next event; NEVER if there is none
    SENT,  # the earliest message it has sent, but what is published; NEVER if there is none
    SENT_TO,  # the partition that this is for
    SENT_OTHERS,  # the earliest for any other partition than that
    HEADER,
) = range(11)
FIELDS = len(MESSAGE.descr)


def make_frame(partitions: int, messages: int) -> np.ndarray:
    """Return an empty frame with room for `messages` messages."""
    return np.zeros(header_size(partitions) + FIELDS * messages, np.int64)


@inlined
def header_size(partitions: int) -> int:
    """Return where the messages of a frame begin."""
    return HEADER + partitions


@inlined
def begin_of_part(frames: np.ndarray, place: int, k: int) -> int:
    """Return how many messages of the frame that begins at `place` are for partitions before `k`."""
    return frames[place + HEADER + k - 1] if k > 0 else 0


@inlined
def partition_of(first: np.ndarray, dst: int) -> int:
    """Return the partition of an actor; `first` [2 K] holds the first node of each, then the first schedulers."""
    partitions = first.size // 2
    i = first.size - 1
    while first[i] > dst:
        i -= 1
    return i - partitions if i >= partitions else i


@entry
def pack(
    w: HasCost,
    first: np.ndarray,
    me: int,
    tasks: int,
    words: np.ndarray,
    begin: int,
    size: int,
    quiet: np.ndarray,
) -> int:
    """Move messages from the outbox into the frame at `begin`, which has room for `size` words; return its length.

    What is for the listener, the last actor, goes to every other partition that has schedulers, and what is announced
    to all actors to every other one. `tasks` is the number of tasks of the workload.
    `quiet` becomes the frame of this partition if nothing more happens in it: a header alone. Meanwhile it has the
    places of the next messages.
    """
    now, rows = w.queue.now, w.queue.outbox
    partitions, listener = first.size // 2, w.queue.seq.size - 1
    head, ends = header_size(partitions), begin + HEADER
    room = (size - head) // FIELDS
    for k in range(partitions):
        words[ends + k] = 0
    taken, total, least = 0, 0, next_time(w.queue)
    work = now.heap_size[0] + now.lane_tail[0] - now.lane_head[0] > now.background[0]
    quiet[NEXT], quiet[WORK], quiet[OWN], words[begin + OWN] = least, np.int64(work), least, least
    for i in range(now.outbox_size[0]):
        if rows.kind[i] != PUBLISHED:
            least = min(least, rows.time[i])
            work = work or not is_background(rows.kind[i])
        if taken < i or total + partitions > room:
            continue
        taken = i + 1
        if rows.dst[i] == listener:
            for k in range(partitions):
                copies = np.int64(has_copy(rows.kind[i], k, first, me, listener))
                words[ends + k] += copies
                total += copies
        else:
            words[ends + partition_of(first, rows.dst[i])] += 1
            total += 1
    place = begin + head
    for k in range(partitions):
        quiet[HEADER + k] = place
        place += FIELDS * words[ends + k]
        words[ends + k] += begin_of_part(words, begin, k)
    words[begin + SENT], words[begin + SENT_TO], words[begin + SENT_OTHERS] = NEVER, 0, NEVER
    for i in range(taken):
        if rows.dst[i] == listener:
            for k in range(partitions):
                if has_copy(rows.kind[i], k, first, me, listener):
                    write_row(words, begin, quiet, k, rows, i)
        else:
            write_row(words, begin, quiet, partition_of(first, rows.dst[i]), rows, i)
    for k in range(partitions):
        quiet[HEADER + k] = 0
    for i in range(taken, now.outbox_size[0]):
        rows[i - taken] = rows[i]
    now.outbox_size[0] -= taken
    words[begin + NEXT], words[begin + LEFT], words[begin + EVENTS] = least, now.outbox_size[0], now.events[0]
    words[begin + WORK], words[begin + TASKS] = np.int64(work), tasks
    words[begin + FINISHED] = w.counts[N_FINISHED] + w.counts[N_FINISHED + 1]
    for field in (FINISHED, EVENTS, TASKS):
        quiet[field] = words[begin + field]
    quiet[SENT], quiet[SENT_OTHERS] = NEVER, NEVER
    return place - begin


@inlined
def write_row(words: np.ndarray, begin: int, quiet: np.ndarray, k: int, rows: Records, i: int) -> None:
    """Write row `i` of the outbox where the next message for partition `k` belongs, in the frame at `begin`."""
    if rows.kind[i] != PUBLISHED:
        note_sent(words, begin, k, rows.time[i])
    put_row(rows, i, words, quiet[HEADER + k])
    quiet[HEADER + k] += FIELDS


@inlined
def put_row(rows: Records, i: int, words: np.ndarray, place: int) -> None:
    """Copy a message of the outbox to a place among words."""
    words[place], words[place + 1], words[place + 2] = rows.time[i], rows.key[i], rows.kind[i]
    words[place + 3], words[place + 4], words[place + 5] = rows.dst[i], rows.a[i], rows.b[i]
    words[place + 6], words[place + 7] = rows.c[i], rows.d[i]


@inlined
def note_sent(words: np.ndarray, begin: int, k: int, time: int) -> None:
    """Take a message for partition `k` into the times of the earliest ones of the frame at `begin`."""
    sent, to, others = begin + SENT, begin + SENT_TO, begin + SENT_OTHERS
    if words[sent] == NEVER or (words[to] != k and time < words[sent]):
        words[others], words[sent], words[to] = words[sent], time, k
    elif words[to] == k:
        words[sent] = min(words[sent], time)
    else:
        words[others] = min(words[others], time)


@inlined
def has_copy(kind: int, k: int, first: np.ndarray, me: int, listener: int) -> bool:
    """Return whether a message of partition `me` for the listener goes to partition `k`."""
    return k != me and (kind == ANNOUNCED or runs_schedulers(first, k, listener))


@inlined
def runs_schedulers(first: np.ndarray, k: int, listener: int) -> bool:
    """Return whether partition `k` has schedulers; `first` as of `partition_of`."""
    i = first.size // 2 + k
    end = first[i + 1] if i + 1 < first.size else listener
    return first[i] < end


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
    w: HasCost, frames: np.ndarray, partitions: int, me: int, barrier: int, delayed: np.ndarray
) -> int:
    """Insert the messages for partition `me` of all frames; if there is no room, do nothing and return GROW.

    `barrier` is the time that all partitions have reached: what should have arrived before it arrives then,
    and is counted in `delayed` [4] (messages, ns in all, ns at the most, and WHOLE in all besides). Of the copies of a
    message to the listener only one counts as an event; what is published or announced does not.
    """
    queue, place, count = w.queue, 0, 0
    while place < frames.size:
        count += messages_for(frames, place, me)
        place = end_of_frame(frames, place, partitions)
    if not has_room(queue, count):
        return GROW
    place = 0
    while place < frames.size:
        insert_frame(w, frames, place, partitions, me, barrier, delayed)
        place = end_of_frame(frames, place, partitions)
    return RUNNING


@inlined
def messages_for(frames: np.ndarray, place: int, me: int) -> int:
    """Return how many messages of the frame that begins at `place` are for partition `me`."""
    return frames[place + HEADER + me] - begin_of_part(frames, place, me)


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
    w: HasCost, frames: np.ndarray, place: int, partitions: int, me: int, barrier: int, delayed: np.ndarray
) -> None:
    """Insert the messages for partition `me` of the frame that begins at `place`; there is room for them."""
    row = place + header_size(partitions) + FIELDS * begin_of_part(frames, place, me)
    count = messages_for(frames, place, me)
    if are_in_order(w.queue, frames, row, count, barrier):
        merge_rows(w.queue, frames, row, count)
        for i in range(count):
            note_inserted(w, frames[row + FIELDS * i + 2], frames[row + FIELDS * i + 3])
    else:
        for i in range(count):
            insert_row(w, frames, row + FIELDS * i, barrier, delayed)


@inlined
def are_in_order(queue: Queue, frames: np.ndarray, row: int, count: int, barrier: int) -> bool:
    """Return whether messages can be merged into the lane: they come in order of time, and none is late."""
    is_so, least = queue.now.lane_head[0] == queue.now.lane_ready[0], barrier
    for i in range(count):
        time = frames[row + FIELDS * i]
        is_so = is_so and time >= least and frames[row + FIELDS * i + 2] != PUBLISHED
        least = time
    return is_so


@compiled
def merge_rows(queue: Queue, frames: np.ndarray, row: int, count: int) -> None:
    """Merge messages that are in order of time into the lane, from its end on."""
    now, lane = queue.now, queue.lane
    mask, head, last = lane.size - 1, now.lane_head[0], now.lane_tail[0] - 1
    place = last + count
    now.lane_tail[0] = place + 1
    i = row + FIELDS * (count - 1)
    while i >= row:
        if last >= head and lane.time[last & mask] > frames[i]:
            lane[place & mask] = lane[last & mask]
            last -= 1
        else:
            time, key, kind, dst = frames[i], frames[i + 1], frames[i + 2], frames[i + 3]
            a, b, c, d = frames[i + 4], frames[i + 5], frames[i + 6], frames[i + 7]
            write_message(lane, place & mask, time, key, kind, dst, a, b, c, d)
            i -= FIELDS
        queue.order[place & mask] = place
        place -= 1


@entry
def find_barrier(queue: Queue, frames: np.ndarray, partitions: int, me: int, until: int, before: int) -> int:
    """Return the next barrier of a partition, that of all being `until`; `before`, the last, if messages are left."""
    place, k, left, of_others = 0, 0, 0, NEVER
    while place < frames.size:
        left += frames[place + LEFT]
        of_others = min(of_others, next_by_frame(frames, place, k, me))
        place, k = end_of_frame(frames, place, partitions), k + 1
    return before if left > 0 else next_barrier(queue.now, until, of_others)


@inlined
def next_barrier(now: Records, until: int, of_others: int) -> int:
    """Return up to when a partition may handle events: `until`, a window after the next event of all, or later.

    A partition that may run ahead, and alone has events before `until`, goes on to the next event of all others,
    `of_others`. When it sends something, that may be answered two lookaheads later, and it goes no further than that
    (`limit`). It could go one lookahead further; but then the others would be alone in the next window, as it is in
    this one, and partitions that are full of events would work in turn.
    """
    now.limit[0] = NEVER
    if now.lookahead[0] == NEVER or until < 0:  # or nothing is to happen
        return until
    return max(until, min(of_others, NEVER - 1))


@inlined
def next_by_frame(frames: np.ndarray, place: int, k: int, me: int) -> int:
    """Return when the next event of all but partition `me` is due, as far as the frame of partition `k` tells."""
    sent = frames[place + SENT_OTHERS] if frames[place + SENT_TO] == me else frames[place + SENT]
    return sent if k == me else min(sent, frames[place + OWN])


@inlined
def end_of_frame(frames: np.ndarray, place: int, partitions: int) -> int:
    """Return where the frame that begins at `place` ends."""
    return place + header_size(partitions) + FIELDS * begin_of_part(frames, place, partitions)


@inlined
def insert_row(w: HasCost, frames: np.ndarray, row: int, barrier: int, delayed: np.ndarray) -> None:
    """Insert one message of a frame into lane or heap."""
    queue = w.queue
    time, key, kind, dst = frames[row], frames[row + 1], frames[row + 2], frames[row + 3]
    a, b, c, d = frames[row + 4], frames[row + 5], frames[row + 6], frames[row + 7]
    note_inserted(w, kind, dst)
    if time < barrier and kind != PUBLISHED:
        delayed[0] += 1
        delayed[1], delayed[3] = carry(delayed[1] + barrier - time, delayed[3])
        delayed[2] = max(delayed[2], barrier - time)
        time = barrier
    insert(queue, kind == PUBLISHED, time, key, kind, dst, a, b, c, d)


@inlined
def note_inserted(w: HasCost, kind: int, dst: int) -> None:
    """Count a message of another partition: whether it is a background message, and whether it is an event here."""
    queue, now = w.queue, w.queue.now
    if w.faults.active == 1 and is_background(kind):
        now.background[0] += 1
    copied = dst == queue.seq.size - 1 and now.counts_copies[0] == 0 and not is_background(kind)
    if kind == PUBLISHED or kind == ANNOUNCED or copied:
        now.events[0] -= 1


@compiled
def keep_local(queue: Queue, kept: Records) -> None:
    """Drop messages of a new queue for actors of other partitions; `kept` is scratch space as long as the heap."""
    now, count = queue.now, 0
    for i in range(now.heap_size[0]):
        if is_here(queue, queue.pool.dst[queue.heap.slot[i]]):
            copy_message(kept[count : count + 1], queue.pool, queue.heap.slot[i])
            count += 1
        elif is_background(queue.pool.kind[queue.heap.slot[i]]):
            now.background[0] -= 1
    now.heap_size[0] = 0
    for i in range(count):
        row = kept[i]
        push(now, queue.heap, queue.pool, row.time, row.key, row.kind, row.dst, row.a, row.b, row.c, row.d)


def restrict(queue: Queue, first: np.ndarray, me: int, lookahead: int) -> None:
    """Restrict a new queue to the actors of partition `me`; `first` as of `partition_of`.

    `lookahead`: of partitions that may run ahead of each other, ns; else NEVER.
    """
    listener, now, i = queue.seq.size - 1, queue.now, first.size // 2 + me
    ends = np.append(first[1:], listener)
    now.first[0], now.end[0] = first[me], ends[me]
    now.first_scheduler[0], now.end_scheduler[0] = first[i], ends[i]
    counting = [k for k in range(first.size // 2) if runs_schedulers(first, k, listener)]
    now.counts_copies[0], now.lookahead[0] = me == counting[0], lookahead
    keep_local(queue, records(MESSAGE, queue.heap.size))
