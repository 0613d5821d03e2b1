"""Calls as Ray tasks with their needs of CPUs and memory: the part of a pool in the process that drives Ray."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from actors.hosting.ray_errors import unfit
from actors.hosting.ray_session import worker_environment
from workloads.errors import InputError


@dataclass(frozen=True)
class Stored:
    """A placeholder for a value in calls: each of them gets the value, which is sent once."""

    number: int


class RayPool:
    """Ray tasks that have not ended."""

    def __init__(self, retries: int):
        import ray

        self._ray, self._retries = ray, retries
        self._largest_bytes = max(
            int(node["Resources"].get("memory", 0)) for node in ray.nodes() if node["Alive"]
        )
        self._keys: dict[Any, Hashable] = {}
        self._stored: dict[int, Any] = {}

    def cpus(self) -> int:
        """Return how many CPUs the cluster has; a cluster without any is an InputError."""
        cpus = int(self._ray.cluster_resources().get("CPU", 0))
        if cpus < 1:
            where = self._ray.get_runtime_context().gcs_address
            raise InputError(f"the Ray cluster at {where}: the cluster has no CPU; a run needs 1")
        return cpus

    def put(self, number: int, value: Any) -> None:
        """Store a value, in whose place calls have `Stored(number)`; it is read without copies."""
        self._stored[number] = self._ray.put(value)

    def drop(self, number: int) -> None:
        """Drop a value."""
        del self._stored[number]

    def submit(
        self,
        key: Hashable,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        memory_bytes: int,
        cpus: float,
    ) -> None:
        """Start a call as soon as the cluster has room for it."""
        task = self._ray.remote(function).options(
            num_cpus=cpus,
            memory=min(memory_bytes, self._largest_bytes),  # a task that fits on no node would wait for ever
            max_retries=self._retries,
            retry_exceptions=False,
            runtime_env=worker_environment(),
        )
        given = [self._stored[a.number] if isinstance(a, Stored) else a for a in arguments]
        self._keys[task.remote(*given)] = key

    def ended(self) -> tuple[Hashable, Any, Exception | None]:
        """Wait for the next call that ends; return its key, and its result or its error."""
        from ray.exceptions import RayError, RayTaskError

        (reference,), _ = self._ray.wait(list(self._keys), num_returns=1)
        key = self._keys.pop(reference)
        try:
            return key, self._ray.get(reference), None
        except RayTaskError as error:
            if "failed to import on the worker" in str(error.cause):
                return key, None, InputError(unfit(str(error)) or "")
            return key, None, error.cause if isinstance(error.cause, Exception) else error
        except RayError as error:
            return key, None, RuntimeError(_in_one_line(error, self._retries))

    def close(self) -> None:
        """Stop the calls that have not ended."""
        for reference in self._keys:
            self._ray.cancel(reference, force=True)


def _in_one_line(error: Exception, retries: int) -> str:
    """Return an error of Ray in one line."""
    times = f", {retries + 1} times" if retries else ""
    name = type(error).__name__
    if name == "WorkerCrashedError":
        return f"its worker process died{times}"
    if name == "OutOfMemoryError":
        return f"its worker was stopped because memory ran out{times}"
    return f"{name}: {str(error).strip().splitlines()[0]}"
