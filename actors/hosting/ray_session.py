"""Ray as a host: a session that is started once for many runs, and partitions that live in Ray actors.

Only what this process started is ever stopped: `close` ends a Ray instance that `connect` started on this machine,
and leaves an existing cluster as it was.
"""

import os
from pathlib import Path
from typing import Any

from actors.hosting.partition import Observe, Outcome, Partition, Progress
from actors.setting import Setting
from workloads.errors import InputError

OBJECT_STORE_BYTES = 512 << 20
ACTOR_START_S = 120.0
ROOT = str(Path(__file__).resolve().parents[2])

_started = False
_host: Any = None  # an actor that has finished a run and waits for the next


class Host:
    """A Ray actor that runs one partition after another: starting a process takes longer than most runs."""

    def __init__(self) -> None:
        self._partition: Partition | None = None

    def open(self, setting: Setting, observe: Observe) -> bool:
        """Build a partition; whether its loop can be loaded from this machine's disk cache."""
        self._partition = Partition(setting, observe)
        return self._partition.is_warm()

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the partition."""
        return getattr(self._partition, method)(*arguments)

    def close(self) -> None:
        """Let the partition's memory go."""
        self._partition = None


def connect(address: str | None = None) -> None:
    """Start Ray on this machine, or join the cluster at `address`; nothing if that is done."""
    global _started
    import logging

    import ray

    if ray.is_initialized():
        return
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address is None:
        # Workers inherit this, and find these packages also when they are not installed but run from a checkout.
        os.environ["PYTHONPATH"] = _with_path(ROOT)
        ray.init(
            include_dashboard=False, object_store_memory=OBJECT_STORE_BYTES, configure_logging=True, **quiet
        )
        _started = True
        return
    try:
        _check_answers(address)
        ray.init(address=address, **quiet)
    except (OSError, ValueError) as error:
        raise InputError(
            f"--address {address}: no Ray cluster answers there ({error}); `ray start --head` prints the address"
            " of the one it starts"
        ) from None


def _check_answers(address: str) -> None:
    """Open and close a connection: Ray itself would retry for minutes.

    Raises:
        OSError: nothing answers.
        ValueError: the address is not HOST:PORT.
    """
    import socket

    if address in ("auto", "local"):
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise ValueError("an address is HOST:PORT, ray://HOST:PORT or auto")
    socket.create_connection((host, int(port)), timeout=5).close()


def close() -> None:
    """End the actor that waits, and the Ray instance that this process started, if it did."""
    global _started, _host
    if _host is not None:
        import ray

        if ray.is_initialized():
            ray.kill(_host)
        _host = None
    if _started:
        import ray

        ray.shutdown()
        _started = False


def _new_host() -> Any:
    """Start an actor; it needs a CPU, or Ray would place any number of them on one."""
    import ray

    # On a cluster that others started, workers must be told; that costs the start of a fresh process.
    environment = None if _started else {"env_vars": {"PYTHONPATH": _with_path(ROOT)}}
    return ray.remote(num_cpus=1, max_restarts=0)(Host).options(runtime_env=environment).remote()


class RemotePartition:
    """A partition in a Ray actor; the same face as `Partition`."""

    def __init__(self, setting: Setting, observe: Observe, address: str | None = None):
        global _host
        import ray
        from ray.exceptions import GetTimeoutError, RayTaskError

        connect(address)
        self._ray, self._task_error = ray, RayTaskError
        if setting.scheduler.remade:
            _carry(setting.scheduler.remade[1][0])
        self._actor, _host = _host or _new_host(), None
        self._done = False
        try:
            self._warm = self._get(self._actor.open.remote(ray.put(setting), observe), ACTOR_START_S)
        except GetTimeoutError:
            free = ray.available_resources().get("CPU", 0)
            self.close()
            raise InputError(
                f"no Ray worker started within {ACTOR_START_S:.0f} s: a partition needs 1 CPU and the cluster has"
                f" {free:g} free; stop what uses it, or run with --in-process"
            ) from None
        except BaseException:
            self.close()
            raise

    def _get(self, reference: Any, timeout_s: float | None = None) -> Any:
        """A call's result; an error of the partition is raised as it was there."""
        try:
            return self._ray.get(reference, timeout=timeout_s)
        except self._task_error as error:
            raise error.cause from None

    def is_warm(self) -> bool:
        """Whether the loop can be loaded from the worker's disk cache."""
        return self._warm

    def start(self) -> float:
        """Compile or load the loop."""
        return self._get(self._actor.call.remote("start"))

    def run(self, most_s: float) -> Progress:
        """Go on for about `most_s` seconds, or to the end."""
        return self._get(self._actor.call.remote("run", most_s))

    def outcome(self) -> Outcome:
        """The result."""
        outcome = self._get(self._actor.call.remote("outcome"))
        self._done = True
        return outcome

    def close(self) -> None:
        """Keep the actor for the next run if this one is done, else stop it."""
        global _host
        if self._done:
            self._actor.close.remote()
            _host = self._actor
        else:
            self._ray.kill(self._actor)


def _with_path(root: str) -> str:
    """PYTHONPATH with `root` in front."""
    inherited = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    return os.pathsep.join([root, *(folder for folder in inherited if folder != root)])


def _carry(own: Any) -> None:
    """Let a user's class travel itself: workers cannot import a module that only this process can find."""
    import inspect

    from ray import cloudpickle

    module = inspect.getmodule(own if isinstance(own, type) else type(own))
    if module is not None and module.__name__ != "__main__":
        cloudpickle.register_pickle_by_value(module)
