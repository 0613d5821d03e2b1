"""Public traces, downloaded once into a folder of the user's, or placed there by hand.

A trace lies in ``FOLDER/NAME``; FOLDER is EMU_DATA_DIR, else ``emu/data`` in the user's cache folder. A file with the
published checksum and size is used, whoever placed it there. So a trace can be copied to a machine without a network,
and a data folder that is served over HTTP is a mirror for others.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from workloads.errors import InputError
from workloads.public.http_file import (
    MOST_BYTES,
    TIMEOUT_S,
    UnavailableError,
    download,
    new_session,
    part_of,
    refuse_no_room,
)
from workloads.public.traces import PublicFile, PublicTrace, public_trace
from workloads.readers.report import Progress
from workloads.units import format_quantity

if TYPE_CHECKING:
    from requests import Session

Tell = Callable[[str], None]
_CHECKSUMS_BYTES = 16 << 20


def data_folder() -> Path:
    """Return the folder of public traces: EMU_DATA_DIR, else ``emu/data`` in the user's cache folder."""
    if named := os.environ.get("EMU_DATA_DIR"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "emu" / "data"


def fetch(
    trace: str | PublicTrace,
    *,
    folder: str | Path | None = None,
    progress: Progress | None = None,
    tell: Tell = print,
    mirror: str | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Path:
    """Download a public trace if it is not there yet; return its file, or its folder if it has several.

    Prints size and licence first, then what was done, the place of the trace and the command that reads it.
    The next call continues a download that broke off or was interrupted.

    Parameters
    ----------
    trace : str or PublicTrace
        A name of `public_traces`.
    folder : path, optional
        By default `data_folder()`; the trace lies in a folder of its name below it.
    progress : callable, optional
        Called with the name of the download, the bytes done and the bytes in all (0 if not known).
    tell : callable
        Called with lines for the user.
    mirror : str, optional
        http or https address of another data folder, the source in place of the trace's own.
    timeout_s : float
        The longest silence of a server.

    Raises
    ------
    UnavailableError
        The source of a file does not answer; the message states where to place the file by hand.
    InputError
        No such trace; a program cannot download it; a file is not the published one; the disk is full or read-only.
    """
    trace = public_trace(trace) if isinstance(trace, str) else trace
    if mirror is not None:
        trace = _mirrored(trace, mirror)
    place = (data_folder() if folder is None else Path(folder)).expanduser() / trace.name
    for line in describe(trace):
        tell(line)
    try:
        place.mkdir(parents=True, exist_ok=True)
        with _alone(place, tell), new_session() as session:
            if trace.files:
                _fetch_files(trace, place, session, progress, tell, timeout_s)
            elif not (found := _files_in(place)):
                raise InputError(f"{trace.name} cannot be downloaded by a program; {by_hand(trace, place)}")
            else:
                tell(f"{_count(len(found), 'file')} there, placed by hand; nothing to check by")
    except KeyboardInterrupt:
        tell(f"interrupted; what was downloaded stays in {place}, and the same command continues from there")
        raise
    except OSError as error:
        raise _not_written(error, place) from error
    for line in next_commands(trace, place):
        tell(line)
    return place / trace.files[0].path if len(trace.files) == 1 else place


def describe(trace: PublicTrace) -> list[str]:
    """Return the lines before a download: what the trace is, its size, its licence, its page."""
    return [
        f"{trace.name}: {trace.what}",
        f"size: {size_text(trace)}; licence: {trace.licence}",
        f"source: {trace.page}",
    ]


def size_text(trace: PublicTrace) -> str:
    """Return the size of a trace and the number of its files, as text."""
    exact = trace.exact_size_bytes
    if exact is not None:
        size = _format_size(exact)
    elif trace.size_bytes is not None:
        size = f"about {_format_size(trace.size_bytes)}"
    else:
        size = "not published"
    return f"{size} ({len(trace.files)} files)" if len(trace.files) > 1 else size


def by_hand(trace: PublicTrace, place: Path, file: PublicFile | None = None) -> str:
    """Return how a user places a trace, or the `file` of it that could not be downloaded, without this program."""
    if trace.by_hand or file is None:
        return f"by hand: {trace.by_hand.replace('FOLDER', str(place))} (see {trace.page})"
    if len(trace.files) == 1:
        return f"by hand: get this file (see {trace.page}) and place it as {place / file.path}"
    return (
        f"by hand: get its {len(trace.files)} files (see {trace.page}) and place them below {place}, "
        f"this one as {file.path}"
    )


def next_commands(trace: PublicTrace, place: Path) -> list[str]:
    """Return the lines after a download: the place of the trace, and the command that makes a workload of it."""
    if len(trace.files) == 1:
        place = place / trace.files[0].path
    lines = [f"it is in {place}"]
    source = place
    if trace.reads == "file" and place.is_dir():
        found = _files_in(place)
        source = found[0]
        if len(found) > 1:
            lines.append(f"each of its {len(found)} files is a source of its own")
    return [
        *lines,
        f"next: emu workload convert {shlex.quote(str(source))} {trace.name} --from {trace.format}",
    ]


def _format_size(size_bytes: float) -> str:
    return format_quantity(size_bytes, "B", digits=3)


def _fetch_files(
    trace: PublicTrace,
    place: Path,
    session: Session,
    progress: Progress | None,
    tell: Tell,
    timeout_s: float,
) -> None:
    """Download the files of a trace that are missing; check all by the published sizes and checksums."""
    published = _published_checksums(trace, place, session, tell, timeout_s)
    files = [replace(f, sha256=f.sha256 or published.get(f.path)) for f in trace.files]
    there = [f for f in files if (place / f.path).exists()]
    missing = [f for f in files if not (place / f.path).exists()]
    _check(place, there, tell)
    if missing:
        in_all = trace.exact_size_bytes or trace.size_bytes or 0
        done = _bytes_of(place / f.path for f in there)
        parts = _bytes_of(part for f in missing if (part := part_of(place / f.path)).exists())
        refuse_no_room(place, in_all - done - parts)
        received = 0
        for at, file in enumerate(missing, 1):
            label = trace.name if len(missing) == 1 else f"{trace.name}, file {at} of {len(missing)}"
            (place / file.path).parent.mkdir(parents=True, exist_ok=True)
            shown = None if progress is None else partial(_show, progress, label, done, in_all)
            try:
                received += download(
                    file.url,
                    place / file.path,
                    sha256=file.sha256,
                    size_bytes=file.size_bytes,
                    most_bytes=MOST_BYTES if trace.size_bytes is None else 2 * trace.size_bytes,
                    session=session,
                    progress=shown,
                    timeout_s=timeout_s,
                )
            except UnavailableError as error:
                raise UnavailableError(
                    f"{error.message}; {by_hand(trace, place, file)}", file=error.file
                ) from error
            done += _bytes_of([place / file.path])
        tell(f"downloaded {_count(len(missing), 'file')}: {_format_size(received)}")
    unknown = sum(f.sha256 is None for f in files)
    if unknown:
        tell(f"no published checksum for {_count(unknown, 'file')}; only the size was checked, where known")


def _show(progress: Progress, label: str, done: int, in_all: int, have: int, total: int) -> None:
    """Report the bytes of all files, or of this file where the size of all is not known."""
    if in_all:
        progress(label, done + have, max(in_all, done + total))
    else:
        progress(label, have, total)


def _bytes_of(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def _check(place: Path, files: list[PublicFile], tell: Tell) -> None:
    """Refuse a file that is not the published one; it may be the user's own, so it stays."""
    if files:
        tell(f"{_count(len(files), 'file')} there already; checking")
    for file in files:
        target = place / file.path
        size = target.stat().st_size
        if file.size_bytes is not None and size != file.size_bytes:
            raise InputError(
                f"is not the published file: want {file.size_bytes} bytes, it has {size}; "
                "remove it and run the command again",
                file=target,
            )
        if file.sha256 is not None:
            with target.open("rb") as opened:
                have = hashlib.file_digest(opened, "sha256").hexdigest()
            if have != file.sha256:
                raise InputError(
                    f"is not the published file: want sha256 {file.sha256}, it has {have}; "
                    "remove it and run the command again",
                    file=target,
                )
    if files:
        tell(f"right{'' if all(f.sha256 for f in files) else ' as far as is known'}: not downloaded again")


def _published_checksums(
    trace: PublicTrace, place: Path, session: Session, tell: Tell, timeout_s: float
) -> dict[str, str]:
    """Return path to sha256 from the trace's published list, which is downloaded once; {} without such a list."""
    if trace.checksums is None:
        return {}
    path = place / trace.checksums.path
    if not path.exists():
        try:
            download(
                trace.checksums.url, path, most_bytes=_CHECKSUMS_BYTES, session=session, timeout_s=timeout_s
            )
        except UnavailableError as error:
            tell(f"its published checksums are not available: {error}")
            return {}
    listed = re.findall(
        r"^([0-9a-f]{64}) [ *](?:\./)?(.+?)\r?$", path.read_text(encoding="utf-8", errors="replace"), re.M
    )
    return {name: sha256 for sha256, name in listed}


def _mirrored(trace: PublicTrace, mirror: str) -> PublicTrace:
    """Return the trace with addresses below another's data folder."""
    if urlsplit(mirror).scheme not in ("http", "https"):
        raise InputError(f"{mirror!r} is not an address that begins with http:// or https://", field="mirror")
    base = f"{mirror.rstrip('/')}/{quote(trace.name)}"

    def moved(file: PublicFile) -> PublicFile:
        return replace(file, url=f"{base}/{quote(file.path)}")

    return replace(
        trace,
        files=tuple(moved(f) for f in trace.files),
        checksums=None if trace.checksums is None else moved(trace.checksums),
    )


@contextlib.contextmanager
def _alone(place: Path, tell: Tell) -> Iterator[None]:
    """Lock the trace's folder against other processes; the operating system unlocks it when a process dies."""
    try:
        lock = (place / ".lock").open("a")
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        yield  # a read-only folder: its files can be used
        return
    with lock as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("another process is fetching it; waiting for that one to end")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _files_in(place: Path) -> list[Path]:
    """Return the files below a folder by name, without hidden files and parts of downloads."""
    ours = (".part", ".part.version")
    found = (p for p in sorted(place.rglob("*")) if p.is_file())
    return [p for p in found if not p.name.startswith(".") and not p.name.endswith(ours)]


def _not_written(error: OSError, place: Path) -> InputError:
    what = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        what += "; what was downloaded stays, and the same command continues from there"
    return InputError(f"{what}; EMU_DATA_DIR names another folder", file=error.filename or place)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
