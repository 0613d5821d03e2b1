"""Ray's driver as a child process of this one, and objects that live in it.

Ray ends the process that drives it when the raylet beside that dies, and some of its calls may hang when an actor dies
in the middle of them. So this process never is that driver: it starts a child (`actors.hosting.ray_driver`), calls it
through a pipe, and begins again with another child when one is gone or does not answer: a child that is connected to
Ray gives a sign of life each second, and one without signs is killed. When this process is gone, a guard
(`actors.hosting.cleanup`) ends the child and all that it started.
"""

import atexit
import itertools
import os
import pickle
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as TooLong
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from actors.hosting.cleanup import (
    WATCH_S,
    Guard,
    end_session,
    has_dead_child,
    remove_folder,
    temporary_folder,
)
from actors.hosting.interrupts import Lost
from actors.scheduler import Scheduler
from workloads.doing import doing

ROOT = str(Path(__file__).resolve().parents[2])
DRIVER = ("-m", "actors.hosting.ray_driver")  # arguments of Python
SERVERS = ("raylet", "gcs_server")  # names of processes that Ray stands on
CONNECT_S = 90.0  # to start Ray here, or to join a cluster
MAKE_S = 240.0  # to start actors and build partitions in them
END_S = 10.0  # to end what an object has running
LEAVE_S = 5.0  # to leave a cluster, when this process is gone
NODES_S = 10.0  # for the cluster to say which nodes live
SIGN_S = 1.0  # between two signs of life of a child
SILENT_S = 30.0  # without one, after which it is killed: what is stopped does not end by itself
NUMBER = struct.Struct("=q")  # of a call, in front of request and answer
EXIT_REASON = -1  # in its place: the message is the reason why the child ends
SIGN_OF_LIFE = -2  # in its place: there is no message
_SIGNALS = {6: "aborted", 9: "killed", 11: "crashed", 15: "terminated"}

_child: "Child | None" = None
_making = threading.Lock()


class Answer(Future[bytes]):
    """The answer to a call, pickled."""

    def __init__(self, number: int):
        super().__init__()
        self.number = number

    def result(self, timeout: float | None = None) -> bytes:
        """Return the answer, as `Future` does; Ctrl-C raises KeyboardInterrupt at any time.

        Where it comes while `threading` takes or releases the lock of a condition, that releases it once too often.
        """
        try:
            return super().result(timeout)
        except RuntimeError as error:
            if isinstance(error.__context__, KeyboardInterrupt):
                raise error.__context__ from None
            raise


class Silence:
    """How long another process has given no sign of life.

    It is counted in steps: while this process is stopped itself, or its machine sleeps, no time counts.
    """

    def __init__(self) -> None:
        self._lasts_s: float | None = None  # None: no sign has come yet, nor must it

    def end(self) -> None:
        """Note a sign of life."""
        self._lasts_s = 0.0

    def goes_on(self, step_s: float) -> bool:
        """Note that so much time has passed; return whether the silence lasts too long."""
        if self._lasts_s is None:
            return False
        self._lasts_s += step_s
        return self._lasts_s > SILENT_S


