"""Locks on run directories: one process at a time writes a directory, and a lock ends with its process.

``DIR/.lock`` is locked by flock(2), which the system undoes when the process ends, however it ends. So neither a
process id that is used again nor a killed process leaves a directory locked. Over NFS the lock holds between
machines; where a file system has no locks, only the process that the file names is known.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path

LOCK = ".lock"
_PATIENCE_S = 0.2
_held: dict[str, int] = {}
"""Real path of each directory that this process holds to the open lock file."""


class Found(Enum):
    """The result of an attempt to lock a directory.

    FREE: no process had it. LEFT: a process had it and ended without releasing it: it was killed, or runs on a
    machine whose locks are not seen here. UNKNOWN: the same, and the file system has no locks, so it may run here
    too. HELD: it is locked, by a process that runs.
    """

    FREE = "free"
    LEFT = "left"
    UNKNOWN = "unknown"
    HELD = "held"


def acquire(folder: Path) -> Found:
    """Lock a directory for this process, unless the result is HELD; raise OSError if the lock file cannot be made."""
    name = os.path.realpath(folder)
    if name in _held:
        return Found.HELD
    end = time.monotonic() + _PATIENCE_S  # `is_held` has a lock for an instant
    while True:
        handle, is_new = _open(folder / LOCK)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            if time.monotonic() >= end:
                return Found.HELD
            time.sleep(_PATIENCE_S / 10)
            continue
        except OSError:
            _held[name] = handle
            return Found.FREE if is_new else Found.UNKNOWN
        if _is_there(handle, folder / LOCK):
            _held[name] = handle
            return Found.FREE if is_new else Found.LEFT
        os.close(handle)  # its holder removed it meanwhile


def is_held(folder: Path) -> bool:
    """Return whether a running process has locked a directory; nothing is written there."""
    if os.path.realpath(folder) in _held:
        return True
    try:
        handle = os.open(folder / LOCK, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


def sign(folder: Path, text: str) -> None:
    """Write the description of this process into the lock file of a directory that it holds."""
    handle = _held[os.path.realpath(folder)]
    with suppress(OSError):  # a full disk: writing the manifest reports it, a little later
        os.ftruncate(handle, 0)
        os.pwrite(handle, text.encode(), 0)


def signed(folder: Path) -> str:
    """Return what is written in the lock file of a directory."""
    with suppress(OSError):
        handle = os.open(folder / LOCK, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(handle, 200).decode("ascii", "replace")
        finally:
            os.close(handle)
    return ""


def release(folder: Path, remove: bool = True) -> None:
    """Unlock a directory, if this process holds it; `remove` the lock file, so that the next process finds it FREE."""
    handle = _held.pop(os.path.realpath(folder), None)
    if handle is None:
        return
    if remove:
        with suppress(OSError):
            os.unlink(folder / LOCK)
    os.close(handle)


def _open(path: Path) -> tuple[int, bool]:
    """Open a lock file, and return whether it was not there before."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    while True:
        try:
            return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666), True
        except FileExistsError:
            try:
                return os.open(path, flags), False
            except FileNotFoundError:
                continue  # removed meanwhile
            except OSError as error:
                if error.errno in (errno.EACCES, errno.EROFS):  # another user's: enough for most locks
                    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW), False
                raise


def _is_there(handle: int, path: Path) -> bool:
    """Return whether an open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def _forget() -> None:
    """Release the lock in a forked child: the child does not write, and must not keep the lock alive."""
    for handle in _held.values():
        with suppress(OSError):
            os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_forget)


def empty(out: Path, keep: Sequence[str] = (LOCK,)) -> None:
    """Remove what a locked directory holds, except for the files in `keep`."""
    for name in os.listdir(out):
        if name not in keep:
            path = out / name
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
