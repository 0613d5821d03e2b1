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

_started = False


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
        ray.init(
            include_dashboard=False, object_store_memory=OBJECT_STORE_BYTES, configure_logging=True, **quiet
        )
        _started = True
        return
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, ValueError) as error:
        raise InputError(f"--address {address}: no Ray cluster answers there ({error})") from None


def close() -> None:
    """End the Ray instance that this process started, if it did."""
    global _started
    if _started:
        import ray

        ray.shutdown()
        _started = False


class RemotePartition:
    """A partition in a Ray actor; the same face as `Partition`."""

    def __init__(self, setting: Setting, observe: Observe, address: str | None = None):
        import ray
        from ray.exceptions import RayTaskError

        connect(address)
        self._ray, self._task_error = ray, RayTaskError
        # Workers must find these packages also when they are not installed but run from a checkout.
        root = str(Path(__file__).resolve().parents[2])
        environment = {"env_vars": {"PYTHONPATH": _with_path(root)}}
        if setting.scheduler.remade:
            _carry(setting.scheduler.remade[1][0])
        actor = ray.remote(num_cpus=1, max_restarts=0)(Partition)
        self._actor = actor.options(runtime_env=environment).remote(ray.put(setting), observe)

    def _call(self, method: str, *arguments: Any, timeout: float | None = None) -> Any:
        try:
            return self._ray.get(getattr(self._actor, method).remote(*arguments), timeout=timeout)
        except self._task_error as error:
            raise error.cause from None

    def is_warm(self) -> bool:
        """Whether the loop can be loaded from the worker's disk cache."""
        try:
            return self._call("is_warm", timeout=ACTOR_START_S)
        except self._ray.exceptions.GetTimeoutError:
            free = self._ray.available_resources().get("CPU", 0)
            raise InputError(
                f"no Ray worker started within {ACTOR_START_S:.0f} s: a partition needs 1 CPU and the cluster has"
                f" {free:g} free; stop what uses it, or run with --in-process"
            ) from None

    def start(self) -> float:
        """Compile or load the loop."""
        return self._call("start")

    def run(self, most_s: float) -> Progress:
        """Go on for about `most_s` seconds, or to the end."""
        return self._call("run", most_s)

    def outcome(self) -> Outcome:
        """The result."""
        return self._call("outcome")

    def close(self) -> None:
        """Stop the actor."""
        self._ray.kill(self._actor)


def _with_path(root: str) -> str:
    """PYTHONPATH with `root` in front."""
    inherited = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join([root, inherited] if inherited else [root])


def _carry(own: Any) -> None:
    """Let a user's class travel itself: workers cannot import a module that only this process can find."""
    import inspect

    from ray import cloudpickle

    module = inspect.getmodule(own if isinstance(own, type) else type(own))
    if module is not None and module.__name__ != "__main__":
        cloudpickle.register_pickle_by_value(module)
