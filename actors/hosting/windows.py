"""The clock `windows`: several partitions that meet at barriers, with the same results as one.

Conservative synchronous windows (Lubachevsky, CACM 1989): all partitions may handle events up to the earliest next
event of all plus the lookahead, the least time a message from one partition to another takes; then they exchange
their messages. What crosses a barrier arrives after it, and the order of events does not mention partitions, so that
results are bit-identical for any number of them.

A quantum longer than the lookahead makes barriers fewer: they lie at its multiples, and what should have arrived
before a barrier arrives at it. The result counts what was late, and by how much.
"""

import struct
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from actors.hosting.checkpoint import Checkpoint, Checkpoints, Position
from actors.hosting.grouping import Cast, Grouping, group_actors
from actors.hosting.outcome import NS, Observe, Outcome
from actors.hosting.partition import Partition, Report, merge_shares, too_late
from actors.hosting.recovery import interrupts_deferred, pause, recover
from actors.kernel.window import EVENTS, FINISHED, HEADER, LEFT, NEXT, TASKS, WORK
from actors.kernel.world import NEVER
from actors.setting import Setting
from workloads.coflows import CoflowArrays
from workloads.errors import InputError

LOOK_S, REPORT_S = 0.05, 0.25
Barrier = Callable[[bytes], Sequence[bytes]]
Rest = Callable[[Position], None]
BEGINNING = -1  # a barrier before all events
_HEADER = struct.Struct(f"={HEADER}q")


@dataclass(frozen=True)
class Rhythm:
    """How far partitions may run between two barriers, ns."""

    lookahead: int
    quantum: int = 0  # 0: exact

    def next_barrier(self, earliest: int) -> int:
        """The next barrier when the earliest next event is at `earliest`."""
        if self.quantum:
            return (earliest // self.quantum + 1) * self.quantum
        return earliest + self.lookahead


def lookahead_ns(setting: Setting) -> int:
    """The least time a message between two partitions takes.

    Where delays between racks are longer than within, racks are not divided, and that is the longer one.

    Raises:
        InputError: messages take no time.
    """
    network = setting.network
    lookahead = round(max(network.delay_s, network.cross_rack_delay_s or 0.0) * NS)
    if lookahead < 1:
        raise InputError(
            "network.delay: messages take no time, so partitions cannot run apart; the clock 'virtual' can, or"
            " give a delay such as 0.5 ms"
        )
    return lookahead


def rhythm_of(setting: Setting, quantum_s: float | None) -> Rhythm:
    """The rhythm of a setting.

    Raises:
        InputError: messages take no time, or the quantum is shorter than the lookahead.
    """
    lookahead = lookahead_ns(setting)
    quantum = 0 if quantum_s is None else round(quantum_s * NS)
    if quantum_s is not None and quantum < lookahead:
        raise InputError(
            f"--quantum: {quantum_s:g} s is less than the lookahead, {lookahead / NS:g} s; without it the run is"
            " exact and has no more barriers"
        )
    return Rhythm(lookahead, quantum)


def divide(setting: Setting, cast: Cast, partitions: int) -> Grouping:
    """The grouping of a setting's actors; racks are kept whole where that makes the lookahead longer."""
    network = setting.network
    whole = (network.cross_rack_delay_s or 0.0) > network.delay_s
    return group_actors(cast, partitions, setting.cluster.racks() if whole else None)


def drive(
    barrier: Barrier,
    frames: Sequence[bytes],
    rhythm: Rhythm,
    progress: Report | None = None,
    rest: Rest | None = None,
    at: Position | None = None,
) -> Position:
    """Go from barrier to barrier until nothing is left to do; returns where that is.

    Args:
        barrier: takes what is told to all partitions, gives the frames they answer with.
        frames: the partitions' last ones.
        rest: is told now and then where all partitions are, while they wait.
        at: where the partitions are; None: at the beginning.
    """
    count, until, spent_s = (0, BEGINNING, 0.0) if at is None else (at.windows, at.until_ns, at.wall_s)
    begun = looked = reported = time.perf_counter()
    unpack = _HEADER.unpack_from

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
        # Failures and repairs go on for ever; they are no work.
        done = left == 0 and (earliest >= NEVER or (finished == tasks and work == 0))
        if done or now - looked > LOOK_S:
            looked = now
            here = Position(max(until, 0) / NS, events, until, count, spent_s + now - begun)
            if done:
                return here
            if rest is not None:
                rest(here)
            if progress is not None and now - reported > REPORT_S:
                reported = now
                progress(finished, events, here.virtual_s)
        if left == 0:
            until = rhythm.next_barrier(earliest)
            if until >= NEVER:
                raise too_late("the scheduler")
        frames = barrier(tell(until, frames))
        count += 1


def tell(until: int, frames: Sequence[bytes]) -> bytes:
    """What all partitions are told: the next barrier, and the frames of all."""
    return b"".join((until.to_bytes(8, sys.byteorder, signed=True), *frames))


def expected_windows(setting: Setting, rhythm: Rhythm) -> int:
    """About how many barriers a run takes.

    Instants at which something happens, and is answered one delay later, come at random while jobs arrive: four for
    each job (or coflow), three for each task (or flow). One that falls into the window of another costs nothing.
    """
    instants = 4 * setting.num_jobs + 3 * setting.num_tasks
    arrays, least = setting.workload.arrays(), 1
    if isinstance(arrays, CoflowArrays):
        arrivals = arrays.arrival_ns
    else:
        arrivals, least = arrays.submit_ns, int(arrays.duration_ns.max())
    span = max(int(arrivals[-1] - arrivals[0]), least, 1)
    return round(instants / (1 + instants * max(rhythm.lookahead, rhythm.quantum) / span))


def emulate_here(
    setting: Setting,
    observe: Observe,
    partitions: int,
    quantum_s: float | None = None,
    progress: Report | None = None,
    checkpoints: Checkpoints | None = None,
) -> Outcome:
    """Run all partitions in this process, one after the other between barriers: for tests and debuggers."""
    rhythm = rhythm_of(setting, quantum_s)

    def attempt(start: Checkpoint | None) -> Outcome:
        hosts = [Partition(setting, observe) for _ in range(partitions)]
        grouping = divide(setting, hosts[0].cast(), partitions)
        for host in hosts:
            host.start()
        frames = [host.join(grouping, k) for k, host in enumerate(hosts)]
        if start is not None:
            frames = [host.restore(saved) for host, saved in zip(hosts, start.snapshots, strict=True)]
        with interrupts_deferred() as interrupted:

            def rest(at: Position) -> None:
                pause(checkpoints, interrupted(), lambda: [host.snapshot() for host in hosts], at)

            at = None if start is None else start.at
            end = drive(
                lambda told: [host.window(told) for host in hosts], frames, rhythm, progress, rest, at
            )
        outcome = merge_shares(setting, [host.share() for host in hosts])
        return replace(outcome, windows=end.windows)

    return recover(attempt, checkpoints, lambda: None)
