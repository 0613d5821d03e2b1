"""Groups of partitions, in this process or each in a Ray actor: a clock calls them alike.

An actor is a process. It hosts thousands of emulated actors, and one partition after another: to start a process takes
longer than most runs. The functions for Ray are called in the process that drives it (`actors.hosting.child`).
"""

import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from actors.hosting.child import pickle_by_value
from actors.hosting.outcome import Observe
from actors.hosting.partition import Partition
from actors.hosting.ray_session import get, is_dead, worker_environment
from actors.setting import Setting
from workloads.errors import InputError

ACTOR_START_S = 120.0
PROCESS_BYTES = (
    300 << 20
)  # of one that emulates 180 MiB, of a Ray worker with a partition of 15,000 nodes 265
INBOX, CONTROL = "inbox", "control"  # threads of an actor besides that which runs the partition
SWITCH_S = 0.0005  # the longest that a batch waits for the thread that runs the partition

Only = Sequence[int] | None  # numbers of partitions; None: all
_kept: dict[str, Any] = {}  # an actor that has finished a run and waits for the next, by the session of Ray


class Here:
    """Partitions in this process: of one run, for tests and debuggers of several.

    Args:
        kind: makes a partition of setting, observe and the other arguments.
        count: how many there are.
    """

    def __init__(
        self,
        kind: Callable[..., Partition],
        setting: Setting,
        observe: Observe,
        count: int = 1,
        *arguments: Any,
    ):
        self.partitions: list[Any] = [kind(setting, observe, *arguments) for _ in range(count)]

    def chosen(self, only: Only) -> list[Any]:
        """Return the partitions with these numbers; on Ray their actors."""
        return self.partitions if only is None else [self.partitions[k] for k in only]

    def is_warm(self) -> bool:
        """Return whether all can load their loop from the disk cache of their machine."""
        return bool(self.partitions[0].is_warm())

    def ask(self, method: str, *arguments: Any, only: Only = None) -> list[Any]:
        """Call a method of all partitions, or of those in `only`; return their answers."""
        return self.ask_each(method, [arguments] * len(self.chosen(only)), only)

    def ask_each(self, method: str, arguments: Iterable[Sequence[Any]], only: Only = None) -> list[Any]:
        """Call a method of each with arguments of its own; return their answers."""
        pairs = zip(self.chosen(only), arguments, strict=True)
        return [getattr(partition, method)(*given) for partition, given in pairs]

    def close(self, is_done: bool = False) -> None:
        """End the partitions; `is_done`: their run has ended."""


class Machine(NamedTuple):
    """The machine that an actor is on, as the cluster knows it."""

    node: str
    address: str
    clock_ns: int  # now


class Host:
    """A Ray actor, which runs a partition."""

    def __init__(self) -> None:
        self._partition: Any = None

    def open(self, kind: Callable[..., Partition], *arguments: Any) -> bool:
        """Build a partition; return whether its loop can be loaded from this machine's disk cache."""
        self._partition = kind(*arguments)
        return bool(self._partition.is_warm())

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the partition."""
        return getattr(self._partition, method)(*arguments)

    def connect(self, actors: list[Any], offset: int) -> None:
        """Give a partition of the clock `live` the others; a batch to them has no answer to wait for."""
        sys.setswitchinterval(SWITCH_S)
        self._others = actors  # Ray 2.44 does not keep an actor for its methods
        options = {"num_returns": 0, "concurrency_group": INBOX}
        sends = [partial(actor.call.options(**options).remote, "receive") for actor in actors]
        self._partition.connect(sends, offset)

    def machine(self) -> Machine:
        """Return the machine that this process is on."""
        import ray

        node, address = ray.get_runtime_context().get_node_id(), ray.util.get_node_ip_address()
        return Machine(str(node), str(address), time.monotonic_ns())

    def close(self) -> None:
        """Free the partition's memory."""
        self._partition = None


