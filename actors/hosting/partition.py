"""One partition: the state of its actors, run by its policy's compiled loop."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from actors.failures import grow_attempts, outages_of, with_attempts
from actors.hosting.checkpoint import Position
from actors.hosting.grouping import Cast, Grouping, cast_of
from actors.hosting.outcome import NS, Observe, Outcome, Share, merge_shares, peak_rss_mb
from actors.hosting.recording import EventFile, with_trace
from actors.hosting.snapshot import Snapshot, put_back, take_out
from actors.hosting.stall import too_late
from actors.hosting.timeline import Samples
from actors.kernel.compiled import direct, is_plain, is_warm
from actors.kernel.cost import MEASURED, grow_cost, settle
from actors.kernel.counters import N_ARRIVED, N_FINISHED, N_STARTED
from actors.kernel.queue import GROW, HORIZON, IDLE, NEVER, NONE, PYTHON, RUNNING, grow_queue
from actors.kernel.records import records
from actors.kernel.turns import Turns
from actors.kernel.window import deliver, find_barrier, make_frame, pack, restrict
from actors.nodes.world import TASK_RECORD, grow_entries
from actors.setting import Setting
from workloads.errors import InputError

SLICE_EVENTS = np.int64(200_000)
ASKING_S = 0.01  # for about so long events are handled in Python at a stretch
ASKS = 200  # or so many of them, where the end of a stretch ends a window: their number must not depend on the time
FRAME_MESSAGES = 4096  # the most messages of a partition that cross one barrier; the others take the next one

Report = Callable[[int, int, float], None]
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """The decisions of a user's own scheduler so far."""

    times: int  # decisions
    took_s: float  # all of them
    wall_s: float  # of the run
    share_done: float  # an estimate of the share of all its decisions, 0..1


@dataclass(frozen=True)
class Progress:
    """The progress of a run."""

    tasks_done: int
    at: Position
    done: bool
    asked: Asked | None = None  # where a user's own scheduler decides


def wrapping_round() -> AbstractContextManager[Any]:
    """Return a context without warnings of the wrap-around that random numbers rely on; compiled code has none."""
    return np.errstate(over="ignore") if is_plain() else nullcontext()


def build_partition(setting: Setting, observe: Observe) -> tuple[Any, Any]:
    """Return the world and the scheduler's state at time 0."""
    world, state = setting.scheduler.build(setting)
    if observe.tasks:
        # Coflows may have more: flows that moves create.
        task_records = records(TASK_RECORD, max(setting.num_tasks, int(world.work.end_task[-1])))
        task_records.node[:] = NONE
        world = world._replace(task_records=task_records, faults=with_attempts(world.faults))
    if observe.events is not None:
        world = with_trace(world, observe.events, setting)
    return world, setting.scheduler.grow(world, state)


