"""The clock `windows`: several partitions that meet at barriers, with the same results as one.

Conservative synchronous windows (Lubachevsky, CACM 1989): all partitions may handle events up to the earliest next
event of all plus the lookahead, the least time a message from one partition to another takes; then they exchange
their messages. A message that crosses a barrier arrives after it, and the order of events does not depend on
partitions, so results are bit-identical for any number of them.

A quantum replaces the lookahead, and is longer: barriers are fewer, and a message that should have arrived before a
barrier arrives at it. The result counts late messages, and by how much. A window begins at the earliest next event and
not at a multiple of the quantum, because then the fewest windows cover the events.

Each partition has a Ray actor of its own. These meet in the shared memory of their machine, and machines over TCP
(`actors.hosting.member`): Ray starts and watches the actors and carries the workload and the results, but no barrier.
Where memory cannot be shared, and in this process, barriers are calls.
"""

import secrets
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from actors.hosting.checkpoint import Checkpoint, Position
from actors.hosting.grouping import Cast, Grouping, group_actors
from actors.hosting.groups import OnRay, refuse_too_large
from actors.hosting.interrupts import Lost
from actors.hosting.member import Member, Met
from actors.hosting.outcome import NS, Observe, Outcome, merge_shares
from actors.hosting.partition import Partition, Progress, Tell
from actors.hosting.ray_session import free_bytes, get
from actors.hosting.runs import Session, run_to_end
from actors.hosting.stall import too_late
from actors.kernel.queue import NEVER
from actors.kernel.window import EVENTS, FINISHED, HEADER, LEFT, NEXT, TASKS, WORK
from actors.setting import Setting
from workloads.doing import doing
from workloads.errors import InputError
from workloads.units import format_duration

Barrier = Callable[[bytes], Sequence[bytes]]
BEGINNING = -1  # a barrier before all events
TOKEN_BYTES = 32  # of the secret by which the machines of a run know each other
REASON_S = 2.0  # for other partitions to answer, when one has said that another does not run any more
# Barriers without work, to measure one: by calls, in shared memory, between machines.
WARM_UP, MEETINGS, FEW_MEETINGS = 50, 10_000, 1_000


def emulate_windows(
    setting: Setting,
    observe: Observe,
    *,
    partitions: int,
    quantum_s: float | None = None,
    transport: str = "auto",
    announce: Tell | None = None,
    in_process: bool = False,
    **hosting: Any,
) -> Outcome:
    """Run an emulation in several partitions, exactly, or with a quantum.

    Args:
        quantum_s: time between barriers; None: as short as exactness needs.
        transport: on Ray "memory", "calls", or "auto": memory where that is possible.
        announce: on Ray called with the plan, before anything runs.
        in_process: all partitions one after the other in this process, for tests and debuggers.
        hosting: as `actors.hosting.runs.run_to_end`.

    Raises:
        Lost: Ray's processes of this emulation have died too often.
        InputError: messages take no time, there are more partitions than actors, or memory is short.
    """
    window = window_ns(setting, quantum_s)  # errors are raised before anything is started
    check_partitions(setting, partitions)

    def begin(session: Any) -> None:
        if in_process:
            return
        if transport != "calls":
            with doing("connecting the partitions"):
                session.share_memory(transport == "memory")
        if announce is not None:
            with doing("measuring what a barrier takes"):
                plan = session.plan()
            announce(plan)

    given = (setting, observe, partitions, window)
    return run_to_end(WindowSession, *given, in_process=in_process, begin=begin, **hosting)


