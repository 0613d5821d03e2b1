"""The windows of one partition that meets the others in shared memory, in one compiled loop.

In each window a partition publishes its frame (`actors.kernel.window`), waits for those of all others, finds the next
barrier, as all do, takes the messages that are for it, handles events up to the barrier, and packs its next frame. Two
frames of each partition are there, for windows of even and of odd number: who writes a frame for window n + 2 knows
that all have published n + 1, and so have read those of n.

On several machines, each has a memory with the frames of all. The first partition of a machine exchanges them with the
other machines when all here have published (`actors.kernel.relay`), and publishes for those there.

The shared words: for each partition LINE words, of which MARK is the number of the window that it has published, CORE
the core that it was on then, and SLEEPERS counts who sleeps at MARK; then LINE words for all; then the frames,
[2, K, `frame_size`].
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from actors.kernel.clock import WALL, clock_ns
from actors.kernel.compiled import compiled, inlined, waiting_entry
from actors.kernel.cost import HasCost
from actors.kernel.queue import GROW, HORIZON, IDLE, NEVER
from actors.kernel.records import Records
from actors.kernel.relay import BEGUN, OTHERS, exchange, is_here, read_message, write_message
from actors.kernel.sharing import add, core, give_way, load, pause, sleep_while, swap, wake_all
from actors.kernel.window import (
    EVENTS,
    FINISHED,
    LEFT,
    NEXT,
    TASKS,
    WORK,
    has_room,
    header_size,
    insert_frame,
    messages_for,
    next_barrier,
    next_by_frame,
    next_time,
    pack,
)

# Words of a partition; PROCESS is the id of the process that publishes it.
LINE, MARK, CORE, SLEEPERS, PROCESS = 16, 0, 1, 8, 9
PAUSE, FAILED = 0, 8  # of all: the window in which all pause; 1 if a partition has failed

# A partition's own words.
(
    WINDOW,  # the number of its last published window
    PHASE,
    EVENTS_AT,  # a window after the earliest next event of all, ns: all events before it are handled next
    UNTIL,  # the next barrier of this partition, ns
    BARRIER,  # the last one, ns
    AWAKE,  # up to here nothing happens, unless messages come
    SAMPLE,  # when the next sample is due
    SKIPPED,  # an event before this time makes an earlier sample due
    INBOUND,  # messages that come in this window
    PRACTICE,  # windows in which nothing is to happen, to measure how long one takes
    RESUMED,  # the window of the last pause
    DEADLINE,  # when the first partition asks for a pause, by the wall clock
    LEAST,  # the first window in which it may
    DONE_TASKS,
    DONE_EVENTS,
    WAITED_NS,  # how long it waited for others, awake and asleep
    OWN,
) = range(17)
PUBLISH, WAIT, READ, DELIVER, ADVANCE, PACK = range(6)
# Why `meet` returns, besides the stop reasons of a loop.
DONE, PAUSED, SAMPLES, WAITS, PRACTISED, ENDLESS = range(10, 16)

# A wait is awake at first: to wake a sleeper takes 5 to 50 us, and where other processes use the core, a sleeper may
# wait for milliseconds until it has that again. Meanwhile it gives way to a partner that needs the same core.
AWAKE_NS = 10_000_000
LINKS_AWAKE_NS = 200_000  # the same for messages from other machines
SLEEP_NS = 200_000_000


def shared_words(partitions: int, frame_size: int) -> int:
    """Return how many words partitions share."""
    return LINE * (partitions + 1) + 2 * partitions * frame_size


@inlined
def place_of(partitions: int, frame_size: int, window: int, k: int) -> int:
    """Return where the frame of partition `k` for a window begins."""
    return LINE * (partitions + 1) + ((window & 1) * partitions + k) * frame_size


@inlined
def address(base: int, word: int) -> int:
    """Return the address of a shared word."""
    return base + 8 * word


@compiled
def publish(base: int, own: np.ndarray, partitions: int, me: int) -> None:
    """Let the others read this partition's next frame; the first one may ask for a pause."""
    window = own[WINDOW] + 1
    own[WINDOW] = window
    if me == 0 and window >= own[LEAST] and own[PRACTICE] == 0 and clock_ns(WALL) > own[DEADLINE]:
        swap(address(base, LINE * partitions + PAUSE), window)
    set_mark(base, me, window)


