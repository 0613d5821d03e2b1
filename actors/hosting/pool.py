"""Many independent calls on Ray: tasks sized by what they need, never more than so many at once."""

from collections.abc import Callable, Hashable
from types import TracebackType
from typing import Any

from actors.hosting.ray_session import address_of, connect, worker_environment
from workloads.errors import InputError


class Pool:
    """Ray tasks in flight; within a `with` block, those that are left at its end are stopped.

    A task whose worker dies is tried again; an error that the call itself raises is not: it would come again.

    Attributes:
        parallel: calls at once, by default the cluster's CPUs.
        largest_bytes: memory that Ray gives to tasks on the node that has most.
    """

    def __init__(self, parallel: int | None = None, retries: int = 2, address: str | None = None):
        import ray

        connect(address)
        self._ray = ray
        self._retries = retries
        cpus = int(ray.cluster_resources().get("CPU", 0))
        if cpus < 1:
            joined = address_of(address)
            where = "Ray on this machine" if joined is None else f"the Ray cluster at {joined}"
            raise InputError(f"{where}: the cluster has no CPU; a run needs 1")
        self.parallel = parallel or cpus
        self.largest_bytes = max(
            int(node["Resources"].get("memory", 0)) for node in ray.nodes() if node["Alive"]
        )
        self._keys: dict[Any, Hashable] = {}

    def __enter__(self) -> "Pool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for reference in self._keys:
            self._ray.cancel(reference, force=True)
        self._keys.clear()

    def __len__(self) -> int:
        """Calls that have not ended."""
        return len(self._keys)

    def put(self, value: Any) -> Any:
        """A reference that can stand for the value in calls: it is stored once, and read without copies."""
        return self._ray.put(value)

    def submit(
        self, key: Hashable, function: Callable[..., Any], *arguments: Any, memory_bytes: int, cpus: float = 1
    ) -> None:
        """Start a call as soon as the cluster has room for it; `ended` gives it back under its key."""
        task = self._ray.remote(function).options(
            num_cpus=cpus,
            memory=min(memory_bytes, self.largest_bytes),  # what fits nowhere would wait for ever
            max_retries=self._retries,
            retry_exceptions=False,
            runtime_env=worker_environment(),
        )
        self._keys[task.remote(*arguments)] = key

    def ended(self) -> tuple[Hashable, Any, Exception | None]:
        """Wait for the next call that ends: its key, what it returned, or else its error."""
        from ray.exceptions import RayError, RayTaskError

        (reference,), _ = self._ray.wait(list(self._keys), num_returns=1)
        key = self._keys.pop(reference)
        try:
            return key, self._ray.get(reference), None
        except RayTaskError as error:
            return key, None, error.cause if isinstance(error.cause, Exception) else error
        except RayError as error:
            return key, None, RuntimeError(_told(error, self._retries))


def _told(error: Exception, retries: int) -> str:
    """What Ray says at length, in one line."""
    times = f", {retries + 1} times" if retries else ""
    name = type(error).__name__
    if name == "WorkerCrashedError":
        return f"its worker process died{times}"
    if name == "OutOfMemoryError":
        return f"its worker was stopped because memory ran out{times}"
    return f"{name}: {str(error).strip().splitlines()[0]}"