class Partition:
    """A world and the loop that drives it.

    Without `whole` it has no nodes until it knows which are its own. `start` compiles the loop, or loads it from the
    disk cache. A partition alone goes on with `run` and gives its `outcome`; one of several gets its actors with
    `join`, goes from barrier to barrier with `window`, and gives its `share`.
    """

    def __init__(self, setting: Setting, observe: Observe, *, whole: bool = True):
        self.setting = setting
        self.observe = observe
        self.world, self.state = build_partition(setting, observe)
        if whole:
            setting.scheduler.worlds.start_nodes(self.world, setting, slice(None))
        self._loop = setting.scheduler.advance
        self._answer = setting.scheduler.host(setting) if setting.scheduler.host else None
        self.wall_s = self.compile_s = 0.0
        self._events = None if observe.events is None else EventFile(observe.events.folder, 0)
        self._asks, self._asks_s = 0, 0.0
        period_ns = max(round(observe.timeline_period_s * NS), 1) if observe.timeline_period_s else 0
        self._samples = Samples(int(self.world.work.submit[0]), period_ns, observe.most_rows)
        self._grouping: Grouping | None = None
        self._barrier, self._until = np.int64(-1), -1
        self._delayed = np.zeros(4, np.int64)
        self._last_frame = b""

    def is_warm(self) -> bool:
        """Whether the loop can be loaded from the disk cache."""
        return all(map(is_warm, self.setting.scheduler.loops))

    def start(self) -> float:
        """Compile or load the loop; returns the seconds that took."""
        begin = time.perf_counter()
        loop, given = self.setting.scheduler.advance, (self.world, self.state, self._barrier, SLICE_EVENTS)
        self._loop = loop.direct(*given) if isinstance(loop, Turns) else direct(loop, *given)
        if self._answer is not None:
            self._answer.compile(self.world, self.state)
        self.compile_s = time.perf_counter() - begin
        return self.compile_s

    def run(self, most_s: float) -> Progress:
        """Go on for about `most_s` seconds, or to the end."""
        begin = time.perf_counter()
        done = False
        with wrapping_round():
            while not done:  # at least once: else a period of a microsecond would never make progress
                done = self._step(int(NEVER))
                if time.perf_counter() - begin >= most_s:
                    break
        self.wall_s += time.perf_counter() - begin
        now = self.world.queue.now[0]
        at = Position(now.time / NS, int(now.events))
        return Progress(int(self._tasks(N_FINISHED).sum()), at, done, self._asked(done))

    def _asked(self, done: bool) -> Asked | None:
        host = self._answer
        share = None if host is None else host.share_done(self.world, self.state)
        if share is None:
            return None
        return Asked(self._asks, self._asks_s, self.wall_s, 1.0 if done else min(share, 1.0))

    def cast(self) -> Cast:
        """The actors there are, in all partitions."""
        return cast_of(self.world, self.setting.scheduler.worlds.schedulers_share)

    def are_here(self, actors: np.ndarray) -> np.ndarray:
        """Return which of some actors are of this partition, bool."""
        now = self.world.queue.now[0]
        is_scheduler = (actors >= now.first_scheduler) & (actors < now.end_scheduler)
        return is_scheduler | ((actors >= now.first) & (actors < now.end))

    def join(self, grouping: Grouping, me: int, lookahead: int = NEVER) -> bytes:
        """Be partition `me` of a grouping; returns the first frame. Call it before anything has happened here.

        `lookahead`: of partitions that may run ahead of each other, ns; else NEVER.
        """
        restrict(self.world.queue, grouping.first, me, lookahead)
        now = self.world.queue.now[0]
        self.setting.scheduler.worlds.start_nodes(self.world, self.setting, slice(now.first, now.end))
        self._grouping, self._me = grouping, np.int64(me)
        if self.observe.events is not None:
            self._events = EventFile(self.observe.events.folder, me)
        self._frame = make_frame(grouping.size, FRAME_MESSAGES)
        self._deliver = (np.int64(grouping.size), self._me)
        self._quiet = make_frame(grouping.size, 0)
        tasks = np.int64(self.setting.num_tasks)
        place = (self._frame, np.int64(0), np.int64(self._frame.size))
        self._pack = (grouping.first, self._me, tasks, *place, self._quiet)
        frames = np.frombuffer(self._quiet.tobytes(), np.int64)
        self._find = direct(
            find_barrier, self.world.queue, frames, *self._deliver, self._barrier, self._barrier
        )
        self._enter = direct(deliver, self.world, frames, *self._deliver, self._barrier, self._delayed)
        self._leave = direct(pack, self.world, *self._pack)
        return self._packed()

    def window(self, message: bytes) -> bytes:
        """From one barrier to the next: enter the messages of all frames, handle events, return a frame.

        Args:
            message: int64: a window after the earliest next event of all, and the frames of all partitions.
        """
        begin = time.perf_counter()
        numbers = np.frombuffer(message, np.int64)
        frames, given = numbers[1:], (*self._deliver, numbers[0], self._until)
        self._until = until = self._find(self.world.queue, frames, *given)
        with wrapping_round():
            while self._enter(self.world, frames, *self._deliver, self._barrier, self._delayed) == GROW:
                self._grow(frames.size // 8)
            self._samples.expect(self._next_event())
            while not self._step(until):
                pass
            self._barrier = min(until, self.world.queue.now.limit[0])
            frame = self._packed()
        self.wall_s += time.perf_counter() - begin
        return frame

    def _packed(self) -> bytes:
        self._last_frame = self._frame[: self._leave(self.world, *self._pack)].tobytes()
        return self._last_frame

    def snapshot(self) -> Snapshot:
        """Return all that is needed to continue in another process; take it between calls of `run` or `window`.

        A user's own scheduler that cannot be pickled is an InputError.
        """
        if self.world.cost.model >= MEASURED:
            settle(self.world)  # the clock of a handler under way is this process's
        self._drain()
        own = b"" if self._answer is None else self._answer.save()
        return {
            **take_out(self.world, "world"),
            **take_out(self.state, "state"),
            "own": np.frombuffer(own, np.uint8),
            "samples": self._samples.save(),
            "barrier": np.array(self._barrier),
            "delayed": self._delayed.copy(),
            "frame": np.frombuffer(self._last_frame, np.uint8),
            "wall_s": np.array(self.wall_s),
            "recorded": np.zeros(2, np.int64) if self._events is None else self._events.position(),
        }

    def restore(self, saved: Snapshot) -> bytes:
        """Continue from a snapshot of such a partition, and return its last frame; call it after `start` and `join`.

        Raise `Refused` if the snapshot is of another setting.
        """
        self.world = put_back(self.world, "world", saved)
        self.state = self.setting.scheduler.grow(self.world, put_back(self.state, "state", saved))
        if self._answer is not None:
            self._answer.load(saved["own"].tobytes())
        self._samples.load(saved["samples"])
        self._barrier = np.int64(saved["barrier"])
        self._delayed[:] = saved["delayed"]
        self._last_frame = saved["frame"].tobytes()
        self.wall_s = float(saved["wall_s"])
        if self._events is not None:
            self._events.cut(saved["recorded"])
        return self._last_frame

    def _tasks(self, which: int) -> np.ndarray:
        """[2] tasks that arrived, started or finished, short and long."""
        return self.world.counts[which : which + 2]

    def _step(self, until: int, most: int = SLICE_EVENTS) -> bool:
        """Call the loop once, and do what it returned for; return whether all events before `until` are handled."""
        stop = min(until, self._samples.next_ns)
        why = self._loop(self.world, self.state, np.int64(stop), most)
        if why == PYTHON:
            why = self._ask(stop, most)
        if why == RUNNING:
            self._break()
        elif why == GROW:
            if not self._drain():  # the next step returns GROW again if more than the trace was full
                self._grow()
        elif self._samples.next_ns >= min(until, self.world.queue.now.limit[0]) or (
            why == IDLE and until >= NEVER
        ):
            if why == HORIZON and until >= NEVER:
                raise too_late(self.setting)
            return True
        else:
            self._sample()
        return False

    def _ask(self, stop: int, most: int) -> int:
        """Have events handled in Python, as long as one follows another; return why the loop stopped at last."""
        answer, loop, world, state = self._answer, self._loop, self.world, self.state
        assert answer is not None
        clock, until = time.perf_counter, np.int64(stop)
        begin = first = clock()
        runs_ahead = world.queue.now.lookahead[0] < NEVER
        last = self._asks + (min(most, ASKS) if runs_ahead else most)
        while True:  # each decision takes microseconds, as does the work between two calls of `_step`
            try:
                answer(world, state)
            except InputError as error:
                raise (answer.placed(error) if error.file is None else error) from None
            end = clock()
            self._asks, self._asks_s = self._asks + 1, self._asks_s + end - begin
            if self._asks >= last or (not runs_ahead and end - first > ASKING_S):
                return int(RUNNING)
            why = loop(world, state, until, most)
            if why != PYTHON:
                return int(why)
            begin = clock()

    def _break(self) -> None:
        """Charge no handler for time outside the loop; who runs ahead ends its window, so that all can pause."""
        now = self.world.queue.now
        if self.world.cost.model >= MEASURED:
            settle(self.world)
        if now.lookahead[0] < NEVER:
            now.limit[0] = min(now.limit[0], self._next_event())

    def _drain(self) -> bool:
        """Write the events that are recorded; returns whether there were any."""
        return self._events is not None and self._events.drain(self.world.queue.trace)

    def _grow(self, messages: int = 0) -> None:
        """Make room, also for this number of messages from other partitions."""
        world = self.world
        self.world = world._replace(
            entries=grow_entries(world.entries),
            queue=grow_queue(world.queue, messages),
            cost=grow_cost(world.cost),
            faults=grow_attempts(world.faults),
        )
        self.state = self.setting.scheduler.grow(self.world, self.state)

    def _sample(self) -> None:
        """Note how many tasks are queued and running now."""
        queued = self._tasks(N_ARRIVED) - self._tasks(N_STARTED)
        running = self._tasks(N_STARTED) - self._tasks(N_FINISHED)
        self._samples.note(queued.tolist(), running.tolist(), self._next_event())

    def _next_event(self) -> int:
        """Return when the next event here is due, NEVER without one."""
        queue = self.world.queue
        now, lane = queue.now, queue.lane
        due = queue.heap.time[0] if now.heap_size[0] > 0 else NEVER
        first = now.lane_head[0]
        if now.lane_tail[0] > first:
            due = min(due, lane.time[first & (lane.size - 1)])
        return int(due)

    def share(self) -> Share:
        """What this partition knows when all is done."""
        if self._events is not None:
            self._events.end(self.world.queue.trace)
        world, now = self.world, self.world.queue.now[0]
        if now.lookahead < NEVER and self._samples.next_ns < NEVER:
            self._sample()  # all is done, and another partition ran ahead to the end
        worlds = self.setting.scheduler.worlds
        jobs, start_ns, finish_ns, unfinished = worlds.ends(world, self.are_here(world.work.home))
        tasks = attempts = None
        if self.observe.tasks:
            rows = world.records_by_task()
            ids = np.flatnonzero(rows.node != NONE)
            rows = rows[ids]
            tasks = (ids, rows.node, rows.start, rows.finish)
            if world.faults.attempts.size:
                attempts = np.asarray(world.faults.attempts[: world.faults.ended[0]])
        recorded = int(world.cost.handler.recorded[0])
        series = self.setting.scheduler.series
        return Share(
            jobs=jobs,
            start_ns=start_ns,
            finish_ns=finish_ns,
            unfinished=unfinished,
            samples=self._samples.rows(),
            first_ns=self._samples.first_ns,
            period_ns=self._samples.period_ns,
            most_rows=self.observe.most_rows,
            tasks=tasks,
            attempts=attempts,
            counts=world.counts,
            servers=np.asarray(world.cost.servers),
            costs=np.asarray(world.cost.log[:recorded]),
            waits=world.cost.lateness[1],
            delayed=self._delayed,
            events=int(now.events),
            wall_s=self.wall_s,
            compile_s=self.compile_s,
            peak_rss_mb=peak_rss_mb(),
            recorded=0 if self._events is None else self._events.rows,
            faults=outages_of(world.faults),
            evicted=worlds.evicted(world),
            series=series(self.setting, world, self.state) if series else None,
        )

    def outcome(self) -> Outcome:
        """The result of a partition that is alone; call it when `run` has said that it is done."""
        return merge_shares(self.setting, [self.share()])
