"""Run directories: locked by the process that writes them, and `finished` when all files are on the disk.

At whatever moment a process dies, its directory is finished and complete, or can be resumed:

1. ``manifest.json`` says ``running``; ``config.toml`` follows.
2. Results are written, a file at a time, under another name first. Checkpoints stay.
3. Results are flushed to the disk, and the manifest gets their sha256. From here on the run is done.
4. Checkpoints are removed.
5. The manifest says ``finished``.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from actors.hosting.interrupts import Lost
from emu.directories import locks
from emu.directories.locks import LOCK, Found
from emu.directories.manifest import (
    FAILED,
    FINISHED,
    INTERRUPTED,
    MANIFEST,
    RUNNING,
    damaged,
    read_manifest,
    results_of,
    write_manifest,
)
from emu.directories.names import CHECKPOINTS, CONFIG
from emu.disk import BEGUN, flush, remove_begun, write_text
from workloads.errors import InputError, NotWritten, UnavailableError, not_written
from workloads.file_extensions import FOLDER, check_extension

# Claiming.


@contextmanager
def claimed(
    out: str | Path, manifest: Mapping[str, Any], config: str, *, overwrite: bool = False
) -> Iterator[Path]:
    """Within, a new run directory is locked by this process, has its configuration, and is `running`.

    `overwrite` removes an earlier run that is there. Raise `InputError`, which names ``--out``, if the directory holds
    something, has the name of a file, is run by a process that is alive, or cannot be written.
    """
    out = Path(out)
    check_extension(out, "a folder, a run directory", FOLDER, "--out")
    make_room = check_empty
    if overwrite:
        from emu.directories.overwriting import clear as make_room
    claim(out, manifest, config, make_room)
    try:
        with running(out):
            yield out
    finally:
        locks.release(out)


@contextmanager
def claimed_new(
    name: str, manifest: Mapping[str, Any], config: str, root: str | Path = "runs"
) -> Iterator[Path]:
    """Claim ``root/name`` as `claimed` does, or ``root/name-2``, … where that is taken."""
    name = safe_name(name)
    number = 1
    while True:
        out = Path(root) / (name if number == 1 else f"{name}-{number}")
        try:
            out.mkdir(parents=True)
            break
        except FileExistsError:
            if not Path(root).is_dir():
                raise InputError(f"--out: {root} is not a directory; give another place with --out") from None
            number += 1
        except OSError as error:
            raise _cannot_claim(out, error) from None
    with claimed(out, manifest, config):
        yield out


@contextmanager
def claimed_again(out: Path, option: str = "--resume") -> Iterator[dict[str, Any]]:
    """Within, the directory of a run that has begun is locked by this process; yield its manifest.

    Raise `InputError`, which names `option`, if a process that is alive runs it, or it cannot be written.
    """
    read_manifest(out)  # nothing is written into other directories
    hold(out, option)
    try:
        remove_begun(out)
        yield read_manifest(out)
    finally:
        locks.release(out)


def check_empty(out: Path) -> None:
    """Refuse a directory that holds something; the error states what can be done with it."""
    there = _names(out)
    if not there:
        return
    if MANIFEST not in there:
        raise InputError(f"--out: {out} is not empty; choose another directory")
    raise InputError(f"--out: {out} {_what_to_do(out)}")


def claim(
    out: Path, manifest: Mapping[str, Any], config: str, make_room: Callable[[Path], None] = check_empty
) -> None:
    """Lock a new run directory, call `make_room`, and record that it is running; `locks.release` must follow."""
    try:
        if make_room is check_empty and out.is_dir():  # before anything is written there
            check_empty(out)
        out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise _cannot_claim(out, error) from None
    hold(out, "--out")
    try:
        remove_begun(out)
        make_room(out)
        begin(out, manifest)
        write_text(out / CONFIG, config)
    except BaseException as error:
        locks.release(out)
        if isinstance(error, OSError | NotWritten):
            raise _cannot_claim(out, error) from None
        raise


def hold(out: Path, option: str) -> None:
    """Lock a directory, or refuse it because a process that is alive runs it; `option` is the option that named it."""
    try:
        found = locks.acquire(out)
    except OSError as error:
        raise _cannot_claim(out, error, option) from None
    process = None
    with suppress(InputError):  # a manifest that is damaged, or missing, names no process
        manifest = read_manifest(out)
        process = manifest.get("process") if manifest.get("status") == RUNNING else None
    if found is Found.HELD:
        raise InputError(f"{option}: {out} is being run by {_holder(out, process)}")
    if found is not Found.FREE and (who := _may_be_alive(process, found)):
        locks.release(out, remove=False)
        raise InputError(f"{option}: {out} is being run by {who}; if that is gone, remove {out / LOCK}")
    locks.sign(out, json.dumps(_this_process()))


def _holder(out: Path, process: Any) -> str:
    """Return in words which process holds a directory: by its lock file, or, before that is written, its manifest."""
    with suppress(ValueError, RecursionError):
        process = json.loads(locks.signed(out))
    return _described(process) or "another process"


def _names(out: Path) -> set[str]:
    """Return what a directory holds, except for the files of a process that was killed while it claimed it."""
    return {name for name in os.listdir(out) if name != LOCK and not BEGUN.fullmatch(name)}


def _cannot_claim(out: Path, error: Exception, option: str = "--out") -> InputError:
    if isinstance(error, OSError | ValueError):
        error = not_written(error, out)
    kind = NotWritten if isinstance(error, NotWritten) else InputError
    return kind(f"{option}: {out} {getattr(error, 'message', error)}")


def _what_to_do(out: Path) -> str:
    """Return what a directory with a manifest holds, and what can be done with it."""
    otherwise = "choose another directory, or give --overwrite"
    try:
        manifest = read_manifest(out)
    except InputError:
        return f"holds a run whose {MANIFEST} is damaged; {otherwise}"
    if manifest.get("status") == FINISHED:
        return f"holds a {manifest.get('what', 'run')} that is finished; {otherwise}"
    if locks.is_held(out):
        process = _described(manifest.get("process")) or "another process"
        return f"is being run by {process}; choose another directory"
    return f"holds {not_finished(out, manifest)}; else {otherwise}"


def not_finished(out: Path, manifest: Mapping[str, Any]) -> str:
    """Return as text how a run ended that did not finish, and how to resume it."""
    what = manifest.get("what", "run")
    became = {INTERRUPTED: "was interrupted", FAILED: "failed"}.get(str(manifest.get("status")), "was killed")
    return f"a {what} that {became}; {how_to_resume(out, manifest)}"


def how_to_resume(out: Path, manifest: Mapping[str, Any]) -> str:
    """Return as text how to resume a directory."""
    if "what" in manifest:  # a sweep or a search is resumed by the same command
        return f"the same command resumes {out}"
    does = "resumes it"
    if manifest.get("config", {}).get("clock") == "live":
        does = "runs it again from the beginning, as the clock live cannot resume"
    return f"emu {_command(manifest)} --resume {shlex.quote(str(out))} {does}"


def _command(manifest: Mapping[str, Any]) -> str:
    """Return the command that makes the run of a manifest."""
    return "compare" if any(run.startswith("scheduler=") for run in manifest.get("runs", ())) else "run"


def begin(out: Path, manifest: Mapping[str, Any]) -> None:
    """Record that this process runs a directory which it has locked."""
    lost = ("results", "bytes", "error", "failures")  # of an earlier attempt
    kept = {name: value for name, value in manifest.items() if name not in lost}
    write_manifest(out, {**kept, "status": RUNNING, "process": _this_process()})


# The process that writes a directory, as manifest and lock name it.


def _this_process() -> dict[str, Any]:
    """Return the entries of a manifest and a lock file about this process."""
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": round(time.time(), 3)}


def _described(process: Any) -> str | None:
    """Return in words the process that a manifest names."""
    try:
        pid, host, since = int(process["pid"]), str(process["host"]), float(process["since"])
        return f"process {pid} on {host} since {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(since))}"
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def _may_be_alive(process: Any, found: Found) -> str | None:
    """Return in words the process that had a directory, if it may still run although its lock is not seen."""
    if (shown := _described(process)) is None:
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
    is_later = began is not None and began > process["since"] + 1  # a later process with that id
    return None if is_later else shown


def _began_at(pid: int) -> float | None:
    """Return when a process began, in seconds of the epoch; None where the system does not report it."""
    try:
        boot = re.search(r"^btime (\d+)", Path("/proc/stat").read_text(), re.MULTILINE)
        ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return None
    return int(boot[1]) + ticks / os.sysconf("SC_CLK_TCK") if boot else None


# How it ends.


@contextmanager
def running(out: Path) -> Iterator[Path]:
    """Within, the claimed directory is being run; if it ends early, the manifest then states how."""
    try:
        yield out
    except KeyboardInterrupt as error:
        manifest = mark(out, INTERRUPTED)
        error.args = (how_to_resume(out, manifest),) if manifest else ()
        raise
    except NotWritten as error:
        manifest = mark(out, FAILED, str(error))
        if manifest is None:
            raise
        raise error.with_advice(f"when there is room, {how_to_resume(out, manifest)}") from None
    except UnavailableError as error:  # Ray, or a node of it, has gone in the middle of the run
        manifest = mark(out, FAILED, one_line(error))
        if manifest is None or not has_checkpoint(out):
            raise
        raise UnavailableError(f"{error}; {how_to_resume(out, manifest)}") from None
    except Lost as error:
        manifest = mark(out, FAILED, str(error))
        raise Lost(f"{error}; {how_to_resume(out, manifest)}" if manifest else str(error)) from None
    except BaseException as error:
        mark(out, FAILED, one_line(error))
        raise


def mark(out: Path, status: str, error: str | None = None) -> dict[str, Any] | None:
    """Record that a run has ended early, unless it had ended; return its manifest, if it can be read.

    Where the manifest cannot be written it keeps the status `running` without a lock: the run can be resumed too.
    """
    try:
        found = read_manifest(out)
        if found.get("status") != RUNNING:
            return found
        manifest = {name: value for name, value in found.items() if name != "process"}
        describe = {} if error is None else {"error": error}
        write_manifest(out, {**manifest, "status": status, **describe})
    except InputError:
        with suppress(InputError):
            return read_manifest(out)
        return None
    return manifest


def one_line(error: BaseException) -> str:
    """Return an error in one line."""
    kind = "" if isinstance(error, InputError | RuntimeError) else f"{type(error).__name__}: "
    return " ".join(f"{kind}{error}".split()) or type(error).__name__


def conclude(
    out: Path, manifest: Mapping[str, Any], names: Iterable[str], status: str = FINISHED
) -> dict[str, Any]:
    """Record that a directory's run is finished, and return its manifest; `names` are its files.

    They are on the disk before the manifest lists them, and checkpoints are there until then.
    """
    names = list(names)
    for name in names:
        flush(out / name)
    flush(out)
    done = {**manifest, **results_of(out, names), "status": status}
    if (out / CHECKPOINTS).exists():
        write_manifest(out, {**done, "status": RUNNING, "process": _this_process()})
    return _finish(out, done)


def has_checkpoint(out: Path) -> bool:
    """Return whether a directory holds a checkpoint, sound or not."""
    return any(path.name.isdigit() for path in (out / CHECKPOINTS).glob("*"))


def settle(out: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Finish the end of a run whose process was killed after its results were on the disk; return the manifest."""
    if manifest.get("status") == FINISHED:
        if (out / CHECKPOINTS).exists():  # of an earlier version
            shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
        return dict(manifest)
    if "results" not in manifest or "failures" in manifest or damaged(out, manifest) is not None:
        return dict(manifest)
    return _finish(out, {**manifest, "status": FINISHED})


