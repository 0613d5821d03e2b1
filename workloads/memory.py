"""The memory that this process can still take: of the machine, of its container and of its own limit."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path

_CGROUPS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
)
"""For both versions of control groups: the limit, the memory in use, and the part of it that caches files."""


def free_bytes() -> int | None:
    """Return how many bytes of memory are free, whatever limits them most; None where nothing says it."""
    found = []
    for ask in (_of_machine, _of_container, _of_process):
        with suppress(OSError, ValueError, StopIteration):
            found.append(max(ask(), 0))
    return min(found, default=None)


def _of_machine() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("MemAvailable"))) << 10


def _of_container(at: Path = Path("/sys/fs/cgroup")) -> int:
    for limit, used, files in _CGROUPS:
        if (at / limit).exists():
            most = int((at / limit).read_text())  # "max" is not a number: no limit
            lines = (at / used).with_name("memory.stat").read_text().splitlines()
            giving_way = next((int(line.split()[1]) for line in lines if line.startswith(f"{files} ")), 0)
            return most - int((at / used).read_text()) + giving_way
    raise ValueError("no control group")


def _of_process() -> int:
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY:
        raise ValueError("no limit")
    return most - int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