class Child:
    """A process that drives Ray, connected to one cluster.

    Args:
        address: of a cluster; None: it starts Ray on this machine.
        named: the address that the user gave; None: by RAY_ADDRESS, or not at all.
        environment: the runtime environment of tasks and actors there.
    """

    def __init__(self, address: str | None, named: str | None, environment: dict[str, Any] | None = None):
        self.address = address
        self._answers: dict[int, Answer] = {}
        self._calls = itertools.count()
        self._writing = threading.Lock()
        self._reason = ""
        environment_here = {**os.environ, "PYTHONPATH": with_path(ROOT)}
        self._guard = Guard(0.0 if address is None else LEAVE_S + 2 * WATCH_S, environment_here)
        self._folder = temporary_folder("ray", short=True)
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, *DRIVER, str(theirs.fileno()), str(self._folder)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for this process alone
                env=environment_here,
            )
        self._guard.watch(self._process.pid)
        self._pipe = Connection(ours.detach())
        self._silence, self._closed = Silence(), threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        threading.Thread(target=self._watch, daemon=True).start()
        self._connecting = self._ask(None, "connect", named, environment)
        self._bound = time.monotonic() + CONNECT_S

    def connected(self) -> None:
        """Wait until the child is connected to Ray; raise `Lost`, or the errors of `ray_session.connect`."""
        with doing("starting Ray" if self.address is None else f"joining Ray at {self.address}"):
            try:
                while not wait([self._connecting], WATCH_S).done and time.monotonic() < self._bound:
                    # The child cannot see that itself: it waits with Python's global lock held.
                    if has_dead_child(self._process.pid, SERVERS):
                        self._reason = "a process of Ray died while it started"
                        raise Lost(self._reason)
                self._answer_of(
                    self._connecting, "connect", max(self._bound - time.monotonic(), 0.0), CONNECT_S
                )
            except BaseException:
                self.close()
                raise

    def has_nodes(self) -> bool:
        """Return whether its cluster answers and has a node that lives: else nothing can be started there."""
        try:
            return bool(self.call(None, "has_nodes", within_s=NODES_S))
        except Exception:  # of many kinds, by what of Ray does not answer
            return False

    def call(
        self, place: int | None, method: str, *arguments: Any, within_s: float | None = None, **named: Any
    ) -> Any:
        """Call a method of an object there; return its result or raise its error, or `Lost` if the child is gone.

        Args:
            place: of the object, as `make` returned it; None: the child itself.
            within_s: the child is killed if it has not answered by then.
        """
        answer = self._ask(place, method, *arguments, **named)
        try:
            return self._answer_of(answer, method, within_s, within_s)
        finally:
            self._answers.pop(answer.number, None)

    def _ask(self, place: int | None, method: str, *arguments: Any, **named: Any) -> Answer:
        answer = Answer(next(self._calls))
        asked = NUMBER.pack(answer.number) + dumps((place, method, arguments, named))
        self._answers[answer.number] = answer
        try:
            with self._writing:
                self._pipe.send_bytes(asked)
        except OSError:
            self._is_lost()
        return answer

    def _answer_of(self, answer: Answer, method: str, left_s: float | None, bound_s: float | None) -> Any:
        try:
            value, error = pickle.loads(answer.result(left_s))
        except TooLong:
            self._reason = f"the process that drives Ray did not answer for {bound_s:.0f} s ({method})"
            self._process.kill()
            raise Lost(self._reason) from None
        if error is not None:
            raise error
        return value

    def is_gone(self) -> bool:
        """Return whether the child cannot be called any more."""
        return bool(self._reason) or self._process.poll() is not None

    def close(self) -> None:
        """End the child and its processes, and remove what they leave on this machine."""
        with doing("ending Ray's processes" if self.address is None else f"leaving Ray at {self.address}"):
            if self.address is not None and not self.is_gone():
                with suppress(Lost):  # a cluster that others started must see that it leaves
                    self.call(None, "leave", within_s=END_S)
            self._closed.set()
            self._process.kill()
            self._process.wait()
            end_session(self._process.pid)
            self._reader.join(END_S)  # it reaches the end of the pipe
            self._pipe.close()
            remove_folder(self._folder)
            self._guard.close()

    def _watch(self) -> None:
        """Kill the child when it has given no sign of life for too long; all calls to it then end."""
        while not self._closed.wait(SIGN_S):
            if self._silence.goes_on(SIGN_S):
                self._reason = f"the process that drives Ray gave no sign of life for {SILENT_S:.0f} s"
                self._process.kill()
                return

    def _read(self) -> None:
        """Hand each answer to the call that waits for it, until there are no more."""
        try:
            while True:
                received = self._pipe.recv_bytes()
                (number,) = NUMBER.unpack_from(received)
                self._silence.end()
                if number == EXIT_REASON:
                    self._reason = received[NUMBER.size :].decode()
                elif answer := self._answers.get(number):
                    answer.set_result(received[NUMBER.size :])
        except (OSError, EOFError):
            self._is_lost()

    def _is_lost(self) -> None:
        if not self._reason:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(END_S)
            code = self._process.returncode
            how = _SIGNALS.get(-code, f"signal {-code}") if code is not None and code < 0 else f"code {code}"
            self._reason = f"the process that drives Ray is gone ({how})"
        for answer in list(self._answers.values()):
            if not answer.done():
                with suppress(Exception):
                    answer.set_exception(Lost(self._reason))


