"""The clock `live` on Ray: every partition in an actor of its own.

Partitions of one machine send messages through shared memory, others by calls. Each actor has three threads: one runs
the partition, one receives the calls of the others, in the order in which each of them made them, and one answers the
driver.
"""

import sys
import time
from typing import Any

from actors.environment import Pace
from actors.hosting.grouping import Grouping
from actors.hosting.interrupts import ANSWER_S, COMPILE_S, Lost
from actors.hosting.outcome import Observe
from actors.hosting.paced import PacedPartition
from actors.hosting.ray_session import get, new_hosts, opened
from actors.setting import Setting

INBOX, CONTROL = "inbox", "control"
SWITCH_S = 0.0005  # the longest that a batch waits for the thread that runs the partition
PINGS = 20
WAIT_S = 1.0  # between two looks at whether answers have come


class LiveHost:
    """A Ray actor that runs one live partition."""

    def __init__(self, pace: Pace):
        sys.setswitchinterval(SWITCH_S)
        self._pace = pace

    def open(self, setting: Setting, observe: Observe) -> bool:
        """Build the partition; return whether its loop can be loaded from this machine's disk cache."""
        self._partition = PacedPartition(setting, observe, self._pace, time.process_time_ns)
        return self._partition.is_warm()

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the partition."""
        return getattr(self._partition, method)(*arguments)

    def connect(self, actors: list[Any], offset: int) -> None:
        """Give the partition the others; a batch to them has no answer to wait for."""
        self._others = actors  # Ray 2.44 does not keep an actor for its methods
        options = {"num_returns": 0, "concurrency_group": INBOX}
        self._partition.connect([actor.receive.options(**options).remote for actor in actors], offset)

    def receive(self, source: int, batches: bytes) -> None:
        """Receive batches from a partition on another machine."""
        self._partition.receive(source, batches)

    def clock(self) -> tuple[str, int]:
        """Return the Ray node the actor is on, and its machine's clock, ns."""
        import ray

        return ray.get_runtime_context().get_node_id(), time.monotonic_ns()


class RayActors:
    """The partitions of a live run in Ray actors, with the methods of `actors.hosting.live.Threads`."""

    def __init__(self, setting: Setting, observe: Observe, pace: Pace, partitions: int):
        self._setting, self._observe = setting, observe
        groups = {INBOX: 1, CONTROL: 1}
        self._actors = new_hosts(partitions, LiveHost, pace, concurrency_groups=groups)
        self._grouping: Grouping | None = None
        self._begun: list[Any] = []
        self._running: list[Any] = []

    def open(self) -> bool:
        """Return whether their loops can be loaded from disk."""
        return all(opened(self._actors, self._setting, self._observe))

    def ask(self, method: str, *arguments: Any, only: int | None = None) -> list[Any]:
        """Call a method of all partitions, or of one; return their answers."""
        asked = self._actors if only is None else [self._actors[only]]
        answers = [a.call.options(concurrency_group=CONTROL).remote(method, *arguments) for a in asked]
        self._wait_for(answers, method, only or 0)
        return get(answers)

    def _wait_for(self, answers: list[Any], method: str, first: int) -> None:
        """Wait for the answers to a call.

        Raises:
            Lost: some did not come; it names the actors.
        """
        import ray

        limit_s = COMPILE_S if method == "start" else ANSWER_S
        for _ in range(round(limit_s / WAIT_S)):  # in steps: while this process is stopped no time counts
            _, left = ray.wait(answers, num_returns=len(answers), timeout=WAIT_S)
            if not left:
                return
        stuck = [first + k for k, answer in enumerate(answers) if answer in left]
        which = "; ".join(
            f"actor {k}" + (f" ({self._grouping.describe(k)})" if self._grouping else "") for k in stuck
        )
        raise Lost(
            f"live: {which} did not answer within {limit_s:.0f} s ({method}): it is stopped, or its machine is"
        )

    def join(self, grouping: Grouping) -> list[bytes]:
        """Let them join the grouping and connect to each other; return their first frames."""
        self._grouping = grouping
        frames = get([actor.call.remote("join", grouping, k) for k, actor in enumerate(self._actors)])
        offsets = [_offset_of(actor) for actor in self._actors]
        pairs = zip(self._actors, offsets, strict=True)
        get([actor.connect.remote(self._actors, offset) for actor, offset in pairs])
        machines: dict[str, list[int]] = {}
        for k, (node, _) in enumerate(get([actor.clock.remote() for actor in self._actors])):
            machines.setdefault(node, []).append(k)
        for members in machines.values():
            self._share_memory(members)
        return frames

    def _share_memory(self, members: list[int]) -> None:
        """Let the partitions of a machine send each other messages through memory, if they can; else by calls."""
        first, *others = (self._actors[k].call for k in members)
        place = get(first.remote("offer")) if get(first.remote("can_share")) else None
        if place is not None and all(get([call.remote("can_share", place) for call in others])):
            get([self._actors[k].call.remote("share_memory", place, members) for k in members])
        else:
            get([self._actors[k].call.remote("share_memory", None, [k]) for k in members])
        if place is not None:
            get(first.remote("withdraw"))

    def begin(self, origin: int) -> None:
        """Start all partitions."""
        self._begun = self._running = [actor.call.remote("run_paced", origin) for actor in self._actors]

    def ended(self, timeout_s: float) -> bool:
        """Wait until all have ended, and return whether they have; raise the error that ended one of them early."""
        import ray

        done, self._running = ray.wait(self._running, num_returns=len(self._running), timeout=timeout_s)
        get(done)
        return not self._running

    def running(self) -> list[int]:
        """Return which partitions have not ended."""
        return [k for k, call in enumerate(self._begun) if call in self._running]

    def close(self) -> None:
        """Stop what is running."""
        import ray

        for actor in self._actors:
            ray.kill(actor)


def _offset_of(actor: Any) -> int:
    """Return an actor's clock less this process's, ns: 0 on the same machine, else from the fastest of some calls."""
    import ray

    node, _ = get(actor.clock.remote())
    if node == ray.get_runtime_context().get_node_id():
        return 0
    best, offset = sys.maxsize, 0
    for _ in range(PINGS):
        begin = time.monotonic_ns()
        _, there = get(actor.clock.remote())
        end = time.monotonic_ns()
        if end - begin < best:
            best, offset = end - begin, there - (begin + end) // 2
    return offset
