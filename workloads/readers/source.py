"""Bytes of the files that readers read: plain, gzip, folders and archives, streamed and never unpacked to disk.

The first bytes of a file determine its form, not its name. An archive is not trusted: names of its members are labels
and never paths; links and devices are refused, and so are archives that unpack to far more than any real trace. All
errors of reading are `InputError` and name the file.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, cast

from workloads.errors import InputError
from workloads.hints import did_you_mean, names_beside
from workloads.limits import most_bytes, most_line_bytes, unpacks_to_more
from workloads.readers.report import Progress, Report

BLANK_LINES = 1_000_000
"""The most that a trace has: a few bytes of gzip hold a thousand of them."""

_BUFFER = 1 << 20
_HEADER_LIMIT = 1 << 20  # of a tar's extended headers, which tarfile holds in memory
_PADDING = 64 << 10  # zeros behind gzip
_GZIP = b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_UNREADABLE = (
    OSError, EOFError, ValueError, RuntimeError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile,
)  # fmt: skip
_PACKINGS = {
    rb"BZh[1-9]1AY&SY": "bzip2",
    rb"\xfd7zXZ\0": "xz",
    rb"\x28\xb5\x2f\xfd": "zstd",
    rb"7z\xbc\xaf\x27\x1c": "7z",
}
"""First bytes of packed files that are not unpacked, as regular expressions; and the name of the packing."""
_CONTENTS = {
    rb"\xff\xfe|\xfe\xff": "this is text in UTF-16; save it as UTF-8",
    rb"version https://git-lfs": "this is Git LFS's pointer to a file that was not fetched; git lfs pull fetches it",
    rb"(?i)\s*<(!doctype )?html": "this is a web page; was the download refused?",
    rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "this is a file of Office, such as a workbook of Excel; export it as CSV",
    rb"ARROW1\0\0|\xff\xff\xff\xff.\0\0\0\x10": "this is a file of Arrow (Feather); write the table as Parquet",
    rb"ORC[^\0]{0,12}[\0-\x08\x0e-\x1f]": "this is an ORC file; write the table as Parquet",
    rb"Obj\x01": "this is an Avro file; write the table as Parquet",
    rb"\x89HDF\r\n": "this is an HDF5 file; write the table as Parquet",
    rb"SQLite format 3\0": "this is a database of SQLite; write the table as CSV or Parquet",
    rb"%PDF-": "this is a PDF",
}
"""First bytes of files that are not traces, and the error about them."""
_DOCUMENTS = {
    "xl/workbook.xml": "a workbook of Excel",
    "xl/workbook.bin": "a workbook of Excel",
    "content.xml": "an OpenDocument",
    "word/document.xml": "a document of Word",
}
"""Members of zip archives that are documents."""


@contextmanager
def open_text(
    path: str | Path, report: Report | None = None, progress: Progress | None = None
) -> Iterator[io.BufferedReader]:
    """Open a file, plain or gzip, as a stream of its unpacked bytes.

    Parameters
    ----------
    report : Report, optional
        Gets the number of bytes after all of them were read.
    progress : callable, optional
        Called as the file is read.

    Raises
    ------
    InputError
        On opening and, from the stream, on reading: no such file, not a file, not readable, truncated or
        corrupt gzip, another packing, an archive, or more bytes than `workloads.limits` allows.
    """
    with _open(path, progress) as file:
        if file.head.startswith(_ZIP):
            try:
                _open_zip(file).close()
            except InputError as error:  # a damaged archive, or a document
                raise InputError(error.message, file=path, line=1) from None
            raise InputError("this is a zip archive; want a text file, plain or gzip", file=path, line=1)
        with file.stream() as stream:
            yield stream
            if report is not None and not stream.read(1):
                report.read(f"bytes of {Path(path).name}", file.given)


def read_lines(
    path: str | Path, report: Report | None = None, progress: Progress | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield (1-based number, line with its end) of a file, plain or gzip; errors name file and line."""
    with open_text(path, report, progress) as stream:
        yield from lines_of(stream, path)


def lines_of(stream: io.BufferedReader, place: object) -> Iterator[tuple[int, bytes]]:
    """Yield (1-based number, line with its end) of a stream; errors name `place` and the line."""
    most, number, blank = most_line_bytes(), 0, 0
    try:
        while line := stream.readline(most):
            number += 1
            if len(line) == most:
                raise InputError(
                    f"is longer than {most >> 20} MiB; is this a text file? "
                    "--set workload_options.max_bytes='1 GiB' allows such a line",
                    file=place,
                    line=number,
                )
            if line.isspace():
                blank += 1
                if blank > BLANK_LINES:
                    wrong = f"the {blank:,}st blank line; is this a trace?"
                    raise InputError(wrong, file=place, line=number)
            yield number, line
    except InputError as error:
        if error.line is not None:
            raise
        raise InputError(error.message, file=place, line=number + 1) from None


