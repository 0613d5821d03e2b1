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
from typing import Any, NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined, waiting_entry
from actors.kernel.cost import HasCost
from actors.kernel.queue import GROW, HORIZON, IDLE, NEVER
from actors.kernel.records import Records
from actors.kernel.relay import Links, exchange, is_here, num_others, read_message, write_message
from actors.kernel.system_calls import (
    WALL,
    add,
    clock_ns,
    core,
    give_way,
    load,
    pause,
    sleep_while,
    swap,
    wake_all,
)
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


class Meeting(NamedTuple):
    """What one of K partitions has of the memory in which they meet.

    `first`, `me`, `tasks` and `quiet` are as of `actors.kernel.window.pack`, `delayed` as of `deliver`.
    """

    base: int  # address of `shared`
    shared: np.ndarray  # all shared words
    own: np.ndarray  # [OWN] this partition's
    links: Links  # to other machines, of a partition that exchanges with them
    first: np.ndarray
    quiet: np.ndarray
    delayed: np.ndarray
    me: int
    tasks: int
    window_ns: int  # from the earliest next event to the barrier
    partitions: int
    frame_size: int


def shared_words(partitions: int, frame_size: int) -> int:
    """Return how many words partitions share."""
    return LINE * (partitions + 1) + 2 * partitions * frame_size


@inlined
def place_of(partitions: int, frame_size: int, window: int, k: int) -> int:
    """Return where the frame of partition `k` for a window begins."""
    return LINE * (partitions + 1) + ((window & 1) * partitions + k) * frame_size


@inlined
def frame_of(meeting: Meeting, window: int, k: int) -> int:
    """Return where the frame of partition `k` for a window begins."""
    return place_of(meeting.partitions, meeting.frame_size, window, k)


@inlined
def address(base: int, word: int) -> int:
    """Return the address of a shared word."""
    return base + 8 * word


@inlined
def mark_of(meeting: Meeting, k: int) -> int:
    """Return the address of the number of the window that a partition has published."""
    return address(meeting.base, LINE * k + MARK)


@inlined
def pause_of(meeting: Meeting) -> int:
    """Return the address of the number of the window in which all pause."""
    return address(meeting.base, LINE * meeting.partitions + PAUSE)


@compiled
def publish(meeting: Meeting) -> None:
    """Let the others read this partition's next frame; the first one may ask for a pause."""
    own = meeting.own
    window = own[WINDOW] + 1
    own[WINDOW] = window
    if meeting.me == 0 and window >= own[LEAST] and own[PRACTICE] == 0 and clock_ns(WALL) > own[DEADLINE]:
        swap(pause_of(meeting), window)
    set_mark(meeting, meeting.me, window)


@inlined
def set_mark(meeting: Meeting, k: int, window: int) -> None:
    """Let all here read the frame of a partition for a window."""
    here, core_at = core(), address(meeting.base, LINE * k + CORE)
    if load(core_at) != here:
        swap(core_at, here)
    swap(mark_of(meeting, k), window)
    if load(address(meeting.base, LINE * k + SLEEPERS)) > 0:
        wake_all(mark_of(meeting, k))


@compiled
def sees_awake(meeting: Meeting, k: int) -> bool:
    """Look for some time whether partition `k` has published this window; return whether it has."""
    mark, window = mark_of(meeting, k), meeting.own[WINDOW]
    end = clock_ns(WALL) + AWAKE_NS
    while clock_ns(WALL) < end:
        if holds_up(meeting.base, window, meeting.partitions):
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
def sees_asleep(meeting: Meeting, k: int) -> bool:
    """Sleep until partition `k` has published this window; return False if it has not for long."""
    mark, sleepers, window = (
        mark_of(meeting, k),
        address(meeting.base, LINE * k + SLEEPERS),
        meeting.own[WINDOW],
    )
    while load(mark) < window:
        add(sleepers, 1)
        seen, before = load(mark), clock_ns(WALL)
        if seen < window:
            sleep_while(mark, seen, SLEEP_NS)
        add(sleepers, -1)
        if load(mark) < window and clock_ns(WALL) - before >= SLEEP_NS // 2:
            return False
    return True


@compiled
def all_published(meeting: Meeting) -> bool:
    """Wait until all have published this window; return False if one has not for long.

    With links to other machines: all partitions here.
    """
    has_others = num_others(meeting.links) > 0
    for k in range(meeting.partitions):
        is_other = has_others and not is_here(meeting.links, k)
        if is_other or k == meeting.me or load(mark_of(meeting, k)) >= meeting.own[WINDOW]:
            continue
        before = clock_ns(WALL)
        seen = sees_awake(meeting, k) or sees_asleep(meeting, k)
        meeting.own[WAITED_NS] += clock_ns(WALL) - before
        if not seen:
            return False
    return True


