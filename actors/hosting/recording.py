"""The events of a partition, written to a file while it runs, so that memory does not grow with the run.

The file has the rows of `actors.kernel.trace.TRACE`. A snapshot has the number of rows written so far and their
checksum, and they are on the disk itself before it is taken; a partition that continues from it cuts off later rows.
When the run has ended the files of all partitions become one table (`emu.results.events`).
"""

import errno
import os
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from actors.hosting.snapshot import Refused
from actors.kernel.trace import TRACE, make_trace
from actors.setting import Setting
from workloads.errors import InputError, not_written

SUFFIX = ".trace"
NOT_SHARED = "output.events needs a folder that all machines of a run see"
_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Recording:
    """What is recorded, and the folder of the partitions' files."""

    folder: Path  # exists, on a disk that all partitions see; an absolute path, as they may run elsewhere
    jobs: tuple[int, ...] | None = None  # numbers of jobs or coflows; None: all, and events without a job
    span_ns: tuple[int, int] = (0, 1 << 62)  # from, and before
    rates: bool = False  # also the rates of flows


def with_trace(world: Any, recording: Recording, setting: Setting) -> Any:
    """Return the world of a partition with an empty trace."""
    chosen = None
    if recording.jobs is not None:
        chosen = np.zeros(setting.num_jobs, bool)
        chosen[list(recording.jobs)] = True
    worlds = setting.scheduler.worlds
    owners, families = worlds.owners(world), worlds.messages
    trace = make_trace(
        world.queue.seq.size, world.queue.room, recording.span_ns, chosen, owners, families, recording.rates
    )
    return world._replace(queue=world.queue._replace(trace=trace))


def trace_file(folder: Path, partition: int) -> Path:
    """Return the path of the file of a partition."""
    return folder / f"{partition}{SUFFIX}"


def checksum_of(path: Path, rows: int) -> int | None:
    """Return the CRC-32 of the first rows of a file; None if it has fewer, or does not exist."""
    left, checksum = rows * TRACE.itemsize, 0
    if left == 0:
        return checksum
    if not path.is_file() or path.stat().st_size < left:
        return None
    with open(path, "rb") as file:
        while left > 0 and (part := file.read(min(left, _READ_BYTES))):
            checksum = zlib.crc32(part, checksum)
            left -= len(part)
    return None if left else checksum


def check_traces(recording: Recording, recorded: list[np.ndarray]) -> None:
    """Refuse files that do not begin with the rows that partitions had written at a checkpoint.

    `recorded` are the results of `EventFile.position`, by partition.
    """
    for k, (rows, checksum) in enumerate(recorded):
        path = trace_file(recording.folder, k)
        if (found := checksum_of(path, int(rows))) != checksum:
            wrong = f"lacks some of its {rows:,} events" if found is None else "is damaged"
            raise Refused(f"the file of its events, {path}, {wrong}")


def remove_traces(recording: Recording) -> None:
    """Remove the files of an earlier attempt that is not continued; it may have had more partitions."""
    for path in recording.folder.glob(f"*{SUFFIX}"):
        with suppress(OSError):
            path.unlink()


class EventFile:
    """The file of one partition."""

    def __init__(self, folder: Path, partition: int):
        self.path = trace_file(folder, partition)
        self.rows = 0  # written so far
        self._checksum = 0
        self._kept = 0  # rows of the newest snapshot
        self._file: Any = None

    def drain(self, trace: Any) -> bool:
        """Write the rows of a trace, and empty it; return whether there were any.

        Raise InputError if the file cannot be written, NotWritten if the disk is full.
        """
        size = int(trace.size[0])
        if size == 0:
            return False
        left = np.asarray(trace.log[:size]).view(np.uint8).data
        checksum = zlib.crc32(left, self._checksum)
        try:
            if self._file is None:
                self._open(0)
            while left:  # a disk that is nearly full takes a part
                left = left[self._file.write(left) :]
        except OSError as error:
            with suppress(OSError):
                # Rows behind the last checkpoint are useless; without them there is room for the manifest.
                os.truncate(self.path, self._kept * TRACE.itemsize)
            raise not_written(error, self.path) from None
        self.rows += size
        self._checksum = checksum
        trace.size[0] = 0
        return True

    def position(self) -> np.ndarray:
        """Return the rows written so far and their checksum [2], when they are on the disk itself."""
        if self._file is not None:
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                if error.errno != errno.EINVAL:  # file systems that cannot
                    raise not_written(error, self.path) from None
        self._kept = self.rows
        return np.array([self.rows, self._checksum], np.int64)

    def cut(self, position: np.ndarray) -> None:
        """Continue behind a position; raise InputError if the file has other rows, or cannot be written."""
        rows, checksum = position.tolist()
        try:
            if checksum_of(self.path, rows) != checksum:
                # The process that read the checkpoint has checked its own view of the file.
                raise InputError(f"lacks the {rows:,} events of the checkpoint: {NOT_SHARED}", file=self.path)
            self._open(rows)
        except OSError as error:
            raise not_written(error, self.path) from None
        self.rows, self._checksum, self._kept = rows, checksum, rows

    def _open(self, rows: int) -> None:
        """Open the file behind its first rows; what comes after is cut off."""
        self.close()
        if not self.path.parent.is_dir():  # not made here: on another machine it would be another folder
            raise InputError(f"is not there: {NOT_SHARED}", file=self.path.parent)
        self._file = self.path.open("ab", buffering=0)
        self._file.truncate(rows * TRACE.itemsize)

    def end(self, trace: Any) -> None:
        """Write the last rows. Where nothing was recorded, an earlier attempt's file goes."""
        self.drain(trace)
        if self.rows == 0:
            self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
