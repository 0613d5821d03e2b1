"""Removal of what killed processes leave on this machine: other processes, folders.

    python -m actors.hosting.cleanup PROGRAM GRACE_S

This is the guard, a process that outlives the program: it then ends the child that drives Ray, and removes what that
leaves. A program that is killed cannot do that, nor can the child: Ray ends it as soon as its raylet is gone.

A temporary folder is locked by flock(2) while the process that made it lives; process ids do not suffice, as containers
that share a folder number their processes independently. Only this user's folders are removed.
"""  # fmt: skip

import atexit
import fcntl
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

PROCESSES = Path("/proc")
_FOLDER = re.compile(r"emu_(?:ray|checkpoints|events|explain)_.*")
KILL_S = 5.0  # for processes that were killed to be gone
WATCH_S = 0.5  # between two checks of the processes that must live
END_S = 5.0  # for a guard to end, when nothing is left to do
_held: dict[Path, int] = {}
"""Temporary folders of this process to the open files by which they are locked."""


def temporary_folder(what: str, short: bool = False, make: Callable[..., str] = tempfile.mkdtemp) -> Path:
    """Make a temporary folder of this process, with `what` ("ray", "checkpoints") in its name.

    Folders of dead processes are removed first; this one is removed at the end of the process, or by `remove_folder`.
    `short` makes it below /tmp if possible, as the path of a socket may have 107 bytes. `make` is called with a prefix
    and the folder above it.
    """
    remove_orphans()
    place = "/tmp" if short and os.access("/tmp", os.W_OK) else tempfile.gettempdir()
    while True:
        folder = Path(make(prefix=f"emu_{what}_", dir=place))
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:  # another process removed it as an orphan, before it was locked
            continue
        with suppress(OSError):  # a file system without locks, where nothing is removed for others
            fcntl.flock(handle, fcntl.LOCK_EX)
        if _is_there(handle, folder):
            _held[folder] = handle
            return folder
        os.close(handle)  # removed while it was being locked


def remove_folder(folder: Path) -> None:
    """Remove a temporary folder of this process."""
    handle = _held.pop(folder, None)
    shutil.rmtree(folder, ignore_errors=True)
    if handle is not None:
        os.close(handle)


@contextmanager
def temporary(what: str) -> Iterator[Path]:
    """Yield a temporary folder that is removed at the end."""
    folder = temporary_folder(what)
    try:
        yield folder
    finally:
        remove_folder(folder)


def remove_orphans() -> None:
    """Remove the temporary folders of processes that are gone."""
    for place in {Path("/tmp"), Path(tempfile.gettempdir())}:
        for folder in _own(place):
            with suppress(OSError):
                handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(handle)


def _own(place: Path) -> list[Path]:
    """Return this user's temporary folders of this program in a folder."""
    found = []
    with suppress(OSError):
        for entry in os.scandir(place):
            with suppress(OSError):
                if _FOLDER.fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_uid == os.getuid():
                    found.append(Path(entry.path))
    return found


def _is_there(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def _at_exit() -> None:
    for folder in list(_held):
        remove_folder(folder)


def _after_fork() -> None:
    """Leave the folders to the parent: a forked child must neither remove them nor keep them locked."""
    for handle in _held.values():
        with suppress(OSError):
            os.close(handle)
    _held.clear()


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_after_fork)


def is_gone(pid: int) -> bool:
    """Return whether there is no such process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # another user's
        return False
    return _state(pid)[0] == "Z"  # it has ended, and its parent has not waited for it


def is_stopped(pid: int) -> bool:
    """Return whether a process was stopped by a signal, and not continued."""
    return _state(pid)[0] in "Tt"


def has_dead_child(parent: int, names: tuple[str, ...]) -> bool:
    """Return whether a child of a process with one of these names has ended; False where there is no /proc."""
    if not PROCESSES.is_dir():
        return False
    dead = [pid for pid in _pids() if _state(pid)[:2] == ["Z", str(parent)]]
    return any(_name(pid) in names for pid in dead)


def end_session(leader: int) -> None:
    """Kill all other processes of the session that a process leads, or led; return when they are gone.

    Where there is no /proc: the process group that it leads.
    """
    end = time.monotonic() + KILL_S
    if not PROCESSES.is_dir():
        with suppress(OSError):
            os.killpg(leader, signal.SIGKILL)
        return
    while members := [pid for pid in _pids() if pid != os.getpid() and _state(pid)[3:4] == [str(leader)]]:
        living = [pid for pid in members if _state(pid)[0] != "Z"]
        for pid in living:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not living or time.monotonic() > end:
            return
        time.sleep(0.01)


def _pids() -> list[int]:
    return [int(name) for name in os.listdir(PROCESSES) if name.isdigit()]


def _name(pid: int) -> str:
    with suppress(OSError):
        return (PROCESSES / str(pid) / "comm").read_text().strip()
    return ""


def _state(pid: int) -> list[str]:
    """Return state, parent, process group and session of a process, as /proc has them; "Z" of one that is gone."""
    try:
        return (PROCESSES / str(pid) / "stat").read_text().rpartition(")")[2].split()[:4]
    except OSError:
        return ["Z"] if PROCESSES.is_dir() else ["?"]


class Guard:
    """The guard of this process.

    Args:
        grace_s: for the child to end by itself, when this process is gone.
        environment: in which the guard finds these packages.
    """

    def __init__(self, grace_s: float, environment: Mapping[str, str]):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "actors.hosting.cleanup", str(os.getpid()), str(grace_s)],
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