@compiled
def all_exchanged(meeting: Meeting) -> bool:
    """Exchange this window's frames with other machines, and publish theirs here; return whether all have come."""
    window, links = meeting.own[WINDOW], meeting.links
    frames = frame_of(meeting, window, 0)
    if links.begun[0] == 0:
        pauses = np.int64(load(pause_of(meeting)) == window)
        for j in range(num_others(links)):
            write_message(links, j, meeting.shared, frames, meeting.frame_size, window, pauses)
        links.begun[0] = 1
    before = clock_ns(WALL)
    done = exchange(links, window, LINKS_AWAKE_NS)
    meeting.own[WAITED_NS] += clock_ns(WALL) - before
    if not done:
        return False
    for j in range(num_others(links)):
        if read_message(links, j, meeting.shared, frames, meeting.frame_size) == 1:
            swap(pause_of(meeting), window)
    for k in range(meeting.partitions):
        if not is_here(links, k):
            set_mark(meeting, k, window)
    links.begun[0] = 0
    return True


@compiled
def read_headers(now: Records, meeting: Meeting) -> int:
    """Find the next barrier from the headers of all frames; return the next phase, or why to stop."""
    shared, own = meeting.shared, meeting.own
    earliest, finished, events, left, work, tasks, inbound = NEVER, 0, 0, 0, 0, 0, 0
    of_others = NEVER
    for k in range(meeting.partitions):
        place = frame_of(meeting, own[WINDOW], k)
        earliest = min(earliest, shared[place + NEXT])
        of_others = min(of_others, next_by_frame(shared, place, k, meeting.me))
        finished += shared[place + FINISHED]
        events += shared[place + EVENTS]
        left += shared[place + LEFT]
        work += shared[place + WORK]
        tasks = shared[place + TASKS]
        inbound += messages_for(shared, place, meeting.me)
    own[DONE_TASKS], own[DONE_EVENTS], own[INBOUND] = finished, events, inbound
    if left == 0 and (earliest >= NEVER or (finished == tasks and work == 0)):
        return DONE
    if left > 0:
        return DELIVER
    if load(pause_of(meeting)) == own[WINDOW] and own[RESUMED] != own[WINDOW]:
        own[RESUMED] = own[WINDOW]
        return PAUSED
    own[EVENTS_AT] = earliest + meeting.window_ns
    if own[EVENTS_AT] >= NEVER:
        return ENDLESS
    own[UNTIL] = next_barrier(now, own[EVENTS_AT], of_others)
    return DELIVER


@compiled
def copy_header(source: np.ndarray, begin: int, meeting: Meeting, place: int) -> None:
    """Copy a frame that has no messages among the shared ones."""
    for i in range(header_size(meeting.partitions)):
        meeting.shared[place + i] = source[begin + i]


@waiting_entry
def meet(w: HasCost, state: Any, meeting: Meeting, loop: Callable[..., int], most: int) -> int:
    """Go from window to window; return the stop reason. Called again, it continues where it stopped.

    Args:
        w: the partition's world.
        state: the scheduler's state.
        loop: the policy's loop, of the type that `loop_type` returns.
        most: events to handle before the loop returns RUNNING.
    """
    own = meeting.own
    while True:
        if own[PHASE] == PUBLISH:
            publish(meeting)
            own[PHASE] = WAIT
        if own[PHASE] == WAIT:
            if not all_published(meeting):
                return WAITS
            if num_others(meeting.links) > 0 and not all_exchanged(meeting):
                return WAITS
            own[PHASE] = READ
        mine = frame_of(meeting, own[WINDOW] + 1, meeting.me)
        if own[PHASE] == READ:
            if own[PRACTICE] > 0:
                copy_header(meeting.shared, frame_of(meeting, own[WINDOW], meeting.me), meeting, mine)
                own[PRACTICE] -= 1
                own[PHASE] = PUBLISH
                if own[PRACTICE] == 0:
                    return PRACTISED
                continue
            next_phase = read_headers(w.queue.now, meeting)
            if next_phase != DELIVER:
                return next_phase
            if own[INBOUND] == 0 and own[UNTIL] <= own[AWAKE]:
                copy_header(meeting.quiet, np.int64(0), meeting, mine)
                own[BARRIER] = own[UNTIL]
                own[PHASE] = PUBLISH
                continue
            own[PHASE] = DELIVER
        if own[PHASE] == DELIVER:
            if not has_room(w.queue, own[INBOUND]):
                return GROW
            for k in range(meeting.partitions):
                place = frame_of(meeting, own[WINDOW], k)
                insert_frame(
                    w, meeting.shared, place, meeting.partitions, meeting.me, own[BARRIER], meeting.delayed
                )
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
        pack(
            w,
            meeting.first,
            meeting.me,
            meeting.tasks,
            meeting.shared,
            mine,
            meeting.frame_size,
            meeting.quiet,
        )
        own[BARRIER] = min(own[UNTIL], w.queue.now.limit[0])
        own[AWAKE] = -1 if meeting.shared[mine + LEFT] > 0 else min(meeting.quiet[NEXT], own[SAMPLE] - 1)
        own[PHASE] = PUBLISH