class WindowSession(Session):
    """The partitions of one run, from the first to the last barrier.

    Args:
        groups: `Here` or `OnRay` of `actors.hosting.groups`.
        window: from the earliest next event to the barrier, ns.
    """

    def __init__(self, groups: Any, setting: Setting, observe: Observe, partitions: int, window: int):
        if groups is OnRay:
            refuse_too_large(setting, partitions, free_bytes())
        self._setting, self._window, self._partitions = setting, window, partitions
        self._no_memory = ""  # why barriers are calls, where memory was wanted
        self.group, self._is_done = groups(Member, setting, observe, partitions), False

    def start(self) -> None:
        """Compile the loop in one partition, load it in the others, and let them join."""
        self.group.ask("start", only=[0])
        self.group.ask("start", only=range(1, self._partitions))
        self._grouping = divide(self._setting, self.group.ask("cast", only=[0])[0], self._partitions)
        lead = lead_ns(self._setting, self._window)
        frames = self.group.ask_each("join", [(self._grouping, k, lead) for k in range(self._partitions)])

        def barrier(message: bytes) -> Sequence[bytes]:
            return list(self.group.ask("window", message))

        self.windows: Windows | Meetings = Windows(barrier, frames, self._window, self._setting)

    def share_memory(self, must: bool) -> None:
        """Let the actors meet in shared memory, if that is possible; else, where they `must`, raise InputError."""
        machines = self._machines()
        refused = self._why_not_connected(machines)
        if refused is None:
            self.windows = Meetings(self.group, len(machines))
        elif must:
            raise InputError(f"windows.transport: memory cannot be shared: {refused}")
        else:
            self._no_memory = f" (memory cannot be shared: {refused})"

    def _machines(self) -> dict[tuple[str, str], list[int]]:
        """Return the partitions of each machine, which is given by its name in the cluster and its address."""
        machines: dict[tuple[str, str], list[int]] = {}
        for k, machine in enumerate(self.group.machines()):
            machines.setdefault((machine.node, machine.address), []).append(k)
        return machines

    def _why_not_connected(self, machines: dict[tuple[str, str], list[int]]) -> str | None:
        """Let the actors of each machine share memory, and connect the first ones; return why that is not possible."""
        members = [*machines.values()]
        if not self.group.share_memory(members, self._window):
            return "all need compiled code, x86-64 or ARM processors, and on a machine processes that see each other"
        if len(machines) == 1:
            return None
        firsts = [machine[0] for machine in members]
        try:
            addresses = self.group.ask_each("listen", [(host,) for _, host in machines], firsts)
            self.group.ask("connect", members, addresses, secrets.token_bytes(TOKEN_BYTES), only=firsts)
        except OSError as error:
            self.group.ask("leave", only=firsts)
            return f"{len(machines)} machines have no connections: {error}"
        return None

    def plan(self) -> str:
        """Return the plan of the run in several lines: its partitions, its barriers, and how long they may take."""
        barrier_s, count = self.windows.barrier_s(), self._partitions
        windows = expected_windows(self._setting, self._window, count)
        exact = expected_windows(self._setting, window_ns(self._setting, None), count)
        means = self.windows.means if isinstance(self.windows, Meetings) else f"calls{self._no_memory}"
        memory_mb = self.group.ask("memory_mb")
        parts = [
            f"  actor {k}: {self._grouping.describe(k)} ({used:.0f} MiB)" for k, used in enumerate(memory_mb)
        ]
        # A quantum is not worth its errors if events are rare.
        beside = "" if windows == exact else f"; exact, without --quantum, about {exact:,} barriers"
        return "\n".join(
            [
                f"windows: {count} partitions, one in each of as many Ray actors, {sum(memory_mb) / 1024:.1f} GiB now",
                *parts,
                f"  about {windows:,} barriers of {1000 * barrier_s:.2g} ms over {means}:"
                f" about {format_duration(windows * barrier_s)}{beside}",
            ]
        )

    def run(self, most_s: float) -> Progress:
        """Continue for about `most_s` seconds, or to the end."""
        return self.windows.run(most_s)

    def restore(self, start: Checkpoint) -> None:
        """Go back to a checkpoint."""
        frames = self.group.ask_each("restore", [(saved,) for saved in start.snapshots])
        self.windows.go_back(frames, start.at)

    def outcome(self) -> Outcome:
        """Return the result."""
        outcome, end = merge_shares(self._setting, self.group.ask("share")), self.windows.at
        return replace(outcome, windows=end.windows, wall_s=end.wall_s)


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
        begun = time.perf_counter()
        end = begun + most_s
        while True:
            heads = np.array([np.frombuffer(frame, np.int64, HEADER) for frame in frames])
            earliest, tasks = int(heads[:, NEXT].min()), int(heads[0, TASKS])
            finished, events, left, work = heads[:, [FINISHED, EVENTS, LEFT, WORK]].sum(axis=0).tolist()
            now = time.perf_counter()
            # Failures and repairs never end: their background messages are not counted.
            done = bool(left == 0 and (earliest >= NEVER or (finished == tasks and work == 0)))
            if done or (left == 0 and now > end and count > self.at.windows):
                wall_s = self.at.wall_s + now - begun
                self.frames, self.at = frames, Position(max(until, 0) / NS, events, until, count, wall_s)
                return Progress(finished, self.at, done)
            if left == 0:
                until = earliest + self._window
                if until >= NEVER:
                    raise too_late(self._setting)
            frames = self.barrier(barrier_message(until, frames))
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


class Meetings:
    """The driver of partitions that meet in shared memory, with the methods of `Windows`."""

    def __init__(self, group: OnRay, machines: int):
        self._group, self._machines = group, machines
        self.at = Position(0.0, 0, BEGINNING)
        self.waited_s = 0.0  # of a partition, while it waited for others

    def _meet(self, *arguments: Any) -> Met:
        """Let all partitions go on together; return how far they are."""
        import ray

        waiting, lost = self._group.begin("meet", *arguments), None
        while waiting:
            done, waiting = ray.wait(waiting, timeout=None if lost is None else REASON_S)
            if not done:
                break
            try:
                met: Met = get(done[0])
            except Lost as error:  # an error of another partition may be the reason
                lost = error
        if lost is not None:
            raise lost
        return met

    @property
    def means(self) -> str:
        """Return over what the partitions exchange messages."""
        return "shared memory" + (f" and TCP between {self._machines} machines" if self._machines > 1 else "")

    def barrier_s(self) -> float:
        """Return how long a barrier takes at which nothing happens."""
        meetings = MEETINGS if self._machines == 1 else FEW_MEETINGS
        begin = time.perf_counter()
        self._meet(0.0, meetings)
        return (time.perf_counter() - begin) / meetings

    def run(self, most_s: float) -> Progress:
        """Continue for about `most_s` seconds, or until nothing is left to do."""
        begin = time.perf_counter()
        met = self._meet(most_s)
        wall_s, self.waited_s = self.at.wall_s + time.perf_counter() - begin, met.waited_s
        self.at = Position(max(met.until_ns, 0) / NS, met.events, met.until_ns, met.windows, wall_s)
        return Progress(met.tasks_done, self.at, met.done)

    def go_back(self, frames: Sequence[bytes], at: Position) -> None:
        """Continue from the state to which the partitions were restored, with the frames they had there."""
        self.at = at
        self._group.ask("go_back_to", at)