def open_members(
    path: str | Path,
    report: Report | None = None,
    progress: Progress | None = None,
    wanted: Callable[[str], bool] = lambda name: True,
) -> Iterator[tuple[str, io.BufferedReader]]:
    """Yield (name, stream) of the files in a folder or archive (zip, tar, tar.gz), or of one file itself.

    Files for whose name `wanted` returns False are not opened, and hidden files are left out. A member that is gzip is
    unpacked; archives inside archives are not. A stream can be read until the next one is asked for. Names are
    relative, with slashes, and only labels: do not open them.

    Raises
    ------
    InputError
        As `open_text`; also for a link, a device, an encrypted member or two members of one name in an archive.
        In a folder, links to files are followed, those to folders are not.
    """
    path = Path(path)
    if os.path.isdir(path):  # unlike Path.is_dir no error for a name that is too long
        for name in filter(wanted, _files_below(path)):
            with open_text(path / name, report, progress) as stream:
                yield name, stream
        return
    with _open(path, progress) as file:
        if file.head.startswith(_ZIP):
            yield from _zip_members(file, wanted)
            return
        with file.stream() as stream:
            if _is_tar(path, stream):
                yield from _tar_members(file, stream, wanted)
            elif wanted(name := path.name.removesuffix(".gz")):
                yield name, stream


def member_names(path: str | Path) -> list[str]:
    """Return the names that `open_members` yields, in its order, without reading the files."""
    names: list[str] = []

    def note(name: str) -> bool:
        names.append(name)
        return False

    for _ in open_members(path, wanted=note):
        pass
    return names


def shown(text: bytes | str) -> str:
    """Return a part of a file as an error prints it: short, and without control characters."""
    text = ascii(text if isinstance(text, str) else text.decode("utf-8", "backslashreplace"))
    return text if len(text) <= 40 else f"{text[:36]}…{text[0]}"


class _File:
    """An open file of packed or plain bytes, and how many bytes it has unpacked to."""

    def __init__(self, path: Path, raw: io.BufferedReader, progress: Progress | None) -> None:
        self.path = path
        self.raw = raw
        self.size = os.fstat(raw.fileno()).st_size
        self.head = raw.peek(16)[:16]
        self.given = 0
        self._most = most_bytes(
            self.size
        )  # here: the limits are not set in other threads, which may read the file
        self._progress = progress

    def stream(self) -> io.BufferedReader:
        """Return the file's bytes, unpacked where they are gzip."""
        return self.watch(_unpacked(self.raw, self.head), unpacks=True)

    def watch(self, inner: io.BufferedIOBase, *, unpacks: bool, member: str = "") -> io.BufferedReader:
        return io.BufferedReader(_Watched(self, inner, unpacks, member), _BUFFER)

    def note(self, unpacked: int) -> None:
        """Count bytes that were unpacked, refuse too many, and report how far the file is read."""
        self.given += unpacked
        if self.given > self._most:
            raise InputError(unpacks_to_more(self._most, self.size), file=self.path)
        if self._progress is not None:
            self._progress(self.path.name, min(self.raw.tell(), self.size), self.size)


class _Watched(io.RawIOBase):
    """A stream whose errors name the file, and whose bytes are counted."""

    def __init__(self, file: _File, inner: io.BufferedIOBase, unpacks: bool, member: str) -> None:
        self._file, self._inner, self._unpacks, self._member = file, inner, unpacks, member
        self._begins = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            # One read at a time: bytes before the damage are returned, so that errors name the line.
            count = self._inner.readinto1(buffer)
        except _UNREADABLE as error:
            raise _explained(error, self._file.path, self._member) from None
        self._file.note(count if self._unpacks else 0)
        if self._begins:
            self._begins = False
            self._refuse_other(bytes(buffer[: min(count, 64)]))
        return count

    def _refuse_other(self, head: bytes) -> None:
        for begins, wrong in _CONTENTS.items():
            if re.match(begins, head):
                raise InputError(_of_member(self._member, wrong), file=self._file.path, line=1)


@contextmanager
def _open(path: str | Path, progress: Progress | None) -> Iterator[_File]:
    try:
        kind = os.stat(path).st_mode
        if not stat.S_ISREG(kind):
            raise InputError(f"is {'a folder' if stat.S_ISDIR(kind) else 'not a file'}", file=path)
        raw = open(path, "rb")  # noqa: SIM115  (closed below; only opening is tried here)
    except FileNotFoundError as error:
        hint = did_you_mean(Path(path).name, names_beside(Path(path)))
        raise InputError(f"cannot be read: {error.strerror}{hint}", file=path) from None
    except _UNREADABLE as error:
        raise _explained(error, path) from None
    with raw:
        file = _File(Path(path), raw, progress)
        for magic, name in _PACKINGS.items():
            if re.match(magic, file.head):
                raise InputError(
                    f"this is packed with {name}; unpack it, or pack it with gzip", file=path, line=1
                )
        yield file


def _unpacked(stream: io.BufferedReader, head: bytes) -> io.BufferedIOBase:
    if not head.startswith(_GZIP):
        return stream
    packed: Any = _LittlePadded(stream)  # GzipFile calls its `read` only
    return gzip.GzipFile(fileobj=packed)


