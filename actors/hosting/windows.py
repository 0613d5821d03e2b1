"""The clock `windows`: several partitions that meet at barriers, with the same results as one.

Conservative synchronous windows (Lubachevsky, CACM 1989): all partitions may handle events up to the earliest next
event of all plus the lookahead, the least time a message from one partition to another takes; then they exchange
their messages. A message that crosses a barrier arrives after it, and the order of events does not depend on
partitions, so results are bit-identical for any number of them.

A quantum replaces the lookahead, and is longer: barriers are fewer, and a message that should have arrived before a
barrier arrives at it. The result counts late messages, and by how much. A window begins at the earliest next event and
not at a multiple of the quantum, because then the fewest windows cover the events.
"""

import struct
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from actors.hosting.checkpoint import Checkpoint, Checkpoints, Position
from actors.hosting.grouping import Cast, Grouping, group_actors
from actors.hosting.outcome import NS, Observe, Outcome
from actors.hosting.partition import Partition, Progress, Report, Tell, merge_shares
from actors.hosting.recovery import recover
from actors.hosting.slices import run_in_slices
from actors.hosting.snapshot import Snapshot
from actors.hosting.stall import too_late
from actors.kernel.queue import NEVER
from actors.kernel.window import EVENTS, FINISHED, HEADER, LEFT, NEXT, TASKS, WORK
from actors.setting import Setting
from workloads.errors import InputError

Barrier = Callable[[bytes], Sequence[bytes]]
BEGINNING = -1  # a barrier before all events
WARM_UP = 50  # barriers without work, to measure how long one takes
_HEADER = struct.Struct(f"={HEADER}q")


def lookahead_ns(setting: Setting) -> int:
    """Return the least time that a message between two partitions takes, ns.

    Where delays between racks are longer than within, racks are not divided, and it is the longer delay. Messages that
    take no time are an InputError.
    """
    network = setting.network
    lookahead = round(max(network.delay_s, network.cross_rack_delay_s or 0.0) * NS)
    if lookahead < 1:
        raise InputError(
            "network.delay: messages take no time, so partitions cannot run apart; the clock 'virtual' can, or"
            " give a delay such as 0.5 ms"
        )
    return lookahead


def lead_ns(setting: Setting, window: int) -> int:
    """Return the lookahead of partitions that may run ahead of each other, ns, as in an exact run; else NEVER.

    Failures and repairs go on when all is done: one that ran ahead would have more of them than the others.
    """
    dynamics = setting.dynamics
    never_ends = dynamics.mtbf_s is not None or dynamics.outages is not None
    return int(NEVER) if never_ends or window != lookahead_ns(setting) else window


def window_ns(setting: Setting, quantum_s: float | None) -> int:
    """Return the time from the earliest next event to the barrier, ns: the quantum, or else the lookahead.

    A quantum that is shorter than the lookahead is an InputError.
    """
    lookahead = lookahead_ns(setting)
    if quantum_s is None:
        return lookahead
    quantum = round(quantum_s * NS)
    if quantum < lookahead:
        raise InputError(
            f"--quantum: {quantum_s:g} s is less than the lookahead, {lookahead / NS:g} s; without it the run is"
            " exact and has no more barriers"
        )
    return quantum


def check_partitions(setting: Setting, partitions: int) -> None:
    """Refuse more partitions than actors, before anything is started; of few the actors need not be counted."""
    racks = setting.cluster.racks()
    few = setting.cluster.num_nodes if racks is None else np.unique(racks).size
    if setting.switch.scheduler != "none":
        few = 2  # a network with its nodes, and a scheduler
    if partitions > few:
        divide(setting, Partition(setting, Observe(), whole=False).cast(), partitions)


def divide(setting: Setting, cast: Cast, partitions: int) -> Grouping:
    """Return the grouping of a setting's actors; racks are kept whole where that makes the lookahead longer."""
    network = setting.network
    whole = (network.cross_rack_delay_s or 0.0) > network.delay_s
    return group_actors(cast, partitions, setting.cluster.racks() if whole else None)