class Remote:
    """An object that lives in the child: its methods are called there."""

    def __init__(self, child: Child, place: int):
        self._child, self._place = child, place

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return partial(self._child.call, self._place, method)


@contextmanager
def in_child(kind: Callable[..., Any], *arguments: Any, address: str | None = None) -> Iterator[Any]:
    """Yield an object made by `kind(*arguments)` in the child, which is connected to a cluster; close it at the end."""
    child = the_child(address)
    with doing("starting workers of Ray"):
        place = child.call(None, "make", kind, *arguments, within_s=MAKE_S)
    try:
        yield Remote(child, place)
    finally:
        try:
            with doing("ending workers of Ray"):
                child.call(None, "end", place, within_s=END_S)
        except Lost:
            discard(child)


def the_child(address: str | None = None) -> Child:
    """Return the child of this process that is connected to a cluster; start it if there is none.

    A child that is there is ended first, with the Ray that it started, if that has no node that lives: the raylet may
    have been stopped, or cut off, for so long that it was given up.

    Raises:
        Lost: it is gone; the next call starts another.
        UnavailableError: nothing answers at the address, or no node of the cluster lives.
        InputError: the address is malformed.
    """
    child = begin(address)
    child.connected()
    if not child.has_nodes():
        discard(child)
        child = begin(address)
        child.connected()
    return child


def begin(address: str | None = None) -> Child:
    """Begin to start a child, which takes seconds; `Child.connected` waits for its end."""
    global _child
    place, named, environment = _where(address)
    with _making:
        if _child is not None and (_child.is_gone() or _child.address != place):
            _child.close()
            _child = None
        if _child is None:
            _child = Child(place, named, environment)
        return _child


def discard(child: Child) -> None:
    """End a child whose state is not known."""
    global _child
    with _making:
        child.close()
        if _child is child:
            _child = None


def close() -> None:
    """End the child of this process, if there is one."""
    if _child is not None:
        discard(_child)


atexit.register(close)


def _where(address: str | None) -> tuple[str | None, str | None, dict[str, Any] | None]:
    """Return the cluster's address, the address that the child is given, and the runtime environment of workers.

    A program that has connected itself to Ray, or that is a Ray worker, uses that cluster.
    """
    ray = sys.modules.get("ray")
    if ray is not None and hasattr(ray, "is_initialized") and ray.is_initialized():
        context = ray.get_runtime_context()
        return context.gcs_address, context.gcs_address, dict(context.runtime_env) or None
    return address_of(address), address, None


def address_of(address: str | None) -> str | None:
    """Return the address of the Ray cluster to join: `address`, else RAY_ADDRESS; None if Ray is started here."""
    named = address or os.environ.get("RAY_ADDRESS") or "local"
    return None if named == "local" else named


def with_path(root: str) -> str:
    """Return PYTHONPATH with `root` in front."""
    inherited = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    return os.pathsep.join([root, *(folder for folder in inherited if folder != root)])


def pickle_by_value(scheduler: Scheduler) -> None:
    """Let users' classes be pickled by value: other processes may not be able to import their modules."""
    if not scheduler.users:
        return
    import inspect

    from ray import cloudpickle

    for own in (of_user.own for of_user in scheduler.users):
        module = inspect.getmodule(own if isinstance(own, type) else type(own))
        if module is not None and module.__name__ != "__main__":
            cloudpickle.register_pickle_by_value(module)


def dumps(value: Any) -> bytes:
    """Pickle a value; with cloudpickle where it is loaded, as for classes that are pickled by value."""
    pickler = sys.modules.get("ray.cloudpickle", pickle)
    return bytes(pickler.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
