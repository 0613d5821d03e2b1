"""The clock `live`: partitions paced by the wall clock, which send each other messages at once.

A partition handles its events when the wall clock reaches them, or as soon afterwards as it can, and its messages leave
at that time: handlers take their real time, and a scheduler that cannot keep up falls behind. Emulated time is wall
time divided by a dilation factor (Gupta et al., To Infinity and Beyond: Time-Warped Network Emulation, NSDI 2006): 10
gives machine and schedulers ten times as long for everything.

A message carries the time at which it is due, its sending plus the network delay. If it takes longer than that to
arrive, it is handled late; the lateness of events shows how far a run can be trusted.

One driver polls all partitions, ends the run when nothing is left to do, and collects their shares. The partitions
are threads of this process, or Ray actors (`actors.hosting.ray_live`).
"""

import math
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from typing import Any

import numpy as np

from actors.environment import Pace
from actors.hosting.child import in_child, pickle_by_value
from actors.hosting.grouping import Grouping
from actors.hosting.interrupts import ANSWER_S, Lost, interrupt
from actors.hosting.live_report import describe_live, live_timeline
from actors.hosting.outcome import NS, Observe, Outcome
from actors.hosting.paced import RING_ROWS, ROUNDS, PacedPartition, Position
from actors.hosting.partition import Partition, Report, Tell, merge_shares
from actors.hosting.slices import getting_ready
from actors.hosting.stall import StallWatch
from actors.hosting.windows import check_partitions, divide
from actors.kernel.pacing import words_of
from actors.kernel.queue import NEVER
from actors.kernel.window import NEXT
from actors.setting import Setting
from workloads.doing import doing
from workloads.units import format_duration

POLL_S = 0.25
GRACE_POLLS = 8  # when all tasks are done, for messages without effect, such as the last heartbeat
LEAD_S = 1.0  # from the last preparation to the first event
END_S = 0.2  # from the decision to end until the end: all partitions must receive it before


class Threads:
    """Partitions as threads of this process, for tests and debuggers; `RayActors` has the same methods."""

    machines = 1  # tests have more: partitions then share memory with every second or third one only

    def __init__(self, setting: Setting, observe: Observe, pace: Pace, partitions: int):
        self._partitions = [
            PacedPartition(setting, observe, pace, time.thread_time_ns) for _ in range(partitions)
        ]
        self._pool = ThreadPoolExecutor(2 * partitions)  # one runs a partition, another calls its methods
        self._running: list[Future] = []

    def open(self) -> bool:
        """Return whether their loops can be loaded from disk; call it first."""
        return self._partitions[0].is_warm()

    def ask(self, method: str, *arguments: Any, only: int | None = None) -> list[Any]:
        """Call a method of all partitions, or of one; return their answers."""
        asked = self._partitions if only is None else [self._partitions[only]]
        return list(self._pool.map(lambda p: getattr(p, method)(*arguments), asked))

    def join(self, grouping: Grouping) -> list[bytes]:
        """Let them join the grouping and connect to each other; return their first frames."""
        frames = [p.join(grouping, k) for k, p in enumerate(self._partitions)]
        for p in self._partitions:
            p.connect([other.receive for other in self._partitions], 0)
        for machine in range(min(self.machines, grouping.size)):
            members = range(machine, grouping.size, self.machines)
            words = np.zeros(words_of(grouping.size, RING_ROWS), np.int64)
            for k in members:
                self._partitions[k].take_part(words, members)
        return frames

    def begin(self, origin: int) -> None:
        """Start all partitions; emulated time 0 is at `origin` of the driver's clock, ns."""
        self._running = [self._pool.submit(p.run_paced, origin) for p in self._partitions]

    def ended(self, timeout_s: float) -> bool:
        """Wait until all have ended, and return whether they have; raise the error that ended one of them early."""
        done, left = wait(self._running, timeout_s, return_when="FIRST_EXCEPTION")
        for future in done:
            future.result()
        return not left

    def running(self) -> list[int]:
        """Return which partitions have not ended."""
        return [k for k, future in enumerate(self._running) if not future.done()]

    def close(self) -> None:
        """Stop what is running."""
        for p in self._partitions:
            p.stop(-int(NEVER))
        self._pool.shutdown()