class Windows:
    """The driver of partitions that run from barrier to barrier.

    Args:
        barrier: takes the message to all partitions, returns the frames that they answer with.
        frames: the partitions' first ones.
        window: time from the earliest next event to the barrier, ns.
        setting: of the run.

    Attributes:
        at: their progress.
    """

    def __init__(self, barrier: Barrier, frames: Sequence[bytes], window: int, setting: Setting):
        self.barrier, self.frames, self._window, self._setting = barrier, frames, window, setting
        self.at = Position(0.0, 0, BEGINNING)

    def go_back(self, frames: Sequence[bytes], at: Position) -> None:
        """Continue from the state to which the partitions were restored, with the frames they had there."""
        self.frames, self.at = frames, at

    def barrier_s(self) -> float:
        """Return how long a barrier takes at which nothing happens."""
        empty = barrier_message(BEGINNING, self.frames)
        ends = [time.perf_counter()]
        for _ in range(WARM_UP):
            self.barrier(empty)
            ends.append(time.perf_counter())
        return float(np.median(np.diff(ends)))  # the first ones take longer

    def run(self, most_s: float) -> Progress:
        """Continue for about `most_s` seconds, or until nothing is left to do."""
        count, until, frames = self.at.windows, self.at.until_ns, self.frames
        window, barrier, unpack = self._window, self.barrier, _HEADER.unpack_from
        begun = time.perf_counter()
        end = begun + most_s

        while True:
            # The driver's time is part of every window: one pass over the headers.
            earliest, finished, events, left, work, tasks = int(NEVER), 0, 0, 0, 0, 0
            for frame in frames:
                head = unpack(frame)
                earliest = min(earliest, head[NEXT])
                finished += head[FINISHED]
                events += head[EVENTS]
                left += head[LEFT]
                work += head[WORK]
                tasks = head[TASKS]
            now = time.perf_counter()
            # Failures and repairs never end: their background messages are not counted.
            done = bool(left == 0 and (earliest >= NEVER or (finished == tasks and work == 0)))
            if done or (left == 0 and now > end and count > self.at.windows):
                wall_s = self.at.wall_s + now - begun
                self.frames, self.at = frames, Position(max(until, 0) / NS, events, until, count, wall_s)
                return Progress(finished, self.at, done)
            if left == 0:
                until = earliest + window
                if until >= NEVER:
                    raise too_late(self._setting)
            frames = barrier(barrier_message(until, frames))
            count += 1


def barrier_message(until: int, frames: Sequence[bytes]) -> bytes:
    """Return the message to all partitions: a window after the earliest next event, and the frames of all."""
    return b"".join((until.to_bytes(8, sys.byteorder, signed=True), *frames))


def expected_windows(setting: Setting, window: int, partitions: int) -> int:
    """Estimate how many barriers a run takes whose windows are `window` ns long.

    Instants at which something happens, and is answered one delay later, come at random while jobs arrive: four for
    each job (or coflow), three for each task (or flow). An instant within the window of another adds no barrier, nor
    one in the partition that runs ahead of the others. A partition alone runs ahead to the end.
    """
    instants = 4 * setting.num_jobs + 3 * setting.num_tasks
    arrivals, least = setting.scheduler.worlds.span_ns(setting)
    span = max(int(arrivals[-1] - arrivals[0]), least, 1)
    apart, runs_ahead = 1 / (1 + instants * window / span), lead_ns(setting, window) < NEVER
    if partitions == 1 and runs_ahead:
        return 1
    ahead = apart / partitions if runs_ahead else 0.0
    return round(instants * apart * (1 - ahead))


class WindowsHere:
    """All partitions in this process, one after the other between barriers: for tests and debuggers."""

    def __init__(self, setting: Setting, observe: Observe, partitions: int, window: int):
        self._setting = setting
        self._hosts = [Partition(setting, observe, whole=False) for _ in range(partitions)]
        grouping = divide(setting, self._hosts[0].cast(), partitions)
        for host in self._hosts:
            host.start()
        lead = lead_ns(setting, window)
        frames = [host.join(grouping, k, lead) for k, host in enumerate(self._hosts)]
        self._windows = Windows(
            lambda message: [host.window(message) for host in self._hosts], frames, window, setting
        )
        self.run = self._windows.run

    def snapshots(self) -> list[Snapshot]:
        """Return the state of all partitions."""
        return [host.snapshot() for host in self._hosts]

    def restore(self, start: Checkpoint) -> None:
        """Go back to a checkpoint."""
        pairs = zip(self._hosts, start.snapshots, strict=True)
        self._windows.go_back([host.restore(saved) for host, saved in pairs], start.at)

    def outcome(self) -> Outcome:
        """Return the result."""
        outcome = merge_shares(self._setting, [host.share() for host in self._hosts])
        return replace(outcome, windows=self._windows.at.windows)


def emulate_here(
    setting: Setting,
    observe: Observe,
    partitions: int,
    quantum_s: float | None = None,
    progress: Report | None = None,
    tell: Tell | None = None,
    checkpoints: Checkpoints | None = None,
) -> Outcome:
    """Run all partitions in this process."""
    window = window_ns(setting, quantum_s)

    def attempt(start: Checkpoint | None) -> Outcome:
        here = WindowsHere(setting, observe, partitions, window)
        if start is not None:
            here.restore(start)
        return run_in_slices(here, here.snapshots, setting, checkpoints, progress, tell)

    return recover(attempt, checkpoints)