def remove_leftovers(out: Path) -> None:
    """Remove locks and checkpoints of processes that were killed at their end, in and below a directory."""
    for place in {path.parent for name in (LOCK, CHECKPOINTS) for path in out.rglob(name)}:
        with suppress(InputError):  # it is being run, or cannot be written
            if is_finished(place):
                with claimed_again(place) as found:
                    settle(place, found)


def _finish(out: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
    remove_begun(out)
    done = {name: value for name, value in manifest.items() if name not in ("process", "error")}
    write_manifest(out, done)
    return done


# What it holds.


def is_finished(out: Path) -> bool:
    """Return whether a directory holds a finished run, by its manifest."""
    return (out / MANIFEST).exists() and read_manifest(out).get("status") == FINISHED


def check_results(out: Path, manifest: Mapping[str, Any], optional: Iterable[str] = ()) -> None:
    """Refuse a directory whose run did not finish, or in which a file differs from what the run wrote."""
    concluded = manifest.get("failures") and "results" in manifest  # some of many runs failed
    if manifest.get("status") != FINISHED and not concluded:
        if locks.is_held(out):
            who = _holder(out, manifest.get("process"))
            raise InputError(f"is being run by {who}: not finished", file=out)
        raise InputError(f"holds {not_finished(out, manifest)}", file=out)
    if (wrong := damaged(out, manifest, optional)) is None:
        return
    place = shlex.quote(str(out))
    if "what" in manifest:
        again = "the same command makes it again"
    elif "runs" in manifest:
        again = f"emu {_command(manifest)} --resume {place} makes it again"
    elif wrong.startswith(CONFIG):
        again = "run it again in another directory"
    else:
        again = f"emu run --config {shlex.quote(str(out / CONFIG))} --out {place} --overwrite runs it again"
    raise InputError(f"{wrong} (its sha256 is in {MANIFEST}); restore it, or {again}", file=out)


def safe_name(text: str) -> str:
    """Return a name as it can be part of a path."""
    return re.sub(r"[^A-Za-z0-9._=+-]+", "-", text).strip("-.") or "run"