class OnRay(Here):
    """The same in Ray actors, one partition in each.

    The setting is put into the object store once; its arrays are read there without copies. `options` are of the
    actors, as `ray.remote` takes them. It is an InputError if a worker does not start in time.
    """

    def __init__(
        self,
        kind: Callable[..., Partition],
        setting: Setting,
        observe: Observe,
        count: int = 1,
        *arguments: Any,
        **options: Any,
    ):
        import ray
        from ray.exceptions import GetTimeoutError

        self.partitions = _start_actors(count, options)
        pickle_by_value(setting.scheduler)
        setting.workload.arrays()  # made here, not once more by each partition
        given = (kind, ray.put(setting), observe, *arguments)
        try:
            self._warm = all(get([actor.open.remote(*given) for actor in self.partitions], ACTOR_START_S))
        except BaseException as error:
            free = ray.available_resources().get("CPU", 0) if isinstance(error, GetTimeoutError) else None
            self.close()
            if free is None:
                raise
            raise InputError(
                f"no Ray worker started within {ACTOR_START_S:.0f} s: {count} of them are wanted and the cluster has"
                f" {free:g} CPUs free; stop what uses it, or run with --in-process"
            ) from None

    def is_warm(self) -> bool:
        """Return whether all can load their loop."""
        return self._warm

    def begin(self, method: str, *arguments: Any) -> list[Any]:
        """Begin to call a method of all partitions; return references to their answers."""
        return [actor.call.remote(method, *arguments) for actor in self.partitions]

    def ask_each(self, method: str, arguments: Iterable[Sequence[Any]], only: Only = None) -> list[Any]:
        """Call a method of each with arguments of its own; return their answers."""
        pairs = zip(self.chosen(only), arguments, strict=True)
        return get([actor.call.remote(method, *given) for actor, given in pairs])

    def machines(self) -> list[Machine]:
        """Return the machine of each partition."""
        return get([actor.machine.remote() for actor in self.partitions])

    def share_memory(self, machines: Sequence[Sequence[int]], *arguments: Any) -> bool:
        """Let the partitions of each machine share memory with each other; return whether all can.

        Args:
            machines: the partitions of each.
            arguments: what the method `share_memory` of a partition takes beside the place of the memory.
        """
        members, firsts = [k for machine in machines for k in machine], [machine[0] for machine in machines]
        if not all(self.ask("can_share", only=members)):
            return False
        offered = zip(machines, self.ask("offer", only=firsts), strict=True)
        places = [(place,) for machine, place in offered for _ in machine]
        can_share = all(self.ask_each("can_share", places, members))
        if can_share:
            self.ask_each("share_memory", [(*place, *arguments) for place in places], members)
        self.ask("withdraw", only=firsts)
        return can_share

    def close(self, is_done: bool = False) -> None:
        """Stop the actors; keep one that was alone, and whose run has ended, for the next run."""
        import ray

        if is_done and len(self.partitions) == 1:
            (kept,) = self.partitions
            kept.close.remote()
            _kept[ray.get_runtime_context().get_job_id()] = kept
        elif not is_dead():
            for actor in self.partitions:
                ray.kill(actor)


def _start_actors(count: int, options: dict[str, Any]) -> list[Any]:
    """Start actors, spread over the cluster; each needs a CPU, or its part of those that are free.

    The actor that an earlier run has left is used, or ended if others are started: they need its CPU.
    """
    import ray

    free = ray.available_resources().get("CPU", 0)
    kept = _kept.pop(ray.get_runtime_context().get_job_id(), None)
    if kept is not None:
        if count == 1 and not options:
            return [kept]
        ray.kill(kept)
    machines = [node["Resources"].get("CPU", 0.0) for node in ray.nodes() if node["Alive"]]
    cpus = min(free / count, largest_share(machines, count)) if count > 1 else 1.0
    cpus = min(1.0, math.floor(100 * cpus) / 100)
    options |= {
        "runtime_env": worker_environment(),
        "scheduling_strategy": "SPREAD" if count > 1 else "DEFAULT",
    }
    host: Any = ray.remote(num_cpus=cpus, max_restarts=0, **options)(Host)
    return [host.remote() for _ in range(count)]


def largest_share(machines: list[float], count: int) -> float:
    """Return the most CPUs that each of so many actors can have; `machines` have these, and none divides an actor."""
    shares = {cpus / k for cpus in machines for k in range(1, count + 1) if cpus > 0}
    fitting = (s for s in shares if sum(int(cpus / s + 1e-9) for cpus in machines) >= count)
    return max(fitting, default=1.0)


def needed_bytes(setting: Setting, partitions: int = 1) -> int:
    """Return an upper estimate of the memory that all partitions need, from the family's estimate of its worlds."""
    each, shared = setting.scheduler.worlds.needed_bytes(setting)
    return partitions * (PROCESS_BYTES + each) + shared


def refuse_too_large(setting: Setting, partitions: int, free_bytes: int) -> None:
    """Refuse a run that needs more memory than is free; the error states how many partitions would fit."""
    needed = needed_bytes(setting, partitions)
    if needed <= free_bytes:
        return
    one, two = needed_bytes(setting, 1), needed_bytes(setting, 2)
    fit = 1 + (free_bytes - one) // (two - one)
    what = f"need about {needed / 2**30:.1f} GiB and {free_bytes / 2**30:.1f} GiB are free"
    if fit < 1:
        raise InputError(f"--nodes: {setting.cluster.num_nodes:,} nodes {what}, in one partition too")
    raise InputError(f"--partitions: {partitions} partitions {what}; {fit} would fit")
