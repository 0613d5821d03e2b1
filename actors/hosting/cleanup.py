"""Removal of what killed processes leave on this machine: other processes, folders, semaphores.

Ray's compiled graphs make named semaphores, `/dev/shm/sem.hdrPID-NS` and `sem.objPID-NS` with the id of the raylet, and
Ray does not remove those of a raylet that was killed. Names of temporary folders have the id of the process
that made them. Only what belongs to processes that are gone is removed, and only this user's.
"""

import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
PROCESSES = Path("/proc")
_SEMAPHORE = re.compile(r"sem\.(?:hdr|obj)(\d+)-\d+")
_FOLDER = re.compile(r"emu-(?:ray|checkpoints)-(\d+)-.*")
KILL_S = 5.0  # for processes that were killed to be gone


def temporary_folder(what: str, short: bool = False) -> Path:
    """Make a temporary folder, with `what` ("ray", "checkpoints") and this process's id in its name.

    Args:
        short: below /tmp where there is one: a socket's path may have 107 bytes.
    """
    place = "/tmp" if short and os.access("/tmp", os.W_OK) else tempfile.gettempdir()
    return Path(tempfile.mkdtemp(prefix=f"emu-{what}-{os.getpid()}-", dir=place))


@contextmanager
def temporary(what: str) -> Iterator[Path]:
    """Yield a temporary folder that is removed at the end."""
    folder = temporary_folder(what)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_orphans() -> None:
    """Remove the folders and semaphores of processes that are gone."""
    for place in {Path("/tmp"), Path(tempfile.gettempdir())}:
        for path in _own(place, _FOLDER):
            shutil.rmtree(path, ignore_errors=True)
    for path in _own(SHARED_MEMORY, _SEMAPHORE):
        path.unlink(missing_ok=True)


def _own(place: Path, pattern: re.Pattern[str]) -> list[Path]:
    """Return this user's files in a folder whose names have the id of a process that is gone."""
    found = []
    with suppress(OSError):
        for entry in os.scandir(place):
            match = pattern.fullmatch(entry.name)
            with suppress(OSError):
                if (
                    match
                    and entry.stat(follow_symlinks=False).st_uid == os.getuid()
                    and is_gone(int(match[1]))
                ):
                    found.append(Path(entry.path))
    return found


def is_gone(pid: int) -> bool:
    """Return whether there is no such process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # another user's
        return False
    return _state(pid)[0] == "Z"  # it has ended, and its parent has not asked how


def has_dead_child(parent: int, names: tuple[str, ...]) -> bool:
    """Return whether a child of a process with one of these names has ended; False where there is no /proc."""
    if not PROCESSES.is_dir():
        return False
    dead = [pid for pid in _pids() if _state(pid)[:2] == ["Z", str(parent)]]
    for pid in dead:
        with suppress(OSError):
            if (PROCESSES / str(pid) / "comm").read_text().strip() in names:
                return True
    return False


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


def _state(pid: int) -> list[str]:
    """Return state, parent, process group and session of a process, as /proc has them; "Z" of one that is gone."""
    try:
        return (PROCESSES / str(pid) / "stat").read_text().rpartition(")")[2].split()[:4]
    except OSError:
        return ["Z"] if PROCESSES.is_dir() else ["?"]
