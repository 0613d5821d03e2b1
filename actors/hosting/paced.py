"""A partition paced by the wall clock: it handles events when they are due, and sends their messages at once.

It wakes for events and messages, but not sooner than a tick after it has last sent a batch: under
load all messages of a tick travel together, and an idle partition answers at once.
"""

import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from actors.environment import Pace
from actors.hosting.outcome import NS, Observe, Paced, Share
from actors.hosting.partition import SLICE_EVENTS, Partition
from actors.hosting.timeline import Samples
from actors.kernel.cost import LIVE, make_cost
from actors.kernel.counters import N_FINISHED
from actors.kernel.histogram import BUCKETS, note_time
from actors.kernel.queue import GROW
from actors.kernel.window import FIELDS, HEADER, LEFT, make_frame
from actors.kernel.world import NEVER
from actors.setting import Setting

IDLE_S = 0.05  # the longest sleep, so that rows of the timeline are on time
ROUNDS, ROUND_S = 50, 0.004  # of the rehearsal
AT_ONCE = np.int64(-NEVER)  # messages keep the time at which they are due, however late they are
_STAMP = struct.Struct("=2q")  # of a batch: when it was sent, and how many messages it has

Send = Callable[[bytes], Any]


class Position(NamedTuple):
    """The progress of a partition."""

    finished: int  # tasks
    events: int
    sent: int  # messages, to other partitions
    received: int
    idle: bool  # nothing is left to do here
    now: int  # emulated time, ns
    open: int  # tasks whose end has not been reported to their scheduler; 0 if not counted


