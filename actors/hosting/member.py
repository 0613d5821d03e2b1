"""A partition that meets the others in the shared memory of its machine (`actors.kernel.meeting`).

The first partition of a machine exchanges frames with other machines (`actors.hosting.relay`).
"""

import os
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from actors.hosting.checkpoint import Position
from actors.hosting.cleanup import is_gone, is_stopped
from actors.hosting.interrupts import Lost
from actors.hosting.outcome import NS, Observe
from actors.hosting.partition import FRAME_MESSAGES, SLICE_EVENTS, wrapping_round
from actors.hosting.relay import Address, Relay
from actors.hosting.shared_memory import Place, SharingPartition
from actors.hosting.snapshot import Snapshot
from actors.hosting.stall import too_late
from actors.kernel import meeting, relay
from actors.kernel.compiled import direct, loop_type
from actors.kernel.queue import GROW, HORIZON, IDLE, PYTHON, RUNNING
from actors.kernel.turns import Turns
from actors.kernel.window import end_of_frame, make_frame
from actors.setting import Setting


class Met(NamedTuple):
    """How far the partitions are, as each of them knows."""

    done: bool
    tasks_done: int
    events: int
    until_ns: int
    windows: int
    waited_s: float  # while this one waited for others


class Member(SharingPartition):
    """One of several partitions; `meet` goes from barrier to barrier with the others."""

    def __init__(self, setting: Setting, observe: Observe):
        super().__init__(setting, observe, whole=False)
        self._own = np.zeros(meeting.OWN, np.int64)
        self._own[meeting.EVENTS_AT] = -1
        self._windows_before = 0  # windows of the run before the first here; less those without events
        self._is_packed = False  # whether the next frame is in the shared memory
        self._relay: Relay | None = None
        self._meeting: meeting.Meeting

    def shared_words(self) -> int:
        """Return how many words all partitions of this grouping share."""
        return meeting.shared_words(self._partitions, self._frame_size())

    @property
    def _partitions(self) -> int:
        return self.joined.size

    def _frame_size(self) -> int:
        return int(make_frame(self._partitions, FRAME_MESSAGES).size)

    def listen(self, host: str) -> Address:
        """Let other machines connect to this partition, the first of its machine, by an address of the machine."""
        self._relay = Relay(host)
        return self._relay.address

    def connect(self, machines: Sequence[Sequence[int]], addresses: Sequence[Address], token: bytes) -> None:
        """Connect this machine to all others, each of them given by its partitions; OSError if that is not possible.

        Called after `listen` and `share_memory`; all relays wait for each other.
        """
        assert self._relay is not None
        here = next(machine for machine in machines if self._me in machine)
        links = self._relay.connect(machines, here, addresses, token, self._frame_size())
        self._meeting = self._meeting._replace(links=links)
        for k in range(self._partitions):
            if k not in here:
                self._shared[meeting.LINE * k + meeting.PROCESS] = os.getpid()

    def leave(self) -> None:
        """Close the connections with other machines."""
        if self._relay is not None:
            self._relay.close()

    def share_memory(self, place: Place, window_ns: int) -> None:
        """Take part in the memory that another partition offers; called after `join`, before `meet`."""
        self._shared = place.open()
        self._shared[meeting.LINE * int(self._me) + meeting.PROCESS] = os.getpid()
        arrays = (self._shared, self._own, relay.NO_LINKS, self.joined.first, self._quiet, self._delayed)
        numbers = (int(self._me), self.setting.num_tasks, window_ns, self._partitions, self._frame_size())
        self._meeting = meeting.Meeting(self._shared.ctypes.data, *arrays, *numbers)
        loop = loop_type(self.world, self._first_state, self._barrier, SLICE_EVENTS)
        self._meet = direct(meeting.meet, self.world, self._first_state, self._meeting, loop, SLICE_EVENTS)

    @property
    def _first_state(self) -> Any:
        """The state of the first loop of the policy, which is the only one unless two take turns."""
        return self.state[0] if isinstance(self.setting.scheduler.advance, Turns) else self.state

    def go_back_to(self, at: Position) -> None:
        """Continue from the barrier of a checkpoint, whose state was restored."""
        self._windows_before = at.windows - int(self._own[meeting.WINDOW])
        self._own[meeting.EVENTS_AT] = at.until_ns
        self._is_packed = False

    def snapshot(self) -> Snapshot:
        """Return the state, as `Partition` does; take it between calls of `meet`."""
        if self._is_packed:
            begin = self._place_of_frame(int(self._own[meeting.WINDOW]))
            end = int(end_of_frame(self._shared, begin, self._partitions))
            self._last_frame = self._shared[begin:end].tobytes()
        return super().snapshot()

    def meet(self, most_s: float, practice: int = 0) -> Met:
        """Go on for about `most_s` seconds, or to the end; with `practice` for so many windows without events.

        Raises:
            Lost: another partition is gone, has stopped, or has failed.
        """
        begin = time.perf_counter()
        own = self._own
        if not self._is_packed:
            self._put_frame()
        own[meeting.DEADLINE] = time.monotonic_ns() + round(most_s * NS)
        # At least one window: else a short time would make no progress.
        own[meeting.LEAST] = own[meeting.WINDOW] + (1 if own[meeting.PHASE] == meeting.READ else 2)
        own[meeting.PRACTICE] = practice
        try:
            with wrapping_round():
                done = self._meet_on()
        except BaseException:
            self._shared[meeting.LINE * self._partitions + meeting.FAILED] = 1
            self.leave()
            raise
        self._barrier = np.int64(own[meeting.BARRIER])
        self.wall_s += time.perf_counter() - begin
        self._windows_before -= practice
        windows = self._windows_before + int(own[meeting.WINDOW]) - 1
        figures = (meeting.DONE_TASKS, meeting.DONE_EVENTS, meeting.EVENTS_AT)
        tasks_done, events, until_ns = (int(own[word]) for word in figures)
        return Met(done, tasks_done, events, until_ns, windows, int(own[meeting.WAITED_NS]) / NS)

    def _put_frame(self) -> None:
        """Put the frame of `join` or `restore` into the shared memory."""
        own, frame = self._own, np.frombuffer(self._last_frame, np.int64)
        begin = self._place_of_frame(int(own[meeting.WINDOW]) + 1)
        self._shared[begin : begin + frame.size] = frame
        own[meeting.BARRIER], own[meeting.AWAKE] = self._barrier, -1
        self._expect_samples()
        self._is_packed = True

    def _place_of_frame(self, window: int) -> int:
        return int(meeting.place_of(self._partitions, self._frame_size(), window, int(self._me)))

    def _expect_samples(self) -> None:
        self._own[meeting.SAMPLE] = self._samples.next_ns
        self._own[meeting.SKIPPED] = self._samples.skipped_ns

    def _meet_on(self) -> bool:
        """Call the loop until the end or a pause, and do what it returns for; return whether it is the end.

        Where two loops take turns, the first event of the second one in a window ends the call: the rest of the window
        is handled by both of them.
        """
        own = self._own
        while True:
            now = self.world.queue.now
            if now.handed[0] or now.turn[0]:
                until = np.int64(min(own[meeting.UNTIL], own[meeting.SAMPLE]))
                why = self._loop(self.world, self.state, until, SLICE_EVENTS)
                if why in (HORIZON, IDLE):
                    now.turn[0] = 0
            else:
                given = (self.world, self._first_state, self._meeting, self.setting.scheduler.loops[0])
                why = self._meet(*given, SLICE_EVENTS)
            if why == PYTHON:
                why = self._ask(min(int(own[meeting.UNTIL]), int(own[meeting.SAMPLE])), SLICE_EVENTS)
            if why in (meeting.DONE, meeting.PAUSED, meeting.PRACTISED):
                return bool(why == meeting.DONE)
            if why == RUNNING:
                self._break()
            elif why == GROW:
                if not self._drain():
                    self._grow(int(own[meeting.INBOUND]))
            elif why == meeting.SAMPLES:
                self._take_samples()
            elif why == meeting.WAITS:
                self._look_around()
            elif why == meeting.ENDLESS:
                raise too_late(self.setting)

    def _take_samples(self) -> None:
        """Take the sample that is due, or note that an event comes earlier than was known."""
        event = self._next_event()
        if event < self._own[meeting.SKIPPED]:
            self._samples.expect(event)
        else:
            self._sample()
        self._expect_samples()

    def _look_around(self) -> None:
        """Raise `Lost` if a partition that is waited for does not run any more."""
        words = self._shared
        if words[meeting.LINE * self._partitions + meeting.FAILED]:
            raise Lost("another partition has failed")
        for k in range(self._partitions):
            if words[meeting.LINE * k + meeting.MARK] >= self._own[meeting.WINDOW]:
                continue
            process = int(words[meeting.LINE * k + meeting.PROCESS])
            if is_gone(process):
                raise Lost(f"the process of partition {k} ({process}) is gone")
            if is_stopped(process):
                raise Lost(f"the process of partition {k} ({process}) was stopped")
        if self._relay is not None:
            self._relay.check()
