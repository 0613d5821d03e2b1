"""The clock `live`: partitions paced by the wall clock, which send each other messages at once.

A partition handles its events when the wall clock reaches them, or as soon afterwards as it can, and its messages leave
at that time: handlers take their real time, and a scheduler that cannot keep up falls behind. Emulated time is wall
time divided by a dilation factor (Gupta et al., To Infinity and Beyond: Time-Warped Network Emulation, NSDI 2006): 10
gives machine and schedulers ten times as long for everything.

A message carries the time at which it is due, its sending plus the network delay. If it takes longer than that to
arrive, it is handled late; the lateness of events shows how far a run can be trusted.

One driver polls all partitions, ends the run when nothing is left to do, and collects their shares. The partitions
are threads of this process, or Ray actors. Those of one machine send messages through shared memory, others by calls.
Each actor has three threads: one runs the partition, one receives the calls of the others, in the order in which each
of them made them, and one answers the driver.
"""

import math
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any

import numpy as np

from actors.environment import Pace
from actors.hosting.grouping import Grouping
from actors.hosting.groups import CONTROL, INBOX, Here, Only, OnRay
from actors.hosting.interrupts import Lost, interrupt
from actors.hosting.live_report import describe_live, live_timeline
from actors.hosting.outcome import NS, Observe, Outcome, merge_shares
from actors.hosting.paced import RING_ROWS, ROUNDS, PacedPartition, Position
from actors.hosting.partition import Partition, Report, Tell
from actors.hosting.ray_session import get
from actors.hosting.runs import getting_ready, hosted
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
ANSWER_S = 60.0  # for a partition to answer the driver, or to end
COMPILING, COMPILE_S = ("start", "join"), 600.0  # for its answer when it has compiled what it runs
WAIT_S = 1.0  # between two looks at whether answers have come
PINGS = 20


class Threads(Here):
    """Partitions as threads of this process, for tests and debuggers."""

    machines = 1  # tests have more: partitions then share memory with every second or third one only

    def __init__(self, setting: Setting, observe: Observe, pace: Pace, count: int):
        super().__init__(PacedPartition, setting, observe, count, pace, time.thread_time_ns)
        self._pool = ThreadPoolExecutor(2 * count)  # one runs a partition, another calls its methods
        self._running: list[Future] = []

    def ask_each(self, method: str, arguments: Iterable[Sequence[Any]], only: Only = None) -> list[Any]:
        """Call a method of each at once; return their answers."""
        calls = [getattr(partition, method) for partition in self.chosen(only)]
        return list(self._pool.map(lambda call, given: call(*given), calls, arguments))

    def join(self, grouping: Grouping) -> list[bytes]:
        """Let them join the grouping and connect to each other; return their first frames."""
        frames = self.ask_each("join", [(grouping, k) for k in range(grouping.size)])
        self.ask("connect", [p.receive for p in self.partitions], 0)
        for machine in range(min(self.machines, grouping.size)):
            members = range(machine, grouping.size, self.machines)
            self.ask(
                "take_part", np.zeros(words_of(grouping.size, RING_ROWS), np.int64), members, only=members
            )
        return frames

    def start_paced(self, origin: int) -> None:
        """Start all partitions; emulated time 0 is at `origin` of the driver's clock, ns."""
        self._running = [self._pool.submit(p.run_paced, origin) for p in self.partitions]

    def ended(self, timeout_s: float) -> bool:
        """Wait until all have ended, and return whether they have; raise the error that ended one of them early."""
        done, left = wait(self._running, timeout_s, return_when="FIRST_EXCEPTION")
        for future in done:
            future.result()
        return not left

    def running(self) -> list[int]:
        """Return which partitions have not ended."""
        return [k for k, future in enumerate(self._running) if not future.done()]

    def close(self, is_done: bool = False) -> None:
        """Stop what is running."""
        for p in self.partitions:
            p.stop(-int(NEVER))
        self._pool.shutdown()