class _LittlePadded:
    """A stream of gzip with few zeros after its end: Python reads them one by one, gigabytes would take minutes."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream, self._zeros = stream, 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        if data == b"\0":
            self._zeros += 1
            if self._zeros > _PADDING:
                raise gzip.BadGzipFile(f"more than {_PADDING >> 10} KiB of zeros follow it")
        return data


def is_hidden(name: str) -> bool:
    """Return whether a file or member is hidden, as those that macOS adds for each file of an archive."""
    return PurePosixPath(name).name.startswith(".")


def _files_below(folder: Path) -> list[str]:
    """Return the files of a folder and its subfolders by relative name, in the order of names."""
    below = (Path(at, name) for at, _, names in os.walk(folder) for name in names if not is_hidden(name))
    return sorted(path.relative_to(folder).as_posix() for path in below)


def _zip_members(file: _File, wanted: Callable[[str], bool]) -> Iterator[tuple[str, io.BufferedReader]]:
    seen: set[str] = set()
    with _open_zip(file) as archive:
        for member in archive.infolist():
            if member.is_dir() or is_hidden(member.filename):
                continue
            _refuse_twice(file, member.filename, seen)
            name, kind = member.filename, stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG):
                _refuse_special(file, name, kind == stat.S_IFLNK)
            if member.flag_bits & 1:
                raise InputError(f"member {shown(name)} is encrypted", file=file.path)
            if not wanted(name):
                continue
            try:
                inner = cast(io.BufferedIOBase, archive.open(member))
            except _UNREADABLE as error:
                raise _explained(error, file.path, name) from None
            yield from _member(file, name, inner, unpacks=True)


def _open_zip(file: _File) -> zipfile.ZipFile:
    """Open an archive; refuse a document of an office program, which is one too."""
    try:
        archive = zipfile.ZipFile(file.raw)
    except _UNREADABLE as error:
        raise _explained(error, file.path) from None
    for member, what in _DOCUMENTS.items():
        if member in archive.namelist():
            archive.close()
            raise InputError(f"this is {what}; export its sheet as CSV", file=file.path)
    return archive


def _refuse_twice(file: _File, name: str, seen: set[str]) -> None:
    """Refuse a second member of the same name: which of the two is meant is not known."""
    if name in seen:
        raise InputError(f"holds two members called {shown(name)}; keep one", file=file.path)
    seen.add(name)


def _tar_members(
    file: _File, stream: io.BufferedReader, wanted: Callable[[str], bool]
) -> Iterator[tuple[str, io.BufferedReader]]:
    seen: set[str] = set()
    try:
        # As a stream: nothing is sought.
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as archive:
            for header in archive:
                if header.isdir() or is_hidden(header.name):
                    continue
                _refuse_twice(file, header.name, seen)
                if not header.isreg() or header.issparse():
                    _refuse_special(file, header.name, header.issym() or header.islnk())
                if not wanted(header.name):
                    continue
                inner = cast(io.BufferedIOBase, archive.extractfile(header))  # not None: a regular file
                yield from _member(file, header.name, inner, unpacks=False)
    except tarfile.TarError as error:
        raise _explained(error, file.path) from None


def _member(
    file: _File, name: str, inner: io.BufferedIOBase, *, unpacks: bool
) -> Iterator[tuple[str, io.BufferedReader]]:
    stream = file.watch(inner, unpacks=unpacks, member=name)
    head = stream.peek(2)[:2]
    if head == _GZIP:
        stream = file.watch(_unpacked(stream, head), unpacks=True, member=name)
    yield name, stream


class _Header(tarfile.TarInfo):
    """A header; refused where tarfile would end the archive without an error, or fill the memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if buf.strip(b"\0"):
                raise tarfile.ReadError(str(error)) from None
            raise  # the end of the archive
        if header.type in b"xgXLKN" and header.size > _HEADER_LIMIT:
            raise tarfile.ReadError("a header is longer than 1 MiB")
        return header


def _is_tar(path: Path, stream: io.BufferedReader) -> bool:
    named = path.name.endswith((".tar", ".tar.gz", ".tgz"))
    return named or stream.peek(512)[257:262] == b"ustar"


def _refuse_special(file: _File, name: str, link: bool) -> None:
    what = "a link; links in archives are not followed" if link else "neither a file nor a folder"
    raise InputError(f"member {shown(name)} is {what}", file=file.path)


def _explained(error: Exception, path: str | Path, member: str = "") -> InputError:
    """Return the error for a file, or a member of an archive, that cannot be read."""
    detail = " ".join(str(error).split())[:100] or type(error).__name__
    if isinstance(error, EOFError):
        wrong = "the gzip stream ends too early; the file is truncated"
    elif isinstance(error, gzip.BadGzipFile | zlib.error):
        wrong = f"the gzip stream is corrupt ({detail})"
    elif isinstance(error, tarfile.TarError):
        wrong = f"the tar archive is corrupt ({detail})"
    elif isinstance(error, OSError):
        wrong = f"cannot be read: {error.strerror or detail}"
    else:
        wrong = f"cannot be read: {detail}"
    return InputError(_of_member(member, wrong), file=path)


def _of_member(member: str, wrong: str) -> str:
    return f"member {shown(member)}: {wrong}" if member else wrong
