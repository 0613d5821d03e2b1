"""Ray as a host: a session that is started once for many runs, and partitions that live in Ray actors.

Only what this process started is ever stopped: `close` ends a Ray instance that `connect` started on this machine,
and leaves an existing cluster as it was.
"""

import logging
import math
import os
from typing import Any

from actors.hosting.child import ROOT, SERVERS, address_of, pickle_by_value, with_path
from actors.hosting.interrupts import Lost
from actors.hosting.outcome import Observe, Outcome, peak_rss_mb
from actors.hosting.partition import Partition, Progress
from actors.hosting.ray_errors import unfit
from actors.hosting.ray_token import agree_on_token
from actors.hosting.snapshot import Snapshot
from actors.setting import Setting
from workloads.errors import InputError, UnavailableError
from workloads.limits import free_bytes as free_bytes_here

OBJECT_STORE_BYTES = 512 << 20
ACTOR_START_S = 120.0

# Ray would print long messages about processes that die; recovery prints one line. Read when Ray is imported.
os.environ.setdefault(
    "RAY_DEDUP_LOGS_SKIP_REGEX", "A worker died or was killed|Raylet is terminated|has been marked dead"
)
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
_SYSTEM = {
    # Else Ray starts a worker for each core, of which a run may want one, and waits for all of them before it lets its
    # driver in: for ever, if one dies meanwhile.
    "prestart_worker_first_driver": False,
    # How long Ray waits for a worker that dies before it has registered.
    "worker_register_timeout_seconds": 30,
}
_QUIET: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}

_started = _starting = False
_joined = False  # connected by this module to a cluster that others started
_host: Any = None  # an actor that has finished a run and waits for the next


class NoNode(OSError):
    """A Ray cluster answers, and no node of it takes a driver: its raylets have ended, or are stopped."""


class Host:
    """A Ray actor that runs one partition after another: starting a process takes longer than most runs."""

    def __init__(self) -> None:
        self._partition: Partition | None = None

    def open(self, setting: Setting, observe: Observe, kind: type[Partition] = Partition) -> bool:
        """Build a partition; return whether its loop can be loaded from this machine's disk cache."""
        self._partition = kind(setting, observe)
        return self._partition.is_warm()

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the partition."""
        return getattr(self._partition, method)(*arguments)

    def window(self, message: bytes) -> bytes:
        """Call `Partition.window`."""
        assert self._partition is not None
        return self._partition.window(message)

    def machine(self) -> tuple[str, str]:
        """Return the machine that this process is on, and its address, as the cluster knows them."""
        import ray

        return str(ray.get_runtime_context().get_node_id()), str(ray.util.get_node_ip_address())

    def memory_mb(self) -> float:
        """Return the most memory this process has held, MiB."""
        return peak_rss_mb()

    def close(self) -> None:
        """Free the partition's memory."""
        self._partition = None


def connect(
    address: str | None = None, folder: str | None = None, environment: dict[str, Any] | None = None
) -> None:
    """Start Ray on this machine, or join the cluster at `address_of(address)`; nothing if this process is connected.

    Args:
        folder: for Ray's files, if it is started; None: Ray's own folder.
        environment: the runtime environment of tasks and actors in a cluster.

    Raises:
        Lost: it cannot be started.
        UnavailableError: nothing answers there.
        InputError: the address is malformed.
    """
    named = "RAY_ADDRESS" if address is None else "--address"
    address = address_of(address)
    hint = "`ray start --head` prints the address of the one it starts"
    try:
        agree_on_token(address)
        if address is None:
            _start(folder)
        else:
            _join(address, environment)
    except ValueError as error:
        raise InputError(f"{named} {address}: {error}; {hint}") from None
    except PermissionError as error:
        raise UnavailableError(f"{named} {address}: {error}") from None
    except NoNode as error:
        raise UnavailableError(f"{named} {address}: {error}") from None
    except OSError as error:
        raise UnavailableError(f"{named} {address}: no Ray cluster answers there ({error}); {hint}") from None


def _start(folder: str | None) -> None:
    """Start Ray on this machine; nothing if this process is connected."""
    global _started, _starting
    import ray

    if ray.is_initialized():
        return
    # Workers inherit this, and find these packages also when they are not installed but run from a checkout.
    os.environ["PYTHONPATH"] = with_path(ROOT)
    _starting = True
    # "local": without an address Ray would join a cluster that someone has started here.
    try:
        ray.init(
            "local",
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            configure_logging=True,
            _temp_dir=folder,
            _system_config=_SYSTEM,
            **_QUIET,
        )
    except Exception as error:  # of many kinds, by which of its processes died meanwhile
        text = " ".join(str(error).split())[:200]
        raise Lost(f"Ray cannot be started here: {type(error).__name__}: {text}") from None
    finally:
        _starting = False
    _started = True


def _join(address: str, environment: dict[str, Any] | None) -> None:
    """Join a cluster; nothing if this process is connected."""
    global _joined
    import ray

    if ray.is_initialized():
        return
    try:
        ray.init(address=address, runtime_env=environment, **_QUIET)
    except ConnectionError as error:
        if address == "auto":  # else the server there has answered (`agree_on_token`)
            raise
        raise NoNode(f"no node of the Ray cluster there lives, or can be reached ({error})") from None
    except RuntimeError as error:
        if (wrong := unfit(str(error))) is None:
            raise
        raise InputError(wrong) from None
    _joined = True


def close() -> None:
    """End the idle actor and the Ray instance that this process started, or leave the cluster that it joined."""
    global _started, _joined, _host
    if not (_started or _joined):
        return
    import ray

    if _host is not None and not is_dead():
        ray.kill(_host)
    ray.shutdown()
    _started, _joined, _host = False, False, None