@inlined
def set_mark(base: int, k: int, window: int) -> None:
    """Let all here read the frame of a partition for a window."""
    here = core()
    if load(address(base, LINE * k + CORE)) != here:
        swap(address(base, LINE * k + CORE), here)
    swap(address(base, LINE * k + MARK), window)
    if load(address(base, LINE * k + SLEEPERS)) > 0:
        wake_all(address(base, LINE * k + MARK))


@compiled
def sees_awake(base: int, own: np.ndarray, partitions: int, k: int) -> bool:
    """Look for some time whether partition `k` has published this window; return whether it has."""
    mark, window = address(base, LINE * k + MARK), own[WINDOW]
    end = clock_ns(WALL) + AWAKE_NS
    while clock_ns(WALL) < end:
        if holds_up(base, window, partitions):
            give_way()
        for _ in range(8):
            if load(mark) >= window:
                return True
            pause()
    return False


@inlined
def holds_up(base: int, window: int, partitions: int) -> bool:
    """Return whether a partition that has not published a window needs this core: it was on it the last time."""
    here, found = core(), False
    for k in range(partitions):
        if load(address(base, LINE * k + CORE)) == here and load(address(base, LINE * k + MARK)) < window:
            found = True
    return found


@compiled
def sees_asleep(base: int, own: np.ndarray, k: int) -> bool:
    """Sleep until partition `k` has published this window; return False if it has not for long."""
    mark, window = address(base, LINE * k + MARK), own[WINDOW]
    while load(mark) < window:
        add(address(base, LINE * k + SLEEPERS), 1)
        seen, before = load(mark), clock_ns(WALL)
        if seen < window:
            sleep_while(mark, seen, SLEEP_NS)
        add(address(base, LINE * k + SLEEPERS), -1)
        if load(mark) < window and clock_ns(WALL) - before >= SLEEP_NS // 2:
            return False
    return True


@compiled
def all_published(base: int, own: np.ndarray, links: np.ndarray, partitions: int, me: int) -> bool:
    """Wait until all have published this window; return False if one has not for long.

    With links to other machines: all partitions here.
    """
    for k in range(partitions):
        is_other = links[OTHERS] > 0 and not is_here(links, k)
        if is_other or k == me or load(address(base, LINE * k + MARK)) >= own[WINDOW]:
            continue
        before = clock_ns(WALL)
        seen = sees_awake(base, own, partitions, k) or sees_asleep(base, own, k)
        own[WAITED_NS] += clock_ns(WALL) - before
        if not seen:
            return False
    return True


@compiled
def all_exchanged(
    base: int, shared: np.ndarray, own: np.ndarray, links: np.ndarray, partitions: int, frame_size: int
) -> bool:
    """Exchange this window's frames with other machines, and publish theirs here; return whether all have come."""
    window, asks = own[WINDOW], address(base, LINE * partitions + PAUSE)
    frames = place_of(partitions, frame_size, window, 0)
    if links[BEGUN] == 0:
        pauses = np.int64(load(asks) == window)
        for j in range(links[OTHERS]):
            write_message(links, j, shared, frames, frame_size, partitions, window, pauses)
        links[BEGUN] = 1
    before = clock_ns(WALL)
    done = exchange(links, partitions, window, LINKS_AWAKE_NS)
    own[WAITED_NS] += clock_ns(WALL) - before
    if not done:
        return False
    for j in range(links[OTHERS]):
        if read_message(links, j, shared, frames, frame_size, partitions) == 1:
            swap(asks, window)
    for k in range(partitions):
        if not is_here(links, k):
            set_mark(base, k, window)
    links[BEGUN] = 0
    return True


@compiled
def read_headers(
    now: Records,
    base: int,
    shared: np.ndarray,
    own: np.ndarray,
    window_ns: int,
    partitions: int,
    frame_size: int,
    me: int,
) -> int:
    """Find the next barrier from the headers of all frames; return the next phase, or why to stop."""
    earliest, finished, events, left, work, tasks, inbound = NEVER, 0, 0, 0, 0, 0, 0
    of_others = NEVER
    for k in range(partitions):
        place = place_of(partitions, frame_size, own[WINDOW], k)
        earliest = min(earliest, shared[place + NEXT])
        of_others = min(of_others, next_by_frame(shared, place, k, me))
        finished += shared[place + FINISHED]
        events += shared[place + EVENTS]
        left += shared[place + LEFT]
        work += shared[place + WORK]
        tasks = shared[place + TASKS]
        inbound += messages_for(shared, place, me)
    own[DONE_TASKS], own[DONE_EVENTS], own[INBOUND] = finished, events, inbound
    if left == 0 and (earliest >= NEVER or (finished == tasks and work == 0)):
        return DONE
    if left > 0:
        return DELIVER
    if load(address(base, LINE * partitions + PAUSE)) == own[WINDOW] and own[RESUMED] != own[WINDOW]:
        own[RESUMED] = own[WINDOW]
        return PAUSED
    own[EVENTS_AT] = earliest + window_ns
    if own[EVENTS_AT] >= NEVER:
        return ENDLESS
    own[UNTIL] = next_barrier(now, own[EVENTS_AT], of_others)
    return DELIVER


