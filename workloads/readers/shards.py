"""The files that hold a trace's tables, in folders and archives: known by their names, or else by their content.

A shard is known by its name: ``x/task_events/part-00001-of-00500.csv.gz``, ``batch_task_3.csv`` or
``instance_events-000000000001.parquet.gz``. Where no file of a source has such a name, the first rows of each file tell
which table it holds (`workloads.readers.known_tables`). The file's ending, or else its first bytes, tell whether it is
Parquet, JSON lines or CSV.
"""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from workloads.errors import InputError
from workloads.readers.known_tables import KnownTable, identify
from workloads.readers.report import Progress
from workloads.readers.samples import Sample, sample_of, take_sample
from workloads.readers.source import is_hidden, open_members

FORMS = {"csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json", "parquet": "parquet"}
"""Endings, and the form of a file that has one."""
_FILES_AT_ONCE = 4  # of a folder: each is unpacked by its thread and parsed by one of DuckDB's
_SHARD = re.compile(r"[-_.]?part[-_]?[0-9]+([-_]of[-_][0-9]+)?$|[-_]?[0-9]+$")


class Member(NamedTuple):
    """A shard of a table.

    Attributes
    ----------
    table, form : str
        ``csv``, ``json`` or ``parquet``.
    shard, place : str
        Its name, the same for two copies, and where it is, for errors.
    sample : Sample
    stream : BinaryIO
        Its bytes, unpacked, until the next member is asked for.
    path : Path
        Of the file, which may be an archive.
    name : str
        In the archive, or of the file.
    """

    table: str
    form: str
    shard: str
    place: str
    sample: Sample
    stream: io.BufferedReader
    path: Path
    name: str


class Wanted(NamedTuple):
    """Tables that are looked for, and their format; with the empty format by file names alone."""

    format: str
    tables: Collection[str]

    def named(self, name: str) -> str:
        """Return the table that a file's name stands for, or ``""``."""
        return table_of(name, self.tables)

    def within(self, sample: Sample) -> str:
        """Return the table to which the first rows of a file belong, or ``""``."""
        known = identify(sample) if self.format else None
        return known.table if known is not None and self.are(known) else ""

    def are(self, known: KnownTable) -> bool:
        """Return whether a known table is one of them."""
        return known.format == self.format and known.table in self.tables


def table_of(name: str, tables: Collection[str]) -> str:
    """Return the table that the name of a file or member stands for, or ``""``."""
    *folders, last = PurePosixPath(name).parts or ("",)
    stem = _SHARD.sub("", last.partition(".")[0])
    if not stem and folders:  # nothing but a shard's number: the folder is the table's
        stem = folders[-1]
    return stem if stem in tables else ""


def form_of(name: str) -> str:
    """Return the form of a file by its ending: of `FORMS`, or ``""``."""
    endings = name.removesuffix(".gz").rpartition("/")[2].split(".")[1:]
    return next((form for ending, form in FORMS.items() if ending in endings), "")


def holds_table(path: Path, format: str, table: str, by_name: bool = True) -> bool:
    """Return whether a folder, an archive or a file holds a shard of a table of a format.

    Parameters
    ----------
    by_name : bool
        Whether a file is known by its name, unless it has the content of another format that is read; else by its
        content alone.
    """
    wanted = Wanted(format, [table])

    def holds(name: str, sample: Sample) -> bool:
        known = identify(sample)
        if known is not None and wanted.are(known):
            return True
        is_other = known is not None and known.format not in ("", format)
        return not is_other and by_name and bool(wanted.named(name))

    try:
        if os.path.isdir(path):
            return any(holds(_named(file, path), sample_of(file)) for file in files_of(path, wanted))
        if holds(_named(path, path), sample_of(path)):
            return True
        first = islice(open_members(path), 3)  # an archive must be unpacked to find more
        return any(holds(name, take_sample(stream)) for name, stream in first)
    except InputError:
        return False


def files_within(folder: Path) -> list[Path]:
    """Return the files of a folder and its subfolders in order, with broken links."""
    children = sorted((*folder.glob("*"), *folder.glob("*/*")))
    return [path for path in children if not is_hidden(path.name) and not path.is_dir()]


def files_of(source: Path, wanted: Wanted) -> list[Path]:
    """Return the files to read, in order: those of a folder that hold the tables, or the source itself."""
    if not os.path.isdir(source):
        return [source]
    files = files_within(source)
    found = {path: wanted.named(_named(path, source)) for path in files}
    if wanted.format:
        have = {*found.values()}
        for path in files:
            if (
                not found[path]
                and form_of(path.name)
                and (table := wanted.within(sample_of(path))) not in have
            ):
                found[path] = table
    return [path for path in files if found[path]]


def members_at_once(
    paths: list[Path], source: Path, wanted: Wanted, progress: Progress | None
) -> Iterator[list[Member]]:
    """Yield lists of members that can be read at the same time, each of another file."""
    joint = None if progress is None else _joint(progress, source.resolve().name, paths)
    for first in range(0, len(paths), _FILES_AT_ONCE):
        with ExitStack() as stack:
            readers = [
                stack.enter_context(closing(members_of(path, source, wanted, joint and joint(path))))
                for path in paths[first : first + _FILES_AT_ONCE]
            ]
            while members := [member for r in readers if (member := next(r, None)) is not None]:
                yield members


def members_of(
    path: Path, source: Path, wanted: Wanted, progress: Progress | None = None
) -> Generator[Member]:
    """Yield the members of a file, or the file itself, that hold one of the tables."""
    for name, stream in open_members(path, progress=progress):
        itself = name == path.name.removesuffix(".gz")
        label = _named(path, source) if itself else name
        sample = sample_of(path) if itself else take_sample(stream)
        table = wanted.named(label) or (wanted.within(sample) if itself or form_of(name) else "")
        if table:
            place = str(path) if itself else f"{path} ({name})"
            form = form_of(label) or (sample.form if sample.form in FORMS.values() else "csv")
            yield Member(table, form, _shard(table, label), place, sample, stream, path, name)


def _named(path: Path, source: Path) -> str:
    """Return a file's name with the folders that may name its table, the source among them."""
    path, source = Path(os.path.abspath(path)), Path(os.path.abspath(source))
    return path.relative_to(source.parent if os.path.isdir(source) else source.parent.parent).as_posix()


def _shard(table: str, name: str) -> str:
    """Return the name of a shard without folders and endings: copies in two forms have the same."""
    stem = PurePosixPath(name).name.partition(".")[0]
    return stem if _SHARD.sub("", stem) else f"{table}/{stem}"


def _joint(progress: Progress, what: str, paths: list[Path]) -> Callable[[Path], Progress]:
    """Return the progress of each file; several threads read them at once, and their bytes add up."""
    total = sum(path.stat().st_size for path in paths if os.path.isfile(path))
    lock, done_of = threading.Lock(), dict.fromkeys(paths, 0)

    def of_file(path: Path) -> Progress:
        def tell(_: str, done: int, size: int) -> None:
            with lock:
                done_of[path] = done
                progress(what, sum(done_of.values()), total)

        return tell

    return of_file
