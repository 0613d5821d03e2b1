"""The process that writes a run directory: how manifest and lock name it, and whether it may still be running."""

from __future__ import annotations

import os
import re
import socket
import time
from pathlib import Path
from typing import Any

from emu.directories.locks import Found


def this_process() -> dict[str, Any]:
    """Return the entries of a manifest and a lock file about this process."""
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": round(time.time(), 3)}


def describe(process: Any) -> str | None:
    """Return in words the process that a manifest names."""
    try:
        pid, host, since = int(process["pid"]), str(process["host"]), float(process["since"])
        return f"process {pid} on {host} since {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(since))}"
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def may_be_alive(process: Any, found: Found) -> str | None:
    """Return in words the process that had a directory, if it may still run although its lock is not seen."""
    if (shown := describe(process)) is None:
        return None
    if process["host"] != socket.gethostname():
        return shown
    if found is Found.LEFT:  # a process of this machine, whose lock would be seen
        return None
    pid = int(process["pid"])
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return None
    except OSError:  # another user's process
        pass
    began = _began_at(pid)
    return (
        None if began is not None and began > process["since"] + 1 else shown
    )  # a later process with that id


def _began_at(pid: int) -> float | None:
    """Return when a process began, in seconds of the epoch; None where the system does not report it."""
    try:
        boot = re.search(r"^btime (\d+)", Path("/proc/stat").read_text(), re.MULTILINE)
        ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return None
    return int(boot[1]) + ticks / os.sysconf("SC_CLK_TCK") if boot else None
