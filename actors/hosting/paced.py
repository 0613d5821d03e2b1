"""A partition paced by the wall clock: it handles events when they are due, and sends their messages at once.

It goes on in one compiled loop (`actors.kernel.pacing`), which returns here for what only Python does: to make room, to
take samples, for schedulers written in Python, to carry messages to partitions that do not share its memory, and a few
times a second.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from actors.environment import Pace
from actors.hosting.outcome import NS, Observe, Paced, Share
from actors.hosting.partition import Partition
from actors.hosting.shared_memory import Place, SharingPartition
from actors.hosting.timeline import Samples
from actors.kernel import pacing
from actors.kernel.compiled import direct, loop_type
from actors.kernel.cost import LIVE, make_cost, settle
from actors.kernel.counters import N_FINISHED
from actors.kernel.histogram import BUCKETS
from actors.kernel.queue import GROW, PYTHON, RUNNING
from actors.kernel.window import FIELDS
from actors.setting import Setting

IDLE_S = 0.05  # for so long the compiled loop goes on by itself
ROUNDS, ROUND_S = 50, 0.004  # of the rehearsal
RING_ROWS = 1 << 14  # messages to a partition that wait for it, at the most; a power of two
FULL_S = 0.001  # until it is tried again to put messages into a ring that is full
LATER_NS = 3600 * NS

Send = Callable[[int, bytes], Any]


class Position(NamedTuple):
    """The progress of a partition."""

    finished: int  # tasks
    events: int
    sent: int  # messages, to other partitions
    received: int
    idle: bool  # nothing is left to do here
    now: int  # emulated time, ns
    open: int  # tasks whose end has not been reported to their scheduler; 0 if not counted


class PacedPartition(SharingPartition):
    """A partition that handles events when the wall clock reaches them.

    After `start` and `join`: `connect` to the others, `share_memory` or `take_part`, `warm_up`, then `run_paced` in a
    thread of its own, while `receive`, `position` and `stop` may be called from others; at the end `share`.
    """

    def __init__(self, setting: Setting, observe: Observe, pace: Pace, cpu_clock: Callable[[], int]):
        super().__init__(setting, observe, whole=False)
        self._pace, self._cpu_clock = pace, cpu_clock
        # A row has a backlog of its own, so that all are kept; no more than one a tick of wall time.
        period_ns, tick_ns = self._samples.period_ns, round(pace.tick_s / pace.dilation * NS)
        self._samples = Samples(
            self._samples.first_ns, period_ns and max(period_ns, tick_ns), most_rows=1 << 40
        )
        schedulers = self.world.queue.seq.size - self.world.nodes.size
        last = int(self.world.work.submit[-1])
        cost = make_cost(LIVE, schedulers, dilation=pace.dilation, last_arrival=last)
        self.world = self.world._replace(cost=cost)
        self._end: int | None = None
        self._origin = self._offset = 0
        self._own = np.zeros(pacing.OWN, np.int64)
        self._times = np.zeros((pacing.TIMES, BUCKETS), np.int64)
        self._backlogs: list[tuple[int, int]] = []  # time of a row, ns, and the most since the row before
        self._cpu = 0
        self._is_running = self._is_asked = self._counts_open = False
        self._is_answered = threading.Event()

    def start(self) -> float:
        """Compile or load the loops, and the functions that a scheduler in Python calls when its first job arrives."""
        seconds = super().start()
        begin = time.perf_counter()
        loop = loop_type(self.world, self.state, self._barrier, pacing.EVENTS)
        rings = self._rings_of(np.zeros(pacing.words_of(1, 1), np.int64), 1, np.zeros(2, np.int64), 0)
        self._paced_loop = direct(pacing.pace, self.world, self.state, rings, loop)
        self.compile_s += time.perf_counter() - begin
        if self.setting.scheduler.host is not None:
            workload = self.setting.scheduler.worlds.rehearsal(self.setting.workload)
            rehearsal = Partition(replace(self.setting, workload=workload, updates=None), Observe())
            rehearsal.start()
            while not rehearsal.run(1.0).done:
                pass
        return seconds

    def connect(self, peers: list[Send], offset: int) -> None:
        """Keep how to send to the others; `offset` is this machine's clock less the driver's, ns."""
        self._peers, self._offset = peers, offset

    def shared_words(self) -> int:
        """Return how many words have the rings in which the partitions of this machine send each other messages."""
        return pacing.words_of(self._partitions, RING_ROWS)

    def share_memory(self, place: Place | None, members: Sequence[int]) -> None:
        """Take part in the memory that another partition offers; with None in one that has no other."""
        self.take_part(np.zeros(self.shared_words(), np.int64) if place is None else place.open(), members)

    def take_part(self, words: np.ndarray, members: Sequence[int]) -> None:
        """Send messages to `members` through these words, and to the others by calls."""
        self._rings = self._rings_of(words, self._partitions, self.joined.first, int(self._me))
        self._rings.posts[pacing.HERE, list(members)] = 1
        self._own[pacing.OFFSET] = self._offset

    def _rings_of(self, words: np.ndarray, partitions: int, first: np.ndarray, me: int) -> pacing.Rings:
        posts = np.zeros((pacing.POSTS, partitions), np.int64)
        given = (words, self._own, posts, self._times, self._delayed, first, me, partitions)
        return pacing.Rings(words.ctypes.data, *given, pacing.rows_of(words.size, partitions))

    @property
    def _partitions(self) -> int:
        return self.joined.size

    def warm_up(self, rounds: int) -> None:
        """Send empty batches to the others: code is loaded, and what messages take by themselves is measured again."""
        self._begin_at(time.monotonic_ns() + LATER_NS)
        self._times[:] = 0
        with np.errstate(over="ignore"):
            for _ in range(rounds if self._partitions > 1 else 1):
                pacing.greet(self._rings)
                end = time.monotonic() + ROUND_S
                while time.monotonic() < end:
                    self._go_on(ROUND_S)
        self._own[pacing.WAITED_AWAKE] = 0

    def receive(self, source: int, batches: bytes) -> None:
        """Receive batches from a partition that does not share this one's memory."""
        rows = np.frombuffer(batches, np.int64)
        while not pacing.bring(self._rings, rows, np.int64(source)):
            if self._end is not None and self._now() > self._end:
                return
            time.sleep(FULL_S)

    def run_paced(self, origin: int) -> None:
        """Handle events when they are due, until `stop`; emulated time 0 is at `origin` of the driver's clock."""
        self._begin_at(origin + self._offset)
        cpu, begin = self._cpu_clock(), time.perf_counter()
        self._is_running = True
        try:
            with np.errstate(over="ignore"):
                while self._end is None or self._now() < self._end:
                    self._go_on(IDLE_S)
                while not self._step(self._end):
                    pass
        finally:
            self._is_running = False
            self._answer_driver()
        self._cpu, self.wall_s = self._cpu_clock() - cpu, time.perf_counter() - begin

    def _begin_at(self, origin: int) -> None:
        self._origin = origin
        self.world = self.world._replace(cost=self.world.cost._replace(origin=origin))
        self._own[pacing.SAMPLE] = self._samples.next_ns

    def _go_on(self, most_s: float) -> None:
        """Call the compiled loop once, for at most so long, and do what it returns for."""
        own, deadline = self._own, time.monotonic_ns() + round(most_s * NS)
        if self._end is not None:
            deadline = min(deadline, self._origin + max(round(self._end * self._pace.dilation), 0))
        own[pacing.DEADLINE] = deadline
        why = self._paced_loop(self.world, self.state, self._rings, self.setting.scheduler.advance)
        if why == PYTHON:  # one decision, so that what it sends leaves before the next
            why = self._ask(min(int(own[pacing.UNTIL]), self._samples.next_ns), 1)
        if why == RUNNING:
            settle(self.world)  # time outside the loop is not charged to a handler
        elif why == GROW:
            if not self._drain():
                self._grow(int(own[pacing.INBOUND]))
        elif why == pacing.SAMPLES:
            self._sample()
            own[pacing.SAMPLE] = self._samples.next_ns
        elif why == pacing.CARRY:
            self._carry()
        if self._is_asked:
            self._answer_driver()

    def _carry(self) -> None:
        """Send what is in the rings to partitions that do not share this one's memory, a call to each."""
        rings, me = self._rings, int(self._me)
        shared, partitions, size = rings.shared, rings.partitions, rings.rows
        for k in np.flatnonzero(rings.posts[pacing.HERE] == 0).tolist():
            ring = int(pacing.ring_of(partitions, me, k))
            head, tail = int(shared[ring + pacing.HEAD]), int(shared[ring + pacing.TAIL])
            if head < tail:
                first = int(pacing.row_of(partitions, size, me, k, 0))
                rows = shared[first : first + size * FIELDS].reshape(size, FIELDS)
                self._peers[k](me, rows[np.arange(head, tail) & (size - 1)].tobytes())
                shared[ring + pacing.HEAD] = tail
        self._own[pacing.CARRIES] = 0
        self._own[pacing.CARRY_AT] = time.monotonic_ns() + round(self._pace.tick_s * NS)

    def position(self, closing: bool) -> Position:
        """Return the progress; with `closing` also open tasks, which are counted one by one."""
        self._counts_open = closing
        self._is_answered.clear()
        self._is_asked = True
        # Only the thread that runs the partition knows: its compiled loop runs beside this one.
        while self._is_running and not self._is_answered.wait(IDLE_S):
            pass
        if not self._is_answered.is_set():
            self._answer_driver()
        return self._position

    def _answer_driver(self) -> None:
        """Note the progress, for `position`."""
        world, own, left = self.world, self._own, 0
        now = world.queue.now[0]
        if self._counts_open:
            left = int(world.jobs.unfinished[self.are_here(world.work.home)].sum())
        # Failures and repairs never end: their background messages are not counted.
        queued = now.heap_size + now.lane_tail - now.lane_head
        idle = queued <= now.background and now.outbox_size == 0
        finished = int(self._tasks(N_FINISHED).sum())
        sent, received = int(own[pacing.SENT]), int(own[pacing.RECEIVED])
        self._position = Position(finished, int(now.events), sent, received, bool(idle), self._now(), left)
        self._is_asked = False
        self._is_answered.set()

    def stop(self, end: int) -> None:
        """Set the emulated time, ns, at which the run ends."""
        self._end = end

    def share(self) -> Share:
        """Return this partition's part of the result, with its measurements."""
        assert self._end is not None
        own = self._own
        # All partitions have the rows before the end; some may have later ones, which the others lack.
        rows = sum(at < self._end for at, _ in self._backlogs)
        paced = Paced(
            lateness=self.world.cost.lateness,
            latency=self._times[pacing.LATENCY :][:1],
            floor=self._times[pacing.FLOOR :][:1],
            batches=int(own[pacing.BATCHES]),
            sent=int(own[pacing.SENT]),
            turns=int(own[pacing.TURNS]),
            backlog_sum=int(own[pacing.BACKLOG_SUM]),
            backlog_max=int(own[pacing.BACKLOG_MAX]),
            backlogs=np.array([most for _, most in self._backlogs[:rows]], np.int64),
            cpu=self._cpu,
            awake=int(own[pacing.WAITED_AWAKE]),
            wall=max(round(self.wall_s * NS), 1),
            apart=self._partitions - int(self._rings.posts[pacing.HERE].sum()),
        )
        return replace(super().share(), paced=paced)

    def _now(self) -> int:
        """Return the emulated time, ns."""
        return int((time.monotonic_ns() - self._origin) / self._pace.dilation)

    def _sample(self) -> None:
        """Record every sample: each has a backlog."""
        due, own = self._samples.next_ns, self._own
        self._backlogs.append((due, int(max(own[pacing.BACKLOG_SINCE], own[pacing.TURN]))))
        own[pacing.BACKLOG_SINCE] = 0
        super()._sample()
        self._samples.expect(due)
