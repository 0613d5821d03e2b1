"""Many independent calls on Ray, a bounded number at once; they survive the loss of the process that drives Ray."""

from collections.abc import Callable, Hashable
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from actors.hosting.child import in_child
from actors.hosting.interrupts import Lost
from actors.hosting.ray_pool import RayPool, Stored
from actors.hosting.recovery import MOST_RESTARTS


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
        self._try(lambda: self._there.put(self._count, value))
        return Stored(self._count)

    def drop(self, stored: Stored) -> None:
        """Drop a value."""
        del self._stored[stored.number]
        self._try(lambda: self._there.drop(stored.number))

    def submit(
        self, key: Hashable, function: Callable[..., Any], *arguments: Any, memory_bytes: int, cpus: float = 1
    ) -> None:
        """Start a call as soon as the cluster has room for it; `ended` returns it with its key."""
        self._calls[key] = (function, arguments, memory_bytes, cpus)
        self._try(lambda: self._there.submit(key, *self._calls[key]))

    def ended(self) -> tuple[Hashable, Any, Exception | None]:
        """Wait for the next call that ends; return its key, and its result or its error."""
        while True:
            try:
                key, value, error = self._there.ended()
            except Lost as loss:
                self._restart(loss)
                continue
            del self._calls[key]
            self._losses = 0
            return key, value, error

    def _open(self) -> None:
        """Create the pool that is in the child."""
        self._hosted = ExitStack()
        self._there = self._hosted.enter_context(in_child(RayPool, self._retries, address=self._address))
        self._cpus = self._there.cpus()

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
                    self._there.put(number, value)
                for key, call in self._calls.items():
                    self._there.submit(key, *call)
                return
            except Lost as another:
                loss = another
