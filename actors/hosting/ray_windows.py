"""The clock `windows` on Ray: every partition in an actor of its own.

Actors on one machine meet in shared memory (`actors.hosting.member`): Ray starts them, watches them and carries the
workload and the results, but no barrier. Otherwise barriers go over a compiled graph, which passes a message to all
actors and their answers: a barrier of four actors takes 0.3 ms where calls take 2.4 ms. Where no graph can be compiled,
barriers are calls.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from actors.hosting.checkpoint import Checkpoint, Checkpoints, Position
from actors.hosting.child import in_child, pickle_by_value
from actors.hosting.grouping import Grouping
from actors.hosting.interrupts import Lost
from actors.hosting.member import Member, Met
from actors.hosting.memory import refuse_too_large
from actors.hosting.outcome import NS, Observe, Outcome
from actors.hosting.partition import Progress, Report, Tell, merge_shares
from actors.hosting.ray_session import free_bytes, get, new_hosts, opened
from actors.hosting.recovery import recover
from actors.hosting.slices import COMPILING, run_in_slices
from actors.hosting.snapshot import Snapshot
from actors.hosting.windows import (
    BEGINNING,
    Windows,
    check_partitions,
    divide,
    expected_windows,
    lead_ns,
    window_ns,
)
from actors.setting import Setting
from workloads.errors import InputError
from workloads.units import format_duration

BUFFER_BYTES = 4 << 20
BARRIER_S = 7 * 86400.0  # practically no limit: a scheduler in Python may take long
GRAPH_S = 60.0  # to build a graph
STALL_S = 20.0  # a barrier at which no actor is at work
REASON_S = 2.0  # for other partitions to answer, when one has said that another does not run any more
MEETINGS = 10_000  # barriers without work in shared memory, to measure how long one takes


def emulate_windows(
    setting: Setting,
    observe: Observe,
    *,
    partitions: int,
    quantum_s: float | None = None,
    transport: str = "auto",
    address: str | None = None,
    progress: Report | None = None,
    tell: Tell | None = None,
    announce: Tell | None = None,
    checkpoints: Checkpoints | None = None,
) -> Outcome:
    """Run an emulation in several Ray actors, exactly, or with a quantum.

    Args:
        partitions: Ray actors.
        quantum_s: time between barriers; None: as short as exactness needs.
        transport: "memory", "graph", "calls", or "auto": memory on one machine, else a graph if one can be compiled.
        address, progress, tell, checkpoints: as `actors.hosting.virtual.emulate`.
        announce: called with the plan, before anything runs.

    Raises:
        Lost: Ray's processes of this emulation have died too often.
        InputError: messages take no time, there are more partitions than actors, or memory is short.
    """
    window_ns(setting, quantum_s)  # errors are raised before anything is started
    check_partitions(setting, partitions)

    def attempt(start: Checkpoint | None) -> Outcome:
        with in_child(
            WindowSession, setting, observe, partitions, quantum_s, transport, address=address
        ) as session:
            if tell is not None and not session.is_warm():
                tell(COMPILING)
            session.start()
            if not (transport in ("auto", "memory") and session.share_memory()) and transport != "calls":
                session.compile_graph(within_s=GRAPH_S)
            if announce is not None:
                announce(session.plan())
            if start is not None:
                session.restore(start)
            return run_in_slices(session, session.snapshots, setting, checkpoints, progress, tell)

    if setting.scheduler.own is not None:
        pickle_by_value(setting.scheduler.own)
    return recover(attempt, checkpoints)


class WindowSession:
    """The Ray actors of one run, from the first to the last barrier."""

    def __init__(
        self,
        setting: Setting,
        observe: Observe,
        partitions: int,
        quantum_s: float | None = None,
        transport: str = "auto",
    ):
        import ray
        from ray.exceptions import RayTaskError

        self._ray, self._task_error = ray, RayTaskError
        self._setting, self._window, self._transport = setting, window_ns(setting, quantum_s), transport
        refuse_too_large(setting, partitions, free_bytes())
        self._actors = new_hosts(partitions)
        self._graph: Any = None
        self._no_graph = ""  # why barriers are calls, where a graph was wanted
        self._watch = Watch(self._actors)
        self._warm = opened(self._actors, setting, observe, Member)

    def is_warm(self) -> bool:
        """Return whether all partitions can load their loop from disk."""
        return all(self._warm)

    def start(self) -> None:
        """Compile the loop in one partition, load it in the others, and let them join."""
        first, *others = self._actors
        get(first.call.remote("start"))
        get([actor.call.remote("start") for actor in others])
        self._grouping: Grouping = divide(self._setting, get(first.call.remote("cast")), len(self._actors))
        lead = lead_ns(self._setting, self._window)
        frames = get(
            [actor.call.remote("join", self._grouping, k, lead) for k, actor in enumerate(self._actors)]
        )
        self._memory_mb = get([actor.memory_mb.remote() for actor in self._actors])
        self.windows: Windows | Meetings = Windows(self._by_calls, frames, self._window, self._setting)

    def share_memory(self) -> bool:
        """Let the actors meet in shared memory, if all are on one machine; else, with "memory", raise InputError."""
        first, *others = self._actors
        machines = {*get([actor.machine.remote() for actor in self._actors])}
        place = get(first.call.remote("offer")) if get(first.call.remote("can_share")) else None
        can = len(machines) == 1 and place is not None
        if not (can and all(get([actor.call.remote("can_share", place) for actor in others]))):
            if self._transport == "memory":
                raise InputError(
                    "windows.transport: memory needs all partitions on one machine with an x86-64 or ARM processor, in"
                    f" processes that see each other, and compiled code; there are {len(machines)} machines"
                )
            return False
        get([actor.call.remote("share_memory", place, self._window) for actor in self._actors])
        get(first.call.remote("withdraw"))
        self.windows = Meetings(self._actors)
        return True

    def compile_graph(self) -> None:
        """Let barriers pass through a compiled graph, if one can be compiled; else, with "graph", raise InputError."""
        from ray.dag import InputNode, MultiOutputNode

        # When an actor dies its graph logs pages about it; the user gets one line.
        logging.getLogger("ray.dag").setLevel(logging.CRITICAL)
        try:
            with InputNode() as message:
                outputs = MultiOutputNode([actor.window.bind(message) for actor in self._actors])
            self._graph = outputs.experimental_compile(
                _buffer_size_bytes=BUFFER_BYTES, _submit_timeout=BARRIER_S
            )
            assert isinstance(self.windows, Windows)
            self.windows.barrier = self._by_graph
        except (ImportError, RuntimeError, ValueError, NotImplementedError) as error:
            get([actor.handled.remote() for actor in self._actors])  # the reason may be that one is gone
            if self._transport == "graph":
                raise InputError(f"windows.transport: no graph can be compiled here: {error}") from None
            self._no_graph = f" (no compiled graph: {' '.join(str(error).split())[:200]})"

    def _by_graph(self, message: bytes) -> Sequence[bytes]:
        # An answer of a graph can be fetched only once: the watch ends a process whose answer does not come.
        self._watch.waits = True
        try:
            return self._ray.get(self._graph.execute(message), timeout=BARRIER_S)
        except self._task_error as error:
            raise error.cause from None
        finally:
            self._watch.waits = False

    def _by_calls(self, message: bytes) -> Sequence[bytes]:
        return get([actor.window.remote(message) for actor in self._actors])

    def plan(self) -> str:
        """Return the plan of the run in several lines: its partitions, its barriers, and how long they may take."""
        barrier_s = self.windows.barrier_s()
        windows = expected_windows(self._setting, self._window, len(self._actors))
        means = "a compiled graph" if self._graph is not None else f"calls{self._no_graph}"
        if isinstance(self.windows, Meetings):
            means = "shared memory"
        parts = [
            f"  actor {k}: {self._grouping.describe(k)} ({used:.0f} MiB)"
            for k, used in enumerate(self._memory_mb)
        ]
        return "\n".join(
            [
                f"windows: {len(self._actors)} partitions, one in each of as many Ray actors,"
                f" {sum(self._memory_mb) / 1024:.1f} GiB now",
                *parts,
                f"  about {windows:,} barriers of {1000 * barrier_s:.2g} ms over {means}:"
                f" about {format_duration(windows * barrier_s)}{self._beside_exact(windows)}",
            ]
        )

    def _beside_exact(self, windows: int) -> str:
        """Return how many barriers an exact run would have: a quantum is not worth its errors if events are rare."""
        exact = expected_windows(self._setting, window_ns(self._setting, None), len(self._actors))
        return "" if windows == exact else f"; exact, without --quantum, about {exact:,} barriers"

    def check(self) -> None:
        """Raise an error when an actor is gone, or a barrier has stalled; other threads may use this object."""
        self._watch.check()

    def run(self, most_s: float) -> Progress:
        """Continue for about `most_s` seconds, or to the end."""
        return self.windows.run(most_s)

    def snapshots(self) -> list[Snapshot]:
        """Return the state of all partitions, between two barriers."""
        return get([actor.call.remote("snapshot") for actor in self._actors])

    def restore(self, start: Checkpoint) -> None:
        """Go back to a checkpoint."""
        pairs = zip(self._actors, start.snapshots, strict=True)
        frames = get([actor.call.remote("restore", saved) for actor, saved in pairs])
        self.windows.go_back(frames, start.at)

    def outcome(self) -> Outcome:
        """Return the result."""
        shares = get([actor.call.remote("share") for actor in self._actors])
        end = self.windows.at
        return replace(merge_shares(self._setting, shares), windows=end.windows, wall_s=end.wall_s)

    def close(self) -> None:
        """End the graph and the actors."""
        self._watch.ends = True
        if self._graph is not None:
            self._graph.teardown()
        for actor in self._actors:
            self._ray.kill(actor)


class Meetings:
    """The driver of partitions that meet in shared memory, with the methods of `Windows`."""

    def __init__(self, actors: list[Any]):
        import ray

        self._ray, self._actors = ray, actors
        self.at = Position(0.0, 0, BEGINNING)
        self.slept_s = 0.0  # of a partition, while it waited for others

    def _meet(self, *arguments: Any) -> Met:
        """Let all partitions go on together; return how far they are."""
        waiting, lost = [actor.call.remote("meet", *arguments) for actor in self._actors], None
        while waiting:
            done, waiting = self._ray.wait(waiting, timeout=None if lost is None else REASON_S)
            if not done:
                break
            try:
                met: Met = get(done[0])
            except Lost as error:  # an error of another partition may be the reason
                lost = error
        if lost is not None:
            raise lost
        return met

    def barrier_s(self) -> float:
        """Return how long a barrier takes at which nothing happens."""
        begin = time.perf_counter()
        self._meet(0.0, MEETINGS)
        return (time.perf_counter() - begin) / MEETINGS

    def run(self, most_s: float) -> Progress:
        """Continue for about `most_s` seconds, or until nothing is left to do."""
        begin = time.perf_counter()
        met = self._meet(most_s)
        wall_s, self.slept_s = self.at.wall_s + time.perf_counter() - begin, met.slept_s
        self.at = Position(max(met.until_ns, 0) / NS, met.events, met.until_ns, met.windows, wall_s)
        return Progress(met.tasks_done, self.at, met.done)

    def go_back(self, frames: Sequence[bytes], at: Position) -> None:
        """Continue from the state to which the partitions were restored, with the frames they had there."""
        self.at = at
        get([actor.call.remote("go_back_to", at) for actor in self._actors])


class Watch:
    """A watch over a session: its actors must be alive, and answer its barriers."""

    def __init__(self, actors: list[Any]):
        self.waits = False  # whether the session waits for the answers to a barrier
        self.ends = False  # whether it ends its actors
        self._actors = actors
        self._asked: list[Any] = []  # calls of `handled` that have not been answered
        self._idle: list[int] = []
        self._since = time.monotonic()

    def check(self) -> None:
        """Check the actors' answers, and call them again.

        Raises:
            RayError: one is gone.
            Lost: all have been idle for STALL_S while the session waits for them.
        """
        import ray

        if self.ends:
            return
        if not self._asked:
            self._asked = [actor.handled.remote() for actor in self._actors]
        done, _ = ray.wait(self._asked, num_returns=len(self._asked), timeout=0.1)
        handled = ray.get(done)  # raises that an actor is gone
        if len(done) < len(self._asked):
            return
        self._asked = []
        entered, left = zip(*handled, strict=True)
        idle = [*left] if entered == left and self.waits else []
        now = time.monotonic()
        if not idle or idle != self._idle:
            self._idle, self._since = idle, now
        elif now - self._since > STALL_S:
            raise Lost(f"no actor has handled a barrier for {STALL_S:.0f} s")
