"""Public traces, downloaded once into a folder of the user's, or placed there by hand.

A trace lies in ``FOLDER/NAME``; FOLDER is EMU_DATA_DIR, else ``emu/data`` in the user's cache folder. A file
that is there counts, however it came there, when its checksum and size are as published. So a machine
without a network gets a trace by hand, and a data folder served over HTTP is a mirror for others.
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

if TYPE_CHECKING:
    from requests import Session

Tell = Callable[[str], None]
_CHECKSUMS_BYTES = 16 << 20


def data_folder() -> Path:
    """Return where public traces are kept: EMU_DATA_DIR, else ``emu/data`` in the user's cache folder."""
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
    """Download a public trace, or find that it is there; return its file, or its folder if it has several.

    Size and licence are printed first, then what was done, where the trace is and the command that reads it.
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
        http or https address of a data folder of another, which is asked instead of the trace's own source.
    timeout_s : float
        How long a server may be silent.

    Raises
    ------
    UnavailableError
        A file cannot be had from where it is; the line says where to place it by hand.
    InputError
        No such trace; it cannot be downloaded by a program; a file is not the published one; no room, or no right
        to write.
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
    """Return what a user should know before a download: what it is, its size, its licence, its page."""
    return [
        f"{trace.name}: {trace.what}",
        f"size: {size_text(trace)}; licence: {trace.licence}",
        f"source: {trace.page}",
    ]


def size_text(trace: PublicTrace) -> str:
    """Return how large a trace is, for people, and in how many files it comes."""
    exact = trace.exact_size_bytes
    if exact is not None:
        size = format_size(exact)
    elif trace.size_bytes is not None:
        size = f"about {format_size(trace.size_bytes)}"
    else:
        size = "not published"
    return f"{size} ({len(trace.files)} files)" if len(trace.files) > 1 else size


def by_hand(trace: PublicTrace, place: Path, file: PublicFile | None = None) -> str:
    """Return how a user places a trace, or the `file` of it that could not be had, without this program."""
    if trace.by_hand or file is None:
        return f"by hand: {trace.by_hand.replace('FOLDER', str(place))} (see {trace.page})"
    if len(trace.files) == 1:
        return f"by hand: get this file (see {trace.page}) and place it as {place / file.path}"
    return (
        f"by hand: get its {len(trace.files)} files (see {trace.page}) and place them below {place}, "
        f"this one as {file.path}"
    )


def next_commands(trace: PublicTrace, place: Path) -> list[str]:
    """Return where a fetched trace is, and the command that makes a workload of it."""
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


def format_size(size_bytes: float) -> str:
    """Return a size for people, in powers of 1000.

    Examples
    --------
    >>> format_size(137746), format_size(21.5e9), format_size(12)
    ('138 kB', '21.5 GB', '12 B')
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= scale:
            return f"{size_bytes / scale:.3g} {unit}"
    return f"{size_bytes:.0f} B"


def _fetch_files(
    trace: PublicTrace,
    place: Path,
    session: Session,
    progress: Progress | None,
    tell: Tell,
    timeout_s: float,
) -> None:
    """Have every file of a trace in place, checked as far as anything is published to check it by."""
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
            shown = None if progress is None else partial(_show, progress, label, done, in_all)
            try:
                received += _download(file, place, session, shown, timeout_s, _most_bytes(trace))
            except UnavailableError as error:
                raise UnavailableError(
                    f"{error.message}; {by_hand(trace, place, file)}", file=error.file
                ) from error
            done += _bytes_of([place / file.path])
        tell(f"downloaded {_count(len(missing), 'file')}: {format_size(received)}")
    unknown = sum(f.sha256 is None for f in files)
    if unknown:
        tell(f"no published checksum for {_count(unknown, 'file')}; only the size was checked, where known")


def _download(
    file: PublicFile,
    place: Path,
    session: Session,
    progress: Callable[[int, int], None] | None,
    timeout_s: float,
    most_bytes: int,
) -> int:
    target = place / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    return download(
        file.url,
        target,
        sha256=file.sha256,
        size_bytes=file.size_bytes,
        most_bytes=most_bytes,
        session=session,
        progress=progress,
        timeout_s=timeout_s,
    )


def _most_bytes(trace: PublicTrace) -> int:
    """Return how large a file of a trace can be, where its size is not known: twice what all are said to be."""
    return MOST_BYTES if trace.size_bytes is None else 2 * trace.size_bytes


def _show(progress: Progress, label: str, done: int, in_all: int, have: int, total: int) -> None:
    """Tell how far a file is as part of all; where their size is not known, as of this file."""
    if in_all:
        progress(label, done + have, max(in_all, done + total))
    else:
        progress(label, have, total)


def _bytes_of(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def _check(place: Path, files: list[PublicFile], tell: Tell) -> None:
    """Refuse a file that is there but is not the published one; it may be the user's own, so it stays."""
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
    """Return path to sha256 from the trace's published list, which is downloaded once; {} where there is none."""
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
    """Hold the trace's folder against other processes; the operating system lets go when a process dies."""
    try:
        lock = (place / ".lock").open("a")
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        yield  # a folder that others keep: what is there can be used, and nothing be written
        return
    with lock as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("another process is fetching it; waiting for that one to end")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _files_in(place: Path) -> list[Path]:
    """Return the files below a folder that are the user's or the trace's, by name."""
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
