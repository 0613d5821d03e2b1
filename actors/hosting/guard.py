"""The guard, a process that outlives this one: it then ends the child that drives Ray, and removes what that leaves.

    python -m actors.hosting.guard PROGRAM GRACE_S

A program that is killed cannot do that, nor can the child: Ray ends it as soon as its raylet is gone.
"""  # fmt: skip

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress

from actors.hosting.cleanup import end_session, is_gone, remove_orphans

WATCH_S = 0.5  # between two checks of the processes that must live
END_S = 5.0


class Guard:
    """The guard of this process.

    Args:
        grace_s: for the child to end by itself, when this process is gone.
        environment: in which the guard finds these packages.
    """

    def __init__(self, grace_s: float, environment: Mapping[str, str]):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "actors.hosting.guard", str(os.getpid()), str(grace_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for this process alone
            env=environment,
        )

    def watch(self, child: int) -> None:
        """Send the guard the id of the child, which leads a session."""
        self._write(child)

    def close(self) -> None:
        """Send the guard that nothing is left to do."""
        self._write(0)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _write(self, number: int) -> None:
        with suppress(OSError):  # the guard was killed
            if self._process.stdin is not None and not self._process.stdin.closed:
                os.write(self._process.stdin.fileno(), b"%d\n" % number)


def main() -> None:
    """Wait until the program is gone, or sends that nothing is left to do."""
    program, grace_s, child = int(sys.argv[1]), float(sys.argv[2]), 0
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.getppid() == program:  # others may hold the pipe too: what the program has forked
        if select.select([0], [], [], WATCH_S)[0]:
            received = os.read(0, 4096).split()
            if not received:
                break
            child = int(received[-1])
            if not child:
                return
    end = time.monotonic() + grace_s
    while child and not is_gone(child) and time.monotonic() < end:
        time.sleep(0.05)
    if child:
        end_session(child)
    remove_orphans()


if __name__ == "__main__":
    main()