def emulate_live(
    setting: Setting,
    observe: Observe,
    pace: Pace,
    *,
    partitions: int | None = None,
    in_process: bool = False,
    address: str | None = None,
    progress: Report | None = None,
    tell: Tell | None = None,
) -> Outcome:
    """Run an emulation by the wall clock.

    Args:
        partitions: Ray actors, or threads; by default 2, or 3 where both probe schedulers and a central one have jobs.
        in_process: threads of this process; ray is not imported.
        address, progress, tell: as `actors.hosting.virtual.emulate`.

    Returns:
        An outcome whose `live` has the measurements; its timeline also has the columns of `LIVE_TIMELINE`.

    Raises:
        InputError: there are more partitions than actors.
        Lost: a partition is gone, or does not answer.
    """
    if partitions is None:
        cast = Partition(setting, Observe(), whole=False).cast()
        partitions = 1 + int(cast.probes_share > 0) + int(cast.central_share > 0)
    check_partitions(setting, partitions)
    hosted: AbstractContextManager[Any]
    if in_process:
        hosted = closing(Threads(setting, observe, pace, partitions))
    else:
        from actors.hosting.ray_live import RayActors

        pickle_by_value(setting.scheduler)
        hosted = in_child(RayActors, setting, observe, pace, partitions, address=address)
    with hosted as group:
        grouping, first, origin = _begin(group, setting, partitions, pace, tell)
        stall = StallWatch(setting, progress, tell)
        try:
            _until_done(group, setting.num_tasks, stall, progress)
        except KeyboardInterrupt:
            raise interrupt(stall.present) from None
        _stop(group, grouping, origin, pace)
        shares = group.ask("share")
    outcome = merge_shares(setting, shares)
    return replace(
        outcome,
        live=describe_live(shares, grouping, pace, setting, outcome),
        stall=stall.past,
        timeline=live_timeline(outcome.timeline, shares, grouping, outcome.timeline_step),
        wall_s=(int(outcome.finish_ns.max()) - first) * pace.dilation / NS,
    )


def _begin(
    group: Any, setting: Setting, partitions: int, pace: Pace, tell: Tell | None
) -> tuple[Grouping, int, int]:
    """Prepare all partitions and start them; return them, the time of the first event, ns, and the origin of time."""
    with doing("starting the partitions"):
        warm = group.open()
    with getting_ready(setting, warm, tell):
        group.ask("start", only=0)  # the first compiles, and the others load the result from the cache
        group.ask("start")
    grouping = divide(setting, group.ask("cast", only=0)[0], partitions)
    if tell is not None:
        hosts = "; ".join(grouping.describe(k) for k in range(grouping.size))
        tell(f"live: {hosts}; {_least_time(setting, pace)} of wall time at the least")
    with doing("connecting the partitions"):
        frames = group.join(grouping)
        for rounds in (1, ROUNDS):  # in the first, code is loaded
            group.ask("warm_up", rounds)
    first = min(int(np.frombuffer(frame, np.int64)[NEXT]) for frame in frames)
    origin = time.monotonic_ns() + round(LEAD_S * NS) - math.floor(first * pace.dilation)
    group.begin(origin)
    return grouping, first, origin


def _least_time(setting: Setting, pace: Pace) -> str:
    """Return the wall time of the workload's arrivals, or of its longest part."""
    arrivals_ns, least_ns = setting.scheduler.worlds.span_ns(setting)
    return format_duration(max(int(arrivals_ns[-1] - arrivals_ns[0]), least_ns) * pace.dilation / NS)


def _stop(group: Any, grouping: Grouping, origin: int, pace: Pace) -> None:
    """Stop the partitions, and wait until all have ended."""
    end = int((time.monotonic_ns() + END_S * NS - origin) / pace.dilation)
    group.ask("stop", end)
    waited_s = 0.0  # in steps: while this process is stopped no time counts
    while not group.ended(POLL_S):
        waited_s += POLL_S
        if waited_s > ANSWER_S:
            stuck = "; ".join(f"actor {k} ({grouping.describe(k)})" for k in group.running())
            raise Lost(f"live: {stuck} did not end within {waited_s:.0f} s: it is stopped, or its machine is")


def _until_done(group: Any, num_tasks: int, stall: StallWatch, progress: Report | None) -> None:
    """Poll the partitions until nothing is left to do."""
    grace, quiet = GRACE_POLLS, False
    before: list[Position] = []
    while grace and not quiet:
        group.ended(POLL_S)
        closing = sum(p.finished for p in before) >= num_tasks
        now = group.ask("position", closing)
        finished, events = sum(p.finished for p in now), sum(p.events for p in now)
        virtual_s = max(max(p.now for p in now) / NS, 0.0)
        stall.update(finished, events, virtual_s)
        if progress is not None:
            progress(finished, events, virtual_s)
        grace -= closing and not sum(p.open for p in now)
        quiet = _quiet(before) and _quiet(now) and events == sum(p.events for p in before)
        before = now


def _quiet(positions: list[Position]) -> bool:
    """Return whether nothing is left to do, and no message is on its way."""
    return all(p.idle for p in positions) and sum(p.sent - p.received for p in positions) == 0