class RayActors(OnRay):
    """Partitions in Ray actors, with the methods of `Threads`."""

    def __init__(self, setting: Setting, observe: Observe, pace: Pace, count: int):
        groups = {INBOX: 1, CONTROL: 1}
        given = (setting, observe, count, pace, time.process_time_ns)
        super().__init__(PacedPartition, *given, concurrency_groups=groups)
        self._grouping: Grouping | None = None
        self._begun: list[Any] = []
        self._running: list[Any] = []

    def ask_each(self, method: str, arguments: Iterable[Sequence[Any]], only: Only = None) -> list[Any]:
        """Call a method of each, also while they run; return their answers.

        Raises:
            Lost: some did not come; it names the actors.
        """
        import ray

        calls = [actor.call.options(concurrency_group=CONTROL) for actor in self.chosen(only)]
        answers = [call.remote(method, *given) for call, given in zip(calls, arguments, strict=True)]
        limit_s = COMPILE_S if method in COMPILING else ANSWER_S
        for _ in range(round(limit_s / WAIT_S)):  # in steps: while this process is stopped no time counts
            _, left = ray.wait(answers, num_returns=len(answers), timeout=WAIT_S)
            if not left:
                return get(answers)
        asked = range(len(answers)) if only is None else only
        stuck = [k for k, answer in zip(asked, answers, strict=True) if answer in left]
        which = "; ".join(
            f"actor {k}" + (f" ({self._grouping.describe(k)})" if self._grouping else "") for k in stuck
        )
        raise Lost(
            f"live: {which} did not answer within {limit_s:.0f} s ({method}): it is stopped, or its machine is"
        )

    def join(self, grouping: Grouping) -> list[bytes]:
        """Let them join the grouping and connect to each other; return their first frames."""
        self._grouping = grouping
        frames = self.ask_each("join", [(grouping, k) for k in range(grouping.size)])
        offsets = [(actor, _offset_of(actor)) for actor in self.partitions]
        get([actor.connect.remote(self.partitions, offset) for actor, offset in offsets])
        nodes: dict[str, list[int]] = {}
        for k, machine in enumerate(self.machines()):
            nodes.setdefault(machine.node, []).append(k)
        for members in nodes.values():
            if not self.share_memory([members], members):
                for k in members:
                    self.ask("share_memory", None, [k], only=[k])
        return frames

    def start_paced(self, origin: int) -> None:
        """Start all partitions."""
        self._begun = self._running = self.begin("run_paced", origin)

    def ended(self, timeout_s: float) -> bool:
        """Wait until all have ended, and return whether they have; raise the error that ended one of them early."""
        import ray

        done, self._running = ray.wait(self._running, num_returns=len(self._running), timeout=timeout_s)
        get(done)
        return not self._running

    def running(self) -> list[int]:
        """Return which partitions have not ended."""
        return [k for k, call in enumerate(self._begun) if call in self._running]


def _offset_of(actor: Any) -> int:
    """Return an actor's clock less this process's, ns: 0 on the same machine, else from the fastest of some calls."""
    import ray

    if get(actor.machine.remote()).node == ray.get_runtime_context().get_node_id():
        return 0
    best, offset = sys.maxsize, 0
    for _ in range(PINGS):
        begin = time.monotonic_ns()
        there = get(actor.machine.remote()).clock_ns
        end = time.monotonic_ns()
        if end - begin < best:
            best, offset = end - begin, there - (begin + end) // 2
    return offset


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
        address, progress, tell: as `actors.hosting.runs.run_to_end`.

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
    kind, given = Threads if in_process else RayActors, (setting, observe, pace, partitions)
    with hosted(setting, kind, *given, in_process=in_process, address=address) as group:
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
    with getting_ready(setting, group.is_warm(), tell):
        group.ask("start", only=[0])  # the first compiles, and the others load the result from the cache
        group.ask("start")
    grouping = divide(setting, group.ask("cast", only=[0])[0], partitions)
    if tell is not None:
        hosts = "; ".join(grouping.describe(k) for k in range(grouping.size))
        tell(f"live: {hosts}; {_least_time(setting, pace)} of wall time at the least")
    with doing("connecting the partitions"):
        frames = group.join(grouping)
        for rounds in (1, ROUNDS):  # in the first, code is loaded
            group.ask("warm_up", rounds)
    first = min(int(np.frombuffer(frame, np.int64)[NEXT]) for frame in frames)
    origin = time.monotonic_ns() + round(LEAD_S * NS) - math.floor(first * pace.dilation)
    group.start_paced(origin)
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