class PacedPartition(Partition):
    """A partition that handles events when the wall clock reaches them.

    After `start` and `join`: `connect` to the others, `warm_up`, then `run_paced` in a thread of its own, while
    `receive`, `position` and `stop` may be called from others; at the end `share`.
    """

    def __init__(self, setting: Setting, observe: Observe, pace: Pace, cpu_clock: Callable[[], int]):
        super().__init__(setting, observe)
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
        self._inbox: deque[tuple[int, bytes]] = deque()
        self._wake_up = threading.Event()
        self._end: int | None = None
        self._ticking = False
        self._origin = self._offset = 0
        self._tick_ns, self._posted = round(pace.tick_s * NS), 0
        self._most = np.int64(1024)  # events between two readings of the clock
        self._calls = self._sent = self._received = self._ticks = 0
        self._backlog_sum = self._backlog_max = self._backlog_since = 0
        self._backlogs: list[tuple[int, int]] = []  # time of a row, ns, and the most since the row before
        self._latency, self._floor = np.zeros((2, 1, BUCKETS), np.int64)
        self._cpu = 0

    def start(self) -> float:
        """Compile or load the loop, and the functions that a scheduler in Python calls when its first job arrives."""
        seconds = super().start()
        if self.setting.scheduler.host is not None:
            workload = self.setting.scheduler.worlds.rehearsal(self.setting.workload)
            rehearsal = Partition(replace(self.setting, workload=workload), Observe())
            rehearsal.start()
            while not rehearsal.run(1.0).done:
                pass
        return seconds

    def connect(self, peers: list[Send], offset: int) -> None:
        """Keep how to send to the others; `offset` is this machine's clock less the driver's, ns."""
        self._peers, self._offset = peers, offset
        self._nothing = make_frame(len(peers), 0).tobytes()

    def warm_up(self) -> None:
        """Send empty batches to the others: connections are made, code is loaded, and Ray's own part is measured."""
        for _ in range(ROUNDS if len(self._peers) > 1 else 1):
            for k in range(len(self._peers)):
                if k != self._me:
                    self._send(k, 0, self._nothing)
            time.sleep(ROUND_S)
            self._insert([self._nothing])

    def receive(self, batch: bytes) -> None:
        """Receive a batch from another partition."""
        self._inbox.append((time.monotonic_ns(), batch))
        self._wake_up.set()

    def run_paced(self, origin: int) -> None:
        """Handle events when they are due, until `stop`; emulated time 0 is at `origin` of the driver's clock."""
        self._origin = origin + self._offset
        self.world = self.world._replace(cost=self.world.cost._replace(origin=self._origin))
        cpu, begin = self._cpu_clock(), time.perf_counter()
        with np.errstate(over="ignore"):
            while self._end is None or self._now() < self._end:
                if self._tick():
                    self._rest()
            while not self._step(self._end):
                pass
        self._cpu, self.wall_s = self._cpu_clock() - cpu, time.perf_counter() - begin

    def position(self, closing: bool) -> Position:
        """Return the progress; with `closing` also open tasks, which are counted one by one."""
        world, left = self.world, 0
        now = world.queue.now[0]
        if closing:
            left = int(world.jobs.unfinished[self.are_here(world.work.home)].sum())
        # Failures and repairs never end: their background messages are not counted.
        queued = now.heap_size + now.lane_tail - now.lane_head
        idle = not self._ticking and not self._inbox and queued <= now.background
        finished = int(self._tasks(N_FINISHED).sum())
        return Position(finished, int(now.events), self._sent, self._received, idle, self._now(), left)

    def stop(self, end: int) -> None:
        """Set the emulated time, ns, at which the run ends."""
        self._end = end
        self._wake_up.set()

    def share(self) -> Share:
        """Return this partition's part of the result, with its measurements."""
        assert self._end is not None
        # All partitions have the rows before the end; some may have later ones, which the others lack.
        rows = sum(at < self._end for at, _ in self._backlogs)
        paced = Paced(
            lateness=self.world.cost.lateness,
            latency=self._latency,
            floor=self._floor,
            calls=self._calls,
            sent=self._sent,
            received=self._received,
            ticks=self._ticks,
            backlog_sum=self._backlog_sum,
            backlog_max=self._backlog_max,
            backlogs=np.array([most for _, most in self._backlogs[:rows]], np.int64),
            cpu=self._cpu,
            wall=max(round(self.wall_s * NS), 1),
        )
        share = super().share()
        servers = share.servers.copy()
        for name in ("busy", "arriving"):  # emulated time, as all else
            servers[name] = np.where(servers[name] > 0, servers[name] / self._pace.dilation, servers[name])
        return replace(share, servers=servers, paced=paced)

    def _now(self) -> int:
        """Return the emulated time, ns."""
        return int((time.monotonic_ns() - self._origin) / self._pace.dilation)

    def _tick(self) -> bool:
        """Insert received messages, handle due events, send messages; return False if due events are left."""
        self._ticking = True
        frames = []
        while self._inbox:
            frames.append(self._open_batch(*self._inbox.popleft()))
        if frames:
            self._insert(frames)
        until = self._now() if self._end is None else min(self._now(), self._end)
        before = int(self.world.queue.now.events[0])
        done = self._advance(until)
        self._post()
        backlog = int(self.world.queue.now.events[0]) - before + (0 if done else self._due(until))
        self._ticks += 1
        self._backlog_sum += backlog
        self._backlog_max = max(self._backlog_max, backlog)
        self._backlog_since = max(self._backlog_since, backlog)
        self._ticking = False
        return done

    def _rest(self) -> None:
        """Sleep until an event or a message is there, and until a tick after the last batch."""
        left = self._posted + self._tick_ns - time.monotonic_ns()
        if left > 0:
            time.sleep(left / NS)
        wait_s = (self._next_event() - self._now()) * self._pace.dilation / NS
        if wait_s > 0:
            self._wake_up.wait(min(wait_s, IDLE_S))
        self._wake_up.clear()

    def _advance(self, until: int) -> bool:
        """Handle events before `until`, for at most a tick of wall time; return whether all are handled."""
        tick = self._tick_ns
        deadline = time.monotonic_ns() + tick
        while True:
            begin = time.monotonic_ns()
            if self._step(until, self._most):
                return True
            end = time.monotonic_ns()
            if end - begin > tick / 2:
                self._most = np.int64(max(int(self._most) // 2, 1))
            elif end - begin < tick / 8:
                self._most = np.int64(min(int(self._most) * 2, int(SLICE_EVENTS)))
            if end > deadline:
                return False

    def _due(self, until: int) -> int:
        """Count events before `until` that wait in the queue."""
        queue, now = self.world.queue, self.world.queue.now[0]
        lane = queue.lane.time[np.arange(now.lane_head, now.lane_tail) & (queue.lane.size - 1)]
        return int(np.sum(lane < until) + np.sum(queue.heap.time[: now.heap_size] < until))

    def _sample(self) -> None:
        """Record every sample: each has a backlog."""
        due = self._samples.next_ns
        self._backlogs.append((due, self._backlog_since))
        self._backlog_since = 0
        super()._sample()
        self._samples.expect(due)

    def _open_batch(self, received: int, batch: bytes) -> bytes:
        """Record the latency and the size of a batch; return its frames."""
        sent, count = _STAMP.unpack_from(batch)
        note_time(self._latency if count else self._floor, 0, received - self._offset - sent)
        self._received += count
        return batch[_STAMP.size :]

    def _insert(self, frames: list[bytes]) -> None:
        """Insert the messages of frames into the queue."""
        rows = np.frombuffer(b"".join(frames), np.int64)
        while self._enter(self.world, rows, *self._deliver, AT_ONCE, self._delayed) == GROW:
            self._grow(rows.size // FIELDS)

    def _post(self) -> None:
        """Send the messages in the outbox, one batch to each partition."""
        if not self.world.queue.now.outbox_size[0]:
            return
        self._posted = time.monotonic_ns()
        batches: dict[int, list[bytes]] = {}
        counts = np.zeros(len(self._peers), np.int64)
        left = True
        while left:
            self._leave(self.world, *self._pack)
            here = self._frame[HEADER : HEADER + len(self._peers)]
            counts += here
            for k in np.flatnonzero(here).tolist():
                batches.setdefault(k, []).append(_part(self._frame, len(self._peers), k))
            left = self._frame[LEFT] > 0
        for k, parts in batches.items():
            self._send(k, int(counts[k]), b"".join(parts))
            self._calls += 1
            self._sent += int(counts[k])

    def _send(self, k: int, count: int, frames: bytes) -> None:
        self._peers[k](_STAMP.pack(time.monotonic_ns() - self._offset, count) + frames)


def _part(frame: np.ndarray, partitions: int, k: int) -> bytes:
    """Return a frame with only those messages of another that are for partition `k`."""
    counts = frame[HEADER : HEADER + partitions]
    head = np.zeros(HEADER + partitions, np.int64)
    head[HEADER + k] = counts[k]
    first = head.size + FIELDS * int(counts[:k].sum())
    return head.tobytes() + frame[first : first + FIELDS * int(counts[k])].tobytes()
