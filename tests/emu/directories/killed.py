"""Processes that are killed at a chosen call to the file system: forked, so that they end as a killed one does."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

CALLS = ("replace", "rename", "unlink", "rmdir", "mkdir", "fsync", "open", "write")
"""Of `os`, by which files come, go and reach the disk; `open` counts only where it writes."""


def calls_of(action: Callable[[], Any]) -> int:
    """Return how many such calls an action makes, in a process of its own."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        count = _count(None)
        try:
            action()
        finally:
            _keep["write"](write, str(count[0]).encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return int(text)


def kill_at(number: int, action: Callable[[], Any]) -> None:
    """Run an action in a process that is killed just before call `number`, counted from 0."""
    child = os.fork()
    if not child:
        _count(number)
        try:
            action()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the action makes fewer than {number} calls"


_keep = {name: getattr(os, name) for name in CALLS}


def _count(last: int | None) -> list[int]:
    """Count calls from here on; kill this process at the last one."""
    count = [0]

    def counted(name: str) -> Callable[..., Any]:
        call = _keep[name]

        def counting(*arguments: Any, **more: Any) -> Any:
            if name != "open" or arguments[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                if count[0] == last:
                    os.kill(os.getpid(), signal.SIGKILL)
                count[0] += 1
            return call(*arguments, **more)

        return counting

    for name in CALLS:
        setattr(os, name, counted(name))
    return count
