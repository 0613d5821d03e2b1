"""The clock `windows` on Ray: every partition in an actor of its own, barriers over a compiled graph.

A compiled graph passes what is told to all actors, and their answers, through shared memory: a barrier of four actors
takes 0.3 ms where calls take 2.4 ms. Where there is none to be had, barriers are calls.
"""

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from actors.hosting.checkpoint import Checkpoint, Checkpoints, Position
from actors.hosting.grouping import Grouping
from actors.hosting.memory import refuse_too_large
from actors.hosting.outcome import Observe, Outcome
from actors.hosting.partition import Report, Tell, merge_shares
from actors.hosting.ray_session import (
    connect,
    free_bytes,
    get,
    is_dead,
    losses,
    new_hosts,
    opened,
    revive,
)
from actors.hosting.recovery import interrupts_deferred, pause, recover
from actors.hosting.snapshot import Snapshot
from actors.hosting.windows import (
    BEGINNING,
    Barrier,
    Rhythm,
    divide,
    drive,
    expected_windows,
    rhythm_of,
)
from actors.hosting.windows import tell as tell_all
from actors.setting import Setting
from workloads.errors import InputError
from workloads.units import format_duration

TRANSPORTS = ("auto", "graph", "calls")
BUFFER_BYTES = 4 << 20
TEARDOWN_S, BARRIER_S = 5.0, 3600.0
WARM_UP = 50  # barriers without work, to say how long one takes


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
        transport: "graph", "calls", or "auto": a graph if there is one to be had.
        address, progress, tell, checkpoints: as `actors.hosting.virtual.emulate`.
        announce: is told the plan, before anything runs.

    Raises:
        Lost: what Ray runs of this emulation has died too often.
        InputError: messages take no time, there are more partitions than actors, or memory is short.
    """
    rhythm = rhythm_of(setting, quantum_s)

    def attempt(start: Checkpoint | None) -> Outcome:
        with losses():
            connect(address)
            refuse_too_large(setting, partitions, free_bytes())
            session = WindowSession(setting, observe, partitions, transport)
            try:
                session.open(tell)
                if announce is not None:
                    announce(session.plan(rhythm))
                if start is not None:
                    session.restore(start)
                with interrupts_deferred() as interrupted:

                    def rest(at: Position) -> None:
                        pause(checkpoints, interrupted(), session.snapshots, at)

                    at = None if start is None else start.at
                    end = drive(session.barrier, session.frames, rhythm, progress, rest, at)
                outcome = merge_shares(setting, session.shares())
            finally:
                session.close()
        return replace(outcome, windows=end.windows, wall_s=end.wall_s)

    return recover(attempt, checkpoints, revive)


class WindowSession:
    """The Ray actors of one run, from the first to the last barrier."""

    def __init__(self, setting: Setting, observe: Observe, partitions: int, transport: str):
        import ray
        from ray.exceptions import RayTaskError

        self._ray, self._task_error = ray, RayTaskError
        self.setting, self.observe = setting, observe
        self.actors = new_hosts(partitions)
        self.frames: Sequence[bytes] = []
        self._transport = transport
        self._graph: Any = None
        self._no_graph = ""  # why barriers are calls, where a graph was wanted
        self.barrier: Barrier = self._by_calls

    def open(self, tell: Tell | None) -> None:
        """Build the partitions, and compile their loop, in one of them first: the others then load it."""
        warm = opened(self.actors, self.setting, self.observe)
        if tell is not None and not all(warm):
            tell("compiling the kernel (first run of this scheduler on this machine; later runs load it)")
        first, *others = self.actors
        get(first.call.remote("start"))
        get([actor.call.remote("start") for actor in others])
        self.grouping: Grouping = divide(self.setting, get(first.call.remote("cast")), len(self.actors))
        joining = [actor.call.remote("join", self.grouping, k) for k, actor in enumerate(self.actors)]
        self.frames = get(joining)
        self.memory_mb = get([actor.memory_mb.remote() for actor in self.actors])
        if self._transport != "calls":
            self._compile_graph(must=self._transport == "graph")

    def _compile_graph(self, must: bool) -> None:
        """Make barriers pass through a compiled graph."""
        from ray.dag import InputNode, MultiOutputNode

        # When an actor dies its graph logs pages about it; the user is told in a line.
        logging.getLogger("ray.dag").setLevel(logging.CRITICAL)
        try:
            with InputNode() as told:
                outputs = MultiOutputNode([actor.window.bind(told) for actor in self.actors])
            self._graph = outputs.experimental_compile(
                _buffer_size_bytes=BUFFER_BYTES, _submit_timeout=BARRIER_S
            )
            self.barrier = self._by_graph
        except (ImportError, RuntimeError, ValueError, NotImplementedError) as error:
            if must:
                raise InputError(f"windows.transport: no compiled graph is to be had here: {error}") from None
            self._no_graph = f" (no compiled graph: {' '.join(str(error).split())[:200]})"

    def _by_graph(self, told: bytes) -> Sequence[bytes]:
        # An answer of a graph can be asked for only once, so the time given is for barriers that never end.
        try:
            return self._ray.get(self._graph.execute(told), timeout=BARRIER_S)
        except self._task_error as error:
            raise error.cause from None

    def _by_calls(self, told: bytes) -> Sequence[bytes]:
        return get([actor.window.remote(told) for actor in self.actors])

    def plan(self, rhythm: Rhythm) -> str:
        """What is about to run, and how long it may take: several lines."""
        empty = tell_all(BEGINNING, self.frames)
        ends = [time.perf_counter()]
        for _ in range(WARM_UP):
            self.barrier(empty)
            ends.append(time.perf_counter())
        barrier_s = float(np.median(np.diff(ends)))  # the first ones take longer
        windows = expected_windows(self.setting, rhythm)
        means = "a compiled graph" if self._graph is not None else f"calls{self._no_graph}"
        parts = [
            f"  actor {k}: {self.grouping.describe(k)} ({used:.0f} MiB)"
            for k, used in enumerate(self.memory_mb)
        ]
        return "\n".join(
            [
                f"windows: {len(self.actors)} partitions, one in each of as many Ray actors,"
                f" {sum(self.memory_mb) / 1024:.1f} GiB now",
                *parts,
                f"  about {windows:,} barriers of {1000 * barrier_s:.2f} ms over {means}:"
                f" about {format_duration(windows * barrier_s)}",
            ]
        )

    def snapshots(self) -> list[Snapshot]:
        """What the partitions hold, between two barriers."""
        return get([actor.call.remote("snapshot") for actor in self.actors])

    def restore(self, start: Checkpoint) -> None:
        """Go back to a checkpoint."""
        pairs = zip(self.actors, start.snapshots, strict=True)
        self.frames = get([actor.call.remote("restore", saved) for actor, saved in pairs])

    def shares(self) -> list[Any]:
        """What the partitions have at the end."""
        return get([actor.call.remote("share") for actor in self.actors])

    def close(self) -> None:
        """End the graph, if it can be ended, and the actors."""
        if is_dead():
            return
        if self._graph is not None:
            ending = threading.Thread(target=self._graph.teardown, daemon=True)
            ending.start()
            ending.join(TEARDOWN_S)
        for actor in self.actors:
            self._ray.kill(actor)
