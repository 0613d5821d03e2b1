"""The clock `windows` on Ray: every partition in an actor of its own.

Actors meet in the shared memory of their machine, and machines over TCP (`actors.hosting.member`): Ray starts and
watches the actors and carries the workload and the results, but no barrier. Where memory cannot be shared, barriers are
calls.
"""

import secrets
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
from actors.hosting.slices import getting_ready, run_in_slices
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
from workloads.doing import doing
from workloads.errors import InputError
from workloads.units import format_duration

TOKEN_BYTES = 32  # of the secret by which the machines of a run know each other
REASON_S = 2.0  # for other partitions to answer, when one has said that another does not run any more
# Barriers without work, to measure one: in shared memory, between machines.
MEETINGS, FEW_MEETINGS = 10_000, 1_000


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
        transport: "memory", "calls", or "auto": memory where that is possible.
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
            with getting_ready(setting, session.is_warm(), tell):
                session.start()
            if transport != "calls":
                with doing("connecting the partitions"):
                    session.share_memory()
            if announce is not None:
                with doing("measuring what a barrier takes"):
                    plan = session.plan()
                announce(plan)
            if start is not None:
                with doing("restoring the checkpoint"):
                    session.restore(start)
            return run_in_slices(session, session.snapshots, setting, checkpoints, progress, tell)

    pickle_by_value(setting.scheduler)
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
        self._setting, self._window, self._transport = setting, window_ns(setting, quantum_s), transport
        refuse_too_large(setting, partitions, free_bytes())
        self._actors = new_hosts(partitions)
        self._no_memory = ""  # why barriers are calls, where memory was wanted
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

    def share_memory(self) -> None:
        """Let the actors meet in shared memory, if that is possible; else, with "memory", raise InputError."""
        machines = self._machines()
        refused = self._why_not_shared([*machines.values()])
        if refused is None and len(machines) > 1:
            refused = self._why_not_connected(machines)
        if refused is None:
            self.windows = Meetings(self._actors, len(machines))
        elif self._transport == "memory":
            raise InputError(f"windows.transport: memory cannot be shared: {refused}")
        else:
            self._no_memory = f" (memory cannot be shared: {refused})"

    def _machines(self) -> dict[tuple[str, str], list[int]]:
        """Return the partitions of each machine, which is given by its name in the cluster and its address."""
        places = get([actor.machine.remote() for actor in self._actors])
        return {place: [k for k, at in enumerate(places) if at == place] for place in places}

    def _why_not_shared(self, machines: list[list[int]]) -> str | None:
        """Let the actors of each machine share memory; return why that is not possible."""
        refused = (
            "all need compiled code, x86-64 or ARM processors, and on a machine processes that see each other"
        )
        groups = [[self._actors[k] for k in machine] for machine in machines]
        if not all(get([actor.call.remote("can_share") for actor in self._actors])):
            return refused
        places = get([first.call.remote("offer") for first, *_ in groups])
        pairs = [*zip(places, groups, strict=True)]
        if not all(get([a.call.remote("can_share", place) for place, group in pairs for a in group])):
            return refused
        arguments = [(a, place, self._window) for place, group in pairs for a in group]
        get([actor.call.remote("share_memory", *given) for actor, *given in arguments])
        get([first.call.remote("withdraw") for first, *_ in groups])
        return None

    def _why_not_connected(self, machines: dict[tuple[str, str], list[int]]) -> str | None:
        """Connect the first actors of all machines with each other; return why that is not possible."""
        firsts = [self._actors[machine[0]] for machine in machines.values()]
        pairs = zip(firsts, machines, strict=True)
        try:
            addresses = get([first.call.remote("listen", host) for first, (_, host) in pairs])
            given = [*machines.values()], addresses, secrets.token_bytes(TOKEN_BYTES)
            get([first.call.remote("connect", *given) for first in firsts])
        except OSError as error:
            get([first.call.remote("leave") for first in firsts])
            return f"{len(machines)} machines have no connections: {error}"
        return None

    def _by_calls(self, message: bytes) -> Sequence[bytes]:
        return get([actor.window.remote(message) for actor in self._actors])

    def plan(self) -> str:
        """Return the plan of the run in several lines: its partitions, its barriers, and how long they may take."""
        barrier_s = self.windows.barrier_s()
        windows = expected_windows(self._setting, self._window, len(self._actors))
        means = self.windows.means if isinstance(self.windows, Meetings) else f"calls{self._no_memory}"
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
        """End the actors."""
        import ray

        for actor in self._actors:
            ray.kill(actor)


class Meetings:
    """The driver of partitions that meet in shared memory, with the methods of `Windows`."""

    def __init__(self, actors: list[Any], machines: int):
        import ray

        self._ray, self._actors, self._machines = ray, actors, machines
        self.at = Position(0.0, 0, BEGINNING)
        self.waited_s = 0.0  # of a partition, while it waited for others

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
        get([actor.call.remote("go_back_to", at) for actor in self._actors])
