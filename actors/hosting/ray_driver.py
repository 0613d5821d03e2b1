"""The child process that drives Ray (`actors.hosting.child`): it makes objects and calls their methods.

    python -m actors.hosting.ray_driver FD FOLDER

Every call has a thread of its own, so that what hangs does not hinder others. Watches end the process when its parent
is gone, when the Ray instance it started has lost a process, and when no node of its cluster lives: Ray would wait for
another node, without a limit. A sign of life goes to the parent each second.
"""  # fmt: skip

import os
import pickle
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from actors.hosting import ray_session
from actors.hosting.child import EXIT_REASON, LEAVE_S, NUMBER, SIGN_OF_LIFE, SIGN_S, dumps
from actors.hosting.cleanup import WATCH_S
from actors.hosting.ray_session import losses

THREADS = 256
NODES_WATCH_S = 2.0  # between two looks at which nodes live


class Driver:
    """The methods that the parent calls where it names no object."""

    def __init__(self, pipe: Connection, folder: Path):
        self._pipe, self._folder = pipe, folder
        self._parent = os.getppid()
        self._writing = threading.Lock()
        self._objects: dict[int, Any] = {}

    def connect(self, address: str | None, environment: dict[str, Any] | None) -> None:
        """Start Ray on this machine, in the folder of this process, or join a cluster."""
        ray_session.connect(address, str(self._folder), environment)
        for watch in (self._show_life, self._watch_nodes):  # that before would take its time from Ray
            threading.Thread(target=watch, daemon=True).start()

    def has_nodes(self) -> bool:
        """Return whether a node of the cluster lives."""
        return ray_session.has_nodes()

    def make(self, kind: Callable[..., Any], *arguments: Any) -> int:
        """Make an object; return its place."""
        made = kind(*arguments)
        self._objects[id(made)] = made
        return id(made)

    def end(self, place: int) -> None:
        """Close an object and drop it."""
        self._objects.pop(place).close()

    def leave(self) -> None:
        """Leave the cluster."""
        ray_session.close()

    def serve(self) -> None:
        """Answer calls until the parent closes the pipe."""
        threading.Thread(target=self._watch, daemon=True).start()
        with ThreadPoolExecutor(THREADS) as threads:
            with suppress(OSError, EOFError):
                while True:
                    threads.submit(self._answer, self._pipe.recv_bytes())
            self._finish()

    def _answer(self, asked: bytes) -> None:
        head, value, error = asked[: NUMBER.size], None, None
        try:
            place, method, arguments, named = pickle.loads(asked[NUMBER.size :])
            called = self if place is None else self._objects[place]
            with losses():
                value = getattr(called, method)(*arguments, **named)
        except BaseException as raised:
            error = raised
        try:
            answer = dumps((value, error))
        except Exception as raised:
            reason = f"{type(error or value).__name__} cannot be pickled: {raised}"
            answer = dumps((None, RuntimeError(reason if error is None else f"{error} ({reason})")))
        with suppress(OSError), self._writing:
            self._pipe.send_bytes(head + answer)

    def _watch(self) -> None:
        """End the process when the parent or Ray is gone."""
        while True:
            time.sleep(WATCH_S)
            if os.getppid() != self._parent:
                self._finish()
            if ray_session.is_dead():
                self._end("the Ray instance of this run is gone")

    def _watch_nodes(self) -> None:
        """End the process when no node lives. It is a thread of its own, as Ray may not answer."""
        while True:
            time.sleep(NODES_WATCH_S)
            with suppress(Exception):  # it is not known which nodes live
                if not ray_session.has_nodes():
                    self._end("no node of Ray lives any more (its raylet did not answer, or was ended)")

    def _show_life(self) -> None:
        """Send the parent a sign of life each second."""
        while True:
            time.sleep(SIGN_S)
            with suppress(OSError), self._writing:
                self._pipe.send_bytes(NUMBER.pack(SIGN_OF_LIFE))

    def _end(self, reason: str) -> None:
        """End the process, and send the parent the reason."""
        with suppress(OSError), self._writing:
            self._pipe.send_bytes(NUMBER.pack(EXIT_REASON) + reason.encode())
        os._exit(1)

    def _finish(self) -> None:
        """Leave a cluster that others started, and end the process."""
        leaving = threading.Thread(target=ray_session.close, daemon=True)
        if ray_session.has_joined():
            leaving.start()
            leaving.join(LEAVE_S)
        os._exit(0)


def main() -> None:
    """Serve the parent at the other end of a socket."""
    Driver(Connection(int(sys.argv[1])), Path(sys.argv[2])).serve()


if __name__ == "__main__":
    main()
