"""A process that outlives this one: when this is gone, it ends the child that drives Ray and removes what that leaves.

    python -m actors.hosting.guard PROGRAM GRACE_S

A program that is killed cannot do that, and the child cannot be relied on: Ray ends it as soon as its raylet is gone.
"""  # fmt: skip

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress

from actors.hosting.leftovers import end_session, is_gone, remove_orphans

WATCH_S = 0.5  # between two looks at what must live
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
        """Tell it the child, which leads a session."""
        self._tell(child)

    def close(self) -> None:
        """Tell it that there is nothing left to do."""
        self._tell(0)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _tell(self, number: int) -> None:
        with suppress(OSError):  # somebody has killed it
            if self._process.stdin is not None and not self._process.stdin.closed:
                os.write(self._process.stdin.fileno(), b"%d\n" % number)


def main() -> None:
    """Wait until the program is gone, or says that there is nothing left to do."""
    program, grace_s, child = int(sys.argv[1]), float(sys.argv[2]), 0
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.getppid() == program:  # others may hold the pipe too: what the program has forked
        if select.select([0], [], [], WATCH_S)[0]:
            told = os.read(0, 4096).split()
            if not told:
                break
            child = int(told[-1])
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