def is_dead() -> bool:
    """Return whether the Ray instance that this process started, or is starting, has lost a process that it needs.

    Ray has no public function for this, and calls to a lost process would wait for minutes.
    """
    if not (_started or _starting):
        return False
    from ray._private import worker

    node = worker._global_node
    if node is None:
        return not _starting
    return any(name in SERVERS for name, _ in node.dead_processes())


def has_nodes() -> bool:
    """Return whether a node of the cluster lives that this process is connected to, as the cluster knows it."""
    import ray

    return any(node["Alive"] for node in ray.nodes())


def has_joined() -> bool:
    """Return whether this process is connected to a cluster that others started."""
    return _joined


def worker_environment() -> dict[str, Any] | None:
    """Return the runtime environment in which workers find these packages; None if this process started Ray.

    On a cluster that others started it must be given, and takes the start of a new process.
    """
    return None if _started else {"env_vars": {"PYTHONPATH": with_path(ROOT)}}


def new_hosts(count: int = 1, kind: type = Host, *arguments: Any, **options: Any) -> list[Any]:
    """Start actors, spread over the cluster; each needs a CPU, or its part of those that are free.

    The idle actor of an earlier run is ended if several are started: they need its CPU.

    Args:
        kind: their class; made with `arguments`.
        options: of `ray.remote`.
    """
    global _host
    import ray

    free = ray.available_resources().get("CPU", 0)
    if count > 1 and _host is not None:
        ray.kill(_host)
        _host = None
    machines = [node["Resources"].get("CPU", 0.0) for node in ray.nodes() if node["Alive"]]
    cpus = min(free / count, largest_share(machines, count)) if count > 1 else 1.0
    cpus = min(1.0, math.floor(100 * cpus) / 100)
    options["runtime_env"] = worker_environment()
    options["scheduling_strategy"] = "SPREAD" if count > 1 else "DEFAULT"
    host: Any = ray.remote(num_cpus=cpus, max_restarts=0, **options)(kind)
    return [host.remote(*arguments) for _ in range(count)]


def largest_share(machines: list[float], count: int) -> float:
    """Return the most CPUs that each of so many actors can have; `machines` have these, and none divides an actor."""
    shares = {cpus / k for cpus in machines for k in range(1, count + 1) if cpus > 0}
    fitting = (s for s in shares if sum(int(cpus / s + 1e-9) for cpus in machines) >= count)
    return max(fitting, default=1.0)


def free_bytes() -> int:
    """Return the memory that Ray can give, at most what this machine has free if Ray was started here."""
    import ray

    free = int(ray.available_resources().get("memory", 0))
    here = free_bytes_here() if _started else None
    return free if here is None else min(free, here)


def get(reference: Any, timeout_s: float | None = None) -> Any:
    """Return the result of a call, or of each call of a list; raise an error of a partition as it was raised there."""
    import ray
    from ray.exceptions import RayTaskError

    try:
        return ray.get(reference, timeout=timeout_s)
    except RayTaskError as error:
        if "failed to import on the worker" in str(error.cause) and (wrong := unfit(str(error))) is not None:
            raise InputError(wrong) from None
        raise error.cause from None


def opened(actors: list[Any], setting: Setting, observe: Observe, *kind: type[Partition]) -> list[bool]:
    """Build a partition in each actor; return whether their loops can be loaded from disk caches.

    The setting is put into the object store once; its arrays are read there without copies. It is an InputError if a
    worker does not start in time. `kind` is that of the partitions, for actors that host more than one.
    """
    import ray
    from ray.exceptions import GetTimeoutError

    pickle_by_value(setting.scheduler)
    setting.workload.arrays()  # made here, not once more by each partition
    shared = ray.put(setting)
    try:
        return get([actor.open.remote(shared, observe, *kind) for actor in actors], ACTOR_START_S)
    except GetTimeoutError:
        free = ray.available_resources().get("CPU", 0)
        raise InputError(
            f"no Ray worker started within {ACTOR_START_S:.0f} s: {len(actors)} of them are wanted and the cluster has"
            f" {free:g} CPUs free; stop what uses it, or run with --in-process"
        ) from None


class RemotePartition:
    """A partition in a Ray actor, with the methods of `Partition`."""

    def __init__(self, setting: Setting, observe: Observe):
        global _host
        import ray

        self._ray = ray
        self._actor, _host = _host or new_hosts()[0], None
        self._done = False
        try:
            (self._warm,) = opened([self._actor], setting, observe)
        except BaseException:
            self.close()
            raise

    def is_warm(self) -> bool:
        """Return whether the loop can be loaded from the worker's disk cache."""
        return self._warm

    def start(self) -> float:
        """Compile or load the loop."""
        return get(self._actor.call.remote("start"))

    def run(self, most_s: float) -> Progress:
        """Continue for about `most_s` seconds, or to the end."""
        return get(self._actor.call.remote("run", most_s))

    def snapshot(self) -> Snapshot:
        """Return the state of the partition."""
        return get(self._actor.call.remote("snapshot"))

    def restore(self, saved: Snapshot) -> bytes:
        """Set the state of the partition to that of a snapshot."""
        return get(self._actor.call.remote("restore", saved))

    def outcome(self) -> Outcome:
        """Return the result."""
        outcome = get(self._actor.call.remote("outcome"))
        self._done = True
        return outcome

    def close(self) -> None:
        """Keep the actor for the next run if this one is done, else stop it."""
        global _host
        if self._done:
            self._actor.close.remote()
            _host = self._actor
        elif not is_dead():
            self._ray.kill(self._actor)
