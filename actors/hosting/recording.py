"""The events of a partition, written to a file while it runs, so that memory does not grow with the run.

The file has the rows of `actors.kernel.trace.TRACE` as they are. A snapshot counts those written so far; a partition
that goes on from it cuts off what came after. When the run has ended the files of all partitions become one table
(`emu.results.events`).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from actors.kernel.trace import TRACE, make_trace
from actors.setting import Setting
from workloads.errors import InputError

SUFFIX = ".trace"


@dataclass(frozen=True)
class Recording:
    """What is recorded, and where the files of the partitions lie.

    Attributes:
        folder: on a disk that all partitions see.
        jobs: the jobs, or coflows, that are recorded, by their number; None: all, and what is of no job.
        span_ns: from, and before.
        rates: those of flows, too.
    """

    folder: Path
    jobs: tuple[int, ...] | None = None
    span_ns: tuple[int, int] = (0, 1 << 62)
    rates: bool = False


def with_trace(world: Any, recording: Recording, setting: Setting) -> Any:
    """Return the world of a partition with an empty trace."""
    chosen = None
    if recording.jobs is not None:
        chosen = np.zeros(setting.num_jobs, bool)
        chosen[list(recording.jobs)] = True
    owners = setting.scheduler.worlds.owners(world)
    trace = make_trace(
        world.queue.seq.size, world.queue.room, recording.span_ns, chosen, owners, recording.rates
    )
    return world._replace(queue=world.queue._replace(trace=trace))


class EventFile:
    """The file of one partition.

    Attributes:
        rows: written so far.
    """

    def __init__(self, folder: Path, partition: int):
        self.path = folder / f"{partition}{SUFFIX}"
        self.rows = 0
        self._file: Any = None

    def drain(self, trace: Any) -> bool:
        """Write the rows of a trace, and empty it; returns whether there were any.

        Raises:
            InputError: the file cannot be written.
        """
        size = int(trace.size[0])
        if size == 0:
            return False
        try:
            if self._file is None:
                self.cut(0)
            self._file.write(np.asarray(trace.log[:size]).view(np.uint8).data)
        except OSError as error:
            raise InputError(f"events cannot be written: {error.strerror}", file=self.path) from None
        self.rows += size
        trace.size[0] = 0
        return True

    def cut(self, rows: int) -> None:
        """Go on behind the first `rows` rows.

        Raises:
            InputError: the file has fewer, or cannot be written.
        """
        try:
            self.close()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("ab", buffering=0)
            if self.path.stat().st_size < rows * TRACE.itemsize:
                raise InputError(
                    f"has fewer than the {rows:,} events of the checkpoint: start the run again from the beginning",
                    file=self.path,
                )
            self._file.truncate(rows * TRACE.itemsize)
        except OSError as error:
            raise InputError(f"events cannot be written: {error.strerror}", file=self.path) from None
        self.rows = rows

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
