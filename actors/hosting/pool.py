"""Many independent calls on Ray, a bounded number at once; they survive the loss of the process that drives Ray."""

from collections.abc import Callable, Hashable
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from actors.hosting.child import in_child
from actors.hosting.interrupts import Lost
from actors.hosting.ray_session import unfit, worker_environment
from actors.hosting.runs import MOST_RESTARTS
from workloads.errors import InputError


@dataclass(frozen=True)
class Stored:
    """A placeholder for a value in calls: each of them gets the value, which is sent once."""

    number: int


class RayPool:
    """Ray tasks that have not ended, with their needs of CPUs and memory; it is in the process that drives Ray."""

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


class Pool:
    """A pool of calls; at the end of its `with` block those that have not ended are stopped.

    A call whose worker dies is repeated, and so are all that run when the process that drives Ray is lost. A call that
    raises an error is not repeated: it would raise the same error.

    Args:
        parallel: calls at once; None: as many as the cluster has CPUs.
        retries: times a call is repeated.
        address: of a running Ray cluster.
        warn: called with one line when calls begin again.
    """

    def __init__(
        self,
        parallel: int | None = None,
        retries: int = 2,
        address: str | None = None,
        warn: Callable[[str], None] | None = None,
    ):
        self._retries, self._address, self._warn = retries, address, warn
        self._stored: dict[int, Any] = {}
        self._calls: dict[Hashable, tuple[Any, ...]] = {}
        self._losses = self._count = 0
        self._hosted = ExitStack()
        self._try(self._open)
        self.parallel: int = parallel or self._cpus

    def __enter__(self) -> "Pool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._calls.clear()
        self._hosted.close()

    def __len__(self) -> int:
        """Return the number of calls that have not ended."""
        return len(self._calls)

    def put(self, value: Any) -> Stored:
        """Store a value; return what stands for it in calls, until it is dropped."""
        self._count += 1
        self._stored[self._count] = value
        self._try(lambda: self._remote.put(self._count, value))
        return Stored(self._count)

    def drop(self, stored: Stored) -> None:
        """Drop a value."""
        del self._stored[stored.number]
        self._try(lambda: self._remote.drop(stored.number))

    def submit(
        self, key: Hashable, function: Callable[..., Any], *arguments: Any, memory_bytes: int, cpus: float = 1
    ) -> None:
        """Start a call as soon as the cluster has room for it; `ended` returns it with its key."""
        self._calls[key] = (function, arguments, memory_bytes, cpus)
        self._try(lambda: self._remote.submit(key, *self._calls[key]))

    def ended(self) -> tuple[Hashable, Any, Exception | None]:
        """Wait for the next call that ends; return its key, and its result or its error."""
        while True:
            try:
                key, value, error = self._remote.ended()
            except Lost as loss:
                self._restart(loss)
                continue
            del self._calls[key]
            self._losses = 0
            return key, value, error

    def _open(self) -> None:
        """Create the pool that is in the child."""
        self._hosted = ExitStack()
        self._remote = self._hosted.enter_context(in_child(RayPool, self._retries, address=self._address))
        self._cpus = self._remote.cpus()

    def _try(self, call: Callable[[], None]) -> None:
        """Call the pool in the child; if the child is lost, another one gets all that this pool has kept."""
        try:
            call()
        except Lost as loss:
            self._restart(loss)

    def _restart(self, loss: Lost) -> None:
        """Repeat all calls in another child; raise `Lost` after too many tries in which no call ended."""
        while True:
            self._losses += 1
            if self._losses > MOST_RESTARTS:
                raise Lost(f"{loss}; {self._losses} times without a run that ended in between") from None
            if self._warn is not None:
                self._warn(f"{loss}; {len(self._calls)} runs begin again")
            try:
                self._hosted.close()
                self._open()
                for number, value in self._stored.items():
                    self._remote.put(number, value)
                for key, call in self._calls.items():
                    self._remote.submit(key, *call)
                return
            except Lost as another:
                loss = another