@compiled
def copy_frame(source: np.ndarray, begin: int, shared: np.ndarray, place: int, partitions: int) -> None:
    """Copy the header of a frame that has no messages."""
    for i in range(header_size(partitions)):
        shared[place + i] = source[begin + i]


@waiting_entry
def meet(
    w: HasCost,
    state: Any,
    loop: Callable[..., int],
    base: int,
    shared: np.ndarray,
    own: np.ndarray,
    links: np.ndarray,
    first: np.ndarray,
    quiet: np.ndarray,
    delayed: np.ndarray,
    me: int,
    tasks: int,
    window_ns: int,
    most: int,
) -> int:
    """Go from window to window; return the stop reason. Called again, it continues where it stopped.

    Args:
        w: the partition's world.
        state: the scheduler's state.
        loop: the policy's loop, of the type that `loop_type` returns.
        base: address of `shared`.
        shared: all shared words.
        own: [OWN] this partition's.
        links: to other machines, of a partition that exchanges with them (`actors.kernel.relay`).
        first, me, tasks, quiet: as `actors.kernel.window.pack`.
        delayed: as `actors.kernel.window.deliver`.
        window_ns: time from the earliest next event to the barrier.
        most: events to handle before the loop returns RUNNING.
    """
    partitions = first.size // 2
    frame_size = (shared.size - LINE * (partitions + 1)) // (2 * partitions)
    while True:
        if own[PHASE] == PUBLISH:
            publish(base, own, partitions, me)
            own[PHASE] = WAIT
        if own[PHASE] == WAIT:
            if not all_published(base, own, links, partitions, me):
                return WAITS
            if links[OTHERS] > 0 and not all_exchanged(base, shared, own, links, partitions, frame_size):
                return WAITS
            own[PHASE] = READ
        mine = place_of(partitions, frame_size, own[WINDOW] + 1, me)
        if own[PHASE] == READ:
            if own[PRACTICE] > 0:
                last = place_of(partitions, frame_size, own[WINDOW], me)
                copy_frame(shared, last, shared, mine, partitions)
                own[PRACTICE] -= 1
                own[PHASE] = PUBLISH
                if own[PRACTICE] == 0:
                    return PRACTISED
                continue
            next_phase = read_headers(w.queue.now, base, shared, own, window_ns, partitions, frame_size, me)
            if next_phase != DELIVER:
                return next_phase
            if own[INBOUND] == 0 and own[UNTIL] <= own[AWAKE]:
                copy_frame(quiet, 0, shared, mine, partitions)
                own[BARRIER] = own[UNTIL]
                own[PHASE] = PUBLISH
                continue
            own[PHASE] = DELIVER
        if own[PHASE] == DELIVER:
            if not has_room(w.queue, own[INBOUND]):
                return GROW
            for k in range(partitions):
                place = place_of(partitions, frame_size, own[WINDOW], k)
                insert_frame(w, shared, place, partitions, me, own[BARRIER], delayed)
            own[PHASE] = ADVANCE
            if next_time(w.queue) < own[SKIPPED]:
                return SAMPLES
        if own[PHASE] == ADVANCE:
            why = loop(w, state, min(own[UNTIL], own[SAMPLE]), most)
            if why != HORIZON and why != IDLE:
                return why
            if own[SAMPLE] < min(own[UNTIL], w.queue.now.limit[0]):
                return SAMPLES
            own[PHASE] = PACK
        frame = shared[mine : mine + frame_size]
        pack(w, first, me, tasks, frame, quiet)
        own[BARRIER] = min(own[UNTIL], w.queue.now.limit[0])
        own[AWAKE] = -1 if frame[LEFT] > 0 else min(quiet[NEXT], own[SAMPLE] - 1)
        own[PHASE] = PUBLISH
